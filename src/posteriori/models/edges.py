"""Optima at an end of the domain, where no derivative vanishes: reached along smooth neighbours.

A likelihood can be largest where some activations lie at an end: a count with mean zero, a
probability of one, a kink of the distribution function of bounded noise. Newton's steps are cut
short there. So a family of losses that are smooth, and the loss itself in the limit, is made small
one after the other.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from operator import itemgetter

import numpy as np

from posteriori.likelihood.loss import Loss
from posteriori.models.fitting import Prepared
from posteriori.models.scoring import MOST_STEPS, scored
from posteriori.posterior.objective import LogPosterior
from posteriori.solve.solution import Iteration, Solution, Status
from posteriori.statistics.glm_domain import Edge, GatherEdge
from posteriori.statistics.goodness_of_fit import Fitted
from posteriori.typing import Array

_WIDTHS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
"""How far the neighbours are from the loss itself."""

_NARROWEST = 1e-11
"""The width at which the optimum is taken; with none at all, curvatures would be infinite."""

_FINE = 1e-4
"""The square of a step's length, in standard errors, beside a width that it is small to."""

_NEAR = 1e-5
"""Rows this close to an end, as a part of the usual size of activations, lie at it."""

_BACK = 10.0 ** np.arange(-12, 0)
"""Parts of the way back to the start, which is inside."""

_PATIENCE, _AT_ONCE = 30, 10
"""Steps after which an optimum inside the domain would have been found, and such as are taken
before a look at how it goes."""

_CUT, _IN_A_ROW = 0.125, 3
"""Parts of steps that are taken at an end of the domain, where each is cut shorter than the last,
and how many of them show that the optimum lies there."""


def solved(
    prepared: Prepared,
    neighbour: Callable[[float], Loss],
    max_iter: int | None,
    suspicion: Callable[[], bool] | None = None,
) -> tuple[Solution[Array, Iteration], bool]:
    """The optimum, and whether it had to be reached along the neighbours of the loss.

    `suspicion` is asked if parameters may run to infinity, as in `newton`.
    """
    solution = _tried(prepared, min(max_iter or MOST_STEPS, _PATIENCE), suspicion)
    if solution.converged or solution.status is Status.SEPARATED:
        return solution, False
    return _followed(prepared, neighbour, max_iter), True


def _tried(
    prepared: Prepared, most: int, suspicion: Callable[[], bool] | None
) -> Solution[Array, Iteration]:
    """At most so many steps on the loss itself, fewer where an end of the domain cuts them."""
    at_once = most if prepared.objective.is_wide else _AT_ONCE
    solution = scored(prepared.levels, prepared.start, min(most, at_once), suspicion)
    for taken in range(at_once, most, at_once):
        if solution.status is not Status.MAX_ITERATIONS or _is_cut(solution):
            break
        w, step = solution.parameters, min(most - taken, at_once)
        more = scored(prepared.levels, w, step, suspicion, close=True)
        solution = replace(more, trace=(*solution.trace, *more.trace))
    return solution


def _is_cut(solution: Solution[Array, Iteration]) -> bool:
    last = [step.step for step in solution.trace[-_IN_A_ROW:]]
    return max(last) < _CUT


def _followed(
    prepared: Prepared, neighbour: Callable[[float], Loss], max_iter: int | None
) -> Solution[Array, Iteration]:
    """The optimum at the narrowest width, by the optima of ever closer neighbours.

    Once the rows at an end are found, the optimum moves in proportion to the width.
    """

    def smooth(level: LogPosterior, width: float) -> LogPosterior:
        return _smooth(level, neighbour(width), width)

    solution, shift = follow(prepared, smooth, _WIDTHS, max_iter)
    w = solution.parameters
    further = w - shift * (_WIDTHS[-1] - _NARROWEST)
    w, value = min(_inside(prepared, w), _inside(prepared, further), key=itemgetter(1))
    return replace(solution, parameters=w, value=value)


def follow(
    prepared: Prepared,
    neighbour: Callable[[LogPosterior, float], LogPosterior],
    widths: Sequence[float],
    max_iter: int | None,
) -> tuple[Solution[Array, Iteration], Array]:
    """The optimum of one neighbour after the other, each from where the last ones point to.

    The solution is that of the last width; with it comes what the optimum moves by for each width.
    """
    w: Array = prepared.start
    trace: tuple[Iteration, ...] = ()
    shift = np.zeros_like(w)
    for last, width in pairwise((np.inf, *widths)):
        levels = [neighbour(level, width) for level in prepared.levels]
        start = better(levels[-1], w, w - shift * (last - width)) if shift.any() else w
        solution = scored(levels, start, max_iter, close=last < np.inf)
        if last < np.inf:
            shift = (w - solution.parameters) / (last - width)
        w, trace = solution.parameters, (*trace, *solution.trace)
    return replace(solution, trace=trace), shift


def _smooth(objective: LogPosterior, loss: Loss, width: float) -> LogPosterior:
    """The objective with a neighbour of its loss, and a tolerance that is small beside its width.

    Its curvature changes within the width, so that the last step, which nothing guards, must be
    much shorter: a row at an end is curved by about one over the width.
    """
    return replace(objective, loss=loss, tolerance=min(objective.tolerance, _FINE * width))


def better(objective: LogPosterior, w: Array, other: Array) -> Array:
    """Whichever of the two has the smaller objective."""
    return other if objective(other, "none").value < objective(w, "none").value else w


def _inside(prepared: Prepared, w: Array) -> tuple[Array, float]:
    """w and the objective there; if the last step left the domain, as little back as is needed."""
    for part in (0.0, *_BACK):
        there = w + part * (prepared.start - w)
        value = prepared.objective(there, "none").value
        if np.isfinite(value):
            return there, value
    return prepared.start, prepared.objective(prepared.start, "none").value


def rows_at(objective: LogPosterior, w: Array, ends: Sequence[float], size: float) -> Edge:
    """The rows whose activations lie at one of the ends; `size` is that of usual activations."""
    kernel = GatherEdge(Fitted(objective.kernel(w)), ends, _NEAR * size)
    return objective.rows.map_sum(kernel)


def in_words(edge: Edge) -> str:
    """The rows as a message calls them."""
    return f"row {edge.first}" + (f" (and {edge.n_rows - 1} more)" if edge.n_rows > 1 else "")
