"""Means that are eᵃ, with offsets so far apart that few rows count at a time.

With the log link a row of a gamma target counts by te⁻ᵃ, and one of counts by eᵃ. Where offsets
differ by hundreds, all but a few of these vanish, and which ones do not is to be found: nearly a
linear program. The loss is first looked at from afar, where all rows count, and then from ever
nearer.
"""

from dataclasses import replace
from typing import cast

import numpy as np

from posteriori.errors import ScaleError
from posteriori.likelihood.distant import DistantLoss
from posteriori.likelihood.loss import Loss
from posteriori.models.edges import better, follow
from posteriori.models.fitting import Prepared
from posteriori.models.scoring import divided, multiplied, scored
from posteriori.posterior.objective import LogPosterior
from posteriori.solve.solution import Iteration, Solution
from posteriori.statistics.glm_domain import GatherLogLevel, LogLevel
from posteriori.statistics.goodness_of_fit import GatherTargetMean
from posteriori.typing import Array

_FAR = 30.0
"""Offsets that differ by less are no trouble: there are digits for all rows at once."""

_FARTHEST = 1e9
"""Activations of this size are right to seven digits after the point."""

_CLOSER = 4.0
"""How many times closer each look is than the last."""

_ROUGH = 1e-3
"""Standard errors from its optimum that are near enough at a distance."""

_LAST_DIGIT = 1e-11
"""Standard errors from the optimum below which rounding sets the limit."""

_MOST = 1e10
"""With a larger -ln p a row, standard errors are less than the last digit of a double."""


def log_level(objective: LogPosterior) -> LogLevel | None:
    """What offsets say of the best intercept; None where it has no formula."""
    power = cast(Loss, objective.loss).log_power
    if power is None:
        return None
    return objective.rows.map_sum(GatherLogLevel(objective.target, power))


def started_at(prepared: Prepared, found: LogLevel) -> Prepared:
    """With the best intercept as the start, if offsets differ and there is one."""
    moves = prepared.objective.standard.intercept and found.span > 0
    if not (moves and np.isfinite(found.level)):
        return prepared
    start = prepared.start.copy()
    start[0] = found.level
    return replace(prepared, start=start)


def is_far(found: LogLevel) -> bool:
    """Whether the offsets are so far apart that the fit needs `solve_from_afar`."""
    if found.span > _FARTHEST:
        raise ScaleError(
            f"The offsets lie between {found.low:.6g} and {found.high:.6g}: with the log link the "
            "means of such rows have no digits in a double.",
            "Use offsets that are closer together.",
        )
    return found.span > _FAR


def solve_from_afar(
    prepared: Prepared, found: LogLevel, max_iter: int | None
) -> Solution[Array, Iteration]:
    """The optimum of all rows, by looks at the loss that are ever closer."""
    objective = prepared.objective
    loss = cast(Loss, objective.loss)
    mean = objective.rows.map_sum(GatherTargetMean(objective.target)).mean
    centre = float(loss.activation(mean)[0])

    def seen(level: LogPosterior, width: float) -> LogPosterior:
        return replace(level, loss=DistantLoss(loss, centre, width), tolerance=_ROUGH)

    looks = int(np.ceil(np.log(found.span) / np.log(_CLOSER)))
    widths = [_CLOSER**power for power in range(looks, 0, -1)]
    rough, shift = follow(replace(prepared, levels=[objective]), seen, widths, max_iter)
    start = better(objective, rough.parameters, rough.parameters - shift * (widths[-1] - 1))
    size = _size(objective, start)
    near = replace(divided(objective, size), tolerance=_LAST_DIGIT)
    solution = multiplied(scored([near], start, max_iter, close=True), size)
    return replace(solution, trace=(*rough.trace, *solution.trace))


def _size(objective: LogPosterior, w: Array) -> float:
    """What makes errors out of rounding where -ln p of a row is huge; else one."""
    size = objective(w, "none").value / objective.n_rows / _MOST
    return max(size, 1.0) if np.isfinite(size) else 1.0
