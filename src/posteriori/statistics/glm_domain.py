"""Ranges of targets and activations, for links that do not take every activation.

Conventions: one activation a = φᵀθ + offset a row, between two ends that may depend on the target.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.special import logsumexp

from posteriori.design.columns import Columns
from posteriori.likelihood.domain import Domain
from posteriori.likelihood.glm import TargetFamily
from posteriori.likelihood.loss import Loss
from posteriori.rows.block import Block, take_block
from posteriori.statistics.goodness_of_fit import Activation
from posteriori.statistics.local_quadratic import Target
from posteriori.statistics.statistic import LARGEST, SMALLEST, Maximum, Statistic, weights_of
from posteriori.typing import Array

_NO_ROW = np.iinfo(np.intp).max
"""Stands for the number of a row where there is none."""


@dataclass(frozen=True, eq=False)
class LogLevel(Statistic):
    """ln Σ wt e^{(1-k)o}, ln Σ w e^{(2-k)o}, and between which two numbers the offsets o lie."""

    target: float = field(metadata={"rule": np.logaddexp})
    mean: float = field(metadata={"rule": np.logaddexp})
    low: float = field(metadata=SMALLEST)
    high: float = field(metadata=LARGEST)

    @property
    def level(self) -> float:
        """The intercept; minus infinity where all targets are zero."""
        return self.target - self.mean

    @property
    def span(self) -> float:
        """By how much the offsets differ."""
        return self.high - self.low


@dataclass(frozen=True, eq=False)
class GatherLogLevel:
    """The kernel: a block of rows to its `LogLevel`.

    `power` is k of the variance V(μ) = μᵏ. With μ = e^{b+o} the derivative of the loss in b is
    Σ w(μ - t)μ^{1-k}, and zero where eᵇ Σ w e^{(2-k)o} = Σ wt e^{(1-k)o}.
    """

    target: Target
    power: float

    def __call__(self, block: Block) -> LogLevel:
        t, offset = self.target(block), block.offset
        weight = weights_of(block)
        with np.errstate(divide="ignore", over="ignore"):
            if offset is None:
                return LogLevel(float(np.log(weight @ t)), float(np.log(weight.sum())), 0.0, 0.0)
            log_weight, log_target = np.log(weight), np.log(t)
        return LogLevel(
            float(logsumexp(log_weight + log_target + (1 - self.power) * offset)),
            float(logsumexp(log_weight + (2 - self.power) * offset)),
            float(offset.min(initial=np.inf)),
            float(offset.max(initial=-np.inf)),
        )


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
        low, high = _ends(self.domain, self.target, block)
        if self.theta is not None:
            along = self.columns.design(block).times(self.theta)
            low, high = low / along, high / along
        i, j = int(np.argmax(low)), int(np.argmin(high))
        return Room(float(low[i]), float(high[j]), block.row(i), block.row(j))


def _ends(domain: Domain, target: Target, block: Block) -> tuple[Array, Array]:
    """The ends of φᵀθ in each row."""
    low, high = domain.ends(target(block))
    offset = 0.0 if block.offset is None else block.offset
    return low - offset, high - offset


@dataclass(frozen=True, eq=False)
class Edge(Statistic):
    """How many rows lie at an end, and the number of the first of them."""

    n_rows: int
    first: int = field(metadata=SMALLEST)


@dataclass(frozen=True, eq=False)
class GatherEdge:
    """The kernel: a block to the `Edge` of its rows within `distance` of one of the `ends`."""

    activation: Activation
    ends: Sequence[float]
    distance: float

    def __call__(self, block: Block) -> Edge:
        away = abs(self.activation(block)[:, None] - np.array(self.ends))
        near = np.flatnonzero(away.min(axis=1) < self.distance)
        return Edge(len(near), block.row(int(near[0])) if len(near) else _NO_ROW)


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
        low, high = _ends(self.domain, self.target, block)
        found = self.columns.design(block).times(self.theta)
        room = np.minimum(found - low, high - found)
        kept = np.argsort(room, kind="stable")[: self.most]
        rows = self.columns.design(take_block(block, kept)).times(np.eye(len(self.theta)))
        return Tightest(self.most, rows, low[kept], high[kept], room[kept])


@dataclass(frozen=True, eq=False)
class TargetRange(Statistic):
    """The largest target; and row and value of the first one outside, row -1 if there is none."""

    largest: float
    bad_row: int = -1
    bad_value: float = 0.0

    def __add__(self, other: "TargetRange") -> "TargetRange":
        found = [part for part in (self, other) if part.bad_row >= 0]
        first = min(found, key=lambda part: part.bad_row, default=self)
        return TargetRange(max(self.largest, other.largest), first.bad_row, first.bad_value)


@dataclass(frozen=True, eq=False)
class GatherTargetRange:
    """The kernel: a block to its `TargetRange`."""

    family: TargetFamily
    target: Target

    def __call__(self, block: Block) -> TargetRange:
        t = self.target(block)
        largest = float(t.max(initial=-np.inf))
        bad = np.flatnonzero(self.family.outside(t))
        if not len(bad):
            return TargetRange(largest)
        return TargetRange(largest, block.row(int(bad[0])), float(t[bad[0]]))


@dataclass(frozen=True, eq=False)
class GatherLargestResidual:
    """The kernel: the largest distance of a target from its mean."""

    loss: Loss
    target: Target
    activation: Activation

    def __call__(self, block: Block) -> Maximum:
        with np.errstate(over="ignore", invalid="ignore"):
            away = abs(self.target(block) - self.loss.mean(self.activation(block)))
        return Maximum(float(away.max(initial=0.0)))
