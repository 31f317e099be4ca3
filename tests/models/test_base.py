"""What all models share: data frames with categorical columns, datasets on disk and in Dask."""

import signal
import subprocess
import sys

import dask
import dask.array as da
import fsspec
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import statsmodels.api as sm
from pyarrow import csv, dataset, parquet
from scipy import sparse
from sklearn.base import clone

from posteriori import (
    GLM,
    Adaline,
    BayesianLogisticRegression,
    FisherDiscriminant,
    GaussianClassifier,
    GaussianPrior,
    LeastSquaresClassifier,
    LogisticRegression,
    NaiveBayes,
    Perceptron,
    ProbitRegression,
    ThresholdRegression,
    scan,
)
from posteriori.errors import (
    ColumnTypeError,
    ConvergenceWarning,
    Interrupted,
    LevelError,
    MissingValueError,
    RankDeficiencyWarning,
    ShapeError,
    SourceError,
)
from posteriori.models import fitting
from posteriori.rows import files
from posteriori.statistics import row_stream
from posteriori.statistics.row_stream import RowStream

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
model = LogisticRegression(prior=1.0).fit(X, y)
model.predict(X)
assert np.corrcoef(model.coef_[0, :-1], effect[1:])[0, 1] > 0.8
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def test_a_factor_of_5000_levels_fits_in_a_gigabyte():
    script = [sys.executable, "-c", MANY_LEVELS]
    found = subprocess.run(script, check=True, timeout=120, capture_output=True, text=True)
    assert int(found.stdout) < 1000


@pytest.mark.parametrize("kind", SUMMED.values(), ids=SUMMED)
def test_covariances_of_too_many_levels_are_a_named_limit(kind):
    levels = np.array([f"{i}" for i in range(3001)])
    frame = pd.DataFrame({"x": np.arange(9003.0) % 7, "Site": pd.Categorical(np.tile(levels, 3))})
    with pytest.raises(ShapeError, match=r"Column 'Site' has 3,001 levels.* 3,001 columns.*3,000"):
        kind().fit(frame, np.arange(9003) % 2)


@pytest.mark.parametrize("kind", SUMMED.values(), ids=SUMMED)
def test_covariances_of_too_many_columns_are_a_named_limit(kind):
    X = sparse.random(50, 20_001, 1e-3, "csr", random_state=0)
    with pytest.raises(ShapeError, match=r"20,001 columns.*3 GiB; 20,000 columns are the most"):
        kind().fit(X, np.arange(50) % 2)


# Datasets on disk and in Dask.


RANDOM_DISK = np.random.default_rng(0)
N_DISK = 3000
X_DISK = RANDOM_DISK.normal(size=(N_DISK, 3))
Y_DISK = np.array(["no", "so", "yes"])[
    (X_DISK @ RANDOM_DISK.normal(size=(3, 3)) + RANDOM_DISK.gumbel(size=(N_DISK, 3))).argmax(axis=1)
]
COUNTS = RANDOM_DISK.poisson(2, N_DISK)
SHARES = np.column_stack([X_DISK[:, 0] < 0, X_DISK[:, 0] >= 0]) * 0.75 + 0.125
WEIGHT = RANDOM_DISK.integers(0, 3, N_DISK).astype(float)
TABLE = pa.table(
    {"a": X_DISK[:, 0], "b": X_DISK[:, 1], "c": X_DISK[:, 2], "y": Y_DISK, "n": COUNTS}
    | {"no": SHARES[:, 0], "yes": SHARES[:, 1], "w": WEIGHT, "side": np.sign(X_DISK[:, 0])}
)
FEATURES = ["a", "b", "c"]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "rows").mkdir()
    for part, first in enumerate(range(0, N_DISK, 700)):
        name = tmp_path / "rows" / f"part-{part}.parquet"
        parquet.write_table(TABLE.slice(first, 700), name, row_group_size=300)
    return tmp_path / "rows"


def written(path):
    table = parquet.read_table(path)
    return table.column_names, np.column_stack([column.to_numpy() for column in table.columns])


@pytest.mark.parametrize(
    "model",
    [LogisticRegression(), GaussianClassifier(), NaiveBayes()],
)
def test_answers_in_a_file_are_those_in_memory(model, folder, tmp_path):
    model.fit(scan(folder, "y", columns=FEATURES))
    rows, frame = scan(folder, columns=["c", "a", "b"]), TABLE.select(FEATURES).to_pandas()
    names, found = written(model.predict_proba(rows, to=tmp_path / "p.parquet"))
    assert names == ["probability_no", "probability_so", "probability_yes"]
    np.testing.assert_array_equal(found, model.predict_proba(frame))
    names, found = written(model.predict(rows, to=tmp_path / "labels.parquet"))
    assert names == ["prediction"]
    assert found[:, 0].tolist() == model.predict(frame).tolist()


def test_a_fit_tells_how_often_it_read_its_rows(folder):
    rows = scan(folder, "y", columns=FEATURES)
    model = GaussianClassifier().fit(rows)
    assert model.passes_.passes == 1  # discovery and the sums at once
    assert 8 * 3 * N_DISK <= model.passes_.bytes_read < 3 * 8 * 3 * N_DISK
    assert GaussianClassifier().fit(rows).passes_.passes == 1
    assert "Passes" in str(LogisticRegression().fit(rows).summary())
    assert not hasattr(model.fit(X_DISK, Y_DISK), "passes_")


def test_files_of_another_file_system_are_read_by_a_dataset(folder):
    there = fsspec.filesystem("memory")
    for path in folder.iterdir():
        there.pipe(f"/store/{path.name}", path.read_bytes())
    source = dataset.dataset("/store", filesystem=there, format="parquet")
    model = LogisticRegression(tol=1e-8).fit(scan(source, "y", columns=FEATURES))
    expected = LogisticRegression(tol=1e-8).fit(X_DISK, Y_DISK)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-10)
    there.rm("/store/part-2.parquet")
    with pytest.raises(SourceError, match=r"part-2\.parquet"):
        model.fit(scan(source, "y", columns=FEATURES))


def test_a_function_is_told_of_every_pass(folder):
    steps = []
    rows = scan(folder, "y", columns=FEATURES, progress=steps.append)
    model = LogisticRegression(prior=1.0).fit(rows)
    numbers = sorted({step.number for step in steps})
    assert numbers == list(range(1, model.passes_.passes + 1))
    for number in numbers:
        own = [step for step in steps if step.number == number]
        assert [step.rows for step in own][:1] == [0]
        assert own[-1].rows == own[-1].n_rows == N_DISK
        assert own[-1].seconds > 0
    assert steps[-1].objective == pytest.approx(-model.log_likelihood_, rel=0.1)


def test_an_interrupted_fit_leaves_the_model_as_it_was(folder):
    model = LogisticRegression().fit(X_DISK, Y_DISK)
    before = model.coef_.copy()

    def stop(step):
        if step.number == 3 and step.rows:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(Interrupted, match=r"Stopped in pass 3, row \d"):
        model.fit(scan(folder, "y", columns=FEATURES, progress=stop))
    np.testing.assert_array_equal(model.coef_, before)
    assert not issubclass(Interrupted, Exception)


@pytest.mark.parametrize("model", [Perceptron(averaged=True), Adaline(tol=1e-12)])
@pytest.mark.filterwarnings("ignore::posteriori.errors.ConvergenceWarning")
def test_an_interrupt_between_epochs_tells_the_last_pass(model, folder, monkeypatch):
    model = clone(model).set_params(max_epochs=3).fit(X_DISK, Y_DISK)
    before, epochs, segments = model.coef_.copy(), [], RowStream.segments

    def stop(self, random=None):
        epochs.append(random is not None)
        if sum(epochs) == 2:
            signal.raise_signal(signal.SIGINT)
        return segments(self, random)

    monkeypatch.setattr(RowStream, "segments", stop)
    with pytest.raises(Interrupted, match=r"Stopped after pass \d, .*The estimator is as it was"):
        model.fit(scan(folder, "y", columns=FEATURES))
    np.testing.assert_array_equal(model.coef_, before)


def test_more_rows_may_come_from_files(folder):
    rows, more = scan(folder, "y", columns=FEATURES), TABLE.slice(0, 1000)
    first = (
        BayesianLogisticRegression(prior=1.0).fit(rows).update(scan(more, "y", columns=FEATURES))
    )
    second = (
        BayesianLogisticRegression(prior=1.0)
        .fit(X_DISK, Y_DISK)
        .update(X_DISK[:1000], Y_DISK[:1000])
    )
    np.testing.assert_allclose(first.coef_, second.coef_, rtol=1e-6)
    assert first.log_evidence_ == pytest.approx(second.log_evidence_, rel=1e-9)
    batches = GaussianClassifier().partial_fit(rows).partial_fit(scan(more, "y", columns=FEATURES))
    both = (
        np.concatenate([X_DISK, X_DISK[:1000]]),
        np.concatenate([Y_DISK, Y_DISK[:1000]]),
    )
    np.testing.assert_allclose(batches.coef_, GaussianClassifier().fit(*both).coef_, rtol=1e-9)


def _csv(folder):
    csv.write_csv(parquet.read_table(folder), folder.parent / "rows.csv")
    return folder.parent / "rows.csv"


def _given(kind, weighted):
    """The columns of the target, the target itself, and the weights."""
    target, y = ("y", Y_DISK) if kind == "labels" else (["no", "yes"], SHARES)
    return target, y, WEIGHT if weighted else None


def _assert_went_the_same_way(found, expected):
    """Coefficients, standard errors and what the fit is worth."""
    # Columns without an effect have coefficients near zero, with the rounding of others.
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-12, atol=1e-15)
    errors = (np.diag(each.coef_covariance_) for each in (found, expected))
    np.testing.assert_allclose(*errors, rtol=1e-11)
    worth = "log_evidence_" if hasattr(found, "inference") else "log_likelihood_"
    assert getattr(found, worth) == pytest.approx(getattr(expected, worth), rel=1e-13)
    assert found.n_iter_ == expected.n_iter_


@pytest.mark.parametrize(
    ("model", "weighted"),
    [(LogisticRegression(), True), (BayesianLogisticRegression(), False)],
    ids=["logistic", "Bayesian"],
)
def test_iterations_are_those_in_memory(model, weighted, tmp_path, monkeypatch):
    """At the usual tolerance, which leaves a part of a standard error that others would not."""
    monkeypatch.setattr(fitting, "_SAMPLE_ENTRIES", 2**11)
    monkeypatch.setattr(fitting, "_SMALL", 0)
    random = np.random.default_rng(1)
    X = random.normal(size=(6_000, 3))
    y = (X @ random.normal(size=(3, 3)) + random.gumbel(size=(6_000, 3))).argmax(axis=1)
    weight = random.choice([0.0, 0.0, 1.0, 2.5], size=len(X)) if weighted else None
    names = [f"x{j}" for j in range(X.shape[1])]
    frame = pd.DataFrame(X, columns=names).assign(y=y)
    columns = {"target": "y"}
    if weight is not None:
        frame, columns = frame.assign(w=weight), {"target": "y", "weight": "w"}
    parts = [frame.iloc[part] for part in np.split(np.arange(len(X)), [3_001, 3_009, 5_000])]
    for i, part in enumerate(parts):
        part.to_parquet(tmp_path / f"{i}.parquet", row_group_size=1_000)
        part.to_csv(tmp_path / f"{i}.csv", index=False)
    expected = clone(model).fit(X, y, sample_weight=weight)
    endings = {path.suffix for path in tmp_path.iterdir()}
    sources = [sorted(tmp_path.glob(f"*{ending}")) for ending in sorted(endings)]
    sources.append([dask.delayed(part, pure=False) for part in parts])
    cuts = (3_000, 2_999, 1)
    in_dask = [
        None if each is None else da.from_array(each, chunks=[cuts, X.shape[1]][: each.ndim])
        for each in (X, y, weight)
    ]
    for given in (*((scan(source, **columns),) for source in sources), in_dask):
        found = clone(model).fit(*given)
        _assert_went_the_same_way(found, expected)


def _dask(folder):
    return [dask.delayed(pd.read_parquet)(part) for part in sorted(folder.iterdir())]


@pytest.mark.filterwarnings("ignore::posteriori.errors.ConvergenceWarning")
@pytest.mark.parametrize(
    ("kind", "weighted", "source"),
    [("labels", False, lambda folder: folder), ("shares", True, _csv), ("labels", False, _dask)],
    ids=["Parquet", "CSV", "Dask"],
)
@pytest.mark.parametrize(
    "model",
    [
        Perceptron(averaged=True, shuffle=False, max_epochs=3),
        Perceptron(shuffle=False, max_epochs=2),
        Adaline(shuffle=False, max_epochs=4),
    ],
    ids=["averaged", "perceptron", "adaline"],
)
def test_rows_are_learnt_in_their_order_where_they_lie(
    model, source, kind, weighted, folder, monkeypatch
):
    target, y, weight = _given(kind, weighted)
    here = clone(model).fit(TABLE.select(FEATURES).to_pandas(), y, weight)
    monkeypatch.setattr(row_stream, "LAID_OUT", 0)
    monkeypatch.setattr(files, "BATCH_ENTRIES", 4 * 700)
    rows = scan(source(folder), target, weight="w" if weighted else None, columns=FEATURES)
    there = clone(model).fit(rows)
    assert there.n_updates_ == here.n_updates_
    assert there.n_iter_ == here.n_iter_
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=1e-10)
    np.testing.assert_allclose(there.intercept_, here.intercept_, rtol=1e-10, atol=1e-12)
    assert there.passes_.passes > there.n_iter_


@pytest.mark.parametrize("source", [lambda folder: folder, _csv])
def test_rows_are_shuffled_batch_by_batch(source, folder, monkeypatch):
    """Epochs are others than in memory, and end at a solution all the same."""
    monkeypatch.setattr(row_stream, "LAID_OUT", 0)
    monkeypatch.setattr(files, "BATCH_ENTRIES", 4 * 700)
    rows, frame = scan(source(folder), "y", columns=FEATURES), TABLE.select(FEATURES)
    model = Adaline(random_state=0, tol=1e-3)
    found = [clone(model).fit(rows).decision_function(frame) for _ in range(2)]
    np.testing.assert_array_equal(*found)
    here = clone(model).fit(frame, Y_DISK).decision_function(frame)
    assert 1e-6 < abs(found[0] - here).max() < 5e-3
    expected = LeastSquaresClassifier().fit(frame, Y_DISK).decision_function(frame)
    np.testing.assert_allclose(found[0], expected, atol=5e-3)
    apart = scan(source(folder), "side", columns=["a", "b", "yes"])
    perceptron = Perceptron(random_state=0).fit(apart)
    assert perceptron.converged_
    assert perceptron.score(TABLE.select(["a", "b", "yes"]), np.sign(X_DISK[:, 0])) == 1.0
    assert perceptron.passes_.passes >= perceptron.n_iter_
