"""Class probabilities from the probabilities of one class against another."""

import numpy as np

from posteriori.typing import Array

_ENTRIES = 2**18
"""Numbers in the systems of equations that are solved at once."""


def couple(r: Array) -> Array:
    """Pairwise coupling: p (n, K) from r (K, K, n), r[i, j] = 1 - r[j, i] being i against j.

    The least Σ_i<j (r_ji p_i - r_ij p_j)² = pᵀQp with Σp = 1 has Qp = c1 with a number c (Wu, Lin
    and Weng 2004, second method). Probabilities down to 1e-20 have as many digits as r has.

    >>> r = np.array([[0.0, 0.8, 0.6], [0.2, 0.0, 0.3], [0.4, 0.7, 0.0]])
    >>> couple(r[:, :, None]).round(3)
    array([[0.521, 0.137, 0.342]])
    """
    n_classes, _, n_rows = r.shape
    p = np.empty((n_rows, n_classes))
    step = max(1, _ENTRIES // n_classes**2)
    for low in range(0, n_rows, step):
        p[low : low + step] = _couple_at_once(r[:, :, low : low + step]).T
    return p


def _couple_at_once(r: Array) -> Array:
    """p (K, n) by elimination, the class with the least Q_ii last.

    Only the diagonal gets less in it, all else adds up; pivots before the last are above zero, for
    classes that never lose to others, nor to the last, would have a lesser Q_ii than that.
    """
    lost = np.einsum("jin,jin->in", r, r)  # Q_ii = Σ_j r_ji²
    order = np.argsort(-lost, axis=0, kind="stable")
    rows = np.arange(r.shape[2])
    r = r[order[:, None], order[None], rows]
    rest = r * r.swapaxes(0, 1)  # -Q_ij = r_ij r_ji
    diagonal, constant = lost[order, rows], np.ones(order.shape)
    for k in range(len(r) - 1):
        beside = rest[k, k + 1 :]
        factor = beside / diagonal[k]
        rest[k + 1 :, k + 1 :] += factor[:, None] * beside
        diagonal[k + 1 :] -= factor * beside
        constant[k + 1 :] += factor * constant[k]

    def solved(c: Array) -> Array:
        """Qp = c1 with p = 1 for the last class."""
        p = np.ones(order.shape)
        for k in reversed(range(len(r) - 1)):
            later = np.einsum("jn,jn->n", rest[k, k + 1 :], p[k + 1 :])
            p[k] = (c * constant[k] + later) / diagonal[k]
        return p

    p = solved(np.maximum(diagonal[-1], 0.0) / constant[-1])
    short = r * p  # r_ji p_i
    least = ((short - short.swapaxes(0, 1)) ** 2).sum(axis=(0, 1)) / 2
    p = solved(least / p.sum(axis=0))  # the last pivot has lost digits; of squares all are there
    found = np.empty_like(p)
    found[order, rows] = p / p.sum(axis=0)
    return found
