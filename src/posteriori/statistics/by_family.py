"""What naive Bayes is estimated from: for each family, the sums over rows that it needs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from posteriori.design.columns import Columns
from posteriori.design.products import Design
from posteriori.errors import DomainError, StatisticsError
from posteriori.likelihood.families import FAMILIES
from posteriori.rows.block import Block, Features, Mixed, split_sparse
from posteriori.rows.finite import check_finite
from posteriori.rows.schema import Schema
from posteriori.statistics.column_moments import ColumnMoments, GatherColumnMoments
from posteriori.statistics.counts import Counts, GatherCounts
from posteriori.statistics.labels import class_counts, is_soft
from posteriori.statistics.statistic import (
    Statistic,
    same_columns,
    same_kind,
    spread,
    union_of_classes,
)
from posteriori.statistics.sums import GatherSums, Sums
from posteriori.typing import Array, Codes, Labels

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
