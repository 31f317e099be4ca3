"""Sums of the rows of each class, whatever the number of classes and however rows lie in memory."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from posteriori.statistics.column_moments import sums_by_class


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n_classes", [1, 2, 3, 4, 8, 9, 16, 17, 40])
@pytest.mark.parametrize("n_rows", [1, 700, 20_001])
def test_each_row_is_summed_with_its_class(order, n_classes, n_rows):
    random = np.random.default_rng(1)
    X = random.integers(-9, 9, (n_rows, 5)).astype(float, order=order)
    codes = random.integers(0, n_classes, n_rows)
    expected = np.zeros((n_classes, 5))
    np.add.at(expected, codes, X)
    assert_array_equal(sums_by_class(X, codes, n_classes), expected)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n_rows", [240, 30_000])
def test_a_class_without_rows_changes_no_bit_of_the_others(order, n_rows):
    random = np.random.default_rng(2)
    X = np.asarray(random.normal(size=(n_rows, 3)), order=order)
    codes = random.integers(0, 2, n_rows)
    found = sums_by_class(X, 2 * codes, 4)
    assert_array_equal(found[[0, 2]], sums_by_class(X, codes, 2))
    assert_array_equal(found[[1, 3]], 0.0)
