"""Fisher scoring, then Newton's method: how a loss that is not convex is made small.

The expected second derivative is never negative, so that steps by it point downhill from any
start; but they only shrink the error by a constant factor. Near the optimum the observed one is
positive definite, too, and its steps square the error (4.92).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

import numpy as np

from posteriori.errors import IdentifiabilityWarning, warn
from posteriori.likelihood.glm_families import TargetFamily
from posteriori.likelihood.loss import Loss
from posteriori.linalg import cholesky
from posteriori.models.fitting import Prepared
from posteriori.posterior.evidence import WEAKEST, Chosen, choose_precisions
from posteriori.posterior.inference import inverse_of
from posteriori.posterior.log_posterior import LogPosterior
from posteriori.solve.newton import newton
from posteriori.solve.objective import Curvature, Iteration, Local, Objective, Solution
from posteriori.solve.solvers import Choice, choose, solve
from posteriori.statistics.goodness_of_fit import Fitted, GatherFamilyFit
from posteriori.statistics.local_quadratic import Information
from posteriori.typing import Array

MOST_STEPS = 100
"""Steps after which a fit is given up, unless told otherwise."""

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


def choice(objective: LogPosterior) -> Choice:
    """The solver that is taken here, and why, as a model says it."""
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


Solve = Callable[[Prepared], Solution[Array, Iteration]]

_AT_THE_END = 1.001
_ROUNDS = 100
_LEAST = 1e-6
_SAME = 1e-10
"""A change of the dispersion, relative to it, that ends the search for it."""


class ChosenPrior(NamedTuple):
    """The problem with the precisions of greatest evidence, its optimum as the start, and how."""

    prepared: Prepared
    how: str


def with_chosen_prior(
    prepared: Prepared, kind: Chosen, solve: Solve, weakest: float = WEAKEST
) -> ChosenPrior:
    """The precisions of greatest evidence, `weakest` at least."""

    def fit(levels: Sequence[LogPosterior], start: Array, hessian: Array | None) -> Array:
        problem = replace(prepared, levels=list(levels), start=start, hessian=hessian)
        return solve(problem).parameters

    found = choose_precisions(prepared.levels, prepared.start, kind, fit, weakest)
    _warn_of_weakest(found.objective, weakest)
    chosen = replace(prepared, levels=[found.objective], start=found.w, hessian=found.hessian)
    return ChosenPrior(chosen, found.how)


def with_dispersion(
    prepared: Prepared, kind: Chosen, solve: Solve, family: TargetFamily
) -> ChosenPrior:
    """The same for a target whose dispersion s is open, the precisions being in units of 1/s.

    Precisions and s are chosen in turn. Given the precisions, the evidence of a Gaussian target
    is largest at s = χ²/(n - γ), with Pearson's χ² and the number γ of parameters that the data
    determine rather than the prior. s is at least a millionth of what it is without slopes: where
    columns fit the target exactly, the evidence may grow without end as s gets smaller.
    """
    least = _LEAST * _dispersion(prepared.objective, prepared.start, family, 0.0)
    if least == 0.0:
        return ChosenPrior(prepared, "not at all, as the target never changes")
    dispersion = _dispersion(prepared.objective, solve(prepared).parameters, family, 0.0)
    for _ in range(_ROUNDS):
        dispersion = max(dispersion, least)
        levels = [divided(level, dispersion) for level in prepared.levels]
        found = with_chosen_prior(replace(prepared, levels=levels), kind, solve, weakest=0.0)
        whole = divided(found.prepared.objective, 1.0 / dispersion)
        prepared = replace(prepared, levels=[whole], start=found.prepared.start)
        before = dispersion
        dispersion = _dispersion(whole, prepared.start, family, _determined(found.prepared))
        if abs(max(dispersion, least) - before) <= _SAME * before:
            break
    if dispersion <= least:
        _warn_of_exact_fit()
    return ChosenPrior(prepared, found.how)


def _determined(found: Prepared) -> float:
    """γ = p - tr(P A⁻¹), the parameters that the data determine; none if they are too many."""
    precision = found.objective.penalty.precision
    if found.hessian is None:
        return 0.0
    return float(len(precision) - precision @ np.diagonal(inverse_of(found.hessian)))


def _dispersion(
    objective: LogPosterior, w: Array, family: TargetFamily, determined: float
) -> float:
    loss = cast(Loss, objective.loss)
    kernel = GatherFamilyFit(loss, family, objective.target, Fitted(objective.kernel(w)))
    found = objective.rows.map_sum(kernel)
    return found.pearson / max(found.weight - determined, 1.0)


def _warn_of_exact_fit() -> None:
    warn(
        IdentifiabilityWarning(
            "The columns fit the target exactly, or nearly: the evidence grows as the dispersion "
            f"gets smaller. {_LEAST:g} of that without slopes was taken.",
            "Fit to more rows or fewer columns, or set a number as prior.",
        )
    )


def _warn_of_weakest(objective: LogPosterior, weakest: float) -> None:
    slopes = objective.penalty.precision[int(objective.standard.intercept) :]
    found = np.flatnonzero(slopes <= _AT_THE_END * weakest)
    if len(found):
        columns = objective.columns.as_schema().describe_all(found)
        warn(
            IdentifiabilityWarning(
                f"The evidence grows as the prior on {columns} gets weaker, as it does where "
                "classes can be separated. The weakest prior that is tried was taken: a standard "
                f"deviation of {weakest**-0.5:g} for standardised columns.",
                "Set a number as prior, which says how large coefficients may be.",
            )
        )
