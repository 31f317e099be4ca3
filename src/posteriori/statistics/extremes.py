"""The largest absolute value of each column, for columns whose squares leave the doubles."""

from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np

from posteriori.design.columns import Columns
from posteriori.rows.block import Block, split_sparse
from posteriori.statistics.statistic import Statistic
from posteriori.typing import Array


@dataclass(frozen=True, eq=False)
class Extremes(Statistic):
    """Largest |x| of each column; the sum of two is the larger of both."""

    largest: Array

    def __add__(self, other: "Extremes") -> "Extremes":
        return Extremes(np.maximum(self.largest, other.largest))

    def unit(self) -> Array:
        """For each column the power of two just below its largest value (one for all zeros)."""
        # A power beyond 2**1000 would have no reciprocal that is a normal number.
        power = np.clip(np.frexp(self.largest)[1] - 1, -1000, 1000)
        return np.where(self.largest > 0, np.ldexp(1.0, power), 1.0)


@dataclass(frozen=True, eq=False)
class GatherExtremes:
    """The kernel: a block of rows to its `Extremes`; missing entries are passed over."""

    columns: Columns

    def __call__(self, block: Block) -> Extremes:
        return reduce(add, map(self._extremes, split_sparse(block)))

    def _extremes(self, block: Block) -> Extremes:
        X = self.columns.design(block).array()
        return Extremes(np.fmax.reduce(abs(X), axis=0, initial=0.0))
