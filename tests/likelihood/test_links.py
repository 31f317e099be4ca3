"""Laws of every link: derivatives, inverses, both tails; which noise makes which link."""

import mpmath as mp
import numpy as np
import pytest
from losses_registry import LOSSES, MIXED, log_normal_cdf, log_sigmoid
from scipy import stats

from posteriori.errors import ParameterError
from posteriori.likelihood.link import LocatedLink, ProbabilityLink
from posteriori.likelihood.links import LINKS, PROBABILITY_LINKS, PositiveIdentity
from posteriori.likelihood.scipy_link import ScipyLink
from posteriori.likelihood.sigmoids import Cauchit, Cloglog, Laplace, Logit, Loglog, Probit, Student
from posteriori.likelihood.threshold import Mixture, ThresholdLoss, cdf_link

MEANS = {
    "logit": lambda a: mp.exp(log_sigmoid(a)),
    "probit": mp.ncdf,
    "cloglog": lambda a: -mp.expm1(-mp.exp(a)),
    "log": mp.exp,
    "identity": lambda a: a,
    "reciprocal": lambda a: 1 / a,
}
NOISES = {
    "norm": stats.norm(0.3, 2.0),
    "logistic": stats.logistic(),
    "cauchy": stats.cauchy,
    "laplace": stats.laplace(1.0),
    "gumbel_l": stats.gumbel_l,
    "gumbel_r": stats.gumbel_r(scale=0.5),
    "t": stats.t(3),
    "t, wide": stats.t(4.5, 1.0, 3.0),
    "mixture": MIXED,
    "mixture of tails": Mixture((0.5, 0.5), (stats.cauchy(), stats.gumbel_r())),
    "skewed": stats.skewnorm(3.0),
    "hyperbolic": stats.hypsecant,
}
every_link = pytest.mark.parametrize("name", LINKS)
every_noise = pytest.mark.parametrize("name", NOISES)


def activations(name):
    return np.array([0.2, 0.9, 1.8] if name == "reciprocal" else [-3.0, -0.7, 0.2, 0.9, 1.8])


def derivative(function, a, order):
    with mp.workdps(60):
        return [float(mp.diff(function, mp.mpf(v), order)) for v in a]


@every_link
def test_mean_has_its_derivatives(name):
    link, a = LINKS[name], activations(name)
    for order, found in enumerate((link.mean(a), link.slope(a), link.bend(a))):
        expected = derivative(MEANS[name], a, order)
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-16)


@every_link
def test_link_and_mean_are_inverse_to_one_another(name):
    link, a = LINKS[name], activations(name)
    np.testing.assert_allclose(link.activation(link.mean(a)), a, rtol=1e-12)


@pytest.mark.parametrize("name", PROBABILITY_LINKS)
def test_small_probabilities_keep_their_activation(name):
    link = PROBABILITY_LINKS[name]
    mean = np.array([1e-300, 1e-20, 1e-3, 0.4])
    np.testing.assert_allclose(link.mean(link.activation(mean)), mean, rtol=1e-12)
    np.testing.assert_allclose(link.log_mean(link.activation(mean)), np.log(mean), rtol=1e-13)


@pytest.mark.parametrize("name", PROBABILITY_LINKS)
def test_log_probabilities_are_those_of_the_mean(name):
    link = PROBABILITY_LINKS[name]
    a = np.array([0.1, 0.5, 0.7] if name == "identity" else [-3.0, -1.0, -0.1])
    np.testing.assert_allclose(np.exp(link.log_mean(a)), link.mean(a), rtol=1e-14)
    np.testing.assert_allclose(np.exp(link.log_complement(a)), 1 - link.mean(a), rtol=1e-14)
    np.testing.assert_allclose(link.rates(a)[0] * link.mean(a), link.slope(a), rtol=1e-14)


def test_domains_are_where_a_mean_is():
    everywhere = (-np.inf, np.inf)
    for name in ("logit", "probit", "cloglog", "log", "identity"):
        assert LINKS[name].domain == everywhere
    assert LINKS["reciprocal"].domain == PositiveIdentity().domain == (0.0, np.inf)
    assert np.isnan(LINKS["reciprocal"].mean(np.array([-2.0, 0.0]))).all()
    assert PROBABILITY_LINKS["log"].domain == (-np.inf, 0.0)
    assert PROBABILITY_LINKS["identity"].domain == (0.0, 1.0)


def test_ends_of_a_domain_are_certain():
    identity, log = PROBABILITY_LINKS["identity"], PROBABILITY_LINKS["log"]
    np.testing.assert_array_equal(identity.log_mean(np.array([0.0, 1.0])), [-np.inf, 0])
    np.testing.assert_array_equal(identity.log_complement(np.array([0.0, 1.0])), [0, -np.inf])
    assert log.log_mean(np.zeros(1)) == 0
    assert log.log_complement(np.zeros(1)) == -np.inf


@pytest.mark.parametrize("name", LINKS)
def test_means_without_an_activation_are_not_numbers(name):
    low, high = LINKS[name].activation(np.array([-1.5, 1.5]))
    assert np.isnan(low) == (name != "identity")
    assert np.isnan(high) == (name in ("logit", "probit", "cloglog"))


@every_noise
def test_noise_has_the_distribution_function_of_scipy(name):
    noise, link = NOISES[name], cdf_link(NOISES[name])
    parts = noise.distributions if isinstance(noise, Mixture) else [noise]
    weights = noise.weights if isinstance(noise, Mixture) else [1.0]
    a = np.linspace(-4, 4, 33)
    cdf = sum(w * part.cdf(a) for w, part in zip(weights, parts, strict=True))
    pdf = sum(w * part.pdf(a) for w, part in zip(weights, parts, strict=True))
    np.testing.assert_allclose(link.mean(a), cdf, rtol=1e-12)
    np.testing.assert_allclose(np.exp(link.log_mean(a)), cdf, rtol=1e-12)
    np.testing.assert_allclose(-np.expm1(link.log_complement(a)), cdf, rtol=1e-11, atol=1e-15)
    np.testing.assert_allclose(link.slope(a), pdf, rtol=1e-11)


@every_noise
def test_noise_bends_as_its_density_slopes(name):
    link, a, step = cdf_link(NOISES[name]), np.linspace(-2.99, 3.01, 13), 1e-4
    slope = link.slope
    fine = (8 * (slope(a + step) - slope(a - step)) - slope(a + 2 * step) + slope(a - 2 * step)) / (
        12 * step
    )
    np.testing.assert_allclose(link.bend(a), fine, rtol=1e-8, atol=1e-10)


@every_noise
def test_quantiles_are_the_inverse_of_the_distribution_function(name):
    link = cdf_link(NOISES[name])
    mean = np.array([1e-3, 0.2, 0.5, 0.9, 0.999])
    np.testing.assert_allclose(link.mean(link.activation(mean)), mean, rtol=1e-10)


def test_closed_forms_are_recognised():
    kinds = [Probit, Logit, Cauchit, Laplace, Cloglog, Loglog, Student]
    plain = [stats.norm, stats.logistic, stats.cauchy, stats.laplace, stats.gumbel_l,
             stats.gumbel_r, stats.t(3)]  # fmt: skip
    assert [type(cdf_link(noise)) for noise in plain] == kinds
    assert isinstance(cdf_link(stats.t(np.inf)), Probit)
    located = cdf_link(stats.t(3, loc=1.0, scale=2.0))
    assert isinstance(located, LocatedLink)
    assert (located.link.freedom, located.place, located.width) == (3, 1.0, 2.0)
    assert isinstance(cdf_link(stats.expon), ScipyLink)


def test_tails_are_exact_at_any_distance():
    a = -np.array([1e2, 1e8, 1e150])
    expected = [float(mp.log(mp.acot(-mp.mpf(v)) / mp.pi)) for v in a]
    np.testing.assert_allclose(cdf_link(stats.cauchy).log_mean(a), expected, rtol=1e-14)
    np.testing.assert_allclose(cdf_link(stats.cauchy).rates(a)[0], -1 / a, rtol=1e-4)
    student = cdf_link(stats.t(3))
    np.testing.assert_allclose(student.rates(a[1:])[0], -3 / a[1:], rtol=1e-14)
    tail = -3 * np.log(-a[1:]) + np.log(2 * np.sqrt(3) / np.pi)
    np.testing.assert_allclose(student.log_mean(a[1:]), tail, rtol=1e-14)
    certain = cdf_link(stats.cauchy).log_mean(-a)
    np.testing.assert_allclose(certain, 1 / (np.pi * a), rtol=1e-2)


def test_mixture_tails_are_those_of_its_widest_part():
    a = np.array([-200.0])
    link = cdf_link(Mixture((0.3, 0.7), (stats.norm(0, 1), stats.norm(0, 5))))
    with mp.workdps(50):
        expected = mp.log(0.7) + log_normal_cdf(mp.mpf(-40))
    np.testing.assert_allclose(link.log_mean(a), float(expected), rtol=1e-14)
    np.testing.assert_allclose(link.rates(a)[0], Probit().rate(a / 5) / 5, rtol=1e-14)
    np.testing.assert_allclose(link.bends(a)[0], Probit().log_bend(a / 5) / 25, rtol=1e-14)


def test_quantiles_at_the_ends_of_a_mixture_are_infinite():
    assert cdf_link(MIXED).activation(np.array([0.0, 1.0])).tolist() == [-np.inf, np.inf]


def test_beyond_a_bounded_support_labels_are_certain_or_impossible():
    loss = ThresholdLoss(stats.uniform(0.0, 2.0))
    a = np.array([-1.0, -1.0, 3.0, 3.0])
    t = np.array([0.0, 1.0, 0.0, 1.0])
    assert loss.value(a, t).tolist() == [0.0, np.inf, np.inf, 0.0]
    assert loss.gradient(a, t).tolist() == [0.0] * 4
    assert loss.curvature(a, t).tolist() == [0.0] * 4
    assert loss.information(a).tolist() == [0.0] * 4


def test_only_log_concave_noise_makes_a_convex_loss():
    convex = {name for name, entry in LOSSES.items() if entry.loss.convex}
    assert {name for name in convex if name.startswith("threshold")} == {
        f"threshold, {kind}"
        for kind in ("normal", "wide normal", "logistic", "Laplace", "left Gumbel", "right Gumbel")
    }
    assert issubclass(ScipyLink, ProbabilityLink)
    assert not ScipyLink.log_concave


@pytest.mark.parametrize(
    ("noise", "words"),
    [
        (stats.t, "'t' needs arguments. Give them: scipy.stats.t\\(df\\)"),
        (stats.poisson(3), "not a continuous distribution"),
        ("poisson", "noise='poisson' is not the name of a continuous distribution"),
        (stats.norm([0.0, 1.0]), "argument loc of the distribution 'norm'"),
        (stats.norm(0.0, -1.0), "'norm' does not exist with the arguments 0.0, -1.0"),
        (stats.gamma(a=-2.0), "'gamma' does not exist with the arguments a=-2.0"),
    ],
)
def test_noise_that_cannot_be_is_named(noise, words):
    with pytest.raises(ParameterError, match=words):
        ThresholdLoss(noise)


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([0.5, 0.6], "sum to 1.1"),
        ([1.0], "2 distributions has the weights \\[1.0\\]"),
        ([1.5, -0.5], "above zero"),
    ],
)
def test_mixtures_that_cannot_be_are_named(weights, words):
    with pytest.raises(ParameterError, match=words):
        Mixture(weights, [stats.norm(), stats.cauchy()])
