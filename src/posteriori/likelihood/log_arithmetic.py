"""Logarithms, products and differences that keep their digits at the ends of the doubles."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import numpy as np
from scipy.special import gammaln

from posteriori.typing import Array

_P = ParamSpec("_P")
_R = TypeVar("_R")

_GROUP = 32
"""Numbers multiplied together before a logarithm is taken of them."""

_LEAST, _MOST = 1e-306, 1e306
"""Between these no product has lost a digit."""

_SERIES = 1.0 / np.arange(17, 1, -2)
"""1/(2j + 1), the last first: eight terms are exact to a double at a relative distance of 0.1."""

_STIRLING = 0.05
"""Up to this dispersion, four terms of Stirling's series are exact to a double."""


def quiet(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The same function without NumPy's floating-point warnings."""

    @wraps(function)
    def silent(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        with np.errstate(all="ignore"):
            return function(*args, **kwargs)

    return silent


@quiet
def times(x: Array, y: Array) -> Array:
    """x · y, which is zero where either is, even if the other is infinite or not a number.

    >>> times(np.array([0.0, 0.5]), np.array([-np.inf, -np.inf]))
    array([  0., -inf])
    """
    return np.where((x == 0) | (y == 0), 0.0, x * y)


@quiet
def log_one_minus_exp(x: Array) -> Array:
    """ln(1 - eˣ) for x <= 0, exact near zero and far from it.

    >>> log_one_minus_exp(np.array([-1e-20, -50.0]))
    array([-4.60517019e+01, -1.92874985e-22])
    """
    return np.where(x > -np.log(2.0), np.log(-np.expm1(x)), np.log1p(-np.exp(x)))


def log_pair(log_p: Array, log_rest: Array) -> tuple[Array, Array]:
    """ln p and ln(1 - p), the larger of the two computed from the smaller, which has more digits.

    >>> log_pair(np.array([-1e-20]), np.array([-50.0]))
    (array([-1.92874985e-22]), array([-50.]))
    """
    more = log_p > log_rest
    return (
        np.where(more, log_one_minus_exp(log_rest), log_p),
        np.where(more, log_rest, log_one_minus_exp(log_p)),
    )


@quiet
def sum_of_logs(x: Array) -> float:
    """Σ ln x of positive numbers, with one logarithm for 32 of them: -inf where digits were lost.

    >>> sum_of_logs(np.full(80, np.e))
    80.0
    """
    size = len(x) // _GROUP * _GROUP
    product = np.multiply.reduce(x[:size].reshape(_GROUP, -1), axis=0)
    if product.min(initial=1.0) < _LEAST or product.max(initial=1.0) > _MOST:
        return float(np.log(x).sum()) if x.min() > _LEAST else -np.inf
    return float(np.log(product).sum() + np.log(x[size:]).sum())


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
    return np.where(abs(v) < 0.1, series, far)


def log_gamma_peak(dispersion: float) -> float:
    """ln t p(t|t, s) of a gamma density: k ln k - k - ln Γ(k) with k = 1/s.

    The terms cancel where s is small; Stirling's series has their difference.
    """
    if dispersion > _STIRLING:
        shape = 1 / dispersion
        return float(shape * np.log(shape) - shape - gammaln(shape))
    square = dispersion * dispersion
    series = dispersion * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680)))
    return float(-np.log(2 * np.pi * dispersion) / 2 - series)
