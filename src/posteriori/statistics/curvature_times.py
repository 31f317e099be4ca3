"""Products of the Hessian of a sum over rows with vectors, and its diagonal, where H is too large.

Conventions: n rows, c activations a row, q parameters an activation (the intercept first),
θ (c, q); s directions v_j (c, q). With u_j = v_jφ (c,) and the curvature R (c, c) of a row's loss
in its activations, Hv_j = Σ w (R u_j) φᵀ.
"""

from dataclasses import dataclass

import numpy as np

from posteriori.likelihood.softmax import SoftmaxLoss, probabilities
from posteriori.rows.block import Block
from posteriori.statistics.local_quadratic import (
    GatherQuadratic,
    activations,
    centred_squares,
    gradient_of,
)
from posteriori.statistics.statistic import Statistic
from posteriori.typing import Array


@dataclass(frozen=True, eq=False)
class CurvatureTimes(Statistic):
    """Hv_j for each direction (s, c, q)."""

    products: Array

    def __add__(self, other: "CurvatureTimes") -> "CurvatureTimes":
        return CurvatureTimes(self.products + other.products)


@dataclass(frozen=True, eq=False)
class GatherCurvatureTimes:
    """The kernel: a block of rows to its `CurvatureTimes`.

    `at` has θ, the columns, the loss and which curvature it is; `directions` is (s, c, q), in the
    columns that are summed.
    """

    at: GatherQuadratic
    directions: Array

    def __call__(self, block: Block) -> CurvatureTimes:
        at, has_intercept = self.at, self.at.standard.intercept
        s, c, q = self.directions.shape
        design = at.standard.design(at.columns.design(block))
        a = activations(design, at.theta, has_intercept, block.offset)
        moved = activations(design, self.directions.reshape(-1, q), has_intercept, None)
        moved = moved.reshape(-1, s, c)
        bent = self._bent(a, moved, block)
        if block.weight is not None:
            bent *= block.weight[:, None, None]
        found = gradient_of(design, bent.reshape(-1, s * c), has_intercept)
        return CurvatureTimes(found.reshape(s, c, q))

    def _bent(self, a: Array, moved: Array, block: Block) -> Array:
        """Ru of each row and direction (n, s, c)."""
        if isinstance(self.at.loss, SoftmaxLoss):
            p = probabilities(a)[:, None, :]
            return p * (moved - (p * moved).sum(axis=2, keepdims=True))
        r = _curvature(self.at, a, block)
        if r.ndim == 1:
            return moved * r[:, None, None]
        return np.einsum("nkl,nsl->nsk", r, moved)


@dataclass(frozen=True, eq=False)
class GatherCurvatureDiagonal:
    """The kernel: a block of rows to the diagonal of H in contrasts of the activations.

    `contrasts` B (c, m) makes the activations of m: a = Bv. In columns that are not centred one by
    one it is the diagonal for centred ones, as others say little.
    """

    at: GatherQuadratic
    contrasts: Array

    def __call__(self, block: Block) -> CurvatureTimes:
        at, B = self.at, self.contrasts
        design = at.standard.design(at.columns.design(block))
        a = activations(design, at.theta, at.standard.intercept, block.offset)
        if isinstance(at.loss, SoftmaxLoss):
            p = probabilities(a)
            r = p @ B**2 - (p @ B) ** 2
        else:
            r = _curvature(at, a, block)
            r = r[:, None] if r.ndim == 1 else np.einsum("km,nkl,lm->nm", B, r, B)
        if block.weight is not None:
            r = r * block.weight[:, None]
        return CurvatureTimes(
            np.stack([centred_squares(design, v, at.standard) for v in r.T])[None]
        )


def _curvature(at: GatherQuadratic, a: Array, block: Block) -> Array:
    """R of each row: (n,), or (n, c, c) of several activations."""
    expected = at.information == "expected"
    return at.loss.information(a) if expected else at.loss.curvature(a, at.target(block))
