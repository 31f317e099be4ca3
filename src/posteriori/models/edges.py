"""Optima at an end of the domain, where no derivative vanishes: reached along smooth neighbours.

A likelihood can be largest where some activations lie at an end: a count with mean zero, a
probability of one, a kink of the distribution function of bounded noise. Newton's steps are cut
short there. So a family of losses that are smooth, and the loss itself in the limit, is made small
one after the other.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from posteriori.likelihood.loss import Loss
from posteriori.models.fitting import Prepared
from posteriori.models.scoring import MOST_STEPS, scored
from posteriori.posterior.objective import LogPosterior
from posteriori.solve.solution import Iteration, Solution, Status
from posteriori.statistics.fit_sums import Fitted
from posteriori.statistics.room import Edge, GatherEdge
from posteriori.typing import Array

_WIDTHS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
"""How far the neighbours are from the loss itself."""

_NEAR = 1e-5
"""Rows this close to an end, as a part of the usual size of activations, lie at it."""

_PATIENCE = 30
"""Steps after which an optimum inside the domain would have been found."""


def solved(
    prepared: Prepared,
    neighbour: Callable[[float], Loss],
    max_iter: int | None,
    suspicion: Callable[[], bool] | None = None,
) -> tuple[Solution[Array, Iteration], bool]:
    """The optimum, and whether it had to be reached along the neighbours of the loss.

    `suspicion` is asked if parameters may run to infinity, as in `newton`.
    """
    first = min(max_iter or MOST_STEPS, _PATIENCE)
    solution = scored(prepared.levels, prepared.start, first, suspicion)
    if solution.converged or solution.status is Status.SEPARATED:
        return solution, False
    return _followed(prepared, neighbour, max_iter), True


def _followed(
    prepared: Prepared, neighbour: Callable[[float], Loss], max_iter: int | None
) -> Solution[Array, Iteration]:
    """The optimum of one neighbour after the other, each from where the last one ended."""
    w: Array = prepared.start
    trace: tuple[Iteration, ...] = ()
    for width in _WIDTHS:
        levels = [replace(level, loss=neighbour(width)) for level in prepared.levels]
        solution = scored(levels, w, max_iter)
        w, trace = solution.parameters, (*trace, *solution.trace)
    value = prepared.objective(w, "none").value
    return replace(solution, trace=trace, value=value)


def rows_at(objective: LogPosterior, w: Array, ends: Sequence[float], size: float) -> Edge:
    """The rows whose activations lie at one of the ends; `size` is that of usual activations."""
    kernel = GatherEdge(Fitted(objective.kernel(w)), ends, _NEAR * size)
    return objective.rows.map_sum(kernel)


def in_words(edge: Edge) -> str:
    """The rows as a message calls them."""
    return f"row {edge.first}" + (f" (and {edge.n_rows - 1} more)" if edge.n_rows > 1 else "")
