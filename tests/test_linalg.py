"""Triangular factors and ranks against mpmath and NumPy."""

import sys
import threading
import time

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


def correlation_of(X):
    return np.corrcoef(X, rowvar=False)


def test_the_factor_is_lower_triangular_and_multiplies_back():
    lower = cholesky(A)
    assert_array_equal(np.triu(lower, 1), 0.0)
    assert_allclose(lower @ lower.T, A, rtol=1e-15, atol=1e-15)
    assert_array_equal(A, A.T)  # the argument is left alone


def test_a_matrix_that_is_not_positive_definite_has_no_factor():
    assert cholesky(np.array([[1.0, 2.0], [2.0, 1.0]])) is None
    assert cholesky(np.zeros((2, 2))) is None


def test_the_factor_of_nothing_is_nothing():
    assert cholesky(np.empty((0, 0))).shape == (0, 0)


def test_forward_substitution_twice_over_solves_the_system():
    right = np.array([1.0, -2.0, 3.0])
    white = solve_lower(cholesky(A), right)
    expected = doubles(right @ solve(exact(A), exact(right)))
    assert_allclose(white @ white, expected, rtol=1e-14)


def test_solving_with_no_columns_gives_no_columns():
    assert solve_lower(cholesky(A), np.empty((3, 0))).shape == (3, 0)


@pytest.mark.parametrize("seed", range(5))
def test_as_many_columns_are_dependent_as_the_rank_lacks(seed):
    random = np.random.default_rng(seed)
    base = random.standard_normal((50, 3))
    X = np.column_stack([base, base @ random.standard_normal((3, 2))])
    found = dependent_columns(correlation_of(X))
    assert len(found) == 2
    kept = np.setdiff1d(np.arange(5), found)
    assert np.linalg.matrix_rank(X[:, kept]) == 3


def test_regular_columns_are_all_independent():
    X = np.random.default_rng(1).standard_normal((40, 4))
    assert len(dependent_columns(correlation_of(X))) == 0


def test_a_zero_on_the_diagonal_is_dependent():
    matrix = np.diag([1.0, 0.0, 1.0])
    assert_array_equal(dependent_columns(matrix), [1])


@pytest.mark.parametrize(("share", "count"), [(1e-9, 0), (1e-12, 0), (3e-15, 1), (0.0, 1)])
def test_dependence_is_judged_by_the_share_of_variance_left(share, count):
    r = np.sqrt(1 - share)
    assert len(dependent_columns(np.array([[1.0, r], [r, 1.0]]))) == count


def test_a_nearly_dependent_column_hides_no_dependent_one():
    """Without pivoting, the small second pivot would leave the third column a large error."""
    x, z = np.random.default_rng(0).standard_normal((2, 500))
    X = np.column_stack([x, x + 1e-6 * z, z])
    assert len(dependent_columns(correlation_of(X))) == 1


def test_unit_diagonal_scales_to_correlations_and_leaves_zeros():
    scatter = np.array([[4.0, 3.0, 0.0], [3.0, 9.0, 0.0], [0.0, 0.0, 0.0]])
    matrix, scale = unit_diagonal(scatter)
    assert_allclose(matrix, [[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 0.0]], rtol=1e-15)
    assert_array_equal(scale, [2.0, 3.0, 1.0])


def test_unit_diagonal_survives_units_that_differ_by_hundreds_of_powers():
    sizes = np.array([1e-140, 1.0, 1e140])
    matrix, scale = unit_diagonal(A * sizes * sizes[:, None])
    assert_allclose(matrix, unit_diagonal(A)[0], rtol=1e-14)
    assert_allclose(scale, np.sqrt(np.diagonal(A)) * sizes, rtol=1e-14)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n_rows", [0, 1, 700, 20_001])
@pytest.mark.parametrize("shapes", [((1,), ()), ((20,), ()), ((20,), (4,)), ((20,), (30,))])
def test_products_over_rows_lose_no_row(order, n_rows, shapes):
    """Whole numbers, whose sums are exact: every row counts once, however they are cut."""
    random = np.random.default_rng(5)
    A, B = (random.integers(-9, 9, (n_rows, *shape)).astype(float, order=order) for shape in shapes)
    assert_array_equal(transpose_matmul(A, B), A.T.astype(int) @ B.astype(int))
    assert_array_equal(transpose_matmul(A, A), A.T.astype(int) @ A.astype(int))


@pytest.mark.parametrize("step", [1, 2])
def test_products_of_a_matrix_with_itself_are_symmetric(step):
    X = np.asfortranarray(np.random.default_rng(6).normal(size=(30_000, 25)))[100:-100, ::step]
    found = transpose_matmul(X, X)
    assert_array_equal(found, found.T)
    assert_allclose(found, X.T @ X, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("other_columns", [0, slice(None)], ids=["vector", "matrix"])
@pytest.mark.parametrize("n_columns", [1, 20], ids=["one column", "twenty columns"])
def test_other_threads_go_on_while_rows_are_summed(n_columns, other_columns):
    """Nothing but the sums can let the other thread go on: nobody is made to, for a minute."""
    X = np.ones((4_000_000 // n_columns, n_columns))
    steps, done = [0], threading.Event()

    def step():
        while not done.is_set():
            steps[0] += 1
            time.sleep(0)

    other, interval = threading.Thread(target=step), sys.getswitchinterval()
    other.start()
    sys.setswitchinterval(60.0)
    try:
        before = steps[0]
        for _ in range(50):
            transpose_matmul(X, X[:, other_columns])
        seen = steps[0] - before
    finally:
        sys.setswitchinterval(interval)
        done.set()
        other.join()
    assert seen > 0
