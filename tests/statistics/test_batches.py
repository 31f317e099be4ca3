"""Rows in parts, rows joined, and few rows that stand for many."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from posteriori.errors import MissingValueError
from posteriori.rows.finite import check_finite
from posteriori.rows.in_memory import MemoryRows, read_rows
from posteriori.rows.rows import Rows
from posteriori.statistics.row_sample import TakeOneOf, join_rows, split_rows, thin_rows

N = 1003


def frame():
    random = np.random.default_rng(0)
    return pd.DataFrame({"f": random.choice(list("abc"), N), "x": random.normal(size=N)})


SOURCES = {
    "array": lambda: np.random.default_rng(0).normal(size=(N, 3)),
    "columns in turn": lambda: np.asfortranarray(np.random.default_rng(0).normal(size=(N, 3))),
    "whole numbers": lambda: np.random.default_rng(0).integers(0, 9, size=(N, 3)),
    "sparse": lambda: sparse.random(N, 5, density=0.3, random_state=0, format="csr"),
    "numbers in a frame": lambda: pd.DataFrame(np.random.default_rng(0).normal(size=(N, 3))),
    "factors": frame,
}


def rows_of(source, weight=None):
    return read_rows(SOURCES[source](), np.arange(N) % 3, weight)


@dataclass(frozen=True)
class Elsewhere:
    """Rows that are not in memory, as far as anyone can tell."""

    inner: MemoryRows

    @property
    def schema(self):
        return self.inner.schema

    @property
    def n_rows(self):
        return self.inner.n_rows

    @property
    def classes(self):
        return self.inner.classes

    @property
    def soft(self):
        return self.inner.soft

    def map_sum(self, kernel, *, block_entries=None):
        return self.inner.map_sum(kernel, block_entries=300)


def everything(rows):
    """All rows as one block, in memory."""
    found = rows.map_sum(TakeOneOf(1)).rows(rows.schema, rows.classes)
    X = found.table.cut(0, found.n_rows)
    if sparse.issparse(X):
        X = X.toarray()
    elif not isinstance(X, np.ndarray):
        X = np.column_stack([X.numeric, X.codes])
    return X, found.y, found.weight


@pytest.mark.parametrize("place", ["memory", "elsewhere"])
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("k", [1, 2, 7])
def test_parts_have_every_row_once_at_its_place(source, k, place):
    weight = 1.0 + np.arange(N)
    rows = rows_of(source, weight)
    X, y, _ = everything(rows)
    parts = split_rows(rows if place == "memory" else Elsewhere(rows), k)
    assert sum(part.n_rows for part in parts) == N
    for first, part in enumerate(parts):
        assert isinstance(part, Rows)
        found, labels, weights = everything(part)
        np.testing.assert_array_equal(found, X[first::k])
        np.testing.assert_array_equal(labels, y[first::k])
        np.testing.assert_array_equal(weights, weight[first::k])
        assert part.schema is rows.schema
        assert part.classes.tolist() == [0, 1, 2]
        assert not part.soft


def test_sums_over_parts_add_up_to_that_of_all_rows():
    rows = rows_of("array")

    def squares(block):
        return block.X.T @ block.X

    total = sum(part.map_sum(squares) for part in split_rows(rows, 5))
    np.testing.assert_allclose(total, rows.map_sum(squares), rtol=1e-12)


def test_parts_of_an_array_are_views_of_it():
    X = np.random.default_rng(0).normal(size=(N, 3))
    part = split_rows(read_rows(X, np.arange(N) % 2), 4)[1]
    shared = []
    part.map_sum(lambda block: shared.append(np.shares_memory(block.X, X)) or 0)
    assert shared == [True]


@pytest.mark.parametrize("place", ["memory", "elsewhere"])
def test_rows_of_a_part_keep_the_numbers_they_have_in_the_whole(place):
    X = np.random.default_rng(0).normal(size=(N, 3))
    X[402, 1] = np.nan
    weight = np.ones(N)
    weight[::10] = 0.0
    rows = read_rows(X, np.arange(N) % 2, weight)
    parts = split_rows(rows if place == "memory" else Elsewhere(rows), 4)

    def check(block):
        check_finite(block, rows.schema)
        return 0

    for part in parts[:2]:
        part.map_sum(check)
    with pytest.raises(MissingValueError, match=r"row 402, column 1"):
        parts[2].map_sum(check)


def test_rows_of_weight_zero_are_left_out_of_parts():
    weight = (np.arange(N) % 3 > 0).astype(float)
    rows = rows_of("array", weight)
    for place in (rows, Elsewhere(rows)):
        kept = [len(everything(part)[0]) for part in split_rows(place, 2)]
        assert kept == [int(weight[::2].sum()), int(weight[1::2].sum())]


def test_offsets_go_with_their_rows():
    rows = MemoryRows(rows_of("array").table, offset=np.arange(N, dtype=float))
    parts = split_rows(rows, 3)
    assert parts[2].map_sum(lambda block: block.offset.sum()) == np.arange(2, N, 3).sum()


@pytest.mark.parametrize("source", SOURCES)
def test_joined_rows_are_both(source):
    rows = rows_of(source)
    X, y, _ = everything(rows)
    first, second = map(_in_memory, split_rows(rows, 2))
    found, labels, weights = everything(join_rows(first, second))
    np.testing.assert_array_equal(found, np.concatenate([X[::2], X[1::2]]))
    np.testing.assert_array_equal(labels, np.concatenate([y[::2], y[1::2]]))
    assert weights is None


def _in_memory(rows):
    return rows.map_sum(TakeOneOf(1)).rows(rows.schema, rows.classes)


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


@pytest.mark.parametrize("place", ["memory", "elsewhere"])
@pytest.mark.parametrize("rate", [0.02, 0.3, 1.0])
def test_few_rows_stand_for_all(rate, place):
    n = 20000
    random = np.random.default_rng(0)
    X, weight = random.normal(size=(n, 2)), random.exponential(size=n)
    rows = read_rows(X, np.arange(n) % 2, weight)
    few = thin_rows(rows if place == "memory" else Elsewhere(rows), rate, seed=1)
    chance = np.sqrt(n * rate)
    assert abs(few.n_rows - n * rate) < 5 * chance
    assert few.weight.sum() == pytest.approx(weight.sum(), rel=5 / chance)
    ours = few.weight @ (few.table.values[:, 0] ** 2)
    assert ours == pytest.approx(weight @ X[:, 0] ** 2, rel=15 / chance)


def test_all_rows_stand_for_themselves():
    rows = rows_of("array")
    assert thin_rows(rows, 1.0, seed=0) is rows


def test_no_row_at_all_is_none():
    rows = read_rows(np.ones((3, 1)), [0, 1, 0])
    assert thin_rows(rows, 1e-9, seed=0) is None
