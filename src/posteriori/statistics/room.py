"""Activations and the ends of their domain: how far rows may move, and which lie at an end."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from posteriori.design.columns import Columns
from posteriori.likelihood.domain import Domain
from posteriori.rows.block import Block
from posteriori.statistics.fit_sums import Activation
from posteriori.statistics.local_quadratic import Target
from posteriori.statistics.statistic import Statistic
from posteriori.typing import Array


@dataclass(frozen=True, eq=False)
class Room(Statistic):
    """The lengths s, from `low` to `high`, at which all rows are inside, and who sets the ends."""

    low: float
    high: float
    low_row: int
    high_row: int

    def __add__(self, other: "Room") -> "Room":
        below = self if self.low >= other.low else other
        above = self if self.high <= other.high else other
        return Room(below.low, above.high, below.low_row, above.high_row)

    def has(self, s: float) -> bool:
        """Whether s lies between the ends."""
        return self.low < s < self.high


@dataclass(frozen=True, eq=False)
class GatherRoom:
    """The kernel: a block to the `Room` of activations s φᵀθ + offset, all φᵀθ above zero.

    `theta` (m,) is in the user's columns; None stands for the intercept, φᵀθ = 1.
    """

    columns: Columns
    domain: Domain
    target: Target
    theta: Array | None = None

    def __call__(self, block: Block) -> Room:
        if not block.X.shape[0]:
            return Room(-np.inf, np.inf, 0, 0)
        low, high = self.domain.ends(self.target(block))
        if block.offset is not None:
            low, high = low - block.offset, high - block.offset
        if self.theta is not None:
            along = self.columns.design(block).times(self.theta)
            low, high = low / along, high / along
        i, j = int(np.argmax(low)), int(np.argmin(high))
        return Room(float(low[i]), float(high[j]), block.row(i), block.row(j))


@dataclass(frozen=True, eq=False)
class Edge(Statistic):
    """How many rows lie at an end, and the number of the first of them."""

    n_rows: int
    first: int

    def __add__(self, other: "Edge") -> "Edge":
        known = [edge.first for edge in (self, other) if edge.n_rows]
        return Edge(self.n_rows + other.n_rows, min(known, default=0))


@dataclass(frozen=True, eq=False)
class GatherEdge:
    """The kernel: a block to the `Edge` of its rows within `distance` of one of the `ends`."""

    activation: Activation
    ends: Sequence[float]
    distance: float

    def __call__(self, block: Block) -> Edge:
        away = abs(self.activation(block)[:, None] - np.array(self.ends))
        near = np.flatnonzero(away.min(axis=1) < self.distance)
        return Edge(len(near), block.row(int(near[0])) if len(near) else 0)
