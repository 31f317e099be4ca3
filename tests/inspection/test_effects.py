"""Effects in units of probability: against statsmodels, differences of predictions, and draws."""

import pickle
import warnings
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.stats import norm
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from posteriori import (
    GLM,
    BayesianLogisticRegression,
    GaussianClassifier,
    LogisticRegression,
    NaiveBayes,
    OneVersusOne,
    ProbitRegression,
    ThresholdRegression,
    scan,
)
from posteriori.errors import (
    ColumnNameError,
    DomainError,
    InferenceError,
    LevelError,
    MissingValueError,
    ParameterError,
)
from posteriori.inspection.effects import comparisons, predict_interval, predictions, slopes

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


@pytest.mark.parametrize(("at", "theirs"), [(None, "overall"), ("mean", "mean")])
@pytest.mark.parametrize(
    ("model", "rival", "classes"),
    [
        (LogisticRegression, sm.Logit, 2),
        (ProbitRegression, sm.Probit, 2),
        (LogisticRegression, sm.MNLogit, 3),
        (partial(GLM, family="poisson"), sm.Poisson, 3),
    ],
)
def test_slopes_are_the_marginal_effects_of_statsmodels(model, rival, classes, at, theirs):
    X, y = _rows(classes=classes)
    table = model(**EXACT).fit(X, y).slopes(at=at)
    margins = (
        rival(y, sm.add_constant(X)).fit(disp=0, tol=1e-13, method="newton").get_margeff(at=theirs)
    )
    estimate, error = _numbers(table)
    assert_allclose(estimate, np.ravel(margins.margeff), rtol=1e-8, atol=1e-12)
    assert_allclose(error, np.ravel(margins.margeff_se), rtol=1e-8, atol=1e-12)
    assert_allclose(table["statistic"], np.ravel(margins.tvalues), rtol=1e-7)
    assert_allclose(table["p_value"], np.ravel(margins.pvalues), rtol=1e-6)
    K = 3 if rival is sm.MNLogit else 1
    assert list(table["term"]) == np.repeat(["x0", "x1", "x2"], K).tolist()
    if rival is not sm.Poisson:
        assert list(table["class"]) == ([0, 1, 2] if K == 3 else [1]) * 3


@pytest.mark.parametrize(
    ("model", "mean"),
    [
        (GLM(family="bernoulli", link="cloglog", **EXACT), lambda a: -np.expm1(-np.exp(a))),
        (ThresholdRegression(noise="norm", **EXACT), norm.cdf),
        (GLM(family="poisson", **EXACT), np.exp),
    ],
    ids=["cloglog", "noise", "log"],
)
def test_errors_are_those_of_numerical_derivatives_in_the_coefficients(model, mean):
    X, y = _rows()
    model.fit(X, y)
    w, C = np.r_[model.intercept_, np.ravel(model.coef_)], model.coef_covariance_
    move = [0.0, 0.5, 0.0]

    def averages(w):
        def average(rows):
            return mean(w[0] + rows @ w[1:]).mean()

        h = 1e-3 * np.array([0.0, 1.0, 0.0])
        slope = 8 * (average(X + h) - average(X - h)) - average(X + 2 * h) + average(X - 2 * h)
        return np.array([average(X), average(X + move) - average(X), slope / 12e-3])

    J = np.array([(averages(w + m) - averages(w - m)) / 2e-4 for m in 1e-4 * np.eye(4)]).T
    tables = [
        model.predictions(average=True),
        model.comparisons(columns="x1", change=0.5),
        model.slopes(columns="x1"),
    ]
    found = np.array([_numbers(table) for table in tables])[..., 0]
    assert_allclose(found[:, 0], averages(w), rtol=1e-8)
    assert_allclose(found[:, 1], np.sqrt(np.diag(J @ C @ J.T)), rtol=1e-6)


def _by_differences(model, X, j, h=1e-3):
    step = h * np.eye(X.shape[1])[j]
    p = model.predict_proba
    return (8 * (p(X + step) - p(X - step)) - (p(X + 2 * step) - p(X - 2 * step))) / (12 * h)


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(prior=1.0),
        GaussianClassifier(covariance="full"),
        OneVersusOne(estimator=LogisticRegression(prior=1.0)),
        MLPClassifier((8,), activation="tanh", max_iter=2000, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_slopes_are_the_derivatives_of_predict_proba(model):
    X, y = _rows(classes=3)
    X = X + 1e-3 * np.random.default_rng(2).normal(size=X.shape)
    model.fit(X, y)
    table, rows = slopes(model, X), slopes(model, X[:7], columns="x1", average=False)
    each = [_by_differences(model, X, j) for j in range(3)]
    assert_allclose(table["estimate"], np.ravel(np.mean(each, axis=1)), rtol=1e-6, atol=1e-9)
    assert_allclose(rows["estimate"], each[1][:7].ravel(), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("model", [LogisticRegression(), BayesianLogisticRegression()])
def test_estimates_are_those_of_predict_proba(model, classes):
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
    table = model.predictions(X[:9])
    assert_allclose(table["estimate"], p(X[:9])[:, first:].ravel())
    ends = model.predict_interval(X[:9]).reshape(-1, 2)
    assert_allclose(table[["conf_low", "conf_high"]], ends, rtol=1e-12)
    assert list(table["row"]) == np.repeat(np.arange(9), classes - first).tolist()


def test_errors_of_rows_are_those_of_their_gradients():
    X, y = _rows()
    model = LogisticRegression().fit(X, y)
    J = np.column_stack([np.ones(len(X)), X]) * np.prod(model.predict_proba(X), axis=1)[:, None]
    each = np.sqrt(np.einsum("ij,jk,ik->i", J, model.coef_covariance_, J))
    assert_allclose(model.predictions()["std_error"], each, rtol=1e-9)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_delta_method_agrees_with_draws_of_the_coefficients(classes):
    X, y = _rows(n=400, classes=classes)
    delta = LogisticRegression(prior=1.0).fit(X, y)
    drawn = BayesianLogisticRegression(prior=1.0).fit(X, y)
    for ask in (slopes, comparisons):
        by_delta, by_draws = ask(delta), ask(drawn)
        # A thousand draws know a deviation to 2 %; the curvature that one ignores is as small.
        assert_allclose(by_draws["std_error"], by_delta["std_error"], rtol=0.12)
        away = abs(by_draws["estimate"] - by_delta["estimate"]) / by_delta["std_error"]
        assert away.max() < 0.3
        assert not {"statistic", "p_value"} & set(by_draws)


def test_a_weight_of_two_is_the_row_twice_and_sparse_rows_are_dense_ones():
    X, y = _rows(n=80)
    weight = np.random.default_rng(5).integers(0, 3, len(X))
    again = np.repeat(np.arange(80), weight)
    weighted = LogisticRegression(**EXACT).fit(X, y, sample_weight=weight)
    twice = LogisticRegression(**EXACT).fit(X[again], y[again])
    model = LogisticRegression().fit(X, y)
    for ask, given in ((slopes, {"at": "mean"}), (comparisons, {"change": "sd"})):
        assert_allclose(_numbers(ask(weighted, **given)), _numbers(ask(twice, **given)), rtol=1e-8)
        found = ask(model, sparse.csr_array(X), **given)
        assert_allclose(_numbers(found), _numbers(ask(model, X, **given)), rtol=1e-8, atol=1e-12)
    quartiles = [ask.comparisons(change="iqr")["estimate"] for ask in (weighted, twice)]
    assert_allclose(*quartiles, rtol=1e-8)


@pytest.mark.parametrize("model", [LogisticRegression(), NaiveBayes()], ids=repr)
def test_levels_and_booleans_are_compared_with_the_first(model):
    frame, y = _frame()
    polars = isinstance(model, NaiveBayes)

    def rows(frame):
        return pl.from_pandas(frame.astype({"region": str})) if polars else frame

    table = model.fit(rows(frame), y).comparisons(rows(frame))
    assert type(table) is type(rows(frame))
    seen = list(zip(table["term"], table["contrast"], strict=True))
    assert seen[:2] == [("age", "+1"), ("bmi", "+1")]
    first, *others = "nsw" if polars else "wns"
    pairs = [("sex", "f", "m"), ("smoker", False, True), *(("region", first, o) for o in others)]
    assert seen[2:] == [(term, f"{low} to {high}") for term, low, high in pairs]
    for (term, *ends), estimate in zip(pairs, list(table["estimate"])[2:], strict=True):
        low, high = (model.predict_proba(rows(frame.assign(**{term: end})))[:, 1] for end in ends)
        assert_allclose(estimate, (high - low).mean(), atol=1e-12)


def test_chosen_values_are_set_in_all_rows_and_averaged():
    X, y = _frame()
    model = LogisticRegression().fit(X, y)

    def mean(**values):
        return model.predict_proba(X.assign(**values))[:, 1].mean()

    typical = {"sex": X.sex.mode()[0], "region": X.region.mode()[0], "smoker": False}
    expected = model.predict_proba(X[:1].assign(age=X.age.mean(), bmi=X.bmi.mean(), **typical))
    assert_allclose(model.predictions(at="mean")["estimate"], expected[:, 1], rtol=1e-12)
    table = model.predictions(at={"sex": ["f", "m"], "age": [30, 60]})
    assert list(table["at_sex"]) == ["f", "f", "m", "m"]
    assert list(table["at_age"]) == [30, 60, 30, 60]
    expected = [mean(sex=sex, age=age) for sex in "fm" for age in (30, 60)]
    assert_allclose(table["estimate"], expected, rtol=1e-12)
    table = model.comparisons(columns="age", change=10, at={"smoker": True})
    expected = mean(smoker=True, age=X.age + 10) - mean(smoker=True)
    assert_allclose(table["estimate"], [expected], rtol=1e-10)


def test_after_a_formula_effects_are_those_of_the_columns_of_the_data():
    X, y = _frame()
    data = X.assign(y=y)
    model = LogisticRegression(**EXACT).fit("y ~ age + I(age**2) + log(bmi) + sex:smoker", data)
    p = np.prod(model.predict_proba(data), axis=1)
    w = dict(zip(model.schema_.names, model.coef_[0], strict=True))
    by_age, by_bmi = w["age"] + 2 * w["I(age ** 2)"] * data.age, w["log(bmi)"] / data.bmi
    table = model.slopes(data)
    assert list(table["term"]) == ["age", "bmi"]
    assert_allclose(table["estimate"], [(p * by_age).mean(), (p * by_bmi).mean()], rtol=1e-8)
    moved = [model.predict_proba(data.assign(smoker=s))[:, 1].mean() for s in (False, True)]
    found = model.comparisons(data, columns="smoker")
    assert_allclose(found["estimate"], [moved[1] - moved[0]], rtol=1e-10)
    each = model.slopes(data, columns="bmi", average=False)
    assert_allclose(each["estimate"], p * by_bmi, rtol=1e-8)
    data["age"] += 1
    assert_allclose(_numbers(model.slopes()), _numbers(table), rtol=1e-12)  # its own rows
    with pytest.raises(ParameterError, match="Pass X"):
        pickle.loads(pickle.dumps(model)).slopes()


def test_effects_of_a_pipeline_are_those_of_the_columns_before_it():
    X, y = _frame()
    X = X[["age", "bmi"]]
    pipe = make_pipeline(StandardScaler(), LogisticRegression(**EXACT)).fit(X, y)
    plain = LogisticRegression(**EXACT).fit(X, y)
    for ask, given in [
        (slopes, {"at": "mean"}),
        (comparisons, {"change": "sd"}),
        (predictions, {"at": {"age": [20, 50]}}),
    ]:
        expected = _numbers(ask(plain, X, **given))
        assert_allclose(_numbers(ask(pipe, X, **given)), expected, rtol=1e-7)
    assert_allclose(predict_interval(pipe, X, 0.9), plain.predict_interval(X, 0.9), rtol=1e-7)


def test_weights_and_offsets_of_rows_count():
    X, y = _rows()
    offset, weight = np.linspace(-1, 1, len(X)), np.arange(len(X)) % 3.0
    given = {"sample_weight": weight, "offset": offset}
    fitted = LogisticRegression().fit(X, y, **given)
    p = fitted.predict_proba(X, offset=offset)[:, 1]
    slope = np.average(p * (1 - p), weights=weight) * fitted.coef_[0]
    for rows in ((), (X,)):
        own = given if rows else {}
        assert_allclose(fitted.predictions(*rows, **own)["estimate"], p, rtol=1e-12)
        assert_allclose(fitted.slopes(*rows, **own)["estimate"], slope, rtol=1e-10)
    mean, middle = (np.average(v, axis=0, weights=weight) for v in (X, offset))
    middle = fitted.predict_proba(mean[None], offset=[middle])[0, 1]
    assert_allclose(fitted.predictions(at="mean")["estimate"], [middle], rtol=1e-9)
    with pytest.raises(ParameterError, match="has no offsets"):
        slopes(GaussianNB().fit(X, y), X, offset=offset)


@pytest.mark.filterwarnings("ignore")
def test_separated_classes_have_infinite_errors():
    random = np.random.default_rng(1)
    X = random.normal(size=(60, 2))
    for model in (LogisticRegression(), ProbitRegression()):
        model.fit(X, X[:, 0] > 0)
        for table in (model.slopes(), model.comparisons(columns="x1", change=0.5)):
            assert np.isinf(table["std_error"]).all()
            assert (table["p_value"] == 1).all()
        for table in (model.predictions(average=True), model.predictions()):
            assert np.isinf(table["std_error"]).all()
            assert (table["conf_low"] == 0).all()
            assert (table["conf_high"] == 1).all()
    # A single column that diverges leaves the others their errors.
    x, group = random.normal(size=90), np.arange(90) % 3 == 0
    y = np.where(group, True, random.random(90) < 1 / (1 + np.exp(-x)))
    table = LogisticRegression(**EXACT).fit(np.column_stack([x, group]), y).slopes()
    alone = LogisticRegression(**EXACT).fit(x[~group, None], y[~group]).slopes()
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


def test_models_that_have_no_rows_ask_for_them():
    X, y = _rows()
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=y)
    fitted = LogisticRegression().fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    for model in (
        GaussianClassifier().fit(X, y),
        LogisticRegression().fit(scan(frame, target="y")),
        BayesianLogisticRegression().fit(X[:100], y[:100]).update(X[100:], y[100:]),
        again,
    ):
        with pytest.raises(ParameterError, match="not kept in memory the rows"):
            model.slopes()
    assert_allclose(_numbers(again.slopes(X)), _numbers(fitted.slopes()), rtol=1e-12)
    large = np.random.default_rng(0).normal(size=(600_000, 2))
    edited = LogisticRegression(tol=1e-3).fit(large, large[:, 0] + large[::-1, 1] > 0)
    large[::2] += 1
    with pytest.raises(InferenceError, match="changed"):
        edited.slopes()


@pytest.mark.parametrize(
    ("ask", "given", "error", "words"),
    [
        (slopes, {"columns": "height"}, ColumnNameError, "'age', 'bmi', 'sex'"),
        (slopes, {"columns": ["age", "smoker"]}, ParameterError, "no slope .* boolean"),
        (comparisons, {"columns": 9}, ColumnNameError, "no column 9"),
        (comparisons, {"change": "much"}, ParameterError, "'minmax'"),
        (comparisons, {"change": (1, np.inf)}, ParameterError, "change"),
        (comparisons, {"change": (2, 2)}, ParameterError, "is no change of column 'age'"),
        (predictions, {"level": 95}, ParameterError, "level"),
        (predictions, {"at": "median"}, ParameterError, "'mean'"),
        (predictions, {"at": {"age": "old"}}, ParameterError, "finite number"),
        (predictions, {"at": {"smoker": "no"}}, LevelError, "False, True"),
        (predictions, {"offset": [1.0], "X": None}, ParameterError, "without X"),
    ],
)
def test_what_cannot_be_asked_is_named(ask, given, error, words):
    X, y = _frame()
    with pytest.raises(error, match=words):
        ask(LogisticRegression().fit(X, y), **{"X": X, **given})


def test_rows_that_cannot_be_used_are_named():
    X, y = _rows()
    model = LogisticRegression().fit(X, y)
    bad = X.copy()
    bad[4, 1] = np.nan
    with pytest.raises(MissingValueError, match="row 4"):
        model.comparisons(bad, change="sd")
    with pytest.raises(ParameterError, match="data in memory"):
        model.slopes(scan(pd.DataFrame(X, columns=list("abc"))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        identity = GLM(family="bernoulli", link="identity").fit(X, y)
    with pytest.raises(DomainError, match="activation"):
        identity.comparisons(change=1e3)


@pytest.mark.parametrize(
    "model", [GradientBoostingClassifier(n_estimators=20), KNeighborsClassifier(15)], ids=repr
)
def test_probabilities_that_change_in_steps_have_no_slopes(model):
    random = np.random.default_rng(8)
    X = random.normal(size=(200, 3))
    model.fit(X, 2 * X[:, 0] - X[:, 1] + random.logistic(size=200) > 0)
    for rows, at in ((X, None), (X, {"x1": [0.0]}), ([[0.4, 0.0, 0.0]], None)):
        with pytest.raises(ParameterError, match=f"{type(model).__name__} change in steps"):
            slopes(model, rows, columns="x0", at=at)
    assert comparisons(model, X, columns="x0", change=1.0)["estimate"][0] > 0.05
    stump = DecisionTreeClassifier(max_depth=1).fit(X, X[:, 0] > 0)
    assert list(slopes(stump, X, columns=["x1", "x2"])["estimate"]) == [0.0, 0.0]


def test_a_model_of_the_intercept_alone_has_no_effects():
    model = LogisticRegression().fit("y ~ 1", pd.DataFrame({"y": [0, 1, 1, 0, 1]}))
    for ask in (model.predictions, model.slopes, model.comparisons, lambda: model.explain([[]])):
        with pytest.raises(ParameterError, match="an intercept and no columns"):
            ask()
