"""The rows themselves, gathered from any source by `map_sum` like everything else."""

from dataclasses import dataclass
from typing import cast

import numpy as np
from scipy import sparse

from posteriori.rows.block import Block, Features, Mixed, take_rows
from posteriori.rows.finite import check_finite
from posteriori.rows.schema import Schema
from posteriori.statistics.labels import is_soft, weights_of
from posteriori.statistics.statistic import Statistic
from posteriori.typing import Array


@dataclass(frozen=True, eq=False)
class Collected(Statistic):
    """The blocks themselves, in their order."""

    blocks: tuple[Block, ...]

    def __sizeof__(self) -> int:
        """Of which Dask wants to know."""
        return sum(block.n_bytes for block in self.blocks)

    def __add__(self, other: "Collected") -> "Collected":
        return Collected(self.blocks + other.blocks)

    def joined(self) -> Block:
        """One block of all rows: each with one class, and with a weight.

        A row with a soft label becomes one row for each class that shares it, by its share.
        """
        X = _stacked([block.X for block in self.blocks])
        y = np.concatenate([cast(Array, block.y) for block in self.blocks])
        weight = np.concatenate([weights_of(block) for block in self.blocks])
        if is_soft(self.blocks[0]):
            rows, codes = np.nonzero(y)
            return Block(take_rows(X, rows), codes, weight[rows] * y[rows, codes], 0)
        return Block(X, y, weight, 0)


def _stacked(parts: list[Features]) -> Features:
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], Mixed):
        mixed = cast(list[Mixed], parts)
        numeric = np.concatenate([part.numeric for part in mixed])
        return Mixed(numeric, np.concatenate([part.codes for part in mixed]))
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(cast(list[Array], parts))
    return sparse.csr_array(sparse.vstack([sparse.csr_array(part) for part in parts], format="csr"))


@dataclass(frozen=True, eq=False)
class Collect:
    """The kernel: a block as it is, if all its entries are there and finite."""

    schema: Schema

    def __call__(self, block: Block) -> Collected:
        X = block.X.numeric if isinstance(block.X, Mixed) else block.X
        with np.errstate(over="ignore", invalid="ignore"):
            total = X.sum()
        if not np.isfinite(total):
            check_finite(block, self.schema)
        return Collected((block,))
