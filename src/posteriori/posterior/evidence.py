"""The evidence ln p(t) by Laplace's approximation (4.137), and the precisions that maximise it.

Conventions: p free parameters w (p,), in c vectors of q numbers; H is the Hessian of -ln p(t|w) at
the most probable w, P that of -ln p(w), A = H + P (p, p).

Precisions α are chosen for groups of parameters: all slopes, or those of a column. w is fitted anew
for every α that is tried, so that the evidence is that of (4.137). Its gradient includes the change
of H with w: d(½ ln|A|)/dw is half the gradient of ln|H|, which the leverages of the rows give.

The search is in η = ln(1 + h/α), h being the curvature of the likelihood. For one coefficient with
a quadratic likelihood e^η/h is the variance of its estimate: the evidence is then nearly as curved
for each column, and a column without effect is at the bound η = 0, which a search in ln α would
approach forever.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from scipy.linalg import lapack
from scipy.optimize import minimize, minimize_scalar

from posteriori.design.columns import Columns
from posteriori.errors import InferenceError
from posteriori.linalg import cholesky, dependent_columns, unit_diagonal
from posteriori.posterior.log_posterior import BLOCK_ENTRIES, LogPosterior
from posteriori.posterior.priors import GaussianPrior, Penalty
from posteriori.solve.line_search import near_enough
from posteriori.solve.newton import InverseHessian
from posteriori.solve.online_update import QuadraticApproximation
from posteriori.statistics.local_quadratic import GatherHessianDiagonal
from posteriori.typing import Array, Codes

_LOG_TWO_PI = math.log(2 * math.pi)

Chosen = Literal["evidence", "ard"]
"""One precision for all slopes; or one for each column or factor."""

Fit = Callable[[Sequence[LogPosterior], Array, Array | None], Array]
"""The minimum of the last of some objectives, from a start and, if known, the Hessian there."""

WEAKEST = 1e-4
"""The least precision of standardised slopes: where classes can be separated, the evidence may
increase without limit as the prior gets weaker."""

_LEAST = 1e-8
"""The least η: a precision of 1e8 times the curvature removes a column."""

_GAIN, _SLOPE = 1e-13, 1e-10
"""The relative gain and the slope of the evidence at which a search ends."""

_HIDDEN = 1e-9
"""A relative gain below which the gradient has more digits of it than the evidence."""

_CLOSE, _ROUNDS = 0.02, 50
"""The change of ln α that ends a search by the diagonal of A, and the most rounds of it."""

_CLOSE_ON_MANY, _ROUNDS_ON_MANY = 1e-3, 4
"""The same on many rows, for η."""

_REJECTED = 1e10
"""Minus the evidence where A is not positive definite, so that no search ends there."""


@dataclass(frozen=True)
class Evidence:
    """ln p(t) ≈ ln p(t|w) + ln p(w) + (p/2) ln 2π - ½ ln|A| at the most probable w (4.137).

    The first part says how well the model fits at its best. The others are the logarithm of the
    Occam factor: the volume that the posterior takes up of that of the prior.

    >>> found = Evidence(log_likelihood=-10.0, log_prior=-3.0, log_volume=1.0)
    >>> found.value, found.log_occam_factor
    (-12.0, -2.0)
    """

    log_likelihood: float
    log_prior: float
    log_volume: float

    @property
    def log_occam_factor(self) -> float:
        """ln p(w) + (p/2) ln 2π - ½ ln|A|: the penalty for the flexibility of a model."""
        return self.log_prior + self.log_volume

    @property
    def value(self) -> float:
        """ln p(t)."""
        return self.log_likelihood + self.log_occam_factor


def evidence_of(
    penalty: Penalty, vectors: Array, log_likelihood: float, log_determinant: float
) -> Evidence:
    """The evidence, given ln p(t|w) and ln|A| at the most probable w, its c vectors (c, q).

    The prior must be proper.
    """
    c = len(vectors)
    log_precision = (1 if penalty.is_joint(c) else c) * log_determinant_of(penalty.precision)
    log_height = 0.5 * (log_precision - vectors.size * _LOG_TWO_PI)
    return Evidence(
        log_likelihood,
        log_height - penalty.value_and_gradient(vectors)[0],
        0.5 * (vectors.size * _LOG_TWO_PI - log_determinant),
    )


def log_determinant_of(matrix: Array) -> float:
    """ln|matrix|, of a diagonal (p,) too; an error where it is not positive definite."""
    if matrix.ndim == 1 and (matrix > 0).all():
        return float(np.log(matrix).sum())
    scaled, scale = unit_diagonal(np.atleast_2d(matrix))
    lower = cholesky(scaled)
    if lower is None or matrix.ndim == 1:
        raise InferenceError(
            "The curvature at the optimum is not positive definite, so that there is no evidence "
            "by Laplace's approximation.",
            "Look for collinear columns, or set a prior with a precision for every coefficient.",
        )
    return 2.0 * float(np.log(np.diagonal(lower) * scale).sum())


def check_proper(penalty: Penalty) -> None:
    """An error unless the prior is proper for every coefficient, the intercept among them."""
    precision = penalty.precision
    proper = bool(((precision if precision.ndim == 1 else np.diagonal(precision)) > 0).all())
    if precision.ndim == 2:
        proper = proper and len(dependent_columns(unit_diagonal(precision)[0])) == 0
    if not proper:
        raise InferenceError(
            "Evidence needs a proper prior: this one leaves the intercept or other coefficients "
            "free, so that every evidence is zero.",
            "Use BayesianLogisticRegression with prior='evidence', 'ard' or a number above zero, "
            "or a GaussianPrior with a precision for every coefficient and an intercept_precision.",
        )


def precision_diagonal(objective: LogPosterior, w: Array) -> Array:
    """The diagonal of A at w (p,), where there are too many parameters for all of it."""
    kernel = GatherHessianDiagonal(objective.kernel(w), objective.coordinates.contrasts)
    found = objective.rows.map_sum(kernel, block_entries=BLOCK_ENTRIES)
    if not objective.standard.moves:
        found[:, int(objective.standard.intercept) :] /= objective.standard.scale**2
    return objective.factor * found.ravel() + objective.penalty.diagonal(objective.coordinates.c)


def as_prior(objective: LogPosterior) -> GaussianPrior:
    """The prior of an objective, as a user would pass it."""
    precision, mean = objective.penalty.precision, objective.penalty.mean
    first = int(objective.standard.intercept)
    intercept = {"intercept_mean": float(mean[0])} if first else {}
    if first and precision.ndim == 1:
        intercept["intercept_precision"] = float(precision[0])
    slopes = precision[first:].copy() if precision.ndim == 1 else precision.copy()
    is_one = precision.ndim == 1 and len(set(slopes)) == 1
    means = mean[first:].copy() if mean[first:].any() else 0.0
    given = float(slopes[0]) if is_one else slopes
    return GaussianPrior(given, means, **intercept, units="standardised")


def groups_of(columns: Columns, intercept: bool, kind: Chosen) -> Codes:
    """The group of precisions (q,) that each parameter belongs to; -1 for the intercept."""
    columnwise = np.repeat(np.arange(len(columns.schema)), list(map(len, columns.positions)))
    groups = columnwise if kind == "ard" else np.zeros_like(columnwise)
    return np.append(np.full(int(intercept), -1), groups).astype(np.intp)


class PrecisionChoice(NamedTuple):
    """The objective with the precisions chosen, its minimum w, its Hessian there, and how."""

    objective: LogPosterior
    w: Array
    hessian: Array | None
    how: str = "by all second derivatives"


def choose_precisions(
    levels: Sequence[LogPosterior], start: Array, kind: Chosen, fit: Fit, weakest: float = WEAKEST
) -> PrecisionChoice:
    """The precisions of greatest evidence, `weakest` at least.

    `levels` are the objective on ever more rows. On many rows the likelihood is nearly quadratic as
    far as precisions move w: precisions are chosen on the largest subsample, and corrected by
    quadratic approximations of all rows. On few, w is fitted anew for each.
    """
    objective = levels[-1]
    groups = groups_of(objective.columns, objective.standard.intercept, kind)
    if not (groups >= 0).any():
        return PrecisionChoice(objective, fit(levels, start, None), None)
    if objective.is_wide:
        return _by_diagonal(objective, start, groups, fit, weakest)
    w, few, on_many = start, objective, len(levels) > 1
    if on_many:
        w, few = fit(levels[:-1], start, None), levels[-2]
    on_few = _quadratic_near(replace(few, factor=objective.factor), w)
    quadratic = on_few * (few.factor / objective.factor)
    search = _Search.of(objective, groups, quadratic, weakest)
    as_curved = np.full(len(search.curvature), math.log(2))  # α = h
    guess = search.maximum_of(on_few, as_curved)
    # A column that a few rows would remove may have an effect on all of them.
    here = search.predicted(np.maximum(guess.eta, as_curved), quadratic)
    if not on_many:
        here = search.refitted(here.eta, here, fit)
        here = search.maximum(here, partial(search.refitted, fit=fit))
    for _ in range(_ROUNDS_ON_MANY if on_many else 0):
        eta, objective = here.eta, search.with_precisions(here.eta)
        rough = replace(objective, tolerance=near_enough(objective))
        w = fit([rough], here.w, with_prior(objective, here.quadratic.precision))
        here = search.maximum_of(_quadratic_near(objective, w), eta)
        if abs(here.eta - eta).max() <= _CLOSE_ON_MANY:
            break
    objective = search.with_precisions(here.eta)
    return PrecisionChoice(objective, here.w, with_prior(objective, here.quadratic.precision))


def with_prior(objective: LogPosterior, hessian: Array) -> Array:
    """The Hessian of the likelihood and that of the prior."""
    return hessian + objective.penalty.matrix(objective.coordinates.c)


def _quadratic_near(objective: LogPosterior, w: Array) -> QuadraticApproximation:
    """The second-order expansion of -ln p(t|w) at w."""
    local = objective.likelihood(w, "full", "observed")
    return QuadraticApproximation.about(w, local) * objective.factor


class _Place(NamedTuple):
    """η (G,), the most probable w for it and the likelihood near w; the evidence but for a
    constant, and its gradient (G,)."""

    eta: Array
    w: Array
    quadratic: QuadraticApproximation
    value: float
    gradient: Array


@dataclass(frozen=True, eq=False)
class _Search:
    """The evidence of an objective as a function of η (G,), one for each group of parameters.

    `groups` (q,) has the group of each parameter of a vector, -1 where its precision is given;
    `curvature` is h (G,).
    """

    objective: LogPosterior
    groups: Codes
    curvature: Array
    weakest: float

    @classmethod
    def of(
        cls, objective: LogPosterior, groups: Codes, near: QuadraticApproximation, weakest: float
    ) -> "_Search":
        """With the mean curvature of the parameters of a group as its h."""
        each = np.diagonal(near.precision).reshape(-1, len(groups)).mean(axis=0)
        h = grouped_sums(each, groups) / grouped_sums(np.ones(len(groups)), groups)
        return cls(objective, groups, np.where(h > 0, h, 1.0), weakest)

    def with_precisions(self, eta: Array) -> LogPosterior:
        """The objective with the precisions of its groups."""
        return _with_precisions(self.objective, self.groups, self.curvature / np.expm1(eta))

    def place(
        self, eta: Array, w: Array, quadratic: QuadraticApproximation, is_constant: bool = True
    ) -> _Place:
        """The evidence at η, whose most probable w is given, and whether H is constant.

        With the prior variances v = 1/α, M = P - PA⁻¹P, m = Pw and u = ½ ∂ ln|H| / ∂w,

            dE/dv_i = ½ (m_i² - M_ii) - α_i m_i (A⁻¹u)_i.
        """
        objective = self.with_precisions(eta)
        alpha = objective.penalty.diagonal(objective.coordinates.c)
        scaled, scale = unit_diagonal(quadratic.precision + np.diag(alpha))
        lower = cholesky(scaled)
        if lower is None:
            return _Place(eta, w, quadratic, -_REJECTED, np.zeros(len(eta)))
        roots = lapack.dtrtri(lower, lower=1)[0] / scale
        chosen = np.tile(self.groups >= 0, objective.coordinates.c)
        value = 0.5 * float(np.log(alpha[chosen]).sum() - w @ (alpha * w))
        value -= float(np.log(np.diagonal(lower) * scale).sum()) + quadratic.at(w).value
        m = alpha * w
        slope = 0.5 * (m**2 - alpha + alpha * np.square(roots).sum(axis=0) * alpha)
        if not is_constant:
            found = objective.leverage(w, roots, "observed").gradient
            u = objective.coordinates.contract(objective.standard.inward(found))
            slope -= objective.factor * alpha * m * (roots.T @ (roots @ u))
        gradient = np.exp(eta) / self.curvature * grouped_sums(slope, self.groups)  # dv/dη = e^η/h
        return _Place(eta, w, quadratic, value, gradient)

    def predicted(self, eta: Array, quadratic: QuadraticApproximation) -> _Place:
        """The evidence at η if the likelihood is this quadratic."""
        A = with_prior(self.with_precisions(eta), quadratic.precision)
        return self.place(eta, InverseHessian.of(A).solve(quadratic.information), quadratic)

    def maximum_of(self, quadratic: QuadraticApproximation, eta: Array) -> _Place:
        """The place of greatest evidence if the likelihood is this quadratic, from η on."""
        start = self.predicted(eta, quadratic)
        return self.maximum(start, lambda eta, near: self.predicted(eta, quadratic))

    def refitted(self, eta: Array, near: _Place, fit: Fit) -> _Place:
        """The evidence at η, its most probable w being found from a place near it."""
        objective = self.with_precisions(eta)
        hessian = with_prior(objective, near.quadratic.precision)
        w = fit([objective], InverseHessian.of(hessian).solve(near.quadratic.information), hessian)
        return self.place(eta, w, _quadratic_near(objective, w), is_constant=False)

    def maximum(self, start: _Place, evaluate: Callable[[Array, _Place], _Place]) -> _Place:
        """The place of greatest evidence, by L-BFGS-B; each is evaluated from the one before.

        Its variables are η times the root of the number of parameters of a group, with which the
        curvature of the evidence grows. Rounding hides small gains: for the last digits the search
        is taken up again with gains by the gradient, for which the trapezoidal rule is exact to
        third order.
        """
        size = grouped_sums(np.ones(len(self.groups)), self.groups)
        unit = np.sqrt(self.objective.coordinates.c * size)
        highest = np.log1p(self.curvature / max(self.weakest, 1e-300)) * unit  # the weakest prior
        bounds = list(zip(np.minimum(_LEAST * unit, highest), highest, strict=True))
        near, x, gained = start, start.eta * unit, 0.0

        def minus_evidence(new: Array) -> tuple[float, Array]:
            nonlocal near, x, gained
            if (new != x).any():
                before, near = near, evaluate(new / unit, near)
                x, gain = new.copy(), near.value - before.value
                if abs(gain) <= _HIDDEN * (1 + abs(near.value)):
                    gain = 0.5 * float((before.gradient + near.gradient) @ (near.eta - before.eta))
                gained += gain
            return -gained, -near.gradient / unit

        for ftol in (_GAIN, 0.0):
            gained = 0.0
            options = {"ftol": ftol, "gtol": _SLOPE, "maxcor": 30, "maxls": 10}
            found = minimize(
                minus_evidence, x, jac=True, method="L-BFGS-B", bounds=bounds, options=options
            )
            minus_evidence(found.x)
        return near


def _with_precisions(objective: LogPosterior, groups: Codes, precisions: Array) -> LogPosterior:
    """The objective with these precisions (G,) of groups (q,), and its own where they are -1."""
    given = objective.penalty.precision
    penalty = replace(objective.penalty, precision=np.where(groups >= 0, precisions[groups], given))
    return replace(objective, penalty=penalty)


def grouped_sums(values: Array, groups: Codes) -> Array:
    """Sums over groups (G,) of the values of parameters, `groups` (q,) being those of a vector."""
    each = np.tile(groups, len(values) // len(groups))
    return np.bincount(each[each >= 0], values[each >= 0]).astype(np.float64)


def _by_diagonal(
    objective: LogPosterior, w: Array, groups: Codes, fit: Fit, weakest: float
) -> PrecisionChoice:
    """The same by the diagonal of A alone.

    One precision: that of greatest evidence. One for each column: MacKay's α = γ/|w|² until it is
    stationary, γ being the number of its parameters that the data determine.
    """
    c, first = objective.coordinates.c, int(objective.standard.intercept)
    how = "by the diagonal of the second derivatives"
    w = fit([objective], w, None)
    A = precision_diagonal(objective, w).reshape(c, -1)
    most, n_slopes = float(A[:, first:].max()), A[:, first:].size

    def minus_evidence(log_alpha: float) -> float:
        nonlocal w
        tried = _with_precisions(objective, groups, np.exp([log_alpha]))
        w = fit([tried], w, None)
        log_ratio = log_determinant_of(precision_diagonal(tried, w)) - n_slopes * log_alpha
        return tried(w, "none").value + 0.5 * log_ratio

    if groups.max() == 0:
        bounds = math.log(max(weakest, 1e-12)), math.log(most) + 5.0
        options = {"xatol": _CLOSE}
        best = minimize_scalar(minus_evidence, bounds=bounds, method="bounded", options=options)
        return PrecisionChoice(_with_precisions(objective, groups, np.exp([best.x])), w, None, how)
    for _ in range(_ROUNDS):
        alpha = objective.penalty.precision
        known = grouped_sums((1 - alpha / A).sum(axis=0), groups)
        squares = grouped_sums(np.square(objective.coordinates.vectors(w)).sum(axis=0), groups)
        new = np.clip(known / np.maximum(squares, 1e-300), weakest, most / _LEAST)
        objective = _with_precisions(objective, groups, new)
        w = fit([objective], w, None)
        moved = objective.penalty.precision[groups >= 0] / alpha[groups >= 0]
        if abs(np.log(moved)).max() <= _CLOSE:
            break
        A = precision_diagonal(objective, w).reshape(c, -1)
    return PrecisionChoice(objective, w, None, how)
