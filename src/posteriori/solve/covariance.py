"""Covariances of groups of classes from their scatter: divisors, shrinkage, singular cases.

A covariance that maximum likelihood leaves singular has no density. What then happens depends on
`shrinkage`:

- 0.0 is strict: an error names the columns;
- otherwise columns that are constant or linear functions of others in *every* row are left out,
  which changes no posterior probability, if that makes the covariances regular;
- if it does not, because rows are too few or a column is constant within the classes only, the
  correlations are shrunk by the oracle approximation.

The last two come with a warning.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, cast

import numpy as np

from posteriori.design.columns import Columns
from posteriori.errors import (
    ParameterError,
    SingularCovarianceError,
    SingularCovarianceWarning,
)
from posteriori.likelihood.class_densities import Factor
from posteriori.likelihood.feature_families import CONSTANT, check_freedom
from posteriori.linalg import COLLINEAR, cholesky, dependent_columns, unit_diagonal
from posteriori.statistics.moments import Moments
from posteriori.typing import Array, Codes

Shrinkage = float | Literal["auto"] | None
Divisor = Literal["ml", "unbiased"]


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
