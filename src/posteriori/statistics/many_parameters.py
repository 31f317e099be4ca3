"""Losses and gradients of many parameter vectors in one pass over the rows.

Conventions: n rows, m sets of parameters, c activations a row, q parameters an activation (the
intercept first, where there is one), θ (m, c, q). Activations are (c, s, n) for s of the sets at a
time, few enough to stay in the cache.
"""

from dataclasses import dataclass

import numpy as np

from posteriori.design.columns import Columns
from posteriori.design.matrix import Design
from posteriori.design.standardise import Standard
from posteriori.likelihood.loss import ClassLoss, Loss
from posteriori.rows.block import Block, check_finite
from posteriori.statistics.local_quadratic import Target, activations, gradient_of
from posteriori.statistics.statistic import Statistic
from posteriori.typing import Array

ROWS = 2048
"""Rows of a block: enough for a fast product, few enough for the threads to share them."""

_ACTIVATIONS = 2**15
"""Activations computed at a time."""


@dataclass(frozen=True, eq=False)
class ManyLosses(Statistic):
    """Σ -ln p(t|a) of each set of parameters (m,), and its gradients (m, c, q) if requested."""

    values: Array
    gradients: Array | None = None


@dataclass(frozen=True, eq=False)
class GatherManyLosses:
    """The kernel: a block of rows to its `ManyLosses` at `thetas`.

    `thetas` (m, c, q) are in the columns that `standard` sums. Values leave out what the loss does.
    """

    columns: Columns
    standard: Standard
    loss: Loss | ClassLoss
    target: Target
    thetas: Array
    with_gradients: bool = False

    def __call__(self, block: Block) -> ManyLosses:
        design, t = self.standard.design(self.columns.design(block)), self.target(block)
        m, c, _ = self.thetas.shape
        size = max(1, _ACTIVATIONS // max(1, c * design.shape[0]))
        with np.errstate(over="ignore", invalid="ignore"):
            parts = [
                self._sums(self.thetas[low : low + size], design, t, block)
                for low in range(0, m, size)
            ]
        values = np.concatenate([value for value, _ in parts])
        if not np.isfinite(values).all():
            check_finite(block, self.columns.schema)
        gradients = [gradient for _, gradient in parts if gradient is not None]
        return ManyLosses(values, np.concatenate(gradients) if gradients else None)

    def _sums(
        self, thetas: Array, design: Design, t: Array, block: Block
    ) -> tuple[Array, Array | None]:
        """Values (s,) and gradients (s, c, q) of some of the sets."""
        s, c, q = thetas.shape
        rows = thetas.transpose(1, 0, 2).reshape(c * s, q)
        a = activations(design, rows, self.standard.intercept, None)
        a = np.ascontiguousarray(a.T).reshape(c, s, -1)
        if block.offset is not None:
            a += block.offset[None, None] if block.offset.ndim == 1 else block.offset.T[:, None]
        flat = a.reshape(c, -1).T if isinstance(self.loss, ClassLoss) else a.ravel()
        repeated = np.tile(t.T, s).T
        if self.with_gradients:
            each, slope = self.loss.value_and_gradient(flat, repeated)
        else:
            each, slope = self.loss.value(flat, repeated), None
        each, weight = each.reshape(s, -1), block.weight
        values = each.sum(axis=1) if weight is None else each @ weight
        if slope is None:
            return values, None
        residual = slope.T.reshape(c * s, -1)
        residual = residual if weight is None else residual * weight
        gradients = gradient_of(design, residual.T, self.standard.intercept)
        return values, gradients.reshape(c, s, q).transpose(1, 0, 2)
