"""Laplace's approximation where there are too many parameters for a Hessian.

The precision A = H + P at the optimum is known by its products with vectors, each a pass over the
rows, and by its diagonal. First it is approximated: what H has in common for many parameters goes
into a few directions, and of the rest the diagonal is kept (Nyström's approximation in units in
which A has ones there),

    A ≈ diag(d) + UUᵀ = (VVᵀ)⁻¹,   UUᵀ = HΩ(ΩᵀHΩ)⁻¹ΩᵀH <= H,   d = the diagonal of A - UUᵀ.

VᵀAV is then not far from the identity, and Lanczos' method needs few products with it to have any
function of it. So V(VᵀAV)^-½ε, ε being standard normal, are draws of N(0, A⁻¹) itself, whatever A
is like; and ln|A| = -ln|VVᵀ| + the mean of εᵀ ln(VᵀAV) ε.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from posteriori.posterior.curvature import curvature_diagonal, curvature_times
from posteriori.posterior.drawn_gaussian import DrawnGaussian
from posteriori.posterior.low_rank import LowRankPrecision
from posteriori.posterior.objective import LogPosterior
from posteriori.solve.lanczos import Spectrum, lanczos
from posteriori.typing import Array

_SEED, _DRAW_SEED = 0, 1
"""Of directions, and of draws: an approximation must not be tried by what it is made of."""

_RANK, _LEAST_RANK, _ENTRIES = 256, 32, 2**23
"""Directions, as many as make so many numbers with the parameters; but not too few."""

_ROUNDS = 2
"""Products that turn random directions towards those that the curvature is largest in."""

_AT_ONCE, _FEW = 32, 4
"""Draws that are made together, which bounds the memory for what Lanczos' method keeps; and those
by which the number of products is found."""

_STEPS, _MORE_STEPS = 8, 64
"""Products for each draw; more of them where those before are not enough."""

_CLOSE = 0.02
"""By how much draws may still change with half of the products that were made."""

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


@dataclass(frozen=True, eq=False)
class WideLaplace:
    """The Gaussian of the curvature at the optimum, by draws, and ln|A| with its standard error.

    `settled` says by how much the draws still changed with the last half of the products.
    """

    gaussian: DrawnGaussian
    log_determinant: float
    standard_error: float
    settled: float

    @property
    def is_settled(self) -> bool:
        """Whether more products would hardly change the draws."""
        return self.settled <= _CLOSE


def wide_laplace(objective: LogPosterior, w: Array) -> WideLaplace:
    """The Gaussian of the curvature at w."""
    precision = Precision(objective, w)
    near, p = _nystrom(precision), len(w)

    def times(vectors: Array) -> Array:
        return near.gathered(precision.times(near.spread(vectors)))

    n_draws, random = _number(p), np.random.default_rng(_DRAW_SEED)
    root, logs = np.empty((p, n_draws)), np.empty(n_draws)
    steps, settled = 0, np.inf
    for low in range(0, n_draws, _AT_ONCE):
        part = slice(low, min(low + _AT_ONCE, n_draws))
        white = random.standard_normal((part.stop - low, p))
        if not steps:
            steps, settled = _enough(times, white[:_FEW])
        seen = lanczos(times, white, steps)
        root[:, part] = near.spread(_roots(seen)).T
        logs[part] = [one.of(np.log) for one in seen]
    return WideLaplace(
        DrawnGaussian(w, root / np.sqrt(n_draws)),
        near.log_determinant + float(logs.mean()),
        float(logs.std(ddof=1) / np.sqrt(n_draws)),
        settled,
    )


def _enough(times: Callable[[Array], Array], white: Array) -> tuple[int, float]:
    """How many products a draw needs, and by how much half of them would change it."""
    steps = _STEPS
    while True:
        seen = lanczos(times, white, steps)
        found, before = _roots(seen), _roots([one.first(steps // 2) for one in seen])
        settled = float(np.linalg.norm(found - before) / np.linalg.norm(found))
        if settled <= _CLOSE or steps >= _MORE_STEPS:
            return steps, settled
        steps *= 2


def _roots(seen: list[Spectrum]) -> Array:
    """S^-½ v of each vector that was seen."""
    return np.stack([one.times(lambda values: 1 / np.sqrt(values)) for one in seen])


def _number(p: int) -> int:
    """So many directions, and draws, as there is room for."""
    return max(min(_RANK, _ENTRIES // p), _LEAST_RANK)


def _nystrom(precision: Precision) -> LowRankPrecision:
    """diag(d) + UUᵀ with the diagonal of A."""
    unit = 1 / np.sqrt(precision.diagonal)
    p = len(unit)
    k = min(_number(p), p)

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
    return LowRankPrecision(np.maximum(rest, precision.least), factor)


def _orthonormal(vectors: Array) -> Array:
    return cast(Array, np.linalg.qr(vectors.T)[0]).T


def _symmetric(matrix: Array) -> Array:
    return (matrix + matrix.T) / 2
