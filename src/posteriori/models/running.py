"""Means that go to zero: coefficients that run to infinity where every target is zero.

Where the mean is zero only in the limit, as eᵃ is, rows with target zero pull their activations
there for ever, unless rows with other targets hold the same coefficients. A direction θ is held by
no row if φᵀθ = 0 wherever the target is positive: then it lies in the null space of the sum of φφᵀ
over these rows. It runs away if, besides, φᵀθ ≤ 0 on all other rows, which a linear program finds
in as many unknowns as the null space has dimensions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from scipy import sparse
from scipy.linalg import null_space
from scipy.optimize import linprog

from posteriori.likelihood.loss import Loss
from posteriori.linalg import dependent_columns, unit_diagonal
from posteriori.models.pulled import GatherPulled, along
from posteriori.posterior.objective import LogPosterior
from posteriori.rows.block import Block
from posteriori.solve.separation import INTERCEPT, Separation
from posteriori.statistics.separation_margins import GatherDistinct
from posteriori.typing import Array

_NOTHING = 1e-9
"""Coefficients and sums of this size, beside others of size one, are rounding."""


class Held(Loss):
    """½a² for rows whose target is positive: its second derivative is one where a row holds."""

    def value(self, a: Array, t: Array) -> Array:
        return np.where(t > 0, a * a / 2, 0.0)

    def gradient(self, a: Array, t: Array) -> Array:
        return np.where(t > 0, a, 0.0)

    def curvature(self, a: Array, t: Array) -> Array:
        return (t > 0).astype(np.float64)

    def information(self, a: Array) -> Array:
        return np.ones_like(a)

    def mean(self, a: Array) -> Array:
        return a

    def activation(self, mean: Array) -> Array:
        return mean


@dataclass(frozen=True, eq=False)
class Running:
    """Which coefficients run away, the directions (p, k) of the free parameters that do not, and
    the rows that pull, in words: "every target with f = 'a' is zero"."""

    separation: Separation
    determined: Array
    rows: str


def find_running(levels: Sequence[LogPosterior], sign: float) -> Running | None:
    """The coefficients that run away, or None.

    `sign` is that of the activations whose mean is zero: -1 for eᵃ, +1 for 1/a. If some of the
    rows hold all directions, then so do all rows.
    """
    free = np.empty((0, 0))
    for level in levels:
        free = _free_directions(level)
        if not free.shape[1]:
            return None
    return _running(levels[-1], free, sign)


def _free_directions(objective: LogPosterior) -> Array:
    """Directions (p, k) of the free parameters that no positive target and no prior holds."""
    held = replace(objective, loss=Held(), information="observed", share=1.0, damping=0.0)
    matrix = cast(Array, held(np.zeros(objective.coordinates.size), "full").hessian)
    correlation, scale = unit_diagonal(matrix)
    dependent = dependent_columns(correlation)
    kept = np.setdiff1d(np.arange(len(matrix)), dependent)
    out = np.zeros((len(matrix), len(dependent)))
    out[dependent] = np.eye(len(dependent))
    out[kept] = -np.linalg.solve(
        correlation[np.ix_(kept, kept)], correlation[np.ix_(kept, dependent)]
    )
    out[abs(out) < _NOTHING] = 0.0
    return out / scale[:, None]


def _running(objective: LogPosterior, free: Array, sign: float) -> Running | None:
    kernel = _ZeroRows(objective, free)
    found = sign * objective.rows.map_sum(GatherDistinct(kernel)).rows
    size = np.maximum(abs(found).max(axis=0, initial=0.0), _NOTHING)
    rows = found / size
    z = _upward(rows)
    if z is None:
        return None
    # What no row with a mean of its own holds: every direction that leaves these rows as they are.
    kept = rows[rows @ z <= _NOTHING * abs(z).max()]
    runs = (free / size) @ _unmoved(kept)
    direction = (free / size) @ z
    pulled = objective.rows.map_sum(GatherPulled(objective, direction, sign))
    theta = objective.coordinates.expand(direction)
    return Running(_named(objective, theta), null_space(runs.T), pulled.words(objective.columns))


def _unmoved(rows: Array) -> Array:
    """The directions (k, j) along which all rows are zero, but for rounding."""
    _, sizes, directions = np.linalg.svd(rows[abs(rows).max(axis=1) > _NOTHING])
    return directions[int((sizes > _NOTHING).sum()) :].T


def _upward(rows: Array) -> Array | None:
    """z with rows z ≥ 0, and above zero for as many rows as can be; None if for none of them."""
    m, k = rows.shape
    below = sparse.hstack([sparse.csr_array(-rows), sparse.eye_array(m)])
    found = linprog(
        np.concatenate([np.zeros(k), -np.ones(m)]),
        A_ub=below,
        b_ub=np.zeros(m),
        bounds=[(None, None)] * k + [(0.0, 1.0)] * m,
    )
    if found.status != 0 or -found.fun <= _NOTHING:
        return None
    return cast(Array, found.x[:k])


def _named(objective: LogPosterior, theta: Array) -> Separation:
    """The direction θ (1, q) of standardised columns, with the names of those that take part."""
    moved = abs(theta[0]) > _NOTHING * abs(theta).max()
    theta = objective.standard.to_user(np.where(moved, theta, 0.0))
    names: tuple[str, ...] = objective.columns.names
    if objective.standard.intercept:
        names = (INTERCEPT, *names)
        others = abs(theta[0, 1:] * objective.standard.centre).sum()
        moved[0] = abs(theta[0, 0]) > _NOTHING * max(others, abs(theta[0, 0]))
    places = np.flatnonzero(moved)
    signs = np.sign(theta[0, places])
    return Separation("quasi", tuple(names[j] for j in places), signs, theta.T, None)


@dataclass(frozen=True, eq=False)
class _ZeroRows:
    """φᵀθ (n, k) of the rows of a block whose target is zero, θ along k directions."""

    objective: LogPosterior
    directions: Array

    def __call__(self, block: Block) -> Array:
        return along(self.objective, self.directions, block)[self.objective.target(block) <= 0]
