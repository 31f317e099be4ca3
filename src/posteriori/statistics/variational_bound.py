"""A quadratic bound on the log-likelihood of two or more classes, in expectation over a Gaussian.

Conventions: n rows, K classes, q parameters an activation (the intercept first), θ (c, q) with
c = 1 for two classes and K for more. Pairs (k, l) of classes are those of `combinations`; two
classes have one pair. d (n,) is the mean of a_k - a_l and D (n,) its variance under the Gaussian.

One pair (Jaakkola and Jordan 2000): ln 2cosh(x/2) is concave in x², so that for every ξ

    ln σ(x) ≥ ½x - ln 2cosh(ξ/2) - λ(ξ)(x² - ξ²),    λ(ξ) = tanh(ξ/2) / (4ξ).

In expectation this is largest at ξ² = D + d², where the last term is gone.

K classes, each row by the tighter of two bounds that are quadratic too:

- pairs: p_k ≥ Π_l σ(a_k - a_l) (Titsias 2016), with the bound above for each factor. For two
  classes that is the bound above. It is tight where the row's own class is far ahead.
- Böhning's (1992): the curvature of ln Σ exp(a) is nowhere more than ½(I - 11ᵀ/K). It touches at
  the mean, so that its gap does not grow with n; but a row that is certain is taken for one that
  is not.

Bouchard's bound (2007) is looser than these two together on random problems of three to five
classes, by 0.4 to 23 nats of the evidence.
"""

from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from posteriori.design.matrix import Design
from posteriori.likelihood.loss import ClassLoss, Loss
from posteriori.likelihood.softmax import probabilities
from posteriori.rows.block import Block, check_finite
from posteriori.statistics.local_quadratic import (
    GatherQuadratic,
    LocalQuadratic,
    activations,
    bordered,
    gradient_of,
    weighted,
)
from posteriori.typing import Array

_TINY = 1e-300
"""A number negligible compared to one, whose half is still a normal double."""


class _RowBounds(NamedTuple):
    """Minus the bound of each row (n,), its gradient in the mean activations, (n,) or (n, K), and
    its curvature in the difference of each pair (pairs, n), never negative."""

    value: Array
    slope: Array
    curvature: Array


@dataclass(frozen=True, eq=False)
class GatherBound:
    """The kernel: a block of rows to minus their bound, as a quadratic in the mean.

    `at` has the mean θ, the columns and the loss. `roots` (pairs, m, q) has directions r for each
    pair of classes: D = Σ (rᵀφ)².
    """

    at: GatherQuadratic
    roots: Array

    def __call__(self, block: Block) -> LocalQuadratic:
        at, has_intercept = self.at, self.at.standard.intercept
        with np.errstate(over="ignore", invalid="ignore"):
            design, a = at.design_and_activations(block)
            found = row_bounds(at.loss, a, at.target(block), self._variances(design))
            value, slope = weighted(found.value, block.weight), weighted(found.slope, block.weight)
            gradient = gradient_of(design, slope, has_intercept)
            hessian = self._hessian(design, weighted(found.curvature.T, block.weight).T)
        if not np.isfinite(gradient).all():
            check_finite(block, at.columns.schema)
        return LocalQuadratic(float(value.sum()), gradient, hessian)

    def _variances(self, design: Design) -> Array:
        """D of each pair (pairs, n)."""
        out = np.empty((len(self.roots), design.shape[0]))
        for pair, root in enumerate(self.roots):
            along = activations(design, root, self.at.standard.intercept, None)
            along = along.reshape(design.shape[0], len(root))
            out[pair] = np.einsum("nj,nj->n", along, along)
        return out

    def _hessian(self, design: Design, curvature: Array) -> Array:
        """Σ_pairs (e_k - e_l)(e_k - e_l)ᵀ ⊗ Σ curvature φφᵀ (cq, cq), a sandwich for each pair."""
        c, q = self.at.theta.shape
        if c == 1:
            return bordered(design, curvature[0], self.at.standard.intercept)
        out = np.zeros((c, q, c, q))
        for (k, other), r in zip(combinations(range(c), 2), curvature, strict=True):
            inner = bordered(design, r, self.at.standard.intercept)
            out[k, :, k] += inner
            out[other, :, other] += inner
            out[k, :, other] = out[other, :, k] = -inner
        return out.reshape(c * q, c * q)


def row_bounds(loss: Loss | ClassLoss, a: Array, t: Array, variances: Array) -> _RowBounds:
    """Minus the bound of rows with mean activations a and variances (pairs, n) of their pairs.

    A `Loss` must be that of the logistic sigmoid, however it writes t: its gradient at a = 0 is
    ½ - t. A `ClassLoss` must be that of the softmax function.

    >>> from posteriori.likelihood.binary_losses import LogisticLoss
    >>> row_bounds(LogisticLoss(), np.array([3.0]), np.array([1.0]), np.array([[16.0]])).value
    array([1.00671535])
    """
    if isinstance(loss, Loss):
        lead = -2.0 * loss.gradient(np.zeros(len(a)), t)
        value, slope, curvature = _pair_bound(a, variances[0], np.ones(len(a)), lead)
        return _RowBounds(value, slope, curvature[None])
    by_pairs, fixed = _by_pairs(a, t, variances), _fixed_curvature(loss, a, t, variances)
    better = by_pairs.value < fixed.value
    return _RowBounds(
        np.where(better, by_pairs.value, fixed.value),
        np.where(better[:, None], by_pairs.slope, fixed.slope),
        np.where(better, by_pairs.curvature, fixed.curvature),
    )


def _by_pairs(a: Array, t: Array, variances: Array) -> _RowBounds:
    """-Σ_k t_k Σ_l ln σ(a_k - a_l), each bounded."""
    value, slope, curvature = np.zeros(len(a)), np.zeros(a.shape), np.empty(variances.shape)
    for pair, (k, other) in enumerate(combinations(range(a.shape[1]), 2)):
        own, lead = t[:, k] + t[:, other], t[:, k] - t[:, other]
        found, pair_slope, curvature[pair] = _pair_bound(
            a[:, k] - a[:, other], variances[pair], own, lead
        )
        value += found
        slope[:, k] += pair_slope
        slope[:, other] -= pair_slope
    return _RowBounds(value, slope, curvature)


def _fixed_curvature(loss: ClassLoss, a: Array, t: Array, variances: Array) -> _RowBounds:
    """Böhning's: ½(I - 11ᵀ/K) is 1/(2K) for each pair."""
    curvature = 0.5 / a.shape[1]
    value = loss.value(a, t) + 0.5 * curvature * variances.sum(axis=0)
    return _RowBounds(value, probabilities(a) - t, np.full(variances.shape, curvature))


def _pair_bound(d: Array, variance: Array, own: Array, lead: Array) -> tuple[Array, Array, Array]:
    """own ln 2cosh(ξ/2) - ½ lead d, with its derivative in d, and the curvature 2 own λ(ξ).

    `own` is how much a row belongs to the pair, `lead` how much more to the first of it.
    """
    xi = np.hypot(np.sqrt(variance), d)
    value = own * (0.5 * xi + np.log1p(np.exp(-xi))) - 0.5 * lead * d
    curvature = 2.0 * own * bound_curvature(xi)
    return value, curvature * d - 0.5 * lead, curvature


def bound_curvature(xi: Array) -> Array:
    """λ(ξ) = tanh(ξ/2) / (4ξ), which is 1/8 at zero.

    >>> bound_curvature(np.array([0.0, 1e-9, 2.0, 1e200]))
    array([1.25000000e-001, 1.25000000e-001, 9.51992695e-002, 2.50000000e-201])
    """
    slope = np.divide(np.tanh(xi / 2), xi, out=np.full_like(xi, 0.5), where=xi > _TINY)
    return 0.25 * slope
