"""Fits to classes that can be separated: the likelihood has no maximum, but its limit has a model.

Along the separating ray the probability of a separated row's own class goes to one. The limit is
reached, to the last digit of a double, a finite way out. There, what is left of the likelihood is
that of the rows on the face of the separation, which has a maximum of its own: it is found in the
directions that these rows determine.
"""

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from posteriori.errors import SeparationWarning, warn
from posteriori.likelihood.link import ProbabilityLink
from posteriori.likelihood.logistic import SignedLogisticLoss
from posteriori.linalg import unit_diagonal
from posteriori.posterior.objective import BLOCK_ENTRIES, LogPosterior
from posteriori.rows.block import Block
from posteriori.solve.newton import Curvature, Local, newton
from posteriori.solve.separation import Separation, find_separation, reach
from posteriori.solve.solution import Iteration, Solution, Status
from posteriori.statistics.local_quadratic import GatherQuadratic, activations
from posteriori.statistics.pairs import Support
from posteriori.statistics.statistic import Statistic
from posteriori.typing import Array

_CERTAIN = 1e-17
"""A probability that is nothing beside one."""

_ROUNDS = 3
_MOST_STEPS = 100
_DETERMINED = 1e-10
"""A direction with less curvature than this, beside that of its columns, is not determined."""


@dataclass(frozen=True, eq=False)
class Within:
    """An objective as a function of w, its own parameters being origin + directions w."""

    objective: LogPosterior
    origin: Array
    directions: Array

    def __call__(self, w: Array, hessian: Curvature) -> Local:
        found = self.objective(self.origin + self.directions @ w, hessian)
        curved = found.hessian
        if curved is not None:
            curved = self.directions.T @ curved @ self.directions
        return Local(found.value, self.directions.T @ found.gradient, curved)

    @property
    def price(self) -> float:
        return self.objective.price

    @property
    def share(self) -> float:
        return 1.0

    @property
    def n_rows(self) -> int:
        return self.objective.n_rows

    @property
    def tolerance(self) -> float:
        return self.objective.tolerance


@dataclass(frozen=True)
class Limit:
    """Where the likelihood is at its limit, and the directions (p, k) that are determined there."""

    solution: Solution[Array, Iteration]
    directions: Array


def separation_of(objective: LogPosterior, n_classes: int) -> Separation:
    """Whether the classes of the rows can be separated, by linear programs."""
    return find_separation(
        objective.rows,
        n_classes,
        support=_support(objective),
        fit_intercept=objective.standard.intercept,
    )


def no_separation(objective: LogPosterior) -> Separation:
    """What is said of classes that overlap."""
    K, q = objective.coordinates.n_activations, objective.coordinates.q
    return Separation("none", (), np.empty((0,) if K == 1 else (0, K)), np.zeros((q, K)), None)


def _support(objective: LogPosterior) -> Support:
    """The classes that a row may belong to, from its target."""
    signed = isinstance(objective.loss, SignedLogisticLoss)

    def support(block: Block) -> NDArray[Any]:
        t = objective.target(block)
        if signed:
            return (t > 0).astype(np.intp)
        return t > 0 if t.ndim == 2 else np.column_stack([t < 1, t > 0])

    return support


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
) -> Limit:
    """The finite part of a fit to separated classes, far enough out along the ray.

    `margin` is an activation at which a class is certain.
    """
    w, support = solution.parameters, _support(objective)
    if found.kind == "complete" and (least := _least_margin(objective, w)) > 0:
        # The iteration was already on its way along the widest margin; it is kept to.
        return _ended(objective, max(margin / least, 1.0) * w, solution)
    ray = _free_ray(objective, found)
    for _ in range(_ROUNDS):
        theta = objective.standard.to_user(objective.coordinates.expand(w)).T
        w = w + reach(objective.rows, found, theta, margin=margin, support=support) * ray
        directions = _determined(objective, w)
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


def _free_ray(objective: LogPosterior, found: Separation) -> Array:
    """The ray in the free parameters."""
    coordinates = objective.coordinates
    vectors = coordinates.contrasts.T @ objective.standard.from_user(found.ray.T)
    if coordinates.basis is None:
        return vectors.ravel()
    return cast(Array, np.linalg.lstsq(coordinates.basis, vectors.T)[0].T.ravel())


def _determined(objective: LogPosterior, w: Array) -> Array:
    """Directions (p, k) in which the objective has a curvature at w."""
    hessian = objective(w, "full").hessian
    assert hessian is not None
    start = objective(np.zeros(len(w)), "full").hessian
    assert start is not None
    _, scale = unit_diagonal(start)
    values, vectors = np.linalg.eigh(hessian / scale / scale[:, None])
    kept = vectors[:, values > _DETERMINED] / scale[:, None]
    return np.linalg.qr(kept)[0]


@dataclass(frozen=True, eq=False)
class _Least(Statistic):
    value: float

    def __add__(self, other: "_Least") -> "_Least":
        return _Least(min(self.value, other.value))


def _least_margin(objective: LogPosterior, w: Array) -> float:
    """By how much the activation of a row's own class is above the others, at worst."""
    kernel = objective.kernel(w)
    return objective.rows.map_sum(
        lambda block: _Least(_margin_of(kernel, block)), block_entries=BLOCK_ENTRIES
    ).value


def _margin_of(kernel: GatherQuadratic, block: Block) -> float:
    standard = kernel.standard
    design = standard.design(kernel.columns.design(block))
    a = activations(design, kernel.theta, standard.intercept, block.offset)
    t = kernel.target(block)
    if a.ndim == 1:
        return float((a * np.where(t > 0.5, 1.0, -1.0)).min(initial=np.inf))
    own = (a * t).sum(axis=1)
    return float((own - np.where(t > 0, -np.inf, a).max(axis=1)).min(initial=np.inf))


def warn_of_separation(found: Separation) -> None:
    """Say which coefficients run away, and what can be done."""
    columns = ", ".join(f"'{name}'" for name in found.columns[:8])
    more = f" and {len(found.columns) - 8} more" if len(found.columns) > 8 else ""
    extent = "all rows" if found.kind == "complete" else "some of the rows"
    warn(
        SeparationWarning(
            f"The classes of {extent} can be told apart without error by {columns}{more}, so the "
            "likelihood has no maximum: these coefficients run to infinity (see separation_). "
            "What is given is the limit: its probabilities are right, its large coefficients are "
            "only large enough.",
            "Set prior='jeffreys', or a number such as prior=1.0, for finite coefficients; or drop "
            "the columns.",
        )
    )
