"""Mean and deviation of each design column."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from posteriori.design.columns import Columns
from posteriori.errors import InfiniteValueError, MissingValueError
from posteriori.rows.in_memory import read_rows
from posteriori.statistics.column_moments import gather
from posteriori.statistics.moments import GatherSpread

RANDOM = np.random.default_rng(2)
X = RANDOM.normal([1e8, 0.0, -3.0], [1.0, 2.0, 0.0], (500, 3))
Y = RANDOM.integers(0, 2, 500)


def spread_of(X, weight=None, entries=60):
    rows = read_rows(X, Y, weight)
    return gather(rows, GatherSpread(Columns(rows.schema)), block_entries=entries)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_mean_and_deviation_are_those_of_numpy(form):
    data = X if form is np.asarray else X[:, 1:]
    found = spread_of(form(data))
    np.testing.assert_allclose(found.mean * found.unit, data.mean(axis=0), rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(found.deviation * found.unit, data.std(axis=0), rtol=1e-9, atol=1e-7)


def test_a_weight_is_a_row_repeated():
    weight = RANDOM.integers(0, 4, 500)
    found, repeated = spread_of(X, weight), np.repeat(X, weight, axis=0)
    np.testing.assert_allclose(found.mean * found.unit, repeated.mean(axis=0), rtol=1e-14)
    np.testing.assert_allclose(
        found.deviation * found.unit, repeated.std(axis=0), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("power", [-150, 150, 200])
def test_sizes_beyond_squares_are_measured_in_units(power):
    found = spread_of(X * 10.0**power)
    np.testing.assert_allclose(
        found.deviation[:2] * found.unit[:2], X.std(axis=0)[:2] * 10.0**power, rtol=1e-7
    )


def test_levels_have_the_spread_of_their_indicators():
    levels = np.array(list("abc"))[RANDOM.integers(0, 3, 500)]
    found = spread_of(pd.DataFrame({"f": pd.Categorical(levels)}))
    share = np.array([(levels == level).mean() for level in "bc"])
    np.testing.assert_allclose(found.mean, share, rtol=1e-13)
    np.testing.assert_allclose(found.deviation**2, share * (1 - share), rtol=1e-12)


@pytest.mark.parametrize(
    ("bad", "error"), [(np.nan, MissingValueError), (np.inf, InfiniteValueError)]
)
def test_a_bad_entry_is_named(bad, error):
    data = X.copy()
    data[321, 1] = bad
    with pytest.raises(error, match=r"row 321, column 1"):
        spread_of(data)
