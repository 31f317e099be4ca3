"""Gaussian densities of rows of any storage, and far from zero.

The numbers are compared with 50 digits in the tests of the model.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from oracle import correlated_rows
from scipy.sparse import csr_array

from posteriori.design.columns import Columns
from posteriori.likelihood.class_densities import DiagonalGaussians, FullGaussians
from posteriori.likelihood.feature_families import Gaussian
from posteriori.rows.block import Mixed
from posteriori.rows.schema import Column, Schema
from posteriori.solve.closed_form import GroupMoments

X, Y = correlated_rows(40, 4, 3, seed=2)
MEANS = np.array([X[k == Y].mean(axis=0) for k in range(3)])
SIGMAS = [np.cov(X[k == Y], rowvar=False) for k in range(3)]
COLUMNS = Columns(Schema.unnamed(4))
SPREAD = np.array([X[k == Y].std(axis=0) for k in range(3)])


def full(groups, far=0.0):
    variances = [(S, 10.0, np.diagonal(S), np.zeros(4)) for S in SIGMAS]
    each = [GroupMoments("", COLUMNS.schema, *one) for one in variances]
    factors = [one.factorise(np.arange(4), None).factor for one in each]
    return FullGaussians(MEANS + far, tuple(factors[: max(groups) + 1]), np.array(groups))


@pytest.mark.parametrize("groups", [[0, 0, 0], [0, 1, 2], [0, 1, 0]])
def test_far_from_zero_densities_keep_their_digits(groups):
    gaps = np.where(np.random.default_rng(1).random(X.shape) < 0.3, np.nan, X)
    for rows, missing in ((X, False), (gaps, True)):
        near = full(groups).log_density(rows, COLUMNS, missing)
        far = full(groups, 2.0**20).log_density(rows + 2.0**20, COLUMNS, missing)
        assert_allclose(far, near, rtol=1e-7)


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
    sd = np.where(np.arange(4) == 2, np.inf, sd)
    densities = DiagonalGaussians(Gaussian(random.normal(size=(3, 4)), sd, shared))
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
