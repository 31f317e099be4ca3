"""Derivatives in the rate of wrong labels (4.117), summed over rows.

Conventions: F = -ln p(t|a, ε), where labels of both classes are flipped with one probability ε; one
activation a row, q parameters (the intercept first).
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from posteriori.likelihood.arithmetic import quiet, times
from posteriori.rows.block import Block
from posteriori.statistics.local_quadratic import GatherQuadratic, activations, gradient_of
from posteriori.statistics.statistic import Statistic
from posteriori.typing import Array


@dataclass(frozen=True, eq=False)
class FlipSums(Statistic):
    """Σ w ∂F/∂ε, Σ w ∂²F/∂ε², and Σ w ∂²F/∂a∂ε φ (1, q)."""

    slope: float
    curvature: float
    cross: Array

    def __add__(self, other: "FlipSums") -> "FlipSums":
        return FlipSums(
            self.slope + other.slope, self.curvature + other.curvature, self.cross + other.cross
        )

    def times(self, factor: float) -> "FlipSums":
        """The sums of so many times the rows."""
        return FlipSums(factor * self.slope, factor * self.curvature, factor * self.cross)


@dataclass(frozen=True, eq=False)
class GatherFlips:
    """The kernel: a block of rows to its `FlipSums` at a rate.

    Second derivatives are as observed or as expected, as `at.information` says. The loss of `at`
    is not looked at.
    """

    at: GatherQuadratic
    rate: float

    def __call__(self, block: Block) -> FlipSums:
        has_intercept = self.at.standard.intercept
        with np.errstate(over="ignore", invalid="ignore"):
            design = self.at.standard.design(self.at.columns.design(block))
            a = activations(design, self.at.theta, has_intercept, block.offset)
            t = self.at.target(block)
            expected = self.at.information == "expected"
            slope, curvature, cross = flip_derivatives(a, t, self.rate, expected)
            weight = np.ones(len(t)) if block.weight is None else block.weight
            return FlipSums(
                float(weight @ slope),
                float(weight @ curvature),
                gradient_of(design, weight * cross, has_intercept),
            )


@quiet
def flip_derivatives(
    a: Array, t: Array, rate: float, expected: bool = False
) -> tuple[Array, Array, Array]:
    """∂F/∂ε, ∂²F/∂ε² and ∂²F/∂a∂ε (n,), for t from zero to one.

    p(t = 1) = ε + (1 - 2ε)σ(a) is linear in ε, with slope 1 - 2σ(a) = -tanh(a/2). F is linear in
    t, so that second derivatives are expected to be what they are at t = p(t = 1).

    >>> flip_derivatives(np.array([2.0]), np.array([0.0]), 0.1)
    (array([-3.89836734]), array([15.1972679]), array([-2.75093976]))
    """
    down = np.tanh(-a / 2)
    second, first = (rate + (1 - 2 * rate) * expit(side) for side in (a, -a))
    slope = times(1 - t, down / first) - times(t, down / second)
    if expected:
        t = second
    curvature = times(t, (down / second) ** 2) + times(1 - t, (down / first) ** 2)
    spread = expit(a) * expit(-a)
    cross = times(t, spread / second**2) - times(1 - t, spread / first**2)
    return slope, curvature, cross
