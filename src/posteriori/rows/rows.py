"""The seam between the data and everything else."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

import numpy as np

from posteriori.rows.block import Block
from posteriori.rows.schema import Schema
from posteriori.typing import Labels

if TYPE_CHECKING:
    from posteriori.rows.memory import MemoryRows

S = TypeVar("S")
Kernel = Callable[[Block], S]


@runtime_checkable
class Rows(Protocol):
    """Rows that can be summed over, wherever they lie.

    A new source writes `map_sum`; most models ask for nothing else. `classes` holds the distinct
    labels in order (None without a target).
    """

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
        large beside the usual block.
        """
        ...


class BatchedRows(Rows, Protocol):
    """`Rows` that can be brought into memory, a batch at a time: every source, but not every view.

    Models that visit rows one after the other ask for it.
    """

    def batches(self, random: np.random.Generator | None = None) -> "Iterator[MemoryRows]":
        """All rows, a batch at a time: in their order, or in a random order of batches."""
        ...
