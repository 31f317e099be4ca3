"""Gaussian densities by maximum likelihood: from sums over rows to means and factors (4.71)-(4.80).

The log-likelihoods here are those of the rows given their classes, Σ ln p(x|C_k).
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from posteriori.design.columns import Columns
from posteriori.errors import SingularCovarianceError, SingularCovarianceWarning
from posteriori.likelihood.family import Places
from posteriori.likelihood.normal import (
    check_freedom,
    estimate_gaussian,
    log_normaliser,
    spread_of_all,
)
from posteriori.posterior.gaussian import DiagonalGaussians, FullGaussians
from posteriori.solve.covariance import CONSTANT, Factor, Shrinkage
from posteriori.solve.em import expectation_maximisation
from posteriori.solve.group_covariance import Divisor, GroupCovariances, group_covariances
from posteriori.solve.solution import Solution
from posteriori.statistics.column_moments import ColumnMoments
from posteriori.statistics.expected_moments import ExpectedMoments
from posteriori.statistics.moments import Moments
from posteriori.typing import Array

_EM_TOLERANCE = 1e-9
_EM_STEPS = 2000


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
    pairs = zip(found.factors, moments.scatter, strict=True)
    squares = sum(_trace_of_solution(factor, scatter) for factor, scatter in pairs)
    log_likelihood = float(moments.count @ densities.constants - 0.5 * squares)
    return Estimate(densities, log_likelihood, found.shrinkage, found.caveats)


def _trace_of_solution(factor: Factor, scatter: Array) -> float:
    """tr Σ⁻¹S."""
    whitener = factor.whitener()
    return float(((scatter @ whitener) * whitener).sum())


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


def _places(sums: ColumnMoments) -> Places:
    schema = Columns(sums.schema).as_schema()
    return Places(schema, np.arange(len(schema)), sums.classes, sums.class_count == 0)


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
    centre, _ = spread_of_all(sums.count, sums.mean, sums.scatter)
    mean = np.where(sums.class_count[:, None] > 0, sums.mean, centre) * sums.unit
    return _independent(sums, mean, spread, shared=True)


def _independent(sums: ColumnMoments, mean: Array, spread: Array, *, shared: bool) -> Estimate:
    """The densities, and the log-likelihood of the entries present."""
    densities = DiagonalGaussians(mean, spread, shared)
    squares = sums.scatter * (sums.unit / spread) ** 2
    log_likelihood = -float((sums.count * log_normaliser(spread) + 0.5 * squares).sum())
    return Estimate(densities, log_likelihood, np.zeros(1))


@dataclass(frozen=True, eq=False)
class Completed:
    """Means (K, d) and covariances (G, d, d) during expectation-maximisation."""

    mean: Array
    covariance: Array
    groups: GroupCovariances | None = None

    def distance(self, other: "Completed") -> float:
        """The largest change, in standard deviations."""
        scale = np.sqrt(np.diagonal(other.covariance, axis1=1, axis2=2))
        scale = np.where(scale > 0, scale, 1.0)
        bend = abs(self.covariance - other.covariance) / scale[:, :, None] / scale[:, None, :]
        return float(max(abs(self.mean - other.mean).max() / scale.max(), bend.max()))


def incomplete_estimate(
    sums: ColumnMoments,
    sharing: tuple[Hashable, ...],
    expect: Callable[[Array, Array, Completed], ExpectedMoments],
    shrinkage: Shrinkage,
    divisor: Divisor,
) -> tuple[Estimate, Solution[Completed, float]]:
    """Maximum likelihood from rows with missing entries, by expectation-maximisation.

    `expect(centre, scale, parameters)` is the E step: a sum over rows in the coordinates
    (x - centre) / scale, in which the steps are made. `sums` are those of the entries present.
    """
    _places(sums).check_counted(np.where(sums.class_count[:, None] > 0, sums.count, 1.0))
    centre, scale = _standard_coordinates(sums)
    moments: Moments | None = None

    def step(now: Completed) -> tuple[Completed, float]:
        nonlocal moments
        found = expect(centre, scale, now)
        moments = found.moments
        groups = group_covariances(moments, shrinkage, "ml")
        covariance = np.array([factor.covariance() for factor in groups.factors])
        return Completed(moments.mean, covariance, groups), found.log_likelihood

    means = (sums.mean * sums.unit - centre) / scale
    varies = spread_of_all(sums.count, sums.mean, sums.scatter)[1] > 0
    start = Completed(means, np.array([np.diag(varies * 1.0)] * len(set(sharing))))
    solution = expectation_maximisation(
        step, Completed.distance, start, tol=_EM_TOLERANCE, max_iter=_EM_STEPS
    )
    found, last = solution.parameters, cast(Moments, moments)
    groups = cast(GroupCovariances, found.groups)
    widen = _widening(last) if divisor == "unbiased" else np.ones(len(groups.factors))
    pairs = zip(groups.factors, widen, strict=True)
    densities = FullGaussians(
        centre + scale * found.mean,
        tuple(factor.times_unit(scale * wide) for factor, wide in pairs),
        last.groups,
    )
    # The density is that of x, not of the coordinates in which the steps were made.
    jacobian = float(sums.count.sum(axis=0)[varies] @ np.log(scale[varies]))
    trace = tuple(value - jacobian for value in solution.trace)
    widened = replace(found, covariance=found.covariance * widen[:, None, None] ** 2)
    log_likelihood = expect(centre, scale, widened).log_likelihood - jacobian
    estimate = Estimate(densities, log_likelihood, groups.shrinkage, groups.caveats)
    return estimate, Solution(found, solution.status, trace)


def _standard_coordinates(sums: ColumnMoments) -> tuple[Array, Array]:
    """Overall mean and within-class standard deviation of each column."""
    scale = np.sqrt(sums.scatter.sum(axis=0) / sums.count.sum(axis=0))
    centre, _ = spread_of_all(sums.count, sums.mean, sums.scatter)
    return centre * sums.unit, np.where(scale > 0, scale, 1.0) * sums.unit


def _widening(moments: Moments) -> Array:
    """Square root of the unbiased over the maximum likelihood covariance of each group."""
    members = np.bincount(moments.groups, moments.count > 0).astype(np.float64)
    rows = moments.group_count
    squares = np.diagonal(moments.scatter, axis1=1, axis2=2).max(axis=1)
    for g in range(len(rows)):
        check_freedom(rows[g : g + 1], members[g], squares[g : g + 1])
    return np.sqrt(np.divide(rows, rows - members, out=np.ones_like(rows), where=rows > members))
