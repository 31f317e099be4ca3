"""Optima of losses that are not the logistic ones: Newton's method, or Fisher scoring.

The expected second derivative is never negative, so that steps by it point downhill from any
start, for losses that are not convex, too.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from posteriori.posterior.log_posterior import LogPosterior
from posteriori.solve.newton import newton, scoring
from posteriori.solve.objective import Iteration, Solution
from posteriori.solve.solvers import Choice, choose, solve
from posteriori.typing import Array

MOST_STEPS = 100
"""The largest number of steps, by default."""

_CLOSE = 0.3
"""Standard errors of a subsample from its optimum that are near enough."""


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
    if objective.loss.convex:
        return Choice("newton", "steps by the observed second derivatives")
    return Choice("scoring", "steps by the expected second derivatives, as the loss is not convex")


def scored(
    levels: Sequence[LogPosterior],
    start: Array,
    max_iter: int | None = None,
    check_separation: Callable[[], bool] | None = None,
) -> Solution[Array, Iteration]:
    """The parameters that minimise the last of `levels`, the others being subsamples.

    `check_separation` is called if parameters may diverge, as in `newton`.
    """
    full, most = levels[-1], max_iter or MOST_STEPS
    with np.errstate(over="ignore", invalid="ignore"):  # steps may leave the domain
        if full.is_wide:
            wide = replace(full, information="expected")
            return solve(
                "newton-cg", [wide], start, max_iter=max_iter, check_separation=check_separation
            )
        if full.loss.convex:
            stages = [*map(_careful, levels[:-1]), replace(full, information="observed")]
            return newton(stages, start, max_iter=most, check_separation=check_separation)
        for level in levels[:-1]:
            start = scoring(replace(_careful(level), information="expected"), start).parameters
        return scoring(replace(full, information="expected"), start, max_iter=most)


def _careful(level: LogPosterior) -> LogPosterior:
    """A subsample with a tolerance that is small enough for the last step, which has no safeguard.

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
