"""Bins of rows, the same whatever way they came, so small that one of them has room in memory.

A random order goes through the bins in a random order, and through each in an order of its own. As
it is a number without pattern that puts a row into its bin, each is a sample of all rows, and the
order is as good as any.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from posteriori.rows.block import Features
from posteriori.statistics.same_rows import entry_prints
from posteriori.typing import Codes

BIN_ENTRIES = 2**22
"""Numbers in a bin: 32 MiB of doubles."""

_MOST_BINS = 2**10
"""With more rows the bins get larger."""


def n_bins(n_rows: int, n_columns: int) -> int:
    """Into how many bins so many different rows are put: a power of two.

    >>> n_bins(1_000, 20), n_bins(1_000_000, 20), n_bins(10**12, 20)
    (1, 8, 1024)
    """
    wanted = -(-n_rows * n_columns // BIN_ENTRIES)
    return min(1 << max(wanted - 1, 0).bit_length(), _MOST_BINS)


def bins_of(X: Features, count: int) -> Codes:
    """The bin of each row, by its entries alone. Half as many bins are those of two each."""
    if count == 1:
        return np.zeros(X.shape[0], dtype=np.intp)
    return (entry_prints(X) >> np.uint64(32)).astype(np.intp) * count >> 32


@dataclass(frozen=True)
class Shuffle:
    """A random order by its seed, which is drawn where the rows are."""

    seed: int

    def of(self, sizes: Sequence[int]) -> Iterator[tuple[int, Codes]]:
        """Bins of so many rows, and the order of the rows in each."""
        turns, random = self.begun(sizes)
        return ((i, random.permutation(sizes[i])) for i in turns)

    def begun(self, sizes: Sequence[int]) -> tuple[list[int], np.random.Generator]:
        """The order of the bins, and what draws those of the rows in each, one after the other.

        Bins that are empty draw nothing.
        """
        random = np.random.default_rng(self.seed)
        return random.permutation(len(sizes)).tolist(), random
