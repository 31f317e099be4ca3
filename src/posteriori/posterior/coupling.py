"""Class probabilities from the probabilities of one class against another."""

from typing import cast

import numpy as np

from posteriori.typing import Array

_ENTRIES = 2**18
"""Numbers in the systems of equations that are solved at once."""


def couple(r: Array) -> Array:
    """Pairwise coupling: p (n, K) from r (n, K, K), r[:, i, j] = 1 - r[:, j, i] being i against j.

    The least Σ_i<j (r_ji p_i - r_ij p_j)² = pᵀQp with Σp = 1 has Qp = c1 with a number c (Wu, Lin
    and Weng 2004, second method). Small probabilities have their digits too; those below 1e-20
    depend on the last bits of r. The diagonal of r is zero.

    >>> couple(np.array([[[0.0, 0.8, 0.6], [0.2, 0.0, 0.3], [0.4, 0.7, 0.0]]])).round(3)
    array([[0.521, 0.137, 0.342]])
    """
    n_rows, n_classes, _ = r.shape
    p = np.empty((n_rows, n_classes))
    step = max(1, _ENTRIES // n_classes**2)
    for low in range(0, n_rows, step):
        p[low : low + step] = _couple_at_once(r[low : low + step])
    return p


def _couple_at_once(r: Array) -> Array:
    """With p = 1 for the class of least Q_ii, and so p = Q⁻¹(b + c1) for the others.

    Outside of its diagonal Q has no numbers above zero, so that in the factors of Q and in what is
    solved with them only numbers of one sign add up; b has what Q has for the last class. There is
    a Q⁻¹: classes that never lose to others, nor to the last, would have a lesser Q_ii than that.
    """
    lost = np.einsum("nji,nji->ni", r, r)  # Q_ii = Σ_j r_ji²
    order = np.argsort(-lost, axis=1, kind="stable")
    rows = np.arange(len(r))[:, None]
    r = r[rows[:, :, None], order[:, :, None], order[:, None, :]]
    Q = -r * r.swapaxes(1, 2)  # Q_ij = -r_ij r_ji
    every = np.arange(r.shape[1])
    Q[:, every, every] = lost[rows, order]
    b = -Q[:, :-1, -1]
    v, u = _solved(cast(Array, np.linalg.cholesky(Q[:, :-1, :-1])), b)
    c = np.maximum(Q[:, -1, -1] - (b * v).sum(axis=1), 0.0) / (1 + (b * u).sum(axis=1))
    p = np.ones(order.shape)
    p[:, :-1] = v + c[:, None] * u
    short = r * p[:, None, :]  # r_ji p_i
    least = ((short - short.swapaxes(1, 2)) ** 2).sum(axis=(1, 2)) / 2
    # Here c, a difference above, has its digits: it is what the sum of squares comes to.
    p[:, :-1] = v + (least / p.sum(axis=1))[:, None] * u
    found = np.empty_like(p)
    found[rows, order] = p / p.sum(axis=1, keepdims=True)
    return found


def _solved(L: Array, b: Array) -> Array:
    """(LLᵀ)⁻¹b and (LLᵀ)⁻¹1, (2, n, K - 1)."""
    x = np.stack([b, np.ones_like(b)])
    last = b.shape[1]
    for k in range(last):
        x[:, :, k] -= np.einsum("nj,mnj->mn", L[:, k, :k], x[:, :, :k])
        x[:, :, k] /= L[:, k, k]
    for k in reversed(range(last)):
        x[:, :, k] -= np.einsum("nj,mnj->mn", L[:, k + 1 :, k], x[:, :, k + 1 :])
        x[:, :, k] /= L[:, k, k]
    return x
