"""Derivatives in the rate of wrong labels, against 50 digits; and robust weights of rows."""

import mpmath as mp
import numpy as np
import pytest
from scipy import sparse

from posteriori.design.columns import Columns
from posteriori.design.standardise import Standard
from posteriori.likelihood.logistic import LogisticLoss
from posteriori.likelihood.noise import NoisyLogisticLoss
from posteriori.rows.in_memory import read_rows
from posteriori.statistics.label_noise import GatherFlips, downweight_outliers, flip_derivatives
from posteriori.statistics.local_quadratic import GatherQuadratic

mp.mp.dps = 50


def exact_loss(a, t, rate):
    p = rate + (1 - 2 * rate) / (1 + mp.exp(-a))
    return -t * mp.log(p) - (1 - t) * mp.log(1 - p)


@pytest.mark.parametrize("rate", [0.0, 1e-4, 0.1, 0.45])
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


def test_at_no_noise_a_row_that_cannot_be_makes_the_slope_infinite():
    slope, _, _ = flip_derivatives(np.array([800.0, 800.0]), np.array([0.0, 1.0]), 0.0)
    np.testing.assert_array_equal(slope, [-np.inf, 1.0])


def test_expected_second_derivatives_are_averages_over_both_labels():
    a, rate = np.array([-3.0, 0.2, 5.0]), 0.15
    p = NoisyLogisticLoss(rate, rate).mean(a)
    _, curvature, cross = flip_derivatives(a, np.zeros(3), rate, expected=True)
    one, other = (flip_derivatives(a, np.full(3, t), rate) for t in (1.0, 0.0))
    np.testing.assert_allclose(curvature, p * one[1] + (1 - p) * other[1], rtol=1e-13)
    np.testing.assert_allclose(cross, p * one[2] + (1 - p) * other[2], rtol=1e-12)


def test_the_derivatives_are_those_of_the_loss_with_two_rates_along_both():
    a, t, rate = np.array([-3.0, 0.2, 5.0]), np.array([1.0, 0.4, 0.0]), 0.15
    loss = NoisyLogisticLoss(rate, rate)
    slope, curvature, cross = flip_derivatives(a, t, rate)
    np.testing.assert_allclose(slope, loss.flip_gradient(a, t).sum(axis=1), rtol=1e-13)
    np.testing.assert_allclose(curvature, loss.flip_curvature(a, t).sum(axis=(1, 2)), rtol=1e-12)
    np.testing.assert_allclose(cross, loss.flip_cross(a, t).sum(axis=1), rtol=1e-12)


def test_sums_are_weighted_and_do_not_depend_on_the_blocks():
    random = np.random.default_rng(1)
    X, y, weight = random.standard_normal((50, 2)), np.arange(50) % 2, random.uniform(1, 3, 50)
    rows, theta = read_rows(X, y, weight), np.array([[0.3, -1.0, 2.0]])
    standard = Standard(np.zeros(2), np.ones(2), True)
    columns = Columns(rows.schema)
    at = GatherQuadratic(columns, standard, LogisticLoss(), lambda b: b.y.astype(float), theta)
    design = np.column_stack([np.ones(50), X])
    slope, curvature, cross = flip_derivatives(design @ theta[0], y.astype(float), 0.2)
    found = rows.map_sum(GatherFlips(at, 0.2), block_entries=16)
    assert found.slope == pytest.approx(weight @ slope, rel=1e-12)
    assert found.curvature == pytest.approx(weight @ curvature, rel=1e-12)
    np.testing.assert_allclose(found.cross, [design.T @ (weight * cross)], rtol=1e-11)
    twice = found.times(2.0)
    assert twice.slope == 2 * found.slope
    assert twice.curvature == 2 * found.curvature
    np.testing.assert_array_equal(twice.cross, 2 * found.cross)


# Robust weights.


def near_weights(X, weight=None):
    rows = read_rows(X, np.arange(len(weight) if weight is not None else X.shape[0]) % 2, weight)
    return downweight_outliers(rows, Columns(rows.schema)).map_sum(lambda block: block.weight)


def test_weights_fall_with_the_square_of_the_distance_in_medians():
    X = np.array([[-1.0], [0.0], [1.0], [100.0], [-2.0]])
    # The median is 0, and so is the distance from it of one row; the median distance is 1.
    np.testing.assert_allclose(near_weights(X), 1 / (1 + X[:, 0] ** 2), rtol=1e-12)


def test_they_multiply_the_weights_that_are_there():
    X, weight = np.array([[-1.0], [0.0], [1.0], [100.0], [-2.0]]), np.arange(1.0, 6.0)
    np.testing.assert_allclose(near_weights(X, weight), weight * near_weights(X), rtol=1e-14)


def test_units_do_not_matter_and_neither_does_storage():
    X = np.random.default_rng(0).standard_normal((30, 3))
    plain = near_weights(X)
    np.testing.assert_allclose(near_weights(X * [1e-9, 1.0, 1e9]), plain, rtol=1e-12)
    np.testing.assert_allclose(near_weights(sparse.csr_array(X)), plain, rtol=1e-12)


def test_they_are_rows_of_the_same_columns_and_classes():
    rows = read_rows(np.arange(6.0)[:, None], list("abcabc"))
    near = downweight_outliers(rows, Columns(rows.schema))
    assert (near.schema, near.n_rows, near.soft) == (rows.schema, 6, False)
    np.testing.assert_array_equal(near.classes, ["a", "b", "c"])
