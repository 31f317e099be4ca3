"""Labels that may be wrong: derivatives in the rate of flipped labels, and robust weights.

Conventions: F = -ln p(t|a, ε), where labels of both classes are flipped with one probability ε
(4.117); one activation a row, q parameters (the intercept first); m columns.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit

from posteriori.design.columns import Columns
from posteriori.likelihood.log_arithmetic import quiet, times
from posteriori.rows.block import Block, Rows
from posteriori.rows.in_memory import MemoryRows
from posteriori.statistics.local_quadratic import GatherQuadratic, gradient_of
from posteriori.statistics.row_sample import sample_rows
from posteriori.statistics.statistic import Statistic, weights_of
from posteriori.typing import Array


@dataclass(frozen=True, eq=False)
class FlipSums(Statistic):
    """Σ w ∂F/∂ε, Σ w ∂²F/∂ε², and Σ w ∂²F/∂a∂ε φ (1, q)."""

    slope: float
    curvature: float
    cross: Array


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
"""Size of the sample whose medians approximate those of all rows."""


def downweight_outliers(rows: Rows, columns: Columns) -> MemoryRows:
    """The rows, in memory, with weights 1/(1 + |z|²/m), for a fit that outliers cannot determine.

    z = (x - median) / scale, the scale being the median distance from the median.

    >>> from posteriori.rows.in_memory import read_rows
    >>> rows = read_rows([[0.0], [1.0], [2.0], [9.0]], [0, 1, 0, 1])
    >>> downweight_outliers(rows, Columns(rows.schema)).weight.round(3)
    array([0.308, 0.8  , 0.8  , 0.017])
    """

    def designs(block: Block) -> list[Array]:
        return [columns.design(part).array() for part in columns.dense_parts(block)]

    some, _ = sample_rows(rows, max(1.0, rows.n_rows / _SAMPLED))
    sample = np.concatenate(some.map_sum(designs))
    centre = np.median(sample, axis=0)
    distance = abs(sample - centre)
    scale = np.median(distance, axis=0)
    scale = np.where(scale > 0, scale, distance.mean(axis=0))
    scale[scale == 0] = 1.0

    @quiet
    def squares(block: Block) -> list[Array]:
        return [np.square((X - centre) / scale).mean(axis=1) for X in designs(block)]

    found, _ = sample_rows(rows, 1)
    weight = 1 / (1 + np.concatenate(found.map_sum(squares)))
    return replace(found, weight=weight if found.weight is None else weight * found.weight)
