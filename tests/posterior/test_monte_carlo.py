"""Draws are from the exact density, and the evidence is within its error."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris

from posteriori import GLM, GaussianPrior, LogisticRegression, ProbitRegression
from posteriori.errors import ConvergenceWarning
from posteriori.posterior.monte_carlo import (
    Draws,
    PosteriorDensity,
    diagnostics,
    importance_evidence,
    sample_posterior,
)

RANDOM = np.random.default_rng(3)
CANCER, IRIS = load_breast_cancer(return_X_y=True), load_iris(return_X_y=True)
X, LABELS = CANCER[0][:, :4], CANCER[1]
WEIGHT = RANDOM.uniform(0.2, 3.0, len(X))
TABLE = pd.DataFrame({"size": X[:, 0], "kind": RANDOM.choice(list("abc"), len(X))})
FULL = GaussianPrior(
    precision=np.diag([1.0, 2.0, 3.0, 4.0]) + 0.5, mean=0.3, intercept_precision=0.1
)

FITS = {  # model, rows, labels, what else the fit is given
    "two classes": (LogisticRegression(prior=1.0), X, LABELS, {}),
    "a full prior, weights": (LogisticRegression(prior=FULL), X, LABELS, {"sample_weight": WEIGHT}),
    "far from zero": (LogisticRegression(prior=1.0), X + 1e7, LABELS, {}),
    "factors": (LogisticRegression(prior=1.0), TABLE, LABELS, {}),
    "label noise": (LogisticRegression(prior=1.0, label_noise=0.05), X, LABELS, {}),
    "three classes": (LogisticRegression(prior=1.0), *IRIS, {"sample_weight": WEIGHT[:150]}),
    "offsets": (GLM(family="bernoulli", prior=1.0), X, LABELS, {"offset": 0.1 * WEIGHT}),
    "probit": (ProbitRegression(prior=1.0), X, LABELS, {}),
}


@pytest.mark.parametrize("title", FITS)
def test_many_densities_are_those_of_each_parameter_vector(title):
    model, rows, labels, given = FITS[title]
    model = model.fit(rows, labels, **given)
    w, objective = model.solution_.parameters, model._inference.objective
    spread = 1 / np.sqrt(np.diagonal(objective(w, "full").hessian))
    W = w + 2 * spread * np.random.default_rng(0).normal(size=(5, len(w)))
    value, gradient = PosteriorDensity(objective).with_gradient(W)
    each = [objective(one, "none") for one in W]
    np.testing.assert_allclose(-value, [one.value for one in each], rtol=1e-12)
    size = abs(gradient).max()
    np.testing.assert_allclose(-gradient, [one.gradient for one in each], atol=1e-12 * size)
    np.testing.assert_array_equal(PosteriorDensity(objective).log_density(W), value)


def assert_mean(values, truth):
    """The mean of values of the draws is the truth, within four Monte Carlo errors."""
    values = values[..., None] * 1.0
    assert abs(values.mean() - truth) < 4 * diagnostics(values)["mcse_mean"][0]


class Gumbel:
    """ln p(z) = z - eᶻ in each coordinate, which has mean -γ and variance π²/6."""

    def with_gradient(self, W):
        return (W - np.exp(W)).sum(axis=1), 1 - np.exp(W)


def test_draws_are_exact_where_the_fit_is_not():
    centre, root = np.array([0.7, -0.5]), np.array([[1.7, 0.0], [-1.0, 2.0]])
    draws = sample_posterior(Gumbel(), centre, root, 20_000, random_state=1).values
    for i in range(2):
        assert_mean(draws[..., i], -np.euler_gamma)
        assert_mean((draws[..., i] + np.euler_gamma) ** 2, np.pi**2 / 6)
        assert_mean(draws[..., i] <= 0.0, 1 - np.exp(-1.0))
        assert_mean(draws[..., i] <= -3.0, 1 - np.exp(-np.exp(-3)))


class Normal:
    """Independent standard normal coordinates."""

    def log_density(self, W):
        return -0.5 * np.square(W).sum(axis=1)

    def with_gradient(self, W):
        return self.log_density(W), -W


def test_a_gaussian_is_drawn_nearly_independently():
    found = sample_posterior(Normal(), np.zeros(100), np.eye(100), random_state=0)
    assert found.diagnostics["rhat"].max() < 1.01
    sizes = np.minimum(found.diagnostics["ess_bulk"], found.diagnostics["ess_tail"])
    assert sizes.min() > 0.4 * len(found.pooled)
    np.testing.assert_allclose(np.cov(found.pooled.T), np.eye(100), atol=0.15)


class TwoPeaks:
    """Half of the mass at -10, half at 10, with nothing between."""

    def with_gradient(self, W):
        peaks = -50 * np.square(W[..., None] - [-10.0, 10.0]).sum(axis=1)
        nearest = np.where(W < 0, -10.0, 10.0)
        return np.logaddexp(*peaks.T), -100 * (W - nearest)


def test_chains_that_do_not_meet_are_named():
    with pytest.warns(ConvergenceWarning, match=r"draws of dose do not agree: R-hat is \d+"):
        found = sample_posterior(TwoPeaks(), np.zeros(1), 8 * np.eye(1), 320, 0, ["dose"])
    assert 16_000 <= len(found.pooled) < 32_000


@pytest.mark.parametrize("p", [1, 40])
def test_the_evidence_by_importance_sampling_is_within_its_error(p):
    """The error is reported, and stays small in many dimensions."""
    exact = 0.5 * p * np.log(2 * np.pi)
    scores, errors = [], []
    for seed in range(20):
        random = np.random.default_rng(seed)
        draws = Draws(random.normal(size=(1, 4000, p)))
        value, error = importance_evidence(Normal(), draws, random)
        scores.append((value - exact) / error)
        errors.append(error)
    assert max(errors) < 0.05
    assert np.sqrt(np.mean(np.square(scores))) < 1.6
