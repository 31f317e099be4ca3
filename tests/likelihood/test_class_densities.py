"""Gaussian densities held by factors, against mpmath at 50 digits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from oracle import correlated_rows, doubles, exact, log_normal
from scipy.sparse import csr_array

from posteriori.design.columns import Columns
from posteriori.likelihood.class_densities import DiagonalGaussians, FullGaussians
from posteriori.likelihood.feature_families import Gaussian
from posteriori.rows.block import Mixed
from posteriori.rows.schema import Column, Schema
from posteriori.solve.closed_form import factorise

X, Y = correlated_rows(40, 4, 3, seed=2)
MEANS = np.array([X[k == Y].mean(axis=0) for k in range(3)])
SIGMAS = [np.cov(X[k == Y], rowvar=False) for k in range(3)]
COLUMNS = Columns(Schema.unnamed(4))
SPREAD = np.array([X[k == Y].std(axis=0) for k in range(3)])


def factor(covariance):
    zeros = np.zeros(len(covariance))
    return factorise(covariance, np.diagonal(covariance), zeros, 10.0, None).factor


def full(groups, far=0.0):
    factors = tuple(factor(SIGMAS[g]) for g in range(max(groups) + 1))
    return FullGaussians(MEANS + far, factors, np.array(groups))


def expected(X, means, covariances):
    """ln N of each row for each class, with covariances of doubles or of 50 digits."""
    columns = [
        [log_normal(x, exact(mean), covariance) for x in exact(X)]
        for mean, covariance in zip(means, covariances, strict=True)
    ]
    return doubles(np.array(columns, dtype=object).T)


def holed(X):
    """Rows with every pattern of missing entries in turn."""
    X = X[:16].copy()
    for i in range(16):
        X[i, [j for j in range(4) if i >> j & 1]] = np.nan
    return X


@pytest.mark.parametrize("groups", [[0, 0, 0], [0, 1, 2], [0, 1, 0]])
@pytest.mark.parametrize("far", [0.0, 1e6])
def test_full_densities_are_those_of_fifty_digits_with_missing_entries_integrated_out(groups, far):
    densities, sigmas = full(groups, far), [exact(SIGMAS[g]) for g in groups]
    right = expected(X[:8] + far, MEANS + far, sigmas)
    assert_allclose(densities.log_density(X[:8] + far, COLUMNS), right, rtol=1e-12)
    right = expected(holed(X) + far, MEANS + far, sigmas)
    found = densities.log_density(holed(X) + far, COLUMNS, missing=True)
    assert_allclose(found, right, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("shared", [False, True])
def test_factors_and_sparse_rows_have_the_density_of_their_indicators(shared):
    random = np.random.default_rng(3)
    schema = Schema(
        (Column("a"), Column("f", "categorical", tuple("xyz")), Column("b")), named=True
    )
    codes = np.array([[0], [1], [2], [2]], dtype=np.int32)
    numbers = random.normal(size=(4, 2))
    matrix = np.column_stack([numbers[:, 0], codes == 1, codes == 2, numbers[:, 1]])
    sd = np.full((3, 4), 0.6) if shared else SPREAD
    family = Gaussian(random.normal(size=(3, 4)), np.where(np.arange(4) == 2, np.inf, sd))
    densities = DiagonalGaussians(family, shared)
    right = densities.log_density(matrix, COLUMNS)
    found = densities.log_density(Mixed(numbers, codes), Columns(schema))
    assert_allclose(found, right, rtol=1e-12)
    assert_allclose(densities.log_density(csr_array(matrix), COLUMNS), right, rtol=1e-12)
    full_densities = full([0, 1, 0])
    right = full_densities.log_density(matrix, COLUMNS)
    found = full_densities.log_density(Mixed(numbers, codes), Columns(schema))
    assert_allclose(found, right, rtol=1e-12)
    numbers[1, 0] = matrix[1, 0] = np.nan
    right = densities.log_density(matrix, COLUMNS, missing=True)
    found = densities.log_density(Mixed(numbers, codes), Columns(schema), missing=True)
    assert_allclose(found, right, rtol=1e-12)
