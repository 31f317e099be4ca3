"""Fits to classes that can be separated: the likelihood has no maximum, but its limit has a model.

Along the separating ray the probability of a separated row's own class goes to one. The limit is
reached, to the last digit of a double, a finite way out. There, what is left of the likelihood is
that of the rows on the face of the separation, which has a maximum of its own: it is found in the
directions that these rows determine.
"""

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from posteriori.errors import SeparationWarning, warn
from posteriori.likelihood.binary import BinaryLoss
from posteriori.likelihood.link import ProbabilityLink, SymmetricLink
from posteriori.likelihood.logistic import LogisticLoss
from posteriori.linalg import unit_diagonal
from posteriori.models.doubt import Most, support_of
from posteriori.models.face import Within, determined
from posteriori.posterior.objective import BLOCK_ENTRIES, LogPosterior
from posteriori.rows.block import Block
from posteriori.solve.first_order import gradient
from posteriori.solve.newton import newton
from posteriori.solve.separation import INTERCEPT, Separation, reach
from posteriori.solve.solution import Iteration, Solution, Status
from posteriori.statistics.local_quadratic import (
    GatherProducts,
    GatherQuadratic,
    activations,
)
from posteriori.typing import Array

_CERTAIN = 1e-17
"""A probability that is nothing beside one."""

_FAR = 1e7
"""Quartile ranges of a link beyond which activations have lost the digits of others beside them."""

_FOR_A_CLASS_WITHOUT_ROWS = (
    "Leave the class out, or hold the intercepts too: "
    "prior=GaussianPrior(intercept_precision=0.01)."
)

_ROUNDS = 3
_MOST_STEPS = 100


@dataclass(frozen=True)
class Limit:
    """Where the likelihood is at its limit, and the directions (p, k) that are determined there."""

    solution: Solution[Array, Iteration]
    directions: Array


def certain_margin(link: ProbabilityLink) -> float:
    """The activation at which the other class has a probability that is nothing beside one."""
    ends = link.activation(np.array([_CERTAIN, 1 - np.finfo(np.float64).epsneg]))
    return float(abs(ends).max())


def limit(
    objective: LogPosterior,
    found: Separation,
    solution: Solution[Array, Iteration],
    margin: float,
    max_iter: int | None,
    by_newton: bool = True,
) -> Limit:
    """The finite part of a fit to separated classes, far enough out along the ray.

    `margin` is an activation at which a class is certain. `by_newton` says whether the solution is
    of Newton's method, whose way does not depend on the coordinates.
    """
    w, support = solution.parameters, support_of(objective)
    is_free = not objective.penalty.precision.any()
    if found.kind == "complete" and is_free:
        w, middle = _widest(objective, w, by_newton)
        stretch = _stretch(objective, w, margin + abs(middle))
        if stretch < np.inf:
            return _ended(objective, stretch * w + middle * _unit_intercept(objective), solution)
    ray = _free(objective, objective.standard.from_user(found.ray.T))
    if found.kind == "quasi":
        margin = min(margin, _far(objective))
    margin += _largest_offset(objective)
    for _ in range(_ROUNDS):
        theta = objective.standard.to_user(objective.coordinates.expand(w)).T
        w = w + reach(objective.rows, found, theta, margin=margin, support=support) * ray
        if is_free and found.kind == "complete":
            return _ended(objective, w, solution)
        if objective.is_wide:
            inner = gradient([objective], w)
            return _ended(objective, inner.parameters, solution)
        directions = determined(objective, found, w)
        if not directions.shape[1]:
            return _ended(objective, w, solution)
        inner = newton(
            [Within(objective, w, directions)],
            np.zeros(directions.shape[1]),
            max_iter=max_iter or _MOST_STEPS,
            always_fresh=True,
        )
        w = w + directions @ inner.parameters
        theta = objective.standard.to_user(objective.coordinates.expand(w)).T
        if reach(objective.rows, found, theta, margin=0.9 * margin, support=support) == 0:
            break
    trace = (*solution.trace, *inner.trace)
    return Limit(Solution(w, Status.SEPARATED, trace, inner.value), directions)


def _ended(objective: LogPosterior, w: Array, solution: Solution[Array, Iteration]) -> Limit:
    """A limit in which nothing is left to be found."""
    value = objective(w, "none").value
    return Limit(
        replace(solution, parameters=w, status=Status.SEPARATED, value=value),
        np.zeros((len(w), 0)),
    )


def _free(objective: LogPosterior, vectors: Array) -> Array:
    """The free parameters that give all rows the activations of coefficients (K, q).

    Where columns depend on others, several coefficients give the same activations: those that come
    closest on all rows are had from BᵀGB u = BᵀGv, G being the Gram matrix of the rows.
    """
    basis, vectors = objective.coordinates.basis, objective.coordinates.contrasts.T @ vectors
    if basis is None:
        return vectors.ravel()
    found = objective.rows.map_sum(GatherProducts(objective.columns, objective.standard))
    gram = objective.standard.inward_matrix(found)
    matrix, scale = unit_diagonal(basis.T @ gram @ basis)
    free = np.linalg.solve(matrix, (basis.T @ gram @ vectors.T) / scale[:, None])
    return cast(Array, (free / scale[:, None]).T.ravel())


def _widest(objective: LogPosterior, w: Array, by_newton: bool) -> tuple[Array, float]:
    """Parameters on their way out along the widest margin, and the activation of the boundary.

    Newton's steps are on that way where both classes pull alike; those of other solvers lead
    wherever the coordinates do. With other links where an iteration leads is an accident of its
    steps, and that of the logistic sigmoid stands in for it, with the boundary at the activation
    at which both classes are equally probable, if there is an intercept.
    """
    loss = objective.loss
    if not isinstance(loss, BinaryLoss) or isinstance(loss.link, SymmetricLink):
        if by_newton or objective.is_wide:
            return w, 0.0
        return newton([objective], np.zeros(len(w)), suspicion=lambda: True).parameters, 0.0
    logistic = replace(objective, loss=LogisticLoss())
    found = newton([logistic], np.zeros(len(w)), max_iter=_MOST_STEPS)
    middle = float(loss.link.activation(np.array([0.5]))[0])
    return found.parameters, middle if objective.standard.intercept else 0.0


def _unit_intercept(objective: LogPosterior) -> Array:
    """The free parameters that give every row the activation one; zero without an intercept."""
    vectors = np.zeros((objective.coordinates.n_activations, objective.coordinates.q))
    vectors[:, 0] = float(objective.standard.intercept)
    return _free(objective, vectors)


def _far(objective: LogPosterior) -> float:
    """How far out rows may be without taking the digits of those on the face.

    With heavy tails a class is certain only far beyond.
    """
    if not isinstance(objective.loss, BinaryLoss):
        return np.inf
    low, high = objective.loss.link.activation(np.array([0.25, 0.75]))
    return float(_FAR * (high - low))


def _stretch(objective: LogPosterior, w: Array, margin: float) -> float:
    """The least multiple of w, one or more, that gives every row the margin, offsets and all.

    Infinite where w puts a row on the wrong side.
    """
    kernel = objective.kernel(w)
    return objective.rows.map_sum(
        lambda block: Most(_stretch_of(kernel, block, margin)), block_entries=BLOCK_ENTRIES
    ).value


def _stretch_of(kernel: GatherQuadratic, block: Block, margin: float) -> float:
    standard = kernel.standard
    design = standard.design(kernel.columns.design(block))
    a = activations(design, kernel.theta, standard.intercept, None)
    t = kernel.target(block)
    gap = _own_above_others(a, t)
    given = 0.0 if block.offset is None else _own_above_others(block.offset, t)
    with np.errstate(divide="ignore"):
        needed = np.where(gap > 0, (margin - given) / gap, np.inf)
    return float(needed.max(initial=1.0))


def _own_above_others(a: Array, t: Array) -> Array:
    """By how much the activation of a row's own class is above that of each other one."""
    if a.ndim == 1:
        return a * np.where(t > 0.5, 1.0, -1.0)
    own = (a * t).sum(axis=1)
    return (own[:, None] - a)[t == 0]


def _largest_offset(objective: LogPosterior) -> float:
    """The largest difference that offsets make between two classes of a row."""
    return objective.rows.map_sum(lambda block: Most(_offset_of(block))).value


def _offset_of(block: Block) -> float:
    offset = block.offset
    if offset is None:
        return 0.0
    apart = abs(offset) if offset.ndim == 1 else np.ptp(offset, axis=1)
    return float(apart.max(initial=0.0))


def warn_of_separation(found: Separation, remedies: str) -> None:
    """Say which coefficients run away, and what can be done."""
    extent = "all rows" if found.kind == "complete" else "some of the rows"
    reason = (
        f"The classes of {extent} can be told apart without error, already by "
        f"{_in_words(found.columns)} alone"
    )
    runs = "these coefficients, and maybe others, run"
    if found.columns == (INTERCEPT,):
        runs = "intercepts run"
        reason, remedies = "No row is of one of the classes", _FOR_A_CLASS_WITHOUT_ROWS
    warn(
        SeparationWarning(
            f"{reason}, so the likelihood has no maximum: {runs} "
            "to infinity (see separation_). What is given is the limit: its probabilities are "
            "right, its large coefficients are only large enough.",
            remedies,
        )
    )


def _in_words(columns: tuple[str, ...], most: int = 8) -> str:
    """The columns of a ray as a message calls them."""
    names = [f"'{name}'" for name in columns if name != INTERCEPT]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more + " (with the intercept)" * (INTERCEPT in columns)
