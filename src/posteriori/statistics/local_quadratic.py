"""Value, gradient and Hessian of a loss, summed over rows: one step of IRLS (4.92).

Conventions: n rows, c activations a row, q parameters an activation (the intercept first, where
there is one), θ (c, q). Gradients are (c, q), Hessians (cq, cq), activation by activation. R is the
curvature of a row's loss in its activations: (n,), or (n, c, c) of several.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Literal

import numpy as np

from posteriori.design.columns import Columns
from posteriori.design.matrix import Dense, Design
from posteriori.design.standardise import Standard
from posteriori.likelihood.binary_losses import hard
from posteriori.likelihood.loss import ClassLoss, Loss
from posteriori.likelihood.softmax import SoftmaxLoss, probabilities
from posteriori.linalg import transpose_matmul
from posteriori.rows.block import Block, check_finite
from posteriori.statistics.statistic import Statistic, weights_of
from posteriori.typing import Array

Target = Callable[[Block], Array]
"""What the loss receives as t, from the y of a block."""

Information = Literal["observed", "expected"]

_PART_ENTRIES = 2**18
"""Entries of the widest temporary of a Hessian with several activations."""

_WIDE = 32
"""Columns from which on pairs of classes are worth a product each."""


@dataclass(frozen=True, eq=False)
class LocalQuadratic(Statistic):
    """Σ -ln p(t|a), its gradient (c, q), and its Hessian (cq, cq) or the diagonal, if requested."""

    value: float
    gradient: Array
    hessian: Array | None = None

    @property
    def objective(self) -> float:
        """What is reported of an iteration."""
        return self.value


@dataclass(frozen=True, eq=False)
class GatherQuadratic:
    """The kernel: a block of rows to its `LocalQuadratic` at `theta`.

    `theta` is in the columns that `standard` sums. `hessian` asks for the second derivative:
    all of it, its diagonal, or nothing.
    """

    columns: Columns
    standard: Standard
    loss: Loss | ClassLoss
    target: Target
    theta: Array
    hessian: Literal["none", "diagonal", "full"] = "none"
    information: Information = "observed"

    def __call__(self, block: Block) -> LocalQuadratic:
        with np.errstate(over="ignore", invalid="ignore"):
            design, a = self.design_and_activations(block)
            t = self.target(block)
            curved = None
            if self.hessian != "none":
                curved = self._hessian(design, a, t, block.weight)
            value, residual = self.loss.sum_and_gradient(a, t, block.weight)
            gradient = gradient_of(design, residual, self.standard.intercept)
        if not np.isfinite(gradient).all():
            check_finite(block, self.columns.schema)
        return LocalQuadratic(value, gradient, curved)

    def design_and_activations(self, block: Block) -> tuple[Design, Array]:
        """The columns that sums are taken of, and the activations at θ."""
        design = self.standard.design(self.columns.design(block))
        return design, activations(design, self.theta, self.standard.intercept, block.offset)

    def curvature(self, a: Array, t: Array) -> Array:
        """R of each row, expected or observed."""
        expected = self.information == "expected"
        return self.loss.information(a) if expected else self.loss.curvature(a, t)

    def _hessian(self, design: Design, a: Array, t: Array, weight: Array | None) -> Array:
        if isinstance(self.loss, SoftmaxLoss) and self.hessian == "diagonal":
            p = probabilities(a)
            return centred_squares(design, weighted(p * (1 - p), weight), self.standard).ravel()
        if isinstance(self.loss, SoftmaxLoss) and isinstance(design, Dense):
            return _softmax_hessian(design.values, a, weight, self.standard.intercept)
        r = weighted(self.curvature(a, t), weight)
        if self.hessian == "diagonal":
            own = r[:, None] if r.ndim == 1 else np.einsum("nkk->nk", r)
            return centred_squares(design, own, self.standard).ravel()
        return form_of(design, r, self.standard.intercept)


def weighted(values: Array, weight: Array | None) -> Array:
    """Values (n, ...) times the weights of their rows."""
    return values if weight is None else (values.T * weight).T


def centred_squares(design: Design, r: Array, standard: Standard) -> Array:
    """Σ r φ² of each column (c, q) for r (n, c), the intercept first, with φ centred.

    In columns that are not centred the diagonal of a Hessian says little.
    """
    total, squares = r.sum(axis=0)[:, None], design.squares(r).T
    if not standard.moves:
        centre = standard.centre
        squares = squares - centre * (2.0 * design.transpose_times(r).T - total * centre)
    return np.hstack([total, squares]) if standard.intercept else squares


def activations(design: Design, theta: Array, has_intercept: bool, offset: Array | None) -> Array:
    """a = Φw + w₀ + offset: (n,) for one activation, else (n, c)."""
    own = theta[0] if len(theta) == 1 else theta.T
    a = design.times(own[int(has_intercept) :])
    if has_intercept:
        a += own[0]
    if offset is not None:
        a += offset
    return a


def gradient_of(design: Design, residual: Array, has_intercept: bool) -> Array:
    """Φᵀr with the intercept first: (c, q)."""
    first = int(has_intercept)
    c = 1 if residual.ndim == 1 else residual.shape[1]
    out = np.empty((c, first + design.shape[1]))
    out[:, first:] = design.transpose_times(residual).T
    if has_intercept:
        out[:, 0] = np.add.reduce(residual, axis=0)
    return out


def bordered(design: Design, r: Array, has_intercept: bool) -> Array:
    """Φᵀ diag(r) Φ with the intercept first (4.97)."""
    inner = design.sandwich(r) if (r >= 0).all() else design.cross(r, design)
    if not has_intercept:
        return inner
    out = np.empty((len(inner) + 1, len(inner) + 1))
    out[0, 0] = r.sum()
    out[0, 1:] = out[1:, 0] = design.transpose_times(r)
    out[1:, 1:] = inner
    return out


def form_of(design: Design, r: Array, has_intercept: bool) -> Array:
    """The Hessian from r (n,), or from r (n, c, c) by a sandwich for each pair of activations."""
    if r.ndim == 1:
        return bordered(design, r, has_intercept)
    c = r.shape[1]
    q = design.shape[1] + int(has_intercept)
    out = np.empty((c, q, c, q))
    for k in range(c):
        for j in range(k + 1):
            out[k, :, j, :] = bordered(design, r[:, k, j], has_intercept)
            out[j, :, k, :] = out[k, :, j, :].T
    return out.reshape(c * q, c * q)


def _softmax_hessian(X: Array, a: Array, weight: Array | None, has_intercept: bool) -> Array:
    """(4.110) for dense columns: Σ (diag p - ppᵀ) ⊗ φφᵀ, from what pairs of classes share.

    Blocks off the diagonal are -S_jk with S_jk = Σ p_j p_k φφᵀ. As each row of diag p - ppᵀ sums to
    zero, those on it are Σ_j S_jk, j ≠ k: no digit is lost where some p is close to one.
    """
    K, q = a.shape[1], X.shape[1] + int(has_intercept)
    pairs = q >= _WIDE
    shared = np.zeros((K, q, K, q))
    rows = max(1, _PART_ENTRIES // (q if pairs else K * q))
    for low in range(0, len(X), rows):
        part = slice(low, low + rows)
        # Column after column in memory, so that each is one contiguous product.
        phi = np.empty((q, len(a[part])))
        phi[int(has_intercept) :] = X[part].T
        if has_intercept:
            phi[0] = 1.0
        if weight is not None:
            phi *= np.sqrt(weight[part])
        p = np.ascontiguousarray(probabilities(a[part]).T)
        if pairs:
            _add_by_pairs(shared, phi, p)
        else:  # twice the arithmetic in one call
            spread = (p[:, None, :] * phi).reshape(K * q, -1)
            shared += transpose_matmul(spread.T, spread.T).reshape(shared.shape)
    every = np.arange(K)
    shared[every, :, every] = 0.0
    own = shared.sum(axis=2)
    hessian = -shared
    hessian[every, :, every] = (own + own.transpose(0, 2, 1)) / 2
    return hessian.reshape(K * q, K * q)


def _add_by_pairs(shared: Array, phi: Array, p: Array) -> None:
    """Add S_jk for j ≠ k, φ being (q, n) and p (K, n): a symmetric product for each pair."""
    roots, rooted = np.sqrt(p), np.empty_like(phi)
    for k, j in zip(*np.tril_indices(len(p), -1), strict=True):
        np.multiply(phi, roots[k] * roots[j], out=rooted)
        product = transpose_matmul(rooted.T, rooted.T)
        shared[j, :, k] += product
        shared[k, :, j] += product


@dataclass(frozen=True, eq=False)
class GatherProducts:
    """The kernel: Σ φφᵀ (q, q) of the columns that a `Standard` sums, weighted."""

    columns: Columns
    standard: Standard

    def __call__(self, block: Block) -> Array:
        design = self.standard.design(self.columns.design(block))
        return bordered(design, weights_of(block), self.standard.intercept)


@dataclass(frozen=True, eq=False)
class GatherHessianProduct:
    """The kernel: the Hessian times a direction V (c, q), for Hessians too expensive to form.

    `at` has θ, the columns, the loss and which curvature it is; V is in the columns that are
    summed. With u = Vφ (c,), HV = Σ w (Ru) φᵀ. `known` has the design and the curvature of blocks
    by their first row, for further products at the same θ; None keeps nothing.
    """

    at: GatherQuadratic
    direction: Array
    known: dict[int, tuple[Design, Array]] | None = None

    def __call__(self, block: Block) -> Array:
        has_intercept, known = self.at.standard.intercept, self.known
        start = block.start
        if known is not None and start in known:
            design, r = known[start]
        else:
            design, r = self._design_and_curvature(block)
            if known is not None:
                known[start] = design, r
        u = activations(design, self.direction, has_intercept, None)
        if r.ndim == 1:
            products = r * u
        elif r.ndim == 2:  # the probabilities of a softmax, whose curvature is diag p - ppᵀ
            products = r * u
            products -= r * products.sum(axis=1, keepdims=True)
        else:
            products = np.einsum("nkl,nl->nk", r, u)
        return gradient_of(design, weighted(products, block.weight), has_intercept)

    def _design_and_curvature(self, block: Block) -> tuple[Design, Array]:
        """Φ and R of the rows; of a softmax its probabilities (n, c)."""
        design, a = self.at.design_and_activations(block)
        if isinstance(self.at.loss, SoftmaxLoss):
            return design, probabilities(a)
        return design, self.at.curvature(a, self.at.target(block))


@dataclass(frozen=True, eq=False)
class GatherHessianDiagonal:
    """The kernel: the diagonal (m, q) of H in m contrasts of the activations and centred columns.

    `contrasts` B (c, m) makes the activations of m numbers: a = Bv.
    """

    at: GatherQuadratic
    contrasts: Array

    def __call__(self, block: Block) -> Array:
        at, B = self.at, self.contrasts
        design, a = at.design_and_activations(block)
        if isinstance(at.loss, SoftmaxLoss):
            p = probabilities(a)
            r = p @ B**2 - (p @ B) ** 2
        else:
            r = at.curvature(a, at.target(block)).reshape(-1, len(B), len(B))
            r = np.einsum("km,nkl,lm->nm", B, r, B)
        return centred_squares(design, weighted(r, block.weight), at.standard)


@dataclass(frozen=True, eq=False)
class GatherScores:
    """The kernel: Σ w ggᵀ (cq, cq) of the gradients g of the rows, for robust standard errors.

    With `classes`, a row of soft labels t is t_k rows of each class k: it adds Σ_k t_k g_k g_kᵀ.
    """

    at: GatherQuadratic
    classes: bool = True

    def __call__(self, block: Block) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            design, a = self.at.design_and_activations(block)
            t, gradient = self.at.target(block), self.at.loss.gradient
            if not self.classes or hard(t) or (t.ndim == 1 and (abs(t) == 1).all()):
                squares = _square(gradient(a, t))
            else:
                shares = np.array([1 - t, t]) if t.ndim == 1 else t.T
                labels = np.arange(2.0) if t.ndim == 1 else np.eye(len(shares))
                each = (gradient(a, np.broadcast_to(label, t.shape)) for label in labels)
                squares = reduce(np.add, map(weighted, map(_square, each), shares))
            return form_of(design, weighted(squares, block.weight), self.at.standard.intercept)


def _square(gradient: Array) -> Array:
    """g² (n,) or ggᵀ (n, c, c)."""
    return gradient**2 if gradient.ndim == 1 else gradient[:, :, None] * gradient[:, None]
