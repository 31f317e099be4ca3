"""The perceptron's updates and those of the adaline, row after row (4.1.7).

Conventions: rows φ (k, p) with the intercept first, class codes (k,), weights (k,), and one
activation a class, W (p, K). With two classes w = w_2 - w_1 is the vector of the book.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from posteriori.linalg import solve_lower
from posteriori.statistics.row_stream import RowStream, Segment
from posteriori.typing import Array

Random = np.random.Generator | None
"""Draws the order of the rows in an epoch; None for the order in which they are stored."""

_AHEAD = 64
"""Rows whose activations are computed at once, to find the next mistake among them."""

_ENOUGH = 2000
"""Updates after which it is decided whether the classes can be separated at all."""

_ROUNDING = 1e-12
"""Activations that differ by less than this share of |φ||W| are equal: their last bits depend on
the source, and columns of few different values have many rows on a boundary."""

_CHUNK = 64
"""Rows whose least-mean-squares updates are the solution of one triangular system."""


@dataclass(frozen=True, eq=False)
class PerceptronState:
    """W after some visits.

    unit: the weight of a row whose step is φ itself; time: the weight of all rows visited; moment:
    Σ of each step times the time at which it was made, from which the mean of W over all visits
    follows.
    """

    weights: Array
    moment: Array
    unit: float
    time: float = 0.0
    n_updates: int = 0
    n_epochs: int = 0

    def mean(self) -> Array:
        """The mean of W over all visits, each counted by the weight of its row."""
        return self.weights - self.moment / self.time


def perceptron(
    stream: RowStream,
    state: PerceptronState,
    max_epochs: int,
    random: Random,
    separable: Callable[[], bool | None],
    path: list[Array] | None = None,
) -> tuple[PerceptronState, bool, bool | None]:
    """Epochs of updates until one has no mistake, or none can be without (4.55).

    `separable` decides whether some W makes no mistake (None where it cannot); it is called once,
    after so many updates that the decision is worth its cost, or at the end. Returns the state,
    whether the last epoch had no mistake, and that decision. W after each update is added to
    `path`.
    """
    decided, can_be = False, None
    for epoch in range(1, max_epochs + 1):
        before, state = state.n_updates, perceptron_epoch(state, stream, random, path)
        if state.n_updates == before:
            return state, True, True
        if not decided and (state.n_updates >= _ENOUGH or epoch == max_epochs):
            decided, can_be = True, separable()
            if can_be is False:
                break
    return state, False, can_be


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
    """W ← W + φ cᵀ for each mistake: c is 1 for its class and -1 for the class that won instead.

    Classes that are tied share the -1. With two classes c is ±½, so that w changes by ±φ.
    """
    rows, codes, weight = segment.rows, segment.codes, segment.weight / state.unit
    W, moment, n_updates = state.weights.copy(), state.moment.copy(), state.n_updates
    size = 0.5 if W.shape[1] == 2 else 1.0
    times = state.time + np.append(0.0, np.cumsum(weight))
    near = _ROUNDING * np.sqrt(np.einsum("ij,ij->i", rows, rows))
    i = 0
    while i < len(rows):
        own = codes[i : i + _AHEAD, None]
        lead = rows[i : i + _AHEAD] @ W
        lead -= np.take_along_axis(lead, own, axis=1)
        np.put_along_axis(lead, own, -np.inf, axis=1)
        best = lead.max(axis=1)
        wrong = best >= -near[i : i + _AHEAD] * np.sqrt(np.vdot(W, W))
        first = int(wrong.argmax())
        if not wrong[first]:
            i += _AHEAD
            continue
        i += first
        winners = lead[first] >= best[first] - near[i] * np.sqrt(np.vdot(W, W))
        change = np.where(winners, -1.0 / np.count_nonzero(winners), 0.0)
        change[codes[i]] = 1.0
        step = size * weight[i] * np.outer(rows[i], change)
        W += step
        moment += times[i] * step
        n_updates += 1
        if path is not None:
            path.append(W.copy())
        i += 1
    return replace(state, weights=W, moment=moment, time=float(times[-1]), n_updates=n_updates)


def adaline_epoch(
    weights: Array, stream: RowStream, rate: float, random: Random = None
) -> tuple[Array, Array, int]:
    """One visit to every row, W ← W + η φ (t - Wᵀφ)ᵀ; gives W, its mean, and how many visits.

    t is the 1-of-K code of the class; η = rate · weight of the row, but no more than 1/|φ|², which
    would fit the row alone.
    """
    total, time, n_visits = np.zeros_like(weights), 0.0, 0
    for rows, codes, weight in stream.segments(random):
        steps = np.minimum(rate * weight, 1 / np.einsum("ij,ij->i", rows, rows))
        t = np.eye(weights.shape[1])[codes]
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
    """The mean of φ (t - Wᵀφ)ᵀ over the rows (p, K), zero at the least squares solution (4.15)."""
    total, time = np.zeros_like(weights), 0.0
    for rows, codes, weight in stream.segments():
        errors = np.eye(weights.shape[1])[codes] - rows @ weights
        total += rows.T @ (errors * weight[:, None])
        time += float(weight.sum())
    return total / time
