"""Products of the Hessian of a sum over rows with vectors, where H itself would be too large.

Conventions: n rows, c activations a row, q parameters an activation (the intercept first),
θ (c, q); s directions v_j (c, q). With u_j = v_jφ (c,) and the curvature R (c, c) of a row's loss
in its activations, Hv_j = Σ w (R u_j) φᵀ.
"""

from dataclasses import dataclass

import numpy as np

from posteriori.likelihood.softmax import SoftmaxLoss, probabilities
from posteriori.rows.block import Block
from posteriori.statistics.local_quadratic import GatherQuadratic, activations, gradient_of
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
        at = self.at
        if isinstance(at.loss, SoftmaxLoss):
            p = probabilities(a)[:, None, :]
            return p * (moved - (p * moved).sum(axis=2, keepdims=True))
        expected = at.information == "expected"
        r = at.loss.information(a) if expected else at.loss.curvature(a, at.target(block))
        if r.ndim == 1:
            return moved * r[:, None, None]
        return np.einsum("nkl,nsl->nsk", r, moved)
