"""How rare a number is among those of ordinary rows: p-values, and the threshold of a share."""

from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from posteriori.rows.rows import Rows
from posteriori.statistics.calibration import GatherBelow, GatherLowest
from posteriori.statistics.row_sample import sample_rows
from posteriori.typing import Array

_ROUNDING = 1e-12
"""Numbers that differ by less, beside themselves or one, are equal."""


@dataclass(frozen=True, eq=False)
class Rarity:
    """Numbers of ordinary rows in order, and the weight (m + 1,) below each and of all.

    A number is rare if it is below `threshold`: the largest level for which (1 + weight of rows
    below)/(1 + weight of all) is at most the share asked for; minus infinity if there is none.
    Where the rows have more than 65,536 different numbers, the levels are so many of the lowest,
    and a sample of about as many of all; the weights below them are those of all rows.
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


def rarity(rows: Rows, share: float) -> Rarity:
    """What is rare, by the numbers in the one column of rows.

    The levels are all numbers of the rows if these are few, else the lowest of them and those of a
    random sample: then it takes three passes.
    """
    lowest = rows.map_sum(GatherLowest())
    if lowest.are_all:
        levels, below = lowest.values, np.concatenate([[0.0], np.cumsum(lowest.weight)])
    else:
        sample, _ = sample_rows(rows, lowest.n_rows / len(lowest.values))
        levels = np.union1d(lowest.values, cast(Array, sample.table.cut(0, sample.n_rows)))
        below = rows.map_sum(GatherBelow(levels)).weight
    rare = np.flatnonzero((1 + below[:-1]) / (1 + below[-1]) <= share)
    return Rarity(levels, below, float(levels[rare[-1]]) if len(rare) else -np.inf)
