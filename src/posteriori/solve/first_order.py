"""Gradient ascent, and ascent of one coefficient at a time (documents 000 and 004).

Conventions as in `posteriori.solve.newton`: p parameters w (p,) of standardised columns, objective
f = -ln p (its descent is the ascent of the likelihood), gradient g (p,), Hessian H (p, p).

Lengths are in standard errors: 2 (f(w) - min f) is the square of how many of them w is away from
the optimum, along the direction in which it is away.
"""

import math
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import cast

import numpy as np
from scipy.linalg import blas

from posteriori.errors import ParameterError
from posteriori.solve.local import Curvature, Local, Objective
from posteriori.solve.metric import Metric
from posteriori.solve.search import Found, decrement_of, newton_rate, search, standstill
from posteriori.solve.solution import Iteration, Solution, Status
from posteriori.typing import Array

Suspicion = Callable[[], bool]
"""Asked once if parameters may run to infinity; if it says yes, the iteration ends."""

_FLAT = 1e-3
"""Curvature along a step, beside that of its coefficients alone, that may lead to no maximum."""

_MEMORY = 12
"""Steps that are remembered when the curvature of each parameter is computed anew."""

_FIRST_RENEWAL = 5
"""The step after which that is done first; then after twice as many each time."""

_COARSEST = 1e-4
"""A flat direction may not have been seen yet when no more than this is left by the others."""

_SLOW, _SLOW_STEPS = 0.35, 4
"""So many steps with new Hessians that shrink the error by less than this point there too."""

_MOST_ROUGH_STEPS = 50
"""Steps on a subsample, whose optimum need not be found."""

FINEST = 1e-9
"""Standard errors below which doubles tell no difference."""

_EXACT = 1e-9
"""By how much sweeps shrink the error before a quadratic counts as solved."""

_ROUNDING = 1e-13
"""Curvature beside that of each coefficient alone that is no more than rounding."""


class _Path:
    """Where a descent is, and how it got there."""

    def __init__(self, start: Array) -> None:
        self.w, self.value = start, np.nan
        self.trace: list[Iteration] = []
        self._begun = perf_counter()

    def solution(self, status: Status) -> Solution[Array, Iteration]:
        return Solution(self.w, status, tuple(self.trace), self.value)

    def seconds(self) -> float:
        return perf_counter() - self._begun

    def note(
        self,
        objective: Objective,
        here: Local,
        decrement: float,
        found: Found,
        seconds: float,
        fresh: bool,
    ) -> None:
        """Write a step into the trace."""
        self.trace.append(
            Iteration(
                here.value, decrement, found.length, seconds, objective.share, fresh, found.looks
            )
        )

    def go(self, found: Found, step: Array) -> Array:
        """Take the part of a step that was found to be good."""
        moved = found.length * step
        self.w, self.value = self.w + moved, found.local.value
        return moved


class Curvatures:
    """How far the optimum is at most, told from the curvature along the steps so far.

    `unit` (p,) is the curvature of each parameter alone. Correlated columns have directions that
    are much flatter; a small slope along them can still lead far. So what is left of the gradient
    is taken to lie along the flattest step: the bound is √(Σ g²/unit / flattest).

    >>> curvatures = Curvatures(np.array([1.0, 1.0]))
    >>> curvatures.see(np.array([1.0, -1.0]), np.array([0.01, -0.01]))
    0.01
    >>> curvatures.away(np.array([0.03, 0.04]))
    0.5
    """

    def __init__(self, unit: Array) -> None:
        self._unit = np.where(unit > 0, unit, 1.0)
        self._flattest = np.inf

    def see(self, moved: Array, change: Array) -> float:
        """Take in that g changed by `change` along `moved`; gives the curvature in its unit."""
        alone = float(moved @ (self._unit * moved))
        if alone == 0:
            return np.inf
        curvature = float(moved @ change) / alone
        if curvature > 0:
            self._flattest = min(curvature, self._flattest)
        return curvature

    def away(self, gradient: Array) -> float:
        """Standard errors from the optimum, at most; not known before the first step."""
        size = float(gradient @ (gradient / self._unit))
        if size == 0:
            return 0.0
        return math.sqrt(size / self._flattest) if self._flattest < np.inf else np.inf


def gradient(
    levels: Sequence[Objective],
    start: Array,
    *,
    max_iter: int = 2000,
    suspicion: Suspicion | None = None,
) -> Solution[Array, Iteration]:
    """Gradient ascent w + α ∂ln p/∂w, which finds its α by itself.

    The first step is scaled by the curvature of each coefficient alone; from then on the changes
    of the gradient along the steps before correct the direction (a limited-memory quasi-Newton
    method), and a line search makes sure that f falls. No matrix (p, p) is ever asked for. `levels`
    and `suspicion` are those of `newton`; the levels before the last give a good start.
    """
    path = _GradientPath(start)
    for objective in levels[:-1]:
        path.run(objective, objective.tolerance, _MOST_ROUGH_STEPS, None)
    tolerance = min(max(levels[-1].tolerance, FINEST), _COARSEST)
    return path.solution(path.run(levels[-1], tolerance, max_iter, suspicion))


class _GradientPath(_Path):
    """A path that remembers how the gradient changed."""

    def __init__(self, start: Array) -> None:
        super().__init__(start)
        self._remembered: list[tuple[Array, Array]] = []
        self._metric: Metric | None = None

    def run(
        self, objective: Objective, tolerance: float, most: int, suspicion: Suspicion | None
    ) -> Status:
        """Steps on one objective until the rest of the way is shorter than the tolerance."""
        here = objective(self.w, "diagonal" if self._metric is None else "none")
        self.value, renewal = here.value, _FIRST_RENEWAL
        for k in range(1, most + 1):
            self._renew(here.hessian)
            step = self._direction(here)
            decrement = decrement_of(objective, here, step)
            if max(decrement, self._curvatures.away(here.gradient) / objective.unit) <= tolerance:
                return Status.CONVERGED
            seconds, curvature = self.seconds(), "diagonal" if k == renewal else "none"
            found = search(objective, self.w, here, step, cast(Curvature, curvature))
            if found is None:
                return standstill(objective, here, step)
            self.note(objective, here, decrement, found, seconds, fresh=False)
            flat = self._remember(self.go(found, step), found.local.gradient - here.gradient)
            if suspicion is not None and flat:
                if suspicion():
                    return Status.SEPARATED
                suspicion = None
            here, renewal = found.local, renewal * (2 if k == renewal else 1)
        return Status.MAX_ITERATIONS

    def _renew(self, diagonal: Array | None) -> None:
        """Start from a new curvature of each parameter, with all that is remembered."""
        if diagonal is None:
            return
        self._metric, self._curvatures = Metric.of(diagonal), Curvatures(diagonal)
        remembered, self._remembered = self._remembered, []
        for moved, change in remembered:
            self._remember(moved, change)

    def _direction(self, here: Local) -> Array:
        return cast(Metric, self._metric).direction(here.gradient)

    def _remember(self, moved: Array, change: Array) -> bool:
        """Take in a step; whether it was one along which nothing much changes."""
        self._remembered = [*self._remembered[1 - _MEMORY :], (moved, change)]
        cast(Metric, self._metric).learn(moved, change)
        return self._curvatures.see(moved, change) < _FLAT


def coordinate(
    levels: Sequence[Objective],
    start: Array,
    *,
    max_iter: int = 100,
    suspicion: Suspicion | None = None,
) -> Solution[Array, Iteration]:
    """One coefficient at a time, each moved to where f is least in it alone.

    Value, gradient and Hessian make a parabola, on which `sweeps` move the coefficients one by
    one until none has a slope left; a line search takes what was found over to f. Works where H
    is singular: along directions in which nothing changes, nothing is moved. `levels` and
    `suspicion` are those of `newton`.
    """
    if levels[-1].price == np.inf:
        raise ParameterError(
            f"solver='coordinate' needs the second derivatives of all {len(start)} parameters, "
            "which are too many.",
            "Use solver='gradient' or 'auto'.",
        )
    path = _Path(start)
    for objective in levels[:-1]:
        _coordinate_steps(objective, path, _MOST_ROUGH_STEPS, None)
    return path.solution(_coordinate_steps(levels[-1], path, max_iter, suspicion))


def _coordinate_steps(
    objective: Objective, path: _Path, most: int, suspicion: Suspicion | None
) -> Status:
    """Parabolas of one objective until the step after next would be shorter than its tolerance."""
    here, before, slow = objective(path.w, "full"), np.inf, 0
    path.value = here.value
    for _ in range(most):
        step = sweeps(cast(Array, here.hessian), here.gradient)
        decrement = decrement_of(objective, here, step)
        enough = decrement * newton_rate(decrement, before) <= objective.tolerance
        slow = slow + 1 if decrement > _SLOW * before else 0
        if suspicion is not None and slow >= _SLOW_STEPS and not enough:
            if suspicion():
                return Status.SEPARATED
            suspicion = None
        seconds = path.seconds()
        found = search(objective, path.w, here, step, "none" if enough else "full")
        if found is None:
            near = decrement <= objective.tolerance
            return Status.CONVERGED if near else standstill(objective, here, step)
        path.note(objective, here, decrement, found, seconds, fresh=True)
        path.go(found, step)
        if enough:
            return Status.CONVERGED
        here, before = found.local, decrement
    return Status.MAX_ITERATIONS


def sweeps(hessian: Array, gradient: Array) -> Array:
    """The step s with Hs = -g, one coefficient at a time, up and down their row.

    With a unit diagonal, s_k moves by -(g + Hs)_k. A sweep from the first coefficient to the last
    (Gauss-Seidel) is forward substitution with the lower triangle of H, the way back is that of
    its transpose. What one sweep finds is made conjugate to the sweeps before, so that correlated
    columns need about as many sweeps as there are of them, rather than thousands.

    >>> H, g = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([-3.0, 0.0])
    >>> sweeps(H, g).round(12)
    array([ 2., -1.])
    """
    diagonal = np.diagonal(hessian)
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    matrix = hessian / scale / scale[:, None]
    lower = np.asfortranarray(np.tril(matrix))
    slope = -gradient / scale
    step, swept = np.zeros(len(slope)), _up_and_down(lower, slope)
    direction, size = swept, float(slope @ swept)
    enough = _EXACT**2 * size
    for k in range(10 * len(slope)):
        bent = matrix @ direction
        curvature = float(direction @ bent)
        if curvature <= _ROUNDING * float(direction @ direction):
            return (direction if k == 0 else step) / scale
        length = size / curvature
        step, slope = step + length * direction, slope - length * bent
        swept = _up_and_down(lower, slope)
        size, before = float(slope @ swept), size
        if size <= enough:
            break
        direction = swept + size / before * direction
    return step / scale


def _up_and_down(lower: Array, slope: Array) -> Array:
    """One sweep over all coefficients and back, from zero."""
    up = blas.dtrsv(lower, slope, lower=1, diag=1)
    return cast(Array, blas.dtrsv(lower, up, lower=1, trans=1, diag=1))
