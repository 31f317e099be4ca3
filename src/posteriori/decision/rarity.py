"""How rare a number is among those of ordinary rows: p-values, and the end of a share of them."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from posteriori.rows.rows import Rows
from posteriori.statistics.calibration import (
    GatherBelow,
    GatherLowest,
    GatherSome,
    Lowest,
    Span,
)
from posteriori.typing import Array

_ROUNDING = 1e-12
"""Numbers that differ by less, beside themselves or one, are equal."""


@dataclass(frozen=True, eq=False)
class Rarity:
    """Numbers of ordinary rows in order, and the weight (m + 1,) below each and of all.

    A number is rare if it is below `threshold`: the largest of a row for which (1 + weight of rows
    below)/(1 + weight of all) is at most the share asked for; minus infinity if there is none.
    Where the rows have more than 65,536 different numbers, the levels are so many of the lowest, so
    many of all, and the threshold; the weights below them are those of all rows.
    """

    levels: Array
    below: Array
    threshold: float

    def p_value(self, numbers: Array) -> Array:
        """(1 + weight of ordinary rows that are no higher)/(1 + weight of all), of each number.

        Between two levels it is that of the upper one, which is never too small.
        """
        no_higher = self.below[np.searchsorted(self.levels, _raised(numbers), side="right")]
        return (1 + no_higher) / (1 + self.total)

    def is_rare(self, numbers: Array) -> NDArray[np.bool_]:
        """Whether each number has a p-value of at most the share asked for."""
        return np.asarray(_raised(numbers) < self.threshold)

    @property
    def total(self) -> float:
        return float(self.below[-1])


def _raised(numbers: Array) -> Array:
    """A little higher, so that the last bits of numbers that are equal do not count."""
    with np.errstate(invalid="ignore"):
        raised = numbers + _ROUNDING * np.maximum(abs(numbers), 1.0)
    return np.where(np.isfinite(numbers), raised, numbers)


def rarity(rows: Rows, with_lots: Callable[[], Rows], share: float) -> Rarity:
    """What is rare, by the numbers in the one column of rows: a pass if these are few.

    `with_lots` gives the same rows with their lots in a second column, where these are needed.
    """
    search = _Search(rows, with_lots)
    lowest, levels, below = search.levels(Span())

    def may_lie_below(weight: Array) -> NDArray[np.bool_]:
        return (1 + weight) / (1 + below[-1]) <= share

    end, before = search.last(Span(), may_lie_below, 0.0, (lowest, levels, below))
    place = int(np.searchsorted(levels, end))
    if np.isfinite(end) and (place == len(levels) or levels[place] != end):
        levels, below = np.insert(levels, place, end), np.insert(below, place, before)
    return Rarity(levels, below, end)


_Levels = tuple[Lowest, Array, Array]
"""The lowest numbers of a span; numbers of it in order, and the weights below each and of all."""


@dataclass(frozen=True, eq=False)
class _Search:
    """Numbers of rows, of which not all can be kept."""

    rows: Rows
    with_lots: Callable[[], Rows]

    def levels(self, span: Span) -> _Levels:
        lowest = self.rows.map_sum(GatherLowest(span))
        if lowest.are_all:
            return lowest, lowest.values, np.concatenate([[0.0], np.cumsum(lowest.weight)])
        some = self.with_lots().map_sum(GatherSome(span))
        levels = np.union1d(lowest.values, some.values)
        return lowest, levels, self.rows.map_sum(GatherBelow(span, levels)).weight

    def last(
        self,
        span: Span,
        may_lie_below: Callable[[Array], NDArray[np.bool_]],
        before: float,
        found: _Levels,
    ) -> tuple[float, float]:
        """The largest number below which what lies there may lie, and how much that is.

        So much lies `before` the span.
        """
        lowest, levels, below = found
        allowed = np.flatnonzero(may_lie_below(before + below[:-1]))
        if not len(allowed):
            return -np.inf, 0.0
        i = int(allowed[-1])
        if lowest.are_all or i + 1 < len(lowest.values):
            return float(levels[i]), float(before + below[i])
        inner = Span(levels[i], levels[i + 1] if i + 1 < len(levels) else span.high)
        return self.last(inner, may_lie_below, before + below[i], self.levels(inner))
