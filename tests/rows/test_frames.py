"""Frames come back in the user's library, and rows with other entries keep all the rest."""

import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from posteriori.errors import ColumnNameError
from posteriori.rows.block import Mixed
from posteriori.rows.features import read_features
from posteriori.rows.frames import (
    add_to,
    backend_of,
    changed_features,
    changed_table,
    entries_of,
    make_frame,
    set_to,
)
from posteriori.rows.schema import Schema

COLUMNS = {"term": ["a", "b"], "class": [1, 2], "estimate": [0.5, float("inf")]}
MAKERS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


@pytest.mark.parametrize("backend", MAKERS)
def test_the_library_of_a_frame_is_known_and_used_again(backend):
    assert backend_of(MAKERS[backend](COLUMNS)) == backend
    made = make_frame(COLUMNS, backend)
    assert type(made) is type(MAKERS[backend](COLUMNS))
    assert {name: list(np.asarray(made[name])) for name in COLUMNS} == COLUMNS


def test_what_is_no_frame_has_no_library():
    for X in (np.ones((2, 2)), [[1.0]], sparse.csr_array((2, 2)), None, "y ~ x"):
        assert backend_of(X) is None
    with pytest.raises(ColumnNameError, match="same name, 'a'"):
        backend_of(pd.DataFrame(np.ones((1, 2)), columns=["a", "a"]))


def test_without_a_liking_the_first_library_that_is_there_is_used(monkeypatch):
    for library, make in MAKERS.items():
        assert type(make_frame(COLUMNS, None)) is type(make(COLUMNS))
        monkeypatch.setitem(sys.modules, library, None)
    assert make_frame(COLUMNS, "polars") == COLUMNS


# Rows with other entries in some columns.

X = np.array([[1.0, 2.0], [3.0, 0.0]])
FRAME = pd.DataFrame({"a": [1, 2], "f": ["x", "y"], "b": [True, False]}, index=[7, 5])


def test_changes_are_made_one_after_the_other_and_the_rows_stay():
    changes = [set_to(0, 5.0), add_to(0, 1.0), add_to(1, -2.0)]
    expected, schema = [[6.0, 0.0], [6.0, -2.0]], Schema.of_names(["a", "b"])
    assert_array_equal(changed_features(X, schema, changes), expected)
    found = changed_features(sparse.csr_array(X), schema, changes)
    assert_array_equal(found.toarray(), expected)
    assert_array_equal(X, [[1.0, 2.0], [3.0, 0.0]])


def test_numbers_and_levels_of_mixed_rows_are_told_apart():
    table = read_features(FRAME)
    rows = table.cut(0, 2)
    found = changed_features(rows, table.schema, [set_to(1, 0), add_to(0, 0.5), set_to(2, 1.0)])
    assert isinstance(found, Mixed)
    assert_array_equal(found.numeric, [[1.5, 1.0], [2.5, 1.0]])
    assert_array_equal(found.codes, [[0], [0]])
    assert_array_equal(rows.codes, [[0], [1]])


@pytest.mark.parametrize(
    "frame",
    [
        FRAME,
        FRAME.astype({"f": "category"}),
        pl.from_pandas(FRAME),
        pa.Table.from_pandas(FRAME, preserve_index=False),
    ],
    ids=["pandas", "categories", "polars", "pyarrow"],
)
def test_frames_keep_their_kind_and_their_other_columns(frame):
    found = changed_table(frame, read_features(frame), [add_to(0, 0.5), set_to(1, 1)])
    assert type(found) is type(frame)
    again = read_features(found)
    assert_array_equal(entries_of(again, 0), [1.5, 2.5])
    assert again.schema.columns[1].levels == ("y",)
    assert_array_equal(entries_of(again, 2), [1.0, 0.0])
    if isinstance(frame, pd.DataFrame):
        assert found["f"].dtype == frame["f"].dtype
        assert found.index.tolist() == [7, 5]


@pytest.mark.parametrize(
    ("rows", "changes", "expected"),
    [
        (np.array([[1, 2], [3, 4]]), [add_to(1, 0.5)], [[1, 2.5], [3, 4.5]]),
        (
            np.array([[True, False], [False, False]]),
            [set_to(1, 1.0)],
            [[True, True], [False, True]],
        ),
        (
            np.array([["u", 1.0], ["v", 2.0]], dtype=object),
            [set_to(0, 1), add_to(1, 1.0)],
            [["v", 2.0], ["v", 3.0]],
        ),
        (sparse.csr_matrix(X), [set_to(1, 9)], [[1.0, 9.0], [3.0, 9.0]]),
    ],
    ids=["numbers", "booleans", "objects", "sparse"],
)
def test_arrays_widen_to_hold_what_is_put_into_them(rows, changes, expected):
    found = changed_table(rows, read_features(rows), changes)
    found = found.toarray() if sparse.issparse(found) else found
    assert found.tolist() == expected
    assert type(found[0, 1]) is type(rows[0, 1]) or rows.dtype == int
