"""Rows that lie elsewhere in chunks: a first look learns what they are, later passes sum them."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import perf_counter
from typing import Any, NamedTuple, Self, TypeVar, cast

import numpy as np

from posteriori.errors import Interrupted, LabelError, ParameterError
from posteriori.rows.chunk import SIDES, AsSides, Chunk, Lens, Reader
from posteriori.rows.in_memory import MemoryRows
from posteriori.rows.kept import Here, Kept, Room, room_here
from posteriori.rows.look import (
    Drawn,
    Look,
    SeenLabels,
    numbers_seen,
    sample_halvings,
    sample_limit,
)
from posteriori.rows.progress import Passes
from posteriori.rows.rows import Kernel, Rows
from posteriori.rows.schema import Column, Schema, merge_columns
from posteriori.typing import Labels

S = TypeVar("S")
T = TypeVar("T")

_counting = threading.Lock()


@dataclass
class PassLog:
    """How often the rows were read, and how much of them."""

    passes: int = 0
    bytes_read: int = 0
    seconds: float = 0.0
    _told: "PassLog | None" = None

    def read(self, n_bytes: int) -> None:
        """Count bytes that one of several threads has read."""
        with _counting:
            self.bytes_read += n_bytes

    def since_last(self) -> "PassLog":
        """What came on top since this was last asked."""
        last = self._told or PassLog()
        self._told = replace(self)
        return self.since(last)

    def since(self, last: "PassLog") -> "PassLog":
        """What came on top since the log was as `last`."""
        return PassLog(
            self.passes - last.passes,
            self.bytes_read - last.bytes_read,
            self.seconds - last.seconds,
        )

    def __str__(self) -> str:
        """How often, and how much in memory: decoded, and without columns that are not needed.

        >>> str(PassLog(7, 16_350_000_000, 8.1))
        '7, 16.4 GB read'
        """
        size, units = float(self.bytes_read), ["B", "kB", "MB", "GB", "TB"]
        while size >= 1000 and len(units) > 1:
            size, units = size / 1000, units[1:]
        return f"{self.passes}, {size:.3g} {units[0]} read"


@dataclass(frozen=True, eq=False)
class Known:
    """Columns of a fit; and its classes, where there may be no others."""

    schema: Schema
    classes: Labels | None


class Sampled(NamedTuple):
    """Some rows in memory, and how many times their weight all rows have."""

    rows: MemoryRows
    times: float


@dataclass(frozen=True, eq=False)
class ChunkedRows(ABC):
    """`Rows` of a source that is read chunk by chunk, each time they are summed.

    `real` says that the target is a number, `soft_classes` what the user calls columns of shares
    that do not name themselves. `known` has the columns and classes of rows that a
    model was fitted to before, if these are more of them. `sides` are those of a `Reader`. The
    chunks are seen `through` lenses, the first of them first; if these leave rows without weight,
    `some` says that they are not to be counted.
    """

    real: bool = field(default=False, kw_only=True)
    soft_classes: Any = field(default=None, kw_only=True)
    log: PassLog = field(default_factory=PassLog, kw_only=True)
    progress: Passes = field(default_factory=Passes, kw_only=True)
    known: "Known | None" = field(default=None, kw_only=True)
    sides: tuple[int, ...] | None = field(default=None, kw_only=True)
    through: tuple[Lens, ...] = field(default=(), kw_only=True, repr=False)
    some: bool = field(default=False, kw_only=True)
    _seen: list[Look] = field(default_factory=list, kw_only=True, repr=False)

    @property
    def look(self) -> Look:
        """What a first look at all rows has learnt, when it is first asked for."""
        if not self._seen:
            self._seen.append(self._first_look())
        return self._seen[0]

    @property
    def drawn(self) -> Drawn:
        """Some of the rows, as the first look has brought them along; else by a pass."""
        look = self.look
        if not look.drawn.n_rows:
            d = len(look.columns)
            limit, halvings = sample_limit(d), sample_halvings(look.n_rows, d)
            with self.one_pass(look.n_rows):
                found = self._draw(limit, halvings)
            look = self._seen[0] = replace(look, drawn=found)
        return look.drawn

    @abstractmethod
    def _first_look(self) -> Look:
        """Look at all rows."""

    @abstractmethod
    def _draw(self, limit: int, halvings: int) -> Drawn:
        """Some of the rows, by one pass."""

    @abstractmethod
    def _sum(self, kernel: Kernel[S], block_entries: int | None) -> S:
        """The sum of one pass."""

    def each(self, make: Callable[[Chunk], list[T]], receive: Callable[[list[T]], object]) -> None:
        """`receive` gets what `make` gives for the chunks, in the order of the rows."""
        raise ParameterError(
            "Answers for these rows are not written to a file.",
            "Pass the collection itself: the answers are a collection like it.",
        )

    @abstractmethod
    def fold(self, step: Callable[[T, MemoryRows], T], state: T) -> T:
        """The state after `step` has seen the chunks one after the other, in their order: a pass.

        What has been learnt goes from chunk to chunk, and the rows stay where they lie.
        """

    def keep(self, kernel: Kernel[S], make: Callable[[S], T]) -> Kept[T]:
        """What `make` gives for a sum of all rows as large as they are, kept near them: a pass."""
        return Here(make(self.map_sum(kernel)))

    def look_ahead(self, gather: Callable[[Rows], S]) -> S | None:
        """What `gather` makes of the rows along with the first look; None if it is to do so later.

        It may have to where there was a look before, or where that finds more than a few rows show.
        """
        return None

    @property
    @abstractmethod
    def has_offsets(self) -> bool:
        """Whether rows have numbers that are added to the activations."""

    @property
    def files(self) -> Sequence[str]:
        """The files that the rows are read from, where there are any."""
        return ()

    @property
    def folder(self) -> str | None:
        """Where what memory should not hold is kept on disk; None: with other temporary files."""
        return None

    @property
    def room(self) -> Room:
        """The memory that something can be kept in."""
        return room_here()

    def map_sum(self, kernel: Kernel[S], *, block_entries: int | None = None) -> S:
        """Run `kernel` on every block, and add up what comes back in the order of the rows."""
        with self.one_pass(self.n_source):
            found = self._sum(kernel, block_entries)
        self.progress.objective = getattr(found, "objective", None)
        return found

    @contextmanager
    def one_pass(self, n_rows: int | None) -> Iterator[None]:
        """A pass over the rows: counted, told of, and named if it is interrupted."""
        begun = perf_counter()
        try:
            self.progress.begin(n_rows)
            yield
        except KeyboardInterrupt as error:
            raise _stopped(f"in {self.progress.now}") from error
        finally:
            self.progress.end()
        self.log.passes += 1
        self.log.seconds += perf_counter() - begun

    @contextmanager
    def between_passes(self) -> Iterator[None]:
        """What is done with the rows, in passes or not: named if it is interrupted."""
        try:
            yield
        except Interrupted:  # in a pass, or in an epoch
            raise
        except KeyboardInterrupt as error:
            now = self.progress.now
            raise _stopped("before the first pass" if now is None else f"after {now}") from error

    @cached_property
    def schema(self) -> Schema:
        return self._learnt_schema() if self.known is None else self.known.schema

    def _learnt_schema(self) -> Schema:
        return self.look.schema()

    @property
    def n_rows(self) -> int:
        return self._counted_rows[1] if self.some or self.sides is not None else self.n_source

    @property
    def n_source(self) -> int:
        """All rows, where `n_rows` are only those that are compared, or have a weight."""
        return self.look.n_rows

    @property
    def width(self) -> float:
        """Numbers of a row, on average."""
        stored = self.look.n_stored
        return len(self.schema) if stored is None else max(stored / self.n_source, 1.0)

    @property
    def _weight(self) -> float:
        return self._counted_rows[0] if self.sides is not None else self.look.weight

    @cached_property
    def _counted_rows(self) -> tuple[float, int]:
        """The weight of the rows whose classes are compared, and the number of those with some."""
        classes = self._all_classes
        if self.sides is not None:
            classes = classes[np.array(self.sides) >= 0]
        return cast(SeenLabels, self.look.labels).of(classes)

    @cached_property
    def classes(self) -> Labels | None:
        if self.real or self.look.labels is None:
            return None
        return self._all_classes if self.sides is None else SIDES

    @property
    def _all_classes(self) -> Labels:
        given = None if self.known is None else self.known.classes
        return cast(SeenLabels, self.look.labels).classes() if given is None else given

    @property
    def soft(self) -> bool:
        return not self.real and self.look.labels is not None and self.look.labels.soft

    @cached_property
    def reader(self) -> Reader:
        """How a chunk becomes rows in memory."""
        classes = None if self.classes is None else self._all_classes
        return Reader(self.schema, classes, self.real, self.soft_classes, self.sides)

    @cached_property
    def sample(self) -> Sampled:
        """Some of the rows, in memory: as many as were brought there."""
        return self._sampled(self.drawn)

    def one_in(self, many: int) -> Sampled:
        """One row in `many`, a power of two, of those that were brought into memory."""
        return self._sampled(self.drawn.halved(many.bit_length() - 1))

    def _sampled(self, drawn: Drawn) -> Sampled:
        rows = drawn.rows(self.reader)
        weight = float(rows.n_rows if rows.weight is None else rows.weight.sum())
        return Sampled(rows, self._weight / weight if weight else float("inf"))

    def comparing(self, sides: Sequence[int]) -> Self:
        """The same rows with two labels: for each class its side, 0 or 1, or -1 for neither."""
        return replace(self, sides=tuple(sides))

    def with_sides_as_labels(self) -> Self:
        """The same rows; where classes are compared, as rows that have no other labels."""
        if self.sides is None:
            return self
        seen, sides = cast(SeenLabels, self.look.labels), np.array(self.sides)
        weight, count = zip(
            *(seen.of(self._all_classes[sides == side]) for side in SIDES), strict=True
        )
        labels = SeenLabels(SIDES, np.array(weight), np.array(count, dtype=np.float64))
        found = self.weighed(AsSides(self.reader), labels)
        return replace(found, sides=None, known=Known(self.schema, None))

    def weighed(self, lens: Lens, labels: SeenLabels) -> Self:
        """The same rows with the weights of a lens, under which the labels have others too."""
        look = self.look
        seen = replace(
            look,
            labels=labels,
            weight=float(labels.weight.sum()),
            drawn=look.drawn.seen_through(lens),
        )
        return replace(self, through=(*self.through, lens), some=True, _seen=[seen])

    def seen_as_numbers(self, lens: Lens, n_columns: int) -> Self:
        """The same rows, in place of whose columns a lens gives so many numbers."""
        classes = None if self.look.labels is None else self._all_classes
        return replace(
            self,
            through=(*self.through, lens),
            known=Known(Schema.unnamed(n_columns), classes),
            _seen=[numbers_seen(self.look, n_columns)],
        )

    def without_labels(self) -> Self:
        """The same rows, whatever their target is."""
        known = None if self.known is None else replace(self.known, classes=None)
        seen = replace(self.look, labels=None)
        return replace(self, known=known, some=False, _seen=[seen])

    def known_as(self, schema: Schema, classes: Labels | None, new_levels: bool = False) -> Self:
        """More rows of a model that was fitted to these columns and classes.

        With `new_levels`, categorical columns may have more levels than they had.
        """
        if new_levels:
            found = {column.name: column for column in self._learnt_schema().columns}
            columns = (_with_more(column, found.get(column.name)) for column in schema.columns)
            schema = replace(schema, columns=tuple(columns))
        return replace(self, known=Known(schema, classes))

    def read_as(self, schema: Schema | None, classes: Labels | None = None) -> Self:
        """The same rows, read as those of a fit, where the source itself leaves that open."""
        return self

    def with_numbers(self) -> Self:
        """The same rows with the target as a number."""
        if self.look.labels is None:
            raise LabelError("The rows have no target.", "Name one: scan(source, target=...).")
        return replace(self, real=True)


def _with_more(column: Column, found: Column | None) -> Column:
    if column.kind != "categorical" or found is None:
        return column
    return merge_columns(column, found)


def _stopped(where: str) -> Interrupted:
    return Interrupted(
        f"Stopped {where}.",
        "What was being fitted is as it was before. Fit again; what a first look at the same rows "
        "has learnt is kept.",
    )
