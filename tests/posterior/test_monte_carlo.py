"""Draws are from the exact posterior: grids, known densities, and calibration say so."""

import numpy as np
import pytest
from scipy.special import expit, log_expit, log_ndtr, log_softmax
from sklearn.datasets import load_breast_cancer, load_iris

from posteriori import GaussianPrior, LogisticRegression, ProbitRegression
from posteriori.errors import ConvergenceWarning, ParameterError
from posteriori.linalg import cholesky
from posteriori.posterior.chains import mean_error
from posteriori.posterior.hamiltonian import HamiltonianChains
from posteriori.posterior.importance import smoothed
from posteriori.posterior.independence import look_ahead, mean_acceptance
from posteriori.posterior.laplace import laplace
from posteriori.posterior.many import ManyDensities, White
from posteriori.posterior.monte_carlo import sample_posterior
from posteriori.rows.threads import threads

BOTH = ["independence", "hamiltonian"]
RANDOM = np.random.default_rng(3)
x = RANDOM.normal(1.0, 2.0, size=40)
y = (0.8 * x - 0.5 + RANDOM.logistic(size=40) > 0).astype(int)
SEPARATED = np.array([-2.0, -1.0, 0.5, 1.5, 2.0]), np.array([0, 0, 1, 1, 1])


def sample(model, **given):
    """Draws for a fitted model, from its Laplace fit."""
    objective, w = model._inference.objective, model.solution_.parameters
    factor = cholesky(objective(w, "full").hessian)
    return sample_posterior(
        ManyDensities(objective), w, factor, **{"random_state": 0, "n_draws": 8000} | given
    )


def assert_mean(draws, function, truth):
    """The mean of a function of the draws is the truth, within four Monte Carlo errors."""
    values = function(draws)[..., None]
    assert abs(values.mean() - truth) < 4 * mean_error(values)[0]


def assert_like_grid(draws, axes, log_density):
    """Means, variances and tails of draws (chains, steps, p) are those of a density on a grid."""
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    logs = log_density(points)
    weight = np.exp(logs - logs.max())
    edges = [weight.take(end, axis=i).max() for i in range(len(axes)) for end in (0, -1)]
    assert max(edges) < 1e-7
    weight /= weight.sum()
    for i in range(len(axes)):
        own, theirs = draws[..., i], points[..., i]
        mean = float((weight * theirs).sum())
        spread = np.sqrt((weight * (theirs - mean) ** 2).sum())
        assert_mean(own, lambda v: v, mean)
        assert_mean(own, lambda v, mean=mean: (v - mean) ** 2, spread**2)
        share = weight.sum(axis=tuple(j for j in range(len(axes)) if j != i))
        ends_of_cells = axes[i] + np.diff(axes[i])[0] / 2
        for chance in (0.02, 0.2, 0.8, 0.98):
            cut = float(np.interp(chance, share.cumsum(), ends_of_cells))
            assert_mean(own, lambda v, cut=cut: (v <= cut).astype(float), chance)


def in_users_units(model, draws):
    """Intercept and slope for the columns as they are (chains, steps, q)."""
    return model._inference.objective.standard.to_user(draws.values)


@pytest.mark.parametrize("method", BOTH)
def test_one_parameter(method):
    model = LogisticRegression(prior=0.5, fit_intercept=False).fit(x[:, None], y)
    draws = in_users_units(model, sample(model, method=method))
    signed = (2 * y - 1) * x

    def log_density(w):
        return log_expit(w * signed).sum(axis=-1, keepdims=True)[..., 0] - 0.25 * w[..., 0] ** 2

    assert_like_grid(draws, [np.linspace(-2, 4, 4001)], log_density)


@pytest.mark.parametrize("method", BOTH)
@pytest.mark.parametrize(
    ("Model", "log_cdf"), [(LogisticRegression, log_expit), (ProbitRegression, log_ndtr)]
)
def test_two_parameters(Model, log_cdf, method):
    prior = GaussianPrior(precision=0.5, intercept_precision=0.1)
    model = Model(prior=prior).fit(x[:, None], y)
    draws = in_users_units(model, sample(model, method=method))

    def log_density(w):
        a = w[..., :1] + w[..., 1:] * x
        return log_cdf((2 * y - 1) * a).sum(-1) - 0.05 * w[..., 0] ** 2 - 0.25 * w[..., 1] ** 2

    assert_like_grid(draws, [np.linspace(-5, 3, 401), np.linspace(-1, 4, 401)], log_density)


def test_separated_classes_need_hamiltonian_steps():
    points, labels = SEPARATED
    prior = GaussianPrior(precision=0.005, intercept_precision=0.005)
    model = LogisticRegression(prior=prior).fit(points[:, None], labels)
    found = sample(model)
    assert found.method == "hamiltonian"
    assert found.n_divergent == 0

    def log_density(w):
        a = w[..., :1] + w[..., 1:] * points
        return log_expit((2 * labels - 1) * a).sum(-1) - 0.0025 * np.square(w).sum(axis=-1)

    axes = [np.linspace(-60, 60, 1201), np.linspace(-5, 95, 1001)]
    assert_like_grid(in_users_units(model, found), axes, log_density)


def test_three_classes():
    X, labels = load_iris(return_X_y=True)
    rows = np.random.default_rng(0).permutation(150)[:30]
    column, labels = X[rows, 1], labels[rows]
    model = LogisticRegression(prior=0.5, fit_intercept=False).fit(column[:, None], labels)
    objective = model._inference.objective
    scale, contrasts = objective.standard.scale[0], objective.coordinates.contrasts

    def log_density(w):
        slopes = w @ contrasts.T / scale
        logs = log_softmax(slopes[..., None, :] * column[:, None], axis=-1)
        seen = np.take_along_axis(logs, labels[..., :, None][None, None], axis=-1)
        return seen.sum(axis=(-1, -2)) - 0.25 * np.square(slopes).sum(axis=-1)

    axes = [np.linspace(m - 3.5, m + 3.5, 301) for m in model.solution_.parameters]
    assert_like_grid(sample(model).values, axes, log_density)


def test_both_samplers_agree():
    X, labels = load_breast_cancer(return_X_y=True)
    model = LogisticRegression(prior=1.0).fit(X[:, :6], labels)
    one, other = (sample(model, method=method, random_state=i) for i, method in enumerate(BOTH))
    assert [one.method, other.method] == BOTH
    for power in (1, 2):
        means = [(found.values**power).mean(axis=(0, 1)) for found in (one, other)]
        errors = [mean_error(found.values**power) for found in (one, other)]
        assert (abs(means[0] - means[1]) < 4 * np.hypot(*errors)).all()


class Gumbel:
    """ln p(z) = z - eᶻ in each of p coordinates, which has mean -γ and variance π²/6."""

    def log_density(self, W):
        return self.with_gradient(W)[0]

    def with_gradient(self, W):
        return (W - np.exp(W)).sum(axis=1), 1 - np.exp(W)


@pytest.mark.parametrize("method", BOTH)
def test_draws_are_exact_where_the_fit_is_not(method):
    mode, factor = np.array([0.7, -0.5]), np.array([[0.6, 0.0], [0.3, 0.5]])
    found = sample_posterior(Gumbel(), mode, factor, 20_000, random_state=1, method=method)
    for i in range(2):
        assert_mean(found.values[..., i], lambda v: v, -np.euler_gamma)
        assert_mean(found.values[..., i], lambda v: (v + np.euler_gamma) ** 2, np.pi**2 / 6)
        assert_mean(found.values[..., i], lambda v: (v <= 0.0) * 1.0, 1 - np.exp(-1.0))
        assert_mean(found.values[..., i], lambda v: (v <= -3.0) * 1.0, 1 - np.exp(-np.exp(-3)))


class Normal:
    """Independent standard normal coordinates."""

    def log_density(self, W):
        return -0.5 * np.square(W).sum(axis=1)

    def with_gradient(self, W):
        return self.log_density(W), -W


def test_a_gaussian_accepts_nearly_all_proposals():
    found = sample_posterior(Normal(), np.zeros(20), np.eye(20), random_state=0)
    assert found.method == "independence"
    assert found.acceptance > 0.97
    assert found.effective_size_bulk.min() > 4000
    covariance = np.cov(found.pooled.T)
    np.testing.assert_allclose(covariance, np.eye(20), atol=0.15)


class Toy:
    """Two coefficients with a standard normal prior, and labels of fifteen points."""

    def __init__(self, random):
        self.truth = random.normal(size=2)
        self.phi = np.column_stack([np.ones(15), random.normal(size=15)])
        self.signs = np.where(self.phi @ self.truth + random.logistic(size=15) > 0, 1.0, -1.0)

    def log_density(self, W):
        return log_expit(W @ self.phi.T * self.signs).sum(axis=-1) - 0.5 * (W**2).sum(axis=-1)

    def with_gradient(self, W):
        missed = expit(-(W @ self.phi.T) * self.signs)
        return self.log_density(W), (missed * self.signs) @ self.phi - W


@pytest.mark.slow
@pytest.mark.parametrize(("method", "runs"), [("independence", 150), ("hamiltonian", 40)])
def test_parameters_from_the_prior_rank_evenly_among_draws(method, runs):
    random, ranks = np.random.default_rng(11), []
    for _ in range(runs):
        toy = Toy(random)
        fit = laplace(toy.log_density, np.zeros(2), lambda w, toy=toy: toy.with_gradient(w)[1])
        found = sample_posterior(
            toy, fit.mean, fit.gaussian.precision_cholesky, 400, 4, random, method=method
        )
        ranks.append((found.pooled[:400:8] < toy.truth).sum(axis=0))
    shares = [np.bincount(each * 5 // 51, minlength=5) / runs for each in np.transpose(ranks)]
    np.testing.assert_allclose(shares, 0.2, atol=4 * np.sqrt(0.2 * 0.8 / runs))


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bits_whatever_the_threads():
    rows = np.random.default_rng(0).normal(size=(7000, 15))
    labels = rows[:, 0] > np.random.default_rng(1).logistic(size=len(rows))
    model = LogisticRegression(prior=1.0).fit(rows, labels)
    for method in BOTH:
        with threads(1):
            one = sample(model, n_draws=320, method=method)
        with threads(2):
            other = sample(model, n_draws=320, method=method)
        np.testing.assert_array_equal(one.values, other.values)


class Separated:
    """Intercept and slope of five rows whose classes are apart, with a wide normal prior.

    `noise` changes the last digits, as another order of the rows would.
    """

    def __init__(self, noise=0.0):
        points, labels = SEPARATED
        self.signed = np.where(labels == 1, 1.0, -1.0)[:, None] * np.stack([points**0, points]).T
        self.noise, self.random = noise, np.random.default_rng(5)

    def log_density(self, W):
        return log_expit(W @ self.signed.T).sum(axis=-1) - 0.0025 * np.square(W).sum(axis=-1)

    def with_gradient(self, W):
        missed = expit(-W @ self.signed.T)
        value, gradient = self.log_density(W), missed @ self.signed - 0.005 * W
        for each in (value, gradient):
            each *= 1 + self.noise * self.random.uniform(-1, 1, each.shape)
        return value, gradient

    def sample(self, n_draws, random_state):
        fit = laplace(self.log_density, np.zeros(2), lambda w: Separated().with_gradient(w)[1])
        return sample_posterior(
            self,
            fit.mean,
            fit.gaussian.precision_cholesky,
            n_draws,
            random_state=random_state,
            method="hamiltonian",
        )


@pytest.mark.parametrize("seed", range(5))
def test_rounding_errors_do_not_grow(seed):
    plain, noisy = (Separated(noise).sample(1600, seed) for noise in (0.0, 1e-14))
    np.testing.assert_allclose(noisy.values, plain.values, rtol=1e-9)


def test_a_trajectory_leads_back_to_the_last_bit():
    white = White(Separated(), np.array([1.0, 5.0]), np.array([[2.0, 0.0], [1.0, 3.0]]))
    chains = HamiltonianChains(look_ahead(white, RANDOM), 16, np.random.default_rng(0))
    start, v = chains._place, np.round(np.random.default_rng(1).normal(size=(16, 2)), 0)
    chains._place, speed = chains._trajectory(v, 0.3, 7)
    assert abs(chains._place.z - start.z).max() > 1
    back, reversed_speed = chains._trajectory(-speed, 0.3, 7)
    np.testing.assert_array_equal(back.z, start.z)
    np.testing.assert_array_equal(reversed_speed, -v)


@pytest.mark.slow
def test_errors_of_hamiltonian_means_are_those_of_many_runs():
    axes = np.linspace(-110, 110, 1201), np.linspace(-110, 110, 1201)
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    logs = Separated().log_density(points)
    weight = np.exp(logs - logs.max())
    exact = (weight[..., None] * points).sum(axis=(0, 1)) / weight.sum()
    runs = [Separated().sample(2000, seed).values for seed in range(50)]
    scores = np.array([(each.mean(axis=(0, 1)) - exact) / mean_error(each) for each in runs])
    rms = np.sqrt(np.square(scores).mean(axis=0))
    assert (abs(rms - 1) < 0.35).all()  # 3.5 standard errors of it
    assert (abs(scores.mean(axis=0)) < 0.5).all()


class TwoPeaks:
    """Half of the mass at -10, half at 10, with nothing between."""

    def log_density(self, W):
        return self.with_gradient(W)[0]

    def with_gradient(self, W):
        peaks = -50 * np.square(W[..., None] - [-10.0, 10.0]).sum(axis=1)
        nearest = np.where(W < 0, -10.0, 10.0)
        return np.logaddexp(*peaks.T), -100 * (W - nearest)


def test_chains_that_do_not_meet_are_named():
    with pytest.warns(ConvergenceWarning, match=r"draws of dose do not agree: R-hat is \d+"):
        found = sample_posterior(
            TwoPeaks(), np.zeros(1), np.eye(1) / 8, 320, random_state=0, names=["dose"]
        )
    assert found.method == "hamiltonian"
    assert 16_000 <= len(found.pooled) < 32_000


class Half(Normal):
    """The right half of a normal density, which has an end."""

    def log_density(self, W):
        return np.where((W > 0).all(axis=1), super().log_density(W), -np.inf)


@pytest.mark.parametrize("method", BOTH)
def test_a_density_that_ends(method):
    found = sample_posterior(Half(), np.ones(1), np.eye(1), 20_000, random_state=0, method=method)
    assert found.values.min() > 0
    assert_mean(found.values[..., 0], lambda v: v, np.sqrt(2 / np.pi))
    assert_mean(found.values[..., 0], lambda v: v**2, 1.0)


def test_mean_acceptance_is_that_of_a_long_run():
    random = np.random.default_rng(0)
    z = 1.5 * random.standard_normal(4000)
    ratios = -0.5 * z**2 + 0.5 * (z / 1.5) ** 2
    expected = mean_acceptance(ratios, np.exp(smoothed(ratios).log_weights))
    here, n_accepted = 0.0, 0
    for each in np.log(random.random(20_000)):
        there = ratios[random.integers(4000)]
        if each < there - here:
            here, n_accepted = there, n_accepted + 1
    assert abs(n_accepted / 20_000 - expected) < 0.015


@pytest.mark.parametrize(
    "wrong", [{"n_draws": 0}, {"n_chains": 1.5}, {"method": "gibbs"}, {"random_state": "dice"}]
)
def test_settings_that_cannot_be(wrong):
    with pytest.raises(ParameterError):
        sample_posterior(Normal(), np.zeros(1), np.eye(1), **wrong)
