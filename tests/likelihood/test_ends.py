"""Losses near the ends of a domain: walls, rounded kinks, and which targets an end binds."""

import numpy as np
import pytest
from scipy import stats

from posteriori.likelihood.barrier import BarrierLoss
from posteriori.likelihood.binary import BinaryLoss
from posteriori.likelihood.domain import Domain
from posteriori.likelihood.links import PROBABILITY_LINKS
from posteriori.likelihood.real_losses import PoissonIdentityLoss
from posteriori.likelihood.scipy_link import ScipyLink
from posteriori.likelihood.sigmoids import Probit
from posteriori.likelihood.soft_ends import SoftEnds, domain_of, ends, softened
from posteriori.likelihood.threshold import Mixture, cdf_link

WALLS = {
    "above zero": (PoissonIdentityLoss(), Domain(low=0.0)),
    "from zero to one": (BinaryLoss(PROBABILITY_LINKS["identity"]), Domain(0.0, 1.0)),
    "below zero": (BinaryLoss(PROBABILITY_LINKS["log"]), Domain(high=0.0)),
}
SOFT = {
    "uniform": stats.uniform(-1.0, 2.0),
    "exponential": stats.expon(),
    "beta": stats.beta(2.0, 3.0),
    "truncated normal": stats.truncnorm(-1.0, 2.0),
}


def inside(domain):
    low = max(domain.low, domain.high - 1 if np.isfinite(domain.high) else -1)
    return low + np.array([0.01, 0.2, 0.5, 0.8, 0.99])


def slopes(function, a, step=1e-6):
    return (function(a + step) - function(a - step)) / (2 * step)


@pytest.mark.parametrize(("loss", "domain"), WALLS.values(), ids=WALLS)
@pytest.mark.parametrize("target", [0.0, 1.0])
def test_derivatives_of_a_walled_loss_are_those_of_its_value(loss, domain, target):
    walled, a = BarrierLoss(loss, domain, 0.3), inside(domain)
    t = np.full(len(a), target)
    gradient = walled.gradient(a, t)
    np.testing.assert_allclose(gradient, slopes(lambda x: walled.value(x, t), a), rtol=1e-6)
    curvature = walled.curvature(a, t)
    np.testing.assert_allclose(curvature, slopes(lambda x: walled.gradient(x, t), a), rtol=1e-6)
    assert (walled.information(a) > loss.information(a)).all()
    np.testing.assert_array_equal(walled.mean(a), loss.mean(a))


@pytest.mark.parametrize(("loss", "domain"), WALLS.values(), ids=WALLS)
def test_a_wall_is_infinite_at_an_end_and_beyond(loss, domain):
    walled = BarrierLoss(loss, domain, 1e-8)
    for end, out in ((domain.low, -1.0), (domain.high, 1.0)):
        if np.isfinite(end):
            a = np.array([end, end + 0.5 * out])
            assert np.isinf(walled.value(a, np.array([0.0, 0.0]))).all()
            assert np.isinf(walled.value(a, np.array([1.0, 1.0]))).all()


@pytest.mark.parametrize("noise", SOFT.values(), ids=SOFT)
def test_derivatives_of_a_rounded_kink_are_those_of_its_logarithms(noise):
    link = SoftEnds(ScipyLink(noise), 0.05)
    low, high = noise.support()
    a = np.concatenate([low + np.linspace(-0.2, 0.4, 13), np.array([min(high, 3.0) + 0.05])])
    rise, fall = link.rates(a)
    np.testing.assert_allclose(rise, slopes(link.log_mean, a), rtol=1e-5)
    np.testing.assert_allclose(fall, -slopes(link.log_complement, a), rtol=1e-5, atol=1e-12)
    bends = link.bends(a)
    np.testing.assert_allclose(
        bends[0], -slopes(lambda x: link.rates(x)[0], a), rtol=1e-4, atol=1e-6
    )
    np.testing.assert_allclose(
        bends[1], slopes(lambda x: link.rates(x)[1], a), rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize("noise", SOFT.values(), ids=SOFT)
def test_a_rounded_kink_is_the_distribution_function_in_the_limit(noise):
    link, a = ScipyLink(noise), np.linspace(-2, 3, 41)
    away = [abs(SoftEnds(link, width).mean(a) - noise.cdf(a)).max() for width in (1e-2, 1e-4)]
    assert away[1] <= away[0] / 50 + 1e-12
    assert away[1] < 1e-3


def test_only_noise_with_ends_is_rounded():
    assert isinstance(softened(Probit(), 0.1), Probit)
    mixed = Mixture([0.5, 0.5], [stats.norm(), stats.uniform(2.0, 3.0)])
    link = cdf_link(mixed)
    assert ends(link) == [2.0, 5.0]
    assert ends(Probit()) == []
    parts = softened(link, 0.1).links
    assert isinstance(parts[1], SoftEnds)
    assert not isinstance(parts[0], SoftEnds)


def test_the_domain_of_noise_reaches_from_the_first_end_to_the_last():
    assert domain_of(ScipyLink(stats.expon(1.0))) == Domain(1.0, np.inf, by_label=True)
    both = cdf_link(Mixture([0.5, 0.5], [stats.uniform(), stats.uniform(2.0, 3.0)]))
    assert domain_of(both) == Domain(0.0, 5.0, by_label=True)
    assert not domain_of(Probit()).is_bounded


def test_ends_bind_all_targets_or_those_that_they_make_impossible():
    t = np.array([0.0, 0.5, 1.0])
    low, high = Domain(0.0, 1.0).ends(t)
    np.testing.assert_array_equal(low, np.zeros(3))
    np.testing.assert_array_equal(high, np.ones(3))
    low, high = Domain(0.0, 1.0, by_label=True).ends(t)
    np.testing.assert_array_equal(low, [-np.inf, 0.0, 0.0])
    np.testing.assert_array_equal(high, [1.0, 1.0, np.inf])
