"""The rows that are closest to an end of their domain, or farthest beyond it."""

from dataclasses import dataclass

import numpy as np

from posteriori.design.columns import Columns
from posteriori.likelihood.domain import Domain
from posteriori.rows.block import Block, take_block
from posteriori.statistics.local_quadratic import Target
from posteriori.statistics.statistic import Statistic
from posteriori.typing import Array


@dataclass(frozen=True, eq=False)
class Tightest(Statistic):
    """At most so many rows φ (k, m), the ends low and high (k,) of φᵀθ, and the least distance to
    one of them (k,): negative outside. The closest row comes first."""

    most: int
    rows: Array
    low: Array
    high: Array
    room: Array

    def __add__(self, other: "Tightest") -> "Tightest":
        room = np.concatenate([self.room, other.room])
        kept = np.argsort(room, kind="stable")[: self.most]
        return Tightest(
            self.most,
            np.concatenate([self.rows, other.rows])[kept],
            np.concatenate([self.low, other.low])[kept],
            np.concatenate([self.high, other.high])[kept],
            room[kept],
        )


@dataclass(frozen=True, eq=False)
class GatherTightest:
    """The kernel: a block to the `Tightest` of its rows at coefficients θ (m,)."""

    columns: Columns
    domain: Domain
    target: Target
    theta: Array
    most: int

    def __call__(self, block: Block) -> Tightest:
        low, high = self.domain.ends(self.target(block))
        if block.offset is not None:
            low, high = low - block.offset, high - block.offset
        found = self.columns.design(block).times(self.theta)
        room = np.minimum(found - low, high - found)
        kept = np.argsort(room, kind="stable")[: self.most]
        rows = self.columns.design(take_block(block, kept)).times(np.eye(len(self.theta)))
        return Tightest(self.most, rows, low[kept], high[kept], room[kept])
