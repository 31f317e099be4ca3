"""What is known of the columns: their names, kinds and levels."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias

from posteriori.errors import ColumnNameError

Kind = Literal["numeric", "boolean", "categorical"]

Unseen: TypeAlias = Literal["error", "reference"]
"""What to do with a level that was not in the fit: an error, or take it for the reference level."""


class Strange(NamedTuple):
    """A row, and its level that was not in the fit."""

    row: int
    level: Any


@dataclass(frozen=True, slots=True)
class Column:
    """One column: a name, a kind and, where it is categorical, the levels that occur, in order.

    `declared` has all categories of a categorical type in their order (pandas categories, polars
    Enum, ordered Arrow dictionaries), and is empty for text. `strange` is the first row, among rows
    to predict, with a level that was not in the fit; for error messages only.
    """

    name: str
    kind: Kind = "numeric"
    levels: tuple[Any, ...] = ()
    declared: tuple[Any, ...] = field(default=(), compare=False, repr=False)
    strange: Strange | None = field(default=None, compare=False, repr=False)


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
    in_a, in_b = ({value: i for i, value in enumerate(values)} for values in (a, b))
    found, i, j = [], 0, 0
    while i < len(a) and j < len(b):
        later_in_a, later_in_b = in_a.get(b[j], -1) > i, in_b.get(a[i], -1) > j
        if a[i] == b[j]:
            found.append(a[i])
            i, j = i + 1, j + 1
        elif later_in_a or (not later_in_b and a[i] < b[j]):
            found.append(a[i])
            i += 1
        else:
            found.append(b[j])
            j += 1
    return tuple(dict.fromkeys([*found, *a[i:], *b[j:]]))


def listed(values: Sequence[Any], most: int = 8) -> str:
    """Values in an error message, the first few of them.

    >>> listed(["a", 1]), listed(range(20), 2)
    ("'a', 1", '0, 1, ...')
    """
    return ", ".join(map(repr, values[:most])) + ", ..." * (len(values) > most)


@dataclass(frozen=True)
class Schema:
    """The columns in order; `named` says whether the user gave the names."""

    columns: tuple[Column, ...]
    named: bool

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

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @cached_property
    def categorical(self) -> list[int]:
        """Positions of the categorical columns."""
        return [j for j, column in enumerate(self.columns) if column.kind == "categorical"]

    @cached_property
    def numeric(self) -> list[int]:
        """Positions of the numeric and boolean columns."""
        return [j for j, column in enumerate(self.columns) if column.kind != "categorical"]

    def in_order(self, declared: Mapping[str, Sequence[Any]]) -> "Schema":
        """With the levels of some columns in the order in which they were declared.

        >>> found = Schema((Column("size", "categorical", ("big", "small")),), named=True)
        >>> found.in_order({"size": ("tiny", "small", "big")}).columns[0].levels
        ('small', 'big')
        """

        def ordered(column: Column) -> Column:
            own = tuple(declared.get(column.name, column.declared))
            return replace(column, levels=order_levels(column.levels, own), declared=own)

        return replace(self, columns=tuple(map(ordered, self.columns))) if declared else self

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
        """In what another schema differs from this one, in words; the first thing found.

        >>> old = Schema((Column("age"), Column("sex", "categorical", ("f", "m"))), named=True)
        >>> old.difference(Schema((Column("age"), Column("sex")), named=True))
        "column 'sex' is numeric, and was categorical"
        >>> old.difference(Schema((old.columns[0],), named=True))
        'the number of columns is 1, and was 2'
        """
        if len(self) != len(other):
            return f"the number of columns is {len(other)}, and was {len(self)}"
        for j, (mine, its) in enumerate(zip(self.columns, other.columns, strict=True)):
            if mine.name != its.name:
                return f"column {j} is called '{its.name}', and was called '{mine.name}'"
            if mine.kind != its.kind:
                return f"{other.describe(j)} is {its.kind}, and was {mine.kind}"
            if mine.levels != its.levels:
                return (
                    f"{other.describe(j)} has the levels {listed(its.levels)}, and had "
                    f"{listed(mine.levels)}"
                )
        return "one of them has column names and the other has none"

    def order_of(self, names: Sequence[str]) -> list[int]:
        """Where each column of this schema stands among `names`; an error if the sets differ."""
        place = {name: i for i, name in enumerate(names)}
        missing = [name for name in self.names if name not in place]
        if missing or len(place) != len(self):
            unknown = [name for name in names if name not in set(self.names)]
            parts = [
                f"{what}: {', '.join(map(repr, found[:8]))}"
                for what, found in (
                    ("missing since fit time", missing),
                    ("unseen at fit time", unknown),
                )
                if found
            ]
            raise ColumnNameError(
                f"The columns differ from those the model was fitted on ({'; '.join(parts)}).",
                "Pass the columns of the fit, in any order.",
            )
        return [place[name] for name in self.names]


def known_levels(known: Sequence[Any]) -> str:
    """What to do about a level that was not in the fit.

    >>> known_levels(["a", "b"])
    "The levels are 'a', 'b'; fit again with rows that have the new level, recode it, or set
    unseen='reference' where the model has that choice."
    """
    return (
        f"The levels are {listed(known)}; fit "
        "again with rows that have the new level, recode it, or set unseen='reference' where the "
        "model has that choice."
    )
