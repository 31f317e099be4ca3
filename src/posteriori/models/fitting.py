"""From rows and settings to an objective that a solver can minimise.

Targets are coded, columns standardised, dependent columns found, subsamples drawn, and a start is
chosen.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from posteriori.design.columns import Columns
from posteriori.design.standardise import STILL, Standard
from posteriori.errors import DomainError, InfiniteValueError, MissingValueError
from posteriori.likelihood.binary_losses import SignedLogisticLoss
from posteriori.likelihood.glm_families import SquaredLoss
from posteriori.likelihood.links import Domain
from posteriori.likelihood.loss import ClassLoss, Loss
from posteriori.linalg import COLLINEAR, dependent_columns, unit_diagonal
from posteriori.posterior.log_posterior import Coordinates, LogPosterior
from posteriori.posterior.priors import (
    GaussianPrior,
    Penalty,
    PriorLike,
    PriorName,
    flat,
    hold_intercept,
    read_prior,
)
from posteriori.rows.block import Block, FitRows, Rows
from posteriori.rows.schema import HandleUnknown
from posteriori.statistics.column_moments import column_spread
from posteriori.statistics.glm_domain import offset_range
from posteriori.statistics.goodness_of_fit import GatherTargetMean, TargetMean
from posteriori.statistics.local_quadratic import GatherProducts, Information, Target
from posteriori.statistics.row_sample import sample_rows, split_rows
from posteriori.typing import Array, Codes

_ROWS_PER_PARAMETER = 12
_SMALLEST_SAMPLE = 1000
GROWTH = 8
"""How many times as many rows a fit goes on to, from a subsample, at least."""

_SAMPLE_ENTRIES = 2**22
"""Numbers of the largest subsample, or up to twice as many."""

_FEWEST_COLUMNS = 8
"""Columns that a row counts as, at least: it has a label and a weight too."""

MOST_ENTRIES = 2**25
"""Numbers of a subsample at most; where these are too few rows, a fit starts without one."""

_DAMPING = 0.1
"""Precision that keeps the coefficients of a separated subsample finite."""

_NOISE = 0.3
"""How near to the optimum of a subsample it pays to go, in its distance from that of all rows."""


class Subsample(NamedTuple):
    """Rows, how many times their weight all rows have, and their share of all rows."""

    rows: Rows
    factor: float = 1.0
    row_fraction: float = 1.0


def subsamples(rows: Rows, p: int) -> list[Subsample]:
    """Subsamples that grow up to all rows; only these if they are few for p parameters.

    The largest has as many rows as a source should bring into memory; where these are too few for
    so many columns, more of them, as far as memory allows. It is the same from every source.
    """
    levels = [Subsample(rows)]
    least = max(_SMALLEST_SAMPLE, _ROWS_PER_PARAMETER * p)
    if rows.n_rows < GROWTH * least:
        return levels
    width = max(len(rows.schema), _FEWEST_COLUMNS)
    share = max(rows.n_rows * width / (2 * _SAMPLE_ENTRIES), 1)
    many = max(GROWTH, 2 ** math.ceil(math.log2(share)))
    if rows.n_rows // many < least:
        most = min(2 * least, MOST_ENTRIES // width)
        many = max(GROWTH, rows.n_rows // max(most, 1))
    while levels[-1].rows.n_rows // many >= least:
        last = levels[-1]
        some, times = sample_rows(last.rows, many)
        if some.n_rows < least or not np.isfinite(times):
            break
        levels.append(Subsample(some, last.factor * times, some.n_rows / rows.n_rows))
        many = GROWTH
    return levels[::-1]


def on_subsamples(full: LogPosterior, levels: Sequence[Subsample]) -> list[LogPosterior]:
    """The objective on each level; on a subsample its noise is tolerance enough."""
    p, problems = full.coordinates.size, [full]
    for rows, factor, row_fraction in reversed(levels[:-1]):
        tolerance, penalty = _NOISE * np.sqrt(p * factor), full.penalty
        if not penalty.proper:
            amount = _DAMPING * factor * np.sqrt(p) * full.mean_weight
            penalty = penalty.damped(amount, full.standard.intercept)
        problems.append(
            replace(
                full,
                rows=rows,
                factor=factor,
                row_fraction=row_fraction,
                tolerance=tolerance,
                penalty=penalty,
            )
        )
    return problems[::-1]


Code = Callable[[Any], Array]


def second_of_two(y: Any) -> Array:
    """How much each row belongs to the second of two classes (n,)."""
    return cast(Array, y[:, 1] if y.ndim == 2 else y.astype(np.float64))


def signs(y: Any) -> Array:
    """-1 for the first class and +1 for the second (n,)."""
    return cast(Array, 2.0 * y - 1.0)


def of_many(n_classes: int) -> Code:
    """How much each row belongs to each class (n, K), class by class in memory."""
    unit = np.eye(n_classes)

    def code(y: Any) -> Array:
        return np.asfortranarray(y) if y.ndim == 2 else unit.take(y, axis=1).T

    return code


def _as_it_is(block: Block) -> Array:
    return cast(Array, block.y)


_SMALL = 2**19
"""With fewer numbers than this, the last digits are had for next to nothing."""

_ENOUGH = 4000
"""Rows that say where a column lies and how wide it is. With fewer, columns and intercept hang
together so much that the solvers need more steps."""

_LAST_DIGIT = 1e-11
"""Standard errors from the optimum below which rounding sets the limit."""

EVERYWHERE = Domain()
"""The domain of a link that takes every activation."""


@dataclass(frozen=True, eq=False)
class Problem:
    """What is to be fitted: rows, a model of their target, and a prior on its coefficients.

    `intercept_precision` is that of the intercept of centred columns where the prior has none.
    """

    rows: Rows
    columns: Columns
    loss: Loss | ClassLoss
    target: Target
    n_activations: int
    intercept: bool
    prior: PriorLike
    tol: float
    information: Information = "observed"
    domain: Domain = EVERYWHERE
    intercept_precision: float = 0.0


def read_problem(
    rows: FitRows,
    loss: Loss | ClassLoss,
    handle_unknown: HandleUnknown,
    intercept: bool,
    prior: PriorLike | PriorName,
    tol: float,
    information: Information = "observed",
) -> Problem:
    """The likelihood of a target: a number or two classes by a `Loss`, more by a `ClassLoss`."""
    K, target = 1 if rows.classes is None else len(rows.classes), _as_it_is
    coded = rows
    if K == 2:  # all rows are coded beforehand
        coded = rows.recoded(signs if isinstance(loss, SignedLogisticLoss) else second_of_two)
    elif K > 2:
        code = of_many(K)

        def target(block: Block) -> Array:
            return code(block.y)

    columns, n_activations = Columns(rows.schema, handle_unknown), K if K > 2 else 1
    if isinstance(prior, str):  # the data choose it; a fit to do so starts with precision one
        prior = None if prior == "jeffreys" else GaussianPrior(units="standardised")
    if isinstance(prior, GaussianPrior):
        prior = prior.by_column(columns)
    return Problem(coded, columns, loss, target, n_activations, intercept, prior, tol, information)


@dataclass(frozen=True, eq=False)
class Prepared:
    """The objective on ever more rows, where to start, and the columns that others explain.

    `hessian` is that at the start, where it is known.
    """

    levels: list[LogPosterior]
    start: Array
    dependent: Codes
    hessian: Array | None = None

    @property
    def objective(self) -> LogPosterior:
        """The objective on all rows."""
        return self.levels[-1]


def prepare(problem: Problem) -> Prepared:
    """Standardise the columns, find a start, and drop columns that depend on others."""
    q = len(problem.columns.names) + int(problem.intercept)
    coordinates = Coordinates(problem.n_activations, q)
    levels = [Subsample(problem.rows)]
    if not problem.domain.is_bounded:  # else what is inside for some rows need not be for all
        levels = subsamples(problem.rows, coordinates.size)
    standard, constant = _standardise(problem, levels)
    mean = levels[0].rows.map_sum(GatherTargetMean(problem.target))
    penalty = read_prior(problem.prior, standard)
    if problem.intercept:
        penalty = hold_intercept(penalty, problem.intercept_precision)
    if penalty.proper and _intercept_runs(problem, penalty, mean):
        penalty = replace(penalty, proper=False)
    if problem.n_activations > 1:  # the mean that all classes share changes nothing
        penalty = replace(penalty, mean=np.zeros(q))
    tolerance = problem.tol if len(levels) > 1 else max(problem.tol**2, _LAST_DIGIT)
    if problem.rows.n_rows * coordinates.size <= _SMALL:
        tolerance = _LAST_DIGIT
    objective = LogPosterior(
        problem.rows,
        problem.columns,
        standard,
        problem.loss,
        problem.target,
        penalty,
        coordinates,
        tolerance,
        problem.information,
        mean_weight=mean.weight / levels[0].rows.n_rows,
    )
    start = _start(problem, mean, objective)
    dependent = np.empty(0, dtype=np.intp)
    if not penalty.proper and not objective.is_wide:
        objective, dependent = _identified(objective, levels, constant)
        places = dependent + int(problem.intercept)
        start = np.delete(start.reshape(-1, q), places, axis=1).ravel()
    return Prepared(on_subsamples(objective, levels), start, dependent)


def is_large(objective: LogPosterior) -> bool:
    """Whether the last digits cost something."""
    return objective.n_rows * objective.coordinates.size > _SMALL


def _standardise(problem: Problem, levels: list[Subsample]) -> tuple[Standard, NDArray[np.bool_]]:
    """Centre and scale of each column, and which columns never change.

    A few rows suffice: centring and scaling change no prediction. More are used where a column
    seems constant, and all where the prior is that of centred columns, or of standard deviations.
    """
    prior, candidates = problem.prior, [problem.rows]
    exact = isinstance(prior, GaussianPrior) and prior.units == "standardised"
    exact = exact or problem.intercept_precision > 0
    if len(levels) > 1 and not exact:
        some = levels[-2].rows
        candidates = [split_rows(some, max(some.n_rows // _ENOUGH, 1))[0], some, problem.rows]
    for rows in candidates:
        try:
            found = column_spread(rows, problem.columns)
        except (MissingValueError, InfiniteValueError):
            column_spread(problem.rows, problem.columns)  # raises again, with the row's number
            raise
        constant = found.deviation <= STILL * abs(found.mean)
        if not constant.any():
            break
    mean = found.mean
    if problem.intercept:
        scale = np.where(constant, np.where(mean == 0, 1.0, abs(mean)), found.deviation)
        return Standard(mean, scale, True), constant
    size = np.hypot(found.deviation, found.mean)
    return Standard(np.zeros(len(mean)), np.where(size > 0, size, 1.0), False), size == 0


def _intercept_runs(problem: Problem, penalty: Penalty, some: TargetMean) -> bool:
    """Whether an intercept without prior diverges, as where a class has no rows.

    `some` is the mean target of a few of the rows.
    """
    if not problem.intercept or not _is_at_end(problem.loss, some.mean):
        return False
    if np.any(penalty.precision[0] if penalty.precision.ndim == 1 else penalty.precision[0, 0]):
        return False
    whole = problem.rows.map_sum(GatherTargetMean(problem.target))
    return _is_at_end(problem.loss, whole.mean)


def _is_at_end(loss: Loss | ClassLoss, mean: Array) -> bool:
    """Whether no finite activation has this mean target."""
    if isinstance(loss, ClassLoss):
        return bool((mean <= 0).any())
    with np.errstate(divide="ignore"):
        return not np.isfinite(loss.activation(mean)).all()


def _start(problem: Problem, found: TargetMean, objective: LogPosterior) -> Array:
    """No slopes, and the intercept that gives the mean target."""
    if problem.domain.is_bounded:
        return _start_inside(problem, found, objective)
    vectors = np.zeros((objective.coordinates.c, objective.coordinates.q))
    if problem.intercept:
        with np.errstate(divide="ignore"):
            level = (
                np.log(np.maximum(found.mean, 1e-3))
                if isinstance(problem.loss, ClassLoss)
                else problem.loss.activation(found.mean)
            )
        level = np.where(np.isfinite(level), level, 0.0) - found.mean_offset
        vectors[:, 0] = objective.coordinates.contrasts.T @ level
    return vectors.ravel()


def _start_inside(problem: Problem, found: TargetMean, objective: LogPosterior) -> Array:
    """Coefficients with which every activation lies inside the domain of the link.

    With an intercept there are no slopes, and the activation of the mean target belongs to the
    mean offset, or to the smallest or the largest. Without one, and where zero lies outside, the
    slopes are those of a least squares fit to that activation.
    """
    level = float(cast(Loss, problem.loss).activation(found.mean)[0])
    start: Array = np.zeros(objective.coordinates.size)
    if problem.intercept:
        offsets = float(found.mean_offset[0]), *offset_range(problem.rows)
        starts = [np.append(level - offset, start[1:]) for offset in offsets]
    elif problem.domain.low < 0 < problem.domain.high:
        starts = [start]
    else:

        def constant(block: Block) -> Array:
            return np.full(block.X.shape[0], level)

        square = replace(objective, loss=SquaredLoss(), target=constant, penalty=flat(len(start)))
        here = square(start, "full")
        starts = [np.linalg.lstsq(cast(Array, here.hessian), -here.gradient)[0]]
    for start in starts:
        if np.isfinite(objective(start, "none").value):
            return start
    raise DomainError(
        f"No coefficients were found that give every row an activation {problem.domain.words}.",
        "Use an intercept and smaller offsets, or a link that takes every activation.",
    )


def _identified(
    objective: LogPosterior, levels: list[Subsample], constant: NDArray[np.bool_]
) -> tuple[LogPosterior, Codes]:
    """The objective without directions along which nothing changes, and the columns in them.

    Of all coefficients with the same activations, those of smallest norm are taken, in the user's
    units; so a column that depends on others shares their coefficients.
    """
    standard, precision = objective.standard, objective.penalty.precision
    first = int(standard.intercept)
    flat = np.concatenate([np.zeros(first, dtype=np.bool_), constant])
    if precision.ndim == 1:
        flat &= precision == 0
    # Rounding leaves more of a variance in sums of columns that are far from zero.
    far = 0.0 if standard.moves else abs(standard.centre / standard.scale).max(initial=0.0)
    rounding = max(COLLINEAR, float(np.finfo(np.float64).eps * far**2))
    for level in (levels[0], levels[-1]) if len(levels) > 1 else levels:
        sums = level.rows.map_sum(GatherProducts(objective.columns, standard))
        matrix = standard.inward_matrix(sums)
        matrix += np.diag(precision) if precision.ndim == 1 else precision
        matrix[flat] = matrix[:, flat] = 0.0
        dependent = dependent_columns(unit_diagonal(matrix)[0], rounding)
        if not len(dependent):
            return objective, dependent
    basis = _smallest(matrix, dependent, standard)
    coordinates = replace(objective.coordinates, basis=basis)
    return replace(objective, coordinates=coordinates), dependent - first


def _smallest(matrix: Array, dependent: Codes, standard: Standard) -> Array:
    """The map (q, k) from coefficients of the other columns to those of smallest norm."""
    q, first = len(matrix), int(standard.intercept)
    kept = np.setdiff1d(np.arange(q), dependent)
    null = np.zeros((q, len(dependent)))
    null[dependent] = np.eye(len(dependent))
    null[kept] = -np.linalg.solve(matrix[np.ix_(kept, kept)], matrix[np.ix_(kept, dependent)])
    embedding = np.eye(q)[:, kept]
    # Lengths are those of the slopes in the user's units; the intercept is free to follow.
    unit = np.concatenate([np.full(first, np.inf), standard.scale])
    lengths = null / unit[:, None]
    lengths /= abs(lengths).max(axis=0)
    null = null / abs(null / unit[:, None]).max(axis=0)
    share = np.linalg.lstsq(lengths, embedding / unit[:, None])[0]
    return embedding - null @ share
