"""Gaussian densities by maximum likelihood: from sums over rows to means and factors (4.71)-(4.80).

`labels` below is the log-likelihood of the class labels, Σ_k N_k ln p(C_k): the other half of
ln p(x, t), so that `log_likelihood` is that of rows and labels together.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np

from posteriori.design.columns import Columns
from posteriori.errors import MissingValueError, SingularCovarianceError
from posteriori.posterior.gaussian import DiagonalGaussians, FullGaussians
from posteriori.solve.covariance import CONSTANT, Factor, Shrinkage, factorise
from posteriori.solve.em import expectation_maximisation
from posteriori.solve.solution import Solution
from posteriori.statistics.column_moments import ColumnMoments
from posteriori.statistics.incomplete import ExpectedMoments
from posteriori.statistics.moments import Moments
from posteriori.typing import Array, Codes, Labels

Divisor = Literal["ml", "unbiased"]

_EM_TOLERANCE = 1e-9
_EM_STEPS = 2000


@dataclass(frozen=True, eq=False)
class Estimate:
    """Densities, their log-likelihood without that of the labels, and the shrinkage used."""

    densities: FullGaussians | DiagonalGaussians
    log_likelihood: float
    shrinkage: Array


def full_estimate(moments: Moments, shrinkage: Shrinkage, divisor: Divisor) -> Estimate:
    """Means, and for each group its scatter over a divisor (4.75)-(4.80), (4.161)-(4.163)."""
    factors, amounts = group_factors(moments, shrinkage, divisor)
    unit = moments.unit
    densities = FullGaussians(
        moments.mean * unit, tuple(f.times_unit(unit) for f in factors), moments.groups
    )
    pairs = zip(factors, moments.scatter, strict=True)
    squares = sum(_trace_of_solution(factor, scatter) for factor, scatter in pairs)
    log_likelihood = float(moments.count @ densities.constants - 0.5 * squares)
    return Estimate(densities, log_likelihood, amounts)


def group_factors(
    moments: Moments, shrinkage: Shrinkage, divisor: Divisor
) -> tuple[tuple[Factor, ...], Array]:
    """The covariance of each group as a factor, in the units of the moments, and its shrinkage."""
    words = Columns(moments.schema).as_schema().describe_all
    found = []
    for g, scatter in enumerate(moments.scatter):
        members = np.flatnonzero((moments.groups == g) & (moments.count > 0))
        if len(members) == 0:
            found.append((Factor(np.ones(len(scatter)), np.eye(len(scatter))), 0.0))
            continue
        rows = float(moments.count[members].sum())
        whose = _whose(moments.classes[members], len(moments.classes))
        free = rows - len(members)
        if divisor == "unbiased" and free <= 0:
            raise SingularCovarianceError(
                f"The covariance of {whose} has no more rows ({rows:g}) than means.",
                "Pass more rows, use estimate='ml', or share the covariance.",
            )
        found.append(
            factorise(
                scatter / (free if divisor == "unbiased" else rows),
                size=abs(moments.mean[members]).max(axis=0),
                n=max(free, 1.0),
                shrinkage=shrinkage,
                columns=words,
                whose=f"{whose} ({rows:g} rows)",
            )
        )
    return tuple(factor for factor, _ in found), np.array([amount for _, amount in found])


def _whose(labels: Labels, n_classes: int) -> str:
    if len(labels) == n_classes:
        return "the classes together"
    named = ", ".join(map(repr, labels.tolist()[:6]))
    return f"class {named}" if len(labels) == 1 else f"classes {named}"


def _trace_of_solution(factor: Factor, scatter: Array) -> float:
    """tr Σ⁻¹S."""
    whitener = factor.whitener()
    return float(((scatter @ whitener) * whitener).sum())


def diagonal_estimate(sums: ColumnMoments, divisor: Divisor) -> Estimate:
    """Each class and column by itself; missing entries do not count."""
    _check_present(sums)
    taken = 1.0 if divisor == "unbiased" else 0.0
    rows = sums.count - taken
    spread = np.sqrt(np.divide(sums.scatter, rows, out=np.zeros_like(rows), where=rows > 0))
    occupied = (sums.class_count > 0)[:, None]
    flat = occupied & (spread <= CONSTANT * abs(sums.mean))
    if flat.any():
        k = int(flat.any(axis=1).argmax())
        columns = Columns(sums.schema).as_schema().describe_all(np.flatnonzero(flat[k]))
        raise SingularCovarianceError(
            f"The variance of {columns} is zero in class {sums.classes.tolist()[k]!r} "
            f"({sums.class_count[k]:g} rows).",
            "Drop what does not vary, or use covariance='shared' or 'isotropic'.",
        )
    return _independent(sums, np.where(occupied, spread, 1.0) * sums.unit, shared=False)


def isotropic_estimate(sums: ColumnMoments, divisor: Divisor) -> Estimate:
    """One variance λ for all classes and columns (000: Σ = λI)."""
    _check_present(sums)
    taken = sums.count[sums.class_count > 0].size if divisor == "unbiased" else 0
    largest = float((np.sqrt(sums.scatter.max(axis=0)) * sums.unit).max())
    rows = float(sums.count.sum()) - taken
    size = float((abs(sums.mean) * sums.unit).max())
    if rows <= 0 or largest <= CONSTANT * size:
        raise SingularCovarianceError(
            "The isotropic variance is zero: no column varies within a class.",
            "Pass more rows, or columns that vary.",
        )
    squares = float((sums.scatter * (sums.unit / largest) ** 2).sum())
    spread = np.full(sums.mean.shape, largest * np.sqrt(squares / rows))
    return _independent(sums, spread, shared=True)


def _check_present(sums: ColumnMoments) -> None:
    lost = np.argwhere((sums.count == 0) & (sums.class_count > 0)[:, None])
    if len(lost):
        k, j = lost[0]
        raise MissingValueError(
            f"Class {sums.classes.tolist()[k]!r} has no entry at all in "
            f"{Columns(sums.schema).as_schema().describe(int(j))}.",
            "Drop the column, or pass rows of this class that have it.",
        )


def _independent(sums: ColumnMoments, spread: Array, shared: bool) -> Estimate:
    squares = sums.scatter * (sums.unit / spread) ** 2
    logs = sums.count * (np.log(2 * np.pi) + 2 * np.log(spread))
    densities = DiagonalGaussians(sums.mean * sums.unit, spread, shared)
    return Estimate(densities, -0.5 * float((logs + squares).sum()), np.zeros(1))


@dataclass(frozen=True, eq=False)
class Completed:
    """Means (K, d) and covariances (G, d, d) during expectation-maximisation."""

    mean: Array
    covariance: Array
    factors: tuple[Factor, ...] = ()
    shrinkage: Array | None = None

    def distance(self, other: "Completed") -> float:
        """The largest change, in standard deviations."""
        scale = np.sqrt(np.diagonal(other.covariance, axis1=1, axis2=2))
        bend = abs(self.covariance - other.covariance) / scale[:, :, None] / scale[:, None, :]
        return float(max(abs(self.mean - other.mean).max() / scale.max(), bend.max()))


def incomplete_estimate(
    sums: ColumnMoments,
    sharing: tuple[Hashable, ...],
    expect: Callable[[Array, Array, Completed], ExpectedMoments],
    shrinkage: Shrinkage,
    divisor: Divisor,
) -> tuple[Estimate, Solution[Completed]]:
    """Maximum likelihood from rows with missing entries, by expectation-maximisation.

    `expect(centre, scale, parameters)` is the E step: a sum over rows in the coordinates
    (x - centre) / scale, in which the steps are made. `sums` are those of the entries present.
    """
    _check_present(sums)
    centre, scale = _standard_coordinates(sums)
    moments: Moments | None = None

    def step(now: Completed) -> tuple[Completed, float]:
        nonlocal moments
        found = expect(centre, scale, now)
        moments = found.moments
        factors, amounts = group_factors(moments, shrinkage, "ml")
        covariance = np.array([factor.covariance() for factor in factors])
        return Completed(moments.mean, covariance, factors, amounts), found.log_likelihood

    means = (sums.mean * sums.unit - centre) / scale
    start = Completed(means, np.array([np.eye(len(centre))] * len(set(sharing))))
    solution = expectation_maximisation(
        step, Completed.distance, start, tol=_EM_TOLERANCE, max_iter=_EM_STEPS
    )
    found, last = solution.parameters, cast(Moments, moments)
    widen = _widening(last) if divisor == "unbiased" else np.ones(len(found.factors))
    pairs = zip(found.factors, widen, strict=True)
    densities = FullGaussians(
        centre + scale * found.mean,
        tuple(factor.times_unit(scale * wide) for factor, wide in pairs),
        last.groups,
    )
    # The density is that of x, not of the coordinates in which the steps were made.
    jacobian = float(sums.count.sum(axis=0) @ np.log(scale))
    trace = tuple(value - jacobian for value in solution.trace)
    estimate = Estimate(densities, trace[-1], cast(Array, found.shrinkage))
    return estimate, Solution(found, solution.status, trace)


def _standard_coordinates(sums: ColumnMoments) -> tuple[Array, Array]:
    """Overall mean and within-class standard deviation of each column."""
    count = sums.count.sum(axis=0)
    centre = (sums.count * sums.mean).sum(axis=0) / count
    scale = np.sqrt(sums.scatter.sum(axis=0) / count)
    return centre * sums.unit, np.where(scale > 0, scale, 1.0) * sums.unit


def _widening(moments: Moments) -> Array:
    """Square root of the unbiased over the maximum likelihood covariance of each group."""
    members: Codes = np.bincount(moments.groups, moments.count > 0)
    return np.sqrt(moments.group_count / np.maximum(moments.group_count - members, 1))
