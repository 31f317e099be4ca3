"""Gaussian densities held by factors, against mpmath at 50 digits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from oracle import correlated_rows, doubles, exact, log_normal

from posteriori.likelihood.class_densities import DiagonalGaussians, FullGaussians
from posteriori.solve.covariance import factorise

X, Y = correlated_rows(40, 4, 3, seed=2)
MEANS = np.array([X[k == Y].mean(axis=0) for k in range(3)])
SIGMAS = [np.cov(X[k == Y], rowvar=False) for k in range(3)]
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
@pytest.mark.parametrize("far", [0.0, 1e3, 1e6])
def test_full_densities_are_those_of_fifty_digits_with_missing_entries_integrated_out(groups, far):
    densities, sigmas = full(groups, far), [exact(SIGMAS[g]) for g in groups]
    right = expected(X[:8] + far, MEANS + far, sigmas)
    assert_allclose(densities.log_density(X[:8] + far), right, rtol=1e-12)
    many = densities.log_density(np.tile(X[:8] + far, (500, 1)))
    assert_allclose(many, np.tile(right, (500, 1)), rtol=1e-12)
    right = expected(holed(X) + far, MEANS + far, sigmas)
    found = densities.marginal_log_density(holed(X) + far)
    assert_allclose(found, right, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("far", [0.0, 1e6])
@pytest.mark.parametrize("narrow", [1.0, 1e-3])
def test_diagonal_densities_are_those_of_fifty_digits(far, narrow):
    densities = DiagonalGaussians(MEANS + far, SPREAD * narrow, shared=False)
    rows = holed(X) + far
    right = expected(rows, MEANS + far, [np.diag(exact(s) ** 2) for s in SPREAD * narrow])
    assert_allclose(densities.marginal_log_density(rows), right, rtol=1e-12, atol=1e-13)
    assert_allclose(densities.log_density(rows[:1]), right[:1], rtol=1e-12)


def test_linear_activations_differ_from_log_densities_by_a_constant_of_the_row():
    logs = np.log([0.2, 0.3, 0.5])
    for densities in (
        full([0, 0, 0]),
        full([0, 0, 0], 1e6),
        DiagonalGaussians(MEANS, np.full((3, 4), 0.7), shared=True),
    ):
        rows = X + densities.means.mean() - MEANS.mean()
        gap = densities.linear(logs)(rows) - densities.log_density(rows) - logs
        assert_allclose(gap - gap[:, :1], 0.0, atol=1e-8)


def test_unequal_covariances_are_not_linear():
    assert full([0, 1, 0]).linear(np.zeros(3)) is None
    assert DiagonalGaussians(MEANS, SPREAD, shared=False).linear(np.zeros(3)) is None


def test_draws_have_the_means_and_covariances_of_the_density():
    n = 40_000
    for densities, sigma in (
        (full([0, 1, 2]), SIGMAS[1]),
        (DiagonalGaussians(MEANS, SPREAD, shared=False), np.diag(SPREAD[1] ** 2)),
    ):
        rows = densities.draw(1, n, np.random.default_rng(4))
        error = np.sqrt(np.diagonal(sigma) / n)
        assert (abs(rows.mean(axis=0) - MEANS[1]) < 5 * error).all()
        spread = np.sqrt((np.outer(np.diagonal(sigma), np.diagonal(sigma)) + sigma**2) / n)
        assert (abs(np.cov(rows, rowvar=False) - sigma) < 5 * spread).all()


def test_parameters_are_counted():
    assert full([0, 0, 0]).n_parameters == 3 * 4 + 10
    assert full([0, 1, 2]).n_parameters == 3 * 4 + 3 * 10
    assert full([0, 1, 0]).n_parameters == 3 * 4 + 2 * 10
    assert DiagonalGaussians(MEANS, SPREAD, shared=False).n_parameters == 3 * 4 + 3 * 4
    assert DiagonalGaussians(MEANS, np.full((3, 4), 0.7), shared=True).n_parameters == 3 * 4 + 1
