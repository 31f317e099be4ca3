"""The distribution of the activations of new rows, from that of the parameters.

Conventions: n rows, K activations a row, q parameters each, p free parameters w ~ N(m, C) with
C (p, p) = VVᵀ, and Θ (K, q) for standardised columns. A row φ has the activations a = Θφ plus its
offset. They are Gaussian (4.148)-(4.150): with D (n, K, p), the activations of V's columns,

    E[a] = Θφ + offset,    cov[a] = DDᵀ.

Draws of parameters (S, p) give draws of the activations, (n, K, S).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from posteriori.design.matrix import Design
from posteriori.errors import ScaleError
from posteriori.likelihood.arithmetic import quiet
from posteriori.posterior.shown import Shown
from posteriori.rows.block import Block, take_block
from posteriori.rows.finite import check_finite
from posteriori.typing import Array

_DECIDED = 1e100
"""Activations of several classes that may as well be this large."""

_PART_ENTRIES = 2**20
"""Entries of the widest temporary."""


@dataclass(frozen=True, eq=False)
class ActivationGaussian:
    """What the parameters' Gaussian says of the activations of rows.

    `theta` (K, q) is the mean for standardised columns; `root` (K, q, p) has V for each entry
    of it.
    """

    shown: Shown
    theta: Array
    root: Array

    @classmethod
    def of(cls, shown: Shown, w: Array, root: Array) -> "ActivationGaussian":
        """That of free parameters with mean w (p,) and covariance VVᵀ, V (p, k) being the root."""
        return cls(shown, shown.coordinates.expand(w), expand_columns(shown, root))

    @property
    def entries(self) -> int:
        """Numbers that a row needs."""
        return len(self.theta) * self.root.shape[-1]

    def moments(self, block: Block) -> tuple[Array, Array]:
        """Means (n,) and variances (n,) of one activation, or (n, K) and (n, K, K) of more."""
        design = standardised(self.shown, block)
        mean, deviations = self.mean(design, block), self.deviations(design)
        if len(self.theta) == 1:
            return mean[:, 0], np.square(lengths(deviations))[:, 0]
        # Beyond this all is decided, and products of deviations would leave the doubles.
        size = np.maximum(abs(mean).max(axis=1), abs(deviations).max(axis=(1, 2), initial=0.0))
        unit = np.minimum(1.0, _DECIDED / np.maximum(size, 1.0))
        mean, deviations = mean * unit[:, None], deviations * unit[:, None, None]
        return mean, deviations @ deviations.swapaxes(1, 2)

    def mean(self, design: Design, block: Block) -> Array:
        """The means (n, K) of a block, whose standardised design is at hand."""
        a = np.stack([_times(self.shown, design, row) for row in self.theta], axis=-1)
        return _with_offset(self.shown, a, block)

    def deviations(self, design: Design) -> Array:
        """D (n, K, p): how far the activations move along each column of the root."""
        return along(self.shown, design, self.root)


@dataclass(frozen=True, eq=False)
class FromGaussian:
    """The kernel: a block of rows to a function (n, ...) of the moments of their activations.

    The function has means and variances (n,) as arguments, or (n, K) and (n, K, K).
    """

    activations: ActivationGaussian
    function: Callable[[Array, Array], Array]

    @quiet
    def __call__(self, block: Block) -> Array:
        parts = split_block(block, self.activations.entries)
        return np.concatenate([self.function(*self.activations.moments(part)) for part in parts])


@dataclass(frozen=True, eq=False)
class FromDraws:
    """The kernel: a block of rows to a function (n, ...) of draws (n, K, S) of their activations.

    `theta` (K, S, q) has draws of the parameters for standardised columns.
    """

    shown: Shown
    theta: Array
    function: Callable[[Array], Array]

    @classmethod
    def of(cls, shown: Shown, draws: Array, function: Callable[[Array], Array]) -> "FromDraws":
        """That of draws (S, p) of the free parameters."""
        return cls(shown, np.stack([shown.coordinates.expand(w) for w in draws], axis=1), function)

    @quiet
    def __call__(self, block: Block) -> Array:
        K, S, _ = self.theta.shape
        return np.concatenate([self.function(self._drawn(p)) for p in split_block(block, K * S)])

    def _drawn(self, block: Block) -> Array:
        K, S, q = self.theta.shape
        design = standardised(self.shown, block)
        a = _times(self.shown, design, self.theta.reshape(K * S, q).T)
        return _with_offset(self.shown, a.reshape(-1, K, S), block)


def expand_columns(shown: Shown, directions: Array) -> Array:
    """Directions (p, k) of the free parameters as (K, q, k) of Θ."""
    expand, coordinates = shown.coordinates.expand, shown.coordinates
    if not directions.shape[1]:
        return np.empty((coordinates.n_activations, coordinates.q, 0))
    return np.stack([expand(column) for column in directions.T], axis=-1)


def split_block(block: Block, entries: int) -> Iterator[Block]:
    """A block in parts, whose temporaries of `entries` a row are not too many."""
    n, rows = block.X.shape[0], max(1, _PART_ENTRIES // max(entries, 1))
    if n <= rows:
        yield block
        return
    for low in range(0, n, rows):
        yield take_block(block, np.arange(low, min(low + rows, n)))


def standardised(shown: Shown, block: Block) -> Design:
    """The design of a block in centred, scaled columns."""
    standard = shown.standard
    return shown.columns.design(block).shifted(standard.centre).scaled(standard.scale)


def along(shown: Shown, design: Design, directions: Array) -> Array:
    """How far activations move (n, K, k) along directions (K, q, k) of Θ."""
    return np.stack([_times(shown, design, one) for one in directions], axis=1)


def lengths(moved: Array) -> Array:
    """The lengths (n, k) of vectors (n, k, p).

    They are divided by their largest entry first: squares leave the doubles long before lengths.

    >>> lengths(np.array([[[3e200, 4e200], [0.0, 0.0]]]))
    array([[5.e+200, 0.e+000]])
    """
    size = abs(moved).max(axis=2, initial=0.0)
    unit = np.where((size > 0) & (size < np.inf), size, 1.0)
    found = unit * np.linalg.norm(moved / unit[:, :, None], axis=2)
    return np.where(np.isfinite(size), found, np.inf)


def _times(shown: Shown, design: Design, theta: Array) -> Array:
    """φᵀθ with θ (q,) or (q, k)."""
    if not shown.standard.intercept:
        return design.times(theta)
    return design.times(theta[1:]) + theta[0]


def _with_offset(shown: Shown, a: Array, block: Block) -> Array:
    """Activations (n, K) or (n, K, S) plus the offsets; an error if one is beyond the doubles."""
    finite = np.isfinite(a).reshape(len(a), -1).all(axis=1)
    if not finite.all():
        check_finite(block, shown.columns.schema)
        raise ScaleError(
            f"The activations of row {block.row(int(np.argmin(finite)))} do not fit in a double: "
            "an entry is too large for the coefficients.",
            "Look at its entries; drop the row, or divide the column by a large number.",
        )
    if block.offset is not None:
        a += block.offset.reshape(a.shape[:2] + (1,) * (a.ndim - 2))
    return a
