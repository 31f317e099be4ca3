"""Some of the rows in memory, and rows in parts that each look like the whole."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, TypeVar, cast

import numpy as np
from scipy import sparse

from posteriori.rows.block import Block, Features, Mixed, take_block
from posteriori.rows.in_memory import MemoryRows
from posteriori.rows.one_in import one_in, one_of
from posteriori.rows.rows import Kernel, Rows
from posteriori.rows.schema import Schema
from posteriori.rows.tables import ColumnTable, DenseTable, MixedTable, SparseTable, Table, table_of
from posteriori.statistics.statistic import Statistic
from posteriori.typing import Array, Labels

_LOOK = 2**20

"""Numbers a block when few of them are looked at."""

_ALL = 2**62

"""All of them in one block, where it is no copy: then what is taken need not be put together."""


@dataclass(frozen=True, eq=False)
class Sample(Statistic):
    """Parts of blocks, and the weight of all rows they were taken from."""

    parts: tuple[Block, ...]
    weight: float

    def __add__(self, other: "Sample") -> "Sample":
        return Sample(self.parts + other.parts, self.weight + other.weight)

    def rows(self, schema: Schema, classes: Labels | None) -> MemoryRows:
        """The rows taken, as rows in memory."""

        def joined(name: str) -> Any:
            values = [getattr(part, name) for part in self.parts]
            return values[0] if len(values) == 1 or values[0] is None else np.concatenate(values)

        table = table_of(_stack([part.X for part in self.parts]), schema)
        return MemoryRows(table, joined("y"), joined("weight"), classes, joined("offset"))

    def drawn(self) -> float:
        """The weight of the rows taken."""
        return sum(_weight_of(part) for part in self.parts)


def _weight_of(block: Block) -> float:
    return float(block.X.shape[0] if block.weight is None else block.weight.sum())


def _stack(parts: list[Features]) -> Features:
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], Mixed):
        mixed = cast(list[Mixed], parts)
        return Mixed(
            np.concatenate([part.numeric for part in mixed]),
            np.concatenate([part.codes for part in mixed]),
        )
    if isinstance(parts[0], sparse.csr_array):
        return sparse.vstack(parts, format="csr")
    return np.concatenate(cast(Any, parts))


@dataclass(frozen=True, eq=False)
class TakeOneOf:
    """The kernel: one row of each `many` consecutive ones, by their numbers."""

    many: int

    def __call__(self, block: Block) -> Sample:
        if block.kept is None:
            places = one_in(self.many, block.start, block.X.shape[0])
        else:
            places = one_of(self.many, block.start + block.kept)
        return Sample((take_block(block, places),), _weight_of(block))


def sample_rows(rows: Rows, many: int) -> tuple[MemoryRows, float]:
    """One row in `many`, in memory, and how many times their weight all rows have."""
    whole = isinstance(rows, MemoryRows) and not rows.table.copies
    found = rows.map_sum(TakeOneOf(many), block_entries=_ALL if whole else _LOOK)
    drawn = found.drawn()
    return found.rows(rows.schema, rows.classes), found.weight / drawn if drawn else np.inf


S = TypeVar("S")


def split_rows(rows: Rows, k: int) -> list["EveryKth"]:
    """The rows in k parts; those of an array are views of it, and nothing is copied.

    >>> from posteriori.rows.in_memory import read_rows
    >>> rows = read_rows(np.arange(5.0)[:, None], [0, 1, 0, 1, 0])
    >>> [part.map_sum(lambda block: block.X.sum()) for part in split_rows(rows, 2)]
    [np.float64(6.0), np.float64(4.0)]
    """
    return [EveryKth(rows, first, k) for first in range(k)]


@dataclass(frozen=True, eq=False)
class EveryKth:
    """Every `stride`-th row of `rows`, from row `first` on: `Rows` themselves.

    Of rows in memory it is a view (of a sparse matrix, a copy). Of others, each sum reads all rows
    and takes its own.
    """

    rows: Rows
    first: int
    stride: int

    @property
    def schema(self) -> Schema:
        return self.rows.schema

    @property
    def n_rows(self) -> int:
        return len(range(self.first, self.rows.n_rows, self.stride))

    @property
    def classes(self) -> Labels | None:
        return self.rows.classes

    @property
    def soft(self) -> bool:
        return self.rows.soft

    def map_sum(self, kernel: Kernel[S], *, block_entries: int | None = None) -> S:
        if self._view is None:
            picking = _Picking(kernel, self.first, self.stride)
            return self.rows.map_sum(picking, block_entries=block_entries)
        counting = _Counting(kernel, self.first, self.stride)
        return self._view.map_sum(counting, block_entries=block_entries)

    @cached_property
    def _view(self) -> MemoryRows | None:
        if not isinstance(self.rows, MemoryRows) or self.rows.among is not None:
            return None
        own = slice(self.first, None, self.stride)
        table = _every(self.rows.table, own)
        if table is None:
            return None

        def of(values: Any) -> Any:
            return None if values is None else values[own]

        rows = self.rows
        return replace(
            rows, table=table, y=of(rows.y), weight=of(rows.weight), offset=of(rows.offset)
        )


def _every(table: Table, own: slice) -> Table | None:
    """Some of the rows of a table; None where it can only be cut into runs."""
    if isinstance(table, DenseTable):
        return DenseTable(table.values[own], table.schema)
    if isinstance(table, SparseTable):
        return SparseTable(sparse.csr_array(table.values[own]), table.schema)
    if isinstance(table, ColumnTable):
        n_rows = len(range(*own.indices(table.n_rows)))
        return ColumnTable(tuple(c[own] for c in table.columns), table.schema, n_rows)
    if isinstance(table, MixedTable):
        values = table.values
        return MixedTable(
            replace(values, numeric=values.numeric[own], codes=values.codes[own]), table.schema
        )
    return None


@dataclass(frozen=True, eq=False)
class _Counting(Generic[S]):
    """A kernel on blocks of a view, which are told the numbers of their rows in the whole."""

    kernel: Kernel[S]
    first: int
    stride: int

    def __call__(self, block: Block) -> S:
        places = np.arange(block.X.shape[0]) if block.kept is None else block.kept
        start = self.first + self.stride * block.start
        return self.kernel(replace(block, start=start, kept=self.stride * places))


@dataclass(frozen=True, eq=False)
class _Picking(Generic[S]):
    """A kernel on those rows of each block whose numbers belong to one part."""

    kernel: Kernel[S]
    first: int
    stride: int

    def __call__(self, block: Block) -> S:
        places = np.arange(block.X.shape[0]) if block.kept is None else block.kept
        own = np.flatnonzero((block.start + places) % self.stride == self.first)
        return self.kernel(take_block(block, own))


def join_rows(first: MemoryRows, second: MemoryRows) -> MemoryRows:
    """Few rows and a few more as one; columns and classes must be the same.

    >>> from posteriori.rows.in_memory import read_rows
    >>> joined = join_rows(read_rows([[1.0], [2.0]], [0, 1]), read_rows([[3.0], [4.0]], [1, 0]))
    >>> joined.table.values.ravel(), joined.y
    (array([1., 2., 3., 4.]), array([0, 1, 1, 0]))
    """
    parts = [part for rows in (first, second) for part in rows.map_sum(TakeOneOf(1)).parts]
    return Sample(_alike(parts, first.classes), 0.0).rows(first.schema, first.classes)


def _alike(parts: list[Block], classes: Labels | None) -> tuple[Block, ...]:
    """Blocks with weights if any has them, soft labels if any has, and sparse if any is."""
    weighted = any(part.weight is not None for part in parts)
    soft = any(part.y is not None and part.y.ndim == 2 for part in parts)
    thin = any(isinstance(part.X, sparse.csr_array) for part in parts)

    def like_the_others(part: Block) -> Block:
        X, y, weight = part.X, part.y, part.weight
        if thin and isinstance(X, np.ndarray):
            X = sparse.csr_array(X)
        if soft and classes is not None and y is not None and y.ndim == 1:
            y = np.eye(len(classes))[y]
        if weighted and weight is None:
            weight = np.ones(X.shape[0])
        return replace(part, X=X, y=y, weight=weight)

    return tuple(map(like_the_others, parts))


def thin_rows(rows: Rows, rate: float, seed: int) -> MemoryRows | None:
    """Some rows in memory that stand for all: each is taken with this probability.

    Their weights are as much larger. None where no row was taken.

    >>> from posteriori.rows.in_memory import read_rows
    >>> few = thin_rows(read_rows(np.arange(1000.0)[:, None], np.arange(1000) % 2), 0.1, seed=0)
    >>> few.n_rows, few.weight[0]
    (89, np.float64(10.0))
    """
    if not isinstance(rows, MemoryRows):
        many = max(int(1 / rate), 1)
        rows, times = sample_rows(rows, many)
        rows = replace(rows, weight=times * _weights(rows))
        rate *= many
    if rate >= 1:
        return rows
    taken = np.random.default_rng(seed).random(rows.n_rows) < rate
    weight = np.where(taken, _weights(rows), 0.0) / rate
    if not weight.any():
        return None
    # Blocks leave out rows of weight zero.
    found = replace(rows, weight=weight)
    return found.map_sum(TakeOneOf(1)).rows(rows.schema, rows.classes)


def _weights(rows: MemoryRows) -> Array:
    return np.ones(rows.n_rows) if rows.weight is None else rows.weight
