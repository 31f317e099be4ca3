"""The rows that effects are averaged over, and what a model says of them if columns were others.

Conventions: n rows, K means a row (that of the second of two classes, that of each of more, or
that of a number). An answer has estimate, standard error and both ends of an interval as its last
axis (4); the last three are not used where a model knows no errors.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from posteriori.models.typical import Entry, typical_changes
from posteriori.posterior.measure import Measure, Moved, Total
from posteriori.rows.block import Block
from posteriori.rows.changes import (
    Changes,
    add_to,
    changed_features,
    changed_table,
    entries_of,
)
from posteriori.rows.frames import pick_rows
from posteriori.rows.in_memory import MemoryRows
from posteriori.rows.schema import Schema
from posteriori.rows.tables import Table, table_of
from posteriori.rows.threads import one_blas_thread
from posteriori.typing import Array, Codes

Combination: TypeAlias = Sequence[tuple[float, Changes]]
"""Factors, and the changes before means are taken that they multiply: 1 and -1 for a difference."""

_FOUR_STEPS = ((8, 1), (-8, -1), (-1, 2), (1, -2))
"""Twelve times the derivative at zero: factors, and the steps at which values are taken."""

_PART_ROWS = 4096
"""Rows that a formula is applied to at a time, where each has its own answer."""


class Population(ABC):
    """Rows, and what a model says of them."""

    table: Table
    has_errors: bool

    @property
    def schema(self) -> Schema:
        """The columns that can be changed."""
        return self.table.schema

    def entry(self, column: int) -> Entry:
        """The entries of a column, with the weights of the rows."""
        name = self.schema.describe(column)
        return Entry(entries_of(self.table, column), self._weight(), name)

    def _weight(self) -> Array | None:
        return None

    def _typical_changes(self) -> Changes:
        return typical_changes(self.schema, [self.entry(j) for j in range(len(self.schema))])

    @abstractmethod
    def typical(self) -> "Population":
        """One row: means of the numbers, and the most frequent levels."""

    @abstractmethod
    def average(self, terms: Combination) -> Array:
        """A combination of means, averaged over rows (K, 4)."""

    @abstractmethod
    def each(self, terms: Combination) -> Array:
        """The same row by row (n, K, 4)."""

    @abstractmethod
    def average_means(self, changes: Changes) -> Array:
        """Means, averaged over rows (K, 4)."""

    @abstractmethod
    def each_mean(self) -> Array:
        """Means row by row (n, K, 4)."""

    @abstractmethod
    def average_slopes(self, columns: Sequence[int], changes: Changes) -> Array:
        """Slopes in numeric columns, averaged over rows (J, K, 4)."""

    @abstractmethod
    def each_slope(self, columns: Sequence[int]) -> Array:
        """The same row by row (n, J, K, 4)."""

    def small_steps(self, column: int, changes: Changes = ()) -> Combination:
        """The slope in a column by differences, exact to the fourth power of the step."""
        h = self.entry(column).small_step
        return [(c / (12 * h), [*changes, add_to(column, k * h)]) for c, k in _FOUR_STEPS]


@dataclass(eq=False)
class MeasuredPopulation(Population):
    """Rows of a model with a `Measure` of its means.

    `ends`, if they are known, gives those of an interval for the mean of each row of a block,
    (n, 2) or (n, K, 2).
    """

    rows: MemoryRows
    measure: Measure
    ends: Callable[[Block], Array] | None

    @property
    def table(self) -> Table:  # type: ignore[override]
        return self.rows.table

    @property
    def has_errors(self) -> bool:  # type: ignore[override]
        return self.measure.has_errors

    def _weight(self) -> Array | None:
        return self.rows.weight

    def typical(self) -> Population:
        first, offset = self.table.cut(0, 1), self.rows.offset
        if offset is not None:
            offset = np.average(offset, axis=0, weights=self.rows.weight)[None]
        X = changed_features(first, self.schema, self._typical_changes())
        rows = MemoryRows(table_of(X, self.schema), offset=offset)
        return MeasuredPopulation(rows, self.measure, self.ends)

    def average(self, terms: Combination) -> Array:
        return self.measure.judged(self._combined(terms))

    def average_means(self, changes: Changes) -> Array:
        return self.measure.judged_means(self._mean(changes))

    def each(self, terms: Combination) -> Array:
        def of_block(block: Block) -> Array:
            found = [self.measure.means(self._with(block, own)) * c for c, own in terms]
            return self.measure.judged(sum(found[1:], start=found[0]))

        return self._filled(of_block, self.measure.n_means, 4)

    def each_mean(self) -> Array:
        found, K, ends = self.each([(1.0, ())]), self.measure.n_means, self.ends
        if ends is not None:
            found[..., 2:] = self._filled(lambda block: ends(block).reshape(-1, K, 2), K, 2)
        return found

    def average_slopes(self, columns: Sequence[int], changes: Changes) -> Array:
        places = self._places(columns)

        def of_part(block: Block) -> Moved:
            return self.measure.total_slopes(self._with(block, changes), places)

        return self.measure.judged(self._summed(self.rows, of_part))

    def each_slope(self, columns: Sequence[int]) -> Array:
        places = self._places(columns)

        def of_block(block: Block) -> Array:
            return self.measure.judged(self.measure.slopes(block, places))

        return self._filled(of_block, len(columns), self.measure.n_means, 4)

    def _places(self, columns: Sequence[int]) -> Codes:
        """Where the parameters of numeric columns stand."""
        shown = self.measure.shown
        positions, first = shown.columns.positions, int(shown.standard.intercept)
        return first + np.concatenate([positions[j] for j in columns])

    def _combined(self, terms: Combination) -> Moved:
        found = [self._mean(changes) * factor for factor, changes in terms]
        return sum(found[1:], start=found[0])

    def _mean(self, changes: Changes) -> Moved:
        return self._mean_with(changes) if changes else self._mean_as_it_is

    @cached_property
    def _mean_as_it_is(self) -> Moved:
        return self._mean_with(())

    def _mean_with(self, changes: Changes) -> Moved:
        def of_part(block: Block) -> Moved:
            return self.measure.total_means(self._with(block, changes))

        return self._summed(self.rows, of_part)

    def _summed(self, rows: MemoryRows, of_part: Callable[[Block], Moved]) -> Moved:
        def of_block(block: Block) -> Total:
            return self.measure.total(block, of_part)

        with one_blas_thread():
            return rows.map_sum(of_block).average

    def _with(self, block: Block, changes: Changes) -> Block:
        return replace(block, X=changed_features(block.X, self.schema, changes))

    def _filled(self, of_block: Callable[[Block], Array], *shape: int) -> Array:
        def of_parts(block: Block) -> Array:
            return np.concatenate([of_block(part) for part in self.measure.parts(block)])

        rows = replace(self.rows, weight=None)
        with one_blas_thread():
            return rows.fill(np.empty((rows.n_rows, *shape)), of_parts)


@dataclass(eq=False)
class FormulaPopulation(MeasuredPopulation):
    """The user's data before a formula is applied to it.

    `rows` are those of the data as it is, and `apply` makes them of data with other entries.
    """

    X: Any
    data: Table
    apply: Callable[[Any], MemoryRows]

    @property
    def table(self) -> Table:  # type: ignore[override]
        return self.data

    def typical(self) -> Population:
        one = pick_rows(self.X, np.zeros(1, dtype=np.intp))
        changes = self._typical_changes()
        X = changed_table(one, self._cut(0, 1), changes)
        features = changed_features(self.data.cut(0, 1), self.schema, changes)
        data = table_of(features, self.schema)
        return FormulaPopulation(self.apply(X), self.measure, self.ends, X, data, self.apply)

    def each(self, terms: Combination) -> Array:
        return np.concatenate([self.measure.judged(part) for part in self._each(terms)])

    def average_slopes(self, columns: Sequence[int], changes: Changes) -> Array:
        found = [self._combined(self.small_steps(j, changes)) for j in columns]
        return np.stack([self.measure.judged(self.measure.derived(one)) for one in found])

    def each_slope(self, columns: Sequence[int]) -> Array:
        def of_column(j: int) -> Array:
            parts = self._each(self.small_steps(j))
            return np.concatenate([self.measure.judged(self.measure.derived(p)) for p in parts])

        return np.stack([of_column(j) for j in columns], axis=1)

    def _mean_with(self, changes: Changes) -> Moved:
        rows = self.apply(changed_table(self.X, self.data, changes)) if changes else self.rows
        return self._summed(rows, self.measure.total_means)

    def _each(self, terms: Combination) -> Iterator[Moved]:
        """A combination of means (n, K) of some rows after the other."""
        for low in range(0, self.data.n_rows, _PART_ROWS):
            high = min(low + _PART_ROWS, self.data.n_rows)
            X, data = pick_rows(self.X, np.arange(low, high)), self._cut(low, high)
            found = [self._means_of(changed_table(X, data, own), low) * c for c, own in terms]
            yield sum(found[1:], start=found[0])

    def _means_of(self, X: Any, start: int) -> Moved:
        rows = self.apply(X)
        block = Block(rows.table.cut(0, rows.n_rows), None, None, start)
        with one_blas_thread():
            found = [self.measure.means(part) for part in self.measure.parts(block)]
        return Moved(
            np.concatenate([one.value for one in found]),
            np.concatenate([one.moved for one in found]),
        )

    def _cut(self, low: int, high: int) -> Table:
        return table_of(self.data.cut(low, high), self.schema)
