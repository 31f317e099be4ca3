"""Gaussian densities far from zero.

The numbers are compared with 50 digits in the tests of the model.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from oracle import correlated_rows

from posteriori.design.columns import Columns
from posteriori.likelihood.class_densities import FullGaussians
from posteriori.rows.schema import Schema
from posteriori.solve.closed_form import GroupMoments

X, Y = correlated_rows(40, 4, 3, seed=2)
MEANS = np.array([X[k == Y].mean(axis=0) for k in range(3)])
SIGMAS = [np.cov(X[k == Y], rowvar=False) for k in range(3)]
COLUMNS = Columns(Schema.unnamed(4))


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
