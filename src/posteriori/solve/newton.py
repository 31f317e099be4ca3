"""Newton's method (4.92) on a sum over rows, with a Hessian that is computed only when it pays.

Conventions: p parameters w (p,), objective f (to be made small), gradient g (p,), Hessian H (p, p),
or its diagonal (p,) where H itself would be too large.

A pass that gives f and g costs little beside one that gives H, so H (or that of a subsample) is
kept as a metric for many steps. The changes of g along the way correct it (L-BFGS on top of the
Cholesky factor); it is computed anew when that will save more passes than it costs.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Literal, NamedTuple, Protocol, cast

import numpy as np
from scipy.linalg import lapack

from posteriori.linalg import cholesky
from posteriori.solve.solution import Iteration, Solution, Status
from posteriori.typing import Array

_MEMORY = 12
"""Changes of the gradient that are remembered."""

_INDEPENDENT = 1e-6
"""Steps with less of their length outside the others are not told apart from them."""

_AGREE = 0.1
"""sᵀHt and tᵀHs may differ by this much for steps s, t of length one; by more, the Hessian has
changed between them."""

_FLAT = 1e-10
"""Curvatures below this share of the largest are taken for it."""

_UNKNOWN_RATE = 0.3
"""By how much a step is taken to shrink the error before this has been seen."""

_SLOW = 0.35
"""With a new Hessian each time, steps that shrink the error less point at a flat direction."""

_DEAR = 3.0
"""A Hessian that costs more passes over all rows than this is not computed before its diagonal has
been tried."""

_BAD = 0.45
"""A diagonal that shrinks the error by less than this on a subsample is not good enough."""

_BEST_RATE, _WORST_RATE = 1e-3, 0.9
"""Bounds of a rate that is only expected."""

_NEAR = 0.3
"""Where a subsample's iteration ends, in its optimum's distance from that of all rows."""

_MOST_ROUGH_STEPS = 12
"""Steps on a subsample, whose optimum need not be found."""

_SUSPICIOUS_STEPS = 4
_SUFFICIENT_DECREASE = 1e-4
_ROUNDING = 1e-13
"""Relative error of an objective that is a sum over many rows."""

_LEVEL = 1e3
"""Gains below this many rounding errors cannot be told from none."""

_MOST_HALVINGS = 60


Curvature = Literal["none", "diagonal", "full"]
"""How much of the second derivative is asked for."""


class Local(NamedTuple):
    """f, g and, where it was asked for, H (p, p) or its diagonal (p,)."""

    value: float
    gradient: Array
    hessian: Array | None


class Objective(Protocol):
    """A function of the parameters to be made small.

    `price`: what H costs in units of f and g together; infinite if it is not to be had. `share`:
    of all rows, those that it looks at. `tolerance`: how many standard errors from its optimum
    are near enough.
    """

    @property
    def price(self) -> float: ...
    @property
    def share(self) -> float: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def tolerance(self) -> float: ...
    def __call__(self, w: Array, hessian: Curvature) -> Local: ...


@dataclass
class Metric:
    """The inverse of a Hessian, corrected by the changes of the gradient since it was made.

    Along the steps S taken since then, H is known: HS = Y, the changes of the gradient. So the
    direction solves for the part of the error within S exactly, and for the rest by the old
    Hessian M: with P = I - Y(SᵀY)⁻¹Sᵀ, H⁻¹ is taken as S(SᵀY)⁻¹Sᵀ + PᵀM⁻¹P.
    """

    _scale: Array
    _factor: Array | None
    _steps: list[Array] = field(default_factory=list)
    _changes: list[Array] = field(default_factory=list)

    @classmethod
    def of(cls, hessian: Array) -> "Metric":
        """The metric of H, or of a diagonal; made positive definite where it is not."""
        if hessian.ndim == 1:
            return cls(np.where(hessian > 0, hessian, 1.0), None)
        hessian = np.where(np.isfinite(hessian), hessian, 0.0)
        scale = np.sqrt(abs(np.diagonal(hessian)))
        scale = np.where(scale > 0, scale, 1.0)
        matrix = hessian / scale / scale[:, None]
        factor = cholesky(matrix)
        return cls(scale, _turned_up(matrix) if factor is None else factor)

    @property
    def is_full(self) -> bool:
        """Whether it knows more than a diagonal."""
        return self._factor is not None

    def solve(self, v: Array) -> Array:
        """M⁻¹v."""
        if self._factor is None:
            return v / self._scale
        solution, _ = lapack.dpotrs(self._factor, v / self._scale, lower=1)
        return cast(Array, solution / self._scale)

    def learn(self, step: Array, change: Array) -> None:
        """Take in that the gradient changed by `change` along `step`."""
        if step @ change <= 1e-12 * (change @ self.solve(change)):  # not convex here
            return
        self._steps = [*self._steps[1 - _MEMORY :], step]
        self._changes = [*self._changes[1 - _MEMORY :], change]

    def direction(self, gradient: Array) -> Array:
        """-H⁻¹g."""
        known = self._known_part()
        if known is None:
            return -self.solve(gradient)
        S, Y, inner = known
        within, _ = lapack.dpotrs(inner, S.T @ gradient, lower=1)
        rest = self.solve(gradient - Y @ within)
        back, _ = lapack.dpotrs(inner, Y.T @ rest, lower=1)
        return cast(Array, -(S @ (within - back) + rest))

    def _known_part(self) -> tuple[Array, Array, Array] | None:
        """S, Y and the Cholesky factor of SᵀY, for as many of the last steps as it exists."""
        while self._steps:
            S, Y = np.stack(self._steps, axis=1), np.stack(self._changes, axis=1)
            length = np.sqrt(np.einsum("ij,ij->j", S, Y))
            S, Y = S / length, Y / length
            product = S.T @ Y
            if abs(product - product.T).max() < _AGREE:
                inner = cholesky((product + product.T) / 2)
                if inner is not None and np.diagonal(inner).min() ** 2 > _INDEPENDENT:
                    return S, Y, inner
            del self._steps[0], self._changes[0]
        return None


def _turned_up(matrix: Array) -> Array:
    """The factor of a matrix that is not positive definite, its curvatures taken as positive."""
    values, vectors = np.linalg.eigh(matrix)
    size = np.maximum(abs(values), _FLAT * max(abs(values).max(), 1.0))
    return cast(Array, cholesky((vectors * size) @ vectors.T))


@dataclass
class _Progress:
    """What is carried from step to step, and from a subsample to all rows."""

    w: Array
    metric: Metric | None = None
    rate: float = _UNKNOWN_RATE
    value: float = np.nan
    trace: list[Iteration] = field(default_factory=list)
    begun: float = field(default_factory=perf_counter)


def newton(
    levels: Sequence[Objective],
    start: Array,
    *,
    max_iter: int = 100,
    always_fresh: bool = False,
    suspicion: Callable[[], bool] | None = None,
) -> Solution[Array, Iteration]:
    """The parameters that make the last of `levels` smallest.

    The levels before it are the same function on ever more of the rows; each starts where the one
    before it ended, with its Hessian as the first metric. `suspicion` is asked once if steps with
    new Hessians make so little headway that parameters may run to infinity; if it says yes, the
    iteration ends.
    """
    progress = _Progress(start)
    for objective in levels[:-1]:
        _descend(objective, progress, _MOST_ROUGH_STEPS, always_fresh, None)
        _hand_over(objective, levels[-1], progress)
    status = _descend(levels[-1], progress, max_iter, always_fresh, suspicion)
    return Solution(progress.w, status, tuple(progress.trace), progress.value)


def _descend(
    objective: Objective,
    progress: _Progress,
    most: int,
    always_fresh: bool,
    suspicion: Callable[[], bool] | None,
) -> Status:
    """Steps on one objective, until the next would be shorter than its tolerance."""
    metric, slow, last, poor = progress.metric, 0, np.inf, False
    before = np.inf
    here = objective(progress.w, _first_curvature(objective, metric, always_fresh))
    for _ in range(most):
        fresh = here.hessian is not None and here.hessian.ndim == 2
        if here.hessian is not None:
            metric = Metric.of(here.hessian)
        metric = cast(Metric, metric)
        step = metric.direction(here.gradient)
        decrement = math.sqrt(max(-float(here.gradient @ step), 0.0))
        if fresh:
            progress.rate = _expected_rate(objective, len(step), decrement)
        rate = _rate(decrement, last, before, fresh, progress.rate)
        slow = slow + 1 if fresh and decrement > _SLOW * last else 0
        note = Iteration(
            here.value, decrement, 1.0, perf_counter() - progress.begun, objective.share, fresh
        )
        if decrement * rate <= objective.tolerance and not poor:
            progress.w, progress.metric = progress.w + step, metric
            if not metric.is_full:
                progress.rate = rate
            # The last step is too short for the objective to be anything but a parabola along it.
            progress.value = here.value - 0.5 * decrement**2
            progress.trace.append(note)
            return Status.CONVERGED
        if suspicion is not None and slow >= _SUSPICIOUS_STEPS:
            if suspicion():
                return Status.SEPARATED
            suspicion = None
        renew = always_fresh or _pays(objective, decrement, rate)
        renew = renew or (poor and objective.price < np.inf)
        length, there = _search(objective, progress.w, here, step, "full" if renew else "none")
        if there is None:
            progress.metric, progress.value = metric, here.value
            level = decrement**2 <= _LEVEL * _ROUNDING * abs(here.value)
            return Status.CONVERGED if level else Status.STALLED
        moved = length * step
        metric.learn(moved, there.gradient - here.gradient)
        progress.w, here, before, last = progress.w + moved, there, last, decrement
        progress.value = here.value
        poor = not metric.is_full and objective.share < 1 and (length < 0.5 or rate > _BAD)
        progress.trace.append(replace(note, step=length))
    progress.metric = metric
    return Status.MAX_ITERATIONS


def _first_curvature(objective: Objective, metric: Metric | None, always_fresh: bool) -> Curvature:
    """What a descent starts from: the metric it was given, or as much of H as is cheap."""
    if always_fresh:
        return "full"
    if metric is not None:
        return "none"
    return "full" if objective.price * objective.share <= _DEAR else "diagonal"


def _expected_rate(objective: Objective, p: int, decrement: float) -> float:
    """By how much steps should shrink the error of all rows, with a Hessian that was made here.

    It differs from theirs by chance, if it is of a subsample, and because it was made away from
    the optimum, at the distance `decrement`.
    """
    chance = 1.3 * math.sqrt(p / objective.n_rows) if objective.share < 1 else 0.0
    distance = 2.0 * decrement * math.sqrt(objective.share / objective.n_rows)
    return min(max(math.hypot(chance, distance), _BEST_RATE), _WORST_RATE)


def _hand_over(objective: Objective, last: Objective, progress: _Progress) -> None:
    """Give the next level a new Hessian of this subsample, if that saves more than it costs."""
    away = math.sqrt(len(progress.w) / objective.share)
    expected = _expected_rate(objective, len(progress.w), _NEAR * away)
    if objective.price == np.inf or expected >= progress.rate:
        return
    saved = _passes(last.tolerance, away, progress.rate) - _passes(last.tolerance, away, expected)
    if saved > (objective.price + 1) * objective.share:
        here = objective(progress.w, "full")
        progress.metric = Metric.of(cast(Array, here.hessian))
        progress.rate = expected


def _passes(tolerance: float, decrement: float, rate: float) -> float:
    """Steps of this rate until the error is within the tolerance."""
    return float(np.log(tolerance / decrement) / np.log(rate))


def _rate(decrement: float, last: float, before: float, fresh: bool, expected: float) -> float:
    """By how much the step about to be taken should shrink the error: as the last two did."""
    if fresh:
        return min(decrement, _UNKNOWN_RATE)  # Newton's steps square it
    if last == np.inf:
        return expected
    seen = decrement / last if before == np.inf else math.sqrt(decrement / before)
    return min(seen, 1.0)


def _pays(objective: Objective, decrement: float, rate: float) -> bool:
    """Whether a new Hessian saves more passes than it costs."""
    if objective.price == np.inf:
        return False
    if rate >= 1.0:
        return True
    return _passes(objective.tolerance, decrement, rate) > objective.price + 2


def _search(
    objective: Objective, w: Array, here: Local, step: Array, hessian: Curvature
) -> tuple[float, Local | None]:
    """How far to go along a step that points downhill: all of it, else halved until f is less."""
    slope, length = float(here.gradient @ step), 1.0
    noise = _ROUNDING * abs(here.value)
    for _ in range(_MOST_HALVINGS):
        there = objective(w + length * step, hessian)
        gain = here.value - there.value
        if gain >= -_SUFFICIENT_DECREASE * length * slope:
            return length, there
        # Where f is level to the last digit, its slope can still be told.
        if abs(gain) <= noise and abs(there.gradient @ step) <= 0.9 * abs(slope):
            return length, there
        length *= _shorter(gain, length * slope)
    return length, None


def _shorter(gain: float, slope: float) -> float:
    """The minimum of the parabola through both values, within a tenth and a half."""
    if not np.isfinite(gain):
        return 0.5
    return float(np.clip(-slope / (2 * (-gain - slope)), 0.1, 0.5))
