"""Derivatives of a function that is only known by its values, by central differences.

Conventions: f of u (p,), directions as the columns of V (p, p), steps of h along each of them.
f may be -∞ in places; derivatives are to be had only where no step leads there.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from posteriori.typing import Array

_EPS = float(np.finfo(np.float64).eps)

_PLACES = np.array([-2.0, -1.0, 1.0, 2.0])
_FIRST = np.array([1.0, -8.0, 8.0, -1.0]) / 12
_SECOND = np.array([-1.0, 16.0, 16.0, -1.0]) / 12
_SECOND_CENTRE = -30.0 / 12
"""Weights of values at -2h, -h, h, 2h (and at the centre) that leave an error of order h⁴."""

_NOISE = 16.0
"""Rounding errors below which a second difference counts as none."""

_LONGEST = 0.25
"""The longest step, in directions along which f changes by about one."""

_SHARE = 1e-5
"""f counts as changed by a direction when it changes by one and this share of its size."""

_TOO_LITTLE, _FACTOR, _FARTHEST, _NEAREST = 0.01, 8.0, 1e200, 1e-200
"""How the right length of a direction is sought: a smaller share of the change is too little."""


class Derivatives(NamedTuple):
    """Vᵀg (p,) and VᵀHV (p, p)."""

    first: Array
    second: Array


def axis_lengths(f: Callable[[Array], float], u: Array, here: float) -> Array:
    """How far to go along each axis for f to change by about one, or by a share of its size.

    >>> axis_lengths(lambda u: -0.5 * (1e6 * u[0]) ** 2 - u[1] ** 2, np.zeros(2), 0.0).round(7)
    array([5.e-07, 1.e+00])
    """
    return np.array([_length(f, u, here, axis) for axis in np.eye(len(u))])


def _length(f: Callable[[Array], float], u: Array, here: float, axis: Array) -> float:
    """Along one axis."""
    enough = 1.0 + _SHARE * abs(here)

    def change(length: float) -> float:
        ends = f(u + length * axis), f(u - length * axis)
        return max(abs(end - here) for end in ends)

    length, found = 1.0, change(1.0)
    while found > enough and length > _NEAREST:
        length /= _FACTOR
        found = change(length)
    while found < _TOO_LITTLE * enough and length < _FARTHEST:
        found = change(_FACTOR * length)
        if found > enough:
            break
        length *= _FACTOR
    return length if length < _FARTHEST else 1.0  # f does not depend on it


def step_length(here: float, u: Array, V: Array, divisions: int = 2) -> float:
    """The h that balances the error of order h⁴ against rounding in f and u, divided by h so often.

    >>> round(step_length(0.0, np.zeros(1), np.eye(1)), 5)
    0.00246
    """
    size = np.sqrt(np.square(V).sum(axis=1))  # of each variable
    rounding = _EPS * (1.0 + abs(here) + float((abs(u) / size).max()))
    return min(rounding ** (1 / (4 + divisions)), _LONGEST)


def of_values(f: Callable[[Array], float], u: Array, here: float, V: Array) -> Derivatives | None:
    """First and second derivatives along V by values, in 2p(p + 1) of them; None near -∞.

    The mixed ones come from the second derivatives along v, w and v + w.

    >>> found = of_values(lambda u: float(u[0] * u[1]), np.array([1.0, 2.0]), 2.0, np.eye(2))
    >>> found.first.round(6), found.second.round(6) + 0.0
    (array([2., 1.]), array([[0., 1.], [1., 0.]]))
    """
    h, p = step_length(here, u, V), len(u)
    first, second = np.empty(p), np.empty((p, p))
    for i in range(p):
        values = _along(f, u, h * V[:, i])
        first[i] = _FIRST @ values / h
        second[i, i] = _curvature(values, here, h)
    for i in range(p):
        for j in range(i):
            values = _along(f, u, h * (V[:, i] + V[:, j]))
            mixed = _curvature(values, here, h) - second[i, i] - second[j, j]
            second[i, j] = second[j, i] = 0.5 * mixed
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        return None
    return Derivatives(first, second)


def of_gradients(gradient: Callable[[Array], Array], u: Array, here: float, V: Array) -> Array:
    """VᵀHV by the gradients at 4p places; not finite near -∞.

    >>> of_gradients(lambda u: -2 * u, np.array([1.0]), 0.0, np.eye(1)).round(9)
    array([[-2.]])
    """
    h = step_length(here, u, V, divisions=1)
    places = [u + place * h * V.T for place in _PLACES]
    values = [[gradient(each) for each in rows] for rows in places]
    found = np.tensordot(_FIRST, np.array(values), 1) @ V / h
    return 0.5 * (found + found.T)


def along(
    f: Callable[[Array], float], u: Array, here: float, v: Array
) -> tuple[float, float, float]:
    """First and second derivative along v, and what rounding may have done to the second.

    >>> slope, curvature, _ = along(lambda u: float(u[0] ** 3), np.ones(1), 1.0, np.ones(1))
    >>> round(slope, 8), round(curvature, 6)
    (3.0, 6.0)
    """
    h = step_length(here, u, np.diag(abs(v)))
    values = _along(f, u, h * v)
    rounding = _EPS * (1.0 + abs(here)) / h**2
    return float(_FIRST @ values / h), _curvature(values, here, h), rounding


def _along(f: Callable[[Array], float], u: Array, step: Array) -> Array:
    """f at -2, -1, 1 and 2 steps; not finite as a whole where one of them is not."""
    values = np.array([f(u + place * step) for place in _PLACES])
    return values if np.isfinite(values).all() else np.full(len(values), np.nan)


def _curvature(values: Array, here: float, h: float) -> float:
    """The second derivative; zero where it cannot be told from that."""
    found = float(_SECOND @ values + _SECOND_CENTRE * here)
    return 0.0 if abs(found) < _NOISE * _EPS * (1.0 + abs(here)) else found / h**2
