"""Whether the classes can be separated: what a fit shows by itself, and what must be asked.

An optimum shows that classes overlap, if it is one. Let w be where a fit ended and √(gᵀH⁻¹g) = δ.
The next Newton step s has sᵀHs = δ², so that it moves an activation of slope λ by δ/√λ at most, and
λ by δ√λ. If λ > δ² for all rows, no slope loses its sign: with it, the slopes that are left
make a sum of zero, which only those of overlapping classes can (`solve.certificates`). That takes
the smallest slope of all rows. A solver's own word does not do: one long step can carry a row that
is alone in a column so far out that it is not heard of again.

Some of the rows will do, if their Hessian is not flat in any direction: what separates all rows
separates these, or leaves all of them alone, and then the Hessian is flat along it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from posteriori.likelihood.logistic import SignedLogisticLoss
from posteriori.posterior.objective import BLOCK_ENTRIES, LogPosterior
from posteriori.rows.block import Block
from posteriori.solve.certificates import factor_of
from posteriori.solve.separation import Separation, find_separation
from posteriori.solve.solution import Iteration, Solution
from posteriori.statistics.coordinates import Support
from posteriori.statistics.local_quadratic import GatherQuadratic, activations
from posteriori.statistics.statistic import Statistic
from posteriori.typing import Array

_NOTHING = 1e-12
"""A precision that is rounding beside what it was computed from."""

_DOUBT = 10.0
"""A fit may be this many times farther from its optimum than it was told to be."""

_MOST_STEPS = 6
"""Newton steps from the optimum of all rows to that of some of them; three are usual."""

_CLOSE = 1e-3
"""A decrement with which it is worth to look for the smallest slope."""


def separation_of(
    objective: LogPosterior, n_classes: int, guess: Array | None = None, within_prior: bool = False
) -> Separation:
    """Whether the classes of the rows can be separated, by linear programs.

    `guess` are parameters that may do it. `within_prior` asks for directions alone that cost
    nothing under the prior: those in which the likelihood has no maximum even with it.
    """
    theta = None
    if guess is not None:
        theta = objective.standard.to_user(objective.coordinates.expand(guess)).T
    intercept, held = objective.standard.intercept, None
    if within_prior:
        held = _held(objective)
    return find_separation(
        objective.rows,
        n_classes,
        support=support_of(objective),
        fit_intercept=intercept,
        guess=theta,
        held=held,
    )


def _held(objective: LogPosterior) -> NDArray[np.bool_]:
    """The coefficients (q,), in the units of the columns, on which there is a prior."""
    precision = objective.penalty.precision
    matrix = np.diag(precision) if precision.ndim == 1 else precision
    to_standard = objective.standard.from_user(np.eye(len(matrix)))
    size = np.einsum("ij,jk,ik->i", abs(to_standard), abs(matrix), abs(to_standard))
    return np.einsum("ij,jk,ik->i", to_standard, matrix, to_standard) > _NOTHING * size


def no_separation(objective: LogPosterior) -> Separation:
    """What is said of classes that overlap."""
    K, q = objective.coordinates.n_activations, objective.coordinates.q
    return Separation("none", (), np.empty((0,) if K == 1 else (0, K)), np.zeros((q, K)), None)


def support_of(objective: LogPosterior) -> Support:
    """The classes that a row may belong to, from its target."""
    signed = isinstance(objective.loss, SignedLogisticLoss)

    def support(block: Block) -> NDArray[Any]:
        t = objective.target(block)
        if signed:
            return (t > 0).astype(np.intp)
        return t > 0 if t.ndim == 2 else np.column_stack([t < 1, t > 0])

    return support


def shows_overlap(levels: Sequence[LogPosterior], solution: Solution[Array, Iteration]) -> bool:
    """Whether a maximum likelihood fit is at a maximum, which only overlapping classes have.

    A few looks at the rows of the first level; where they do not tell, one pass over all rows, and
    one more with the Hessian.
    """
    objective = levels[-1]
    if not solution.converged or objective.n_rows <= objective.coordinates.size:
        return False
    if len(levels) > 1 and _some_overlap(levels[0], solution.parameters):
        return True
    least = _least_slope(objective, solution.parameters)
    last = max((step.decrement for step in solution.trace[-1:]), default=0.0)
    return least > max(_DOUBT * objective.tolerance, last) ** 2 or (
        least > 0
        and not objective.is_wide
        and least > _newton_step(objective, solution.parameters)[1] ** 2
    )


def _some_overlap(some: LogPosterior, w: Array) -> bool:
    """Whether steps to the optimum of some of the rows, if they have one, show that they overlap.

    With a prior that holds some columns, the optimum is no longer one of the likelihood.
    """
    if some.is_wide or some.penalty.precision.any():
        return False
    some = replace(some, factor=1.0, damping=0.0)
    for _ in range(_MOST_STEPS):
        step, decrement = _newton_step(some, w)
        if decrement < _CLOSE:
            return _least_slope(some, w) > decrement**2
        if not np.isfinite(decrement):
            return False
        w = w + step
    return False


def _newton_step(objective: LogPosterior, w: Array) -> tuple[Array, float]:
    """-H⁻¹g and √(gᵀH⁻¹g) at w; the latter infinite if H is too flat to tell."""
    local = objective(w, "full")
    factored = factor_of(cast(Array, local.hessian))
    if factored is None:
        return np.zeros_like(w), np.inf
    factor, scale = factored
    half = solve_triangular(factor, local.gradient / scale, lower=True)
    return -solve_triangular(factor, half, lower=True, trans=1) / scale, float(np.linalg.norm(half))


def _least_slope(objective: LogPosterior, w: Array) -> float:
    """The least slope, times the weight, of the activations of classes that rows do not have."""
    kernel = objective.kernel(w)
    return -objective.rows.map_sum(
        lambda block: Most(-_least_slope_of(kernel, block)), block_entries=BLOCK_ENTRIES
    ).value


def _least_slope_of(kernel: GatherQuadratic, block: Block) -> float:
    standard, t = kernel.standard, kernel.target(block)
    design = standard.design(kernel.columns.design(block))
    a = activations(design, kernel.theta, standard.intercept, block.offset)
    _, slope = kernel.loss.sum_and_gradient(a, t, block.weight)
    sure = t == 0 if t.ndim == 2 else (t <= 0) | (t >= 1)
    return float(abs(slope[sure]).min(initial=np.inf))


@dataclass(frozen=True, eq=False)
class Most(Statistic):
    """The largest of some numbers."""

    value: float

    def __add__(self, other: "Most") -> "Most":
        return Most(max(self.value, other.value))
