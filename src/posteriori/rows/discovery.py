"""The first pass over a source: columns and their levels, classes, and the number of rows.

What is found in parts of the rows is added up, in any order: the sum is the same.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from posteriori.errors import (
    ColumnNameError,
    ColumnTypeError,
    DataError,
    LabelError,
    ShapeError,
    WeightError,
)
from posteriori.rows.arrow import is_arrow, plain_numbers
from posteriori.rows.batch import Batch, read_batch_weight
from posteriori.rows.features import read_features
from posteriori.rows.schema import Column, Schema, listed, merge_columns
from posteriori.rows.tables import ColumnTable
from posteriori.rows.target import (
    check_total_weight,
    declared_classes,
    merge_classes,
    read_target,
)
from posteriori.typing import Array, Codes, Labels

_MOST_CLASSES = 10_000
"""A target with more distinct values than this has no classes."""


class LabelProblem(NamedTuple):
    """Why there are no classes, and the number of the first row of the batch that shows it."""

    start: float
    error: DataError


@dataclass(frozen=True, eq=False)
class LabelCounts:
    """Labels in order, the weight of the rows with each and their number; or why there are none.

    Rows of weight zero are not counted, nor are those of soft labels.
    """

    labels: Labels
    weight: Array
    count: Array
    problem: LabelProblem | None = None
    soft: bool = False

    def __add__(self, other: "LabelCounts") -> "LabelCounts":
        problems = [each.problem for each in (self, other) if each.problem is not None]
        if problems:
            return _no_labels(min(problems, key=lambda problem: problem.start))
        if self.soft or self.labels is other.labels or _equal(self.labels, other.labels):
            weight, count = self.weight + other.weight, self.count + other.count
            return replace(self, weight=weight, count=count)
        try:
            labels, *places = merge_classes(self.labels, other.labels)
        except LabelError as error:  # labels of two kinds have no order
            return _no_labels(LabelProblem(np.inf, error))
        if len(labels) > _MOST_CLASSES:
            return _no_labels(LabelProblem(np.inf, _too_many()))

        def both(ours: Array, theirs: Array) -> Array:
            values = np.concatenate([ours, theirs])
            return np.bincount(np.concatenate(places), values).astype(np.float64)

        return LabelCounts(labels, both(self.weight, other.weight), both(self.count, other.count))

    def classes(self) -> Labels:
        """The labels of rows with a weight; an error if these are no classes."""
        if self.problem is not None:
            raise self.problem.error
        return self.labels if self.soft else self.labels[self.weight > 0]

    def of(self, chosen: Labels) -> tuple[float, int]:
        """The weight of all rows with one of some labels, and their number."""
        own = np.isin(self.labels, chosen)
        return float(self.weight[own].sum()), int(self.count[own].sum())


def _equal(a: Labels, b: Labels) -> bool:
    return a.dtype == b.dtype and np.array_equal(a, b)


def _no_labels(problem: LabelProblem) -> LabelCounts:
    return LabelCounts(np.empty(0), np.empty(0), np.empty(0), problem)


def _too_many() -> LabelError:
    return LabelError(
        f"The target has more than {_MOST_CLASSES:,} distinct values, which are no classes.",
        "Name a column of labels as target; for numbers use GLM.",
    )


@dataclass(frozen=True, eq=False)
class Discovered:
    """Columns and labels of some rows, their weight, and how many rows each batch has.

    `empty` says of each column whether all its entries are missing. `lengths` has the number of
    each chunk, or of the first row of each batch, and its rows.
    """

    columns: tuple[Column, ...]
    empty: tuple[bool, ...]
    named: bool
    labels: LabelCounts | None
    lengths: tuple[tuple[int, int], ...]
    weight: float

    def __add__(self, other: "Discovered") -> "Discovered":
        labels = self.labels
        if labels is not None and other.labels is not None:
            labels = labels + other.labels
        return Discovered(
            self._columns_of_both(other),
            tuple(map(all, zip(self.empty, other.empty, strict=True))),
            self.named,
            labels,
            self.lengths + other.lengths,
            self.weight + other.weight,
        )

    def _columns_of_both(self, other: "Discovered") -> tuple[Column, ...]:
        """The columns as both parts show them; an error where the names differ."""
        ours, theirs = ([column.name for column in each.columns] for each in (self, other))
        if ours != theirs:
            raise ColumnNameError(
                f"Parts of the source have different columns: {listed(ours)} and {listed(theirs)}.",
                "Write the same columns everywhere.",
            )
        both = zip(self.columns, self.empty, other.columns, other.empty, strict=True)
        return tuple(_merged(*each) for each in both)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of each column."""
        return tuple(column.kind for column in self.columns)

    def schema(self) -> Schema:
        """The columns of all rows."""
        return Schema(self.columns, self.named)

    @property
    def n_rows(self) -> int:
        return sum(n for _, n in self.lengths)


def _merged(a: Column, a_is_empty: bool, b: Column, b_is_empty: bool) -> Column:
    """One column as two parts show it."""
    if a_is_empty or b_is_empty or a.kind == b.kind:
        return b if a_is_empty else a if b_is_empty else merge_columns(a, b)
    if "categorical" in (a.kind, b.kind):
        raise ColumnTypeError(
            f"Column '{a.name}' is numeric in some parts of the source and text in others.",
            "Write it as the same type everywhere.",
        )
    return replace(a, kind="numeric")


def inspect_batch(batch: Batch, soft_classes: Any = None) -> Discovered:
    """What one batch shows; `soft_classes` names columns of soft labels."""
    n = batch.n_rows
    try:
        columns, empty, named = _columns(batch.X)
        weight = read_batch_weight(batch)
        labels = None if batch.y is None else _labels(batch, weight, soft_classes)
    except DataError as error:
        raise error.located("", batch.start) from error
    total = float(n if weight is None else weight.sum())
    number = batch.start if batch.chunk is None else batch.chunk
    return Discovered(columns, empty, named, labels, ((number, n),), total)


def checked(found: Discovered | None) -> Discovered:
    """What all batches show together; an error if there are no rows."""
    if found is None:
        raise ShapeError("There are no rows.", "Pass a source with at least one row.")
    if found.weight == 0:
        raise WeightError(
            "The weight is zero in every row: no rows are left.", "Give some row a weight."
        )
    check_total_weight(found.weight)
    return found


def _columns(X: Any) -> tuple[tuple[Column, ...], tuple[bool, ...], bool]:
    """The columns, whether they are empty, and whether the names are the user's."""
    if is_arrow(X) and all(plain_numbers(column) is not None for column in X.columns):
        columns = tuple(Column(name) for name in X.column_names)
        return columns, (False,) * len(columns), True
    table = read_features(X)
    columns, empty = table.schema.columns, (False,) * len(table.schema)
    if isinstance(table, ColumnTable):
        empty = tuple(map(_is_empty, columns, table.columns))
    return columns, empty, table.schema.named


def _is_empty(column: Column, values: NDArray[Any]) -> bool:
    if column.kind == "categorical":
        return not column.levels
    return values.dtype.kind == "f" and bool(np.isnan(values).all())


def _labels(batch: Batch, weight: Array | None, soft_classes: Any) -> LabelCounts:
    try:
        labels, found = read_target(batch.y, batch.n_rows, soft_classes)
    except LabelError as error:
        located = error.located(batch.where, batch.start)
        return _no_labels(LabelProblem(batch.chunk or batch.start, located))
    if found.ndim == 2:
        total = found.sum(0) if weight is None else weight @ found
        return LabelCounts(labels, total, np.zeros(len(labels)), soft=True)
    codes, K = cast(Codes, found), len(labels)
    count = np.bincount(codes if weight is None else codes[weight > 0], minlength=K)
    total = count if weight is None else np.bincount(codes, weight, minlength=K)
    counts = LabelCounts(labels, total.astype(np.float64), count.astype(np.float64))
    declared = declared_classes(batch.y)
    if declared is None:
        return counts
    none = np.zeros(len(declared))  # so that parts without some class keep the order of all
    return LabelCounts(declared, none, none) + counts
