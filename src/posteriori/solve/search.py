"""How far to go along a step that points downhill.

Conventions as in `posteriori.solve.newton`: objective f, gradient g (p,), step s (p,), gᵀs < 0.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from posteriori.solve.newton import Curvature, Local, Objective
from posteriori.solve.solution import Iteration
from posteriori.typing import Array

_SUFFICIENT_DECREASE = 1e-4
_LEVEL = 0.9
"""Where f is level to its last digits, the slope must get less than this by a step."""

_ROUNDING = 1e-13
_MOST_HALVINGS = 60


@dataclass(frozen=True, slots=True)
class Step(Iteration):
    """An iteration that also says how often it looked at its share of the rows."""

    looks: float = 1.0


class Found(NamedTuple):
    """How much of the step was taken, f and g at its end, and how often they were asked for."""

    length: float
    local: Local
    looks: int


def search(
    objective: Objective, w: Array, here: Local, step: Array, hessian: Curvature = "none"
) -> Found | None:
    """All of the step, else halved until f is less; None where no part of it makes f less.

    >>> def parabola(w, hessian):
    ...     return Local(float(w @ w), 2 * w, None)
    >>> parabola.n_rows, parabola.share = 1, 1.0
    >>> w = np.array([1.0])
    >>> found = search(parabola, w, parabola(w, "none"), np.array([-4.0]))
    >>> found.length, found.local.value, found.looks
    (0.25, 0.0, 2)
    """
    slope, length = float(here.gradient @ step), 1.0
    noise = rounding(objective, here.value)
    for looks in range(1, _MOST_HALVINGS + 1):
        there = objective(w + length * step, hessian)
        gain = here.value - there.value
        if gain >= -_SUFFICIENT_DECREASE * length * slope:
            return Found(length, there, looks)
        if abs(gain) > noise or not np.isfinite(gain):
            length *= _lowest_of_parabola(gain, length * slope)
            continue
        # Where f is level to the last digit, its slope can still be told.
        turned = float(there.gradient @ step) / slope
        if turned < -_LEVEL:
            length /= 1.0 - turned  # where the slope changes its sign
        elif turned <= _LEVEL or length == 1.0:
            return Found(length, there, looks)
        else:
            return None
    return None


def rounding(objective: Objective, value: float) -> float:
    """What may be rounding in f: the terms of its sum are of size one, even where they cancel."""
    return _ROUNDING * (abs(value) + objective.n_rows / objective.share)


def _lowest_of_parabola(gain: float, slope: float) -> float:
    """The minimum of the parabola through both values, within a tenth and a half."""
    if not np.isfinite(gain):
        return 0.5
    return float(np.clip(-slope / (2 * (-gain - slope)), 0.1, 0.5))
