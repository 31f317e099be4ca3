"""Value, gradient and Hessian of a loss, summed over rows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from posteriori.design.columns import Columns
from posteriori.design.matrix import Dense, Design
from posteriori.design.standardise import Standard
from posteriori.likelihood.loss import ClassLoss, Loss
from posteriori.likelihood.softmax import SoftmaxLoss, probabilities
from posteriori.linalg import transpose_matmul
from posteriori.rows.block import Block
from posteriori.rows.finite import check_finite
from posteriori.statistics.statistic import Statistic
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
    """Σ -ln p(t|a), its gradient (c, q), and its Hessian (cq, cq) or the diagonal, if asked."""

    value: float
    gradient: Array
    hessian: Array | None = None

    @property
    def objective(self) -> float:
        """What is shown of a pass on the way to the optimum."""
        return self.value

    def __add__(self, other: "LocalQuadratic") -> "LocalQuadratic":
        hessian = None
        with np.errstate(over="ignore", invalid="ignore"):  # infinite outside of a domain
            if self.hessian is not None and other.hessian is not None:
                hessian = self.hessian + other.hessian
            gradient = self.gradient + other.gradient
        return LocalQuadratic(self.value + other.value, gradient, hessian)


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
            design = self.standard.design(self.columns.design(block))
            a = activations(design, self.theta, self.standard.intercept, block.offset)
            t = self.target(block)
            curved = None
            if self.hessian != "none":
                curved = self._hessian(design, a, t, block.weight)
            value, residual = self.loss.sum_and_gradient(a, t, block.weight)
            gradient = gradient_of(design, residual, self.standard.intercept)
        if not np.isfinite(gradient).all():
            check_finite(block, self.columns.schema)
        return LocalQuadratic(value, gradient, curved)

    def _hessian(self, design: Design, a: Array, t: Array, weight: Array | None) -> Array:
        expected = self.information == "expected"
        plain = isinstance(self.loss, SoftmaxLoss) and self.hessian == "full"
        if plain and len(a) and (a == a[:1]).all():  # as at a start without slopes
            return _kronecker_hessian(design, a, weight, self.standard.intercept)
        if plain and isinstance(design, Dense):
            return _softmax_hessian(design.values, a, weight, self.standard.intercept)
        if isinstance(self.loss, SoftmaxLoss) and self.hessian == "diagonal":
            p = probabilities(a)
            return self._diagonal(design, p * (1 - p), weight)
        r = self.loss.information(a) if expected else self.loss.curvature(a, t)
        if weight is not None:
            r *= weight if r.ndim == 1 else weight[:, None, None]
        if self.hessian == "diagonal":
            own = r[:, None] if r.ndim == 1 else np.einsum("nkk->nk", r)
            return self._diagonal(design, own, None)
        if r.ndim == 1:
            return bordered(design, r, self.standard.intercept)
        return blocks_of(design, r, self.standard.intercept)

    def _diagonal(self, design: Design, r: Array, weight: Array | None) -> Array:
        """The diagonal in centred columns, the only ones in which it says much; r is (n, c)."""
        r = r if weight is None else r * weight[:, None]
        return np.concatenate([centred_squares(design, v, self.standard) for v in r.T])


def centred_squares(design: Design, r: Array, standard: Standard) -> Array:
    """Σ r φ² for each column (q,), the intercept first, with φ centred."""
    total, squares = r.sum(), design.squares(r)
    if not standard.moves:
        centre = standard.centre
        squares -= centre * (2.0 * design.transpose_times(r) - total * centre)
    return np.concatenate([np.full(int(standard.intercept), total), squares])


def activations(design: Design, theta: Array, has_intercept: bool, offset: Array | None) -> Array:
    """a = Φw + w₀ + offset: (n,) for one activation, else (n, c)."""
    if len(theta) == 1:
        a = design.times(theta[0, int(has_intercept) :])
        if has_intercept:
            a += theta[0, 0]
    else:
        a = design.times(theta[:, int(has_intercept) :].T)
        if has_intercept:
            a += theta[:, 0]
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


def blocks_of(design: Design, r: Array, has_intercept: bool) -> Array:
    """The Hessian of several activations from r (n, c, c), a sandwich for each pair."""
    c = r.shape[1]
    q = design.shape[1] + int(has_intercept)
    out = np.empty((c, q, c, q))
    for k in range(c):
        for j in range(k + 1):
            out[k, :, j, :] = bordered(design, r[:, k, j], has_intercept)
            out[j, :, k, :] = out[k, :, j, :].T
    return out.reshape(c * q, c * q)


def _kronecker_hessian(
    design: Design, a: Array, weight: Array | None, has_intercept: bool
) -> Array:
    """(4.110) where all rows have the same p: (diag p - ppᵀ) ⊗ Σ φφᵀ."""
    inner = bordered(design, np.ones(len(a)) if weight is None else weight, has_intercept)
    return np.kron(SoftmaxLoss().information(a[:1])[0], inner)


def _softmax_hessian(X: Array, a: Array, weight: Array | None, has_intercept: bool) -> Array:
    """(4.110) for dense columns: Σ (diag p - ppᵀ) ⊗ φφᵀ, from what pairs of classes share."""
    K, q = a.shape[1], X.shape[1] + int(has_intercept)
    add_shared = _one_by_one if q >= _WIDE else _all_at_once
    shared = np.zeros((K, q, K, q))
    rows = max(1, _PART_ENTRIES // (q if add_shared is _one_by_one else K * q))
    for low in range(0, len(X), rows):
        part = slice(low, low + rows)
        # Column after column in memory, so that each is multiplied at a stroke.
        phi = np.empty((q, len(a[part])))
        phi[int(has_intercept) :] = X[part].T
        if has_intercept:
            phi[0] = 1.0
        if weight is not None:
            phi *= np.sqrt(weight[part])
        add_shared(shared, phi, np.ascontiguousarray(probabilities(a[part]).T))
    return _from_shared(shared)


def _one_by_one(shared: Array, phi: Array, p: Array) -> None:
    """Add S_jk = Σ p_j p_k φφᵀ for j < k, each a symmetric product of its own: half the work.

    Here φ is (q, n) and p (K, n).
    """
    roots, rooted = np.sqrt(p), np.empty_like(phi)
    for k, j in zip(*np.tril_indices(len(p), -1), strict=True):
        np.multiply(phi, roots[k] * roots[j], out=rooted)
        shared[j, :, k] += transpose_matmul(rooted.T, rooted.T)


def _all_at_once(shared: Array, phi: Array, p: Array) -> None:
    """The same by one symmetric product: twice the work at a stroke, for few columns."""
    spread = (p[:, None, :] * phi).reshape(-1, p.shape[1])
    shared += transpose_matmul(spread.T, spread.T).reshape(shared.shape)


def _from_shared(shared: Array) -> Array:
    """Blocks -S_jk off the diagonal; as each row of diag p - ppᵀ sums to zero, Σ_j S_jk on it.

    No digit is lost to that where some p is close to one. S_jk is read where j < k, and made as
    symmetric as it is but for rounding.
    """
    K, q = shared.shape[:2]
    out = np.zeros((K, q, K, q))
    for k, j in zip(*np.tril_indices(K, -1), strict=True):
        one = (shared[j, :, k] + shared[j, :, k].T) / 2
        out[k, :, j] = out[j, :, k] = -one
        out[k, :, k] += one
        out[j, :, j] += one
    return out.reshape(K * q, K * q)


@dataclass(frozen=True, eq=False)
class Products(Statistic):
    """Σ φφᵀ (q, q) of the columns that a `Standard` sums, weighted."""

    matrix: Array

    def __add__(self, other: "Products") -> "Products":
        return Products(self.matrix + other.matrix)


@dataclass(frozen=True, eq=False)
class GatherProducts:
    """The kernel: a block of rows to its `Products`."""

    columns: Columns
    standard: Standard

    def __call__(self, block: Block) -> Products:
        design = self.standard.design(self.columns.design(block))
        weight = np.ones(block.X.shape[0]) if block.weight is None else block.weight
        return Products(bordered(design, weight, self.standard.intercept))


@dataclass(frozen=True, eq=False)
class CurvatureTimes(Statistic):
    """Hv_j for each direction (s, c, q)."""

    products: Array

    def __add__(self, other: "CurvatureTimes") -> "CurvatureTimes":
        return CurvatureTimes(self.products + other.products)


@dataclass(frozen=True, eq=False)
class GatherCurvatureTimes:
    """The kernel: a block of rows to its `CurvatureTimes`.

    `at` has θ, the columns, the loss and which curvature it is; `directions` is (s, c, q), in the
    columns that are summed.
    """

    at: GatherQuadratic
    directions: Array

    def __call__(self, block: Block) -> CurvatureTimes:
        at, has_intercept = self.at, self.at.standard.intercept
        s, c, q = self.directions.shape
        design = at.standard.design(at.columns.design(block))
        a = activations(design, at.theta, has_intercept, block.offset)
        moved = activations(design, self.directions.reshape(-1, q), has_intercept, None)
        moved = moved.reshape(-1, s, c)
        bent = self._bent(a, moved, block)
        if block.weight is not None:
            bent *= block.weight[:, None, None]
        found = gradient_of(design, bent.reshape(-1, s * c), has_intercept)
        return CurvatureTimes(found.reshape(s, c, q))

    def _bent(self, a: Array, moved: Array, block: Block) -> Array:
        """Ru of each row and direction (n, s, c)."""
        if isinstance(self.at.loss, SoftmaxLoss):
            p = probabilities(a)[:, None, :]
            return p * (moved - (p * moved).sum(axis=2, keepdims=True))
        r = _curvature(self.at, a, block)
        if r.ndim == 1:
            return moved * r[:, None, None]
        return np.einsum("nkl,nsl->nsk", r, moved)


@dataclass(frozen=True, eq=False)
class GatherCurvatureDiagonal:
    """The kernel: a block of rows to the diagonal of H in contrasts of the activations.

    `contrasts` B (c, m) makes the activations of m: a = Bv. In columns that are not centred one by
    one it is the diagonal for centred ones, as others say little.
    """

    at: GatherQuadratic
    contrasts: Array

    def __call__(self, block: Block) -> CurvatureTimes:
        at, B = self.at, self.contrasts
        design = at.standard.design(at.columns.design(block))
        a = activations(design, at.theta, at.standard.intercept, block.offset)
        if isinstance(at.loss, SoftmaxLoss):
            p = probabilities(a)
            r = p @ B**2 - (p @ B) ** 2
        else:
            r = _curvature(at, a, block)
            r = r[:, None] if r.ndim == 1 else np.einsum("km,nkl,lm->nm", B, r, B)
        if block.weight is not None:
            r = r * block.weight[:, None]
        return CurvatureTimes(
            np.stack([centred_squares(design, v, at.standard) for v in r.T])[None]
        )


def _curvature(at: GatherQuadratic, a: Array, block: Block) -> Array:
    """R of each row: (n,), or (n, c, c) of several activations."""
    expected = at.information == "expected"
    return at.loss.information(a) if expected else at.loss.curvature(a, at.target(block))


@dataclass(frozen=True, eq=False)
class GatherScores:
    """The kernel: a block of rows to (cq, cq), at the parameters of a `GatherQuadratic`."""

    at: GatherQuadratic

    def __call__(self, block: Block) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            has_intercept = self.at.standard.intercept
            design = self.at.standard.design(self.at.columns.design(block))
            a = activations(design, self.at.theta, has_intercept, block.offset)
            residual = self.at.loss.gradient(a, self.at.target(block))
            squares = (
                residual**2 if residual.ndim == 1 else residual[:, :, None] * residual[:, None]
            )
            if block.weight is not None:
                squares *= block.weight if residual.ndim == 1 else block.weight[:, None, None]
            if residual.ndim == 1:
                return bordered(design, squares, has_intercept)
            return blocks_of(design, squares, has_intercept)
