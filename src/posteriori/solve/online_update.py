"""Sequential Bayesian updating: what rows said is kept as a parabola, when they are let go.

Conventions: p parameters w (p,). A `Belief` is ½ wᵀPw - hᵀw: with P (p, p) the curvature of all
rows so far at their optimum w = P⁻¹h, it is Laplace's approximation N(P⁻¹h, P⁻¹) (4.134). Parabolas
of different rows add up, so no learning rate is needed: each row has the weight that P gives it.

A parabola that was made at an early estimate says little of its rows once the estimate has moved.
So some rows are kept, and stand for others: with f the sum over rows let go, F that over rows kept
to stand for them, and b and B their parabolas, f is taken as F + (b - B). What is left of the error
is that of F - B, where both are nearly the same. The `rest` below is b - B.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np

from posteriori.linalg import COLLINEAR, cholesky, unit_diagonal
from posteriori.solve.newton import newton
from posteriori.solve.objective import Curvature, Iteration, Local, Objective, Solution
from posteriori.typing import Array

BROAD = 10.0
"""Standard deviation of the prior that stands in for rows to come, in standardised columns."""


@dataclass(frozen=True, eq=False)
class Belief:
    """What rows say of the parameters: ½ wᵀPw - hᵀw.

    >>> a = Belief(np.array([[1.0]]), np.array([1.0]))
    >>> b = Belief(np.array([[3.0]]), np.array([9.0]))
    >>> both = a + b
    >>> both.information / both.precision[0]
    array([2.5])
    """

    precision: Array
    information: Array

    @classmethod
    def about(cls, w: Array, local: Local) -> "Belief":
        """The parabola with the slope and curvature that f has at w."""
        hessian = cast(Array, local.hessian)
        return cls(hessian, hessian @ w - local.gradient)

    @classmethod
    def nothing(cls, p: int) -> "Belief":
        """That of no rows."""
        return cls(np.zeros((p, p)), np.zeros(p))

    @classmethod
    def broad(cls, p: int) -> "Belief":
        """That of a prior which hardly says anything."""
        return cls(np.eye(p) / BROAD**2, np.zeros(p))

    def __add__(self, other: "Belief") -> "Belief":
        return Belief(self.precision + other.precision, self.information + other.information)

    def __sub__(self, other: "Belief") -> "Belief":
        return Belief(self.precision - other.precision, self.information - other.information)

    def at(self, w: Array) -> Local:
        """Value, gradient and Hessian at w."""
        pull = self.precision @ w
        value = 0.5 * float(w @ pull) - float(self.information @ w)
        return Local(value, pull - self.information, self.precision)

    @cached_property
    def determined(self) -> bool:
        """Whether every parameter is held by the rows, or by the prior."""
        if not (np.diagonal(self.precision) > 0).all():
            return False
        lower = cholesky(unit_diagonal(self.precision)[0])
        return lower is not None and bool((np.diagonal(lower) ** 2 >= COLLINEAR).all())


class Update(NamedTuple):
    """How the parameters were found, the parabola there of all that was said, and whether that
    determines all parameters."""

    solution: Solution[Array, Iteration]
    belief: Belief
    determined: bool


def online_update(
    rest: Belief, losses: Sequence[Objective], start: Array, tolerance: float
) -> Update:
    """The parameters where a belief and the losses of rows, old and new, are least together.

    From where the rows before were least, that is a step or two of Newton's method. For as long
    as some parameter is not determined, a broad prior stands in for rows to come.
    """
    together = Together(rest, losses, tolerance)
    solution = newton([together], start, always_fresh=True, check_separation=_suspicious)
    belief = together.belief(solution.parameters)
    if solution.converged and belief.determined:
        return Update(solution, belief, True)
    held = Together(rest + Belief.broad(len(start)), losses, tolerance)
    solution = newton([held], start, always_fresh=True)
    return Update(solution, together.belief(solution.parameters), False)


def _suspicious() -> bool:
    """Parameters that seem to run away are taken to do so, until more rows have come."""
    return True


@dataclass(frozen=True, eq=False)
class Together:
    """A belief and the losses of several sets of rows, as one objective."""

    rest: Belief
    losses: Sequence[Objective]
    tolerance: float

    hessian_cost, row_fraction, unit = 0.0, 1.0, 1.0

    @property
    def n_rows(self) -> int:
        return sum(loss.n_rows for loss in self.losses)

    def belief(self, w: Array) -> Belief:
        """The parabola of all of it at w."""
        return Belief.about(w, self(w, "full"))

    def __call__(self, w: Array, hessian: Curvature) -> Local:
        value, gradient, curved = self.rest.at(w)
        total = cast(Array, curved)
        for loss in self.losses:
            found = loss(w, hessian)
            value, gradient = value + found.value, gradient + found.gradient
            if found.hessian is not None:
                total = total + found.hessian
        return Local(value, gradient, None if hessian == "none" else total)
