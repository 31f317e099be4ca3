"""A Gaussian over parameters, stored as its mean and the Cholesky factor of its precision.

Conventions: p variables, mean m (p,), precision A = LLᵀ (p, p), covariance A⁻¹.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from scipy.linalg import blas

from posteriori.arguments import as_generator, check_count
from posteriori.errors import InferenceError
from posteriori.linalg import cholesky, solve_lower, unit_diagonal
from posteriori.typing import Array

_LOG_2PI = float(np.log(2 * np.pi))


@dataclass(frozen=True, eq=False)
class Gaussian:
    """N(x|m, A⁻¹), stored as m and the lower triangular L with LLᵀ = A.

    ln N(x|m, A⁻¹) = -½ (x - m)ᵀA(x - m) + ½ ln|A| - (p/2) ln 2π (4.134).

    >>> q = Gaussian.of(np.array([1.0, 0.0]), np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> q.covariance
    array([[ 0.66666667, -0.33333333],
           [-0.33333333,  0.66666667]])
    """

    mean: Array
    precision_cholesky: Array

    @classmethod
    def of(cls, mean: Array, precision: Array) -> "Gaussian":
        """The Gaussian of this precision; an error where that is not positive definite."""
        matrix, scale = unit_diagonal(precision)
        factor = cholesky(matrix)
        if factor is None:
            raise InferenceError(
                "The precision of a Gaussian is not positive definite.",
                "Look for variables, or combinations of them, that nothing determines.",
            )
        return cls(mean, factor * scale[:, None])

    @cached_property
    def precision(self) -> Array:
        """A (p, p)."""
        return self.precision_cholesky @ self.precision_cholesky.T

    @cached_property
    def root(self) -> Array:
        """V = L⁻ᵀ (p, p) with VVᵀ = A⁻¹: its columns are one standard deviation long."""
        return solve_lower(self.precision_cholesky, np.eye(len(self.mean))).T

    @cached_property
    def covariance(self) -> Array:
        """A⁻¹ (p, p)."""
        return self.root @ self.root.T

    @property
    def standard_deviation(self) -> Array:
        """Of each variable (p,)."""
        return np.sqrt(np.diagonal(self.covariance))

    @property
    def log_determinant(self) -> float:
        """ln|A|."""
        return float(2 * np.log(np.diagonal(self.precision_cholesky)).sum())

    def log_density(self, x: Array) -> Array:
        """ln N(x|m, A⁻¹) for one x (p,) or rows of them (n, p).

        >>> Gaussian.of(np.zeros(1), np.eye(1)).log_density(np.array([[0.0], [1.0]]))
        array([-0.91893853, -1.41893853])
        """
        white = (np.asarray(x, dtype=np.float64) - self.mean) @ self.precision_cholesky
        constant = 0.5 * (self.log_determinant - len(self.mean) * _LOG_2PI)
        return constant - 0.5 * np.square(white).sum(axis=-1)

    def sample(self, n: int = 1, random_state: Any = None) -> Array:
        """`n` draws m + L⁻ᵀε, ε being standard normal, as rows (n, p).

        >>> q = Gaussian.of(np.array([3.0]), np.array([[100.0]]))
        >>> q.sample(2, random_state=0).round(3)
        array([[3.013],
               [2.987]])
        """
        check_count("n", n, "draws")
        white = as_generator(random_state).standard_normal((n, len(self.mean)))
        step = blas.dtrsm(1.0, self.precision_cholesky, white.T, lower=1, trans_a=1)
        return self.mean + cast(Array, step).T


@dataclass(frozen=True, eq=False)
class DiagonalGaussian:
    """A Gaussian of very many independent variables, with mean m (p,) and precisions (p,).

    >>> DiagonalGaussian(np.zeros(2), np.array([4.0, 1.0])).standard_deviation
    array([0.5, 1. ])
    """

    mean: Array
    precision: Array

    @property
    def standard_deviation(self) -> Array:
        """Of each variable (p,)."""
        return 1 / np.sqrt(self.precision)

    @property
    def covariance(self) -> Array:
        """An error, as it would have p² numbers."""
        raise InferenceError(
            f"The posterior of {len(self.mean):,} coefficients has the diagonal of the second "
            "derivatives alone: it has no covariance, and cannot be the prior of more rows.",
            "Use posterior_.standard_deviation, fit to all rows at once, or fit fewer columns.",
        )

    def sample(self, n: int = 1, random_state: Any = None) -> Array:
        """`n` draws as rows (n, p)."""
        check_count("n", n, "draws")
        white = as_generator(random_state).standard_normal((n, len(self.mean)))
        return self.mean + white * self.standard_deviation
