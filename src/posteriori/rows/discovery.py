"""The first pass over a source: columns and their levels, classes, and the number of rows.

What is found in parts of the rows is added up, in any order: the sum is the same.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple, cast

import narwhals.stable.v1 as nw
import numpy as np

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
from posteriori.rows.categories import declared_levels
from posteriori.rows.features import read_features
from posteriori.rows.schema import Column, Schema
from posteriori.rows.tables import ColumnTable
from posteriori.rows.target import as_vector, check_total_weight, encode, read_target
from posteriori.typing import Array, Codes, Labels

_MOST_CLASSES = 10_000
"""A target with more distinct values than this has no classes."""

Levels = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class DiscoveredColumn:
    """A column as some rows show it; `kind` is None where it is missing in all of them.

    `declared` has the orders of levels that parts declare, each with the number of the first part
    that does so.
    """

    name: str
    kind: str | None
    levels: frozenset[Any] = frozenset()
    declared: tuple[tuple[int, Levels], ...] = ()

    def __add__(self, other: "DiscoveredColumn") -> "DiscoveredColumn":
        kinds = {self.kind, other.kind} - {None}
        if len(kinds) == 2 and "categorical" in kinds:
            raise ColumnTypeError(
                f"Column '{self.name}' is numeric in some parts of the source and text in others.",
                "Write it as the same type everywhere.",
            )
        kind = "numeric" if len(kinds) == 2 else next(iter(kinds), None)
        both = sorted({*self.declared, *other.declared}, reverse=True)
        first = {levels: part for part, levels in both}
        declared = tuple((part, levels) for levels, part in first.items())
        return DiscoveredColumn(self.name, kind, self.levels | other.levels, declared)

    def column(self) -> Column:
        """The column of all rows; levels as declared, else sorted."""
        if self.kind != "categorical":
            return Column(self.name, cast(Any, self.kind or "numeric"))
        orders = chain.from_iterable(levels for _, levels in sorted(self.declared))
        first = [level for level in dict.fromkeys(orders) if level in self.levels]
        rest = sorted(self.levels.difference(first))
        return Column(self.name, "categorical", (*first, *rest))


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
        # Numbers beside text stay numbers, where NumPy would turn them into text.
        kinds = {labels.dtype.kind in "US" for labels in (self.labels, other.labels)}
        dtype = object if len(kinds) == 2 else None
        try:
            labels, codes = encode(np.concatenate([self.labels, other.labels], dtype=dtype))
        except LabelError as error:  # labels of two kinds have no order
            return _no_labels(LabelProblem(np.inf, error))
        if len(labels) > _MOST_CLASSES:
            return _no_labels(LabelProblem(np.inf, _too_many()))

        def both(ours: Array, theirs: Array) -> Array:
            return np.bincount(codes, np.concatenate([ours, theirs])).astype(np.float64)

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

    `lengths` has the number of each batch, or of its first row, and its rows.
    """

    columns: tuple[DiscoveredColumn, ...]
    named: bool
    labels: LabelCounts | None
    lengths: tuple[tuple[int, int], ...]
    weight: float

    def __add__(self, other: "Discovered") -> "Discovered":
        labels = self.labels
        if labels is not None and other.labels is not None:
            labels = labels + other.labels
        return Discovered(
            _columns_of_both(self.columns, other.columns),
            self.named,
            labels,
            self.lengths + other.lengths,
            self.weight + other.weight,
        )

    @cached_property
    def kinds(self) -> tuple[str | None, ...]:
        """The kind of each column."""
        return tuple(column.kind for column in self.columns)

    @property
    def is_certain(self) -> bool:
        """Whether every column shows what it is."""
        return None not in self.kinds

    def schema(self) -> Schema:
        """The columns of all rows."""
        return Schema(tuple(column.column() for column in self.columns), self.named)

    @property
    def n_rows(self) -> int:
        return sum(n for _, n in self.lengths)


def inspect_batch(batch: Batch, soft_classes: Any = None) -> Discovered:
    """What one batch shows; `soft_classes` names columns of soft labels."""
    n = batch.n_rows
    try:
        columns, named = _columns(batch)
        weight = read_batch_weight(batch)
        labels = None if batch.y is None else _labels(batch, weight, soft_classes)
    except DataError as error:
        raise batch.located(error) from error
    total = float(n if weight is None else weight.sum())
    return Discovered(columns, named, labels, ((batch.start, n),), total)


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


def _columns_of_both(
    a: tuple[DiscoveredColumn, ...], b: tuple[DiscoveredColumn, ...]
) -> tuple[DiscoveredColumn, ...]:
    """The columns as both parts show them; an error where the names differ."""
    if a is b:
        return a
    ours, theirs = ([column.name for column in columns] for columns in (a, b))
    if ours != theirs:
        raise ColumnNameError(
            f"Parts of the source have different columns: {', '.join(map(repr, ours[:8]))} and "
            f"{', '.join(map(repr, theirs[:8]))}.",
            "Write the same columns everywhere.",
        )
    return tuple(one + other for one, other in zip(a, b, strict=True))


def _columns(batch: Batch) -> tuple[tuple[DiscoveredColumn, ...], bool]:
    """The columns, and whether the names are the user's."""
    X = batch.X
    if is_arrow(X) and all(plain_numbers(column) is not None for column in X.columns):
        return tuple(DiscoveredColumn(name, "numeric") for name in X.column_names), True
    table = read_features(X)
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    found = []
    for j, column in enumerate(table.schema.columns):
        if column.kind == "categorical":
            order = declared_levels(frame[:, j]) if isinstance(frame, nw.DataFrame) else ()
            declared = ((batch.start, order),) if order else ()
            levels = frozenset(column.levels)
            found.append(DiscoveredColumn(column.name, "categorical", levels, declared))
        else:
            missing = isinstance(table, ColumnTable) and _all_missing(table.columns[j])
            found.append(DiscoveredColumn(column.name, None if missing else column.kind))
    return tuple(found), table.schema.named


def _all_missing(values: Any) -> bool:
    return values.dtype.kind == "f" and bool(np.isnan(values).all())


def _labels(batch: Batch, weight: Array | None, soft_classes: Any) -> LabelCounts:
    y, n = batch.y, batch.n_rows
    if is_arrow(y) and hasattr(y, "chunks"):
        y = y.cast(y.type.value_type) if hasattr(y.type, "value_type") else y
        numbers = plain_numbers(y)
        y = y if numbers is None else numbers
    values = as_vector(y)
    if values.ndim == 2 and values.shape[1] > 1:
        names, soft = read_target(y, n, soft_classes)
        own = cast(Array, soft)
        total = own.sum(0) if weight is None else weight @ own
        return LabelCounts(names, total, np.zeros(len(names)), soft=True)
    try:
        labels, found = read_target(values, n)
    except LabelError as error:
        return _no_labels(LabelProblem(batch.start, batch.located(error)))
    codes, K = cast(Codes, found), len(labels)
    count = np.bincount(codes if weight is None else codes[weight > 0], minlength=K)
    total = count if weight is None else np.bincount(codes, weight, minlength=K)
    return LabelCounts(labels, total.astype(np.float64), count.astype(np.float64))
