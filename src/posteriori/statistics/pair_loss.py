"""A loss of the margins that has a minimum where classes overlap, and none where they do not.

Conventions: those of `separation_margins`. Each open pair of margin m adds l(m), and l(-m) too
where its margin must be zero. With l(m) = ln(1 + e^-m) and two classes it is the logistic loss
(4.90); with l(m) = ½ max(0, 1 - m)² it is zero, a finite way out, where all pairs are separated.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.special import expit, log_expit

from posteriori.rows.block import Block
from posteriori.statistics.coordinates import Coordinates, Pairs
from posteriori.statistics.separation_margins import OPEN, PairKernel
from posteriori.statistics.statistic import LARGEST, SMALLEST, Statistic
from posteriori.typing import Array

PointLoss = Callable[[Array], tuple[Array, Array, Array]]
"""Margins to l, its slope and its curvature at each of them."""


def logistic(m: Array) -> tuple[Array, Array, Array]:
    """ln(1 + e^-m)."""
    return -log_expit(m), -expit(-m), expit(m) * expit(-m)


def squared_hinge(m: Array) -> tuple[Array, Array, Array]:
    """½ max(0, 1 - m)²."""
    lacking = np.maximum(1.0 - m, 0.0)
    return lacking**2 / 2, -lacking, (lacking > 0).astype(np.float64)


@dataclass(frozen=True, eq=False)
class PairLoss(Statistic):
    """The loss, its gradient (p, c), its Hessian (pc, pc) if requested, and the range of margins.

    `least` is that of all open pairs; minus infinity if one of them must be zero. `largest` is that
    of the open pairs that may be positive.
    """

    value: float
    gradient: Array
    hessian: Array | None
    least: float = field(metadata=SMALLEST)
    largest: float = field(metadata=LARGEST)

    @property
    def curvature(self) -> Array:
        """The Hessian, which must have been requested."""
        assert self.hessian is not None
        return self.hessian


@dataclass(frozen=True, eq=False)
class GatherPairLoss(PairKernel):
    """The kernel: a block to the `PairLoss` of its open pairs at θ (p, c)."""

    theta: Array
    hessian: bool
    point: PointLoss = logistic

    def _sum(self, block: Block) -> PairLoss:
        pairs, is_open = self.pairs(block)
        short = self.coordinates.shortening(block)
        m = np.where(is_open, self._margins(block, pairs, self.theta), 0.0)
        value, slope, curvature = _both_ways(self.point, m, pairs)
        least = float(m[is_open].min(initial=np.inf))
        if pairs.equal is not None and (pairs.equal & is_open).any():
            least = -np.inf
        design = self.coordinates.design(block)
        along = pairs.sums(slope * is_open * short)
        hessian = None
        if self.hessian:
            hessian = pair_curvature(self.coordinates, block, pairs, curvature * is_open * short**2)
        return PairLoss(
            float(value[is_open].sum()),
            self.coordinates.transpose_times(design, along),
            hessian,
            least,
            float(m[is_open & pairs.unequal()].max(initial=-np.inf)),
        )


@dataclass(frozen=True, eq=False)
class PairHessianProduct(PairKernel):
    """The kernel: the Hessian of the loss at θ, times a direction (p, c)."""

    theta: Array
    direction: Array
    point: PointLoss = logistic

    def _sum(self, block: Block) -> Array:
        pairs, is_open = self.pairs(block)
        short = self.coordinates.shortening(block)
        design, both = self.coordinates.design(block), np.hstack([self.theta, self.direction])
        here, along = np.hsplit(self.coordinates.times(design, both), 2)
        m = np.where(is_open, pairs.margins(here) * short, 0.0)
        change = np.where(is_open, pairs.margins(along) * short, 0.0)
        _, _, curvature = _both_ways(self.point, m, pairs)
        sums = pairs.sums(curvature * change * short)
        return self.coordinates.transpose_times(design, sums)


@dataclass(frozen=True, eq=False)
class MarginSquares(PairKernel):
    """The kernel: Σ over open pairs of the square of the margin along each parameter (p, c)."""

    def _sum(self, block: Block) -> Array:
        pairs, is_open = self.pairs(block)
        times = is_open * self.coordinates.shortening(block) ** 2
        if pairs.n_classes > 2:
            times = times + np.eye(pairs.n_classes)[pairs.own] * times.sum(axis=1, keepdims=True)
        design = self.coordinates.design(block)
        slopes = np.column_stack([design.squares(r) for r in times.T])
        return np.vstack([times.sum(axis=0), slopes]) if self.coordinates.intercept else slopes


def _both_ways(point: PointLoss, m: Array, pairs: Pairs) -> tuple[Array, Array, Array]:
    """Value, slope and curvature at margins (n, q): of l(m) + l(-m) where m must be zero."""
    value, slope, curvature = point(m)
    if pairs.equal is None:
        return value, slope, curvature
    back = [np.where(pairs.equal, part, 0.0) for part in point(-m)]
    return value + back[0], slope - back[1], curvature + back[2]


def pair_curvature(coordinates: Coordinates, block: Block, pairs: Pairs, times: Array) -> Array:
    """Σ over pairs of `times` (n, q) the square of the margin, as a form in θ (pc, pc)."""
    design = coordinates.design(block)

    def form(r: Array) -> Array:
        """Σ r φφᵀ (p, p)."""
        inner = design.sandwich(r)
        if not coordinates.intercept:
            return inner
        edge = design.transpose_times(r[:, None])[:, 0]
        return np.block([[np.full((1, 1), r.sum()), edge[None]], [edge[:, None], inner]])

    if pairs.n_classes == 2:
        return form(times[:, 0])
    K, p = pairs.n_classes, len(coordinates.scale) + coordinates.intercept
    out = np.zeros((p, K, p, K))
    times = np.where(pairs.all(), times, 0.0)
    own = np.eye(K)[pairs.own]
    for a in range(K):
        out[:, a, :, a] = form(times[:, a] + own[:, a] * times.sum(axis=1))
        for b in range(a):
            out[:, a, :, b] = -form(own[:, a] * times[:, b] + own[:, b] * times[:, a])
            out[:, b, :, a] = out[:, a, :, b]
    return out.reshape(p * K, p * K)


@dataclass(frozen=True, eq=False)
class MarginSizes(Statistic):
    """The largest |margin| of the open pairs along a direction, and the largest below `OPEN`."""

    largest: float = field(metadata=LARGEST)
    largest_small: float = field(metadata=LARGEST)


@dataclass(frozen=True, eq=False)
class GatherMarginSizes(PairKernel):
    """The kernel: a block to the `MarginSizes` of its open pairs along a direction θ (p, c)."""

    theta: Array

    def _sum(self, block: Block) -> MarginSizes:
        pairs, is_open = self.pairs(block)
        size = abs(self._margins(block, pairs, self.theta)[is_open])
        return MarginSizes(float(size.max(initial=0.0)), float(size[size < OPEN].max(initial=0.0)))


@dataclass(frozen=True, eq=False)
class SmallMarginForm(PairKernel):
    """The kernel: Σ margin² of the open pairs whose margin along θ is small, as a form (pc, pc)."""

    theta: Array

    def _sum(self, block: Block) -> Array:
        pairs, is_open = self.pairs(block)
        small = is_open & (abs(self._margins(block, pairs, self.theta)) < OPEN)
        short = self.coordinates.shortening(block)
        return pair_curvature(self.coordinates, block, pairs, small * short**2)
