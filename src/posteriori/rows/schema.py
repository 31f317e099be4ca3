"""Names, kinds, levels and roles of columns; and a batch of rows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from itertools import pairwise, zip_longest
from typing import Any, Literal, NamedTuple, TypeAlias

from posteriori.errors import ColumnNameError, ColumnTypeError, LevelError, ShapeError

Kind = Literal["numeric", "boolean", "categorical"]

HandleUnknown: TypeAlias = Literal["error", "reference"]
"""What to do with a level that was not in the fit: an error, or take it for the reference level."""


class UnseenLevel(NamedTuple):
    """A row, and its level that was not in the fit."""

    row: int
    level: Any


@dataclass(frozen=True, slots=True)
class Column:
    """One column: a name, a kind and, where it is categorical, the levels that occur, in order.

    `declared` has all categories of a categorical type in their order (pandas categories, polars
    Enum, ordered Arrow dictionaries), and is empty for text. `unseen` is the first row, among rows
    to predict, with a level that was not in the fit; for error messages only.
    """

    name: str
    kind: Kind = "numeric"
    levels: tuple[Any, ...] = ()
    declared: tuple[Any, ...] = field(default=(), compare=False, repr=False)
    unseen: UnseenLevel | None = field(default=None, compare=False, repr=False)


def order_levels(levels: Iterable[Any], declared: Sequence[Any] = ()) -> tuple[Any, ...]:
    """Levels in the one order that they have everywhere: as declared, and sorted otherwise.

    >>> order_levels({"b", "a"}), order_levels({"low", "high"}, ("low", "mid", "high"))
    (('a', 'b'), ('low', 'high'))
    """
    place = {level: i for i, level in enumerate(declared)}
    return tuple(sorted(levels, key=lambda level: (place.get(level, len(place)), level)))


def merge_columns(a: Column, b: Column) -> Column:
    """Column `a` with the levels of both: of two parts of a table, say.

    >>> parts = [Column("size", "categorical", (s,), ("small", "big")) for s in ("small", "big")]
    >>> merge_columns(*parts).levels, merge_columns(*parts[::-1]).levels
    (('small', 'big'), ('small', 'big'))
    """
    if a.levels == b.levels and a.declared == b.declared:
        return a
    declared = merge_orders(a.declared, b.declared)
    return replace(a, levels=order_levels({*a.levels, *b.levels}, declared), declared=declared)


def merge_orders(a: Sequence[Any], b: Sequence[Any]) -> tuple[Any, ...]:
    """All values of two sequences in an order that both agree with; sorted where they leave it
    open, and as in `a` where they contradict each other.

    >>> merge_orders([1, 4], [2, 4, 5]), merge_orders(["low", "high"], ["mid", "high"])
    ((1, 2, 4, 5), ('low', 'mid', 'high'))
    """
    if not a or not b or a == b:
        return tuple(a or b)
    order: TopologicalSorter[Any] = TopologicalSorter()
    for values in (a, b):
        order.add(values[0])
        for first, second in pairwise(values):
            order.add(second, first)
    try:
        order.prepare()
    except CycleError:
        return tuple(dict.fromkeys([*a, *b]))
    found: list[Any] = []
    ready: list[Any] = []
    while order.is_active():
        for value in order.get_ready():
            heappush(ready, value)
        found.append(heappop(ready))
        order.done(found[-1])
    return tuple(found)


def listed(values: Sequence[Any], most: int = 8) -> str:
    """Values in an error message, the first few of them.

    >>> listed(["a", 1]), listed(range(20), 2)
    ("'a', 1", '0, 1, ...')
    """
    return ", ".join(map(repr, values[:most])) + ", ..." * (len(values) > most)


@dataclass(frozen=True)
class Schema:
    """The columns in order; `named` says whether the user gave the names.

    `categorical` has the positions of the categorical columns, `numeric` those of the numeric and
    boolean ones.
    """

    columns: tuple[Column, ...]
    named: bool
    names: tuple[str, ...] = field(init=False, compare=False, repr=False)
    categorical: list[int] = field(init=False, compare=False, repr=False)
    numeric: list[int] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        # Not computed when they are first used: in Python 3.11 a process forked then would hang.
        levels = [column.kind == "categorical" for column in self.columns]
        vars(self).update(
            names=tuple(column.name for column in self.columns),
            categorical=[j for j, is_level in enumerate(levels) if is_level],
            numeric=[j for j, is_level in enumerate(levels) if not is_level],
        )

    @classmethod
    @lru_cache(maxsize=16)  # ten thousand columns take ten milliseconds to make
    def unnamed(cls, n_columns: int, kind: Kind = "numeric") -> "Schema":
        """Columns of an array, called x0, x1, ... as scikit-learn does."""
        return cls(tuple(Column(f"x{j}", kind) for j in range(n_columns)), named=False)

    @classmethod
    def of_names(cls, names: Sequence[str]) -> "Schema":
        """Numeric columns with the names given."""
        return cls(tuple(Column(name) for name in names), named=True)

    def __len__(self) -> int:
        return len(self.columns)

    def describe(self, j: int) -> str:
        """The column as an error message calls it: column 'age', or column 3."""
        return f"column '{self.columns[j].name}'" if self.named else f"column {j}"

    def describe_all(self, positions: Iterable[int], most: int = 8) -> str:
        """Several columns in words, the first few by name."""
        places = [int(j) for j in positions]
        shown = [f"'{self.columns[j].name}'" if self.named else str(j) for j in places[:most]]
        rest = f" and {len(places) - most} more" if len(places) > most else ""
        return f"column{'s' if len(places) > 1 else ''} {', '.join(shown)}{rest}"

    def difference(self, other: "Schema") -> str:
        """The first difference of another schema from this one, in words.

        >>> old = Schema((Column("age"), Column("sex", "categorical", ("f", "m"))), named=True)
        >>> old.difference(Schema((Column("age"),), named=True))
        "None, and was Column(name='sex', kind='categorical', levels=('f', 'm'))"
        """
        for old, new in zip_longest(self.columns, other.columns):
            if old != new:
                return f"{new}, and was {old}"
        return "one of them has column names and the other has none"

    def check_names(self, names: Sequence[str]) -> None:
        """An error unless all columns of this schema are among the names."""
        given, own = set(names), set(self.names)
        missing = [name for name in self.names if name not in given]
        if missing:
            unknown = [name for name in names if name not in own]
            parts = [f"missing since fit time: {listed(missing)}"]
            parts += [f"unseen at fit time: {listed(unknown)}"] if unknown else []
            raise ColumnNameError(
                f"The columns differ from those the model was fitted on ({'; '.join(parts)}).",
                "Pass the columns of the fit, in any order.",
            )


def known_levels(known: Sequence[Any]) -> str:
    """The remedy for a level that was not in the fit.

    >>> known_levels(["a", "b"])
    "The levels are 'a', 'b'; fit again with rows that have the new level, recode it, or set
    handle_unknown='reference' where the model has that choice."
    """
    return (
        f"The levels are {listed(known)}; fit "
        "again with rows that have the new level, recode it, or set handle_unknown='reference' "
        "where the model has that choice."
    )


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


@dataclass(frozen=True)
class Roles:
    """Which columns of a frame are the target, the weight, the offset, and the features.

    `targets` is one column of labels or numbers, or several with the probability of each class.
    Without `columns` the features are all columns that are nothing else. `categories` has the
    levels of columns, in order, where they are given; `text` names columns that are text though
    they look like numbers. `declared` has the order of levels that the types of the
    source give.
    """

    targets: tuple[str, ...] = ()
    weight: str | None = None
    offset: str | None = None
    columns: tuple[str, ...] | None = None
    categories: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    text: tuple[str, ...] = ()
    declared: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def others(self) -> list[str]:
        """The columns of target, weight and offset."""
        return [*self.targets, *filter(None, (self.weight, self.offset))]

    def features(self, names: Sequence[str]) -> list[str]:
        """The feature columns among all; an error where a column named is not there, or twice."""
        wanted: list[tuple[str, str | None]] = [("target", name) for name in self.targets]
        wanted += [("weight", self.weight), ("offset", self.offset)]
        wanted += [("columns", name) for name in self.columns or ()]
        wanted += [("categories", name) for name in self.categories]
        for role, name in wanted:
            if name is not None and name not in names:
                raise ColumnNameError(
                    f"{role}={name!r} is not among the columns.",
                    f"They are {listed(names, 12)}.",
                )
        used = [*self.others, *(self.columns or ())]
        if len(set(used)) < len(used):
            twice = next(name for name in used if used.count(name) > 1)
            raise ColumnNameError(
                f"Column '{twice}' is named twice among target, weight, offset and columns.",
                "Name each column once.",
            )
        found = [name for name in names if name not in used]
        found = found if self.columns is None else list(self.columns)
        if not found:
            raise ShapeError(
                "No column is left as a feature: found 0 feature(s).", "Name at least one."
            )
        return found

    def in_order(self, schema: Schema) -> Schema:
        """The columns with their levels in the order that the user or the source gives.

        An error where the user's levels lack one that occurs.
        """
        columns = []
        for column in schema.columns:
            name, levels = column.name, self.categories.get(column.name)
            if levels is None and column.kind == "categorical" and name in self.declared:
                order = self.declared[name]
                column = replace(column, levels=order_levels(column.levels, order), declared=order)
            elif levels is not None:
                if column.kind != "categorical":
                    raise ColumnTypeError(
                        f"categories gives levels of column '{name}', which holds numbers.",
                        "Leave them out, or write the column as text.",
                    )
                unknown = [level for level in column.levels if level not in levels]
                if unknown:
                    raise LevelError(
                        f"Column '{name}' has the level {unknown[0]!r}, which is not among the "
                        "categories given.",
                        "Add it to categories, or recode it.",
                    )
                column = replace(column, levels=levels, declared=levels)
            columns.append(column)
        return replace(schema, columns=tuple(columns))

    def split(self, frame: Any, names: Sequence[str], **place: Any) -> Batch:
        """A frame with these columns as a batch; `place` says where the rows are."""
        pick = frame.select if hasattr(type(frame), "column_names") else frame.__getitem__
        one = len(self.targets) == 1
        y = frame[self.targets[0]] if one else pick(list(self.targets)) if self.targets else None
        weight = None if self.weight is None else frame[self.weight]
        offset = None if self.offset is None else frame[self.offset]
        features = [name for name in self.columns or names if name in names]
        X = pick([name for name in features if name not in self.others])
        return Batch(X, y, weight, offset, **place)
