"""One number that makes probabilities more or less sure: softmax(b ln p), 1/b the temperature.

Conventions: rows have one column a class, their activations a, which are finite.
"""

import numpy as np

from posteriori.rows.rows import Rows
from posteriori.statistics.calibration import GatherSlope, Slope

_LARGEST = 1e300
"""A slope that is as good as infinite."""

_NEAR = 1e-9
"""A step so short, beside b, leaves an error of its square."""

_FAR = 1e3
"""Activations whose usual size is not between this and its inverse are in units of their own."""


def likeliest_slope(rows: Rows, weight: float) -> float:
    """The b >= 0 under which softmax(b a) makes the classes that occurred most probable.

    The derivative of the log likelihood, Σ w (a_t - Σ_k p_k a_k), only falls with b, so that there
    is one root at most. The answer is zero if it is negative from the start: the activations
    point away from the classes that occurred. It is infinite if the derivative stays above zero,
    as every row has its largest activation for its own class. Each step, by Newton's method
    between the ends that are known, is a pass over the rows, which have this `weight` together.

    >>> from posteriori.rows.in_memory import read_rows
    >>> from scipy.special import softmax
    >>> a = np.log([[0.9, 0.1], [0.9, 0.1], [0.1, 0.9], [0.1, 0.9]])
    >>> b = likeliest_slope(read_rows(a, [0, 1, 1, 1]), 4.0)
    >>> softmax(b * a, axis=1)[0].round(12)  # right three times in four
    array([0.75, 0.25])
    """
    low, high, b = 0.0, np.inf, 1.0
    found = rows.map_sum(GatherSlope(b, weight))
    if found.at_zero >= 0:
        return 0.0
    if found.farthest == 0:
        return np.inf
    usual = 1 / found.size
    if not 1 / _FAR < usual < _FAR:
        b, found = usual, rows.map_sum(GatherSlope(usual, weight))
    while low < _LARGEST:
        low, high = (b, high) if found.gradient < 0 else (low, b)
        step = _newton(found)
        if abs(step) <= _NEAR:
            return b * (1 + step)
        if high - low <= _NEAR * low:
            return b
        b = _between(low, high, b * (1 + step))
        found = rows.map_sum(GatherSlope(b, weight))
    return np.inf


def _newton(found: Slope) -> float:
    """The step to the root, in multiples of b; not finite where there is no telling."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return float(np.divide(-found.gradient, found.curvature))


def _between(low: float, high: float, wanted: float) -> float:
    """What is wanted, if it is between the ends; else far enough from both."""
    if low < wanted < high and np.isfinite(wanted):
        return wanted
    if np.isinf(high):
        return 2 * low
    return float(np.sqrt(low) * np.sqrt(high)) if low > 0 else high / 8
