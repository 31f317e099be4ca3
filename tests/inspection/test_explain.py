"""The explanation of one row: parts that add up to what the model says of it."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression as TheirLogistic
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import LinearSVC

from posteriori import (
    GLM,
    Adaline,
    BayesianLogisticRegression,
    FisherDiscriminant,
    GaussianClassifier,
    LeastSquaresClassifier,
    LogisticRegression,
    NaiveBayes,
    OneVersusRest,
    Perceptron,
    ProbitRegression,
)
from posteriori.errors import (
    ColumnNameError,
    DomainError,
    LevelError,
    MissingValueError,
    NotLinearError,
    ParameterError,
    ShapeError,
)
from posteriori.inspection.explain import explain

X3 = np.random.default_rng(0).normal(size=(150, 3)) * [1.0, 10.0, 1e-3] + [0.0, 50.0, 1.0]
A3 = (X3 - X3.mean(axis=0)) / X3.std(axis=0) @ np.random.default_rng(1).normal(size=(3, 3))
Y3 = (A3 + np.random.default_rng(2).gumbel(size=A3.shape)).argmax(axis=1)
Y2 = np.array(["no", "yes"])[(Y3 > 0).astype(int)]

FRAME = pd.DataFrame(
    {
        "age": np.arange(40.0) % 11,
        "sex": np.where(np.arange(40) % 3 == 0, "f", "m"),
        "smoker": np.arange(40) % 4 == 0,
    }
)
SICK = np.arange(40) % 11 + np.arange(40) % 7 > 7


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        LogisticRegression(fit_intercept=False),
        GaussianClassifier(),
        FisherDiscriminant(),
        NaiveBayes(shared_scale=True),
        TheirLogistic(max_iter=2000),
        LinearDiscriminantAnalysis(),
    ],
    ids=repr,
)
@pytest.mark.parametrize("y", [Y2, Y3], ids=["two", "three"])
def test_the_parts_add_up_to_the_log_odds(model, y):
    model.fit(X3, y)
    for x in X3[:3]:
        found = explain(model, x)
        logs = dict(zip(model.classes_.tolist(), model.predict_log_proba(x[None])[0], strict=True))
        expected = logs[found.label] - logs[found.against]
        parts = found.baseline + sum(found.contributions)
        rtol = 1e-10 if hasattr(model, "explain") else 1e-7
        assert_allclose([found.total, parts, found.cumulative[-1]], expected, rtol=rtol)
        assert_allclose(found.probability, np.exp(logs[found.label]), rtol=1e-12)
        assert found.scale == "log odds"


@pytest.mark.parametrize("y", [Y2, Y3], ids=["two", "three"])
def test_an_offset_is_a_part_of_its_own(y):
    offset = np.random.default_rng(0).normal(size=150 if y is Y2 else (150, 3))
    model = LogisticRegression().fit(X3, y, offset=offset)
    found = model.explain(X3[0], label=y[0], offset=offset[:1])
    logs = model.predict_log_proba(X3[:1], offset=offset[:1])[0]
    k, j = (model.classes_.tolist().index(label) for label in (found.label, found.against))
    assert_allclose(found.total, logs[k] - logs[j], rtol=1e-10)
    expected = offset[0] * (1 if k else -1) if y is Y2 else offset[0, k] - offset[0, j]
    assert_allclose(found.contributions[found.terms.index("offset")], expected, rtol=1e-12)
    with pytest.raises(ParameterError, match="has no offsets"):
        NaiveBayes().fit(X3, y).explain(X3[0], offset=offset[:1])


@pytest.mark.parametrize(
    ("given", "places"),
    [({}, [0, 1]), ({"label": 2}, [2, 0]), ({"label": 2, "against": 1}, [2, 1])],
)
def test_any_two_classes_can_be_set_against_each_other(given, places):
    """By default the most probable class against the next."""
    model = LogisticRegression().fit(X3, Y3)
    log_p = model.predict_log_proba(X3[:1])[0]
    order = np.argsort(-log_p)
    found = model.explain(X3[0], **{name: order[place] for name, place in given.items()})
    assert [found.label, found.against] == order[places].tolist()
    assert_allclose(found.total, log_p[found.label] - log_p[found.against], rtol=1e-10)
    assert_allclose(found.probability, np.exp(log_p[found.label]), rtol=1e-12)


def test_a_factor_is_one_part():
    model = LogisticRegression().fit(FRAME, SICK)
    found = model.explain(FRAME[3:4])
    parts = dict(zip(found.terms, found.contributions, strict=True))
    formula = LogisticRegression().fit("sick ~ age + sex + smoker", FRAME.assign(sick=SICK))
    assert_allclose(formula.explain(FRAME[3:4]).contributions, found.contributions, rtol=1e-6)
    weight = dict(zip(["age", "sex", "smoker"], model.coef_[0], strict=True))
    assert_allclose(parts["sex"], weight["sex"] * (0.0 - (FRAME.sex == "m").mean()), rtol=1e-9)
    assert_allclose(parts["smoker"], weight["smoker"] * (0.0 - FRAME.smoker.mean()), rtol=1e-9)
    assert_allclose(found.total, model.decision_function(FRAME[3:4])[0], rtol=1e-12)
    values = dict(zip(found.terms, found.values, strict=True))
    assert values == {"age": 3.0, "sex": "f", "smoker": False}


def test_a_row_may_come_in_any_form_and_the_table_is_a_frame_of_the_users_kind():
    model, row = LogisticRegression().fit(pl.from_pandas(FRAME), SICK), FRAME[5:6]
    one = row.iloc[0]
    for x in (row, one, one.to_dict(), one.tolist(), pl.from_pandas(row)):
        assert_allclose(model.explain(x).total, model.decision_function(row)[0], rtol=1e-12)
    frame = model.explain(one.to_dict()).to_frame()
    assert isinstance(frame, pl.DataFrame)
    assert frame.columns == ["term", "value", "contribution", "cumulative"]
    assert set(frame["value"]) == {"5", "m", "False"}
    numbers = LogisticRegression().fit(X3, Y2).explain(X3[0])
    frame = numbers.to_frame()
    assert_allclose(frame["value"], numbers.values)
    assert_allclose(np.diff(frame["cumulative"]), frame["contribution"][1:])


def test_naive_bayes_adds_the_ratios_of_its_densities():
    model = NaiveBayes(family={"age": "gaussian"}).fit(FRAME, SICK)
    found = model.explain(FRAME[3:4])
    parts = dict(zip(found.terms, found.contributions, strict=True))
    age, sex = model.parameters_["age"], model.parameters_["sex"]
    logs = norm.logpdf(3.0, age["mean"], age["sd"])
    assert_allclose(parts["age"], logs[1] - logs[0], rtol=1e-12)
    assert_allclose(parts["sex"], np.diff(np.log(sex["probability"][:, 0]))[0], rtol=1e-12)
    assert_allclose(found.baseline, np.diff(np.log(model.priors_))[0], rtol=1e-12)
    assert_allclose(found.total, model.decision_function(FRAME[3:4])[0], rtol=1e-12)
    row = FRAME[3:4].assign(age=np.nan)
    found = model.explain(row)
    assert dict(zip(found.terms, found.contributions, strict=True))["age"] == 0.0
    assert "missing" in found.values
    assert_allclose(found.total, model.decision_function(row)[0], rtol=1e-12)


def test_other_links_and_targets_have_their_activation():
    found = ProbitRegression().fit(X3, Y2).explain(X3[0])
    assert found.scale == "activation"
    assert_allclose(norm.cdf(found.total), found.probability, rtol=1e-10)
    counts = GLM(family="poisson").fit(X3, Y3)
    found = counts.explain(X3[0])
    assert_allclose(np.exp(found.total), found.mean, rtol=1e-10)
    assert (found.scale, found.probability) == ("activation", None)
    with pytest.raises(ParameterError, match="no classes"):
        counts.explain(X3[0], label=1)
    bayes = BayesianLogisticRegression().fit(X3, Y2)
    found = bayes.explain(X3[0])
    assert found.scale == "log odds"
    assert_allclose(found.total, bayes.coef_[0] @ X3[0] + bayes.intercept_[0], rtol=1e-9)
    assert_allclose(found.probability, bayes.predict_proba(X3[:1])[0, 1], rtol=1e-12)
    assert "average over" in repr(found)


@pytest.mark.parametrize(
    "model",
    [Perceptron(random_state=0), Adaline(random_state=0), LeastSquaresClassifier(), LinearSVC()],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore")
def test_models_without_probabilities_have_their_activation(model):
    for y in (Y2, Y3):
        model.fit(X3, y)
        found = explain(model, X3[0], label=model.classes_[1], against=model.classes_[0])
        scores = model.decision_function(X3[:1])[0]
        expected = scores if y is Y2 else scores[1] - scores[0]
        assert_allclose(found.total, expected, rtol=1e-9)
        assert (found.scale, found.mean) == ("activation", None)


def test_it_is_printed_and_shown_with_all_its_numbers():
    frame = FRAME.rename(columns={"age": "<age>"})
    found = LogisticRegression().fit(frame, SICK).explain(frame[:1])
    text, html = repr(found), found._repr_html_()
    for number in (found.baseline, found.total, found.probability):
        assert f"{number:.4g}" in text
        assert f"{number:.4g}" in html
    assert all(f"{contribution:+.4g}" in text for contribution in found.contributions)
    assert "&lt;age&gt;" in html
    assert max(map(len, text.splitlines())) <= 78


@pytest.mark.parametrize("last", [LogisticRegression(), TheirLogistic(), NaiveBayes()], ids=repr)
def test_the_last_step_of_a_pipeline_is_explained(last):
    frame = pd.DataFrame(X3, columns=["a", "b", "c"])
    pipe = make_pipeline(StandardScaler(), PolynomialFeatures(include_bias=False), last)
    pipe.fit(frame, Y2)
    for x in (frame[:1], dict(frame.iloc[0])):
        found = explain(pipe, x)
        logs = pipe.predict_log_proba(frame[:1])[0]
        assert_allclose(found.total, logs[1] - logs[0], rtol=1e-7)
        assert set(found.terms) == set(pipe[:-1].get_feature_names_out())


SAME, NO_PRIOR = {"label": 0, "against": 0}, GaussianClassifier(priors=[0.0, 0.5, 0.5])


@pytest.mark.parametrize(
    ("model", "rows", "x", "given", "error", "words"),
    [
        (LogisticRegression(), (FRAME, SICK), FRAME[:2], {}, ShapeError, "2 rows"),
        (LogisticRegression(), (FRAME, SICK), {"age": 1.0}, {}, ColumnNameError, "'sex'"),
        (LogisticRegression(), (FRAME, SICK), [1.0, "x", True], {}, LevelError, "'x'"),
        (LogisticRegression(), (FRAME, SICK), [np.nan, "f", True], {}, MissingValueError, "age"),
        (LogisticRegression(), (FRAME, SICK), [1.0, "f", True, 2.0], {}, ShapeError, "4 entries"),
        (GaussianClassifier(covariance="full"), (X3, Y3), X3[0], {}, NotLinearError, "linear"),
        (OneVersusRest(), (X3, Y3), X3[0], {}, NotLinearError, "add up"),
        (GaussianNB(), (X3, Y3), X3[0], {}, NotLinearError, "add up"),
        (LogisticRegression(), (X3, Y3), X3[0], {"label": "maybe"}, ParameterError, "no class"),
        (LogisticRegression(), (X3, Y3), X3[0], SAME, ParameterError, "against itself"),
        (NO_PRIOR, (X3, Y3), X3[0], {"label": 0}, DomainError, "mean row is infinite"),
    ],
)
def test_what_cannot_be_explained_is_named(model, rows, x, given, error, words):
    with pytest.raises(error, match=words):
        explain(model.fit(*rows), x, **given)
