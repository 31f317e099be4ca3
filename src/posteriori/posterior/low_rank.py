"""A Gaussian over very many parameters: a precision of low rank and a diagonal.

Conventions: p variables, mean m (p,), precision A = diag(d) + UUᵀ with d (p,) and U (p, k), k ≪ p.
With W = diag(d)^-½ U and the axes Q (p, k) and lengths s (k,) of its columns, WWᵀ = Q diag(s²) Qᵀ,
the covariance is A⁻¹ = diag(1/d) - TTᵀ, T = diag(d)^-½ Q diag(s/√(1 + s²)).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from posteriori.arguments import as_generator, check_count
from posteriori.typing import Array

_LOG_2PI = float(np.log(2 * np.pi))

_NOTHING = 1e-12
"""A square of a length, beside the largest, that is rounding."""


@dataclass(frozen=True, eq=False)
class LowRankGaussian:
    """N(x|m, A⁻¹) with A = diag(d) + UUᵀ; no matrix (p, p) is ever made.

    >>> q = LowRankGaussian(np.zeros(2), np.ones(2), np.array([[1.0], [1.0]]))
    >>> q.variance.round(4), round(q.log_determinant, 4)  # of [[2, 1], [1, 2]]
    (array([0.6667, 0.6667]), 1.0986)
    """

    mean: Array
    diagonal: Array
    factor: Array

    def __reduce__(self) -> Any:
        """Without what is computed from the parts: it is as large as they are."""
        return type(self), (self.mean, self.diagonal, self.factor)

    @property
    def rank(self) -> int:
        """k, beside the diagonal."""
        return self.factor.shape[1]

    @property
    def told(self) -> str:
        """What it is, in words."""
        return f"a precision of rank {self.rank} and a diagonal"

    @cached_property
    def _axes(self) -> tuple[Array, Array]:
        """Q (p, k) and s (k,)."""
        W = self.factor / np.sqrt(self.diagonal)[:, None]
        squares, turned = np.linalg.eigh(W.T @ W)
        kept = squares > _NOTHING * squares.max(initial=0.0)
        s = np.sqrt(squares[kept])
        return W @ turned[:, kept] / s, s

    @cached_property
    def known(self) -> Array:
        """T (p, k): what the shared directions take off the covariance that d alone would give."""
        axes, s = self._axes
        return axes * (s / np.sqrt(1 + s**2)) / np.sqrt(self.diagonal)[:, None]

    @cached_property
    def variance(self) -> Array:
        """Of each variable (p,)."""
        return np.maximum(1 / self.diagonal - np.square(self.known).sum(axis=1), 0.0)

    @property
    def standard_deviation(self) -> Array:
        """Of each variable (p,)."""
        return np.sqrt(self.variance)

    @cached_property
    def log_determinant(self) -> float:
        """ln|A|."""
        return float(np.log(self.diagonal).sum() + np.log1p(self._axes[1] ** 2).sum())

    def spread(self, white: Array) -> Array:
        """Vε of each ε (n, p), where VVᵀ = A⁻¹."""
        return self._shrunk(white) / np.sqrt(self.diagonal)

    def gathered(self, vectors: Array) -> Array:
        """Vᵀx of each x (n, p)."""
        return self._shrunk(vectors / np.sqrt(self.diagonal))

    def _shrunk(self, white: Array) -> Array:
        axes, s = self._axes
        return white - ((white @ axes) * (1 - 1 / np.sqrt(1 + s**2))) @ axes.T

    def log_density(self, x: Array) -> Array:
        """ln N(x|m, A⁻¹) for one x (p,) or rows of them (n, p)."""
        away = np.asarray(x, dtype=np.float64) - self.mean
        square = (self.diagonal * away**2).sum(axis=-1) + np.square(away @ self.factor).sum(axis=-1)
        return 0.5 * (self.log_determinant - len(self.mean) * _LOG_2PI - square)

    def sample(self, n: int = 1, random_state: Any = None) -> Array:
        """`n` draws m + Vε, ε being standard normal, as rows (n, p)."""
        check_count("n", n, "draws")
        white = as_generator(random_state).standard_normal((n, len(self.mean)))
        return self.mean + self.spread(white)
