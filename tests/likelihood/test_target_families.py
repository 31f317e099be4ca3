"""Families of the target: likelihood and deviance as statsmodels has them, and which links."""

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from posteriori.errors import ParameterError
from posteriori.likelihood.binary import BinaryLoss
from posteriori.likelihood.divergence import divergence, log_gamma_peak
from posteriori.likelihood.glm import GLM_FAMILIES, glm_loss
from posteriori.likelihood.links import LINKS
from posteriori.likelihood.logistic import LogisticLoss
from posteriori.likelihood.probit import ProbitLoss

X = np.array([-1.5, -0.8, -0.1, 0.4, 0.9, 1.3, 2.1, 2.8])
W = np.array([1.0, 2, 1, 1, 3, 1, 2, 1])
T = np.array([0.7, 1.9, 1.2, 3.1, 2.2, 4.6, 5.3, 9.7])
ONES = np.array([0.0, 0, 1, 0, 1, 1, 0, 1])

# statsmodels 0.15.0, GLM(t, [1, x], freq_weights=W): coefficients, llf, deviance, scale.
STATSMODELS = {
    ("gaussian", "identity"): (
        T, (2.2422302666431237, 1.633321561010066),
        -19.78797347152328, 19.01114073812466, 1.901114073812467,
    ),
    ("gaussian", "log"): (
        T, (0.49410912758877834, 0.6108656303084682),
        -13.023876589552902, 6.061884901138361, 0.6061884901138367,
    ),
    ("gamma", "log"): (
        T, (0.68973550114329, 0.48388674749107996),
        -14.083555920395353, 1.0099458704837398, 0.09826200728365757,
    ),
    ("gamma", "reciprocal"): (
        1 / T, (2.165391610207436, 0.9753707305113871),
        6.9871557916056135, 1.4785689009323666, 0.15350791085963084,
    ),
    ("poisson", "log"): (
        np.round(T), (0.6469698478828867, 0.5193764023093014),
        -19.085321405810994, 3.511333040834609, 1.0,
    ),
    ("bernoulli", "logit"): (
        ONES, (-0.41486872952018566, 0.6028469310811655),
        -7.569400752376383, 15.138801504752763, 1.0,
    ),
}  # fmt: skip
every_fit = pytest.mark.parametrize("fit", STATSMODELS)
every_family = pytest.mark.parametrize("name", GLM_FAMILIES)


def fitted(fit):
    """Family, loss, targets, activations, and the numbers of statsmodels."""
    t, (intercept, slope), *numbers = STATSMODELS[fit]
    return GLM_FAMILIES[fit[0]], glm_loss(*fit), t, intercept + slope * X, *numbers


@every_fit
def test_likelihood_is_that_of_statsmodels(fit):
    family, loss, t, a, llf, _, scale = fitted(fit)
    mean = loss.mean(a)
    dispersion = W @ (t - mean) ** 2 / W.sum() if fit == ("gaussian", "identity") else scale
    found = family.log_likelihood(t, mean, dispersion, W).sum()
    assert found == pytest.approx(llf, rel=1e-12)


@every_fit
def test_deviance_and_dispersion_are_those_of_statsmodels(fit):
    family, loss, t, a, _, deviance, scale = fitted(fit)
    mean = loss.mean(a)
    assert W @ family.deviance(t, mean) == pytest.approx(deviance, rel=1e-12)
    pearson = W @ ((t - mean) ** 2 / family.variance(mean)) / (W.sum() - 2)
    assert (1.0 if family.dispersion_fixed else pearson) == pytest.approx(scale, rel=1e-12)


@every_fit
def test_score_is_zero_where_statsmodels_stopped(fit):
    _, loss, t, a, *_ = fitted(fit)
    gradient = W * loss.gradient(a, t)
    assert abs(gradient.sum()) < 1e-7
    assert abs(gradient @ X) < 1e-7


@every_family
def test_deviance_is_twice_the_distance_from_the_best_likelihood(name):
    family = GLM_FAMILIES[name]
    t, mean = np.array([0.2, 0.7, 0.9]), np.array([0.35, 0.1, 0.91])
    for dispersion in (1.0,) if family.dispersion_fixed else (1.0, 0.3):
        best = family.log_likelihood(t, t, dispersion)
        gap = best - family.log_likelihood(t, mean, dispersion)
        np.testing.assert_allclose(family.deviance(t, mean), 2 * dispersion * gap, rtol=1e-11)
    np.testing.assert_array_equal(family.deviance(t, t), 0.0)


@every_family
def test_likelihood_and_losses_differ_by_the_constant(name):
    family = GLM_FAMILIES[name]
    t = np.array([1.0, 0.0, 1.0] if name == "bernoulli" else [1.0, 2.0, 5.0])
    for link, loss in family.losses.items():
        a = np.array([-0.4, -0.9, -1.6]) if (name, link) == ("bernoulli", "log") else t / 7 + 0.1
        found = -loss.value(a, t) - loss.constant(t)
        np.testing.assert_allclose(found, family.log_likelihood(t, loss.mean(a)), rtol=1e-12)


@every_family
def test_variance_is_that_of_the_distribution(name):
    mean = np.array([0.2, 0.7])
    distribution = {
        "gaussian": stats.norm(mean, 1),
        "bernoulli": stats.bernoulli(mean),
        "poisson": stats.poisson(mean),
        "exponential": stats.expon(0, mean),
        "gamma": stats.gamma(1, 0, mean),
    }[name]
    np.testing.assert_allclose(GLM_FAMILIES[name].variance(mean), distribution.var(), rtol=1e-13)


def test_gamma_density_with_a_dispersion_is_that_of_scipy():
    t, mean, s = np.array([0.3, 2.0, 9.0]), np.array([1.0, 2.5, 4.0]), 0.2
    found = GLM_FAMILIES["gamma"].log_likelihood(t, mean, s)
    np.testing.assert_allclose(found, stats.gamma.logpdf(t, 1 / s, 0, s * mean), rtol=1e-12)


def test_canonical_links_come_first():
    assert {name: family.canonical for name, family in GLM_FAMILIES.items()} == {
        "gaussian": "identity",
        "bernoulli": "logit",
        "poisson": "log",
        "exponential": "reciprocal",
        "gamma": "reciprocal",
    }
    for family in GLM_FAMILIES.values():
        assert glm_loss(family.name) is glm_loss(family.name, family.canonical)
        assert [loss.canonical for loss in family.losses.values()] == [True] + [False] * (
            len(family.links) - 1
        )
        assert set(family.links) <= set(LINKS)


def test_losses_that_exist_are_used():
    assert type(glm_loss("bernoulli", "logit")) is LogisticLoss
    assert type(glm_loss("bernoulli", "probit")) is ProbitLoss
    assert type(glm_loss("bernoulli", "cloglog")) is BinaryLoss
    assert glm_loss("exponential", "log") is glm_loss("gamma", "log")


def test_convex_combinations_are_known():
    convex = {
        (f.name, link): loss.convex
        for f in GLM_FAMILIES.values()
        for link, loss in f.losses.items()
    }
    assert {pair for pair, yes in convex.items() if not yes} == {
        ("gaussian", "log"),
        ("gaussian", "reciprocal"),
        ("exponential", "identity"),
        ("gamma", "identity"),
    }


def test_targets_outside_the_domain_are_marked():
    t = np.array([-1.0, 0.0, 0.5, 1.0, 2.5, np.nan])
    outside = {name: family.outside(t).tolist() for name, family in GLM_FAMILIES.items()}
    assert outside == {
        "gaussian": [False, False, False, False, False, True],
        "bernoulli": [True, False, False, False, True, True],
        "poisson": [True, False, False, False, False, True],
        "exponential": [True, False, False, False, False, True],
        "gamma": [True, True, False, False, False, True],
    }


def test_rates_with_their_exposure_are_counts():
    counts, exposure = np.array([3.0, 0.0, 12.0]), np.array([2.0, 0.5, 7.0])
    a, loss = np.array([0.3, -1.0, 0.6]), glm_loss("poisson", "log")
    of_rates = exposure * loss.gradient(a, counts / exposure)
    np.testing.assert_allclose(of_rates, loss.gradient(a + np.log(exposure), counts), rtol=1e-14)


@pytest.mark.parametrize(
    ("t", "mean"),
    [(1e12 + 1, 1e12), (3.0, 3.0 + 1e-9), (0.3, 0.36), (0.3, 0.37), (1e-300, 2.0), (5.0, 1e-300)],
)
def test_divergence_keeps_its_digits(t, mean):
    with mp.workdps(60):
        x, m = mp.mpf(t), mp.mpf(mean)
        expected = x * mp.log(x / m) + m - x
    found = divergence(np.array([t]), np.array([mean]))[0]
    assert found == pytest.approx(float(expected), rel=1e-13)


def test_divergence_at_zero():
    found = divergence(np.array([0.0, 0.0, 2.0]), np.array([0.0, 3.0, 0.0]))
    assert found.tolist() == [0.0, 3.0, np.inf]


def test_certain_means_have_no_deviance_from_what_was_sure():
    bernoulli, certain = GLM_FAMILIES["bernoulli"], np.array([0.0, 1.0])
    assert bernoulli.deviance(certain, certain).tolist() == [0.0, 0.0]
    assert bernoulli.deviance(certain, 1 - certain).tolist() == [np.inf, np.inf]
    assert bernoulli.log_likelihood(certain, certain).tolist() == [0.0, 0.0]
    assert GLM_FAMILIES["exponential"].deviance(np.zeros(1), np.ones(1)) == np.inf


@pytest.mark.parametrize("name", ["bernoulli", "poisson", "exponential"])
def test_a_dispersion_that_is_fixed_cannot_be_changed(name):
    one = np.ones(1)
    with pytest.raises(ParameterError, match=f"dispersion of a {name} target is one, not 0.5"):
        GLM_FAMILIES[name].log_likelihood(one, one / 2, 0.5)


@pytest.mark.parametrize(
    ("family", "link", "words"),
    [
        ("normal", "log", "no family 'normal' of targets. Choose 'bernoulli', 'exponential'"),
        (
            "poisson",
            "logit",
            "poisson target cannot have the link 'logit'. .* 'canonical', 'log' or 'identity'",
        ),
        ("bernoulli", "cdf", "bernoulli target cannot have the link 'cdf'"),
    ],
)
def test_combinations_that_cannot_be_are_named(family, link, words):
    with pytest.raises(ParameterError, match=words):
        glm_loss(family, link)


@pytest.mark.parametrize(
    "dispersion", [1e-32, 1e-9, 1e-3, 0.02, 0.049999, 0.050001, 0.3, 1.0, 40.0]
)
def test_the_gamma_density_at_its_mean_keeps_its_digits(dispersion):
    with mp.workdps(80):
        k = 1 / mp.mpf(dispersion)
        exact = k * mp.log(k) - k - mp.loggamma(k)
    # At k = 20 terms of size 60 leave 0.6: 2e-14 is what rounding takes.
    assert log_gamma_peak(dispersion) == pytest.approx(float(exact), rel=1e-14, abs=2e-14)


@pytest.mark.parametrize("dispersion", [1e-20, 1e-4, 0.4])
def test_the_gamma_likelihood_of_a_close_fit_keeps_its_digits(dispersion):
    t, mean = 3.0, 3.0 * (1 + 1e-10)
    with mp.workdps(80):
        k, ratio = 1 / mp.mpf(dispersion), mp.mpf(t) / mp.mpf(mean)
        exact = k * mp.log(k * ratio) - k * ratio - mp.loggamma(k) - mp.log(mp.mpf(t))
    found = GLM_FAMILIES["gamma"].log_density(np.array([t]), np.array([mean]), dispersion)
    assert found[0] == pytest.approx(float(exact), rel=1e-6 if dispersion < 1e-9 else 1e-13)


@pytest.mark.parametrize("unit", [1e-300, 1e-160, 1.0, 1e160, 1e300])
def test_gamma_and_exponential_sums_have_no_units(unit):
    """Pearson's ratio and the deviance stay; the density is over the unit."""
    t, mean = np.array([0.2, 1.0, 3.0]), np.array([0.5, 1.5, 2.5])
    for family in (GLM_FAMILIES["gamma"], GLM_FAMILIES["exponential"]):
        np.testing.assert_allclose(
            family.pearson(t * unit, mean * unit), [0.36, 1 / 9, 0.04], rtol=1e-14
        )
        np.testing.assert_allclose(
            family.deviance(t * unit, mean * unit), family.deviance(t, mean), rtol=1e-13
        )
        moved = family.log_density(t * unit, mean * unit, 1.0) + np.log(unit)
        np.testing.assert_allclose(moved, family.log_density(t, mean, 1.0), atol=1e-12)


def test_large_counts_have_a_pearson_ratio():
    found = GLM_FAMILIES["poisson"].pearson(np.array([4e200, 3.0]), np.array([1e200, 4.0]))
    np.testing.assert_allclose(found, [9e200, 0.25], rtol=1e-15)


def test_means_at_the_ends_of_the_doubles_have_no_likelihood():
    t = np.array([0.0, 2.0])
    infinite, zero = np.full(2, np.inf), np.zeros(2)
    assert (GLM_FAMILIES["poisson"].log_density(t, infinite, 1.0) == -np.inf).all()
    assert GLM_FAMILIES["poisson"].log_density(t, zero, 1.0).tolist() == [0.0, -np.inf]
    assert (GLM_FAMILIES["exponential"].log_density(t, infinite, 1.0) == -np.inf).all()
    assert GLM_FAMILIES["exponential"].log_density(t, zero, 1.0).tolist() == [np.inf, -np.inf]
