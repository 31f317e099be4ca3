"""Covariances and how far they are shrunk, the smallest least squares solution, and where EM stops.

The numbers of the models are compared with 50 digits in their own tests.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oracle import correlated_rows

from posteriori import GaussianClassifier
from posteriori.design.columns import Columns
from posteriori.rows.in_memory import read_rows
from posteriori.rows.schema import Schema
from posteriori.solve.closed_form import (
    GroupMoments,
    group_covariances,
    least_squares,
    oracle_shrinkage,
)
from posteriori.statistics.column_moments import gather
from posteriori.statistics.moments import GatherMoments

RANDOM = np.random.default_rng(5)
ROWS = RANDOM.standard_normal((30, 4)) @ RANDOM.standard_normal((4, 4)) * [1.0, 1e3, 1e-5, 2.0]
SIGMA = np.cov(ROWS, rowvar=False)


def factor_of(covariance, shrinkage=None, n=30.0, overall=None):
    d, overall = len(covariance), np.diagonal(covariance) if overall is None else overall
    group = GroupMoments("", Schema.unnamed(d), covariance, n, overall, np.zeros(d))
    return group.factorise(np.arange(d), shrinkage)


def test_automatic_shrinkage_is_the_oracle_approximation_of_standardised_rows():
    correlation, n, d = np.corrcoef(ROWS.T), len(ROWS), 4
    # Chen et al. (23), in their d and n, straight from the paper. scikit-learn has no 2/d.
    square, trace = (correlation**2).sum(), np.trace(correlation)
    paper = ((1 - 2 / d) * square + trace**2) / ((n + 1 - 2 / d) * (square - trace**2 / d))
    assert_allclose(oracle_shrinkage(correlation, n), paper, rtol=1e-14)
    assert_allclose(factor_of(SIGMA, "auto", n=n).shrinkage, paper, rtol=1e-12)


def test_a_singular_covariance_names_the_columns():
    X = np.column_stack([ROWS[:, 0], ROWS[:, 3], ROWS[:, 0] - ROWS[:, 3]])
    found = factor_of(np.cov(X, rowvar=False))
    assert found.factor is None
    assert len(found.culprits) == 1
    # A column constant here is drawn towards its variance everywhere, unless that is zero too.
    found = factor_of(np.diag([1.0, 0.0]), 0.25, overall=np.array([1.5, 8.0]))
    assert_allclose(found.factor.covariance(), np.diag([1.0, 0.25 * 8.0]), rtol=1e-14)
    found = factor_of(np.diag([1.0, 0.0]), 0.25, overall=np.array([1.5, 0.0]))
    assert found.factor is None
    assert_array_equal(found.culprits, [1])


X, Y = correlated_rows(45, 4, 3, seed=1)
SHARED, OWN, PAIR = np.array([0, 0, 0]), np.array([0, 1, 2]), np.array([0, 1, 0])


def covariances(X, y, groups, shrinkage=None, divisor="ml"):
    rows = read_rows(X, y)
    moments = gather(rows, GatherMoments(Columns(rows.schema), rows.classes, groups is SHARED))
    return group_covariances(moments, groups, shrinkage, divisor)


def test_automatic_shrinkage_counts_the_degrees_of_freedom_of_each_group():
    found = covariances(X, Y, PAIR, "auto")
    for amount, group in zip(found.shrinkage, [[0, 2], [1]], strict=True):
        scatter = sum((k == Y).sum() * np.cov(X[k == Y].T, ddof=0) for k in group)
        scale = np.sqrt(np.diagonal(scatter))
        freedom = np.isin(Y, group).sum() - len(group)
        expected = oracle_shrinkage(scatter / scale / scale[:, None], freedom)
        assert_allclose(amount, expected, rtol=1e-12)


def test_a_column_constant_within_the_classes_only_is_shrunk_not_left_out():
    found = covariances(np.column_stack([X, Y * 1.0]), Y, SHARED)
    assert len(found.factors[0].kept) == 5
    amount = found.shrinkage[0]
    assert 0 < amount <= 1
    assert_allclose(found.factors[0].covariance()[4, 4], amount * Y.var(), rtol=1e-12)
    assert "singular in column 4" in found.caveats[0].problem


@pytest.mark.parametrize("sizes", [[1.0] * 5, [1.0, 1e4, 1e-3, 1.0, 10.0]])
def test_of_many_solutions_the_smallest_is_taken_whatever_the_units(sizes):
    P, T = (M - M.mean(axis=0) for M in (RANDOM.normal(size=(25, 4)), RANDOM.normal(size=(25, 2))))
    Z = np.column_stack([P, P[:, 1] + P[:, 3], np.zeros(25)]) * [*sizes, 1.0]
    coefficients, dependent = least_squares(Z.T @ Z, Z.T @ T, 0.0, np.arange(6) == 5)
    assert_allclose(Z @ coefficients, P @ np.linalg.lstsq(P, T)[0], rtol=1e-8, atol=1e-9)
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
