"""Labels that may be wrong: derivatives in the rate of flipped labels, and robust weights.

Conventions: F = -ln p(t|a, ε), where labels of both classes are flipped with one probability ε
(4.117); one activation a row, q parameters (the intercept first); m columns.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from posteriori.design.columns import Columns
from posteriori.likelihood.arithmetic import quiet, times
from posteriori.rows.block import Block
from posteriori.rows.rows import Rows
from posteriori.statistics.coordinates import Coordinates, GatherSample
from posteriori.statistics.local_quadratic import GatherQuadratic, gradient_of
from posteriori.statistics.statistic import MappedRows, Statistic, weights_of
from posteriori.typing import Array


@dataclass(frozen=True, eq=False)
class FlipSums(Statistic):
    """Σ w ∂F/∂ε, Σ w ∂²F/∂ε², and Σ w ∂²F/∂a∂ε φ (1, q)."""

    slope: float
    curvature: float
    cross: Array

    def times(self, factor: float) -> "FlipSums":
        """The sums of so many times the rows."""
        return FlipSums(factor * self.slope, factor * self.curvature, factor * self.cross)


@dataclass(frozen=True, eq=False)
class GatherFlips:
    """The kernel: a block of rows to its `FlipSums` at a rate.

    Second derivatives are as observed or as expected, as `at.information` says. The loss of `at`
    is not used.
    """

    at: GatherQuadratic
    rate: float

    def __call__(self, block: Block) -> FlipSums:
        has_intercept = self.at.standard.intercept
        with np.errstate(over="ignore", invalid="ignore"):
            design, a = self.at.design_and_activations(block)
            t = self.at.target(block)
            expected = self.at.information == "expected"
            slope, curvature, cross = flip_derivatives(a, t, self.rate, expected)
            weight = weights_of(block)
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


_SAMPLED = 1000
"""Rows whose medians stand for those of all."""


def downweight_outliers(rows: Rows, columns: Columns) -> MappedRows:
    """The rows with weights 1/(1 + |z|²/m), for a fit that outlying rows cannot determine.

    z = (x - centre) / scale, with the medians of `Coordinates`.

    >>> from posteriori.rows.in_memory import read_rows
    >>> rows = read_rows([[0.0], [1.0], [2.0], [9.0]], [0, 1, 0, 1])
    >>> downweight_outliers(rows, Columns(rows.schema)).map_sum(lambda block: block.weight).round(3)
    array([0.308, 0.8  , 0.8  , 0.017])
    """
    sample = rows.map_sum(GatherSample(columns, _no_support, _SAMPLED))
    at = Coordinates.of(sample, columns, intercept=True)

    def reweighted(block: Block) -> Block:
        with np.errstate(over="ignore"):
            parts = map(at.design, columns.dense_parts(block))
            square = np.concatenate([np.square(part.array()).mean(axis=1) for part in parts])
        return replace(block, weight=weights_of(block) / (1 + square))

    return MappedRows(rows, reweighted, rows.classes)


def _no_support(block: Block) -> NDArray[Any]:
    return np.zeros(block.X.shape[0])
