"""Fisher scoring, then Newton's method: how a loss that is not convex is made small.

The expected second derivative is never negative, so that steps by it point downhill from any
start; but they only shrink the error by a constant factor. Near the optimum the observed one is
positive definite, too, and its steps square the error (4.92).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

import numpy as np

from posteriori.linalg import cholesky
from posteriori.posterior.log_posterior import LogPosterior
from posteriori.solve.newton import newton
from posteriori.solve.objective import Curvature, Iteration, Local, Objective, Solution
from posteriori.solve.solvers import Choice, choose, solve
from posteriori.statistics.local_quadratic import Information
from posteriori.typing import Array

MOST_STEPS = 100
"""The largest number of steps, by default."""

_CLOSE = 0.3
"""Standard errors of a subsample from its optimum that are near enough."""

_NEAR = 0.1
"""Standard errors from the optimum at which the observed second derivative takes over."""


@dataclass(frozen=True, eq=False)
class Safeguarded:
    """An objective whose Hessian is the observed one where that is positive definite.

    With `directions` (p, k) it is a function of k parameters u: that of origin + directions u.
    """

    inner: LogPosterior
    origin: Array | None = None
    directions: Array | None = None

    @property
    def hessian_cost(self) -> float:
        return self.inner.hessian_cost

    @property
    def row_fraction(self) -> float:
        return self.inner.row_fraction

    @property
    def n_rows(self) -> int:
        return self.inner.n_rows

    @property
    def tolerance(self) -> float:
        return self.inner.tolerance

    @property
    def unit(self) -> float:
        return self.inner.unit

    def __call__(self, w: Array, hessian: Curvature) -> Local:
        found = self._local(w, hessian, "observed")
        if found.hessian is None or is_positive(found.hessian):
            return found
        return self._local(w, hessian, "expected")

    def _local(self, w: Array, hessian: Curvature, information: Information) -> Local:
        objective, D = replace(self.inner, information=information), self.directions
        if D is None:
            return objective(w, hessian)
        found = objective(cast(Array, self.origin) + D @ w, hessian)
        curved = None if found.hessian is None else D.T @ found.hessian @ D
        return Local(found.value, D.T @ found.gradient, curved)


def is_positive(hessian: Array) -> bool:
    """Whether a Hessian, or its diagonal, is positive definite."""
    if hessian.ndim == 1:
        return bool((hessian > 0).all())
    return cholesky(hessian) is not None


class Solved(NamedTuple):
    """An optimum, the solver with its reason and, if it lies at an end, a sentence about that."""

    solution: Solution[Array, Iteration]
    solver: str
    reason: str
    edge: str = ""


def choice(objective: LogPosterior) -> Choice:
    """The solver of `scored`, and why it is used."""
    if objective.is_wide:
        return choose([objective], objective.coordinates.size)
    return Choice(
        "newton", "steps by the expected second derivatives, near the optimum by the observed ones"
    )


def scored(
    levels: Sequence[LogPosterior],
    start: Array,
    max_iter: int | None = None,
    check_separation: Callable[[], bool] | None = None,
    close: bool = False,
) -> Solution[Array, Iteration]:
    """The parameters that make the last of `levels` smallest, by whichever curvature serves.

    With too many parameters for a Hessian, gradients that remember how they changed do.
    `check_separation` is called if parameters may diverge, as in `newton`. From a `close` start the
    observed second derivative is taken at once.
    """
    # Steps that leave the domain meet infinities, and are cut short.
    with np.errstate(over="ignore", invalid="ignore"):
        if levels[-1].is_wide:
            expected = [replace(level, information="expected") for level in levels]
            return solve(
                "newton-cg", expected, start, max_iter=max_iter, check_separation=check_separation
            )
        stages = [Safeguarded(levels[-1])] if close else _stages(levels)
        return newton(
            stages, start, max_iter=max_iter or MOST_STEPS, check_separation=check_separation
        )


def _stages(levels: Sequence[LogPosterior]) -> Sequence[Objective]:
    full = levels[-1]
    if full.loss.convex:
        return [*map(_careful, levels[:-1]), replace(full, information="observed")]
    rough = [replace(_careful(level), information="expected") for level in levels[:-1]]
    near = replace(full, information="expected", tolerance=max(full.tolerance, _NEAR))
    return [*rough, near, Safeguarded(full)]


def _careful(level: LogPosterior) -> LogPosterior:
    """A subsample whose optimum is found well enough for the last step, which nothing guards.

    Where means grow as eᵃ, a step of several standard errors of the subsample can be too long.
    """
    near = _CLOSE / np.sqrt(level.row_fraction)
    return replace(level, information="observed", tolerance=min(level.tolerance, near))


def divided(objective: LogPosterior, unit: float) -> LogPosterior:
    """The objective over a number, such as the dispersion."""
    penalty = objective.penalty
    return replace(
        objective,
        factor=objective.factor / unit,
        penalty=replace(penalty, precision=penalty.precision / unit),
    )


def multiplied(solution: Solution[Array, Iteration], unit: float) -> Solution[Array, Iteration]:
    """The solution of an objective that was `divided`, with the values of the objective itself."""
    trace = tuple(replace(step, objective=step.objective * unit) for step in solution.trace)
    return replace(solution, value=solution.value * unit, trace=trace)
