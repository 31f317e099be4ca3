"""Rows of a block sorted by class, so that each class is one contiguous run."""

from dataclasses import dataclass
from typing import Self, cast

import numpy as np

from posteriori.rows.block import Block
from posteriori.typing import Array, Codes

_FAR_FROM_ZERO = 1e8
"""(mean / sd)² beyond which the mean of a block is refined from its residuals."""


@dataclass(frozen=True, eq=False)
class RowsByClass:
    """A copy of the rows, class after class; `runs` has class and place of those present."""

    rows: Array
    weight: Array | None
    runs: tuple[tuple[int, slice], ...]

    @classmethod
    def of(cls, X: Array, block: Block, n_classes: int) -> Self:
        """Sort the rows X of a block with one label a row."""
        codes = cast(Codes, block.y)
        # Sixteen bits are sorted by counting, which is several times faster.
        order = codes.astype(np.uint16 if n_classes < 2**16 else np.intp).argsort(kind="stable")
        ends = np.bincount(codes, minlength=n_classes).cumsum().tolist()
        starts = [0, *ends[:-1]]
        spans = enumerate(zip(starts, ends, strict=True))
        return cls(
            X.take(order, axis=0),
            None if block.weight is None else block.weight[order],
            tuple((k, slice(low, high)) for k, (low, high) in spans if low < high),
        )

    def centre(self, mean: Array) -> None:
        """Take the mean of each class off its rows, and add it to its row of `mean` (K, d)."""
        for k, run in self.runs:
            rows = self.rows[run]
            weight = np.ones(len(rows)) if self.weight is None else self.weight[run]
            step = weight @ rows
            step /= weight.sum()
            mean[k] += step
            rows -= step

    def weighted(self) -> Array:
        """Rows times the square root of their weights, whose products are weighted sums."""
        return self.rows if self.weight is None else self.rows * np.sqrt(self.weight)[:, None]


def is_far_from_zero(mean: Array, squares: Array, count: float) -> bool:
    """Whether some column lies so far from zero that its mean lost digits in the sum."""
    return bool((mean**2 * count > _FAR_FROM_ZERO * squares).any())
