"""The climb to a mode of a density, and whether what was reached is one.

Conventions as in `posteriori.posterior.density`; A = -H at the mode (4.132).
"""

from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np

from posteriori.errors import InferenceError, ParameterError
from posteriori.linalg import cholesky
from posteriori.posterior.density import Density
from posteriori.posterior.differences import axis_lengths
from posteriori.posterior.normal_posterior import Gaussian
from posteriori.solve.local import Curvature, Local
from posteriori.solve.newton import newton
from posteriori.solve.solution import Status
from posteriori.typing import Array

_POLISHINGS = 2
"""Newton steps after the climb, with differences along standard deviations."""

_NEARBY = 0.01
"""Standard deviations from the mode at which the density must fall like the Gaussian ..."""

_UNLIKE = 0.5
"""... but for this share of the fall."""

_ROUNDING = 1e-14
_INVOLVED = 0.1
"""Share of the largest entry of a direction from which variables are named."""

_CURVES_UP = -1e-8
_NO_ROOM = 1e-4
_WITHOUT_END = 1e50
"""As far from the start, in its own lengths, no climb leads that comes to an end."""


class Mode(NamedTuple):
    """N(u|u₀, A⁻¹), and F(u₀)."""

    gaussian: Gaussian
    height: float


@dataclass(frozen=True, eq=False)
class _Descent:
    """-F, as the solver wants it: infinite where F or its derivatives are not to be had.

    Its parameters are w = u/unit_lengths, so that units do not matter where F is not curved.
    """

    density: Density
    start: Array
    unit_lengths: Array
    tolerance: float
    price = 1.0
    start_price = 1.0
    share = 1.0
    n_rows = 1
    unit = 1.0

    def __call__(self, w: Array, hessian: Curvature) -> Local:
        lengths = self.unit_lengths
        u, first = lengths * w, abs(self.start / lengths)
        if (abs(w) > _WITHOUT_END * (1 + first)).any():
            raise _still_climbing(self.density, self.start, u)
        local = self.density.local(u)
        if local is None:
            return Local(np.inf, np.full(len(w), np.nan), None)
        H = cast(Array, local.hessian) * lengths * lengths[:, None]
        return Local(-local.value, -local.gradient * lengths, -H)


def find_mode(density: Density, start: Array, tol: float, max_iter: int) -> Mode:
    """The mode uphill of `start`: ∇F = 0 (4.126), A positive definite; else an error.

    >>> from posteriori.posterior.unbounded import Space
    >>> density = Density(lambda z: -2 * (z[0] - 1) ** 2, None, None, Space.of(None, 1))
    >>> mode = find_mode(density, np.zeros(1), 1e-10, 100)
    >>> mode.gaussian.mean.round(9), mode.gaussian.precision.round(8)
    (array([1.]), array([[4.]]))
    """
    _check_start(density, start)
    lengths = axis_lengths(density.value, start, density.value(start))
    descent = _Descent(density, start, lengths, tol)
    climb = newton([descent], start / lengths, max_iter=max_iter, always_fresh=True)
    top = climb.parameters * lengths
    density.check_derivatives(top)
    if climb.status is Status.MAX_ITERATIONS:
        raise _still_climbing(density, start, top, f" after max_iter={max_iter} steps")
    if climb.status is Status.STALLED:
        raise _at_an_end(density, start, top)
    mode = _polished(density, start, top)
    _check_fall(density, start, mode)
    return mode


def _check_start(density: Density, start: Array) -> None:
    if density.value(start) == -np.inf:
        raise ParameterError(
            f"The log density at the start, {density.named(start)}, is not a finite number.",
            "Start where the density is positive.",
        )
    density.check_derivatives(start)
    if density.local(start) is None:
        raise _at_an_end(density, start, start)


def _polished(density: Density, start: Array, u: Array) -> Mode:
    """The last digits of u₀, and A there."""
    mode = _step(density, start, u, None)
    for _ in range(_POLISHINGS):
        mode = _step(density, start, mode.gaussian.mean, mode.gaussian.root)
    return mode


def _step(density: Density, start: Array, u: Array, V: Array | None) -> Mode:
    """One Newton step (4.92) from u, with differences along V."""
    local = density.local(u, V)
    if local is None:
        raise _at_an_end(density, start, u)
    A = -cast(Array, local.hessian)
    if cholesky(_scaled(A)) is None:
        raise _no_maximum(density, start, u, A)
    here = Gaussian.of(u, A)
    white = here.root.T @ local.gradient
    top = Gaussian(u + here.root @ white, here.precision_cholesky)
    return Mode(top, local.value + 0.5 * float(white @ white))


def _check_fall(density: Density, start: Array, mode: Mode) -> None:
    """An error unless F falls from the mode as (4.131) says, close to it and on either side.

    This is not so where F is level or rises on and on ever less steeply, whose curvature is small
    but positive; nor at a kink.
    """
    u, expected = mode.gaussian.mean, 0.5 * _NEARBY**2
    allowed = _UNLIKE * expected + _ROUNDING * abs(mode.height)
    for v in _NEARBY * mode.gaussian.root.T:
        for step in (v, -v):
            fall = mode.height - density.value(u + step)
            if not abs(fall - expected) <= allowed:
                raise InferenceError(
                    f"{_reached(density, start, u)}, where the log density does not fall like a "
                    f"parabola along {_variables(v / mode.gaussian.standard_deviation)}: it is "
                    "flat there, goes on rising, or ends.",
                    "Give the density a maximum in its inside (a prior, or bounds where a variable "
                    "has them), or drop variables that it does not depend on.",
                )


def _no_maximum(density: Density, start: Array, u: Array, A: Array) -> InferenceError:
    if _room_left(density, start, u).min() < _NO_ROOM:
        return _at_an_end(density, start, u)
    values, vectors = np.linalg.eigh(_scaled(A))
    shape = "is flat" if values[0] > _CURVES_UP else "curves upwards, as on a saddle,"
    return InferenceError(
        f"{_reached(density, start, u)}, where the log density {shape} along "
        f"{_variables(vectors[:, 0])}: the precision (4.132) is not positive definite.",
        "Start elsewhere, or at several places; or give the density a maximum there, by a prior.",
    )


def _at_an_end(density: Density, start: Array, u: Array) -> InferenceError:
    hemmed_in = int(_room_left(density, start, u).argmin())
    return InferenceError(
        f"{_reached(density, start, u)}, where the log density cannot be made larger, but is not "
        f"level along variable {hemmed_in}: its support ends there, or it has a kink.",
        "Give bounds=(low, high) for variables that have them; a density with its maximum at an "
        "edge has no Laplace approximation in these coordinates.",
    )


def _still_climbing(density: Density, start: Array, u: Array, after: str = "") -> InferenceError:
    moved = abs(u - start) / axis_lengths(density.value, start, density.value(start))
    return InferenceError(
        f"{_reached(density, start, u)}{after}, most of the way along "
        f"variable {int(moved.argmax())}, with the log density still rising.",
        "See whether it rises without end (then give it a prior or bounds), start nearer to the "
        "mode, or set max_iter higher.",
    )


def _room_left(density: Density, start: Array, u: Array) -> Array:
    """How far each variable can go from u without much change of F, beside that at the start."""
    before, now = (axis_lengths(density.value, x, density.value(x)) for x in (start, u))
    return now / before


def _reached(density: Density, start: Array, u: Array) -> str:
    return f"From the start {density.named(start)} the climb led to {density.named(u)}"


def _scaled(A: Array) -> Array:
    """A with ones, of either sign, or zeros on its diagonal."""
    size = np.sqrt(abs(np.diagonal(A)))
    size = np.where(size > 0, size, 1.0)
    return A / size / size[:, None]


def _variables(direction: Array) -> str:
    """The variables that make up a direction, for messages."""
    size = abs(direction)
    involved = np.flatnonzero(size >= _INVOLVED * size.max())
    names = [str(j) for j in involved[:8]]
    if len(involved) == 1:
        return f"variable {names[0]}"
    return f"a combination of the variables {', '.join(names)}{', ...' * (len(involved) > 8)}"
