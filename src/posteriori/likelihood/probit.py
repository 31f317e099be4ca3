"""Two classes by the probit function (4.114), exercise 4.19."""

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

from posteriori.likelihood.arithmetic import quiet, sum_of_logs, times
from posteriori.likelihood.binary import BinaryLoss, hard, weighted
from posteriori.likelihood.sigmoids import Probit
from posteriori.typing import Array

_ENOUGH = 1e-3
"""A mean loss above this is had from logarithms of Φ without losing a digit that counts."""

_NEAR = -30.0
"""Above this Φ is far from underflow."""

_CANCELS = -4.0
"""Below this φ/Φ + a has lost two digits, and the slower form of `Probit` is taken."""

_CERTAIN = 100.0
"""Here, and beyond, the density is less than any double."""

_ROOT = np.sqrt(2 * np.pi)
_PROBIT = Probit()


class ProbitLoss(BinaryLoss):
    """-t ln Φ(a) - (1 - t) ln Φ(-a) for t from zero to one.

    The derivative is -φ(a)/Φ(a) for t = 1, the curvature (φ/Φ)(φ/Φ + a); both are exact however
    far out a is.

    >>> ProbitLoss().value(np.array([0.0, -1e4]), np.array([1.0, 1.0]))
    array([6.93147181e-01, 5.00000101e+07])
    >>> ProbitLoss().curvature(np.array([-1e4]), np.array([1.0]))
    array([0.99999999])
    """

    def __init__(self) -> None:
        super().__init__(_PROBIT)

    @quiet
    def curvature(self, a: Array, t: Array) -> Array:
        if not hard(t):
            return super().curvature(a, t)
        margin = np.minimum(a * (2 * t - 1), _CERTAIN)
        seen = ndtr(margin)
        seen *= _ROOT
        ratio = _bell(margin)
        ratio /= seen
        ratio *= np.add(ratio, margin, out=seen)
        far = np.flatnonzero(~(margin > _CANCELS))
        if len(far):
            ratio[far] = _PROBIT.log_bend(margin[far])
        return ratio

    @quiet
    def sum_and_gradient(self, a: Array, t: Array, weight: Array | None) -> tuple[float, Array]:
        if not hard(t):
            return weighted(*_at_once(a, t), weight)
        sign = 2 * t - 1
        a *= sign
        if a.min(initial=0.0) < _NEAR:
            value, gradient = _at_once(a, np.ones(len(a)))
            return weighted(value, sign * gradient, weight)
        seen = ndtr(a)
        total = _total(seen, a, weight)
        gradient = _bell(a, out=a)
        gradient /= seen
        sign *= -1 / _ROOT
        gradient *= sign
        if weight is not None:
            gradient *= weight
        return total, gradient


def _bell(a: Array, out: Array | None = None) -> Array:
    """exp(-a²/2) = √(2π) φ(a)."""
    found = np.multiply(a, a, out=out)
    found *= -0.5
    return np.exp(found, out=found)


def _at_once(a: Array, t: Array) -> tuple[Array, Array]:
    """Value and gradient from one special function a row: Φ(-|a|) = ½ erfcx(|a|/√2) e^(-a²/2)."""
    half, square = erfcx(abs(a) / np.sqrt(2)) / 2, a * a / 2
    density = np.exp(-square)
    tail = half * density
    likely = np.where(a < 0, 1 - t, t)
    value = times(1 - likely, square - np.log(half)) - likely * np.log1p(-tail)
    slope = times(1 - likely, 1 / half) - likely * density / (1 - tail)
    return value, np.where(a < 0, -1 / _ROOT, 1 / _ROOT) * slope


def _total(seen: Array, margin: Array, weight: Array | None) -> float:
    """-Σ w ln Φ, by logarithms of Φ itself unless the labels are all but certain."""
    if weight is None:
        total, rows = -sum_of_logs(seen), float(len(seen))
    else:
        total, rows = -float(weight @ np.log(seen)), float(weight.sum())
    if total > _ENOUGH * rows:
        return total
    logs = log_ndtr(margin)
    return -float(logs.sum() if weight is None else weight @ logs)
