"""How generalised linear models are solved: ends of a domain, units, means that go to zero."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, NoReturn

import numpy as np

from posteriori.errors import DomainError, ScaleError, SeparationWarning, warn
from posteriori.likelihood.barrier import BarrierLoss
from posteriori.likelihood.glm import GLM_FAMILIES
from posteriori.likelihood.loss import Loss
from posteriori.models.edges import in_words, rows_at, solved
from posteriori.models.far_offsets import is_far, log_level, solve_from_afar, started_at
from posteriori.models.fitting import Prepared
from posteriori.models.mechanism import Mechanism
from posteriori.models.running import Running, find_running
from posteriori.models.scoring import divided, multiplied, scored
from posteriori.posterior.objective import LogPosterior
from posteriori.solve.solution import Iteration, Solution, Status
from posteriori.statistics.glm_domain import Edge, GatherLargestResidual
from posteriori.statistics.goodness_of_fit import Fitted, GatherFamilyFit, GatherTargetMean
from posteriori.typing import Array

_COUNTED = 100.0
"""Counts a parameter from which on the optimum of a subsample is a good start."""

_MOST_COUNTS = 1e10
"""With larger counts, standard errors are less than the last digit of a double."""

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

    `suspicion` is asked whether classes are separated.
    """
    found = _by_offsets(prepared, mechanism, max_iter, suspicion)
    if not np.isfinite(found.solution.value):
        raise ScaleError(
            "No coefficients were found with which the likelihood of every row is more than zero "
            f"for a double: with the {mechanism.link} link some means are too large or too small.",
            "Use smaller offsets and targets, or smaller entries of the columns.",
        )
    return found


def _by_offsets(
    prepared: Prepared,
    mechanism: Mechanism,
    max_iter: int | None,
    suspicion: Callable[[], bool] | None,
) -> Solved:
    """The optimum, by whichever way the offsets leave open.

    The objective is taken over the dispersion, so that tolerances are standard errors.
    """
    offsets = log_level(prepared.objective)
    if offsets is not None:
        prepared = started_at(prepared, offsets)
        if is_far(offsets):
            return Solved(solve_from_afar(prepared, offsets, max_iter))
    prepared = _with_enough(prepared, mechanism)
    dispersion = _dispersion(prepared, mechanism)
    levels = [divided(level, dispersion) for level in prepared.levels]
    found = _solve(replace(prepared, levels=levels), mechanism, max_iter, suspicion)
    return found._replace(solution=multiplied(found.solution, dispersion))


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
    edge = _edge(prepared.objective, solution, mechanism)
    if (edge.n_rows or not solution.converged) and running(prepared, mechanism) is not None:
        # Rows lie at an end, or steps go on, only because coefficients run away: that is said.
        return Solved(replace(solution, status=Status.CONVERGED))
    return Solved(solution, edge)


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
        if not family.dispersion_fixed:
            return dispersion
        return _of_counts(float(found.mean[0]), min(dispersion, 1.0), mechanism)
    if mechanism.family == "gaussian":
        away = some.rows.map_sum(GatherLargestResidual(mechanism.loss, some.target, fitted)).value
        if away > 0:  # its square may be zero for a double
            _raise_scale(is_large=dispersion > 1)
    return 1.0


def _of_counts(mean: float, dispersion: float, mechanism: Mechanism) -> float:
    """The dispersion, or for large counts what makes errors out of rounding."""
    if mechanism.family != "poisson":
        return dispersion
    dispersion = max(dispersion, mean / _MOST_COUNTS)
    curved = mechanism.link == "identity" and mean > 0  # by one over both
    if curved and not _TINY < mean * dispersion < 1 / _TINY:
        _raise_scale(is_large=mean > 1)
    return dispersion


def _raise_scale(is_large: bool) -> NoReturn:
    raise ScaleError(
        f"The squares of the targets are too {'large' if is_large else 'small'} for a double.",
        f"{'Divide' if is_large else 'Multiply'} y by a large number.",
    )


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
            f"The likelihood has no bound: {found.rows}, and as the coefficients of "
            f"{_listed(found)} run to infinity, their density does, too.",
            "Drop these rows, merge the level with another, or set a prior.",
        )
    return found


def warn_of_running(found: Running) -> None:
    """Say which coefficients run away, and what can be done."""
    warn(
        SeparationWarning(
            f"The likelihood has no maximum: {found.rows}, and as the coefficients of "
            f"{_listed(found)} run to infinity, their mean goes to zero (see separation_). They "
            "were stopped on the way; the others are those of the limit.",
            "Drop these rows, merge the level with another, or set a prior.",
        )
    )


def _listed(found: Running, most: int = 8) -> str:
    names = found.separation.columns
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(f"'{name}'" for name in names[:most]) + more
