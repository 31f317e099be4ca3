"""Newton's method (4.92) on a sum over rows, with a Hessian that is computed only when it pays.

Conventions: p parameters w (p,), objective f (to be made small), gradient g (p,), Hessian H (p, p).

A pass that gives f and g costs little beside one that gives H, so H (or that of a subsample) is
kept for many steps. The changes of g along the way correct it (L-BFGS on top of the Cholesky
factor); it is refreshed when that saves more passes than it costs. Where H is too large for that,
`newton_cg` solves for the step by conjugate gradients on products with H.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import cast

import numpy as np
from scipy.linalg import lapack

from posteriori.linalg import cholesky
from posteriori.solve.line_search import (
    decrement_of,
    left_by_newton,
    newton_rate,
    search,
    standstill,
)
from posteriori.solve.objective import (
    Curvature,
    Iteration,
    Local,
    Objective,
    Solution,
    Status,
    WithProducts,
)
from posteriori.typing import Array

_MEMORY = 12
"""Changes of the gradient that are remembered."""

_INDEPENDENT = 1e-6
"""Steps with less of their length outside the others cannot be distinguished from them."""

_AGREE = 0.1
"""sᵀHt and tᵀHs may differ by this much for steps s, t of length one; by more, the Hessian has
changed between them."""

_FLAT = 1e-10
"""Curvatures below this share of the largest are taken for it."""

_UNKNOWN_RATE = 0.3
"""The factor by which a step is taken to shrink the error before this has been seen."""

_SLOW, _SLOW_STEPS = 0.35, 4
"""So many steps with new Hessians that shrink the error by less may point at separated classes."""

_SHORT, _LOOSE = 1e-3, 1e-2
"""The last step is taken without evaluating f if it changes no parameter by more than this share;
with a tolerance that is looser than the second, the step may be longer by as much."""

_CHEAP = 1.0
"""A Hessian that costs less than a pass is computed for every step."""

_BEST_RATE, _WORST_RATE = 1e-3, 0.9
"""Bounds of a rate that is only expected."""

_MOST_STEPS_ON_A_SUBSAMPLE = 12
_MOST_LAST_STEPS = 3

_FORCING = 0.3
"""The part of the error that conjugate gradients may leave in a step far from the optimum."""

_LINEAR = 0.5
"""The rate with which a step leaves as much as it corrects."""

_PATIENCE = 10
"""Steps without a smaller decrement after which a level objective has met its rounding errors."""

_TINY = np.finfo(np.float64).tiny

_MOST_PRODUCTS = 250
"""Products with the Hessian a step."""


@dataclass
class InverseHessian:
    """The inverse of a Hessian, corrected by the changes of the gradient since it was computed.

    Along the steps S taken since then, H is known: HS = Y, the changes of the gradient. So the
    direction solves for the part of the error within S exactly, and for the rest by the old
    Hessian M: with P = I - Y(SᵀY)⁻¹Sᵀ, H⁻¹ is taken as S(SᵀY)⁻¹Sᵀ + PᵀM⁻¹P.
    """

    _scale: Array
    _factor: Array
    _steps: list[Array] = field(default_factory=list)
    _changes: list[Array] = field(default_factory=list)

    @classmethod
    def of(cls, hessian: Array) -> "InverseHessian":
        """The inverse of H, made positive definite where it is not."""
        if not np.isfinite(hessian).all():
            hessian = np.where(np.isfinite(hessian), hessian, 0.0)
        scale = np.sqrt(abs(np.diagonal(hessian)))
        scale[scale == 0] = 1.0
        matrix = hessian / scale / scale[:, None]
        factor = cholesky(matrix)
        return cls(scale, _make_positive_definite(matrix) if factor is None else factor)

    def renewed(self, hessian: Array) -> "InverseHessian":
        """With another matrix for M, and the same changes of the gradient."""
        found = InverseHessian.of(hessian)
        for step, change in zip(self._steps, self._changes, strict=True):
            found.learn(step, change)
        return found

    def solve(self, v: Array) -> Array:
        """M⁻¹v."""
        if not len(v):
            return v
        solution, _ = lapack.dpotrs(self._factor, v / self._scale, lower=1)
        return cast(Array, solution / self._scale)

    def learn(self, step: Array, change: Array) -> None:
        """Take in that the gradient changed by `change` along `step`."""
        along, across = float(step @ change), float(change @ self.solve(change))
        if along <= 1e-12 * across:  # not convex here
            return
        self._steps = [*self._steps[1 - _MEMORY :], step]
        self._changes = [*self._changes[1 - _MEMORY :], change]

    def direction(self, gradient: Array) -> Array:
        """-H⁻¹g."""
        known = self._known_part() if self._steps else None
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


def _make_positive_definite(matrix: Array) -> Array:
    """The factor of a matrix that is not positive definite, its curvatures taken as positive."""
    values, vectors = np.linalg.eigh(matrix)
    size = np.maximum(abs(values), _FLAT * max(abs(values).max(), 1.0))
    return cast(Array, cholesky((vectors * size) @ vectors.T))


@dataclass
class State:
    """What is carried from step to step, and from a subsample to all rows.

    `direction` gives the step from H and g, in place of a Cholesky factor. `exact` says that the
    matrix of the objective is its Hessian; else the changes of the gradient correct it always.
    """

    w: Array
    metric: InverseHessian | None = None
    rate: float = _UNKNOWN_RATE
    value: float = np.nan
    trace: list[Iteration] = field(default_factory=list)
    begun: float = field(default_factory=perf_counter)
    keep: bool = False
    direction: Callable[[Array, Array], Array] | None = None
    exact: bool = True

    def record(
        self,
        objective: Objective,
        decrement: float,
        fresh: bool,
        length: float,
        n_evaluations: float,
    ) -> None:
        """Add a step from the present parameters to the trace."""
        seconds, row_fraction = perf_counter() - self.begun, objective.row_fraction
        numbers = self.value, decrement, length, seconds, row_fraction, fresh, n_evaluations
        self.trace.append(Iteration(*numbers, self.w.copy() if self.keep else None))


@dataclass
class _RefreshPolicy:
    """When the iteration ends, and when a new Hessian saves more passes than it costs.

    `expected` is the factor by which steps with the present Hessian shrink the error; `last` and
    `before` are the decrements of the last two steps.
    """

    objective: Objective
    expected: float
    always: bool = False
    exact: bool = True
    last: float = np.inf
    before: float = np.inf
    slow_steps: int = 0
    least: float = np.inf
    stale_steps: int = 0

    def observe(self, decrement: float, fresh: bool, p: int) -> float:
        """The factor by which the step about to be taken should shrink the error."""
        self.slow_steps = self.slow_steps + 1 if fresh and decrement > _SLOW * self.last else 0
        self.stale_steps = 0 if decrement < self.least else self.stale_steps + 1
        self.least = min(decrement, self.least)
        if fresh and self.exact:
            self.expected = expected_rate(self.objective, p, decrement)
            return newton_rate(decrement, self.last)
        if not self.exact:  # the decrement itself must be within the tolerance
            return _LINEAR
        if self.last == np.inf:
            return self.expected
        if self.before == np.inf:
            return min(decrement / self.last, 1.0)
        return min(math.sqrt(decrement / self.before), 1.0)

    def refresh(self, decrement: float, rate: float, fresh: bool) -> bool:
        """Whether the next step wants a new Hessian."""
        if self.always:
            return True
        if left_after(decrement, rate) * self.expected <= self.objective.tolerance:
            return False  # one more step with this one leads to the optimum
        if fresh:
            rate = min(self.expected, _UNKNOWN_RATE)
        if rate >= 1.0 or self.objective.hessian_cost <= _CHEAP:
            return True
        return _steps(self.objective.tolerance, decrement, rate) > self.objective.hessian_cost + 2

    def advance(self, decrement: float) -> None:
        self.before, self.last = self.last, decrement


def newton(
    levels: Sequence[Objective],
    start: Array,
    *,
    max_iter: int = 100,
    always_fresh: bool = False,
    check_separation: Callable[[], bool] | None = None,
    hessian: Array | None = None,
    keep_parameters: bool = False,
) -> Solution[Array, Iteration]:
    """The parameters that make the last of `levels` smallest.

    The levels before it are the same function on ever larger subsamples; each starts where the one
    before it ended, with its Hessian. `check_separation` is called once if steps with new Hessians
    shrink the error so little that estimates may be infinite; if it returns True, the iteration
    ends.
    `hessian` is that of the first level near the start, if it is known. `keep_parameters` has the
    trace keep those of each step.
    """
    metric = None if hessian is None else InverseHessian.of(hessian)
    state = State(start, metric, keep=keep_parameters)
    with np.errstate(over="ignore", invalid="ignore"):  # steps that are too long meet infinities
        for objective in levels[:-1]:
            minimise(objective, state, _MOST_STEPS_ON_A_SUBSAMPLE, always_fresh, None)
            _refresh_on_subsample(objective, levels[-1], state)
        status = minimise(levels[-1], state, max_iter, always_fresh, check_separation)
    return Solution(state.w, status, tuple(state.trace), state.value)


def newton_cg(
    levels: Sequence[Objective],
    start: Array,
    *,
    max_iter: int = 200,
    check_separation: Callable[[], bool] | None = None,
) -> Solution[Array, Iteration]:
    """The same optimum where H is expensive: each step by conjugate gradients on products Hv.

    The diagonal of H is the preconditioner. A step is solved to the accuracy that its distance from
    the optimum is worth. All rows are used from the start.
    """
    state = State(start)
    with np.errstate(over="ignore", invalid="ignore"):
        status = minimise(levels[-1], state, max_iter, True, check_separation, "diagonal")
    return Solution(state.w, status, tuple(state.trace), state.value)


def minimise(
    objective: Objective,
    state: State,
    max_iter: int,
    always_fresh: bool,
    check_separation: Callable[[], bool] | None,
    curvature: Curvature = "full",
    low_enough: float = -np.inf,
) -> Status:
    """Steps on one objective, until the next would be shorter than its tolerance.

    It ends early where the objective is `low_enough`.
    """
    policy = _RefreshPolicy(objective, state.rate, always_fresh, state.exact)
    here = objective(state.w, curvature if always_fresh or state.metric is None else "none")
    status = Status.MAX_ITERATIONS
    for _ in range(max_iter):
        fresh, state.value = here.hessian is not None, here.value
        step, missing, n_products = _step(objective, state, here)  # (4.92)
        decrement = decrement_of(objective, here, step)
        rate = max(policy.observe(decrement, fresh, len(step)), missing)
        within = left_after(decrement, rate) <= objective.tolerance
        if here.value <= low_enough or (within and _is_short(objective, state.w, step)):
            # The step is too short for the objective to be anything but a parabola along it.
            state.record(objective, decrement, fresh, 1.0, 1.0 + n_products)
            state.w = state.w + step
            state.value -= 0.5 * (decrement * objective.unit) ** 2
            status = Status.CONVERGED
            break
        if check_separation is not None and policy.slow_steps >= _SLOW_STEPS:
            if check_separation():
                status = Status.SEPARATED
                break
            check_separation = None
        refresh = policy.refresh(decrement, rate, fresh)
        found = search(objective, state.w, here, step, curvature if refresh else "none")
        is_stale = not state.exact and policy.stale_steps >= _PATIENCE
        if found is None or (is_stale and standstill(objective, here, step) is Status.CONVERGED):
            status = standstill(objective, here, step)
            break
        state.record(objective, decrement, fresh, found.length, found.n_evaluations + n_products)
        moved = found.length * step
        if not (refresh and state.exact):
            cast(InverseHessian, state.metric).learn(moved, found.local.gradient - here.gradient)
        policy.advance(decrement)
        state.w, here, state.value = state.w + moved, found.local, found.local.value
    state.rate = policy.expected
    return status


def _step(objective: Objective, state: State, here: Local) -> tuple[Array, float, int]:
    """-H⁻¹g, the share of it that may be missing, and the number of products with H."""
    if here.hessian is not None and here.hessian.ndim == 1:
        return _conjugate_gradients(cast(WithProducts, objective), state.w, here)
    if here.hessian is not None and state.direction is not None:
        return state.direction(here.hessian, here.gradient), 0.0, 0
    if here.hessian is not None and (state.exact or state.metric is None):
        state.metric = InverseHessian.of(here.hessian)
    elif here.hessian is not None:
        state.metric = cast(InverseHessian, state.metric).renewed(here.hessian)
    return cast(InverseHessian, state.metric).direction(here.gradient), 0.0, 0


def _conjugate_gradients(
    objective: WithProducts, w: Array, here: Local
) -> tuple[Array, float, int]:
    """The same from products with H alone, preconditioned by its diagonal."""
    product = objective.hessian_product(w)
    diagonal = cast(Array, here.hessian)
    scale = np.where(diagonal > 0, diagonal, 1.0)
    residual = -here.gradient
    scaled = residual / scale
    direction, size = scaled, float(residual @ scaled)
    step, first = np.zeros(len(w)), size
    decrement = math.sqrt(max(first, 0.0)) / objective.unit
    aim = min(max(decrement, 0.9 * objective.tolerance / max(decrement, _TINY)), 1.0) * _FORCING
    for k in range(1, _MOST_PRODUCTS + 1):
        if size <= 0:
            return step, 0.0, k - 1
        curved = product(direction)
        curvature = float(direction @ curved)
        if curvature <= 1e-14 * float(direction @ (scale * direction)):
            return (direction if k == 1 else step), 1.0, k  # flat or concave along it
        length = size / curvature
        step, residual = step + length * direction, residual - length * curved
        scaled = residual / scale
        size, before = float(residual @ scaled), size
        if size <= aim**2 * first:
            return step, aim, k
        direction = scaled + size / before * direction
    return step, math.sqrt(size / first), _MOST_PRODUCTS


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
        step = InverseHessian.of(hessian).direction(here.gradient)
        decrement = decrement_of(objective, here, step)
        trace.append(
            Iteration(here.value, decrement, 1.0, trace[-1].seconds, objective.row_fraction, True)
        )
        w = w + step
        if left_by_newton(objective, decrement, hessian) <= objective.tolerance:
            value = here.value - 0.5 * (decrement * objective.unit) ** 2
            return Solution(w, found.status, tuple(trace), value), hessian
    return None


def _is_short(objective: Objective, w: Array, step: Array) -> bool:
    """Whether f is a parabola along the step; on a subsample that does not matter."""
    longest = _SHORT * (1.0 + abs(w).max(initial=0.0)) * max(objective.tolerance / _LOOSE, 1.0)
    return objective.row_fraction < 1 or bool(abs(step).max(initial=0.0) <= longest)


def left_after(decrement: float, rate: float) -> float:
    """The error that this step leaves, if all later ones shrink it by the same rate."""
    return decrement * rate / (1.0 - rate) if rate < 1.0 else np.inf


def expected_rate(objective: Objective, p: int, decrement: float) -> float:
    """By which factor steps should shrink the error of all rows, with a Hessian computed here.

    It differs from theirs by chance, if it is of a subsample, and because it was computed away
    from the optimum, at the distance `decrement`.
    """
    chance = 1.3 * math.sqrt(p / objective.n_rows) if objective.row_fraction < 1 else 0.0
    distance = 2.0 * decrement * math.sqrt(objective.row_fraction / objective.n_rows)
    return min(max(math.hypot(chance, distance), _BEST_RATE), _WORST_RATE)


def _refresh_on_subsample(objective: Objective, last: Objective, state: State) -> None:
    """Compute the Hessian at the end of a subsample, if that saves more passes than it costs."""
    distance = math.sqrt(len(state.w) / objective.row_fraction)
    expected = expected_rate(objective, len(state.w), _UNKNOWN_RATE * distance)
    if expected >= state.rate:
        return
    saved = _steps(last.tolerance, distance, state.rate)
    saved -= _steps(last.tolerance, distance, expected)
    if saved > (objective.hessian_cost + 1) * objective.row_fraction:
        here = objective(state.w, "full")
        state.metric, state.rate = InverseHessian.of(cast(Array, here.hessian)), expected


def _steps(tolerance: float, decrement: float, rate: float) -> float:
    """Steps of this rate until the error is within the tolerance."""
    return float(np.log(tolerance / decrement) / np.log(rate))


def scoring(
    objective: Objective,
    start: Array,
    *,
    max_iter: int = 200,
    exact: bool = False,
    low_enough: float = -np.inf,
) -> Solution[Array, Iteration]:
    """The parameters that minimise the objective, with its matrix computed for every step.

    Where that is not the Hessian (not `exact`), as in Fisher scoring, steps alone converge
    linearly, slowly where rows have high leverage; the last changes of the gradient make it a
    quasi-Newton method.
    """
    state = State(start, exact=exact)
    with np.errstate(over="ignore", invalid="ignore"):  # steps that are too long
        status = minimise(objective, state, max_iter, True, None, low_enough=low_enough)
    return Solution(state.w, status, tuple(state.trace), state.value)
