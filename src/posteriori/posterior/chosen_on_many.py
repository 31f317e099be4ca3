"""Prior precisions chosen by the evidence on many rows, with few looks at all of them (4.5.1).

With many rows for each parameter the likelihood is a parabola as far as precisions can move w, and
the change of its Hessian along the way is next to nothing. So they are chosen together with the
last step of Newton's method: from w near the optimum, with the gradient and the Hessian there, the
best precisions and the most probable w for them are found without another look at the rows. Where
to begin is found the same way from a few of the rows, as if there were no others.
"""

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from posteriori.posterior.chosen_prior import (
    Choice,
    Fit,
    group_precisions,
    is_tilted,
    with_precisions,
)
from posteriori.posterior.objective import LogPosterior
from posteriori.posterior.quadratic_evidence import QuadraticEvidence, parabola
from posteriori.solve.search import left_by_newton, near_enough
from posteriori.typing import Array, Codes

_ROUNDS = 4
"""Hessians of all rows; after these the search goes on by other means."""


@dataclass(frozen=True, eq=False)
class Guess:
    """The objective with precisions that a few rows ask for, a start, and a Hessian for it."""

    objective: LogPosterior
    start: Array
    hessian: Array


def guess_precisions(
    few: LogPosterior, w: Array, objective: LogPosterior, groups: Codes, weakest: float
) -> Guess:
    """What a few of the rows say, w being near the optimum of theirs."""
    local = few.likelihood(w, "full", "observed")
    hessian = cast(Array, local.hessian)
    model = parabola(few.penalty, hessian, hessian @ w - local.gradient, groups, weakest)
    whole = replace(model, hessian=few.factor * hessian, linear=few.factor * model.linear)
    # What a few rows would switch off, all of them may not.
    rho = np.minimum(model.largest(np.log(group_precisions(objective, groups))), whole.even)
    objective = with_precisions(objective, groups, np.exp(rho))
    found = whole.at(rho)
    start = w if found is None else found.mean
    return Guess(objective, start, _with_prior(objective, whole))


def choose_on_many(guess: Guess, groups: Codes, fit: Fit, weakest: float) -> Choice | None:
    """Precisions of greatest evidence; None if the likelihood is not enough of a parabola."""
    objective, start, hessian = guess.objective, guess.start, guess.hessian
    for _ in range(_ROUNDS):
        w = fit(replace(objective, tolerance=near_enough(objective)), start, hessian)
        local = objective.likelihood(w, "full", "observed")
        inner = objective.factor * cast(Array, local.hessian)
        linear = inner @ w - objective.factor * local.gradient
        model = parabola(objective.penalty, inner, linear, groups, weakest)
        rho = model.largest(np.log(group_precisions(objective, groups)))
        found = model.at(rho)
        if found is None:
            return None
        objective = with_precisions(objective, groups, np.exp(rho))
        hessian, start = _with_prior(objective, model), found.mean
        if is_tilted(objective, inner):
            return None
        step = start - w
        decrement = float(np.sqrt(step @ hessian @ step)) / objective.unit
        if left_by_newton(objective, decrement, hessian) <= objective.tolerance:
            return Choice(objective, start, hessian)
    return None


def _with_prior(objective: LogPosterior, model: QuadraticEvidence) -> Array:
    return model.hessian + objective.penalty.matrix(objective.coordinates.c)
