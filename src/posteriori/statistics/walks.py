"""Where rows are visited one after the other: in one memory, where they lie, or on disk.

The models that need sums leave their rows wherever they lie. A sequential solver needs the rows
themselves, many times over. In an order of its own it needs them in one memory, that of this
process or of one worker of the cluster on which they lie; or dealt out on disk into bins. In the
order in which they lie, they may stay there, and what has been learnt goes from chunk to chunk.
"""

from dataclasses import dataclass, replace
from typing import TypeVar, cast

from posteriori.errors import SourceError
from posteriori.rows.chunked import ChunkedRows
from posteriori.rows.kept import Kept
from posteriori.rows.memory import MemoryRows
from posteriori.rows.rows import Rows
from posteriori.rows.tables import SparseTable
from posteriori.statistics.bins import Shuffle, n_bins
from posteriori.statistics.collect import Collect, Collected
from posteriori.statistics.coordinates import Coordinates
from posteriori.statistics.dealt import Dealt, deal
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
    n_rows = _n_visits(rows)
    count = 1 if rows.is_far else n_bins(n_rows, len(rows.schema))
    if not shuffled and (rows.is_far or count > 1):
        return Streamed(rows, coordinates)
    _check_room(rows, 8 * n_rows * len(rows.schema) // count)
    return deal(rows, coordinates) if count > 1 else Asked(rows.keep(collect, put_together))


def _n_visits(rows: ChunkedRows) -> int:
    """Rows to be visited: one of several classes is several rows."""
    return rows.n_rows * (len(cast(Labels, rows.classes)) if rows.soft else 1)


def _check_room(rows: ChunkedRows, n_bytes: int) -> None:
    """An error if so many bytes of rows cannot be put in order in memory."""
    needed, (owner, room) = _COPIES * n_bytes + 2 * min(n_bytes, 8 * LAID_OUT), rows.room
    if room is None or needed <= room or isinstance(rows.sample.rows.table, SparseTable):
        return
    raise SourceError(
        f"To be visited in a random order, the {rows.n_rows:,} rows are put in order in memory. "
        f"That takes {needed / 1e9:.3g} GB at once; {owner} has room for {room / 1e9:.3g} GB.",
        "Set shuffle=False, which visits them in the order in which they lie; or use a model that "
        "is fitted by sums, such as LogisticRegression or LeastSquaresClassifier.",
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
