"""How the log likelihood of softmax(b a) changes with b, one number for all rows.

Conventions: rows have one column a class, their activations a, which are finite.
"""

from dataclasses import dataclass
from typing import cast

import numpy as np
from scipy.special import softmax

from posteriori.rows.block import Block
from posteriori.statistics.statistic import Statistic
from posteriori.typing import Array, Codes

_GONE = -800.0
"""Below this the exponential is zero."""


@dataclass(frozen=True, eq=False)
class Slope(Statistic):
    """Minus the derivative of the log likelihood L: -L'(0), -b L'(b), and -b² L''(b) >= 0.

    `size` is the mean distance of activations from the largest. `farthest` is the lowest activation
    of a class that occurred, less the largest of its row: zero if all rows are classified right.
    """

    at_zero: float
    gradient: float
    curvature: float
    size: float
    farthest: float

    def __add__(self, other: "Slope") -> "Slope":
        return Slope(
            self.at_zero + other.at_zero,
            self.gradient + other.gradient,
            self.curvature + other.curvature,
            self.size + other.size,
            min(self.farthest, other.farthest),
        )


@dataclass(frozen=True)
class GatherSlope:
    """The kernel: a block to the `Slope` at b > 0.

    With z = b (a - max a) and p = softmax(z), t being the class that occurred, -b L' is the sum of
    Σ_k p_k z_k - z_t, and -b² L'' that of the variance of z under p, each times the row's weight
    as a share of `weight`.
    """

    b: float
    weight: float = 1.0

    def __call__(self, block: Block) -> Slope:
        if not block.X.shape[0]:
            return Slope(0.0, 0.0, 0.0, 0.0, 0.0)
        activation, codes = cast(Array, block.X), cast(Codes, block.y)
        weight = (np.ones(len(codes)) if block.weight is None else block.weight) / self.weight
        below = activation - activation.max(axis=1, keepdims=True)
        own = np.take_along_axis(below, codes[:, None], axis=1)[:, 0]
        with np.errstate(over="ignore"):
            z = np.maximum(self.b * below, _GONE)
            p = softmax(z, axis=1)
            mean = (p * z).sum(axis=1)
            variance = (p * (z - mean[:, None]) ** 2).sum(axis=1)
            distance = -below.mean(axis=1)
            return Slope(
                float(weight @ (-distance - own)),
                float(weight @ (mean - self.b * own)),
                float(weight @ variance),
                float(weight @ distance),
                float(own.min()),
            )
