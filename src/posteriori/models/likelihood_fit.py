"""A fit by likelihood from beginning to end: prior, optimum, separation, inference.

An estimator describes its fit by a `Plan`; `choose_prior` and `finish` carry it out:

    plan -> prepare(plan.problem) -> choose_prior -> finish -> Fit
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import numpy as np

from posteriori.errors import (
    ConvergenceWarning,
    IdentifiabilityWarning,
    RankDeficiencyWarning,
    warn,
)
from posteriori.likelihood.glm_families import TargetFamily
from posteriori.likelihood.linear_activations import Linear
from posteriori.likelihood.links import ProbabilityLink
from posteriori.likelihood.loss import Loss
from posteriori.models.fitting import Prepared, Problem, is_large
from posteriori.models.scoring import Solved, divided
from posteriori.models.separation import (
    SeparationSearch,
    Solve,
    certain_fit,
    warn_of_separation,
    warn_of_zero_means,
    warn_undecided,
)
from posteriori.posterior.evidence import WEAKEST, Chosen, as_prior, choose_precisions
from posteriori.posterior.inference import Inference, inverse_of
from posteriori.posterior.jeffreys import JeffreysPosterior, with_jeffreys
from posteriori.posterior.log_posterior import LogPosterior
from posteriori.posterior.priors import PriorLike, PriorName
from posteriori.solve.line_search import near_enough
from posteriori.solve.newton import newton, polish, scoring
from posteriori.solve.objective import Iteration, Solution, Status
from posteriori.solve.separation import Separation
from posteriori.solve.solvers import choose, solve
from posteriori.statistics.goodness_of_fit import Fitted, GatherFamilyFit
from posteriori.statistics.local_quadratic import Information
from posteriori.typing import Array

if TYPE_CHECKING:
    from posteriori.models.label_noise import Noise, NoisyFit

Solver = Literal["auto", "newton", "newton-cg", "gradient", "coordinate", "sequential"]

ANY_PRIOR = (
    "Set prior='jeffreys', or a number such as prior=1.0, for finite coefficients; or drop the "
    "columns."
)
A_NUMBER = "Set a number such as prior=1.0 for finite coefficients; or drop the columns."
"""Remedies for separation where Jeffreys' prior is not available, as in `partial_fit`."""

_DAMPING = 0.01
"""A precision on the slopes of a subsample, from whose fit Firth's estimates start."""

_DIGITS = 1e-6
"""A `tol` below which the Hessian must be that of the optimum itself."""


_AT_THE_END = 1.001
_ROUNDS = 100
_LEAST = 1e-6
_SAME = 1e-10
"""A change of the dispersion, relative to it, that ends the search for it."""

Optimum = Callable[[Prepared], Array]


@dataclass(frozen=True, eq=False)
class Plan:
    """What to fit, and how.

    problem: rows, likelihood and prior. prior: as the user passed it. solve: from a prepared
    problem to its optimum. search: decides whether the classes can be separated. link: of two
    classes. family: of a target that is a number. noise: labels that may be wrong. keeps_hessian:
    the Hessian at the optimum of many rows is needed anyway. remedies: against separation.
    """

    problem: Problem
    prior: PriorLike | PriorName
    solve: Solve
    search: SeparationSearch
    link: ProbabilityLink | None = None
    family: TargetFamily | None = None
    noise: "Noise | None" = None
    jeffreys_errors: Information = "expected"
    keeps_hessian: bool = False
    remedies: str = ANY_PRIOR
    max_iter: int | None = None


class ChosenPrior(NamedTuple):
    """A prepared problem with its prior; the prior and how it was chosen, if the data did that."""

    prepared: Prepared
    prior: Any = None
    how: str = ""


@dataclass(frozen=True, eq=False)
class Fit:
    """The result: optimum, inference and predictions, and what the fit found on the way."""

    solution: Solution[Array, Iteration]
    solver: str
    solver_reason: str
    inference: Inference
    linear: Linear
    edge: str = ""
    penalised_log_likelihood: float | None = None
    noisy: "NoisyFit | None" = None


def choose_prior(plan: Plan, prepared: Prepared) -> ChosenPrior:
    """The problem with the prior that is named, as "evidence" is, or with label noise."""
    if plan.noise is not None:
        return ChosenPrior(plan.noise.start(prepared))
    if plan.prior == "jeffreys":
        objective = with_jeffreys(prepared.objective)
        return ChosenPrior(replace(prepared, levels=[*prepared.levels[:-1], objective]))
    if not isinstance(plan.prior, str):
        return ChosenPrior(prepared)
    kind, family = plan.prior, plan.family

    def optimum(problem: Prepared) -> Array:
        return plan.solve(problem, plan.search).solution.parameters

    if family is None or family.dispersion_fixed:
        prepared, how = with_chosen_prior(prepared, kind, optimum)
    else:
        prepared, how = with_dispersion(prepared, kind, optimum, family)
    return ChosenPrior(prepared, as_prior(prepared.objective), how)


def finish(plan: Plan, prepared: Prepared) -> Fit:
    """Solve, decide whether classes are separated, and infer."""
    objective, search, curvature = prepared.objective, plan.search, None
    if len(prepared.dependent):
        _warn_of_rank(prepared)
    if plan.keeps_hessian:
        solved, curvature = _solve_with_hessian(plan, prepared)
    else:
        solved = plan.solve(prepared, search)
    solution, undetermined = search.verify(prepared, solved.solution, plan.solve), None
    if solution.status is Status.SEPARATED:
        link, found = cast(ProbabilityLink, plan.link), cast(Separation, search.found)
        solution, undetermined = certain_fit(objective, search, solution, link)
        if search.zero_means:
            is_density = plan.family is not None and plan.family.name == "exponential"
            warn_of_zero_means(found, unbounded=is_density)
        else:
            warn_of_separation(found, plan.remedies)
    elif search.found is not None and search.found.kind == "undecided":
        warn_undecided()
    elif solution.status in (Status.MAX_ITERATIONS, Status.STALLED):
        _warn_of_end(solution, plan.max_iter)

    w, penalised, noisy = solution.parameters, None, None
    if isinstance(objective, JeffreysPosterior):
        inference, penalised = objective.conclude(w, prepared.dependent, plan.jeffreys_errors)
    elif plan.noise is not None:
        noisy = plan.noise.conclude(objective, solution)
        inference = noisy.inference
    else:
        inference = Inference(objective, w, solution.value, plan.family)
    if curvature is not None:
        inference.adopt(curvature)
    if undetermined is not None:
        inference.undetermined = undetermined
    linear = objective.linear(w)
    names = solved.solver, solved.reason
    return Fit(solution, *names, inference, linear, solved.edge, penalised, noisy)


def _solve_with_hessian(plan: Plan, prepared: Prepared) -> tuple[Solved, Array | None]:
    """The optimum and the Hessian there, where the last steps give it at no extra cost."""
    full = prepared.objective
    if plan.problem.tol < _DIGITS or isinstance(full, JeffreysPosterior):
        return plan.solve(prepared, plan.search), None
    if len(prepared.levels) == 1 or full.is_wide:
        return plan.solve(prepared, plan.search), prepared.hessian if is_large(full) else None
    rough = replace(full, tolerance=near_enough(full))
    found = plan.solve(replace(prepared, levels=[*prepared.levels[:-1], rough]), plan.search)
    polished = polish(full, found.solution) if found.solution.converged else None
    if polished is None:
        return plan.solve(prepared, plan.search), None
    return found._replace(solution=polished[0]), polished[1]


def solver_of(name: Solver, tol: float, max_iter: int | None, keep_path: bool = False) -> Solve:
    """The solver by name, for losses that are convex; `keep_path` is for Newton's method."""

    def optimum(prepared: Prepared, search: SeparationSearch) -> Solved:
        objective, levels = prepared.objective, prepared.levels
        if isinstance(objective, JeffreysPosterior):
            damped = objective.penalty.damped(_DAMPING, objective.standard.intercept)
            some = [replace(each, penalty=damped) for each in levels[:-1]]
            start = newton(some, prepared.start).parameters if some else prepared.start
            solution = scoring(objective, start, max_iter=max_iter or 200)
            return Solved(solution, "scoring", "Firth's equations have no other solver")
        chosen, reason = choose(levels, objective.coordinates.size, name)
        if chosen == "newton-cg":  # the last digits cost products with the Hessian
            levels = [replace(objective, tolerance=tol)]
        solution = solve(
            chosen,
            levels,
            prepared.start,
            max_iter=max_iter,
            check_separation=search.callback(objective),
            hessian=prepared.hessian,
            keep_parameters=keep_path,
        )
        return Solved(solution, chosen, reason)

    return optimum


def with_chosen_prior(
    prepared: Prepared, kind: Chosen, optimum: Optimum, weakest: float = WEAKEST
) -> tuple[Prepared, str]:
    """The precisions of greatest evidence, `weakest` at least, and how they were chosen."""

    def fit(levels: Sequence[LogPosterior], start: Array, hessian: Array | None) -> Array:
        return optimum(replace(prepared, levels=list(levels), start=start, hessian=hessian))

    found = choose_precisions(prepared.levels, prepared.start, kind, fit, weakest)
    _warn_of_weakest(found.objective, weakest)
    chosen = replace(prepared, levels=[found.objective], start=found.w, hessian=found.hessian)
    return chosen, found.how


def with_dispersion(
    prepared: Prepared, kind: Chosen, optimum: Optimum, family: TargetFamily
) -> tuple[Prepared, str]:
    """The same for a family with an estimated dispersion s, the precisions in units of 1/s.

    Precisions and s are chosen in turn. Given the precisions, the evidence of a Gaussian target
    is largest at s = χ²/(n - γ), with Pearson's χ² and the number γ of parameters that the data
    determine rather than the prior. s is at least a millionth of what it is without slopes: where
    columns fit the target exactly, the evidence may grow without end as s gets smaller.
    """
    least = _LEAST * dispersion_of(prepared.objective, prepared.start, family)
    if least == 0.0:
        return prepared, "not chosen, as the target is constant"
    dispersion = dispersion_of(prepared.objective, optimum(prepared), family)
    for _ in range(_ROUNDS):
        dispersion = max(dispersion, least)
        levels = [divided(level, dispersion) for level in prepared.levels]
        problem = replace(prepared, levels=levels)
        found, how = with_chosen_prior(problem, kind, optimum, weakest=0.0)
        whole = divided(found.objective, 1.0 / dispersion)
        prepared = replace(prepared, levels=[whole], start=found.start)
        before = dispersion
        dispersion = dispersion_of(whole, prepared.start, family, _determined(found))
        if abs(max(dispersion, least) - before) <= _SAME * before:
            break
    if dispersion <= least:
        _warn_of_exact_fit()
    return prepared, how


def _determined(found: Prepared) -> float:
    """γ = p - tr(P A⁻¹), the effective number of parameters; 0 if they are too many to compute."""
    precision = found.objective.penalty.precision
    if found.hessian is None:
        return 0.0
    return float(len(precision) - precision @ np.diagonal(inverse_of(found.hessian)))


def dispersion_of(
    objective: LogPosterior, w: Array, family: TargetFamily, determined: float = 0.0
) -> float:
    """Pearson's χ² over the rows less the parameters that are determined."""
    loss = cast(Loss, objective.loss)
    kernel = GatherFamilyFit(loss, family, objective.target, Fitted(objective.kernel(w)))
    found = objective.rows.map_sum(kernel)
    return found.pearson / max(found.weight - determined, 1.0)


def _warn_of_exact_fit() -> None:
    warn(
        IdentifiabilityWarning(
            "The columns fit the target exactly, or nearly: the evidence grows as the dispersion "
            f"gets smaller. It was set to {_LEAST:g} times that of the model without slopes.",
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
                "classes can be separated. The weakest prior of the search was used: a standard "
                f"deviation of {weakest**-0.5:g} for standardised columns.",
                "Set prior to a number.",
            )
        )


def _warn_of_rank(prepared: Prepared) -> None:
    n_columns = len(prepared.dependent)
    columns = prepared.objective.columns.as_schema().describe_all(prepared.dependent)
    warn(
        RankDeficiencyWarning(
            f"{columns[0].upper()}{columns[1:]} {'is' if n_columns == 1 else 'are'} constant or a "
            "linear combination of other columns. Of all coefficients with the same likelihood, "
            "those of smallest norm were taken.",
            "Drop such columns, or set a prior.",
        )
    )


def _warn_of_end(solution: Solution[Array, Iteration], max_iter: int | None) -> None:
    remedy = (
        f"Raise max_iter ({len(solution.trace) if max_iter is None else max_iter} now)."
        if solution.status is Status.MAX_ITERATIONS
        else "Look at the scales of the columns, or set a prior."
    )
    warn(ConvergenceWarning(solution.status.value, remedy))
