"""Fits to separated classes: when to check for separation, and where such a fit ends.

A maximum of the likelihood proves that classes overlap, if it is one. Let w be where a fit ended,
with the Newton decrement δ = √(gᵀH⁻¹g). The next Newton step s has sᵀHs = δ², so that it moves an
activation of slope λ by δ/√λ at most, and λ by δ√λ. If λ > δ² for all rows, no slope changes its
sign, and the slopes after the step are weights λ > 0 with Σ λ ∂margin/∂θ = 0, which only
overlapping classes have (Stiemke's theorem of alternatives). So an ordinary fit is checked by one
pass that finds the smallest slope. Some of the rows suffice, if their Hessian is nonsingular.

Otherwise linear programs decide. Along a separating direction, the probability of the class of a
separated row goes to one: the fit moves along it until it is one in double precision. There the
likelihood of the other rows has a maximum, in the directions that they determine.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, cast

import numpy as np
from scipy.linalg import solve_triangular

from posteriori.errors import ConvergenceWarning, DomainError, SeparationWarning, warn
from posteriori.likelihood.links import ProbabilityLink
from posteriori.linalg import cholesky, dependent_columns, unit_diagonal
from posteriori.models.fitting import Prepared
from posteriori.models.scoring import Solved, scored
from posteriori.posterior.jeffreys import JeffreysPosterior
from posteriori.posterior.log_posterior import BLOCK_ENTRIES, LogPosterior
from posteriori.posterior.priors import flat
from posteriori.rows.block import Block
from posteriori.rows.schema import listed
from posteriori.solve.objective import Curvature, Iteration, Local, Solution, Status
from posteriori.solve.separation import INTERCEPT, Separation, find_separation, unseparated
from posteriori.solve.solvers import solve as solve_by
from posteriori.statistics.goodness_of_fit import GatherTargetMean
from posteriori.statistics.local_quadratic import GatherProducts
from posteriori.statistics.separation_margins import (
    GatherStepLength,
    Mask,
    Pairs,
    Support,
    pair_sums,
)
from posteriori.statistics.statistic import Maximum
from posteriori.typing import Array

CERTAIN = 1e-17
"""A probability that is negligible beside one."""

_FAR = 1e7
"""Quartile ranges of a link beyond which activations have lost the digits of others beside them."""

_NOTHING = 1e-12
"""A precision that is rounding error beside the terms of its sum."""

_UNDETERMINED = 1e-12
"""A direction with less curvature than this, beside the largest, is not determined by the rows."""

_DOUBT = 10.0
"""A fit may be this many times farther from its optimum than its tolerance says."""

_FLAT = 1e-9
"""Curvature, beside that of each parameter alone, below which a direction is taken for flat."""

_SAMPLE_STEPS = 6
"""Newton steps from the optimum of all rows to that of some of them; three are usual."""

_LAST_STEPS = 10
"""Steps towards a maximum after linear programs did not decide whether there is one."""

_MANY = 150
"""Coefficients beyond which linear programs are solved only if nothing else decides."""

Solve = Callable[[Prepared, "SeparationSearch"], Solved]
"""From a prepared problem to its optimum; the search stops a solver whose parameters diverge."""


@dataclass(eq=False)
class SeparationSearch:
    """Whether the classes of a fit can be separated: what was found so far.

    zero_means: whether the classes are "zero" and "more", as with the log link, where means of zero
    alone are reached in the limit. has_limits: whether any mean is reached in the limit alone.
    during_fit: False with label noise, where the classes themselves need not be separated.
    """

    zero_means: bool = False
    has_limits: bool = True
    during_fit: bool = True
    found: Separation | None = None

    def support(self, objective: LogPosterior) -> Support:
        """The classes that a row may belong to, from its target.

        A row with a positive target is of both "zero" and "more", so that its activation must stay.
        """

        def support(block: Block) -> Mask:
            t = objective.target(block)
            if t.ndim == 2:
                return t > 0
            return np.column_stack([(t < 1) | self.zero_means, t > 0])

        return support

    def may_diverge(self, objective: LogPosterior) -> bool:
        """Whether the objective has a maximum only if the classes overlap."""
        proper = objective.penalty.proper or isinstance(objective, JeffreysPosterior)
        return self.has_limits and self.during_fit and not proper

    def callback(self, objective: LogPosterior) -> Callable[[], bool] | None:
        """Stops a solver if linear programs find that coefficients diverge.

        With many coefficients it is stopped first: those that it has may separate the classes.
        """
        if not self.may_diverge(objective) or self.found is not None:
            return None
        if objective.coordinates.size > _MANY:
            return lambda: True
        return lambda: self.diverges(objective, None)

    def diverges(self, objective: LogPosterior, w: Array | None) -> bool:
        """Whether coefficients diverge: w separates the classes, or linear programs find out.

        With a prior on some of the columns, only the others may diverge.
        """
        fixed = _fixed(objective) if objective.penalty.precision.any() else None
        self.found = self._find(objective, w, fixed)
        return self.found.is_found

    def verify(
        self, prepared: Prepared, solution: Solution[Array, Iteration], solve: Solve
    ) -> Solution[Array, Iteration]:
        """The solution, with the status of separated classes if they are.

        A solver that was stopped although classes overlap continues from where it was; for a few
        steps only where linear programs did not decide.
        """
        objective, stopped = prepared.objective, solution.status is Status.SEPARATED
        if self.found is not None and self.found.kind != "undecided":
            stopped = False  # it is known
        elif not (stopped or self.may_diverge(objective)):
            return solution
        elif not stopped and self._shows_overlap(prepared.levels, solution):
            self.found = unseparated("none", objective.coordinates.shape)
        elif self.diverges(objective, solution.parameters):
            return replace(solution, status=Status.SEPARATED)
        if stopped:
            w, is_known = solution.parameters, cast(Separation, self.found).kind == "none"
            if is_known:
                rest = replace(prepared, levels=[objective], start=w, hessian=None)
                more = solve(rest, self).solution
            else:
                expected = replace(objective, information="expected")
                more = solve_by("newton-cg", [expected], w, max_iter=_LAST_STEPS)
            solution = replace(more, trace=(*solution.trace, *more.trace))
            if self._shows_overlap(prepared.levels, solution):
                self.found = unseparated("none", objective.coordinates.shape)
        is_found = self.found is not None and self.found.is_found
        if objective.penalty.precision.any() and not is_found:
            self.found = None  # whether all columns separate the classes is decided on request
        return solution

    def of_labels(self, objective: LogPosterior, w: Array) -> Separation:
        """Whether the classes can be separated, whatever the prior that w was found with."""
        if self.found is None and self.has_limits:
            self.found = self._find(objective, w)
        return self.found or unseparated("none", objective.coordinates.shape)

    def _find(
        self, objective: LogPosterior, w: Array | None, fixed: Mask | None = None
    ) -> Separation:
        standard, support = objective.standard, self.support(objective)
        guess = None if w is None else standard.to_user(objective.coordinates.expand(w))
        n_classes = max(objective.coordinates.n_activations, 2)
        sums = pair_sums(objective.rows, n_classes, support, standard.intercept)
        return find_separation(*sums, guess=guess, fixed=fixed)

    def _shows_overlap(
        self, levels: Sequence[LogPosterior], solution: Solution[Array, Iteration]
    ) -> bool:
        """Whether the fit is at a maximum of the likelihood, which only overlapping classes have.

        The rows of the first level are tried first; where they are not conclusive, one pass over
        all rows, and one more with the Hessian.
        """
        objective, w = levels[-1], solution.parameters
        if not solution.converged or objective.n_rows <= objective.coordinates.size:
            return False
        support = self.support(objective)
        if len(levels) > 1 and not objective.penalty.precision.any():
            some = replace(levels[0], factor=1.0, penalty=flat(objective.coordinates.q))
            if _steps_show_overlap(some, w, support, _SAMPLE_STEPS):
                return True
        last = max((step.decrement for step in solution.trace[-1:]), default=0.0)
        enough = max(_DOUBT * objective.tolerance, last) ** 2
        # Decrements of counts are not those of the solver, which multiplies its tolerance.
        if not self.zero_means and _least_slope(objective, w, support) > enough:
            return True
        return _steps_show_overlap(objective, w, support, 1)


def _fixed(objective: LogPosterior) -> Mask:
    """The coefficients (q,), in the units of the columns, on which there is a prior."""
    precision = objective.penalty.precision
    matrix = np.diag(precision) if precision.ndim == 1 else precision
    to_standard = objective.standard.from_user(np.eye(len(matrix)))
    size = np.einsum("ij,jk,ik->i", abs(to_standard), abs(matrix), abs(to_standard))
    return np.einsum("ij,jk,ik->i", to_standard, matrix, to_standard) > _NOTHING * size


def _steps_show_overlap(objective: LogPosterior, w: Array, support: Support, n_steps: int) -> bool:
    """Whether Newton steps from w lead to where the slopes show that the classes overlap."""
    for _ in range(0 if objective.is_wide else n_steps):
        step, decrement = _newton_step(objective, w)
        if _least_slope(objective, w, support) > decrement**2:
            return True
        if decrement == np.inf:
            return False
        w = w + step
    return False


def _newton_step(objective: LogPosterior, w: Array) -> tuple[Array, float]:
    """-H⁻¹g and √(gᵀH⁻¹g) at w; the latter infinite if H is singular."""
    local = objective(w, "full")
    matrix, scale = unit_diagonal(cast(Array, local.hessian))
    factor = cholesky(matrix) if np.isfinite(matrix).all() else None
    if factor is None or np.square(np.diagonal(factor)).min(initial=np.inf) < _FLAT:
        return np.zeros_like(w), np.inf
    half = solve_triangular(factor, local.gradient / scale, lower=True)
    return -solve_triangular(factor, half, lower=True, trans=1) / scale, float(np.linalg.norm(half))


def _least_slope(objective: LogPosterior, w: Array, support: Support) -> float:
    """The least slope, times the weight, of the activations of classes that rows do not have."""
    kernel = objective.kernel(w)

    def of_block(block: Block) -> Maximum:
        _, a = kernel.design_and_activations(block)
        _, slope = kernel.loss.sum_and_gradient(a, kernel.target(block), block.weight)
        shared = support(block)
        sure = slope[~shared] if slope.ndim == 2 else slope[~shared.all(axis=1)]
        return Maximum(-float(abs(sure).min(initial=np.inf)))

    return -float(objective.rows.map_sum(of_block, block_entries=BLOCK_ENTRIES).value)


def _certain_margin(link: ProbabilityLink, found: Separation) -> float:
    """The activation at which the probability of the other class is negligible.

    Where some rows are not separated, it is small enough to keep the digits of their activations.
    """
    ends = abs(link.activation(np.array([CERTAIN, 1 - np.finfo(np.float64).epsneg]))).max()
    low, high = link.activation(np.array([0.25, 0.75]))
    margin = ends if found.kind == "complete" else min(ends, _FAR * (high - low))
    return float(margin * (1 + 1e-9))


@dataclass(frozen=True, eq=False)
class _Restrained(LogPosterior):
    """The objective with a penalty ½ s|Nᵀ(w - origin)|² on directions N (p, m)."""

    origin: Array | None = None
    null: Array | None = None
    strength: float = 1.0

    @classmethod
    def of(cls, objective: LogPosterior, *given: Any) -> "_Restrained":
        return cls(*(getattr(objective, each.name) for each in fields(objective)), *given)

    def __call__(self, w: Array, hessian: Curvature) -> Local:
        N, s = cast(Array, self.null), self.strength
        found, away = LogPosterior.__call__(self, w, hessian), N.T @ (w - cast(Array, self.origin))
        curved = None if found.hessian is None else found.hessian + s * N @ N.T
        value, gradient = found.value + s / 2 * away @ away, found.gradient + s * N @ away
        return Local(float(value), gradient, curved)


def certain_fit(
    objective: LogPosterior,
    search: SeparationSearch,
    solution: Solution[Array, Iteration],
    link: ProbabilityLink,
) -> tuple[Solution[Array, Iteration], Array | None]:
    """Where a fit to separated classes ends, and directions (p, m) that are not determined there.

    Separated rows are certain, or have means that are negligible beside the mean target. Completely
    separated rows become so along the coefficients of the fit, if those separate them. Else the fit
    moves along the ray, and the other rows are fitted from there. With too many coefficients for a
    Hessian, the directions are not known.
    """
    found = cast(Separation, search.found)
    if search.zero_means:
        mean = abs(objective.rows.map_sum(GatherTargetMean(objective.target)).mean)
        margin = float(abs(np.log(CERTAIN * mean)).max())
    else:
        margin = _certain_margin(link, found)
    expand, K = objective.coordinates.expand, len(found.ray)
    pairs = Pairs(objective.columns, objective.standard, search.support(objective), max(K, 2))
    theta_ray = objective.standard.from_user(found.ray)
    ray = _free(objective, theta_ray)

    def length(w: Array, direction: Array) -> float:
        kernel = GatherStepLength(pairs, expand(w), expand(direction), theta_ray, margin)
        return float(objective.rows.map_sum(kernel).value)

    w, trace = solution.parameters, solution.trace
    undetermined = None if objective.is_wide else np.eye(len(ray))
    is_complete = found.kind == "complete" and not objective.penalty.precision.any()
    if is_complete:
        stretch = length(w, w)
        w = w + stretch * w if np.isfinite(stretch) else length(0 * w, ray) * ray
    else:
        w = w + length(w, ray) * ray
        rest = objective
        if not objective.is_wide:
            here = cast(Array, replace(objective, information="expected")(w, "full").hessian)
            undetermined = _undetermined(here)
            rest = _Restrained.of(objective, w, undetermined, np.diagonal(here).max() or 1.0)
        refit = scored([rest], w)
        w, trace = refit.parameters, (*trace, *refit.trace)
        w = w + length(w, ray) * ray
    value = objective(w, "none").value
    return Solution(w, Status.SEPARATED, trace, value), undetermined


def _free(objective: LogPosterior, theta: Array) -> Array:
    """The free parameters that give all rows the activations of θ (K, q).

    Where columns depend on others, several θ give the same activations: those that come closest on
    all rows solve BᵀGB u = BᵀGθ, G being the Gram matrix of the rows.
    """
    basis, vectors = objective.coordinates.basis, objective.coordinates.contrasts.T @ theta
    if basis is None:
        return vectors.ravel()
    found = objective.rows.map_sum(GatherProducts(objective.columns, objective.standard))
    gram = objective.standard.inward_matrix(found)
    matrix, scale = unit_diagonal(basis.T @ gram @ basis)
    free = np.linalg.solve(matrix, (basis.T @ gram @ vectors.T) / scale[:, None])
    return cast(Array, (free / scale[:, None]).T.ravel())


def _undetermined(hessian: Array) -> Array:
    """Orthonormal directions (p, m) along which a Hessian (p, p) is zero to rounding."""
    matrix = hessian / (np.diagonal(hessian).max(initial=0.0) or 1.0)
    dependent = dependent_columns(matrix, _UNDETERMINED)
    others = np.setdiff1d(np.arange(len(matrix)), dependent)
    null = np.zeros((len(matrix), len(dependent)))
    null[dependent] = np.eye(len(dependent))
    null[others] = -np.linalg.solve(
        matrix[np.ix_(others, others)], matrix[np.ix_(others, dependent)]
    )
    return np.linalg.qr(null)[0]


def warn_of_separation(found: Separation, remedies: str) -> None:
    """Name the coefficients that diverge, and what can be done."""
    extent = "all rows" if found.kind == "complete" else "some of the rows"
    reason = (
        f"The classes of {extent} can be separated without error, already by "
        f"{listed(found.columns)} alone"
    )
    if found.columns == (INTERCEPT,):
        reason = "No row is of one of the classes"
        remedies = (
            "Leave the class out, or set a prior on the intercepts too: "
            "prior=GaussianPrior(intercept_precision=0.01)."
        )
    warn(
        SeparationWarning(
            f"{reason}, so the likelihood has no maximum: these coefficients, and perhaps others, "
            "diverge (see separation_). The fit was stopped where the separated rows are certain; "
            "standard errors of diverging coefficients are infinite.",
            remedies,
        )
    )


def warn_of_zero_means(found: Separation, unbounded: bool) -> None:
    """Name the coefficients that diverge because the targets of some rows are all zero."""
    problem = (
        "The likelihood has no maximum: every target of some of the rows is zero, and as the "
        f"coefficients of {listed(found.columns)} diverge, their mean goes to zero"
    )
    remedy = "Drop these rows, merge the level with another, or set a prior."
    if unbounded:
        raise DomainError(f"{problem}, and their density has no bound.", remedy)
    end = " (see separation_). The fit was stopped where it is negligible."
    warn(SeparationWarning(problem + end, remedy))


def warn_undecided() -> None:
    """Say that coefficients may diverge, and that this was not decided."""
    warn(
        ConvergenceWarning(
            "The fit has not reached a maximum of the likelihood. Whether the classes can be "
            "separated, so that there is none, was not decided: there are too many coefficients.",
            "Set a prior, such as prior=1.0, or fit fewer columns.",
        )
    )
