"""Newton's method (4.92) on a sum over rows, with a Hessian that is computed only when it pays.

Conventions: p parameters w (p,), objective f (to be made small), gradient g (p,), Hessian H (p, p),
or its diagonal (p,) where H itself would be too large.

A pass that gives f and g costs little beside one that gives H, so H (or that of a subsample) is
kept as a metric for many steps. The changes of g along the way correct it (L-BFGS on top of the
Cholesky factor); it is computed anew when that will save more passes than it costs.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import cast

import numpy as np

from posteriori.solve.local import Curvature, Objective
from posteriori.solve.metric import Metric
from posteriori.solve.search import (
    decrement_of,
    left_by_newton,
    newton_rate,
    search,
    standstill,
)
from posteriori.solve.solution import Iteration, Solution, Status
from posteriori.typing import Array

_UNKNOWN_RATE = 0.3
"""By how much a step is taken to shrink the error before this has been seen."""

_SLOW = 0.35
"""With a new Hessian each time, steps that shrink the error less point at a flat direction."""

_DEAR = 1.5
"""A Hessian that costs more passes over all rows than this is not computed before its diagonal has
been tried."""

_SHORT, _LOOSE = 1e-3, 1e-2
"""The last step is taken without a look at f if it changes no parameter by more than this share:
otherwise some direction is flat, and f may not be a parabola along it. With a tolerance that is
looser than the second, the step may be longer by as much."""

_CHEAP = 1.0
"""A Hessian that costs less than a pass is computed for every step: the last digits come along."""

_BAD = 0.45
"""A diagonal that shrinks the error by less than this on a subsample is not good enough."""

_BEST_RATE, _WORST_RATE = 1e-3, 0.9
"""Bounds of a rate that is only expected."""

_NEAR = 0.3
"""Where a subsample's iteration ends, in its optimum's distance from that of all rows."""

_MOST_ROUGH_STEPS = 12
"""Steps on a subsample, whose optimum need not be found."""

_MOST_LAST_STEPS = 3
"""Steps that lead to the optimum from nearby."""

_SUSPICIOUS_STEPS = 4


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
    hessian: Array | None = None,
) -> Solution[Array, Iteration]:
    """The parameters that make the last of `levels` smallest.

    The levels before it are the same function on ever more of the rows; each starts where the one
    before it ended, with its Hessian as the first metric. `suspicion` is asked once if steps with
    new Hessians make so little headway that parameters may run to infinity; if it says yes, the
    iteration ends. `hessian` is that of the first level near the start, if it is known.
    """
    progress = _Progress(start, None if hessian is None else Metric.of(hessian))
    with np.errstate(over="ignore", invalid="ignore"):  # steps that are too long meet infinities
        for objective in levels[:-1]:
            _descend(objective, progress, _MOST_ROUGH_STEPS, always_fresh, None)
            _hand_over(objective, levels[-1], progress)
        status = _descend(levels[-1], progress, max_iter, always_fresh, suspicion)
    return Solution(progress.w, status, tuple(progress.trace), progress.value)


def polish(
    objective: Objective, found: Solution[Array, Iteration]
) -> tuple[Solution[Array, Iteration], Array] | None:
    """Steps with new Hessians, until one leaves no more than the tolerance; and its Hessian.

    It is for a solution that is `near_enough`: one step squares the part of a standard error that
    is left. None if a few do not lead to the optimum.
    """
    w, trace = found.parameters, list(found.trace)
    for _ in range(_MOST_LAST_STEPS):
        here = objective(w, "full")
        hessian = cast(Array, here.hessian)
        step = Metric.of(hessian).direction(here.gradient)
        decrement = decrement_of(objective, here, step)
        trace.append(
            Iteration(here.value, decrement, 1.0, trace[-1].seconds, objective.share, True)
        )
        w = w + step
        if left_by_newton(objective, decrement, hessian) <= objective.tolerance:
            value = here.value - 0.5 * (decrement * objective.unit) ** 2
            return Solution(w, found.status, tuple(trace), value), hessian
    return None


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
        decrement = decrement_of(objective, here, step)
        if fresh:
            progress.rate = _expected_rate(objective, len(step), decrement)
        rate = _rate(decrement, last, before, fresh, progress.rate)
        slow = slow + 1 if fresh and decrement > _SLOW * last else 0
        value, seconds, share = here.value, perf_counter() - progress.begun, objective.share
        size = 1.0 + abs(progress.w).max(initial=0.0)
        longest = _SHORT * size * max(objective.tolerance / _LOOSE, 1.0)
        short = objective.share < 1 or abs(step).max(initial=0.0) <= longest
        left = _left(decrement, rate)
        if short and not poor and left <= objective.tolerance:
            progress.w, progress.metric = progress.w + step, metric
            if not metric.is_full:
                progress.rate = rate
            # The last step is too short for the objective to be anything but a parabola along it.
            progress.value = here.value - 0.5 * (decrement * objective.unit) ** 2
            progress.trace.append(Iteration(value, decrement, 1.0, seconds, share, fresh))
            return Status.CONVERGED
        if suspicion is not None and slow >= _SUSPICIOUS_STEPS:
            if suspicion():
                return Status.SEPARATED
            suspicion = None
        if fresh:
            rate = min(progress.rate, _UNKNOWN_RATE)
        done = left * progress.rate <= objective.tolerance  # by one more step of this metric
        renew = always_fresh or (not done and _pays(objective, decrement, rate))
        renew = renew or (poor and objective.price < np.inf)
        found = search(objective, progress.w, here, step, "full" if renew else "none")
        if found is None:
            progress.metric, progress.value = metric, here.value
            return standstill(objective, here, step)
        moved = found.length * step
        if not renew:
            metric.learn(moved, found.local.gradient - here.gradient)
        progress.w, here, before, last = progress.w + moved, found.local, last, decrement
        progress.value = here.value
        poor = not metric.is_full and objective.share < 1 and (found.length < 0.5 or rate > _BAD)
        progress.trace.append(
            Iteration(value, decrement, found.length, seconds, share, fresh, found.looks)
        )
    progress.metric = metric
    return Status.MAX_ITERATIONS


def _first_curvature(objective: Objective, metric: Metric | None, always_fresh: bool) -> Curvature:
    """What a descent starts from: the metric it was given, or as much of H as is cheap."""
    if always_fresh:
        return "full"
    if metric is not None:
        return "none"
    return "full" if objective.start_price * objective.share <= _DEAR else "diagonal"


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


def _left(decrement: float, rate: float) -> float:
    """The error that this step leaves, if all later ones shrink it by the same rate."""
    return decrement * rate / (1.0 - rate) if rate < 1.0 else np.inf


def _rate(decrement: float, last: float, before: float, fresh: bool, expected: float) -> float:
    """By how much the step about to be taken should shrink the error: as the last two did."""
    if fresh:
        return newton_rate(decrement, last)
    if last == np.inf:
        return expected
    seen = decrement / last if before == np.inf else math.sqrt(decrement / before)
    return min(seen, 1.0)


def _pays(objective: Objective, decrement: float, rate: float) -> bool:
    """Whether a new Hessian saves more passes than it costs."""
    if objective.price == np.inf:
        return False
    if rate >= 1.0 or objective.price <= _CHEAP:
        return True
    return _passes(objective.tolerance, decrement, rate) > objective.price + 2
