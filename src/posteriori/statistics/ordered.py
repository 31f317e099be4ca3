"""The numbers of rows in order: the lowest, some of all, and what lies below each.

Rows have a number in their first column and, where some of all are wanted, their lot in the second.
"""

from dataclasses import dataclass
from typing import cast

import numpy as np

from posteriori.rows.block import Block
from posteriori.statistics.logarithms import no_answer
from posteriori.statistics.statistic import Statistic
from posteriori.typing import Array

MOST = 2**16
"""Numbers that are kept."""


@dataclass(frozen=True, eq=False)
class Lowest(Statistic):
    """The lowest different numbers in order, one more than `MOST` at most, and their weights."""

    values: Array
    weight: Array

    @classmethod
    def of(cls, values: Array, weight: Array) -> "Lowest":
        """Of numbers that may occur several times."""
        different, place = np.unique(values, return_inverse=True)
        total = np.bincount(place, weight, len(different)).astype(np.float64)
        return cls(different[: MOST + 1], total[: MOST + 1])

    def __add__(self, other: "Lowest") -> "Lowest":
        values = np.concatenate([self.values, other.values])
        return Lowest.of(values, np.concatenate([self.weight, other.weight]))

    @property
    def are_all(self) -> bool:
        """Whether there are no other numbers."""
        return len(self.values) <= MOST


@dataclass(frozen=True, eq=False)
class Some(Statistic):
    """The lowest lots in order, `MOST` at most, and the lowest number of a row that has each."""

    lots: Array
    values: Array

    @classmethod
    def of(cls, lots: Array, values: Array) -> "Some":
        """Of rows that may occur several times."""
        order = np.lexsort((values, lots))
        different, first = np.unique(lots[order], return_index=True)
        return cls(different[:MOST], values[order][first[:MOST]])

    def __add__(self, other: "Some") -> "Some":
        lots = np.concatenate([self.lots, other.lots])
        return Some.of(lots, np.concatenate([self.values, other.values]))


@dataclass(frozen=True, eq=False)
class Below(Statistic):
    """The weight of the rows below the first of some numbers, below the second, ..., and of all."""

    weight: Array

    def __add__(self, other: "Below") -> "Below":
        return Below(self.weight + other.weight)


@dataclass(frozen=True)
class Span:
    """Numbers from `low` on and below `high`, or up to infinity."""

    low: float = -np.inf
    high: float = np.inf

    def of(self, block: Block) -> tuple[Array, Array]:
        """Rows of a block (m, columns) that lie within, and their weights."""
        rows = cast(Array, block.X)
        missing = np.isnan(rows[:, 0])
        if missing.any():
            raise no_answer("density", block.row(int(missing.argmax())))
        weight = np.ones(len(rows)) if block.weight is None else block.weight
        if self == Span():
            return rows, weight
        within = (rows[:, 0] >= self.low) & ((rows[:, 0] < self.high) | np.isposinf(self.high))
        return rows[within], weight[within]


@dataclass(frozen=True)
class GatherLowest:
    """The kernel: a block to the `Lowest` of a span."""

    span: Span

    def __call__(self, block: Block) -> Lowest:
        rows, weight = self.span.of(block)
        return Lowest.of(rows[:, 0], weight)


@dataclass(frozen=True)
class GatherSome:
    """The kernel: a block to `Some` of a span."""

    span: Span

    def __call__(self, block: Block) -> Some:
        rows, _ = self.span.of(block)
        return Some.of(rows[:, 1], rows[:, 0])


@dataclass(frozen=True, eq=False)
class GatherBelow:
    """The kernel: a block to what is `Below` numbers in order, within a span."""

    span: Span
    values: Array

    def __call__(self, block: Block) -> Below:
        rows, weight = self.span.of(block)
        cell = np.searchsorted(self.values, rows[:, 0], side="right")
        return Below(np.cumsum(np.bincount(cell, weight, len(self.values) + 1)))
