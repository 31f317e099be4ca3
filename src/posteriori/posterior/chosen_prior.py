"""Prior precisions chosen by the evidence: one for all slopes, or one a column (4.5.1, 4.137).

The evidence of Laplace's approximation is made largest in ρ = ln α. The most probable w is found
anew at every α that is visited, so that w and the Hessian there belong together. Between two such
places the likelihood is taken for the parabola that it is at the first, and the best α for it
is found without a look at the rows. What the parabola misses is that the Hessian changes with w(ρ):

    d/dρ (-½ ln|A|) = -uᵀ dw/dρ,   u = ½ ∂ ln|A| / ∂w,   dw/dρ_g = -A⁻¹ α_g J_g w.

That is added as a tilt, so that the maximum is that of the evidence itself. With many rows for each
parameter it is next to nothing, and left out.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, cast

import numpy as np
from scipy.linalg import lapack

from posteriori.design.columns import Columns
from posteriori.linalg import cholesky, unit_diagonal
from posteriori.posterior.evidence import evidence_of, log_determinant
from posteriori.posterior.objective import LogPosterior
from posteriori.posterior.priors import GaussianPrior
from posteriori.posterior.quadratic_evidence import QuadraticEvidence, parabola
from posteriori.typing import Array, Codes

Chosen = Literal["evidence", "ard"]
"""One precision for all slopes; or one for each column or factor."""

WEAKEST = 1e-4
"""The least precision of standardised slopes: where classes can be separated, the evidence may grow
without end as the prior gets weaker."""

Fit = Callable[[LogPosterior, Array, Array], Array]
"""The minimum of an objective, from a start and the Hessian there."""

_SMALL = 2**19
"""Numbers in the rows, times parameters an activation, up to which the last digits are sought."""

_ROUNDS = 100
_CLOSE, _CLOSE_ON_MANY = 1e-8, 0.01
"""Changes of ln α below which a choice stands, on few rows and on many."""

_GRID = 2.0**-16
"""On few rows ln α is a multiple of this, so that what rounding does to it changes no answer."""

_LONGEST = 3.0
"""The most that ln α changes from one place to the next."""

_UNCLEAR = 1e-3
"""A change of slope that is this much more across a step than along it says nothing of it."""

_HALVINGS = 12


@dataclass(frozen=True, eq=False)
class _Place:
    """Precisions, the most probable w for them, the likelihood's parabola there, the evidence."""

    rho: Array
    objective: LogPosterior
    w: Array
    likelihood_hessian: Array
    linear: Array
    evidence: float


def groups_of(columns: Columns, intercept: bool, kind: Chosen) -> Codes:
    """The group of precisions (q,) that each parameter belongs to; -1 for the intercept."""
    first = [-1] * int(intercept)
    if kind == "evidence":
        return np.array([*first, *[0] * len(columns.names)], dtype=np.intp)
    columnwise = np.repeat(np.arange(len(columns.schema)), list(map(len, columns.positions)))
    return np.concatenate([np.array(first, dtype=np.intp), columnwise])


@dataclass(frozen=True, eq=False)
class Choice:
    """The objective with the precisions chosen, its minimum w and its Hessian there."""

    objective: LogPosterior
    w: Array
    hessian: Array


def choose_precisions(
    objective: LogPosterior, w: Array, groups: Codes, fit: Fit, weakest: float = WEAKEST
) -> Choice:
    """Precisions of greatest evidence, `weakest` at least, from the objective's and their w on."""
    n_groups = int(groups.max(initial=-1)) + 1
    here = _place(objective, w, groups, np.log(group_precisions(objective, groups)))
    is_small = objective.n_rows * objective.coordinates.q <= _SMALL
    close, exact = (
        _CLOSE if is_small else _CLOSE_ON_MANY,
        is_small or is_tilted(objective, here.likelihood_hessian),
    )
    tilt, bend = _tilt(here, groups, exact), np.zeros((n_groups, n_groups))
    model = _parabola(here, groups, weakest)
    for _ in range(_ROUNDS if n_groups else 0):
        best = model.largest(here.rho, tilt, bend)
        best = np.clip(best, here.rho - _LONGEST, here.rho + _LONGEST)
        if abs(best - here.rho).max() <= close:
            break
        there = _uphill(here, best, model, groups, fit)
        if there is None:
            break
        step, before = there.rho - here.rho, _slope(model, there.rho) + tilt
        tilt, model = _tilt(there, groups, exact), _parabola(there, groups, weakest)
        if n_groups == 1:
            bend = _learnt(bend, step, _slope(model, there.rho) + tilt - before)
        here = there
    if is_small and n_groups:
        lowest = np.log(weakest) if weakest else -np.inf
        rounded = np.where(here.rho > lowest, np.round(here.rho / _GRID) * _GRID, here.rho)
        here = _refitted(here, rounded, model, groups, fit)
    return Choice(here.objective, here.w, _with_prior(here))


def _learnt(bend: Array, step: Array, change: Array) -> Array:
    """The bend that explains by how much the slope was not what it was foretold to be.

    For one precision this is the secant method. For many, bends found one by one lead astray.
    """
    left = change - bend @ step
    along = float(left @ step)
    if abs(along) <= _UNCLEAR * float(np.linalg.norm(left) * np.linalg.norm(step)):
        return bend
    return bend + np.outer(left, left) / along


def _uphill(
    here: _Place, best: Array, model: QuadraticEvidence, groups: Codes, fit: Fit
) -> _Place | None:
    """Where the parabola points, or as far in that direction as the evidence grows."""
    step = best - here.rho
    for _ in range(_HALVINGS):
        there = _refitted(here, here.rho + step, model, groups, fit)
        if there.evidence >= here.evidence - 1e-9 * abs(here.evidence):
            return there
        step = step / 2
    return None


def _refitted(
    here: _Place, rho: Array, model: QuadraticEvidence, groups: Codes, fit: Fit
) -> _Place:
    objective = with_precisions(here.objective, groups, np.exp(rho))
    found = model.at(rho)
    start = here.w if found is None else found.mean
    hessian = here.likelihood_hessian + objective.penalty.matrix(objective.coordinates.c)
    return _place(objective, fit(objective, start, hessian), groups, rho)


def _place(objective: LogPosterior, w: Array, groups: Codes, rho: Array) -> _Place:
    objective = with_precisions(objective, groups, np.exp(rho))
    local = objective.likelihood(w, "full", "observed")
    hessian = objective.factor * cast(Array, local.hessian)
    found = evidence_of(
        objective.penalty,
        objective.coordinates.vectors(w),
        -objective.factor * local.value,
        log_determinant(hessian + objective.penalty.matrix(objective.coordinates.c)),
    )
    linear = hessian @ w - objective.factor * local.gradient
    return _Place(rho, objective, w, hessian, linear, found.value)


def with_precisions(objective: LogPosterior, groups: Codes, precisions: Array) -> LogPosterior:
    """The objective with these precisions (G,) of its groups."""
    chosen = objective.penalty.precision.copy()
    chosen[groups >= 0] = precisions[groups[groups >= 0]]
    return replace(objective, penalty=replace(objective.penalty, precision=chosen))


def group_precisions(objective: LogPosterior, groups: Codes) -> Array:
    """The precisions (G,) that groups have in the objective."""
    places = np.unique(groups, return_index=True)[1][int((groups < 0).any()) :]
    return objective.penalty.precision[places]


def as_prior(objective: LogPosterior) -> GaussianPrior:
    """The prior that the objective has, as a user would pass it."""
    precision, first = objective.penalty.precision, int(objective.standard.intercept)
    mean = objective.penalty.mean
    if precision.ndim == 2:
        return GaussianPrior(
            precision.copy(),
            mean[first:].copy(),
            intercept_mean=float(mean[0]) if first else 0.0,
            units="standardised",
        )
    slopes = precision[first:]
    same = bool(len(slopes)) and bool((slopes == slopes[0]).all())
    return GaussianPrior(
        precision=float(slopes[0]) if same else slopes.copy(),
        mean=mean[first:].copy() if mean[first:].any() else 0.0,
        intercept_precision=float(precision[0]) if first else 0.0,
        intercept_mean=float(mean[0]) if first else 0.0,
        units="standardised",
    )


def _with_prior(place: _Place) -> Array:
    objective = place.objective
    return place.likelihood_hessian + objective.penalty.matrix(objective.coordinates.c)


def _parabola(place: _Place, groups: Codes, weakest: float) -> QuadraticEvidence:
    """The evidence with the likelihood as it is near w."""
    return parabola(
        place.objective.penalty, place.likelihood_hessian, place.linear, groups, weakest
    )


def _slope(model: QuadraticEvidence, rho: Array) -> Array:
    found = model.at(rho)
    return np.zeros(len(rho)) if found is None else found.gradient


def is_tilted(objective: LogPosterior, hessian: Array) -> bool:
    """Whether the change of the Hessian with w(ρ) would move ln α by more than counts on many rows.

    It makes ln|A| change by p/√n for a standard error of w, by which w moves as the prior holds
    it: by √(pα/h), with curvatures h; beside a curvature p of the evidence itself.
    """
    precision = np.diagonal(objective.penalty.matrix(objective.coordinates.c))
    held = float((precision / np.maximum(precision + np.diagonal(hessian), 1e-300)).mean())
    return held * len(precision) > _CLOSE_ON_MANY**2 * objective.n_rows


def _tilt(place: _Place, groups: Codes, exact: bool) -> Array:
    """-uᵀ dw/dρ (G,): what the change of the Hessian adds to the gradient of the evidence.

    Unless it is to be exact, it is taken for nothing.
    """
    if not exact:
        return np.zeros(len(place.rho))
    objective, coordinates = place.objective, place.objective.coordinates
    matrix, scale = unit_diagonal(_with_prior(place))
    lower = cast(Array, cholesky(matrix))
    inverse, _ = lapack.dtrtri(lower, lower=1)
    roots = inverse / scale
    found = objective.leverage(place.w, roots, "observed")
    slope = objective.factor * coordinates.contract(objective.standard.inward(found.gradient))
    pulled = (
        (roots.T @ (roots @ slope)) * place.w * np.tile(objective.penalty.precision, coordinates.c)
    )
    whole, out = np.tile(groups, coordinates.c), np.zeros(len(place.rho))
    np.add.at(out, whole[whole >= 0], pulled[whole >= 0])
    return out
