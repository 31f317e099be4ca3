"""The slope of greatest likelihood: against brackets at 50 digits, at all scales, in few passes."""

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import softmax

from posteriori.decision.calibration import likeliest_slope
from posteriori.rows.in_memory import read_rows


def noisy(K, n=300, b=0.3, seed=0):
    """Activations that are too sure by 1/b, and labels."""
    random = np.random.default_rng(seed)
    a = 3 * random.normal(size=(n, K))
    return a, (softmax(b * a, axis=1).cumsum(axis=1) < random.random((n, 1))).sum(axis=1)


def slope_of(a, y, weight=None):
    return likeliest_slope(read_rows(a, y, weight), len(y) if weight is None else weight.sum())


class Counted:
    """Rows that count their passes."""

    def __init__(self, rows):
        self.rows, self.passes = rows, 0

    def map_sum(self, kernel):
        self.passes += 1
        return self.rows.map_sum(kernel)


@pytest.mark.parametrize("K", [2, 4])
def test_the_derivative_is_zero_at_fifty_digits(K):
    a, y = noisy(K, n=40)
    b = slope_of(a, y)
    with mpmath.workdps(50):
        exact = [[mpmath.mpf(value) for value in row] for row in a.tolist()]

        def derivative(b):
            total = mpmath.mpf(0)
            for row, own in zip(exact, y, strict=True):
                e = [mpmath.exp(b * value) for value in row]
                total += row[own] - mpmath.fdot(e, row) / mpmath.fsum(e)
            return total

        assert_allclose(b, float(mpmath.findroot(derivative, b)), rtol=1e-14)


@pytest.mark.parametrize("scale", [1e-290, 1e-100, 1e-6, 1.0, 1e6, 1e100, 1e290])
@pytest.mark.parametrize("b", [1e-3, 0.3, 4.0])
def test_the_unit_of_activations_does_not_matter_and_passes_are_few(b, scale):
    a, y = noisy(3, b=b, n=2_000)
    expected = slope_of(a, y)
    rows = Counted(read_rows(scale * a, y))
    assert_allclose(likeliest_slope(rows, len(y)) * scale, expected, rtol=1e-12)
    assert rows.passes <= 12


@pytest.mark.parametrize("seed", range(8))
def test_a_few_rows_that_are_wrong_by_far_do_not_lead_astray(seed):
    """All others are right, and sure of it: the likelihood has a sharp bend."""
    random = np.random.default_rng(seed)
    a = random.normal(size=(500, 3)) * 10.0 ** random.integers(-3, 4, size=(500, 1))
    y = a.argmax(axis=1)
    y[: 1 + seed] = (y[: 1 + seed] + 1) % 3
    rows = Counted(read_rows(a, y))
    b = likeliest_slope(rows, len(y))
    below = a - a.max(axis=1, keepdims=True)

    def pull(b):
        return (softmax(b * below, axis=1) * below).sum() - below[np.arange(500), y].sum()

    if b == 0:
        assert pull(0.0) >= 0
    else:
        assert pull(b * (1 - 1e-9)) <= 0 <= pull(b * (1 + 1e-9))
    assert rows.passes <= 25


def test_the_ends():
    a, y = noisy(3)
    assert slope_of(-a, y) == 0
    assert slope_of(a, a.argmax(axis=1)) == np.inf
    assert slope_of(np.zeros_like(a), y) == 0


@pytest.mark.parametrize("unit", [1e-90, 1e-5, 1e90])
@pytest.mark.parametrize("scale", [1e-150, 1e10])
def test_the_unit_of_weights_does_not_matter(unit, scale):
    a, y = noisy(3)
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y))
    found = slope_of(scale * a, y, unit * weight) * scale
    assert_allclose(found, slope_of(a, y, weight), rtol=1e-12)
