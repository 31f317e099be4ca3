"""Covariances from scatter: divisors, shrinkage, and a factor that can be solved with.

A covariance is held as Σ = D R D with D = diag(scale) and R = L Lᵀ the correlations, so that the
units of the columns cannot spoil the factor. No inverse is ever formed: what prediction needs is
L⁻¹D⁻¹(x - μ), by forward substitution.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from posteriori.errors import ParameterError, ScaleError, SingularCovarianceError
from posteriori.linalg import COLLINEAR, cholesky, dependent_columns, solve_lower, unit_diagonal
from posteriori.typing import Array, Codes

Shrinkage = float | Literal["auto"] | None

CONSTANT = 1e-13
"""A column is called constant when its spread is below this part of its size."""


@dataclass(frozen=True, eq=False)
class Factor:
    """Σ = D R D with D = diag(`scale`) and R = `lower` `lower`ᵀ."""

    scale: Array
    lower: Array

    @property
    def log_determinant(self) -> float:
        """ln |Σ|."""
        return 2 * float(np.log(self.scale).sum() + np.log(np.diagonal(self.lower)).sum())

    def whitener(self) -> Array:
        """Upper triangular A with (x - μ)ᵀA of unit covariance, that is AAᵀ = Σ⁻¹."""
        return solve_lower(self.lower, np.diag(1 / self.scale)).T

    def part(self, columns: Codes) -> "Factor":
        """The factor of the covariance of some of the columns."""
        rows = self.lower[columns]
        lower = cholesky(rows @ rows.T)
        assert lower is not None, "a principal part of a positive definite matrix is one too"
        return Factor(self.scale[columns], lower)

    def covariance(self) -> Array:
        """Σ itself; an error where its entries leave the doubles."""
        with np.errstate(over="ignore", under="ignore"):
            found = (self.lower @ self.lower.T) * self.scale * self.scale[:, None]
        variance = np.diagonal(found)
        bad = ~(np.isfinite(variance) & (variance > 0))
        if bad.any():
            j = int(bad.argmax())
            raise ScaleError(
                f"The variance of column {j} (spread {self.scale[j]:.3g}) does not fit in a "
                "double; predictions do not need it.",
                "Divide the column by a power of ten to see its covariance.",
            )
        return found

    def times_unit(self, unit: Array) -> "Factor":
        """The factor in units of one, where this one is in multiples of `unit`."""
        return Factor(self.scale * unit, self.lower)


def check_shrinkage(shrinkage: object) -> None:
    """An error unless shrinkage is None, "auto" or a number from 0 to 1."""
    if shrinkage is None or (isinstance(shrinkage, str) and shrinkage == "auto"):
        return
    if isinstance(shrinkage, bool | str) or not isinstance(shrinkage, int | float | np.number):
        raise ParameterError(
            f"shrinkage={shrinkage!r} is not understood.", "Use None, 'auto' or a number in [0, 1]."
        )
    if not 0 <= float(shrinkage) <= 1:
        raise ParameterError(f"shrinkage={shrinkage} is out of range.", "Use a number in [0, 1].")


def oracle_shrinkage(correlation: Array, n: float) -> float:
    """The share of the identity that brings the correlations nearest to the truth.

    The oracle approximating shrinkage of Chen, Wiesel, Eldar and Hero (2010) for Gaussian rows,
    applied to correlations, so that units do not matter. It needs tr R and tr R² only, hence no
    second pass over the rows, where Ledoit and Wolf's needs fourth moments; for Gaussian rows,
    which is what is assumed here, its error is the smaller one.

    >>> round(oracle_shrinkage(np.array([[1.0, 0.5], [0.5, 1.0]]), 10), 6)
    0.8
    """
    d = len(correlation)
    square = float((correlation**2).sum())
    spread = (n + 1 - 2 / d) * (square - d)
    return 1.0 if spread <= 0 else min(1.0, ((1 - 2 / d) * square + d * d) / spread)


def factorise(
    covariance: Array,
    *,
    size: Array,
    n: float,
    shrinkage: Shrinkage,
    columns: Callable[[Codes], str],
    whose: str,
) -> tuple[Factor, float]:
    """The factor of a covariance, shrunk if asked, and the shrinkage used.

    `size` (d,) is the largest mean of each column, against which its spread is judged; `columns`
    puts columns into words, `whose` says whose covariance it is.
    """
    constant = np.sqrt(np.diagonal(covariance)) <= CONSTANT * size
    if constant.any():
        raise SingularCovarianceError(
            f"The covariance of {whose} is singular: {columns(np.flatnonzero(constant))} "
            "does not vary within it.",
            "Drop what does not vary, or pool the covariance over more classes.",
        )
    correlation, scale = unit_diagonal(covariance)
    amount = oracle_shrinkage(correlation, n) if shrinkage == "auto" else float(shrinkage or 0.0)
    correlation *= 1 - amount
    np.fill_diagonal(correlation, 1.0)
    lower = cholesky(correlation)
    if lower is None or (np.diagonal(lower) ** 2 < COLLINEAR).any():
        raise SingularCovarianceError(
            f"The covariance of {whose} is singular: {columns(dependent_columns(correlation))} "
            f"can be computed from the other columns (rows in it: {n:g}).",
            "Drop such columns, or set shrinkage='auto', or use covariance='diagonal'.",
        )
    return Factor(scale, lower), amount
