"""Centred, scaled columns, in which the solvers work; and the way back to the user's units.

Conventions: m design columns, q parameters an activation: 1 + m with the intercept first, or m
without one. θ (c, q) has one row an activation. A standardised column is (φ - centre) / scale.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from posteriori.design.matrix import Design
from posteriori.typing import Array

FAR = 1e3

"""Columns whose mean is this many deviations from zero are centred number by number."""

STILL = 4e-15

"""A column that changes by less than this share of its size changes by rounding alone."""

_SMALLEST, _LARGEST = 1e-75, 1e75

"""Sizes between which numbers can be squared and summed as they are."""


@dataclass(frozen=True, eq=False)
class Standard:
    """Centre and scale of each design column.

    Where columns are near zero and of ordinary size, sums are taken of the user's columns, and
    transformed by `outward` and its transpose. Otherwise `moves` is true, and each block is centred
    and scaled before it is summed, so that no digit is lost.
    """

    centre: Array
    scale: Array
    intercept: bool

    @cached_property
    def moves(self) -> bool:
        """Whether numbers are centred and scaled one by one."""
        if not len(self.scale):
            return False
        far = (abs(self.centre) / FAR > self.scale).any()
        return bool(far or self.scale.min() < _SMALLEST or self.scale.max() > _LARGEST)

    def design(self, design: Design) -> Design:
        """The columns that sums are taken of."""
        if not self.moves:
            return design
        return design.shifted(self.centre).scaled(self.scale)

    def outward(self, theta: Array) -> Array:
        """θ of standardised columns as θ of the columns summed."""
        return theta if self.moves else self.to_user(theta)

    def to_user(self, theta: Array) -> Array:
        """θ of standardised columns as θ of the user's columns."""
        out = theta.copy()
        first = int(self.intercept)
        with np.errstate(over="ignore", under="ignore"):
            out[..., first:] = theta[..., first:] / self.scale
            if self.intercept:
                out[..., 0] = theta[..., 0] - out[..., 1:] @ self.centre
        return out

    def from_user(self, theta: Array) -> Array:
        """θ of the user's columns as θ of standardised columns."""
        out = theta.copy()
        first = int(self.intercept)
        out[..., first:] = theta[..., first:] * self.scale
        if self.intercept:
            out[..., 0] = theta[..., 0] + theta[..., 1:] @ self.centre
        return out

    def inward(self, gradient: Array) -> Array:
        """A gradient (c, q) in the columns summed as one in standardised columns."""
        return gradient if self.moves else self.pull_back(gradient)

    def pull_back(self, gradient: Array) -> Array:
        """A gradient (..., q) in the user's parameters as one in those of standardised columns."""
        out = gradient.copy()
        first = int(self.intercept)
        slopes = gradient[..., first:]
        if self.intercept:
            slopes = slopes - gradient[..., :1] * self.centre
        out[..., first:] = slopes / self.scale
        return out

    def inward_matrix(self, matrix: Array) -> Array:
        """A Hessian (cq, cq) in the columns summed as one in standardised columns."""
        return matrix if self.moves else self.pull_back_matrix(matrix)

    def pull_back_matrix(self, matrix: Array) -> Array:
        """TᵀHT, where T takes standardised parameters to the user's."""
        q = len(self.scale) + int(self.intercept)
        size = len(matrix)
        half = self.pull_back(matrix.reshape(size, -1, q)).reshape(size, size)
        both = self.pull_back(half.T.reshape(size, -1, q)).reshape(size, size)
        return (both + both.T) / 2
