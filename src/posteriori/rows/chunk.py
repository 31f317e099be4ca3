"""Rows that lie together in some source, as they come from it, and which column is what."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, NamedTuple, TypeVar, cast

import narwhals.stable.v1 as nw
import numpy as np
from scipy import sparse

from posteriori.errors import (
    ColumnNameError,
    ColumnTypeError,
    DataError,
    LevelError,
    PosterioriError,
    ScaleError,
    ShapeError,
)
from posteriori.rows.arrow import is_arrow, label_codes, plain_numbers
from posteriori.rows.features import read_features
from posteriori.rows.in_memory import MemoryRows
from posteriori.rows.schema import Column, Schema
from posteriori.rows.target import (
    as_vector,
    read_offset,
    read_real_target,
    read_target,
    read_weight,
)
from posteriori.typing import Array, Codes, Labels

E = TypeVar("E", bound=PosterioriError)

SIDES: Labels = np.array([0, 1])
"""The labels of rows whose classes are compared."""


class Chunk(NamedTuple):
    """Features (a frame, an array or a sparse matrix), targets, weights and offsets."""

    X: Any
    y: Any = None
    weight: Any = None
    offset: Any = None

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_bytes(self) -> int:
        """What all of it takes in memory."""
        return sum(_bytes_of(part) for part in self if part is not None)

    def take(self, places: Codes) -> "Chunk":
        """Some of the rows."""
        return Chunk(*(None if part is None else _take(part, places) for part in self))

    def seen_through(self, lenses: Sequence["Lens"], where: str) -> "Chunk":
        """What the lenses make of it, one after the other; `where` is for messages."""
        try:
            return reduce(lambda chunk, lens: lens(chunk), lenses, self)
        except (DataError, ScaleError) as error:
            raise told_where(error, where) from error


Lens = Callable[[Chunk], Chunk]
"""What makes a chunk of another, row by row: with other weights, say, or other columns."""


def _bytes_of(values: Any) -> int:
    native = nw.from_native(values, allow_series=True, pass_through=True)
    if isinstance(native, nw.Series):
        native = native.to_frame()
    if isinstance(native, nw.DataFrame):
        return int(native.estimated_size())
    if sparse.issparse(values):
        values = values.tocsr()
        return int(values.data.nbytes + values.indices.nbytes + values.indptr.nbytes)
    return int(np.asarray(values).nbytes)


def _take(values: Any, places: Codes) -> Any:
    if is_arrow(values):
        return values.take(places)
    native = nw.from_native(values, allow_series=True, pass_through=True)
    if isinstance(native, nw.DataFrame):
        return native[places.tolist(), :].to_native()
    if isinstance(native, nw.Series):
        return native[places.tolist()].to_native()
    return values[places]


@dataclass(frozen=True)
class Roles:
    """Which columns of a frame are the target, the weight, the offset, and the features.

    `target` is one column of labels or numbers, or several with the share of each class. Without
    `columns` the features are all columns that are nothing else. `categories` has the levels of
    columns, in order, where they are given.
    """

    target: str | tuple[str, ...] | None = None
    weight: str | None = None
    offset: str | None = None
    columns: tuple[str, ...] | None = None
    categories: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    @property
    def targets(self) -> tuple[str, ...]:
        """The columns of the target."""
        if self.target is None:
            return ()
        return (self.target,) if isinstance(self.target, str) else self.target

    def features(self, names: Sequence[str]) -> list[str]:
        """The feature columns among all; an error where a column named is not there."""
        for what, wanted in (
            ("target", self.targets),
            ("weight", (self.weight,)),
            ("offset", (self.offset,)),
            ("columns", self.columns or ()),
            ("categories", tuple(self.categories)),
        ):
            for name in wanted:
                if name is not None and name not in names:
                    raise ColumnNameError(
                        f"{what}={name!r} is not among the columns.",
                        f"They are {', '.join(map(repr, names[:12]))}"
                        f"{', ...' if len(names) > 12 else ''}.",
                    )
        self._check_once()
        others = self._others()
        found = [name for name in names if name not in others]
        found = found if self.columns is None else list(self.columns)
        if not found:
            raise ShapeError(
                "No column is left as a feature: found 0 feature(s).", "Name at least one."
            )
        return found

    def _others(self) -> list[str]:
        """The columns that are no features."""
        return [*self.targets, *filter(None, (self.weight, self.offset))]

    def _check_once(self) -> None:
        """An error where a column is named twice."""
        named = [*self._others(), *(self.columns or ())]
        twice = [name for name in named if named.count(name) > 1]
        if twice:
            raise ColumnNameError(
                f"Column '{twice[0]}' is named twice among target, weight, offset and columns.",
                "Name each column once.",
            )

    def with_levels(self, schema: Schema) -> Schema:
        """The schema with the levels that are given; an error where others occur."""
        if not self.categories:
            return schema
        return replace(schema, columns=tuple(map(self._with_levels, schema.columns)))

    def _with_levels(self, column: Column) -> Column:
        given = self.categories.get(column.name)
        if given is None:
            return column
        if column.kind != "categorical":
            raise ColumnTypeError(
                f"categories names levels of column '{column.name}', which holds numbers.",
                "Leave them out, or write the column as text.",
            )
        levels = tuple(map(str, given))
        strange = [level for level in column.levels if level not in levels]
        if strange:
            raise LevelError(
                f"Column '{column.name}' has the level {strange[0]!r}, which is not among the "
                "categories given.",
                "Add it to categories, or recode it.",
            )
        return replace(column, levels=levels, declared=levels)

    def needed(self, names: Sequence[str]) -> list[str]:
        """All columns that are read."""
        return [*self.features(names), *self._others()]

    def split(self, data: Any) -> Chunk:
        """A frame with all needed columns, in parts."""
        if is_arrow(data):
            return self._split_arrow(data)
        frame = nw.from_native(data, eager_only=True)

        def one(name: str | None) -> Any:
            return None if name is None else frame[name].to_native()

        y = one(self.targets[0]) if len(self.targets) == 1 else None
        if len(self.targets) > 1:
            y = frame.select(*self.targets).to_native()
        X = frame.select(*self.features(frame.columns)).to_native()
        return Chunk(X, y, one(self.weight), one(self.offset))

    def _split_arrow(self, table: Any) -> Chunk:
        y = None if self.target is None else table.select(list(self.targets))
        if len(self.targets) == 1:
            y = table.column(self.targets[0])
        rest = (None if name is None else table.column(name) for name in (self.weight, self.offset))
        # Columns that are named were found when the source was first opened.
        features = self.columns or self.features(table.column_names)
        return Chunk(table.select(list(features)), y, *rest)


@dataclass(frozen=True)
class Reader:
    """How a chunk becomes rows in memory, once columns and classes are known.

    `real` says that targets are numbers rather than labels. `named` has the classes of columns
    of soft labels in the order of the columns, where these are not called so. `sides` says for each
    class on which side of a comparison it is, 0 or 1; what is on neither, -1, has no weight.
    """

    schema: Schema
    classes: Labels | None
    real: bool = False
    named: Any = None
    sides: tuple[int, ...] | None = None

    def __call__(self, chunk: Chunk, start: int, where: str) -> MemoryRows:
        """The rows of a chunk that begins with row `start`; `where` is for messages."""
        n = chunk.n_rows
        try:
            table = read_features(chunk.X, self.schema, "The model")
            weight = read_some_weights(chunk.weight, n)
            y: Codes | Array | None = None
            K = 1
            if self.real:
                y = read_real_target(chunk.y, n)
            elif self.classes is not None:
                y, K = self._labels(chunk.y, n, weight, self.classes), len(self.classes)
            offset = None
            if chunk.offset is not None:
                offset = read_offset(chunk.offset, n, 1 if K <= 2 else K)
        except DataError as error:
            raise told_where(error, where) from error
        rows = MemoryRows(table, y, weight, self.classes, offset, start)
        return rows if self.sides is None else _compared(rows, np.array(self.sides))

    def codes(self, chunk: Chunk) -> Codes:
        """The classes of the rows of a chunk; any, for those without weight."""
        weight = read_some_weights(chunk.weight, chunk.n_rows)
        return cast(Codes, self._labels(chunk.y, chunk.n_rows, weight, cast(Labels, self.classes)))

    def _labels(self, y: Any, n: int, weight: Array | None, classes: Labels) -> Codes | Array:
        if is_arrow(y) and hasattr(y, "chunks"):
            numbers = plain_numbers(y)
            codes = label_codes(y, classes) if numbers is None else None
            if codes is not None:
                return codes
            y = y if numbers is None else numbers
        return _codes(y, n, weight, classes, self.named)


@dataclass(frozen=True, eq=False)
class AsSides:
    """The lens under which the label of a row is the side of its class, as the reader has them."""

    reader: Reader

    def __call__(self, chunk: Chunk) -> Chunk:
        weight = read_some_weights(chunk.weight, chunk.n_rows)
        y, weight = _sides(self.reader.codes(chunk), weight, np.array(self.reader.sides))
        return chunk._replace(y=y, weight=weight)


def _compared(rows: MemoryRows, sides: Codes) -> MemoryRows:
    """The rows with the side of their class as the label."""
    y, weight = _sides(cast(Codes, rows.y), rows.weight, sides)
    return replace(rows, y=y, weight=weight, classes=SIDES)


def _sides(codes: Codes, weight: Array | None, sides: Codes) -> tuple[Codes, Array | None]:
    """The side of each class; rows that are on neither have no weight."""
    found = sides[codes]
    if (sides < 0).any():
        weight = np.where(found < 0, 0.0, 1.0 if weight is None else weight)
    return np.maximum(found, 0), weight


def _codes(
    y: Any, n: int, weight: Array | None, classes: Labels, named: Any = None
) -> Codes | Array:
    """Class codes or soft labels; rows without weight may have labels that are no classes."""
    if weight is None or weight.all() or as_vector(y).ndim == 2:
        return read_target(y, n, named, known=classes)[1]
    counting = np.flatnonzero(weight)
    codes = np.zeros(n, dtype=np.intp)
    codes[counting] = read_target(as_vector(y)[counting], len(counting), known=classes)[1]
    return codes


def read_some_weights(weight: Any, n_rows: int) -> Array | None:
    """Weights of a part of the rows, which may all be zero there."""
    if weight is None:
        return None
    # One row more, so that weights of zero alone are no error.
    found = read_weight(np.append(np.asarray(_numbers(weight)), 1.0), n_rows + 1)
    return cast(Array, found)[:-1]


def _numbers(values: Any) -> Any:
    native = nw.from_native(values, series_only=True, pass_through=True)
    return native.to_numpy() if isinstance(native, nw.Series) else values


def told_where(error: E, where: str) -> E:
    """The error, with the part of the source in which the rows are counted."""
    return type(error)(f"{where}: {error.problem}", error.remedy)
