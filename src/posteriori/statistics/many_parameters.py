"""Losses and information matrices of many sets of parameters in one pass.

Conventions: n rows, m sets of parameters, c activations a row, q parameters an activation (the
intercept first, where there is one), θ (m, c, q). Activations are kept as (c, s, n) for s of the
sets at a time, few enough for them to stay in the cache.

A row adds A ⊗ φφᵀ to the expected information I, and only A depends on the parameters: with the
products of k free columns kept as L pairs i ≤ j, the information of all sets is one matrix product.
A = Σ_e r_e d_e d_eᵀ, with E edges d_e: one activation has one edge, d = 1, and r is its curvature;
K classes have one for each two, as diag(p) - ppᵀ (4.110) is the sum of p_k p_l times the square of
the difference of two activations.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from posteriori.design.columns import Columns
from posteriori.design.matrix import Design
from posteriori.design.standardise import Standard
from posteriori.likelihood.logistic import LogisticLoss, SignedLogisticLoss
from posteriori.likelihood.loss import ClassLoss, Loss
from posteriori.likelihood.softmax import probabilities
from posteriori.rows.block import Block
from posteriori.rows.finite import check_finite
from posteriori.statistics.leverage import softmax_leverage
from posteriori.statistics.local_quadratic import Target
from posteriori.statistics.statistic import Statistic, weights_of
from posteriori.typing import Array, Codes

ROWS = 2048
"""Rows of a block: enough for a product to be fast, few enough for the threads to share them."""

_ROOM = 2**17
"""Activations of one slice of the sets."""

_GROUP = 32
"""Numbers multiplied together before a logarithm is taken of them."""

_LOG2_E = math.log2(math.e)


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
        design = self.standard.design(self.columns.design(block))
        values = np.empty(len(self.thetas))
        gradients = np.empty_like(self.thetas) if self.with_gradients else None
        products, t = BlockProducts(design, block, self.standard.intercept), self.target(block)
        logistic = _LogisticSums.of(self.loss, products, t)
        with np.errstate(over="ignore", invalid="ignore"):
            for part in sets_at_once(self.thetas, design.shape[0]):
                some = self.thetas[part]
                found = logistic(some, self.with_gradients) if logistic is not None else None
                if found is None:
                    found = _pointwise_sums(self.loss, products, t, some, self.with_gradients)
                values[part], slopes = found
                if gradients is not None:
                    gradients[part] = slopes
        if not np.isfinite(values).all():
            check_finite(block, self.columns.schema)
        return ManyLosses(values, gradients)


def sets_at_once(thetas: Array, n_rows: int) -> Iterator[slice]:
    """Slices of the sets (m, c, q) whose activations of so many rows stay in the cache."""
    m, c, _ = thetas.shape
    size = max(1, _ROOM // max(1, c * n_rows))
    return (slice(low, low + size) for low in range(0, m, size))


@dataclass(frozen=True, eq=False)
class BlockProducts:
    """The products of a block's rows with some sets of parameters."""

    design: Design
    block: Block
    intercept: bool

    def times(self, thetas: Array) -> Array:
        """Activations (c, s, n) without the offset, the last axis lying together."""
        s, c, q = thetas.shape
        flat = thetas.transpose(1, 0, 2).reshape(c * s, q)
        a = np.ascontiguousarray(self.design.times(flat[:, int(self.intercept) :].T).T)
        if self.intercept:
            a += flat[:, :1]
        return a.reshape(c, s, -1)

    def transpose_times(self, residual: Array) -> Array:
        """Gradients (s, c, q) of residuals (c, s, n)."""
        c, s, n = residual.shape
        flat, first = residual.reshape(c * s, n), int(self.intercept)
        out = np.empty((c * s, first + self.design.shape[1]))
        out[:, first:] = self.design.transpose_times(flat.T).T
        if self.intercept:
            out[:, 0] = flat.sum(axis=1)
        return out.reshape(c, s, -1).transpose(1, 0, 2)

    def activations(self, thetas: Array) -> Array:
        """The same with the offset."""
        a, offset = self.times(thetas), self.block.offset
        if offset is not None:
            a += offset[None, None] if offset.ndim == 1 else offset.T[:, None]
        return a


def _pointwise_sums(
    loss: Loss | ClassLoss, products: "BlockProducts", t: Array, thetas: Array, with_gradients: bool
) -> tuple[Array, Array | None]:
    """Losses and gradients of some sets, by the values and gradients of the rows of all of them."""
    a, weight = products.activations(thetas), products.block.weight
    c, s, n = a.shape
    flat = a.reshape(c, -1).T if isinstance(loss, ClassLoss) else a.ravel()
    repeated = np.tile(t.T, s).T
    each = loss.value(flat, repeated).reshape(s, n)
    values = each.sum(axis=1) if weight is None else each @ weight
    if not with_gradients:
        return values, None
    residual = loss.gradient(flat, repeated).T.reshape(a.shape)
    residual = residual if weight is None else residual * weight
    return values, products.transpose_times(residual)


class _LogisticSums:
    """Σ ln(1 + eᵃ) - ta, t from zero to one, with one logarithm for many rows.

    The linear part needs Σtφ only, and the derivative of the other is 1 - 1/(1 + eᵃ). Errors are
    those of doubles beside the sum of ln(1 + eᵃ); where that overflows, there is no sum.
    """

    @classmethod
    def of(
        cls, loss: Loss | ClassLoss, products: "BlockProducts", t: Array
    ) -> "_LogisticSums | None":
        """The sums of a logistic loss; None for others."""
        if not isinstance(loss, LogisticLoss):
            return None
        return cls(products, (t + 1) / 2 if isinstance(loss, SignedLogisticLoss) else t)

    def __init__(self, products: "BlockProducts", share: Array) -> None:
        self._products = products
        self._weight, self._offset = products.block.weight, products.block.offset
        weight = weights_of(products.block)
        seen = weight * share
        self._pull, self._rest = products.transpose_times(np.stack([seen, weight - seen])[None])
        self._constant = 0.0 if self._offset is None else float(seen @ self._offset)

    def __call__(self, thetas: Array, with_gradients: bool) -> tuple[Array, Array | None] | None:
        u = self._products.times(_LOG2_E * thetas)
        if self._offset is not None:
            u += _LOG2_E * self._offset
        np.exp2(u, out=u)
        u += 1.0
        values = self._logs(u[0]) - thetas[:, 0] @ self._pull[0] - self._constant
        if not np.isfinite(values).all():
            return None
        if not with_gradients:
            return values, None
        np.divide(1.0, u, out=u)
        if self._weight is not None:
            u *= self._weight
        return values, self._rest - self._products.transpose_times(u)

    def _logs(self, u: Array) -> Array:
        """Σ w ln u (s,)."""
        if self._weight is not None:
            return np.log(u) @ self._weight
        s, n = u.shape
        size = n // _GROUP * _GROUP
        products = np.multiply.reduce(u[:, :size].reshape(s, _GROUP, -1), axis=1)
        return np.log(products).sum(axis=1) + np.log(u[:, size:]).sum(axis=1)


@dataclass(frozen=True, eq=False)
class ManyPoints:
    """Where the information is wanted: `thetas` (m, K, q) in the columns that `standard` sums.

    `free` (k, q) has in its rows what makes the free columns φ of them.
    """

    columns: Columns
    standard: Standard
    loss: Loss | ClassLoss
    thetas: Array
    free: Array

    def products(self, block: Block) -> BlockProducts:
        """Those of the block's rows with parameters."""
        design = self.standard.design(self.columns.design(block))
        return BlockProducts(design, block, self.standard.intercept)

    def pairs(self, products: BlockProducts) -> Array:
        """φ_i φ_j (L, n)."""
        columns = products.times(self.free[:, None])[0]
        i, j = pairs_of(len(columns))
        return columns[i] * columns[j]

    @property
    def n_edges(self) -> int:
        K = self.thetas.shape[1]
        return max(1, K * (K - 1) // 2)


@dataclass(frozen=True, eq=False)
class GatherInformations:
    """The kernel: a block of rows to Σ w r_e φ_i φ_j (m, E, L) of each set."""

    at: ManyPoints

    def __call__(self, block: Block) -> Array:
        products = self.at.products(block)
        pairs = self.at.pairs(products)
        if block.weight is not None:
            pairs *= block.weight
        out = np.empty((len(self.at.thetas), self.at.n_edges, len(pairs)))
        with np.errstate(over="ignore", invalid="ignore"):
            for part in sets_at_once(self.at.thetas, pairs.shape[1]):
                a = products.activations(self.at.thetas[part])
                out[part] = (self._curvatures(a) @ pairs.T).swapaxes(0, 1)
        return out

    def _curvatures(self, a: Array) -> Array:
        """r_e (E, s, n) of activations (K, s, n)."""
        if isinstance(self.at.loss, Loss):
            return self.at.loss.information(a.ravel()).reshape(a.shape)
        p, (first, second) = _probabilities(a), edges_of(len(a))
        return p[first] * p[second]


@dataclass(frozen=True, eq=False)
class GatherSlopes:
    """The kernel: a block of rows to the gradients (m, K, q) of ½ ln|I| of each set.

    `inverses` (m, E, L) has the factors of the pairs of a row in its φᵀ d_eᵀ I⁻¹ d_e φ.
    """

    at: ManyPoints
    inverses: Array

    def __call__(self, block: Block) -> Array:
        products = self.at.products(block)
        pairs = self.at.pairs(products)
        out = np.empty_like(self.at.thetas)
        with np.errstate(over="ignore", invalid="ignore"):
            for part in sets_at_once(self.at.thetas, pairs.shape[1]):
                a = products.activations(self.at.thetas[part])
                lengths = self.inverses[part].swapaxes(0, 1) @ pairs
                slopes = self._slopes(a, lengths)
                if block.weight is not None:
                    slopes = slopes * block.weight
                out[part] = products.transpose_times(slopes)
        return out

    def _slopes(self, a: Array, lengths: Array) -> Array:
        """½ tr(I⁻¹ ∂A/∂a ⊗ φφᵀ) (K, s, n), of d_eᵀ I⁻¹ d_e ⊗ φφᵀ (E, s, n)."""
        if isinstance(self.at.loss, Loss):
            return 0.5 * self.at.loss.information_slope(a.ravel()).reshape(a.shape) * lengths
        K, flat = len(a), a.reshape(len(a), -1)
        distances = np.zeros((K, K, flat.shape[1]))
        first, second = edges_of(K)
        distances[first, second] = distances[second, first] = lengths.reshape(len(first), -1)
        _, slopes = softmax_leverage(probabilities(flat.T), distances)
        return slopes.T.reshape(a.shape)


def pairs_of(k: int) -> tuple[Codes, Codes]:
    """i and j of the pairs of k columns, i ≤ j.

    >>> pairs_of(2)
    (array([0, 0, 1]), array([0, 1, 1]))
    """
    return np.triu_indices(k)


def edges_of(K: int) -> tuple[Codes, Codes]:
    """The two classes of each edge.

    >>> edges_of(3)
    (array([0, 0, 1]), array([1, 2, 2]))
    """
    return np.triu_indices(K, 1)


def _probabilities(a: Array) -> Array:
    """p (K, s, n) of activations (K, s, n)."""
    return probabilities(a.reshape(len(a), -1).T).T.reshape(a.shape)
