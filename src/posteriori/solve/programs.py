"""The linear programs of separation, by HiGHS through SciPy.

Conventions: p parameters and c activations a row, θ (p, c); constraints φᵀ θ e ≥ goal, or =, as
in `statistics.margins`.
"""

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from posteriori.statistics.coordinates import Mask
from posteriori.statistics.separation_margins import Constraints
from posteriori.typing import Array

_TOLERANCE = 1e-10
"""By how much HiGHS may miss a constraint; the smallest that it takes."""

_AT_ONCE = 1e3
"""What the smallest margin counts beside their sum: all pairs at once, where that can be."""

_SOLVED, _INFEASIBLE = 0, 2
"""What SciPy says of a linear program whose answer is known."""

_LARGE = 150
"""Unknowns beyond which the interior point method is the faster one."""


def largest_sum(
    pull: Array, constraints: Constraints, held: Mask | None = None
) -> tuple[Array, float, float]:
    """θ in [-1, 1] with the largest Σ margins = Σ pull θ, and the smallest margin γ large, too.

    Gives θ, γ, and the sum with 1000 γ, which is zero if nothing is separated. Parameters that are
    `held` (p,) are zero.
    """
    matrix, equal = _matrix(constraints), constraints.equal
    above, zero = matrix[~equal], matrix[equal]
    ends = np.tile([-1.0, 1.0], (pull.size, 1))
    if held is not None:
        ends[np.repeat(held, pull.shape[1])] = 0.0
    found = _solve(
        -np.append(pull, _AT_ONCE),
        sparse.hstack([-above, np.ones((above.shape[0], 1))]),
        np.zeros(above.shape[0]),
        sparse.hstack([zero, np.zeros((zero.shape[0], 1))]),
        np.vstack([ends, [[0.0, 1.0]]]),
    )
    if found is None:
        return np.zeros_like(pull), 0.0, 0.0
    theta = found[:-1].reshape(pull.shape)
    return theta, float(found[-1]), float(np.sum(pull * theta) + _AT_ONCE * found[-1])


def least_size(size: Array, constraints: Constraints) -> Array | None:
    """θ (p, c) of least Σ |θ|/size under the constraints; None if there is none."""
    kept, equal = np.flatnonzero(size), constraints.equal
    matrix = _matrix(constraints)[:, kept] * size.ravel()[kept]
    both = sparse.hstack([matrix, -matrix]).tocsr()
    found = _solve(
        np.ones(2 * len(kept)),
        -both[~equal],
        -constraints.goal[~equal],
        both[equal],
        np.tile([0.0, np.inf], (2 * len(kept), 1)),
    )
    if found is None:
        return None
    theta = np.zeros(size.size)
    theta[kept] = (found[: len(kept)] - found[len(kept) :]) * size.ravel()[kept]
    return theta.reshape(size.shape)


def tightest(constraints: Constraints, theta: Array) -> Constraints:
    """Equalities, and the inequalities that θ meets most narrowly, three for each parameter.

    Without the others, which may come back, programs stay small.
    """
    slack = np.asarray(_matrix(constraints) @ theta.ravel()) - constraints.goal
    limit = np.sort(slack[~constraints.equal])[: max(200, 3 * theta.size)][-1:]
    return constraints.chosen(constraints.equal | (slack <= limit.max(initial=-np.inf)))


def _matrix(constraints: Constraints) -> sparse.csr_array:
    """The constraints as functions of θ, flattened (k, p c)."""
    k, p = constraints.rows.shape
    c = constraints.directions.shape[1]
    places, classes = np.nonzero(constraints.directions)
    found = constraints.rows[places].tocoo()
    values = found.data * constraints.directions[places, classes][found.row]
    entries = places[found.row], found.col * c + classes[found.row]
    return sparse.csr_array((values, entries), shape=(k, p * c))


def _solve(
    cost: Array, above: sparse.sparray, limit: Array, zero: sparse.sparray, bounds: Array
) -> Array | None:
    """x of least cost with above x ≤ limit, zero x = 0, within bounds; None if there is none."""
    methods = ("highs-ipm", "highs-ds") if len(cost) > _LARGE else ("highs-ds", "highs-ipm")
    for method in methods:
        found = linprog(
            cost,
            A_ub=above,
            b_ub=limit,
            A_eq=zero if zero.shape[0] else None,
            b_eq=np.zeros(zero.shape[0]) if zero.shape[0] else None,
            bounds=bounds,
            method=method,
            options={
                "primal_feasibility_tolerance": _TOLERANCE,
                "dual_feasibility_tolerance": _TOLERANCE,
            },
        )
        if found.status in (_SOLVED, _INFEASIBLE):
            return found.x
    return None
