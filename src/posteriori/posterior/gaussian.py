"""Gaussian densities p(x|C_k), held by means and triangular factors (4.64).

Conventions: n rows, d columns, K classes, G groups of classes that share a covariance.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from posteriori.likelihood.normal import Gaussian, SharedGaussian, log_normaliser
from posteriori.posterior.linear import Linear, is_near_zero
from posteriori.solve.covariance import Factor, independent_places
from posteriori.typing import Array, Codes

_LOG_2PI = float(np.log(2 * np.pi))

_SMALL = 2**14
"""Numbers in one request for which the classes are evaluated in one product."""

_FAR = 1e6
"""A row of a smaller log density lies far from every class."""

_PANEL = 64
"""Columns of a triangular product taken at a time, so that zeros are not multiplied."""


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

    @cached_property
    def _side_by_side(self) -> Array:
        return np.concatenate(self.whiteners, axis=1)

    def log_density(self, X: Array) -> Array:
        """ln p(x|C_k) (n, K)."""
        if self.needs_centring:
            X = X - self.centre
        if len(X) * len(self.means) * X.shape[1] <= _SMALL:
            white = (X @ self._side_by_side).reshape(len(X), len(self.factors), self._rank)
            residual = white.take(self.groups, axis=1)
            residual -= self.white_means
            return self.constants - 0.5 * np.einsum("nkd,nkd->nk", residual, residual)
        out = np.empty((len(X), len(self.means)))
        for g, whitener in enumerate(self.whiteners):
            white = _times_upper(X, whitener)
            for k in np.flatnonzero(self.groups == g):
                residual = white - self.white_means[k]
                out[:, k] = np.einsum("ij,ij->i", residual, residual)
        out *= -0.5
        out += self.constants
        return out

    def activations(self, X: Array, log_priors: Array) -> Array:
        """ln p(x|C_k) p(C_k) up to a constant of the row (n, K)."""
        joint = self.log_density(X) + log_priors
        if 1 < len(self.factors) < len(self.means):
            far = joint.max(axis=1) < -_FAR
            if far.any():
                joint[far] = self._far_out(X[far], log_priors)
        return joint

    def _far_out(self, X: Array, log_priors: Array) -> Array:
        """The same, less the square of the nearest group: far from every class it would drown
        the linear terms that tell the classes of a group apart."""
        X, means = X - self.centre, self.means - self.centre
        out, squares = np.empty((len(X), len(means))), np.empty((len(X), len(self.factors)))
        with np.errstate(over="ignore", invalid="ignore"):
            for g, whitener in enumerate(self.whiteners):
                own = self.groups == g
                white, white_means = X @ whitener, means[own] @ whitener
                squares[:, g] = 0.5 * np.einsum("ij,ij->i", white, white)
                out[:, own] = white @ white_means.T - 0.5 * (white_means**2).sum(axis=1)
            out += self.constants + log_priors
            best = self.groups[(out - squares[:, self.groups]).argmax(axis=1)]
            return out - (squares - squares[np.arange(len(X)), best, None])[:, self.groups]

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
        return -log_normaliser(self.spread).sum(axis=1)

    def log_density(self, X: Array) -> Array:
        """ln p(x|C_k) (n, K)."""
        return self._family.quick(X)

    def activations(self, X: Array, log_priors: Array) -> Array:
        """ln p(x|C_k) p(C_k) (n, K)."""
        return self.log_density(X) + log_priors

    def marginal_log_density(self, X: Array) -> Array:
        """ln p of the entries present; the columns being independent, the others drop out."""
        return self._family.log_density(X)

    def linear(self, log_priors: Array) -> Linear | None:
        """(4.68)-(4.70) where all classes share λ, else None."""
        if not isinstance(self._family, SharedGaussian):
            return None
        form = self._family.form
        return Linear.about(form.centre, form.weight, form.constant + log_priors)

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


def _times_upper(X: Array, upper: Array) -> Array:
    """X times an upper triangular matrix, leaving its zeros alone."""
    d = upper.shape[1]
    if d <= 2 * _PANEL or d < len(upper):
        return X @ upper
    out = np.empty_like(X)
    for low in range(0, d, _PANEL):
        high = min(low + _PANEL, d)
        np.matmul(X[:, :high], upper[:high, low:high], out=out[:, low:high])
    return out
