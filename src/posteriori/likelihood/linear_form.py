"""Linear functions of x, one a class: what a family with u(x) = x comes down to (4.86)."""

from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
from scipy import sparse

from posteriori.typing import Array

_FAR_FROM_ZERO = 1e4


@dataclass(frozen=True)
class LinearForm:
    """Σ_j λ_kj (x_j - c_j) + o_kj, with `weight` λ and `offset` o (m, K) and `centre` c (m,).

    `forbidden`, a pair of weight and offset, is positive where class k cannot give rise to
    x_j at all; the value is then -inf.

    >>> form = LinearForm(np.array([[0.0, 2.0]]), np.array([[1.0, 1.0]]), np.array([3.0]))
    >>> form.values(np.array([[4.0]]))
    array([[1., 3.]])
    """

    weight: Array
    offset: Array
    centre: Array
    forbidden: tuple[Array, Array] | None = None

    @cached_property
    def constant(self) -> Array:
        """Value at the centre (K,)."""
        return self.offset.sum(axis=0)

    @cached_property
    def intercept(self) -> Array:
        """Value at zero (K,)."""
        return self.constant - self.centre @ self.weight

    @cached_property
    def is_far(self) -> bool:
        """Whether digits would be lost without subtracting the centre first."""
        return bool((abs(self.centre[:, None] * self.weight) > _FAR_FROM_ZERO).any())

    def values(self, x: Array | sparse.csr_array) -> Array:
        """The values (n, K); NaN where an entry is."""
        if self.is_far and not isinstance(x, sparse.csr_array):
            values = (x - self.centre) @ self.weight + self.constant
        else:
            values = x @ self.weight + self.intercept
        if self.forbidden is not None:
            weight, offset = self.forbidden
            values[x @ weight + offset.sum(axis=0) > 0] = -np.inf
        return cast(Array, values)

    def values_of_present(self, x: Array) -> Array:
        """The values (n, K) with the missing entries left out of the sum."""
        present = ~np.isnan(x)
        values = np.where(present, x - self.centre, 0.0) @ self.weight + present @ self.offset
        if self.forbidden is not None:
            weight, offset = self.forbidden
            values[np.where(present, x, 0.0) @ weight + present @ offset > 0] = -np.inf
        return values
