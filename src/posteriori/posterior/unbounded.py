"""Variables with bounds, in coordinates that have none (002, 4.4: ln τ in place of τ > 0).

Conventions: z is what the user sees, u the coordinate without bounds; z rises with u. A density of
z becomes one of u by the factor dz/du = exp(l), the Jacobian, so that integrals stay the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit

from posteriori.arguments import is_number
from posteriori.errors import ParameterError, ShapeError
from posteriori.typing import Array

_TAIL = 9.0
"""Standard deviations to either side that a quadrature looks at: beyond are 1e-19 of the mass."""

Pair = tuple[float | None, float | None]
Bounds = Pair | Sequence[Pair | None] | None
"""Lower and upper bound of every variable, or a pair for each; None where there is none."""


class Slope(NamedTuple):
    """l = ln dz/du, dl/du and d²l/du²."""

    log: Array
    first: Array
    second: Array


class Coordinate(Protocol):
    """How one variable z is made of a u without bounds; all its functions take arrays."""

    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
    def inward(self, z: Array) -> Array:
        """u."""

    def outward(self, u: Array) -> Array:
        """z."""

    def slope(self, u: Array) -> Slope:
        """ln dz/du and its derivatives."""

    def moments(self, mean: float, sd: float) -> tuple[float, float]:
        """Mean and standard deviation of z where u is N(mean, sd²)."""


@dataclass(frozen=True)
class Line:
    """A variable without bounds: z = u."""

    low = -np.inf
    high = np.inf

    def inward(self, z: Array) -> Array:
        return z

    def outward(self, u: Array) -> Array:
        return u

    def slope(self, u: Array) -> Slope:
        nothing = np.zeros_like(u)
        return Slope(nothing, nothing, nothing)

    def moments(self, mean: float, sd: float) -> tuple[float, float]:
        return mean, sd


@dataclass(frozen=True)
class HalfLine:
    """One bound: z = end + eᵘ above it (`sign` = 1), z = end - e⁻ᵘ below it (-1); a lognormal.

    >>> tau = HalfLine(0.0, 1)
    >>> tau.inward(np.array([1.0, np.e])), tau.moments(0.0, 1.0)
    (array([0., 1.]), (1.648..., 2.161...))
    """

    end: float
    sign: int

    @property
    def low(self) -> float:
        return self.end if self.sign > 0 else -np.inf

    @property
    def high(self) -> float:
        return np.inf if self.sign > 0 else self.end

    def inward(self, z: Array) -> Array:
        return self.sign * np.log(self.sign * (z - self.end))

    def outward(self, u: Array) -> Array:
        return self.end + self.sign * np.exp(self.sign * u)

    def slope(self, u: Array) -> Slope:
        return Slope(self.sign * u, np.full_like(u, self.sign), np.zeros_like(u))

    def moments(self, mean: float, sd: float) -> tuple[float, float]:
        size = float(np.exp(self.sign * mean + sd**2 / 2))
        return self.end + self.sign * size, size * float(np.sqrt(np.expm1(sd**2)))


@dataclass(frozen=True)
class Interval:
    """Two bounds: z = low + (high - low) σ(u), u being the logit of the share; a logit-normal.

    >>> share = Interval(0.0, 1.0)
    >>> share.inward(np.array([0.5])), share.outward(np.array([0.0]))
    (array([0.]), array([0.5]))
    """

    low: float
    high: float

    def inward(self, z: Array) -> Array:
        return np.log(z - self.low) - np.log(self.high - z)

    def outward(self, u: Array) -> Array:
        # From the nearer end, so that no digits of the distance to it are lost.
        step = (self.high - self.low) * expit(-abs(u))
        return np.where(u < 0, self.low + step, self.high - step)

    def slope(self, u: Array) -> Slope:
        log = np.log(self.high - self.low) + log_expit(u) + log_expit(-u)
        return Slope(log, -np.tanh(u / 2), -2 * expit(u) * expit(-u))

    def moments(self, mean: float, sd: float) -> tuple[float, float]:
        # The poles of σ lie π/sd away, so the trapezoidal rule errs by less than exp(-4π²).
        nodes = np.linspace(-_TAIL, _TAIL, int(2 * _TAIL * max(4.0, 2 * sd)) + 1)
        weight = np.exp(-0.5 * nodes**2)
        weight /= weight.sum()
        share = expit(mean + sd * nodes)
        centre = float(weight @ share)
        spread = float(np.sqrt(weight @ (share - centre) ** 2))
        width = self.high - self.low
        return self.low + width * centre, width * spread


@dataclass(frozen=True, eq=False)
class Space:
    """All p variables at once; points are (p,) or rows (n, p)."""

    coordinates: tuple[Coordinate, ...]

    @classmethod
    def of(cls, bounds: Bounds, p: int) -> "Space":
        """The coordinates for these bounds.

        >>> Space.of([(0, None), None, (-1, 1)], 3).outward(np.zeros(3))
        array([1., 0., 0.])
        """
        if bounds is None:
            return cls((Line(),) * p)
        if _is_pair(bounds):
            return cls((_coordinate(bounds, "bounds"),) * p)
        if not isinstance(bounds, Sequence | np.ndarray) or len(bounds) != p:
            raise ShapeError(
                f"bounds={bounds!r} are not those of {p} variables.",
                "Give one pair (low, high) for all variables, or a list with a pair for each.",
            )
        return cls(tuple(_coordinate(pair, f"bounds[{j}]") for j, pair in enumerate(bounds)))

    def inward(self, z: Array) -> Array:
        """u for z within the bounds."""
        u = z.copy()
        for j, coordinate in self._bounded:
            u[..., j] = coordinate.inward(z[..., j])
        return u

    def outward(self, u: Array) -> Array:
        """z, on a bound or infinite where doubles end."""
        z = u.copy()
        with np.errstate(over="ignore"):
            for j, coordinate in self._bounded:
                z[..., j] = coordinate.outward(u[..., j])
        return z

    def slope(self, u: Array) -> Slope:
        """ln dz/du of each variable, and its derivatives, each like u."""
        found = np.zeros((3, *u.shape))
        for j, coordinate in self._bounded:
            found[..., j] = coordinate.slope(u[..., j])
        return Slope(*found)

    def inside(self, z: Array) -> NDArray[np.bool_]:
        """Whether each variable is finite and strictly between its bounds (like z)."""
        low, high = self._ends
        return (low < z) & (z < high)

    @cached_property
    def _bounded(self) -> list[tuple[int, Coordinate]]:
        return [(j, c) for j, c in enumerate(self.coordinates) if not isinstance(c, Line)]

    @cached_property
    def _ends(self) -> Array:
        return np.array([(c.low, c.high) for c in self.coordinates]).T


def _is_pair(bounds: Any) -> bool:
    """Whether this is (low, high) rather than a list of such pairs."""
    if not isinstance(bounds, Sequence | np.ndarray) or len(bounds) != 2:
        return False
    return all(end is None or is_number(end) for end in bounds)


def _coordinate(pair: Any, name: str) -> Coordinate:
    """The coordinate for one pair of bounds."""
    if pair is None:
        return Line()
    if not _is_pair(pair):
        raise ParameterError(f"{name}={pair!r} is not a pair.", "Use (low, high), or None.")
    low = -np.inf if pair[0] is None else float(pair[0])
    high = np.inf if pair[1] is None else float(pair[1])
    if not (low < high and low < np.inf and high > -np.inf):
        raise ParameterError(f"{name}={pair!r} leaves no room.", "Use low < high.")
    if np.isfinite(low) and np.isfinite(high):
        return Interval(low, high)
    if np.isfinite(low):
        return HalfLine(low, 1)
    return HalfLine(high, -1) if np.isfinite(high) else Line()
