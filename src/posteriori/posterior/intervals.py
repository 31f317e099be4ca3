"""Intervals for the mean of new rows, from the uncertainty of the coefficients.

Conventions: n rows, K activations a row, q parameters each, p free parameters with covariance C
(p, p) = SSᵀ. A row φ has activations a = Θφ, whose uncertainty is that of Θ alone.

One activation: its standard error s is the length of Sᵀ∂a/∂w, and the interval that of a ± zs.
K classes: the log odds of class k against the rest, η_k = a_k - ln Σ_{j≠k} exp(a_j), have the
derivatives 1 in a_k and -p_j/(1 - p_k) in every other a_j; the interval is that of η_k ± z s_k.
"""

from dataclasses import dataclass
from typing import cast

import numpy as np
from scipy.linalg import null_space
from scipy.special import expit

from posteriori.design.matrix import Design
from posteriori.errors import DomainError
from posteriori.likelihood.arithmetic import quiet
from posteriori.likelihood.domain import Domain
from posteriori.likelihood.link import Link
from posteriori.likelihood.softmax import log_probabilities
from posteriori.linalg import cholesky
from posteriori.posterior.activation_gaussian import (
    ActivationGaussian,
    along,
    expand_columns,
    lengths,
    split_block,
    standardised,
)
from posteriori.posterior.inference import Inference
from posteriori.rows.block import Block
from posteriori.typing import Array

_OUTSIDE = 1e-6
"""By how much the activation of a row, its entries being of the size of one, may depend on
directions that are not determined."""


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
        shown, determined = inference.shown, inference.determined
        undetermined = (
            None if determined is None else expand_columns(shown, null_space(determined.T))
        )
        activations = ActivationGaussian.of(shown, inference.w, root_of(covariance))
        return cls(activations, link, quantile, undetermined)

    @quiet
    def __call__(self, block: Block) -> Array:
        parts = split_block(block, self.activations.entries)
        return np.concatenate([self._of_part(part) for part in parts])

    def _of_part(self, block: Block) -> Array:
        design = standardised(self.activations.shown, block)
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
        error = self.quantile * lengths(slopes @ self.activations.deviations(design))
        if self.open is None or not self.open.shape[-1]:
            return error
        moved = slopes @ along(self.activations.shown, design, self.open)
        return np.where(lengths(moved) > _OUTSIDE, np.inf, error)


def check_inside(link: Link, a: Array, block: Block) -> None:
    """An error for a row whose activation has no mean by this link."""
    low, high = link.domain
    outside = (a < low) | (a > high)
    if outside.any():
        i = int(outside.argmax())
        raise DomainError(
            f"Row {block.row(i)} has the activation {a[i]:.6g}; with this link only those "
            f"{Domain(low, high).words} have a mean.",
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
