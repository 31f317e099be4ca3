"""How generalised linear models are solved: ends of a domain, units, means that go to zero."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from posteriori.errors import DomainError, ScaleError, SeparationWarning, warn
from posteriori.likelihood.barrier import BarrierLoss
from posteriori.likelihood.glm import GLM_FAMILIES
from posteriori.likelihood.loss import Loss
from posteriori.models.edges import in_words, rows_at, solved
from posteriori.models.fitting import Prepared
from posteriori.models.mechanism import Mechanism
from posteriori.models.running import Running, find_running
from posteriori.models.scoring import scored
from posteriori.posterior.objective import LogPosterior
from posteriori.solve.solution import Iteration, Solution
from posteriori.statistics.fit_sums import Fitted, GatherFamilyFit
from posteriori.statistics.room import Edge
from posteriori.statistics.target_mean import GatherTargetMean
from posteriori.typing import Array

_COUNTED = 100.0
"""Counts a parameter from which on the optimum of a subsample is a good start."""

_TINY = 1e-290
"""Below this a sum of squares has lost digits."""


class Solved(NamedTuple):
    """The optimum, and the rows that lie at an end of the domain there."""

    solution: Solution[Array, Iteration]
    edge: Edge = Edge(0, 0)


def solve_glm(
    prepared: Prepared,
    mechanism: Mechanism,
    max_iter: int | None,
    suspicion: Callable[[], bool] | None = None,
) -> Solved:
    """The optimum, inside the domain or at an end of it.

    `suspicion` is asked whether classes are separated. The objective is taken over the dispersion,
    so that tolerances are standard errors.
    """
    prepared = _with_enough(prepared, mechanism)
    dispersion = _dispersion(prepared, mechanism)
    levels = [_divided(level, dispersion) for level in prepared.levels]
    found = _solve(replace(prepared, levels=levels), mechanism, max_iter, suspicion)
    return found._replace(solution=_times(found.solution, dispersion))


def _times(solution: Solution[Array, Iteration], dispersion: float) -> Solution[Array, Iteration]:
    """The solution with the values of the objective itself."""
    trace = tuple(replace(step, objective=step.objective * dispersion) for step in solution.trace)
    return replace(solution, value=solution.value * dispersion, trace=trace)


def _with_enough(prepared: Prepared, mechanism: Mechanism) -> Prepared:
    """Without the subsamples that count too little: coefficients found there lead astray."""
    if mechanism.family != "poisson" or len(prepared.levels) == 1:
        return prepared
    mean = prepared.levels[0].rows.map_sum(GatherTargetMean(prepared.objective.target)).mean[0]
    needed = _COUNTED * prepared.objective.coordinates.size
    enough = [level for level in prepared.levels[:-1] if mean * level.n_rows > needed]
    return replace(prepared, levels=[*enough, prepared.objective])


def _solve(
    prepared: Prepared,
    mechanism: Mechanism,
    max_iter: int | None,
    suspicion: Callable[[], bool] | None,
) -> Solved:
    if mechanism.reaches_its_ends:
        return _to_the_ends(prepared, mechanism, max_iter)
    solution = scored(prepared.levels, prepared.start, max_iter, suspicion)
    if not solution.converged and mechanism == Mechanism("exponential", "identity"):
        edge = _edge(prepared.objective, solution, mechanism)
        if edge.n_rows:
            raise DomainError(
                f"The likelihood has no bound: it grows as the mean of {in_words(edge)}, with "
                "target zero, goes to zero.",
                "Drop such rows, or use the log link.",
            )
    return Solved(solution)


def _to_the_ends(prepared: Prepared, mechanism: Mechanism, max_iter: int | None) -> Solved:
    size = _size(prepared.objective, mechanism)

    def walled(height: float) -> Loss:
        return BarrierLoss(mechanism.loss, mechanism.domain, height * size)

    solution, at_end = solved(prepared, walled, max_iter)
    if not at_end:
        return Solved(solution)
    return Solved(solution, _edge(prepared.objective, solution, mechanism))


def _dispersion(prepared: Prepared, mechanism: Mechanism) -> float:
    """Pearson's χ²/n at the start on some of the rows; one at most where the family has one."""
    family = GLM_FAMILIES[mechanism.family]
    if family.name == "bernoulli":
        return 1.0
    some = prepared.levels[0]
    fitted = Fitted(some.kernel(prepared.start))
    kernel = GatherFamilyFit(mechanism.loss, family, some.target, fitted)
    found = some.rows.map_sum(kernel)
    dispersion = found.pearson / found.weight
    if _TINY < dispersion < np.inf:
        return min(dispersion, 1.0) if family.dispersion_fixed else dispersion
    if mechanism.family == "gaussian" and dispersion > 0:
        raise ScaleError(
            f"The squares of the targets are too {'large' if dispersion > 1 else 'small'} for a "
            "double.",
            f"{'Divide' if dispersion > 1 else 'Multiply'} y by a large number.",
        )
    return 1.0


def _size(objective: LogPosterior, mechanism: Mechanism) -> float:
    """The usual size of activations: the mean target with the identity link, else one."""
    if mechanism.link != "identity":
        return 1.0
    return float(objective.rows.map_sum(GatherTargetMean(objective.target)).mean[0])


def _edge(
    objective: LogPosterior, solution: Solution[Array, Iteration], mechanism: Mechanism
) -> Edge:
    """The rows at an end of the domain."""
    both = (mechanism.domain.low, mechanism.domain.high)
    ends, size = [end for end in both if np.isfinite(end)], _size(objective, mechanism)
    return rows_at(objective, solution.parameters, ends, size)


def _divided(objective: LogPosterior, dispersion: float) -> LogPosterior:
    penalty = objective.penalty
    return replace(
        objective,
        factor=objective.factor / dispersion,
        penalty=replace(penalty, precision=penalty.precision / dispersion),
    )


def running(prepared: Prepared, mechanism: Mechanism) -> Running | None:
    """The coefficients that run to infinity, as targets of zero pull them there; or None.

    With a prior on every slope none does; with too many columns it is not decided.
    """
    objective = prepared.objective
    if not mechanism.zero_lies_at or objective.penalty.proper or objective.is_wide:
        return None
    found = find_running(prepared.levels, mechanism.zero_lies_at)
    if found is not None and mechanism.family == "exponential":
        raise DomainError(
            f"The likelihood has no bound: as the coefficients of {_listed(found)} run to "
            "infinity, the density of targets that are all zero does, too.",
            "Drop these rows, merge the level with another, or set a prior.",
        )
    return found


def warn_of_running(found: Running) -> None:
    """Say which coefficients run away, and what can be done."""
    warn(
        SeparationWarning(
            f"The likelihood has no maximum: as the coefficients of {_listed(found)} run to "
            "infinity, the mean of rows whose targets are all zero goes to zero (see separation_). "
            "They were stopped on the way; the others are those of the limit.",
            "Drop these rows, merge the level with another, or set a prior.",
        )
    )


def _listed(found: Running, most: int = 8) -> str:
    names = found.separation.columns
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(f"'{name}'" for name in names[:most]) + more
