"""What an iteration gives back: parameters, how it ended, and what happened on the way."""

from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

P = TypeVar("P")


class Status(Enum):
    """How an iteration ended; the value is the sentence shown to the user."""

    CONVERGED = "The iteration converged."
    MAX_ITERATIONS = "The iteration was stopped before it converged."


@dataclass(frozen=True)
class Solution(Generic[P]):
    """Parameters, status, and the objective after each step."""

    parameters: P
    status: Status
    trace: tuple[float, ...]

    @property
    def converged(self) -> bool:
        return self.status is Status.CONVERGED
