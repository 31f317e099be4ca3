"""Random samples of rows, rows in k interleaved parts, and rows joined, all in memory."""

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from scipy import sparse

from posteriori.rows.block import Block, Features, Mixed, sample_positions, take_block
from posteriori.rows.in_memory import MemoryRows
from posteriori.rows.rows import Rows
from posteriori.rows.schema import Schema
from posteriori.rows.tables import DenseTable, table_of
from posteriori.statistics.statistic import Statistic
from posteriori.typing import Labels

_BLOCK_ENTRIES = 2**20
"""Numbers a block when only a few of its rows are copied."""


@dataclass(frozen=True, eq=False)
class Sample(Statistic):
    """Some rows of each block, and the weight of all rows."""

    parts: tuple[Block, ...]
    weight: float

    def __add__(self, other: "Sample") -> "Sample":
        return Sample(self.parts + other.parts, self.weight + other.weight)

    def rows(self, schema: Schema, classes: Labels | None) -> MemoryRows:
        """The sample as rows in memory."""

        def joined(name: str) -> Any:
            values = [getattr(part, name) for part in self.parts]
            return values[0] if len(values) == 1 or values[0] is None else np.concatenate(values)

        table = table_of(_stack([part.X for part in self.parts]), schema)
        return MemoryRows(table, joined("y"), joined("weight"), classes, joined("offset"))

    @property
    def sampled_weight(self) -> float:
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


@dataclass(frozen=True)
class TakeSample:
    """The kernel: a block to a random sample of its rows, one in `one_in`."""

    one_in: float = 1
    seed: int = 0

    def __call__(self, block: Block) -> Sample:
        taken = sample_positions(self.one_in, block.numbers, self.seed)
        return Sample((take_block(block, taken),), _weight_of(block))


def sample_rows(rows: Rows, one_in: float) -> tuple[MemoryRows, float]:
    """A random sample in memory, and the weight of all rows as a multiple of its weight."""
    found = rows.map_sum(TakeSample(one_in), block_entries=_BLOCK_ENTRIES)
    sampled = found.sampled_weight
    return found.rows(rows.schema, rows.classes), found.weight / sampled if sampled else np.inf


def thin_rows(rows: Rows, rate: float, seed: int) -> MemoryRows | None:
    """Rows in memory that represent all: each with this chance, and 1/rate times its weight.

    None if the sample is empty.

    >>> from posteriori.rows.in_memory import read_rows
    >>> few = thin_rows(read_rows(np.arange(1000.0)[:, None], np.arange(1000) % 2), 0.1, seed=0)
    >>> few.n_rows, few.weight[0]
    (95, np.float64(10.0))
    """
    if rate >= 1 and isinstance(rows, MemoryRows):
        return rows
    found = rows.map_sum(TakeSample(1 / rate, seed)).rows(rows.schema, rows.classes)
    weight = np.ones(found.n_rows) if found.weight is None else found.weight
    return replace(found, weight=weight / rate) if found.n_rows else None


def split_rows(rows: Rows, k: int) -> list[Rows]:
    """Every k-th row from the first on, from the second on, ...: views where rows are an array.

    A source is not split, as each part would take a pass over all of it.

    >>> from posteriori.rows.in_memory import read_rows
    >>> rows = read_rows(np.arange(5.0)[:, None], [0, 1, 0, 1, 0])
    >>> [part.map_sum(lambda block: block.X.sum()) for part in split_rows(rows, 2)]
    [np.float64(6.0), np.float64(4.0)]
    """
    if not isinstance(rows, MemoryRows):
        return [rows]
    if isinstance(rows.table, DenseTable):
        return [_every(rows, slice(first, None, k)) for first in range(k)]
    parts = (rows.map_sum(TakeEvery(first, k)) for first in range(k))
    return [part.rows(rows.schema, rows.classes) for part in parts]


def _every(rows: MemoryRows, own: slice) -> MemoryRows:
    def of(values: Any) -> Any:
        return None if values is None else values[own]

    table = DenseTable(cast(DenseTable, rows.table).values[own], rows.schema)
    return MemoryRows(table, of(rows.y), of(rows.weight), rows.classes, of(rows.offset))


@dataclass(frozen=True)
class TakeEvery:
    """The kernel: a block to every k-th of its rows."""

    first: int
    k: int

    def __call__(self, block: Block) -> Sample:
        own = np.flatnonzero(block.numbers % self.k == self.first)
        return Sample((take_block(block, own),), _weight_of(block))


def join_rows(first: MemoryRows, second: MemoryRows) -> MemoryRows:
    """The rows of both, which have the same columns and classes.

    >>> from posteriori.rows.in_memory import read_rows
    >>> joined = join_rows(read_rows([[1.0], [2.0]], [0, 1]), read_rows([[3.0], [4.0]], [1, 0]))
    >>> joined.table.values.ravel(), joined.y
    (array([1., 2., 3., 4.]), array([0, 1, 1, 0]))
    """
    parts = [part for rows in (first, second) for part in rows.map_sum(TakeSample()).parts]
    return Sample(_alike(parts, first.classes), 0.0).rows(first.schema, first.classes)


def _alike(parts: list[Block], classes: Labels | None) -> tuple[Block, ...]:
    """All with weights, soft labels or sparse features if one has them."""
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
