"""Leverages of the rows, the gradient of ½ ln|I| that follows from them, and Cook's distances.

Conventions: n rows, c activations a row, q parameters an activation (the intercept first),
θ (c, q), p free parameters. I (p, p) is the information and I⁻¹ = Σ_j s_j s_jᵀ, with p directions
s_j, each (c, q) in the columns that are summed. u_j = s_jφ (c,) is what a step along s_j adds to
the activations of a row φ; Q = Σ_j u_j u_jᵀ (c, c) is their covariance by I⁻¹. A row has the weight
w, the gradient g (c,) and the curvature A (c, c) in its activations.
"""

from dataclasses import dataclass
from typing import cast

import numpy as np

from posteriori.design.matrix import Design
from posteriori.likelihood.loss import Loss
from posteriori.likelihood.softmax import probabilities
from posteriori.rows.block import Block
from posteriori.statistics.local_quadratic import (
    GatherQuadratic,
    activations,
    gradient_of,
    weighted,
)
from posteriori.statistics.statistic import Statistic, weights_of
from posteriori.typing import Array, Codes

_PART_ENTRIES = 2**18
"""Numbers in what directions add to the activations of a block, computed at once."""

_STEP = 1e-5
"""To either side of an activation, for the slope of a curvature that has no formula here."""


@dataclass(frozen=True, eq=False)
class Leverage(Statistic):
    """Σ h over rows, and the gradient (c, q) of ½ ln|I|.

    h = tr(I⁻¹ w A ⊗ φφᵀ) is the share of a row in the information, so that Σ h = p wherever the
    directions are exact.
    """

    total: float
    gradient: Array


@dataclass(frozen=True, eq=False)
class GatherLeverage:
    """The kernel: a block of rows to its `Leverage`.

    Of I = Σ w A ⊗ φφᵀ only A depends on the activations, so a row adds ½ tr(I⁻¹ ∂A/∂a ⊗ φφᵀ).
    One activation: A is the curvature r(a) of the loss, expected or observed as `at` says;
    h = w r Σ_j u_j², and the gradient ½ w r'(a) Σ_j u_j² φ. Several: A = diag(p) - ppᵀ (4.110).

    `at` has θ, the columns and the loss; `directions` is (p, c, q).
    """

    at: GatherQuadratic
    directions: Array

    def __call__(self, block: Block) -> Leverage:
        at, has_intercept = self.at, self.at.standard.intercept
        with np.errstate(over="ignore", invalid="ignore"):
            design, a = at.design_and_activations(block)
            Q = spread_of(design, self.directions, has_intercept)
            if isinstance(at.loss, Loss):
                curvature, derivative = self._curvature(at.loss, a, block)
                h, slope = curvature * Q[:, 0, 0], 0.5 * derivative * Q[:, 0, 0]
            else:
                h, slope = softmax_leverage(probabilities(a), Q)
            h, slope = weighted(h, block.weight), weighted(slope, block.weight)
            return Leverage(float(h.sum()), gradient_of(design, slope, has_intercept))

    def _curvature(self, loss: Loss, a: Array, block: Block) -> tuple[Array, Array]:
        """r(a) of each row, and its derivative."""
        if loss.canonical or self.at.information == "expected":
            return loss.information(a), loss.information_slope(a)
        t, step = self.at.target(block), _STEP * np.maximum(abs(a), 1.0)
        above, below = loss.curvature(a + step, t), loss.curvature(a - step, t)
        return loss.curvature(a, t), (above - below) / (2 * step)


def spread_of(design: Design, directions: Array, has_intercept: bool) -> Array:
    """Q = Σ_j u_j u_jᵀ of each row (n, c, c) for directions (p, c, q), some at a time."""
    (p, c, q), n = directions.shape, design.shape[0]
    found, step = np.zeros((n, c, c)), max(1, _PART_ENTRIES // max(1, n * c))
    for low in range(0, p, step):
        some = directions[low : low + step].reshape(-1, q)
        u = activations(design, some, has_intercept, None).reshape(n, len(some) // c, c)
        if c > 1:  # only differences change the probabilities
            u -= u.mean(axis=2, keepdims=True)
        found += np.einsum("njc,njd->ncd", u, u)
    return found


def softmax_leverage(p: Array, Q: Array) -> tuple[Array, Array]:
    """tr(QA) (n,) for A = diag(p) - ppᵀ, and half its derivative in a (n, K).

    With r_k = Q_kk - 2(Qp)_k, as ∂p_k/∂a_m = p_k(δ_km - p_m) (4.106), half the derivative is
    ½ p_m(r_m - pᵀr).

    >>> Q = np.array([[[2.0, 0.0], [0.0, 0.0]]])  # tr(QA) = 2p(1 - p)
    >>> softmax_leverage(np.array([[0.25, 0.75]]), Q)
    (array([0.375]), array([[ 0.09375, -0.09375]]))
    """
    own, mixed = np.einsum("nkk->nk", Q), np.einsum("nkl,nl->nk", Q, p)
    r = own - 2 * mixed
    slope = 0.5 * p * (r - (p * r).sum(axis=1, keepdims=True))
    return (p * (own - mixed)).sum(axis=1), slope


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
        row = np.concatenate([self.row, other.row])
        distance = np.concatenate([self.distance, other.distance])
        leverage = np.concatenate([self.leverage, other.leverage])
        return largest(self.most, row, distance, leverage)

    def by_distance(self) -> Codes:
        """Places of the rows with the largest distances, the largest first."""
        return np.argsort(-self.distance, kind="stable")[: self.most]

    def by_leverage(self) -> Codes:
        """Places of the rows with the largest leverages, the largest first."""
        return np.argsort(-self.leverage, kind="stable")[: self.most]


def largest(most: int, row: Codes, distance: Array, leverage: Array) -> Influence:
    """The rows with the largest distances or leverages; of equal ones the first.

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
        weight = weights_of(block)
        with np.errstate(over="ignore", invalid="ignore"):
            design, a = self.at.design_and_activations(block)
            c, t = self.directions.shape[1], self.at.target(block)
            gradient = self.at.loss.gradient(a, t).reshape(-1, c)
            curvature = self.at.loss.information(a).reshape(-1, c, c)
            spread = spread_of(design, self.directions, self.at.standard.intercept)
            own = weight[:, None, None] * (curvature @ spread)
            v = row_removed(own, weight[:, None] * gradient)
            distance = np.einsum("nc,ncd,nd->n", v, spread, v) / self.size
        distance[np.isnan(distance)] = np.inf
        return largest(self.most, block.numbers, distance, np.einsum("ncc->n", own))


def row_removed(own: Array, gradient: Array) -> Array:
    """(I - own)⁻¹ gradient of each row (n, c); NaN where only the row determines a direction.

    >>> row_removed(np.array([[[0.5]], [[1.0]]]), np.array([[1.0], [0.0]])).ravel()
    array([ 2., nan])
    """
    unit = np.eye(own.shape[1])
    left = unit - own
    alone = ~(np.linalg.det(left) > _ALONE)
    left[alone] = unit
    if len(unit) == 1:
        found = gradient / left[:, 0]
    else:
        found = cast(Array, np.linalg.solve(left, gradient[:, :, None])[:, :, 0])
    found[alone] = np.nan
    return found
