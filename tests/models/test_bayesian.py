"""Bayesian logistic regression as a whole, against brute force."""

import pickle

import numpy as np
import pandas as pd
import pytest
from bayesian_oracle import INTERCEPT, Exact, many_classes, two_classes
from scipy.special import expit, logsumexp, ndtr, softmax

from posteriori import BayesianLogisticRegression, GaussianPrior, LogisticRegression
from posteriori.errors import IdentifiabilityWarning, InferenceError

INFERENCES = ["laplace", "variational", "monte_carlo"]


def sample(n=60, d=2, K=2, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d)) * np.arange(1, d + 1) + np.arange(d)
    W = random.normal(size=(d, K)) / np.arange(1, d + 1)[:, None]
    y = np.argmax(X @ W + random.gumbel(size=(n, K)), axis=1)
    assert len(np.unique(y)) == K
    return X, y


def fitted(X, y, **settings):
    return BayesianLogisticRegression(
        **{"inference": "laplace", "random_state": 0, **settings}
    ).fit(X, y)


def one_slope(n=12, seed=3):
    X, y = sample(n, 1, seed=seed)
    return X + 2.0, y


def separated(n=8):
    x = np.linspace(-2.0, 2.0, n)
    return x[:, None] + 1.0, (x > 0).astype(int)


# The posterior.


@pytest.mark.parametrize("a", [0.3, 4.0])
def test_the_posterior_of_two_classes_is_that_of_newton_steps(a):
    X, y = sample()
    posterior = fitted(X, y, prior=a).posterior_
    mean, covariance = two_classes(X, y, a)
    np.testing.assert_allclose(posterior.mean, mean, rtol=1e-8)
    np.testing.assert_allclose(posterior.covariance, covariance, rtol=1e-8)
    np.testing.assert_allclose(posterior.standard_deviation, np.diag(covariance) ** 0.5, rtol=1e-8)


def test_coefficients_and_errors_are_those_of_the_posterior():
    X, y = sample()
    for inference in INFERENCES:
        model = fitted(X, y, prior=1.0, inference=inference)
        theta = np.concatenate([model.intercept_, model.coef_[0]])
        np.testing.assert_allclose(theta, model.posterior_.mean, rtol=1e-10)
        np.testing.assert_allclose(model.coef_covariance_, model.posterior_.covariance, rtol=1e-8)
        np.testing.assert_allclose(model.tidy()["estimate"], theta, rtol=1e-10)
        errors = np.diag(model.posterior_.covariance) ** 0.5
        np.testing.assert_allclose(model.tidy()["std_error"], errors, rtol=1e-8)


def test_the_posterior_of_three_classes_is_that_of_newton_steps():
    X, y = sample(90, K=3)
    posterior = fitted(X, y, prior=0.5).posterior_
    mean, covariance = many_classes(X, y, 0.5)
    np.testing.assert_allclose(posterior.mean, mean, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(posterior.covariance, covariance, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("inference", INFERENCES)
def test_classes_sum_to_zero_in_mean_and_covariance(inference):
    X, y = sample(90, K=3)
    posterior = fitted(X, y, inference=inference).posterior_
    np.testing.assert_allclose(posterior.mean.reshape(3, 3).sum(axis=0), 0.0, atol=1e-12)
    values = np.linalg.eigvalsh(posterior.covariance)
    assert abs(values[:3]).max() < 1e-12 * values[-1]
    assert values[3] > 1e-4 * values[-1]  # six directions are determined
    draws = posterior.sample(50, random_state=1).reshape(50, 3, 3)
    np.testing.assert_allclose(draws.sum(axis=1), 0.0, atol=1e-12)


@pytest.mark.parametrize("inference", ["laplace", "variational"])
def test_units_change_the_posterior_as_they_change_columns(inference):
    X, y = sample(80)
    scale, shift = np.array([1e120, 1e-90]), np.array([3.0, 1e6])
    plain = fitted(X, y, inference=inference)
    wild = fitted((X + shift) * scale, y, inference=inference)
    slopes = plain.posterior_.mean[1:]
    np.testing.assert_allclose(wild.posterior_.mean[1:] * scale, slopes, rtol=1e-6)
    errors = plain.posterior_.standard_deviation[1:]
    np.testing.assert_allclose(wild.posterior_.standard_deviation[1:] * scale, errors, rtol=1e-6)
    assert wild.posterior_.mean[0] == pytest.approx(plain.posterior_.mean[0] - slopes @ shift)
    assert wild.log_evidence_ == pytest.approx(plain.log_evidence_, abs=1e-6)
    np.testing.assert_allclose(
        wild.predict_proba((X + shift) * scale), plain.predict_proba(X), atol=1e-6
    )


def test_draws_have_the_moments_of_the_posterior():
    X, y = sample(60, K=3)
    posterior = fitted(X, y, prior=1.0).posterior_
    draws = posterior.sample(100_000, random_state=0)
    error = posterior.standard_deviation / 100_000**0.5
    assert (abs(draws.mean(axis=0) - posterior.mean) < 5 * error).all()
    scale = np.outer(posterior.standard_deviation, posterior.standard_deviation)
    assert (abs(np.cov(draws.T) - posterior.covariance) < 0.02 * scale).all()


def test_monte_carlo_has_the_moments_of_the_exact_posterior():
    X, y = one_slope()
    exact = Exact.of(X[:, 0], y, 0.5)
    model = fitted(X, y, prior=0.5, inference="monte_carlo", n_draws=20_000)
    found, error = model.posterior_, np.diag(exact.covariance) ** 0.5
    assert (abs(found.mean - exact.mean) < 5 * error / model.diagnostics_["ess_bulk"] ** 0.5).all()
    np.testing.assert_allclose(found.standard_deviation, error, rtol=0.05)
    np.testing.assert_allclose(model.diagnostics_["mean"], found.mean, rtol=1e-10)
    np.testing.assert_allclose(model.diagnostics_["sd"], found.standard_deviation, rtol=1e-10)
    assert found.draws.shape[2] == 2
    assert found.draws.size >= 2 * 20_000
    np.testing.assert_allclose(found.draws.reshape(-1, 2).mean(axis=0), found.mean, rtol=1e-10)


@pytest.mark.parametrize("inference", ["laplace", "variational"])
def test_a_gaussian_has_no_draws(inference):
    model = fitted(*sample(), inference=inference)
    for ask in (lambda: model.posterior_.draws, lambda: model.diagnostics_, model.to_arviz):
        with pytest.raises(InferenceError, match="was not drawn from"):
            ask()


def test_a_factor_has_the_posterior_of_its_indicators():
    X, y = sample(90)
    level = np.array(["low", "mid", "top"])[np.digitize(X[:, 1], [0.0, 2.0])]
    frame = pd.DataFrame({"x": X[:, 0], "level": pd.Categorical(level)})
    coded = np.column_stack([X[:, 0], level == "mid", level == "top"]).astype(float)
    model = fitted(frame, y, prior=1.0)
    mean, covariance = two_classes(coded, y, 1.0)
    np.testing.assert_allclose(model.posterior_.mean, mean, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(model.posterior_.covariance, covariance, rtol=1e-8, atol=1e-10)
    terms = list(model.tidy()["term"])
    assert [*terms[:2], "mid" in terms[2], "top" in terms[3]] == ["intercept", "x", True, True]


# The evidence.


@pytest.mark.parametrize(("n", "slack"), [(6, 0.25), (12, 0.15), (40, 0.05)])
def test_the_evidence_is_near_that_of_brute_force(n, slack):
    X, y = one_slope(n)
    exact = Exact.of(X[:, 0], y, 0.5).log_evidence
    laplace, bound, drawn = (
        fitted(X, y, prior=0.5, inference=inference) for inference in INFERENCES
    )
    assert laplace.log_evidence_ == pytest.approx(exact, abs=slack)
    assert exact - 1.0 < bound.log_evidence_ < exact
    assert drawn.log_evidence_ == pytest.approx(exact, abs=0.02)
    assert drawn.evidence_.value == pytest.approx(laplace.log_evidence_, abs=1e-12)


@pytest.mark.parametrize("a", [0.02, 0.3, 2.0])
def test_the_bound_is_below_the_evidence_of_separated_classes(a):
    X, y = separated()
    exact = Exact.of(X[:, 0], y, a)
    model = fitted(X, y, prior=a, inference="variational")
    assert model.log_evidence_ < exact.log_evidence
    steps = np.diff(model.lower_bounds_)
    assert (steps >= -1e-10).all()
    assert model.lower_bounds_[-1] == model.log_evidence_


@pytest.mark.parametrize("a", [0.02, 0.3, 2.0])
def test_draws_know_the_evidence_of_separated_classes(a):
    X, y = separated()
    exact = Exact.of(X[:, 0], y, a)
    model = fitted(X, y, prior=a, inference="monte_carlo")
    assert model.log_evidence_ == pytest.approx(exact.log_evidence, abs=0.03)
    np.testing.assert_allclose(model.posterior_.mean, exact.mean, rtol=0.1)
    x = np.array([-1.0, 0.5, 1.5, 4.0])[:, None]
    np.testing.assert_allclose(model.predict_proba(x)[:, 1], exact.probability(x), atol=0.02)


def test_the_evidence_is_the_sum_of_its_parts():
    X, y = one_slope(20)
    model = fitted(X, y, prior=0.5)
    parts, (b, w) = model.evidence_, model.posterior_.mean
    activation = b + w * X[:, 0]
    fit = np.log(expit(np.where(y == 1, activation, -activation))).sum()
    middle = b + w * X.mean()
    prior = -0.5 * (INTERCEPT * middle**2 + 0.5 * w**2)
    prior += 0.5 * np.log(INTERCEPT * 0.5) - np.log(2 * np.pi)
    volume = np.log(2 * np.pi) + 0.5 * np.linalg.slogdet(model.posterior_.covariance)[1]
    assert parts.log_likelihood == pytest.approx(fit, abs=1e-10)
    assert parts.log_occam_factor == pytest.approx(prior + volume, abs=1e-8)
    assert model.log_evidence_ == pytest.approx(fit + prior + volume, abs=1e-8)


def test_the_evidence_of_three_classes_is_near_that_of_brute_force():
    X, y = sample(30, 1, K=3, seed=4)
    settings = {"prior": 0.7, "fit_intercept": False}
    laplace, bound, drawn = (
        fitted(X, y, inference=inference, **settings) for inference in INFERENCES
    )
    axis = np.linspace(-9, 9, 500)
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
    error = np.sqrt(weights @ (theta - (theta @ weights)[:, None]).T ** 2)
    assert (abs(drawn.posterior_.mean - theta @ weights) < 0.1 * error).all()
    probability = weights @ softmax(theta * 1.5, axis=0).T
    np.testing.assert_allclose(drawn.predict_proba([[1.5]])[0], probability, atol=0.01)


# The prior.


@pytest.mark.parametrize("prior", ["evidence", "ard"])
def test_what_is_told_of_a_chosen_prior_is_true_of_the_one_reported(prior):
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = X[:, 0] > 0
    with pytest.warns(IdentifiabilityWarning, match="standard deviation of 100 "):
        model = fitted(X, y, prior=prior)
    assert np.min(model.prior_.precision) ** -0.5 == pytest.approx(100.0)
    model = fitted(X, y, prior=prior, inference="variational")  # a warning would be an error
    assert np.min(model.prior_.precision) != pytest.approx(1e-4, rel=0.01)
    laplace = fitted(X, y, prior=model.prior_)
    assert model.evidence_.value == pytest.approx(laplace.log_evidence_, abs=1e-6)


GIVEN = [
    1.0,
    300.0,
    GaussianPrior(precision=[1.0, 50.0], mean=0.3, intercept_precision=0.5),
    GaussianPrior(precision=[[2.0, 0.5], [0.5, 1.0]]),
    GaussianPrior(precision=2.0, units="standardised"),
]


@pytest.mark.parametrize("n", [60, 100_000])
@pytest.mark.parametrize("prior", [*GIVEN, "evidence", "ard"], ids=str)
def test_the_prior_of_a_fit_gives_the_same_fit(prior, n):
    X, y = sample(n)
    first = fitted(X, y, prior=prior)
    again = fitted(X, y, prior=first.prior_)
    assert again.log_evidence_ == pytest.approx(first.log_evidence_, abs=1e-6)
    np.testing.assert_allclose(again.posterior_.mean, first.posterior_.mean, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(again.predict_proba(X[:9]), first.predict_proba(X[:9]), atol=1e-6)


def test_a_number_is_reported_for_columns_that_are_standardised():
    X, y = sample(100_000)
    for rows in (slice(80), slice(None)):
        found = fitted(X[rows], y[rows], prior=2.0).prior_
        np.testing.assert_allclose(found.precision, 2.0 / X[rows].var(axis=0), rtol=1e-10)
        assert found.intercept_precision == pytest.approx(0.01)
        assert found.units == "standardised"


def test_a_file_keeps_the_prior_of_many_rows():
    X, y = sample(100_000)
    copy = pickle.loads(pickle.dumps(fitted(X, y, prior=2.0)))
    np.testing.assert_allclose(copy.prior_.precision, 2.0 / X.var(axis=0), rtol=1e-10)


# The predictive distribution.

PLACES = np.array([-8.0, -1.0, 0.0, 1.9, 2.6, 5.0, 30.0])[:, None]


def gaussian_average(posterior, x):
    """∫ σ(b + wx) N(b, w) by a sum over a grid in both."""
    axis = np.linspace(-9, 9, 600)
    white = np.stack([g.ravel() for g in np.meshgrid(axis, axis)])
    density = np.exp(-0.5 * (white**2).sum(axis=0))
    theta = posterior.mean[:, None] + np.linalg.cholesky(posterior.covariance) @ white
    found = [density @ expit(theta[0] + theta[1] * one) for one in np.ravel(x)]
    return np.array(found) / density.sum()


@pytest.mark.parametrize("inference", ["laplace", "variational"])
def test_probabilities_are_averages_over_the_gaussian(inference):
    X, y = one_slope(20)
    model = fitted(X, y, inference=inference, prior=0.5)
    expected = gaussian_average(model.posterior_, PLACES)
    np.testing.assert_allclose(model.predict_proba(PLACES)[:, 1], expected, rtol=1e-8)
    model.predictive = "probit"
    np.testing.assert_allclose(model.predict_proba(PLACES)[:, 1], expected, atol=0.02)
    model.predictive = "monte_carlo"
    np.testing.assert_allclose(model.predict_proba(PLACES)[:, 1], expected, atol=0.03)


def test_the_closed_form_is_that_of_the_book():
    X, y = one_slope(20)
    model = fitted(X, y, prior=0.5, predictive="probit")
    rows = np.column_stack([np.ones(len(PLACES)), PLACES])
    mean = rows @ model.posterior_.mean
    variance = ((rows @ model.posterior_.covariance) * rows).sum(axis=1)
    kappa = (1 + np.pi * variance / 8) ** -0.5  # (4.154)
    np.testing.assert_allclose(model.predict_proba(PLACES)[:, 1], expit(kappa * mean), rtol=1e-8)


def test_draws_predict_by_the_exact_posterior():
    X, y = one_slope(12)
    exact = Exact.of(X[:, 0], y, 0.5)
    model = fitted(X, y, prior=0.5, inference="monte_carlo")
    found = model.predict_proba(PLACES)[:, 1]
    np.testing.assert_allclose(found, exact.probability(PLACES), atol=0.02)


@pytest.mark.parametrize("predictive", ["probit", "quadrature"])
def test_the_boundary_is_that_of_the_mode(predictive):
    X, y = sample(60)
    model = fitted(X, y, prior=0.5, predictive=predictive)
    mode = LogisticRegression(prior=GaussianPrior(precision=0.5)).fit(X, y)
    b, w = model.intercept_[0], model.coef_[0]
    np.testing.assert_allclose(w, mode.coef_[0], rtol=1e-2)  # its intercept has no prior
    along = np.array([-w[1], w[0]])
    on = -b * w / (w @ w) + np.linspace(-50, 50, 11)[:, None] * along
    np.testing.assert_allclose(model.predict_proba(on), 0.5, atol=1e-12)
    many = np.random.default_rng(5).normal(scale=20.0, size=(2000, 2))
    np.testing.assert_array_equal(model.predict(many), (many @ w + b > 0).astype(int))


@pytest.mark.parametrize("inference", INFERENCES)
def test_intervals_are_quantiles_of_the_probability(inference):
    X, y = sample(60)
    model = fitted(X, y, prior=1.0, inference=inference)
    draws = model.posterior_.sample(4000 if inference == "monte_carlo" else 100_000, 1)
    new = np.random.default_rng(2).normal(size=(6, 2)) * 3
    expected = np.quantile(expit(draws[:, :1] + draws[:, 1:] @ new.T), [0.05, 0.95], axis=0).T
    found = model.predict_interval(new, level=0.9)
    np.testing.assert_allclose(found, expected, atol=0.03 if inference == "monte_carlo" else 0.005)
    inside = model.predict_proba(new)[:, 1]
    assert ((found[:, 0] < inside) & (inside < found[:, 1])).all()


@pytest.mark.parametrize("inference", INFERENCES)
def test_three_classes_are_predicted_by_the_draws(inference):
    X, y = sample(80, K=3)
    model = fitted(X, y, prior=0.5, inference=inference)
    draws = model.posterior_.sample(4000 if inference == "monte_carlo" else 40_000, 1)
    new = np.random.default_rng(2).normal(size=(6, 2)) * 3
    theta = draws.reshape(-1, 3, 3)
    p = softmax(theta[:, :, 0] + np.einsum("nd,skd->nsk", new, theta[:, :, 1:]), axis=2)
    found = model.predict_proba(new)
    np.testing.assert_allclose(found, p.mean(axis=1), atol=0.02)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-12)
    ends = np.moveaxis(np.quantile(p, [0.025, 0.975], axis=1), 0, 2)
    np.testing.assert_allclose(model.predict_interval(new), ends, atol=0.04)
    if inference != "monte_carlo":
        model.predictive = "probit"
        np.testing.assert_allclose(model.predict_proba(new), p.mean(axis=1), atol=0.04)


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("inference", INFERENCES)
def test_scores_and_probabilities_agree(K, inference):
    X, y = sample(60, K=K)
    model = fitted(X, y, inference=inference)
    logs, score = model.predict_log_proba(X), model.decision_function(X)
    np.testing.assert_allclose(np.exp(logs), model.predict_proba(X), rtol=1e-12)
    expected = logs[:, 1] - logs[:, 0] if K == 2 else logs
    np.testing.assert_allclose(score, expected, rtol=1e-12)
    np.testing.assert_array_equal(model.predict(X), np.argmax(logs, axis=1))


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
    np.testing.assert_allclose(
        plain.predict_proba(X, offset=offset), as_column.predict_proba(wide), atol=slack
    )
    np.testing.assert_allclose(
        plain.predict_interval(X, offset=offset), as_column.predict_interval(wide), atol=2 * slack
    )


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("inference", INFERENCES)
def test_logarithms_are_finite_far_out(K, inference):
    X, y = sample(60, K=K)
    model = fitted(X, y, inference=inference)
    for far in (1e3, 1e8):
        logs = model.predict_log_proba(np.sign(X) * far)
        assert np.isfinite(logs).all()
        np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1.0, atol=1e-9)


def test_far_out_a_class_is_as_sure_as_the_side_of_the_boundary():
    X, y = sample(60)
    model = fitted(X, y, prior=0.5)
    directions = np.random.default_rng(1).normal(size=(20, 2))
    mean, covariance = model.coef_[0], model.posterior_.covariance[1:, 1:]
    side = directions @ mean / np.sqrt(((directions @ covariance) * directions).sum(axis=1))
    far = model.predict_proba(1e9 * directions)[:, 1]
    np.testing.assert_allclose(far, ndtr(side), atol=1e-6)


# Laws.


@pytest.mark.parametrize("inference", ["laplace", "variational"])
def test_the_evidence_does_not_know_units_or_order(inference):
    X, y = sample(70, 3)
    first = fitted(X, y, inference=inference)
    order = np.random.default_rng(0).permutation(70)
    others = [
        (fitted(X * [1e-5, 3.0, 1e7], y, inference=inference), 1),
        (fitted(X[order], y[order], inference=inference), 1),
        (fitted(X[:, ::-1], y, inference=inference), 1),
        (fitted(X, np.array(["z", "a"])[y], inference=inference), -1),
    ]
    for other, sign in others:
        assert other.log_evidence_ == pytest.approx(first.log_evidence_, abs=1e-7)
        assert other.intercept_[0] * sign == pytest.approx(first.intercept_[0], rel=1e-4)
        assert other.prior_.precision == pytest.approx(first.prior_.precision, rel=1e-4)


@pytest.mark.parametrize("inference", ["laplace", "variational"])
def test_relabelled_classes_relabel_the_posterior(inference):
    X, y = sample(90, K=3)
    first = fitted(X, y, inference=inference, predictive="probit")
    other = fitted(X, np.array([2, 0, 1])[y], inference=inference, predictive="probit")
    back = [2, 0, 1]
    assert other.log_evidence_ == pytest.approx(first.log_evidence_, abs=1e-7)
    np.testing.assert_allclose(other.coef_[back], first.coef_, rtol=1e-4, atol=1e-7)
    mean = other.posterior_.mean.reshape(3, 3)[back].ravel()
    np.testing.assert_allclose(mean, first.posterior_.mean, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(other.predict_proba(X)[:, back], first.predict_proba(X), rtol=1e-4)


@pytest.mark.parametrize("inference", INFERENCES)
def test_soft_labels_that_are_sure_are_labels(inference):
    X, y = sample(60)
    hard = fitted(X, y, prior=1.0, inference=inference)
    soft = fitted(X, np.eye(2)[y], prior=1.0, inference=inference)
    assert soft.log_evidence_ == pytest.approx(hard.log_evidence_, abs=1e-8)
    np.testing.assert_allclose(soft.predict_proba(X), hard.predict_proba(X), atol=1e-6)


def test_a_weight_is_a_repeated_row():
    X, y = sample(40)
    weight = np.arange(40) % 3 + 1
    for inference in INFERENCES:
        model = BayesianLogisticRegression(prior=1.0, inference=inference, random_state=0)
        once = model.fit(X, y, sample_weight=weight)
        found = once.log_evidence_, once.posterior_.mean, once.posterior_.covariance
        twice = model.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
        expected = twice.log_evidence_, twice.posterior_.mean, twice.posterior_.covariance
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize("inference", ["monte_carlo", "auto"])
def test_the_same_seed_gives_the_same_answer(inference):
    X, y = separated(6)
    first, again = (fitted(X, y, prior=0.01, inference=inference) for _ in range(2))
    np.testing.assert_array_equal(first.posterior_.draws, again.posterior_.draws)
    np.testing.assert_array_equal(first.predict_proba(X), again.predict_proba(X))
    assert first.log_evidence_ == again.log_evidence_
    other = fitted(X, y, prior=0.01, inference=inference, random_state=1)
    assert (first.posterior_.mean != other.posterior_.mean).any()


def test_approximation_check_says_the_same_whenever_asked():
    X, y = sample(60)
    models = [BayesianLogisticRegression(prior=1.0).fit(X, y) for _ in range(2)]
    assert models[0].approximation_check_ == models[1].approximation_check_


def narrow_cases():
    random = np.random.default_rng(0)
    x = random.normal(size=(100, 1))
    yield x, (3 * x[:, 0] + random.logistic(size=100) > 0).astype(int), 1.0
    z = random.normal(size=(40, 1))
    X = z + 0.05 * random.normal(size=(40, 4))  # columns that are nearly the same
    yield X, (3 * z[:, 0] + random.logistic(size=40) > 0).astype(int), 0.01
    X = random.normal(size=(500, 3))
    yield X, (X @ [1.0, -1.0, 0.5] + random.logistic(size=500) > 0).astype(int), 1.0
    X = random.normal(size=(150, 2))
    W = random.normal(size=(2, 3))
    yield X, np.argmax(2 * X @ W + random.gumbel(size=(150, 3)), axis=1), 0.1


@pytest.mark.parametrize("case", range(4))
def test_a_variational_gaussian_that_is_too_narrow_is_not_good(case):
    X, y, prior = list(narrow_cases())[case]
    found = fitted(X, y, prior=prior, inference="variational").approximation_check_
    assert found.word != "good"
    assert found.discrepancy > 0.2


@pytest.mark.parametrize("inference", ["laplace", "variational"])
@pytest.mark.parametrize("d", [2, 30])
def test_a_gaussian_posterior_has_no_discrepancy(inference, d):
    random = np.random.default_rng(1)
    X, y = random.normal(size=(2000, d)), random.integers(0, 2, size=2000)
    found = fitted(X, y, prior=1.0, inference=inference).approximation_check_
    assert found.discrepancy < 0.05
    assert found.word == "good"
