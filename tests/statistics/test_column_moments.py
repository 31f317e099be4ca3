"""Moments of each column by itself, over the entries that are there."""

from math import fsum

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from statistics_registry import STATISTICS, assert_same

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


@pytest.mark.parametrize("source", [np.asarray, sparse.csr_array, pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("labels", ["hard", "soft"])
@pytest.mark.parametrize("block_entries", [None, 40])
def test_missing_entries_are_left_out(source, labels, block_entries):
    y, T = (Y, np.eye(K)[Y]) if labels == "hard" else (SOFT, SOFT)
    found = entry.of(source(X), y, W, block_entries=block_entries)
    np.testing.assert_allclose(found.class_count, T.T @ W, rtol=1e-12)
    for k in range(K):
        for j in range(D):
            weight = (T[:, k] * W)[~GAPS[:, j]]
            values = X[~GAPS[:, j], j]
            mean = np.average(values, weights=weight)
            np.testing.assert_allclose(found.count[k, j], weight.sum(), rtol=1e-12)
            np.testing.assert_allclose(found.mean[k, j], mean, rtol=1e-11)
            np.testing.assert_allclose(
                found.scatter[k, j], weight @ (values - mean) ** 2, rtol=1e-10
            )


@pytest.mark.parametrize("source", [np.asarray, sparse.csr_array])
def test_any_split_with_missing_entries_is_the_pooled_statistic(source):
    for _ in range(10):
        parts = np.array_split(rng.permutation(N), rng.integers(1, 12))
        found = sum(entry.of(source(X[p]), Y[p], W[p] + 0.5, range(K)) for p in parts)
        assert_same(found, entry.of(X, Y, W + 0.5))


@pytest.mark.parametrize("source", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("labels", ["hard", "soft"])
def test_a_column_that_a_class_never_has_counts_nothing(source, labels):
    holes = FULL.copy()
    y = Y if labels == "hard" else np.eye(K)[Y]
    holes[Y == 1, 2] = np.nan
    found = entry.of(source(holes), y)
    assert found.count[1, 2] == 0.0
    assert found.mean[1, 2] == 0.0
    assert found.scatter[1, 2] == 0.0
    assert found.class_count[1] == (Y == 1).sum()
    np.testing.assert_allclose(found.mean[0], FULL[Y == 0].mean(0), rtol=1e-12)


def test_the_zeros_of_a_sparse_matrix_are_counted():
    thin = FULL * (rng.uniform(size=FULL.shape) < 0.2)
    assert_same(entry.of(sparse.csr_array(thin), Y, W), entry.of(thin, Y, W))


@pytest.mark.parametrize("source", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("labels", ["hard", "soft"])
def test_missing_entries_cost_no_digits_far_from_zero(source, labels):
    y, T = (Y, np.eye(K)[Y]) if labels == "hard" else (SOFT, SOFT)
    weight = rng.uniform(0.5, 2.0, size=N)
    far = X + 1e8
    found = entry.of(source(far), y, weight)
    near = entry.of(source(far - 1e8), y, weight)
    np.testing.assert_allclose(found.count, near.count, rtol=1e-12)
    assert abs(found.mean - 1e8 - near.mean).max() < 1e-6
    np.testing.assert_allclose(found.scatter, near.scatter, rtol=1e-6)
    np.testing.assert_allclose(near.class_count, T.T @ weight, rtol=1e-12)


def test_many_rows_of_a_sparse_column_cost_its_mean_no_digits():
    n = 250_000
    column = rng.normal(size=(n, 1)) + 1e8
    y = np.arange(n) % 2
    found = entry.of(sparse.csr_array(column), y)
    exact = [fsum(column[y == k, 0]) / (n // 2) for k in (0, 1)]
    np.testing.assert_allclose(found.mean[:, 0], exact, rtol=0, atol=1e-7)
