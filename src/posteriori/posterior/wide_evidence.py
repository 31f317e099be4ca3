"""Prior precisions chosen by the evidence where there are too many parameters for a Hessian.

One precision: the evidence needs ln|H + αI| and (H + αI)⁻¹ for every α. Lanczos' method has both
from the same products with H; averaged over random signs v, vᵀf(H)v is the trace of f(H)
(Hutchinson; Ubaru, Chen and Saad). In the same way (H + αI)^(-½)v has the leverages of the rows,
by which the Hessian changes with w. One precision a column: by the diagonal of H alone,
α_j = γ_j / w_j² with γ_j = h_j / (h_j + α_j), the share of w_j that the data determine.

Conventions: p free parameters w (p,), m of them slopes, the others intercepts, which are left out:
S = H_ss - H_si (H_ii + P_i)⁻¹ H_is is the curvature that is left for the slopes. With the parabola
that the likelihood is near w, the most probable slopes are (S + αI)⁻¹b.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
from scipy.optimize import minimize_scalar

from posteriori.posterior.chosen_prior import with_precisions
from posteriori.posterior.curvature import curvature_times
from posteriori.posterior.objective import LogPosterior
from posteriori.solve.lanczos import Spectrum, lanczos
from posteriori.typing import Array, Codes

_SEED = 0
_PROBES = 4
_STEPS = 30
_ROUNDS = 12
_CLOSE = 0.02
"""A change of ln α that ends the search."""

_LONGEST = 3.0
"""The most that ln α changes in a step."""

_WEAKEST, _STRONGEST = 1e-12, 1e8
"""The least precision that is tried; and one, over what the data say of a coefficient, that
switches it off."""

WideFit = Callable[[LogPosterior, Array], Array]
"""The minimum of an objective, from a start."""


@dataclass(frozen=True, eq=False)
class SlopeCurvature:
    """S at w as products with vectors of slopes (k, m).

    Each product is a pass over the rows, for all vectors at once.
    """

    objective: LogPosterior
    w: Array

    @cached_property
    def _border(self) -> Array:
        """H_is and H_ii side by side: the rows of H that belong to intercepts."""
        unit = np.zeros((len(self._intercepts), self._p))
        unit[np.arange(len(unit)), self._intercepts] = 1.0
        return self._whole(unit) if len(unit) else unit

    @cached_property
    def _elimination(self) -> Array:
        """(H_ii + P_i)⁻¹ H_is."""
        return cast(Array, np.linalg.solve(self._inner, self._border[:, self._slopes]))

    @property
    def _first(self) -> int:
        return int(self.objective.standard.intercept)

    @property
    def _c(self) -> int:
        return self.objective.coordinates.c

    @property
    def _p(self) -> int:
        return self.objective.coordinates.size

    @cached_property
    def _intercepts(self) -> Codes:
        return np.arange(self._c * self._first) * self.objective.coordinates.q

    @cached_property
    def _slopes(self) -> Codes:
        return np.setdiff1d(np.arange(self._p), self._intercepts)

    @cached_property
    def _inner(self) -> Array:
        """H_ii + P_i."""
        precision = self.objective.penalty.precision[: self._first]
        return self._border[:, self._intercepts] + np.diag(np.tile(precision, self._c))

    def with_intercepts(self, slopes: Array) -> Array:
        """Slopes of each (k, m), with the intercepts that follow them: (k, p)."""
        whole = np.empty((len(slopes), self._p))
        whole[:, self._slopes] = slopes
        whole[:, self._intercepts] = -slopes @ self._elimination.T
        return whole

    def intercept_roots(self) -> Array:
        """Directions (k, p) that make up the inverse of H_ii + P_i."""
        roots = np.zeros((len(self._intercepts), self._p))
        if len(roots):
            lower = np.linalg.cholesky(self._inner)
            roots[:, self._intercepts] = np.linalg.inv(lower)
        return roots

    def times(self, vectors: Array) -> Array:
        """Sv of each (k, m)."""
        whole = np.zeros((len(vectors), self._p))
        whole[:, self._slopes] = vectors
        found = self._whole(whole)
        return found[:, self._slopes] - found[:, self._intercepts] @ self._elimination

    def _whole(self, vectors: Array) -> Array:
        """Hv of each (k, p)."""
        return curvature_times(self.objective, self.w, vectors)

    def pull(self) -> Array:
        """b (m,): were the likelihood a parabola, its slopes would be (S + αI)⁻¹b."""
        gradient = self.objective.likelihood(self.w, "none", "observed").gradient
        found = self._whole(self.w[None, :])[0] - self.objective.factor * gradient
        return cast(Array, found[self._slopes] - found[self._intercepts] @ self._elimination)


@dataclass(frozen=True, eq=False)
class WideChoice:
    """The objective with the precisions chosen, its minimum w, and how they were found."""

    objective: LogPosterior
    w: Array
    how: str


@dataclass(frozen=True, eq=False)
class _Place:
    """A precision, w, and what vectors see of the curvature there: b first, then random signs."""

    curvature: SlopeCurvature
    rho: float
    fit: Spectrum
    traces: list[Spectrum]

    @classmethod
    def at(cls, objective: LogPosterior, w: Array, rho: float, signs: Array) -> "_Place":
        """By products with the curvature at w."""
        curvature = SlopeCurvature(objective, w)
        fit, *traces = lanczos(curvature.times, np.vstack([curvature.pull(), signs]), _STEPS)
        return cls(curvature, rho, fit, traces)

    @property
    def m(self) -> int:
        """The number of slopes."""
        return self.fit.basis.shape[1]

    @cached_property
    def even(self) -> float:
        """The ρ at which the prior says as much of some direction as the data."""
        return float(np.log(max(*(one.values.max() for one in self.traces), 1.0)))

    def foretold(self, rho: float) -> float:
        """The evidence at ρ up to a constant, were the likelihood the parabola that it is here."""
        explained = self.fit.of(lambda values: 1 / (values + np.exp(rho)))
        found = [one.of(lambda values: np.log(values + np.exp(rho))) for one in self.traces]
        return 0.5 * (explained + self.m * rho - float(np.mean(found)))

    def slope(self, rho: float) -> float:
        """Its derivative."""
        alpha = np.exp(rho)
        squares = self.fit.of(lambda values: 1 / (values + alpha) ** 2)
        found = [one.of(lambda values: 1 / (values + alpha)) for one in self.traces]
        return float(0.5 * (self.m - alpha * (squares + np.mean(found))))

    def best(self, tilt: float = 0.0) -> float:
        """The ρ of the greatest evidence that is foretold, with `tilt` on top of its slope."""
        found = minimize_scalar(
            lambda rho: -self.foretold(rho) - tilt * rho,
            bounds=(np.log(_WEAKEST), np.log(_STRONGEST) + self.even),
            method="bounded",
            options={"xatol": _CLOSE / 10},
        )
        return float(found.x)

    def tilt(self) -> float:
        """-uᵀ dw/dρ: what the change of the Hessian adds to the slope of the evidence, w being the
        minimum. The leverages are those that the random vectors see."""
        objective, alpha = self.curvature.objective, np.exp(self.rho)
        roots = np.stack(
            [one.times(lambda values: (values + alpha) ** -0.5) for one in self.traces]
        )
        whole = self.curvature.with_intercepts(roots / np.sqrt(len(roots)))
        whole = np.concatenate([whole, self.curvature.intercept_roots()])
        found = objective.leverage(self.curvature.w, whole, "observed").gradient
        u = objective.factor * objective.coordinates.contract(objective.standard.inward(found))
        moved = self.fit.times(lambda values: alpha / (values + alpha) ** 2)
        return float(self.curvature.with_intercepts(moved[None, :])[0] @ u)


def choose_one(
    objective: LogPosterior, start: Array, groups: Codes, fit: WideFit, weakest: float
) -> WideChoice:
    """The precision of all slopes with the greatest evidence, by stochastic traces.

    The first is the best for the parabola that the likelihood is at the start, the second for that
    at the first, with the tilt that the change of its Hessian adds to the slope. Then the secant
    method finds where the slope is zero. All places have the same random signs, so that these do
    not blur their differences.
    """
    first = int(objective.standard.intercept)
    m = objective.coordinates.c * (objective.coordinates.q - first)
    signs = np.random.default_rng(_SEED).choice([-1.0, 1.0], size=(_PROBES, m))
    lowest = float(np.log(max(weakest, _WEAKEST)))
    here = _Place.at(objective, start, float(np.log(objective.penalty.precision[first])), signs)
    best, w, seen = max(min(here.best(), here.even), lowest), start, _Slopes()
    for _ in range(_ROUNDS):
        objective = with_precisions(objective, groups, np.exp([best]))
        w = fit(objective, w)
        here = _Place.at(objective, w, best, signs)
        tilt = here.tilt()
        seen.add(best, here.slope(best) + tilt)
        best = max(seen.zero(here.best(tilt)), lowest)
        if abs(best - here.rho) <= _CLOSE:
            how = f"{_PROBES} random vectors, {_STEPS} products with the curvature"
            return WideChoice(objective, w, f"by stochastic traces: {how}")
    how = f"as far as {_ROUNDS} rounds led"
    return WideChoice(objective, w, f"by stochastic traces, {how}")


class _Slopes:
    """Slopes of the evidence that were seen, and where it may be level.

    >>> seen = _Slopes()
    >>> seen.add(4.0, -1.0)
    >>> seen.zero(first=3.0)
    3.0
    >>> seen.add(3.0, -0.5)
    >>> seen.zero(first=3.0)
    2.0
    """

    def __init__(self) -> None:
        self._seen: list[tuple[float, float]] = []

    def add(self, rho: float, slope: float) -> None:
        self._seen.append((rho, slope))

    def zero(self, first: float) -> float:
        """By the secant of the last two, between those of either sign; `first` after one alone."""
        rho, slope = self._seen[-1]
        way = np.sign(slope) * _LONGEST
        if len(self._seen) == 1:
            return float(np.clip(first, rho - _LONGEST, rho + _LONGEST))
        before, last = self._seen[-2]
        bend = (slope - last) / (rho - before)
        step = -slope / bend if bend < 0 and abs(slope) < _LONGEST * abs(bend) else way
        low = max((at for at, value in self._seen if value > 0), default=-np.inf)
        high = min((at for at, value in self._seen if value <= 0), default=np.inf)
        return float(rho + step if low < rho + step < high else 0.5 * (low + high))


def choose_each(objective: LogPosterior, w: Array, groups: Codes, fit: WideFit) -> WideChoice:
    """A precision for each group of parameters, by the diagonal of the curvature alone."""
    first, c = int(objective.standard.intercept), objective.coordinates.c
    slopes = groups[first:]
    for _ in range(_ROUNDS):
        found = objective.likelihood(w, "diagonal", objective.information).hessian
        diagonal = (objective.factor * np.asarray(found)).reshape(c, -1)[:, first:]
        alpha = objective.penalty.precision[first:]
        vectors = objective.coordinates.vectors(w)[:, first:]
        known = _summed((diagonal / (diagonal + alpha)).sum(axis=0), slopes)
        size = _summed(np.square(vectors).sum(axis=0), slopes)
        highest = _STRONGEST * np.maximum(_summed(diagonal.sum(axis=0), slopes), 1.0)
        new = np.minimum(known / np.maximum(size, 1e-300), highest)
        change = abs(np.log(new[slopes] / alpha)).max(initial=0.0)
        objective = with_precisions(objective, groups, new)
        w = fit(objective, w)
        if change <= _CLOSE:
            break
    return WideChoice(objective, w, "by the diagonal of the curvature")


def _summed(values: Array, groups: Codes) -> Array:
    out = np.zeros(int(groups.max(initial=-1)) + 1)
    np.add.at(out, groups, values)
    return out
