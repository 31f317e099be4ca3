"""The perceptron's updates and those of the adaline, row after row (4.1.7).

Conventions: rows φ (k, p) with the intercept first, class codes (k,), weights (k,). Two classes
have one activation, W (p, 1), positive for the second class; more have one a class, W (p, K).

Both solvers take many rows at a time and do to W what one row after the other would do to it.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from posteriori.linalg import solve_lower
from posteriori.statistics.row_stream import RowStream, Segment
from posteriori.typing import Array, Codes

Random = np.random.Generator | None
"""Draws the order of the rows in an epoch; None for the order in which they are stored."""

_FEWEST, _MOST = 8, 4096
"""Rows whose activations are computed at once, after a mistake and after none for long."""

_ENOUGH = 2000
"""Updates after which it is decided whether the classes can be separated at all, and twice p² more:
about as much work as the linear program that decides it."""

_ROUNDING = 1e-12
"""Activations, and sums of weights, that differ by less than this fraction are equal: their last
bits depend on the source, and columns of few different values have many rows on a boundary."""

_CHUNK = 64
"""Rows whose least-mean-squares updates are the solution of one triangular system."""


@dataclass(frozen=True, eq=False)
class PerceptronState:
    """W after some visits.

    time: the weight of all rows visited; moment: Σ of each step times the time at which it was
    made, from which the mean of W over all visits follows.
    """

    weights: Array
    moment: Array
    time: float = 0.0
    n_updates: int = 0
    n_epochs: int = 0

    @classmethod
    def at(cls, weights: Array) -> "PerceptronState":
        """Before the first visit."""
        return cls(weights, np.zeros_like(weights))

    def mean(self) -> Array:
        """The mean of W over all visits, each counted by the weight of its row."""
        return self.weights - self.moment / self.time


class PerceptronSolution(NamedTuple):
    """W, the state at the end, whether the last epoch had no mistake, and whether some W makes none
    (None where that is not known)."""

    weights: Array
    state: PerceptronState
    converged: bool
    separable: bool | None


def perceptron(
    stream: RowStream,
    state: PerceptronState,
    epochs: Iterable[int],
    random: Random,
    separable: Callable[[], bool | None],
    *,
    averaged: bool,
    path: list[Array] | None = None,
) -> PerceptronSolution:
    """Epochs of updates until one has no mistake, or none can be without (4.55).

    `separable` decides whether some W makes no mistake; it is called once, when so many updates
    have been made that the decision is worth its cost. The solution is the last W or, where that
    makes mistakes, the one that makes the fewest, of those after each epoch and their means;
    `averaged` asks for the mean. W after each update is added to `path`.
    """
    best, fewest = state.weights, np.inf
    decided, can_be = False, None
    enough = _ENOUGH + 2 * len(state.weights) ** 2
    for _ in epochs:
        before, state = state.n_updates, perceptron_epoch(state, stream, random, path)
        if state.n_updates == before:
            best = state.mean() if averaged else state.weights
            return PerceptronSolution(best, state, True, True)
        if not averaged:
            candidates = state.weights, state.mean()
            for weights, weight in zip(candidates, mistakes(candidates, stream), strict=True):
                if weight < (1.0 - _ROUNDING) * fewest:
                    best, fewest = weights, weight
        if not decided and state.n_updates >= enough:
            decided, can_be = True, separable()
            if can_be is False:
                break
    if not decided:
        can_be = separable()
    return PerceptronSolution(state.mean() if averaged else best, state, False, can_be)


def perceptron_epoch(
    state: PerceptronState,
    stream: RowStream,
    random: Random = None,
    path: list[Array] | None = None,
) -> PerceptronState:
    """One visit to every row: W changes where a row is not strictly on its own side (4.55)."""
    for segment in stream.segments(random):
        state = _visit(state, segment, path)
    return replace(state, n_epochs=state.n_epochs + 1)


def _visit(state: PerceptronState, segment: Segment, path: list[Array] | None) -> PerceptronState:
    """W ← W + φ cᵀ for each mistake: c is 1 for its class and -1 for the class that won instead."""
    W, moment, n_updates = state.weights.copy(), state.moment.copy(), state.n_updates
    rows, codes, weight = _turned(segment, W.shape[1])
    times = state.time + np.concatenate([np.zeros(1), np.cumsum(weight)])
    near = _rounding(rows)
    i, ahead = 0, _FEWEST
    while i < len(rows):
        here = slice(i, i + ahead)
        size = 1.0 + math.sqrt(np.vdot(W, W))
        margins, least = _margins(rows[here] @ W, codes[here])
        wrong = least <= size * near[here]
        first = int(wrong.argmax())
        if not wrong[first]:
            i, ahead = i + ahead, min(2 * ahead, _MOST)
            continue
        i += first
        step = weight[i] * rows[i][:, None]
        if W.shape[1] > 1:
            winners = margins[first] <= least[first] + size * near[i]
            change = np.where(winners, -1.0 / np.count_nonzero(winners), 0.0)
            change[codes[i]] = 1.0
            step = step * change
        W += step
        moment += times[i] * step
        n_updates += 1
        if path is not None:
            path.append(W.copy())
        i, ahead = i + 1, max(2 * first, _FEWEST)
    return replace(state, weights=W, moment=moment, time=float(times[-1]), n_updates=n_updates)


def _turned(segment: Segment, n_outputs: int) -> Segment:
    """Rows whose activation is to be positive: of two classes, the first has its rows negated."""
    if n_outputs > 1:
        return segment
    return segment._replace(rows=segment.rows * targets(segment.codes, 1))


def _rounding(rows: Array) -> Array:
    """What rounding may do to the activations of rows, for W of size one (k,)."""
    return _ROUNDING * np.sqrt(np.einsum("ij,ij->i", rows, rows))


def _margins(activation: Array, codes: Codes) -> tuple[Array, Array]:
    """The activation of the own class less those of the others (k, c), and the least (k,)."""
    if activation.shape[1] == 1:
        return activation, activation[:, 0]
    places = np.arange(len(codes))
    margins = activation[places, codes][:, None] - activation
    margins[places, codes] = np.inf
    return margins, margins.min(axis=1)


def mistakes(candidates: Sequence[Array], stream: RowStream) -> Array:
    """For each W the weight of the rows that are not strictly on their side."""
    found = np.zeros(len(candidates))
    for segment in stream.segments():
        rows, codes, weight = _turned(segment, candidates[0].shape[1])
        near = _rounding(rows)
        for i, W in enumerate(candidates):
            _, least = _margins(rows @ W, codes)
            found[i] += weight[least <= (1.0 + np.linalg.norm(W)) * near].sum()
    return found


def targets(codes: Codes, n_outputs: int) -> Array:
    """The adaline's targets: -1 and +1 for two classes, else the 1-of-K code."""
    if n_outputs == 1:
        return np.where(codes == 1, 1.0, -1.0)[:, None]
    return np.eye(n_outputs)[codes]


def adaline_epoch(
    weights: Array, stream: RowStream, rate: float, random: Random = None
) -> tuple[Array, Array, int]:
    """One visit to every row, W ← W + η φ (t - Wᵀφ)ᵀ; gives W, its mean, and how many visits.

    η = rate · weight of the row, but no more than 1/|φ|², which would fit the row alone.
    """
    total, time, n_visits = np.zeros_like(weights), 0.0, 0
    for rows, codes, weight in stream.segments(random):
        steps = np.minimum(rate * weight, 1 / np.einsum("ij,ij->i", rows, rows))
        t = targets(codes, weights.shape[1])
        for low in range(0, len(t), _CHUNK):
            here = slice(low, low + _CHUNK)
            weights, sums = _several(weights, rows[here], t[here], steps[here], weight[here])
            total += sums
        time += float(weight.sum())
        n_visits += len(t)
    return weights, total / time, n_visits


def _several(W: Array, rows: Array, t: Array, steps: Array, weight: Array) -> tuple[Array, Array]:
    """W after some rows one by one, and Σ weight · W over these visits.

    The error of row i is e_i = t_i - W₀ᵀφ_i - Σ_{j<i} η_j (φ_jᵀφ_i) e_j: a triangular system.
    """
    system = np.tril(rows @ rows.T, -1) * steps
    np.fill_diagonal(system, 1.0)
    errors = solve_lower(system, t - rows @ W) * steps[:, None]
    left = np.cumsum(weight[::-1])[::-1]
    return W + rows.T @ errors, left[0] * W + rows.T @ (errors * left[:, None])


def squared_error_gradient(weights: Array, stream: RowStream) -> Array:
    """The mean of φ (t - Wᵀφ)ᵀ over the rows (p, c), zero at the least squares solution (4.15)."""
    total, time = np.zeros_like(weights), 0.0
    for rows, codes, weight in stream.segments():
        errors = targets(codes, weights.shape[1]) - rows @ weights
        total += rows.T @ (errors * weight[:, None])
        time += float(weight.sum())
    return total / time
