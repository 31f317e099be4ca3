"""Moments by class and by column: sums over rows, whatever holds the rows, that keep their digits.

The laws of all statistics are in `test_statistic.py`; here every kind of moments is compared with
plain formulas, over sources, labels, weights, classes and levels.
"""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import sparse
from statistics_registry import STATISTICS, assert_numbers, assert_same

from posteriori.errors import InfiniteValueError, MissingValueError, ScaleError, StatisticsError
from posteriori.rows.in_memory import read_rows
from posteriori.rows.schema import Schema
from posteriori.statistics.column_moments import gather

rng = np.random.default_rng(11)
N, D, K = 240, 3, 4
X = rng.normal(size=(N, D)) @ rng.normal(size=(D, D)) + [0.0, 5.0, -1.0]
Y = rng.choice(K, size=N, p=[0.5, 0.3, 0.15, 0.05])
SOFT = rng.dirichlet(np.full(K, 0.4), size=N)
W = rng.choice([0.0, 0.5, 1.0, 3.0], size=N)
LETTERS = np.array(["u", "v", "w"])[rng.integers(0, 3, size=N)]
FRAME = pl.DataFrame({"f": LETTERS, "a": X[:, 0], "b": X[:, 1]})

every_statistic = pytest.mark.parametrize("entry", STATISTICS.values(), ids=STATISTICS)
hard_and_soft = pytest.mark.parametrize("y", [Y, SOFT], ids=["hard", "soft"])
dense_and_sparse = pytest.mark.parametrize("source", [np.asarray, sparse.csr_array])


def shares(y):
    return np.eye(K)[y] if y.ndim == 1 else y


@every_statistic
@hard_and_soft
@pytest.mark.parametrize("weight", [None, W], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("source", [np.asarray, np.asfortranarray, sparse.csr_array, pl.DataFrame])
def test_it_is_the_plain_formula(entry, y, weight, source):
    found = entry.of(source(X), y, weight)
    assert_numbers(found, entry.formula(X, shares(y), np.ones(N) if weight is None else weight))
    assert found.classes.tolist() == [0, 1, 2, 3]


@every_statistic
@hard_and_soft
@pytest.mark.parametrize("block_entries", [None, 30])
def test_factors_count_as_their_indicators(entry, y, block_entries):
    matrix = np.column_stack([LETTERS == "v", LETTERS == "w", X[:, :2]]).astype(float)
    found = entry.of(FRAME, y, W, block_entries=block_entries)
    assert_numbers(found, entry.formula(matrix, shares(y), W))


@every_statistic
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_statistics_of_different_levels_and_classes_add_up_to_the_pooled_one(entry, order):
    y = np.array([-3, 0, 10**12, 10**13])[np.where(np.arange(N) < 40, Y % 2, Y)]
    levels = np.array(["b", "c", "d", "e"])[np.arange(N) % 4]
    levels[:40] = np.array(["b", "c"])[np.arange(40) % 2]
    levels[200:] = np.array(["a", "d", "e", "f"])[np.arange(40) % 4]
    frame = FRAME.with_columns(pl.Series("g", levels))
    shards = [slice(0, 40), slice(40, 200), slice(200, N)]
    parts = [entry.of(frame[shards[i]], y[shards[i]]) for i in order]
    assert sum(parts).schema == entry.of(frame, y).schema
    assert_same(sum(parts), entry.of(frame, y))


@every_statistic
def test_statistics_of_other_rows_do_not_add(entry):
    a = entry.of(pl.DataFrame(X, schema=["age", "mass", "size"]), Y % 2)
    b = entry.of(pl.DataFrame(X, schema=["age", "mass", "width"]), Y % 2)
    for other in (b, entry.of(X[:, :2], Y % 2), replace(a, schema=Schema.of_names("pqr"))):
        with pytest.raises(StatisticsError, match=r"different columns: .*'age', 'mass', 'size'"):
            a + other
    with pytest.raises(StatisticsError, match="cannot be sorted together"):
        entry.of(X, Y % 2) + entry.of(X, np.array(["0", "1"])[Y % 2])
    with pytest.raises(StatisticsError, match="cannot be added"):
        a + "something else"


OWN, POOLED = STATISTICS["moments, by class"], STATISTICS["moments, pooled"]


def test_moments_by_class_can_be_pooled_and_are_those_of_all_rows_together():
    own = OWN.of(X, Y, W)
    assert_same(own.pool(), POOLED.of(X, Y, W))
    assert_same(own.by_column(), STATISTICS["column moments"].of(X, Y, W))
    with pytest.raises(StatisticsError, match="different groups of classes"):
        own + POOLED.of(X, Y)
    for found in (own, own.pool()):
        n, mean, scatter = found.total()
        np.testing.assert_allclose(n, W.sum())
        np.testing.assert_allclose(mean, np.average(X, axis=0, weights=W), rtol=1e-10)
        expected = ((X - mean).T * W) @ (X - mean)
        np.testing.assert_allclose(scatter, expected, rtol=1e-10, atol=1e-10)


@every_statistic
@hard_and_soft
@pytest.mark.parametrize("source", [np.asarray, sparse.csr_array, pl.DataFrame])
@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_a_bad_entry_is_named_wherever_it_lies(entry, y, source, bad):
    if entry is STATISTICS["column moments"] and np.isnan(bad):
        pytest.skip("missing entries are left out")
    spoilt = X.copy()
    spoilt[[137, 200], [2, 0]] = [bad, -bad]
    column = "'column_2'" if source is pl.DataFrame else "2"
    error = InfiniteValueError if np.isinf(bad) else MissingValueError
    with pytest.raises(error, match=f"row 137, column {column}"):
        entry.of(source(spoilt), y, W + 1, block_entries=100)


# Digits.

Z = rng.normal(size=(N, 2)) @ np.array([[1.0, 0.6], [0.0, 0.8]])


@every_statistic
@hard_and_soft
@dense_and_sparse
@pytest.mark.parametrize("shift", [1e4, -1e8])
@pytest.mark.parametrize("block_entries", [None, 60])
def test_mean_and_scatter_keep_their_digits_far_from_zero(entry, y, source, shift, block_entries):
    found = entry.of(source(Z + shift), y, W + 0.5, block_entries=block_entries)
    near = entry.formula((Z + shift) - shift, shares(y), W + 0.5)  # this difference is exact
    assert abs(found.mean - shift - near["mean"]).max() < 1e-6  # of a spread, which is one
    np.testing.assert_allclose(found.scatter, near["scatter"], rtol=1e-6)


@every_statistic
@hard_and_soft
@dense_and_sparse
def test_a_constant_column_has_no_squares(entry, y, source):
    for value in (0.1, -1e5 - 0.1, 7e-9, 1e8 + 1 / 7):
        found = entry.of(source(np.column_stack([np.full(N, value), Z])), y, W + 0.1)
        assert 0 <= found.squares[0] <= N * (1e-14 * value) ** 2
        np.testing.assert_allclose(found.mean[:, 0], np.full(K, value), rtol=1e-15)


@every_statistic
@dense_and_sparse
@pytest.mark.parametrize(("size", "word"), [(1e160, "large"), (1e-170, "small")])
def test_columns_whose_squares_leave_the_doubles_are_named(entry, source, size, word):
    rows = read_rows(source(Z * [1.0, size]), Y)
    with pytest.raises(ScaleError, match=f"column 1 are too {word} to be squared"):
        gather(rows, entry.of_rows(rows))
    zeros = read_rows(source(Z * [1.0, 0.0]), Y)
    assert gather(zeros, entry.of_rows(zeros)).squares[1] == 0.0
