"""Moments of columns over the entries present, by class and of all rows at once."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from statistics_registry import STATISTICS

from posteriori.design.columns import Columns
from posteriori.rows.in_memory import read_rows
from posteriori.statistics.column_moments import column_spread

rng = np.random.default_rng(9)
N, D, K = 120, 4, 3
FULL = rng.normal(size=(N, D)) + np.array([0.0, 3.0, -5.0, 100.0])
GAPS = rng.uniform(size=FULL.shape) < 0.25
GAPS[:, 3] = False
X = np.where(GAPS, np.nan, FULL)
Y = np.r_[0, 1, 2, rng.integers(0, K, size=N - 3)]
W = rng.choice([0.0, 1.0, 2.5], size=N)
SOFT = rng.dirichlet(np.ones(K), size=N)
entry = STATISTICS["column moments"]
labels = pytest.mark.parametrize("y", [Y, SOFT], ids=["hard", "soft"])
dense_and_sparse = pytest.mark.parametrize("source", [np.asarray, sparse.csr_array])


@pytest.mark.parametrize("source", [np.asarray, sparse.csr_array, pd.DataFrame, pl.DataFrame])
@labels
@pytest.mark.parametrize("block_entries", [None, 40])
def test_missing_entries_are_left_out(source, y, block_entries):
    T = np.eye(K)[Y] if y is Y else SOFT
    found = entry.of(source(X), y, W, block_entries=block_entries)
    np.testing.assert_allclose(found.class_count, T.T @ W, rtol=1e-12)
    for k, j in np.ndindex(K, D):
        weight, values = (T[:, k] * W)[~GAPS[:, j]], X[~GAPS[:, j], j]
        mean = np.average(values, weights=weight)
        np.testing.assert_allclose(found.count[k, j], weight.sum(), rtol=1e-12)
        np.testing.assert_allclose(found.mean[k, j], mean, rtol=1e-11)
        np.testing.assert_allclose(found.scatter[k, j], weight @ (values - mean) ** 2, rtol=1e-10)


@dense_and_sparse
def test_a_column_that_a_class_never_has_counts_nothing(source):
    found = entry.of(source(np.where((Y == 1)[:, None] & (np.arange(D) == 2), np.nan, FULL)), Y)
    assert (found.count[1, 2], found.mean[1, 2], found.scatter[1, 2]) == (0.0, 0.0, 0.0)
    assert found.class_count[1] == (Y == 1).sum()


# All rows as one class.


@dense_and_sparse
def test_mean_and_deviation_are_those_of_numpy(source):
    X = rng.normal([1e8, 0.0, -3.0], [1.0, 2.0, 0.0], (500, 3))
    times = rng.integers(1, 4, 500)
    rows = read_rows(source(X), np.arange(500) % 2, times)
    mean, deviation = column_spread(rows, Columns(rows.schema))
    np.testing.assert_allclose(mean, np.repeat(X, times, axis=0).mean(axis=0), rtol=1e-14)
    expected = np.repeat(X, times, axis=0).std(axis=0)
    np.testing.assert_allclose(deviation, expected, rtol=1e-9, atol=1e-12)
