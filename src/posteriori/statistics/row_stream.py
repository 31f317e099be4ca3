"""All rows one after the other, for solvers that visit them in turn.

Conventions: n rows, m design columns, p = m + 1 parameters, the intercept first.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

import numpy as np

from posteriori.design.columns import Columns
from posteriori.design.standardise import Standard
from posteriori.lazy import cached_property
from posteriori.rows.block import check_finite, take_block
from posteriori.rows.source import FitRows
from posteriori.statistics.statistic import hard_labels, weights_of
from posteriori.typing import Array, Codes, Labels

LAID_OUT = 2**24
"""Up to this many numbers (128 MiB), the rows are read and standardised once, not every epoch."""

_SEGMENT = 2**17
"""Numbers in a segment: a mebibyte of doubles."""


class Segment(NamedTuple):
    """Consecutive rows of an epoch: φ (k, p), class codes (k,) and weights (k,)."""

    rows: Array
    codes: Codes
    weight: Array


@dataclass(frozen=True, eq=False)
class RowStream:
    """Rows in standardised columns, with their weights in multiples of a unit.

    The unit is the mean weight unless it is given. A row with a soft label becomes one row for each
    class that shares it, in proportion to its share. With `distinct`, rows that are few are each
    visited once, with the weight of all that equal them, in an order that depends on them alone.
    """

    rows: FitRows
    standard: Standard
    unit: float | None = None
    distinct: bool = False

    def segments(self, random: np.random.Generator | None = None) -> Iterator[Segment]:
        """All rows in their order, or in a random one.

        Rows that are few, or in memory, are permuted; of a larger source, the batches are visited
        in a random order, and the rows of each in a random order.
        """
        for rows, codes, weight in self._read(random):
            yield Segment(rows, codes, weight / self.weight_unit)

    @cached_property
    def weight_unit(self) -> float:
        """What weights are divided by."""
        if self.unit is not None:
            return self.unit
        sums = [(segment.weight.sum(), len(segment.weight)) for segment in self._read()]
        total, count = np.sum(sums, axis=0)
        return float(total / count)

    def _read(self, random: np.random.Generator | None = None) -> Iterator[Segment]:
        """The same with the weights as they are."""
        whole = self._laid_out
        if whole is None:
            yield from self._standardised(random)
            return
        for chosen in self._runs(len(whole.codes), random):
            yield Segment(whole.rows[chosen], whole.codes[chosen], whole.weight[chosen])

    @cached_property
    def _laid_out(self) -> Segment | None:
        """All rows, where they are few."""
        n_rows = self.rows.n_rows
        if self.rows.soft:
            n_rows *= len(cast(Labels, self.rows.classes))
        if n_rows * self._n_parameters > LAID_OUT:
            return None
        whole = Segment(*map(np.concatenate, zip(*self._standardised(), strict=True)))
        return _distinct(whole) if self.distinct else whole

    @property
    def _n_parameters(self) -> int:
        return len(self.standard.scale) + 1

    def _standardised(self, random: np.random.Generator | None = None) -> Iterator[Segment]:
        columns = Columns(self.rows.schema)
        for batch in self.rows.batches(random):
            block = batch.block()
            block = replace(block, weight=weights_of(block))
            own, codes, weight = hard_labels(block)
            places = np.arange(block.X.shape[0])[own]
            for chosen in self._runs(len(codes), random):
                design = columns.design(take_block(block, places[chosen]))
                rows = design.shifted(self.standard.centre).scaled(self.standard.scale).array()
                rows = np.column_stack([np.ones(len(rows)), rows])
                if not np.isfinite(rows).all():
                    check_finite(block, batch.schema)
                yield Segment(rows, codes[chosen], cast(Array, weight)[chosen])

    def _runs(self, n: int, random: np.random.Generator | None) -> Iterator[Codes]:
        """The places of n rows in their order or a random one, a segment at a time."""
        order = np.arange(n) if random is None else random.permutation(n)
        size = max(64, _SEGMENT // self._n_parameters)
        return (order[low : low + size] for low in range(0, n, size))


def _distinct(whole: Segment) -> Segment:
    """Each row once with the weight of all that equal it, whatever the order of rows or columns."""
    size = np.einsum("ij,ij->i", whole.rows, whole.rows).round(9)
    order = np.lexsort((whole.codes, *whole.rows.T, size))
    rows, codes, weight = whole.rows[order], whole.codes[order], whole.weight[order]
    differ = (rows[1:] != rows[:-1]).any(axis=1) | (codes[1:] != codes[:-1])
    starts = np.flatnonzero(np.append(True, differ))
    return Segment(rows[starts], codes[starts], np.add.reduceat(weight, starts))
