"""Covariances from scatter: divisors, shrinkage, and a factor that can be solved with.

A covariance is held as Σ = D L Lᵀ D with D = diag(scale) and L Lᵀ the correlations, so that the
units of the columns cannot spoil the factor. No inverse is ever formed: what prediction needs is
L⁻¹D⁻¹(x - μ), by forward substitution.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, cast

import numpy as np

from posteriori.errors import ParameterError, ScaleError
from posteriori.linalg import (
    COLLINEAR,
    cholesky,
    dependent_columns,
    solve_lower,
    unit_diagonal,
)
from posteriori.typing import Array, Codes

Shrinkage = float | Literal["auto"] | None

CONSTANT = 1e-13
"""A column is called constant when its spread is below this part of its size."""


@dataclass(frozen=True, eq=False)
class Factor:
    """Σ = D L Lᵀ D with D = diag(`scale`) (d,) and L = `lower` (d, r).

    The rows `kept` (r,) of L form a lower triangle; where r < d, the other columns are linear
    functions of these and add nothing to a density.
    """

    scale: Array
    lower: Array
    kept: Codes

    @classmethod
    def of_full_rank(cls, scale: Array, lower: Array) -> "Factor":
        return cls(scale, lower, np.arange(len(scale)))

    @property
    def log_determinant(self) -> float:
        """ln |Σ| of the columns kept."""
        diagonal = np.diagonal(self.lower[self.kept])
        return 2 * float(np.log(self.scale[self.kept]).sum() + np.log(diagonal).sum())

    def whitener(self) -> Array:
        """A (d, r) with (x - μ)ᵀA of unit covariance, so that AAᵀ = Σ⁻¹ where there is one."""
        whitener = np.zeros(self.lower.shape)
        inner = np.diag(1 / self.scale[self.kept])
        whitener[self.kept] = solve_lower(self.lower[self.kept], inner).T
        return whitener

    def part(self, columns: Codes, own: Codes | None = None) -> "Factor":
        """The factor of the covariance of some of the columns, the places `own` (r,) of which
        make up the triangle."""
        rows = self.lower[columns]
        if own is None:
            own = independent_places((self,), columns)
        inner = cholesky(rows[own] @ rows[own].T)
        assert inner is not None, "a principal part of a positive definite matrix is one too"
        return Factor(self.scale[columns], _extend(inner, rows @ rows[own].T, own), own)

    def covariance(self) -> Array:
        """Σ itself; an error where its entries leave the doubles."""
        with np.errstate(over="ignore", under="ignore"):
            found = (self.lower @ self.lower.T) * self.scale * self.scale[:, None]
        variance = np.diagonal(found)[self.kept]
        bad = ~(np.isfinite(variance) & (variance > 0))
        if bad.any():
            j = int(self.kept[bad.argmax()])
            raise ScaleError(
                f"The variance of column {j} (spread {self.scale[j]:.3g}) does not fit in a "
                "double; predictions do not need it.",
                "Divide the column by a power of ten to see its covariance.",
            )
        return found

    def times_unit(self, unit: Array) -> "Factor":
        """The factor in units of one, where this one is in multiples of `unit`."""
        return replace(self, scale=self.scale * unit)

    def with_columns(self, kept: Codes, relation: Array) -> "Factor":
        """The factor of all columns, where this is that of `kept`, and x = relation x_kept (d, r)
        for the others and themselves."""
        rows = relation * self.scale @ self.lower
        scale = np.sqrt((rows**2).sum(axis=1))
        scale = np.where(scale > 0, scale, 1.0)
        scale[kept] = self.scale
        lower = rows / scale[:, None]
        lower[kept] = self.lower
        return Factor(scale, lower, kept)


def independent_places(factors: Sequence[Factor], columns: Codes) -> Codes:
    """Places among `columns` that determine the others: one choice for all factors, whose
    densities could not be compared if they were of different columns.

    The factors have the same columns kept; those are chosen first.
    """
    own = np.flatnonzero(np.isin(columns, factors[0].kept))
    if len(own) in (len(columns), len(factors[0].kept)):
        return own
    rest = np.setdiff1d(np.arange(len(columns)), own)
    # In units in common: a relation between columns is then one of the pooled columns, too.
    parts = [f.lower[columns] * (f.scale / factors[0].scale)[columns, None] for f in factors]
    pooled, _ = unit_diagonal(sum((rows @ rows.T for rows in parts), np.zeros(())))
    inner = cholesky(pooled[np.ix_(own, own)])
    assert inner is not None, "the columns kept are independent"
    gain = solve_lower(inner, pooled[np.ix_(own, rest)])
    left = pooled[np.ix_(rest, rest)] - gain.T @ gain
    return np.sort(np.concatenate([own, np.delete(rest, dependent_columns(left))]))


def _extend(inner: Array, rows: Array, own: Codes) -> Array:
    """L (d, r) from the triangle of its rows `own` and the products of all rows with them."""
    lower = solve_lower(inner, rows.T).T
    lower[own] = inner
    return lower


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
    """How much of the identity to mix into the correlations of `n` rows.

    The oracle approximating shrinkage of Chen, Wiesel, Eldar and Hero (2010): for Gaussian rows,
    an approximation of the amount with the least expected squared error. Applied to correlations,
    so that units do not matter. It needs tr R and tr R² only, hence no second pass over the rows,
    where Ledoit and Wolf's needs fourth moments.

    >>> round(oracle_shrinkage(np.array([[1.0, 0.5], [0.5, 1.0]]), 10), 6)
    0.8
    """
    d = len(correlation)
    trace, square = float(np.trace(correlation)), float((correlation**2).sum())
    spread = (n + 1 - 2 / d) * (square - trace**2 / d)
    return 1.0 if spread <= 0 else min(1.0, ((1 - 2 / d) * square + trace**2) / spread)


class Factored(NamedTuple):
    """The factor of a shrunk covariance and the shrinkage used, or the columns that forbid it."""

    factor: Factor | None
    shrinkage: float
    culprits: Codes


def factorise(
    covariance: Array, overall: Array, size: Array, n: float, shrinkage: Shrinkage
) -> Factored:
    """Factor a covariance, its correlations drawn towards zero by `shrinkage`.

    A column that is constant here, judged against its `size` (d,), is drawn towards its variance
    in all rows, `overall` (d,).
    """
    flat = np.sqrt(np.diagonal(covariance)) <= CONSTANT * size
    target = np.where(flat, overall, np.diagonal(covariance))
    scale = np.sqrt(np.where(target > 0, target, 1.0))
    correlation = covariance / scale / scale[:, None]
    correlation[flat, :] = correlation[:, flat] = 0.0
    amount = oracle_shrinkage(correlation, n) if shrinkage == "auto" else float(shrinkage or 0.0)
    correlation *= 1 - amount
    np.fill_diagonal(correlation, np.where(flat, amount, 1.0))
    lost = flat & ((amount == 0) | (np.sqrt(overall) <= CONSTANT * size))
    if lost.any():
        return Factored(None, amount, cast(Codes, np.flatnonzero(lost)))
    lower = cholesky(correlation)
    if lower is None or (np.diagonal(lower) ** 2 < COLLINEAR * np.diagonal(correlation)).any():
        return Factored(None, amount, dependent_columns(correlation))
    return Factored(Factor.of_full_rank(scale, lower), amount, np.empty(0, dtype=np.intp))
