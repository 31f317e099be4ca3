"""The function that a fit makes small: -ln p(t|θ) - ln p(θ), as sums over rows give it.

Conventions: K activations a row (1 for two classes), q parameters each, Θ (K, q) standardised.
Solvers see a vector w (p,) of free parameters, from which `Coordinates` makes Θ.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.linalg import helmert

from posteriori.design.columns import Columns
from posteriori.design.matrix import Design
from posteriori.design.standardise import Standard
from posteriori.errors import ScaleError
from posteriori.likelihood.linear_activations import Linear
from posteriori.likelihood.loss import ClassLoss, Loss
from posteriori.posterior.priors import Penalty
from posteriori.rows.block import Rows
from posteriori.solve.objective import Curvature, Local
from posteriori.statistics.leverage import GatherLeverage, Leverage
from posteriori.statistics.local_quadratic import (
    GatherHessianProduct,
    GatherQuadratic,
    Information,
    Target,
)
from posteriori.statistics.row_sample import split_rows
from posteriori.typing import Array

WIDE = 5000
"""With more free parameters than this the Hessian is too large; its diagonal must do."""

BLOCK_ENTRIES = 2**19
"""Numbers a block: large enough that threads seldom wait, small enough for the second reading
of a block to come from the cache."""

_BLOCKS = 16
"""With more blocks than this they may be twice as large: a block costs some work of its own."""

_HUGE = 1e-4
"""One over the square root of a weight from which on rounding sets the limit."""

_CALL = 2e5
"""What a pass costs however few the rows, in operations."""

_MOST_CURVATURES = 2**22
"""Curvatures of rows that are cached for several products with a Hessian."""

_ELEMENTWISE = 30.0
"""Operations of the exponentials and logarithms of one activation."""

_REUSE, _MATRIX_SPEED = 20, 8
"""A product of two matrices costs as much as this many with a vector, or as one in so many of its
columns where these are more: it is limited by memory first, and by arithmetic then."""


@dataclass(frozen=True, eq=False)
class Coordinates:
    """From free parameters w (p,) to Θ (K, q) and back.

    K classes have c = K - 1 free vectors: Θ = BV with orthonormal contrasts B (K, c), so that
    classes sum to zero and |Θ| = |V|. Where columns depend on others, `basis` (q, k) makes each
    row of V from k free numbers.
    """

    n_activations: int
    q: int
    basis: Array | None = None
    contrasts: Array = field(init=False)
    """B (K, c)."""
    c: int = field(init=False)
    k: int = field(init=False)
    size: int = field(init=False)
    """p = ck, the number of free parameters."""

    def __post_init__(self) -> None:
        K = self.n_activations
        contrasts = np.ones((1, 1)) if K == 1 else np.ascontiguousarray(helmert(K).T)
        k = self.q if self.basis is None else self.basis.shape[1]
        found = {"contrasts": contrasts, "c": max(K - 1, 1), "k": k, "size": max(K - 1, 1) * k}
        self.__dict__.update(found)

    @property
    def shape(self) -> tuple[int, int]:
        """That of Θ."""
        return self.n_activations, self.q

    def vectors(self, w: Array) -> Array:
        """V (c, q), one row a contrast."""
        free = w.reshape(self.c, self.k)
        return free if self.basis is None else free @ self.basis.T

    def expand(self, w: Array) -> Array:
        """Θ (K, q)."""
        return self.contrasts @ self.vectors(w)

    def contract(self, gradient: Array) -> Array:
        """The gradient in w (p,) of one in Θ (K, q)."""
        return self.contract_vectors(self.contrasts.T @ gradient)

    def contract_vectors(self, gradient: Array) -> Array:
        """The gradient in w (p,) of one in V (c, q)."""
        return (gradient if self.basis is None else gradient @ self.basis).ravel()

    def contract_matrix(self, matrix: Array) -> Array:
        """The Hessian in w of one in Θ (Kq, Kq); of a diagonal (Kq,), what of it is diagonal."""
        if matrix.ndim == 1:
            each = (self.contrasts**2).T @ matrix.reshape(-1, self.q)
            return (each if self.basis is None else each @ self.basis**2).ravel()
        for _ in range(2):  # the rows of the matrix, then those of its transpose
            m = matrix.shape[1]
            if self.n_activations > 1:
                stacked = matrix.reshape(self.n_activations, -1)
                matrix = (self.contrasts.T @ stacked).reshape(-1, m)
            if self.basis is not None:
                matrix = (self.basis.T @ matrix.reshape(self.c, self.q, m)).reshape(self.size, m)
            matrix = matrix.T
        return matrix


@dataclass(frozen=True, eq=False)
class LogPosterior:
    """-ln p(t|w) - ln p(w) of rows, in the free parameters w; a solver's `Objective`.

    `factor` multiplies the sum over rows: a subsample stands for all of them. `row_fraction` is the
    part of the rows it has, `mean_weight` that of the rows.
    """

    rows: Rows
    columns: Columns
    standard: Standard
    loss: Loss | ClassLoss
    target: Target
    penalty: Penalty
    coordinates: Coordinates
    tolerance: float
    information: Information = "observed"
    factor: float = 1.0
    row_fraction: float = 1.0
    mean_weight: float = 1.0

    has_exact_hessian: ClassVar[bool] = True

    def __call__(self, w: Array, hessian: Curvature) -> Local:
        found = self.likelihood(w, hessian, self.information)
        value, of_prior = self.penalty.value_and_gradient(self.coordinates.vectors(w))
        gradient = self.factor * found.gradient + self.coordinates.contract_vectors(of_prior)
        curved = None
        if found.hessian is not None:
            curved = self.factor * found.hessian
            self._add_prior_hessian(curved)
        return Local(self.factor * found.value + value, gradient, curved)

    def likelihood(self, w: Array, hessian: Curvature, information: Information) -> Local:
        """The sum over rows alone, without the prior."""
        # A Hessian is enough work for small blocks, which all threads share.
        size = self._block_entries // (4 if hessian == "full" else 1)
        found = self.rows.map_sum(self.kernel(w, hessian, information), block_entries=size)
        with np.errstate(over="ignore", invalid="ignore"):  # infinite outside of a domain
            gradient = self.coordinates.contract(self.standard.inward(found.gradient))
            curved = None if found.hessian is None else self._inward(found.hessian)
        return Local(found.value, gradient, curved)

    def kernel(
        self, w: Array, hessian: Curvature = "none", information: Information = "observed"
    ) -> GatherQuadratic:
        """What is summed over the rows at w."""
        theta = self.standard.outward(self.coordinates.expand(w))
        return GatherQuadratic(
            self.columns, self.standard, self.loss, self.target, theta, hessian, information
        )

    def hessian_product(self, w: Array) -> Callable[[Array], Array]:
        """The map v (p,) to Hv at w, for a Hessian that is too large or too expensive to form."""
        kernel = self.kernel(w, information=self.information)
        few = self.n_rows * self.coordinates.n_activations <= _MOST_CURVATURES
        known: dict[int, tuple[Design, Array]] | None = {} if self.rows.in_memory and few else None

        def times(v: Array) -> Array:
            direction = self.standard.outward(self.coordinates.expand(v))
            found = self.rows.map_sum(
                GatherHessianProduct(kernel, direction, known), block_entries=self._block_entries
            )
            of_prior = self.penalty.times(self.coordinates.vectors(v))
            inward = self.coordinates.contract(self.standard.inward(found))
            return self.factor * inward + self.coordinates.contract_vectors(of_prior)

        return times

    def linear(self, w: Array) -> Linear:
        """The activations that free parameters w give, in the user's units."""
        standard, theta = self.standard, self.coordinates.expand(w)
        with np.errstate(over="ignore"):
            weights = (theta[:, int(standard.intercept) :] / standard.scale).T
        if not np.isfinite(weights).all():
            j = int(np.argmax(~np.isfinite(weights).all(axis=1)))
            raise ScaleError(
                f"The coefficients of {self.columns.as_schema().describe(j)} do not fit in a "
                "double.",
                "Multiply the column by a large number.",
            )
        bias = theta[:, 0] if standard.intercept else np.zeros(len(theta))
        return Linear.about(standard.centre, weights, bias)

    def leverage(self, w: Array, roots: Array, information: Information) -> Leverage:
        """Leverages at w, where rootsᵀ roots, a direction in each row, inverts the information."""
        kernel = GatherLeverage(self.kernel(w, information=information), self.directions(roots))
        return self.rows.map_sum(kernel, block_entries=BLOCK_ENTRIES)

    def directions(self, roots: Array) -> Array:
        """Directions of w (k, p) as those of θ (k, K, q) in the columns that are summed."""
        coordinates = self.coordinates
        vectors = roots.reshape(len(roots), coordinates.c, coordinates.k)
        if coordinates.basis is not None:
            vectors = vectors @ coordinates.basis.T
        return self.standard.outward(coordinates.contrasts @ vectors)

    def _inward(self, hessian: Array) -> Array:
        if hessian.ndim == 1:
            if not self.standard.moves:
                first = np.ones(int(self.standard.intercept))
                scale = np.concatenate([first, self.standard.scale])
                hessian = (hessian.reshape(-1, len(scale)) / scale / scale).ravel()
            return self.coordinates.contract_matrix(hessian)
        return self.coordinates.contract_matrix(self.standard.inward_matrix(hessian))

    def _add_prior_hessian(self, hessian: Array) -> None:
        """Add that of the prior in w to a Hessian, or to its diagonal."""
        one, basis = self.penalty.precision, self.coordinates.basis
        c, k = self.coordinates.c, self.coordinates.k
        if self.penalty.is_joint(c):
            hessian += one if hessian.ndim == 2 else np.diagonal(one)
            return
        if basis is not None:
            one = basis.T @ (one[:, None] * basis if one.ndim == 1 else one @ basis)
        if hessian.ndim == 2 and one.ndim == 2:
            blocks = np.einsum("akal->akl", hessian.reshape(c, k, c, k))  # a view
            blocks += one
            return
        diagonal = hessian if hessian.ndim == 1 else np.einsum("kk->k", hessian)
        diagonal.reshape(c, k)[:] += one if one.ndim == 1 else np.diagonal(one)

    def batches(self, k: int) -> list["LogPosterior"]:
        """The same function on k parts of the rows; on all where a part is no faster to read."""
        rows = split_rows(self.rows, k)
        if len(rows) == 1:
            return [self]
        part = replace(self, factor=self.factor * k, row_fraction=self.row_fraction / k)
        return [replace(part, rows=each) for each in rows]

    @property
    def n_rows(self) -> int:
        return self.rows.n_rows

    @property
    def unit(self) -> float:
        """What standard errors are multiplied by where weights are far from one.

        Small weights make them large, but the answer does not depend on how weights are scaled;
        huge ones make them smaller than what doubles can tell.
        """
        size = math.sqrt(self.mean_weight)
        return max(min(size, 1.0), size * _HUGE)

    @cached_property
    def _block_entries(self) -> int:
        if self.columns.schema.categorical:  # whose products need room for codes and for pairs
            return BLOCK_ENTRIES // 2
        d, K = len(self.columns.schema), self.coordinates.n_activations
        entries = min(max(self.n_rows * d // _BLOCKS, BLOCK_ENTRIES), 2 * BLOCK_ENTRIES)
        # Several activations of a row need room too.
        return entries if K == 1 else entries * d // (d + K)

    @property
    def is_wide(self) -> bool:
        return self.coordinates.size > WIDE

    @cached_property
    def hessian_cost(self) -> float:
        """The operations of a Hessian and its factor over those of a value and gradient."""
        if self.is_wide:
            return np.inf
        K, p, c = self.coordinates.n_activations, self.coordinates.size, self.coordinates.c
        numbers = len(self.columns.schema.numeric)
        factors = len(self.columns.schema.categorical)
        products = numbers * max(min(numbers, _REUSE), numbers / _MATRIX_SPEED)
        pair = products + factors * (factors + 1) / 2 + factors * numbers + _ELEMENTWISE
        entries = (K * self.coordinates.q) ** 2 * _REUSE + p**3 / 3 / _MATRIX_SPEED
        hessian = c * (c + 1) / 2 * pair + entries / self.n_rows
        gradient = K * (4 * (numbers + factors + 1) + _ELEMENTWISE)
        return hessian / (gradient + _CALL / self.n_rows)
