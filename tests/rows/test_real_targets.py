"""Targets that are numbers: what is read, and what is an error with its row."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.exceptions import DataConversionWarning

from posteriori.errors import DomainError, ScaleError, ShapeError, WeightError
from posteriori.rows.in_memory import read_real_rows
from posteriori.rows.target import read_real_target

VALUES = [1.0, -2.5, 0.0, 1e300]

SOURCES = {
    "list": list,
    "tuple": tuple,
    "array": np.array,
    "objects": lambda v: np.array(v, dtype=object),
    "decimals": lambda v: [Decimal(x) for x in v],
    "fractions": lambda v: [Fraction(x) for x in v],
    "pandas": pd.Series,
    "pandas nullable": lambda v: pd.Series(v, dtype="Float64"),
    "pandas with an index": lambda v: pd.Series(v, index=[9, 4, 2, 7]),
    "polars": pl.Series,
    "pyarrow": pa.chunked_array,
}


@pytest.mark.parametrize("source", [s for n, s in SOURCES.items() if n != "pyarrow"])
def test_numbers_of_any_source_are_doubles(source):
    found = read_real_target(source(VALUES), 4)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, VALUES)


def test_an_arrow_column_is_read_too():
    np.testing.assert_array_equal(read_real_target(pa.chunked_array([VALUES]), 4), VALUES)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint16, np.int64, np.float16, np.longdouble])
def test_numbers_of_any_type_are_doubles(dtype):
    found = read_real_target(np.array([0, 1, 1], dtype=dtype), 3)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, [0.0, 1.0, 1.0])


def test_the_answer_is_the_readers_own():
    y = np.array([1.0, 2.0])
    read_real_target(y, 2)[0] = 5.0
    assert y[0] == 1.0


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (None, "requires y to be passed"),
        ([1.0, 2.0, np.nan], r"contains NaN \(first in row 2\)"),
        ([1.0, None, 2.0], r"contains NaN \(first in row 1\)"),
        (pd.Series([1, pd.NA, 2], dtype="Int64"), r"contains NaN \(first in row 1\)"),
        (pl.Series([None, 1.0, 2.0]), r"contains NaN \(first in row 0\)"),
        ([1.0, np.inf, -np.inf], r"contains infinity \(first in row 1\)"),
        (["a", "b", "c"], "holds strings"),
        (["1", "2", "3"], "holds strings"),
        (np.array([1.0, "b", 2.0], dtype=object), "Row 1 of y is 'b'"),
        ([1j, 2j, 3j], "complex"),
        (np.array(["2024-01-01"] * 3, dtype="M8[D]"), "dates"),
        (np.array([1, 2, 3], dtype="m8[s]"), "durations"),
    ],
    ids=str,
)
def test_what_is_no_finite_number_is_named(y, words):
    with pytest.raises(DomainError, match=words):
        read_real_target(y, 3)


def test_a_whole_number_beyond_all_doubles_is_named():
    with pytest.raises(ScaleError, match="Row 1 of y"):
        read_real_target([1, 10**400], 2)


@pytest.mark.parametrize("y", [np.ones(4), np.ones((3, 2)), np.ones((3, 1, 1)), 1.0], ids=str)
def test_a_wrong_shape_is_named(y):
    with pytest.raises(ShapeError, match="y"):
        read_real_target(y, 3)


def test_one_column_is_taken_with_the_warning_of_scikit_learn():
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        found = read_real_target(np.ones((3, 1)), 3)
    np.testing.assert_array_equal(found, np.ones(3))


def test_rows_have_a_target_and_weights_but_no_classes():
    rows = read_real_rows([[1.0], [2.0]], [3, 4], [1, 2])
    assert rows.classes is None
    assert not rows.soft
    assert rows.y.tolist() == [3.0, 4.0]
    assert rows.weight.tolist() == [1.0, 2.0]
    with pytest.raises(WeightError):
        read_real_rows([[1.0], [2.0]], [3, 4], [-1, 2])
