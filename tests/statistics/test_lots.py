"""Lots of classes with few rows and with many."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from posteriori.rows.digests import LAST
from posteriori.rows.memory import read_rows
from posteriori.statistics import lots
from posteriori.statistics.lots import GatherLots, LotsOfClass, buckets

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
    few, many = found.classes
    assert few.are_few
    assert not many.are_few
    assert_array_equal(few.lots, np.arange(11))
    own = (values[:, None] == np.arange(11)) & (codes == 0)[:, None]
    assert_array_equal(few.weight, weight @ own)
    assert_array_equal(few.count, own.sum(axis=0))
    assert_array_equal(many.lots, np.unique(values[codes == 1])[:12])


@pytest.mark.parametrize("by_all", [False, True])
def test_the_rows_of_each_bucket_are_counted(drawn, by_all):
    values, codes, weight = drawn
    found = read_rows(values[:, None], codes, weight).map_sum(GatherLots(2, N_BUCKETS))
    for k in range(2):
        for bucket in range(N_BUCKETS):
            own = (codes == k) & (buckets(values, N_BUCKETS, by_all) == bucket)
            assert found.weight[int(by_all), k, bucket] == weight[own].sum()
            assert found.count[int(by_all), k, bucket] == own.sum()


def test_the_largest_lots_are_whole_numbers_still():
    largest = np.array([2.0**53 - 1, 2.0**53 - 2])
    assert_array_equal(buckets(largest, 7, by_all=True), [(2**53 - 1) % 7, (2**53 - 2) % 7])
    assert_array_equal(buckets(largest, 7, by_all=False), [(2**30 - 1) % 7] * 2)


def test_bits_that_lead_tell_lots_apart_unless_most_agree():
    ones = np.ones(800)
    assert LotsOfClass.of(np.arange(800.0) * 2**LAST, ones, ones).are_apart
    assert LotsOfClass.of(np.arange(800.0) * 2**LAST / 8, ones, ones).are_apart
    assert not LotsOfClass.of(np.arange(800.0) * 2**LAST / 9, ones, ones).are_apart
