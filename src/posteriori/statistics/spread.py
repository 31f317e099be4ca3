"""Weight, mean and sum of squares of each design column: where it lies, and how wide it is."""

from dataclasses import dataclass

import numpy as np

from posteriori.design.columns import Columns
from posteriori.rows.block import Block
from posteriori.rows.finite import check_finite
from posteriori.statistics.statistic import Statistic, in_same_units
from posteriori.typing import Array


@dataclass(frozen=True, eq=False)
class Spread(Statistic):
    """Weight n, mean (m,) and Σ(φ - mean)² (m,), in multiples of `unit` (m,)."""

    weight: float
    mean: Array
    squares: Array
    unit: Array

    def __add__(self, other: "Spread") -> "Spread":
        self, other = in_same_units(self, other)
        total = self.weight + other.weight
        share = other.weight / total if total else 0.0
        step = other.mean - self.mean
        with np.errstate(over="ignore", invalid="ignore"):
            squares = self.squares + other.squares + self.weight * share * step**2
        return Spread(total, self.mean + share * step, squares, self.unit)

    def in_units(self, unit: Array) -> "Spread":
        """The same statistic in other units (exact: units are powers of two)."""
        ratio = self.unit / unit
        return Spread(self.weight, self.mean * ratio, self.squares * ratio**2, unit)

    @property
    def deviation(self) -> Array:
        """Standard deviation of each column, in its unit."""
        return np.sqrt(self.squares / self.weight)


@dataclass(frozen=True, eq=False)
class GatherSpread:
    """The kernel: a block of rows to its `Spread`.

    Where columns are known to lie `near_zero`, within a few dozen deviations, their squares are
    summed as they are and nothing is lost; otherwise each block is centred first. With `means_only`
    the squares are zeros.
    """

    columns: Columns
    unit: Array | None = None
    near_zero: bool = False
    means_only: bool = False

    def __call__(self, block: Block) -> Spread:
        n = block.X.shape[0]
        weight = np.ones(n) if block.weight is None else block.weight
        total = float(weight.sum())
        over = 1.0 / total if total else 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            design = self.columns.design(block)
            if self.unit is not None:
                design = design.scaled(self.unit)
            mean = design.transpose_times(weight) * over
            centred, drift = design, mean
            if not self.near_zero:
                centred = design.shifted(mean)
                drift = centred.transpose_times(weight) * over
                mean = mean + drift
            squares = np.zeros(len(mean))
            if not self.means_only:
                squares = np.maximum(centred.squares(weight) - total * drift**2, 0.0)
        if not np.isfinite(mean).all():
            check_finite(block, self.columns.schema)
        unit = np.ones(len(mean)) if self.unit is None else self.unit
        return Spread(total, mean, squares, unit)
