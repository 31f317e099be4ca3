"""Bayesian logistic regression where others give up: separated, tiny, wild and wrong input."""

import pickle
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from bayesian_oracle import Exact, two_classes
from scipy.sparse import csr_matrix
from scipy.special import softmax
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from posteriori import BayesianLogisticRegression, GaussianPrior
from posteriori.errors import (
    ApproximationWarning,
    IdentifiabilityWarning,
    InferenceError,
    InfiniteValueError,
    LabelError,
    MissingValueError,
    ParameterError,
)

INFERENCES = ["laplace", "variational", "monte_carlo"]


def sample(n=60, d=2, K=2, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    y = np.argmax(X @ random.normal(size=(d, K)) + random.gumbel(size=(n, K)), axis=1)
    return X, y


def separated(n=8):
    x = np.linspace(-2.0, 2.0, n)
    return x[:, None] + 1.0, (x > 0).astype(int)


def fitted(X, y, **settings):
    return BayesianLogisticRegression(
        **{"inference": "laplace", "random_state": 0, **settings}
    ).fit(X, y)


def assert_sensible(model, X):
    """Finite coefficients and errors, and probabilities that are sure of nothing."""
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.posterior_.covariance).all()
    assert np.isfinite(model.log_evidence_)
    p, logs = model.predict_proba(X), model.predict_log_proba(X)
    assert np.isfinite(logs).all()
    assert (p > 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-10)
    ends = model.predict_interval(X)
    assert (np.isfinite(ends) & (ends >= 0) & (ends <= 1)).all()


# The check of the approximation, and inference="auto".


def test_a_gaussian_is_good_where_there_are_many_rows():
    X, y = sample(2000, 4)
    model = fitted(X, y, inference="auto")
    assert model.inference_ == "laplace"
    assert model.approximation_check_.word == "good"
    assert model.approximation_check_.is_enough
    assert model.inference_reason_ == model.approximation_check_.sentence
    assert "close to the exact posterior" in str(model.approximation_check_)


@pytest.mark.parametrize("n", [6, 12])
def test_a_gaussian_is_poor_where_few_rows_are_separated(n):
    X, y = separated(n)
    laplace, drawn = (fitted(X, y, prior=0.01, inference=name) for name in ("laplace", "auto"))
    assert laplace.approximation_check_.word == "poor"
    assert not laplace.approximation_check_.is_enough
    assert "Use inference='monte_carlo'." in str(laplace.approximation_check_)
    assert drawn.inference_ == "monte_carlo"
    assert drawn.approximation_check_.word == "good"
    exact = Exact.of(X[:, 0], y, 0.01).probability(X)
    assert abs(laplace.predict_proba(X)[:, 1] - exact).max() > 0.08
    np.testing.assert_allclose(drawn.predict_proba(X)[:, 1], exact, atol=0.03)


def test_the_default_draws_where_laplace_is_poor_on_iris():
    X, y = load_iris(return_X_y=True)
    laplace = BayesianLogisticRegression(inference="laplace").fit(X, y)
    model = BayesianLogisticRegression(random_state=0).fit(X, y)
    assert model.inference_ == "monte_carlo"
    assert "far from the exact posterior" in model.inference_reason_
    scores = [log_loss(y, each.predict_proba(X)) for each in (model, laplace)]
    assert scores[0] < 0.06
    assert scores[1] > 0.15


def test_many_rows_that_are_poorly_approximated_are_warned_of():
    X = np.random.default_rng(0).normal(size=(30_000, 30))
    y = np.zeros(len(X), dtype=int)
    y[np.argsort(X[:, 0])[-3:]] = 1
    with pytest.warns(ApproximationWarning, match=r"far from .*long.* Use inference='monte_carlo'"):
        model = fitted(X, y, prior=0.01, inference="auto")
    assert model.inference_ == "laplace"
    assert "would take long" in model.inference_reason_
    assert model.approximation_check_.k_hat is None
    assert model.approximation_check_.word == "poor"
    few = np.r_[:200, np.flatnonzero(y)]
    with pytest.warns(ApproximationWarning, match="predictive='probit' needs a Gaussian"):
        fitted(X[few], y[few], prior=0.01, inference="auto", predictive="probit")


# Separated classes, and little data.


@pytest.mark.filterwarnings("ignore::posteriori.errors.IdentifiabilityWarning")
@pytest.mark.parametrize("prior", [1.0, 0.01, "evidence", "ard"])
@pytest.mark.parametrize("inference", INFERENCES)
def test_separated_classes_have_finite_answers(inference, prior):
    X, _ = sample(40)
    assert_sensible(fitted(X, X[:, 0] > 0, prior=prior, inference=inference), X)


@pytest.mark.filterwarnings("ignore::posteriori.errors.IdentifiabilityWarning")
@pytest.mark.parametrize("inference", INFERENCES)
def test_three_separated_classes_have_finite_answers(inference):
    X, _ = sample(40)
    model = fitted(X, np.digitize(X[:, 0], [-0.5, 0.5]), inference=inference)
    assert_sensible(model, X)
    assert model.score(X, np.digitize(X[:, 0], [-0.5, 0.5])) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("K", [2, 3])
def test_posterior_for_weights_is_that_for_repeated_rows(K):
    X, _ = sample(15, 10)
    y, weight = np.digitize(X[:, 0], [-0.5, 0.5][: K - 1]), np.arange(15) % 4
    model = BayesianLogisticRegression(prior=0.1, inference="monte_carlo", random_state=0)
    weighted = clone(model).fit(X, y, sample_weight=weight)
    repeated = clone(model).fit(X.repeat(weight, axis=0), y.repeat(weight))
    spread = np.sqrt(np.diag(repeated.posterior_.covariance))
    shift = (weighted.posterior_.mean - repeated.posterior_.mean) / spread
    ratio = np.sqrt(np.diag(weighted.posterior_.covariance)) / spread
    assert abs(shift).max() < 0.15
    assert abs(np.log(ratio)).max() < 0.15
    errors = weighted.log_evidence_error_ + repeated.log_evidence_error_
    assert abs(weighted.log_evidence_ - repeated.log_evidence_) < 4 * errors


def test_a_prior_that_the_evidence_wants_ever_weaker_is_told():
    X, _ = sample(40)
    with pytest.warns(IdentifiabilityWarning, match="evidence grows as the prior"):
        model = fitted(X, X[:, 0] > 0)
    assert model.separation_.kind == "complete"


@pytest.mark.parametrize("inference", INFERENCES)
def test_one_row_says_something_of_the_intercept(inference):
    model = BayesianLogisticRegression(prior=1.0, inference=inference, random_state=0)
    model.fit([[3.0]], [1], classes=[0, 1])
    exact = Exact.of([3.0], [1], 1.0)
    assert_sensible(model, np.array([[3.0], [-50.0]]))
    assert model.log_evidence_ < exact.log_evidence + 0.1
    if inference == "monte_carlo":
        assert model.log_evidence_ == pytest.approx(exact.log_evidence, abs=0.1)
        assert model.predict_proba([[3.0]])[0, 1] == pytest.approx(
            exact.probability([3.0])[0], abs=0.01
        )


@pytest.mark.parametrize("inference", INFERENCES)
def test_a_class_without_rows_keeps_what_the_prior_gives_it(inference):
    X, y = sample()
    soft = np.column_stack([np.eye(2)[y], np.zeros(60)])
    model = fitted(X, soft, prior=1.0, inference=inference)
    assert_sensible(model, X)
    assert (model.predict_proba(X)[:, 2] < 0.2).all()


@pytest.mark.filterwarnings("ignore::posteriori.errors.IdentifiabilityWarning")
@pytest.mark.parametrize("prior", [1.0, "evidence"])
@pytest.mark.parametrize("inference", INFERENCES)
def test_more_columns_than_rows(inference, prior):
    X = np.random.default_rng(0).normal(size=(10, 25))
    assert_sensible(fitted(X, X[:, 0] > 0, prior=prior, inference=inference), X)


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("inference", INFERENCES)
def test_priors_that_say_nothing_and_all(inference, K):
    X, y = sample(80, K=K)
    weak = fitted(X, y, prior=1e-12, inference=inference)
    assert_sensible(weak, X)
    strong = fitted(X, y, prior=1e12, inference=inference)
    assert_sensible(strong, X)
    assert abs(strong.coef_).max() < 1e-5
    np.testing.assert_allclose(
        strong.predict_proba(X), np.broadcast_to(strong.predict_proba(X[:1]), (80, K)), atol=1e-4
    )
    if inference == "laplace" and K == 2:
        mean, covariance = two_classes(X, y, 1e-12)
        np.testing.assert_allclose(weak.posterior_.mean, mean, rtol=1e-8)
        np.testing.assert_allclose(weak.posterior_.covariance, covariance, rtol=1e-7)


@pytest.mark.parametrize("inference", INFERENCES)
def test_columns_that_never_change_or_come_twice(inference):
    X, y = sample()
    plain = fitted(X, y, prior=1.0, inference=inference)
    constant = np.column_stack([X, np.full(60, 7.0)])
    model = fitted(constant, y, prior=1.0, inference=inference)
    slack = 0.05 if inference == "monte_carlo" else 1e-8
    assert model.log_evidence_ == pytest.approx(plain.log_evidence_, abs=slack)
    np.testing.assert_allclose(model.predict_proba(constant), plain.predict_proba(X), atol=slack)
    twice = np.column_stack([X, X[:, 0]])
    model = fitted(twice, y, prior=GaussianPrior(precision=[2.0, 1.0, 2.0]), inference=inference)
    assert model.log_evidence_ == pytest.approx(plain.log_evidence_, abs=slack)
    np.testing.assert_allclose(model.predict_proba(twice), plain.predict_proba(X), atol=slack)


@pytest.mark.parametrize("inference", INFERENCES)
def test_weights_may_be_huge_or_small(inference):
    X, y = sample()
    model = BayesianLogisticRegression(prior=1.0, inference=inference, random_state=0)
    model.fit(X, y, sample_weight=np.full(60, 1e8))
    assert_sensible(model, X)
    assert model.posterior_.standard_deviation.max() < 1e-4
    model.fit(X, y, sample_weight=np.full(60, 1e-9))
    assert_sensible(model, X)
    np.testing.assert_allclose(model.posterior_.standard_deviation[1:], 1.0, rtol=0.05)
    slack = 0.05 if inference == "monte_carlo" else 1e-3
    assert model.log_evidence_ == pytest.approx(0.0, abs=slack)


# Errors with names.


@pytest.mark.parametrize(
    "prior",
    [
        None,
        0.0,
        0,
        GaussianPrior(precision=0.0),
        GaussianPrior(precision=[1.0, 0.0]),
        GaussianPrior(precision=[[1.0, 1.0], [1.0, 1.0]]),
    ],
)
def test_evidence_needs_a_proper_prior(prior):
    with pytest.raises(ParameterError, match=r"Evidence needs a proper prior.*Use 'evidence'"):
        fitted(*sample(), prior=prior)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"prior": -1.0}, "prior=-1.0 is not a precision"),
        ({"prior": "evidenc"}, "prior='evidenc' is not understood"),
        ({"prior": GaussianPrior(precision=[[1.0, 2.0], [2.0, 1.0]])}, "eigenvalues of zero"),
        ({"prior": GaussianPrior(precision=[[1.0, 0.5], [0.0, 1.0]])}, "not symmetric"),
        ({"prior": GaussianPrior(precision=[1.0, 1.0, 1.0])}, "3 numbers, but there are 2"),
        ({"inference": "mcmc"}, "inference='mcmc' is not understood"),
        ({"predictive": "kappa"}, "predictive='kappa' is not understood"),
        ({"n_draws": 0}, "n_draws=0 is not a number of draws"),
        ({"n_draws": 2.5}, "n_draws=2.5 is not a number of draws"),
        ({"random_state": "x"}, "random_state='x' is not a seed"),
        ({"inference": "monte_carlo", "predictive": "probit"}, "is for a Gaussian posterior"),
        ({"inference": "monte_carlo", "predictive": "quadrature"}, "is for a Gaussian posterior"),
        ({"tol": 0.0}, "tol=0.0 is out of range"),
    ],
)
def test_a_setting_that_cannot_be_honoured_is_an_error(settings, message):
    with pytest.raises(ParameterError, match=message):
        fitted(*sample(), **settings)


def test_quadrature_is_for_two_classes():
    X, y = sample(K=3)
    with pytest.raises(ParameterError, match="is for two classes; there are 3"):
        fitted(X, y, predictive="quadrature")
    model = fitted(X, y).set_params(predictive="quadrature")
    with pytest.raises(ParameterError, match="is for two classes; there are 3"):
        model.predict_proba(X)


def test_rows_that_cannot_be_used_are_named():
    X, y = sample()
    holed = X.copy()
    for value, error in ((np.nan, MissingValueError), (np.inf, InfiniteValueError)):
        holed[3, 1] = value
        with pytest.raises(error, match="row 3, column 1"):
            fitted(holed, y)
    with pytest.raises(LabelError, match="one class"):
        fitted(X, np.ones(60))
    with pytest.raises(ParameterError, match="level=95 is out of range"):
        fitted(X, y).predict_interval(X, level=95)


@pytest.mark.parametrize("n", [0, -1, 2.5])
@pytest.mark.parametrize("inference", ["laplace", "monte_carlo"])
def test_samples_are_counted_in_whole_numbers(inference, n):
    posterior = fitted(*sample(), prior=1.0, inference=inference).posterior_
    with pytest.raises(ParameterError, match="is not a number of draws"):
        posterior.sample(n)


@pytest.mark.parametrize("inference", ["variational", "monte_carlo"])
def test_what_belongs_to_the_mode_is_not_told_of_a_mean(inference):
    model = fitted(*sample(), prior=1.0, inference=inference)
    for ask in (
        lambda: model.tidy(intervals="profile"),
        lambda: model.tidy(errors="robust"),
        lambda: model.summary(errors="observed"),
    ):
        with pytest.raises(InferenceError, match="is for the mode"):
            ask()


def test_nothing_is_told_before_the_fit():
    model = BayesianLogisticRegression()
    X, y = sample()
    for ask in (
        lambda: model.predict(X),
        lambda: model.log_evidence_,
        lambda: model.evidence_,
        lambda: model.approximation_check_,
        lambda: model.update(X, y),
        lambda: model.tidy(),
        lambda: model.glance(),
        lambda: model.predict_interval(X),
    ):
        with pytest.raises(NotFittedError):
            ask()


# Kinds of input, files, and other tools.


@pytest.mark.parametrize(
    "labels", [["no", "yes"], [False, True], [-1, 1], [2.0, 10.0]], ids=lambda v: str(v[0])
)
def test_labels_may_be_anything_that_sorts(labels):
    X, y = sample()
    model, plain = fitted(X, np.array(labels)[y]), fitted(X, y)
    assert model.classes_.tolist() == labels
    np.testing.assert_array_equal(model.predict(X), np.array(labels)[plain.predict(X)])
    assert model.log_evidence_ == pytest.approx(plain.log_evidence_, abs=1e-10)


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("inference", INFERENCES)
def test_sparse_and_frames_are_arrays(inference, K):
    X, y = sample(K=K)
    X = X * (np.random.default_rng(1).random(X.shape) < 0.7)
    settings = {"prior": 1.0, "inference": inference}
    if inference != "monte_carlo":
        settings["predictive"] = "probit"
    plain = fitted(X, y, **settings)
    for kind in (csr_matrix(X), pd.DataFrame(X, columns=["a", "b"])):
        model = fitted(kind, y, **settings)
        slack = 0.05 if inference == "monte_carlo" else 1e-8
        np.testing.assert_allclose(model.predict_proba(kind), plain.predict_proba(X), atol=slack)
        assert model.log_evidence_ == pytest.approx(plain.log_evidence_, abs=slack)


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("inference", INFERENCES)
def test_a_file_keeps_the_posterior_but_not_the_rows(inference, K):
    X, y = sample(K=K)
    model = fitted(X, y, prior=1.0, inference=inference)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(copy.predict_interval(X), model.predict_interval(X))
    np.testing.assert_array_equal(copy.posterior_.covariance, model.posterior_.covariance)
    np.testing.assert_array_equal(copy.posterior_.sample(3, 1), model.posterior_.sample(3, 1))
    assert copy.log_evidence_ == model.log_evidence_
    assert copy.evidence_ == model.evidence_
    assert str(copy.summary()) == str(model.summary())
    with pytest.raises(InferenceError, match="without the rows"):
        _ = copy.separation_
    if inference == "monte_carlo":
        assert copy.approximation_check_ == model.approximation_check_
    else:
        with pytest.raises(InferenceError, match="without the rows"):
            _ = copy.approximation_check_
        word = model.approximation_check_.word
        assert pickle.loads(pickle.dumps(model)).approximation_check_.word == word


def test_clones_pipelines_and_searches():
    X, y = sample()
    model = BayesianLogisticRegression(prior=2.0, inference="variational", n_draws=70)
    assert clone(model.fit(X, y)).get_params() == model.get_params()
    pipe = make_pipeline(StandardScaler(), BayesianLogisticRegression()).fit(X, y)
    direct = BayesianLogisticRegression().fit(X, y)
    np.testing.assert_allclose(pipe.predict_proba(X), direct.predict_proba(X), atol=1e-8)
    search = GridSearchCV(
        BayesianLogisticRegression(random_state=0),
        {"prior": [1e-3, 1.0, 1e6], "inference": INFERENCES},
        scoring="neg_log_loss",
        cv=3,
    ).fit(X, y)
    assert search.best_params_["prior"] < 1e6
    assert search.best_score_ > np.log(0.5)


# What is shown.


@pytest.mark.parametrize("inference", INFERENCES)
def test_the_page_says_how_the_posterior_was_found(inference):
    X, y = sample()
    model = fitted(pd.DataFrame(X, columns=["age", "bmi"]), y, prior=1.0, inference=inference)
    text, words = (
        str(model.summary()),
        {
            "laplace": ("by Laplace's approximation", "mode of the posterior"),
            "variational": ("by a variational bound", "largest bound"),
            "monte_carlo": ("by Monte Carlo", "of the draws"),
        },
    )
    for word in (*words[inference], "age", "bmi", f"{model.log_evidence_:.2f}"):
        assert word in text
    glance = model.glance()
    assert glance["log_evidence"][0] == model.log_evidence_
    assert glance["inference"][0] == inference
    assert not {"aic", "bic"} & set(glance)
    assert not [word for word in ("AIC", "BIC", " z ", " p ") if word in text]
    tidy = model.tidy(level=0.9)
    assert list(tidy) == ["term", "estimate", "std_error", "conf_low", "conf_high"]
    np.testing.assert_allclose(tidy["estimate"], model.posterior_.mean, rtol=1e-8)
    z = 1.6448536269514722  # the 95% quantile of the normal
    ends = model.posterior_.mean + z * model.posterior_.standard_deviation
    if inference == "monte_carlo":
        ends = np.quantile(model.posterior_.draws, 0.95, axis=(0, 1))
        assert f"± {model.log_evidence_error_:.2g}" in text
    else:
        assert model.log_evidence_error_ is None
    np.testing.assert_allclose(tidy["conf_high"], ends, rtol=1e-8)


def test_intervals_after_monte_carlo_are_quantiles_of_all_draws():
    X, y = load_iris(return_X_y=True)
    X = X[:, :2]
    model = fitted(X, y, inference="monte_carlo", prior=1.0)
    draws = model.posterior_.draws.reshape(-1, 3, 3)
    contrasts = (draws[:, [0, 1]] - draws[:, [2]]).reshape(len(draws), -1)
    tidy = model.tidy(level=0.8, reference=2, odds_ratios=True)
    np.testing.assert_allclose(
        tidy["conf_low"], np.exp(np.quantile(contrasts, 0.1, axis=0)), rtol=1e-8
    )
    p = softmax(draws[:, :, 0] + np.einsum("nd,skd->nsk", X[:5], draws[:, :, 1:]), axis=-1)
    np.testing.assert_allclose(model.predict_proba(X[:5]), p.mean(axis=1), rtol=1e-8)
    ends = np.moveaxis(np.quantile(p, [0.1, 0.9], axis=1), 0, -1)
    np.testing.assert_allclose(model.predict_interval(X[:5], level=0.8), ends, rtol=1e-8)


def drawn_for_arviz(y):
    X = np.random.default_rng(0).normal(size=(80, 2))
    return fitted(X, y, inference="monte_carlo", prior=1.0)


@pytest.mark.parametrize("version", ["0.23.4", "1.0.0"])
@pytest.mark.parametrize("K", [2, 3])
def test_arviz_gets_every_draw_by_name(monkeypatch, version, K):
    def from_dict(data=None, *, posterior=None, coords, dims):
        return data["posterior"] if posterior is None else posterior, coords, dims

    fake = SimpleNamespace(__version__=version, from_dict=from_dict)
    monkeypatch.setitem(sys.modules, "arviz", fake)
    model = drawn_for_arviz(np.arange(80) % K)
    values, coords, dims = model.to_arviz()
    each = model.posterior_.draws.reshape(16, 250, -1, 3)
    each = each if K > 2 else each[:, :, 0]
    np.testing.assert_array_equal(values["coef"], each[..., 1:])
    np.testing.assert_array_equal(values["intercept"], each[..., 0])
    by_class = ["class"] if K > 2 else []
    assert dims == {"coef": [*by_class, "column"], "intercept": by_class}
    assert coords["column"].tolist() == ["x0", "x1"]
    assert ("class" in coords) == (K > 2)


def test_without_arviz_there_is_a_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(ParameterError, match=r"needs the package arviz.* pip install arviz"):
        drawn_for_arviz(np.arange(80) % 2).to_arviz()


def test_a_posterior_is_shown_in_a_line():
    X, y = sample()
    assert repr(fitted(X, y).posterior_) == "<Posterior: a Gaussian over 3 coefficients>"
    drawn = fitted(X, y, inference="monte_carlo").posterior_
    assert repr(drawn) == f"<Posterior: {drawn.draws[..., 0].size} draws of 3 coefficients>"
