"""Closed forms against mpmath and LAPACK."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oracle import doubles, exact, solve
from scipy.linalg import eigh

from posteriori.solve.covariance import factorise
from posteriori.solve.direct import fisher_directions, least_squares

RANDOM = np.random.default_rng(8)
X = RANDOM.standard_normal((25, 4)) @ RANDOM.standard_normal((4, 4))
X -= X.mean(axis=0)
T = RANDOM.standard_normal((25, 2))
T -= T.mean(axis=0)
NONE = np.zeros(4, dtype=bool)


def test_least_squares_solves_the_normal_equations():
    found = least_squares(X.T @ X, X.T @ T, np.zeros(4), NONE)
    A = exact(X).T @ exact(X)
    expected = np.column_stack([solve(A, exact(X).T @ exact(T[:, k])) for k in range(2)])
    assert_allclose(found.coefficients, doubles(expected), rtol=1e-11)
    assert len(found.dependent) == 0


def test_a_penalty_is_added_to_the_diagonal():
    penalty = np.array([0.5, 0.0, 3.0, 1.0])
    found = least_squares(X.T @ X, X.T @ T, penalty, NONE)
    expected = np.linalg.solve(X.T @ X + np.diag(penalty), X.T @ T)
    assert_allclose(found.coefficients, expected, rtol=1e-12)


def test_of_many_answers_the_smallest_is_taken():
    Z = np.column_stack([X, 2 * X[:, 0] - X[:, 1], 3 * X[:, 2]])
    found = least_squares(Z.T @ Z, Z.T @ T, np.zeros(6), np.zeros(6, dtype=bool))
    assert_allclose(found.coefficients, np.linalg.pinv(Z) @ T, rtol=1e-9, atol=1e-11)
    assert len(found.dependent) == 2


def test_the_smallest_answer_is_that_of_the_coefficients_whatever_the_units():
    sizes = np.array([1.0, 1e4, 1e-3, 1.0, 10.0])
    Z = np.column_stack([X, X[:, 1] + X[:, 3]]) * sizes
    found = least_squares(Z.T @ Z, Z.T @ T, np.zeros(5), np.zeros(5, dtype=bool)).coefficients
    assert_allclose(Z @ found, X @ np.linalg.lstsq(X, T)[0], rtol=1e-8, atol=1e-9)
    null = np.array([0, 1 / sizes[1], 0, 1 / sizes[3], -1 / sizes[4]])
    assert_allclose(null @ found, 0.0, atol=1e-10 * abs(found).max())


def test_constant_columns_get_nothing_and_are_named():
    Z = np.column_stack([X[:, :2], np.zeros(25), X[:, 2:]])
    constant = np.array([False, False, True, False, False])
    found = least_squares(Z.T @ Z, Z.T @ T, np.zeros(5), constant)
    assert_array_equal(found.coefficients[2], 0.0)
    assert_allclose(found.coefficients[[0, 1, 3, 4]], np.linalg.lstsq(X, T)[0], rtol=1e-11)
    assert_array_equal(found.dependent, [2])


def scatters(K):
    y = np.arange(25) % K
    rows = X + 0.7 * np.arange(K)[y][:, None] ** [1, 2, 0, 3]
    means = np.array([rows[y == k].mean(axis=0) for k in range(K)])
    within = (rows - means[y]).T @ (rows - means[y])
    root = np.sqrt(np.bincount(y))[:, None] * (means - rows.mean(axis=0))
    return within, root


@pytest.mark.parametrize("K", [2, 3, 4])
def test_the_directions_solve_the_generalised_eigenproblem(K):
    within, between = scatters(K)
    freedom = 25.0 - K
    factor = factorise(within / freedom, np.ones(4), np.zeros(4), 25.0, None).factor
    found = fisher_directions(factor, between, freedom)
    values = eigh(between.T @ between, within, eigvals_only=True)[::-1][: K - 1]
    assert_allclose(found.eigenvalues[: K - 1], values, rtol=1e-10)
    W = found.scalings[:, : K - 1]
    left, right = between.T @ between @ W, within @ W * found.eigenvalues[: K - 1]
    assert_allclose(left, right, rtol=1e-9, atol=1e-9 * abs(right).max())
    assert_allclose(W.T @ within @ W / freedom, np.eye(K - 1), atol=1e-11)


def test_there_are_no_more_than_one_less_than_classes():
    within, between = scatters(3)
    factor = factorise(within / 22, np.ones(4), np.zeros(4), 25.0, None).factor
    eigenvalues = fisher_directions(factor, between, 22.0).eigenvalues
    assert eigenvalues[2] < 1e-14 * eigenvalues[0]
