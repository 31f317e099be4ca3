"""Gaussian class-conditional densities p(x|C_k) (4.64): means and triangular factors.

Conventions: n rows, d columns, K classes, G groups of classes that share a covariance. A
covariance is stored as Σ = D L Lᵀ D with D = diag(scale) and L Lᵀ the correlations, so that the
units of the columns cannot spoil the factor. No inverse is ever formed: what prediction needs is
L⁻¹D⁻¹(x - μ), by forward substitution.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from posteriori.errors import ScaleError
from posteriori.likelihood.feature_families import Gaussian, SharedGaussian, gaussian_log_normaliser
from posteriori.likelihood.linear_activations import Linear, is_near_zero
from posteriori.linalg import cholesky, dependent_columns, solve_lower, unit_diagonal
from posteriori.typing import Array, Codes

_LOG_2PI = float(np.log(2 * np.pi))


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


@dataclass(frozen=True, eq=False)
class FullGaussians:
    """Densities with means (K, d) and one covariance factor a group; `groups` (K,) says whose."""

    means: Array
    factors: tuple[Factor, ...]
    groups: Codes

    @cached_property
    def whiteners(self) -> list[Array]:
        return [factor.whitener() for factor in self.factors]

    @cached_property
    def centre(self) -> Array:
        return self.means.mean(axis=0)

    @cached_property
    def needs_centring(self) -> bool:
        return not all(is_near_zero(self.centre, A) for A in self.whiteners)

    @cached_property
    def white_means(self) -> Array:
        """Means of the classes in the white coordinates of their groups (K, d)."""
        means = self.means - self.centre if self.needs_centring else self.means
        pairs = zip(means, self.groups, strict=True)
        return np.array([mean @ self.whiteners[g] for mean, g in pairs])

    @cached_property
    def constants(self) -> Array:
        """ln of the densities at the means (K,)."""
        logs = np.array([factor.log_determinant for factor in self.factors])
        return -0.5 * (self._rank * _LOG_2PI + logs[self.groups])

    @property
    def _rank(self) -> int:
        return len(self.factors[0].kept)

    def log_density(self, X: Array) -> Array:
        """ln p(x|C_k) (n, K)."""
        if self.needs_centring:
            X = X - self.centre
        out = np.empty((len(X), len(self.means)))
        for g, whitener in enumerate(self.whiteners):
            white = X @ whitener
            for k in np.flatnonzero(self.groups == g):
                residual = white - self.white_means[k]
                out[:, k] = np.einsum("ij,ij->i", residual, residual)
        out *= -0.5
        out += self.constants
        return out

    def marginal_log_density(self, X: Array) -> Array:
        """ln p of the entries present: the others are integrated out (2.98)."""
        out = np.empty((len(X), len(self.means)))
        patterns, which = np.unique(~np.isnan(X), axis=0, return_inverse=True)
        for p, present in enumerate(patterns):
            rows = np.flatnonzero(which.ravel() == p)
            columns = np.flatnonzero(present)
            out[rows] = self._of_columns(columns).log_density(X[np.ix_(rows, columns)])
        return out

    def _of_columns(self, columns: Codes) -> "FullGaussians":
        own = independent_places(self.factors, columns)
        factors = tuple(factor.part(columns, own) for factor in self.factors)
        return FullGaussians(self.means[:, columns], factors, self.groups)

    def linear(self, log_priors: Array) -> Linear | None:
        """(4.68)-(4.70): linear where all classes share one covariance, else None."""
        if len(self.factors) > 1:
            return None
        whitener = self.whiteners[0]
        white = (self.means - self.centre) @ whitener
        bias = log_priors - 0.5 * (white**2).sum(axis=1)
        return Linear.about(self.centre, whitener @ white.T, bias)

    def draw(self, k: int, n: int, random: np.random.Generator) -> Array:
        """`n` rows of class k."""
        factor = self.factors[self.groups[k]]
        white = random.standard_normal((n, self._rank))
        return self.means[k] + (white @ factor.lower.T) * factor.scale

    def covariances(self) -> Array:
        """Σ_k (K, d, d), or Σ (d, d) where there is only one."""
        found = np.array([factor.covariance() for factor in self.factors])
        return found[0] if len(found) == 1 else found[self.groups]

    @property
    def n_parameters(self) -> int:
        K, d = len(self.means), self._rank
        return K * d + len(self.factors) * d * (d + 1) // 2


@dataclass(frozen=True, eq=False)
class DiagonalGaussians:
    """Densities whose columns are independent: means (K, d), standard deviations (K, d).

    With `shared`, one standard deviation serves all classes and columns: Σ = λI. Columns that
    are left out have an infinite one.
    """

    means: Array
    spread: Array
    shared: bool

    @cached_property
    def _family(self) -> Gaussian | SharedGaussian:
        """Independent columns: the Gaussian family of features."""
        if self.shared:
            return SharedGaussian(self.means, self.spread[0])
        return Gaussian(self.means, self.spread)

    @cached_property
    def constants(self) -> Array:
        """ln of the densities at the means (K,)."""
        return -gaussian_log_normaliser(self.spread).sum(axis=1)

    def log_density(self, X: Array) -> Array:
        """ln p(x|C_k) (n, K)."""
        return self._family.log_density(X)

    def marginal_log_density(self, X: Array) -> Array:
        """ln p of the entries present; the columns being independent, the others drop out."""
        return self._family.marginal_log_density(X)

    def linear(self, log_priors: Array) -> Linear | None:
        """(4.68)-(4.70) where all classes share λ, else None."""
        if not isinstance(self._family, SharedGaussian):
            return None
        form = self._family.form
        return Linear.about(form.centre, form.weight, form.offset.sum(axis=0) + log_priors)

    def draw(self, k: int, n: int, random: np.random.Generator) -> Array:
        """`n` rows of class k."""
        return self._family.draw(k, n, random)

    @property
    def factors(self) -> tuple[Factor, ...]:
        """The covariance of each class as a factor; one for all where it is shared."""
        kept = np.flatnonzero(np.isfinite(self.spread[0]))
        identity = np.eye(self.means.shape[1])[:, kept]
        spreads = self.spread[:1] if self.shared else self.spread
        finite = np.where(np.isfinite(spreads), spreads, 1.0)
        return tuple(Factor(spread, identity, kept) for spread in finite)

    def covariances(self) -> Array:
        """Σ_k (K, d, d), or Σ (d, d) where there is only one."""
        found = np.array([factor.covariance() for factor in self.factors])
        return found[0] if self.shared else found

    @property
    def n_parameters(self) -> int:
        used = int(np.isfinite(self.spread).sum())
        return used + (1 if self.shared else used)
