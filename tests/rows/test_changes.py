"""Rows with other entries in some columns: what was asked for changes, and nothing else."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from posteriori.rows.block import Mixed
from posteriori.rows.features import read_features
from posteriori.rows.frames import add_to, changed_features, changed_table, entries_of, set_to
from posteriori.rows.schema import Schema

X = np.array([[1.0, 2.0], [3.0, 0.0]])
FRAME = pd.DataFrame({"a": [1, 2], "f": ["x", "y"], "b": [True, False]}, index=[7, 5])


def test_changes_are_made_one_after_the_other_and_the_rows_stay():
    changes = [set_to(0, 5.0), add_to(0, 1.0), add_to(1, -2.0)]
    expected = [[6.0, 0.0], [6.0, -2.0]]
    schema = Schema.of_names(["a", "b"])
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


@pytest.mark.parametrize("kind", ["pandas", "categories", "polars", "pyarrow"])
def test_frames_keep_their_kind_and_their_other_columns(kind):
    frame = {
        "pandas": FRAME,
        "categories": FRAME.astype({"f": "category"}),
        "polars": pl.from_pandas(FRAME),
        "pyarrow": pa.Table.from_pandas(FRAME, preserve_index=False),
    }[kind]
    table = read_features(frame)
    found = changed_table(frame, table, [add_to(0, 0.5), set_to(1, 1)])
    assert type(found) is type(frame)
    again = read_features(found)
    assert_array_equal(entries_of(again, 0), [1.5, 2.5])
    assert again.schema.columns[1].levels == ("y",)
    assert_array_equal(entries_of(again, 2), [1.0, 0.0])
    if kind == "categories":
        assert found["f"].dtype == frame["f"].dtype
        assert found.index.tolist() == [7, 5]


def test_arrays_widen_to_hold_what_is_put_into_them():
    whole = np.array([[1, 2], [3, 4]])
    assert_array_equal(
        changed_table(whole, read_features(whole), [add_to(1, 0.5)]), [[1, 2.5], [3, 4.5]]
    )
    bits = np.array([[True, False], [False, False]])
    found = changed_table(bits, read_features(bits), [set_to(1, 1.0)])
    assert found.dtype == bool
    assert_array_equal(found, [[True, True], [False, True]])
    words = np.array([["u", 1.0], ["v", 2.0]], dtype=object)
    found = changed_table(words, read_features(words), [set_to(0, 1), add_to(1, 1.0)])
    assert found.tolist() == [["v", 2.0], ["v", 3.0]]
    found = changed_table(sparse.csr_matrix(X), read_features(sparse.csr_matrix(X)), [set_to(1, 9)])
    assert_array_equal(found.toarray(), [[1.0, 9.0], [3.0, 9.0]])
