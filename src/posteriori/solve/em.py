"""Expectation-maximisation: climb a likelihood with missing entries, step by step (9.3)."""

from collections.abc import Callable
from typing import TypeVar

from posteriori.solve.solution import Solution, Status

P = TypeVar("P")


def expectation_maximisation(
    step: Callable[[P], tuple[P, float]],
    distance: Callable[[P, P], float],
    start: P,
    *,
    tol: float,
    max_iter: int,
) -> Solution[P, float]:
    """Repeat `step` until the parameters move by no more than `tol`.

    `step` maps parameters to better ones and gives the log-likelihood of those it was given.
    """
    trace: list[float] = []
    parameters = start
    for _ in range(max_iter):
        following, log_likelihood = step(parameters)
        trace.append(log_likelihood)
        moved = distance(parameters, following)
        parameters = following
        if moved <= tol:
            return Solution(parameters, Status.CONVERGED, tuple(trace))
    return Solution(parameters, Status.MAX_ITERATIONS, tuple(trace))
