"""Counts of states, sums, and the sums of all families together: they add up from any split."""

import numpy as np
import pytest
from scipy import sparse

from posteriori.errors import DomainError, InfiniteValueError, StatisticsError
from posteriori.likelihood.feature_families import read_families
from posteriori.rows.in_memory import read_rows
from posteriori.statistics.discrete_counts import (
    GatherByFamily,
    GatherCounts,
    GatherSums,
    distinct,
)

rng = np.random.default_rng(5)
N, K = 300, 3
X = rng.integers(0, 4, (N, 2)).astype(float)
Y = rng.integers(0, K, N)
SOFT = rng.dirichlet(np.ones(K), N)
W = rng.choice([0.0, 0.5, 2.0], N)
HOLES = np.where(rng.random(X.shape) < 0.2, np.nan, X)

sources = pytest.mark.parametrize("source", [np.asarray, np.asfortranarray, sparse.csr_array])
labels = pytest.mark.parametrize("y", [Y, SOFT], ids=["hard", "soft"])
weights = pytest.mark.parametrize("weight", [None, W], ids=["unweighted", "weighted"])


def shares(y, weight):
    member = np.eye(K)[y] if y.ndim == 1 else y
    return member if weight is None else member * weight[:, None]


def gathered(kernel, X, y, weight=None):
    rows = read_rows(X, y, weight)
    return rows.map_sum(kernel(rows.schema, rows.classes), block_entries=64)


def by_family(X, y, weight=None, family="auto"):
    rows = read_rows(X, y, weight, least_classes=1)
    families = read_families(family, rows.schema)
    return rows.map_sum(GatherByFamily(rows.schema, families, rows.classes))


@sources
@labels
@weights
@pytest.mark.parametrize("values", [X, HOLES], ids=["whole", "holes"])
def test_counts_and_sums_are_the_plain_formula(source, y, weight, values):
    member = shares(y, weight)
    found = gathered(GatherCounts, source(values), y, weight)
    assert found.levels == ((0.0, 1.0, 2.0, 3.0),) * 2
    for j in range(2):
        expected = [member[values[:, j] == level].sum(0) for level in range(4)]
        np.testing.assert_allclose(found.tables[j], np.transpose(expected), rtol=1e-12)
    found = gathered(GatherSums, source(values), y, weight)
    count = np.broadcast_to(found.count, found.total.shape)
    np.testing.assert_allclose(count, member.T @ ~np.isnan(values), rtol=1e-12)
    np.testing.assert_allclose(found.total, member.T @ np.nan_to_num(values), rtol=1e-12)


def test_distinct_numbers_of_any_kind():
    for x in ([0.0, 2.0, 2.0], [-1.5, 1e9, -1.5], [-0.0, 0.0], [5000.0, 3.0], [np.nan]):
        levels, codes = distinct(np.array(x))
        assert list(levels) == sorted(set(np.array(x)[~np.isnan(x)]))
        np.testing.assert_array_equal(np.array([*levels, np.nan])[codes], x)


def test_statistics_of_other_columns_or_families_do_not_add():
    with pytest.raises(StatisticsError, match="column 1 is poisson in one and categorical"):
        by_family(X, Y, family="poisson") + by_family(X, Y, family={0: "poisson", 1: "categorical"})
    with pytest.raises(StatisticsError, match="different columns"):
        by_family(X, Y, family="poisson") + by_family(X[:, :1], Y, family="poisson")


@pytest.mark.parametrize("source", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(
    ("family", "value"),
    [("bernoulli", 2.0), ("bernoulli", 0.5), ("poisson", 1.5), ("poisson", -1.0),
     ("exponential", -0.1)],
)  # fmt: skip
def test_entries_outside_the_domain_are_named(source, family, value):
    bits = (X > 1).astype(float)
    bits[11, 1] = value
    with pytest.raises(DomainError, match=f"Row 11 of column 1 is {value:g}, but what is {family}"):
        by_family(source(bits), Y, family=family)
    with pytest.raises(DomainError, match="Row 11 of column 'x1'"):
        by_family(source(bits), Y, family={0: "gaussian", 1: family})
    bits[11, 1] = -np.inf
    with pytest.raises(InfiniteValueError, match="row 11, column 1"):
        by_family(source(bits), Y, family=family)
