"""The activations of new rows, and the deviations of coefficients, where parameters are very many.

Conventions: as in `activation_gaussian` and `low_rank`; w = (c, q) numbers in c vectors, of which
the contrasts B (K, c) make Θ (K, q). With the variances 1/d (c, q) that the diagonal gives and the
columns T of what is known beside it,

    cov[a] = B diag(Σ_j φ_j² / d_ej) Bᵀ - DDᵀ,    D (n, K, k) the activations of T's columns.
"""

from dataclasses import dataclass

import numpy as np

from posteriori.posterior.activation_gaussian import (
    ActivationGaussian,
    expand_columns,
    standardised,
)
from posteriori.posterior.low_rank import LowRankGaussian
from posteriori.posterior.shown import Shown
from posteriori.rows.block import Block
from posteriori.typing import Array


@dataclass(frozen=True, eq=False)
class LowRankActivations:
    """What a Gaussian of low rank and a diagonal says of the activations of rows.

    `known` has Θ and T, `free` (c, q) is 1/d.
    """

    known: ActivationGaussian
    free: Array

    @classmethod
    def of(cls, shown: Shown, gaussian: LowRankGaussian) -> "LowRankActivations":
        """That of free parameters."""
        theta = shown.coordinates.expand(gaussian.mean)
        known = ActivationGaussian(shown, theta, expand_columns(shown, gaussian.known))
        return cls(known, (1 / gaussian.diagonal).reshape(shown.coordinates.c, -1))

    @property
    def entries(self) -> int:
        """Numbers that a row needs."""
        return self.known.entries

    def moments(self, block: Block) -> tuple[Array, Array]:
        """Means (n,) and variances (n,) of one activation, or (n, K) and (n, K, K) of more."""
        shown = self.known.shown
        design = standardised(shown, block)
        mean, deviations = self.known.mean(design, block), self.known.deviations(design)
        first = int(shown.standard.intercept)
        each = np.maximum(design.squares_times(self.free[:, first:].T), 0.0)
        each += self.free[:, :first].sum(axis=1)
        if len(self.known.theta) == 1:
            variance = each[:, 0] - np.square(deviations[:, 0]).sum(axis=1)
            return mean[:, 0], np.maximum(variance, 0.0)
        B = shown.coordinates.contrasts
        return mean, (each[:, None, :] * B) @ B.T - deviations @ deviations.swapaxes(1, 2)


def low_rank_deviations(shown: Shown, gaussian: LowRankGaussian, mixing: Array) -> Array:
    """Standard deviations (m, q) of mixtures (m, c) of the c vectors, for scaled columns.

    Slopes are those of columns that are divided by their scale, intercepts those of columns that
    are not centred.
    """
    c, q = shown.coordinates.c, shown.coordinates.q
    free, known = (1 / gaussian.diagonal).reshape(c, q), gaussian.known.reshape(c, q, -1)
    variance = np.empty((len(mixing), q))
    for place, mixed in enumerate(mixing):
        shared = np.tensordot(mixed, known, axes=1)
        variance[place] = mixed**2 @ free - np.square(shared).sum(axis=1)
        if shown.standard.intercept:
            along = np.concatenate([[1.0], -shown.standard.centre / shown.standard.scale])
            own = mixed**2 @ free @ along**2
            variance[place, 0] = own - np.square(along @ shared).sum()
    return np.sqrt(np.maximum(variance, 0.0))
