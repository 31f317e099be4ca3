"""The first pass: columns, levels, classes and weights of batches, added up in any order."""

from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from posteriori.errors import ColumnNameError, ColumnTypeError, LabelError, ShapeError, WeightError
from posteriori.rows.batch import Batch, Roles
from posteriori.rows.discovery import checked, inspect_batch

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
    found = checked(reduce(add, (inspect_batch(batches[i]) for i in order)))
    columns = found.schema().columns
    assert [(c.name, c.kind, c.levels) for c in columns] == [
        ("size", "numeric", ()),
        ("old", "boolean", ()),
        ("colour", "categorical", ("blue", "green", "red")),
    ]
    assert found.n_rows == 6
    assert found.weight == 5.5
    assert sorted(found.lengths) == [(0, 2), (2, 1), (3, 3)]
    assert found.labels.classes().tolist() == ["no", "yes"]  # "maybe" has weight zero
    assert found.labels.of(np.array(["no"])) == (2.5, 3)
    assert found.labels.of(np.array(["no", "yes"])) == (5.5, 5)


def test_levels_keep_a_declared_order():
    for kind in ("pandas", "enum"):
        values = pd.Categorical(FRAME["colour"], ["red", "blue", "green"])
        frame = FRAME.assign(colour=values)
        if kind == "enum":
            enum = pl.Enum(["red", "blue", "green"])
            frame = pl.from_pandas(FRAME).with_columns(pl.col("colour").cast(enum))
        found = inspect_batch(Batch(frame[2:6])) + inspect_batch(Batch(frame[0:2]))
        assert found.schema().columns[2].levels == ("red", "blue", "green")


def test_kinds_of_batches_make_the_kind_of_the_whole():
    def of(values, start):
        return inspect_batch(Batch(pd.DataFrame({"x": values}), start=start))

    empty, levels = of([None, None], 0), of(["a", "b"], 2)
    assert empty.empty == (True,)
    assert (empty + levels).schema().columns[0].levels == ("a", "b")
    assert (of([True, False], 0) + of([0.5, 1.0], 2)).kinds == ("numeric",)
    with pytest.raises(ColumnTypeError, match="'x' is numeric in some parts"):
        of([1.0, 2.0], 0) + levels


def test_batches_with_other_columns_are_an_error():
    a, b = (inspect_batch(Batch(pd.DataFrame({name: [1.0]}))) for name in "ab")
    with pytest.raises(ColumnNameError, match="different columns: 'a' and 'b'"):
        a + b


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_arrays_and_sparse_matrices_have_no_names(make):
    found = inspect_batch(Batch(make(np.eye(3)), np.array([0, 1, 1])))
    assert found.schema().names == ("x0", "x1", "x2")
    assert not found.named
    assert found.labels.classes().tolist() == [0, 1]


def test_soft_labels_are_added_up():
    y = pd.DataFrame({"b": [0.25, 1.0], "a": [0.75, 0.0]})
    batch = Batch(np.eye(2), y, np.array([2.0, 1.0]))
    found = inspect_batch(batch) + inspect_batch(batch)
    assert found.labels.soft
    assert found.labels.classes().tolist() == ["a", "b"]
    assert found.labels.weight.tolist() == [3.0, 3.0]


def test_labels_that_are_no_classes_are_reported_when_classes_are_needed():
    fine = Batch(np.eye(2), np.array([0.0, 1.0]), start=0)
    late = Batch(np.eye(2), np.array([0.5, 1.0]), start=4, where="b.parquet")
    early = Batch(np.eye(2), np.array([0.0, np.nan]), start=2, where="a.parquet")
    found = inspect_batch(late) + inspect_batch(fine) + inspect_batch(early)
    with pytest.raises(LabelError, match=r"a\.parquet: Input y contains NaN"):
        found.labels.classes()


def test_labels_of_two_kinds_are_no_classes():
    parts = [np.array([1, 2]), np.array(["a", "b"])]
    found = reduce(add, (inspect_batch(Batch(np.eye(2), y)) for y in parts))
    with pytest.raises(LabelError, match="cannot be sorted"):
        found.labels.classes()


def test_too_many_distinct_values_are_no_classes():
    X = np.zeros((6000, 1))
    found = inspect_batch(Batch(X, np.arange(6000))) + inspect_batch(
        Batch(X, np.arange(6000) + 6000)
    )
    with pytest.raises(LabelError, match="more than 10,000 distinct values"):
        found.labels.classes()


def test_no_rows_and_no_weight_are_errors():
    with pytest.raises(ShapeError, match="no rows"):
        checked(None)
    with pytest.raises(WeightError, match="zero in every row"):
        checked(inspect_batch(Batch(np.eye(2), weight=np.zeros(2))))
    with pytest.raises(WeightError, match="too large"):
        checked(inspect_batch(Batch(np.eye(2), weight=np.array([1e306, 1.0]))))


def test_roles_split_a_frame():
    frame = FRAME.assign(y=Y, w=WEIGHT)
    roles = Roles("y", "w")
    assert roles.features(list(frame.columns)) == ["size", "old", "colour"]
    for make in MAKERS.values():
        batch = roles.split(make(frame))
        assert batch.n_rows == 6
        assert inspect_batch(batch).labels.classes().tolist() == ["no", "yes"]
