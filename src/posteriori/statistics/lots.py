"""Which lots the rows of each class have drawn: a number below 2^53 each, by what a row holds.

Of a class with few different rows all lots are kept, so that these can be dealt out evenly. Of one
with many it is enough to count them in buckets, which are dealt out in their place. This is done
with lots as they are, and with the bits that lead them, which tell what float32 holds of a row.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

import numpy as np

from posteriori.rows.block import Block
from posteriori.rows.digests import LAST
from posteriori.statistics.statistic import Statistic
from posteriori.typing import Array, Codes

FEW = 2**12
"""Different rows of a class up to which they are dealt out one by one."""

_BUCKETS = 64
"""Buckets for each fold."""

_HEAP = 1 / 2
"""Rows that should not be in one heap: this share of those that a fold should have."""

_OVERFULL = 2
"""Where rows are many, there is a heap if the fullest bucket has so many times what is usual."""


@dataclass(frozen=True, eq=False)
class LotsOfClass:
    """The lowest lots in order, one more than `FEW` at most, and the weight and number of rows."""

    lots: Array
    weight: Array
    count: Array

    @classmethod
    def of(cls, lots: Array, weight: Array, count: Array) -> "LotsOfClass":
        """Of rows, or of lots that may occur several times."""
        different, place = np.unique(lots, return_inverse=True)
        both = (np.bincount(place, each, len(different)) for each in (weight, count))
        return cls(*(each[: FEW + 1].astype(np.float64) for each in (different, *both)))

    def __add__(self, other: "LotsOfClass") -> "LotsOfClass":
        ours, theirs = ((each.lots, each.weight, each.count) for each in (self, other))
        return LotsOfClass.of(*(np.concatenate(pair) for pair in zip(ours, theirs, strict=True)))

    @property
    def are_few(self) -> bool:
        """Whether these are the lots of all rows."""
        return len(self.lots) <= FEW


@dataclass(frozen=True, eq=False)
class Piles:
    """The lots of K classes; weight and number (K, buckets) of the rows in each bucket."""

    classes: tuple[LotsOfClass, ...]
    weight: Array
    count: Array

    def __add__(self, other: "Piles") -> "Piles":
        return Piles(
            tuple(a + b for a, b in zip(self.classes, other.classes, strict=True)),
            self.weight + other.weight,
            self.count + other.count,
        )

    @property
    def n_different(self) -> Codes:
        """How many different lots each class has, where these are few."""
        return np.array([len(own.lots) for own in self.classes])


@dataclass(frozen=True, eq=False)
class Lots(Statistic):
    """Piles of lots by the bits that lead, and by all."""

    leading: Piles
    whole: Piles

    def __add__(self, other: "Lots") -> "Lots":
        return Lots(self.leading + other.leading, self.whole + other.whole)

    def are_heaped(self, n_folds: int) -> bool:
        """Whether the same bits lead too many different rows of a class to deal them out."""
        return any(self._is_heaped(k, n_folds) for k in range(len(self.whole.classes)))

    def _is_heaped(self, k: int, n_folds: int) -> bool:
        own, n_leading = self.whole.classes[k], len(self.leading.classes[k].lots)
        if not own.are_few:
            fullest, usual = (each.count[k].max() for each in (self.leading, self.whole))
            return bool(fullest > _OVERFULL * usual)
        if n_leading < 2:
            return n_leading < len(own.lots)
        _, heaps = np.unique(leading(own.lots), return_counts=True)
        return bool(heaps.max() > max(2, _HEAP * len(own.lots) / n_folds))


@dataclass(frozen=True)
class GatherLots:
    """The kernel: rows whose one column is their lot, to `Lots` of so many classes."""

    n_classes: int
    n_buckets: int

    def __call__(self, block: Block) -> Lots:
        lots, codes = cast(Array, block.X)[:, 0], cast(Codes, block.y)
        count = np.ones(len(lots))
        weight = count if block.weight is None else block.weight
        classes = list(rows_of_classes(codes, self.n_classes))

        def piles(own: Array) -> Piles:
            cell = codes * self.n_buckets + buckets(own, self.n_buckets)
            n_cells = self.n_classes * self.n_buckets
            shape = self.n_classes, self.n_buckets
            filled = (np.bincount(cell, each, n_cells).reshape(shape) for each in (weight, count))
            kept = (LotsOfClass.of(own[rows], weight[rows], count[rows]) for rows in classes)
            return Piles(tuple(kept), *(each.astype(np.float64) for each in filled))

        return Lots(piles(leading(lots)), piles(lots))


def rows_of_classes(codes: Codes, n_classes: int) -> Iterator[Codes]:
    """The places of the rows of each class.

    >>> [rows.tolist() for rows in rows_of_classes(np.array([2, 0, 2]), 3)]
    [[1], [], [0, 2]]
    """
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(n_classes + 1))
    return (order[low:high] for low, high in pairwise(ends))


def leading(lots: Array) -> Array:
    """The bits that lead each lot.

    >>> leading(np.array([5.0, 2.0**LAST, 3 * 2.0**LAST + 7]))
    array([0., 1., 3.])
    """
    return np.floor(lots / 2**LAST)


def buckets(lots: Array, n_buckets: int) -> Codes:
    """The bucket of each lot."""
    return lots.astype(np.intp) % n_buckets


def buckets_for(n_folds: int) -> int:
    """How many buckets it takes to deal them out to so many folds."""
    return _BUCKETS * n_folds
