"""Profile likelihood: intervals and tests of one parameter, the others at their optimum.

Conventions: f(w) is the objective of p free parameters, ŵ its optimum; a parameter is mᵀw with
m (p,). Its profile is f_m(x) = min f(w) over all w with mᵀ(w - ŵ) = x, and its signed root

    r(x) = sign(x) √(2(f_m(x) - f(ŵ))),

close to a straight line in x. An end of an interval is the x with |r(x)| = √(2 rise); the
likelihood ratio test of mᵀw = 0 has the statistic r(-mᵀŵ).
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from posteriori.errors import InferenceError
from posteriori.posterior.log_posterior import LogPosterior
from posteriori.solve.newton import scoring
from posteriori.solve.objective import Curvature, Iteration, Local, Solution
from posteriori.typing import Array

_CONVERGED = 1e-4
"""The most that constrained optima may lie below the optimum, in units of the objective."""

_TOLERANCE = 1e-5
"""Standard errors from a constrained optimum."""

_EXACT = 1e-10
"""Relative accuracy of an end."""

_BEYOND, _GROWTH, _FARTHEST = 1.05, 3.0, 1e6
"""How far beyond the end that a straight line predicts, how much farther at most than before, and
when an end is called infinite: in distances of the first place."""

_MOST_STEPS = 60


@dataclass(frozen=True, eq=False)
class _Constrained:
    """The objective of v (p - 1,) with w = at + Nv and mᵀN = 0; a solver's `Objective`."""

    of: LogPosterior
    at: Array
    null: Array
    tolerance: float = _TOLERANCE
    hessian_cost: float = 1.0
    row_fraction: float = 1.0

    @property
    def n_rows(self) -> int:
        return self.of.n_rows

    @property
    def unit(self) -> float:
        return self.of.unit

    def __call__(self, w: Array, hessian: Curvature) -> Local:
        here, curved = self.of(self.at + self.null @ w, hessian), None
        if here.hessian is not None:
            curved = self.null.T @ here.hessian @ self.null
        return Local(here.value, self.null.T @ here.gradient, curved)


@dataclass(eq=False)
class Profile:
    """The profile of mᵀw about the optimum `w`, where the objective has the value `least`.

    `hessian` is that at the optimum, `name` that of the parameter, for errors.
    """

    objective: LogPosterior
    w: Array
    least: float
    hessian: Array
    m: Array
    name: str

    def __post_init__(self) -> None:
        N = self._null = np.linalg.qr(self.m[:, None], mode="complete")[0][:, 1:]
        unit = self.m / (self.m @ self.m)
        self._along = (
            unit - N @ np.linalg.lstsq(N.T @ self.hessian @ N, N.T @ self.hessian @ unit)[0]
        )
        self._curvature = float(self._along @ self.hessian @ self._along)
        self._known: dict[float, tuple[Array, float]] = {0.0: (self.w, 0.0)}

    def risen(self, x: float) -> float:
        """f_m(x) - f(ŵ); infinite where w has no likelihood."""
        if x not in self._known:
            start = self._start(x)
            if start is None:
                return np.inf
            starts = [start]
            if not self.objective.has_exact_hessian:  # nor convex: Jeffreys' prior
                starts.append(self.w + x * self._along)
            found = [(self._constrained_optimum(each), each) for each in starts]
            best, start = min(found, key=lambda pair: pair[0].value)
            if best.value < self.least - _CONVERGED:
                raise InferenceError(
                    f"The profile of {self.name} lies below the optimum: the fit has not "
                    "converged, or has several optima.",
                    "Raise max_iter, set a prior, or use intervals='wald'.",
                )
            w = start + self._null @ best.parameters
            self._known[x] = w, max(best.value - self.least, 0.0)
        return self._known[x][1]

    def _constrained_optimum(self, start: Array) -> Solution[Array, Iteration]:
        """The v that minimise f(start + Nv)."""
        return scoring(
            _Constrained(self.objective, start, self._null),
            np.zeros(self._null.shape[1]),
            max_iter=_MOST_STEPS,
            exact=self.objective.has_exact_hessian,
        )

    def _start(self, x: float) -> Array | None:
        """By the line through the two nearest points known, on this side of the optimum."""
        side = [place for place in self._known if place * x >= 0]
        near, *others = sorted(side, key=lambda place: abs(place - x))
        w = self._known[near][0]
        along = (w - self._known[others[0]][0]) / (near - others[0]) if others else self._along
        for direction in (along, self._along):
            start = w + (x - near) * direction
            if np.isfinite(self.objective(start, "none").value):
                return start
        return None

    def end(self, rise: float, side: float) -> float:
        """mᵀw at which the profile has risen so much: above the estimate for side 1, below for -1.

        Infinite where it never does.
        """
        wanted = float(np.sqrt(2 * rise))

        def missing(x: float) -> float:
            return float(np.sqrt(2 * min(self.risen(side * x), 1e6 * rise))) - wanted

        if not self._curvature > 0:
            return side * np.inf
        first = float(np.sqrt(2 * rise / self._curvature))
        inside, outside, below = 0.0, first, -wanted
        while (above := missing(outside)) < 0:
            slope = (above - below) / (outside - inside)
            inside, below = outside, above
            # A little beyond where the straight line through the last two points ends.
            reach = -_BEYOND * above / slope if slope > 0 else np.inf
            outside += min(max(reach, _EXACT * outside), _GROWTH * outside)
            if outside > _FARTHEST * first:
                return side * np.inf
        x = brentq(missing, inside, outside, rtol=_EXACT, xtol=_EXACT * outside)
        return float(self.m @ self.w) + side * x

    def likelihood_ratio(self) -> float:
        """The signed root of the likelihood ratio against mᵀw = 0."""
        estimate = float(self.m @ self.w)
        return float(np.sign(estimate) * np.sqrt(2 * self.risen(-estimate)))
