"""The rows of some of the classes, as if there were no others."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from posteriori.rows.block import Block, take_block
from posteriori.rows.rows import Kernel, Rows, S
from posteriori.rows.schema import Schema
from posteriori.typing import Array, Codes, Labels


@dataclass(frozen=True, eq=False)
class SomeClasses:
    """Rows that belong to some of the classes only; a `Rows`.

    `codes` are the codes of these classes, which become 0, 1, ... in the order given.
    """

    rows: Rows
    codes: Sequence[int]

    @property
    def schema(self) -> Schema:
        return self.rows.schema

    @property
    def n_rows(self) -> int:
        """The number of all rows, of which those of other classes are left out on the way."""
        return self.rows.n_rows

    @property
    def classes(self) -> Labels | None:
        known = self.rows.classes
        return None if known is None else known[list(self.codes)]

    @property
    def soft(self) -> bool:
        return self.rows.soft

    def map_sum(self, kernel: Kernel[S], *, block_entries: int | None = None) -> S:
        return self.rows.map_sum(
            lambda block: kernel(self._part(block)), block_entries=block_entries
        )

    def _part(self, block: Block) -> Block:
        if cast(Array, block.y).ndim == 2:
            shares = cast(Array, block.y)[:, list(self.codes)]
            kept = np.flatnonzero(shares.sum(axis=1) > 1 - 1e-6)
            return replace(take_block(block, kept), y=shares[kept])
        places = np.full(len(cast(Labels, self.rows.classes)), -1)
        places[list(self.codes)] = np.arange(len(self.codes))
        codes = places[cast(Codes, block.y)]
        kept = np.flatnonzero(codes >= 0)
        return replace(take_block(block, kept), y=codes[kept])
