"""The first pass over a source: columns and their levels, classes, and the number of rows.

Results of batches are added up; the sum does not depend on their order.
"""

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from posteriori.errors import ColumnNameError, ColumnTypeError, DataError, LabelError
from posteriori.rows.categories import declared_values
from posteriori.rows.features import Table, read_features
from posteriori.rows.schema import Batch, Column, Schema, listed, merge_columns
from posteriori.rows.target import as_labels, merge_classes, read_target, read_weight
from posteriori.typing import Array, Codes, Labels

_MOST_CLASSES = 10_000
"""A target with more distinct values than this has no classes."""


def plus(a: Any, b: Any) -> Any:
    """The sum of two values, either of which may be None."""
    return b if a is None else a if b is None else a + b


@dataclass(frozen=True, eq=False)
class LabelWeights:
    """Labels in order, and the weight of the rows with each; of soft labels the sum of shares."""

    labels: Labels
    weight: Array
    soft: bool = False

    def __add__(self, other: "LabelWeights") -> "LabelWeights":
        same = self.labels.dtype == other.labels.dtype and np.array_equal(self.labels, other.labels)
        if self.soft or same:
            return replace(self, weight=self.weight + other.weight)
        labels, *places = merge_classes(self.labels, other.labels)
        if len(labels) > _MOST_CLASSES:
            raise LabelError(
                f"The target has more than {_MOST_CLASSES:,} distinct values, too many for "
                "classes.",
                "Name a column of labels as target; for numbers use GLM.",
            )
        weights = np.concatenate([self.weight, other.weight])
        weight = np.bincount(np.concatenate(places), weights).astype(np.float64)
        return LabelWeights(labels, weight)

    def classes(self) -> Labels:
        """The labels of rows with a weight."""
        return self.labels if self.soft else self.labels[self.weight > 0]


@dataclass(frozen=True, eq=False)
class Discovered:
    """Columns and labels of some rows, their weight, and how many rows each batch has.

    `empty` says of each column whether all its entries are missing. `lengths` has the number of
    each chunk, or of the first row of each batch, and its rows. `statistic` is a sum made in the
    same pass, which is that of all these rows if it `is_complete`.
    """

    schema: Schema
    empty: tuple[bool, ...]
    labels: LabelWeights | None
    lengths: tuple[tuple[int, int], ...]
    n_rows: int
    weight: float
    statistic: Any = None
    is_complete: bool = False

    def __add__(self, other: "Discovered") -> "Discovered":
        ours, theirs = self.schema.names, other.schema.names
        if ours != theirs:
            raise ColumnNameError(
                f"Parts of the source have different columns: {listed(ours)} and {listed(theirs)}.",
                "Write the same columns everywhere.",
            )
        pairs = zip(self.schema.columns, self.empty, other.schema.columns, other.empty, strict=True)
        columns = zip(self.schema.columns, other.schema.columns, strict=True)
        is_complete = self.is_complete and other.is_complete
        is_complete = is_complete and all(a.kind == b.kind for a, b in columns)
        return Discovered(
            replace(self.schema, columns=tuple(_merged(*pair) for pair in pairs)),
            tuple(map(bool.__and__, self.empty, other.empty)),
            plus(self.labels, other.labels),
            self.lengths + other.lengths,
            self.n_rows + other.n_rows,
            self.weight + other.weight,
            plus(self.statistic, other.statistic) if is_complete else None,
            is_complete,
        )


def _merged(a: Column, a_is_empty: bool, b: Column, b_is_empty: bool) -> Column:
    """One column, from what is known of it in two parts of the source."""
    if a_is_empty or b_is_empty or a.kind == b.kind:
        return b if a_is_empty else a if b_is_empty else merge_columns(a, b)
    if "categorical" in (a.kind, b.kind):
        raise ColumnTypeError(
            f"Column '{a.name}' is numeric in some parts of the source and text in others.",
            "Write it as the same type everywhere.",
        )
    return replace(a, kind="numeric")


def inspect_batch(batch: Batch, soft_classes: Any = None, real: bool = False) -> Discovered:
    """Columns, labels and weight of one batch; `soft_classes` names columns of soft labels.

    A `real` target is a number, and is not read here.
    """
    n = batch.n_rows
    try:
        table = read_features(batch.X) if batch.X.shape[1] else Table((), Schema((), named=True))
        empty = tuple(_is_empty(table, j) for j in range(len(table.schema)))
        weight = read_weight(batch.weight, n, all_zero=True)
        labels = None if real or batch.y is None else _labels(batch, weight, soft_classes)
    except DataError as error:
        raise error.located("", batch.start) from error
    total = float(n if weight is None else weight.sum())
    number = batch.start if batch.chunk is None else batch.chunk
    return Discovered(table.schema, empty, labels, ((number, n),), n, total)


def _is_empty(table: Table, j: int) -> bool:
    """Whether a column of a table has no value."""
    if table.schema.columns[j].kind == "categorical":
        return not table.schema.columns[j].levels
    if not isinstance(table.values, tuple | np.ndarray):
        return False
    values = table.column(j)
    # Most often the first entry shows that there are values.
    return values.dtype.kind == "f" and bool(np.isnan(values[0]) and np.isnan(values).all())


def _labels(batch: Batch, weight: Array | None, soft_classes: Any) -> LabelWeights:
    labels, found = read_target(batch.y, batch.n_rows, soft_classes)
    if found.ndim == 2:
        total = found.sum(0) if weight is None else weight @ found
        return LabelWeights(labels, total, soft=True)
    total = np.bincount(cast(Codes, found), weight, minlength=len(labels)).astype(np.float64)
    values = declared_values(batch.y)
    if values is None:
        return LabelWeights(labels, total)
    declared = as_labels(values)  # so that parts without some class keep the order of all
    return LabelWeights(declared, np.zeros(len(declared))) + LabelWeights(labels, total)
