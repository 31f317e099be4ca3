"""Parameters in closed form from sums over rows, and by expectation-maximisation.

Least squares from its normal equations (4.16), Fisher's eigenproblem (4.40)-(4.51), and Gaussian
densities by maximum likelihood (4.71)-(4.80), also where entries are missing. The log-likelihoods
here are those of the rows given their classes, Σ ln p(x|C_k).
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from posteriori.design.columns import Columns
from posteriori.errors import SingularCovarianceError, SingularCovarianceWarning
from posteriori.likelihood.class_densities import DiagonalGaussians, Factor, FullGaussians
from posteriori.likelihood.feature_families import (
    CONSTANT,
    TableLabels,
    check_freedom,
    estimate_gaussian,
    gaussian_log_normaliser,
    overall_spread,
)
from posteriori.linalg import cholesky, dependent_columns, unit_diagonal
from posteriori.solve.covariance import Divisor, Shrinkage, group_covariances
from posteriori.solve.objective import Solution, Status
from posteriori.statistics.column_moments import ColumnMoments
from posteriori.statistics.expected_moments import ExpectedMoments
from posteriori.statistics.moments import Moments
from posteriori.typing import Array, Codes

_EM_TOLERANCE = 1e-9
_EM_STEPS = 2000


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
    coefficients, lost = np.zeros_like(cross), dependent_columns(matrix)
    lower = None if len(lost) else cholesky(matrix)
    if lower is not None:
        solution, _ = lapack.dpotrs(lower, right, lower=1)
        coefficients[kept] = solution / scale[:, None]
        return LeastSquares(coefficients, cast(Codes, np.flatnonzero(constant)))
    coefficients[kept] = _smallest_solution(matrix, right, scale, len(lost))
    dependent = np.concatenate([kept[lost], np.flatnonzero(constant)])
    return LeastSquares(coefficients, np.sort(dependent))


def _smallest_solution(matrix: Array, right: Array, scale: Array, deficiency: int) -> Array:
    """Of all solutions z / scale of the singular system, the one of smallest norm."""
    values, vectors = np.linalg.eigh(matrix)
    basis, null = vectors[:, deficiency:], vectors[:, :deficiency] / scale[:, None]
    particular = basis @ ((basis.T @ right) / values[deficiency:, None]) / scale[:, None]
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


@dataclass(frozen=True, eq=False)
class Estimate:
    """Densities, their log-likelihood without that of the labels, the shrinkage, and caveats."""

    densities: FullGaussians | DiagonalGaussians
    log_likelihood: float
    shrinkage: Array
    caveats: tuple[SingularCovarianceWarning, ...] = ()


def full_estimate(moments: Moments, shrinkage: Shrinkage, divisor: Divisor) -> Estimate:
    """Means, and for each group its scatter over a divisor (4.75)-(4.80), (4.161)-(4.163)."""
    found = group_covariances(moments, shrinkage, divisor)
    unit = moments.unit
    mean = moments.with_vacant_classes_centred().mean
    densities = FullGaussians(
        mean * unit, tuple(f.times_unit(unit) for f in found.factors), moments.groups
    )
    whiteners = [factor.whitener() for factor in found.factors]
    pairs = zip(moments.scatter, whiteners, strict=True)
    squares = sum(float(((scatter @ white) * white).sum()) for scatter, white in pairs)  # tr Σ⁻¹S
    log_likelihood = float(moments.count @ densities.constants - 0.5 * squares)
    return Estimate(densities, log_likelihood, found.shrinkage, found.caveats)


def diagonal_estimate(sums: ColumnMoments, divisor: Divisor) -> Estimate:
    """Each class and column by itself; missing entries do not count."""
    family = estimate_gaussian(
        sums.count,
        sums.mean,
        sums.scatter,
        sums.unit,
        shared=False,
        places=_places(sums),
        taken=1.0 if divisor == "unbiased" else 0.0,
    )
    return _independent(sums, family.mean, family.sd, shared=False)


def _places(sums: ColumnMoments) -> TableLabels:
    schema = Columns(sums.schema).as_schema()
    return TableLabels(schema, np.arange(len(schema)), sums.classes, sums.class_count == 0)


def isotropic_estimate(sums: ColumnMoments, divisor: Divisor) -> Estimate:
    """One variance λ for all classes and columns (000: Σ = λI)."""
    _places(sums).check_counted(np.where(sums.class_count[:, None] > 0, sums.count, 1.0))
    taken = sums.count[sums.class_count > 0].size if divisor == "unbiased" else 0
    rows = float(sums.count.sum()) - taken
    check_freedom(np.array(rows + taken), taken, sums.scatter.max())
    # Over the rows before it leaves its unit: the sum of squares may not fit in a double.
    width = np.sqrt(sums.scatter.max(axis=0) / abs(rows or 1.0))
    varies = width > CONSTANT * abs(sums.mean).max(axis=0)
    if rows <= 0 or not varies.any():
        raise SingularCovarianceError(
            "The isotropic variance is zero: no column varies within a class.",
            "Pass more rows, or columns that vary.",
        )
    largest = float((width * sums.unit)[varies].max())
    squares = float((sums.scatter / rows * (sums.unit / largest) ** 2)[:, varies].sum())
    spread = np.full(sums.mean.shape, largest * np.sqrt(squares))
    centre, _ = overall_spread(sums.count, sums.mean, sums.scatter)
    mean = np.where(sums.class_count[:, None] > 0, sums.mean, centre) * sums.unit
    return _independent(sums, mean, spread, shared=True)


def _independent(sums: ColumnMoments, mean: Array, spread: Array, *, shared: bool) -> Estimate:
    """The densities, and the log-likelihood of the entries present."""
    densities = DiagonalGaussians(mean, spread, shared)
    squares = sums.scatter * (sums.unit / spread) ** 2
    log_likelihood = -float((sums.count * gaussian_log_normaliser(spread) + 0.5 * squares).sum())
    return Estimate(densities, log_likelihood, np.zeros(1))


@dataclass(frozen=True, eq=False)
class EMParameters:
    """Means (K, d) and covariances (G, d, d) of groups (K,) during expectation-maximisation."""

    mean: Array
    covariance: Array
    groups: Codes

    def distance(self, other: "EMParameters") -> float:
        """The largest change of a mean or covariance, in the standard deviations of its class."""
        scale = np.sqrt(np.diagonal(other.covariance, axis1=1, axis2=2))
        scale = np.where(scale > 0, scale, 1.0)
        shift = abs(self.mean - other.mean) / scale[self.groups]
        change = abs(self.covariance - other.covariance) / scale[:, :, None] / scale[:, None, :]
        return float(max(shift.max(), change.max()))


def incomplete_estimate(
    sums: ColumnMoments,
    sharing: tuple[Hashable, ...],
    expect: Callable[[Array, Array, EMParameters], ExpectedMoments],
    shrinkage: Shrinkage,
    divisor: Divisor,
) -> tuple[Estimate, Solution[EMParameters, float]]:
    """Maximum likelihood from rows with missing entries, by expectation-maximisation (9.3).

    `expect(centre, scale, parameters)` is the E step: a sum over rows in the coordinates
    (x - centre) / scale, in which the steps are made. `sums` are those of the entries present.
    """
    _places(sums).check_counted(np.where(sums.class_count[:, None] > 0, sums.count, 1.0))
    centre, scale = _standard_coordinates(sums)
    varies = overall_spread(sums.count, sums.mean, sums.scatter)[1] > 0
    kinds = list(dict.fromkeys(sharing))
    groups = np.array([kinds.index(kind) for kind in sharing])
    start = (sums.mean * sums.unit - centre) / scale
    now = EMParameters(start, np.array([np.diag(varies * 1.0)] * len(kinds)), groups)
    trace: list[float] = []
    status = Status.MAX_ITERATIONS
    while status is not Status.CONVERGED and len(trace) < _EM_STEPS:
        expected = expect(centre, scale, now)  # E step
        trace.append(expected.log_likelihood)
        moments = expected.moments
        found = group_covariances(moments, shrinkage, "ml")  # M step
        covariance = np.array([factor.covariance() for factor in found.factors])
        following = EMParameters(moments.mean, covariance, moments.groups)
        if now.distance(following) <= _EM_TOLERANCE:
            status = Status.CONVERGED
        now = following
    widen = _widening(moments) if divisor == "unbiased" else np.ones(len(found.factors))
    pairs = zip(found.factors, widen, strict=True)
    densities = FullGaussians(
        centre + scale * now.mean,
        tuple(factor.times_unit(scale * wide) for factor, wide in pairs),
        now.groups,
    )
    # The density is that of x, not of the coordinates in which the steps were made.
    jacobian = float(sums.count.sum(axis=0)[varies] @ np.log(scale[varies]))
    widened = replace(now, covariance=now.covariance * widen[:, None, None] ** 2)
    log_likelihood = expect(centre, scale, widened).log_likelihood - jacobian
    estimate = Estimate(densities, log_likelihood, found.shrinkage, found.caveats)
    return estimate, Solution(now, status, tuple(value - jacobian for value in trace))


def _standard_coordinates(sums: ColumnMoments) -> tuple[Array, Array]:
    """Overall mean and within-class standard deviation of each column."""
    scale = np.sqrt(sums.scatter.sum(axis=0) / sums.count.sum(axis=0))
    centre, _ = overall_spread(sums.count, sums.mean, sums.scatter)
    return centre * sums.unit, np.where(scale > 0, scale, 1.0) * sums.unit


def _widening(moments: Moments) -> Array:
    """Square root of the unbiased over the maximum likelihood covariance of each group."""
    members = np.bincount(moments.groups, moments.count > 0).astype(np.float64)
    rows = moments.group_count
    squares = np.diagonal(moments.scatter, axis1=1, axis2=2).max(axis=1)
    for g in range(len(rows)):
        check_freedom(rows[g : g + 1], members[g], squares[g : g + 1])
    return np.sqrt(np.divide(rows, rows - members, out=np.ones_like(rows), where=rows > members))
