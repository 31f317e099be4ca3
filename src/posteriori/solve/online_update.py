"""Online updates: dropped rows are replaced by a quadratic approximation of their likelihood.

Conventions: p parameters w (p,). A `QuadraticApproximation` is ½ wᵀPw - hᵀw + constant. With P
(p, p) the Hessian of all rows so far at their optimum w = P⁻¹h, it is Laplace's approximation
N(P⁻¹h, P⁻¹) (4.134). The approximations of different rows add up, so no learning rate is needed.

An approximation at an early estimate is inaccurate once the estimate has moved. So a sample of the
rows is stored: with f the sum over dropped rows, F that over the weighted sample, and b and B their
approximations, f is taken as F + (b - B). The remaining error is that of F - B, where both are
nearly the same. The `rest` below is b - B.
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
"""Standard deviation of the prior used until the rows determine all parameters, in standardised
columns."""


@dataclass(frozen=True, eq=False)
class QuadraticApproximation:
    """½ wᵀPw - hᵀw + constant, with P = `precision` (p, p) and h = `information` (p,).

    >>> a = QuadraticApproximation(np.array([[1.0]]), np.array([1.0]))
    >>> b = QuadraticApproximation(np.array([[3.0]]), np.array([9.0]))
    >>> both = a + b
    >>> both.information / both.precision[0]
    array([2.5])
    """

    precision: Array
    information: Array
    constant: float = 0.0

    @classmethod
    def about(cls, w: Array, local: Local) -> "QuadraticApproximation":
        """The second-order expansion of f at w, from its value, gradient and Hessian there."""
        hessian = cast(Array, local.hessian)
        constant = local.value - float(local.gradient @ w) + 0.5 * float(w @ hessian @ w)
        return cls(hessian, hessian @ w - local.gradient, constant)

    @classmethod
    def zero(cls, p: int) -> "QuadraticApproximation":
        """That of no rows."""
        return cls(np.zeros((p, p)), np.zeros(p))

    def __add__(self, other: "QuadraticApproximation") -> "QuadraticApproximation":
        return QuadraticApproximation(
            self.precision + other.precision,
            self.information + other.information,
            self.constant + other.constant,
        )

    def __mul__(self, factor: float) -> "QuadraticApproximation":
        return QuadraticApproximation(
            factor * self.precision, factor * self.information, factor * self.constant
        )

    def __sub__(self, other: "QuadraticApproximation") -> "QuadraticApproximation":
        return self + other * -1.0

    def at(self, w: Array) -> Local:
        """Value, gradient and Hessian at w."""
        product = self.precision @ w
        value = 0.5 * float(w @ product) - float(self.information @ w) + self.constant
        return Local(value, product - self.information, self.precision)

    @cached_property
    def determined(self) -> bool:
        """Whether it has a unique minimum, to rounding."""
        if not (np.diagonal(self.precision) > 0).all():
            return False
        lower = cholesky(unit_diagonal(self.precision)[0])
        return lower is not None and bool((np.diagonal(lower) ** 2 >= COLLINEAR).all())


class Update(NamedTuple):
    """The solution, the quadratic approximation of the whole objective there, and whether it
    determines all parameters."""

    solution: Solution[Array, Iteration]
    quadratic: QuadraticApproximation
    determined: bool


def online_update(
    rest: QuadraticApproximation, losses: Sequence[Objective], start: Array, tolerance: float
) -> Update:
    """The minimum of a quadratic approximation plus the losses of stored and new rows.

    From the optimum before, that is one or two Newton steps. While some parameter is not
    determined, a broad prior is added.
    """
    objective = CombinedObjective(rest, losses, tolerance)
    # Slow convergence means separated classes, until more rows have come.
    solution = newton([objective], start, always_fresh=True, check_separation=lambda: True)
    quadratic = objective.quadratic_at(solution.parameters)
    if solution.converged and quadratic.determined:
        return Update(solution, quadratic, True)
    p = len(start)
    prior = QuadraticApproximation(np.eye(p) / BROAD**2, np.zeros(p))
    penalised = CombinedObjective(rest + prior, losses, tolerance)
    solution = newton([penalised], start, always_fresh=True)
    return Update(solution, objective.quadratic_at(solution.parameters), False)


@dataclass(frozen=True, eq=False)
class CombinedObjective:
    """A quadratic approximation plus the losses of several sets of rows; an `Objective`."""

    rest: QuadraticApproximation
    losses: Sequence[Objective]
    tolerance: float

    hessian_cost, row_fraction, unit = 0.0, 1.0, 1.0

    @property
    def n_rows(self) -> int:
        return sum(loss.n_rows for loss in self.losses)

    def quadratic_at(self, w: Array) -> QuadraticApproximation:
        """The second-order expansion of all of it at w."""
        return QuadraticApproximation.about(w, self(w, "full"))

    def __call__(self, w: Array, hessian: Curvature) -> Local:
        value, gradient, curved = self.rest.at(w)
        total = cast(Array, curved)
        for loss in self.losses:
            found = loss(w, hessian)
            value, gradient = value + found.value, gradient + found.gradient
            if found.hessian is not None:
                total = total + found.hessian
        return Local(value, gradient, None if hessian == "none" else total)
