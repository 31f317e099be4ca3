"""Σ w g gᵀ over rows, with g the gradient of a row: what robust standard errors are made of."""

from dataclasses import dataclass

import numpy as np

from posteriori.rows.block import Block
from posteriori.statistics.local_quadratic import GatherQuadratic, activations, blocks_of, bordered
from posteriori.typing import Array


@dataclass(frozen=True, eq=False)
class GatherScores:
    """The kernel: a block of rows to (cq, cq), at the parameters of a `GatherQuadratic`."""

    at: GatherQuadratic

    def __call__(self, block: Block) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            has_intercept = self.at.standard.intercept
            design = self.at.standard.design(self.at.columns.design(block))
            a = activations(design, self.at.theta, has_intercept, block.offset)
            residual = self.at.loss.gradient(a, self.at.target(block))
            squares = (
                residual**2 if residual.ndim == 1 else residual[:, :, None] * residual[:, None]
            )
            if block.weight is not None:
                squares *= block.weight if residual.ndim == 1 else block.weight[:, None, None]
            if residual.ndim == 1:
                return bordered(design, squares, has_intercept)
            return blocks_of(design, squares, has_intercept)
