"""Laplace's approximation where there are too many parameters for a Hessian.

The precision A = H + P at the optimum is known by its products with vectors, each a pass over the
rows, and by its diagonal. What H has in common for many parameters goes into a few directions, and
of the rest the diagonal is kept (Nyström's approximation in units in which A has ones there):

    A ≈ diag(d) + UUᵀ,   UUᵀ = HΩ(ΩᵀHΩ)⁻¹ΩᵀH <= H,   d = the diagonal of A - UUᵀ >= that of P.

It is A itself where H has no more directions than U, as with few rows. How near it is otherwise,
and ln|A|, are told by Lanczos' method on VᵀAV, with VVᵀ the approximate covariance: that is nearly
the identity, so that few products and few random vectors are enough.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from posteriori.posterior.curvature import curvature_diagonal, curvature_times
from posteriori.posterior.low_rank import LowRankGaussian
from posteriori.posterior.objective import LogPosterior
from posteriori.solve.lanczos import lanczos
from posteriori.typing import Array

_SEED = 0
_RANK, _LEAST_RANK, _ENTRIES = 256, 32, 2**23
"""Directions, as many as make so many numbers with the parameters; but not too few."""

_ROUNDS = 2
"""Products that turn random directions towards those that the curvature is largest in."""

_PROBES, _STEPS = 16, 20
"""Random vectors, and products with each, that tell how near an approximation is."""

_CORRECTIONS, _CLOSE = 3, 0.02
"""How often a diagonal is corrected, until the mean of variances is so near."""

_NOTHING = 1e-12
"""A share of the curvature that is rounding beside the largest."""

_LEAST = 1e-9
"""The least share of a diagonal that is left to it, should rounding leave none."""


@dataclass(frozen=True, eq=False)
class Precision:
    """A = H + P of an objective at w as products with vectors (k, p); and its diagonal."""

    objective: LogPosterior
    w: Array

    def times(self, vectors: Array) -> Array:
        """Av of each (k, p)."""
        return curvature_times(self.objective, self.w, vectors) + self._prior_times(vectors)

    def shared_times(self, vectors: Array) -> Array:
        """(A - diag(base))v of each (k, p)."""
        return self.times(vectors) - self.base * vectors

    def _prior_times(self, vectors: Array) -> Array:
        c, q = self.objective.coordinates.c, self.objective.coordinates.q
        return self.objective.penalty.times(vectors.reshape(-1, c, q)).reshape(vectors.shape)

    @cached_property
    def base(self) -> Array:
        """A diagonal (p,) that the prior surely has; none of a prior that is a matrix."""
        return self.objective.penalty.held(self.objective.coordinates.c)

    @property
    def least(self) -> Array:
        """What is left of the diagonal (p,) at least."""
        return np.maximum(self.base, _LEAST * self.diagonal)

    @cached_property
    def diagonal(self) -> Array:
        """That of A (p,)."""
        prior = self.objective.penalty.diagonal(self.objective.coordinates.c)
        return curvature_diagonal(self.objective, self.w) + prior


@dataclass(frozen=True)
class Nearness:
    """ln|A|, its standard error by random vectors, and how near an approximation of A is.

    width is its standard deviation beside that of A itself, as a root of mean squares over all
    directions: 0.95 if it is too small by 5 %.
    """

    log_determinant: float
    standard_error: float
    width: float


def wide_laplace(objective: LogPosterior, w: Array) -> tuple[LowRankGaussian, Nearness]:
    """The Gaussian of the curvature at w, with a precision of low rank and a diagonal.

    Where columns depend on many others, the diagonal of A says too much of a parameter. So it is
    multiplied by a number that makes the mean of all variances right.
    """
    precision = Precision(objective, w)
    found = _nystrom(precision)
    near = nearness(precision, found)
    for _ in range(_CORRECTIONS):
        if abs(near.width - 1) <= _CLOSE:
            break
        diagonal = np.maximum(found.diagonal * near.width**2, precision.least)
        found = LowRankGaussian(w, diagonal, found.factor)
        near = nearness(precision, found)
    return found, near


def _nystrom(precision: Precision) -> LowRankGaussian:
    """diag(d) + UUᵀ with the diagonal of A."""
    w = precision.w
    unit, p = 1 / np.sqrt(precision.diagonal), len(w)
    k = min(max(min(_RANK, _ENTRIES // p), _LEAST_RANK), p)

    def times(vectors: Array) -> Array:
        return precision.shared_times(vectors * unit) * unit

    directions = np.random.default_rng(_SEED).standard_normal((k, p))
    for _ in range(_ROUNDS):
        directions = times(_orthonormal(directions))
    directions = _orthonormal(directions)
    moved = times(directions)
    values, turned = np.linalg.eigh(_symmetric(moved @ directions.T))
    kept = values > _NOTHING * values.max(initial=0.0)
    factor = (moved.T @ turned[:, kept] / np.sqrt(values[kept])) / unit[:, None]
    rest = precision.diagonal - np.square(factor).sum(axis=1)
    return LowRankGaussian(w, np.maximum(rest, precision.least), factor)


def nearness(precision: Precision, near: LowRankGaussian) -> Nearness:
    """ln|A|, and how near an approximation of A is."""
    p = len(near.mean)
    signs = np.random.default_rng(_SEED).choice([-1.0, 1.0], size=(_PROBES, p))

    def times(vectors: Array) -> Array:
        return near.gathered(precision.times(near.spread(vectors)))

    seen = lanczos(times, signs, _STEPS)
    logs = np.array([one.of(np.log) for one in seen])
    inverse = np.array([one.of(np.reciprocal) for one in seen])
    return Nearness(
        near.log_determinant + float(logs.mean()),
        float(logs.std(ddof=1) / np.sqrt(_PROBES)),
        float(np.sqrt(p / inverse.mean())),
    )


def _orthonormal(vectors: Array) -> Array:
    return cast(Array, np.linalg.qr(vectors.T)[0]).T


def _symmetric(matrix: Array) -> Array:
    return (matrix + matrix.T) / 2
