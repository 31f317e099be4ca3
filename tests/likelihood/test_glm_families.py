"""Families of the target: density, variance, deviance, domains, and which links."""

import numpy as np
import pytest
from scipy import stats

from posteriori.errors import ParameterError
from posteriori.likelihood.glm_families import GLM_FAMILIES, BarrierLoss, glm_loss
from posteriori.likelihood.links import Domain

every_family = pytest.mark.parametrize("name", GLM_FAMILIES)


@every_family
def test_deviance_is_twice_the_distance_from_the_best_likelihood(name):
    family = GLM_FAMILIES[name]
    t, mean = np.array([0.2, 0.7, 0.9]), np.array([0.35, 0.1, 0.91])
    for dispersion in (1.0,) if family.dispersion_fixed else (1.0, 0.3):
        best = family.log_likelihood(t, t, dispersion)
        gap = best - family.log_likelihood(t, mean, dispersion)
        np.testing.assert_allclose(family.deviance(t, mean), 2 * dispersion * gap, rtol=1e-11)
    np.testing.assert_array_equal(family.deviance(t, t), 0.0)


MEAN = np.array([0.2, 0.7, 0.45])
DISTRIBUTIONS = {  # by mean and dispersion
    "gaussian": lambda mean, s: stats.norm(mean, np.sqrt(s)),
    "bernoulli": lambda mean, s: stats.bernoulli(mean),
    "poisson": lambda mean, s: stats.poisson(mean),
    "exponential": lambda mean, s: stats.expon(0, mean),
    "gamma": lambda mean, s: stats.gamma(1 / s, 0, mean * s),
}


@every_family
@pytest.mark.parametrize("dispersion", [1.0, 0.3])
def test_density_and_variance_are_those_of_scipy(name, dispersion):
    family = GLM_FAMILIES[name]
    dispersion = 1.0 if family.dispersion_fixed else dispersion
    distribution = DISTRIBUTIONS[name](MEAN, dispersion)
    variance = dispersion * family.variance(MEAN)
    np.testing.assert_allclose(variance, distribution.var(), rtol=1e-12)
    t = np.array([1.0, 0.0, 1.0] if name in ("bernoulli", "poisson") else [0.3, 0.9, 2.5])
    logs = distribution.logpmf if name in ("bernoulli", "poisson") else distribution.logpdf
    found = family.log_likelihood(t, MEAN, dispersion)
    np.testing.assert_allclose(found, logs(t), rtol=1e-12, atol=1e-14)
    pearson = (t - MEAN) ** 2 / family.variance(MEAN)
    np.testing.assert_allclose(family.pearson(t, MEAN), pearson, rtol=1e-12)


def test_targets_outside_the_domain_are_marked():
    t = np.array([-1.0, 0.0, 0.5, 1.0, 2.5, np.nan])
    assert {name: t[~family.outside(t)].min() for name, family in GLM_FAMILIES.items()} == {
        "gaussian": -1.0, "bernoulli": 0.0, "poisson": 0.0, "exponential": 0.0, "gamma": 0.5,
    }  # fmt: skip
    assert GLM_FAMILIES["bernoulli"].outside(t).tolist() == [True, False, False, False, True, True]
    assert all(family.outside(t)[-1] for family in GLM_FAMILIES.values())


@pytest.mark.parametrize(
    ("family", "link", "words"),
    [
        ("normal", "log", "family='normal' is not understood. Use 'gaussian', 'bernoulli'"),
        ("poisson", "logit", "poisson .* link 'logit'. .* 'canonical', 'log' or 'identity'"),
        ("bernoulli", "cdf", "bernoulli target cannot have the link 'cdf'"),
    ],
)
def test_combinations_that_cannot_be_are_named(family, link, words):
    with pytest.raises(ParameterError, match=words):
        glm_loss(family, link)


def test_means_at_the_ends_are_certain_or_have_no_likelihood():
    t, certain = np.array([0.0, 2.0]), np.array([0.0, 1.0])
    infinite, zero = np.full(2, np.inf), np.zeros(2)
    bernoulli, poisson, exponential = map(GLM_FAMILIES.get, ("bernoulli", "poisson", "exponential"))
    assert bernoulli.deviance(certain, certain).tolist() == [0.0, 0.0]
    assert bernoulli.deviance(certain, 1 - certain).tolist() == [np.inf, np.inf]
    assert bernoulli.log_likelihood(certain, certain).tolist() == [0.0, 0.0]
    assert exponential.deviance(np.zeros(1), np.ones(1)) == np.inf
    for family, at_zero in ((poisson, [0.0, -np.inf]), (exponential, [np.inf, -np.inf])):
        assert (family.log_likelihood(t, infinite, 1.0) == -np.inf).all()
        assert family.log_likelihood(t, zero, 1.0).tolist() == at_zero


BARRIERS = {
    "above zero": (glm_loss("poisson", "identity"), Domain(low=0.0)),
    "from zero to one": (glm_loss("bernoulli", "identity"), Domain(0.0, 1.0)),
    "below zero": (glm_loss("bernoulli", "log"), Domain(high=0.0)),
}


def inside(domain):
    low = max(domain.low, domain.high - 1 if np.isfinite(domain.high) else -1)
    return low + np.array([0.01, 0.2, 0.5, 0.8, 0.99])


@pytest.mark.parametrize(("loss", "domain"), BARRIERS.values(), ids=BARRIERS)
@pytest.mark.parametrize("target", [0.0, 1.0])
def test_a_barrier_has_the_derivatives_of_its_value_and_is_infinite_at_an_end(loss, domain, target):
    barrier, a, step = BarrierLoss(loss, domain, 0.3), inside(domain), 1e-6
    t = np.full(len(a), target)
    pairs = [(barrier.gradient, barrier.value), (barrier.curvature, barrier.gradient)]
    for found, function in pairs:
        slope = (function(a + step, t) - function(a - step, t)) / (2 * step)
        np.testing.assert_allclose(found(a, t), slope, rtol=1e-6)
    assert (barrier.information(a) > loss.information(a)).all()
    np.testing.assert_array_equal(barrier.mean(a), loss.mean(a))
    out = np.array([domain.low, domain.low - 0.5, domain.high, domain.high + 0.5])
    out = out[np.isfinite(out)]
    assert np.isinf(barrier.value(out, np.full(len(out), target))).all()
