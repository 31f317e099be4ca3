"""How far to go along a step that points downhill.

Conventions as in `posteriori.solve.newton`: objective f, gradient g (p,), step s (p,), gᵀs < 0.
"""

import math
from typing import NamedTuple

import numpy as np

from posteriori.solve.objective import Curvature, Local, Objective, Status
from posteriori.typing import Array

_SUFFICIENT_DECREASE = 1e-4
_LEVEL = 0.9
"""Where f is level to its last digits, the slope must get less than this by a step."""

_ROUNDING = 1e-13
_INDISTINCT = 1e3
"""Gains below this many rounding errors cannot be distinguished from zero."""

_SMALLEST_C = 0.1
"""What C is taken for if it seems less: the last step may have been a lucky one."""

_SLOWEST = 0.3
"""By how much a step with a new Hessian shrinks the error at least, when it is taken in full."""

_FARTHEST = 1e6
"""No step is tried along which f would fall, were it straight, by more than this times its size."""

_NEAR = 0.5
"""Curvatures of rows are mostly less than one: a part of what could be allowed if they were."""

_MOST_HALVINGS = 60
_TINY = np.finfo(np.float64).tiny


class Found(NamedTuple):
    """How much of the step was taken, f and g at its end, and how often they were evaluated."""

    length: float
    local: Local
    n_evaluations: int


def search(
    objective: Objective, w: Array, here: Local, step: Array, hessian: Curvature = "none"
) -> Found | None:
    """All of the step, else halved until f is less; None where no part of it makes f less.

    >>> def parabola(w, hessian):
    ...     return Local(float(w @ w), 2 * w, None)
    >>> parabola.n_rows, parabola.row_fraction, parabola.unit = 1, 1.0, 1.0
    >>> w = np.array([1.0])
    >>> found = search(parabola, w, parabola(w, "none"), np.array([-4.0]))
    >>> found.length, found.local.value, found.n_evaluations
    (0.25, 0.0, 2)
    """
    slope, noise = float(here.gradient @ step), rounding(objective, here.value)
    length = min(1.0, _FARTHEST * noise / _ROUNDING / max(-slope, _TINY))
    for n_evaluations in range(1, _MOST_HALVINGS + 1):
        there = objective(w + length * step, hessian)
        gain = here.value - there.value
        if gain >= -_SUFFICIENT_DECREASE * length * slope:
            return Found(length, there, n_evaluations)
        if abs(gain) > noise or not np.isfinite(gain):
            length *= _lowest_of_parabola(gain, length * slope)
            continue
        # Where f is level to the last digit, its slope is still known.
        turned = float(there.gradient @ step) / slope
        if turned < -_LEVEL:
            length /= 1.0 - turned  # where the slope changes its sign
        elif turned <= _LEVEL or n_evaluations == 1:
            return Found(length, there, n_evaluations)
        else:
            return None
    return None


def standstill(objective: Objective, here: Local, step: Array) -> Status:
    """How a descent ends where no part of the step makes f less: well, if f is level there."""
    level = -float(here.gradient @ step) <= _INDISTINCT * rounding(objective, here.value)
    return Status.CONVERGED if level else Status.STALLED


def rounding(objective: Objective, value: float) -> float:
    """What may be rounding in f: the terms of its sum are of size one, even where they cancel."""
    return _ROUNDING * (abs(value) + objective.unit**2 * objective.n_rows / objective.row_fraction)


def decrement_of(objective: Objective, here: Local, step: Array) -> float:
    """√(gᵀH⁻¹g), about how many standard errors w is from the optimum, by the step -H⁻¹g."""
    return math.sqrt(max(-float(here.gradient @ step), 0.0)) / objective.unit


def newton_rate(decrement: float, last: float) -> float:
    """By how much a step with a new Hessian should shrink the error: Newton's steps square it.

    If the last one did so too, by C times the decrement, then C·decrement is (decrement/last)².
    """
    if last == np.inf:
        return min(decrement, _SLOWEST)
    return min(max(_SMALLEST_C * decrement, (decrement / last) ** 2), _SLOWEST)


def left_by_newton(objective: Objective, decrement: float, hessian: Array) -> float:
    """The error that a step with this new Hessian leaves, in standard errors.

    With h the largest of the curvatures, activations change by some decrement/√h along the step,
    and the curvature of a row changes by that share of itself.
    """
    largest = float(np.diagonal(hessian).max(initial=0.0))
    return decrement**2 * objective.unit / math.sqrt(largest) if largest > 0 else np.inf


def near_enough(objective: Objective) -> float:
    """Standard errors from the optimum from which one step with a new Hessian leads to it."""
    return _NEAR * math.sqrt(objective.tolerance * math.sqrt(objective.n_rows))


def _lowest_of_parabola(gain: float, slope: float) -> float:
    """The minimum of the parabola through both values, within a tenth and a half."""
    if not np.isfinite(gain):
        return 0.5
    return float(np.clip(-slope / (2 * (-gain - slope)), 0.1, 0.5))
