"""The rows that move a fit most: their leverages and Cook's distances.

Conventions: n rows, c activations a row, p free parameters, H (p, p) the curvature of the objective
and H⁻¹ = Σ_j s_j s_jᵀ, each s_j (c, q) in the columns that are summed. A row has the weight w, the
gradient g (c,) and the expected curvature A (c, c) in its activations; Q (c, c) is the covariance
of these by H⁻¹. A row counts as a whole, with its weight.
"""

from dataclasses import dataclass
from typing import cast

import numpy as np

from posteriori.design.products import Design
from posteriori.likelihood.loss import Loss
from posteriori.rows.block import Block
from posteriori.statistics.leverage import moved
from posteriori.statistics.local_quadratic import GatherQuadratic, activations
from posteriori.statistics.statistic import Statistic
from posteriori.typing import Array, Codes

_ALONE = 1e-9
"""What is left of the curvature along some direction without a row that alone determines it."""


@dataclass(frozen=True, eq=False)
class Influence(Statistic):
    """The `most` rows with the largest distances and those with the largest leverages, in order.

    `row` has their numbers, `distance` Cook's distances, `leverage` the leverages.
    """

    most: int
    row: Codes
    distance: Array
    leverage: Array

    def __add__(self, other: "Influence") -> "Influence":
        return largest(
            self.most,
            np.concatenate([self.row, other.row]),
            np.concatenate([self.distance, other.distance]),
            np.concatenate([self.leverage, other.leverage]),
        )

    def by_distance(self) -> Codes:
        """Places of the rows with the largest distances, the largest first."""
        return np.argsort(-self.distance, kind="stable")[: self.most]

    def by_leverage(self) -> Codes:
        """Places of the rows with the largest leverages, the largest first."""
        return np.argsort(-self.leverage, kind="stable")[: self.most]


def largest(most: int, row: Codes, distance: Array, leverage: Array) -> Influence:
    """The rows that stand out of these; of equal ones the first.

    >>> rows, distances = np.array([7, 3, 5]), np.array([0.1, 0.9, 0.2])
    >>> found = largest(1, rows, distances, np.array([0.3, 0.2, 0.1]))
    >>> found.row, found.distance
    (array([3, 7]), array([0.9, 0.1]))
    """
    order = np.argsort(row, kind="stable")
    every = Influence(most, row[order], distance[order], leverage[order])
    kept = np.union1d(every.by_distance(), every.by_leverage())
    return Influence(most, every.row[kept], every.distance[kept], every.leverage[kept])


@dataclass(frozen=True, eq=False)
class GatherInfluence:
    """The kernel: a block of rows to its `Influence`.

    The leverage is w tr(QA). Without the row, one step of Newton's method moves the parameters by
    δ = H⁻¹Φᵀv with v = (I - wAQ)⁻¹ w g, Φ being the derivative of the activations; Cook's distance
    is δᵀHδ / size = vᵀQv / size. For one activation that is Pearson's r² h / (1 - h)² / size.
    It is infinite for a row without which some coefficient is not determined.

    `at` has θ, the columns and the loss; `directions` is (p, c, q); `size` is p times the
    dispersion.
    """

    at: GatherQuadratic
    directions: Array
    size: float
    most: int = 5

    def __call__(self, block: Block) -> Influence:
        at, n = self.at, block.X.shape[0]
        weight = np.ones(n) if block.weight is None else block.weight
        with np.errstate(over="ignore", invalid="ignore"):
            design = at.standard.design(at.columns.design(block))
            a = activations(design, at.theta, at.standard.intercept, block.offset)
            gradient, curvature = self._derivatives(a, at.target(block))
            spread = self._spread(design)
            own = weight[:, None, None] * (curvature @ spread)
            v = without(own, weight[:, None] * gradient)
            distance = np.einsum("nc,ncd,nd->n", v, spread, v) / self.size
        distance[np.isnan(distance)] = np.inf
        row = block.start + (np.arange(n) if block.kept is None else block.kept)
        return largest(self.most, row, distance, np.einsum("ncc->n", own))

    def _derivatives(self, a: Array, t: Array) -> tuple[Array, Array]:
        """g (n, c) and A (n, c, c)."""
        loss = self.at.loss
        if isinstance(loss, Loss):
            return loss.gradient(a, t)[:, None], loss.information(a)[:, None, None]
        return loss.gradient(a, t), loss.information(a)

    def _spread(self, design: Design) -> Array:
        """Q of each row (n, c, c)."""
        c = self.directions.shape[1]
        found = np.zeros((design.shape[0], c, c))
        for u in moved(design, self.directions, self.at.standard.intercept):
            found += np.einsum("jcn,jdn->ncd", u, u)
        return found


def without(own: Array, pull: Array) -> Array:
    """(I - own)⁻¹ pull for each row (n, c); NaN where a direction has nothing left.

    >>> without(np.array([[[0.5]], [[1.0]]]), np.array([[1.0], [0.0]])).ravel()
    array([ 2., nan])
    """
    unit = np.eye(own.shape[1])
    left = unit - own
    alone = ~(np.linalg.det(left) > _ALONE)
    left[alone] = unit
    found = pull / left[:, 0] if len(unit) == 1 else _solved(left, pull)
    found[alone] = np.nan
    return found


def _solved(matrices: Array, right: Array) -> Array:
    """The solution for each row (n, c), from (n, c, c) and (n, c)."""
    return cast(Array, np.linalg.solve(matrices, right[:, :, None])[:, :, 0])
