"""Which actions are best for some probabilities, and which for none.

Action a is best at p if Σ_k p_k (L_kb - L_ka) ≥ 0 for every other action b. The largest t with
Mq ≥ t for some q ≥ 0, Σ q = 1, where M_bk = L_kb - L_ka, is above zero if a is better than all
others somewhere, zero if it is never more than as good as another, and below zero if it is worse
everywhere. Rows and columns of M may be multiplied by positive numbers: the sign of t stays.
"""

from functools import lru_cache

import numpy as np
from scipy.optimize import linprog

from posteriori.typing import Array

_TOLERANCE = 1e-9
"""Margins, in units of the largest, that count as none."""

_SWEEPS = 8


def best_signs(loss: Array) -> tuple[int, ...]:
    """For each action of the losses (K, A): 1 if best somewhere, 0 if only with another, else -1.

    >>> best_signs(np.array([[0.0, 1.0, 0.6], [1.0, 0.0, 0.6]]))
    (1, 1, -1)
    """
    return _best_signs(loss.tobytes(), loss.shape)


@lru_cache(maxsize=128)
def _best_signs(data: bytes, shape: tuple[int, int]) -> tuple[int, ...]:
    loss = np.frombuffer(data).reshape(shape)
    if shape[1] == 1:
        return (1,)
    plain = _plainly_best(loss)
    return tuple(1 if a in plain else _sign(loss, a) for a in range(shape[1]))


def _plainly_best(loss: Array) -> set[int]:
    """Actions that are the best by far in a class, or if all are equally probable.

    No program is needed for them.
    """
    costs = np.vstack([loss, loss.mean(axis=0)])
    first, second = np.partition(costs, 1, axis=1)[:, :2].T
    clear = second - first > _TOLERANCE * abs(costs).max(axis=1)
    return set(costs.argmin(axis=1)[clear].tolist())


def _sign(loss: Array, a: int) -> int:
    others = np.delete(loss, a, axis=1).T - loss[:, a]
    margin = _largest_margin(_balanced(others))
    return 0 if abs(margin) <= _TOLERANCE else int(np.sign(margin))


def _balanced(M: Array) -> Array:
    """M with rows and columns multiplied so that the largest of each is one in size."""
    for _ in range(_SWEEPS):
        for axis in (1, 0):
            size = abs(M).max(axis=axis, keepdims=True)
            M = M / np.where(size > 0, size, 1.0)
    return M


def _largest_margin(M: Array) -> float:
    """The largest t with Mq ≥ t for some q on the simplex."""
    n_others, K = M.shape
    found = linprog(
        np.append(np.zeros(K), -1.0),
        A_ub=np.column_stack([-M, np.ones(n_others)]),
        b_ub=np.zeros(n_others),
        A_eq=np.append(np.ones(K), 0.0)[None],
        b_eq=[1.0],
        bounds=[*[(0, None)] * K, (-1, 1)],
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    return float(-found.fun)
