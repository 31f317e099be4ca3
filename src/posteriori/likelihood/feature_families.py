"""Families of features given the class (4.2.3, 4.2.4): the exponential family (4.83) by columns.

Conventions: n rows, m columns of the same family, K classes. `x` (n, m) is an array with NaN
where an entry is missing, or a SciPy CSR matrix, whose empty places are zeros like any other.
A new family is one class and a line in `FAMILIES`.

>>> sorted(FAMILIES)
['bernoulli', 'categorical', 'exponential', 'gaussian', 'poisson']
>>> FAMILIES["poisson"].domain
'a whole number, zero or more'
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, Self, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import gammaln

from posteriori.errors import (
    DomainError,
    MissingValueError,
    ParameterError,
    ScaleError,
    SingularCovarianceWarning,
    WeightError,
    warn,
)
from posteriori.likelihood.linear_activations import Linear
from posteriori.rows.block import MISSING, UNSEEN
from posteriori.rows.schema import Kind, Schema
from posteriori.typing import Array, Codes, Labels

Entries: TypeAlias = Array | sparse.csr_array
Mask: TypeAlias = NDArray[np.bool_]
Levels: TypeAlias = tuple[tuple[Any, ...], ...]

CONSTANT = 1e-13
"""A column is called constant when its spread is below this part of its size."""

_SMALLEST = 1e-300
"""Means and standard deviations below this have reciprocals beyond the doubles."""

_ROUNDING = 1e-12
"""A share of the weight below this is what adding up weights leaves of zero."""

_FAR = 300.0
"""Standard deviations between a mean and the centre beyond which a square is not multiplied out."""

_HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)

_DENSE_ENTRIES = 2**18
"""Entries of a sparse matrix that are filled in at once."""


@dataclass(frozen=True, slots=True)
class TableLabels:
    """The classes and columns that label a table of parameters (K, m).

    `vacant` (K,) marks classes that have been named but have no rows yet.
    """

    schema: Schema
    columns: Codes
    classes: Labels
    vacant: Mask

    def column(self, j: int) -> str:
        return self.schema.describe(int(self.columns[j]))

    def all_columns(self, marked: Mask) -> str:
        """Names of the columns marked (m,)."""
        return self.schema.describe_all(self.columns[marked])

    def first(self, bad: Mask) -> tuple[Any, str]:
        """Class and column of the first place marked in `bad` (K, m)."""
        k, j = np.argwhere(bad)[0]
        return self.classes.tolist()[k], self.column(int(j))

    def fill_vacant(self, *sums: Array) -> tuple[Array, ...]:
        """Sums (K, m) in which a class without rows has those of all rows together."""
        return tuple(np.where(self.vacant[:, None], s.sum(0), s) for s in sums)

    def check_counted(self, count: Array) -> None:
        """An error where a class has rows, but none with an entry in some column."""
        empty = count <= 0
        if empty.any():
            label, column = self.first(empty)
            raise MissingValueError(
                f"Class {label!r} has no entry in {column}: all of them are missing.",
                "Drop the column, or pass rows of the class that have it.",
            )


@dataclass(frozen=True)
class LinearForm:
    """Σ_j λ_kj (x_j - c_j) + o_kj, with `weight` λ and `offset` o (m, K) and `centre` c (m,).

    `forbidden`, a pair of weight and offset, is positive where class k cannot give rise to
    x_j at all; the value is then -inf.

    >>> form = LinearForm(np.array([[0.0, 2.0]]), np.array([[1.0, 1.0]]), np.array([3.0]))
    >>> form.values(np.array([[4.0]]))
    array([[1., 3.]])
    """

    weight: Array
    offset: Array
    centre: Array
    forbidden: tuple[Array, Array] | None = None

    @cached_property
    def activations(self) -> Linear:
        """The sum over all columns."""
        return Linear.about(self.centre, self.weight, self.offset.sum(axis=0))

    def values(self, x: Entries) -> Array:
        """The values (n, K); NaN where an entry is."""
        values = self.activations(x)
        if self.forbidden is not None:
            weight, offset = self.forbidden
            values[x @ weight + offset.sum(axis=0) > 0] = -np.inf
        return values

    def values_of_present(self, x: Array) -> Array:
        """The values (n, K) with the missing entries left out of the sum."""
        present = ~np.isnan(x)
        values = np.where(present, x - self.centre, 0.0) @ self.weight + present @ self.offset
        if self.forbidden is not None:
            weight, offset = self.forbidden
            values[np.where(present, x, 0.0) @ weight + present @ offset > 0] = -np.inf
        return values


class Family(ABC):
    """The distribution of m independent columns in each of K classes.

    `log_density` is for complete rows inside the domain, and may be NaN for others;
    `marginal_log_density` is that of the entries that are not missing. `domain` says in words what
    the entries must be, None for any number; `summary` names the statistic to estimate from.
    """

    name: ClassVar[str]
    domain: ClassVar[str | None] = None
    summary: ClassVar[Literal["sums", "moments", "counts"]] = "sums"

    @staticmethod
    def outside(x: Array) -> Mask:
        """Which entries have no density because no value of the family can be such."""
        return np.zeros(x.shape, dtype=np.bool_)

    @abstractmethod
    def marginal_log_density(self, x: Array) -> Array:
        """ln p(x|C_k) (n, K), over the entries that are not missing."""

    @abstractmethod
    def log_density(self, x: Entries) -> Array:
        """ln p(x|C_k) (n, K); may be NaN in rows with a missing or impossible entry."""

    @abstractmethod
    def draw(self, k: int, n: int, random: np.random.Generator) -> Array:
        """`n` rows from class k."""

    @property
    @abstractmethod
    def n_parameters(self) -> int:
        """How many numbers were free to be estimated."""

    @abstractmethod
    def column(self, j: int) -> dict[str, Any]:
        """The parameters of column j by name, one entry a class."""

    def mark_outside(self, values: Array, x: Entries) -> Array:
        """`values` (n, K) with NaN in the rows that have an entry outside the domain."""
        if self.domain is None:
            return values
        if isinstance(x, sparse.csr_array):
            values[_row_numbers(x)[self.outside(x.data)]] = np.nan
        else:
            values[self.outside(x).any(axis=1)] = np.nan
        return values


class LinearFamily(Family):
    """A family with u(x) = x: ln p(x|C_k) = ln h(x) + a linear function of x (4.84)."""

    has_base: ClassVar[bool] = False

    @cached_property
    def form(self) -> LinearForm:
        """The linear part, which alone tells the classes apart (4.86)."""
        return self._form()

    @abstractmethod
    def _form(self) -> LinearForm: ...

    def log_base(self, x: Array, columns: Any = slice(None)) -> Array:
        """ln h(x) of each entry, the entries being those of `columns`."""
        raise NotImplementedError

    def log_density(self, x: Entries) -> Array:
        values = self.form.values(x)
        if self.has_base:
            values += self._log_base_of_rows(x)[:, None]
        return self.mark_outside(values, x)

    def marginal_log_density(self, x: Array) -> Array:
        values = self.form.values_of_present(x)
        return values + np.nansum(self.log_base(x), axis=1)[:, None] if self.has_base else values

    def _log_base_of_rows(self, x: Entries) -> Array:
        if not isinstance(x, sparse.csr_array):
            return self.log_base(cast(Array, x)).sum(axis=1)
        at_zero = self.log_base(np.zeros(x.shape[1]))
        extra = self.log_base(x.data, x.indices) - at_zero[x.indices]
        return at_zero.sum() + np.bincount(_row_numbers(x), extra, minlength=x.shape[0])


def _row_numbers(x: sparse.csr_array) -> Codes:
    """The row of each stored entry."""
    return np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))


def in_parts(function: Callable[[Array], Array], x: Entries) -> Array:
    """`function` of the rows, a sparse matrix being filled in a few rows at a time."""
    if not isinstance(x, sparse.csr_array):
        return function(cast(Array, x))
    size = max(1, _DENSE_ENTRIES // x.shape[1])
    starts = range(0, x.shape[0], size)
    return np.concatenate([function(x[low : low + size].toarray()) for low in starts])


@dataclass(frozen=True)
class Bernoulli(LinearFamily):
    """x is one with probability μ and zero otherwise (4.81): `one` = μ, `zero` = 1 - μ (K, m).

    ln p = x ln μ + (1 - x) ln(1 - μ), hence λ = ln μ/(1 - μ), ln g = ln(1 - μ).

    >>> family = Bernoulli(np.array([[0.25]]), np.array([[0.75]]))
    >>> family.marginal_log_density(np.array([[1.0], [np.nan]]))
    array([[-1.38629436],
           [ 0.        ]])
    """

    one: Array
    zero: Array

    name = "bernoulli"
    domain = "0 or 1"

    @classmethod
    def estimate(cls, count: Array, total: Array, pseudocount: float, places: TableLabels) -> Self:
        """μ = (Σx + α) / (N + 2α)."""
        if pseudocount == 0:
            count, total = places.fill_vacant(count, total)
            places.check_counted(count)
        rest = count - total
        rest = np.where(rest > _ROUNDING * count, rest, 0.0)
        weight = count + 2 * pseudocount
        return cls((total + pseudocount) / weight, (rest + pseudocount) / weight)

    @staticmethod
    def outside(x: Array) -> Mask:
        bad = x != 1  # the stored entries of a sparse matrix need only this comparison
        if bad.any():
            bad &= x != 0
        return bad & ~np.isnan(x) if bad.any() else bad

    def _form(self) -> LinearForm:
        never, always = self.one == 0, self.zero == 0
        certain = never | always
        one, zero = (np.log(np.where(certain, 1.0, p)).T for p in (self.one, self.zero))
        centre = np.zeros(len(one))
        if not certain.any():
            return LinearForm(one - zero, zero, centre)
        forbidden = (1.0 * never - always).T, 1.0 * always.T
        return LinearForm(one - zero, zero, centre, forbidden)

    def draw(self, k: int, n: int, random: np.random.Generator) -> Array:
        return (random.random((n, self.one.shape[1])) < self.one[k]).astype(np.float64)

    @property
    def n_parameters(self) -> int:
        return self.one.size

    def column(self, j: int) -> dict[str, Any]:
        return {"probability": self.one[:, j]}


@dataclass(frozen=True)
class MeanFamily(LinearFamily):
    """A family with one parameter, its `mean` μ (K, m); a pseudocount has no part in it."""

    mean: Array

    @classmethod
    def estimate(cls, count: Array, total: Array, pseudocount: float, places: TableLabels) -> Self:
        """μ = Σx / N, the mean of all rows standing in for a class that has none yet."""
        if not np.isfinite(total).all():
            _, column = places.first(~np.isfinite(total))
            raise ScaleError(f"The sum of {column} is beyond the doubles.", "Divide it by 1e10.")
        count, total = places.fill_vacant(count, total)
        places.check_counted(count)
        return cls(total / count)

    @property
    def n_parameters(self) -> int:
        return self.mean.size

    def column(self, j: int) -> dict[str, Any]:
        return {"mean": self.mean[:, j]}


@dataclass(frozen=True)
class Poisson(MeanFamily):
    """x = 0, 1, 2, ... with p = μˣ exp(-μ) / x!, hence λ = ln μ and ln g = -μ.

    Written about a common c, so that large counts lose no digits:
    ln p = ln Poisson(x|c) + (x - c) ln μ/c + c (ln μ/c - (μ - c)/c).
    Where the mean is zero, x = 0 has
    probability one.

    >>> Poisson(np.array([[2.0], [0.0]])).marginal_log_density(np.array([[0.0], [1.0]]))
    array([[-2.        ,  0.        ],
           [-1.30685282,        -inf]])
    """

    name = "poisson"
    domain = "a whole number, zero or more"
    has_base = True

    @staticmethod
    def outside(x: Array) -> Mask:
        bad = (x < 0) | (np.floor(x) != x)
        return bad & ~np.isnan(x) if bad.any() else bad

    @property
    def _reference(self) -> Array:
        mean = self.mean.mean(axis=0)
        return np.where(mean > 0, mean, 1.0)

    def log_base(self, x: Array, columns: Any = slice(None)) -> Array:
        c = self._reference[columns]
        return x * np.log(c) - c - gammaln(x + 1)

    def _form(self) -> LinearForm:
        c = self._reference
        never = self.mean == 0
        excess = (np.where(never, c, self.mean) - c) / c
        weight = np.log1p(excess)
        offset = np.where(never, c, c * (weight - excess))
        forbidden = (1.0 * never.T, np.zeros(never.T.shape)) if never.any() else None
        return LinearForm(weight.T, offset.T, c, forbidden)

    def draw(self, k: int, n: int, random: np.random.Generator) -> Array:
        return random.poisson(self.mean[k], (n, self.mean.shape[1])).astype(np.float64)


@dataclass(frozen=True)
class Exponential(MeanFamily):
    """x >= 0 with p = exp(-x/μ) / μ, hence λ = -1/μ and ln g = -ln μ.

    A mean of zero is an error.

    >>> Exponential(np.array([[2.0]])).marginal_log_density(np.array([[4.0]]))
    array([[-2.69314718]])
    """

    name = "exponential"
    domain = "zero or more"

    @classmethod
    def estimate(cls, count: Array, total: Array, pseudocount: float, places: TableLabels) -> Self:
        found = super().estimate(count, total, pseudocount, places)
        mean = found.mean
        if (mean == 0).any():
            label, column = places.first(mean == 0)
            raise DomainError(
                f"Every entry of class {label!r} in {column} is zero, where the exponential "
                "density has no maximum.",
                "Drop the column, or choose another family for it.",
            )
        _check_size(mean, places)
        return found

    @staticmethod
    def outside(x: Array) -> Mask:
        return x < 0

    def _form(self) -> LinearForm:
        return LinearForm(-1 / self.mean.T, -np.log(self.mean.T), np.zeros(self.mean.shape[1]))

    def draw(self, k: int, n: int, random: np.random.Generator) -> Array:
        return random.exponential(self.mean[k], (n, self.mean.shape[1]))


@dataclass(frozen=True)
class Gaussian(Family):
    """N(x|μ_k, σ_k²), with `mean` μ and `sd` σ (K, m), infinite for columns that are left out.

    ln p = -½ ((x - μ)/σ)² - ln σ - ½ ln 2π: the boundaries are quadratic.

    >>> Gaussian(np.array([[0.0]]), np.array([[1.0]])).marginal_log_density(np.array([[2.0]]))
    array([[-2.91893853]])
    """

    mean: Array
    sd: Array

    name = "gaussian"
    summary = "moments"

    def marginal_log_density(self, x: Array) -> Array:
        present = ~np.isnan(x)
        logs = present @ gaussian_log_normaliser(self.sd).T
        for k in range(len(self.mean)):
            z = (x - self.mean[k]) / self.sd[k]
            logs[:, k] += 0.5 * np.sum(z * z, axis=1, where=present)
        return -logs

    def log_density(self, x: Entries) -> Array:
        if isinstance(x, sparse.csr_array) or self._expansion is None:
            return in_parts(self.marginal_log_density, x)
        centre, shrink, square, linear, constant = self._expansion
        q = (x - centre) * shrink
        values = (q * q) @ square
        values += q @ linear
        return values + constant

    @cached_property
    def _expansion(self) -> tuple[Array, Array, Array, Array, Array] | None:
        """Σ_j A_kj q_j² + B_kj q_j + C_k with q = (x - centre) · shrink: centre, shrink, A, B, C.

        None where multiplying the square out would lose digits.
        """
        centre = self.mean.mean(axis=0)
        scale = np.exp(np.log(np.where(np.isfinite(self.sd), self.sd, 1.0)).mean(axis=0))
        step, ratio = (self.mean - centre) / self.sd, scale / self.sd
        if not (abs(step).max() < _FAR and ratio.max() < _FAR):
            return None
        constant = -np.sum(0.5 * step**2 + gaussian_log_normaliser(self.sd), axis=1)
        return centre, 1 / scale, -0.5 * (ratio**2).T, (step * ratio).T, constant

    def draw(self, k: int, n: int, random: np.random.Generator) -> Array:
        return random.normal(self.mean[k], _spread(self.sd[k]), (n, self.mean.shape[1]))

    @property
    def n_parameters(self) -> int:
        return 2 * int(np.isfinite(self.sd).sum())

    def column(self, j: int) -> dict[str, Any]:
        return {"mean": self.mean[:, j], "sd": _spread(self.sd[:, j])}


@dataclass(frozen=True)
class SharedGaussian(LinearFamily):
    """N(x|μ_k, σ²), one `sd` σ (m,) for all classes: the boundaries are linear.

    About a common c: ln p = ln N(x|c, σ²) + (x - c)(μ - c)/σ² - ½ ((μ - c)/σ)².

    >>> model = SharedGaussian(np.array([[0.0], [1.0]]), np.array([1.0]))
    >>> model.marginal_log_density(np.array([[0.5]]))
    array([[-1.04393853, -1.04393853]])
    """

    mean: Array
    sd: Array

    name = "gaussian"
    summary = "moments"
    has_base = True

    @property
    def _centre(self) -> Array:
        return self.mean.mean(axis=0)

    def log_base(self, x: Array, columns: Any = slice(None)) -> Array:
        sd = self.sd[columns]
        return -0.5 * ((x - self._centre[columns]) / sd) ** 2 - gaussian_log_normaliser(sd)

    def _form(self) -> LinearForm:
        step = (self.mean - self._centre) / self.sd
        return LinearForm((step / self.sd).T, -0.5 * step.T**2, self._centre)

    def draw(self, k: int, n: int, random: np.random.Generator) -> Array:
        return random.normal(self.mean[k], _spread(self.sd), (n, self.mean.shape[1]))

    @property
    def n_parameters(self) -> int:
        return (len(self.mean) + 1) * int(np.isfinite(self.sd).sum())

    def column(self, j: int) -> dict[str, Any]:
        return {"mean": self.mean[:, j], "sd": np.full(len(self.mean), _spread(self.sd[j]))}


def estimate_gaussian(
    count: Array,
    mean: Array,
    scatter: Array,
    unit: Array,
    *,
    shared: bool,
    places: TableLabels,
    taken: float = 0.0,
) -> Gaussian | SharedGaussian:
    """Means and variances Σ(x - μ)²/(N - taken), given in multiples of `unit`.

    A column that is the same in all rows is left out. Where one is constant in a class only (with
    `shared`, in every class), it is given the variance that one more row, as far out as rows are
    overall, would have made. A class without rows is described by all rows together.
    """
    vacant = places.vacant[:, None]
    places.check_counted(np.where(vacant, 1.0, count))
    centre, overall = overall_spread(count, mean, scatter)
    mean = np.where(vacant, centre, mean)
    if shared:
        count, scatter, vacant = count.sum(0), scatter.sum(0), np.zeros(1, dtype=np.bool_)
    rows = count - taken
    check_freedom(count, taken, scatter)
    sd = np.sqrt(np.divide(scatter, rows, out=np.zeros_like(rows), where=rows > 0))
    flat = (sd <= CONSTANT * (abs(mean).max(axis=0) if shared else abs(mean))) & ~vacant
    sd = np.where(flat, overall / np.sqrt(count + 1), np.where(vacant, overall, sd))
    _warn_of_flat_columns(flat, overall == 0, places)
    _check_size(np.where(overall == 0, np.inf, sd) * unit, places)
    sd = np.where(overall == 0, np.inf, sd * unit)
    return SharedGaussian(mean * unit, sd) if shared else Gaussian(mean * unit, sd)


def check_freedom(count: Array, taken: float, squares: Array) -> None:
    """An error where weights sum to too little for a divisor that is less than their sum."""
    short = (count <= taken) & (squares > 0)
    if taken and short.any():
        raise WeightError(
            f"Weights that sum to {np.min(count[short]):.3g} leave nothing when the unbiased "
            f"estimate takes {taken:g} off.",
            "Scale the weights to numbers of rows, or use estimate='ml'.",
        )


def overall_spread(count: Array, mean: Array, scatter: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of each column in all rows, zero where it is constant."""
    total = count.sum(axis=0)
    centre = (count * mean).sum(axis=0) / total
    sd = np.sqrt((scatter + count * (mean - centre) ** 2).sum(axis=0) / total)
    return centre, np.where(sd <= CONSTANT * abs(centre), 0.0, sd)


def _warn_of_flat_columns(flat: Mask, lost: Mask, places: TableLabels) -> None:
    if lost.any():
        warn(
            SingularCovarianceWarning(
                f"The values in {places.all_columns(lost)} never change (to 13 digits); they were "
                "left out.",
                "Drop what does not vary.",
            )
        )
    for k, columns in enumerate(np.atleast_2d(flat & ~lost)):
        if columns.any():
            where = "every class" if flat.ndim == 1 else f"class {places.classes.tolist()[k]!r}"
            warn(
                SingularCovarianceWarning(
                    f"The variance of {places.all_columns(columns)} is zero in {where}; it was "
                    "given what one more row of the overall spread would make.",
                    "Pass more rows, or drop what does not vary.",
                )
            )


def _check_size(size: Array, places: TableLabels) -> None:
    """An error where the reciprocal of a mean or a deviation would leave the doubles."""
    if (size < _SMALLEST).any():
        _, column = places.first(np.atleast_2d(size < _SMALLEST))
        raise ScaleError(f"The entries of {column} are too small.", "Multiply them by 1e100.")


def gaussian_log_normaliser(sd: Array) -> Array:
    """ln σ√(2π), zero for columns that are left out."""
    used = np.isfinite(sd)
    return np.where(used, np.log(np.where(used, sd, 1.0)) + _HALF_LOG_2PI, 0.0)


def _spread(sd: Array) -> Array:
    """The standard deviations, zero for columns that never change."""
    return np.where(np.isfinite(sd), sd, 0.0)


@dataclass(frozen=True)
class Categorical(Family):
    """State l of column j has probability μ_kjl: ln p(x|C_k) = Σ_j ln μ_k,j,x_j.

    `tables` has for each column the logarithms (L + 2, K): one row a level, then that of a level
    never seen, then zeros for an entry that is missing, so that the codes -2 and -1 find them.
    `coded` says whether x holds codes of levels, or the levels themselves (numbers).

    >>> column = Categorical.of_probabilities((("a", "b"),), [np.array([[0.2, 0.8]])], coded=True)
    >>> np.exp(column.marginal_log_density(np.array([[1], [-1]])))
    array([[0.8],
           [1. ]])
    """

    levels: Levels
    tables: tuple[Array, ...]
    coded: bool

    name = "categorical"
    domain = "a finite number or a level"
    summary = "counts"

    @classmethod
    def of_probabilities(
        cls, levels: Levels, probability: Sequence[Array], coded: bool, unseen: Any = None
    ) -> Self:
        """From tables (K, L) of probabilities, and (K,) for a level never seen (else zero)."""
        unseen = [np.zeros(len(p)) for p in probability] if unseen is None else unseen
        with np.errstate(divide="ignore"):
            tables = [
                np.log(np.vstack([p.T, u[None], np.ones((1, len(p)))]))
                for p, u in zip(probability, unseen, strict=True)
            ]
        return cls(levels, tuple(tables), coded)

    @classmethod
    def estimate(
        cls,
        levels: Levels,
        counts: Sequence[Array],
        pseudocount: float,
        places: TableLabels,
        *,
        coded: bool,
    ) -> Self:
        """μ = (N_kl + α) / (N_k + αL) from tables (K, L); α / (N_k + αL) for a state not seen."""
        probability, unseen = [], []
        for j, table in enumerate(counts):
            if not levels[j]:
                raise MissingValueError(
                    f"{places.column(j).capitalize()} has no entry: all of them are missing.",
                    "Drop the column.",
                )
            if pseudocount == 0:
                (table,) = places.fill_vacant(table)
            total = table.sum(axis=1) + pseudocount * table.shape[1]
            places.check_counted(np.where(np.arange(len(levels)) == j, total[:, None], 1.0))
            probability.append((table + pseudocount) / total[:, None])
            unseen.append(pseudocount / total)
        return cls.of_probabilities(levels, probability, coded, unseen)

    @staticmethod
    def outside(x: Array) -> Mask:
        return np.isinf(x)

    def marginal_log_density(self, x: Any) -> Array:
        values = np.zeros((len(x), self.tables[0].shape[1]))
        for j, table in enumerate(self.tables):
            codes = x[:, j] if self.coded else codes_among(self.levels[j], x[:, j])
            values += table[codes]
        return values

    def log_density(self, x: Entries) -> Array:
        values = in_parts(self.marginal_log_density, x)
        return values if self.coded else self.mark_outside(values, x)

    def draw(self, k: int, n: int, random: np.random.Generator) -> Array:
        drawn = np.empty((n, len(self.tables)))
        for j, levels in enumerate(self.levels):
            p = np.exp(self.tables[j][: len(levels), k])
            codes = random.choice(len(levels), n, p=p / p.sum())
            drawn[:, j] = codes if self.coded else np.take(levels, codes)
        return drawn

    @property
    def n_parameters(self) -> int:
        K = self.tables[0].shape[1]
        return K * sum(len(levels) - 1 for levels in self.levels)

    def column(self, j: int) -> dict[str, Any]:
        table = np.exp(self.tables[j]).T
        n_levels = len(self.levels[j])
        return {
            "levels": self.levels[j],
            "probability": table[:, :n_levels],
            "handle_unknown": table[:, n_levels],
        }


def codes_among(levels: Sequence[float], x: Array) -> NDArray[np.intp]:
    """The place of each number among sorted levels; UNSEEN or MISSING where it has none.

    >>> codes_among((1.0, 3.0), np.array([3.0, 2.0, np.nan]))
    array([ 1, -2, -1])
    """
    known = np.asarray(levels, dtype=np.float64)
    codes = np.minimum(np.searchsorted(known, x), len(known) - 1)
    codes[known[codes] != x] = UNSEEN
    codes[np.isnan(x)] = MISSING
    return codes


ONE_PARAMETER: dict[str, type[Bernoulli] | type[Poisson] | type[Exponential]] = {
    family.name: family for family in (Bernoulli, Poisson, Exponential)
}
"""Families with u(x) = x whose parameter follows from a count and a sum."""

FAMILIES: dict[str, type[Family]] = {
    **ONE_PARAMETER,
    Gaussian.name: Gaussian,
    Categorical.name: Categorical,
}
"""All families by name."""


FamilyLike: TypeAlias = str | Mapping[Any, str]
"""The name of a family, "auto", or names by column name or place."""

_BY_KIND: dict[Kind, str] = {
    "boolean": "bernoulli",
    "categorical": "categorical",
    "numeric": "gaussian",
}


def read_families(family: FamilyLike, schema: Schema) -> tuple[str, ...]:
    """The family of each column.

    >>> read_families({"y": "poisson"}, Schema.of_names(["x", "y"]))
    ('gaussian', 'poisson')
    """
    if not isinstance(family, Mapping):
        for j in schema.categorical or [0]:
            _check_name(family, schema, j)
        if family != "auto":
            return (family,) * len(schema)
        family = {}
    chosen = {_place(key, schema): name for key, name in family.items()}
    if len(chosen) < len(family):
        raise ParameterError("family names a column twice.", "Name each column once.")
    for j, name in chosen.items():
        _check_name(name, schema, j)
    chosen = {j: name for j, name in chosen.items() if name != "auto"}
    return tuple(chosen.get(j, _BY_KIND[column.kind]) for j, column in enumerate(schema.columns))


def _place(key: object, schema: Schema) -> int:
    if isinstance(key, int | np.integer) and 0 <= key < len(schema):
        return int(key)
    if isinstance(key, str) and key in schema.names:
        return schema.names.index(key)
    raise ParameterError(
        f"family names a column {key!r}, which is not there.",
        f"The columns are {schema.describe_all(range(len(schema)))}.",
    )


def _check_name(name: object, schema: Schema, j: int) -> None:
    if not isinstance(name, str) or (name != "auto" and name not in FAMILIES):
        raise ParameterError(
            f"There is no family {name!r}.", f"Choose 'auto' or one of {sorted(FAMILIES)}."
        )
    if schema.columns[j].kind == "categorical" and name not in ("auto", "categorical"):
        raise ParameterError(
            f"{schema.describe(j).capitalize()} is categorical, which cannot be {name}.",
            "Turn it into numbers, or choose 'categorical' or 'auto' for it.",
        )
