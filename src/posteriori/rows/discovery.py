"""The first pass over a source: columns and their levels, classes, and the number of rows.

Results of batches are added up; the sum does not depend on their order.
"""

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from posteriori.errors import ColumnNameError, ColumnTypeError, DataError, LabelError
from posteriori.rows.categories import declared_values
from posteriori.rows.features import numeric_columns, read_features
from posteriori.rows.schema import Batch, Column, Schema, listed, merge_columns
from posteriori.rows.target import as_labels, merge_classes, read_target, read_weight
from posteriori.typing import Array, Codes, Labels

_MOST_CLASSES = 10_000
"""A target with more distinct values than this has no classes."""


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
    each chunk, or of the first row of each batch, and its rows.
    """

    schema: Schema
    empty: tuple[bool, ...]
    labels: LabelWeights | None
    lengths: tuple[tuple[int, int], ...]
    weight: float

    def __add__(self, other: "Discovered") -> "Discovered":
        ours, theirs = self.schema.names, other.schema.names
        if ours != theirs:
            raise ColumnNameError(
                f"Parts of the source have different columns: {listed(ours)} and {listed(theirs)}.",
                "Write the same columns everywhere.",
            )
        labels = self.labels
        if labels is not None and other.labels is not None:
            labels = labels + other.labels
        pairs = zip(self.schema.columns, self.empty, other.schema.columns, other.empty, strict=True)
        return Discovered(
            replace(self.schema, columns=tuple(_merged(*pair) for pair in pairs)),
            tuple(map(bool.__and__, self.empty, other.empty)),
            labels,
            self.lengths + other.lengths,
            self.weight + other.weight,
        )

    @property
    def n_rows(self) -> int:
        return sum(n for _, n in self.lengths)


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
        schema, empty = _columns(batch.X)
        weight = read_weight(batch.weight, n, all_zero=True)
        labels = None if real or batch.y is None else _labels(batch, weight, soft_classes)
    except DataError as error:
        raise error.located("", batch.start) from error
    total = float(n if weight is None else weight.sum())
    number = batch.start if batch.chunk is None else batch.chunk
    return Discovered(schema, empty, labels, ((number, n),), total)


def _columns(X: Any) -> tuple[Schema, tuple[bool, ...]]:
    """The columns, and whether they are empty."""
    if numeric_columns(X) is not None:
        return Schema.of_names(X.column_names), (False,) * X.num_columns
    table = read_features(X)
    columns = table.schema.columns
    if not isinstance(table.values, tuple):
        return table.schema, (False,) * len(columns)
    empty = tuple(
        not column.levels
        if column.kind == "categorical"
        else values.dtype.kind == "f" and bool(np.isnan(values).all())
        for column, values in zip(columns, table.values, strict=True)
    )
    return table.schema, empty


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
