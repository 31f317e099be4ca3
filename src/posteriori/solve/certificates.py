"""Proofs of overlap and of separation by Newton's method, where linear programs are too slow.

Let each open pair, of margin m, add ln(1 + e^-m) to a loss. Let s be the Newton step from any θ.

- If s moves no margin by one or more, the pairs overlap: the slopes λ = 1/(1 + e^m) > 0 of the
  loss, each changed by less than itself, to λ - λ(1 - λ)(move), make Σ λ ∂m/∂θ = 0 with all λ > 0,
  which rules out every direction of margins not negative, some of them positive (Stiemke).
- If all margins are positive at θ, it separates all pairs. Where there are such θ, steps on the
  loss ½ max(0, 1 - m)² come to one of them soon: it has a minimum there, and ln(1 + e^-m) none.
- Where some pairs can be separated, steps come to leave the others alone. What a step is without
  its part in the span of those that it leaves alone separates, if all margins along it say so.

Each is checked by a look at all rows. What is shown by neither is left to the linear programs.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack
from scipy.special import expit

from posteriori.linalg import cholesky, unit_diagonal
from posteriori.rows.rows import Rows
from posteriori.solve.columns_alone import columns_alone
from posteriori.statistics.coordinates import TOUCHING, Coordinates, Sample
from posteriori.statistics.pair_loss import (
    GatherMarginSizes,
    GatherPairLoss,
    MarginSizes,
    MarginSquares,
    PairHessianProduct,
    PairLoss,
    SmallMarginForm,
    logistic,
    squared_hinge,
)
from posteriori.statistics.row_sample import sample_rows
from posteriori.statistics.separation_margins import (
    CLEAR,
    OPEN,
    GatherMargins,
    Margins,
    PairsOf,
    Ray,
)
from posteriori.typing import Array

_STEPS = 40
"""Newton steps before it is left to the programs; ten are usual."""

_FLAT = 1e-9
"""Curvature, beside that of each parameter alone, below which a direction is taken for flat."""

_STILL = 1e-3
"""Moves below this are on their way to zero, if none lies between it and `OPEN`."""

_ENTRIES = 2**22
"""Numbers a block, so that a Hessian is a sum of few terms."""

_SAMPLED = 8
"""Rows a parameter of a subsample, whose overlap is that of all rows."""

_HALVINGS = 30

_WIDE = 4000
"""Unknowns beyond which there is no room for a Hessian."""

_ROUGH = 0.1
"""What conjugate gradients leave of the slope on the way."""

_ROUNDING = 1e-16
"""Error of a slope, for each row, that is rounding."""

_ROUGH_PRODUCTS, _PRODUCTS = 20, 500
"""Products with the Hessian for a step on the way, and for one that is to prove something."""

_HINGE_ROUGH, _HINGE_PRODUCTS = 0.01, 50
"""The same of steps on the squared hinge, few of which lead to its minimum."""

_LITTLE = 1e-3
"""A step that gains less than this share of the squared hinge leads to no zero of it."""


class Verdict(NamedTuple):
    """Whether it is known if some pairs can be separated; if they can, a ray that does it."""

    known: bool
    found: tuple[Ray, Margins] | None = None


def decide(rows: Rows, coordinates: Coordinates, pairs: PairsOf) -> Verdict:
    """Whether some of the open pairs can be separated, none of them wrongly."""
    found = _separates(rows, coordinates, pairs, columns_alone(rows, coordinates, pairs))
    if found.known:
        return found
    p, K = len(coordinates.scale) + coordinates.intercept, pairs.n_classes
    start = np.zeros((p, 1 if K == 2 else K))
    if start.size > min(_WIDE, rows.n_rows * (K - 1)):
        # With half as many unknowns as pairs, there is mostly a way to part them all (Cover 1965).
        found = _HingeDescent(coordinates, pairs, start).run(rows)
        if found.known:
            return found
    if start.size > _WIDE:
        return _WideDescent(coordinates, pairs, start).run(rows)
    descent = _Descent(coordinates, pairs, start)
    many = rows.n_rows // (_SAMPLED * descent.theta.size)
    if many > 1:
        found = descent.run(sample_rows(rows, many)[0])
        if found.known and found.found is None and descent.rank == p * (K - 1):
            return found
    return descent.run(rows)


def _separates(rows: Rows, coordinates: Coordinates, pairs: PairsOf, theta: Array) -> Verdict:
    """That θ separates some pairs and none wrongly, if it does."""
    size = abs(theta).max()
    if not size > 0:
        return Verdict(False)
    theta = theta / size
    margins = rows.map_sum(GatherMargins(coordinates, pairs, theta, -TOUCHING, 1))
    if len(margins.worst.slack) or not margins.n_clear:
        return Verdict(False)
    return Verdict(True, (Ray(coordinates, theta), margins))


class _Descent:
    """Newton's method on the loss of the open pairs, without the directions that move none."""

    _with_hessian, _point = True, staticmethod(logistic)

    def __init__(self, coordinates: Coordinates, pairs: PairsOf, theta: Array) -> None:
        self._coordinates, self._pairs = coordinates, pairs
        self.theta = theta
        self._basis: Array | None = None

    @property
    def rank(self) -> int:
        """Dimensions in which some margin of the rows of the last run moves."""
        return self.theta.size if self._basis is None else self._basis.shape[1]

    def run(self, rows: Rows) -> Verdict:
        """Steps until one of them proves something."""
        here = self._start(rows)
        for _ in range(_STEPS if self.rank else 0):
            if here.least > CLEAR * abs(self.theta).max():
                return _separates(rows, self._coordinates, self._pairs, self.theta)
            step = self._step(rows, here)
            if step is None:
                return Verdict(False)
            found = self._proved(rows, here, step)
            if found.known:
                return found
            there = self._search(rows, here, step)
            if there is None:
                return Verdict(False)
            here = there
        return Verdict(not self.rank)

    def _start(self, rows: Rows) -> PairLoss:
        here = self._look(rows, np.zeros_like(self.theta))
        self._basis = _basis(here.curvature)
        return self._look(rows, self.theta) if self.theta.any() else here

    def _look(self, rows: Rows, theta: Array, hessian: bool = True) -> PairLoss:
        kernel = GatherPairLoss(self._coordinates, self._pairs, theta, hessian, self._point)
        return rows.map_sum(kernel, block_entries=_ENTRIES)

    def _step(self, rows: Rows, here: PairLoss) -> Array | None:
        """-H⁻¹g; None where H is too flat to tell."""
        hessian, slope = here.curvature, here.gradient.ravel()
        if self._basis is not None:
            hessian, slope = self._basis.T @ hessian @ self._basis, self._basis.T @ slope
        factored = factor_of(hessian)
        if factored is None:
            return None
        factor, scale = factored
        step = lapack.dpotrs(factor, -slope / scale, lower=1)[0] / scale
        step = step if self._basis is None else self._basis @ step
        return np.asarray(step).reshape(self.theta.shape)

    def _proved(self, rows: Rows, here: PairLoss, step: Array) -> Verdict:
        """What a step shows: overlap, separation, or nothing."""
        moves = self._moves(rows, step)
        if moves.largest < OPEN:
            return Verdict(True)
        if moves.largest_small < _STILL:
            return _separates(rows, self._coordinates, self._pairs, self._apart(rows, step))
        return Verdict(False)

    def _moves(self, rows: Rows, step: Array) -> MarginSizes:
        return rows.map_sum(GatherMarginSizes(self._coordinates, self._pairs, step))

    def _search(self, rows: Rows, here: PairLoss, step: Array) -> PairLoss | None:
        """The loss a step, or part of it, farther on."""
        slope, length = float(np.sum(here.gradient * step)), 1.0
        for _ in range(_HALVINGS):
            there = self._look(rows, self.theta + length * step, hessian=False)
            if there.value <= here.value + 1e-4 * length * slope:
                self.theta = self.theta + length * step
                return self._look(rows, self.theta) if self._with_hessian else there
            length /= 2
        return None

    def _apart(self, rows: Rows, step: Array) -> Array:
        """The part of a step that moves none of the pairs that it leaves alone."""
        form = rows.map_sum(
            SmallMarginForm(self._coordinates, self._pairs, step), block_entries=_ENTRIES
        )
        span, scale = _spanned(form)
        scaled = scale * step.ravel()
        return np.asarray((scaled - span @ (span.T @ scaled)) / scale).reshape(step.shape)


class _WideDescent(_Descent):
    """The same without a Hessian: steps by conjugate gradients, which know it by its products."""

    _with_hessian = False

    def _start(self, rows: Rows) -> PairLoss:
        squares = rows.map_sum(MarginSquares(self._coordinates, self._pairs)).ravel()
        self._squares = np.where(squares > 0, squares, 1.0)
        return self._look(rows, self.theta, hessian=False)

    def _step(self, rows: Rows, here: PairLoss) -> Array | None:
        enough = _ROUGH * float(np.linalg.norm(here.gradient))
        return self._by_products(rows, here, enough, _ROUGH_PRODUCTS)[0]

    def _by_products(
        self, rows: Rows, here: PairLoss, enough: float, most: int
    ) -> tuple[Array, bool]:
        """-H⁻¹g by some products, and whether no more than `enough` of g is left."""
        shape = self.theta.shape

        def bent(v: Array) -> Array:
            kernel = PairHessianProduct(
                self._coordinates, self._pairs, self.theta, v.reshape(shape), self._point
            )
            return rows.map_sum(kernel).ravel()

        step, done = _conjugate(bent, -here.gradient.ravel(), self._squares, enough, most)
        return step.reshape(shape), done

    def _proved(self, rows: Rows, here: PairLoss, step: Array) -> Verdict:
        """Overlap, if a step that leaves next to nothing of the slope moves no margin far.

        If it leaves e, margins along any θ of size one that separates are below Σ|e|/λ.
        """
        enough = CLEAR / 2 * float(expit(-here.largest)) / np.sqrt(self.theta.size)
        if enough < _ROUNDING * rows.n_rows or self._moves(rows, step).largest >= OPEN:
            return Verdict(False)
        exact, done = self._by_products(rows, here, enough, _PRODUCTS)
        return Verdict(done and self._moves(rows, exact).largest < OPEN)


class _HingeDescent(_WideDescent):
    """The same on the squared hinge, whose minimum is zero if and only if all are separated."""

    _point = staticmethod(squared_hinge)

    def _step(self, rows: Rows, here: PairLoss) -> Array | None:
        enough = _HINGE_ROUGH * float(np.linalg.norm(here.gradient))
        step, _ = self._by_products(rows, here, enough, _HINGE_PRODUCTS)
        return step if -float(np.sum(here.gradient * step)) > _LITTLE * here.value else None

    def _proved(self, rows: Rows, here: PairLoss, step: Array) -> Verdict:
        return Verdict(False)


def interpolating(sample: Sample, coordinates: Coordinates, n_classes: int) -> Array:
    """θ (p, c) of size one along which few rows, if none depends on others, are all separated."""
    shares = sample.support.astype(np.float64)
    if shares.ndim == 1:
        shares = np.eye(n_classes)[sample.support]
    wanted = shares[:, 1:] - shares[:, :1] if n_classes == 2 else shares
    theta = np.linalg.lstsq(coordinates.standardise(sample.rows), wanted)[0]
    return theta / max(abs(theta).max(), np.finfo(np.float64).tiny)


def _conjugate(
    product: Callable[[Array], Array], right: Array, squares: Array, enough: float, most: int
) -> tuple[Array, bool]:
    """x with Hx ≈ right by conjugate gradients, and whether |right - Hx| ≤ enough.

    `squares` is a diagonal that H is like, up to a factor: parameters are taken in its units.
    """
    x, rest, direction = np.zeros_like(right), right, right / squares
    size = float(right @ direction)
    for _ in range(most):
        if float(rest @ rest) <= enough**2:
            return x, True
        bent = product(direction)
        curvature = float(direction @ bent)
        if curvature <= 0:
            break
        x, rest = x + size / curvature * direction, rest - size / curvature * bent
        swept = rest / squares
        size, before = float(rest @ swept), size
        direction = swept + size / before * direction
    return x, False


def factor_of(form: Array) -> tuple[Array, Array] | None:
    """L and D with D L Lᵀ D = form; None where it is flat in some direction."""
    if not np.diagonal(form).min() > 0:
        return None
    matrix, scale = unit_diagonal(form)
    factor = cholesky(matrix)
    if factor is None or np.diagonal(factor).min() ** 2 < _FLAT:
        return None
    return factor, scale


def _basis(form: Array) -> Array | None:
    """Directions (k, r) in which a form is not flat; None where it is in none."""
    if factor_of(form) is not None:
        return None
    span, scale = _spanned(form)
    return span / scale[:, None]


def _spanned(form: Array) -> tuple[Array, Array]:
    """Orthonormal directions (k, r) in which a form is not flat, and the scale (k,) they are in."""
    matrix, scale = unit_diagonal(form)
    values, vectors = np.linalg.eigh(matrix)
    return vectors[:, values > _FLAT], scale
