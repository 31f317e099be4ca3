"""Laws of every named link: derivatives, inverses, both tails, domains."""

import mpmath as mp
import numpy as np
import pytest
from losses_registry import log_sigmoid

from posteriori.likelihood.links import (
    PROBABILITY_LINKS,
    Identity,
    Log,
    PositiveIdentity,
    Reciprocal,
)

MEANS = {
    "logit": lambda a: mp.exp(log_sigmoid(a)),
    "probit": mp.ncdf,
    "cloglog": lambda a: -mp.expm1(-mp.exp(a)),
    "log": mp.exp,
    "identity": lambda a: a,
    "reciprocal": lambda a: 1 / a,
}
NUMBERS = {"log": Log(), "identity": Identity(), "reciprocal": Reciprocal()}
LINKS = PROBABILITY_LINKS | NUMBERS
every_link = pytest.mark.parametrize("name", LINKS)
every_probability_link = pytest.mark.parametrize("name", PROBABILITY_LINKS)


@every_link
def test_the_mean_has_its_derivatives_and_the_link_is_its_inverse(name):
    link = LINKS[name]
    a = np.array([0.2, 0.9, 1.8] if name == "reciprocal" else [-3.0, -0.7, 0.2, 0.9, 1.8])
    for order, found in enumerate((link.mean(a), link.slope(a), link.second_derivative(a))):
        with mp.workdps(60):
            expected = [float(mp.diff(MEANS[name], mp.mpf(v), order)) for v in a]
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-16)
    np.testing.assert_allclose(link.activation(link.mean(a)), a, rtol=1e-12)


@every_probability_link
def test_probabilities_keep_their_activation_and_logarithm(name):
    link = PROBABILITY_LINKS[name]
    mean = np.array([1e-300, 1e-20, 1e-3, 0.4])
    a = link.activation(mean)
    np.testing.assert_allclose(link.mean(a), mean, rtol=1e-12)
    np.testing.assert_allclose(link.logs(a)[0], np.log(mean), rtol=1e-13)
    np.testing.assert_allclose(link.logs(a)[1], np.log1p(-mean), rtol=1e-12)
    np.testing.assert_allclose(link.complement(a), 1 - mean, rtol=1e-14)
    np.testing.assert_allclose(link.rates(a)[0] * link.mean(a), link.slope(a), rtol=1e-14)


def test_domains_are_where_a_mean_is_and_their_ends_are_certain():
    for name, link in LINKS.items():
        assert link.domain == ((0.0, np.inf) if name == "reciprocal" else (-np.inf, np.inf))
    assert PositiveIdentity().domain == (0.0, np.inf)
    for link in (LINKS["reciprocal"], PositiveIdentity()):
        assert np.isnan(link.mean(np.array([-2.0])))
    for name, ends in {"identity": (0.0, 1.0), "log": (-np.inf, 0.0)}.items():
        assert PROBABILITY_LINKS[name].domain == ends
        second, first = PROBABILITY_LINKS[name].logs(np.array(ends))
        assert second.tolist() == [-np.inf, 0.0]
        assert first.tolist() == [0.0, -np.inf]


@every_link
def test_means_without_an_activation_are_not_numbers(name):
    low, high = LINKS[name].activation(np.array([-1.5, 1.5]))
    assert np.isnan(low) == (name != "identity")
    assert np.isnan(high) == (name in ("logit", "probit", "cloglog"))
