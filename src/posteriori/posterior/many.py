"""The log posterior density of many parameter vectors at once, and in white coordinates.

Conventions: m points W (m, p) of p free parameters; z (m, p) white, w = centre + Vz, so that a
density whose covariance is VVᵀ has covariance one in z.
"""

from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np

from posteriori.errors import ParameterError
from posteriori.posterior.objective import LogPosterior
from posteriori.statistics.many_parameters import ROWS, GatherManyLosses, ManyLosses
from posteriori.typing import Array

_BATCH = 2**22
"""Numbers in the points that are handed on in one go."""


class Densities(Protocol):
    """ln p of many points up to a constant, as a sampler wants it; -∞ where there is none."""

    def log_density(self, W: Array) -> Array:
        """ln p (m,) of the rows of W (m, p)."""
        ...

    def with_gradient(self, W: Array) -> tuple[Array, Array]:
        """The same, and its gradients (m, p)."""
        ...


@dataclass(frozen=True, eq=False)
class ManyDensities:
    """ln p(t|w) + ln p(w) at many w, by one pass over the rows.

    >>> from posteriori import LogisticRegression
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1]
    >>> model = LogisticRegression(prior=1.0).fit(X, y)
    >>> many = ManyDensities(model._inference.objective)
    >>> many.log_density(np.array([[0.0, 0.0], [0.0, 1.0]])).round(4)
    array([-2.7726, -2.7476])
    """

    objective: LogPosterior

    def __post_init__(self) -> None:
        if type(self.objective) is not LogPosterior or self.objective.damping:
            raise ParameterError(
                "Only a Gaussian prior, or none, can be added to the losses of many parameters.",
                "Use prior=None, a number or a GaussianPrior, and a known rate of label noise.",
            )

    def log_density(self, W: Array) -> Array:
        """ln p (m,); what the loss leaves out of -ln p(t|w) is left out."""
        size = max(1, _BATCH // W.shape[1])
        parts = [self._at(W[low : low + size])[0] for low in range(0, len(W), size)]
        return np.concatenate(parts)

    def with_gradient(self, W: Array) -> tuple[Array, Array]:
        """ln p (m,) and its gradients (m, p)."""
        value, gradient = self._at(W, with_gradients=True)
        return value, cast(Array, gradient)

    def _at(self, W: Array, with_gradients: bool = False) -> tuple[Array, Array | None]:
        found, V = self.objective, self.vectors(W)
        losses = self._losses(V, with_gradients)
        pull = found.penalty.gradient(V)
        prior = 0.5 * ((V - found.penalty.mean) * pull).sum(axis=(1, 2))
        with np.errstate(over="ignore", invalid="ignore"):
            value = -found.factor * losses.values - prior
            value = np.where(np.isnan(value), -np.inf, value)
            if losses.gradients is None:
                return value, None
            inward = found.standard.inward(losses.gradients)
            slopes = found.factor * (found.coordinates.contrasts.T @ inward) + pull
        return value, -self.contracted(slopes)

    def _losses(self, V: Array, with_gradients: bool) -> ManyLosses:
        found = self.objective
        thetas = found.standard.outward(found.coordinates.contrasts @ V)
        kernel = GatherManyLosses(
            found.columns, found.standard, found.loss, found.target, thetas, with_gradients
        )
        return found.rows.map_sum(kernel, block_entries=ROWS * len(found.columns.schema))

    def vectors(self, W: Array) -> Array:
        """V (m, c, q)."""
        to = self.objective.coordinates
        free = W.reshape(len(W), to.c, to.k)
        return free if to.basis is None else free @ to.basis.T

    def contracted(self, slopes: Array) -> Array:
        """Gradients in w (m, p) of those in V (m, c, q)."""
        basis = self.objective.coordinates.basis
        return (slopes if basis is None else slopes @ basis).reshape(len(slopes), -1)


@dataclass(frozen=True, eq=False)
class White:
    """A density in coordinates z, w = centre + Vz, in which it is about as wide in all directions.

    >>> from posteriori import LogisticRegression
    >>> model = LogisticRegression(prior=1.0).fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1])
    >>> many = ManyDensities(model._inference.objective)
    >>> White(many, np.array([1.0, 0.0]), 2.0 * np.eye(2)).outward(np.array([[0.5, 0.0]]))
    array([[2., 0.]])
    """

    target: Densities
    centre: Array
    root: Array

    def outward(self, z: Array) -> Array:
        """w (..., p) of z (..., p)."""
        return self.centre + z @ self.root.T

    def log_density(self, z: Array) -> Array:
        """ln p (m,), the constant ln|V| left out."""
        return self.target.log_density(self.outward(z))

    def with_gradient(self, z: Array) -> tuple[Array, Array]:
        """The same, and its gradients in z (m, p)."""
        value, gradient = self.target.with_gradient(self.outward(z))
        return value, gradient @ self.root

    def about(self, mean: Array, root: Array) -> "White":
        """The same density in coordinates that are white where those of z have this mean and root.

        `root` (p, p) is any R with RRᵀ the covariance of z.
        """
        return White(self.target, self.outward(mean), self.root @ root)
