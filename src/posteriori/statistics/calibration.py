"""Sums for calibration and novelty: temperature, Platt scaling, order statistics."""

from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from posteriori.errors import DataError
from posteriori.rows.block import Block
from posteriori.statistics.statistic import Statistic
from posteriori.typing import Array, Codes

_GONE = -800.0

"""Below this the exponential is zero."""


@dataclass(frozen=True, eq=False)
class Slope(Statistic):
    """Minus the derivative of the log likelihood L: -L'(0), -b L'(b), and -b² L''(b) >= 0.

    `size` is the mean distance of activations from the largest. `farthest` is the lowest activation
    of a class that occurred, less the largest of its row: zero if all rows are classified right.
    """

    at_zero: float
    gradient: float
    curvature: float
    size: float
    farthest: float

    def __add__(self, other: "Slope") -> "Slope":
        return Slope(
            self.at_zero + other.at_zero,
            self.gradient + other.gradient,
            self.curvature + other.curvature,
            self.size + other.size,
            min(self.farthest, other.farthest),
        )


@dataclass(frozen=True)
class GatherSlope:
    """The kernel: a block to the `Slope` at b > 0.

    With z = b (a - max a) and p = softmax(z), t being the class that occurred, -b L' is the sum of
    Σ_k p_k z_k - z_t, and -b² L'' that of the variance of z under p, each times the row's weight
    as a share of `weight`.
    """

    b: float
    weight: float = 1.0

    def __call__(self, block: Block) -> Slope:
        if not block.X.shape[0]:
            return Slope(0.0, 0.0, 0.0, 0.0, 0.0)
        activation, codes = cast(Array, block.X), cast(Codes, block.y)
        weight = (np.ones(len(codes)) if block.weight is None else block.weight) / self.weight
        below = activation - activation.max(axis=1, keepdims=True)
        own = np.take_along_axis(below, codes[:, None], axis=1)[:, 0]
        with np.errstate(over="ignore"):
            z = np.maximum(self.b * below, _GONE)
            p = softmax(z, axis=1)
            mean = (p * z).sum(axis=1)
            variance = (p * (z - mean[:, None]) ** 2).sum(axis=1)
            distance = -below.mean(axis=1)
            return Slope(
                float(weight @ (-distance - own)),
                float(weight @ (mean - self.b * own)),
                float(weight @ variance),
                float(weight @ distance),
                float(own.min()),
            )


@dataclass(frozen=True, eq=False)
class Logarithms(Statistic):
    """The lowest that is finite, whether any is not, and the weight of all rows."""

    lowest: float
    any_zero: bool
    weight: float

    def __add__(self, other: "Logarithms") -> "Logarithms":
        return Logarithms(
            min(self.lowest, other.lowest),
            self.any_zero or other.any_zero,
            self.weight + other.weight,
        )


@dataclass(frozen=True)
class GatherLogarithms:
    """The kernel: a block of logarithms (n, K) to `Logarithms`; an error for a row without any."""

    def __call__(self, block: Block) -> Logarithms:
        logs = cast(Array, block.X)
        bad = has_none(logs)
        if bad.any():
            raise no_answer("probabilities", block.row(int(bad.argmax())))
        zero = np.isneginf(logs)
        weight = len(logs) if block.weight is None else block.weight.sum()
        lowest = logs.min(initial=np.inf, where=~zero)
        return Logarithms(float(lowest), bool(zero.any()), float(weight))


def has_none(logs: Array) -> NDArray[np.bool_]:
    """The rows that have no probabilities: some are NaN, or all are zero."""
    return np.asarray(np.isnan(logs).any(axis=1) | np.isneginf(logs).all(axis=1))


def no_answer(what: str, row: int) -> DataError:
    """A row for which an estimator gives no probabilities, or no density."""
    return DataError(
        f"The estimator gives no {what} for row {row}.",
        "Find out what is special about that row, or use another estimator.",
    )


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
