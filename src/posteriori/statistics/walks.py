"""Where rows are visited one after the other: in one memory, where they lie, or on disk.

The models that need sums leave their rows wherever they lie. A sequential solver needs the rows
themselves, many times over. In an order of its own it needs them in one memory, that of this
process or of one worker of the cluster on which they lie; or dealt out into bins, on disk or on
several workers. In the order in which they lie, they may stay there, and what has been learnt goes
from chunk to chunk.
"""

from dataclasses import dataclass, replace
from typing import TypeVar, cast

from posteriori.errors import SourceError
from posteriori.rows.chunked import ChunkedRows
from posteriori.rows.dask import DaskRows
from posteriori.rows.in_memory import MemoryRows
from posteriori.rows.kept import Kept
from posteriori.rows.rows import Rows
from posteriori.rows.scratch import free_in, name_of
from posteriori.statistics.bins import Shuffle, n_bins
from posteriori.statistics.collect import Collect, Collected
from posteriori.statistics.coordinates import Coordinates
from posteriori.statistics.deal_to_disk import deal_to_disk
from posteriori.statistics.deal_to_workers import deal_to_workers
from posteriori.statistics.dealt import Dealt
from posteriori.statistics.sequence import LAID_OUT, Step, Visits
from posteriori.typing import Labels

S = TypeVar("S")

_COPIES = 4
"""As they came, in one piece, in order, and on their way: so often rows are in memory for a while,
and twice more laid out as far as they are kept so."""


def visits_of(
    rows: Rows, coordinates: Coordinates, shuffled: bool
) -> "Visits | Asked | Streamed | Dealt":
    """The rows to be visited, in an order that depends on them alone if they are to be shuffled."""

    def put_together(every: Collected) -> Visits:
        visits = Visits(every.joined(), coordinates)
        return visits.sorted() if shuffled else visits

    collect = Collect(rows.schema)
    if not isinstance(rows, ChunkedRows):
        return put_together(rows.map_sum(collect))
    # A row of several classes is several rows.
    n_rows = rows.n_rows * (len(cast(Labels, rows.classes)) if rows.soft else 1)
    count, n_bytes = n_bins(n_rows, len(rows.schema)), 8 * n_rows * len(rows.schema)
    in_dask, fits = isinstance(rows, DaskRows), _has_room(rows, n_bytes)
    if not shuffled and (in_dask or count > 1 or not fits):
        return Streamed(rows, coordinates)
    n_parts = count
    if in_dask:
        n_parts = 1 if fits else min(count, rows.room.places)
    largest = n_bytes * -(-count // n_parts) // count
    if not _has_room(rows, largest):
        raise _no_room(rows, largest, n_parts)
    if n_parts == 1:
        return Asked(rows.keep(collect, put_together))
    if isinstance(rows, DaskRows):
        return deal_to_workers(rows, coordinates, count, n_parts)
    _check_disk(rows, n_bytes)
    return deal_to_disk(rows, coordinates, count)


def _needed(n_bytes: int) -> int:
    """Bytes of memory while so many bytes of rows are put in order."""
    return _COPIES * n_bytes + 2 * min(n_bytes, 8 * LAID_OUT)


def _has_room(rows: ChunkedRows, n_bytes: int) -> bool:
    room = rows.room.n_bytes
    return room is None or _needed(n_bytes) <= room or rows.look.n_stored is not None


def _no_room(rows: ChunkedRows, n_bytes: int, n_parts: int) -> SourceError:
    """What to say where the largest of the parts, of so many bytes, has no room."""
    room = rows.room
    takes = "That takes" if n_parts == 1 else f"The largest of {n_parts:,} parts takes"
    return SourceError(
        f"To be visited in a random order, the {rows.n_rows:,} rows are put in order in memory. "
        f"{takes} {_needed(n_bytes) / 1e9:.3g} GB; {room.owner} has room for "
        f"{cast(int, room.n_bytes) / 1e9:.3g} GB.",
        "Set shuffle=False, which visits them in the order in which they lie; or use a model that "
        "is fitted by sums, such as LogisticRegression or LeastSquaresClassifier.",
    )


def _check_disk(rows: ChunkedRows, n_bytes: int) -> None:
    """An error where the disk has no room for the rows, as they come and in order."""
    free = free_in(rows.folder)
    if free < 2 * n_bytes:
        raise SourceError(
            f"To be visited in a random order, the {rows.n_rows:,} rows are put in order on disk. "
            f"That takes {2 * n_bytes / 1e9:.3g} GB; {name_of(rows.folder)} has room for "
            f"{free / 1e9:.3g} GB.",
            "Name a folder with room, scan(..., cache='...'); or set shuffle=False, which visits "
            "them in the order in which they lie.",
        )


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
            visits = Visits(chunk.map_sum(collect).joined(), coordinates, again=False)
            return visits.weighted(factor).fold(step, state)

        return self.rows.fold(of_chunk, state)

    def weighted(self, factor: float) -> "Streamed":
        """The same rows, their weights multiplied."""
        return replace(self, factor=self.factor * factor)
