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
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import gammaln, logit, xlogy

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

_ROUNDING = 1e-12
"""A share of the weight below this is what adding up weights leaves of zero."""

_FAR = 300.0
"""Standard deviations between a mean and the centre beyond which a square is not multiplied out."""

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

    def fill_vacant(self, sums: Array) -> Array:
        """Sums (K, m) in which a class without rows has those of all rows together."""
        return np.where(self.vacant[:, None], sums.sum(0), sums)

    def check_counted(self, count: Array) -> None:
        """An error where a class has rows, but none with an entry in some column."""
        empty = (count <= 0) & ~self.vacant[:, None]
        if empty.any():
            label, column = self.first(empty)
            raise MissingValueError(
                f"Class {label!r} has no entry in {column}: all of them are missing.",
                "Drop the column, or pass rows of the class that have it.",
            )


class Family(ABC):
    """The distribution of m independent columns in each of K classes.

    `log_density` is for complete rows inside the domain, and may be NaN for others;
    `marginal_log_density` is that of the entries that are not missing. `domain` says in words what
    the entries must be, None for any number; `summary` names the statistic to estimate from. The
    linear function `form` alone tells the classes apart (4.86); None where ln p(x|C_k) is not
    linear in x.
    """

    name: ClassVar[str]
    domain: ClassVar[str | None] = None
    summary: ClassVar[Literal["sums", "moments", "counts"]] = "sums"

    @property
    def form(self) -> Linear | None:
        return None

    @staticmethod
    def outside(x: Array) -> Mask:
        """Which entries have no density because no value of the family can be such."""
        return np.zeros(x.shape, dtype=np.bool_)

    def log_density(self, x: Entries) -> Array:
        """ln p(x|C_k) (n, K); may be NaN in rows with a missing or impossible entry."""
        values = in_parts(self.marginal_log_density, x) if self.form is None else self.form(x)
        return self.mark_outside(values, x)

    @abstractmethod
    def marginal_log_density(self, x: Array) -> Array:
        """ln p(x|C_k) (n, K), over the entries that are not missing."""

    @abstractmethod
    def entries(self, x: Array, k: int) -> Array:
        """ln p(x_j|C_k) of each entry (n, m); NaN or zero where it is missing."""

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
        if self.domain is not None:
            values[changed_entries(x, self.outside).sum(axis=1) > 0] = np.nan
        return values


def changed_entries(X: Any, change: Callable[[Array], Any]) -> Any:
    """A copy of a matrix with other numbers in place of those stored."""
    X = X.copy()
    values = X.data if isinstance(X, sparse.csr_array) else X
    values[:] = change(values)
    return X


def in_parts(function: Callable[[Any], Array], x: Entries) -> Array:
    """`function` of the rows, a sparse matrix being filled in a few rows at a time."""
    if not isinstance(x, sparse.csr_array):
        return function(x)
    size = max(1, _DENSE_ENTRIES // x.shape[1])
    starts = range(0, x.shape[0], size)
    return np.concatenate([function(x[low : low + size].toarray()) for low in starts])


@dataclass(frozen=True)
class NumberFamily(Family):
    """A family of numbers with the means `mean` μ (K, m)."""

    mean: Array

    def marginal_log_density(self, x: Array) -> Array:
        each = [np.nansum(self.entries(x, k), axis=1) for k in range(len(self.mean))]
        return np.stack(each, axis=1)


@dataclass(frozen=True)
class MeanFamily(NumberFamily):
    """A family with u(x) = x and one parameter, its mean.

    Each of `states` counts `pseudocount` times as if it had been observed.
    """

    states: ClassVar[tuple[float, ...]] = ()
    parameter: ClassVar[str] = "mean"

    @classmethod
    def estimate(cls, count: Array, total: Array, pseudocount: float, places: TableLabels) -> Self:
        """μ = (Σx + α Σ states) / (N + α |states|).

        Without pseudocounts, a class that has no rows yet has the mean of all rows.
        """
        if pseudocount == 0 or not cls.states:
            count, total = places.fill_vacant(count), places.fill_vacant(total)
            places.check_counted(count)
        mean = (total + pseudocount * sum(cls.states)) / (count + pseudocount * len(cls.states))
        if not np.isfinite(mean).all():
            _, column = places.first(~np.isfinite(mean))
            raise ScaleError(
                f"The entries of {column} are too large to be added up.",
                "Divide them by a power of ten.",
            )
        if cls.states and pseudocount == 0:
            mean = np.where(mean > 1 - _ROUNDING, 1.0, mean)
        return cls(mean)

    @property
    def n_parameters(self) -> int:
        return self.mean.size

    def column(self, j: int) -> dict[str, Any]:
        return {self.parameter: self.mean[:, j]}


@dataclass(frozen=True)
class Bernoulli(MeanFamily):
    """x is one with probability μ and zero otherwise (4.81).

    ln p = x ln μ + (1 - x) ln(1 - μ), hence λ = ln μ/(1 - μ), ln g = ln(1 - μ).

    >>> family = Bernoulli(np.array([[0.25]]))
    >>> family.marginal_log_density(np.array([[1.0], [np.nan]]))
    array([[-1.38629436],
           [ 0.        ]])
    """

    name = "bernoulli"
    domain = "0 or 1"
    states = (0.0, 1.0)
    parameter = "probability"

    @staticmethod
    def outside(x: Array) -> Mask:
        return (x != 0) & (x != 1) & ~np.isnan(x)

    def entries(self, x: Array, k: int) -> Array:
        return xlogy(x, self.mean[k]) + xlogy(1 - x, 1 - self.mean[k])

    @cached_property
    def form(self) -> Linear | None:
        if not ((self.mean > 0) & (self.mean < 1)).all():
            return None
        return Linear(logit(self.mean).T, np.log1p(-self.mean).sum(axis=1), None)

    def draw(self, k: int, n: int, random: np.random.Generator) -> Array:
        return (random.random((n, self.mean.shape[1])) < self.mean[k]).astype(np.float64)


@dataclass(frozen=True)
class Poisson(MeanFamily):
    """x = 0, 1, 2, ... with p = μˣ exp(-μ) / x!, hence λ = ln μ, ln g = -μ and h = 1/x!.

    Where the mean is zero, x = 0 has probability one.

    >>> Poisson(np.array([[2.0], [0.0]])).marginal_log_density(np.array([[0.0], [1.0]]))
    array([[-2.        ,  0.        ],
           [-1.30685282,        -inf]])
    """

    name = "poisson"
    domain = "a whole number, zero or more"

    @staticmethod
    def outside(x: Array) -> Mask:
        return ((x < 0) | (np.floor(x) != x)) & ~np.isnan(x)

    def entries(self, x: Array, k: int) -> Array:
        return xlogy(x, self.mean[k]) - self.mean[k] - gammaln(x + 1)

    @cached_property
    def form(self) -> Linear | None:
        return (
            Linear(np.log(self.mean).T, -self.mean.sum(axis=1), None) if self.mean.all() else None
        )

    def log_density(self, x: Entries) -> Array:
        never = self.mean == 0
        values: Array = x @ np.log(np.where(never, 1.0, self.mean)).T - self.mean.sum(axis=1)
        values -= changed_entries(x, lambda stored: gammaln(stored + 1)).sum(axis=1)[:, None]
        if never.any():
            values[x @ (1.0 * never.T) > 0] = -np.inf
        return self.mark_outside(values, x)

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
        if (found.mean == 0).any():
            label, column = places.first(found.mean == 0)
            raise DomainError(
                f"Every entry of class {label!r} in {column} is zero, where the exponential "
                "density has no maximum.",
                "Drop the column, or choose another family for it.",
            )
        return found

    @staticmethod
    def outside(x: Array) -> Mask:
        return x < 0

    def entries(self, x: Array, k: int) -> Array:
        return -x / self.mean[k] - np.log(self.mean[k])

    @cached_property
    def form(self) -> Linear | None:
        return Linear(-1 / self.mean.T, -np.log(self.mean).sum(axis=1), None)

    def draw(self, k: int, n: int, random: np.random.Generator) -> Array:
        return random.exponential(self.mean[k], (n, self.mean.shape[1]))


@dataclass(frozen=True)
class Gaussian(NumberFamily):
    """N(x|μ_k, σ_k²), with `sd` σ (K, m), infinite for columns that are left out.

    ln p = -½ ((x - μ)/σ)² - ln σ - ½ ln 2π: the boundaries are quadratic, or linear where all
    classes have the same `sd` (`shared`).

    >>> Gaussian(np.array([[0.0]]), np.array([[1.0]])).marginal_log_density(np.array([[2.0]]))
    array([[-2.91893853]])
    """

    sd: Array
    shared: bool = False

    name = "gaussian"
    summary = "moments"

    @cached_property
    def form(self) -> Linear | None:
        """About a common c: (x - c)(μ - c)/σ² - ½ ((μ - c)/σ)²."""
        if not self.shared:
            return None
        centre = self.mean.mean(axis=0)
        step = (self.mean - centre) / self.sd
        return Linear.about(centre, (step / self.sd).T, -0.5 * (step**2).sum(axis=1))

    @cached_property
    def log_normaliser(self) -> Array:
        """ln σ√(2π) (K, m), zero for columns that are left out."""
        return np.where(np.isfinite(self.sd), np.log(self.sd * np.sqrt(2 * np.pi)), 0.0)

    def entries(self, x: Array, k: int) -> Array:
        return -0.5 * ((x - self.mean[k]) / self.sd[k]) ** 2 - self.log_normaliser[k]

    def log_density(self, x: Entries) -> Array:
        """By products with the squares; those of sparse rows are not about a centre."""
        is_sparse = isinstance(x, sparse.csr_array)
        centre = np.zeros(self.mean.shape[1]) if is_sparse else self.mean.mean(axis=0)
        step = (self.mean - centre) / self.sd
        if abs(step).max() > _FAR:  # multiplying the square out would lose digits
            return in_parts(self.marginal_log_density, x)
        q: Any = x if is_sparse else x - centre
        squares = q.power(2) if is_sparse else q * q
        values: Array = squares @ (-0.5 / self.sd**2).T
        values += q @ (step / self.sd).T
        return values - (0.5 * step**2 + self.log_normaliser).sum(axis=1)

    def draw(self, k: int, n: int, random: np.random.Generator) -> Array:
        return random.normal(self.mean[k], _spread(self.sd[k]), (n, self.mean.shape[1]))

    @property
    def n_parameters(self) -> int:
        K, columns = len(self.mean), int(np.isfinite(self.sd[0]).sum())
        return (K + (1 if self.shared else K)) * columns

    def column(self, j: int) -> dict[str, Any]:
        return {"mean": self.mean[:, j], "sd": _spread(self.sd[:, j])}


def estimate_gaussian(
    count: Array,
    mean: Array,
    scatter: Array,
    *,
    shared: bool,
    places: TableLabels,
    taken: float = 0.0,
) -> Gaussian:
    """Means and variances Σ(x - μ)²/(N - taken).

    A column that is constant in all rows is left out. Where one is constant in a class only (with
    `shared`, in every class), its variance is replaced by 1/(N + 1) of that in all rows: about what
    one more row, one standard deviation away, would give. A class without rows has the parameters
    of all rows together.
    """
    vacant = places.vacant[:, None]
    places.check_counted(count)
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
    sd = np.broadcast_to(np.where(overall == 0, np.inf, sd), mean.shape)
    return Gaussian(mean, sd, shared)


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
                    "replaced by 1/(N + 1) of the variance in all rows.",
                    "Pass more rows, or drop what does not vary.",
                )
            )


def _spread(sd: Array) -> Array:
    """The standard deviations, zero for columns that never change."""
    return np.where(np.isfinite(sd), sd, 0.0)


@dataclass(frozen=True)
class Categorical(Family):
    """State l of column j has probability μ_kjl: ln p(x|C_k) = Σ_j ln μ_k,j,x_j.

    `tables` has for each column the logarithms (L + 2, K): one row a level, then that of a level
    never seen, then zeros for an entry that is missing, so that the codes -2 and -1 find them.
    `coded` says whether x holds codes of levels, or the levels themselves (numbers).

    >>> column = Categorical((("a", "b"),), (np.log([[0.2], [0.8], [0.1], [1.0]]),), coded=True)
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
        tables = []
        for j, count in enumerate(counts):
            if not levels[j]:
                raise MissingValueError(
                    f"{places.column(j).capitalize()} has no entry: all of them are missing.",
                    "Drop the column.",
                )
            if pseudocount == 0:
                count = places.fill_vacant(count)
            total = count.sum(axis=1) + pseudocount * count.shape[1]
            places.check_counted(np.where(np.arange(len(levels)) == j, total[:, None], 1.0))
            states = (count + pseudocount).T / total
            with np.errstate(divide="ignore"):
                unseen, missing = np.log(pseudocount / total), np.zeros(len(total))
                tables.append(np.vstack([np.log(states), unseen, missing]))
        return cls(levels, tuple(tables), coded)

    @staticmethod
    def outside(x: Array) -> Mask:
        return np.isinf(x)

    def _codes(self, x: Any, j: int) -> NDArray[Any]:
        """The codes of the entries of column j."""
        found: NDArray[Any] = x[:, j]
        return found if self.coded else codes_among(self.levels[j], found)

    def entries(self, x: Any, k: int) -> Array:
        each = [table[self._codes(x, j), k] for j, table in enumerate(self.tables)]
        return np.stack(each, axis=1)

    def marginal_log_density(self, x: Any) -> Array:
        values = np.zeros((len(x), self.tables[0].shape[1]))
        for j, table in enumerate(self.tables):
            values += table[self._codes(x, j)]
        return values

    def mark_outside(self, values: Array, x: Entries) -> Array:
        return values if self.coded else super().mark_outside(values, x)

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
            "unseen": table[:, n_levels],
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


FAMILIES: dict[str, type[Family]] = {
    family.name: family for family in (Bernoulli, Poisson, Exponential, Gaussian, Categorical)
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
        family = dict.fromkeys(range(len(schema)), family)
    chosen: dict[int, str] = {}
    places: dict[Any, Any] = {name: j for j, name in enumerate(schema.names)}
    for key, name in family.items():
        j = places.get(key, key)
        if not (isinstance(j, int | np.integer) and 0 <= j < len(schema)):
            raise ParameterError(
                f"family names a column {key!r}, which is not there.",
                f"The columns are {schema.describe_all(range(len(schema)))}.",
            )
        chosen[int(j)] = name
        if not isinstance(name, str) or name not in ("auto", *FAMILIES):
            raise ParameterError(
                f"There is no family {name!r}.", f"Choose 'auto' or one of {sorted(FAMILIES)}."
            )
        if schema.columns[j].kind == "categorical" and name not in ("auto", "categorical"):
            raise ParameterError(
                f"{schema.describe(int(j)).capitalize()} is categorical, which cannot be {name}.",
                "Turn it into numbers, or choose 'categorical' or 'auto' for it.",
            )
    names = [chosen.get(j, "auto") for j in range(len(schema))]
    pairs = zip(names, schema.columns, strict=True)
    return tuple(_BY_KIND[column.kind] if name == "auto" else name for name, column in pairs)
