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

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, cast

import numpy as np

from posteriori.design.columns import Columns
from posteriori.errors import (
    ParameterError,
    ScaleError,
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

_SMALLEST_SPREAD = 1e-290
"""Inverse spreads are multiplied with each other's digits: some room is left to 1e-308."""


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
    """The factor of a shrunk covariance and the shrinkage used, or the columns that forbid it."""

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
    return Factored(Factor.of_full_rank(scale, lower), amount, np.empty(0, dtype=np.intp))


@dataclass(frozen=True, eq=False)
class GroupCovariances:
    """A factor and the shrinkage used a group, and what the user should hear of them."""

    factors: tuple[Factor, ...]
    shrinkage: Array
    caveats: tuple[SingularCovarianceWarning, ...] = field(default=())


def group_covariances(moments: Moments, shrinkage: Shrinkage, divisor: Divisor) -> GroupCovariances:
    """The covariance of each group as a factor, in the units of the moments."""
    found = _regular_covariances(moments, shrinkage, divisor)
    for factor in found.factors:
        _check_spread(moments, factor)
    return found


def _check_spread(moments: Moments, factor: Factor) -> None:
    """An error where the reciprocal of a spread, in units of one, would leave the doubles."""
    small = (factor.scale * moments.unit)[factor.kept] < _SMALLEST_SPREAD
    if small.any():
        column = Columns(moments.schema).as_schema().describe(int(factor.kept[small.argmax()]))
        raise ScaleError(f"The entries of {column} are too small.", "Multiply them by 1e100.")


def _regular_covariances(
    moments: Moments, shrinkage: Shrinkage, divisor: Divisor
) -> GroupCovariances:
    everything = np.arange(moments.mean.shape[1])
    found = [
        _factor(moments, g, everything, shrinkage, divisor) for g in range(len(moments.scatter))
    ]
    if all(one.factor is not None for one in found):
        return _collect(found)
    if shrinkage == 0:
        g = next(g for g, one in enumerate(found) if one.factor is None)
        raise _singular(moments, g, found[g].culprits)
    return _repaired(moments, shrinkage, divisor)


def _collect(
    found: list[Factored], caveats: tuple[SingularCovarianceWarning, ...] = ()
) -> GroupCovariances:
    factors = tuple(one.factor for one in found if one.factor is not None)
    return GroupCovariances(factors, np.array([one.shrinkage for one in found]), caveats)


def _factor(
    moments: Moments, g: int, columns: Codes, shrinkage: Shrinkage, divisor: Divisor
) -> Factored:
    """The covariance of one group in some of the columns."""
    members = np.flatnonzero((moments.groups == g) & (moments.count > 0))
    if len(members) == 0:
        identity = Factor.of_full_rank(np.ones(len(columns)), np.eye(len(columns)))
        return Factored(identity, 0.0, np.empty(0, dtype=np.intp))
    rows = float(moments.count[members].sum())
    scatter = moments.scatter[g][np.ix_(columns, columns)]
    if divisor == "unbiased":
        check_freedom(np.array(rows), len(members), np.diagonal(scatter).max())
    free = rows - len(members) if rows > len(members) else 1.0
    n, _, total = moments.total()
    return factorise(
        scatter / (free if divisor == "unbiased" else rows),
        np.diagonal(total)[columns] / n,
        abs(moments.mean[members][:, columns]).max(axis=0),
        max(free, 1.0),
        shrinkage,
    )


def _repaired(moments: Moments, shrinkage: Shrinkage, divisor: Divisor) -> GroupCovariances:
    """Leave out what is redundant in every row; if that is not enough, shrink."""
    constant, dependent = _redundant_columns(moments)
    everything = np.arange(moments.mean.shape[1])
    if len(constant) == len(everything):
        raise SingularCovarianceError(
            "No column varies: all rows are the same.", "Pass columns that vary."
        )
    groups = range(len(moments.scatter))
    for lost in (constant, np.union1d(constant, dependent)):
        kept = np.setdiff1d(everything, lost)
        found = [_factor(moments, g, kept, shrinkage, divisor) for g in groups]
        if all(one.factor is not None for one in found):
            return _spread_out(moments, found, kept, _left_out(moments, lost))
    return _shrunk(moments, np.setdiff1d(everything, constant), divisor)


def _shrunk(moments: Moments, kept: Codes, divisor: Divisor) -> GroupCovariances:
    """Singular groups by the oracle shrinkage: their rows are too few, or do not vary."""
    found, caveats = [], _left_out(moments, np.setdiff1d(np.arange(moments.mean.shape[1]), kept))
    for g in range(len(moments.scatter)):
        one = _factor(moments, g, kept, None, divisor)
        if one.factor is None:
            culprits = kept[one.culprits]
            one = _factor(moments, g, kept, "auto", divisor)
            if one.factor is None:
                raise _singular(moments, g, culprits)
            caveats += (_shrinkage_caveat(moments, g, kept, culprits, one.shrinkage),)
        found.append(one)
    return _spread_out(moments, found, kept, caveats)


def _redundant_columns(moments: Moments) -> tuple[Codes, Codes]:
    """Columns constant in all rows, and columns that depend on others in all rows."""
    n, mean, total = moments.total()
    constant = np.sqrt(np.diagonal(total) / n) <= CONSTANT * abs(mean)
    varying = np.flatnonzero(~constant)
    correlation, _ = unit_diagonal(total[np.ix_(varying, varying)])
    dependent = varying[dependent_columns(correlation)] if len(varying) else varying
    return cast(Codes, np.flatnonzero(constant)), dependent


def _spread_out(
    moments: Moments,
    found: list[Factored],
    kept: Codes,
    caveats: tuple[SingularCovarianceWarning, ...],
) -> GroupCovariances:
    """Factors of the columns kept as factors of all columns."""
    relation = _relation(moments, kept)
    whole = [
        one._replace(factor=one.factor.with_columns(kept, relation))
        for one in found
        if one.factor is not None
    ]
    return _collect(whole, caveats)


def _relation(moments: Moments, kept: Codes) -> Array:
    """All columns as linear functions of those kept (d, r), by least squares over all rows."""
    _, _, total = moments.total()
    inner, scale = unit_diagonal(total[np.ix_(kept, kept)])
    outer = total[kept] / scale[:, None]
    relation = (np.linalg.lstsq(inner, outer, rcond=COLLINEAR)[0] / scale[:, None]).T
    relation[kept] = np.eye(len(kept))
    return relation


def _left_out(moments: Moments, lost: Codes) -> tuple[SingularCovarianceWarning, ...]:
    if len(lost) == 0:
        return ()
    words = Columns(moments.schema).as_schema().describe_all(lost)
    return (
        SingularCovarianceWarning(
            f"The values in {words} never change (to 13 digits) or can be computed from the other "
            "columns; they were left out.",
            "Drop what is redundant, or set shrinkage=0.0 to have an error instead.",
        ),
    )


def _describe(moments: Moments, g: int) -> str:
    """Whose covariance it is, and of how many rows."""
    members = np.flatnonzero((moments.groups == g) & (moments.count > 0))
    labels = [repr(label) for label in moments.classes[members].tolist()]
    if len(members) == len(moments.classes):
        whose = "the classes together"
    else:
        whose = f"class{'es' if len(labels) > 1 else ''} {', '.join(labels[:6])}"
    return f"The covariance of {whose} ({moments.count[members].sum():g} rows)"


def _singular(moments: Moments, g: int, culprits: Codes) -> SingularCovarianceError:
    words = Columns(moments.schema).as_schema().describe_all
    return SingularCovarianceError(
        f"{_describe(moments, g)} is singular: {words(culprits)} cannot be told from constants "
        "or from linear functions of the other columns.",
        "Drop such columns, set shrinkage='auto', or use covariance='diagonal'.",
    )


def _shrinkage_caveat(
    moments: Moments, g: int, kept: Codes, culprits: Codes, amount: float
) -> SingularCovarianceWarning:
    words = Columns(moments.schema).as_schema().describe_all
    rows = moments.group_count[g]
    size = abs(moments.mean[moments.groups == g]).max(axis=0)
    constant = kept[(np.sqrt(np.diagonal(moments.scatter[g]) / rows) <= CONSTANT * size)[kept]]
    replaced = (
        f" The variance of {words(constant)}, which is zero there, was replaced by "
        f"{amount:.3g} times the variance in all rows."
    )
    return SingularCovarianceWarning(
        f"{_describe(moments, g)} is singular in {words(culprits)}; its correlations were "
        f"shrunk by {amount:.3g} towards zero.{replaced if len(constant) else ''}",
        "Pass more rows or fewer columns, set shrinkage yourself, or use covariance='diagonal'.",
    )
