"""Lots of classes with few rows and with many."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from posteriori.models.meta import Training
from posteriori.rows.digests import LAST
from posteriori.rows.in_memory import read_rows
from posteriori.statistics import lots
from posteriori.statistics.lots import GatherLots, buckets, leading

N_BUCKETS = 7


@pytest.fixture
def drawn():
    """Lots of two classes, of which the first has eleven different ones, and weights."""
    random = np.random.default_rng(0)
    codes = random.integers(2, size=500)
    values = np.where(codes == 0, random.integers(11, size=500), random.integers(2**53, size=500))
    return values.astype(float), codes, random.integers(1, 4, size=500).astype(float)


def test_all_lots_of_few_rows_are_kept_and_the_lowest_of_many(drawn, monkeypatch):
    monkeypatch.setattr(lots, "FEW", 11)
    values, codes, weight = drawn
    found = read_rows(values[:, None], codes, weight).map_sum(
        GatherLots(2, N_BUCKETS), block_entries=70
    )
    few, many = found.whole.classes
    assert few.are_few
    assert not many.are_few
    assert_array_equal(few.lots, np.arange(11))
    own = (values[:, None] == np.arange(11)) & (codes == 0)[:, None]
    assert_array_equal(few.weight, weight @ own)
    assert_array_equal(few.count, own.sum(axis=0))
    assert_array_equal(many.lots, np.unique(values[codes == 1])[:12])
    first, second = found.leading.classes
    assert (first.lots, first.count) == ([0], sum(codes == 0))
    assert_array_equal(second.lots, np.unique(values[codes == 1] // 2**LAST)[:12])


@pytest.mark.parametrize("kind", ["leading", "whole"])
def test_the_rows_of_each_bucket_are_counted(drawn, kind):
    values, codes, weight = drawn
    found = read_rows(values[:, None], codes, weight).map_sum(GatherLots(2, N_BUCKETS))
    piles, lot = getattr(found, kind), leading(values) if kind == "leading" else values
    for k in range(2):
        for bucket in range(N_BUCKETS):
            own = (codes == k) & (buckets(lot, N_BUCKETS) == bucket)
            assert piles.weight[k, bucket] == weight[own].sum()
            assert piles.count[k, bucket] == own.sum()


def test_the_largest_lots_are_whole_numbers_still():
    largest = np.array([2.0**53 - 1, 2.0**53 - 2])
    assert_array_equal(buckets(largest, 7), [(2**53 - 1) % 7, (2**53 - 2) % 7])
    assert_array_equal(leading(largest), [2**30 - 1] * 2)


def drawn_by(values, n_folds=5):
    """Lots of rows of one class."""
    lots_of_rows = np.asarray(values, dtype=float)
    rows = Training(lots_of_rows, np.array([0]), np.zeros(len(values), dtype=int), None)
    return rows.as_numbers(lots_of_rows).map_sum(GatherLots(1, 64 * n_folds))


@pytest.mark.parametrize("n", [2, 100, 6_000])
def test_different_lots_are_no_heap(n):
    random = np.random.default_rng(n)
    values = random.choice(2**30, n, replace=False) * 2.0**LAST
    assert not drawn_by(values + random.integers(2**LAST, size=n)).are_heaped(5)
    assert not drawn_by(np.repeat(values, 30)).are_heaped(5)  # rows that occur several times


@pytest.mark.parametrize("n", [2, 3, 100, 6_000])
def test_lots_that_the_same_bits_lead_are_a_heap(n):
    assert drawn_by(2.0**50 + np.arange(n)).are_heaped(5)


@pytest.mark.parametrize("n", [100, 12_000])
@pytest.mark.parametrize("place", [0, 2**29])
def test_a_heap_is_found_among_others_wherever_it_lies(n, place):
    random = np.random.default_rng(n)
    others = random.choice(2**30, n // 2, replace=False) * 2.0**LAST
    heap = place * 2.0**LAST + random.choice(2**LAST, n // 2, replace=False)
    assert drawn_by(np.concatenate([others, heap])).are_heaped(5)


def test_two_rows_that_the_same_bits_lead_are_no_heap_among_others():
    values = np.append(np.arange(1.0, 50.0) * 2**LAST, 7 * 2.0**LAST + 1)
    assert not drawn_by(values).are_heaped(5)
