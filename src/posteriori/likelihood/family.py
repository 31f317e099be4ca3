"""What an exponential family of features has to say (4.83), for many columns at a time.

Conventions: n rows, m columns of the same family, K classes. `x` (n, m) is an array with NaN
where an entry is missing, or a SciPy CSR matrix, whose empty places are zeros like any other.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from posteriori.errors import MissingValueError
from posteriori.likelihood.linear_form import LinearForm
from posteriori.rows.schema import Schema
from posteriori.typing import Array, Codes, Labels

Entries: TypeAlias = Array | sparse.csr_array
Mask: TypeAlias = NDArray[np.bool_]

_PART_ENTRIES = 2**18


@dataclass(frozen=True, slots=True)
class Places:
    """What the rows and columns of a table of parameters (K, m) are called.

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


class Family(ABC):
    """The distribution of m independent columns in each of K classes.

    `log_density` is exact whatever is missing; `quick` is the same number for rows that are
    complete and inside the domain, and may be NaN for others. `domain` says in words what the
    entries must be, None for any number; `summary` names the statistic to estimate from.
    """

    name: ClassVar[str]
    domain: ClassVar[str | None] = None
    summary: ClassVar[Literal["sums", "moments", "counts"]] = "sums"

    @staticmethod
    def outside(x: Array) -> Mask:
        """Which entries have no density because no value of the family can be such."""
        return np.zeros(x.shape, dtype=np.bool_)

    @abstractmethod
    def log_density(self, x: Array) -> Array:
        """ln p(x|C_k) (n, K), over the entries that are not missing."""

    @abstractmethod
    def quick(self, x: Entries) -> Array:
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

    def spoil(self, values: Array, x: Entries) -> Array:
        """`values` (n, K) with NaN in the rows that have an entry outside the domain."""
        if self.domain is None:
            return values
        bad = self.outside(x.data if isinstance(x, sparse.csr_array) else x)
        if bad.any():
            values[_rows_of(bad, x)] = np.nan
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

    def quick(self, x: Entries) -> Array:
        values = self.form.values(x)
        if self.has_base:
            values += self._log_base_of_rows(x)[:, None]
        return self.spoil(values, x)

    def log_density(self, x: Array) -> Array:
        values = self.form.values_of_present(x)
        return values + np.nansum(self.log_base(x), axis=1)[:, None] if self.has_base else values

    def _log_base_of_rows(self, x: Entries) -> Array:
        if not isinstance(x, sparse.csr_array):
            return self.log_base(cast(Array, x)).sum(axis=1)
        at_zero = self.log_base(np.zeros(x.shape[1]))
        extra = self.log_base(x.data, x.indices) - at_zero[x.indices]
        return at_zero.sum() + np.bincount(row_numbers(x), extra, minlength=x.shape[0])


def row_numbers(x: sparse.csr_array) -> Codes:
    """The row of each stored entry."""
    return np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))


def _rows_of(bad: Mask, x: Entries) -> Mask | Codes:
    return row_numbers(x)[bad] if isinstance(x, sparse.csr_array) else np.any(bad, axis=1)


def in_parts(function: Callable[[Array], Array], x: Entries) -> Array:
    """`function` of the rows, a sparse matrix being filled in a few rows at a time."""
    if not isinstance(x, sparse.csr_array):
        return function(cast(Array, x))
    size = max(1, _PART_ENTRIES // x.shape[1])
    starts = range(0, x.shape[0], size)
    return np.concatenate([function(x[low : low + size].toarray()) for low in starts])
