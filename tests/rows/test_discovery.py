"""The first pass: columns, levels, classes and weights of batches, added up in any order."""

from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from posteriori.errors import ColumnNameError, ColumnTypeError, LabelError
from posteriori.rows.discovery import inspect_batch
from posteriori.rows.schema import Batch

FRAME = pd.DataFrame(
    {
        "size": [1.5, 2.5, np.nan, 4.0, 5.0, 6.0],
        "old": [True, False, True, True, False, False],
        "colour": ["red", "blue", "blue", "green", None, "red"],
    }
)
Y = np.array(["no", "yes", "no", "maybe", "yes", "no"], dtype=object)
WEIGHT = np.array([1.0, 2.0, 0.5, 0.0, 1.0, 1.0])
MAKERS = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
}


def _batches(make, cuts=(0, 2, 3, 6)):
    return [
        Batch(make(FRAME[low:high]), Y[low:high], WEIGHT[low:high], start=low)
        for low, high in pairwise(cuts)
    ]


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1], [1, 2, 0]])
def test_batches_in_any_order_show_what_all_rows_show(make, order):
    batches = _batches(make)
    found = reduce(add, (inspect_batch(batches[i]) for i in order))
    columns = found.schema.columns
    assert [(c.name, c.kind, c.levels) for c in columns] == [
        ("size", "numeric", ()),
        ("old", "boolean", ()),
        ("colour", "categorical", ("blue", "green", "red")),
    ]
    assert found.n_rows == 6
    assert found.weight == 5.5
    assert sorted(found.lengths) == [(0, 2), (2, 1), (3, 3)]
    assert found.labels.classes().tolist() == ["no", "yes"]  # "maybe" has weight zero
    assert found.labels.weight[found.labels.weight > 0].tolist() == [2.5, 3.0]


def test_kinds_of_batches_make_the_kind_of_the_whole():
    def of(values, start):
        return inspect_batch(Batch(pd.DataFrame({"x": values}), start=start))

    empty, levels = of([None, None], 0), of(["a", "b"], 2)
    assert empty.empty == (True,)
    assert (empty + levels).schema.columns[0].levels == ("a", "b")
    assert (of([True, False], 0) + of([0.5, 1.0], 2)).schema.columns[0].kind == "numeric"
    with pytest.raises(ColumnTypeError, match="'x' is numeric in some parts"):
        of([1.0, 2.0], 0) + levels


def test_batches_that_do_not_belong_together_are_an_error():
    def of(y, name="x"):
        return inspect_batch(Batch(pd.DataFrame({name: np.zeros(len(y))}), np.array(y)))

    for a, b, error, message in (
        (of([1, 2]), of([1, 2], "z"), ColumnNameError, "different columns: 'x' and 'z'"),
        (of([1, 2]), of(["a", "b"]), LabelError, "cannot be sorted"),
        (of(range(6000)), of(range(6000, 12_000)), LabelError, "more than 10,000 distinct values"),
    ):
        with pytest.raises(error, match=message):
            a + b
