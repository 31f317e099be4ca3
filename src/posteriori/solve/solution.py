"""What an iteration gives back: parameters, how it ended, and what happened on the way."""

import math
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

P = TypeVar("P")


class Status(Enum):
    """How an iteration ended; the value is the sentence shown to the user."""

    CONVERGED = "The iteration converged."
    MAX_ITERATIONS = "The iteration was stopped before it converged."
    STALLED = "No step made the objective smaller: it is level, or its numbers are too coarse."
    SEPARATED = "The likelihood has no maximum, because the classes can be separated."


@dataclass(frozen=True, slots=True)
class Iteration:
    """One step of a solver.

    objective: its value before the step. decrement: √(gᵀH⁻¹g), about how many standard errors the
    parameters were from the optimum. step: how much of the full step was taken. seconds: since
    the start. share: of all rows, those that were looked at. fresh: whether the Hessian was
    computed for this step. looks: how often the share of the rows was looked at.
    """

    objective: float
    decrement: float
    step: float
    seconds: float
    share: float
    fresh: bool
    looks: float = 1.0


T = TypeVar("T")


@dataclass(frozen=True)
class Solution(Generic[P, T]):
    """Parameters, status, and a trace with one entry a step: objectives, or `Iteration`s.

    `value` is the objective at the parameters, where the solver knows it.
    """

    parameters: P
    status: Status
    trace: tuple[T, ...]
    value: float = math.nan

    @property
    def converged(self) -> bool:
        return self.status is Status.CONVERGED
