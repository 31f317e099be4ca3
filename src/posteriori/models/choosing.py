"""Fits whose prior is chosen by the evidence: what to solve, and how often."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, cast

import numpy as np

from posteriori.errors import IdentifiabilityWarning, warn
from posteriori.likelihood.glm import TargetFamily
from posteriori.likelihood.loss import Loss
from posteriori.models.fitting import Prepared
from posteriori.models.scoring import divided
from posteriori.posterior.chosen_on_many import choose_on_many, guess_precisions
from posteriori.posterior.chosen_prior import (
    WEAKEST,
    Choice,
    Chosen,
    choose_precisions,
    groups_of,
)
from posteriori.posterior.inference import inverse_of
from posteriori.posterior.objective import LogPosterior
from posteriori.posterior.wide_evidence import choose_each, choose_one
from posteriori.solve.solution import Iteration, Solution
from posteriori.statistics.goodness_of_fit import Fitted, GatherFamilyFit
from posteriori.typing import Array, Codes

Solve = Callable[[Prepared], Solution[Array, Iteration]]

_AT_THE_END = 1.001
_ROUNDS = 30
_LEAST = 1e-6
_SAME = 1e-6
"""A change of the dispersion, beside it, that ends the search for it."""


class ChosenPrior(NamedTuple):
    """The problem with the precisions of greatest evidence, its optimum as the start, and how."""

    prepared: Prepared
    how: str


def with_chosen_prior(
    prepared: Prepared, kind: Chosen, solve: Solve, weakest: float = WEAKEST
) -> ChosenPrior:
    """The precisions of greatest evidence, `weakest` at least."""
    objective = prepared.objective
    groups = groups_of(objective.columns, objective.standard.intercept, kind)
    if objective.is_wide:
        found = _chosen_of_many(prepared, groups, solve, weakest)
    else:
        choice = _chosen(prepared, groups, solve, weakest)
        again = _again(prepared, choice.objective, choice.w, choice.hessian)
        found = ChosenPrior(again, "by all second derivatives")
    _warn_of_weakest(found.prepared.objective, weakest)
    return found


def _chosen(prepared: Prepared, groups: Codes, solve: Solve, weakest: float) -> Choice:
    def fit(objective: LogPosterior, start: Array, hessian: Array) -> Array:
        return solve(_again(prepared, objective, start, hessian)).parameters

    objective, few, w = prepared.objective, prepared.levels[0], prepared.start
    if len(prepared.levels) > 1:
        few = prepared.levels[-2]
        w = solve(replace(prepared, levels=prepared.levels[:-1])).parameters
    guess = guess_precisions(few, w, objective, groups, weakest)
    choice = choose_on_many(guess, groups, fit, weakest) if len(prepared.levels) > 1 else None
    if choice is not None:
        return choice
    w = fit(guess.objective, guess.start, guess.hessian)
    return choose_precisions(guess.objective, w, groups, fit, weakest)


def _chosen_of_many(prepared: Prepared, groups: Codes, solve: Solve, weakest: float) -> ChosenPrior:
    def fit(objective: LogPosterior, start: Array) -> Array:
        return solve(_again(prepared, objective, start)).parameters

    objective = prepared.objective
    if groups.max(initial=-1) <= 0:
        choice = choose_one(objective, prepared.start, groups, fit, weakest)
    else:
        choice = choose_each(objective, solve(prepared).parameters, groups, fit)
    return ChosenPrior(_again(prepared, choice.objective, choice.w), choice.how)


def _again(
    prepared: Prepared, objective: LogPosterior, start: Array, hessian: Array | None = None
) -> Prepared:
    return replace(prepared, levels=[objective], start=start, hessian=hessian)


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
        prepared = _again(prepared, whole, found.prepared.start)
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
