"""What a first look at rows that lie elsewhere learns: columns, levels, classes, and some rows.

The looks at parts of the rows are added up, in any order: what comes out is the same.
"""

from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain
from typing import Any, NamedTuple, cast

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from posteriori.errors import (
    ColumnNameError,
    ColumnTypeError,
    DataError,
    LabelError,
    ShapeError,
    WeightError,
)
from posteriori.rows.arrow import is_arrow, plain_numbers
from posteriori.rows.categories import declared_levels
from posteriori.rows.chunk import Chunk, Lens, Reader, read_some_weights, told_where
from posteriori.rows.features import read_features
from posteriori.rows.in_memory import MemoryRows
from posteriori.rows.one_in import is_one_in, one_in
from posteriori.rows.schema import Column, Schema
from posteriori.rows.tables import ColumnTable
from posteriori.rows.target import as_vector, check_total_weight, encode, read_target
from posteriori.typing import Array, Codes, Labels

SAMPLE_ENTRIES = 2**22
"""Numbers in the rows that are kept from a first look, or up to twice as many."""

_FEWEST = 8
"""Numbers that a row counts as, at least: it has a label, a weight and a number of its own too."""

GROWTH = 8
"""How many times as many rows a fit goes on to, from some of them, at least."""

_FIRST = GROWTH.bit_length() - 1
"""Halvings that leave one row in so many."""

Levels = tuple[Any, ...]

_MOST_CLASSES = 10_000
"""A target with more different values than this has no classes."""


@dataclass(frozen=True, eq=False)
class SeenColumn:
    """A column as some rows show it; `kind` is None where all of them lack it.

    `declared` has the levels in the orders in which parts declare them, if they do, with the
    number of the first part that does so.
    """

    name: str
    kind: str | None
    levels: frozenset[Any] = frozenset()
    declared: tuple[tuple[int, Levels], ...] = ()

    def __add__(self, other: "SeenColumn") -> "SeenColumn":
        kinds = {self.kind, other.kind} - {None}
        if len(kinds) == 2 and "categorical" in kinds:
            raise ColumnTypeError(
                f"Column '{self.name}' holds numbers in some parts and levels in others.",
                "Write it as the same type everywhere.",
            )
        kind = "numeric" if len(kinds) == 2 else next(iter(kinds), None)
        return SeenColumn(
            self.name, kind, self.levels | other.levels, _both(self.declared, other.declared)
        )

    def column(self) -> Column:
        """What it is, once all rows have been seen."""
        if self.kind != "categorical":
            return Column(self.name, cast(Any, self.kind or "numeric"))
        orders = chain.from_iterable(levels for _, levels in sorted(self.declared))
        first = [level for level in dict.fromkeys(orders) if level in self.levels]
        rest = sorted(self.levels.difference(first))
        return Column(self.name, "categorical", (*first, *rest))


def _both(
    a: tuple[tuple[int, Levels], ...], b: tuple[tuple[int, Levels], ...]
) -> tuple[tuple[int, Levels], ...]:
    """Orders of levels, each with its first part."""
    if a == b:
        return a
    first = {levels: part for part, levels in sorted((*a, *b), reverse=True)}
    return tuple((part, levels) for levels, part in first.items())


class Problem(NamedTuple):
    """Why there are no classes, and the number of the part that shows it."""

    part: float
    error: DataError


@dataclass(frozen=True, eq=False)
class SeenLabels:
    """Labels in order, the weight of the rows with each and their number; or why there are none.

    Rows of weight zero do not count, nor do those of soft labels.
    """

    labels: Labels
    weight: Array
    count: Array
    problem: Problem | None = None
    soft: bool = False

    def __add__(self, other: "SeenLabels") -> "SeenLabels":
        problems = [seen.problem for seen in (self, other) if seen.problem is not None]
        if problems:
            return _without_labels(min(problems, key=lambda problem: problem.part))
        if self.soft or self.labels is other.labels:
            weight, count = self.weight + other.weight, self.count + other.count
            return replace(self, weight=weight, count=count)
        try:
            labels, codes = encode(_joined_labels(self.labels, other.labels))
        except LabelError as error:  # labels of two kinds have no order
            return _without_labels(Problem(np.inf, error))
        if len(labels) > _MOST_CLASSES:
            return _without_labels(_too_many())

        def both(ours: Array, theirs: Array) -> Array:
            return np.bincount(codes, np.concatenate([ours, theirs])).astype(np.float64)

        return SeenLabels(labels, both(self.weight, other.weight), both(self.count, other.count))

    def classes(self) -> Labels:
        """The labels of rows that count; an error if there are none."""
        if self.problem is not None:
            raise self.problem.error
        return self.labels if self.soft else self.labels[self.weight > 0]

    def of(self, chosen: Labels) -> tuple[float, int]:
        """The weight of all rows with one of some labels, and their number."""
        own = np.isin(self.labels, chosen)
        return float(self.weight[own].sum()), int(self.count[own].sum())


def _joined_labels(a: Labels, b: Labels) -> Labels:
    """Both; numbers beside text stay numbers, where NumPy would spell them out."""
    kinds = {labels.dtype.kind in "US" for labels in (a, b)}
    return np.concatenate([a, b], dtype=object if len(kinds) == 2 else None)


def _without_labels(problem: Problem) -> SeenLabels:
    return SeenLabels(np.empty(0), np.empty(0), np.empty(0), problem)


def _too_many() -> Problem:
    """After what is wrong with a part, whichever of both is found first."""
    error = LabelError(
        f"The target has more than {_MOST_CLASSES:,} different values, which are no classes.",
        "Name a column of labels as target; for numbers use GLM.",
    )
    return Problem(np.inf, error)


@dataclass(frozen=True, eq=False)
class Drawn:
    """Some of the rows: one in 2^halvings, by their numbers, halved until they are few enough.

    Which they are depends on all the rows alone, not on how looks at them were added up. `parts`
    have the numbers of their rows.
    """

    limit: int
    halvings: int
    parts: tuple[tuple[Codes, Chunk], ...] = ()

    @classmethod
    def of(cls, start: int, chunk: Chunk, limit: int, halvings: int) -> "Drawn":
        """From a chunk that begins with row `start`, where so many halvings are needed at least."""
        places = one_in(2**halvings, start, chunk.n_rows)
        some = chunk.take(places) if halvings else chunk
        parts = ((start + places, some),) if len(places) else ()
        return cls(limit, halvings, parts).few()

    def __add__(self, other: "Drawn") -> "Drawn":
        halvings = max(self.halvings, other.halvings)
        parts = (*self.halved(halvings).parts, *other.halved(halvings).parts)
        return Drawn(self.limit, halvings, parts).few()

    @property
    def n_rows(self) -> int:
        return sum(len(rows) for rows, _ in self.parts)

    def few(self) -> "Drawn":
        found = self
        while found.n_rows > 2 * found.limit:
            found = found.halved(found.halvings + 1)
        return found

    def halved(self, halvings: int) -> "Drawn":
        if halvings == self.halvings:
            return self
        kept = (
            (rows, chunk, np.flatnonzero(is_one_in(2**halvings, rows)))
            for rows, chunk in self.parts
        )
        parts = tuple(
            (rows[places], chunk.take(places)) for rows, chunk, places in kept if len(places)
        )
        return Drawn(self.limit, halvings, parts)

    def seen_through(self, lens: Lens) -> "Drawn":
        """The same rows, of which a lens makes others."""
        return replace(self, parts=tuple((rows, lens(chunk)) for rows, chunk in self.parts))

    def rows(self, reader: Reader) -> MemoryRows:
        """The rows that have a weight, in the order in which they lie."""
        parts = [chunk for _, chunk in sorted(self.parts, key=lambda part: part[0][0])]
        whole = Chunk(*(_joined([part[i] for part in parts]) for i in range(4)))
        return reader(whole, 0, "in a sample of the rows").counting()


def _joined(parts: list[Any]) -> Any:
    if parts[0] is None or len(parts) == 1:
        return parts[0]
    if any(map(sparse.issparse, parts)):
        return sparse.vstack([sparse.csr_array(part) for part in parts], format="csr")
    natives = [nw.from_native(part, allow_series=True, pass_through=True) for part in parts]
    if isinstance(natives[0], nw.DataFrame):
        return nw.concat(natives).to_native()
    if isinstance(natives[0], nw.Series):
        frames = [part.alias("values").to_frame() for part in natives]
        return nw.concat(frames)["values"].to_native()
    return np.concatenate([np.asarray(part) for part in parts])


@dataclass(frozen=True, eq=False)
class Look:
    """Columns, labels and some rows of parts, and how many rows each part has.

    `n_stored` are the numbers that sparse parts hold, None if none of them is sparse; `n_bytes` is
    what all parts take in memory, where whoever looks at them says so.
    """

    columns: tuple[SeenColumn, ...]
    named: bool
    labels: SeenLabels | None
    lengths: tuple[tuple[int, int], ...]
    weight: float
    drawn: Drawn
    n_stored: int | None = None
    n_bytes: int = 0

    def __add__(self, other: "Look") -> "Look":
        if not other.columns or not self.columns:
            known = self if self.columns else other
            return replace(known, lengths=self.lengths + other.lengths)
        return Look(
            _columns_of_both(self.columns, other.columns),
            self.named,
            None if self.labels is None else self.labels + cast(SeenLabels, other.labels),
            self.lengths + other.lengths,
            self.weight + other.weight,
            self.drawn + other.drawn,
            _total(self.n_stored, other.n_stored),
            self.n_bytes + other.n_bytes,
        )

    def schema(self) -> Schema:
        """What is known of the columns."""
        return Schema(tuple(seen.column() for seen in self.columns), self.named)

    def starts(self) -> dict[int, int]:
        """The number of the first row of each part."""
        ordered = sorted(self.lengths)
        firsts = np.cumsum([0, *(n for _, n in ordered)])
        return {part: int(first) for (part, _), first in zip(ordered, firsts, strict=False)}

    @property
    def n_rows(self) -> int:
        return sum(n for _, n in self.lengths)


def _total(a: int | None, b: int | None) -> int | None:
    return None if a is None and b is None else (a or 0) + (b or 0)


def look_at(
    number: int,
    chunk: Chunk,
    where: str,
    classes: Any = None,
    *,
    halvings: int = 0,
    start: int | None = None,
) -> Look:
    """A first look at a part of the rows; `classes` names columns of soft labels.

    Some of the rows are kept, at most as many as `halvings` leave of them, if it is known that
    the first one is row number `start` of all.
    """
    n = chunk.n_rows
    if n == 0:
        return Look((), True, None, ((number, 0),), 0.0, Drawn(1, 0))
    try:
        columns, named = _columns(chunk.X, number)
        weight = read_some_weights(chunk.weight, n)
        labels = None if chunk.y is None else _labels(chunk.y, n, weight, classes)
    except DataError as error:
        raise told_where(error, where) from error
    if labels is not None and labels.problem is not None:
        labels = _without_labels(Problem(number, told_where(labels.problem.error, where)))
    limit = sample_limit(len(columns))
    total = float(n if weight is None else weight.sum())
    drawn = Drawn(limit, 0) if start is None else Drawn.of(start, chunk, limit, halvings)
    stored = int(chunk.X.nnz) if sparse.issparse(chunk.X) else None
    return Look(columns, named, labels, ((number, n),), total, drawn, stored)


def look_at_known(number: int, rows: MemoryRows, columns: tuple[SeenColumn, ...]) -> Look:
    """The same of rows that were read already, as columns and labels that were known before."""
    n, limit = rows.n_rows, sample_limit(len(columns))
    labels = _counted(cast(Labels, rows.classes), cast(Codes, rows.y), rows.weight)
    total = float(n if rows.weight is None else rows.weight.sum())
    return Look(columns, rows.schema.named, labels, ((number, n),), total, Drawn(limit, 0))


def numbers_seen(look: Look, n_columns: int) -> Look:
    """A look at the same rows with so many columns of numbers in place of theirs."""
    columns = tuple(SeenColumn(name, "numeric") for name in Schema.unnamed(n_columns).names)
    drawn = Drawn(sample_limit(n_columns), 0)
    return replace(look, columns=columns, named=False, drawn=drawn, n_stored=None)


def sample_limit(n_columns: int) -> int:
    """Rows that are kept from a first look, or up to twice as many."""
    return max(SAMPLE_ENTRIES // max(n_columns, _FEWEST), 1)


def sample_halvings(n_rows: int, n_columns: int) -> int:
    """How often the rows kept from a first look are halved, if they are so many.

    >>> [sample_halvings(n, 20) for n in (400_000, 500_000, 20_000_000)]
    [0, 3, 6]
    """
    most, halvings = 2 * sample_limit(n_columns), 0
    while n_rows > most * 2**halvings:
        halvings += 1
    return max(halvings, _FIRST) if halvings else 0


def whole_look(parts: list[Look]) -> Look:
    """The looks at all parts as one; an error if there are no rows."""
    found = reduce(lambda a, b: a + b, parts) if parts else None
    if found is None or found.n_rows == 0:
        raise ShapeError("There are no rows.", "Pass a source with at least one row.")
    if found.weight == 0:
        raise WeightError(
            "The weight is zero in every row: no rows are left.", "Give some row a weight."
        )
    check_total_weight(found.weight)
    return found


def _columns_of_both(
    a: tuple[SeenColumn, ...], b: tuple[SeenColumn, ...]
) -> tuple[SeenColumn, ...]:
    """The columns as both parts show them; an error where they have other ones."""
    if a is b:
        return a
    ours, theirs = ([seen.name for seen in columns] for columns in (a, b))
    if ours != theirs:
        raise ColumnNameError(
            f"Parts of the source have different columns: {', '.join(map(repr, ours[:8]))} here, "
            f"{', '.join(map(repr, theirs[:8]))} there.",
            "Write the same columns everywhere.",
        )
    return tuple(one + other for one, other in zip(a, b, strict=True))


def _columns(X: Any, number: int) -> tuple[tuple[SeenColumn, ...], bool]:
    """The columns, and whether the names are the user's."""
    if is_arrow(X) and all(plain_numbers(column) is not None for column in X.columns):
        return tuple(SeenColumn(name, "numeric") for name in X.column_names), True
    table = read_features(X)
    columns = enumerate(table.schema.columns)
    return tuple(_seen(column, table, j, X, number) for j, column in columns), table.schema.named


def _seen(column: Column, table: Any, j: int, X: Any, number: int) -> SeenColumn:
    if column.kind == "categorical":
        order = _declared(X, j)
        declared = ((number, order),) if order else ()
        return SeenColumn(column.name, "categorical", frozenset(column.levels), declared)
    missing = isinstance(table, ColumnTable) and bool(np.isnan(_doubles(table.columns[j])).all())
    return SeenColumn(column.name, None if missing else column.kind)


def _doubles(values: NDArray[Any]) -> Array:
    return values[:1].astype(np.float64) if values.dtype.kind != "f" else values


def _declared(X: Any, j: int) -> tuple[Any, ...]:
    """Levels in the order in which pandas or polars declare them; those of text have none."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return declared_levels(frame[:, j]) if isinstance(frame, nw.DataFrame) else ()


def _labels(y: Any, n: int, weight: Array | None, classes: Any) -> SeenLabels:
    if is_arrow(y) and hasattr(y, "chunks"):
        y = y.cast(y.type.value_type) if hasattr(y.type, "value_type") else y
        numbers = plain_numbers(y)
        y = y if numbers is None else numbers
    values = as_vector(y)
    if values.ndim == 2 and values.shape[1] > 1:
        names, soft = read_target(y, n, classes)
        own = cast(Array, soft)
        total = own.sum(0) if weight is None else weight @ own
        return SeenLabels(names, total, np.zeros(len(names)), soft=True)
    try:
        found, codes = read_target(values, n)
    except LabelError as error:
        return _without_labels(Problem(0, error))
    return _counted(found, cast(Codes, codes), weight)


def _counted(labels: Labels, codes: Codes, weight: Array | None) -> SeenLabels:
    """Labels with their rows, each of which has the place of its own among them."""
    K = len(labels)
    count = np.bincount(codes if weight is None else codes[weight > 0], minlength=K)
    total = count if weight is None else np.bincount(codes, weight, minlength=K)
    return SeenLabels(labels, total.astype(np.float64), count.astype(np.float64))
