"""Closed forms: the smallest least squares solution, and where expectation-maximisation stops.

The numbers of the models are compared with 50 digits in their own tests.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from posteriori import GaussianClassifier
from posteriori.solve.closed_form import least_squares

RANDOM = np.random.default_rng(8)
X = RANDOM.standard_normal((25, 4)) @ RANDOM.standard_normal((4, 4))
X -= X.mean(axis=0)
T = RANDOM.standard_normal((25, 2))
T -= T.mean(axis=0)


@pytest.mark.parametrize("sizes", [[1.0] * 5, [1.0, 1e4, 1e-3, 1.0, 10.0]])
def test_of_many_solutions_the_smallest_is_taken_whatever_the_units(sizes):
    Z = np.column_stack([X, X[:, 1] + X[:, 3], np.zeros(25)]) * [*sizes, 1.0]
    coefficients, dependent = least_squares(Z.T @ Z, Z.T @ T, 0.0, np.arange(6) == 5)
    assert_allclose(Z @ coefficients, X @ np.linalg.lstsq(X, T)[0], rtol=1e-8, atol=1e-9)
    null = np.array([0, 1 / sizes[1], 0, 1 / sizes[3], -1 / sizes[4], 0])
    assert_allclose(null @ coefficients, 0.0, atol=1e-10 * abs(coefficients).max())
    assert_array_equal(coefficients[5], 0.0)
    assert len(dependent) == 2
    assert dependent[1] == 5


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
