"""What a solver receives, an objective with its derivatives, and what it returns.

Conventions: p parameters w (p,), objective f (to be made small), gradient g (p,), Hessian H (p, p).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Generic, Literal, NamedTuple, Protocol, TypeVar

from posteriori.typing import Array

Curvature = Literal["none", "diagonal", "full"]
"""How much of the second derivative is requested."""


class Local(NamedTuple):
    """f, g and, where requested, H (p, p) or its diagonal (p,)."""

    value: float
    gradient: Array
    hessian: Array | None


class Objective(Protocol):
    """A function of the parameters to be made small.

    `hessian_cost`: what H costs in units of f and g together; infinite if it is too large.
    `row_fraction`: of all rows, the part that it sums over. `tolerance`: how many standard errors
    from its optimum are near enough; `unit`: what they are multiplied by, less than one where
    weights are small.
    """

    @property
    def hessian_cost(self) -> float: ...
    @property
    def row_fraction(self) -> float: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def tolerance(self) -> float: ...
    @property
    def unit(self) -> float: ...
    def __call__(self, w: Array, hessian: Curvature) -> Local: ...


class WithProducts(Objective, Protocol):
    """An objective that also gives products with its Hessian, where that is too large to form."""

    def hessian_product(self, w: Array) -> Callable[[Array], Array]:
        """The map v (p,) to H(w)v."""
        ...


P = TypeVar("P")


class Status(Enum):
    """How an iteration ended; the value is the message for the user."""

    CONVERGED = "The iteration converged."
    MAX_ITERATIONS = "The iteration was stopped before it converged."
    STALLED = "The iteration stopped because no step decreased the objective: rounding dominates."
    SEPARATED = "The likelihood has no maximum, because the classes can be separated."
    DIVERGED = "The likelihood has no maximum: it increases as some coefficients diverge."


@dataclass(frozen=True, slots=True)
class Iteration:
    """One step of a solver.

    objective: its value before the step. decrement: √(gᵀH⁻¹g), about how many standard errors the
    parameters were from the optimum. step: how much of the full step was taken. seconds: since
    the start. row_fraction: of all rows, those used. fresh: whether the Hessian was
    computed for this step. n_evaluations: of the objective on these rows. parameters: before the
    step, where they were requested.
    """

    objective: float
    decrement: float
    step: float
    seconds: float
    row_fraction: float
    fresh: bool
    n_evaluations: float = 1.0
    parameters: Array | None = None


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
