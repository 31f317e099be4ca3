"""Offsets that are far apart: the optimum at 50 digits, or a named error."""

import mpmath as mp
import numpy as np
import pytest
from oracle import doubles, exact, solve
from scipy.special import gammaln

from posteriori import GLM
from posteriori.errors import ScaleError

RANDOM = np.random.default_rng(0)
N = 60
X = RANDOM.normal(size=(N, 2))
TIMES = RANDOM.gamma(2.0, 1.0, N) + 0.01
WEIGHT = RANDOM.choice([0.5, 1.0, 3.0], N)
NEAR = RANDOM.uniform(-14, 14, N)

families = pytest.mark.parametrize(
    ("family", "link"),
    [
        (family, link)
        for family in ("gamma", "exponential", "poisson")
        for link in ("log", "identity", "reciprocal")
        if (family, link) != ("poisson", "reciprocal")
    ],
)


def targets(family):
    return np.ceil(TIMES) if family == "poisson" else TIMES


def derivatives(family, link, a, t):
    """-ln p up to what a does not change, with its first and second derivative."""
    if family == "poisson":
        if link == "log":
            return mp.exp(a) - t * a, mp.exp(a) - t, mp.exp(a)
        return a - t * mp.log(a), 1 - t / a, t / a**2
    if link == "log":
        return a + t * mp.exp(-a), 1 - t * mp.exp(-a), t * mp.exp(-a)
    if link == "reciprocal":
        return t * a - mp.log(a), t - 1 / a, 1 / a**2
    return mp.log(a) + t / a, 1 / a - t / a**2, 2 * t / a**3 - 1 / a**2


def polished(family, link, design, offset, start):
    """The optimum near the start by Newton's method at 50 digits, and Σ -ln p there."""
    phi, t, weight = exact(design), exact(targets(family)), exact(WEIGHT)
    w = exact(start)
    for _ in range(8):
        a = phi @ w + exact(offset)
        each = [derivatives(family, link, *pair) for pair in zip(a, t, strict=True)]
        value, gradient, curvature = np.array(each, dtype=object).T * weight
        step = solve((phi.T * curvature) @ phi, phi.T @ gradient)
        w = w - step
    assert max(abs(step)) < 1e-30 * (1 + max(abs(w)))
    return doubles(w), float(value.sum())


@families
def test_offsets_far_apart_give_the_optimum(family, link):
    model = GLM(family=family, link=link)
    model.fit(X, targets(family), offset=NEAR, sample_weight=WEIGHT)
    found = np.append(model.intercept_, model.coef_)
    design = np.column_stack([np.ones(N), X])
    wanted, value = polished(family, link, design, NEAR, found)
    assert model.converged_
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-10 * abs(wanted).max())
    if family != "gamma":
        constant = WEIGHT @ gammaln(targets(family) + 1) if family == "poisson" else 0.0
        assert model.log_likelihood_ == pytest.approx(-value - constant, rel=1e-11)
    assert np.isfinite([model.deviance_, model.null_deviance_, model.dispersion_]).all()
    assert "intercept" in str(model.summary())


@pytest.mark.parametrize("family", ["gamma", "exponential", "poisson"])
def test_the_model_without_columns_is_the_fit_to_a_constant(family):
    offset, t = NEAR, targets(family)
    model = GLM(family=family, link="log").fit(X, t, offset=offset, sample_weight=WEIGHT)
    if family == "poisson":
        sums = WEIGHT @ t, sum(w * mp.exp(o) for w, o in zip(WEIGHT, offset, strict=True))
    else:
        rows = zip(WEIGHT, t, offset, strict=True)
        sums = sum(w * u * mp.exp(-o) for w, u, o in rows), WEIGHT.sum()
    level = mp.log(sums[0] / sums[1])
    wanted = 0
    for w, u, o in zip(WEIGHT, t, offset, strict=True):
        value, _, _ = derivatives(family, "log", level + mp.mpf(o), mp.mpf(u))
        best, _, _ = derivatives(family, "log", mp.log(u), mp.mpf(u))
        wanted += 2 * w * (value - best)
    assert model.null_deviance_ == pytest.approx(float(wanted), rel=1e-11)


@pytest.mark.parametrize("family", ["gamma", "exponential", "poisson", "gaussian"])
def test_offsets_that_span_more_than_thirty_with_the_log_link_are_an_error(family):
    offset = np.linspace(-16, 16, N)
    with pytest.raises(ScaleError, match=r"between -16 and 16.*logarithm of an exposure.*\[P201\]"):
        GLM(family=family, link="log").fit(X, TIMES, offset=offset)
    shifted = GLM(family="poisson", link="log").fit(X, np.ceil(TIMES), offset=np.full(N, 500.0))
    plain = GLM(family="poisson", link="log").fit(X, np.ceil(TIMES))
    np.testing.assert_allclose(shifted.coef_, plain.coef_, rtol=1e-9)
