"""From the columns of a table to the columns of the design matrix."""

import numpy as np
import polars as pl
import pytest

from posteriori.design.columns import Columns
from posteriori.errors import LevelError, MissingValueError, ParameterError
from posteriori.rows.block import Block, Mixed
from posteriori.rows.features import read_features
from posteriori.rows.schema import Column, Schema

FRAME = pl.DataFrame(
    {
        "colour": ["red", "blue", "green", "red"],
        "size": [1.5, -2.0, 0.0, 4.0],
        "only": ["same"] * 4,
        "flag": [True, False, False, True],
    }
)
MATRIX = [[0, 1, 1.5, 1], [0, 0, -2.0, 0], [1, 0, 0.0, 0], [0, 1, 4.0, 1]]


def block_of(X, schema=None, start=0, kept=None):
    table = read_features(X, schema)
    return Columns(table.schema), Block(table.cut(0, table.n_rows), None, None, start, kept)


@pytest.mark.parametrize(
    ("names", "of_matrix"),
    [(FRAME.columns, [0, 1, 2, 3]), (["colour", "only"], [0, 1]), (["only"], [])],
)
def test_columns_keep_their_order_and_a_factor_leaves_out_its_first_level(names, of_matrix):
    columns, block = block_of(FRAME.select(names))
    np.testing.assert_array_equal(columns.design(block).array(), np.array(MATRIX)[:, of_matrix])
    found = ("colour[green]", "colour[red]", "size", "flag")
    assert columns.names == tuple(found[j] for j in of_matrix)


def test_an_unseen_level_is_an_error_or_taken_for_the_reference_level():
    fitted, _ = block_of(FRAME)
    new = FRAME.with_columns(colour=pl.Series(["red", "pink", "green", "mauve"]))
    _, block = block_of(new, fitted.schema, start=100)
    with pytest.raises(LevelError, match=r"Row 101 .* column 'colour', .* 'blue', 'green', 'red'"):
        fitted.design(block)
    design = Columns(fitted.schema, handle_unknown="reference").design(block)
    expected = np.array(MATRIX)
    expected[:, :2] = [[0, 1], [0, 0], [1, 0], [0, 0]]
    np.testing.assert_array_equal(design.array(), expected)
    np.testing.assert_array_equal(block.X.codes[:, 0], [2, -2, 1, -2])  # the rows stay as read
    with pytest.raises(ParameterError, match=r"handle_unknown='ignore' .* 'error' or 'reference'"):
        Columns(Schema.unnamed(1), handle_unknown="ignore")


@pytest.mark.parametrize("handle_unknown", ["error", "reference"])
def test_a_missing_level_is_an_error_before_and_beside_any_unseen_one(handle_unknown):
    fitted, _ = block_of(FRAME)
    new = FRAME.with_columns(colour=pl.Series(["pink", None, "red", "blue"]))
    _, block = block_of(new, fitted.schema, start=40, kept=np.array([3, 7, 8, 9]))
    with pytest.raises(MissingValueError, match="row 47, column 'colour'"):
        Columns(fitted.schema, handle_unknown=handle_unknown).design(block)


def test_parts_to_be_filled_in_have_few_rows_where_levels_are_many():
    levels = tuple(range(2**18))
    schema = Schema((Column("x"), Column("f", "categorical", levels)), named=True)
    codes = np.array([[5], [0], [9], [2], [7]], dtype=np.int32)
    block = Block(Mixed(np.arange(5.0)[:, None], codes), None, np.arange(5.0), 10)
    parts = list(Columns(schema).dense_parts(block))
    assert [part.X.shape[0] for part in parts] == [2, 2, 1]
    assert [part.row(0) for part in parts] == [10, 12, 14]
    np.testing.assert_array_equal(np.concatenate([part.X.codes for part in parts]), codes)
    np.testing.assert_array_equal(np.concatenate([part.weight for part in parts]), block.weight)
