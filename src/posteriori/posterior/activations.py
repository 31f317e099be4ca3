"""The distribution of the activations of new rows, and intervals for their means.

Conventions: n rows, K activations a row, q parameters each, p free parameters w ~ N(m, C) with
C (p, p) = VVᵀ, and Θ (K, q) for standardised columns. A row φ has the activations a = Θφ plus its
offset. They are Gaussian (4.148)-(4.150): with D (n, K, p), the activations of V's columns,

    E[a] = Θφ + offset,    cov[a] = DDᵀ.

Draws of parameters (S, p) give draws of the activations, (n, K, S).

An interval for the mean of a row is that of a ± zs with s the standard error of its activation.
K classes: the log odds of class k against the rest, η_k = a_k - ln Σ_{j≠k} exp(a_j), have the
derivatives 1 in a_k and -p_j/(1 - p_k) in every other a_j; the interval is that of η_k ± z s_k.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np
from scipy.linalg import null_space
from scipy.special import expit

from posteriori.design.matrix import Design
from posteriori.errors import DomainError, ScaleError
from posteriori.likelihood.links import Link
from posteriori.likelihood.log_arithmetic import quiet
from posteriori.likelihood.softmax import log_probabilities
from posteriori.linalg import cholesky
from posteriori.posterior.coefficient_table import CoefficientMap
from posteriori.posterior.inference import Inference
from posteriori.rows.block import Block, check_finite, take_block
from posteriori.typing import Array

_DECIDED = 1e100
"""Activations of several classes that may as well be this large."""

_OUTSIDE = 1e-6
"""By how much the activation of a row, its entries being of the size of one, may depend on
directions that are not determined."""

_PART_ENTRIES = 2**20
"""Entries of the widest temporary."""


@dataclass(frozen=True, eq=False)
class ActivationGaussian:
    """What the parameters' Gaussian says of the activations of rows.

    `theta` (K, q) is the mean for standardised columns; `root` (K, q, p) has V for each entry
    of it.
    """

    coefficient_map: CoefficientMap
    theta: Array
    root: Array

    @classmethod
    def of(cls, coef_map: CoefficientMap, w: Array, root: Array) -> "ActivationGaussian":
        """That of free parameters with mean w (p,) and covariance VVᵀ, V (p, k) being the root."""
        return cls(coef_map, coef_map.coordinates.expand(w), expand_columns(coef_map, root))

    @property
    def entries(self) -> int:
        """Numbers that a row needs."""
        return len(self.theta) * self.root.shape[-1]

    def moments(self, block: Block) -> tuple[Array, Array]:
        """Means (n,) and variances (n,) of one activation, or (n, K) and (n, K, K) of more."""
        design = standardised(self.coefficient_map, block)
        mean, deviations = self.mean(design, block), self.deviations(design)
        if len(self.theta) == 1:
            return mean[:, 0], np.square(deviations).sum(axis=2)[:, 0]
        # Beyond this all is decided, and products of deviations would leave the doubles.
        size = np.maximum(abs(mean).max(axis=1), abs(deviations).max(axis=(1, 2), initial=0.0))
        unit = np.minimum(1.0, _DECIDED / np.maximum(size, 1.0))
        mean, deviations = mean * unit[:, None], deviations * unit[:, None, None]
        return mean, deviations @ deviations.swapaxes(1, 2)

    def mean(self, design: Design, block: Block) -> Array:
        """The means (n, K) of a block, whose standardised design is at hand."""
        return _mean(self.coefficient_map, self.theta, design, block)

    def deviations(self, design: Design) -> Array:
        """D (n, K, p): how far the activations move along each column of the root."""
        return along(self.coefficient_map, design, self.root)


@dataclass(frozen=True, eq=False)
class DiagonalActivations:
    """The same of very many parameters that are independent.

    `variance` (c, q) is that of the c free vectors.
    """

    coefficient_map: CoefficientMap
    theta: Array
    variance: Array

    @classmethod
    def of(cls, coef_map: CoefficientMap, w: Array, variance: Array) -> "DiagonalActivations":
        """That of free parameters with mean w (p,) and these variances (p,)."""
        coordinates = coef_map.coordinates
        return cls(coef_map, coordinates.expand(w), variance.reshape(coordinates.c, -1))

    @property
    def entries(self) -> int:
        """Numbers that a row needs."""
        return self.theta.shape[1]

    def moments(self, block: Block) -> tuple[Array, Array]:
        """Means (n,) and variances (n,) of one activation, or (n, K) and (n, K, K) of more."""
        design, first = (
            standardised(self.coefficient_map, block),
            int(self.coefficient_map.standard.intercept),
        )
        mean, B = (
            _mean(self.coefficient_map, self.theta, design, block),
            self.coefficient_map.coordinates.contrasts,
        )
        each = np.square(design.array()) @ self.variance[:, first:].T
        each += self.variance[:, :first].sum(axis=1)
        if len(self.theta) == 1:
            return mean[:, 0], each[:, 0]
        return mean, np.einsum("kc,nc,lc->nkl", B, each, B)


@dataclass(frozen=True, eq=False)
class FromGaussian:
    """The kernel: a block of rows to a function (n, ...) of the moments of their activations.

    The function has means and variances (n,) as arguments, or (n, K) and (n, K, K).
    """

    activations: ActivationGaussian | DiagonalActivations
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

    coefficient_map: CoefficientMap
    theta: Array
    function: Callable[[Array], Array]

    @classmethod
    def of(
        cls, coef_map: CoefficientMap, draws: Array, function: Callable[[Array], Array]
    ) -> "FromDraws":
        """That of draws (S, p) of the free parameters."""
        return cls(
            coef_map, np.stack([coef_map.coordinates.expand(w) for w in draws], axis=1), function
        )

    @quiet
    def __call__(self, block: Block) -> Array:
        K, S, _ = self.theta.shape
        return np.concatenate([self.function(self._drawn(p)) for p in split_block(block, K * S)])

    def _drawn(self, block: Block) -> Array:
        K, S, q = self.theta.shape
        design = standardised(self.coefficient_map, block)
        a = _times(self.coefficient_map, design, self.theta.reshape(K * S, q).T)
        return _with_offset(self.coefficient_map, a.reshape(-1, K, S), block)


def expand_columns(coef_map: CoefficientMap, directions: Array) -> Array:
    """Directions (p, k) of the free parameters as (K, q, k) of Θ."""
    expand, coordinates = coef_map.coordinates.expand, coef_map.coordinates
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


def standardised(coef_map: CoefficientMap, block: Block) -> Design:
    """The design of a block in centred, scaled columns."""
    standard = coef_map.standard
    return coef_map.columns.design(block).shifted(standard.centre).scaled(standard.scale)


def along(coef_map: CoefficientMap, design: Design, directions: Array) -> Array:
    """How far activations move (n, K, k) along directions (K, q, k) of Θ."""
    return np.stack([_times(coef_map, design, one) for one in directions], axis=1)


def _times(coef_map: CoefficientMap, design: Design, theta: Array) -> Array:
    """φᵀθ with θ (q,) or (q, k)."""
    if not coef_map.standard.intercept:
        return design.times(theta)
    return design.times(theta[1:]) + theta[0]


def _mean(coef_map: CoefficientMap, theta: Array, design: Design, block: Block) -> Array:
    """The means (n, K) of the activations of Θ (K, q)."""
    a = np.stack([_times(coef_map, design, row) for row in theta], axis=-1)
    return _with_offset(coef_map, a, block)


def _with_offset(coef_map: CoefficientMap, a: Array, block: Block) -> Array:
    """Activations (n, K) or (n, K, S) plus the offsets; an error if one is beyond the doubles."""
    finite = np.isfinite(a).reshape(len(a), -1).all(axis=1)
    if not finite.all():
        check_finite(block, coef_map.columns.schema)
        raise ScaleError(
            f"The activations of row {block.row(int(np.argmin(finite)))} do not fit in a double: "
            "an entry is too large for the coefficients.",
            "Look at its entries; drop the row, or divide the column by a large number.",
        )
    if block.offset is not None:
        a += block.offset.reshape(a.shape[:2] + (1,) * (a.ndim - 2))
    return a


@dataclass(frozen=True, eq=False)
class MeanInterval:
    """The kernel: a block of rows to the ends (n, 2), or (n, K, 2), of an interval for their means.

    `activations` knows their uncertainty; `quantile` says how many standard errors there are to
    either side. `open` (K, q, k), if it is there, has directions that no row of the fit determines:
    where they matter, errors are infinite.
    """

    activations: ActivationGaussian
    link: Link
    quantile: float
    open: Array | None = None

    @classmethod
    def of(cls, inference: Inference, link: Link, level: float) -> "MeanInterval":
        """That of a fit, for a share `level` of the probability."""
        quantile, covariance = inference.quantile(level), inference.free_covariance()
        coef_map, determined = inference.coefficient_map, inference.determined
        undetermined = (
            None if determined is None else expand_columns(coef_map, null_space(determined.T))
        )
        activations = ActivationGaussian.of(coef_map, inference.w, root_of(covariance))
        return cls(activations, link, quantile, undetermined)

    @quiet
    def __call__(self, block: Block) -> Array:
        parts = split_block(block, self.activations.entries)
        return np.concatenate([self._of_part(part) for part in parts])

    def _of_part(self, block: Block) -> Array:
        design = standardised(self.activations.coefficient_map, block)
        a = self.activations.mean(design, block)
        if a.shape[1] == 1:
            away = self._errors(design, np.ones((len(a), 1, 1)))
            check_inside(self.link, a[:, 0], block)
            return ends_of_one(self.link, a[:, 0], away[:, 0])
        log_odds, slopes = log_odds_of_each(a)
        away = self._errors(design, slopes)
        return cast(Array, expit(np.stack([log_odds - away, log_odds + away], axis=-1)))

    def _errors(self, design: Design, slopes: Array) -> Array:
        """`quantile` standard errors (n, k) of functions with these `slopes` (n, k, K) in a."""
        error = self.quantile * np.linalg.norm(slopes @ self.activations.deviations(design), axis=2)
        if self.open is None or not self.open.shape[-1]:
            return error
        moved = slopes @ along(self.activations.coefficient_map, design, self.open)
        return np.where(np.linalg.norm(moved, axis=2) > _OUTSIDE, np.inf, error)


def check_inside(link: Link, a: Array, block: Block) -> None:
    """An error for a row whose activation has no mean by this link."""
    low, high = link.domain
    outside = (a < low) | (a > high)
    if outside.any():
        i = int(outside.argmax())
        raise DomainError(
            f"Row {block.row(i)} has the activation {a[i]:.6g}; with this link only those "
            f"{link.domain.words} have a mean.",
            "The fit does not reach so far: drop the row, or fit with a link that has no ends.",
        )


def ends_of_one(link: Link, a: Array, away: Array) -> Array:
    """The means (n, 2) of activations so far to either side of a (n,)."""
    # The ends of the domain are not in it, but the numbers next to them are.
    low, high = np.nextafter(link.domain, [np.inf, -np.inf])
    ends = np.clip(np.stack([a - away, a + away], axis=1), low, high)
    return np.sort(link.mean(ends.ravel()).reshape(ends.shape), axis=1)


def log_odds_of_each(a: Array) -> tuple[Array, Array]:
    """The log odds of each class against the rest (n, K), and their derivatives in a (n, K, K).

    >>> odds, slopes = log_odds_of_each(np.log([[0.5, 0.25, 0.25]]))
    >>> odds.round(4), slopes[0, 0]
    (array([[ 0.    , -1.0986, -1.0986]]), array([ 1. , -0.5, -0.5]))
    """
    n, K = a.shape
    odds, slopes = np.empty((n, K)), np.empty((n, K, K))
    for k in range(K):
        rest = np.delete(np.arange(K), k)
        shares = log_probabilities(a[:, rest])  # ln p_j/(1 - p_k)
        odds[:, k] = a[:, k] - (a[:, rest[0]] - shares[:, 0])
        slopes[:, k, rest] = -np.exp(shares)
        slopes[:, k, k] = 1.0
    return odds, slopes


def root_of(covariance: Array) -> Array:
    """S with SSᵀ = covariance."""
    lower = cholesky(covariance)
    if lower is not None:
        return lower
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.maximum(values, 0.0))
