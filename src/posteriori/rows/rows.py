"""The seam between the data and everything else."""

from collections.abc import Callable
from typing import Protocol, TypeVar, runtime_checkable

from posteriori.rows.block import Block
from posteriori.rows.schema import Schema
from posteriori.typing import Labels

S = TypeVar("S")
Kernel = Callable[[Block], S]


@runtime_checkable
class Rows(Protocol):
    """Rows that can be summed over: in memory, on disk or on a cluster.

    `classes` holds the distinct labels in order (None without a target).
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
