"""Linear algebra that several rooms need: triangular factors, ranks, and products over rows."""

from functools import cache
from math import prod
from typing import cast

import numpy as np
from scipy.linalg import blas, lapack
from threadpoolctl import ThreadpoolController

from posteriori.typing import Array, Codes

COLLINEAR = 1e-10
"""A column is called dependent when others explain all but this share of its variance."""

_PANEL = 64
"""Columns that are factored one by one before the others hear of them."""

_LOCKED = 500
"""Numbers up to which a product of NumPy's keeps the lock of the interpreter while it is made."""

_SHORT = 2**15
"""Entries of a matrix whose products are over too soon to be in the way of other threads."""

_RUN, _SMALL = 512, 10**6
"""Rows of a run, and multiplications in it up to which OpenBLAS may take numbers where they lie."""

_IN_PLACE = ("SkylakeX", "Cooperlake", "SapphireRapids")
"""Processors, as OpenBLAS calls them, for which it does so: those with AVX-512."""

_FEW, _PANEL_OF_FEW = 40, 16
"""Columns up to which small products are faster there than a symmetric one, and as many at once."""


@cache
def blas_libraries() -> ThreadpoolController:
    """The BLAS of NumPy and that of SciPy."""
    return ThreadpoolController()


def over_rows(A: Array, B: Array) -> Array:
    """AᵀB for A (n, p) and B (n, c) or (n,): sums over rows, by several threads at once.

    NumPy keeps the lock of the interpreter during a matrix product by the size of what comes out,
    and few numbers come out of sums over many rows. So these are made in runs of rows, enough of
    them that the lock is let go, and added up. On some processors BLAS does not copy what a small
    product is made of, which takes as long as to multiply few columns; runs are then short.

    >>> X = np.arange(60_000.0).reshape(-1, 3) % 7
    >>> bool((over_rows(X, X) == X.T @ X).all())
    True
    """
    if A.size < _SHORT:
        return A.T @ B
    n, size = len(A), prod(A.shape[1:] + B.shape[1:])
    runs = _LOCKED // max(size, 1) + 1
    if B.ndim == 2 and size * _RUN <= _SMALL and _multiplies_in_place():
        runs = max(runs, n // _RUN)
    if runs == 1 or n < 2 * runs:
        return A.T @ B
    rows = n // runs
    whole = rows * runs
    left, right = (M[:whole].reshape(runs, rows, -1) for M in (A, B))
    out: Array = (left.transpose(0, 2, 1) @ right).sum(axis=0)
    if whole < n:
        out += A[whole:].T @ B[whole:].reshape(n - whole, -1)
    return out if B.ndim == 2 else out[:, 0]


def gram(A: Array) -> Array:
    """AᵀA for A (n, d), by several threads at once.

    Of A with itself NumPy makes a symmetric product, for which BLAS always copies. Panels of few
    columns are no such product with those to their right.

    >>> X = np.arange(60_000.0).reshape(-1, 3) % 7
    >>> bool((gram(X) == X.T @ X).all())
    True
    """
    d = A.shape[1]
    if A.size < _SHORT or not 1 < d <= _FEW or not _multiplies_in_place():
        return over_rows(A, A)
    out = np.empty((d, d))
    width = min(_PANEL_OF_FEW, 4 * -(-d // 8), d - 1)
    for low in range(0, d, width):
        high = low + width
        right = low if high < d else low - 1  # the last has a column more, lest it be symmetric
        out[low:high, right:] = over_rows(A[:, low:high], A[:, right:])
    upper = np.triu(out)
    return upper + np.triu(upper, 1).T


@cache
def _multiplies_in_place() -> bool:
    """Whether BLAS takes the numbers of small products where they lie."""
    return any(library.get("architecture") in _IN_PLACE for library in blas_libraries().info())


def cholesky(matrix: Array) -> Array | None:
    """Lower factor L with LLᵀ = matrix, or None where the matrix is not positive definite."""
    if len(matrix) == 0:
        return matrix
    factor, info = lapack.dpotrf(matrix, lower=1, clean=1)
    return cast(Array, factor) if info == 0 else None


def solve_lower(factor: Array, right: Array) -> Array:
    """L⁻¹ right, by forward substitution."""
    if right.size == 0:
        return right
    # Not LAPACK's dtrtrs: OpenBLAS wakes all its threads for it, however small the system.
    return cast(Array, blas.dtrsm(1.0, factor, right, lower=1))


def dependent_columns(correlation: Array) -> Codes:
    """Columns that depend linearly on the others before them, by Cholesky without their own.

    `correlation` has ones (or zeros, for constant columns) on its diagonal.

    >>> dependent_columns(np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    array([1])
    """
    q, rank, dependent = len(correlation), 0, []
    factor = np.zeros((q, q))
    for low in range(0, q, _PANEL):
        width = min(_PANEL, q - low)
        known = factor[low:, :rank]
        panel = correlation[low:, low : low + width] - known @ known[:width].T
        for j in range(width):
            if not panel[j, j] > COLLINEAR:
                dependent.append(low + j)
                continue
            column = panel[j:, j] / np.sqrt(panel[j, j])
            panel[j:, j + 1 :] -= np.outer(column, column[1 : width - j])
            factor[low + j :, rank] = column
            rank += 1
    return np.array(dependent, dtype=np.intp)


def unit_diagonal(scatter: Array) -> tuple[Array, Array]:
    """The matrix scaled to ones on its diagonal, and the scale; zeros stay, with scale one."""
    scale = np.sqrt(np.maximum(np.diagonal(scatter), 0.0))  # rounding can make it negative
    scale = np.where(scale > 0, scale, 1.0)
    return scatter / scale / scale[:, None], scale
