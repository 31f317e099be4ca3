"""Effects in units of probability: against statsmodels, differences of predictions, and draws."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.stats import norm
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression as TheirLogistic
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from posteriori import (
    GLM,
    BayesianLogisticRegression,
    FisherDiscriminant,
    GaussianClassifier,
    LeastSquaresClassifier,
    LogisticRegression,
    NaiveBayes,
    OneVersusOne,
    OneVersusRest,
    Perceptron,
    ProbitRegression,
    ThresholdRegression,
    scan,
)
from posteriori.errors import (
    ColumnNameError,
    DomainError,
    InferenceError,
    InfiniteValueError,
    LevelError,
    MissingValueError,
    ParameterError,
)
from posteriori.inspection.effects import comparisons, predictions, slopes

EXACT = {"tol": 1e-10}


def _rows(n=200, d=3, classes=2, seed=0):
    """Columns, the last of them zeros and ones; classes that overlap."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d)) * [1.0, 3.0, 1.0][:d] + [0.0, 5.0, 0.0][:d]
    X[:, -1] = X[:, -1] > 0
    a = (X - X.mean(axis=0)) @ random.normal(size=(d, classes)) * 0.5
    y = (a + random.gumbel(size=a.shape)).argmax(axis=1)
    return X, y


def _frame(n=120, seed=3):
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": random.integers(20, 70, n),
            "bmi": random.gamma(9, 3, n),
            "sex": random.choice(["f", "m"], n),
            "smoker": random.random(n) < 0.3,
            "region": pd.Categorical(random.choice(["n", "s", "w"], n), ["w", "n", "s"]),
        },
        index=np.arange(n) + 50,
    )
    a = 0.04 * (frame.age - 45) + 0.08 * (frame.bmi - 27) + 0.8 * frame.smoker
    return frame, np.where(random.random(n) < 1 / (1 + np.exp(-a)), "sick", "well")


def _numbers(table):
    return np.asarray(table["estimate"]), np.asarray(table["std_error"])


def _assert_margins(table, margins):
    estimate, error = _numbers(table)
    assert_allclose(estimate, np.ravel(margins.margeff), rtol=1e-8, atol=1e-12)
    assert_allclose(error, np.ravel(margins.margeff_se), rtol=1e-8, atol=1e-12)


# Against statsmodels.


@pytest.mark.parametrize(("at", "theirs"), [(None, "overall"), ("mean", "mean")])
@pytest.mark.parametrize(
    ("model", "rival"), [(LogisticRegression, sm.Logit), (ProbitRegression, sm.Probit)]
)
def test_slopes_are_the_marginal_effects_of_statsmodels(model, rival, at, theirs):
    X, y = _rows()
    rival = rival(y, sm.add_constant(X)).fit(disp=0, tol=1e-13)
    table = model(**EXACT).fit(X, y).slopes(at=at)
    margins = rival.get_margeff(at=theirs)
    _assert_margins(table, margins)
    assert_allclose(table["statistic"], margins.tvalues, rtol=1e-7)
    assert_allclose(table["p_value"], margins.pvalues, rtol=1e-6)
    assert_allclose(table[["conf_low", "conf_high"]], margins.conf_int(), rtol=1e-6)
    assert list(table["term"]) == ["x0", "x1", "x2"]
    assert set(table["class"]) == {1}


@pytest.mark.parametrize(("at", "theirs"), [(None, "overall"), ("mean", "mean")])
def test_slopes_of_three_classes_are_those_of_statsmodels(at, theirs):
    X, y = _rows(classes=3)
    rival = sm.MNLogit(y, sm.add_constant(X)).fit(disp=0, tol=1e-13, method="newton")
    table = LogisticRegression(**EXACT).fit(X, y).slopes(at=at)
    _assert_margins(table, rival.get_margeff(at=theirs))
    assert list(table["class"]) == [0, 1, 2] * 3


@pytest.mark.parametrize("rival", [sm.Logit, sm.Probit])
def test_the_comparison_of_a_dummy_is_that_of_statsmodels(rival):
    X, y = _rows()
    model = LogisticRegression(**EXACT) if rival is sm.Logit else ProbitRegression(**EXACT)
    fitted = rival(y, sm.add_constant(X)).fit(disp=0, tol=1e-13)
    margins = fitted.get_margeff(dummy=True)
    table = model.fit(X, y).comparisons(columns="x2", change=(0, 1))
    assert_allclose(table["estimate"], margins.margeff[2:], rtol=1e-8)
    assert_allclose(table["std_error"], margins.margeff_se[2:], rtol=1e-8)
    assert list(table["contrast"]) == ["0 to 1"]


def test_slopes_of_counts_are_those_of_statsmodels():
    X, _ = _rows()
    t = np.random.default_rng(1).poisson(np.exp(0.3 * X[:, 0]))
    rival = sm.Poisson(t, sm.add_constant(X)).fit(disp=0, tol=1e-13)
    table = GLM(family="poisson", **EXACT).fit(X, t).slopes()
    _assert_margins(table, rival.get_margeff())
    assert "class" not in table


def test_slopes_of_the_gaussian_are_its_coefficients():
    X, _ = _rows()
    t = X[:, 0] + np.random.default_rng(1).normal(size=len(X))
    model = GLM(**EXACT).fit(X, t)
    columns = ["estimate", "std_error", "statistic", "p_value", "conf_low", "conf_high"]
    assert_allclose(model.slopes()[columns], model.tidy()[columns][1:], rtol=1e-9)


# Against differences, in the rows and in the coefficients.


def _average_slope(link, coefficients, X, j):
    """By central differences of the fourth order."""
    h = 1e-3
    step = h * np.eye(X.shape[1])[j]

    def mean(rows):
        return link(coefficients[0] + rows @ coefficients[1:]).mean()

    return (8 * (mean(X + step) - mean(X - step)) - (mean(X + 2 * step) - mean(X - 2 * step))) / (
        12 * h
    )


def test_errors_through_any_link_are_those_of_numerical_derivatives():
    X, y = _rows()
    model = GLM(family="bernoulli", link="cloglog", **EXACT).fit(X, y)
    w = np.concatenate([model.intercept_, model.coef_[0]])

    def cloglog(a):
        return -np.expm1(-np.exp(a))

    found = [_average_slope(cloglog, w, X, j) for j in range(3)]
    h = 1e-4
    moves = h * np.eye(4)
    J = [
        [
            (_average_slope(cloglog, w + m, X, j) - _average_slope(cloglog, w - m, X, j)) / (2 * h)
            for m in moves
        ]
        for j in range(3)
    ]
    C = np.array(J) @ model.coef_covariance_ @ np.array(J).T
    estimate, error = _numbers(model.slopes())
    assert_allclose(estimate, found, rtol=1e-9)
    assert_allclose(error, np.sqrt(np.diag(C)), rtol=1e-6)


def _by_differences(model, X, j, h):
    step = h * np.eye(X.shape[1])[j]
    p = model.predict_proba
    return (8 * (p(X + step) - p(X - step)) - (p(X + 2 * step) - p(X - 2 * step))) / (12 * h)


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(prior=1.0),
        LogisticRegression(prior="jeffreys"),
        LogisticRegression(fit_intercept=False),
        GaussianClassifier(),
        GaussianClassifier(covariance="full"),
        NaiveBayes(family="gaussian"),
        NaiveBayes(family="gaussian", shared_scale=True),
        FisherDiscriminant(),
        FisherDiscriminant(n_components=1),
        OneVersusRest(),
        OneVersusOne(estimator=LogisticRegression(prior=1.0)),
        TheirLogistic(),
        GaussianNB(),
    ],
    ids=lambda model: " ".join(repr(model).split()),
)
def test_slopes_are_the_derivatives_of_predict_proba(model):
    X, y = _rows(classes=3)
    X = X + 1e-3 * np.random.default_rng(2).normal(size=X.shape)
    model.fit(X, y)
    for j in range(3):
        each = _by_differences(model, X, j, 1e-3)
        table = slopes(model, X, columns=f"x{j}")
        assert_allclose(table["estimate"], each.mean(axis=0), rtol=1e-6, atol=1e-9)
        rows = slopes(model, X[:7], columns=f"x{j}", average=False)
        assert_allclose(rows["estimate"], each[:7].ravel(), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(("shift", "digits"), [(1e3, 1e-7), (1e6, 1e-4)])
def test_small_steps_are_not_lost_far_from_zero(shift, digits):
    X, y = _rows()
    near = GaussianClassifier(covariance="diagonal").fit(X, y)
    far = GaussianClassifier(covariance="diagonal").fit(X + shift, y)
    assert_allclose(
        far.slopes(X + shift)["estimate"], near.slopes(X)["estimate"], rtol=digits, atol=1e-9
    )


def test_units_change_slopes_and_nothing_else():
    X, y = _rows()
    for unit in (1e-150, 1e150):
        scaled = X * [1.0, unit, 1.0]
        model, other = LogisticRegression().fit(X, y), LogisticRegression().fit(scaled, y)
        expected = np.array(_numbers(model.slopes())) / [1.0, unit, 1.0]
        assert_allclose(_numbers(other.slopes()), expected, rtol=1e-6)
        for change in ("sd", "iqr"):
            found = _numbers(other.comparisons(change=change))
            assert_allclose(found, _numbers(model.comparisons(change=change)), rtol=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "model", [LogisticRegression(), GaussianClassifier(), BayesianLogisticRegression()]
)
def test_comparisons_are_differences_of_predict_proba(model, classes):
    X, y = _rows(classes=classes)
    model.fit(X, y)
    more, low, high = X.copy(), X.copy(), X.copy()
    more[:, 1] += X[:, 1].std(ddof=1)
    low[:, 1], high[:, 1] = X[:, 1].min(), X[:, 1].max()
    p, first = model.predict_proba, int(classes == 2)
    sd = model.comparisons(X, columns="x1", change="sd")
    assert_allclose(sd["estimate"], (p(more) - p(X)).mean(axis=0)[first:], atol=1e-12)
    ends = model.comparisons(X, columns="x1", change="minmax", average=False)
    assert_allclose(ends["estimate"], (p(high) - p(low))[:, first:].ravel(), atol=1e-12)


def test_quartiles_are_entries_of_the_rows():
    X, y = _rows(n=100)
    model = LogisticRegression().fit(X, y)
    q1, q3 = np.quantile(X[:, 0], [0.25, 0.75], method="inverted_cdf")
    iqr = model.comparisons(columns="x0", change="iqr")
    pair = model.comparisons(columns="x0", change=(q1, q3))
    assert_allclose(_numbers(iqr), _numbers(pair), rtol=1e-13)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("model", [LogisticRegression(), BayesianLogisticRegression()])
def test_predictions_are_predict_proba_with_predict_interval(model, classes):
    X, y = _rows(classes=classes)
    model.fit(X, y)
    table = model.predictions(X[:9])
    assert_allclose(table["estimate"], model.predict_proba(X[:9])[:, int(classes == 2) :].ravel())
    ends = model.predict_interval(X[:9]).reshape(-1, 2)
    assert_allclose(table[["conf_low", "conf_high"]], ends, rtol=1e-12)
    assert list(table["row"]) == np.repeat(np.arange(9), classes if classes > 2 else 1).tolist()


@pytest.mark.parametrize("classes", [2, 3])
def test_the_average_of_one_row_has_the_interval_of_that_row(classes):
    X, y = _rows(classes=classes)
    model = LogisticRegression().fit(X, y)
    each, average = model.predictions(X[:1]), model.predictions(X[:1], average=True)
    assert_allclose(each.drop(columns="row"), average, rtol=1e-9)


@pytest.mark.parametrize("classes", [2, 3])
def test_averages_row_by_row_are_the_averages(classes):
    X, y = _rows(classes=classes)
    model = LogisticRegression().fit(X, y)
    for ask in (model.slopes, model.comparisons, model.predictions):
        by = [name for name in ("term", "class") if name in ask(average=True)]
        each = ask(average=False).groupby(by)["estimate"].mean()
        assert_allclose(each, ask(average=True)["estimate"], rtol=1e-10)


def test_the_error_of_an_average_is_not_that_of_independent_rows():
    X, y = _rows()
    model = LogisticRegression().fit(X, y)
    J = np.column_stack([np.ones(len(X)), X]) * np.prod(model.predict_proba(X), axis=1)[:, None]
    average = J.mean(axis=0)
    table = model.predictions(average=True)
    expected = np.sqrt(average @ model.coef_covariance_ @ average)
    assert_allclose(table["std_error"], [expected], rtol=1e-9)
    each = np.sqrt(np.einsum("ij,jk,ik->i", J, model.coef_covariance_, J))
    assert_allclose(model.predictions()["std_error"], each, rtol=1e-9)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_delta_method_agrees_with_draws_of_the_coefficients(classes):
    X, y = _rows(n=400, classes=classes)
    delta = LogisticRegression(prior=1.0).fit(X, y)
    drawn = BayesianLogisticRegression(prior=1.0).fit(X, y)
    for ask in ("slopes", "comparisons"):
        by_delta, by_draws = getattr(delta, ask)(), getattr(drawn, ask)()
        # A thousand draws know a deviation to 2 %; the curvature that one ignores is as small.
        assert_allclose(by_draws["std_error"], by_delta["std_error"], rtol=0.12)
        away = abs(by_draws["estimate"] - by_delta["estimate"]) / by_delta["std_error"]
        assert away.max() < 0.3
        assert (by_draws["conf_low"] < by_draws["estimate"]).all()


def test_slopes_of_draws_are_derivatives_of_the_predictive_probability():
    X, y = _rows()
    model = BayesianLogisticRegression().fit(X, y)
    table = model.slopes(X)
    for j in range(3):
        exact = _by_differences(model, X, j, 1e-3).mean(axis=0)[1]
        assert abs(table["estimate"][j] - exact) < 0.15 * table["std_error"][j]


# Weights, offsets, storage and frames.


def test_a_weight_of_two_is_the_row_twice():
    X, y = _rows(n=80)
    weight = np.random.default_rng(5).integers(0, 3, len(X))
    weighted = LogisticRegression(**EXACT).fit(X, y, sample_weight=weight)
    twice = LogisticRegression(**EXACT).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    for ask, given in [
        ("slopes", {}),
        ("slopes", {"at": "mean"}),
        ("comparisons", {"change": "sd"}),
        ("comparisons", {"change": "iqr"}),
        ("predictions", {"average": True}),
    ]:
        a, b = (getattr(model, ask)(**given) for model in (weighted, twice))
        assert_allclose(_numbers(a), _numbers(b), rtol=1e-8)


def test_rows_of_weight_zero_have_predictions_of_their_own():
    X, y = _rows(n=80)
    weight = (np.arange(80) % 3 > 0).astype(float)
    model = LogisticRegression().fit(X, y, sample_weight=weight)
    assert_allclose(model.predictions()["estimate"], model.predict_proba(X)[:, 1], rtol=1e-12)


def test_offsets_of_the_fit_are_part_of_its_rows():
    X, y = _rows()
    offset = np.linspace(-1, 1, len(X))
    model = LogisticRegression().fit(X, y, offset=offset)
    p = model.predict_proba(X, offset=offset)[:, 1]
    assert_allclose(model.predictions()["estimate"], p, rtol=1e-12)
    assert_allclose(model.slopes()["estimate"], (p * (1 - p)).mean() * model.coef_[0], rtol=1e-10)
    middle = model.predict_proba(X.mean(axis=0, keepdims=True))[0, 1]
    assert_allclose(model.predictions(at="mean")["estimate"], [middle], rtol=1e-9)


def test_sparse_rows_have_the_effects_of_dense_ones():
    X, y = _rows(classes=3)
    X = X * (np.random.default_rng(0).random(X.shape) < 0.4)
    model = LogisticRegression().fit(X, y)
    for ask, given in [
        (slopes, {}),
        (slopes, {"at": "mean"}),
        (comparisons, {"change": "sd"}),
        (predictions, {"at": {"x0": 2.0}}),
    ]:
        found, dense = ask(model, sparse.csr_array(X), **given), ask(model, X, **given)
        assert_allclose(_numbers(found), _numbers(dense), rtol=1e-8, atol=1e-12)
    box = GaussianClassifier().fit(X, y)
    found = box.comparisons(sparse.csr_matrix(X), columns="x1")
    assert_allclose(found["estimate"], box.comparisons(X, columns="x1")["estimate"], atol=1e-12)


@pytest.mark.parametrize(
    "model", [LogisticRegression(), NaiveBayes(), BayesianLogisticRegression()], ids=repr
)
@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_levels_and_booleans_are_compared_with_the_first(model, kind):
    X, y = _frame()
    X = X if kind == "pandas" else pl.from_pandas(X.astype({"region": str}))
    model.fit(X, y)
    table = model.comparisons(X)
    assert type(table) is type(X)
    seen = list(zip(table["term"], table["contrast"], strict=True))
    first = "w" if kind == "pandas" else "n"
    assert seen[:4] == [
        ("age", "+1"),
        ("bmi", "+1"),
        ("sex", "f to m"),
        ("smoker", "False to True"),
    ]
    assert [contrast.split(" to ")[0] for _, contrast in seen[4:]] == [first, first]
    p = X.to_pandas() if kind == "polars" else X
    for (term, contrast), estimate in zip(seen[2:], list(table["estimate"])[2:], strict=True):
        low, high = [
            model.predict_proba(_set(X, p, term, end))[:, 1] for end in contrast.split(" to ")
        ]
        assert_allclose(estimate, (high - low).mean(), atol=1e-12)


def _set(X, frame, term, end):
    value = {"True": True, "False": False}.get(end, end)
    changed = frame.assign(**{term: value})
    return pl.from_pandas(changed) if isinstance(X, pl.DataFrame) else changed


def test_the_typical_row_has_means_and_most_frequent_levels():
    X, y = _frame()
    model = LogisticRegression().fit(X, y)
    typical = X[:1].assign(
        age=X.age.mean(),
        bmi=X.bmi.mean(),
        sex=X.sex.mode()[0],
        smoker=X.smoker.mode()[0],
        region=X.region.mode()[0],
    )
    expected = model.predict_proba(typical)[0, 1]
    assert_allclose(model.predictions(at="mean")["estimate"], [expected], rtol=1e-12)
    nb = NaiveBayes().fit(X, y)
    found = nb.predictions(X, at="mean")["estimate"]
    assert_allclose(found, [nb.predict_proba(typical)[0, 1]], rtol=1e-12)


def test_chosen_values_are_set_in_all_rows_and_averaged():
    X, y = _frame()
    model = LogisticRegression().fit(X, y)
    table = model.predictions(at={"sex": ["f", "m"], "age": [30, 60]})
    assert list(table["at_sex"]) == ["f", "f", "m", "m"]
    assert list(table["at_age"]) == [30, 60, 30, 60]
    expected = [
        model.predict_proba(X.assign(sex=sex, age=age))[:, 1].mean()
        for sex in "fm"
        for age in (30, 60)
    ]
    assert_allclose(table["estimate"], expected, rtol=1e-12)
    p = model.predict_proba(X.assign(smoker=True))
    slope = (p[:, 0] * p[:, 1]).mean() * model.coef_[0, 0]
    assert_allclose(model.slopes(columns="age", at={"smoker": True})["estimate"], [slope])


# Formulas.


def test_after_a_formula_effects_are_those_of_the_columns_of_the_data():
    X, y = _frame()
    data = X.assign(y=y)
    model = LogisticRegression(**EXACT).fit("y ~ age + I(age**2) + log(bmi) + sex:smoker", data)
    p = np.prod(model.predict_proba(data), axis=1)
    w = dict(zip(model.schema_.names, model.coef_[0], strict=True))
    expected = [
        (p * (w["age"] + 2 * w["I(age ** 2)"] * data.age)).mean(),
        (p * w["log(bmi)"] / data.bmi).mean(),
    ]
    table = model.slopes(data)
    assert list(table["term"]) == ["age", "bmi"]
    assert_allclose(table["estimate"], expected, rtol=1e-9)
    moved = [model.predict_proba(data.assign(smoker=s))[:, 1].mean() for s in (False, True)]
    found = model.comparisons(data, columns="smoker")
    assert_allclose(found["estimate"], [moved[1] - moved[0]], rtol=1e-10)
    each = model.slopes(data, columns="bmi", average=False)
    assert_allclose(each["estimate"], p * w["log(bmi)"] / data.bmi, rtol=1e-8)
    with pytest.raises(ParameterError, match="Pass X"):
        model.slopes()


def test_a_formula_of_plain_columns_changes_nothing():
    X, y = _frame()
    data = X.assign(y=y)
    plain = LogisticRegression(**EXACT).fit(X[["age", "bmi"]], y)
    by_formula = LogisticRegression(**EXACT).fit("y ~ age + bmi", data)
    for ask, given in [
        (slopes, {}),
        (slopes, {"at": "mean"}),
        (slopes, {"average": False}),
        (comparisons, {"change": "sd"}),
        (predictions, {}),
        (predictions, {"at": {"age": [20, 50]}}),
    ]:
        a, b = ask(plain, X[["age", "bmi"]], **given), ask(by_formula, data, **given)
        assert_allclose(_numbers(a), _numbers(b), rtol=1e-8)


def test_a_formula_of_a_model_without_errors_has_estimates():
    X, y = _frame()
    data = X.assign(y=y)
    model = GaussianClassifier().fit("y ~ age + log(bmi)", data)
    p = np.prod(model.predict_proba(data), axis=1)
    found = model.slopes(data)
    assert_allclose(found["estimate"][0], p.mean() * model.coef_[0, 0], rtol=1e-9)
    assert list(found) == ["term", "class", "estimate"]


# What cannot be, and what is known badly.


def test_separated_classes_have_infinite_errors():
    random = np.random.default_rng(1)
    X = random.normal(size=(60, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LogisticRegression().fit(X, X[:, 0] > 0)
    for table in (model.slopes(), model.comparisons(columns="x1", change=0.5)):
        assert np.isinf(table["std_error"]).all()
        assert (table["statistic"] == 0).all()
        assert (table["p_value"] == 1).all()
    for table in (model.predictions(average=True), model.predictions()):
        assert np.isinf(table["std_error"]).all()
        assert (table["conf_low"] == 0).all()
        assert (table["conf_high"] == 1).all()


def test_a_column_that_runs_away_leaves_the_others_their_errors():
    random = np.random.default_rng(1)
    x, group = random.normal(size=90), np.arange(90) % 3 == 0
    y = np.where(group, True, random.random(90) < 1 / (1 + np.exp(-x)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LogisticRegression(**EXACT).fit(np.column_stack([x, group]), y)
    rest = LogisticRegression(**EXACT).fit(x[~group, None], y[~group])
    table, alone = model.slopes(), rest.slopes()
    assert np.isinf(table["std_error"][1])
    assert_allclose(table["std_error"][0], alone["std_error"][0] * 2 / 3, rtol=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_very_many_coefficients_have_estimates_alone():
    X = sparse.random(300, 5200, density=0.01, format="csr", random_state=0)
    y = np.random.default_rng(0).integers(0, 2, 300)
    model = LogisticRegression(prior=1.0).fit(X, y)
    table = model.slopes(columns=["x3", "x4"])
    p = np.prod(model.predict_proba(X), axis=1)
    assert_allclose(table["estimate"], p.mean() * model.coef_[0, 3:5], rtol=1e-9)
    assert list(table) == ["term", "class", "estimate"]
    assert list(model.predictions()) == ["row", "class", "estimate"]


def test_a_column_that_never_changes_has_no_effect():
    X, y = _rows()
    X[:, 1] = 7.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LogisticRegression().fit(X, y)
    table = model.comparisons(columns="x1", change=(7.0, 9.0))
    assert table[["estimate", "std_error", "statistic"]].to_numpy().tolist() == [[0.0, 0.0, 0.0]]
    assert list(table["p_value"]) == [1.0]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("sd", "its standard deviation says nothing"),
        ("iqr", "the way between its quartiles says nothing"),
        ("minmax", "its range says nothing"),
    ],
)
def test_rows_that_do_not_vary_say_nothing_of_a_change(change, said):
    X, y = _frame()
    for model in (LogisticRegression().fit(X, y), NaiveBayes().fit(X, y)):
        with pytest.raises(ParameterError, match=f"Column 'age' does not vary .* {said}") as error:
            model.comparisons(X[:1], columns="age", change=change)
        assert error.value.remedy == "Pass change=(low, high), or more rows."
        assert model.comparisons(X[:1], columns="age", change=(30, 60))["estimate"][0] != 0.0


def test_quartiles_that_are_equal_say_nothing():
    X, y = _rows()
    X[:, 0] = np.where(np.arange(len(X)) < len(X) // 10, X[:, 0], 0.0)
    model = LogisticRegression(prior=1.0).fit(X, y)
    with pytest.raises(ParameterError, match="Column 0 has equal quartiles"):
        model.comparisons(columns=0, change="iqr")
    assert model.comparisons(columns=0, change="minmax")["estimate"][0] != 0.0


def test_models_that_have_no_rows_ask_for_them(tmp_path):
    X, y = _rows()
    path = tmp_path / "rows.parquet"
    pd.DataFrame(X, columns=list("abc")).assign(y=y).to_parquet(path)
    fitted = LogisticRegression().fit(X, y)
    updated = BayesianLogisticRegression().fit(X[:100], y[:100]).update(X[100:], y[100:])
    for model in (
        GaussianClassifier().fit(X, y),
        OneVersusRest().fit(X, y),
        pickle.loads(pickle.dumps(fitted)),
        LogisticRegression().fit(scan(path, target="y")),
        updated,
    ):
        with pytest.raises(ParameterError, match="not kept in memory the rows"):
            model.slopes()
    again = pickle.loads(pickle.dumps(fitted))
    assert_allclose(_numbers(again.slopes(X)), _numbers(fitted.slopes()), rtol=1e-12)


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        LogisticRegression(prior="jeffreys"),
        LogisticRegression(prior="evidence"),
        LogisticRegression(label_noise=0.05),
        LogisticRegression(solver="gradient"),
        BayesianLogisticRegression(),
        BayesianLogisticRegression(inference="variational"),
        BayesianLogisticRegression(inference="monte_carlo", n_draws=400, random_state=0),
        ProbitRegression(),
        GLM(family="bernoulli", link="cloglog"),
        GLM(family="categorical"),
        GLM(),
        GLM(family="poisson", prior=1.0),
    ],
    ids=lambda model: " ".join(repr(model).split()),
)
def test_slopes_are_averaged_over_the_rows_of_the_fit_also_if_x_is_edited(model):
    X, y = _rows()
    model.fit(X, y)
    before = _numbers(model.slopes(X))
    X[:, 0] *= 1.5
    assert_allclose(_numbers(model.slopes()), before, rtol=1e-12)


def test_rows_of_a_large_fit_that_have_changed_are_an_error():
    random = np.random.default_rng(0)
    X = random.normal(size=(300_000, 4))
    model = LogisticRegression().fit(X, X[:, 0] + random.logistic(size=len(X)) > 0)
    X[:, 0] *= 1.5
    with pytest.raises(InferenceError, match="changed since"):
        model.slopes()


@pytest.mark.parametrize("model", [Perceptron(), LeastSquaresClassifier()], ids=repr)
@pytest.mark.filterwarnings("ignore")
def test_models_without_probabilities_have_no_effects(model):
    X, y = _rows()
    model.fit(X, y)
    for ask in (model.slopes, model.comparisons, model.predictions):
        with pytest.raises(ParameterError, match="no probabilities"):
            ask(X)


@pytest.mark.parametrize(
    ("ask", "given", "error", "words"),
    [
        ("slopes", {"columns": "height"}, ColumnNameError, "'age', 'bmi', 'sex'"),
        ("slopes", {"columns": "sex"}, ParameterError, "no slope in column 'sex'"),
        ("slopes", {"columns": ["age", "smoker"]}, ParameterError, "boolean"),
        ("comparisons", {"columns": 3}, ColumnNameError, "3 is no column"),
        ("comparisons", {"change": "much"}, ParameterError, "'minmax'"),
        ("comparisons", {"change": np.nan}, ParameterError, "change"),
        ("comparisons", {"change": (1, np.inf)}, ParameterError, "change"),
        ("comparisons", {"level": 1.0}, ParameterError, "level"),
        ("predictions", {"level": 95}, ParameterError, "level"),
        ("predictions", {"average": 1}, ParameterError, "average"),
        ("predictions", {"at": "median"}, ParameterError, "'mean'"),
        ("predictions", {"at": {}}, ParameterError, "dict"),
        ("predictions", {"at": {"age": []}}, ParameterError, "without a value"),
        ("predictions", {"at": {"height": 1}}, ColumnNameError, "height"),
        ("predictions", {"at": {"age": "old"}}, ParameterError, "finite number"),
        ("predictions", {"at": {"smoker": 1}}, ParameterError, "True or False"),
        ("predictions", {"at": {"sex": "x"}}, LevelError, "'f', 'm'"),
    ],
)
def test_what_cannot_be_asked_is_named(ask, given, error, words):
    X, y = _frame()
    for model in (LogisticRegression().fit(X, y), NaiveBayes().fit(X, y)):
        with pytest.raises(error, match=words):
            getattr(model, ask)(X, **given)


def test_rows_that_cannot_be_used_are_named():
    X, y = _rows()
    model = LogisticRegression().fit(X, y)
    bad = X.copy()
    bad[4, 1] = np.nan
    with pytest.raises(MissingValueError, match="row 4"):
        model.comparisons(bad, change="sd")
    bad[4, 1] = np.inf
    with pytest.raises(InfiniteValueError, match="row 4"):
        model.slopes(bad)
    with pytest.raises(ParameterError, match="batch by batch"):
        model.slopes(scan(pd.DataFrame(X, columns=list("abc"))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        identity = GLM(family="bernoulli", link="identity").fit(X, y)
    with pytest.raises(DomainError, match="activation"):
        identity.comparisons(change=1e3)


def test_any_classifier_with_probabilities_will_do():
    X, y = _frame()
    forest = RandomForestClassifier(5, random_state=0).fit(X[["age", "bmi"]], y)
    moved = X[["age", "bmi"]].assign(age=lambda frame: frame.age + 10.0)
    p = forest.predict_proba
    expected = (p(moved) - p(X[["age", "bmi"]])).mean(axis=0)[1]
    table = comparisons(forest, X[["age", "bmi"]], columns="age", change=10)
    assert_allclose(table["estimate"], [expected], rtol=1e-12)


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(max_depth=3, random_state=0),
        RandomForestClassifier(20, random_state=0),
        GradientBoostingClassifier(n_estimators=20, random_state=0),
        KNeighborsClassifier(15),
    ],
    ids=lambda model: type(model).__name__,
)
def test_probabilities_that_change_in_steps_have_no_slopes(model):
    X, y = _stepped()
    model.fit(X, y)
    for given in ({}, {"average": False}, {"at": "mean"}, {"at": {"x1": [0.0]}}):
        with pytest.raises(ParameterError, match=f"{type(model).__name__} change in steps") as e:
            slopes(model, X, columns="x0", **given)
        assert e.value.remedy == "Use comparisons, with a change of your own."
    assert comparisons(model, X, columns="x0", change=1.0)["estimate"][0] > 0.05


def test_a_column_that_a_tree_leaves_out_has_the_slope_zero():
    X, y = _stepped()
    stump = DecisionTreeClassifier(max_depth=1).fit(X, y)
    assert list(slopes(stump, X, columns=["x1", "x2"])["estimate"]) == [0.0, 0.0]


@pytest.mark.parametrize("shift", [0.0, 1e6])
@pytest.mark.parametrize(
    "model",
    [
        GaussianNB(),
        make_pipeline(StandardScaler(), CalibratedClassifierCV(SVC(), ensemble=False)),
        MLPClassifier((8,), activation="tanh", max_iter=60, random_state=0),
        make_pipeline(StandardScaler(), TheirLogistic()),
        make_pipeline(StandardScaler(), TheirLogistic(C=1e4)),
    ],
    ids=lambda model: " ".join(repr(model).split()),
)
def test_smooth_models_that_are_known_by_probabilities_have_slopes(model, shift):
    X, y = _stepped()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X + shift, y)
    typical = (X + shift).mean(axis=0, keepdims=True)
    for given, rows in (({}, X + shift), ({"at": "mean"}, typical)):
        found = slopes(model, X + shift, columns="x0", **given)["estimate"]
        expected = _by_differences(model, rows, 0, 1e-3).mean(axis=0)[-1]
        assert_allclose(found, [expected], rtol=1e-5 if shift == 0 else 1e-3, atol=1e-7)


def _stepped():
    random = np.random.default_rng(8)
    X = random.normal(size=(200, 3))
    return X, (2 * X[:, 0] - X[:, 1] + random.logistic(size=200) > 0).astype(int)


def test_errors_through_a_noise_are_those_of_its_density():
    X, y = _rows()
    model = ThresholdRegression(noise="norm", **EXACT).fit(X, y)
    rows = np.column_stack([np.ones(len(X)), X])
    J = rows * norm.pdf(rows @ np.concatenate([model.intercept_, model.coef_[0]]))[:, None]
    each = np.sqrt(np.einsum("ij,jk,ik->i", J, model.coef_covariance_, J))
    assert_allclose(model.predictions()["std_error"], each, rtol=1e-8)
