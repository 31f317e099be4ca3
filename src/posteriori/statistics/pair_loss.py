"""A loss that falls as margins grow: with a minimum where pairs overlap, and none where not.

Conventions: those of `statistics.margins`. Each open pair of margin m adds l(m), and l(-m) too
where its margin must be zero. With l(m) = ln(1 + e^-m) and two classes it is the logistic loss
(4.90); with l(m) = ½ max(0, 1 - m)² it is zero, a finite way out, where all pairs are separated.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np
from scipy.special import expit, log_expit

from posteriori.rows.block import Block
from posteriori.statistics.coordinates import Coordinates, Pairs
from posteriori.statistics.separation_margins import OPEN, PairsOf, Ray, pieces
from posteriori.statistics.statistic import Statistic
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
    """The loss, its gradient (p, c), its Hessian (pc, pc) where asked for, and the ends of margins.

    `least` is that of all open pairs; minus infinity if one of them must be zero. `largest` is that
    of the open pairs that may be positive.
    """

    value: float
    gradient: Array
    hessian: Array | None
    least: float
    largest: float

    @property
    def curvature(self) -> Array:
        """The Hessian, where it was asked for."""
        assert self.hessian is not None
        return self.hessian

    def __add__(self, other: "PairLoss") -> "PairLoss":
        both = None
        if self.hessian is not None and other.hessian is not None:
            both = self.hessian + other.hessian
        return PairLoss(
            self.value + other.value,
            self.gradient + other.gradient,
            both,
            min(self.least, other.least),
            max(self.largest, other.largest),
        )


@dataclass(frozen=True, eq=False)
class GatherPairLoss:
    """The kernel: a block to the `PairLoss` of its open pairs at θ (p, c)."""

    coordinates: Coordinates
    pairs: PairsOf
    theta: Array
    hessian: bool
    point: PointLoss = logistic

    def __call__(self, block: Block) -> PairLoss:
        return reduce(add, map(self._loss, pieces(self.coordinates, block)))

    def _loss(self, block: Block) -> PairLoss:
        pairs, is_open = self.pairs(block)
        short = self.coordinates.shortening(block)
        m = np.where(is_open, Ray(self.coordinates, self.theta).margins(block, pairs) * short, 0.0)
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
class GatherBend:
    """The kernel: the Hessian of the loss at θ, times a direction (p, c)."""

    coordinates: Coordinates
    pairs: PairsOf
    theta: Array
    direction: Array
    point: PointLoss = logistic

    def __call__(self, block: Block) -> Array:
        return reduce(add, map(self._bend, pieces(self.coordinates, block)))

    def _bend(self, block: Block) -> Array:
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
class GatherSquares:
    """The kernel: Σ over open pairs of the square of the margin along each parameter (p, c)."""

    coordinates: Coordinates
    pairs: PairsOf

    def __call__(self, block: Block) -> Array:
        return reduce(add, map(self._squares, pieces(self.coordinates, block)))

    def _squares(self, block: Block) -> Array:
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
class Moves(Statistic):
    """The largest |margin| of the open pairs along a direction, and the largest below `OPEN`."""

    largest: float
    largest_small: float

    def __add__(self, other: "Moves") -> "Moves":
        return Moves(max(self.largest, other.largest), max(self.largest_small, other.largest_small))


@dataclass(frozen=True, eq=False)
class GatherMoves:
    """The kernel: a block to the `Moves` of its open pairs along a direction θ (p, c)."""

    coordinates: Coordinates
    pairs: PairsOf
    theta: Array

    def __call__(self, block: Block) -> Moves:
        return reduce(add, map(self._moves, pieces(self.coordinates, block)))

    def _moves(self, block: Block) -> Moves:
        _, size = open_moves(self, block)
        return Moves(float(size.max(initial=0.0)), float(size[size < OPEN].max(initial=0.0)))


@dataclass(frozen=True, eq=False)
class GatherStill:
    """The kernel: Σ margin² of the open pairs that a direction leaves alone, as a form (pc, pc)."""

    coordinates: Coordinates
    pairs: PairsOf
    theta: Array

    def __call__(self, block: Block) -> Array:
        return reduce(add, map(self._form, pieces(self.coordinates, block)))

    def _form(self, block: Block) -> Array:
        pairs, size = open_moves(self, block)
        short = self.coordinates.shortening(block)
        return pair_curvature(
            self.coordinates, block, pairs, ((size >= 0) & (size < OPEN)) * short**2
        )


def open_moves(kernel: GatherMoves | GatherStill, block: Block) -> tuple[Pairs, Array]:
    """The pairs of a block, and |margin| (n, q) along the direction; -1 where they are not open."""
    pairs, is_open = kernel.pairs(block)
    margins = Ray(kernel.coordinates, kernel.theta).margins(block, pairs)
    return pairs, np.where(is_open, abs(margins * kernel.coordinates.shortening(block)), -1.0)
