"""The rows themselves, for solvers that visit them one after the other.

Conventions: n rows, m design columns, p = m + 1 parameters, the intercept first.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Protocol, TypeVar, cast

import numpy as np
from scipy import sparse

from posteriori.rows.block import Block, take_block
from posteriori.statistics.bins import Shuffle, bins_of, n_bins
from posteriori.statistics.coordinates import Coordinates
from posteriori.statistics.same_rows import merged
from posteriori.typing import Array, Codes

S = TypeVar("S")

_SEGMENT = 2**17
"""Numbers that are laid out for the solver at a time: a mebibyte of doubles."""

_DIGITS = 9
"""Digits after the point to which rows are told apart when they are put in order."""

LAID_OUT = 2**24
"""Up to this many numbers (128 MiB), the rows are laid out once rather than in every epoch."""

Step = Callable[[S, "Iterable[Segment]"], S]
"""What has been learnt, and rows to be visited, to what is known after them."""


class Walkable(Protocol):
    """Rows that can be visited one after the other."""

    def fold(self, step: Step[S], state: S, order: "Shuffle | None" = None) -> S:
        """The state after all rows, in the order given or that in which they lie."""
        ...


class Segment(NamedTuple):
    """Some rows to be visited: φ (k, p), class codes (k,) and weights (k,)."""

    rows: Array
    codes: Codes
    weight: Array


@dataclass(frozen=True, eq=False)
class Visits:
    """Rows to be visited in any order, standardised by `coordinates`, with weights of their own.

    `sizes` are those of their bins, one after the other, if they are in more than one. `again` says
    that they are visited many times.
    """

    block: Block
    coordinates: Coordinates
    sizes: tuple[int, ...] = ()
    again: bool = True

    def __len__(self) -> int:
        return self.block.X.shape[0]

    def __sizeof__(self) -> int:
        """Of which Dask wants to know."""
        return self.block.n_bytes

    def fold(self, step: Step[S], state: S, order: Shuffle | None = None) -> S:
        """The state after all rows, in the order given or that in which they lie."""
        if order is None:
            return step(state, self.segments(np.arange(len(self))))
        sizes = self.sizes or (len(self),)
        begins = np.cumsum([0, *sizes])
        for i, chosen in order.of(sizes):
            state = step(state, self.segments(begins[i] + chosen))
        return state

    def segments(self, order: Codes) -> Iterator[Segment]:
        """The rows in the order given, a segment at a time."""
        codes, weight = cast(Codes, self.block.y), cast(Array, self.block.weight)
        size = max(64, _SEGMENT // (len(self.coordinates.scale) + 1))
        for low in range(0, len(order), size):
            chosen = order[low : low + size]
            yield Segment(self._rows(chosen), codes[chosen], weight[chosen])

    def _rows(self, chosen: Codes) -> Array:
        if self._laid_out is not None:
            return self._laid_out[chosen]
        return self.coordinates.rows(self.block, chosen)

    @cached_property
    def _laid_out(self) -> Array | None:
        if not self.again or len(self) * (len(self.coordinates.scale) + 1) > LAID_OUT:
            return None
        return self.coordinates.rows(self.block, np.arange(len(self)))

    def weighted(self, factor: float) -> "Visits":
        """The same rows, their weights multiplied."""
        weight = cast(Array, self.block.weight) * factor
        return replace(self, block=replace(self.block, weight=weight))

    def sorted(self, importance: Array | None = None) -> "Visits":
        """The same rows in an order that depends on them alone, each but once.

        Rows that are alike in every entry and in the class become one, with their weights added.
        The order is that of a sum over the columns, in which each counts by how far apart it puts
        the classes: it does not depend on units, nor on the order of rows, columns or classes. So
        many rows that they are put into bins are in this order in each bin.

        With the `importance` that columns have in all rows, these are the rows of one bin.
        """
        block, prints = merged(self.block)
        once = replace(self, block=block)
        count = 1 if importance is not None else n_bins(len(once), block.X.shape[1])
        if importance is None:
            importance = once.class_sums(int(cast(Codes, block.y).max()) + 1).importance()
        # Not a product, the last bits of which would depend on where a row stands.
        every = once.segments(np.arange(len(once)))
        place = np.concatenate([(segment.rows * importance).sum(axis=1) for segment in every])
        bins = bins_of(block.X, count)
        order = np.lexsort((prints, np.round(place, _DIGITS), bins))
        sizes = np.bincount(bins, minlength=count) if count > 1 else ()
        found = replace(take_block(block, order), kept=None)
        return Visits(found, self.coordinates, tuple(map(int, sizes)))

    def class_sums(self, n_classes: int) -> "ClassSums":
        """What the rows of each class come to."""
        found = ClassSums.none(n_classes, len(self.coordinates.scale) + 1)
        for rows, codes, weight in self.segments(np.arange(len(self))):
            k = len(codes)
            member = sparse.csr_array((weight, (codes, np.arange(k))), (n_classes, k))
            counts = np.bincount(codes, weight, minlength=n_classes)
            found += ClassSums(member @ rows, counts.astype(np.float64))
        return found


@dataclass(frozen=True, eq=False)
class ClassSums:
    """For each class the sum of φ over its rows (K, p), and their weight (K,)."""

    sums: Array
    weight: Array

    @classmethod
    def none(cls, n_classes: int, n_parameters: int) -> "ClassSums":
        """Of no rows."""
        return cls(np.zeros((n_classes, n_parameters)), np.zeros(n_classes))

    def __add__(self, other: "ClassSums") -> "ClassSums":
        return ClassSums(self.sums + other.sums, self.weight + other.weight)

    def importance(self) -> Array:
        """For each column of φ the variance of its class means (p,)."""
        counts = self.weight / self.weight.sum()
        means = self.sums / self.sums[:, :1].sum() / np.where(counts > 0, counts, 1.0)[:, None]
        return counts @ (means - counts @ means) ** 2


def mean_weight(visits: Walkable) -> float:
    """The mean weight of all rows, without a sum that could leave the doubles."""

    def step(state: tuple[int, float], segments: Iterable[Segment]) -> tuple[int, float]:
        count, mean = state
        for segment in segments:
            own = float(segment.weight.max())
            own *= float(np.mean(segment.weight / own))
            count += len(segment.weight)
            mean += (own - mean) * len(segment.weight) / count
        return count, mean

    return visits.fold(step, (0, 0.0))[1]


def mean_square(visits: Walkable) -> float:
    """The mean of |φ|² over the rows, by weight."""

    def step(state: tuple[float, float], segments: Iterable[Segment]) -> tuple[float, float]:
        total, time = state
        for rows, _, weight in segments:
            total += float(weight @ np.einsum("ij,ij->i", rows, rows))
            time += float(weight.sum())
        return total, time

    total, time = visits.fold(step, (0.0, 0.0))
    return total / time
