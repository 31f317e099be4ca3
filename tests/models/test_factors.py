"""Data frames with categorical columns: the fit to zeros and ones that were written by hand."""

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import statsmodels.api as sm

from posteriori import (
    GLM,
    Adaline,
    FisherDiscriminant,
    GaussianClassifier,
    GaussianPrior,
    LeastSquaresClassifier,
    LogisticRegression,
    Perceptron,
    ProbitRegression,
    ThresholdRegression,
)
from posteriori.errors import (
    ColumnTypeError,
    ConvergenceWarning,
    LevelError,
    MissingValueError,
    RankDeficiencyWarning,
    ShapeError,
)

N = 400
RANDOM = np.random.default_rng(5)
AGE = RANDOM.normal(50, 10, N)
SMOKES = RANDOM.random(N) < 0.3
REGION = RANDOM.choice(["north", "south", "east"], N)
GRADE = RANDOM.choice(["low", "mid", "high"], N)
ACTIVATION = 0.05 * (AGE - 50) + 0.7 * SMOKES + 0.8 * (REGION == "south") - 0.5 * (GRADE == "low")
Y = (RANDOM.random(N) < 1 / (1 + np.exp(-ACTIVATION))).astype(int)
Y3 = (Y + RANDOM.integers(0, 2, N)).clip(max=2)
DOSE = RANDOM.normal(size=N)
PLAIN = {"region": REGION, "age": AGE, "grade": GRADE, "smokes": SMOKES, "dose": DOSE}
PLACES, GRADES = ["east", "north", "nowhere", "south"], ["low", "mid", "high", "best"]

SORTED = ["high", "low", "mid"]
"""The levels of the grade where no order is declared; the first is the reference."""

DECLARED = ["low", "mid", "high"]

OBJECTS = {"region": object, "grade": object}

FRAMES = {
    "pandas strings": (lambda: pd.DataFrame(PLAIN), SORTED),
    "pandas objects": (lambda: pd.DataFrame(PLAIN).astype(OBJECTS), SORTED),
    "pandas categories": (lambda: _with_pandas_categories(ordered=False), DECLARED),
    "pandas ordered categories": (lambda: _with_pandas_categories(ordered=True), DECLARED),
    "pandas arrow": (lambda: pd.DataFrame(PLAIN).convert_dtypes(dtype_backend="pyarrow"), SORTED),
    "polars strings": (lambda: pl.DataFrame(PLAIN), SORTED),
    "polars categories": (lambda: _with_polars(pl.Categorical, pl.Categorical), SORTED),
    "polars enums": (lambda: _with_polars(pl.Enum(PLACES), pl.Enum(GRADES)), DECLARED),
    "pyarrow strings": (lambda: pa.table(PLAIN), SORTED),
    "pyarrow dictionaries": (lambda: _with_dictionaries(), SORTED),
}

MODELS = {
    "logistic": (LogisticRegression(), Y),
    "with a prior": (LogisticRegression(prior=2.0), Y),
    "Jeffreys": (LogisticRegression(prior="jeffreys"), Y),
    "softmax": (LogisticRegression(), Y3),
    "probit": (ProbitRegression(), Y),
    "threshold": (ThresholdRegression(noise="laplace"), Y),
    "poisson": (GLM(family="poisson"), Y3),
    "gaussian": (GLM(family="gaussian"), Y3),
    "least squares": (LeastSquaresClassifier(), Y3),
}


def _with_pandas_categories(ordered):
    return pd.DataFrame(
        PLAIN
        | {
            "region": pd.Categorical(REGION, PLACES, ordered=ordered),
            "grade": pd.Categorical(GRADE, GRADES, ordered=ordered),
        }
    )


def _with_polars(region, grade):
    return pl.DataFrame(PLAIN).with_columns(
        pl.col("region").cast(region), pl.col("grade").cast(grade)
    )


def _with_dictionaries():
    coded = {name: pa.array(PLAIN[name]).dictionary_encode() for name in ("region", "grade")}
    return pa.table(PLAIN | coded)


def by_hand(grades):
    """In the place of each factor, a column of zeros and ones for each level but the first."""
    region = [level == REGION for level in ("north", "south")]
    grade = [level == GRADE for level in grades[1:]]
    return np.column_stack([*region, AGE, *grade, SMOKES, DOSE]).astype(np.float64)


def names(grades=SORTED):
    grade = [f"grade[{level}]" for level in grades[1:]]
    return ["region[north]", "region[south]", "age", *grade, "smokes", "dose"]


@pytest.mark.parametrize("source", FRAMES)
def test_every_frame_gives_the_fit_to_zeros_and_ones(source):
    make, grades = FRAMES[source]
    model, hand = LogisticRegression().fit(make(), Y), LogisticRegression().fit(by_hand(grades), Y)
    np.testing.assert_allclose(model.coef_, hand.coef_, rtol=1e-12)
    np.testing.assert_allclose(model.coef_covariance_, hand.coef_covariance_, rtol=1e-10)
    assert model.log_likelihood_ == pytest.approx(hand.log_likelihood_, rel=1e-14)
    assert model.n_parameters_ == hand.n_parameters_ == 8
    assert model.coef_names_.tolist() == names(grades)
    assert np.asarray(model.tidy()["term"]).tolist() == ["intercept", *names(grades)]


@pytest.mark.parametrize("name", MODELS)
def test_every_model_takes_factors_as_zeros_and_ones(name):
    estimator, target = MODELS[name]
    frame, X = pl.DataFrame(PLAIN), by_hand(SORTED)
    model = estimator.fit(frame, target)
    coef, intercept, predicted = model.coef_, model.intercept_, model.predict(frame)
    parameters, found = model.n_parameters_, model.coef_names_.tolist()
    hand = estimator.fit(X, target)
    np.testing.assert_allclose(coef, hand.coef_, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(intercept, hand.intercept_, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(
        np.asarray(predicted, dtype=float), np.asarray(hand.predict(X), dtype=float), rtol=1e-12
    )
    assert parameters == hand.n_parameters_
    assert found == names()
    assert hand.coef_names_.tolist() == [f"x{j}" for j in range(7)]


@pytest.mark.parametrize("kind", [Perceptron, Adaline])
def test_models_learnt_row_by_row_take_factors_as_zeros_and_ones(kind):
    rows = slice(0, 60)
    clear = (ACTIVATION[rows] > np.median(ACTIVATION)).astype(int)
    X, frame = by_hand(SORTED)[rows], pl.DataFrame(PLAIN)[rows]
    settings = {"shuffle": False, "max_epochs": 3}
    with pytest.warns(ConvergenceWarning):
        model = kind(**settings).fit(frame, clear)
    with pytest.warns(ConvergenceWarning):
        hand = kind(**settings).fit(X, clear)
    np.testing.assert_allclose(model.coef_, hand.coef_, rtol=1e-10)
    assert model.n_parameters_ == hand.n_parameters_ == 8


def test_coefficients_and_errors_are_those_of_statsmodels():
    frame = pd.DataFrame(PLAIN)
    dummies = [pd.get_dummies(frame[[name]], drop_first=True) for name in frame]
    design = sm.add_constant(pd.concat(dummies, axis=1).astype(float))
    found = sm.Logit(Y, design).fit(disp=0, tol=1e-14)
    model = LogisticRegression().fit(frame, Y)
    np.testing.assert_allclose(model.coef_[0], found.params[1:], rtol=1e-8)
    np.testing.assert_allclose(model.coef_covariance_, found.cov_params(), rtol=1e-7)
    table = model.tidy()
    np.testing.assert_allclose(table["estimate"], found.params, rtol=1e-8)
    np.testing.assert_allclose(table["std_error"], found.bse, rtol=1e-8)


SUMMED = {
    "least squares": LeastSquaresClassifier,
    "fisher": FisherDiscriminant,
    "gaussian": GaussianClassifier,
}


@pytest.mark.parametrize("kind", SUMMED.values(), ids=SUMMED)
def test_sums_of_parts_with_different_levels_keep_the_order_of_columns(kind):
    frame, hand = pd.DataFrame(PLAIN), kind().fit(by_hand(SORTED), Y)
    first = (REGION != "south") & (GRADE != "low")
    parts = [kind().partial_fit(frame[rows], Y[rows]) for rows in (first, ~first)]
    in_turn = kind().partial_fit(frame[first], Y[first]).partial_fit(frame[~first], Y[~first])
    added = kind().from_statistics(parts[0].statistics_ + parts[1].statistics_)
    for model in (kind().fit(frame, Y), in_turn, added):
        assert model.coef_names_.tolist() == names()
        np.testing.assert_allclose(model.coef_, hand.coef_, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(
            model.predict(frame[["dose", "grade", "smokes", "age", "region"]]),
            hand.predict(by_hand(SORTED)),
        )


def test_precisions_and_slopes_belong_to_columns_in_the_users_order():
    frame, precision = pd.DataFrame(PLAIN), np.array([1.0, 2.0, 30.0, 4.0, 5.0, 6.0, 700.0])
    prior = GaussianPrior(precision)
    model = LogisticRegression(prior=prior).fit(frame, Y)
    hand = LogisticRegression(prior=prior).fit(by_hand(SORTED), Y)
    np.testing.assert_allclose(model.coef_, hand.coef_, rtol=1e-10)
    slopes = np.asarray(model.slopes(frame, columns=["dose", "age"])["estimate"])
    expected = np.asarray(hand.slopes(by_hand(SORTED), columns=[6, 2])["estimate"])
    np.testing.assert_allclose(slopes, expected, rtol=1e-9)
    ard = LogisticRegression(prior="ard").fit(frame, Y)
    swapped = LogisticRegression(prior="ard").fit(frame[["age", "dose", "smokes", *OBJECTS]], Y)
    moved = [names().index(name) for name in swapped.coef_names_]
    np.testing.assert_allclose(swapped.coef_, ard.coef_[:, moved], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("fitted", FRAMES)
def test_a_fit_to_one_kind_of_frame_predicts_on_every_other(fitted):
    model = LogisticRegression().fit(FRAMES[fitted][0](), Y)
    expected = LogisticRegression().fit(by_hand(SORTED), Y).predict_proba(by_hand(SORTED))
    for make, _ in FRAMES.values():
        np.testing.assert_allclose(model.predict_proba(make()), expected, rtol=1e-10)


def test_a_factor_that_repeats_another_is_named():
    frame = pd.DataFrame(PLAIN).assign(place=[f"the {region}" for region in REGION])
    with pytest.warns(RankDeficiencyWarning, match=r"'place\[the north\]', 'place\[the south\]'"):
        model = LogisticRegression().fit(frame, Y)
    without = LogisticRegression().fit(pd.DataFrame(PLAIN), Y)
    np.testing.assert_allclose(
        model.predict_proba(frame), without.predict_proba(frame.drop(columns="place")), rtol=1e-9
    )


NEW = pd.DataFrame(PLAIN).head(3).assign(region=["north", "west", "east"])


@pytest.mark.parametrize("name", MODELS)
def test_an_unseen_level_is_named_by_row_column_and_remedy(name):
    estimator, target = MODELS[name]
    model = estimator.fit(pd.DataFrame(PLAIN), target)
    message = r"Row 1 has the level 'west' in column 'region', .*'east', 'north', 'south'"
    with pytest.raises(LevelError, match=message):
        model.predict(NEW)
    with pytest.raises(
        LevelError, match="handle_unknown='reference' where the model has that choice"
    ):
        model.predict(pl.DataFrame(NEW))


CHOOSERS = [LogisticRegression, ProbitRegression, ThresholdRegression, GLM]


@pytest.mark.parametrize("kind", CHOOSERS)
@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.Table.from_pandas])
def test_an_unseen_level_can_be_taken_for_the_reference(kind, library):
    model = kind(handle_unknown="reference").fit(pd.DataFrame(PLAIN), Y)
    known = NEW.assign(region=["north", "east", "east"])
    np.testing.assert_array_equal(model.predict(library(NEW)), model.predict(known))
    np.testing.assert_array_equal(
        model.predict_interval(library(NEW)), model.predict_interval(known)
    )


@pytest.mark.parametrize("handle_unknown", ["error", "reference"])
@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.Table.from_pandas])
def test_a_missing_level_is_named_in_fits_and_in_predictions(handle_unknown, library):
    model = LogisticRegression(handle_unknown=handle_unknown).fit(pd.DataFrame(PLAIN), Y)
    gap = library(NEW.assign(region=["north", None, "east"]))
    with pytest.raises(MissingValueError, match=r"contains NaN \(first in row 1, column 'reg"):
        model.predict(gap)
    with pytest.raises(MissingValueError, match=r"contains NaN \(first in row 1, column 'reg"):
        LogisticRegression(handle_unknown=handle_unknown).fit(gap, [0, 1, 0])


def test_numbers_where_levels_were_are_named():
    model = LogisticRegression().fit(pd.DataFrame(PLAIN), Y)
    with pytest.raises(ColumnTypeError, match="Column 'region' is numeric but was categorical"):
        model.predict(NEW.assign(region=1))


@pytest.mark.parametrize("model", [Perceptron, Adaline])
def test_the_sequential_classifiers_take_a_new_level_for_the_reference(model):
    frame = pd.DataFrame({"x": np.r_[-1.0, -0.5, 0.5, 1.0], "g": ["a", "b", "a", "b"]})
    fitted = model(random_state=0, handle_unknown="reference").fit(frame, [0, 0, 1, 1])
    strange = pd.DataFrame({"x": [0.7], "g": ["c"]})
    known = pd.DataFrame({"x": [0.7], "g": ["a"]})
    np.testing.assert_array_equal(
        fitted.decision_function(strange), fitted.decision_function(known)
    )
    with pytest.raises(LevelError, match="'g'"):
        model(random_state=0).fit(frame, [0, 0, 1, 1]).predict(strange)


MANY_LEVELS = """
import resource
import numpy as np, pandas as pd
from posteriori import LogisticRegression
random = np.random.default_rng(0)
codes, effect = random.integers(0, 5000, 100_000), random.normal(size=5000)
levels = [f"level {i:04d}" for i in range(5000)]
f, x = pd.Categorical.from_codes(codes, levels), random.normal(size=100_000)
X, y = pd.DataFrame({"f": f, "x": x}), random.logistic(size=100_000) < effect[codes] + x
model = LogisticRegression().fit(X, y)
model.predict(X)
assert model.separation_.kind == "quasi"  # some levels have rows of one class alone
found = (model.coef_[0, :-1] + model.intercept_).clip(-4, 4)
assert np.corrcoef(found, effect[1:])[0, 1] > 0.8
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def test_a_factor_of_5000_levels_fits_in_a_gigabyte():
    script = [sys.executable, "-W", "ignore", "-c", MANY_LEVELS]
    found = subprocess.run(script, check=True, timeout=120, capture_output=True, text=True)
    assert int(found.stdout) < 1000


@pytest.mark.parametrize("kind", SUMMED.values(), ids=SUMMED)
def test_covariances_of_too_many_levels_are_a_named_limit(kind):
    levels = np.array([f"{i}" for i in range(3001)])
    frame = pd.DataFrame({"x": np.arange(9003.0) % 7, "Site": pd.Categorical(np.tile(levels, 3))})
    with pytest.raises(ShapeError, match=r"Column 'Site' has 3,001 levels.* 3,001 columns.*3,000"):
        kind().fit(frame, np.arange(9003) % 2)
