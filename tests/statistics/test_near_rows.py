"""Rows that count the less, the farther out they lie."""

import numpy as np
from scipy import sparse

from posteriori.design.columns import Columns
from posteriori.rows.in_memory import read_rows
from posteriori.statistics.label_noise import near_rows


def weights_of(X, weight=None):
    rows = read_rows(X, np.arange(len(weight) if weight is not None else X.shape[0]) % 2, weight)
    return near_rows(rows, Columns(rows.schema)).map_sum(lambda block: block.weight)


def test_weights_fall_with_the_square_of_the_distance_in_medians():
    X = np.array([[-1.0], [0.0], [1.0], [100.0], [-2.0]])
    # The median is 0, and so is the distance from it of one row; the median distance is 1.
    np.testing.assert_allclose(weights_of(X), 1 / (1 + X[:, 0] ** 2), rtol=1e-12)


def test_they_multiply_the_weights_that_are_there():
    X, weight = np.array([[-1.0], [0.0], [1.0], [100.0], [-2.0]]), np.arange(1.0, 6.0)
    np.testing.assert_allclose(weights_of(X, weight), weight * weights_of(X), rtol=1e-14)


def test_units_do_not_matter_and_neither_does_storage():
    X = np.random.default_rng(0).standard_normal((30, 3))
    plain = weights_of(X)
    np.testing.assert_allclose(weights_of(X * [1e-9, 1.0, 1e9]), plain, rtol=1e-12)
    np.testing.assert_allclose(weights_of(sparse.csr_array(X)), plain, rtol=1e-12)


def test_they_are_rows_of_the_same_columns_and_classes():
    rows = read_rows(np.arange(6.0)[:, None], list("abcabc"))
    near = near_rows(rows, Columns(rows.schema))
    assert (near.schema, near.n_rows, near.soft) == (rows.schema, 6, False)
    np.testing.assert_array_equal(near.classes, ["a", "b", "c"])
