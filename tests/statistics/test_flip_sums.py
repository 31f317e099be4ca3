"""Derivatives in the rate of wrong labels, against 50 digits; and robust weights of rows."""

import mpmath as mp
import numpy as np
import pytest
from scipy import sparse

from posteriori.design.columns import Columns
from posteriori.likelihood.binary_losses import NoisyLogisticLoss
from posteriori.rows.in_memory import read_rows
from posteriori.statistics.label_noise import downweight_outliers, flip_derivatives

mp.mp.dps = 50


def exact_loss(a, t, rate):
    p = rate + (1 - 2 * rate) / (1 + mp.exp(-a))
    return -t * mp.log(p) - (1 - t) * mp.log(1 - p)


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.45])
@pytest.mark.parametrize("a", [-30.0, -1.3, 0.0, 0.4, 25.0])
@pytest.mark.parametrize("t", [0.0, 0.3, 1.0])
def test_they_are_the_derivatives_of_the_loss(a, t, rate):
    found = flip_derivatives(np.array([a]), np.array([t]), rate)
    x, s, e = mp.mpf(a), mp.mpf(t), mp.mpf(rate)
    expected = [
        mp.diff(lambda r: exact_loss(x, s, r), e),
        mp.diff(lambda r: exact_loss(x, s, r), e, 2),
        mp.diff(lambda b, r: exact_loss(b, s, r), (x, e), (1, 1)),
    ]
    np.testing.assert_allclose(np.ravel(found), np.array(expected, float), rtol=1e-10, atol=1e-15)


def test_expected_second_derivatives_are_averages_over_both_labels():
    a, rate = np.array([-3.0, 0.2, 5.0]), 0.15
    p = NoisyLogisticLoss(rate, rate).mean(a)
    _, curvature, cross = flip_derivatives(a, np.zeros(3), rate, expected=True)
    one, other = (flip_derivatives(a, np.full(3, t), rate) for t in (1.0, 0.0))
    np.testing.assert_allclose(curvature, p * one[1] + (1 - p) * other[1], rtol=1e-13)
    np.testing.assert_allclose(cross, p * one[2] + (1 - p) * other[2], rtol=1e-12)


# Robust weights.


def robust(X, weight=None):
    rows = read_rows(X, np.arange(X.shape[0]) % 3, weight)
    return downweight_outliers(rows, Columns(rows.schema))


def test_weights_fall_with_the_square_of_the_distance_in_medians():
    X, weight = np.array([[-1.0], [0.0], [1.0], [100.0], [-2.0]]), np.arange(1.0, 6.0)
    # The median is 0, and so is the distance from it of one row; the median distance is 1.
    expected = 1 / (1 + X[:, 0] ** 2)
    for source, own in ((X, None), (X, weight), (1e-9 * X, None), (sparse.csr_array(X), None)):
        found = robust(source, own).map_sum(lambda block: block.weight)
        np.testing.assert_allclose(found, expected if own is None else own * expected, rtol=1e-12)
