"""Laws of every loss of one activation, against 250 digits."""

from functools import cache, partial

import mpmath as mp
import numpy as np
import pytest
from losses_registry import LOSSES, Entry

from posteriori.likelihood.cdf_links import NoiseLink
from posteriori.likelihood.glm_families import GLM_FAMILIES
from posteriori.likelihood.loss import Loss

every_loss = pytest.mark.parametrize("name", LOSSES)
MEANS = {0: lambda a: a, 1: mp.exp, 2: lambda a: 1 / a}  # by the power of the link
SIGNED = LOSSES["logistic"].logs
EXTREMES = np.array([0.0, 1e-9, 40.0, 745.0, 1e4])


def derivatives(function, a: float):
    """f, f' and f'' by differences so fine, with digits so many, that no double can tell."""
    with mp.workdps(250):
        a = mp.mpf(a)
        step = abs(a) * mp.mpf(10) ** -40
        below, at, above = (function(x) for x in (a - step, a, a + step))
        return at, (above - below) / (2 * step), (above - 2 * at + below) / step**2


@cache
def exact(name: str):
    """-ln p and its two derivatives of all rows of an entry, as doubles (3, n)."""
    entry = LOSSES[name]
    rows = zip(*entry.rows(), strict=True)
    return np.array([derivatives(partial(entry.exact, t=t), a) for a, t in rows]).T.astype(float)


def inside(entry: Entry, a):
    low, high = entry.domain
    return (a > low) & (a < high)


def extremes(entry: Entry):
    a = np.concatenate([EXTREMES, -EXTREMES])
    return a[inside(entry, a)]


def close(found, expected, entry: Entry, rtol: float):
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=entry.atol, strict=True)


def test_every_family_and_link_has_an_example_here():
    tested = {id(entry.loss) for entry in LOSSES.values()}
    losses = [loss for family in GLM_FAMILIES.values() for loss in family.losses.values()]
    logit = GLM_FAMILIES["bernoulli"].losses["logit"]
    assert [loss for loss in losses if id(loss) not in tested] == [logit]


@every_loss
def test_value_and_derivatives_are_exact(name):
    entry = LOSSES[name]
    a, t = entry.rows()
    value, gradient, curvature = exact(name)
    close(entry.loss.value(a, t), value, entry, 1e-12)
    close(entry.loss.gradient(a, t), gradient, entry, entry.rtol)
    close(entry.loss.curvature(a, t), curvature, entry, entry.slopes)


@every_loss
def test_losses_called_convex_are_and_others_are_not(name):
    entry = LOSSES[name]
    a = np.concatenate([np.linspace(-30, 30, 600), np.linspace(-1, 1, 100)])
    a, t = np.meshgrid(a[inside(entry, a)], entry.targets)
    least = entry.loss.curvature(a.ravel(), t.ravel()).min()
    known = not isinstance(getattr(entry.loss, "link", None), NoiseLink)
    assert (least >= 0) == entry.loss.convex or not known
    assert least >= 0 or not entry.loss.convex


def exact_information(entry: Entry, a: float):
    """Information and its derivative: of labels from ln p, of numbers from the loss at t = μ."""
    if entry.kind not in ("label", "sign"):
        mean = MEANS[entry.loss.link.power]
        return derivatives(lambda a: derivatives(lambda x: entry.exact(x, mean(a)), a)[2], a)[:2]
    (_, s1, s2), (_, f1, f2) = (derivatives(log, a) for log in entry.logs or SIGNED)
    return -s1 * f1, -s2 * f1 - s1 * f2


@every_loss
def test_information_and_its_slope_are_exact_far_out(name):
    entry = LOSSES[name]
    a = np.array(entry.near + entry.far)
    value, slope = np.array([exact_information(entry, v) for v in a]).T.astype(float)
    close(entry.loss.information(a), value, entry, entry.rtol)
    close(entry.loss.information_slope(a), slope, entry, entry.slopes)


@every_loss
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rows", ["none", "all", "hard", "certain"])
def test_sums_are_those_of_the_rows(name, weighted, rows):
    entry = LOSSES[name]
    a, t = (np.tile(v, 30) for v in entry.rows())
    hard, certain = np.isin(t, (-1.0, 0.0, 1.0)), entry.loss.value(a, t) < 1e-4
    kept = {"none": ~np.isfinite(a), "all": np.isfinite(a), "hard": hard, "certain": certain}[rows]
    a, t = a[kept], t[kept]
    weight = np.random.default_rng(0).uniform(0.5, 2, len(a)) if weighted else None
    value, gradient = entry.loss.value(a, t), entry.loss.gradient(a, t)
    ones = np.ones(len(a)) if weight is None else weight
    total, found = entry.loss.sum_and_gradient(a.copy(), t, weight)
    assert total == pytest.approx((ones * value).sum(), rel=1e-12, abs=1e-300)
    np.testing.assert_allclose(found, ones * gradient, rtol=1e-11, atol=2e-16)


@every_loss
def test_mean_and_activation_are_inverse_to_one_another(name):
    entry = LOSSES[name]
    a = np.array(entry.near)
    mean = entry.loss.mean(a)
    kept = abs(mean) < (0.999 if entry.kind in ("label", "sign") else np.inf)
    np.testing.assert_allclose(entry.loss.activation(mean)[kept], a[kept], rtol=1e-11, atol=1e-12)


@every_loss
def test_values_outside_the_domain_are_infinite(name):
    entry = LOSSES[name]
    a = np.array([-1e4, -0.5, -1e-9, 1e-9, 1.5, 1e4])
    a, t = (v.ravel() for v in np.meshgrid(a[~inside(entry, a)], entry.targets))
    if len(a) == 0:
        return
    assert (entry.loss.value(a, t) == np.inf).all()
    assert np.isnan(entry.loss.gradient(a, t)).all()
    assert np.isnan(entry.loss.curvature(a, t)).all()
    assert np.isnan(entry.loss.information(a)).all()
    assert entry.loss.sum_and_gradient(a.copy(), t, None)[0] == np.inf


@every_loss
def test_nothing_is_not_a_number_where_the_value_is_finite(name):
    """Warnings are errors here, so that none of these may overflow aloud."""
    entry = LOSSES[name]
    a, t = (v.ravel() for v in np.meshgrid(extremes(entry), entry.targets))
    loss: Loss = entry.loss
    value = loss.value(a, t)
    assert not np.isnan(value).any()
    assert not np.isnan(loss.sum_and_gradient(a.copy(), t, np.ones(len(a)))[0])
    a, t = a[np.isfinite(value)], t[np.isfinite(value)]
    for found in (loss.gradient(a, t), loss.curvature(a, t), loss.mean(a), loss.information(a)):
        assert not np.isnan(found).any()
    assert (loss.information(a) >= 0).all()
