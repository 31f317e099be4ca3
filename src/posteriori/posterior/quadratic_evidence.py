"""The evidence as a function of prior precisions, where the likelihood is taken for a parabola.

Conventions: p parameters w (p,). The precisions α = exp(ρ) of G groups of them are to be chosen;
`groups` (p,) has the group of each parameter, -1 where its precision is given. -ln p(t|w) is
f + ½wᵀHw - bᵀw. With P = diag α, Σ = (H + P)⁻¹, and m = Σb the most probable w,

    E(ρ) = -f + ½ bᵀΣb + ½ Σ_g n_g ρ_g - ½ ln|H + P|.

J_g picks the n_g parameters of a group.

With one group of slopes s, beside others i whose precision is given, what is left for the slopes is
S = H_ss - H_si (H_ii + P_i)⁻¹ H_is. Its eigenvalues make every further ρ a sum of n_g terms.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from posteriori.linalg import cholesky, unit_diagonal
from posteriori.posterior.priors import Penalty
from posteriori.typing import Array, Codes

_OFF = 1e8
"""A precision this many times what the data say of a coefficient switches it off."""

_LONGEST = 3.0
"""The most that the logarithm of a precision changes in a step."""

_ROUNDING = 2.0**-52

_STILL = 1e-10
_NOTHING = 1e-13
"""A gain in the evidence, beside it, that is rounding."""

_MOST_STEPS = 200
_HALVINGS = 30
_DAMPING = 1e-6


class Precisions(NamedTuple):
    """E at some precisions, its gradient (G,) and Hessian (G, G) in ρ; and m (p,)."""

    value: float
    gradient: Array
    hessian: Array
    mean: Array


class _Parabola(NamedTuple):
    """tilt·δ + ½ δᵀ bend δ, where δ is the way from `centre`."""

    centre: Array
    tilt: Array
    bend: Array

    def value(self, rho: Array) -> float:
        away = rho - self.centre
        return float(self.tilt @ away + 0.5 * away @ self.bend @ away)

    def gradient(self, rho: Array) -> Array:
        return self.tilt + self.bend @ (rho - self.centre)


@dataclass(frozen=True, eq=False)
class QuadraticEvidence:
    """E(ρ). `held` (p, p) is what has been given of the prior's precision, `weakest` the least α.

    >>> one = QuadraticEvidence(np.eye(1), np.array([3.0]), np.zeros((1, 1)), np.array([0]))
    >>> np.exp(one.largest(np.zeros(1))).round(3)  # 1/α = (b/H)² - 1/H
    array([0.125])
    """

    hessian: Array
    linear: Array
    held: Array
    groups: Codes
    weakest: float = 0.0

    @cached_property
    def _members(self) -> Array:
        """One where a parameter is of a group (p, G)."""
        return (self.groups[:, None] == np.arange(self.n_groups)).astype(np.float64)

    @property
    def n_groups(self) -> int:
        return int(self.groups.max(initial=-1)) + 1

    @cached_property
    def even(self) -> Array:
        """The ρ (G,) at which the prior says as much of a group as the data."""
        size = np.where(self.groups >= 0, np.diagonal(self.hessian), 0.0)
        return np.log(np.maximum((self._members * size[:, None]).max(axis=0), 1.0))

    @property
    def highest(self) -> Array:
        """The ρ (G,) at which a group is switched off."""
        return self.even + np.log(_OFF)

    @cached_property
    def _slopes(self) -> "_Slopes | None":
        """The one group by its eigenvalues; None if others have no minimum."""
        return _Slopes.of(self.hessian + self.held, self.linear, self.groups == 0)

    def at(self, rho: Array) -> Precisions | None:
        """None where H + P is not positive definite."""
        if self.n_groups == 1:
            return None if self._slopes is None else self._slopes.at(float(rho[0]))
        return self._at(rho)

    def _at(self, rho: Array) -> Precisions | None:
        alpha = np.exp(rho)
        own = self._members @ alpha
        matrix, scale = unit_diagonal(self.hessian + self.held + np.diag(own))
        lower = cholesky(matrix)
        if lower is None:
            return None
        inverse, _ = lapack.dpotri(lower, lower=1)
        covariance = (np.tril(inverse) + np.tril(inverse, -1).T) / scale / scale[:, None]
        mean = covariance @ self.linear
        size = self._members.sum(axis=0)
        value = 0.5 * float(self.linear @ mean + size @ rho)
        value -= float(np.log(np.diagonal(lower) * scale).sum())
        taken = alpha * (self._members.T @ (mean**2 + np.diagonal(covariance)))
        # α_g J_g m for each group (p, G).
        pulls = self._members * (own * mean)[:, None]
        weighed = own[:, None] * covariance
        traces = self._members.T @ (weighed * weighed.T) @ self._members
        curvature = pulls.T @ covariance @ pulls + 0.5 * traces - 0.5 * np.diag(taken)
        return Precisions(value, 0.5 * (size - taken), curvature, mean)

    def largest(self, rho: Array, tilt: Array | None = None, bend: Array | None = None) -> Array:
        """The ρ (G,) at a maximum of E(ρ) + tilt·δ + ½ δᵀ bend δ, δ being what is new to `rho`."""
        more = _Parabola(
            rho,
            np.zeros(len(rho)) if tilt is None else tilt,
            np.zeros((len(rho), len(rho))) if bend is None else bend,
        )
        here = self.at(rho)
        for _ in range(_MOST_STEPS):
            if here is None:
                return rho
            gradient = here.gradient + more.gradient(rho)
            step = self._step(rho, gradient, here.hessian + more.bend)
            before = here.value + more.value(rho)
            gain = gradient @ step
            if abs(step).max(initial=0.0) <= _STILL or gain <= _NOTHING * (1 + abs(before)):
                return rho
            for _ in range(_HALVINGS):
                there = self.at(rho + step)
                if there is not None and there.value + more.value(rho + step) > before:
                    break
                step = step / 2
            else:
                return rho
            rho, here = rho + step, there
        return rho

    def _step(self, rho: Array, gradient: Array, hessian: Array) -> Array:
        """Uphill, for those groups that are not at an end already."""
        lowest = np.log(self.weakest) if self.weakest else -np.inf
        free = np.flatnonzero(
            ((rho < self.highest) | (gradient < 0)) & ((rho > lowest) | (gradient > 0))
        )
        step = np.zeros(len(rho))
        if len(free):
            found = _uphill(-hessian[np.ix_(free, free)], gradient[free])
            longest = abs(found).max()
            step[free] = found if longest <= _LONGEST else found * (_LONGEST / longest)
        return np.clip(rho + step, lowest, self.highest) - rho


def parabola(
    penalty: Penalty, hessian: Array, linear: Array, groups: Codes, weakest: float
) -> QuadraticEvidence:
    """The evidence with a prior whose precisions are chosen for `groups` (q,), and given else.

    H (cq, cq) and b (cq,) are those of all c vectors.
    """
    c = len(linear) // len(groups)
    given = np.where(groups < 0, penalty.precision, 0.0)
    return QuadraticEvidence(
        hessian, linear, np.diag(np.tile(given, c)), np.tile(groups, c), weakest
    )


@dataclass(frozen=True, eq=False)
class _Slopes:
    """One group: S = Q diag(λ) Qᵀ, what is explained of b_s in its axes (m,), and the others.

    `values` are the λ (m,), `axes` Q (m, m). `others` is (H_ii + P_i)⁻¹ times H_is and b_i, side by
    side; `constant` is the part of E that does not change.
    """

    chosen: NDArray[np.bool_]
    values: Array
    axes: Array
    linear: Array
    others: Array
    constant: float

    @classmethod
    def of(cls, hessian: Array, linear: Array, chosen: NDArray[np.bool_]) -> "_Slopes | None":
        """From b and H with the precisions that are given; None if H_ii has no Cholesky factor."""
        border = np.concatenate([hessian[~chosen][:, chosen], linear[~chosen, None]], axis=1)
        inner = hessian[~chosen][:, ~chosen]
        lower = cholesky(inner) if len(inner) else inner
        if lower is None:
            return None
        others = lapack.dpotrs(lower, border, lower=1)[0] if len(inner) else border
        left = hessian[chosen][:, chosen] - border[:, :-1].T @ others[:, :-1]
        values, axes = np.linalg.eigh(left)
        # What rounding left of directions without curvature.
        values = np.where(abs(values) <= len(values) * _ROUNDING * abs(values).max(), 0.0, values)
        explained = axes.T @ (linear[chosen] - border[:, :-1].T @ others[:, -1])
        constant = 0.5 * float(border[:, -1] @ others[:, -1])
        constant -= float(np.log(np.diagonal(lower)).sum())
        return cls(chosen, values, axes, explained, others, constant)

    def at(self, rho: float) -> Precisions | None:
        alpha = np.exp(rho)
        held = self.values + alpha
        if not (held > 0).all():
            return None
        mean, squares, m = self.linear / held, np.square(self.linear / held), len(held)
        value = 0.5 * float(self.linear @ mean + m * rho - np.log(held).sum()) + self.constant
        slope = 0.5 * (m - alpha * float(squares.sum() + (1 / held).sum()))
        changes = squares * (self.values - alpha) / held + self.values / held / held
        w = np.empty(len(self.chosen))
        w[self.chosen] = slopes = self.axes @ mean
        w[~self.chosen] = self.others[:, -1] - self.others[:, :-1] @ slopes
        curvature = -0.5 * alpha * float(changes.sum())
        return Precisions(value, np.array([slope]), np.array([[curvature]]), w)


def _uphill(curvature: Array, gradient: Array) -> Array:
    """C⁻¹g, with as much of its diagonal on top of C as makes it positive definite."""
    matrix, scale = unit_diagonal(abs(np.diag(np.diagonal(curvature))))
    scale = np.where(np.diagonal(matrix) > 0, scale, 1.0)
    matrix, damping = curvature / scale / scale[:, None], 0.0
    while (lower := cholesky(matrix + damping * np.eye(len(matrix)))) is None:
        damping = max(2 * damping, _DAMPING)
    found, _ = lapack.dpotrs(lower, gradient / scale, lower=1)
    return cast(Array, found / scale)
