"""The solvers by name, and which of them "auto" takes.

All reach the same optimum; they differ in what they need from the rows on the way there: gradient
ascent, ascent of one coefficient at a time, and sequential learning, beside Newton's method, which
needs the fewest passes. Conventions as in `posteriori.solve.newton`.
"""

import math
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
from scipy.linalg import blas
from scipy.optimize import OptimizeResult, minimize

from posteriori.errors import ParameterError
from posteriori.solve.line_search import decrement_of, rounding, standstill
from posteriori.solve.newton import InverseHessian, State, minimise, newton, newton_cg
from posteriori.solve.objective import Iteration, Local, Objective, Solution, Status
from posteriori.typing import Array

_EXPENSIVE = 3.0
"""Passes from which on a Hessian costs more than the products of conjugate gradients."""

_SLOW, _SLOW_STEPS = 0.35, 4
"""So many Newton steps that shrink the error by less may point at separated classes."""

_MANY_STEPS = 40
"""Gradient steps after which they may, too."""

_MOST_SWEEPS = 5000
_EXACT = 1e-10
"""By how much sweeps shrink the gradient before a quadratic counts as solved."""

_DIVERGED = 1e3 / _EXACT
"""Sweeps on a quadratic that is not convex make the gradient larger."""

_BATCHES, _ROWS_PER_PARAMETER = 16, 8
"""Batches of an epoch, and the rows each has at least."""

_FINEST = 1e-9
"""Standard errors below which doubles tell no difference."""


class Splittable(Objective, Protocol):
    """An objective whose rows can be split."""

    def batches(self, k: int) -> Sequence[Objective]:
        """Objectives on k parts of the rows, whose mean is this one; or this one alone."""
        ...


def gradient(
    levels: Sequence[Objective],
    start: Array,
    *,
    max_iter: int = 5000,
    check_separation: Callable[[], bool] | None = None,
) -> Solution[Array, Iteration]:
    """Gradient ascent by SciPy's L-BFGS-B, each coefficient in units of its own curvature.

    It stops where the scaled gradient is within the tolerance, or f is level to its last digits.
    """
    objective, begun, separated = levels[-1], perf_counter(), False
    diagonal = cast(Array, objective(start, "diagonal").hessian)
    unit, scale = objective.unit, np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    trace: list[Iteration] = []
    evaluated: list[Local] = []

    def scaled(u: Array) -> tuple[float, Array]:
        evaluated.append(objective(u * unit / scale, "none"))
        return evaluated[-1].value / unit**2, evaluated[-1].gradient / scale / unit

    def record(intermediate_result: OptimizeResult) -> None:
        nonlocal separated
        here, n_evaluations = evaluated[-1], len(evaluated)
        decrement = float(np.linalg.norm(here.gradient / scale)) / unit
        seconds = perf_counter() - begun
        trace.append(
            Iteration(
                here.value, decrement, 1.0, seconds, objective.row_fraction, False, n_evaluations
            )
        )
        evaluated[:] = [here]
        if check_separation is not None and len(trace) == _MANY_STEPS and check_separation():
            separated = True
            raise StopIteration

    # The optimum may be far along a direction in which the gradient is small.
    enough = 1e-2 * min(max(objective.tolerance, _FINEST), 1e-4)
    with np.errstate(over="ignore", invalid="ignore"):
        found = minimize(
            scaled,
            start * scale / unit,
            jac=True,
            method="L-BFGS-B",
            callback=record,
            options={"maxiter": max_iter, "maxfun": 20 * max_iter, "maxcor": 20, "ftol": 0.0,
                     "gtol": enough / math.sqrt(len(start))},
        )  # fmt: skip
        w = found.x * unit / scale
        here = objective(w, "none")
        status = Status.SEPARATED if separated else Status.MAX_ITERATIONS
        if found.status == 0:
            status = Status.CONVERGED
        elif found.status == 2:  # no step makes f smaller
            status = standstill(objective, here, -here.gradient / scale**2)
    return Solution(w, status, tuple(trace), here.value)


def coordinate(
    levels: Sequence[Objective],
    start: Array,
    *,
    max_iter: int = 100,
    check_separation: Callable[[], bool] | None = None,
) -> Solution[Array, Iteration]:
    """One coefficient at a time, each moved to where f is least in it alone.

    Value, gradient and Hessian make a quadratic, on which `sweeps` move the coefficients one by
    one until none has a slope left; a line search carries the step over to f.
    """
    _check_size(levels[-1], len(start), "coordinate")
    state = State(start, direction=sweeps)
    with np.errstate(over="ignore", invalid="ignore"):
        status = minimise(levels[-1], state, max_iter, True, check_separation)
    return Solution(state.w, status, tuple(state.trace), state.value)


def sweeps(hessian: Array, gradient: Array) -> Array:
    """The step s with Hs = -g, one coefficient at a time, from the first to the last and again.

    Coefficient k moves by -(g + Hs)_k / H_kk (Gauss-Seidel): a sweep over all of them is a
    substitution with the lower triangle of H.

    >>> H, g = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([-3.0, 0.0])
    >>> sweeps(H, g).round(8)
    array([ 2., -1.])
    """
    diagonal = np.diagonal(hessian)
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    matrix = hessian / scale / scale[:, None]
    np.fill_diagonal(matrix, 1.0)
    lower = np.asfortranarray(np.tril(matrix))
    slope = gradient / scale
    step, left = np.zeros(len(slope)), slope
    enough = _EXACT * np.linalg.norm(slope)
    for _ in range(_MOST_SWEEPS):
        if np.linalg.norm(left) <= enough:
            break
        step = step - blas.dtrsv(lower, left, lower=1, diag=1)
        left = slope + matrix @ step
        if not (float(slope @ step) < 0 and np.linalg.norm(left) < _DIVERGED * enough):
            return -slope / scale  # not convex here
    return step / scale


def sequential(
    levels: Sequence[Splittable],
    start: Array,
    *,
    max_iter: int = 200,
    check_separation: Callable[[], bool] | None = None,
) -> Solution[Array, Iteration]:
    """Stochastic gradients with variance reduction: a few rows at a time, in random order.

    Plain stochastic gradients, w - η ∇f_b(w) for batch b (3.22), never settle: at the optimum each
    ∇f_b still has a size of its own. That is known from a pass at an anchor v, and subtracted
    (Johnson and Zhang 2013): w - η M⁻¹ (∇f_b(w) - ∇f_b(v) + ∇f(v)), with M the Hessian of a
    subsample, or of all rows where that proves too coarse. With too few rows for batches this is
    Newton's method.
    """
    objective, begun, p = levels[-1], perf_counter(), len(start)
    _check_size(objective, p, "sequential")
    k = min(objective.n_rows // (_ROWS_PER_PARAMETER * max(p, 1)), _BATCHES)
    parts = objective.batches(k) if k > 1 else [objective]
    if len(parts) == 1:
        return newton(levels, start, max_iter=max_iter, check_separation=check_separation)
    random, rate = np.random.default_rng(0), 1.0 / (1.0 + p * k / objective.n_rows)
    metric = InverseHessian.of(cast(Array, levels[0](start, "full").hessian))
    w, (here, slopes), last, slow = start, _at_anchor(parts, start), np.inf, 0
    trace: list[Iteration] = []
    for _ in range(max_iter):
        decrement = decrement_of(objective, here, metric.direction(here.gradient))
        slow = slow + 1 if decrement > _SLOW * last else 0
        if decrement <= max(objective.tolerance, _FINEST) and slow == 0:
            return Solution(w, Status.CONVERGED, tuple(trace), here.value)
        if check_separation is not None and slow >= _SLOW_STEPS:
            if check_separation():
                return Solution(w, Status.SEPARATED, tuple(trace), here.value)
            check_separation = None
        if slow:
            metric = InverseHessian.of(cast(Array, objective(w, "full").hessian))
        v = w
        for b in random.permutation(len(parts)):
            reduced = parts[b](v, "none").gradient - slopes[b] + here.gradient
            v = v + rate * metric.direction(reduced)
        there, there_slopes = _at_anchor(parts, v)
        seconds = perf_counter() - begun
        trace.append(Iteration(here.value, decrement, rate, seconds, 1.0, slow > 0, 2.0))
        if there.value <= here.value + rounding(objective, here.value):
            w, here, slopes, last = v, there, there_slopes, decrement
        else:
            rate, last = rate / 2, 0.0  # counts as slow: the Hessian is computed anew
    return Solution(w, Status.MAX_ITERATIONS, tuple(trace), here.value)


def _at_anchor(parts: Sequence[Objective], w: Array) -> tuple[Local, list[Array]]:
    """f and g at w, and the gradient of each batch."""
    found = [part(w, "none") for part in parts]
    slopes = [local.gradient for local in found]
    value = float(np.mean([local.value for local in found]))
    return Local(value, np.mean(slopes, axis=0), None), slopes


def _check_size(objective: Objective, p: int, solver: str) -> None:
    if objective.hessian_cost == np.inf:
        raise ParameterError(
            f"solver={solver!r} needs the second derivatives of all {p} parameters, which are too "
            "many.",
            "Use solver='gradient' or 'auto'.",
        )


SOLVERS: dict[str, Callable[..., Solution[Array, Iteration]]] = {
    "newton": newton,
    "newton-cg": newton_cg,
    "gradient": gradient,
    "coordinate": coordinate,
    "sequential": sequential,
}


class Choice(NamedTuple):
    """The name of a solver, and why it was taken."""

    name: str
    reason: str


def choose(levels: Sequence[Objective], n_parameters: int, solver: str = "auto") -> Choice:
    """The solver requested or, with "auto", the one that suits the shape of the problem.

    Conjugate gradients where Hessians are too large or too expensive; a subsample makes them
    affordable, as most steps then reuse its Hessian.

    >>> class Table:
    ...     hessian_cost = 1.5
    >>> choose([Table()], 11)
    Choice(name='newton', reason='the Hessian of 11 parameters costs as much as 1.5 passes')
    """
    if solver in SOLVERS:
        return Choice(solver, "requested")
    hessian_cost, parameters = levels[-1].hessian_cost, f"{n_parameters:,} parameters"
    if hessian_cost == np.inf:
        return Choice("newton-cg", f"the Hessian of {parameters} is too large")
    reason = f"the Hessian of {parameters} costs as much as {hessian_cost:.2g} passes"
    expensive = hessian_cost > _EXPENSIVE and len(levels) == 1
    return Choice("newton-cg" if expensive else "newton", reason)


def solve(
    name: str,
    levels: Sequence[Splittable],
    start: Array,
    *,
    max_iter: int | None = None,
    check_separation: Callable[[], bool] | None = None,
    hessian: Array | None = None,
    keep_parameters: bool = False,
) -> Solution[Array, Iteration]:
    """The minimum of the last of `levels` by the solver of that name.

    `max_iter=None` leaves the number of steps to the solver: gradients need more than Hessians.
    `hessian` is that at the start, if known; it and `keep_parameters` are for Newton's method.
    """
    settings: dict[str, Any] = {"check_separation": check_separation}
    if max_iter is not None:
        settings["max_iter"] = max_iter
    if name == "newton":
        settings |= {"hessian": hessian, "keep_parameters": keep_parameters}
    return SOLVERS[name](levels, start, **settings)
