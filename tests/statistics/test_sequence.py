"""Rows gathered for sequential solvers: the same whatever way they came."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from posteriori.design.columns import Columns
from posteriori.errors import InfiniteValueError, MissingValueError
from posteriori.rows.in_memory import read_rows
from posteriori.statistics import sequence
from posteriori.statistics.collect import Collect
from posteriori.statistics.coordinates import Coordinates
from posteriori.statistics.same_rows import fingerprints
from posteriori.statistics.sequence import Visits, mean_square

RANDOM = np.random.default_rng(3)
X = RANDOM.normal(size=(40, 3)) * [1.0, 10.0, 0.1] + [0.0, 5.0, 0.0]
Y = RANDOM.integers(3, size=40)


def visits(X, y, weight=None, block_entries=None):
    rows = read_rows(X, y, weight)
    columns = Columns(rows.schema)
    values = columns.design(rows.map_sum(Collect(rows.schema)).joined()).array()
    total = np.ones(len(values)) if weight is None else weight[weight > 0]
    centre = np.average(values, axis=0, weights=total) if rows.y.ndim == 1 else values.mean(axis=0)
    scale = np.full(values.shape[1], 2.0)
    at = Coordinates(columns, True, centre, scale, True, False, np.ones(len(scale)))
    return Visits(rows.map_sum(Collect(rows.schema), block_entries=block_entries).joined(), at)


def all_of(found):
    parts = list(found.segments(np.arange(len(found))))
    return tuple(np.concatenate([part[i] for part in parts]) for i in range(3))


SOURCES = {
    "dense": lambda X: X,
    "sparse": sparse.csr_array,
    "frame": lambda X: pd.DataFrame(X, columns=list("abc")),
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
@pytest.mark.parametrize("block_entries", [None, 12])
def test_rows_come_in_their_order_standardised_after_an_intercept(source, block_entries):
    rows, codes, weight = all_of(visits(source(X), Y, block_entries=block_entries))
    assert_array_equal(codes, Y)
    assert_array_equal(weight, np.ones(40))
    assert_allclose(rows[:, 1:], (X - X.mean(axis=0)) / 2.0, rtol=1e-12, atol=1e-14)
    assert_array_equal(rows[:, 0], 1.0)


@pytest.mark.parametrize("kept", [0, 10**9])
def test_segments_follow_an_order_laid_out_or_not(kept, monkeypatch):
    monkeypatch.setattr(sequence, "_SEGMENT", 40)
    monkeypatch.setattr(sequence, "LAID_OUT", kept)
    X = RANDOM.normal(size=(300, 3))
    found, order = visits(X, np.arange(300) % 2), RANDOM.permutation(300)
    parts = list(found.segments(order))
    assert [len(part.codes) for part in parts] == [64, 64, 64, 64, 44]
    rows = np.concatenate([part.rows for part in parts])
    assert_allclose(rows[:, 1:], (X[order] - X.mean(axis=0)) / 2.0, rtol=1e-12, atol=1e-14)


def test_levels_are_design_columns():
    frame = pd.DataFrame({"a": [1.0, 2.0, 4.0], "f": ["u", "v", "w"]})
    rows, _, _ = all_of(visits(frame, [0, 1, 0]))
    expected = np.array([[1.0, 0, 0], [2.0, 1, 0], [4.0, 0, 1]])
    assert_allclose(rows[:, 1:], (expected - expected.mean(axis=0)) / 2.0)


def test_soft_rows_become_one_row_for_each_class_that_shares_them():
    soft = np.array([[0.25, 0.75], [1.0, 0.0], [0.0, 1.0]])
    found = visits(X[:3], soft)
    _, codes, weight = all_of(found)
    assert codes.tolist() == [0, 1, 0, 1]
    assert weight.tolist() == [0.25, 0.75, 1.0, 1.0]
    assert_array_equal(found.block.X, X[[0, 0, 1, 2]])


def same(one, other):
    for a, b in zip(all_of(one), all_of(other), strict=True):
        assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_the_sorted_order_does_not_depend_on_the_order_given():
    order = RANDOM.permutation(40)
    same(visits(X, Y).sorted(), visits(X[order], Y[order]).sorted())


def test_the_sorted_order_does_not_depend_on_classes_being_called_otherwise():
    called = np.array([2, 0, 1])[Y]
    one, other = visits(X, Y).sorted(), visits(X, called).sorted()
    assert_array_equal(np.array([2, 0, 1])[one.block.y], other.block.y)
    assert_array_equal(one.block.X, other.block.X)


def test_the_sorted_order_does_not_depend_on_columns_being_elsewhere():
    order = [2, 0, 1]
    one, other = visits(X, Y).sorted(), visits(X[:, order], Y).sorted()
    assert_array_equal(one.block.X[:, order], other.block.X)


def test_rows_that_are_the_same_become_one_of_their_weight():
    times = RANDOM.integers(1, 5, size=40)
    repeated = visits(X.repeat(times, axis=0), Y.repeat(times)).sorted()
    weighted = visits(X, Y, times.astype(float)).sorted()
    assert len(repeated) == 40
    same(repeated, weighted)


def test_rows_of_two_classes_stay_two():
    found = visits(np.ones((4, 2)), [0, 1, 0, 1]).sorted()
    assert sorted(found.block.y.tolist()) == [0, 1]
    assert found.block.weight.tolist() == [2.0, 2.0]


def test_weights_can_be_multiplied():
    found = visits(X, Y).weighted(3.0)
    assert_array_equal(all_of(found)[2], 3.0)
    rows = all_of(found)[0]
    assert_allclose(mean_square(found), (rows**2).sum(axis=1).mean(), rtol=1e-12)


def test_fingerprints_are_those_of_the_row_in_any_storage():
    values = np.where(abs(X) < 0.5, 0.0, np.round(X))
    codes = np.arange(40) % 2
    dense = fingerprints(values, codes)
    stored = sparse.csr_array(np.ones_like(values))  # with zeros stored
    stored.data = values.ravel().copy()
    assert_array_equal(fingerprints(sparse.csr_array(values), codes), dense)
    assert_array_equal(fingerprints(stored, codes), dense)
    assert_array_equal(fingerprints(np.asfortranarray(values), codes), dense)


def test_fingerprints_tell_small_whole_numbers_apart():
    grid = np.stack(np.meshgrid(*[np.arange(-20.0, 20.0)] * 3), axis=-1).reshape(-1, 3)
    grid = grid[(grid != 0).all(axis=1)]
    prints = [fingerprints(grid, np.full(len(grid), k)) for k in range(2)]
    assert len(np.unique(prints)) == 2 * len(grid)


@pytest.mark.parametrize(
    ("value", "error"), [(np.nan, MissingValueError), (np.inf, InfiniteValueError)]
)
def test_entries_that_are_no_numbers_are_named(value, error):
    spoilt = X.copy()
    spoilt[7, 1] = value
    rows = read_rows(spoilt, Y)
    with pytest.raises(error, match="row 7, column 1"):
        rows.map_sum(Collect(rows.schema))
