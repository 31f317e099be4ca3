"""The inverse of a Hessian, kept for many steps and corrected by what they show.

Conventions: p parameters, gradient g (p,), Hessian H (p, p), steps S and changes Y (p, k).
"""

from dataclasses import dataclass, field
from typing import cast

import numpy as np
from scipy.linalg import lapack

from posteriori.linalg import cholesky
from posteriori.typing import Array

_MEMORY = 6
"""Changes of the gradient that are remembered."""

_INDEPENDENT = 1e-6
"""Steps with less of their length outside the others are not told apart from them."""

_AGREE = 0.1
"""sᵀHt and tᵀHs may differ by this much for steps s, t of length one; by more, the Hessian has
changed between them."""

_FLAT = 1e-10
"""Curvatures below this share of the largest are taken for it."""


@dataclass
class Metric:
    """The inverse of a Hessian, corrected by the changes of the gradient since it was made.

    Along the steps S taken since then, H is known: HS = Y, the changes of the gradient. So the
    direction solves for the part of the error within S exactly, and for the rest by the old
    Hessian M: with P = I - Y(SᵀY)⁻¹Sᵀ, H⁻¹ is taken as S(SᵀY)⁻¹Sᵀ + PᵀM⁻¹P.
    """

    _scale: Array
    _factor: Array | None
    _steps: list[Array] = field(default_factory=list)
    _changes: list[Array] = field(default_factory=list)

    @classmethod
    def of(cls, hessian: Array) -> "Metric":
        """The metric of H, or of a diagonal; made positive definite where it is not."""
        if hessian.ndim == 1:
            return cls(np.where(hessian > 0, hessian, 1.0), None)
        if not np.isfinite(hessian).all():
            hessian = np.where(np.isfinite(hessian), hessian, 0.0)
        scale = np.sqrt(abs(np.diagonal(hessian)))
        scale[scale == 0] = 1.0
        matrix = hessian / scale / scale[:, None]
        factor = cholesky(matrix)
        return cls(scale, _turned_up(matrix) if factor is None else factor)

    @property
    def is_full(self) -> bool:
        """Whether it knows more than a diagonal."""
        return self._factor is not None

    def solve(self, v: Array) -> Array:
        """M⁻¹v."""
        if self._factor is None or not len(v):
            return v / self._scale
        solution, _ = lapack.dpotrs(self._factor, v / self._scale, lower=1)
        return cast(Array, solution / self._scale)

    def learn(self, step: Array, change: Array) -> None:
        """Take in that the gradient changed by `change` along `step`."""
        along, across = float(step @ change), float(change @ self.solve(change))
        if along <= 1e-12 * across:  # not convex here
            return
        if self._factor is None:  # a diagonal from elsewhere is mostly too large or too small
            self._scale = self._scale * (across / along)
        self._steps = [*self._steps[1 - _MEMORY :], step]
        self._changes = [*self._changes[1 - _MEMORY :], change]

    def direction(self, gradient: Array) -> Array:
        """-H⁻¹g."""
        known = self._known_part()
        if known is None:
            return -self.solve(gradient)
        S, Y, inner = known
        within, _ = lapack.dpotrs(inner, S.T @ gradient, lower=1)
        rest = self.solve(gradient - Y @ within)
        back, _ = lapack.dpotrs(inner, Y.T @ rest, lower=1)
        return cast(Array, -(S @ (within - back) + rest))

    def _known_part(self) -> tuple[Array, Array, Array] | None:
        """S, Y and the Cholesky factor of SᵀY, for as many of the last steps as it exists."""
        while self._steps:
            S, Y = np.stack(self._steps, axis=1), np.stack(self._changes, axis=1)
            length = np.sqrt(np.einsum("ij,ij->j", S, Y))
            S, Y = S / length, Y / length
            product = S.T @ Y
            if abs(product - product.T).max() < _AGREE:
                inner = cholesky((product + product.T) / 2)
                if inner is not None and np.diagonal(inner).min() ** 2 > _INDEPENDENT:
                    return S, Y, inner
            del self._steps[0], self._changes[0]
        return None


def _turned_up(matrix: Array) -> Array:
    """The factor of a matrix that is not positive definite, its curvatures taken as positive."""
    values, vectors = np.linalg.eigh(matrix)
    size = np.maximum(abs(values), _FLAT * max(abs(values).max(), 1.0))
    return cast(Array, cholesky((vectors * size) @ vectors.T))
