"""Samples of rows, rows in parts, rows joined, and few rows that represent many."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from posteriori.rows.block import Rows, sample_positions
from posteriori.rows.in_memory import MemoryRows, read_rows
from posteriori.rows.scan import scan
from posteriori.statistics.row_sample import (
    TakeSample,
    join_rows,
    sample_rows,
    split_rows,
    thin_rows,
)

N = 1003


def frame():
    random = np.random.default_rng(0)
    return pd.DataFrame({"f": random.choice(list("abc"), N), "x": random.normal(size=N)})


SOURCES = {
    "array": lambda: np.random.default_rng(0).normal(size=(N, 3)),
    "sparse": lambda: sparse.random(N, 5, density=0.3, random_state=0, format="csr"),
    "numbers in a frame": lambda: pd.DataFrame(np.random.default_rng(0).normal(size=(N, 3))),
    "factors": frame,
}


def rows_of(source, weight=None):
    return read_rows(SOURCES[source](), np.arange(N) % 3, weight)


def everything(rows):
    """All rows as one block, in memory."""
    found = rows.map_sum(TakeSample()).rows(rows.schema, rows.classes)
    X = found.table.cut(0, found.n_rows)
    if sparse.issparse(X):
        X = X.toarray()
    elif not isinstance(X, np.ndarray):
        X = np.column_stack([X.numeric, X.codes])
    return X, found.y, found.weight


def assert_rows(rows, X, y, weight):
    for found, expected in zip(everything(rows), (X, y, weight), strict=True):
        np.testing.assert_array_equal(found, expected)


# --- Samples ------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("block_entries", [None, 50])
def test_a_sample_has_the_rows_with_their_labels_and_weights(source, block_entries):
    weight = 1.0 + np.arange(N)
    rows = rows_of(source, weight)
    X, y, _ = everything(rows)
    taken = sample_positions(7, np.arange(N))
    found = rows.map_sum(TakeSample(7), block_entries=block_entries)
    assert_rows(found.rows(rows.schema, rows.classes), X[taken], y[taken], weight[taken])


def test_rows_are_sampled_by_their_numbers():
    numbers = np.arange(N)
    kept = np.flatnonzero(numbers % 5 != 2)
    X, y = numbers[:, None].astype(float), numbers % 2
    rows = read_rows(X, y, sample_weight=np.isin(numbers, kept).astype(float))
    found, factor = sample_rows(rows, 4)
    assert factor == pytest.approx(len(kept) / found.n_rows, rel=1e-14)
    expected = np.intersect1d(sample_positions(4, numbers), kept)
    np.testing.assert_array_equal(found.table.values[:, 0], expected)


# --- Parts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("k", [1, 2, 7])
def test_parts_have_every_row_once_at_its_place(source, k):
    weight = 1.0 + np.arange(N)
    rows = rows_of(source, weight)
    X, y, _ = everything(rows)
    parts = split_rows(rows, k)
    assert sum(part.n_rows for part in parts) == N
    for first, part in enumerate(parts):
        assert isinstance(part, Rows)
        assert_rows(part, X[first::k], y[first::k], weight[first::k])
        assert part.schema is rows.schema
        assert part.classes.tolist() == [0, 1, 2]
        assert not part.soft


def test_rows_of_weight_zero_are_left_out_of_parts():
    weight = (np.arange(N) % 3 > 0).astype(float)
    for source in SOURCES:
        parts = split_rows(rows_of(source, weight), 2)
        kept = [len(everything(part)[0]) for part in parts]
        assert kept == [int(weight[::2].sum()), int(weight[1::2].sum())]


def test_offsets_go_with_their_rows_and_a_source_is_not_split():
    rows = MemoryRows(rows_of("array").table, offset=np.arange(N, dtype=float))
    parts = split_rows(rows, 3)
    assert parts[2].map_sum(lambda block: block.offset.sum()) == np.arange(2, N, 3).sum()
    source = scan(frame().assign(y=np.arange(N) % 2), "y")
    assert split_rows(source, 4) == [source]


@pytest.mark.parametrize("source", SOURCES)
def test_joined_rows_are_both(source):
    rows = rows_of(source)
    X, y, _ = everything(rows)
    order = np.r_[0:N:2, 1:N:2]
    assert_rows(join_rows(*split_rows(rows, 2)), X[order], y[order], None)


def test_joined_rows_have_weights_and_soft_labels_if_either_has():
    X = np.arange(6.0).reshape(3, 2)
    plain = read_rows(X, [0, 1, 0])
    soft = read_rows(X, [[0.2, 0.8], [1.0, 0.0], [0.5, 0.5]], sample_weight=[2.0, 3.0, 4.0])
    both = join_rows(plain, soft)
    np.testing.assert_array_equal(both.weight, [1, 1, 1, 2, 3, 4])
    np.testing.assert_array_equal(both.y[:3], [[1, 0], [0, 1], [1, 0]])
    np.testing.assert_array_equal(both.y[3:], soft.y)


def test_a_sparse_and_a_full_matrix_join_as_sparse():
    X = np.array([[1.0, 0.0], [0.0, 2.0]])
    both = join_rows(read_rows(X, [0, 1]), read_rows(sparse.csr_array(X), [1, 0]))
    assert sparse.issparse(both.table.values)
    np.testing.assert_array_equal(both.table.values.toarray(), np.concatenate([X, X]))


@pytest.mark.parametrize("place", ["memory", "source"])
@pytest.mark.parametrize("rate", [0.02, 0.3, 1.0])
def test_few_rows_stand_for_all(rate, place):
    n = 20000
    random = np.random.default_rng(0)
    X, weight = random.normal(size=(n, 2)), random.exponential(size=n)
    rows = read_rows(X, np.arange(n) % 2, weight)
    if place == "source":
        columns = {"a": X[:, 0], "b": X[:, 1], "w": weight, "y": np.arange(n) % 2}
        rows = scan(pd.DataFrame(columns), "y", weight="w").discover()
    few = thin_rows(rows, rate, seed=1)
    chance = np.sqrt(n * rate)
    assert abs(few.n_rows - n * rate) < 5 * chance
    assert few.weight.sum() == pytest.approx(weight.sum(), rel=5 / chance)
    ours = few.weight @ (few.table.cut(0, few.n_rows)[:, 0] ** 2)
    assert ours == pytest.approx(weight @ X[:, 0] ** 2, rel=15 / chance)


def test_all_rows_stand_for_themselves_and_none_for_none():
    rows = rows_of("array")
    assert thin_rows(rows, 1.0, seed=0) is rows
    assert thin_rows(rows, 1e-9, seed=0) is None
