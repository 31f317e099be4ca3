"""Columns in memory, sliced into consecutive rows without being copied."""

from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from posteriori.rows.block import Features, Mixed
from posteriori.rows.schema import Schema
from posteriori.typing import Array


class Table(Protocol):
    """Columns that can be sliced into consecutive rows."""

    @property
    def schema(self) -> Schema: ...

    @property
    def n_rows(self) -> int: ...

    @property
    def copies(self) -> bool:
        """Whether a slice is a copy of the rows, rather than a view."""
        ...

    def cut(self, low: int, high: int) -> Features:
        """Rows low to high as doubles (a view where they are doubles already)."""
        ...

    def column(self, j: int) -> NDArray[Any]:
        """One column: numbers, or codes of levels."""
        ...


@dataclass(frozen=True, slots=True)
class DenseTable:
    """A NumPy array of numbers or booleans, in any memory order."""

    values: NDArray[Any]
    schema: Schema

    @property
    def n_rows(self) -> int:
        return len(self.values)

    @property
    def copies(self) -> bool:
        return self.values.dtype != np.float64

    def cut(self, low: int, high: int) -> Array:
        return cast(Array, self.values[low:high].astype(np.float64, copy=False))

    def column(self, j: int) -> NDArray[Any]:
        return self.values[:, j]


@dataclass(frozen=True, slots=True)
class SparseTable:
    """A SciPy CSR matrix."""

    values: sparse.csr_array
    schema: Schema

    @property
    def n_rows(self) -> int:
        return int(self.values.shape[0])

    @property
    def copies(self) -> bool:
        return self.values.dtype != np.float64

    def cut(self, low: int, high: int) -> sparse.csr_array:
        indptr = self.values.indptr[low : high + 1]
        inside = slice(indptr[0], indptr[-1])
        part = sparse.csr_array((high - low, self.values.shape[1]))
        # Set one by one, because the constructor would copy them.
        part.data = self.values.data[inside].astype(np.float64, copy=False)
        part.indices, part.indptr = self.values.indices[inside], indptr - indptr[0]
        return part

    def column(self, j: int) -> NDArray[Any]:
        return cast(NDArray[Any], self.values[:, [j]].toarray().ravel())


@dataclass(frozen=True, slots=True)
class ColumnTable:
    """One array per column: numbers, or codes of levels."""

    columns: tuple[NDArray[Any], ...]
    schema: Schema
    n_rows: int
    copies: bool = True

    def cut(self, low: int, high: int) -> Array | Mixed:
        numeric = self._stack(self.schema.numeric, low, high, np.float64)
        if not self.schema.categorical:
            return numeric
        places = self.schema.categorical
        strange = tuple(self.schema.columns[j].strange for j in places)
        return Mixed(numeric, self._stack(places, low, high, np.int32), strange)

    def column(self, j: int) -> NDArray[Any]:
        return self.columns[j]

    def _stack(self, positions: list[int], low: int, high: int, dtype: Any) -> NDArray[Any]:
        out = np.empty((high - low, len(positions)), dtype=dtype, order="F")
        for i, j in enumerate(positions):
            out[:, i] = self.columns[j][low:high]
        return out


@dataclass(frozen=True, slots=True)
class MixedTable:
    """Numbers and codes of levels as in a block."""

    values: Mixed
    schema: Schema

    @property
    def n_rows(self) -> int:
        return len(self.values.numeric)

    @property
    def copies(self) -> bool:
        return False

    def cut(self, low: int, high: int) -> Mixed:
        return Mixed(self.values.numeric[low:high], self.values.codes[low:high])

    def column(self, j: int) -> NDArray[Any]:
        is_level = self.schema.columns[j].kind == "categorical"
        part: NDArray[Any] = self.values.codes if is_level else self.values.numeric
        return part[:, (self.schema.categorical if is_level else self.schema.numeric).index(j)]


def table_of(X: Features, schema: Schema) -> Table:
    """The features of a block as a table of their own."""
    if isinstance(X, Mixed):
        return MixedTable(X, schema)
    if isinstance(X, sparse.csr_array):
        return SparseTable(X, schema)
    return DenseTable(X, schema)
