"""All rows one after the other, for solvers that visit them in turn.

Conventions: n rows, m design columns, p = m + 1 parameters, the intercept first.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np

from posteriori.design.columns import Columns
from posteriori.design.standardise import Standard
from posteriori.rows.block import FitRows, check_finite, take_block
from posteriori.statistics.statistic import hard_labels, weights_of
from posteriori.typing import Array, Codes, Labels

LAID_OUT = 2**24
"""Up to this many numbers (128 MiB), the rows are read and standardised once, not every epoch."""

_SEGMENT = 2**17
"""Numbers that are standardised at a time: a mebibyte of doubles."""


class Segment(NamedTuple):
    """Consecutive rows of an epoch: φ (k, p), class codes (k,) and weights (k,)."""

    rows: Array
    codes: Codes
    weight: Array


@dataclass(frozen=True, eq=False)
class RowStream:
    """Rows in standardised columns.

    A row with a soft label becomes one row for each class that shares it, in proportion to its
    share. With `distinct`, equal rows of a dataset that is read once become one row with the sum of
    their weights, in an order that depends on the rows alone.
    """

    rows: FitRows
    standard: Standard
    distinct: bool = False

    def segments(self, random: np.random.Generator | None = None) -> Iterator[Segment]:
        """All rows in their order, or in a random one.

        Of a large source, the batches are visited in a random order, and the rows of each in a
        random order.
        """
        whole = self._whole
        if whole is None:
            yield from self._read(random)
        else:
            order = _order(len(whole.codes), random)
            yield Segment(whole.rows[order], whole.codes[order], whole.weight[order])

    def mean(self, values: Callable[[Segment], Array]) -> float:
        """The mean over the rows of a number that `values` gives for each."""
        parts = [(values(segment).sum(), len(segment.codes)) for segment in self.segments()]
        total, count = np.sum(parts, axis=0)
        return float(total / count)

    @cached_property
    def _whole(self) -> Segment | None:
        """All rows, where they are few."""
        n_classes = len(cast(Labels, self.rows.classes)) if self.rows.soft else 1
        if self.rows.n_rows * n_classes * self._n_parameters > LAID_OUT:
            return None
        whole = Segment(*map(np.concatenate, zip(*self._read(), strict=True)))
        return _merge_equal_rows(whole) if self.distinct else whole

    @property
    def _n_parameters(self) -> int:
        return len(self.standard.scale) + 1

    def _read(self, random: np.random.Generator | None = None) -> Iterator[Segment]:
        columns = Columns(self.rows.schema)
        size = max(64, _SEGMENT // self._n_parameters)
        for batch in self.rows.batches(random):
            block = batch.block()
            own, codes, weight = hard_labels(replace(block, weight=weights_of(block)))
            positions = np.arange(block.X.shape[0])[own]
            order = _order(len(codes), random)
            for low in range(0, len(order), size):
                chosen = order[low : low + size]
                design = columns.design(take_block(block, positions[chosen]))
                rows = design.shifted(self.standard.centre).scaled(self.standard.scale).array()
                if not np.isfinite(rows).all():
                    check_finite(block, batch.schema)
                rows = np.column_stack([np.ones(len(rows)), rows])
                yield Segment(rows, codes[chosen], cast(Array, weight)[chosen])


def _order(n: int, random: np.random.Generator | None) -> Codes:
    """The positions of n rows in their order or a random one."""
    return np.arange(n) if random is None else random.permutation(n)


def _merge_equal_rows(whole: Segment) -> Segment:
    """Each row once with the weight of all that equal it, whatever the order of rows or columns."""
    size = np.einsum("ij,ij->i", whole.rows, whole.rows).round(9)
    order = np.lexsort((whole.codes, *whole.rows.T, size))
    rows, codes, weight = whole.rows[order], whole.codes[order], whole.weight[order]
    differ = (rows[1:] != rows[:-1]).any(axis=1) | (codes[1:] != codes[:-1])
    starts = np.flatnonzero(np.append(True, differ))
    return Segment(rows[starts], codes[starts], np.add.reduceat(weight, starts))
