"""Sums for cross-fitting, calibration and novelty: folds, temperature, order statistics."""

from dataclasses import dataclass, field
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from posteriori.errors import DataError
from posteriori.rows.block import Block, row_hash
from posteriori.statistics.statistic import Statistic, weights_of
from posteriori.typing import Array, Codes

_GONE = -800.0
"""Below this the exponential is zero."""


@dataclass(frozen=True)
class RowFolds:
    """Folds of a source: the hash of the row number modulo the number of folds."""

    n_folds: int
    seed: int = 0

    def of(self, numbers: Codes) -> Codes:
        """The fold (n,) of each row."""
        return (row_hash(numbers, self.seed) % np.uint64(self.n_folds)).astype(np.intp)


@dataclass(frozen=True, eq=False)
class FoldCounts(Statistic):
    """The weight and the number (K, folds) of the rows of each class in each fold."""

    weight: Array
    count: Array


@dataclass(frozen=True)
class CountFolds:
    """The kernel: a block to its `FoldCounts`."""

    folds: RowFolds
    n_classes: int

    def __call__(self, block: Block) -> FoldCounts:
        shape = self.n_classes, self.folds.n_folds
        weight, count = np.zeros(shape), np.zeros(shape)
        cell = cast(Codes, block.y), self.folds.of(block.numbers)
        np.add.at(weight, cell, weights_of(block))
        np.add.at(count, cell, 1.0)
        return FoldCounts(weight, count)


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
    farthest: float = field(metadata={"rule": min})


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
        activation, codes = cast(Array, block.X), cast(Codes, block.y)
        weight = weights_of(block) / self.weight
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
                float(own.min(initial=0.0)),
            )


@dataclass(frozen=True, eq=False)
class Logarithms(Statistic):
    """The lowest that is finite, whether any is not, and the weight of all rows."""

    lowest: float = field(metadata={"rule": min})
    any_zero: bool = field(metadata={"rule": max})
    weight: float


@dataclass(frozen=True)
class GatherLogarithms:
    """The kernel: a block of logarithms (n, K) to `Logarithms`; an error for a row without any."""

    def __call__(self, block: Block) -> Logarithms:
        logs = cast(Array, block.X)
        bad = has_none(logs)
        if bad.any():
            raise no_prediction("probabilities", block.row(int(bad.argmax())))
        zero = np.isneginf(logs)
        lowest = logs.min(initial=np.inf, where=~zero)
        return Logarithms(float(lowest), bool(zero.any()), float(weights_of(block).sum()))


def has_none(logs: Array) -> NDArray[np.bool_]:
    """The rows that have no probabilities: some are NaN, or all are zero."""
    return np.asarray(np.isnan(logs).any(axis=1) | np.isneginf(logs).all(axis=1))


def no_prediction(what: str, row: int) -> DataError:
    """A row for which an estimator gives no probabilities, or no density."""
    return DataError(
        f"The estimator gives no {what} for row {row}.",
        "Find out what is special about that row, or use another estimator.",
    )


MOST = 2**16
"""Different numbers that are kept."""


@dataclass(frozen=True, eq=False)
class Lowest(Statistic):
    """The lowest different numbers in order, one more than `MOST` at most, and their weights.

    `n_rows` is the number of all rows.
    """

    values: Array
    weight: Array
    n_rows: int

    @classmethod
    def of(cls, values: Array, weight: Array, n_rows: int) -> "Lowest":
        """Of numbers that may occur several times."""
        different, place = np.unique(values, return_inverse=True)
        total = np.bincount(place, weight, len(different)).astype(np.float64)
        return cls(different[: MOST + 1], total[: MOST + 1], n_rows)

    def __add__(self, other: "Lowest") -> "Lowest":
        values = np.concatenate([self.values, other.values])
        weight = np.concatenate([self.weight, other.weight])
        return Lowest.of(values, weight, self.n_rows + other.n_rows)

    @property
    def are_all(self) -> bool:
        """Whether there are no other numbers."""
        return len(self.values) <= MOST


@dataclass(frozen=True)
class GatherLowest:
    """The kernel: rows of one number each to `Lowest`; an error for a row without a number."""

    def __call__(self, block: Block) -> Lowest:
        values = cast(Array, block.X)[:, 0]
        missing = np.isnan(values)
        if missing.any():
            raise no_prediction("density", block.row(int(missing.argmax())))
        return Lowest.of(values, weights_of(block), len(values))


@dataclass(frozen=True, eq=False)
class Below(Statistic):
    """The weight of the rows below the first of some numbers, below the second, ..., and of all."""

    weight: Array


@dataclass(frozen=True, eq=False)
class GatherBelow:
    """The kernel: rows of one number each to the weight `Below` some numbers in order."""

    values: Array

    def __call__(self, block: Block) -> Below:
        cell = np.searchsorted(self.values, cast(Array, block.X)[:, 0], side="right")
        return Below(np.cumsum(np.bincount(cell, weights_of(block), len(self.values) + 1)))
