"""The largest absolute value of each column, and the power of two beside it."""

import numpy as np
import polars as pl
import pytest
from scipy import sparse

from posteriori.design.columns import Columns
from posteriori.rows.in_memory import read_rows
from posteriori.statistics.column_moments import Extremes, GatherExtremes

X = np.array([[1.0, -0.0, np.nan, -7e300], [-3.0, 0.0, 2e-310, 1.0], [2.0, 0.0, -1e-320, 0.0]])


@pytest.mark.parametrize("source", [np.asarray, sparse.csr_array, pl.DataFrame])
@pytest.mark.parametrize("block_entries", [None, 1])
def test_the_largest_absolute_value_is_found_past_missing_entries(source, block_entries):
    rows = read_rows(source(X), [0, 1, 1])
    found = rows.map_sum(GatherExtremes(Columns(rows.schema)), block_entries=block_entries)
    assert found.largest.tolist() == [3.0, 0.0, 2e-310, 7e300]


def test_the_sum_of_two_is_the_larger_of_both():
    a, b = Extremes(np.array([1.0, 5.0])), Extremes(np.array([2.0, 3.0]))
    assert (a + b).largest.tolist() == [2.0, 5.0]
    assert sum([a, b]).largest.tolist() == [2.0, 5.0]


@pytest.mark.parametrize("largest", [1.0, 1.5, 3.0, 1e150, 1e-150, 1e300, 1e-300])
def test_the_unit_is_the_power_of_two_just_below(largest):
    (unit,) = Extremes(np.array([largest])).unit()
    assert np.frexp(unit)[0] == 0.5
    assert unit <= largest < 2 * unit


def test_the_unit_of_zeros_is_one_and_every_unit_has_a_reciprocal():
    unit = Extremes(np.array([0.0, 1.7e308, 5e-324])).unit()
    assert unit[0] == 1.0
    np.testing.assert_array_equal((1 / unit) * unit, np.ones(3))
    assert (1 / unit >= np.finfo(float).tiny).all()
