"""Sums of naive Bayes: counts of levels and sums of columns, by class."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from posteriori.design.columns import Columns
from posteriori.design.matrix import Design
from posteriori.errors import DomainError, StatisticsError
from posteriori.likelihood.families import FAMILIES
from posteriori.linalg import transpose_matmul
from posteriori.rows.block import Block, Features, Mixed, split_sparse
from posteriori.rows.finite import check_finite
from posteriori.rows.schema import Schema, merge_orders
from posteriori.statistics.column_moments import ColumnMoments, GatherColumnMoments
from posteriori.statistics.statistic import (
    Statistic,
    class_counts,
    is_soft,
    membership,
    same_columns,
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
    ((('b', 'a'),), [[0.0, 3.0], [1.0, 4.0]])
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
    """The levels of both, in an order that both have; sorted where both are."""
    return merge_orders(a, b)


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


@dataclass(frozen=True, eq=False)
class Sums(Statistic):
    """Per class and column (K, m): the weight of the entries present, and their sum.

    Where no entry is missing, one weight a class (K, 1) serves all columns.

    >>> one = Sums(np.array(["a"]), np.array([[2.0]]), np.array([[5.0]]))
    >>> two = one + Sums(np.array(["b"]), np.array([[1.0]]), np.array([[4.0]]))
    >>> two.classes.tolist(), two.total.tolist()
    (['a', 'b'], [[5.0], [4.0]])
    """

    classes: Labels
    count: Array
    total: Array

    def __add__(self, other: "Sums") -> "Sums":
        same_kind(self, other)
        if other.classes is not self.classes:
            self, other = _aligned_sums(self, other)
        return replace(self, count=self.count + other.count, total=self.total + other.total)


def _aligned_sums(a: Sums, b: Sums) -> tuple[Sums, Sums]:
    classes, in_a, in_b = union_of_classes(a.classes, b.classes)

    def lay_out(sums: Sums, places: Codes) -> Sums:
        K = len(classes)
        return Sums(classes, spread(sums.count, places, K), spread(sums.total, places, K))

    return lay_out(a, in_a), lay_out(b, in_b)


@dataclass(frozen=True, eq=False)
class GatherSums:
    """The kernel: a block of rows to its `Sums`."""

    schema: Schema
    classes: Labels

    def __call__(self, block: Block) -> Sums:
        with np.errstate(over="ignore", invalid="ignore"):
            total = self._totals(block)
            count = class_counts(block, len(total))[:, None]
            if not np.isfinite(total).all():
                check_finite(block, self.schema, missing=True)
                total, lost = self._totals_of_present(block)
                count = count - lost
        return Sums(self.classes, count, total)

    def _totals(self, block: Block) -> Array:
        """Sum of each column in each class (K, m)."""
        X, K = block.X, len(self.classes)
        if not isinstance(X, sparse.csr_array):
            member, values = membership(block, K), cast(Array, X)
            is_dense = isinstance(member, np.ndarray)
            return transpose_matmul(member, values) if is_dense else np.asarray(member.T @ values)
        if is_soft(block):
            return cast(Array, (X.T @ membership(block, K)).T)
        # bincount takes half the time of SciPy's product with the matrix of memberships.
        per_row, d = np.diff(X.indptr), X.shape[1]
        place = np.repeat(cast(Codes, block.y) * d, per_row) + X.indices
        data = X.data if block.weight is None else X.data * np.repeat(block.weight, per_row)
        return cast(Array, np.bincount(place, data, minlength=K * d).reshape(K, d))

    def _totals_of_present(self, block: Block) -> tuple[Array, Array]:
        """Sums without the missing entries, and the weight of those (K, m)."""
        X = block.X
        values = X.data if isinstance(X, sparse.csr_array) else cast(Array, X)
        absent = np.isnan(values)
        filled, lost = (
            self._totals(replace(block, X=_like(X, v)))
            for v in (np.where(absent, 0.0, values), absent.astype(np.float64))
        )
        return filled, lost


def _like(X: object, values: Array) -> Array | sparse.csr_array:
    if isinstance(X, sparse.csr_array):
        return sparse.csr_array((values, X.indices, X.indptr), shape=X.shape)
    return values


Part: TypeAlias = Sums | ColumnMoments | Counts


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

    def select(self, X: Features) -> Features:
        """These columns of some rows."""
        if not isinstance(X, Mixed):
            return X if self.within is None else X[:, self.within]
        if self.coded:
            codes = X.codes if self.within is None else X.codes[:, self.within]
            return Mixed(np.empty((len(codes), 0)), codes)
        return X.numeric if self.within is None else X.numeric[:, self.within]

    def part(self, block: Block) -> Block:
        """These columns of a block."""
        return replace(block, X=self.select(block.X))


def group_columns(schema: Schema, families: Sequence[str]) -> tuple[Group, ...]:
    """The columns of each family, numbers and codes apart."""
    groups = []
    for coded, positions in ((False, schema.numeric), (True, schema.categorical)):
        found = [families[j] for j in positions]
        for family in dict.fromkeys(found):
            within = None
            if found.count(family) < len(found):
                within = np.flatnonzero(np.array(found) == family)
            columns = np.array(positions if within is None else np.array(positions)[within])
            groups.append(Group(family, coded, columns, within, _part_of(schema, columns)))
    return tuple(groups)


def _part_of(schema: Schema, columns: Codes) -> Schema:
    """Some of the columns, by name even where the user gave none: column 'x3' stays x3."""
    if len(columns) == len(schema):
        return schema
    return Schema(tuple(schema.columns[j] for j in columns), named=True)


@dataclass(frozen=True, eq=False)
class FamilySums(Statistic):
    """Weight of each class (K,), and one statistic for each group of columns of one family."""

    schema: Schema
    families: tuple[str, ...]
    classes: Labels
    class_count: Array
    parts: tuple[Part, ...]

    @property
    def groups(self) -> tuple[Group, ...]:
        """The columns that each part is of."""
        return group_columns(self.schema, self.families)

    @property
    def squares(self) -> Array:
        """Sums of squares of the Gaussian columns."""
        moments = [part.squares for part in self.parts if isinstance(part, ColumnMoments)]
        return moments[0] if moments else np.empty(0)

    def __add__(self, other: "FamilySums") -> "FamilySums":
        same_kind(self, other)
        if other.schema is self.schema and other.families is self.families:
            if other.classes is self.classes:
                count = self.class_count + other.class_count
                return replace(self, class_count=count, parts=_added(self, other))
        else:
            _check_same_columns(self, other)
        classes, here, there = union_of_classes(self.classes, other.classes)
        count = spread(self.class_count, here, len(classes))
        count = count + spread(other.class_count, there, len(classes))
        parts = _added(self, other)
        return FamilySums(_with_levels(self, parts), self.families, classes, count, parts)


def _added(a: FamilySums, b: FamilySums) -> tuple[Part, ...]:
    return tuple(x + cast(Any, y) for x, y in zip(a.parts, b.parts, strict=True))


def _with_levels(statistic: FamilySums, parts: Sequence[Any]) -> Schema:
    """The schema with the levels that the counts of its coded columns have now."""
    columns = list(statistic.schema.columns)
    for group, part in zip(statistic.groups, parts, strict=True):
        if group.coded:
            for j, levels in zip(group.columns, part.levels, strict=True):
                columns[j] = replace(columns[j], levels=levels)
    return replace(statistic.schema, columns=tuple(columns))


def _check_same_columns(a: FamilySums, b: FamilySums) -> None:
    """The columns must agree but for their levels, and so must the families."""
    without = [
        replace(s.schema, columns=tuple(replace(c, levels=()) for c in s.schema.columns))
        for s in (a, b)
    ]
    same_columns(*without)
    if a.families != b.families:
        j = next(j for j, name in enumerate(a.families) if name != b.families[j])
        raise StatisticsError(
            f"The statistics take {a.schema.describe(j)} for {a.families[j]} and for "
            f"{b.families[j]}.",
            "Gather both with the same family setting.",
        )


@dataclass(frozen=True, eq=False)
class GroupColumns:
    """The columns of a group as a design matrix, for `gather`."""

    group: Group

    def design(self, block: Block) -> Design:
        return Columns(self.group.schema).design(self.group.part(block))

    def dense_parts(self, block: Block) -> Iterator[Block]:
        return split_sparse(block)


@dataclass(frozen=True, eq=False)
class GatherByFamily:
    """The kernel: a block of rows to its `FamilySums`."""

    schema: Schema
    families: tuple[str, ...]
    classes: Labels
    groups: tuple[Group, ...]
    unit: Array | None = None

    @property
    def columns(self) -> GroupColumns:
        """The columns whose squares are summed."""
        return GroupColumns(next(group for group in self.groups if group.family == "gaussian"))

    def __call__(self, block: Block) -> FamilySums:
        parts = tuple(self._sums(group, group.part(block)) for group in self.groups)
        count = class_counts(block, len(self.classes))
        return FamilySums(self.schema, self.families, self.classes, count, parts)

    def _sums(self, group: Group, block: Block) -> Part:
        check_domain(block, group)
        kernel = self._kernel(group)
        if is_soft(block) and group.family == "gaussian":
            return reduce(add, map(kernel, split_sparse(block)))
        return kernel(block)

    def _kernel(self, group: Group) -> Callable[[Block], Part]:
        summary = FAMILIES[group.family].summary
        if summary == "moments":
            return GatherColumnMoments(Columns(group.schema), self.classes, self.unit)
        if summary == "counts":
            return GatherCounts(group.schema, self.classes)
        return GatherSums(group.schema, self.classes)


def check_domain(block: Block, group: Group) -> None:
    """An error that names the first entry of a group's columns outside the family's domain."""
    X, family = block.X, FAMILIES[group.family]
    if isinstance(X, Mixed) or family.domain is None:
        return
    stored = X.data if isinstance(X, sparse.csr_array) else X
    bad = family.outside(stored)
    if not bad.any():
        return
    check_finite(block, group.schema, missing=True)
    i, j = _first(bad, X)
    raise DomainError(
        f"Row {block.row(i)} of {group.schema.describe(j)} is {stored[bad][0]:g}, but what "
        f"is {group.family} must be {family.domain}.",
        "Correct the entry, or choose another family for the column.",
    )


def _first(bad: NDArray[np.bool_], X: Array | sparse.csr_array) -> tuple[int, int]:
    """Row and column of the first entry marked, row by row."""
    if isinstance(X, sparse.csr_array):
        place = int(bad.argmax())
        return int(np.searchsorted(X.indptr, place, side="right")) - 1, int(X.indices[place])
    i, j = np.argwhere(bad)[0]
    return int(i), int(j)
