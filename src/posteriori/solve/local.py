"""What a solver sees of a problem: a function that gives its value and derivatives at a point.

Conventions: p parameters w (p,), objective f (to be made small), gradient g (p,), Hessian H (p, p).
"""

from typing import Literal, NamedTuple, Protocol

from posteriori.typing import Array

Curvature = Literal["none", "diagonal", "full"]
"""How much of the second derivative is asked for."""


class Local(NamedTuple):
    """f, g and, where it was asked for, H (p, p) or its diagonal (p,)."""

    value: float
    gradient: Array
    hessian: Array | None


class Objective(Protocol):
    """A function of the parameters to be made small.

    `price`: what H costs in units of f and g together; infinite if it is not to be had.
    `start_price`: the same at a start without slopes. `share`: of all rows, those that it looks
    at. `tolerance`: how many standard errors from its optimum are near enough; `unit`: what they
    are multiplied by, less than one where rows have small weights.
    """

    @property
    def price(self) -> float: ...
    @property
    def start_price(self) -> float: ...
    @property
    def share(self) -> float: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def tolerance(self) -> float: ...
    @property
    def unit(self) -> float: ...
    def __call__(self, w: Array, hessian: Curvature) -> Local: ...
