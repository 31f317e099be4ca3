"""Closed forms: least squares from its normal equations, and Fisher's eigenproblem."""

from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from posteriori.linalg import COLLINEAR, cholesky, dependent_columns, unit_diagonal
from posteriori.solve.covariance import Factor
from posteriori.typing import Array, Codes


class LeastSquares(NamedTuple):
    """Coefficients (m, K), and the columns that depend on the others (constant ones too)."""

    coefficients: Array
    dependent: Codes


def least_squares(
    scatter: Array, cross: Array, penalty: Array, constant: NDArray[np.bool_]
) -> LeastSquares:
    """W with (S + diag(penalty)) W = cross (4.16); the smallest one where there are many.

    The rank is decided on correlations, so that units do not matter; the norm that is made
    smallest is that of the coefficients as they are.
    """
    kept = np.flatnonzero(~constant)
    if len(kept) == 0:
        return LeastSquares(np.zeros_like(cross), cast(Codes, np.flatnonzero(constant)))
    inner = np.ix_(kept, kept)
    matrix, scale = unit_diagonal(scatter[inner] + np.diag(penalty[kept]))
    right = cross[kept] / scale[:, None]
    lower = cholesky(matrix)
    coefficients = np.zeros_like(cross)
    if lower is not None and (np.diagonal(lower) ** 2 >= COLLINEAR).all():
        solution, _ = lapack.dpotrs(lower, right, lower=1)
        coefficients[kept] = solution / scale[:, None]
        return LeastSquares(coefficients, cast(Codes, np.flatnonzero(constant)))
    coefficients[kept] = _smallest_solution(matrix, right, scale)
    dependent = np.concatenate([kept[dependent_columns(matrix)], np.flatnonzero(constant)])
    return LeastSquares(coefficients, np.sort(dependent))


def _smallest_solution(matrix: Array, right: Array, scale: Array) -> Array:
    """Of all solutions z / scale of the singular system, the one of smallest norm."""
    values, vectors = np.linalg.eigh(matrix)
    free = values < COLLINEAR
    basis, null = vectors[:, ~free], vectors[:, free] / scale[:, None]
    particular = basis @ ((basis.T @ right) / values[~free, None]) / scale[:, None]
    # Columns of the null space brought to one size, for units that differ by hundreds of powers.
    null /= abs(null).max(axis=0)
    return particular - null @ np.linalg.lstsq(null, particular)[0]


class Discriminants(NamedTuple):
    """Directions (d, m) of unit within-class variance, and the eigenvalues of S_W⁻¹S_B (m,)."""

    scalings: Array
    eigenvalues: Array


def fisher_directions(within: Factor, between: Array, freedom: float) -> Discriminants:
    """S_B w = λ S_W w (4.40)-(4.51), by the singular values of the whitened class means.

    `within` is the factor of S_W / freedom; `between` (K, d) has rows √N_k (m_k - m), so that
    S_B = betweenᵀ between (4.46).
    """
    whitener = within.whitener()
    _, singular, directions = np.linalg.svd(between @ whitener, full_matrices=False)
    largest = abs(directions).argmax(axis=1)
    signs = np.sign(directions[np.arange(len(directions)), largest])
    return Discriminants(whitener @ (directions * signs[:, None]).T, singular**2 / freedom)
