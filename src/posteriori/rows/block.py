"""What the mathematics receives: a few thousand rows at a time, and nothing else.

Conventions: n rows, d columns, K classes. `X` is one of

- an array (n, d) of doubles, NaN where an entry is missing;
- a SciPy CSR matrix (n, d) of doubles;
- a `Mixed`, where some columns are categorical.

`y` is class codes (n,), or a row-stochastic matrix (n, K) of soft labels, or a real target (n,),
or None. `offset` is added to the activations: (n,), or (n, K) where each class has one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from posteriori.rows.schema import Strange
from posteriori.typing import Array, Codes

T = TypeVar("T", bound=np.generic)

MISSING = -1
"""Code of a categorical entry that is missing."""

UNSEEN = -2
"""Code of a categorical entry whose level was never seen in fitting."""


@dataclass(frozen=True, slots=True)
class Mixed:
    """Rows of a table in which some columns are numbers and some are levels.

    `numeric` (n, p) holds the numeric and boolean columns in the order of the schema, `codes`
    (n, q) the levels of the categorical ones (`MISSING` and `UNSEEN` are negative). `strange` has
    for each of these the first level, if any, that is `UNSEEN`, where that is known.
    """

    numeric: Array
    codes: NDArray[np.int32]
    strange: tuple[Strange | None, ...] = ()

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

    The rows with the smallest hashes are taken, so that a sample contains all smaller ones.
    """
    return np.flatnonzero(row_hash(numbers, seed) <= (2**64 - 1) // one_in)


def take_rows(X: Features, rows: Codes) -> Features:
    """Some of the rows."""
    if isinstance(X, Mixed):
        return Mixed(_take(X.numeric, rows), _take(X.codes, rows), X.strange)
    return _take(X, rows) if isinstance(X, np.ndarray) else X[rows]


def _take(values: NDArray[T], rows: Codes) -> NDArray[T]:
    """Some rows of an array, column by column if it lies so in memory."""
    by_column = values.strides[0] < values.strides[1]
    return values.T.take(rows, axis=1).T if by_column else values.take(rows, axis=0)


def take_block(block: Block, rows: Codes) -> Block:
    """Some of the rows of a block, with all that belongs to them."""

    def of(values: Any) -> Any:
        return None if values is None else values[rows]

    kept = rows if block.kept is None else block.kept[rows]
    return Block(
        take_rows(block.X, rows), of(block.y), of(block.weight), block.start, kept, of(block.offset)
    )


def split_sparse(block: Block, entries: int = 2**19) -> Iterator[Block]:
    """A sparse block in parts that may be filled in; any other block as it is."""
    n, d = block.X.shape
    return split_rows(block, max(1, entries // d) if isinstance(block.X, csr_array) else n)


def split_rows(block: Block, rows: int) -> Iterator[Block]:
    """A block in parts of so many rows."""
    n, X = block.X.shape[0], block.X
    if n <= rows:
        yield block
        return
    for low in range(0, n, rows):
        part = slice(low, low + rows)
        yield Block(
            Mixed(X.numeric[part], X.codes[part], X.strange) if isinstance(X, Mixed) else X[part],
            None if block.y is None else block.y[part],
            None if block.weight is None else block.weight[part],
            block.start + (low if block.kept is None else 0),
            None if block.kept is None else block.kept[part],
            None if block.offset is None else block.offset[part],
        )
