"""Gaussian class-conditional densities p(x|C_k) (4.64): means and triangular factors.

Conventions: n rows, d columns, K classes, G groups of classes that share a covariance. A
covariance is stored as Σ = D L Lᵀ D with D = diag(scale) and L Lᵀ the correlations, so that the
accuracy of the factor does not depend on the units of the columns. No inverse is formed: prediction
needs L⁻¹D⁻¹(x - μ), by forward substitution.

Both kinds of densities have `linear`, the activations (4.68)-(4.70) where the boundaries are
linear, else None, and `quadratic`: A (K, d, d), b (K, d) and c (K,) with
ln p(x|C_k) = xᵀA_k x + b_kᵀx + c_k.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from posteriori.design.columns import Columns
from posteriori.errors import ShapeError
from posteriori.likelihood.feature_families import Gaussian, in_parts
from posteriori.likelihood.linear_activations import Linear
from posteriori.linalg import cholesky, solve_lower
from posteriori.rows.block import Block, Features, Mixed
from posteriori.typing import Array, Codes

_LOG_2PI = float(np.log(2 * np.pi))

_MOST_ENTRIES = 2**29
"""Entries of diagonal matrices that are written out: 4 GiB."""


@dataclass(frozen=True, eq=False)
class Factor:
    """Σ = D L Lᵀ D with D = diag(`scale`) (d,) and L = `lower` (d, r).

    The rows `kept` (r,) of L form a lower triangle; where r < d, the other columns are linear
    functions of these and add nothing to a density.
    """

    scale: Array
    lower: Array
    kept: Codes

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

    def part(self, columns: Codes) -> "Factor":
        """The factor of the covariance of some of the columns kept."""
        lower = cholesky(self.lower[columns] @ self.lower[columns].T)
        assert lower is not None, "a principal part of a positive definite matrix is one too"
        return Factor(self.scale[columns], lower, np.arange(len(columns)))

    def covariance(self) -> Array:
        """Σ itself."""
        return (self.lower @ self.lower.T) * self.scale * self.scale[:, None]

    def times_unit(self, unit: Array | float) -> "Factor":
        """The factor in units of one, where this one is in multiples of `unit`."""
        return replace(self, scale=self.scale * unit)


@dataclass(frozen=True, eq=False)
class FullGaussians:
    """Densities with means (K, d) and one covariance factor a group; `groups` (K,) says whose."""

    mean: Array
    factors: tuple[Factor, ...]
    groups: Codes

    @cached_property
    def whiteners(self) -> list[Array]:
        return [factor.whitener() for factor in self.factors]

    @cached_property
    def centre(self) -> Array:
        """The mean of the class means, which is subtracted first: no digits are lost far away."""
        return self.mean.mean(axis=0)

    @cached_property
    def white_means(self) -> Array:
        """Means of the classes in the white coordinates of their groups (K, r)."""
        pairs = zip(self.mean - self.centre, self.groups, strict=True)
        return np.array([mean @ self.whiteners[g] for mean, g in pairs])

    @cached_property
    def constants(self) -> Array:
        """ln of the densities at the means (K,)."""
        logs = np.array([factor.log_determinant for factor in self.factors])
        return -0.5 * (self._rank * _LOG_2PI + logs[self.groups])

    @property
    def _rank(self) -> int:
        return len(self.factors[0].kept)

    def log_density(self, X: Features, columns: Columns, missing: bool = False) -> Array:
        """ln p(x|C_k) (n, K); with `missing`, of the entries that are there.

        Sparse and coded rows are filled in part by part.
        """
        density = self._marginal if missing else self._complete
        if isinstance(X, np.ndarray):
            return density(X)
        parts = columns.dense_parts(Block(X, None, None, 0))
        return np.concatenate([density(columns.design(part).array()) for part in parts])

    def _complete(self, X: Array) -> Array:
        out = np.empty((len(X), len(self.mean)))
        X = X - self.centre
        for g, whitener in enumerate(self.whiteners):
            white = X @ whitener
            for k in np.flatnonzero(self.groups == g):
                residual = white - self.white_means[k]
                out[:, k] = np.einsum("ij,ij->i", residual, residual)
        return self.constants - 0.5 * out

    def _marginal(self, X: Array) -> Array:
        """Missing entries are integrated out (2.98); columns left out of the fit do not count."""
        out = np.empty((len(X), len(self.mean)))
        kept = self.factors[0].kept
        patterns, which = np.unique(~np.isnan(X[:, kept]), axis=0, return_inverse=True)
        for p, present in enumerate(patterns):
            rows, columns = np.flatnonzero(which.ravel() == p), kept[present]
            factors = tuple(factor.part(columns) for factor in self.factors)
            part = FullGaussians(self.mean[:, columns], factors, self.groups)
            out[rows] = part._complete(X[np.ix_(rows, columns)])
        return out

    def linear(self, log_priors: Array) -> Linear | None:
        if len(self.factors) > 1:
            return None
        bias = log_priors - 0.5 * (self.white_means**2).sum(axis=1)
        return Linear.about(self.centre, self.whiteners[0] @ self.white_means.T, bias)

    def quadratic(self) -> tuple[Array, Array, Array]:
        whiteners = [self.whiteners[g] for g in self.groups]
        white = [mean @ A for mean, A in zip(self.mean, whiteners, strict=True)]
        return (
            np.array([-0.5 * A @ A.T for A in whiteners]),
            np.array([A @ m for A, m in zip(whiteners, white, strict=True)]),
            self.constants - 0.5 * np.array([m @ m for m in white]),
        )

    def draw(self, k: int, n: int, random: np.random.Generator) -> Array:
        """`n` rows of class k."""
        factor = self.factors[self.groups[k]]
        white = random.standard_normal((n, self._rank))
        return self.mean[k] + (white @ factor.lower.T) * factor.scale

    def covariances(self) -> Array:
        """Σ_k (K, d, d), or Σ (d, d) where there is only one."""
        found = np.array([factor.covariance() for factor in self.factors])
        return found[0] if len(found) == 1 else found[self.groups]

    def deviations(self) -> Array:
        """The standard deviation of each column in each class (K, d)."""
        found = np.array([np.sqrt((f.lower**2).sum(axis=1)) * f.scale for f in self.factors])
        return found[self.groups]

    @property
    def n_parameters(self) -> int:
        K, d = len(self.mean), self._rank
        return K * d + len(self.factors) * d * (d + 1) // 2


@dataclass(frozen=True, eq=False)
class DiagonalGaussians:
    """Densities whose columns are independent: the Gaussian family of features, by class.

    If that is `shared`, one standard deviation serves all classes and columns: Σ = λI.
    """

    family: Gaussian

    @property
    def mean(self) -> Array:
        return self.family.mean

    def log_density(self, X: Features, columns: Columns, missing: bool = False) -> Array:
        """ln p(x|C_k) (n, K); with `missing`, of the entries that are there.

        A factor adds the densities of zeros in all its indicators, and the difference that the one
        of its level makes.
        """
        if not isinstance(X, Mixed):
            return _log_density(self.family, X, missing)
        numbers, each = columns.numeric, range(len(self.mean))
        bits = np.zeros((1, self.mean.shape[1]))
        zero = np.vstack([self.family.entries(bits, k) for k in each])
        one = np.vstack([self.family.entries(bits + 1, k) for k in each])
        codes = Block(replace(X, numeric=np.empty((len(X.codes), 0))), None, None, 0)
        found = columns.design(codes).times((one - zero).T)
        found += np.delete(zero, numbers, axis=1).sum(axis=1)
        if len(numbers):
            family = Gaussian(self.mean[:, numbers], self.family.sd[:, numbers])
            found += _log_density(family, X.numeric, missing)
        return found

    def linear(self, log_priors: Array) -> Linear | None:
        form = self.family.form
        return None if form is None else replace(form, bias=form.bias + log_priors)

    def quadratic(self) -> tuple[Array, Array, Array]:
        white = self.mean / self.family.sd
        constant = -(0.5 * white**2 + self.family.log_normaliser).sum(axis=1)
        precision = self.family.sd**-2.0
        return -0.5 * _diagonals(precision), white / self.family.sd, constant

    def draw(self, k: int, n: int, random: np.random.Generator) -> Array:
        """`n` rows of class k."""
        return self.family.draw(k, n, random)

    def covariances(self) -> Array:
        """Σ_k (K, d, d), or Σ (d, d) where there is only one; zero for columns left out."""
        variances = self.deviations() ** 2
        return _diagonals(variances[:1])[0] if self.family.shared else _diagonals(variances)

    def deviations(self) -> Array:
        """The standard deviation of each column in each class (K, d); zero for those left out."""
        return np.where(np.isfinite(self.family.sd), self.family.sd, 0.0)

    @property
    def n_parameters(self) -> int:
        used = int(np.isfinite(self.family.sd).sum())
        return used + (1 if self.family.shared else used)


def _log_density(family: Gaussian, X: Array, missing: bool) -> Array:
    return in_parts(family.marginal_log_density, X) if missing else family.log_density(X)


def _diagonals(values: Array) -> Array:
    """Diagonal matrices (K, d, d) of the rows of `values` (K, d)."""
    if values.size * values.shape[1] > _MOST_ENTRIES:
        raise ShapeError(
            f"Matrices of {values.shape[1]:,} columns do not fit in memory.",
            "tidy() has the means and standard deviations of the columns.",
        )
    return values[:, :, None] * np.eye(values.shape[1])
