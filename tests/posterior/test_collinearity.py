"""Condition indices and proportions of variances, beside singular values."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from posteriori.design.columns import Columns
from posteriori.posterior.collinearity import collinearity_of, decompose
from posteriori.rows.features import read_features
from posteriori.rows.in_memory import MemoryRows

RANDOM = np.random.default_rng(11)
N = 150
X = RANDOM.normal([0.0, 3.0, -1.0, 0.0], 1.0, size=(N, 4))
X[:, 3] = 10.0 + X[:, 0] + 0.05 * RANDOM.normal(size=N)
X[:, 2] += 6 * X[:, 1]


def found_in(X, weight=None, intercept=True):
    rows = MemoryRows(read_features(X, None, "test"), weight=weight)
    return collinearity_of(rows, Columns(rows.schema), intercept)


def by_singular_values(scaled):
    """Indices, the largest first, and proportions, from the matrix itself (Belsley 1991)."""
    _, values, right = np.linalg.svd(scaled, full_matrices=False)
    shares = (right / values[:, None]) ** 2
    return (values[0] / values)[::-1], (shares / shares.sum(axis=0))[::-1]


def scaled(X):
    return X / np.linalg.norm(X, axis=0)


def test_with_an_intercept_columns_are_taken_about_their_means():
    indices, proportions = by_singular_values(scaled(X - X.mean(axis=0)))
    found = found_in(X)
    assert_allclose(found.indices, indices, rtol=1e-8)
    assert_allclose(found.proportions, proportions, rtol=1e-8, atol=1e-10)
    uncentred, _ = by_singular_values(scaled(np.column_stack([np.ones(N), X])))
    assert_allclose(found.uncentred, uncentred, rtol=1e-8)


def test_without_one_they_are_taken_as_they_are():
    indices, proportions = by_singular_values(scaled(X))
    found = found_in(X, intercept=False)
    assert_allclose(found.indices, indices, rtol=1e-8)
    assert_allclose(found.proportions, proportions, rtol=1e-8, atol=1e-10)
    assert_allclose(found.uncentred, indices, rtol=1e-8)


def test_two_columns_have_the_indices_of_their_correlation():
    """Eigenvalues 1 ± r: the index is √((1 + r)/(1 - r)), the proportions are (1 ± r)/2."""
    r = 0.98
    indices, proportions = decompose(np.array([[4.0, 6 * r], [6 * r, 9.0]]))
    assert_allclose(indices, [np.sqrt((1 + r) / (1 - r)), 1.0], rtol=1e-12)
    assert_allclose(proportions, np.array([[1 + r] * 2, [1 - r] * 2]) / 2, rtol=1e-12)


def test_weights_count_rows():
    times = RANDOM.integers(1, 4, size=N)
    weighted, repeated = found_in(X, times.astype(float)), found_in(np.repeat(X, times, axis=0))
    assert_allclose(weighted.indices, repeated.indices, rtol=1e-9)


def test_units_and_origins_do_not_matter():
    moved = found_in(X * [1e120, 1e-120, 1.0, 1e5] + [0.0, 0.0, 1e7, -1e8])
    assert_allclose(moved.indices, found_in(X).indices, rtol=1e-5)


def test_sparse_columns_are_as_others():
    thin = np.where(abs(X) > 1, X, 0.0)
    assert_allclose(found_in(sparse.csr_array(thin)).indices, found_in(thin).indices, rtol=1e-9)


def test_the_columns_of_each_dependency_are_named():
    first, second = found_in(X).dependencies(above=5.0)
    assert set(first.columns) == {"x0", "x3"}
    assert set(second.columns) == {"x1", "x2"}
    assert first.index > second.index
    assert min(first.proportions) > 0.9
    assert found_in(X).dependencies(above=1e3) == ()


def test_columns_that_cancel_exactly_have_an_infinite_index():
    found = found_in(np.column_stack([X[:, :3], X[:, 0] + X[:, 1]]))
    assert found.largest == np.inf
    assert set(found.dependencies()[0].columns) == {"x0", "x1", "x3"}
    assert np.isfinite(found.proportions).all()


@pytest.mark.parametrize("value", [0.0, 7.3, 1e-200, 1e200])
def test_a_column_that_never_changes_is_left_out(value):
    found = found_in(np.column_stack([X[:, :2], np.full(N, value)]))
    assert found.constant == ("x2",)
    assert_allclose(found.indices, found_in(X[:, :2]).indices, rtol=1e-9)


def test_columns_that_never_change_may_be_all_there_are():
    found = found_in(np.ones((5, 2)))
    assert found.largest == 1.0
    assert found.constant == ("x0", "x1")
    assert found.dependencies() == ()
