"""Functions of a symmetric matrix S that is known by its products alone (Golub and Meurant).

Lanczos' method makes of k products an orthonormal basis V (k, m), in which S is tridiagonal. With
the eigenvalues θ and eigenvectors Y (k, k) of that, f(S)v ≈ |v| VᵀY f(θ) Yᵀe, e = (1, 0, ..., 0),
for any f: one set of products serves them all.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh_tridiagonal

from posteriori.typing import Array

Function = Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class Spectrum:
    """What a vector v (m,) sees of S: eigenvalues θ (k,), and axes for them in `basis` (k, m)."""

    values: Array
    vectors: Array
    basis: Array
    length: float

    def first(self, k: int) -> "Spectrum":
        """What the first k products had shown of S."""
        whole = (self.vectors * self.values) @ self.vectors.T
        k = min(k, len(self.values))
        values, vectors = np.linalg.eigh(whole[:k, :k])
        return Spectrum(np.maximum(values, 0.0), vectors, self.basis[:k], self.length)

    def of(self, function: Function) -> float:
        """vᵀ f(S) v."""
        return self.length**2 * float(self.vectors[0] ** 2 @ function(self.values))

    def times(self, function: Function) -> Array:
        """f(S)v (m,)."""
        inner = self.vectors @ (function(self.values) * self.vectors[0])
        return self.length * inner @ self.basis


def lanczos(times: Callable[[Array], Array], starts: Array, steps: int) -> list[Spectrum]:
    """The spectrum that each start (k, m) sees, by products for all of them at once.

    >>> S = np.diag([1.0, 4.0])
    >>> found = lanczos(lambda v: v @ S, np.array([[1.0, 1.0]]), 5)[0]
    >>> round(found.of(np.log), 6), found.times(np.sqrt).round(6)  # ln 1 + ln 4
    (1.386294, array([1., 2.]))
    """
    lengths = np.linalg.norm(starts, axis=1)
    basis = [starts / np.where(lengths > 0, lengths, 1.0)[:, None]]
    diagonal, beside = [], []
    for _ in range(min(steps, starts.shape[1])):
        v = times(basis[-1])
        diagonal.append(np.einsum("ij,ij->i", v, basis[-1]))
        for known in (*basis, *basis):  # twice is enough to keep them orthogonal
            v -= np.einsum("ij,ij->i", v, known)[:, None] * known
        beside.append(np.linalg.norm(v, axis=1))
        basis.append(v / np.where(beside[-1] > 0, beside[-1], 1.0)[:, None])
    tables = np.array(diagonal).T, np.array(beside).T, np.stack(basis, axis=1)
    return [_spectrum(*each) for each in zip(*tables, lengths, strict=True)]


def _spectrum(diagonal: Array, beside: Array, basis: Array, length: float) -> Spectrum:
    ended = np.flatnonzero(beside <= 1e-10 * abs(diagonal).max(initial=1e-300))
    k = int(ended[0]) + 1 if len(ended) else len(diagonal)
    values, vectors = eigh_tridiagonal(diagonal[:k], beside[: k - 1])
    return Spectrum(np.maximum(values, 0.0), vectors, basis[:k], float(length))
