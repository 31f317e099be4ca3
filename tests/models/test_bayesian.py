"""Bayesian logistic regression: posterior, evidence, predictions."""

import pickle
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from bayesian_oracle import many_classes, on_a_grid, two_classes, updated
from jeffreys_oracle import exact_logistic, optimum, with_ones
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, log_expit, log_softmax, logsumexp, softmax
from sklearn.datasets import load_iris
from sklearn.metrics import log_loss

from posteriori import BayesianLogisticRegression, GaussianPrior, LogisticRegression
from posteriori.errors import (
    ApproximationWarning,
    ColumnNameError,
    IdentifiabilityWarning,
    InferenceError,
    LabelError,
    MissingValueError,
    ParameterError,
    RankDeficiencyWarning,
    ScaleError,
    ShapeError,
)
from posteriori.posterior import log_posterior as objectives
from posteriori.posterior.predictive import extended_probit_logs, quadrature_logs

INFERENCES = ["laplace", "variational", "monte_carlo"]


def sample(n=60, d=2, K=2, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d)) * np.arange(1, d + 1) + np.arange(d)
    W = random.normal(size=(d, K)) / np.arange(1, d + 1)[:, None]
    y = np.argmax(X @ W + random.gumbel(size=(n, K)), axis=1)
    assert len(np.unique(y)) == K
    return X, y


def estimator(inference="laplace", **others):
    settings = {"prior": 1.0, "inference": inference, "random_state": 0}
    return BayesianLogisticRegression(**settings | others)


def fitted(X, y, **settings):
    return estimator(**{"prior": "evidence", **settings}).fit(X, y)


# The posterior.


@pytest.mark.parametrize(("K", "a"), [(2, 0.3), (2, 4.0), (3, 0.5)])
def test_the_posterior_by_laplace_is_that_of_newton_steps(K, a):
    X, y = sample(90, K=K)
    posterior = fitted(X, y, prior=a).posterior_
    mean, covariance = (two_classes if K == 2 else many_classes)(X, y, a)
    assert_allclose(posterior.mean, mean, rtol=1e-7, atol=1e-9)
    assert_allclose(posterior.covariance, covariance, rtol=1e-7, atol=1e-10)
    assert_allclose(posterior.standard_deviation, np.diag(covariance) ** 0.5, rtol=1e-7)


def test_tables_after_monte_carlo_have_moments_and_quantiles_of_all_draws():
    model = fitted(*sample(80, K=3), inference="monte_carlo", prior=1.0)
    found, draws = model.diagnostics_, model.posterior_.draws.reshape(-1, 3, 3)
    assert list(found)[:4] == ["term", "class", "mean", "sd"]
    assert len(draws) >= 4000
    assert_allclose(found["mean"], draws.mean(axis=0).ravel(), rtol=1e-10)
    assert_allclose(found["sd"], draws.std(axis=0, ddof=1).ravel(), rtol=1e-10)
    contrasts = (draws[:, [0, 1]] - draws[:, [2]]).reshape(len(draws), -1)
    low = model.tidy(level=0.8, reference=2, odds_ratios=True)["conf_low"]
    assert_allclose(low, np.exp(np.quantile(contrasts, 0.1, axis=0)), rtol=1e-8)


# The evidence.


@pytest.mark.parametrize(("n", "slack"), [(6, 0.25), (12, 0.15), (40, 0.05)])
def test_the_evidence_is_near_that_of_brute_force(n, slack):
    X, y = sample(n, 1, seed=3)
    exact, _, _ = on_a_grid(X[:, 0], y, 0.5)
    laplace, bound, drawn = (
        fitted(X, y, prior=0.5, inference=inference) for inference in INFERENCES
    )
    assert laplace.log_evidence_ == pytest.approx(exact, abs=slack)
    assert exact - 1.0 < bound.log_evidence_ < exact
    assert drawn.log_evidence_ == pytest.approx(exact, abs=0.02)
    assert drawn.evidence_.value == pytest.approx(laplace.log_evidence_, abs=1e-12)


def test_the_evidence_of_three_classes_is_near_that_of_brute_force():
    X, y = sample(30, 1, K=3, seed=4)
    settings = {"prior": 0.7, "fit_intercept": False}
    laplace, bound, drawn = (
        fitted(X, y, inference=inference, **settings) for inference in INFERENCES
    )
    axis = np.linspace(-9, 9, 300)
    v = np.stack([g.ravel() for g in np.meshgrid(axis, axis)])
    contrasts = np.linalg.svd(np.ones((1, 3)))[2][1:]  # orthonormal, and orthogonal to ones
    theta = contrasts.T @ v
    logs = -0.35 * (v**2).sum(axis=0) + np.log(0.7 / (2 * np.pi))
    for x, k in zip(X[:, 0], y, strict=True):
        logs += theta[k] * x - logsumexp(theta * x, axis=0)
    exact = logsumexp(logs) + 2 * np.log(axis[1] - axis[0])
    assert laplace.log_evidence_ == pytest.approx(exact, abs=0.05)
    assert drawn.log_evidence_ == pytest.approx(exact, abs=0.02)
    assert exact - 2.0 < bound.log_evidence_ < exact
    weights = np.exp(logs - logsumexp(logs))
    probability = weights @ softmax(theta * 1.5, axis=0).T
    assert_allclose(drawn.predict_proba([[1.5]])[0], probability, atol=0.01)


# The prior.


PRIORS = [
    300.0,
    GaussianPrior(precision=[1.0, 50.0], mean=0.3, intercept_precision=0.5),
    GaussianPrior(precision=[[2.0, 0.5], [0.5, 1.0]]),
    GaussianPrior(precision=2.0, units="standardised"),
    "evidence",
    "ard",
]


@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_the_prior_of_a_fit_gives_the_same_fit(prior):
    X, y = sample(60)
    first = fitted(X, y, prior=prior)
    again = fitted(X, y, prior=first.prior_)
    assert again.log_evidence_ == pytest.approx(first.log_evidence_, abs=1e-6)
    assert_allclose(again.posterior_.mean, first.posterior_.mean, rtol=1e-5, atol=1e-7)
    assert_allclose(again.predict_proba(X[:9]), first.predict_proba(X[:9]), atol=1e-6)
    assert first.prior_.units == "standardised"
    if prior == 300.0:
        assert_allclose(first.prior_.precision, prior / X.var(axis=0), rtol=1e-10)
        assert first.prior_.intercept_precision == pytest.approx(0.01)


# The predictive distribution.


@pytest.mark.parametrize("inference", INFERENCES)
@pytest.mark.parametrize("K", [2, 3])
def test_predictions_average_draws_and_intervals_are_their_quantiles(K, inference):
    X, y = sample(80, K=K)
    model, new = fitted(X, y, prior=0.5, inference=inference), X[:6] * 3
    is_drawn = inference == "monte_carlo"
    draws = model.posterior_.draws if is_drawn else model.posterior_.sample(100_000, 1)
    theta = draws.reshape(draws.size // (3 * K) if K > 2 else -1, K if K > 2 else 1, 3)
    a = theta[:, :, 0] + np.einsum("nd,skd->nsk", new, theta[:, :, 1:])
    p = softmax(a, axis=2) if K > 2 else np.concatenate([expit(-a), expit(a)], axis=2)
    if K > 2:
        assert_allclose(theta.sum(axis=1), 0.0, atol=1e-12)
    found, ends = model.predict_proba(new), model.predict_interval(new, level=0.9)
    assert_allclose(found, p.mean(axis=1), atol=1e-8 if is_drawn else 0.01)
    assert_allclose(found.sum(axis=1), 1.0, atol=1e-12)
    quantiles = np.moveaxis(np.quantile(p, [0.05, 0.95], axis=1), 0, 2)
    expected = quantiles if K > 2 else quantiles[:, 1]
    assert_allclose(ends, expected, atol=2e-5 if is_drawn else 0.02)
    labels = model.sample_predictive(new, n=8000, random_state=1)
    shares = np.stack([(labels == label).mean(axis=0) for label in model.classes_], axis=1)
    assert_allclose(shares, found, atol=0.025)
    if not is_drawn:  # the formulas, with the moments of the activations
        posterior, Phi = model.posterior_, with_ones(new)
        mean = Phi @ posterior.mean.reshape(-1, 3).T
        covariance = posterior.covariance.reshape(*mean.shape[1:], 3, *mean.shape[1:], 3)
        covariance = np.einsum("ni,kilj,nj->nkl", Phi, covariance, Phi)
        model.predictive = "probit"
        closed = model.predict_log_proba(new)
        assert_allclose(np.exp(closed), p.mean(axis=1), atol=0.04)
        if K > 2:
            assert_allclose(closed, extended_probit_logs(mean, covariance), rtol=1e-8)
        else:
            mean, variance = mean[:, 0], covariance[:, 0, 0]
            odds = mean / np.sqrt(1 + np.pi * variance / 8)  # (4.155)
            assert_allclose(closed[:, 1], log_expit(odds), rtol=1e-8)
            assert_allclose(np.log(found[:, 1]), quadrature_logs(mean, variance)[0], rtol=1e-8)
            assert_array_equal(model.predict(new), (mean > 0).astype(int))
    new[2] = 1e308, -1e308
    tiny = fitted(1e-3 * X, y, inference=inference)
    with pytest.raises(ScaleError, match="activations of row 2 do not fit in a double"):
        tiny.predict_proba(new)


@pytest.mark.parametrize("inference", INFERENCES)
def test_an_offset_is_added_to_the_activation(inference):
    X, y = sample(60)
    offset = np.linspace(-2, 2, 60)
    wide = np.column_stack([X, offset])
    known = GaussianPrior(precision=[1.0, 1.0, 1e12], mean=[0.0, 0.0, 1.0], intercept_precision=1.0)
    slopes = GaussianPrior(precision=[1.0, 1.0], intercept_precision=1.0)
    plain = BayesianLogisticRegression(prior=slopes, inference=inference, random_state=0)
    plain.fit(X, y, offset=offset)
    as_column = fitted(wide, y, prior=known, inference=inference)
    slack = 0.02 if inference == "monte_carlo" else 1e-5
    p, ends = plain.predict_proba(X, offset=offset), plain.predict_interval(X, offset=offset)
    assert_allclose(p, as_column.predict_proba(wide), atol=slack)
    assert_allclose(ends, as_column.predict_interval(wide), atol=2 * slack)


# Laws.


def test_a_weight_is_a_repeated_row():
    X, y = sample(40)
    weight = np.arange(40) % 3 + 1
    for model in map(estimator, INFERENCES):
        once = model.fit(X, y, sample_weight=weight)
        found = once.log_evidence_, once.posterior_.mean, once.posterior_.covariance
        twice = model.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
        expected = twice.log_evidence_, twice.posterior_.mean, twice.posterior_.covariance
        for one, other in zip(found, expected, strict=True):
            assert_allclose(one, other, rtol=1e-6)


# The check of the approximation, and inference="auto".


def test_a_gaussian_is_poor_where_few_rows_are_separated():
    X = np.linspace(-1.0, 3.0, 6)[:, None]
    y = X[:, 0] > 1.0
    laplace, drawn = (fitted(X, y, prior=0.01, inference=name) for name in ("laplace", "auto"))
    assert laplace.approximation_check_.word == "poor"
    assert "Use inference='monte_carlo'." in str(laplace.approximation_check_)
    assert drawn.inference_ == "monte_carlo"
    assert drawn.approximation_check_.word == "good"
    _, points, weights = on_a_grid(X[:, 0], y, 0.01)
    exact = weights @ expit(points @ with_ones(X).T)
    assert abs(laplace.predict_proba(X)[:, 1] - exact).max() > 0.08
    assert_allclose(drawn.predict_proba(X)[:, 1], exact, atol=0.03)


def test_the_default_draws_where_laplace_is_poor_on_iris():
    X, y = load_iris(return_X_y=True)
    laplace = BayesianLogisticRegression(inference="laplace").fit(X, y)
    model = BayesianLogisticRegression(random_state=0, n_draws=200).fit(X, y)
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
@pytest.mark.parametrize("prior", [0.01, "evidence", "ard"])
@pytest.mark.parametrize("inference", INFERENCES)
def test_separated_classes_have_finite_answers(inference, prior):
    X, _ = sample(40)
    model = fitted(X, X[:, 0] > 0, prior=prior, inference=inference)
    for found in (model.coef_, model.posterior_.covariance, model.log_evidence_):
        assert np.isfinite(found).all()
    p, logs, ends = model.predict_proba(X), model.predict_log_proba(X), model.predict_interval(X)
    assert np.isfinite(logs).all()
    assert (p > 0).all()
    assert_allclose(p.sum(axis=1), 1.0, atol=1e-10)
    assert (np.isfinite(ends) & (ends >= 0) & (ends <= 1)).all()


# Errors with names.


@pytest.mark.parametrize("prior", [None, 0.0, GaussianPrior(precision=[[1.0, 1.0], [1.0, 1.0]])])
def test_evidence_needs_a_proper_prior(prior):
    with pytest.raises(InferenceError, match=r"Evidence needs a proper prior.*'evidence'"):
        fitted(*sample(), prior=prior)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"prior": GaussianPrior(precision=[[1.0, 2.0], [2.0, 1.0]])}, "eigenvalues of zero"),
        ({"prior": GaussianPrior(precision=[[1.0, 0.5], [0.0, 1.0]])}, "not symmetric"),
        ({"prior": GaussianPrior(precision=[1.0, 1.0, 1.0])}, "3 numbers, but there are 2"),
        ({"inference": "mcmc"}, "inference='mcmc' is not understood"),
        ({"predictive": "kappa"}, "predictive='kappa' is not understood"),
        ({"n_draws": 0}, "n_draws=0 is not a number of draws"),
        ({"random_state": "x"}, "random_state='x' is not a seed"),
        ({"inference": "monte_carlo", "predictive": "probit"}, "is for a Gaussian posterior"),
        ({"predictive": "quadrature", "K": 3}, "is for two classes; there are 3"),
        ({"inference": "variational", "prior": "jeffreys"}, "is for a Gaussian.*Use .*'laplace'"),
    ],
)
def test_a_setting_that_cannot_be_honoured_is_an_error(settings, message):
    X, y = sample(K=settings.pop("K", 2))
    with pytest.raises(ParameterError, match=message):
        fitted(X, y, **settings)


@pytest.mark.parametrize("inference", ["variational", "monte_carlo"])
def test_what_belongs_to_the_mode_is_an_error_for_a_mean(inference):
    model = fitted(*sample(), prior=1.0, inference=inference)
    for wrong in ({"intervals": "profile"}, {"errors": "robust"}):
        with pytest.raises(ParameterError, match="is for the mode"):
            model.tidy(**wrong)
    for name in ("aic_", "bic_"):
        with pytest.raises(InferenceError, match="the likelihood at its maximum"):
            getattr(model, name)
    if inference == "variational":
        with pytest.raises(InferenceError, match="was not drawn from"):
            _ = model.diagnostics_


# Pickles, tables, and draws for arviz.


@pytest.mark.parametrize("inference", INFERENCES)
def test_a_pickle_has_the_posterior_but_not_the_rows(inference):
    X, y = sample(K=3)
    model = fitted(X, y, prior=1.0, inference=inference)
    copy = pickle.loads(pickle.dumps(model))
    assert_array_equal(copy.predict_proba(X), model.predict_proba(X))
    assert_array_equal(copy.predict_interval(X), model.predict_interval(X))
    assert copy.evidence_ == model.evidence_
    assert str(copy.summary()) == str(model.summary())
    for name in ("separation_", *(["approximation_check_"] * (inference != "monte_carlo"))):
        with pytest.raises(InferenceError, match="without the rows"):
            getattr(copy, name)
    word = model.approximation_check_.word
    assert pickle.loads(pickle.dumps(model)).approximation_check_.word == word


@pytest.mark.parametrize("inference", INFERENCES)
def test_the_summary_names_the_inference_and_has_its_intervals(inference):
    X, y = sample()
    model = fitted(pd.DataFrame(X, columns=["age", "bmi"]), y, prior=1.0, inference=inference)
    words = {
        "laplace": ("by Laplace's approximation", "mode of the posterior"),
        "variational": ("by a variational bound", "largest bound"),
        "monte_carlo": ("by Monte Carlo", "of the draws"),
    }
    text = str(model.summary())
    for word in (*words[inference], "age", "bmi", f"{model.log_evidence_:.2f}"):
        assert word in text
    glance = model.glance()
    assert glance["log_evidence"][0] == model.log_evidence_
    assert glance["inference"][0] == inference
    assert not {"aic", "bic"} & set(glance)
    assert not [word for word in ("AIC", "BIC", " z ", " p ") if word in text]
    tidy = model.tidy(level=0.9)
    assert list(tidy) == ["term", "estimate", "std_error", "conf_low", "conf_high"]
    assert_allclose(tidy["estimate"], model.posterior_.mean, rtol=1e-8)
    z = 1.6448536269514722  # the 95% quantile of the normal
    ends = model.posterior_.mean + z * model.posterior_.standard_deviation
    if inference == "monte_carlo":
        ends = np.quantile(model.posterior_.draws, 0.95, axis=(0, 1))
        assert f"± {model.log_evidence_error_:.2g}" in text
    else:
        assert model.log_evidence_error_ is None
    assert_allclose(tidy["conf_high"], ends, rtol=1e-8)


def arviz_of(monkeypatch, version):
    """In place of the package, a function that returns its arguments."""

    def from_dict(data=None, *, coords, dims, **groups):
        assert (data is None) == (version[0] == "0")
        return groups if data is None else data, coords, dims

    fake = SimpleNamespace(__version__=version, from_dict=from_dict)
    monkeypatch.setitem(sys.modules, "arviz", fake)


@pytest.mark.parametrize(("version", "K"), [("0.23.4", 2), ("1.0.0", 3)])
def test_arviz_gets_every_draw_by_name(monkeypatch, version, K):
    arviz_of(monkeypatch, version)
    X, y = np.random.default_rng(0).normal(size=(80, 2)), np.arange(80) % K
    model = fitted(X, y, inference="monte_carlo", prior=1.0)
    groups, coords, dims = model.to_arviz()
    chains, steps, _ = model.posterior_.draws.shape
    each = model.posterior_.draws.reshape(chains, steps, -1, 3)
    values, each = groups["posterior"], each if K > 2 else each[:, :, 0]
    assert_array_equal(values["coef"], each[..., 1:])
    assert_array_equal(values["intercept"], each[..., 0])
    by_class = ["class"] if K > 2 else []
    assert dims == {"coef": [*by_class, "column"], "intercept": by_class, "y": ["row"]}
    assert coords["column"].tolist() == ["x0", "x1"]
    assert ("class" in coords) == (K > 2)
    p = model.predict_proba(X)[np.arange(80), y]
    likelihood = np.exp(groups["log_likelihood"]["y"])
    assert likelihood.shape == (chains, steps, 80)
    assert_allclose(likelihood.mean(axis=(0, 1)), p, rtol=1e-9)
    assert_array_equal(groups["observed_data"]["y"], y)
    drawn = groups["posterior_predictive"]["y"]
    assert drawn.shape == likelihood.shape
    assert_allclose((drawn == 1).mean(axis=(0, 1)), model.predict_proba(X)[:, 1], atol=0.05)
    # Without Monte Carlo: draws of the Gaussian.
    model = fitted(X, y, prior=1.0)
    coefficients = model.to_arviz(n_draws=4000)[0]["posterior"]["coef"][0].reshape(4000, -1)
    away = abs(coefficients.mean(axis=0) - np.ravel(model.coef_))
    assert (away < 0.1 * model.posterior_.standard_deviation.reshape(-1, 3)[:, 1:].ravel()).all()
    assert list(model.to_arviz(by_row=False)[0]) == ["posterior"]
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(ParameterError, match=r"needs the package arviz.* pip install arviz"):
        model.to_arviz()


RANDOM = np.random.default_rng(4)
X = RANDOM.normal(size=(30, 2)) + 1.0
Y = (X[:, 0] + RANDOM.logistic(size=30) > 1.0).astype(int)


def test_laplace_under_jeffreys_prior_has_mode_and_curvature_but_no_evidence():
    model = fitted(X, Y, prior="jeffreys")
    mode, value, hessian = optimum(exact_logistic, with_ones(X), Y, model.posterior_.mean.round(3))
    assert_allclose(model.posterior_.mean, mode, rtol=1e-8)
    assert_allclose(model.posterior_.covariance, np.linalg.inv(-hessian), rtol=1e-9)
    assert model.penalised_log_likelihood_ == pytest.approx(value, rel=1e-9)
    assert model.prior_ == "jeffreys"
    with pytest.raises(InferenceError, match=r"no evidence with prior='jeffreys'.*bic_"):
        _ = model.log_evidence_
    assert model.glance()["log_evidence"].tolist() == [None]
    assert "evidence" not in str(model.summary())


def test_auto_is_laplace_under_jeffreys_prior_and_warns_of_separated_classes():
    model = fitted(X, Y, inference="auto", prior="jeffreys")
    assert (model.inference_, model.approximation_check_.word) == ("laplace", "usable")
    x = np.array([[0.0], [1.0], [2.0], [4.0], [5.0], [6.0]])
    with pytest.warns(ApproximationWarning, match=r"far from .* Use a Gaussian prior and inf"):
        apart = fitted(x, x[:, 0] > 3, prior="jeffreys", inference="auto")
    assert (apart.inference_, apart.approximation_check_.word) == ("laplace", "poor")
    assert "There is no Monte Carlo" in apart.inference_reason_


def test_a_posterior_under_jeffreys_prior_is_the_prior_of_more_rows():
    model = fitted(X[:20], Y[:20], prior="jeffreys")
    gaussian = model.posterior_
    Phi, P = with_ones(X[20:]), np.linalg.inv(gaussian.covariance)
    w = model.update(X[20:], Y[20:]).posterior_.mean
    assert model.prior_ is gaussian
    assert_allclose(P @ (w - gaussian.mean), Phi.T @ (Y[20:] - expit(Phi @ w)), atol=1e-4)
    with pytest.raises(InferenceError, match="no evidence"):
        _ = model.log_evidence_
    assert model.evidence_.value < 0  # of the last rows, whose prior is a Gaussian
    assert "rows of the last fit." in " ".join(str(model.summary()).split())
    twice = np.column_stack([X, X[:, 0] - X[:, 1]])
    with pytest.warns(RankDeficiencyWarning):
        model = fitted(twice, Y, prior="jeffreys")
    with pytest.raises(ParameterError, match="do not determine some combination of 'x0'"):
        model.update(twice, Y)


RANDOM_WIDE = np.random.default_rng(3)
N, D = 900, 80
X_WIDE = RANDOM_WIDE.normal(size=(N, D)) * 3.0 + 1.0
SLOPES = RANDOM_WIDE.normal(size=(D, 3)) * 0.08
NOISY = X_WIDE @ SLOPES + RANDOM_WIDE.gumbel(size=(N, 3))
LABELS = {"two": NOISY[:, :2].argmax(axis=1), "three": NOISY.argmax(axis=1)}
NEW = RANDOM_WIDE.normal(size=(50, D)) * 4.0


@pytest.fixture
def wide(monkeypatch):
    """Problems of more than forty parameters count as wide."""
    monkeypatch.setattr(objectives, "WIDE", 40)


@pytest.mark.usefixtures("wide")
def test_what_would_need_the_whole_covariance_is_an_error():
    for inference in ("variational", "monte_carlo"):
        with pytest.raises(ParameterError, match=r"81 coefficients, which has 6,561 numbers"):
            fitted(X_WIDE, LABELS["two"], inference=inference)
    model = fitted(X_WIDE, LABELS["two"], inference="auto")
    assert model.inference_ == "laplace"
    assert model.prior_reason_ == "by the diagonal of the second derivatives"
    assert "was not checked" in model.approximation_check_.sentence
    assert "count as independent" in " ".join(str(model.summary()).split())
    with pytest.raises(InferenceError, match="it has no covariance"):
        _ = model.posterior_.covariance
    before = model.predict_proba(NEW)
    with pytest.raises(InferenceError, match="cannot be the prior of more rows"):
        model.update(X_WIDE, LABELS["two"])
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(NEW), before)
    mode = LogisticRegression(prior=GaussianPrior(2.0, intercept_precision=0.01))
    assert np.isfinite(mode.fit(X_WIDE, LABELS["two"]).log_evidence_)
    for tidy in (model, mode):
        with pytest.raises(InferenceError, match="was not computed"):
            tidy.tidy(errors="robust")


@pytest.mark.parametrize(("name", "intercept"), [("two", False), ("three", True)])
def test_very_many_coefficients_have_the_diagonal_of_the_curvature(name, intercept, request):
    settings = {"prior": 2.0, "fit_intercept": intercept}
    exact = fitted(X_WIDE, LABELS[name], **settings)
    precision = exact._inference.free_precision
    request.getfixturevalue("wide")
    model = fitted(X_WIDE, LABELS[name], **settings)
    assert_allclose(model.posterior_.mean, exact.posterior_.mean, atol=1e-7)
    assert_allclose(model.posterior_.free.precision, np.diagonal(precision), rtol=1e-6)
    away = 0.5 * (np.log(np.diagonal(precision)).sum() - np.linalg.slogdet(precision)[1])
    assert model.log_evidence_ == pytest.approx(exact.log_evidence_ - away, abs=1e-5)
    # In the user's units.
    shown, variance = exact.posterior_, 1 / np.diagonal(precision)
    to_user = shown.in_user_units(np.eye(len(variance))) - shown.in_user_units(0 * variance)
    deviations = np.sqrt(variance @ to_user**2)
    assert_allclose(model.posterior_.standard_deviation, deviations, rtol=1e-6)
    # Along rows.
    drawn = fitted(X_WIDE, LABELS[name], **settings, predictive="monte_carlo")
    assert_allclose(drawn.predict_proba(NEW), model.predict_proba(NEW), atol=0.04)


# Updates.


def test_a_variational_posterior_hands_on_the_curvature_at_its_mean():
    random = np.random.default_rng(0)  # classes that hardly overlap
    X = random.normal(size=(100, 3))
    y = X @ [3.0, -3.0, 1.5] + 0.3 + random.logistic(size=100) > 0
    model = estimator("variational").fit(X[:60], y[:60])
    before, laplace = model.posterior_, estimator().fit(X[:60], y[:60]).posterior_
    model.update(X[60:], y[60:])
    assert_array_equal(model.prior_.mean, before.mean)
    assert (model.prior_.standard_deviation > 1.2 * before.standard_deviation).all()
    assert_allclose(model.prior_.standard_deviation, laplace.standard_deviation, rtol=0.2)


def test_draws_are_handed_on_by_mean_and_covariance():
    X, y = sample(40, 3)
    model = estimator("monte_carlo").fit(X, y)
    posterior = model.posterior_
    penalty, draws = posterior.as_penalty(), posterior.free.pooled
    assert_allclose(penalty.mean[0], draws.mean(axis=0), rtol=1e-12)
    assert_allclose(penalty.precision @ np.cov(draws.T), np.eye(4), atol=1e-9)
    model.update(X, y)
    assert model.inference_ == "monte_carlo"
    assert (model.posterior_.standard_deviation < posterior.standard_deviation).all()


def test_the_posterior_of_all_classes_together_is_the_prior():
    X, y = sample(120, 3, K=3)
    model = estimator().fit(X[:60], y[:60])
    before, posterior = model.log_evidence_, model.posterior_
    expected = updated(X[60:], y[60:], posterior.mean, posterior.covariance)
    found = model.update(X[60:], y[60:]).posterior_
    assert model.prior_ is posterior
    assert model.log_evidence_ == pytest.approx(before + model.evidence_.value, abs=1e-10)
    logs = log_softmax(X[60:] @ model.coef_.T + model.intercept_, axis=1)
    fit = np.take_along_axis(logs, y[60:, None], axis=1).sum()
    assert model.log_likelihood_ == pytest.approx(fit, abs=1e-9)  # of the last rows
    assert_allclose(found.mean, expected[0], rtol=1e-6, atol=1e-8)
    assert_allclose(found.covariance, expected[1], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("unit", [1, 0.25])
def test_rows_are_counted_over_all_fits(unit):
    X, y = sample(100, 3)
    weight = np.full(100, unit)
    parts = [(X[i], y[i], weight[i]) for i in np.split(np.arange(100), [60, 80])]
    model = estimator().fit(*parts[0])
    assert model.glance()["n_obs_total"][0] == 60 * unit
    assert "Rows in all" not in str(model.summary())
    assert "of the last" not in str(model.approximation_check_)
    model = pickle.loads(pickle.dumps(model.update(*parts[1]))).update(*parts[2])
    assert model.approximation_check_.word != "good"
    words = f"This check is of the last {20 * unit:g} of {100 * unit:g} rows"
    assert words in str(model.approximation_check_)
    glance, page = model.glance(), " ".join(str(model.summary()).split())
    assert glance[["n_obs", "n_obs_total", "n_fits"]].iloc[0].tolist() == [20 * unit, 100 * unit, 3]
    assert f" Rows {20 * unit:g} " in page
    assert f"Rows in all {100 * unit:g}, 3 fits" in page
    assert "log evidence is that of all rows" in page
    assert "Prior posterior before" in page
    assert model.fit(X, y).glance()["n_fits"][0] == 1


def test_the_first_batch_names_the_classes():
    X, y = sample(120, 3, K=3)
    few = y[:40] < 2
    model = estimator().partial_fit(X[:40][few], y[:40][few], classes=[0, 1, 2])
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.predict_proba(X)[:, 2].mean() < 0.2
    model.partial_fit(X[40:], y[40:], classes=[2, 1, 0])
    whole = estimator().fit(X, y)
    assert abs(model.predict_proba(X) - whole.predict_proba(X)).mean() < 0.05
    with pytest.raises(ParameterError, match=r"not those of the first batch.*\[0, 1, 2\]"):
        model.partial_fit(X, y, classes=[0, 1])


def test_an_update_that_fails_changes_nothing():
    X, y = sample(90, 3, K=3)
    frame = pd.DataFrame(X, columns=list("abc"))
    model = estimator().fit(frame, y)
    before, evidence = model.predict_proba(frame), model.log_evidence_
    for error, arguments in (
        (ColumnNameError, (frame.rename(columns={"a": "z"}), y)),
        (LabelError, (frame, y + 7)),
        (MissingValueError, (frame.assign(a=np.nan), y)),
        (ShapeError, (frame, y, None, [1.0])),
    ):
        with pytest.raises(error):
            model.update(*arguments)
        assert_array_equal(model.predict_proba(frame), before)
    assert model.update(frame, y).log_evidence_ < evidence


# From few rows on.


def in_units(n=200):
    random = np.random.default_rng(0)
    Z = random.normal(size=(n, 3))
    y = (Z @ [1.0, -1.0, 0.5] + 0.3 + random.logistic(size=n) > 0).astype(int)
    return Z * [1.0, 100.0, 0.01] + [5.0, 1000.0, 0.0], y


@pytest.mark.filterwarnings("ignore:The evidence grows")  # of the first rows, which are separated
@pytest.mark.parametrize("inference", ["laplace", "variational"])
def test_few_rows_that_come_one_by_one_are_fitted_together(inference):
    X, y = in_units(15)
    model = estimator(inference, prior="evidence")
    for i in range(15):
        model.partial_fit(X[i : i + 1], y[i : i + 1], classes=[0, 1])
    whole = estimator(inference, prior="evidence").fit(X, y)
    assert model.log_evidence_ == pytest.approx(whole.log_evidence_, abs=1e-6)
    assert model.prior_.precision == pytest.approx(whole.prior_.precision, rel=1e-3)
    assert_allclose(model.predict_proba(X), whole.predict_proba(X), atol=1e-4)
    assert model.glance()["n_obs_total"][0] == 15


def test_a_chosen_prior_that_fixes_coefficients_is_a_warning_at_the_update():
    X, y = in_units()
    model = estimator(prior="evidence").fit(X[:10], y[:10])
    assert model.prior_.precision > 1e6
    with pytest.warns(IdentifiabilityWarning, match=r"The 10 rows .* 0, 1, 2, .* does not change"):
        model.update(X[10:100], y[10:100])
    model.update(X[100:], y[100:])  # one warning is enough
    estimator(prior="evidence").fit(X[:100], y[:100]).update(X[100:], y[100:])
