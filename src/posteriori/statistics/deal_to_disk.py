"""Rows dealt out into bins on disk, so that one bin at a time has room in memory.

Conventions: n rows, p parameters, K classes.
"""

from collections.abc import Iterable
from typing import cast

import numpy as np

from posteriori.rows.block import Block
from posteriori.rows.chunked import ChunkedRows
from posteriori.rows.in_memory import MemoryRows
from posteriori.rows.stored import Stored
from posteriori.statistics.bins import n_bins
from posteriori.statistics.collect import Collect
from posteriori.statistics.coordinates import Coordinates
from posteriori.statistics.dealt import Dealt, in_bins, in_order, some_rows
from posteriori.statistics.same_rows import merged
from posteriori.statistics.sequence import ClassSums, Visits
from posteriori.typing import Codes, Labels


def deal_to_disk(rows: ChunkedRows, coordinates: Coordinates, count: int) -> Dealt:
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

    def put_in_order(bins: Iterable[list[Block]]) -> tuple[Stored, list[int]]:
        stored, sizes = Stored(rows.folder), []
        for i, parts in enumerate(bins):
            sizes.append(0)
            if parts:
                block = in_order(parts, coordinates, importance)
                stored.put(i, block)
                sizes[i] = block.X.shape[0]
        return stored, sizes

    stored, sizes = put_in_order(map(chunks.bin, range(count)))
    fewer = n_bins(sum(sizes), len(rows.schema))
    if fewer < count:
        groups = np.split(np.arange(count), fewer)
        joined = ([stored.get(i) for i in group if sizes[i]] for group in groups)
        stored, sizes = put_in_order(joined)
    return Dealt(stored, sizes, coordinates)


class _Chunks:
    """Chunks on disk, the rows of each in the order of their bins."""

    def __init__(self, folder: str | None, count: int) -> None:
        self._count, self._stored = count, Stored(folder)
        self._bounds: list[Codes] = []

    def put(self, block: Block) -> None:
        """Take in a chunk."""
        ordered, bounds = in_bins(block, self._count)
        self._stored.put(len(self._bounds), ordered)
        self._bounds.append(bounds.astype(np.int32))

    def bin(self, i: int) -> list[Block]:
        """The rows of a bin out of all chunks that have any."""
        spans = ((j, bounds[i], bounds[i + 1]) for j, bounds in enumerate(self._bounds))
        return [
            some_rows(self._stored.get(j), np.arange(low, high))
            for j, low, high in spans
            if high > low
        ]
