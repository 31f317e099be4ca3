"""The rows themselves, gathered from any source by `map_sum` like everything else."""

from dataclasses import dataclass
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from posteriori.rows.block import Block, Features, Mixed, take_rows
from posteriori.rows.finite import check_finite
from posteriori.rows.schema import Schema
from posteriori.statistics.statistic import Statistic, is_soft, weights_of
from posteriori.typing import Array

T = TypeVar("T", bound=np.generic)


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
    if isinstance(parts[0], Mixed):
        mixed = cast(list[Mixed], parts)
        numeric, codes = ([getattr(part, of) for part in mixed] for of in ("numeric", "codes"))
        return Mixed(_row_by_row(numeric), _row_by_row(codes), mixed[0].strange)
    if all(isinstance(part, np.ndarray) for part in parts):
        return _row_by_row(cast(list[Array], parts))
    if len(parts) == 1:
        return parts[0]
    return sparse.csr_array(sparse.vstack([sparse.csr_array(part) for part in parts], format="csr"))


def _row_by_row(parts: list[NDArray[T]]) -> NDArray[T]:
    """One array in which each row lies in one piece, as it is to be visited."""
    if len(parts) == 1:
        return np.ascontiguousarray(parts[0])
    out = np.empty((sum(map(len, parts)), parts[0].shape[1]), dtype=parts[0].dtype)
    return np.concatenate(parts, out=out)


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
