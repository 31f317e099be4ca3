"""Rates that never fall as the prediction grows: rows pooled by adjacent violators.

That is the recalibration which needs no bins and no smoothing (Dimitriadis, Gneiting and Jordan,
2021): of all maps that never fall, its rates have the best score, be it Brier's or the logarithm.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from posteriori.typing import Array


@dataclass(frozen=True, eq=False)
class Pools:
    """Rows in order of their predictions, pooled (m,) so that rates rise from pool to pool.

    `low` and `high` are the least and the largest prediction of a pool, `hits` and `misses` the
    weights of its rows for which the event did and did not happen.
    """

    low: Array
    high: Array
    hits: Array
    misses: Array

    @property
    def rate(self) -> Array:
        """How often the event happened in each pool."""
        return self.hits / (self.hits + self.misses)


def pool(predicted: Array, happened: NDArray[np.bool_], weight: Array) -> Pools:
    """The pools of an event; rows of one prediction stay together.

    >>> found = pool(np.array([0.1, 0.4, 0.6, 0.9]), np.array([0, 1, 0, 1], bool), np.ones(4))
    >>> found.rate, found.low, found.high
    (array([0. , 0.5, 1. ]), array([0.1, 0.4, 0.9]), array([0.1, 0.6, 0.9]))
    """
    levels, place = np.unique(predicted, return_inverse=True)
    hits = np.bincount(place, weight * happened, len(levels))
    misses = np.bincount(place, weight * ~happened, len(levels))
    total = hits + misses
    blocks = isotonic_regression(hits / total, weights=total).blocks
    starts = blocks[:-1]
    return Pools(
        levels[starts],
        levels[blocks[1:] - 1],
        np.add.reduceat(hits, starts),
        np.add.reduceat(misses, starts),
    )
