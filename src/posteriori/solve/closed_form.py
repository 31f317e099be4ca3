"""Parameters in closed form from sums over rows, and by expectation-maximisation.

Least squares from its normal equations (4.16), Fisher's eigenproblem (4.40)-(4.51), and Gaussian
densities by maximum likelihood (4.71)-(4.80), also where entries are missing. The log-likelihoods
here are those of the rows given their classes, Σ ln p(x|C_k).

A covariance that maximum likelihood leaves singular has no density. What then happens depends on
`shrinkage`:

- 0.0 is strict: an error names the columns;
- otherwise columns that are constant or linear functions of others in *every* row are left out,
  which changes no posterior probability, if that makes the covariances regular;
- if it does not, because rows are too few or a column is constant within the classes only, the
  correlations are shrunk by the oracle approximation.

The last two come with a warning.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from posteriori.arguments import is_number
from posteriori.design.columns import Columns
from posteriori.errors import (
    ParameterError,
    SingularCovarianceError,
    SingularCovarianceWarning,
)
from posteriori.likelihood.class_densities import DiagonalGaussians, Factor, FullGaussians
from posteriori.likelihood.feature_families import (
    CONSTANT,
    Gaussian,
    TableLabels,
    check_freedom,
    estimate_gaussian,
    overall_spread,
)
from posteriori.linalg import COLLINEAR, cholesky, dependent_columns, solve_lower, unit_diagonal
from posteriori.rows.schema import Schema
from posteriori.solve.objective import Solution, Status
from posteriori.statistics.column_moments import ColumnMoments
from posteriori.statistics.moments import ExpectedMoments, Moments
from posteriori.typing import Array, Codes

Shrinkage = float | Literal["auto"] | None
Divisor = Literal["ml", "unbiased"]

_EM_TOLERANCE = 1e-9
_EM_STEPS = 2000


def least_squares(
    scatter: Array, cross: Array, ridge: float, constant: NDArray[np.bool_]
) -> tuple[Array, Codes]:
    """W with (S + ridge I) W = cross (4.16), and the columns that depend on others or never change.

    W is the smallest solution where there are many. The rank is decided on correlations, so that
    units do not matter; the norm that is made smallest is that of the coefficients as they are.
    """
    kept, coefficients = np.flatnonzero(~constant), np.zeros_like(cross)
    matrix, scale = unit_diagonal(scatter[np.ix_(kept, kept)] + ridge * np.eye(len(kept)))
    right, lost = cross[kept] / scale[:, None], dependent_columns(matrix)
    if len(lost):
        coefficients[kept] = _smallest_solution(matrix, right, scale, len(lost))
    else:
        coefficients[kept] = np.linalg.solve(matrix, right) / scale[:, None]
    return coefficients, np.union1d(kept[lost], np.flatnonzero(constant))


def _smallest_solution(matrix: Array, right: Array, scale: Array, deficiency: int) -> Array:
    """Of all solutions z / scale of the singular system, the one of smallest norm."""
    values, vectors = np.linalg.eigh(matrix)
    basis, null = vectors[:, deficiency:], vectors[:, :deficiency] / scale[:, None]
    particular = basis @ ((basis.T @ right) / values[deficiency:, None]) / scale[:, None]
    null /= abs(null).max(axis=0)  # units may differ by hundreds of powers of ten
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


def check_shrinkage(shrinkage: object) -> None:
    """An error unless shrinkage is None, "auto" or a number from 0 to 1."""
    if isinstance(shrinkage, str):
        known = shrinkage == "auto"
    else:
        known = shrinkage is None or (is_number(shrinkage) and 0 <= shrinkage <= 1)
    if not known:
        raise ParameterError(
            f"shrinkage={shrinkage!r} is not understood.",
            "Use None, 'auto' or a number from 0 to 1.",
        )


def oracle_shrinkage(correlation: Array, n: float) -> float:
    """How much of the identity to mix into the correlations of `n` rows.

    The oracle approximating shrinkage of Chen, Wiesel, Eldar and Hero (2010): for Gaussian rows,
    an approximation of the amount with the least expected squared error. Applied to correlations,
    so that units do not matter. It needs tr R and tr R² only, hence no second pass over the rows,
    where Ledoit and Wolf's needs fourth moments.

    >>> round(oracle_shrinkage(np.array([[1.0, 0.5], [0.5, 1.0]]), 10), 6)
    0.8
    """
    d = len(correlation)
    trace, square = float(np.trace(correlation)), float((correlation**2).sum())
    spread = (n + 1 - 2 / d) * (square - trace**2 / d)
    return 1.0 if spread <= 0 else min(1.0, ((1 - 2 / d) * square + trace**2) / spread)


class Factored(NamedTuple):
    """The factor of a shrunk covariance, the shrinkage used, and the columns that are singular.

    These forbid a factor or, where there is one, are constant and had their variance replaced.
    """

    factor: Factor | None
    shrinkage: float
    culprits: Codes


@dataclass(frozen=True, eq=False)
class GroupMoments:
    """The covariance (d, d) of a group of classes, and what is needed to make it regular.

    name: whose covariance it is, in words; n: its degrees of freedom; overall: the variances of the
    columns in all rows (d,); size: the largest means of the columns (d,).
    """

    name: str
    schema: Schema
    covariance: Array
    n: float
    overall: Array
    size: Array

    def factorise(self, kept: Codes, shrinkage: Shrinkage) -> Factored:
        """Factor the covariance, its correlations drawn towards zero by `shrinkage`.

        The columns `kept` are to be independent, and the others linear functions of these. A column
        that is constant here, judged against its size, is drawn towards its variance in all rows.
        """
        part, size = self.covariance[np.ix_(kept, kept)], self.size[kept]
        flat = np.sqrt(np.diagonal(part)) <= CONSTANT * size
        target = np.where(flat, self.overall[kept], np.diagonal(part))
        scale = np.sqrt(np.where(target > 0, target, 1.0))
        correlation = part / scale / scale[:, None]
        correlation[flat, :] = correlation[:, flat] = 0.0
        if isinstance(shrinkage, str):
            amount = oracle_shrinkage(correlation, self.n)
        else:
            amount = float(shrinkage or 0.0)
        correlation *= 1 - amount
        np.fill_diagonal(correlation, np.where(flat, amount, 1.0))
        lost = flat & ((amount == 0) | (np.sqrt(self.overall[kept]) <= CONSTANT * size))
        if lost.any():
            return Factored(None, amount, kept[lost])
        lower = cholesky(correlation)
        if lower is None or (np.diagonal(lower) ** 2 < COLLINEAR * np.diagonal(correlation)).any():
            return Factored(None, amount, kept[dependent_columns(correlation)])
        return Factored(self._of_all_columns(kept, scale, lower), amount, kept[flat])

    def _of_all_columns(self, kept: Codes, scale: Array, lower: Array) -> Factor:
        """The factor of all columns, from the scale and factor of those that are kept."""
        rest = np.delete(np.arange(len(self.size)), kept)
        every = np.sqrt(np.maximum(np.diagonal(self.covariance), 0.0))
        every = np.where(every > 0, every, 1.0)
        every[kept] = scale
        rows = np.zeros((len(every), len(kept)))
        rows[kept] = lower
        across = self.covariance[np.ix_(kept, rest)] / scale[:, None] / every[rest]
        rows[rest] = solve_lower(lower, across).T
        return Factor(every, rows, kept)

    def error(self, culprits: Codes) -> SingularCovarianceError:
        """The error that names the culprits."""
        return SingularCovarianceError(
            f"{self.name} is singular: {self.schema.describe_all(culprits)} cannot be "
            "distinguished from constants or from linear functions of the other columns.",
            "Drop such columns, set shrinkage='auto', or use covariance='diagonal'.",
        )

    def caveat(self, culprits: Codes, found: Factored) -> SingularCovarianceWarning:
        """What was done because of the culprits."""
        replaced = (
            f" The variance of {self.schema.describe_all(found.culprits)}, which is zero there, "
            f"was replaced by {found.shrinkage:.3g} times the variance in all rows."
        )
        return SingularCovarianceWarning(
            f"{self.name} is singular in {self.schema.describe_all(culprits)}; its correlations "
            f"were shrunk by {found.shrinkage:.3g} towards zero."
            f"{replaced if len(found.culprits) else ''}",
            "Pass more rows or fewer columns, set shrinkage yourself, or use "
            "covariance='diagonal'.",
        )


class GroupCovariances(NamedTuple):
    """A factor and the shrinkage used a group, and what the user is warned of."""

    factors: tuple[Factor, ...]
    shrinkage: Array
    caveats: tuple[SingularCovarianceWarning, ...]


def group_covariances(
    moments: Moments, groups: Codes, shrinkage: Shrinkage, divisor: Divisor
) -> GroupCovariances:
    """The covariance of each group of classes as a factor; `groups` (K,) has their numbers.

    Where one is singular, columns that are redundant in every row are left out; if that is not
    enough, because rows are too few, the singular ones are shrunk.
    """
    n, mean, total = moments.total()
    overall, schema = np.diagonal(total) / n, Columns(moments.schema).as_schema()
    each = [_group(moments, groups == g, divisor, overall, schema) for g in range(groups.max() + 1)]
    varying = np.flatnonzero(np.sqrt(overall) > CONSTANT * abs(mean))
    if len(varying) == 0:
        raise SingularCovarianceError(
            "No column varies: all rows are the same.", "Pass columns that vary."
        )
    culprits: dict[int, Codes] = {}
    for kept in _choices(varying, total):
        found = [group.factorise(kept, shrinkage) for group in each]
        culprits = {g: one.culprits for g, one in enumerate(found) if len(one.culprits)}
        bad = [g for g, one in enumerate(found) if one.factor is None]
        if bad and shrinkage == 0:
            raise each[bad[0]].error(culprits[bad[0]])
        if not bad:
            break
    else:
        kept, found = varying, [group.factorise(varying, None) for group in each]
        culprits = {g: one.culprits for g, one in enumerate(found) if one.factor is None}
        for g in culprits:
            found[g] = each[g].factorise(varying, "auto")
            if found[g].factor is None:
                raise each[g].error(culprits[g])
    caveats = [each[g].caveat(columns, found[g]) for g, columns in culprits.items()]
    lost = np.setdiff1d(np.arange(len(mean)), kept)
    if len(lost):
        left_out = SingularCovarianceWarning(
            f"The values in {schema.describe_all(lost)} never change (to 13 digits) or can be "
            "computed from the other columns; they were left out.",
            "Drop what is redundant, or set shrinkage=0.0 to have an error instead.",
        )
        caveats.insert(0, left_out)
    factors = tuple(cast(Factor, one.factor) for one in found)
    return GroupCovariances(factors, np.array([one.shrinkage for one in found]), tuple(caveats))


def _choices(varying: Codes, total: Array) -> Iterator[Codes]:
    """Columns to keep: all, those that vary, and those that do not depend on others in all rows."""
    yield np.arange(len(total))
    yield varying
    correlation, _ = unit_diagonal(total[np.ix_(varying, varying)])
    yield np.delete(varying, dependent_columns(correlation))


def _group(
    moments: Moments, chosen: NDArray[np.bool_], divisor: Divisor, overall: Array, schema: Schema
) -> GroupMoments:
    """The moments of the classes chosen (K,); unit covariance where they have no rows."""
    members = np.flatnonzero(chosen & (moments.count > 0))
    rows, d = float(moments.count[members].sum()), len(overall)
    labels = [repr(label) for label in moments.classes[members].tolist()]
    name = f"class{'es' if len(labels) > 1 else ''} {', '.join(labels[:6])}"
    if len(members) == len(moments.classes):
        name = "the classes together"
    name = f"The covariance of {name} ({rows:g} rows)"
    if len(members) == 0:
        return GroupMoments(name, schema, np.eye(d), 1.0, overall, np.zeros(d))
    scatter = moments.scatter[0] if moments.pooled else moments.scatter[members].sum(axis=0)
    if divisor == "unbiased":
        check_freedom(np.array(rows), len(members), np.diagonal(scatter).max())
    free = rows - len(members) if rows > len(members) else 1.0
    return GroupMoments(
        name,
        schema,
        scatter / (free if divisor == "unbiased" else rows),
        max(free, 1.0),
        overall,
        abs(moments.mean[members]).max(axis=0),
    )


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
    return _independent(sums, family)


def _places(sums: ColumnMoments) -> TableLabels:
    schema = Columns(sums.schema).as_schema()
    return TableLabels(schema, np.arange(len(schema)), sums.classes, sums.class_count == 0)


def isotropic_estimate(sums: ColumnMoments, divisor: Divisor) -> Estimate:
    """One variance λ for all classes and columns (000: Σ = λI)."""
    _places(sums).check_counted(sums.count)
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
    return _independent(sums, Gaussian(mean, np.full(mean.shape, spread), shared=True))


def _independent(sums: ColumnMoments, family: Gaussian) -> Estimate:
    """The densities, and the log-likelihood of the entries present."""
    squares = sums.scatter / family.sd / family.sd
    log_likelihood = -float((sums.count * family.log_normaliser + 0.5 * squares).sum())
    return Estimate(DiagonalGaussians(family), log_likelihood, np.zeros(1))


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
    _places(sums).check_counted(sums.count)
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
