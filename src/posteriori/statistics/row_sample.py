"""Random samples of rows, rows in k interleaved parts, and rows joined, all in memory."""

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from scipy import sparse

from posteriori.rows.block import (
    Block,
    Mixed,
    Rows,
    sample_positions,
    take_block,
    take_rows,
)
from posteriori.rows.features import Table
from posteriori.rows.in_memory import MemoryRows
from posteriori.rows.schema import Schema
from posteriori.statistics.statistic import Statistic, weights_of
from posteriori.typing import Labels

_BLOCK_ENTRIES = 2**20
"""Numbers a block when only a few of its rows are copied."""


@dataclass(frozen=True, eq=False)
class Sample(Statistic):
    """Some rows of each block, and the weight of all rows."""

    parts: tuple[Block, ...]
    weight: float

    def rows(self, schema: Schema, classes: Labels | None) -> MemoryRows:
        """The sample as rows in memory."""
        names = "X", "y", "weight", "offset"
        X, y, weight, offset = (
            _join([getattr(part, name) for part in self.parts]) for name in names
        )
        return MemoryRows(Table(X, schema), y, weight, classes, offset)


def _join(parts: list[Any]) -> Any:
    """Features, or targets, weights or offsets, of several blocks; None where they have none."""
    if len(parts) == 1 or parts[0] is None:
        return parts[0]
    if isinstance(parts[0], Mixed):
        numeric = np.concatenate([part.numeric for part in parts])
        return Mixed(numeric, np.concatenate([part.codes for part in parts]))
    if any(isinstance(part, sparse.csr_array) for part in parts):
        return sparse.vstack(parts, format="csr")
    return np.concatenate(parts)


@dataclass(frozen=True)
class TakeSample:
    """The kernel: a block to a random sample of its rows, one in `one_in`."""

    one_in: float = 1
    seed: int = 0

    def __call__(self, block: Block) -> Sample:
        taken = sample_positions(self.one_in, block.numbers, self.seed)
        return Sample((take_block(block, taken),), float(weights_of(block).sum()))


def sample_rows(rows: Rows, one_in: float) -> tuple[MemoryRows, float]:
    """A random sample in memory, and the weight of all rows as a multiple of its weight."""
    found = rows.map_sum(TakeSample(one_in), block_entries=_BLOCK_ENTRIES)
    some = found.rows(rows.schema, rows.classes)
    weight = some.n_rows if some.weight is None else some.weight.sum()
    return some, found.weight / weight if weight else np.inf


def thin_rows(rows: Rows, rate: float, seed: int) -> MemoryRows | None:
    """Rows in memory that represent all: each with this chance, and 1/rate times its weight.

    None if the sample is empty.

    >>> from posteriori.rows.in_memory import read_rows
    >>> few = thin_rows(read_rows(np.arange(1000.0)[:, None], np.arange(1000) % 2), 0.1, seed=0)
    >>> few.n_rows, few.weight[0]
    (100, np.float64(10.0))
    """
    if rate >= 1 and rows.in_memory:
        return cast(MemoryRows, rows)
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
    if not rows.in_memory:
        return [rows]
    return [_every(cast(MemoryRows, rows), slice(first, None, k)) for first in range(k)]


def _every(rows: MemoryRows, own: slice) -> MemoryRows:
    old: Any = rows.table.values
    table = tuple(each[own] for each in old) if isinstance(old, tuple) else take_rows(old, own)
    given: Any = rows.y, rows.weight, rows.offset
    y, weight, offset = (None if values is None else values[own] for values in given)
    return MemoryRows(Table(table, rows.schema), y, weight, rows.classes, offset)


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
    """All with weights or soft labels if one has them."""
    weighted = any(part.weight is not None for part in parts)
    soft = any(part.y is not None and part.y.ndim == 2 for part in parts)

    def like_the_others(part: Block) -> Block:
        y, weight = part.y, weights_of(part) if weighted else part.weight
        if soft and classes is not None and y is not None and y.ndim == 1:
            y = np.eye(len(classes))[y]
        return replace(part, y=y, weight=weight)

    return tuple(map(like_the_others, parts))
