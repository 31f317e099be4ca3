"""Offsets so far apart that few rows count: the optimum at 50 digits, or a named error."""

import mpmath as mp
import numpy as np
import pytest
from oracle import doubles, exact, solve
from scipy.special import gammaln

from posteriori import GLM
from posteriori.errors import BoundaryWarning, ScaleError
from posteriori.likelihood.distant import DistantLoss
from posteriori.likelihood.glm import glm_loss

RANDOM = np.random.default_rng(0)
N = 60
X = RANDOM.normal(size=(N, 2))
TIMES = RANDOM.gamma(2.0, 1.0, N) + 0.01
WEIGHT = RANDOM.choice([0.5, 1.0, 3.0], N)
ONE = np.where(np.arange(N) == 7, 700.0, 0.0)
OFFSETS = {
    "three values": RANDOM.choice([-700.0, 0.0, 700.0], N),
    "anywhere": RANDOM.uniform(-700, 700, N),
    "one high": ONE,
    "one low": -ONE,
    "bent": 700 * np.tanh(X[:, 0]),
    "along a column": 300 * X[:, 0],
    "near": RANDOM.uniform(-14, 14, N),
}
far = pytest.mark.parametrize("name", OFFSETS)
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


@far
@families
def test_far_offsets_give_the_optimum(family, link, name):
    model = GLM(family=family, link=link)
    model.fit(X, targets(family), offset=OFFSETS[name], sample_weight=WEIGHT)
    found = np.append(model.intercept_, model.coef_)
    design = np.column_stack([np.ones(N), X])
    wanted, value = polished(family, link, design, OFFSETS[name], found)
    assert model.converged_
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-10 * abs(wanted).max())
    if family != "gamma":
        constant = WEIGHT @ gammaln(targets(family) + 1) if family == "poisson" else 0.0
        assert model.log_likelihood_ == pytest.approx(-value - constant, rel=1e-11)
    assert np.isfinite([model.deviance_, model.null_deviance_, model.dispersion_]).all()
    assert "intercept" in str(model.summary())


@far
@pytest.mark.parametrize("family", ["gamma", "exponential", "poisson"])
def test_the_model_without_columns_is_the_fit_to_a_constant(family, name):
    offset, t = OFFSETS[name], targets(family)
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


def test_a_null_model_at_the_end_of_its_domain_has_a_deviance():
    offset, t = 300 * np.tanh(X[:, 0]), np.floor(TIMES)
    t[np.argmin(offset)] = 0.0
    with pytest.warns(BoundaryWarning, match="row 6 lies at an end"):
        model = GLM(family="poisson", link="identity").fit(X[:, 1:], t, offset=offset)
    mean = offset - offset.min()
    inside = t > 0
    wanted = 2 * (mean - t).sum() + 2 * t[inside] @ np.log(t[inside] / mean[inside])
    assert model.null_deviance_ == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("family", ["gamma", "exponential", "poisson"])
def test_many_rows_with_a_few_far_offsets(family):
    random = np.random.default_rng(1)
    wide = random.normal(size=(20_000, 2))
    t = np.ceil(random.gamma(2.0, 1.0, len(wide)))
    offset = np.where(np.arange(len(t)) == 11, -700.0, np.where(np.arange(len(t)) == 17, 700.0, 0))
    model = GLM(family=family, link="log").fit(wide, t, offset=offset)
    a = model.intercept_ + wide @ model.coef_ + offset
    phi = np.column_stack([np.ones(len(t)), wide])
    pull = np.exp(a) - t if family == "poisson" else 1 - t * np.exp(-a)
    size = np.exp(a) + t if family == "poisson" else 1 + t * np.exp(-a)
    assert (abs(phi.T @ pull) <= 1e-9 * (abs(phi).T @ size)).all()


def test_offsets_beyond_all_digits_are_named():
    offset = np.linspace(-1e15, 1e15, N)
    with pytest.raises(ScaleError, match=r"between -1e\+15 and 1e\+15.*closer together\. \[P201\]"):
        GLM(family="gamma", link="log").fit(X, TIMES, offset=offset)


@pytest.mark.parametrize("family", ["gamma", "poisson"])
def test_a_distant_loss_has_the_derivatives_of_its_values(family):
    loss = DistantLoss(glm_loss(family, "log"), 0.5, 20.0)
    a, t, h = np.linspace(-40.0, 40.0, 9), np.full(9, 2.0), 1e-4
    slope = (loss.value(a + h, t) - loss.value(a - h, t)) / (2 * h)
    bend = (loss.gradient(a + h, t) - loss.gradient(a - h, t)) / (2 * h)
    np.testing.assert_allclose(loss.gradient(a, t), slope, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(loss.curvature(a, t), bend, rtol=1e-7)
    np.testing.assert_allclose(loss.activation(loss.mean(a)), a, rtol=1e-12, atol=1e-12)
    plain = DistantLoss(glm_loss(family, "log"), 0.5, 1.0)
    np.testing.assert_allclose(plain.value(a, t), glm_loss(family, "log").value(a, t), rtol=1e-12)
