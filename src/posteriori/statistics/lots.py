"""Which lots the rows of each class have drawn: a number below 2^53 each, by what a row holds.

Of a class with few different rows all lots are kept, so that these can be dealt out evenly. Of one
with many it is enough to count them in buckets, which are dealt out in their place. Lots lie in
buckets by the bits that lead them, and so by what float32 holds of a row; or by all bits, where
that is too little to tell rows apart.
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

_APART = 1 / 8
"""The bits that lead must tell apart this share of the lots."""


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

    @property
    def are_apart(self) -> bool:
        """Whether the bits that lead tell most lots apart."""
        return len(np.unique(self.lots // 2**LAST)) >= _APART * len(self.lots)


@dataclass(frozen=True, eq=False)
class Lots(Statistic):
    """The lots of K classes; weight and number (2, K, buckets) of the rows in each bucket.

    Buckets are first those by the bits that lead, then those by all.
    """

    classes: tuple[LotsOfClass, ...]
    weight: Array
    count: Array

    def __add__(self, other: "Lots") -> "Lots":
        return Lots(
            tuple(a + b for a, b in zip(self.classes, other.classes, strict=True)),
            self.weight + other.weight,
            self.count + other.count,
        )


@dataclass(frozen=True)
class GatherLots:
    """The kernel: rows whose one column is their lot, to `Lots` of so many classes."""

    n_classes: int
    n_buckets: int

    def __call__(self, block: Block) -> Lots:
        lots, codes = cast(Array, block.X)[:, 0], cast(Codes, block.y)
        count = np.ones(len(lots))
        weight = count if block.weight is None else block.weight
        both = (buckets(lots, self.n_buckets, by_all) for by_all in (False, True))
        cells = [codes * self.n_buckets + bucket for bucket in both]

        def in_cells(values: Array) -> Array:
            n_cells = self.n_classes * self.n_buckets
            found = np.stack([np.bincount(cell, values, n_cells) for cell in cells])
            return found.reshape(2, self.n_classes, self.n_buckets).astype(np.float64)

        own = (
            LotsOfClass.of(lots[rows], weight[rows], count[rows])
            for rows in rows_of_classes(codes, self.n_classes)
        )
        return Lots(tuple(own), in_cells(weight), in_cells(count))


def rows_of_classes(codes: Codes, n_classes: int) -> Iterator[Codes]:
    """The places of the rows of each class.

    >>> [rows.tolist() for rows in rows_of_classes(np.array([2, 0, 2]), 3)]
    [[1], [], [0, 2]]
    """
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(n_classes + 1))
    return (order[low:high] for low, high in pairwise(ends))


def buckets(lots: Array, n_buckets: int, by_all: bool) -> Codes:
    """The bucket of each lot, by the bits that lead it or by all."""
    bits = lots.astype(np.intp)
    return (bits if by_all else bits >> LAST) % n_buckets


def buckets_for(n_folds: int) -> int:
    """How many buckets it takes to deal them out to so many folds."""
    return _BUCKETS * n_folds
