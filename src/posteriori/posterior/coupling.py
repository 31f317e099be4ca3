"""Class probabilities from the probabilities of one class against another."""

from typing import cast

import numpy as np

from posteriori.typing import Array

_ENTRIES = 2**18
"""Numbers in the systems of equations that are solved at once."""


def couple(r: Array) -> Array:
    """Pairwise coupling: p (n, K) from r (n, K, K), r[:, i, j] = 1 - r[:, j, i] being i against j.

    The least Σ_i Σ_j≠i (r_ji p_i - r_ij p_j)² = pᵀQp with Σp = 1 has Qp = constant, so p is
    proportional to (Q + 11ᵀ)⁻¹1 (Wu, Lin and Weng 2004, second method).

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
    n_classes = r.shape[1]
    diagonal = np.arange(n_classes)
    lost = r.swapaxes(1, 2).copy()  # r_ji
    lost[:, diagonal, diagonal] = 0.0
    Q = -lost * r  # Q_ij = -r_ji r_ij
    Q[:, diagonal, diagonal] = (lost**2).sum(axis=2)  # Q_ii = Σ_j r_ji²
    ones = np.ones((len(r), n_classes, 1))
    # Positive definite whatever r is: Q v = 0 with r_ij + r_ji = 1 needs all v of one sign.
    p = np.maximum(np.linalg.solve(Q + 1.0, ones)[:, :, 0], 0.0)
    return cast(Array, p / p.sum(axis=1, keepdims=True))
