"""Linear algebra that several rooms need: triangular factors, ranks, and products over rows."""

from functools import cache
from math import prod
from typing import cast

import numpy as np
from scipy.linalg import blas, lapack
from threadpoolctl import ThreadpoolController

from posteriori.typing import Array, Codes

COLLINEAR = 1e-13
"""A column is called dependent when others explain all but this share of its variance: a few
hundred rounding errors."""

_DOUBTFUL = 1e-6
"""The least squared pivot of a Cholesky factor whose matrix has full rank without doubt."""

_LOCKED = 500
"""Entries of a product up to which NumPy keeps the interpreter's lock while it multiplies."""

_SHORT = 2**15
"""Entries of a matrix whose products are over too soon to be in the way of other threads."""


_RUN, _SMALL = 512, 10**6
"""Rows of a run, and multiplications in it up to which OpenBLAS may use matrices where they are."""

_FEW = 40
"""Columns up to which that is faster than a symmetric product."""

_IN_PLACE = ("SkylakeX", "Cooperlake", "SapphireRapids")
"""Processors, as OpenBLAS calls them, for which it does so: those with AVX-512."""


@cache
def _multiplies_in_place() -> bool:
    """Whether BLAS multiplies small matrices without copying them first."""
    return any(library.get("architecture") in _IN_PLACE for library in blas_libraries().info())


@cache
def blas_libraries() -> ThreadpoolController:
    """The BLAS of NumPy and that of SciPy."""
    return ThreadpoolController()


def transpose_matmul(A: Array, B: Array) -> Array:
    """AᵀB for A (n, p) and B (n, c) or (n,), with other threads running meanwhile.

    NumPy keeps the interpreter's lock during a matrix product whose result is small, as that of
    sums over many rows is. The rows are therefore cut into runs, as many as it takes for the stack
    of their products to be large; with two threads that makes a fit up to twice as fast. Where
    BLAS does not copy the matrices of small products, short runs are faster still.

    >>> X = np.arange(60_000.0).reshape(-1, 3) % 7
    >>> bool((transpose_matmul(X, X) == X.T @ X).all())
    True
    """
    if B is A and A.size >= _SHORT and 1 < A.shape[1] <= _FEW and _multiplies_in_place():
        return _symmetric(A)
    n, size = len(A), max(prod(A.shape[1:] + B.shape[1:]), 1)
    runs = _LOCKED // size + 1
    if B.ndim == 2 and size * _RUN <= _SMALL and _multiplies_in_place():
        runs = max(runs, n // _RUN)
    if A.size < _SHORT or runs == 1 or n < 2 * runs:
        return A.T @ B
    rows, columns = n // runs, B.reshape(n, -1)
    whole = rows * runs
    left, right = (M[:whole].reshape(runs, rows, -1) for M in (A, columns))
    out: Array = (left.transpose(0, 2, 1) @ right).sum(axis=0)
    out += A[whole:].T @ columns[whole:]
    return out if B.ndim == 2 else out[:, 0]


def _symmetric(A: Array) -> Array:
    """AᵀA by halves of the columns: for symmetric products BLAS always copies."""
    d = A.shape[1]
    half = min(4 * -(-d // 8), d - 1)  # BLAS multiplies four columns at a time
    upper = np.empty((d, d))
    upper[:half] = transpose_matmul(A[:, :half], A)
    upper[half:, half:] = transpose_matmul(A[:, half:], A[:, half - 1 :])[:, 1:]
    upper = np.triu(upper)
    return upper + np.triu(upper, 1).T


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


def dependent_columns(correlation: Array, tolerance: float = COLLINEAR) -> Codes:
    """Columns that are linear functions of the others, by a pivoted Cholesky factorisation.

    `correlation` has ones (or zeros, for constant columns) on its diagonal. Of columns that can be
    computed from one another, the later ones are named.

    >>> dependent_columns(np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    array([1])
    """
    lower, q = cholesky(correlation), len(correlation)
    if lower is not None and np.square(np.diagonal(lower)).min(initial=1.0) > _DOUBTFUL:
        return np.empty(0, dtype=np.intp)
    preference = np.linspace(1.0, 0.5, q)  # of pivots that are about as large, the first
    tolerance = max(tolerance, q * float(np.finfo(np.float64).eps))
    weighted = correlation * preference * preference[:, None]
    _, pivots, rank, _ = lapack.dpstrf(weighted, tol=tolerance, lower=1)
    return cast(Codes, np.sort(pivots[rank:] - 1).astype(np.intp))


def unit_diagonal(scatter: Array) -> tuple[Array, Array]:
    """The matrix scaled to ones on its diagonal, and the scale; zeros stay, with scale one."""
    scale = np.sqrt(np.maximum(np.diagonal(scatter), 0.0))  # rounding can make it negative
    scale = np.where(scale > 0, scale, 1.0)
    return scatter / scale / scale[:, None], scale


def read_only(array: Array) -> Array:
    """A copy that cannot be written to."""
    found = np.array(array)
    found.flags.writeable = False
    return found
