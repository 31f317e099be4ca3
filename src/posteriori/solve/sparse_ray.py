"""Rays of few columns: of all ways to separate the same pairs, one that names as few as it can.

Conventions: those of `solve.separation`.
"""

import numpy as np

from posteriori.rows.rows import Rows
from posteriori.solve.programs import least_size, tightest
from posteriori.statistics.coordinates import Mask
from posteriori.statistics.separation_margins import Constraints, GatherMargins, PairsOf, Ray
from posteriori.typing import Array

MISSED = 1e-6
"""By how much a ray may miss the margins zero and one."""

_TRIED = 30
"""Columns that are tried to be left out of a ray."""

_ROOM = 2**24
"""Numbers that the rows brought together for a program may take, 128 MiB."""

MANY, _MOST = 150, 4000
"""Unknowns beyond which proofs by Newton's method are tried before programs, and beyond which a ray
is taken as it was found."""

ROUNDS, PRUNED = 500, 20
"""Programs solved before giving up, and before all constraints are kept; a dozen is usual."""


def sparse_ray(rows: Rows, pairs: PairsOf, held: Mask | None = None) -> Ray:
    """A ray of few columns that separates what the ray of `pairs` does; that one if none is found.

    The least Σ|θ|, then the least Σ|θ|/s with s = |θ| of the answer before until that changes no
    more (Candès, Wakin and Boyd 2008), then without each of the columns that can be left out.
    Parameters that are `held` (p,) stay at zero.
    """
    assert pairs.ray is not None
    if pairs.ray.theta.size > _MOST:
        return pairs.ray
    shortest, intercept = _Shortest(rows, pairs), int(pairs.ray.coordinates.intercept)
    theta = _first_short(shortest, pairs.ray, intercept, held)
    if theta is None:
        return pairs.ray
    while (sparser := shortest(abs(theta))) is not None:
        fewer = np.count_nonzero(sparser) < np.count_nonzero(theta)
        theta = sparser
        if not fewer:
            break
    columns = np.argsort(abs(theta[intercept:]).max(axis=1), kind="stable") + intercept
    for j in [j for j in columns if theta[j].any()][:_TRIED]:
        size = abs(theta)
        size[j] = 0.0
        if theta[j].any() and size.any() and (sparser := shortest(size)) is not None:
            theta = sparser
    return Ray(pairs.ray.coordinates, theta)


def _first_short(
    shortest: "_Shortest", ray: Ray, intercept: int, held: Mask | None
) -> Array | None:
    """The least Σ|θ|; of many unknowns only among the columns that count most along the ray.

    These are twice as many from one attempt to the next, as long as the programs stay small.
    """
    free = np.ones_like(ray.theta)
    if held is not None:
        free[held] = 0.0
    if ray.theta.size <= MANY:
        return shortest(free)
    order = np.argsort(-abs(ray.theta[intercept:]).max(axis=1), kind="stable") + intercept
    few = 1
    while few * ray.theta.shape[1] <= MANY:
        size = np.zeros_like(ray.theta)
        size[:intercept] = size[order[:few]] = 1.0
        if (theta := shortest(size * free)) is not None:
            return theta
        few *= 2
    return None


class _Shortest:
    """The shortest θ along which separated pairs have margin one and more, and open ones zero."""

    def __init__(self, rows: Rows, pairs: PairsOf) -> None:
        assert pairs.ray is not None
        self._rows, self._pairs, self._ray = rows, pairs, pairs.ray
        self._constraints = self._lacking(pairs.ray.theta, np.inf)

    def __call__(self, size: Array) -> Array | None:
        """The one of least Σ|θ|/size, with zeros where size is zero; None if there is none."""
        for turn in range(ROUNDS):
            theta = least_size(size, self._constraints)
            if theta is None:
                return None
            worst = self._lacking(theta, -MISSED)
            if not len(worst.slack):
                return theta
            kept = self._constraints
            kept = kept if turn > PRUNED else tightest(kept, theta)
            self._constraints = kept.joined(worst)
        return None

    def _lacking(self, theta: Array, floor: float) -> Constraints:
        most = few_enough(2 * theta.size, len(theta))
        kernel = GatherMargins(self._ray.coordinates, self._pairs, theta, floor, most, 1.0)
        return self._rows.map_sum(kernel).worst


def few_enough(wanted: int, p: int) -> int:
    """As many rows of p numbers as are wanted, two hundred at least, unless they take much room."""
    return max(200, min(wanted, _ROOM // p))
