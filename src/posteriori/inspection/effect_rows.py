"""The rows that effects are averaged over, and what is typical of their columns."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias, cast

import numpy as np

from posteriori.design.columns import Columns
from posteriori.errors import MissingValueError, NotLinearError, ParameterError
from posteriori.inspection.effect_measures import Measure, Moved, Total
from posteriori.rows.block import Block
from posteriori.rows.changes import (
    Change,
    Changes,
    Entries,
    add_to,
    changed_features,
    changed_table,
    entries_of,
    set_to,
)
from posteriori.rows.features import Table, read_features
from posteriori.rows.frames import as_pickable, pick_rows
from posteriori.rows.in_memory import MemoryRows
from posteriori.rows.schema import Schema
from posteriori.rows.threads import one_blas_thread
from posteriori.typing import Array, Codes

_EPSILON = float(np.finfo(np.float64).eps)

_SHARE = 0.02
"""Of the smallest entry, where all are positive: their logarithms must stay what they are."""


@dataclass(eq=False)
class Entry:
    """The entries of a column, and the weights of their rows; missing ones are left out.

    >>> column = Entry(np.array([1.0, 2.0, np.nan, 6.0]), None)
    >>> column.mean, round(column.deviation, 3), column.quantile(0.5)
    (3.0, 2.646, 2.0)
    """

    values: Entries
    weight: Array | None
    name: str = "column"

    @cached_property
    def present(self) -> tuple[Array, Array]:
        """The finite entries, and their weights."""
        values = np.asarray(self.values, dtype=np.float64)
        weight = np.ones(len(values)) if self.weight is None else self.weight
        kept = np.isfinite(values) & (weight > 0)
        if not kept.any():
            raise MissingValueError(
                f"All entries of {self.name} are missing.", "Pass rows that have some."
            )
        return values[kept], weight[kept]

    @property
    def mean(self) -> float:
        values, weight = self.present
        return self._unit * float(np.average(values / self._unit, weights=weight))

    @property
    def deviation(self) -> float:
        """The standard deviation, a weight of two being two rows; zero for one row."""
        values, weight = self.present
        freedom = weight.sum() - 1
        squares = weight @ np.square((values - self.mean) / self._unit)
        return self._unit * float(np.sqrt(squares / freedom)) if freedom > 0 else 0.0

    @property
    def _unit(self) -> float:
        """The size of the largest entry: squares leave the doubles long before entries do."""
        return float(abs(self.present[0]).max()) or 1.0

    def quantile(self, share: float) -> float:
        """The smallest entry up to which there is this share of the weight."""
        values, weight = self.present
        order = np.argsort(values)
        below = np.cumsum(weight[order])
        place = np.searchsorted(below, share * below[-1] * (1 - 1e-12))
        return float(values[order][min(place, len(values) - 1)])

    @property
    def apart(self) -> tuple[float, float]:
        """Two values far from each other, of the same sign as the entries.

        They are the outer tenths; where those are one, values nearer to zero and farther off.
        """
        low, high = self.quantile(0.1), self.quantile(0.9)
        if low < high:
            return low, high
        return low / 16, 2 * low + (1.0 if low >= 0 else -1.0)

    @property
    def most_frequent(self) -> float:
        """The entry with most weight, the smallest of several; a missing level is none."""
        values, weight = self.present
        levels, places = np.unique(values, return_inverse=True)
        share = np.bincount(places, weight * (values >= 0))
        return float(levels[share.argmax()])

    @property
    def small_step(self) -> float:
        """A step h over which differences of the fourth order stand for derivatives.

        In deviations, its fourth power and the rounding of entries divided by h are alike.
        """
        spread = self.deviation or self._unit
        step = spread * (_EPSILON * max(1.0, self._unit / spread)) ** 0.2
        smallest = float(self.present[0].min())
        return min(step, _SHARE * smallest) if 0 < _SHARE * smallest < step else step


def typical_changes(schema: Schema, entries: Sequence[Entry]) -> list[Change]:
    """What makes any row the typical one: means of numbers, most frequent levels and booleans."""
    return [
        set_to(j, entry.mean if column.kind == "numeric" else entry.most_frequent)
        for j, (column, entry) in enumerate(zip(schema.columns, entries, strict=True))
    ]


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
        rows = MemoryRows(Table(X, self.schema), offset=offset)
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
        data = Table(features, self.schema)
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
        return Table(self.data.cut(low, high), self.schema)


_UNLIKE = 0.2
"""How unlike slopes over a small step and over twice that may be, as a share of the larger. Where
a probability is smooth they are alike to many digits; a jump makes them differ by half or more."""

_ROUNDING = 1e-6
"""What single precision may add to a probability, or take from it."""

_MOVED = 1e-3
"""A change of a probability that is one."""


@dataclass(eq=False)
class BlackBoxPopulation(Population):
    """The user's X, and a model with `predict_proba`.

    Slopes are exact where the probabilities are a softmax of linear activations with the weights
    (d, K) of the columns; otherwise they are taken by differences. `around` has the rows that this
    one is typical of.
    """

    X: Any
    table: Table
    model: Any
    weights: Array | None = None
    around: Population | None = None
    has_errors = False

    def typical(self) -> Population:
        one = pick_rows(as_pickable(self.X), np.zeros(1, dtype=np.intp))
        X = changed_table(one, read_features(one, self.schema), self._typical_changes())
        table = read_features(X, self.schema)
        return BlackBoxPopulation(X, table, self.model, self.weights, around=self)

    def average(self, terms: Combination) -> Array:
        return _alone(self._combined(terms).mean(axis=0))

    def each(self, terms: Combination) -> Array:
        return _alone(self._combined(terms))

    def average_means(self, changes: Changes) -> Array:
        return self.average([(1.0, changes)])

    def each_mean(self) -> Array:
        return self.each([(1.0, ())])

    def average_slopes(self, columns: Sequence[int], changes: Changes) -> Array:
        return _alone(self._slopes(columns, changes).mean(axis=0))

    def each_slope(self, columns: Sequence[int]) -> Array:
        return _alone(self._slopes(columns, ()))

    def _slopes(self, columns: Sequence[int], changes: Changes) -> Array:
        """(n, J, K)."""
        if self.weights is None:
            return np.stack([self._slope(j, changes) for j in columns], axis=1)
        p = self._probabilities(changes)
        positions = Columns(self.schema).positions
        weights = self.weights[[positions[j][0] for j in columns]]
        mean = p @ weights.T
        return _shown(p[:, None, :] * (weights - mean[:, :, None]))

    def _slope(self, column: int, changes: Changes) -> Array:
        """By differences (n, K)."""
        steps = (self.around or self).small_steps(column, changes)
        near = np.stack([self._probabilities(own) for _, own in steps])
        if _jumps(near) or self._stands_still(near, column, changes):
            raise ParameterError(
                f"The probabilities of {type(self.model).__name__} change in steps, so that they "
                "have no slopes.",
                "Use comparisons, with a change of your own.",
            )
        # Their factors add up to zero: so do terms that are equal, to the last bit.
        return _shown(np.tensordot([factor for factor, _ in steps], near - near[0], 1))

    def _stands_still(self, near: Array, column: int, changes: Changes) -> bool:
        """Whether most rows that another entry would move do not move at all over small steps."""
        still = (near == near[0]).all(axis=(0, 2))
        if not still.any():
            return False
        entry = (self.around or self).entry(column)
        low, high = (self._probabilities([*changes, set_to(column, x)]) for x in entry.apart)
        moved = (abs(high - low) > _MOVED).any(axis=1)
        return int((still & moved).sum()) > 0.5 * int(moved.sum())

    def _combined(self, terms: Combination) -> Array:
        found = (factor * _shown(self._probabilities(changes)) for factor, changes in terms)
        return cast(Array, sum(found))

    def _probabilities(self, changes: Changes) -> Array:
        X = changed_table(self.X, self.table, changes) if changes else self.X
        return np.asarray(self.model.predict_proba(X), dtype=np.float64)


def softmax_weights(model: Any) -> Array | None:
    """Weights (d, K) whose softmax the probabilities are; None where they are not known to be."""
    if not hasattr(type(model), "_linear_function"):
        return None
    try:
        weights = model._linear_function().weights
    except NotLinearError:
        return None
    return cast(Array, weights) if weights.shape[1] == len(model.classes_) else None


def _jumps(near: Array) -> bool:
    """Whether slopes over a step are unlike those over twice that, row by row.

    `near` (4, n, K) has the probabilities a step up and down, and two steps up and down.
    """
    one, two = (near[0] - near[1]) / 2, (near[2] - near[3]) / 4
    unlike = float(abs(one - two).mean())
    return unlike > max(_ROUNDING, _UNLIKE * float(np.maximum(abs(one), abs(two)).mean()))


def _shown(values: Array) -> Array:
    """Of two classes the second alone (..., K)."""
    return values[..., 1:] if values.shape[-1] == 2 else values


def _alone(values: Array) -> Array:
    """Estimates without errors (..., 4)."""
    return np.stack([values, *[np.zeros_like(values)] * 3], axis=-1)
