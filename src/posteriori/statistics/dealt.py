"""Rows that memory has no room for, dealt out into bins on disk to be visited in random orders.

Conventions: n rows, p parameters, K classes.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar, cast

import numpy as np

from posteriori.rows.block import Block, take_block
from posteriori.rows.chunked import ChunkedRows
from posteriori.rows.memory import MemoryRows
from posteriori.rows.stored import Stored
from posteriori.statistics.bins import Shuffle, bins_of, n_bins
from posteriori.statistics.collect import Collect, Collected
from posteriori.statistics.coordinates import Coordinates
from posteriori.statistics.same_rows import merged
from posteriori.statistics.sequence import ClassSums, Step, Visits
from posteriori.typing import Codes, Labels

S = TypeVar("S")


@dataclass(frozen=True, eq=False)
class Dealt:
    """Bins of different rows, each in the order of `Visits.sorted`.

    `factor` multiplies their weights.
    """

    bins: Stored
    sizes: Sequence[int]
    coordinates: Coordinates
    factor: float = 1.0

    def fold(self, step: Step[S], state: S, order: Shuffle | None = None) -> S:
        """The state after all rows, in the order given or that in which they were put."""
        for i, chosen in self._turns(order):
            visits = Visits(self.bins.get(i), self.coordinates, again=False)
            visits = visits.weighted(self.factor)
            state = step(state, visits.segments(chosen))
        return state

    def _turns(self, order: Shuffle | None) -> Iterator[tuple[int, Codes]]:
        """Bins that are not empty, and the order of the rows in each."""
        if order is not None:
            return ((i, chosen) for i, chosen in order.of(self.sizes) if len(chosen))
        return ((i, np.arange(size)) for i, size in enumerate(self.sizes) if size)

    def bins_from(self, i: int, n: int) -> Block | None:
        """The rows of n bins, the i-th of such groups."""
        parts = [self.bins.get(j) for j in range(i * n, (i + 1) * n) if self.sizes[j]]
        return Collected(tuple(parts)).joined() if parts else None

    def weighted(self, factor: float) -> "Dealt":
        """The same rows, their weights multiplied."""
        return replace(self, factor=self.factor * factor)


def deal(rows: ChunkedRows, coordinates: Coordinates, count: int) -> Dealt:
    """All rows in so many bins, or fewer if there are few different ones.

    That is a pass over them, and then each bin is put in order.
    """
    n_classes = len(cast(Labels, rows.classes))
    chunks, collect = _Chunks(rows.folder, count), Collect(rows.schema)

    def step(sums: ClassSums, chunk: MemoryRows) -> ClassSums:
        # Rows that come often would fill a bin, if they came to it one by one.
        block, _ = merged(chunk.map_sum(collect).joined())
        chunks.put(block)
        return sums + Visits(block, coordinates, again=False).class_sums(n_classes)

    none = ClassSums.none(n_classes, len(coordinates.scale) + 1)
    importance = rows.fold(step, none).importance()

    def in_order(bins: Iterable[Block | None]) -> Dealt:
        stored, sizes = Stored(rows.folder), []
        for i, block in enumerate(bins):
            sizes.append(0)
            if block is not None:
                found = Visits(block, coordinates, again=False).sorted(importance)
                stored.put(i, found.block)
                sizes[i] = len(found)
        return Dealt(stored, sizes, coordinates)

    dealt = in_order(map(chunks.bin, range(count)))
    fewer = n_bins(sum(dealt.sizes), len(rows.schema))
    if fewer == count:
        return dealt
    return in_order(dealt.bins_from(i, count // fewer) for i in range(fewer))


class _Chunks:
    """Chunks on disk, the rows of each in the order of their bins."""

    def __init__(self, folder: str | None, count: int) -> None:
        self._count, self._stored = count, Stored(folder)
        self._bounds: list[Codes] = []

    def put(self, block: Block) -> None:
        """Take in a chunk."""
        bins = bins_of(block.X, self._count)
        order = np.argsort(bins, kind="stable")
        bounds = np.searchsorted(bins[order], np.arange(self._count + 1))
        self._stored.put(len(self._bounds), _some(block, order))
        self._bounds.append(bounds.astype(np.int32))

    def bin(self, i: int) -> Block | None:
        """The rows of a bin out of all chunks."""
        spans = ((j, bounds[i], bounds[i + 1]) for j, bounds in enumerate(self._bounds))
        parts = [
            _some(self._stored.get(j), np.arange(low, high)) for j, low, high in spans if high > low
        ]
        return Collected(tuple(parts)).joined() if parts else None


def _some(block: Block, rows: Codes) -> Block:
    """Some rows of a block, without the numbers that they had."""
    return replace(take_block(block, rows), kept=None)
