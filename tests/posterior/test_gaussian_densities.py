"""Gaussian densities held by factors, against mpmath at 50 digits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from oracle import correlated_rows, doubles, exact, log_normal

from posteriori.posterior.gaussian import DiagonalGaussians, FullGaussians
from posteriori.solve.covariance import Factor, factorise

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
    columns = [
        [log_normal(x, exact(mean), exact(covariance)) for x in exact(X)]
        for mean, covariance in zip(means, covariances, strict=True)
    ]
    return doubles(np.array(columns, dtype=object).T)


@pytest.mark.parametrize("groups", [[0, 0, 0], [0, 1, 2], [0, 1, 0]])
@pytest.mark.parametrize("far", [0.0, 1e3, 1e6])
def test_full_densities_are_those_of_fifty_digits(groups, far):
    found = full(groups, far).log_density(X[:8] + far)
    right = expected(X[:8] + far, MEANS + far, [SIGMAS[g] for g in groups])
    assert_allclose(found, right, rtol=1e-12)


@pytest.mark.parametrize("groups", [[0, 0, 0], [0, 1, 2], [0, 1, 0]])
def test_many_rows_have_the_densities_of_few(groups):
    densities = full(groups)
    many = np.tile(X, (200, 1))
    assert_allclose(densities.log_density(many)[:40], densities.log_density(X), rtol=1e-12)


def test_wide_triangles_have_the_densities_of_narrow_ones():
    random = np.random.default_rng(0)
    d = 150
    covariance = np.cov(random.standard_normal((400, d)), rowvar=False)
    densities = FullGaussians(np.zeros((2, d)), (factor(covariance),) * 2, np.array([0, 1]))
    rows = random.standard_normal((120, d))
    square = np.einsum("ij,ij->i", rows, np.linalg.solve(covariance, rows.T).T)
    right = -0.5 * (square + d * np.log(2 * np.pi) + np.linalg.slogdet(covariance)[1])
    assert_allclose(densities.log_density(rows)[:, 0], right, rtol=1e-11)


def holed(X):
    """Rows with every pattern of missing entries in turn."""
    X = X[:16].copy()
    for i in range(16):
        X[i, [j for j in range(4) if i >> j & 1]] = np.nan
    return X


@pytest.mark.parametrize("groups", [[0, 0, 0], [0, 1, 2], [0, 1, 0]])
@pytest.mark.parametrize("far", [0.0, 1e6])
def test_missing_entries_are_integrated_out_exactly(groups, far):
    rows = holed(X) + far
    found = full(groups, far).marginal_log_density(rows)
    right = expected(rows, MEANS + far, [SIGMAS[g] for g in groups])
    assert_allclose(found, right, rtol=1e-12, atol=1e-13)


def test_a_marginal_density_is_the_integral_over_what_is_missing():
    densities = full([0, 1, 2])
    x = X[0].copy()
    grid = np.linspace(-60, 60, 4001)
    rows = np.tile(x, (len(grid), 1))
    rows[:, 2] = grid
    integral = np.trapezoid(np.exp(densities.log_density(rows)), grid, axis=0)
    x[2] = np.nan
    assert_allclose(np.exp(densities.marginal_log_density(x[None])[0]), integral, rtol=1e-9)


@pytest.mark.parametrize("far", [0.0, 1e6])
@pytest.mark.parametrize("narrow", [1.0, 1e-3])
def test_diagonal_densities_are_those_of_fifty_digits(far, narrow):
    densities = DiagonalGaussians(MEANS + far, SPREAD * narrow, shared=False)
    rows = holed(X) + far
    covariances = [np.diag(exact(s) ** 2) for s in SPREAD * narrow]
    columns = [
        [log_normal(x, exact(m), c) for x in exact(rows)]
        for m, c in zip(MEANS + far, covariances, strict=True)
    ]
    right = doubles(np.array(columns, dtype=object).T)
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


def redundant(seed, K=2):
    """Classes in the plane of two columns, shown in five columns that depend on these."""
    random = np.random.default_rng(seed)
    relation = np.vstack([np.eye(2), random.integers(-3, 4, size=(3, 2)) + 0.5])
    means = random.standard_normal((K, 2))
    sigmas = [np.cov(random.standard_normal((2, 6))) for _ in range(K)]
    wide = tuple(factor(s).with_columns(np.array([0, 1]), relation) for s in sigmas)
    narrow = FullGaussians(means, tuple(map(factor, sigmas)), np.arange(K))
    rows = random.standard_normal((6, 2))
    return FullGaussians(means @ relation.T, wide, np.arange(K)), narrow, rows, rows @ relation.T


@pytest.mark.parametrize("seed", range(20))
def test_with_redundant_columns_any_that_determine_the_row_give_its_posterior(seed):
    wide, narrow, rows, shown = redundant(seed)
    right = np.diff(narrow.log_density(rows))
    assert_allclose(np.diff(wide.log_density(shown)), right, rtol=1e-9, atol=1e-9)
    for lost in ([0], [1], [0, 1], [0, 4], [1, 3]):
        holed = shown.copy()
        holed[:, lost] = np.nan
        found = np.diff(wide.marginal_log_density(holed))
        assert_allclose(found, right, rtol=1e-7, atol=1e-7)


def test_factors_of_a_diagonal_density_are_its_spreads():
    densities = DiagonalGaussians(MEANS, SPREAD, shared=False)
    assert all(isinstance(f, Factor) for f in densities.factors)
    right = np.array([np.diag(s**2) for s in SPREAD])
    assert_allclose(densities.covariances(), right, rtol=1e-15)
