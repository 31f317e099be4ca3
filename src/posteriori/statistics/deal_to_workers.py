"""Rows dealt out into bins in the memory of several workers of a cluster.

Conventions: n rows, p parameters, K classes.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import add
from typing import TypeVar, cast

import numpy as np

from posteriori.rows.block import Block
from posteriori.rows.dask import DaskRows
from posteriori.rows.dask_kept import OnWorkers
from posteriori.rows.in_memory import MemoryRows
from posteriori.statistics.bins import n_bins
from posteriori.statistics.collect import Collect, Collected
from posteriori.statistics.coordinates import Coordinates
from posteriori.statistics.dealt import Dealt, in_bins, in_order, some_rows
from posteriori.statistics.same_rows import merged
from posteriori.statistics.sequence import ClassSums, Visits
from posteriori.typing import Labels

S = TypeVar("S")


@dataclass(frozen=True, eq=False)
class Hand:
    """What one worker was dealt: the rows of some bins, by their numbers."""

    bins: dict[int, Block]

    def __sizeof__(self) -> int:
        """Of which Dask wants to know."""
        return sum(block.n_bytes for block in self.bins.values())

    @property
    def sizes(self) -> dict[int, int]:
        """The rows of each bin."""
        return {i: block.X.shape[0] for i, block in self.bins.items()}


@dataclass(frozen=True, eq=False)
class Hands:
    """The bins of all workers, so many each from the first to the last."""

    held: OnWorkers[Hand]
    shares: Sequence[range]

    def fold(self, step: Callable[[S, Block], S], state: S, turns: Sequence[int]) -> S:
        """The state after `step` has seen these bins, one after the other, where they lie."""

        def visit(state: S, number: int, hand: Hand) -> S:
            return step(state, hand.bins[number])

        begins = [share.start for share in self.shares]
        owners = [(bisect_right(begins, number) - 1, number) for number in turns]
        return self.held.fold(visit, state, owners)


def deal_to_workers(rows: DaskRows, coordinates: Coordinates, count: int, n_hands: int) -> Dealt:
    """All rows in so many bins, or fewer if there are few different ones, in so many hands.

    That is a pass over them, and then each bin is put in order where it lies.
    """
    n_classes, collect = len(cast(Labels, rows.classes)), Collect(rows.schema)
    shares = _shares(count, n_hands)

    def split(chunk: MemoryRows) -> list[Hand]:
        # Rows that come often would fill a bin, if they came to it one by one.
        block, bounds = in_bins(merged(chunk.map_sum(collect).joined())[0], count)
        spans = [np.arange(low, high) for low, high in pairwise(bounds)]
        return [
            Hand({i: some_rows(block, spans[i]) for i in own if len(spans[i])}) for own in shares
        ]

    def put_together(*parts: Hand) -> Hand:
        every = _by_bin(parts)
        return Hand({i: merged(Collected(tuple(own)).joined())[0] for i, own in every.items()})

    def class_sums(hand: Hand) -> ClassSums:
        none = ClassSums.none(n_classes, len(coordinates.scale) + 1)
        visits = (Visits(block, coordinates, again=False) for block in hand.bins.values())
        return reduce(add, (each.class_sums(n_classes) for each in visits), none)

    dealt = rows.deal(split, put_together, len(shares))
    importance = reduce(add, dealt.ask_each(class_sums)).importance()
    fewer = n_bins(sum(_sizes(dealt).values()), len(rows.schema))
    times, new_shares = count // fewer, _shares(fewer, n_hands)

    def put_in_order(share: range) -> Callable[..., Hand]:
        def make(*hands: Hand) -> Hand:
            every = _by_bin(hands, times)
            mine = (i for i in share if i in every)
            return Hand({i: in_order(every[i], coordinates, importance) for i in mine})

        return make

    def owners(share: range) -> list[int]:
        first, last = share.start * times, share.stop * times
        return [j for j, old in enumerate(shares) if old.start < last and old.stop > first]

    ordered = dealt.then([(put_in_order(share), owners(share)) for share in new_shares])
    sizes = _sizes(ordered)
    return Dealt(Hands(ordered, new_shares), [sizes.get(i, 0) for i in range(fewer)], coordinates)


def _shares(count: int, n_hands: int) -> list[range]:
    """The numbers of the bins in each hand.

    >>> _shares(8, 3)
    [range(0, 2), range(2, 5), range(5, 8)]
    """
    n_hands = min(n_hands, count)
    return [range(count * i // n_hands, count * (i + 1) // n_hands) for i in range(n_hands)]


def _by_bin(hands: Sequence[Hand], times: int = 1) -> dict[int, list[Block]]:
    """The blocks of each bin, in the order of the hands; so many bins become one."""
    found: dict[int, list[Block]] = {}
    for hand in hands:
        for i, block in hand.bins.items():
            found.setdefault(i // times, []).append(block)
    return found


def _sizes(held: OnWorkers[Hand]) -> dict[int, int]:
    """The rows of each bin that has any."""
    return {i: n for found in held.ask_each(lambda hand: hand.sizes) for i, n in found.items()}
