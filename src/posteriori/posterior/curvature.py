"""The curvature of a likelihood where it is too large to be made: its products and its diagonal.

Conventions: p free parameters w (p,); H (p, p) is the Hessian of -ln p(t|w), the prior left out.
"""

import numpy as np

from posteriori.posterior.objective import BLOCK_ENTRIES, LogPosterior
from posteriori.statistics.local_quadratic import GatherHessianDiagonal, GatherHessianProducts
from posteriori.typing import Array

_AT_ONCE = 64
"""Vectors multiplied in one pass."""


def curvature_times(objective: LogPosterior, w: Array, vectors: Array) -> Array:
    """Hv at w of each vector (k, p), many of them in a pass over the rows."""
    parts = [vectors[low : low + _AT_ONCE] for low in range(0, len(vectors), _AT_ONCE)]
    return np.concatenate([_times(objective, w, part) for part in parts])


def _times(objective: LogPosterior, w: Array, vectors: Array) -> Array:
    coordinates = objective.coordinates
    shape = (len(vectors), coordinates.c, coordinates.q)
    theta = objective.standard.outward(coordinates.contrasts @ vectors.reshape(shape))
    kernel = GatherHessianProducts(objective.kernel(w), theta)
    found = objective.rows.map_sum(kernel, block_entries=BLOCK_ENTRIES)
    inward = coordinates.contrasts.T @ objective.standard.inward(found)
    return objective.factor * inward.reshape(len(vectors), -1)


def curvature_diagonal(objective: LogPosterior, w: Array) -> Array:
    """The diagonal of H at w (p,)."""
    kernel = GatherHessianDiagonal(objective.kernel(w), objective.coordinates.contrasts)
    found = objective.rows.map_sum(kernel, block_entries=BLOCK_ENTRIES)
    if not objective.standard.moves:
        found[:, int(objective.standard.intercept) :] /= objective.standard.scale**2
    return objective.factor * found.ravel()
