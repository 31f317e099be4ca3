"""Parameters as users read them, from the free ones that the solvers see.

Conventions: p free parameters w (p,); K activations a row, q parameters each, Θ (K, q) for
standardised columns. Shown are the q parameters in the user's units, the intercept first; for
K > 1 the contrasts with one class, the first unless another is asked for, (K-1)q of them, class by
class.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from posteriori.design.columns import Columns
from posteriori.design.standardise import Standard
from posteriori.posterior.objective import Coordinates, LogPosterior
from posteriori.typing import Array

INTERCEPT = "intercept"
"""What the intercept is called among the terms."""

_SHARED = 1e-8
"""A coefficient made of others by more than this shares in a dependence of columns."""


@dataclass(frozen=True, eq=False)
class Shown:
    """The linear map from free parameters to those shown.

    It is taken in two steps, so that no square of a unit overflows: first to columns that are
    scaled but not centred, then by `unit` to the user's. `reference` is the class that others are
    compared with.
    """

    columns: Columns
    standard: Standard
    coordinates: Coordinates
    reference: int = 0

    @classmethod
    def of(cls, objective: LogPosterior) -> "Shown":
        """That of an objective."""
        return cls(objective.columns, objective.standard, objective.coordinates)

    @property
    def terms(self) -> tuple[str, ...]:
        """The names of one activation's parameters (q,)."""
        first = (INTERCEPT,) if self.standard.intercept else ()
        return (*first, *self.columns.names)

    @property
    def names(self) -> list[str]:
        """The names of all parameters shown, for messages."""
        if self.coordinates.n_activations == 1:
            return [repr(term) for term in self.terms]
        return [f"{term!r} (class {k + 1})" for k in self.others for term in self.terms]

    @property
    def others(self) -> list[int]:
        """The classes that are compared with the reference."""
        return [k for k in range(self.coordinates.n_activations) if k != self.reference]

    @property
    def n_contrasts(self) -> int:
        """How many blocks of q parameters are shown."""
        return max(self.coordinates.n_activations - 1, 1)

    @cached_property
    def unit(self) -> Array:
        """What parameters for scaled columns are divided by."""
        return np.tile(self.one_unit, self.n_contrasts)

    @property
    def one_unit(self) -> Array:
        """The same of one activation (q,)."""
        return np.concatenate([np.ones(int(self.standard.intercept)), self.standard.scale])

    @cached_property
    def directions(self) -> Array:
        """The rows m with mᵀw = a parameter for scaled columns, one a parameter shown."""
        return self._scaled(np.eye(self.coordinates.size)).T

    def estimates(self, w: Array) -> Array:
        """The parameters themselves."""
        with np.errstate(over="ignore"):
            return self._scaled(w[None, :])[0] / self.unit

    def covariance(self, free: Array) -> Array:
        """Their covariance from that of the free ones (p, p)."""
        with np.errstate(over="ignore"):
            return self._scaled_covariance(free) / self.unit / self.unit[:, None]

    def standard_errors(self, free: Array) -> Array:
        """The roots of its diagonal, which fit in doubles where the squares do not."""
        variance = np.einsum("ij,ij->i", self.directions @ free, self.directions)
        with np.errstate(over="ignore"):
            return np.sqrt(np.maximum(variance, 0.0)) / self.unit

    def drawn_errors(self, root: Array) -> Array:
        """The same where the covariance of the free parameters is VVᵀ, V (p, k) being the root."""
        with np.errstate(over="ignore"):
            return np.linalg.norm(self._scaled(root.T), axis=0) / self.unit

    @property
    def dependent(self) -> tuple[str, ...]:
        """Columns whose coefficients were not told apart by the rows, and share them."""
        basis = self.coordinates.basis
        if basis is None:
            return ()
        alone = (abs(abs(basis).max(axis=1) - 1) < _SHARED) & (abs(basis).sum(axis=1) < 1 + _SHARED)
        return tuple(
            term
            for term, free in zip(self.terms, alone, strict=True)
            if not free and term != INTERCEPT
        )

    def _scaled_covariance(self, free: Array) -> Array:
        found = self.directions @ free @ self.directions.T
        return (found + found.T) / 2

    def _scaled(self, w: Array) -> Array:
        """Parameters for scaled columns (k, shown) of k vectors w (k, p)."""
        scale, intercept = self.standard.scale, self.standard.intercept
        scaled = Standard(self.standard.centre / scale, np.ones_like(scale), intercept)
        theta = scaled.to_user(np.stack([self.coordinates.expand(one) for one in w]))
        if theta.shape[1] > 1:
            theta = theta[:, self.others] - theta[:, [self.reference]]
        return theta.reshape(len(w), -1)
