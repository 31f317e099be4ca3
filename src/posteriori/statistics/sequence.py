"""The rows themselves, for solvers that visit them one after the other.

The other models need sums, so their rows may lie anywhere. A sequential solver needs the rows
themselves, many times over. In an order of its own it needs them in one memory: that of this
process, or of one worker of the cluster on which they lie. In the order in which they lie, they may
stay there, and what has been learnt goes from chunk to chunk.

Conventions: n rows, m design columns, p = m + 1 parameters, the intercept first.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Protocol, TypeVar, cast

import numpy as np
from scipy import sparse

from posteriori.errors import SourceError
from posteriori.rows.block import Block, take_rows
from posteriori.rows.chunked import ChunkedRows
from posteriori.rows.kept import Kept
from posteriori.rows.memory import MemoryRows
from posteriori.rows.rows import Rows
from posteriori.rows.tables import SparseTable
from posteriori.statistics.collect import Collect, Collected
from posteriori.statistics.coordinates import Coordinates
from posteriori.statistics.same_rows import fingerprints
from posteriori.typing import Array, Codes, Labels

S = TypeVar("S")

_SEGMENT = 2**17
"""Numbers that are laid out for the solver at a time: a mebibyte of doubles."""

_DIGITS = 9
"""Digits after the point to which rows are told apart when they are put in order."""

_KEPT = 2**24
"""Up to this many numbers (128 MiB), the rows are laid out once rather than in every epoch."""

_COPIES = 4
"""As they came, in one piece, in order, and on their way: so often the rows are in memory for a
while, and twice more laid out as far as they are kept so."""


def visits_of(rows: Rows, coordinates: Coordinates, shuffled: bool) -> "Visits | Asked | Streamed":
    """The rows in one memory where there is room for them, else where they lie, in their order."""

    def put_together(every: Collected) -> Visits:
        visits = Visits(every.joined(), coordinates)
        return visits.sorted() if shuffled else visits

    collect = Collect(rows.schema)
    if not isinstance(rows, ChunkedRows):
        return put_together(rows.map_sum(collect))
    if not shuffled and (rows.is_far or not _has_room(rows)):
        return Streamed(rows, coordinates)
    if not _has_room(rows):
        raise _no_room(rows)
    return Asked(rows.keep(collect, put_together))


def _has_room(rows: ChunkedRows) -> bool:
    if isinstance(rows.sample.rows.table, SparseTable):
        return True
    room = rows.room.n_bytes
    return room is None or _size(rows) <= room


def _size(rows: ChunkedRows) -> int:
    """Bytes of memory while the rows are put in order; one of several classes is several rows."""
    once = 8 * rows.n_rows * len(rows.schema)
    if rows.soft:
        once *= len(cast(Labels, rows.classes))
    return _COPIES * once + 2 * min(once, 8 * _KEPT)


def _no_room(rows: ChunkedRows) -> SourceError:
    owner, room = rows.room
    return SourceError(
        f"To be visited in a random order, the {rows.n_rows:,} rows must be in one memory. They "
        f"take {_size(rows) / 1e9:.3g} GB while they are put in order; {owner} has room for "
        f"{cast(int, room) / 1e9:.3g} GB.",
        "Set shuffle=False, which visits them in the order in which they lie; or use a model that "
        "is fitted by sums, such as LogisticRegression or LeastSquaresClassifier.",
    )


Step = Callable[[S, "Iterable[Segment]"], S]
"""What has been learnt, and rows to be visited, to what is known after them."""


class Walkable(Protocol):
    """Rows that can be visited one after the other."""

    def fold(self, step: Step[S], state: S, order: "Shuffle | None" = None) -> S:
        """The state after all rows, in the order given or that in which they lie."""
        ...


@dataclass(frozen=True)
class Shuffle:
    """A random order by its seed, which is drawn where the rows are."""

    seed: int

    def of(self, n_rows: int) -> Codes:
        """The order of so many rows."""
        return np.random.default_rng(self.seed).permutation(n_rows)


class Segment(NamedTuple):
    """Some rows to be visited: φ (k, p), class codes (k,) and weights (k,)."""

    rows: Array
    codes: Codes
    weight: Array


@dataclass(frozen=True, eq=False)
class Visits:
    """Rows to be visited in any order, standardised by `coordinates`, with weights of their own."""

    block: Block
    coordinates: Coordinates

    def __len__(self) -> int:
        return self.block.X.shape[0]

    def __sizeof__(self) -> int:
        """Of which Dask wants to know."""
        return self.block.n_bytes

    def fold(self, step: Step[S], state: S, order: Shuffle | None = None) -> S:
        """The state after all rows, in the order given or that in which they lie."""
        n = len(self)
        return step(state, self.segments(np.arange(n) if order is None else order.of(n)))

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
        if len(self) * (len(self.coordinates.scale) + 1) > _KEPT:
            return None
        return self.coordinates.rows(self.block, np.arange(len(self)))

    def weighted(self, factor: float) -> "Visits":
        """The same rows, their weights multiplied."""
        weight = cast(Array, self.block.weight) * factor
        return replace(self, block=replace(self.block, weight=weight))

    def sorted(self) -> "Visits":
        """The same rows in an order that depends on them alone, each but once.

        Rows that are alike in every entry and in the class become one, with their weights added.
        The order is that of a sum over the columns, in which each counts by how far apart it puts
        the classes: it does not depend on units, nor on the order of rows, columns or classes.
        """
        block = self.block
        codes, weight = cast(Codes, block.y), cast(Array, block.weight)
        prints, place = fingerprints(block.X, codes), self._importance()
        # Not a product, the last bits of which would depend on where a row stands.
        every = self.segments(np.arange(len(self)))
        place = np.concatenate([(segment.rows * place).sum(axis=1) for segment in every])
        _, first, group = np.unique(prints, return_index=True, return_inverse=True)
        order = np.lexsort((prints[first], np.round(place[first], _DIGITS)))
        chosen = first[order]
        total = np.bincount(group, weight).astype(np.float64)[order]
        return Visits(Block(take_rows(block.X, chosen), codes[chosen], total, 0), self.coordinates)

    def _importance(self) -> Array:
        """For each column of φ the variance of its class means (p,)."""
        K = int(cast(Codes, self.block.y).max()) + 1
        sums, counts = np.zeros((K, len(self.coordinates.scale) + 1)), np.zeros(K)
        for rows, codes, weight in self.segments(np.arange(len(self))):
            member = sparse.csr_array((weight, (codes, np.arange(len(codes)))), (K, len(codes)))
            sums += member @ rows
            counts += np.bincount(codes, weight, minlength=K)
        counts /= counts.sum()
        means = sums / sums[:, :1].sum() / np.where(counts > 0, counts, 1.0)[:, None]
        return counts @ (means - counts @ means) ** 2


@dataclass(frozen=True, eq=False)
class Asked:
    """Rows in one memory, which may be that of another process: they are visited there."""

    visits: Kept[Visits]

    def fold(self, step: Step[S], state: S, order: Shuffle | None = None) -> S:
        """The state after all rows, in the order given or that in which they were put."""
        return self.visits.ask(lambda visits: visits.fold(step, state, order))

    def weighted(self, factor: float) -> "Asked":
        """The same rows, their weights multiplied."""
        return Asked(self.visits.then(lambda visits: visits.weighted(factor)))


@dataclass(frozen=True, eq=False)
class Streamed:
    """Rows that stay where they lie, visited chunk by chunk in their order.

    `factor` multiplies their weights.
    """

    rows: ChunkedRows
    coordinates: Coordinates
    factor: float = 1.0

    def fold(self, step: Step[S], state: S, order: Shuffle | None = None) -> S:
        """The state after all rows, in the order in which they lie."""
        coordinates, factor = self.coordinates, self.factor
        collect = Collect(self.rows.schema)

        def of_chunk(state: S, chunk: MemoryRows) -> S:
            visits = Visits(chunk.map_sum(collect).joined(), coordinates)
            return visits.weighted(factor).fold(step, state)

        return self.rows.fold(of_chunk, state)

    def weighted(self, factor: float) -> "Streamed":
        """The same rows, their weights multiplied."""
        return replace(self, factor=self.factor * factor)


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
