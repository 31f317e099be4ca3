"""Triangular factors, ranks and products over rows against mpmath and NumPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oracle import doubles, exact, solve

from posteriori.linalg import (
    cholesky,
    dependent_columns,
    solve_lower,
    transpose_matmul,
    unit_diagonal,
)

A = np.array([[4.0, 1.0, -2.0], [1.0, 3.0, 0.5], [-2.0, 0.5, 5.0]])


def test_the_factor_is_lower_triangular_and_solves_the_system():
    lower, right = cholesky(A), np.array([1.0, -2.0, 3.0])
    assert_array_equal(np.triu(lower, 1), 0.0)
    assert_allclose(lower @ lower.T, A, rtol=1e-15, atol=1e-15)
    white = solve_lower(lower, right)
    expected = doubles(right @ solve(exact(A), exact(right)))
    assert_allclose(white @ white, expected, rtol=1e-14)
    assert solve_lower(lower, np.empty((3, 0))).shape == (3, 0)
    assert cholesky(np.empty((0, 0))).shape == (0, 0)
    assert cholesky(np.array([[1.0, 2.0], [2.0, 1.0]])) is None
    assert cholesky(np.zeros((2, 2))) is None


def test_as_many_columns_are_dependent_as_the_rank_lacks():
    random = np.random.default_rng(0)
    base = random.standard_normal((50, 3))
    X = np.column_stack([base, base @ random.standard_normal((3, 2))])
    found = dependent_columns(np.corrcoef(X, rowvar=False))
    assert len(found) == 2
    kept = np.setdiff1d(np.arange(5), found)
    assert np.linalg.matrix_rank(X[:, kept]) == 3
    assert len(dependent_columns(np.corrcoef(base, rowvar=False))) == 0
    assert_array_equal(dependent_columns(np.diag([1.0, 0.0, 1.0])), [1])


@pytest.mark.parametrize(("share", "count"), [(1e-9, 0), (1e-12, 0), (3e-15, 1), (0.0, 1)])
def test_dependence_is_judged_by_the_share_of_variance_left(share, count):
    r = np.sqrt(1 - share)
    assert len(dependent_columns(np.array([[1.0, r], [r, 1.0]]))) == count


def test_a_nearly_dependent_column_hides_no_dependent_one():
    """Without pivoting, the small second pivot would leave the third column a large error."""
    x, z = np.random.default_rng(0).standard_normal((2, 500))
    X = np.column_stack([x, x + 1e-6 * z, z])
    assert len(dependent_columns(np.corrcoef(X, rowvar=False))) == 1


def test_unit_diagonal_scales_to_correlations_and_leaves_zeros():
    sizes = np.array([1e-140, 1e140, 1.0])
    scatter = np.array([[4.0, 3.0, 0.0], [3.0, 9.0, 0.0], [0.0, 0.0, 0.0]])
    matrix, scale = unit_diagonal(scatter * sizes * sizes[:, None])
    assert_allclose(matrix, [[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 0.0]], rtol=1e-14)
    assert_allclose(scale, [2e-140, 3e140, 1.0], rtol=1e-14)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n_rows", [0, 1, 700, 20_001])
@pytest.mark.parametrize("shapes", [((1,), ()), ((20,), ()), ((20,), (4,)), ((20,), (30,))])
def test_products_over_rows_lose_no_row(order, n_rows, shapes):
    """Whole numbers, whose sums are exact: every row counts once, however they are cut."""
    random = np.random.default_rng(5)
    A, B = (random.integers(-9, 9, (n_rows, *shape)).astype(float, order=order) for shape in shapes)
    assert_array_equal(transpose_matmul(A, B), A.T.astype(int) @ B.astype(int))
    assert_array_equal(transpose_matmul(A, A), A.T.astype(int) @ A.astype(int))


def test_products_of_a_matrix_with_itself_are_symmetric():
    X = np.asfortranarray(np.random.default_rng(6).normal(size=(30_000, 25)))[100:-100, ::2]
    found = transpose_matmul(X, X)
    assert_array_equal(found, found.T)
    assert_allclose(found, X.T @ X, rtol=1e-12, atol=1e-9)
