"""The mean target: where a fit starts from."""

from dataclasses import dataclass

import numpy as np

from posteriori.rows.block import Block
from posteriori.statistics.local_quadratic import Target
from posteriori.statistics.statistic import Statistic
from posteriori.typing import Array


@dataclass(frozen=True, eq=False)
class TargetMean(Statistic):
    """Σw, Σwt (c,) and the same of the offsets."""

    weight: float
    total: Array
    offset: Array

    def __add__(self, other: "TargetMean") -> "TargetMean":
        return TargetMean(
            self.weight + other.weight, self.total + other.total, self.offset + other.offset
        )

    @property
    def mean(self) -> Array:
        """The mean target (c,)."""
        return self.total / self.weight

    @property
    def mean_offset(self) -> Array:
        """The mean offset (c,)."""
        return self.offset / self.weight


@dataclass(frozen=True, eq=False)
class GatherTargetMean:
    """The kernel: a block of rows to its `TargetMean`."""

    target: Target

    def __call__(self, block: Block) -> TargetMean:
        t = self.target(block)
        weight = np.ones(len(t)) if block.weight is None else block.weight
        offset = np.zeros(t.shape[1:]) if block.offset is None else weight @ block.offset
        return TargetMean(float(weight.sum()), np.atleast_1d(weight @ t), np.atleast_1d(offset))
