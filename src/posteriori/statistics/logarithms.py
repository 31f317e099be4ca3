"""Logarithms of probabilities, among them those of zero: minus infinity."""

from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from posteriori.errors import DataError
from posteriori.rows.block import Block
from posteriori.statistics.statistic import Statistic
from posteriori.typing import Array


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
