"""Residuals averaged over rows of like predictions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binom

from posteriori.decision.calibration import OUTSIDE, BinnedResiduals, binned_residuals


def binned(p, t, weight=None):
    weight = np.ones(len(p)) if weight is None else weight
    return binned_residuals(p, t.astype(float), p * (1 - p), weight)


def test_bins_are_means_of_equal_numbers_of_rows_in_order():
    random = np.random.default_rng(0)
    p = random.uniform(size=400)
    t = random.uniform(size=400) < p
    found, order = binned(p, t), np.argsort(p)
    parts = order.reshape(20, 20)
    assert_allclose(found.n, 20)
    assert_allclose(found.predicted, p[parts].mean(axis=1))
    assert_allclose(found.observed, t[parts].mean(axis=1))
    assert_allclose(found.std_error, np.sqrt((p * (1 - p))[parts].sum(axis=1)) / 20)
    assert_allclose(found.z, (found.observed - found.predicted) / found.std_error)


def test_a_weight_is_so_many_rows():
    random = np.random.default_rng(1)
    p, times = random.uniform(size=200), random.integers(1, 4, size=200)
    t = random.uniform(size=200) < p
    weighted = binned(p, t, times.astype(float))
    repeated = binned(np.repeat(p, times), np.repeat(t, times))
    assert_allclose(weighted.z, repeated.z)


def test_a_right_model_has_one_bin_in_twenty_outside():
    random = np.random.default_rng(2)
    p = random.uniform(0.1, 0.9, size=(300, 400))
    shares = [binned(each, random.uniform(size=400) < each).share for each in p]
    assert np.mean(shares) == pytest.approx(OUTSIDE, abs=0.01)


def test_the_p_value_is_the_chance_of_so_many_bins():
    ones = np.ones(20)
    found = BinnedResiduals(ones, ones, 0 * ones, np.r_[3.0, -4.0, 5.0, np.zeros(17)], ones)
    assert found.share == pytest.approx(0.15)
    assert found.p_value == pytest.approx(binom.sf(2, 20, OUTSIDE))
    assert found.worst == 2
    assert BinnedResiduals(ones, ones, ones, ones, ones).p_value == 1.0


def test_what_was_certain_is_infinitely_far_off_or_not_at_all():
    certain = binned(np.repeat([0.0, 1.0], 20), np.repeat([False, True], 20))
    assert certain.z.tolist() == [0.0, 0.0]
    wrong = binned(np.repeat([0.0, 1.0], 20), np.repeat([True, False], 20))
    assert wrong.z.tolist() == [np.inf, -np.inf]


def test_one_row_is_one_bin():
    found = binned(np.array([0.5]), np.array([True]))
    assert found.z.tolist() == [1.0]
    assert found.share == 0.0
