"""Linear activations, one a class: a_k = w_kᵀx + w_k0 (4.68).

Conventions: d columns, K classes, weights (d, K), bias (K,).
"""

from dataclasses import dataclass
from typing import cast

import numpy as np
from scipy.sparse import csr_array

from posteriori.design.columns import Columns
from posteriori.rows.block import Block, Features
from posteriori.rows.schema import HandleUnknown, Schema
from posteriori.typing import Array

NEAR_ZERO = 1e4
"""If wᵀc is smaller than this, wᵀx - wᵀc is exact to twelve digits, and x - c is not needed."""


@dataclass(frozen=True, eq=False)
class Linear:
    """Activations wᵀ(x - centre) + bias, one a class; no centre where none is needed."""

    weights: Array
    bias: Array
    centre: Array | None

    def __call__(self, X: Array | csr_array) -> Array:
        if self.centre is None:
            activation, bias = X @ self.weights, self.bias
        elif isinstance(X, csr_array):
            activation, bias = X @ self.weights, self.bias - self.centre @ self.weights
        else:
            activation, bias = (X - self.centre) @ self.weights, self.bias
        activation += bias
        return cast(Array, activation)

    def of_rows(
        self, X: Features, schema: Schema, handle_unknown: HandleUnknown = "error"
    ) -> Array:
        """The same for rows of any storage, through the products of their design."""
        if isinstance(X, np.ndarray):
            return self(X)
        design = Columns(schema, handle_unknown).design(Block(X, None, None, 0))
        if self.centre is not None:
            design = design.shifted(self.centre)
        return design.times(self.weights) + self.bias

    @classmethod
    def about(cls, centre: Array, weights: Array, bias: Array) -> "Linear":
        """The function with weights (d, K) and bias (K,) about a centre."""
        if is_near_zero(centre, weights):
            return cls(weights, bias - centre @ weights, None)
        return cls(weights, bias, centre)

    def coefficients(self) -> tuple[Array, Array]:
        """`coef_` and `intercept_`: the difference for two classes, else summing to zero."""
        shift = 0.0 if self.centre is None else self.centre @ self.weights
        return contrasts(self.weights.T, self.bias - shift)


def contrasts(weights: Array, bias: Array) -> tuple[Array, Array]:
    """(K, d) and (K,) as users see them: second less first for two classes, else sum zero.

    One activation alone is that difference already.
    """
    if len(weights) == 1:
        return weights.copy(), bias.copy()
    if len(weights) == 2:
        with np.errstate(invalid="ignore"):
            return weights[1:] - weights[:1], bias[1:] - bias[:1]
    possible = np.isfinite(bias)
    return weights - weights.mean(axis=0), bias - bias[possible].mean()


def is_near_zero(centre: Array, weights: Array) -> bool:
    """Whether xᵀw - centreᵀw is (x - centre)ᵀw without loss of digits."""
    return bool((abs(centre) @ abs(weights)).max(initial=0.0) < NEAR_ZERO)
