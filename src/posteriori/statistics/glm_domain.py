"""Targets outside the domain of a family, the range of offsets, and rows that fulfil a condition.

Conventions: one activation a = φᵀθ + offset a row.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from posteriori.likelihood.glm_families import TargetFamily
from posteriori.rows.block import Block, Rows
from posteriori.statistics.local_quadratic import Target
from posteriori.statistics.statistic import LARGEST, SMALLEST, Maximum, Statistic
from posteriori.typing import Array


def _offset(block: Block) -> Array:
    return np.zeros(block.X.shape[0]) if block.offset is None else block.offset


def offset_range(rows: Rows) -> tuple[float, float]:
    """The smallest and the largest offset; zero where rows have none."""

    def of_block(block: Block) -> Maximum:
        offset = _offset(block)
        return Maximum(np.array([(-offset).max(initial=-np.inf), offset.max(initial=-np.inf)]))

    low, high = rows.map_sum(of_block).value
    return -float(low), float(high)


@dataclass(frozen=True, eq=False)
class TargetRange(Statistic):
    """The largest size of a target, and row and value of the first that the family cannot have.

    Its row is infinite where there is none.
    """

    largest: float = field(metadata=LARGEST)
    bad: tuple[float, float] = field(metadata={"rule": min})


@dataclass(frozen=True, eq=False)
class GatherTargetRange:
    """The kernel: a block to its `TargetRange`."""

    family: TargetFamily
    target: Target

    def __call__(self, block: Block) -> TargetRange:
        t = self.target(block)
        outside = np.flatnonzero(self.family.outside(t))
        bad = (block.row(int(outside[0])), float(t[outside[0]])) if len(outside) else (np.inf, 0.0)
        return TargetRange(float(abs(t).max(initial=0.0)), bad)


@dataclass(frozen=True, eq=False)
class RowCount(Statistic):
    """How many rows fulfil a condition, and the number of the first (infinite if there is none)."""

    n_rows: int
    first: float = field(metadata=SMALLEST)

    def __str__(self) -> str:
        more = f" (and {self.n_rows - 1} more)" if self.n_rows > 1 else ""
        return f"row {self.first:.0f}{more}"


@dataclass(frozen=True, eq=False)
class CountRows:
    """The kernel: a block to the `RowCount` of rows that fulfil a condition."""

    condition: Callable[[Block], NDArray[np.bool_]]

    def __call__(self, block: Block) -> RowCount:
        found = np.flatnonzero(self.condition(block))
        return RowCount(len(found), float(block.row(int(found[0]))) if len(found) else np.inf)
