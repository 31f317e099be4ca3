"""Factors of covariances, and how far correlations are shrunk."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oracle import doubles, exact, log_determinant, solve
from sklearn.covariance import OAS

from posteriori.errors import ParameterError, ScaleError
from posteriori.solve.covariance import Factor, check_shrinkage, factorise, oracle_shrinkage

RANDOM = np.random.default_rng(5)
ROWS = RANDOM.standard_normal((30, 4)) @ RANDOM.standard_normal((4, 4)) * [1.0, 1e3, 1e-5, 2.0]
SIGMA = np.cov(ROWS, rowvar=False)
SIZE = abs(ROWS.mean(axis=0))


def factor_of(covariance, shrinkage=None, n=30.0, overall=None):
    overall = np.diagonal(covariance) if overall is None else overall
    return factorise(covariance, overall, np.zeros(len(covariance)), n, shrinkage)


def redundant_factor():
    """The factor of (x0, x1, x0 + 2 x1, 3), of rank two."""
    relation = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 2.0], [0.0, 0.0]])
    inner = factor_of(SIGMA[:2, :2]).factor
    return inner.with_columns(np.array([0, 1]), relation), relation @ SIGMA[:2, :2] @ relation.T


def test_the_factor_multiplies_back_to_the_covariance():
    scale = np.sqrt(np.diagonal(SIGMA))
    found = factor_of(SIGMA).factor.covariance()
    assert_allclose(found / np.outer(scale, scale), np.corrcoef(ROWS.T), rtol=1e-14, atol=1e-15)


def test_the_log_determinant_is_that_of_the_covariance():
    assert_allclose(factor_of(SIGMA).factor.log_determinant, doubles(log_determinant(exact(SIGMA))))


def test_the_whitener_gives_the_squared_mahalanobis_distance():
    whitener = factor_of(SIGMA).factor.whitener()
    for x in ROWS[:5]:
        expected = doubles(exact(x) @ solve(exact(SIGMA), exact(x)))
        assert_allclose(((x @ whitener) ** 2).sum(), expected, rtol=1e-12)


def test_a_part_of_the_factor_is_the_factor_of_that_part():
    columns = np.array([0, 2, 3])
    part = factor_of(SIGMA).factor.part(columns)
    inner = SIGMA[np.ix_(columns, columns)]
    assert_allclose(part.covariance(), inner, rtol=1e-12)
    assert_allclose(part.log_determinant, np.linalg.slogdet(inner)[1], rtol=1e-13)


def test_a_part_of_no_columns_has_density_one():
    part = factor_of(SIGMA).factor.part(np.empty(0, dtype=np.intp))
    assert part.log_determinant == 0.0


def test_columns_left_out_keep_their_relation_to_the_others():
    factor, expected = redundant_factor()
    assert_allclose(factor.covariance(), expected, rtol=1e-13, atol=1e-9)
    assert_allclose(factor.log_determinant, np.linalg.slogdet(SIGMA[:2, :2])[1], rtol=1e-13)


def test_a_column_left_out_stands_in_for_one_that_is_missing():
    factor, expected = redundant_factor()
    columns = np.array([1, 2])
    inner = expected[np.ix_(columns, columns)]
    assert_allclose(factor.part(columns).covariance(), inner, rtol=1e-9)
    assert_allclose(factor.part(columns).log_determinant, np.linalg.slogdet(inner)[1], rtol=1e-9)


def test_a_part_of_dependent_columns_has_the_density_of_independent_ones_among_them():
    factor, expected = redundant_factor()
    part = factor.part(np.array([0, 1, 2]))
    assert len(part.kept) == 2
    inner = expected[np.ix_(part.kept, part.kept)]
    assert_allclose(part.log_determinant, np.linalg.slogdet(inner)[1], rtol=1e-9)
    assert len(factor.part(np.array([3])).kept) == 0


def test_units_go_into_the_scale_alone():
    factor = factor_of(SIGMA).factor
    unit = np.array([2.0**400, 1.0, 2.0**-400, 1.0])
    moved = factor.times_unit(unit)
    assert_array_equal(moved.lower, factor.lower)
    shift = 2 * np.log(unit).sum()
    # Terms of size 277 cancel here, so digits are counted from there.
    assert_allclose(moved.log_determinant, factor.log_determinant + shift, rtol=0, atol=1e-12)


@pytest.mark.parametrize("size", [1e170, 1e-170])
def test_a_variance_that_leaves_the_doubles_is_an_error_that_names_the_column(size):
    factor = factor_of(SIGMA).factor.times_unit(np.array([1.0, size, 1.0, 1.0]))
    with pytest.raises(ScaleError, match="variance of column 1"):
        factor.covariance()


@pytest.mark.parametrize("amount", [0.0, 0.25, 0.8, 1.0])
def test_a_number_draws_the_correlations_towards_zero_by_that_share(amount):
    found = factor_of(SIGMA, amount)
    expected = SIGMA * ((1 - amount) + amount * np.eye(4))
    assert_allclose(found.factor.covariance(), expected, rtol=1e-13)
    assert found.shrinkage == amount


def test_automatic_shrinkage_is_the_oracle_approximation_of_standardised_rows():
    # scikit-learn's OAS shrinks to tr(S)/d times the identity; tr(R)/d is one for correlations.
    Z = (ROWS - ROWS.mean(axis=0)) / ROWS.std(axis=0)
    rival = OAS(assume_centered=True).fit(Z)
    correlation = Z.T @ Z / len(Z)
    amount = oracle_shrinkage(correlation, len(Z))
    # Chen et al. (23), in their d and n, straight from the paper.
    d, n, square, trace = 4, len(Z), (correlation**2).sum(), np.trace(correlation)
    paper = ((1 - 2 / d) * square + trace**2) / ((n + 1 - 2 / d) * (square - trace**2 / d))
    assert_allclose(amount, paper, rtol=1e-14)
    found = factor_of(np.cov(ROWS, rowvar=False, bias=True), "auto", n=len(Z))
    assert_allclose(found.shrinkage, amount, rtol=1e-12)
    # scikit-learn leaves the terms in 2/d out of its formula.
    near = (square + trace**2) / ((n + 1) * (square - trace**2 / d))
    assert_allclose(rival.shrinkage_, near, rtol=1e-12)
    assert abs(amount - rival.shrinkage_) < 0.1


def test_the_oracle_shrinks_everything_where_there_are_no_correlations():
    assert oracle_shrinkage(np.eye(5), 100.0) == 1.0
    assert oracle_shrinkage(np.eye(1), 100.0) == 1.0


def test_the_oracle_shrinks_less_the_more_rows_there_are():
    correlation = np.corrcoef(ROWS.T)
    amounts = [oracle_shrinkage(correlation, n) for n in (10, 100, 1000, 1e5)]
    assert amounts == sorted(amounts, reverse=True)
    assert amounts[-1] < 1e-3


def test_a_singular_covariance_names_the_columns():
    X = np.column_stack([ROWS[:, 0], ROWS[:, 3], ROWS[:, 0] - ROWS[:, 3]])
    found = factor_of(np.cov(X, rowvar=False))
    assert found.factor is None
    assert len(found.culprits) == 1


def test_a_constant_column_is_singular_without_shrinkage():
    found = factor_of(np.diag([1.0, 0.0, 2.0]))
    assert found.factor is None
    assert_array_equal(found.culprits, [1])


def test_a_column_constant_here_is_drawn_towards_its_variance_everywhere():
    found = factor_of(np.diag([1.0, 0.0]), 0.25, overall=np.array([1.5, 8.0]))
    assert_allclose(found.factor.covariance(), np.diag([1.0, 0.25 * 8.0]), rtol=1e-14)


def test_a_column_constant_everywhere_is_singular_at_any_shrinkage():
    found = factor_of(np.diag([1.0, 0.0]), 0.25, overall=np.array([1.5, 0.0]))
    assert found.factor is None
    assert_array_equal(found.culprits, [1])


@pytest.mark.parametrize("good", [None, "auto", 0, 0.0, 0.5, 1, 1.0, np.float32(0.5)])
def test_shrinkage_is_nothing_auto_or_a_share(good):
    check_shrinkage(good)


@pytest.mark.parametrize("bad", [-0.1, 1.1, np.nan, np.inf, "oas", True, [0.5], {}])
def test_other_shrinkage_is_an_error(bad):
    with pytest.raises(ParameterError, match="shrinkage"):
        check_shrinkage(bad)


def test_a_factor_of_units_far_apart_is_as_good_as_any():
    # The correlations are what is factored, so that units cannot spoil the factor.
    sizes = np.array([1e-100, 1.0, 1e100, 1.0])
    ours = factor_of(SIGMA * np.outer(sizes, sizes)).factor
    assert_allclose(ours.lower, factor_of(SIGMA).factor.lower, rtol=1e-13)


def test_factor_identity_of_full_rank():
    factor = Factor.of_full_rank(np.array([2.0, 3.0]), np.eye(2))
    assert_array_equal(factor.covariance(), np.diag([4.0, 9.0]))
    assert_array_equal(factor.kept, [0, 1])
