"""Covariances of groups of classes: divisors, and what is done where they are singular."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oracle import correlated_rows

from posteriori.design.columns import Columns
from posteriori.errors import SingularCovarianceError
from posteriori.rows.in_memory import read_rows
from posteriori.solve.covariance import oracle_shrinkage
from posteriori.solve.group_covariance import group_covariances
from posteriori.statistics.column_moments import gather
from posteriori.statistics.moments import GatherMoments

X, Y = correlated_rows(45, 4, 3, seed=1)
SHARED, OWN, PAIR = (None,) * 3, (0, 1, 2), ("p", 1, "p")


def moments_of(X, y, sharing):
    rows = read_rows(X, y)
    return gather(rows, GatherMoments(Columns(rows.schema), rows.classes, sharing))


def scatter_of(X, y, classes):
    return sum((X[y == k] - X[y == k].mean(0)).T @ (X[y == k] - X[y == k].mean(0)) for k in classes)


@pytest.mark.parametrize(
    ("sharing", "groups"),
    [(SHARED, [[0, 1, 2]]), (OWN, [[0], [1], [2]]), (PAIR, [[0, 2], [1]])],
)
@pytest.mark.parametrize("divisor", ["ml", "unbiased"])
def test_the_scatter_of_a_group_is_divided_by_its_rows_less_its_classes(sharing, groups, divisor):
    found = group_covariances(moments_of(X, Y, sharing), None, divisor)
    for factor, group in zip(found.factors, groups, strict=True):
        rows = np.isin(Y, group).sum() - (len(group) if divisor == "unbiased" else 0)
        assert_allclose(factor.covariance(), scatter_of(X, Y, group) / rows, rtol=1e-12)
    assert_array_equal(found.shrinkage, 0.0)
    assert found.caveats == ()


def test_automatic_shrinkage_counts_the_degrees_of_freedom_of_each_group():
    found = group_covariances(moments_of(X, Y, PAIR), "auto", "ml")
    for amount, group in zip(found.shrinkage, [[0, 2], [1]], strict=True):
        scatter = scatter_of(X, Y, group)
        scale = np.sqrt(np.diagonal(scatter))
        freedom = np.isin(Y, group).sum() - len(group)
        expected = oracle_shrinkage(scatter / scale / scale[:, None], freedom)
        assert_allclose(amount, expected, rtol=1e-12)


REDUNDANT = {
    "constant": np.full(45, 7.3),
    "zero": np.zeros(45),
    "duplicate": X[:, 1],
    "scaled": -1e6 * X[:, 2],
    "sum": X[:, 0] + X[:, 3] - 2.0,
}


@pytest.mark.parametrize("name", REDUNDANT)
@pytest.mark.parametrize("sharing", [SHARED, OWN])
def test_strict_shrinkage_names_the_columns(name, sharing):
    Z = np.column_stack([X, REDUNDANT[name]])
    with pytest.raises(SingularCovarianceError, match=r"is singular: column \d cannot") as caught:
        group_covariances(moments_of(Z, Y, sharing), 0.0, "ml")
    named = int(caught.value.problem.split("column ")[1][0])
    rest = np.delete(Z, named, axis=1)
    assert np.linalg.cond(np.corrcoef((rest - rest.mean(0)).T)) < 1e6


@pytest.mark.parametrize("name", REDUNDANT)
@pytest.mark.parametrize("sharing", [SHARED, OWN])
def test_redundant_columns_are_left_out_but_keep_their_covariance(name, sharing):
    Z = np.column_stack([X, REDUNDANT[name]])
    moments = moments_of(Z, Y, sharing)
    found = group_covariances(moments, None, "ml")
    assert len(found.caveats) == 1
    groups = [[0, 1, 2]] if sharing == SHARED else [[0], [1], [2]]
    for factor, group in zip(found.factors, groups, strict=True):
        assert len(factor.kept) == 4
        expected = scatter_of(Z, Y, group) / np.isin(Y, group).sum()
        scale = np.sqrt(np.diagonal(expected)) + 1e-300
        gap = (factor.times_unit(moments.unit).covariance() - expected) / scale / scale[:, None]
        assert abs(np.where(abs(expected) < 1e-20, 0.0, gap)).max() < 1e-8


def test_a_column_constant_within_the_classes_only_is_shrunk_not_left_out():
    moments = moments_of(np.column_stack([X, Y * 1.0]), Y, SHARED)
    found = group_covariances(moments, None, "ml")
    assert len(found.factors[0].kept) == 5
    amount = found.shrinkage[0]
    assert 0 < amount <= 1
    covariance = found.factors[0].times_unit(moments.unit).covariance()
    assert_allclose(covariance[4, 4], amount * Y.var(), rtol=1e-12)
    assert "singular in column 4" in found.caveats[0].problem


def test_only_the_groups_that_are_singular_are_shrunk():
    few = np.concatenate([np.flatnonzero(Y != 2), np.flatnonzero(Y == 2)[:3]])
    found = group_covariances(moments_of(X[few], Y[few], OWN), None, "ml")
    assert_array_equal(found.shrinkage[:2], 0.0)
    assert found.shrinkage[2] > 0
    assert "class 2 (3 rows)" in found.caveats[0].problem
    expected = scatter_of(X, Y, [0]) / 15
    assert_allclose(found.factors[0].covariance(), expected, rtol=1e-12)


def test_rows_that_are_all_the_same_are_an_error():
    with pytest.raises(SingularCovarianceError, match="all rows are the same"):
        group_covariances(moments_of(np.ones((6, 2)), [0, 1] * 3, (None,) * 2), None, "ml")
