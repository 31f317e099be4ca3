"""How often each state of a column occurs in each class."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from posteriori.rows.block import Block, Mixed, split_sparse
from posteriori.rows.finite import check_finite
from posteriori.rows.schema import Schema
from posteriori.statistics.labels import is_soft, membership
from posteriori.statistics.statistic import (
    Statistic,
    same_kind,
    spread,
    union_of_classes,
)
from posteriori.typing import Array, Codes, Labels

Levels: TypeAlias = tuple[Any, ...]

_SMALL_NUMBERS = 1024


@dataclass(frozen=True, eq=False)
class Counts(Statistic):
    """For each column its levels, and a table (K, L) of the weight of each level in each class.

    Sums have the levels and the classes of both.

    >>> first = Counts(np.array([0]), (("a",),), (np.array([[3.0]]),))
    >>> both = first + Counts(np.array([1]), (("b", "a"),), (np.array([[1.0, 4.0]]),))
    >>> both.levels, both.tables[0].tolist()
    ((('a', 'b'),), [[3.0, 0.0], [4.0, 1.0]])
    """

    classes: Labels
    levels: tuple[Levels, ...]
    tables: tuple[Array, ...]

    def __add__(self, other: "Counts") -> "Counts":
        same_kind(self, other)
        if other.classes is not self.classes:
            self, other = _aligned(self, other)
        if other.levels is not self.levels:
            levels = tuple(map(union_of_levels, self.levels, other.levels))
            self, other = self._with_levels(levels), other._with_levels(levels)
        return replace(self, tables=tuple(map(add, self.tables, other.tables)))

    def _with_levels(self, levels: tuple[Levels, ...]) -> "Counts":
        tables = tuple(map(_spread_levels, self.tables, self.levels, levels))
        return replace(self, levels=levels, tables=tables)


def union_of_levels(a: Levels, b: Levels) -> Levels:
    """The levels of both: numbers sorted, others as in `a` and then the new ones of `b`."""
    if a == b:
        return a
    known = set(a)
    both = (*a, *(level for level in b if level not in known))
    return tuple(sorted(both)) if all(isinstance(level, float) for level in both) else both


def _spread_levels(table: Array, old: Levels, new: Levels) -> Array:
    if old == new:
        return table
    place = {level: i for i, level in enumerate(new)}
    out = np.zeros((len(table), len(new)))
    out[:, [place[level] for level in old]] = table
    return out


def _aligned(a: Counts, b: Counts) -> tuple[Counts, Counts]:
    classes, in_a, in_b = union_of_classes(a.classes, b.classes)

    def lay_out(counts: Counts, places: Codes) -> Counts:
        tables = tuple(spread(table, places, len(classes)) for table in counts.tables)
        return replace(counts, classes=classes, tables=tables)

    return lay_out(a, in_a), lay_out(b, in_b)


@dataclass(frozen=True, eq=False)
class GatherCounts:
    """The kernel: a block of rows to its `Counts`.

    Coded columns have the levels of the schema, columns of numbers those that turn up.
    """

    schema: Schema
    classes: Labels

    def __call__(self, block: Block) -> Counts:
        if isinstance(block.X, Mixed):
            levels = [column.levels for column in self.schema.columns]
            return self._count(block, zip(levels, block.X.codes.T, strict=True))
        return reduce(add, map(self._count_numbers, split_sparse(block)))

    def _count_numbers(self, block: Block) -> Counts:
        X = block.X.toarray() if isinstance(block.X, sparse.csr_array) else cast(Array, block.X)
        if np.isinf(X).any():
            check_finite(block, self.schema, missing=True)
        return self._count(block, map(distinct, X.T))

    def _count(self, block: Block, columns: Iterable[tuple[Levels, NDArray[Any]]]) -> Counts:
        member = membership(block, len(self.classes)) if is_soft(block) else None
        pairs = [
            (levels, self._table(block, member, codes, len(levels))) for levels, codes in columns
        ]
        return Counts(self.classes, tuple(p[0] for p in pairs), tuple(p[1] for p in pairs))

    def _table(self, block: Block, member: Any, codes: NDArray[Any], n_levels: int) -> Array:
        """The table (K, L) of one column; entries with a negative code are left out."""
        K, seen = len(self.classes), codes >= 0
        if member is not None:
            rows = [np.bincount(codes[seen], m[seen], minlength=n_levels) for m in member.T]
            return cast(Array, np.array(rows).reshape(K, n_levels))
        y, weight = cast(Codes, block.y), block.weight
        if not seen.all():
            codes, y, weight = codes[seen], y[seen], None if weight is None else weight[seen]
        table = np.bincount(y * n_levels + codes, weight, minlength=K * n_levels)
        return table.reshape(K, n_levels).astype(np.float64)


def distinct(x: Array) -> tuple[Levels, NDArray[np.intp]]:
    """The numbers that occur, sorted, and the place of each entry among them (-1 for NaN).

    >>> distinct(np.array([2.0, 0.5, np.nan, 2.0]))
    ((0.5, 2.0), array([ 1,  0, -1,  1]))
    """
    present = ~np.isnan(x)
    if not present.all():
        codes = np.full(len(x), -1)
        levels, codes[present] = distinct(x[present])
        return levels, codes
    if len(x) and x.min() >= 0 and x.max() < _SMALL_NUMBERS:
        whole = x.astype(np.intp)
        if (whole == x).all():
            occurs = np.bincount(whole) > 0
            return tuple(np.flatnonzero(occurs).astype(float).tolist()), (np.cumsum(occurs) - 1)[
                whole
            ]
    values, codes = np.unique(x, return_inverse=True)
    return tuple(values.tolist()), codes
