"""Which rows `partial_fit` keeps, and when those that come are unlike those that went.

Conventions: p parameters, d columns.
"""

from dataclasses import dataclass, replace

import numpy as np

from posteriori.errors import ParameterError
from posteriori.models.fitting import Problem
from posteriori.posterior.objective import WIDE, Coordinates
from posteriori.posterior.priors import Penalty
from posteriori.rows.in_memory import MemoryRows
from posteriori.solve.online import Belief
from posteriori.solve.solution import Iteration, Solution
from posteriori.statistics.row_sample import join_rows
from posteriori.typing import Array

_LEAST, _ENOUGH = 5, 20
"""Rows a parameter that are kept at least, and if they are not too many numbers."""

_KEPT_ENTRIES = 2**22

_STRANGE = 10.0
"""Pull of a batch, beside that of chance, that rows like those before do not have."""


@dataclass(frozen=True, eq=False)
class SoFar:
    """What is kept of `n_seen` rows: some `rows`, and what the others say beside (the `rest`).

    Without a rest, all rows are there. `penalty` is the prior, in the columns that were
    standardised when the first rows were let go; None where it is in the rest.
    """

    rows: MemoryRows | None
    n_seen: int
    rest: Belief | None = None
    penalty: Penalty | None = None


def rows_to_keep(problem: Problem) -> int:
    """How many rows are kept before any are let go; from then on ever fewer of those that come."""
    q = len(problem.columns.names) + int(problem.intercept)
    p = Coordinates(problem.n_activations, q).size
    if p > WIDE:
        raise ParameterError(
            f"partial_fit keeps the curvature of all {p} parameters, which are too many.",
            "Use fit, or fewer columns.",
        )
    d = max(len(problem.rows.schema), 1)
    return max(_LEAST * p, min(_ENOUGH * p, _KEPT_ENTRIES // d))


def joined(first: MemoryRows, second: MemoryRows) -> MemoryRows:
    """Both as one; where only one of them has offsets, those of the other are zero."""
    return join_rows(_offset_like(first, second), _offset_like(second, first))


def _offset_like(rows: MemoryRows, other: MemoryRows) -> MemoryRows:
    if rows.offset is not None or other.offset is None:
        return rows
    return replace(rows, offset=np.zeros((rows.n_rows, *other.offset.shape[1:])))


def is_strange(solution: Solution[Array, Iteration], ratio: float) -> bool:
    """Whether a batch, `ratio` times as large as all before, pulls much harder than chance does.

    For rows like those before, the first decrement is about √(p · ratio).
    """
    chance = 1.0 + len(solution.parameters) * ratio
    return bool(solution.trace) and solution.trace[0].decrement ** 2 > _STRANGE * chance
