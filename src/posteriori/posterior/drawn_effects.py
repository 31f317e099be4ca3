"""Means of rows and their slopes in the columns, over draws of the coefficients.

Conventions: n rows, K means, A activations and S draws; otherwise as in `effects`. A draw of the
coefficients gives one of every mean and of every slope, and so of averages and differences.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from posteriori.likelihood.arithmetic import quiet
from posteriori.likelihood.link import Link
from posteriori.posterior.activation_gaussian import FromDraws
from posteriori.posterior.measure import Measure, Moved
from posteriori.posterior.predictive_classes import quantile_ends
from posteriori.posterior.shown import Shown
from posteriori.rows.block import Block
from posteriori.typing import Array, Codes


@dataclass(frozen=True, eq=False)
class DrawnMeasure(Measure):
    """Means by `predictive`, with deviations and quantiles of draws.

    `theta` (A, S, q) has draws of the parameters for standardised columns; `predictive` gives the
    means (n, K) of a block, with the coefficients integrated out.
    """

    shown: Shown
    theta: Array
    link: Link
    level: float
    predictive: Callable[[Block], Array]

    @property
    def entries(self) -> int:
        A, S, _ = self.theta.shape
        return A * A * S

    def means(self, block: Block) -> Moved:
        drawn = FromDraws(self.shown, self.theta, self._drawn_means)(block)
        return Moved(self.predictive(block), drawn)

    def slopes(self, block: Block, places: Codes) -> Moved:
        return self._sloped(self._drawn_firsts(block), places)

    def total_slopes(self, block: Block, places: Codes) -> Moved:
        M = self._drawn_firsts(block)
        M = M.sum(axis=0) if block.weight is None else np.tensordot(block.weight, M, 1)
        return self._sloped(M, places)

    @quiet
    def _sloped(self, M: Array, places: Codes) -> Moved:
        """Slopes from draws of M (..., K, A, S)."""
        unit = self.shown.one_unit[places]
        drawn = np.einsum("...kas,asj->...jks", M, self.theta[..., places]) / unit[:, None, None]
        return Moved(drawn.mean(axis=-1), drawn)

    def _drawn_firsts(self, block: Block) -> Array:
        """Draws (n, K, A, S) of ∂μ/∂a."""
        return FromDraws(self.shown, self.theta, self._firsts)(block)

    @quiet
    def _drawn_means(self, a: Array) -> Array:
        if a.shape[1] == 1:
            return self.link.mean(a.ravel()).reshape(a.shape)
        raised = np.exp(a - a.max(axis=1, keepdims=True))
        return raised / raised.sum(axis=1, keepdims=True)

    @quiet
    def _firsts(self, a: Array) -> Array:
        if a.shape[1] == 1:
            return self.link.slope(a.ravel()).reshape(a.shape)[:, :, None]
        p = self._drawn_means(a)
        away = np.eye(p.shape[1])[None, :, :, None] - p[:, None]
        return p[:, :, None] * away

    def derived(self, found: Moved) -> Moved:
        """By the draws alone: predictive means of many classes have steps of their own."""
        return Moved(found.moved.mean(axis=-1), found.moved)

    def judged(self, found: Moved) -> Array:
        deviation = found.moved.std(axis=-1, ddof=1)
        ends = quantile_ends(found.moved, self.level)
        return np.concatenate([np.stack([found.value, deviation], axis=-1), ends], axis=-1)

    def judged_means(self, found: Moved) -> Array:
        return self.judged(found)
