"""Intervals for the mean of new rows, from the uncertainty of the coefficients.

Conventions: n rows, K activations a row, q parameters each, p free parameters with covariance C
(p, p) = SSᵀ. A row φ has activations a = Θφ, whose uncertainty is that of Θ alone.

One activation: its standard error s is the length of Sᵀ∂a/∂w, and the interval that of a ± zs.
K classes: the log odds of class k against the rest, η_k = a_k - ln Σ_{j≠k} exp(a_j), have the
derivatives 1 in a_k and -p_j/(1 - p_k) in every other a_j; the interval is that of η_k ± z s_k.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np
from scipy.linalg import null_space
from scipy.special import expit

from posteriori.design.products import Design
from posteriori.errors import DomainError, ScaleError
from posteriori.likelihood.domain import Domain
from posteriori.likelihood.link import Link
from posteriori.likelihood.softmax import log_probabilities
from posteriori.linalg import cholesky
from posteriori.posterior.inference import Inference
from posteriori.posterior.shown import Shown
from posteriori.rows.block import Block, take_block
from posteriori.rows.finite import check_finite
from posteriori.typing import Array

_PART_ENTRIES = 2**20
"""Entries of the widest temporary."""

_OUTSIDE = 1e-6
"""By how much the activation of a row, its entries being of the size of one, may depend on
directions that are not determined."""


@dataclass(frozen=True, eq=False)
class MeanInterval:
    """The kernel: a block of rows to the ends (n, 2), or (n, K, 2), of an interval for their means.

    `theta` (K, q) is for standardised columns; `root` (K, q, p) has S for each entry of it;
    `quantile` says how many standard errors there are to either side. `open` (K, q, k), if it is
    there, has directions that no row of the fit determines: where they matter, errors are infinite.
    """

    shown: Shown
    theta: Array
    root: Array
    link: Link
    quantile: float
    open: Array | None = None

    @classmethod
    def of(cls, inference: Inference, link: Link, level: float) -> "MeanInterval":
        """That of a fit, for a share `level` of the probability."""
        quantile, covariance = inference.quantile(level), inference.free_covariance()
        shown, determined = inference.shown, inference.determined
        expand = shown.coordinates.expand

        def each(directions: Array) -> Array:
            return np.stack([expand(column) for column in directions.T], axis=-1)

        undetermined = None if determined is None else each(null_space(determined.T))
        theta, root = expand(inference.w), each(root_of(covariance))
        return cls(shown, theta, root, link, quantile, undetermined)

    def __call__(self, block: Block) -> Array:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            parts = [self._of_part(part) for part in self._parts(block)]
        return np.concatenate(parts) if len(parts) > 1 else parts[0]

    def _parts(self, block: Block) -> Iterator[Block]:
        n = block.X.shape[0]
        rows = max(1, _PART_ENTRIES // (len(self.theta) * self.root.shape[-1]))
        if n <= rows:
            yield block
            return
        for low in range(0, n, rows):
            yield take_block(block, np.arange(low, min(low + rows, n)))

    def _of_part(self, block: Block) -> Array:
        standard, columns = self.shown.standard, self.shown.columns
        design = columns.design(block).shifted(standard.centre).scaled(standard.scale)
        a = np.stack([self._times(design, row) for row in self.theta], axis=-1)
        if not np.isfinite(a).all():
            check_finite(block, columns.schema)
            raise _beyond_doubles(block.row(int(np.argmin(np.isfinite(a).all(axis=1)))))
        if block.offset is not None:
            a += block.offset.reshape(a.shape)
        if len(self.theta) == 1:
            away = self._errors(design, np.ones((len(a), 1, 1)))
            self._check_inside(a[:, 0], block)
            return self._ends_of_one(a[:, 0], away[:, 0])
        log_odds, slopes = log_odds_of_each(a)
        away = self._errors(design, slopes)
        return cast(Array, expit(np.stack([log_odds - away, log_odds + away], axis=-1)))

    def _times(self, design: Design, theta: Array) -> Array:
        """φᵀθ with θ (q,) or (q, p)."""
        if not self.shown.standard.intercept:
            return design.times(theta)
        return design.times(theta[1:]) + theta[0]

    def _errors(self, design: Design, slopes: Array) -> Array:
        """`quantile` standard errors (n, k) of functions with these `slopes` (n, k, K) in a."""
        error = self.quantile * self._lengths(design, slopes, self.root)
        if self.open is None or not self.open.shape[-1]:
            return error
        return np.where(self._lengths(design, slopes, self.open) > _OUTSIDE, np.inf, error)

    def _lengths(self, design: Design, slopes: Array, directions: Array) -> Array:
        """How far the functions move along all `directions` (K, q, p) together."""
        moved = slopes @ np.stack([self._times(design, one) for one in directions], axis=1)
        size = abs(moved).max(axis=2, initial=0.0)
        # Divided by the largest first: squares leave the doubles long before lengths do.
        unit = np.where((size > 0) & (size < np.inf), size, 1.0)
        lengths = unit * np.linalg.norm(moved / unit[:, :, None], axis=2)
        return np.where(np.isfinite(size), lengths, np.inf)

    def _check_inside(self, a: Array, block: Block) -> None:
        low, high = self.link.domain
        outside = (a < low) | (a > high)
        if outside.any():
            i = int(outside.argmax())
            raise DomainError(
                f"Row {block.row(i)} has the activation {a[i]:.6g}; with this link only those "
                f"{Domain(low, high).words} have a mean.",
                "The fit does not reach so far: drop the row, or fit with a link that has no ends.",
            )

    def _ends_of_one(self, a: Array, away: Array) -> Array:
        # The ends of the domain are not in it, but the numbers next to them are.
        low, high = np.nextafter(self.link.domain, [np.inf, -np.inf])
        ends = np.clip(np.stack([a - away, a + away], axis=1), low, high)
        return np.sort(self.link.mean(ends.ravel()).reshape(ends.shape), axis=1)


def _beyond_doubles(row: int) -> ScaleError:
    return ScaleError(
        f"The activations of row {row} do not fit in a double: an entry is too large for the "
        "coefficients.",
        "Look at its entries; drop the row, or divide the column by a large number.",
    )


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
