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
from scipy.special import expit

from posteriori.errors import DomainError
from posteriori.likelihood.links import Link
from posteriori.likelihood.log_arithmetic import quiet
from posteriori.likelihood.softmax import log_probabilities
from posteriori.linalg import cholesky
from posteriori.posterior.coefficient_table import CoefficientMap
from posteriori.posterior.inference import Inference
from posteriori.rows.block import Block, take_block
from posteriori.typing import Array

_OUTSIDE = 1e-6
"""By how much the activation of a row, its entries being of the size of one, may depend on
directions that are not determined."""

_PART_ENTRIES = 2**20
"""Entries of the widest temporary."""


@dataclass(frozen=True, eq=False)
class ActivationGaussian:
    """The Gaussian of the activations of rows, from that of the parameters.

    `theta` (K, q) is the mean for standardised columns; `root` (K, q, p) has V for each entry
    of it. Of very many parameters that are independent, it has the deviations of the c free vectors
    (c, q).
    """

    coefficient_map: CoefficientMap
    theta: Array
    root: Array

    @classmethod
    def of(cls, coef_map: CoefficientMap, w: Array, root: Array) -> "ActivationGaussian":
        """That of free parameters with mean w (p,) and covariance VVᵀ, V (p, k) being the root."""
        return cls(coef_map, coef_map.coordinates.expand(w), coef_map.expand(root))

    @classmethod
    def independent(
        cls, coef_map: CoefficientMap, w: Array, deviation: Array
    ) -> "ActivationGaussian":
        """That of independent parameters with these standard deviations (p,)."""
        coordinates = coef_map.coordinates
        return cls(coef_map, coordinates.expand(w), deviation.reshape(coordinates.c, -1))

    @property
    def entries(self) -> int:
        """Numbers that a row needs."""
        return len(self.theta) * self.root.shape[-1]

    def mean_and_deviations(self, block: Block) -> tuple[Array, Array]:
        """The means (n, K), and how far activations move along V's columns, D (n, K, p)."""
        design = self.coefficient_map.design(block)
        mean = self.coefficient_map.activations(design, self.theta, block)
        return mean, self.coefficient_map.along(design, self.root)

    def moments(self, block: Block) -> tuple[Array, Array]:
        """Means (n,) and variances (n,) of one activation, or (n, K) and (n, K, K) of more."""
        if self.root.ndim == 2:
            return self._independent_moments(block)
        mean, deviations = self.mean_and_deviations(block)
        if len(self.theta) == 1:
            return mean[:, 0], np.square(deviations).sum(axis=2)[:, 0]
        covariance = deviations @ deviations.swapaxes(1, 2)
        self.coefficient_map.check_doubles(covariance, block)
        return mean, covariance

    def _independent_moments(self, block: Block) -> tuple[Array, Array]:
        coef_map, first = self.coefficient_map, int(self.coefficient_map.standard.intercept)
        design, B, variance = coef_map.design(block), coef_map.coordinates.contrasts, self.root**2
        mean = coef_map.activations(design, self.theta, block)
        each = np.square(design.array()) @ variance[:, first:].T
        each += variance[:, :first].sum(axis=1)
        if len(self.theta) == 1:
            return mean[:, 0], each[:, 0]
        return mean, np.einsum("kc,nc,lc->nkl", B, each, B)


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

    `theta` (K, q, S) has draws of the parameters for standardised columns.
    """

    coefficient_map: CoefficientMap
    theta: Array
    function: Callable[[Array], Array]

    @classmethod
    def of(
        cls, coef_map: CoefficientMap, draws: Array, function: Callable[[Array], Array]
    ) -> "FromDraws":
        """That of draws (S, p) of the free parameters."""
        return cls(coef_map, coef_map.expand(draws.T), function)

    @quiet
    def __call__(self, block: Block) -> Array:
        K, _, S = self.theta.shape
        return np.concatenate([self.function(self._drawn(p)) for p in split_block(block, K * S)])

    def _drawn(self, block: Block) -> Array:
        design = self.coefficient_map.design(block)
        return self.coefficient_map.activations(design, self.theta, block)


def split_block(block: Block, entries: int) -> Iterator[Block]:
    """A block in parts, whose temporaries of `entries` a row are not too many."""
    n, rows = block.X.shape[0], max(1, _PART_ENTRIES // max(entries, 1))
    if n <= rows:
        yield block
        return
    for low in range(0, n, rows):
        yield take_block(block, np.arange(low, min(low + rows, n)))


@dataclass(frozen=True, eq=False)
class MeanInterval:
    """The kernel: a block of rows to the ends (n, 2), or (n, K, 2), of an interval for their means.

    `quantile` is the number of standard errors to either side. The last `n_undetermined` columns
    of the root of `activations` are directions that no row of the fit determines: where they
    matter, errors are infinite.
    """

    activations: ActivationGaussian
    link: Link
    quantile: float
    n_undetermined: int

    @classmethod
    def of(cls, inference: Inference, link: Link, level: float) -> "MeanInterval":
        """That of a fit, for a share `level` of the probability."""
        quantile, root = inference.quantile(level), root_of(inference.free_covariance())
        rest = root[:, :0] if inference.undetermined is None else inference.undetermined
        root = np.column_stack([root, rest])
        activations = ActivationGaussian.of(inference.coefficient_map, inference.w, root)
        return cls(activations, link, quantile, rest.shape[1])

    @quiet
    def __call__(self, block: Block) -> Array:
        parts = split_block(block, self.activations.entries)
        return np.concatenate([self._of_part(part) for part in parts])

    def _of_part(self, block: Block) -> Array:
        a, deviations = self.activations.mean_and_deviations(block)
        is_one = a.shape[1] == 1
        log_odds, slopes = (a, np.ones((len(a), 1, 1))) if is_one else log_odds_of_each(a)
        moved = slopes @ deviations
        p = moved.shape[2] - self.n_undetermined
        away = self.quantile * np.linalg.norm(moved[..., :p], axis=2)
        away[np.linalg.norm(moved[..., p:], axis=2) > _OUTSIDE] = np.inf
        if is_one:
            check_inside(self.link, a[:, 0], block)
            return ends_of_one(self.link, a[:, 0], away[:, 0])
        return cast(Array, expit(np.stack([log_odds - away, log_odds + away], axis=-1)))


def check_inside(link: Link, a: Array, block: Block | None = None) -> None:
    """An error for a row whose activation has no mean by this link."""
    low, high = link.domain
    outside = (a < low) | (a > high)
    if outside.any():
        i = int(outside.argmax())
        row = i if block is None else block.row(i)
        raise DomainError(
            f"Row {row} has the activation {a[i]:.6g}; with this link only those "
            f"{link.domain.words} have a mean.",
            "Drop the row, or fit with a link that takes every activation.",
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
