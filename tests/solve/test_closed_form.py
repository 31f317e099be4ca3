"""Closed forms against mpmath and LAPACK."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oracle import doubles, exact, solve
from scipy.linalg import eigh

from posteriori import GaussianClassifier
from posteriori.solve.closed_form import EMParameters, fisher_directions, least_squares
from posteriori.solve.covariance import factorise

RANDOM = np.random.default_rng(8)
X = RANDOM.standard_normal((25, 4)) @ RANDOM.standard_normal((4, 4))
X -= X.mean(axis=0)
T = RANDOM.standard_normal((25, 2))
T -= T.mean(axis=0)
NONE = np.zeros(4, dtype=bool)


@pytest.mark.parametrize("penalty", [[0.0] * 4, [0.5, 0.0, 3.0, 1.0]])
def test_least_squares_solves_the_normal_equations(penalty):
    found = least_squares(X.T @ X, X.T @ T, np.array(penalty), NONE)
    A = exact(X).T @ exact(X) + np.diag(exact(penalty))
    expected = np.column_stack([solve(A, exact(X).T @ exact(T[:, k])) for k in range(2)])
    assert_allclose(found.coefficients, doubles(expected), rtol=1e-11)
    assert len(found.dependent) == 0


@pytest.mark.parametrize("sizes", [[1.0] * 5, [1.0, 1e4, 1e-3, 1.0, 10.0]])
def test_of_many_answers_the_smallest_is_taken_whatever_the_units(sizes):
    Z = np.column_stack([X, X[:, 1] + X[:, 3]]) * sizes
    found = least_squares(Z.T @ Z, Z.T @ T, np.zeros(5), np.zeros(5, dtype=bool))
    assert_allclose(Z @ found.coefficients, X @ np.linalg.lstsq(X, T)[0], rtol=1e-8, atol=1e-9)
    null = np.array([0, 1 / sizes[1], 0, 1 / sizes[3], -1 / sizes[4]])
    assert_allclose(null @ found.coefficients, 0.0, atol=1e-10 * abs(found.coefficients).max())
    assert len(found.dependent) == 1


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
    assert (found.eigenvalues[K - 1 :] < 1e-14 * values[0]).all()
    W = found.scalings[:, : K - 1]
    left, right = between.T @ between @ W, within @ W * found.eigenvalues[: K - 1]
    assert_allclose(left, right, rtol=1e-9, atol=1e-9 * abs(right).max())
    assert_allclose(W.T @ within @ W / freedom, np.eye(K - 1), atol=1e-11)


def holes(X, share=0.2):
    """Some entries of each row but the first missing."""
    X, random = X.copy(), np.random.default_rng(4)
    X[random.random(X.shape) < share] = np.nan
    return X[~np.isnan(X).all(axis=1)]


@pytest.mark.parametrize("narrow", [1.0, 1e-4, 1e-7])
def test_expectation_maximisation_stops_by_the_shift_of_each_class_in_its_own_scale(narrow):
    """Classes with covariances of their own are fitted as if each were alone."""
    wide, other = holes(X + 1), narrow * holes(X[::-1] @ np.diag([1.0, 2.0, 1.0, 0.5]))
    rows, y = np.vstack([wide, other]), np.repeat(["wide", "other"], [len(wide), len(other)])
    together = GaussianClassifier(covariance="full").fit(rows, y)
    alone = GaussianClassifier(covariance="full").fit(
        np.vstack([other, other]), [0, 1] * len(other)
    )
    k = list(together.classes_).index("other")
    spread = np.sqrt(np.diagonal(alone.covariances_[0]))
    assert_allclose(together.means_[k] / spread, alone.means_[0] / spread, atol=1e-6)


def test_em_measures_the_shift_of_each_class_in_its_own_scale():
    covariance = np.array([[[1e-8]], [[1e4]]])
    now = EMParameters(np.array([[0.0], [0.0]]), covariance, np.array([0, 1]))
    moved = EMParameters(np.array([[1e-4], [0.0]]), covariance, np.array([0, 1]))
    assert moved.distance(now) == pytest.approx(1.0)
    moved = EMParameters(np.array([[0.0], [1e-4]]), covariance, np.array([0, 1]))
    assert moved.distance(now) == pytest.approx(1e-6)
