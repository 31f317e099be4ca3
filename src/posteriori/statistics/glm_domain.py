"""Ranges of targets and offsets, and the first row that fulfils a condition."""

from collections.abc import Callable
from typing import cast

import numpy as np
from numpy.typing import NDArray

from posteriori.likelihood.glm_families import TargetFamily
from posteriori.rows.block import Block, Rows
from posteriori.statistics.statistic import Maximum
from posteriori.typing import Array


def offset_range(rows: Rows) -> tuple[float, float]:
    """The smallest and the largest offset; zero where rows have none."""

    def of_block(block: Block) -> Maximum:
        offset = np.zeros(block.X.shape[0]) if block.offset is None else block.offset
        return Maximum(np.array([(-offset).max(initial=-np.inf), offset.max(initial=-np.inf)]))

    low, high = rows.map_sum(of_block).value
    return -float(low), float(high)


def target_range(rows: Rows, family: TargetFamily) -> tuple[float, float]:
    """The largest size of a target, and the first row with one that the family cannot have.

    The row is infinite where there is none.
    """

    def of_block(block: Block) -> Maximum:
        t = cast(Array, block.y)
        return Maximum(np.array([abs(t).max(initial=0.0), -_first(block, family.outside(t))]))

    largest, row = rows.map_sum(of_block).value
    return float(largest), -float(row)


def first_row(rows: Rows, condition: Callable[[Block], NDArray[np.bool_]]) -> float:
    """The number of the first row that fulfils a condition; infinite if there is none."""
    return -float(rows.map_sum(lambda block: Maximum(-_first(block, condition(block)))).value)


def _first(block: Block, chosen: NDArray[np.bool_]) -> float:
    return float(block.numbers[chosen].min()) if chosen.any() else np.inf
