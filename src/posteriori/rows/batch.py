"""A batch of rows as a source has them, the roles of its columns, and how it is read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar, cast

import narwhals.stable.v1 as nw
import numpy as np

from posteriori.errors import (
    ColumnNameError,
    ColumnTypeError,
    DataError,
    LevelError,
    PosterioriError,
    ShapeError,
)
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


class Batch(NamedTuple):
    """Consecutive rows as the source has them: a frame, an array or a sparse matrix, and targets.

    `start` is the number of the first row in the whole source, `where` the file or chunk, and
    `chunk` the number of the chunk where batches are made of chunks.
    """

    X: Any
    y: Any = None
    weight: Any = None
    offset: Any = None
    start: int = 0
    where: str = ""
    chunk: int | None = None

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    @property
    def numbers(self) -> Codes:
        """The numbers (n,) of the rows in the whole source."""
        return self.start + np.arange(self.n_rows)


BatchTransform = Callable[[Batch], Batch]
"""What makes other weights, labels or columns of a batch, row by row."""


@dataclass(frozen=True)
class Roles:
    """Which columns of a frame are the target, the weight, the offset, and the features.

    `target` is one column of labels or numbers, or several with the probability of each class.
    Without `columns` the features are all columns that are nothing else. `categories` has the
    levels of columns, in order, where they are given.
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

    @property
    def others(self) -> list[str]:
        """The columns that are no features."""
        return [*self.targets, *filter(None, (self.weight, self.offset))]

    def features(self, names: Sequence[str]) -> list[str]:
        """The feature columns among all; an error where a column named is not there, or twice."""
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
        named = [*self.others, *(self.columns or ())]
        twice = [name for name in named if named.count(name) > 1]
        if twice:
            raise ColumnNameError(
                f"Column '{twice[0]}' is named twice among target, weight, offset and columns.",
                "Name each column once.",
            )
        found = [name for name in names if name not in self.others]
        found = found if self.columns is None else list(self.columns)
        if not found:
            raise ShapeError(
                "No column is left as a feature: found 0 feature(s).", "Name at least one."
            )
        return found

    def needed(self, names: Sequence[str]) -> list[str]:
        """All columns that are read."""
        return [*self.features(names), *self.others]

    def with_levels(self, schema: Schema) -> Schema:
        """The schema with the levels that are given; an error where others occur."""
        if not self.categories:
            return schema
        return replace(schema, columns=tuple(map(self._with_levels, schema.columns)))

    def _with_levels(self, column: Column) -> Column:
        levels = self.categories.get(column.name)
        if levels is None:
            return column
        if column.kind != "categorical":
            raise ColumnTypeError(
                f"categories gives levels of column '{column.name}', which holds numbers.",
                "Leave them out, or write the column as text.",
            )
        unknown = [level for level in column.levels if level not in levels]
        if unknown:
            raise LevelError(
                f"Column '{column.name}' has the level {unknown[0]!r}, which is not among the "
                "categories given.",
                "Add it to categories, or recode it.",
            )
        return replace(column, levels=levels, declared=levels)

    def split(self, data: Any) -> Batch:
        """A frame with all needed columns as a batch."""
        frame = nw.from_native(data, eager_only=True)

        def one(name: str | None) -> Any:
            return None if name is None else frame[name].to_native()

        y = one(self.targets[0]) if len(self.targets) == 1 else None
        if len(self.targets) > 1:
            y = frame.select(*self.targets).to_native()
        X = frame.select(*(self.columns or self.features(frame.columns))).to_native()
        return Batch(X, y, one(self.weight), one(self.offset))


@dataclass(frozen=True)
class Reader:
    """How a batch becomes rows in memory, once columns and classes are known.

    `real` says that targets are numbers rather than labels; `soft_classes` has the classes of
    columns of soft labels, where these are not named after them. `code` is applied to the targets.
    """

    schema: Schema
    classes: Labels | None
    real: bool = False
    soft_classes: Any = None
    code: Callable[[Any], Array] | None = None

    def __call__(self, batch: Batch) -> MemoryRows:
        """The rows of a batch; errors have the numbers of rows in the whole source."""
        n = batch.n_rows
        try:
            table = read_features(batch.X, self.schema, "The model")
            weight = read_batch_weight(batch)
            y: Codes | Array | None = None
            K = 1
            if self.real:
                y = read_real_target(batch.y, n)
            elif self.classes is not None:
                y, K = self.codes(batch, weight), len(self.classes)
            offset = None
            if batch.offset is not None:
                offset = read_offset(batch.offset, n, 1 if K <= 2 else K)
        except DataError as error:
            raise error.located("", batch.start) from error
        rows = MemoryRows(table, y, weight, self.classes, offset, batch.start, is_batch=True)
        return rows if self.code is None else rows.recoded(self.code)

    def codes(self, batch: Batch, weight: Array | None) -> Codes | Array:
        """Class codes or soft labels; rows of weight zero may have labels that are no classes."""
        y, n, classes = batch.y, batch.n_rows, cast(Labels, self.classes)
        if weight is None or weight.all() or as_vector(y).ndim == 2:
            return read_target(y, n, self.soft_classes, known=classes)[1]
        used = np.flatnonzero(weight)
        found = np.zeros(n, dtype=np.intp)
        found[used] = read_target(as_vector(y)[used], len(used), known=classes)[1]
        return found


def read_batch_weight(batch: Batch) -> Array | None:
    """Weights of a batch, which may all be zero there."""
    if batch.weight is None:
        return None
    # One row more, so that weights of zero alone are no error.
    padded = np.append(as_vector(batch.weight), 1.0)
    return cast(Array, read_weight(padded, batch.n_rows + 1))[:-1]


@dataclass(frozen=True, eq=False)
class CompareClasses:
    """The transform under which the label of a row is the side of its class: 0, 1 or neither, -1.

    Rows on neither side get weight zero.
    """

    reader: Reader
    sides: tuple[int, ...]

    def __call__(self, batch: Batch) -> Batch:
        weight = read_batch_weight(batch)
        found = np.array(self.sides)[cast(Codes, self.reader.codes(batch, weight))]
        if min(self.sides) < 0:
            weight = np.where(found < 0, 0.0, 1.0 if weight is None else weight)
        return batch._replace(y=np.maximum(found, 0), weight=weight)
