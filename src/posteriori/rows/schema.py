"""What is known of the columns: their names, kinds and levels."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias

from posteriori.errors import ColumnNameError

Kind = Literal["numeric", "boolean", "categorical"]

Unseen: TypeAlias = Literal["error", "reference"]
"""What to do with a level that the fit never saw: name it, or take it for the reference level."""


class Strange(NamedTuple):
    """A row, and the level there which is not known."""

    row: int
    level: Any


@dataclass(frozen=True, slots=True)
class Column:
    """One column: a name, a kind and, where it is categorical, its levels in order.

    `strange` is the first row, and its level, where rows to predict have one that is not among
    them: for messages only.
    """

    name: str
    kind: Kind = "numeric"
    levels: tuple[Any, ...] = ()
    strange: Strange | None = field(default=None, compare=False, repr=False)


def levels_of_both(a: Sequence[Any], b: Iterable[Any]) -> tuple[Any, ...]:
    """The levels of `a` and the new ones of `b`: sorted where those of `a` are, else at the end.

    >>> levels_of_both(("b", "c"), {"a", "c"}), levels_of_both(("low", "high"), {"mid"})
    (('a', 'b', 'c'), ('low', 'high', 'mid'))
    """
    both = (*a, *sorted(set(b).difference(a)))
    return tuple(sorted(both)) if tuple(a) == tuple(sorted(a)) else both


def _listed(levels: Sequence[Any]) -> str:
    return ", ".join(map(repr, levels[:8])) + ", ..." * (len(levels) > 8)


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
            places = {level: i for i, level in enumerate(declared.get(column.name, ()))}
            by_place = sorted(column.levels, key=lambda level: places.get(level, len(places)))
            return replace(column, levels=tuple(by_place))

        return replace(self, columns=tuple(map(ordered, self.columns))) if declared else self

    def describe(self, j: int) -> str:
        """The column as an error message calls it: column 'age', or column 3."""
        return f"column '{self.columns[j].name}'" if self.named else f"column {j}"

    def describe_all(self, positions: Iterable[int], most: int = 8) -> str:
        """Several columns in words, the first few by name."""
        listed = [int(j) for j in positions]
        shown = [f"'{self.columns[j].name}'" if self.named else str(j) for j in listed[:most]]
        rest = f" and {len(listed) - most} more" if len(listed) > most else ""
        return f"column{'s' if len(listed) > 1 else ''} {', '.join(shown)}{rest}"

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
                    f"{other.describe(j)} has the levels {_listed(its.levels)}, and had "
                    f"{_listed(mine.levels)}"
                )
        return "only one of both has names of the user's"

    def order_of(self, names: Sequence[str]) -> list[int]:
        """Where each column of this schema stands among `names`; an error if the sets differ."""
        place = {name: i for i, name in enumerate(names)}
        missing = [name for name in self.names if name not in place]
        unknown = [name for name in names if name not in set(self.names)]
        if missing or unknown:
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
    """What to do about a level that is not among those known.

    >>> known_levels(["a", "b"])
    "The levels are 'a', 'b'; fit again with rows that have the new level, recode it, or set
    unseen='reference' where the model has that choice."
    """
    return (
        f"The levels are {', '.join(map(repr, known[:8]))}{', ...' if len(known) > 8 else ''}; fit "
        "again with rows that have the new level, recode it, or set unseen='reference' where the "
        "model has that choice."
    )
