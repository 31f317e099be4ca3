"""`Block`, a few thousand rows, which all kernels receive; and `Rows`, which can be summed over.

Conventions: n rows, d columns, K classes. `X` is one of

- an array (n, d) of doubles, NaN where an entry is missing;
- a SciPy CSR matrix (n, d) of doubles;
- a `Mixed`, where some columns are categorical.

`y` is class codes (n,), or a row-stochastic matrix (n, K) of soft labels, or a real target (n,),
or None. `offset` is added to the activations: (n,), or (n, K) where each class has one.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from posteriori.errors import InfiniteValueError, MissingValueError
from posteriori.rows.schema import Schema, UnseenLevel
from posteriori.typing import Array, Codes, Labels

MISSING = -1
"""Code of a categorical entry that is missing."""

UNSEEN = -2
"""Code of a categorical entry whose level was not in the fit."""


@dataclass(frozen=True, slots=True)
class Mixed:
    """Rows of a table in which some columns are numbers and some are levels.

    `numeric` (n, p) holds the numeric and boolean columns in the order of the schema, `codes`
    (n, q) the levels of the categorical ones (`MISSING` and `UNSEEN` are negative). `unseen` has
    for each of these the first level, if any, that is `UNSEEN`, where that is known.
    """

    numeric: Array
    codes: NDArray[np.int32]
    unseen: tuple[UnseenLevel | None, ...] = ()

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.numeric), self.numeric.shape[1] + self.codes.shape[1]


Features: TypeAlias = Array | csr_array | Mixed


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive rows: features, targets, weights, and the number of the first row.

    `kept` has the places of the rows where those of weight zero were left out.
    """

    X: Features
    y: Codes | Array | None
    weight: Array | None
    start: int
    kept: Codes | None = None
    offset: Array | None = None

    def row(self, i: int) -> int:
        """The number, in the user's data, of the i-th row of this block."""
        return self.start + (i if self.kept is None else int(self.kept[i]))

    @property
    def numbers(self) -> Codes:
        """The numbers (n,) of all rows of this block in the user's data."""
        return self.start + (np.arange(self.X.shape[0]) if self.kept is None else self.kept)


S = TypeVar("S")
Kernel = Callable[[Block], S]


@runtime_checkable
class Rows(Protocol):
    """Rows that can be summed over: in memory, on disk or on a cluster.

    `classes` holds the distinct labels in order (None without a target).
    """

    @property
    def in_memory(self) -> bool: ...

    @property
    def schema(self) -> Schema: ...

    @property
    def n_rows(self) -> int: ...

    @property
    def classes(self) -> Labels | None: ...

    @property
    def soft(self) -> bool:
        """Whether rows have distributions over the classes rather than labels."""
        ...

    def map_sum(self, kernel: Kernel[S], *, block_entries: int | None = None) -> S:
        """Run `kernel` on every block and add up what comes back, always in the same order.

        `block_entries` asks for blocks of about that many numbers, for kernels whose sums are
        larger than the usual block.
        """
        ...


class FitRows(Rows, Protocol):
    """Rows that a model is fitted to; `log` counts the passes over a source."""

    @property
    def has_target(self) -> bool: ...

    @property
    def log(self) -> Any: ...

    def batches(self, random: np.random.Generator | None = None) -> Iterator[Any]:
        """The rows in memory, a batch at a time: in their order or, as far as possible, random."""
        ...

    def fitting(self) -> AbstractContextManager[None]:
        """The context of a fit, which completes errors and interrupts."""
        ...

    def recoded(self, code: Callable[[Any], Array]) -> "FitRows":
        """The same rows with `code` of their targets in place of these."""
        ...

    def with_offset(self, offset: Any) -> "FitRows":
        """The same rows with numbers that are added to their activations."""
        ...


def is_dask(X: Any) -> bool:
    """Whether X is a Dask collection or a list of them; dask is not imported to know it."""
    if isinstance(X, list | tuple):
        return len(X) > 0 and all(map(is_dask, X))
    return hasattr(type(X), "__dask_graph__")  # on X itself, this would build the graph


def is_scanned(X: Any) -> bool:
    """Whether X is what `scan` returns."""
    return getattr(type(X), "in_memory", None) is False


def is_source(X: Any) -> bool:
    """Whether X is read batch by batch: rows of `scan`, or a Dask collection."""
    return is_scanned(X) or is_dask(X)


def row_hash(numbers: Codes, seed: int = 0) -> NDArray[np.uint64]:
    """A pseudorandom number for each row number: SplitMix64 (Steele, Lea and Flood, 2014).

    >>> row_hash(np.array([0, 1, 0])) % np.uint64(10)
    array([2, 8, 2], dtype=uint64)
    """
    x = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    x += np.uint64((seed + 1) * 0xD1B54A32D192ED03 % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x ^= x >> np.uint64(shift)
        x *= np.uint64(factor)
    return x ^ (x >> np.uint64(31))


def sample_positions(one_in: float, numbers: Codes, seed: int = 0) -> Codes:
    """Positions of the rows of a random sample, by their row numbers: each has chance 1/one_in.

    With a whole number it is one row of every `one_in` consecutive ones, at a random place.

    >>> sample_positions(4, np.arange(12))
    array([ 0,  6, 10])
    """
    if one_in != int(one_in):
        return np.flatnonzero(row_hash(numbers, seed) <= (2**64 - 1) // one_in)
    if one_in == 1 or not len(numbers):
        return np.arange(len(numbers))
    size = int(one_in)
    runs = np.arange(numbers[0] // size, numbers[-1] // size + 1)
    taken = runs * size + (row_hash(runs, seed) % np.uint64(size)).astype(np.intp)
    at = np.searchsorted(numbers, taken).clip(0, len(numbers) - 1)
    return cast(Codes, at[numbers[at] == taken])


def take_rows(X: Features, rows: Codes | slice) -> Features:
    """Some of the rows; a view where they are a slice."""
    if isinstance(X, Mixed):
        numeric, codes = (take_rows(part, rows) for part in (X.numeric, X.codes))
        return Mixed(cast(Array, numeric), cast(NDArray[np.int32], codes), X.unseen)
    if isinstance(X, csr_array) or isinstance(rows, slice):
        return X[rows]
    # Column by column, if that is the order in memory.
    return X.T.take(rows, axis=1).T if X.strides[0] < X.strides[1] else X.take(rows, axis=0)


def take_block(block: Block, rows: Codes | slice) -> Block:
    """Some of the rows of a block, with all that belongs to them."""

    kept = np.arange(block.X.shape[0]) if block.kept is None else block.kept
    given: Any = block.y, block.weight, block.offset
    y, weight, offset = (None if values is None else values[rows] for values in given)
    return Block(take_rows(block.X, rows), y, weight, block.start, kept[rows], offset)


def split_rows(block: Block, rows: int) -> Iterator[Block]:
    """A block in parts of so many rows."""
    n = block.X.shape[0]
    if n <= rows:
        yield block
        return
    for low in range(0, n, rows):
        yield take_block(block, slice(low, low + rows))


def check_finite(block: Block, schema: Schema, *, missing: bool = False) -> None:
    """An error for entries that are infinite, or missing where not `missing`.

    Kernels call this when a sum is NaN or infinite, so that clean data pay nothing.
    """
    rows, columns = find_bad(np.isinf, block, schema)
    if len(rows):
        where = schema.describe(int(columns[0]))
        raise InfiniteValueError(
            f"Input X contains infinity (first in row {{row}}, {where}).",
            "Replace it by a finite number, or by NaN if it is unknown.",
            block.row(int(rows[0])),
        )
    if not missing:
        check_missing([block], schema)


def check_missing(blocks: Iterable[Block], schema: Schema) -> None:
    """An error that lists the columns with missing entries, counted in all blocks."""
    count, first = np.zeros(len(schema), dtype=np.intp), None
    for block in blocks:
        rows, columns = find_bad(np.isnan, block, schema)
        if isinstance(block.X, Mixed):
            lost, which = np.nonzero(block.X.codes == MISSING)
            rows = np.append(rows, lost)
            columns = np.append(columns, np.array(schema.categorical, dtype=np.intp)[which])
        count += np.bincount(columns, minlength=len(schema))
        if first is None and len(rows):
            row, column = min(zip(rows.tolist(), columns.tolist(), strict=True))
            first = block.row(row), schema.describe(column)
    if first is None:
        return
    found = np.flatnonzero(count)
    each = [f"{count[j]:,} in {schema.describe(j)}" for j in found.tolist()]
    remedy = (
        "give levels that are missing a level of their own such as 'missing', or use NaiveBayes."
        if set(found).intersection(schema.categorical)
        else "or use a model that accepts missing values: GaussianClassifier or NaiveBayes."
    )
    raise MissingValueError(
        f"Input X contains NaN (first in row {{row}}, {first[1]}). Missing entries: "
        f"{', '.join(each)}.",
        f"Fill them in, drop these rows or columns, {remedy}",
        first[0],
    )


def find_bad(is_bad: Callable[[Array], Any], block: Block, schema: Schema) -> tuple[Codes, Codes]:
    """Rows and columns of the bad numbers, row by row."""
    X = block.X
    if isinstance(X, csr_array):
        places = np.flatnonzero(is_bad(X.data))
        rows = np.searchsorted(X.indptr, places, side="right") - 1
        return rows, X.indices[places].astype(np.intp)
    rows, columns = np.nonzero(is_bad(X.numeric if isinstance(X, Mixed) else X))
    return rows, np.array(schema.numeric, dtype=np.intp)[columns]
