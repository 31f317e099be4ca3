"""Profiles of an objective without a minimum, as that of classes that can be separated.

A damping, a small precision on all slopes, gives it a minimum and every profile two ends. As it
goes to zero, an end that exists stays where it is, and one that does not runs away: there, all that
the objective has risen by is the damping.
"""

from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from posteriori.errors import InferenceError
from posteriori.posterior.objective import LogPosterior
from posteriori.posterior.profile import Search
from posteriori.solve.newton import newton
from posteriori.typing import Array

_DAMPINGS = 10.0 ** np.arange(-3, -14, -1)
"""Each starts from where the one before it ended."""

_NOTHING, _ALL = 1e-8, 0.5
"""Shares of the rise: damping that can be left as it is, and such as makes an end."""

_ENOUGH = 1e-5
"""With this damping, an end that it makes has slopes of hundreds for columns of deviation one."""


@dataclass
class _End:
    """An end of mᵀw: where it was last found, what share of the rise was damping, and whether
    that is all there is to know."""

    m: Array
    w: Array | None = None
    damped: float = np.inf
    known: bool = False

    def find(self, search: Search) -> None:
        """Look for it with the next damping, unless it is known or was lost on the way."""
        if self.known:
            return
        self.known = True
        with suppress(InferenceError):
            found = search.end(self.m, self.w)
            self.w = found
            self.damped = np.inf if found is None else _damping(search, found) / search.rise
            lost = self.damped > _ALL and search.objective.damping <= _ENOUGH
            self.known = lost or self.damped < _NOTHING

    @property
    def place(self) -> float:
        """mᵀw there, or infinity."""
        return np.inf if self.w is None or self.damped > _ALL else float(self.m @ self.w)


def runaway_ends(objective: LogPosterior, directions: Array, rise: float) -> Array:
    """Both ends (k, 2) of each parameter mᵀw, with the m in the rows of `directions` (k, p)."""
    ends = [(_End(-m), _End(m)) for m in directions]
    w = np.zeros(directions.shape[1])
    for damping in _DAMPINGS:
        damped = replace(objective, damping=damping)
        w = newton([damped], w, always_fresh=True).parameters
        search = Search.of(damped, w, rise)
        for low, high in ends:
            low.find(search)
            high.find(search)
    return np.array([[-low.place, high.place] for low, high in ends])


def _damping(search: Search, w: Array) -> float:
    """What the damping adds to the objective."""
    objective = search.objective
    slopes = objective.coordinates.vectors(w)[:, int(objective.standard.intercept) :]
    return 0.5 * objective.damping * float(np.square(slopes).sum())
