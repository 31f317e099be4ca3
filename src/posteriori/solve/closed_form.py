"""Parameters in closed form from sums over rows, and by expectation-maximisation.

Least squares from its normal equations (4.16), Fisher's eigenproblem (4.40)-(4.51), and Gaussian
densities by maximum likelihood (4.71)-(4.80), also where entries are missing. The log-likelihoods
here are those of the rows given their classes, Σ ln p(x|C_k).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from posteriori.design.columns import Columns
from posteriori.errors import SingularCovarianceError, SingularCovarianceWarning
from posteriori.likelihood.class_densities import DiagonalGaussians, Factor, FullGaussians
from posteriori.likelihood.feature_families import (
    CONSTANT,
    Gaussian,
    TableLabels,
    check_freedom,
    estimate_gaussian,
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


def least_squares(
    scatter: Array, cross: Array, ridge: float, constant: NDArray[np.bool_]
) -> tuple[Array, Codes]:
    """W with (S + ridge I) W = cross (4.16), and the columns that depend on others or never change.

    W is the smallest solution where there are many. The rank is decided on correlations, so that
    units do not matter; the norm that is made smallest is that of the coefficients as they are.
    """
    kept, dependent = np.flatnonzero(~constant), np.flatnonzero(constant)
    coefficients = np.zeros_like(cross)
    if len(kept):
        matrix, scale = unit_diagonal(scatter[np.ix_(kept, kept)] + ridge * np.eye(len(kept)))
        right, lost = cross[kept] / scale[:, None], dependent_columns(matrix)
        lower = None if len(lost) else cholesky(matrix)
        if lower is None:
            coefficients[kept] = _smallest_solution(matrix, right, scale, len(lost))
            dependent = np.union1d(kept[lost], dependent)
        else:
            coefficients[kept] = lapack.dpotrs(lower, right, lower=1)[0] / scale[:, None]
    return coefficients, cast(Codes, dependent)


def _smallest_solution(matrix: Array, right: Array, scale: Array, deficiency: int) -> Array:
    """Of all solutions z / scale of the singular system, the one of smallest norm."""
    values, vectors = np.linalg.eigh(matrix)
    basis, null = vectors[:, deficiency:], vectors[:, :deficiency] / scale[:, None]
    particular = basis @ ((basis.T @ right) / values[deficiency:, None]) / scale[:, None]
    # Columns of the null space brought to one size, for units that differ by hundreds of powers.
    null /= abs(null).max(axis=0)
    return particular - null @ np.linalg.lstsq(null, particular)[0]


def fisher_directions(within: Factor, between: Array, freedom: float) -> tuple[Array, Array]:
    """S_B w = λ S_W w (4.40)-(4.51), by the singular values of the whitened class means.

    Gives the directions (d, m), of unit within-class variance, and their eigenvalues (m,).
    `within` is the factor of S_W / freedom; `between` (K, d) has rows √N_k (m_k - m), so that
    S_B = betweenᵀ between (4.46).
    """
    whitener = within.whitener()
    _, singular, directions = np.linalg.svd(between @ whitener, full_matrices=False)
    largest = abs(directions).argmax(axis=1)
    signs = np.sign(directions[np.arange(len(directions)), largest])
    return whitener @ (directions * signs[:, None]).T, singular**2 / freedom


@dataclass(frozen=True, eq=False)
class Estimate:
    """Densities, their log-likelihood without that of the labels, the shrinkage, and caveats."""

    densities: FullGaussians | DiagonalGaussians
    log_likelihood: float
    shrinkage: Array
    caveats: tuple[SingularCovarianceWarning, ...] = ()


def full_estimate(
    moments: Moments, groups: Codes, shrinkage: Shrinkage, divisor: Divisor
) -> Estimate:
    """Means, and for each group its scatter over a divisor (4.75)-(4.80), (4.161)-(4.163)."""
    found = group_covariances(moments, groups, shrinkage, divisor)
    densities = FullGaussians(moments.with_vacant_classes_centred().mean, found.factors, groups)
    whiteners = densities.whiteners if moments.pooled else [densities.whiteners[g] for g in groups]
    pairs = zip(moments.scatter, whiteners, strict=True)
    squares = sum(float(((scatter @ white) * white).sum()) for scatter, white in pairs)  # tr Σ⁻¹S
    log_likelihood = float(moments.count @ densities.constants - 0.5 * squares)
    return Estimate(densities, log_likelihood, found.shrinkage, found.caveats)


def diagonal_estimate(sums: ColumnMoments, divisor: Divisor) -> Estimate:
    """Each class and column by itself; missing entries do not count."""
    taken = 1.0 if divisor == "unbiased" else 0.0
    family = estimate_gaussian(
        sums.count, sums.mean, sums.scatter, shared=False, places=_places(sums), taken=taken
    )
    return _independent(sums, family, shared=False)


def _places(sums: ColumnMoments) -> TableLabels:
    schema = Columns(sums.schema).as_schema()
    return TableLabels(schema, np.arange(len(schema)), sums.classes, sums.class_count == 0)


def _check_counted(sums: ColumnMoments) -> None:
    """An error where a class has rows, but none with an entry in some column."""
    _places(sums).check_counted(np.where(sums.class_count[:, None] > 0, sums.count, 1.0))


def isotropic_estimate(sums: ColumnMoments, divisor: Divisor) -> Estimate:
    """One variance λ for all classes and columns (000: Σ = λI)."""
    _check_counted(sums)
    taken = sums.count[sums.class_count > 0].size if divisor == "unbiased" else 0
    total = float(sums.count.sum())
    check_freedom(np.array(total), taken, sums.scatter.max())
    varies = np.sqrt(sums.scatter.max(axis=0) / total) > CONSTANT * abs(sums.mean).max(axis=0)
    if total <= taken or not varies.any():
        raise SingularCovarianceError(
            "The isotropic variance is zero: no column varies within a class.",
            "Pass more rows, or columns that vary.",
        )
    spread = np.sqrt(sums.scatter[:, varies].sum() / (total - taken))
    centre, _ = overall_spread(sums.count, sums.mean, sums.scatter)
    mean = np.where(sums.class_count[:, None] > 0, sums.mean, centre)
    return _independent(sums, Gaussian(mean, np.full(mean.shape, spread)), shared=True)


def _independent(sums: ColumnMoments, family: Gaussian, *, shared: bool) -> Estimate:
    """The densities, and the log-likelihood of the entries present."""
    squares = sums.scatter / family.sd / family.sd
    log_likelihood = -float((sums.count * family.log_normaliser + 0.5 * squares).sum())
    return Estimate(DiagonalGaussians(family, shared), log_likelihood, np.zeros(1))


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
    groups: Codes,
    expect: Callable[[Array, Array, EMParameters], ExpectedMoments],
    shrinkage: Shrinkage,
    divisor: Divisor,
) -> tuple[Estimate, Solution[EMParameters, float]]:
    """Maximum likelihood from rows with missing entries, by expectation-maximisation (9.3).

    `expect(centre, scale, parameters)` is the E step: a sum over rows in the coordinates
    (x - centre) / scale, in which the steps are made. `sums` are those of the entries present.
    """
    _check_counted(sums)
    centre, overall = overall_spread(sums.count, sums.mean, sums.scatter)
    scale = np.sqrt(sums.scatter.sum(axis=0) / sums.count.sum(axis=0))  # within the classes
    scale, varies = np.where(scale > 0, scale, 1.0), overall > 0
    start = np.tile(np.diag(1.0 * varies), (groups.max() + 1, 1, 1))
    now = EMParameters((sums.mean - centre) / scale, start, groups)
    trace: list[float] = []
    status = Status.MAX_ITERATIONS
    while status is not Status.CONVERGED and len(trace) < _EM_STEPS:
        expected = expect(centre, scale, now)  # E step
        trace.append(expected.log_likelihood)
        moments = expected.moments
        found = group_covariances(moments, groups, shrinkage, "ml")  # M step
        covariance = np.array([factor.covariance() for factor in found.factors])
        following = EMParameters(moments.mean, covariance, groups)
        if now.distance(following) <= _EM_TOLERANCE:
            status = Status.CONVERGED
        now = following
    if divisor == "unbiased":
        found = group_covariances(moments, groups, shrinkage, divisor)
        now = replace(now, covariance=np.array([factor.covariance() for factor in found.factors]))
    factors = tuple(factor.times_unit(scale) for factor in found.factors)
    densities = FullGaussians(centre + scale * now.mean, factors, groups)
    # The density is that of x, not of the coordinates in which the steps were made.
    jacobian = float(sums.count.sum(axis=0)[varies] @ np.log(scale[varies]))
    log_likelihood = expect(centre, scale, now).log_likelihood - jacobian
    estimate = Estimate(densities, log_likelihood, found.shrinkage, found.caveats)
    return estimate, Solution(now, status, tuple(value - jacobian for value in trace))
