"""What densities of counts and waiting times are made of, with digits that do not cancel."""

import numpy as np
from scipy.special import gammaln

from posteriori.likelihood.arithmetic import quiet
from posteriori.typing import Array

_NEAR = 0.1
"""Relative distance below which a divergence is summed as a series."""

_SERIES = 1.0 / np.arange(17, 1, -2)
"""1/(2j + 1), the last first: eight terms are exact to a double at a distance of 0.1."""

_STIRLING = 0.05
"""Up to this dispersion, four terms of Stirling's series are exact to a double."""


@quiet
def divergence(t: Array, mean: Array) -> Array:
    """t ln(t/μ) + μ - t, which keeps its digits where t is close to μ.

    With v = (t - μ)/(t + μ) it is (t - μ)v + 2tv Σ v²ʲ/(2j + 1), j = 1, 2, ...

    >>> divergence(np.array([0.0, 1e12 + 1]), np.array([2.0, 1e12]))
    array([2.e+00, 5.e-13])
    """
    v = (t - mean) / (t + mean)
    series = (t - mean) * v + 2 * t * v * v * v * np.polyval(_SERIES, v * v)
    far = np.where(t == 0, mean, t * np.log(t / mean) + mean - t)
    return np.where(abs(v) < _NEAR, series, far)


def log_gamma_peak(dispersion: float) -> float:
    """ln t p(t|t, s) of a gamma density: k ln k - k - ln Γ(k) with k = 1/s.

    The terms cancel where s is small; there, Stirling's series has what is left.
    """
    if dispersion > _STIRLING:
        shape = 1 / dispersion
        return float(shape * np.log(shape) - shape - gammaln(shape))
    square = dispersion * dispersion
    series = dispersion * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680)))
    return float(-np.log(2 * np.pi * dispersion) / 2 - series)
