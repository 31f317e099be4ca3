"""The leverages of the rows, and the gradient of ½ ln|I| that follows from them.

Conventions: n rows, c activations a row, q parameters an activation (the intercept first),
θ (c, q), p free parameters. I (p, p) is the expected information and I⁻¹ = Σ_j s_j s_jᵀ, with p
directions s_j, each (c, q) in the columns that are summed. u_j = s_jφ (c,) is what a step along
s_j adds to the activations of a row φ.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from posteriori.design.products import Design
from posteriori.likelihood.loss import Loss
from posteriori.likelihood.softmax import probabilities
from posteriori.rows.block import Block
from posteriori.statistics.local_quadratic import GatherQuadratic, activations, gradient_of
from posteriori.statistics.statistic import Statistic
from posteriori.typing import Array

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

    def __add__(self, other: "Leverage") -> "Leverage":
        return Leverage(self.total + other.total, self.gradient + other.gradient)


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
            design = at.standard.design(at.columns.design(block))
            a = activations(design, at.theta, has_intercept, block.offset)
            if isinstance(at.loss, Loss):
                lengths = self._lengths(design)
                curvature, bend = self._curvature(at.loss, a, block)
                h, slope = curvature * lengths, 0.5 * bend * lengths
            else:
                h, slope = softmax_leverage(probabilities(a), self._distances(design))
            if block.weight is not None:
                h, slope = h * block.weight, (slope.T * block.weight).T
            return Leverage(float(h.sum()), gradient_of(design, slope, has_intercept))

    def _curvature(self, loss: Loss, a: Array, block: Block) -> tuple[Array, Array]:
        """r(a) of each row, and its derivative."""
        if loss.canonical or self.at.information == "expected":
            return loss.information(a), loss.information_slope(a)
        t, step = self.at.target(block), _STEP * np.maximum(abs(a), 1.0)
        above, below = loss.curvature(a + step, t), loss.curvature(a - step, t)
        return loss.curvature(a, t), (above - below) / (2 * step)

    def _lengths(self, design: Design) -> Array:
        """Σ_j u_j² of each row (n,)."""
        found = np.zeros(design.shape[0])
        for u in self._moved(design):
            found += np.einsum("jcn,jcn->n", u, u)
        return found

    def _distances(self, design: Design) -> Array:
        """Σ_j (u_jk - u_jl)² of each pair of classes and each row (K, K, n)."""
        K = self.directions.shape[1]
        found = np.zeros((K, K, design.shape[0]))
        for u in self._moved(design):
            for k in range(K):
                for other in range(k):
                    apart = u[:, k] - u[:, other]
                    found[k, other] += np.einsum("jn,jn->n", apart, apart)
        return found + found.swapaxes(0, 1)

    def _moved(self, design: Design) -> Iterator[Array]:
        return moved(design, self.directions, self.at.standard.intercept)


def moved(design: Design, directions: Array, has_intercept: bool) -> Iterator[Array]:
    """u (j, c, n) of all directions (p, c, q), some at a time."""
    (p, c, q), n = directions.shape, design.shape[0]
    step = max(1, _PART_ENTRIES // max(1, n * c))
    for low in range(0, p, step):
        some = directions[low : low + step]
        u = activations(design, some.reshape(-1, q), has_intercept, None)
        yield u.T.reshape(len(some), c, n)


def softmax_leverage(p: Array, distances: Array) -> tuple[Array, Array]:
    """tr(QA) (n,) for A = diag(p) - ppᵀ, and half its derivative in a (n, K).

    Given D_kl = Q_kk + Q_ll - 2Q_kl (K, K, n), tr(QA) = ½ pᵀDp. As ∂p_k/∂a_m = p_k(δ_km - p_m)
    (4.106), half its derivative is ½ p_m((Dp)_m - pᵀDp), where no digit is lost as p nears one.

    >>> D = np.array([[0.0, 2.0], [2.0, 0.0]])[:, :, None]  # tr(QA) = 2p(1 - p)
    >>> softmax_leverage(np.array([[0.25, 0.75]]), D)
    (array([0.375]), array([[ 0.09375, -0.09375]]))
    """
    own = p.T
    pulled = np.einsum("kln,ln->kn", distances, own)
    twice = (own * pulled).sum(axis=0)
    return 0.5 * twice, 0.5 * (own * (pulled - twice)).T
