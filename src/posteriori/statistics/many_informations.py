"""The expected information of many sets of parameters at once, and the slopes of ½ ln|I|.

A row adds A ⊗ φφᵀ to I, and all that depends on the parameters is A: with the products of a row's
columns kept, the information of all sets is one matrix product, and so are their leverages.

Conventions: n rows, m sets of parameters, K activations a row, k free columns φ, and L pairs of
them, i ≤ j. A = Σ_e r_e d_e d_eᵀ, with E edges d_e: one activation has one edge, d = 1, and r is
its curvature; K classes have one for each two, as diag(p) - ppᵀ (4.110) is the sum of p_k p_l times
the square of the difference of two activations.
"""

from dataclasses import dataclass

import numpy as np

from posteriori.design.columns import Columns
from posteriori.design.standard import Standard
from posteriori.likelihood.loss import ClassLoss, Loss
from posteriori.likelihood.softmax import probabilities
from posteriori.rows.block import Block
from posteriori.statistics.leverage import softmax_leverage
from posteriori.statistics.many_losses import Products, sets_at_once
from posteriori.statistics.statistic import Statistic
from posteriori.typing import Array, Codes


@dataclass(frozen=True, eq=False)
class ManySums(Statistic):
    """Sums of each set of parameters, (m, ...)."""

    values: Array

    def __add__(self, other: "ManySums") -> "ManySums":
        return ManySums(self.values + other.values)


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

    def products(self, block: Block) -> Products:
        """Those of the block's rows with parameters."""
        design = self.standard.design(self.columns.design(block))
        return Products(design, block, self.standard.intercept)

    def pairs(self, products: Products) -> Array:
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

    def __call__(self, block: Block) -> ManySums:
        products = self.at.products(block)
        pairs = self.at.pairs(products)
        if block.weight is not None:
            pairs *= block.weight
        out = np.empty((len(self.at.thetas), self.at.n_edges, len(pairs)))
        with np.errstate(over="ignore", invalid="ignore"):
            for part in sets_at_once(self.at.thetas, pairs.shape[1]):
                a = products.activations(self.at.thetas[part])
                out[part] = (self._curvatures(a) @ pairs.T).swapaxes(0, 1)
        return ManySums(out)

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

    def __call__(self, block: Block) -> ManySums:
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
        return ManySums(out)

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
