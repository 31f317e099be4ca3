"""The perceptron's updates and those of the adaline, row after row (4.1.7).

Conventions: rows φ (k, p) with the intercept first, class codes (k,), weights (k,). Two classes
have one activation, W (p, 1), positive for the second class; more have one a class, W (p, K).

Both solvers take many rows at a time and do to W what one row after the other would do to it.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum
from functools import reduce
from operator import add
from typing import NamedTuple

import numpy as np

from posteriori.linalg import solve_lower
from posteriori.statistics.bins import Shuffle
from posteriori.statistics.coordinates import Mask
from posteriori.statistics.sequence import Segment, Walkable
from posteriori.typing import Array, Codes

_FEWEST, _MOST = 8, 4096
"""Rows whose activations are looked at in one go, after a mistake and after none for long."""

_ENOUGH = 2000
"""Updates after which it is decided whether the classes can be separated at all, and twice p² more:
about as much work as the linear program that decides it."""

_ROUNDING = 1e-12
"""Activations, and sums of weights, that differ by less than this share are equal: their last bits
depend on where the rows lie, and few different values have many rows on a boundary."""

_CHUNK = 64
"""Rows whose least-mean-squares updates are worked out in one triangular system."""


class Outcome(Enum):
    """How the epochs ended; the value is the sentence shown to the user."""

    CONVERGED = "Every row lies on the right side."
    INSEPARABLE = "No linear function puts every row on the right side of its boundaries."
    MAX_EPOCHS = "The epochs ended before every row was on the right side."


@dataclass(frozen=True, eq=False)
class Walk:
    """Where the updates have come to.

    time: the weight of all rows visited; drag: Σ of each step times the time at which it was made,
    from which the mean of W over all visits follows without adding it up.
    """

    weights: Array
    drag: Array
    time: float = 0.0
    n_updates: int = 0
    n_epochs: int = 0

    @classmethod
    def from_zero(cls, n_parameters: int, n_classes: int) -> "Walk":
        shape = (n_parameters, 1 if n_classes == 2 else n_classes)
        return cls(np.zeros(shape), np.zeros(shape))

    def mean(self) -> Array:
        """The mean of W over all visits, each counted by the weight of its row."""
        return self.weights - self.drag / self.time


class Perceived(NamedTuple):
    """The answer of the perceptron, where its walk ended, and how."""

    weights: Array
    walk: Walk
    outcome: Outcome


def learn(
    visits: Walkable,
    walk: Walk,
    orders: Callable[[], Shuffle | None],
    separable: Callable[[Array], bool],
    *,
    max_epochs: int,
    averaged: bool,
) -> Perceived:
    """Epochs of updates until one has no mistake, or none can be without (4.55).

    `orders` gives the order of the rows in the next epoch. `separable` decides whether there is an
    answer without mistakes, given W; it is asked once, when so many updates have been made that the
    question is worth its cost. The answer is the last W, or where that makes mistakes the one that
    makes the fewest, of those after each epoch and their means; `averaged` asks for the mean.
    """
    best, fewest, asked = walk.weights, np.inf, False
    enough = _ENOUGH + 2 * len(walk.weights) ** 2
    for epoch in range(1, max_epochs + 1):
        before, walk = walk.n_updates, perceptron_epoch(walk, visits, orders())
        if walk.n_updates == before:
            return Perceived(walk.mean() if averaged else walk.weights, walk, Outcome.CONVERGED)
        for candidate in () if averaged else (walk.weights, walk.mean()):
            mistakes = mistaken_weight(candidate, visits)
            if mistakes < (1.0 - _ROUNDING) * fewest:
                best, fewest = candidate, mistakes
        if not asked and (walk.n_updates >= enough or epoch == max_epochs):
            asked = True
            if not separable(walk.weights):
                return Perceived(walk.mean() if averaged else best, walk, Outcome.INSEPARABLE)
    return Perceived(walk.mean() if averaged else best, walk, Outcome.MAX_EPOCHS)


def perceptron_epoch(walk: Walk, visits: Walkable, order: Shuffle | None = None) -> Walk:
    """One visit to every row: W changes where a row is not strictly on its own side (4.55)."""
    walk = visits.fold(_walk_on, walk, order)
    return replace(walk, n_epochs=walk.n_epochs + 1)


def _walk_on(walk: Walk, segments: Iterable[Segment]) -> Walk:
    update = _two_classes if walk.weights.shape[1] == 1 else _many_classes
    return reduce(update, segments, walk)


def _times(walk: Walk, weight: Array) -> Array:
    """The time before each visit, and after the last."""
    return walk.time + np.concatenate([np.zeros(1), np.cumsum(weight)])


def _blur(rows: Array) -> Array:
    """What rounding may do to the activations of rows, for each unit of the size of W (k,)."""
    return _ROUNDING * np.sqrt(np.einsum("ij,ij->i", rows, rows))


def _size(W: Array) -> float:
    """The size of W, and that of a step, of which W is the sum."""
    return 1.0 + math.sqrt(np.vdot(W, W))


def _two_classes(walk: Walk, segment: Segment) -> Walk:
    """w ← w + φt where wᵀφt ≤ 0, t = ±1 (4.55)."""
    sign = np.where(segment.codes == 1, 1.0, -1.0)
    # One column and one parameter more take off what rounding may have added.
    blurred = np.empty((len(sign), len(walk.weights) + 1))
    signed = np.multiply(segment.rows, sign[:, None], out=blurred[:, :-1])
    blurred[:, -1] = -_blur(segment.rows)
    w_and_size = np.append(walk.weights[:, 0], _size(walk.weights))
    w, drag = w_and_size[:-1], walk.drag[:, 0].copy()
    times, n_updates = _times(walk, segment.weight), walk.n_updates
    i, ahead, n = 0, _FEWEST, len(signed)
    while i < n:
        wrong = blurred[i : i + ahead] @ w_and_size <= 0
        first = int(wrong.argmax())
        if not wrong[first]:
            i, ahead = i + ahead, min(2 * ahead, _MOST)
            continue
        i += first
        step = segment.weight[i] * signed[i]
        w += step
        w_and_size[-1] = _size(w)
        drag += times[i] * step
        n_updates += 1
        i, ahead = i + 1, max(2 * first, _FEWEST)
    return replace(
        walk, weights=w[:, None], drag=drag[:, None], time=float(times[-1]), n_updates=n_updates
    )


def _many_classes(walk: Walk, segment: Segment) -> Walk:
    """w_y ← w_y + φ and w_k ← w_k - φ where the largest other a_k is not below a_y.

    Where several a_k are the largest, they share the step.
    """
    W, drag = walk.weights.copy(), walk.drag.copy()
    times, n_updates = _times(walk, segment.weight), walk.n_updates
    rows, codes, blur = segment.rows, segment.codes, _blur(segment.rows)
    i, ahead, n = 0, _FEWEST, len(rows)
    while i < n:
        here = slice(i, i + ahead)
        near = _size(W) * blur[here]
        others, wrong = _against_others(rows[here] @ W, codes[here], near)
        first = int(wrong.argmax())
        if not wrong[first]:
            i, ahead = i + ahead, min(2 * ahead, _MOST)
            continue
        i += first
        winners = others[first] >= others[first].max() - near[first]
        change = np.where(winners, -1.0 / np.count_nonzero(winners), 0.0)
        change[codes[i]] = 1.0
        step = np.outer(rows[i], segment.weight[i] * change)
        W += step
        drag += times[i] * step
        n_updates += 1
        i, ahead = i + 1, max(2 * first, _FEWEST)
    return replace(walk, weights=W, drag=drag, time=float(times[-1]), n_updates=n_updates)


def _against_others(activation: Array, codes: Codes, near: Array) -> tuple[Array, Mask]:
    """The activations of the other classes, -∞ for the own one, and where one is not below it.

    Those that are as `near` to each other as this (k,) are equal.
    """
    places = np.arange(len(codes))
    own = activation[places, codes]
    activation[places, codes] = -np.inf
    return activation, own <= activation.max(axis=1) + near


def mistakes(weights: Array, segment: Segment) -> Mask:
    """Which rows of a segment are not strictly on their own side (k,)."""
    activation, near = segment.rows @ weights, _size(weights) * _blur(segment.rows)
    if weights.shape[1] == 1:
        return np.where(segment.codes == 1, activation[:, 0], -activation[:, 0]) <= near
    return _against_others(activation, segment.codes, near)[1]


def mistaken_weight(weights: Array, visits: Walkable) -> float:
    """The weight of all rows that are not strictly on their own side."""

    def step(total: float, segments: Iterable[Segment]) -> float:
        found = (float(segment.weight @ mistakes(weights, segment)) for segment in segments)
        return sum(found, total)

    return visits.fold(step, 0.0)


def suspects(weights: Array, visits: Walkable) -> list[int]:
    """The classes in the order of the weight of mistakes that they take part in."""

    def step(blame: Array, segments: Iterable[Segment]) -> Array:
        return reduce(add, (_blame(weights, segment) for segment in segments), blame)

    blame = visits.fold(step, np.zeros(max(weights.shape[1], 2)))
    return [int(k) for k in np.argsort(-blame, kind="stable")]


def _blame(weights: Array, segment: Segment) -> Array:
    """The weight of the mistakes that each class takes part in."""
    K, wrong = max(weights.shape[1], 2), mistakes(weights, segment)
    codes, weight = segment.codes[wrong], segment.weight[wrong]
    blame = np.bincount(codes, weight, minlength=K).astype(np.float64)
    if weights.shape[1] > 1:
        others, _ = _against_others(segment.rows[wrong] @ weights, codes, np.zeros(len(codes)))
        blame += np.bincount(others.argmax(axis=1), weight, minlength=K)
    return blame


def targets(codes: Codes, n_outputs: int) -> Array:
    """What the adaline's outputs are to be: -1 and +1 for two classes, else the 1-of-K code."""
    if n_outputs == 1:
        return np.where(codes == 1, 1.0, -1.0)[:, None]
    return np.eye(n_outputs)[codes]


class _Course(NamedTuple):
    """W, its sum over the visits made, by weight; their weight and their number."""

    weights: Array
    total: Array
    time: float = 0.0
    n_visits: int = 0


def adaline_epoch(
    weights: Array, visits: Walkable, rate: float, order: Shuffle | None = None
) -> tuple[Array, Array, int]:
    """One visit to every row, W ← W + η φ (t - Wᵀφ)ᵀ; gives W, its mean, and how many visits.

    η = rate · weight of the row, but no more than 1/|φ|², which would fit the row alone.
    """

    def step(course: _Course, segments: Iterable[Segment]) -> _Course:
        return reduce(lambda course, segment: _run_on(course, segment, rate), segments, course)

    course = visits.fold(step, _Course(weights, np.zeros_like(weights)), order)
    return course.weights, course.total / course.time, course.n_visits


def _run_on(course: _Course, segment: Segment, rate: float) -> _Course:
    weights, total, time, n_visits = course
    squares = np.einsum("ij,ij->i", segment.rows, segment.rows)
    steps = np.minimum(rate * segment.weight, 1 / squares)
    t = targets(segment.codes, weights.shape[1])
    for low in range(0, len(t), _CHUNK):
        here = slice(low, low + _CHUNK)
        weights, sums = _chunk(
            weights, segment.rows[here], t[here], steps[here], segment.weight[here]
        )
        total, time = total + sums, time + float(segment.weight[here].sum())
    return _Course(weights, total, time, n_visits + len(t))


def _chunk(W: Array, rows: Array, t: Array, steps: Array, weight: Array) -> tuple[Array, Array]:
    """W after some rows one by one, and Σ weight · W over these visits.

    The error of row i is e_i = t_i - W₀ᵀφ_i - Σ_{j<i} η_j (φ_jᵀφ_i) e_j: a triangular system.
    """
    system = np.tril(rows @ rows.T, -1) * steps
    np.fill_diagonal(system, 1.0)
    errors = solve_lower(system, t - rows @ W) * steps[:, None]
    left = np.cumsum(weight[::-1])[::-1]
    return W + rows.T @ errors, left[0] * W + rows.T @ (errors * left[:, None])


def squared_error_gradient(weights: Array, visits: Walkable) -> Array:
    """The mean of φ (t - Wᵀφ)ᵀ over the rows (p, c), zero at the least squares answer (4.15)."""

    def step(state: tuple[Array, float], segments: Iterable[Segment]) -> tuple[Array, float]:
        total, time = state
        for segment in segments:
            errors = targets(segment.codes, weights.shape[1]) - segment.rows @ weights
            total = total + segment.rows.T @ (errors * segment.weight[:, None])
            time += float(segment.weight.sum())
        return total, time

    total, time = visits.fold(step, (np.zeros_like(weights), 0.0))
    return total / time
