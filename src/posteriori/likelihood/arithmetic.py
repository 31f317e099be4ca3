"""Arithmetic at the ends of the doubles: overflow without warnings, zero times infinity is zero."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import numpy as np

from posteriori.typing import Array

_P = ParamSpec("_P")
_R = TypeVar("_R")

_LOG_TWO = np.log(2.0)

_GROUP = 16
"""Numbers multiplied together before a logarithm is taken of them."""

_LEAST, _MOST = 1e-300, 1e300
"""Between these no product has lost a digit."""


def quiet(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The same function, in which doubles overflow to infinity and say nothing."""

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
    return np.where(x > -_LOG_TWO, np.log(-np.expm1(x)), np.log1p(-np.exp(x)))


def sharpened(log_p: Array, log_rest: Array) -> tuple[Array, Array]:
    """ln p and ln(1 - p), the larger of the two had from the smaller, which has more digits.

    >>> sharpened(np.array([-1e-20]), np.array([-50.0]))
    (array([-1.92874985e-22]), array([-50.]))
    """
    more = log_p > log_rest
    return (
        np.where(more, log_one_minus_exp(log_rest), log_p),
        np.where(more, log_rest, log_one_minus_exp(log_p)),
    )


@quiet
def sum_of_logs(x: Array) -> float:
    """Σ ln x of numbers above zero, one logarithm for sixteen of them.

    >>> sum_of_logs(np.full(40, np.e))
    40.0
    """
    size = len(x) // _GROUP * _GROUP
    product = np.multiply.reduce(x[:size].reshape(_GROUP, -1), axis=0)
    if product.min(initial=1.0) < _LEAST or product.max(initial=1.0) > _MOST:
        return float(np.log(x).sum())
    return float(np.log(product).sum() + np.log(x[size:]).sum())
