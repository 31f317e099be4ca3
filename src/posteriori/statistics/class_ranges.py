"""The range of each column within each class: where they do not overlap, a column alone separates.

Conventions: K classes, m columns; a class without rows has the range from infinity to its negative.
"""

from dataclasses import dataclass

import numpy as np

from posteriori.design.columns import Columns
from posteriori.design.products import Coded, Design, Sparse, Stacked
from posteriori.rows.block import Block, take_block
from posteriori.statistics.margins import PairsOf
from posteriori.statistics.statistic import Statistic
from posteriori.typing import Array


@dataclass(frozen=True, eq=False)
class ClassRanges(Statistic):
    """Least and largest entry of each column in the rows of each class (K, m)."""

    low: Array
    high: Array

    def __add__(self, other: "ClassRanges") -> "ClassRanges":
        return ClassRanges(np.minimum(self.low, other.low), np.maximum(self.high, other.high))


@dataclass(frozen=True, eq=False)
class GatherClassRanges:
    """The kernel: a block to the `ClassRanges` of its rows with an open pair.

    A row that may belong to several classes counts in each of them.
    """

    columns: Columns
    pairs: PairsOf

    def __call__(self, block: Block) -> ClassRanges:
        if self.pairs.ray is not None:
            block = take_block(block, np.flatnonzero(self.pairs.has_open(block)))
        support = self.pairs.support(block)
        if support.ndim == 1:
            support = support[:, None] == np.arange(self.pairs.n_classes)
        parts = [take_block(block, np.flatnonzero(rows)) for rows in support.T]
        low, high = zip(*(_ranges(self.columns.design(part)) for part in parts), strict=True)
        return ClassRanges(np.stack(low), np.stack(high))


def _ranges(design: Design) -> tuple[Array, Array]:
    """Least and largest entry of each column."""
    n, m = design.shape
    if n == 0:
        return np.full(m, np.inf), np.full(m, -np.inf)
    if isinstance(design, Stacked):
        low, high = zip(*map(_ranges, design.parts), strict=True)
        return np.concatenate(low), np.concatenate(high)
    if isinstance(design, Coded):
        counts = design.transpose_times(np.ones(n))
        return (counts == n).astype(np.float64), (counts > 0).astype(np.float64)
    if isinstance(design, Sparse):
        return design.values.min(axis=0).toarray(), design.values.max(axis=0).toarray()
    values = design.array()
    return values.min(axis=0), values.max(axis=0)
