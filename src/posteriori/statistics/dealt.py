"""Rows that one memory has no room for, dealt out into bins to be visited in random orders.

Conventions: n rows, p parameters, K classes.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import numpy as np

from posteriori.rows.block import Block, take_block
from posteriori.statistics.bins import Shuffle, bins_of
from posteriori.statistics.collect import Collected
from posteriori.statistics.coordinates import Coordinates
from posteriori.statistics.sequence import Step, Visits
from posteriori.typing import Array, Codes

S = TypeVar("S")

_Drawn = tuple[np.random.Generator | None, S]
"""What draws the order of the rows of the next bin, and what has been learnt."""


class Bins(Protocol):
    """Blocks of rows by the number of their bin, wherever they lie."""

    def fold(self, step: Callable[[S, Block], S], state: S, turns: Sequence[int]) -> S:
        """The state after `step` has seen these bins, one after the other."""
        ...


@dataclass(frozen=True, eq=False)
class Dealt:
    """Bins of different rows, each in the order of `Visits.sorted`.

    `factor` multiplies their weights.
    """

    bins: Bins
    sizes: Sequence[int]
    coordinates: Coordinates
    factor: float = 1.0

    def fold(self, step: Step[S], state: S, order: Shuffle | None = None) -> S:
        """The state after all rows, in the order given or that in which they were put."""
        coordinates, factor = self.coordinates, self.factor

        def visit(before: _Drawn[S], block: Block) -> _Drawn[S]:
            random, state = deepcopy(before[0]), before[1]  # a step may have to be done again
            visits = Visits(block, coordinates, again=False).weighted(factor)
            n = len(visits)
            chosen = np.arange(n) if random is None else random.permutation(n)
            return random, step(state, visits.segments(chosen))

        turns, random = (range(len(self.sizes)), None) if order is None else order.begun(self.sizes)
        filled = [i for i in turns if self.sizes[i]]
        return self.bins.fold(visit, (random, state), filled)[1]

    def weighted(self, factor: float) -> "Dealt":
        """The same rows, their weights multiplied."""
        return replace(self, factor=self.factor * factor)


def in_bins(block: Block, count: int) -> tuple[Block, Codes]:
    """The rows of a block in the order of their bins, and where each of these begins and ends."""
    bins = bins_of(block.X, count)
    order = np.argsort(bins, kind="stable")
    return some_rows(block, order), np.searchsorted(bins[order], np.arange(count + 1))


def some_rows(block: Block, rows: Codes) -> Block:
    """Some rows of a block, without the numbers that they had."""
    return replace(take_block(block, rows), kept=None)


def in_order(parts: Sequence[Block], coordinates: Coordinates, importance: Array) -> Block:
    """The rows of one bin, which come in parts, each row once and in the order of `sorted`."""
    every = Visits(Collected(tuple(parts)).joined(), coordinates, again=False)
    return every.sorted(importance).block
