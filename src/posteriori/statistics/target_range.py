"""The targets at a glance: the largest, the first that a family cannot have, the farthest."""

from dataclasses import dataclass

import numpy as np

from posteriori.likelihood.glm import TargetFamily
from posteriori.likelihood.loss import Loss
from posteriori.rows.block import Block
from posteriori.statistics.fit_sums import Activation
from posteriori.statistics.local_quadratic import Target
from posteriori.statistics.statistic import Statistic


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
class Farthest(Statistic):
    """The largest distance of a target from its mean."""

    distance: float

    def __add__(self, other: "Farthest") -> "Farthest":
        return Farthest(max(self.distance, other.distance))


@dataclass(frozen=True, eq=False)
class GatherFarthest:
    """The kernel: a block to its `Farthest`."""

    loss: Loss
    target: Target
    activation: Activation

    def __call__(self, block: Block) -> Farthest:
        with np.errstate(over="ignore", invalid="ignore"):
            away = abs(self.target(block) - self.loss.mean(self.activation(block)))
        return Farthest(float(away.max(initial=0.0)))
