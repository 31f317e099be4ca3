"""Intervals by profile likelihood: where the best fit with one parameter held is worse by so much.

Conventions: f(w) is the objective of p free parameters, with gradient g and Hessian H; a parameter
is mᵀw with m (p,). Its profile is f_m(x) = min f(w) over all w with mᵀ(w - ŵ) = x, and the root
r(x) = √(2(f_m(x) - f_m(0))) is close to a straight line, exactly so for a parabola. An end is the
x with r(x) = √(2 rise).

Each evaluation of f, g and H moves x and all other parameters at once, by the Newton step of both
equations (Venzon and Moolgavkar 1988), kept between what is known to be inside and outside. With d
the Newton step of the others and b the way of w as x grows,

    mᵀd = 0,   mᵀb = 1,   bᵀHd = 0:   f_m(x) ≈ f + ½gᵀd,   f_m'(x) ≈ gᵀb,   f_m''(x) ≈ bᵀHb.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

import numpy as np

from posteriori.errors import InferenceError
from posteriori.posterior.held import with_one_held
from posteriori.posterior.objective import LogPosterior
from posteriori.solve.local import Local
from posteriori.typing import Array

_CONVERGED = 1e-2
"""Standard errors from the optimum at which a fit can still be called one."""

_UNSETTLED = 1.0
"""Standard errors of the other parameters from their optimum at which x waits for them."""

_TRUSTED = 0.1
"""The same, for the profile to be known well enough to say what is inside and what outside."""

_SETTLED = 1e-4
"""The same, for an end to be one."""

_EXACT, _ROUNDING = 1e-10, 1e-14
"""By how much the rise at an end may be wrong, beside itself and beside the objective."""

_TOO_HIGH = 4.0
"""A step that leads higher than so many rises is halved."""

_GROWTH = 4.0
"""How many times as far x may be after one step."""

_FARTHEST = 1e6
"""Half widths of the plain interval; an end that is farther away is at infinity."""

_STILL, _SLOW = 0.05, 0.2
"""Where x changes by less than the first share of it, Newton's steps shrink the error by more than
the second, unless the Hessian given is not that of the objective."""

_STEP = 1e-5
"""Standard errors between gradients whose differences make the Hessian."""

_SUFFICIENT_DECREASE = 1e-4
_MOST_STEPS = 200
_MOST_HALVINGS = 60


class _Point(NamedTuple):
    """A place on the way to an end, and what it says of the profile there.

    step: d. along: b. decrement: √(-gᵀd). risen: f_m(x) less its least value. slope: f_m'(x).
    """

    x: float
    w: Array
    value: float
    step: Array
    along: Array
    decrement: float
    risen: float
    slope: float


def profile_ends(
    objective: LogPosterior, w: Array, directions: Array, rise: float, names: Sequence[str]
) -> Array:
    """Both ends (k, 2) of each parameter mᵀw, with the m in the rows of `directions` (k, p).

    `w` is the optimum. An end is infinite where the profile never rises by `rise`. `names` are
    those of the parameters, for errors.
    """
    search = Search.of(objective, w, rise)

    def end(m: Array, name: str) -> float:
        found = replace(search, name=name).end(m)
        return np.inf if found is None else float(m @ found)

    pairs = zip(directions, names, strict=True)
    return np.array([[-end(-m, name), end(m, name)] for m, name in pairs])


def _least(best: Local) -> float:
    """The least value of the objective, one step from a fit."""
    held = with_one_held(best.gradient, cast(Array, best.hessian), np.eye(len(best.gradient))[0])
    slope = float(best.gradient @ held.along)
    gain = -float(best.gradient @ held.step)
    if held.curvature > 0:
        gain += slope**2 / held.curvature
    if not gain < _CONVERGED**2:
        raise InferenceError(
            "The fit has not converged, so that there is no likelihood to profile.",
            "Raise max_iter, set a prior, or use intervals='wald'.",
        )
    return best.value - 0.5 * gain


@dataclass(frozen=True, eq=False)
class Search:
    """The way from the optimum `w` to an end; `floor` is the least value of the objective.

    `differences`: whether H is made of differences of gradients, for objectives that give another
    matrix in its place. `name` is what errors call the parameter.
    """

    objective: LogPosterior
    w: Array
    best: Local
    floor: float
    rise: float
    differences: bool = False
    name: str = "a parameter"

    @classmethod
    def of(cls, objective: LogPosterior, w: Array, rise: float) -> "Search":
        """That from an optimum."""
        objective = replace(objective, information="observed")
        best = objective(w, "full")
        return cls(objective, w, best, _least(best), rise)

    def end(self, m: Array, near: Array | None = None) -> Array | None:
        """The w (p,) at which the profile along m has risen enough; None if it never does.

        `near` is a place that may be close to it.
        """
        curvature = with_one_held(self.best.gradient, cast(Array, self.best.hessian), m).curvature
        if curvature <= 0:
            return None
        half = float(np.sqrt(2 * self.rise / curvature))
        point, x = self._seen_from(0.0, self.w, self.best, m), half
        if near is not None and m @ (near - self.w) > 0:
            x = float(m @ (near - self.w))
            point = self._seen_from(x, near, self._evaluate(near), m)
        inside, outside = 0.0, np.inf
        for _ in range(_MOST_STEPS):
            before, point = point, self._moved(point, x, m)
            if point.decrement > _UNSETTLED:
                x = point.x
                continue
            missing = self.rise - point.risen
            if self._is_end(point, missing):
                return point.w
            if missing > 0 and _is_flat(point, missing, half):
                return None
            if _is_slow(before, point) and not self.differences:
                return replace(self, differences=True).end(m, near)
            if point.decrement < _TRUSTED and missing > point.decrement**2:
                inside = max(inside, point.x)
            if point.decrement < _TRUSTED and missing < -(point.decrement**2):
                outside = min(outside, point.x)
            x = self._next(point, inside, outside)
        raise self._not_found()

    def _is_end(self, point: _Point, missing: float) -> bool:
        exact = _EXACT * self.rise + _ROUNDING * abs(self.floor)
        return point.decrement <= _SETTLED and abs(missing) <= exact

    def _next(self, point: _Point, inside: float, outside: float) -> float:
        """Newton's step for r(x), which is close to a straight line; else between the bounds."""
        if point.risen < self.rise:
            inside = max(inside, point.x)
        else:
            outside = min(outside, point.x)
        if point.slope > 0 and point.risen > 0:
            wanted, root = np.sqrt(2 * self.rise), np.sqrt(2 * point.risen)
            x = point.x + float((wanted - root) * root / point.slope)
            if inside < x < outside:
                return min(x, _GROWTH * point.x)
        return (inside + outside) / 2 if outside < np.inf else _GROWTH * point.x

    def _moved(self, point: _Point, x: float, m: Array) -> _Point:
        """The next point, at x or part of the way to it."""
        step = point.step + (x - point.x) * point.along
        # With x held, the step must lead down; otherwise it may climb, but not out of sight.
        highest, share = max(point.value, self.floor + _TOO_HIGH * self.rise), 1.0
        for _ in range(_MOST_HALVINGS):
            w = point.w + share * step
            here = self._evaluate(w)
            if x == point.x:
                highest = point.value - _SUFFICIENT_DECREASE * share * point.decrement**2
            if here.value <= highest:
                return self._seen_from(point.x + share * (x - point.x), w, here, m)
            share /= 2
        raise self._not_found()

    def _seen_from(self, x: float, w: Array, here: Local, m: Array) -> _Point:
        held = with_one_held(here.gradient, cast(Array, here.hessian), m)
        decrement = float(np.sqrt(max(-float(here.gradient @ held.step), 0.0)))
        risen = here.value - 0.5 * decrement**2 - self.floor
        slope = float(here.gradient @ held.along)
        return _Point(x, w, here.value, held.step, held.along, decrement, risen, slope)

    def _not_found(self) -> InferenceError:
        return InferenceError(
            f"An end of the profile interval of {self.name} was not found: the likelihood is too "
            "rough there.",
            "Use intervals='wald', or set a prior.",
        )

    def _evaluate(self, w: Array) -> Local:
        if not self.differences:
            return self.objective(w, "full")
        here = self.objective(w, "none")
        if not np.isfinite(here.value):
            return here
        error = _STEP / np.sqrt(np.diagonal(cast(Array, self.best.hessian)))
        there = [self.objective(w + step, "none").gradient for step in np.diag(error)]
        found = (np.stack(there) - here.gradient) / error[:, None]
        return here._replace(hessian=(found + found.T) / 2)


def _is_slow(before: _Point, point: _Point) -> bool:
    """Whether steps are not those of Newton."""
    still = abs(point.x - before.x) < _STILL * point.x
    near = _SETTLED < point.decrement < _TRUSTED
    return still and near and point.decrement > _SLOW * before.decrement


def _is_flat(point: _Point, missing: float, half: float) -> bool:
    """Whether a profile that goes on as steeply as here does not rise enough in reach."""
    left = _FARTHEST * half - point.x
    return left <= 0 or (point.x > 2 * half and point.slope * left < missing)
