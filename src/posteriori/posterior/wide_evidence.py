"""Prior precisions chosen by the evidence where there are too many parameters for a Hessian.

One precision: the evidence needs ln|H + αI| and (H + αI)⁻¹ for every α. Lanczos' method makes of k
products with H a tridiagonal matrix whose eigenvalues θ_j and weights τ_j² have, for any f,

    vᵀ f(H) v ≈ |v|² Σ_j τ_j² f(θ_j),

so that one set of products serves all α (Golub and Meurant). Averaged over random signs v, this is
the trace of f(H) (Hutchinson; Ubaru, Chen and Saad). One precision a column: by the diagonal of H
alone, α_j = γ_j / w_j² with γ_j = h_j / (h_j + α_j), the share of w_j that the data determine.

Conventions: p free parameters w (p,), m of them slopes, the others intercepts, which are left out:
S = H_ss - H_si (H_ii + P_i)⁻¹ H_is is the curvature that is left for the slopes. At the minimum
the slopes are (S + αI)⁻¹b.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np
from scipy.linalg import eigh_tridiagonal
from scipy.optimize import minimize_scalar

from posteriori.posterior.chosen_prior import with_precisions
from posteriori.posterior.objective import BLOCK_ENTRIES, LogPosterior
from posteriori.statistics.curvature_times import GatherCurvatureTimes
from posteriori.typing import Array, Codes

_SEED = 0
_PROBES = 4
_STEPS = 30
_ROUNDS = 12
_CLOSE = 0.02
"""A change of ln α that ends the search."""

_WEAKEST, _STRONGEST = 1e-12, 1e8
"""The least precision that is tried; and one, over what the data say of a coefficient, that
switches it off."""

WideFit = Callable[[LogPosterior, Array], Array]
"""The minimum of an objective, from a start."""


class Spectrum(NamedTuple):
    """Eigenvalues θ (k,) and weights (k,): vᵀ f(S) v is the sum of weights times f(θ)."""

    values: Array
    weights: Array

    def of(self, function: Callable[[Array], Array]) -> float:
        """vᵀ f(S) v."""
        return float(self.weights @ function(self.values))


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
        precision = self.objective.penalty.precision[: self._first]
        inner = self._border[:, self._intercepts] + np.diag(np.tile(precision, self._c))
        return cast(Array, np.linalg.solve(inner, self._border[:, self._slopes]))

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

    def times(self, vectors: Array) -> Array:
        """Sv of each (k, m)."""
        whole = np.zeros((len(vectors), self._p))
        whole[:, self._slopes] = vectors
        found = self._whole(whole)
        return found[:, self._slopes] - found[:, self._intercepts] @ self._elimination

    def _whole(self, vectors: Array) -> Array:
        """Hv of each (k, p)."""
        objective, coordinates = self.objective, self.objective.coordinates
        shape = (len(vectors), coordinates.c, coordinates.q)
        theta = objective.standard.outward(coordinates.contrasts @ vectors.reshape(shape))
        kernel = GatherCurvatureTimes(objective.kernel(self.w), theta)
        found = objective.rows.map_sum(kernel, block_entries=BLOCK_ENTRIES).products
        inward = coordinates.contrasts.T @ objective.standard.inward(found)
        return objective.factor * inward.reshape(len(vectors), -1)

    def pull(self) -> Array:
        """b (m,) = Sw_s + αw_s, w being at the minimum."""
        slopes = self.w[self._slopes]
        penalty = self.objective.penalty.precision[self._first :]
        return self.times(slopes[None, :])[0] + np.tile(penalty, self._c) * slopes


def lanczos(times: Callable[[Array], Array], starts: Array, steps: int) -> list[Spectrum]:
    """The spectrum that each start (k, m) sees, by products for all of them at once.

    >>> found = lanczos(lambda v: v * np.array([1.0, 4.0]), np.array([[1.0, 1.0]]), 5)[0]
    >>> round(found.of(np.log), 6)  # ln 1 + ln 4
    1.386294
    """
    lengths = np.linalg.norm(starts, axis=1)
    basis = [starts / lengths[:, None]]
    diagonal, beside = [], []
    for _ in range(min(steps, starts.shape[1])):
        v = times(basis[-1])
        diagonal.append(np.einsum("ij,ij->i", v, basis[-1]))
        for known in (*basis, *basis):  # twice is enough to keep them orthogonal
            v -= np.einsum("ij,ij->i", v, known)[:, None] * known
        beside.append(np.linalg.norm(v, axis=1))
        basis.append(v / np.where(beside[-1] > 0, beside[-1], 1.0)[:, None])
    return [
        _spectrum(np.array([d[i] for d in diagonal]), np.array([b[i] for b in beside]), size)
        for i, size in enumerate(lengths)
    ]


def _spectrum(diagonal: Array, beside: Array, length: float) -> Spectrum:
    ended = np.flatnonzero(beside <= 1e-10 * abs(diagonal).max(initial=1e-300))
    k = int(ended[0]) + 1 if len(ended) else len(diagonal)
    values, vectors = eigh_tridiagonal(diagonal[:k], beside[: k - 1])
    return Spectrum(np.maximum(values, 0.0), length**2 * vectors[0] ** 2)


@dataclass(frozen=True, eq=False)
class WideChoice:
    """The objective with the precisions chosen, its minimum w, and how they were found."""

    objective: LogPosterior
    w: Array
    how: str


@dataclass(frozen=True, eq=False)
class _Place:
    """A precision, the w and the spectra there, and the evidence up to a constant."""

    objective: LogPosterior
    w: Array
    rho: float
    fit: Spectrum
    traces: list[Spectrum]
    evidence: float

    @classmethod
    def at(cls, objective: LogPosterior, w: Array, rho: float, signs: Array) -> "_Place":
        """By products with the curvature at w, the minimum of the objective."""
        curvature = SlopeCurvature(objective, w)
        fit, *traces = lanczos(curvature.times, np.vstack([curvature.pull(), signs]), _STEPS)
        prior = 0.5 * (signs.shape[1] * rho - _log_determinant(traces, rho))
        return cls(objective, w, rho, fit, traces, prior - objective(w, "none").value)

    def foretold(self, rho: float, m: int) -> float:
        """The evidence at ρ up to a constant, were the likelihood the parabola that it is here."""
        explained = self.fit.of(lambda values: 1 / (values + np.exp(rho)))
        return 0.5 * (explained + m * rho - _log_determinant(self.traces, rho))

    def best(self, m: int, tilt: float, weakest: float) -> float:
        """The ρ of the greatest evidence that is foretold, with `tilt` on top of its slope."""
        largest = max(float(one.values.max()) for one in self.traces)
        ends = (np.log(max(weakest, _WEAKEST)), np.log(_STRONGEST * max(largest, 1.0)))
        found = minimize_scalar(
            lambda rho: -self.foretold(rho, m) - tilt * rho, bounds=ends, method="bounded"
        )
        return float(found.x)


def _log_determinant(traces: list[Spectrum], rho: float) -> float:
    return float(np.mean([one.of(lambda values: np.log(values + np.exp(rho))) for one in traces]))


def choose_one(
    objective: LogPosterior, w: Array, groups: Codes, fit: WideFit, weakest: float
) -> WideChoice:
    """The precision of all slopes with the greatest evidence, by stochastic traces.

    Between two places the likelihood is taken for a parabola. By how much the evidence at the
    second was not what that foretold is the tilt from there on. Both have the same random signs,
    so that these do not blur their difference.
    """
    first = int(objective.standard.intercept)
    m = objective.coordinates.c * (objective.coordinates.q - first)
    signs = np.random.default_rng(_SEED).choice([-1.0, 1.0], size=(_PROBES, m))
    here = _Place.at(objective, w, float(np.log(objective.penalty.precision[first])), signs)
    tilt = 0.0
    for _ in range(_ROUNDS):
        best = here.best(m, tilt, weakest)
        if abs(best - here.rho) <= _CLOSE:
            break
        changed = with_precisions(here.objective, groups, np.exp([best]))
        there = _Place.at(changed, fit(changed, here.w), best, signs)
        foretold = here.foretold(best, m) - here.foretold(here.rho, m)
        tilt = (there.evidence - here.evidence - foretold) / (best - here.rho)
        here = there
    how = f"by stochastic traces: {_PROBES} random vectors, {_STEPS} products with the curvature"
    return WideChoice(here.objective, here.w, how)


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
