"""What all models fitted by likelihood share: names of arguments, tables, scores, rows."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics import accuracy_score, d2_tweedie_score

from posteriori import (
    GLM,
    BayesianLogisticRegression,
    GaussianPrior,
    LogisticRegression,
    Mixture,
    ProbitRegression,
    ThresholdRegression,
)
from posteriori.errors import ConvergenceWarning, InferenceError, ParameterError

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(120, 2))
Y = np.where(X[:, 0] + RANDOM.logistic(size=120) > 0, "sick", "healthy")
FRAME = pd.DataFrame(X, columns=["age", "bmi"])


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("C", "Use prior=1/C"),
        ("penalty", "Use prior"),
        ("class_weight", "undo_sampling"),
        ("n_jobs", r"posteriori\.threads"),
    ],
)
@pytest.mark.parametrize("model", [LogisticRegression, ProbitRegression, GLM])
def test_a_parameter_of_scikit_learn_is_an_error_that_says_what_to_use(model, name, remedy):
    with pytest.raises(TypeError, match=f"{model.__name__} has no parameter '{name}'.*{remedy}"):
        model(**{name: 1})
    with pytest.raises(TypeError, match="unexpected keyword argument 'foo'"):
        model(foo=1)
    assert name not in clone(model()).get_params()


@pytest.mark.parametrize("choice", [{"reference": "sick"}, {"positive": "healthy"}])
@pytest.mark.parametrize("model", [LogisticRegression(), ProbitRegression()])
def test_either_of_two_classes_can_be_the_reference(model, choice):
    turned, model = clone(model).fit(FRAME, Y == "healthy"), clone(model).fit(FRAME, Y)
    for intervals in ("wald", "profile"):
        found = model.tidy(intervals=intervals, **choice).set_index("term")
        wanted = turned.tidy(intervals=intervals).set_index("term")
        np.testing.assert_allclose(found, wanted, rtol=1e-7)
    assert "healthy against sick" in str(model.summary(**choice))
    assert "sick against healthy" in str(model.summary(positive="sick"))


def test_draws_can_have_the_other_reference_too():
    model = BayesianLogisticRegression(inference="monte_carlo", n_draws=200, random_state=0)
    plain, other = model.fit(FRAME, Y).tidy(), model.tidy(reference="sick")
    np.testing.assert_allclose(other["estimate"], -plain["estimate"], rtol=1e-12)
    np.testing.assert_allclose(other["conf_low"], -plain["conf_high"], rtol=1e-9)


def test_a_class_that_cannot_be_the_reference_is_named():
    model = LogisticRegression().fit(FRAME, Y)
    with pytest.raises(ParameterError, match="There is no class 'dead'"):
        model.tidy(reference="dead")
    with pytest.raises(ParameterError, match="one of two classes"):
        model.tidy(positive="sick", reference="sick")
    with pytest.raises(ParameterError, match="target is a number"):
        GLM().fit(X, X[:, 0]).tidy(reference=1)


def test_scores_count_offsets_and_weights():
    weight = RANDOM.uniform(size=120)
    offset = 3.0 * RANDOM.normal(size=120)
    count = RANDOM.poisson(np.exp(X[:, 0] + offset))
    model = GLM(family="poisson").fit(X, count, offset=offset)
    mean = model.predict(X, offset=offset)
    wanted = d2_tweedie_score(count, mean, sample_weight=weight, power=1)
    assert model.score(X, count, sample_weight=weight, offset=offset) == wanted
    assert wanted > 0.9 > model.score(X, count)
    model = LogisticRegression().fit(X, Y, offset=offset)
    wanted = accuracy_score(Y, model.predict(X, offset), sample_weight=weight)
    assert model.score(X, Y, weight, offset) == wanted


def test_columns_that_the_fit_did_not_have_are_ignored():
    model = LogisticRegression().fit(FRAME, Y)
    more = FRAME.assign(id=[f"row {i}" for i in range(120)], sick=Y)[["sick", "bmi", "id", "age"]]
    np.testing.assert_array_equal(model.predict_proba(more), model.predict_proba(FRAME))


def coefficients(frame=FRAME, **prior):
    return LogisticRegression(prior=GaussianPrior(**prior)).fit(frame, Y).coef_


def test_standard_deviations_and_names_say_which_precision():
    for found, wanted in [
        (coefficients(sd=0.5), coefficients(precision=4.0)),
        (coefficients(precision={"bmi": 4.0}), coefficients(precision=[0.0, 4.0])),
        (
            coefficients(sd={"age": 0.5, "bmi": 2.0}, mean={"age": 1.0}),
            coefficients(precision=[4.0, 0.25], mean=[1.0, 0.0]),
        ),
    ]:
        np.testing.assert_array_equal(found, wanted)
    frame = FRAME.assign(site=np.array(["a", "b", "c"])[np.arange(120) % 3])
    by_name = coefficients(frame, precision={"site": 3.0})  # of both of its columns
    np.testing.assert_array_equal(by_name, coefficients(frame, precision=[0.0, 0.0, 3.0, 3.0]))
    for prior, words in [
        ({"sd": 0.0}, "not positive"),
        ({"sd": 1.0, "precision": 2.0}, "a precision and an sd"),
        ({"precision": {"height": 1.0}}, "'height', which is not a column"),
    ]:
        with pytest.raises(ParameterError, match=words):
            coefficients(**prior)


def test_the_formula_of_the_fit_reads_further_rows():
    frame = FRAME.assign(sick=Y)
    first, rest = frame[:60], frame[60:]
    model = LogisticRegression().fit("sick ~ age + age:bmi", first)
    plain = LogisticRegression().fit("sick ~ age + age:bmi", first)
    model.partial_fit("sick ~ age + age:bmi", rest)
    np.testing.assert_array_equal(model.coef_, plain.partial_fit(rest).coef_)
    bayesian = BayesianLogisticRegression(prior=1.0, inference="laplace")
    model = clone(bayesian).fit("sick ~ age", first).update("sick ~ age", rest)
    other = clone(bayesian).fit(first[["age"]], first["sick"]).update(rest[["age"]], rest["sick"])
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-12)
    with pytest.raises(ParameterError, match="'sick ~ bmi' is not that of the fit"):
        model.update("sick ~ bmi", rest)


@pytest.mark.parametrize("K", [2, 3])
def test_the_path_ends_at_the_coefficients(K):
    X, y = load_iris(return_X_y=True)
    y = np.minimum(y, K - 1)
    model = LogisticRegression(prior=1.0, keep_path=True).fit(X, y)
    assert model.path_.shape == (model.n_iter_ + 1, 1 if K == 2 else 3, 5)
    np.testing.assert_allclose(model.path_[-1, :, 1:], model.coef_, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(model.path_[0, :, 1:], 0.0)
    with pytest.raises(InferenceError, match="keep_path=True"):
        _ = LogisticRegression(prior=1.0).fit(X, y).path_
    with pytest.raises(ParameterError, match="Newton's method"):
        LogisticRegression(solver="gradient", keep_path=True).fit(X, y)


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        LogisticRegression(label_noise="estimate"),
        LogisticRegression(prior="evidence"),
        LogisticRegression(prior="jeffreys"),
        BayesianLogisticRegression(inference="laplace"),
        GLM(family="poisson"),
        ProbitRegression(),
    ],
)
def test_a_file_has_the_fit_and_its_tables_but_not_the_rows(model):
    X = RANDOM.normal(size=(5000, 3))
    y = (X[:, 0] + RANDOM.logistic(size=5000) > 0).astype(int)
    model = clone(model).fit(X, y)
    stored = pickle.dumps(model)
    assert len(stored) < 10_000
    copy = pickle.loads(pickle.dumps(pickle.loads(stored)))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))
    np.testing.assert_array_equal(copy.predict_interval(X), model.predict_interval(X))
    np.testing.assert_array_equal(copy.coef_covariance_, model.coef_covariance_)
    pd.testing.assert_frame_equal(copy.tidy(), model.tidy())
    pd.testing.assert_frame_equal(copy.glance(), model.glance())
    assert str(copy.summary()) == str(model.summary())


def test_a_model_from_a_file_says_what_needs_the_rows():
    model = pickle.loads(pickle.dumps(LogisticRegression().fit(FRAME, Y)))
    for ask in ({"errors": "robust"}, {"intervals": "profile"}, {"errors": "observed"}):
        with pytest.raises(InferenceError, match=r"loaded from a file.*fit again"):
            model.tidy(**ask)


def test_a_mixture_has_a_density_and_a_distribution_function():
    parts = norm(-1, 0.5), norm(1.5, 1)
    mixture, x = Mixture([0.4, 0.6], parts), np.linspace(-3, 3, 7)
    for name in ("pdf", "cdf"):
        wanted = 0.4 * getattr(parts[0], name)(x) + 0.6 * getattr(parts[1], name)(x)
        np.testing.assert_allclose(getattr(mixture, name)(x), wanted, rtol=1e-14)


def test_the_estimator_is_made_of_few_classes():
    ours = [c for c in LogisticRegression.__mro__ if c.__module__.startswith("posteriori")]
    assert [c.__name__ for c in ours] == [
        "LogisticRegression",
        "LikelihoodModel",
        "Classifier",
        "Estimator",
    ]


# Saturated fits and nearly equal columns.


GROUPS = [[0.0], [1.0]]
TWO = [[0.9, 0.1], [0.7, 0.3]]
THREE = [[0.8, 0.1, 0.1], [0.6, 0.3, 0.1]]


def grouped(model, labels):
    return model.fit(GROUPS, labels, sample_weight=[50, 60], classes=np.arange(len(labels[0])))


@pytest.mark.parametrize(
    ("model", "labels"),
    [
        (LogisticRegression(), TWO),
        (LogisticRegression(), THREE),
        (ProbitRegression(), TWO),
        (ThresholdRegression(), TWO),
        (GLM(family="bernoulli"), TWO),
        (GLM(family="bernoulli", link="probit"), TWO),
        (GLM(family="bernoulli", link="cloglog"), TWO),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("error")
def test_a_saturated_fit_to_shares_has_these_shares(model, labels):
    model = grouped(model, labels)
    assert_allclose(model.predict_proba(GROUPS), labels, atol=1e-9)
    assert model.separation_.kind == "none"
    assert np.isfinite(model.tidy()["std_error"]).all()


def test_a_fit_that_stops_before_convergence_warns_and_is_not_called_separated():
    with pytest.warns(ConvergenceWarning, match="before it converged"):
        model = grouped(LogisticRegression(max_iter=2), TWO)
    assert model.separation_.kind == "none"
    assert_allclose(model.predict_proba(GROUPS), TWO, atol=0.01)


def test_columns_that_nearly_agree_are_both_fitted():
    share, mean = 1e-5, 20.0
    random = np.random.default_rng(1)
    x, z = random.normal(size=(2, 5000)) + mean
    y = 2 * (x - mean) + (z - mean) + random.logistic(size=5000) > 0
    apart = LogisticRegression().fit(np.column_stack([x, z]), y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        close = LogisticRegression().fit(np.column_stack([x, x + share * z]), y)
    assert close.log_likelihood_ == pytest.approx(apart.log_likelihood_, abs=1e-4)
    assert_allclose(close.coef_[0, 1] * share, apart.coef_[0, 1], rtol=1e-3)
