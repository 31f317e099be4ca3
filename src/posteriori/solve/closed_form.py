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

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

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
from posteriori.linalg import COLLINEAR, cholesky, dependent_columns, unit_diagonal
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


def check_shrinkage(shrinkage: object) -> None:
    """An error unless shrinkage is None, "auto" or a number from 0 to 1."""
    if shrinkage is None or (isinstance(shrinkage, str) and shrinkage == "auto"):
        return
    if isinstance(shrinkage, bool | str) or not isinstance(shrinkage, int | float | np.number):
        raise ParameterError(
            f"shrinkage={shrinkage!r} is not understood.", "Use None, 'auto' or a number in [0, 1]."
        )
    if not 0 <= float(shrinkage) <= 1:
        raise ParameterError(f"shrinkage={shrinkage} is out of range.", "Use a number in [0, 1].")


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


def factorise(
    covariance: Array, overall: Array, size: Array, n: float, shrinkage: Shrinkage
) -> Factored:
    """Factor a covariance, its correlations drawn towards zero by `shrinkage`.

    A column that is constant here, judged against its `size` (d,), is drawn towards its variance
    in all rows, `overall` (d,).
    """
    flat = np.sqrt(np.diagonal(covariance)) <= CONSTANT * size
    target = np.where(flat, overall, np.diagonal(covariance))
    scale = np.sqrt(np.where(target > 0, target, 1.0))
    correlation = covariance / scale / scale[:, None]
    correlation[flat, :] = correlation[:, flat] = 0.0
    amount = oracle_shrinkage(correlation, n) if shrinkage == "auto" else float(shrinkage or 0.0)
    correlation *= 1 - amount
    np.fill_diagonal(correlation, np.where(flat, amount, 1.0))
    lost = flat & ((amount == 0) | (np.sqrt(overall) <= CONSTANT * size))
    if lost.any():
        return Factored(None, amount, cast(Codes, np.flatnonzero(lost)))
    lower = cholesky(correlation)
    if lower is None or (np.diagonal(lower) ** 2 < COLLINEAR * np.diagonal(correlation)).any():
        return Factored(None, amount, dependent_columns(correlation))
    return Factored(Factor.of_full_rank(scale, lower), amount, cast(Codes, np.flatnonzero(flat)))


@dataclass(frozen=True, eq=False)
class GroupCovariances:
    """A factor and the shrinkage used a group, and what the user should hear of them."""

    factors: tuple[Factor, ...]
    shrinkage: Array
    caveats: tuple[SingularCovarianceWarning, ...] = ()


def group_covariances(
    moments: Moments, groups: Codes, shrinkage: Shrinkage, divisor: Divisor
) -> GroupCovariances:
    """The covariance of each group of classes as a factor; `groups` (K,) has their numbers."""
    return _Groups(moments, groups, divisor).covariances(shrinkage)


@dataclass(frozen=True, eq=False)
class _Groups:
    """The moments of groups of classes, and how their covariances are made regular."""

    moments: Moments
    groups: Codes
    divisor: Divisor

    @cached_property
    def scatter(self) -> Array:
        """That of each group (G, d, d)."""
        own = self.moments.scatter
        if self.moments.pooled or np.array_equal(self.groups, np.arange(len(own))):
            return own
        scatter = np.zeros((self.groups.max() + 1, *own.shape[1:]))
        np.add.at(scatter, self.groups, own)
        return scatter

    @cached_property
    def total(self) -> tuple[float, Array, Array]:
        """Count, mean and scatter of all rows."""
        return self.moments.total()

    def covariances(self, shrinkage: Shrinkage) -> GroupCovariances:
        columns = np.arange(self.moments.mean.shape[1])
        found = self._factors(columns, shrinkage)
        if all(one.factor is not None for one in found):
            flat = [(g, one) for g, one in enumerate(found) if len(one.culprits)]
            return _collect(found, [self._caveat(g, columns, one.culprits, one) for g, one in flat])
        if shrinkage == 0:
            g = next(g for g, one in enumerate(found) if one.factor is None)
            raise self._singular(g, found[g].culprits)
        return self._repaired(columns, shrinkage)

    def _factors(self, columns: Codes, shrinkage: Shrinkage) -> list[Factored]:
        return [self._factor(g, columns, shrinkage) for g in range(len(self.scatter))]

    def _factor(self, g: int, columns: Codes, shrinkage: Shrinkage) -> Factored:
        """The covariance of one group in some of the columns."""
        count, members = self.moments.count, self._members(g)
        if len(members) == 0:
            identity = Factor.of_full_rank(np.ones(len(columns)), np.eye(len(columns)))
            return Factored(identity, 0.0, np.empty(0, dtype=np.intp))
        rows = float(count[members].sum())
        scatter = self.scatter[g][np.ix_(columns, columns)]
        if self.divisor == "unbiased":
            check_freedom(np.array(rows), len(members), np.diagonal(scatter).max())
        free = rows - len(members) if rows > len(members) else 1.0
        n, _, total = self.total
        return factorise(
            scatter / (free if self.divisor == "unbiased" else rows),
            np.diagonal(total)[columns] / n,
            abs(self.moments.mean[members][:, columns]).max(axis=0),
            max(free, 1.0),
            shrinkage,
        )

    def _repaired(self, columns: Codes, shrinkage: Shrinkage) -> GroupCovariances:
        """Leave out what is redundant in every row; if that is not enough, shrink."""
        n, mean, total = self.total
        varies = np.sqrt(np.diagonal(total) / n) > CONSTANT * abs(mean)
        varying = np.flatnonzero(varies)
        if len(varying) == 0:
            raise SingularCovarianceError(
                "No column varies: all rows are the same.", "Pass columns that vary."
            )
        correlation, _ = unit_diagonal(total[np.ix_(varying, varying)])
        independent = np.delete(varying, dependent_columns(correlation))
        for kept in (varying, independent):
            found = self._factors(kept, shrinkage)
            if all(one.factor is not None for one in found):
                return self._of_all_columns(found, kept)
        return self._shrunk(varying)

    def _shrunk(self, kept: Codes) -> GroupCovariances:
        """Singular groups by the oracle shrinkage: their rows are too few, or do not vary."""
        found, caveats = self._factors(kept, None), []
        for g, singular in enumerate(found):
            if singular.factor is None:
                culprits = kept[singular.culprits]
                found[g] = self._factor(g, kept, "auto")
                if found[g].factor is None:
                    raise self._singular(g, culprits)
                caveats.append(self._caveat(g, kept, culprits, found[g]))
        return self._of_all_columns(found, kept, caveats)

    def _of_all_columns(
        self,
        found: list[Factored],
        kept: Codes,
        caveats: Sequence[SingularCovarianceWarning] = (),
    ) -> GroupCovariances:
        """Factors of the columns kept as factors of all columns, which are functions of these."""
        _, _, total = self.total
        inner, scale = unit_diagonal(total[np.ix_(kept, kept)])
        outer = total[kept] / scale[:, None]
        relation = (np.linalg.lstsq(inner, outer, rcond=COLLINEAR)[0] / scale[:, None]).T
        relation[kept] = np.eye(len(kept))
        whole = [
            one._replace(factor=one.factor and one.factor.with_columns(kept, relation))
            for one in found
        ]
        lost = np.setdiff1d(np.arange(len(total)), kept)
        if len(lost):
            left_out = SingularCovarianceWarning(
                f"The values in {self._words(lost)} never change (to 13 digits) or can be computed "
                "from the other columns; they were left out.",
                "Drop what is redundant, or set shrinkage=0.0 to have an error instead.",
            )
            caveats = (left_out, *caveats)
        return _collect(whole, caveats)

    def _members(self, g: int) -> Codes:
        """The classes of a group that have rows."""
        return np.flatnonzero((self.groups == g) & (self.moments.count > 0))

    def _words(self, columns: Codes) -> str:
        return Columns(self.moments.schema).as_schema().describe_all(columns)

    def _describe(self, g: int) -> str:
        """Whose covariance it is, and of how many rows."""
        members = self._members(g)
        labels = [repr(label) for label in self.moments.classes[members].tolist()]
        if len(members) == len(self.moments.classes):
            whose = "the classes together"
        else:
            whose = f"class{'es' if len(labels) > 1 else ''} {', '.join(labels[:6])}"
        return f"The covariance of {whose} ({self.moments.count[members].sum():g} rows)"

    def _singular(self, g: int, culprits: Codes) -> SingularCovarianceError:
        return SingularCovarianceError(
            f"{self._describe(g)} is singular: {self._words(culprits)} cannot be told from "
            "constants or from linear functions of the other columns.",
            "Drop such columns, set shrinkage='auto', or use covariance='diagonal'.",
        )

    def _caveat(
        self, g: int, kept: Codes, culprits: Codes, found: Factored
    ) -> SingularCovarianceWarning:
        """What was done to a singular covariance of the columns kept."""
        amount, constant = found.shrinkage, kept[found.culprits]
        replaced = (
            f" The variance of {self._words(constant)}, which is zero there, was replaced by "
            f"{amount:.3g} times the variance in all rows."
        )
        return SingularCovarianceWarning(
            f"{self._describe(g)} is singular in {self._words(culprits)}; its correlations were "
            f"shrunk by {amount:.3g} towards zero.{replaced if len(constant) else ''}",
            "Pass more rows or fewer columns, set shrinkage yourself, or use "
            "covariance='diagonal'.",
        )


def _collect(
    found: list[Factored], caveats: Sequence[SingularCovarianceWarning]
) -> GroupCovariances:
    factors = tuple(one.factor for one in found if one.factor is not None)
    return GroupCovariances(factors, np.array([one.shrinkage for one in found]), tuple(caveats))


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
