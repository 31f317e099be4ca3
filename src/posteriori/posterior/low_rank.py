"""A precision of very many parameters that is nearly another: a diagonal and some directions.

Conventions: p variables, A = diag(d) + UUᵀ with d (p,) and U (p, k), k ≪ p. With W = diag(d)^-½ U
and the axes Q (p, k) and lengths s (k,) of its columns, WWᵀ = Q diag(s²) Qᵀ, the matrix
V = diag(d)^-½ (I - Q diag(1 - 1/√(1 + s²)) Qᵀ) has VᵀAV = I.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from posteriori.typing import Array

_NOTHING = 1e-12
"""A square of a length, beside the largest, that is rounding."""


@dataclass(frozen=True, eq=False)
class LowRankPrecision:
    """A = diag(d) + UUᵀ; no matrix (p, p) is ever made.

    >>> found = LowRankPrecision(np.ones(2), np.array([[1.0], [1.0]]))  # [[2, 1], [1, 2]]
    >>> round(found.log_determinant, 4)
    1.0986
    >>> np.square(found.spread(np.eye(2))).sum(axis=0).round(4)  # the diagonal of the inverse
    array([0.6667, 0.6667])
    """

    diagonal: Array
    factor: Array

    @cached_property
    def _axes(self) -> tuple[Array, Array]:
        """Q (p, k) and s (k,)."""
        W = self.factor / np.sqrt(self.diagonal)[:, None]
        squares, turned = np.linalg.eigh(W.T @ W)
        kept = squares > _NOTHING * squares.max(initial=0.0)
        s = np.sqrt(squares[kept])
        return W @ turned[:, kept] / s, s

    @cached_property
    def log_determinant(self) -> float:
        """ln|A|."""
        return float(np.log(self.diagonal).sum() + np.log1p(self._axes[1] ** 2).sum())

    def spread(self, white: Array) -> Array:
        """Vε of each ε (n, p)."""
        return self._shrunk(white) / np.sqrt(self.diagonal)

    def gathered(self, vectors: Array) -> Array:
        """Vᵀx of each x (n, p)."""
        return self._shrunk(vectors / np.sqrt(self.diagonal))

    def _shrunk(self, white: Array) -> Array:
        axes, s = self._axes
        return white - ((white @ axes) * (1 - 1 / np.sqrt(1 + s**2))) @ axes.T
