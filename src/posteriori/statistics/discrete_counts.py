"""The sums that naive Bayes is estimated from: counts of levels and sums of columns, by class.

Conventions: n rows, m columns of one family, K classes, L levels of a column. Columns of numbers
whose family is categorical have the distinct numbers as levels. Missing entries are left out.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from operator import add
from typing import Any, ClassVar, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from posteriori.design.columns import Columns
from posteriori.errors import DomainError, StatisticsError
from posteriori.likelihood.feature_families import FAMILIES, changed_entries
from posteriori.rows.block import Block, Features, Mixed, check_finite, find_bad
from posteriori.rows.schema import Schema, merge_orders
from posteriori.statistics.column_moments import ColumnMoments, GatherColumnMoments
from posteriori.statistics.statistic import (
    ClassStatistic,
    align_classes,
    class_counts,
    class_sums,
    hard_labels,
    spread,
    union_of_columns,
)
from posteriori.typing import Array, Codes, Labels

Levels: TypeAlias = tuple[Any, ...]

_SMALL_NUMBERS = 1024
"""Whole numbers below this are counted rather than sorted."""


@dataclass(frozen=True, eq=False)
class FamilySums(ClassStatistic):
    """Weight of each class (K,), and one statistic for each group of columns of one family."""

    schema: Schema
    families: tuple[str, ...]
    class_count: Array
    parts: tuple["Part", ...]
    by_class: ClassVar = ("class_count",)

    @property
    def groups(self) -> tuple["Group", ...]:
        """The columns that each part is of."""
        return group_columns(self.schema, self.families)

    def __add__(self, other: "FamilySums") -> "FamilySums":
        self, other = align_classes(self, other)
        schema = union_of_columns(self.schema, other.schema)
        check_families(schema, self.families, other.families)
        parts = tuple(x + cast(Any, y) for x, y in zip(self.parts, other.parts, strict=True))
        count = self.class_count + other.class_count
        return FamilySums(self.classes, schema, self.families, count, parts)


def check_families(schema: Schema, first: Sequence[str], second: Sequence[str]) -> None:
    """An error that names the first column whose families differ."""
    for j, (one, other) in enumerate(zip(first, second, strict=True)):
        if one != other:
            raise StatisticsError(
                f"The family of {schema.describe(j)} is {one} in one and {other} in the other of "
                "the statistics and models.",
                "Use the same family setting for all of them.",
            )


@dataclass(frozen=True, eq=False)
class GatherByFamily:
    """The kernel: a block of rows to its `FamilySums`."""

    schema: Schema
    families: tuple[str, ...]
    classes: Labels

    @cached_property
    def groups(self) -> tuple["Group", ...]:
        return group_columns(self.schema, self.families)

    def __call__(self, block: Block) -> FamilySums:
        parts = tuple(self._part(group, group.part(block)) for group in self.groups)
        count = class_counts(block, len(self.classes))
        return FamilySums(self.classes, self.schema, self.families, count, parts)

    def _part(self, group: "Group", block: Block) -> "Part":
        check_domain(block, group)
        summary = FAMILIES[group.family].summary
        if summary == "moments":
            return GatherColumnMoments(Columns(group.schema), self.classes)(block)
        if summary == "counts":
            return GatherCounts(group.schema, self.classes)(block)
        return GatherSums(group.schema, self.classes)(block)


@dataclass(frozen=True, eq=False)
class Group:
    """The columns of one family; `coded` if they are levels, else numbers.

    `within` has their places among the numeric, or among the coded, columns; None for all.
    """

    family: str
    coded: bool
    columns: Codes
    within: Codes | None
    schema: Schema = field(repr=False)

    def values(self, X: Features) -> Any:
        """The numbers or codes of these columns."""
        values: Any = X
        if isinstance(X, Mixed):
            values = X.codes if self.coded else X.numeric
        return values if self.within is None else values[:, self.within]

    def part(self, block: Block) -> Block:
        """These columns of a block."""
        values = self.values(block.X)
        return replace(block, X=Mixed(np.empty((len(values), 0)), values) if self.coded else values)


def group_columns(schema: Schema, families: Sequence[str]) -> tuple[Group, ...]:
    """The columns of each family, numbers and codes apart."""
    groups = []
    for coded, positions in ((False, schema.numeric), (True, schema.categorical)):
        found = np.array([families[j] for j in positions])
        for family in dict.fromkeys(found.tolist()):
            own = np.flatnonzero(found == family)
            columns = np.array(positions)[own]
            part = schema
            if len(columns) < len(schema):  # by name: column 'x3' stays x3 though it is not third
                part = Schema(tuple(schema.columns[j] for j in columns), named=True)
            within = own if len(own) < len(found) else None
            groups.append(Group(family, coded, columns, within, part))
    return tuple(groups)


@dataclass(frozen=True, eq=False)
class Counts(ClassStatistic):
    """For each column its levels, and a table (K, L) of the weight of each level in each class.

    Sums have the levels and the classes of both.

    >>> first = Counts(np.array([0]), (("a",),), (np.array([[3.0]]),))
    >>> both = first + Counts(np.array([1]), (("b", "a"),), (np.array([[1.0, 4.0]]),))
    >>> both.levels, both.tables[0].tolist()
    ((('b', 'a'),), [[0.0, 3.0], [1.0, 4.0]])
    """

    levels: tuple[Levels, ...]
    tables: tuple[Array, ...]

    def __add__(self, other: "Counts") -> "Counts":
        self, other = align_classes(self, other)
        levels = self.levels
        if levels != other.levels:
            levels = tuple(map(merge_orders, levels, other.levels))
        ours, theirs = (map(_spread_levels, c.tables, c.levels, levels) for c in (self, other))
        return replace(self, levels=levels, tables=tuple(map(np.add, ours, theirs)))

    def with_classes(self, classes: Labels, places: Codes) -> "Counts":
        tables = tuple(spread(table, places, len(classes)) for table in self.tables)
        return replace(self, classes=classes, tables=tables)


def _spread_levels(table: Array, old: Levels, new: Levels) -> Array:
    if old == new:
        return table
    place = {level: i for i, level in enumerate(new)}
    return spread(table.T, np.array([place[level] for level in old], dtype=np.intp), len(new)).T


@dataclass(frozen=True, eq=False)
class GatherCounts:
    """The kernel: a block of rows to its `Counts`.

    Coded columns have the levels of the schema, columns of numbers those that occur.
    """

    schema: Schema
    classes: Labels

    def __call__(self, block: Block) -> Counts:
        if isinstance(block.X, Mixed):
            levels = [column.levels for column in self.schema.columns]
            return self._count(block, zip(levels, block.X.codes.T, strict=True))
        return reduce(add, map(self._count_numbers, Columns(self.schema).dense_parts(block)))

    def _count_numbers(self, block: Block) -> Counts:
        X = block.X.toarray() if isinstance(block.X, sparse.csr_array) else cast(Array, block.X)
        if np.isinf(X).any():
            check_finite(block, self.schema, missing=True)
        return self._count(block, map(distinct, X.T))

    def _count(self, block: Block, columns: Iterable[tuple[Levels, NDArray[Any]]]) -> Counts:
        """The table of each column, from its levels and the code of each row."""
        rows, y, weight = hard_labels(block)
        K, found = len(self.classes), []
        for levels, codes in columns:
            code, L = codes[rows], len(levels)
            present = code >= 0
            own = None if weight is None else weight[present]
            table = np.bincount((y * L + code)[present], own, minlength=K * L)
            found.append((levels, table.reshape(K, L).astype(np.float64)))
        return Counts(self.classes, tuple(f[0] for f in found), tuple(f[1] for f in found))


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
            levels = tuple(np.flatnonzero(occurs).astype(float).tolist())
            return levels, (np.cumsum(occurs) - 1)[whole]
    values, codes = np.unique(x, return_inverse=True)
    return tuple(values.tolist()), codes


@dataclass(frozen=True, eq=False)
class Sums(ClassStatistic):
    """Per class and column (K, m): the weight of the entries present, and their sum.

    Where no entry is missing, one weight a class (K, 1) serves all columns.

    >>> one = Sums(np.array(["a"]), np.array([[2.0]]), np.array([[5.0]]))
    >>> two = one + Sums(np.array(["b"]), np.array([[1.0]]), np.array([[4.0]]))
    >>> two.classes.tolist(), two.total.tolist()
    (['a', 'b'], [[5.0], [4.0]])
    """

    count: Array
    total: Array
    by_class: ClassVar = ("count", "total")


@dataclass(frozen=True, eq=False)
class GatherSums:
    """The kernel: a block of rows to its `Sums`."""

    schema: Schema
    classes: Labels

    def __call__(self, block: Block) -> Sums:
        with np.errstate(over="ignore", invalid="ignore"):
            total = self._totals(block, block.X)
            count = class_counts(block, len(self.classes))[:, None]
            if not np.isfinite(total).all():
                check_finite(block, self.schema, missing=True)
                X: Any = block.X
                total = self._totals(block, changed_entries(X, np.nan_to_num))
                count = count - self._totals(block, changed_entries(X, np.isnan))
        return Sums(self.classes, count, total)

    def _totals(self, block: Block, X: Features) -> Array:
        """Sum of each column in each class (K, m)."""
        design = Columns(self.schema).design(replace(block, X=X))
        return class_sums(design, block, len(self.classes))


Part: TypeAlias = Sums | ColumnMoments | Counts


def check_domain(block: Block, group: Group) -> None:
    """An error that names the first entry of a group's columns outside the family's domain."""
    X, family = block.X, FAMILIES[group.family]
    if isinstance(X, Mixed) or family.domain is None:
        return
    rows, columns = find_bad(family.outside, block, group.schema)
    if not len(rows):
        return
    check_finite(block, group.schema, missing=True)
    i, j = int(rows[0]), int(columns[0])
    raise DomainError(
        f"Row {block.row(i)} of {group.schema.describe(j)} is {X[i, j]:g}, but what "
        f"is {group.family} must be {family.domain}.",
        "Correct the entry, or choose another family for the column.",
    )
