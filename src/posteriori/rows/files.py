"""Rows in files larger than memory: CSV, Parquet and Arrow IPC, by pyarrow.dataset."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from itertools import chain
from typing import Any, TypeVar, cast

from posteriori.errors import DataError, ScaleError, SourceError
from posteriori.rows.ahead import Glimpse, Surprise, gather_ahead
from posteriori.rows.arrow import together
from posteriori.rows.chunk import Chunk, Reader, Roles, told_where
from posteriori.rows.chunked import ChunkedRows
from posteriori.rows.csv import CsvFiles, until_types_hold
from posteriori.rows.datasets import check_types, without_index
from posteriori.rows.in_memory import MemoryRows
from posteriori.rows.look import Drawn, Look, look_at, sample_halvings, whole_look
from posteriori.rows.mark import Mark
from posteriori.rows.parquet import Part, parts_of
from posteriori.rows.progress import Passes, read_progress
from posteriori.rows.rows import Kernel, Rows
from posteriori.rows.schema import Schema
from posteriori.rows.spool import Spool, read_cache
from posteriori.rows.threads import map_in_order
from posteriori.typing import Labels

S = TypeVar("S")
T = TypeVar("T")

BATCH_ENTRIES = 2**22
"""Numbers that are read at once: 32 MiB of doubles."""

_LONGEST_BATCH = 2**17
_READ_AHEAD = 4
"""Batches that are read while others are summed."""


@dataclass(frozen=True, eq=False)
class FileRows(ChunkedRows):
    """Rows of a pyarrow dataset, or of CSV files whose types are learnt in the first look.

    The next batches are read while these are summed. After the first look they come from the
    `spool`, where there is one.
    """

    dataset: Any
    roles: Roles
    marks: tuple[Mark, ...] = ()
    declared: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    spool: Spool = field(default_factory=Spool)

    @property
    def files(self) -> Sequence[str]:
        return [mark.path for mark in self.marks]

    @property
    def folder(self) -> str | None:
        return self.spool.folder

    @property
    def has_offsets(self) -> bool:
        return self.roles.offset is not None

    @property
    def _columns(self) -> list[str]:
        return self.roles.needed(self.dataset.schema.names)

    @cached_property
    def _batch_rows(self) -> int:
        return max(1, min(_LONGEST_BATCH, BATCH_ENTRIES // max(len(self._columns), 1)))

    def _learnt_schema(self) -> Schema:
        return self._schema_of(self.look)

    def _schema_of(self, look: Look) -> Schema:
        return self.roles.with_levels(look.schema().in_order(self.declared))

    @cached_property
    def _parts(self) -> list[Part] | None:
        with self._watched():
            return parts_of(self.dataset)

    def read_as(self, schema: Schema | None, classes: Labels | None = None) -> "FileRows":
        if not isinstance(self.dataset, CsvFiles):
            return self
        columns = () if schema is None else schema.columns
        text = [column.name for column in columns if column.kind == "categorical"]
        if isinstance(self.roles.target, str) and classes is not None:
            text += [self.roles.target] * all(isinstance(label, str) for label in classes)
        dataset = self.dataset.with_text(text)
        if dataset is self.dataset:
            return self
        return replace(self, dataset=dataset, spool=self.spool.fresh(), _seen=[])

    def _first_look(self) -> Look:
        def look() -> Look:
            least, found = self._least_halvings(), list[Look]()

            def see(start: int, table: Any) -> Look:
                known = max(least, found[0].drawn.halvings if found else 0)
                return self._look_at(start, table, known)

            self.spool.begin()
            self._see_all(see, found)
            whole = whole_look(found)
            self._keep_whole(whole.n_rows)
            return whole

        return until_types_hold(look)

    def _keep_whole(self, n_rows: int) -> None:
        """Keep no tables that come one after the other, unless all: they are of use together."""
        if self._parts is None:
            self.spool.drop_unless(0, n_rows)

    def _see_all(self, see: Callable[[int, Any], T], found: list[T]) -> None:
        """A pass that adds up what `see` makes of all tables."""
        parts = self._parts
        with self.one_pass(None if parts is None else sum(part.n_rows for part in parts)):
            self._fold(see, lambda seen: _add_to(found, seen))

    def _chunk(self, start: int, table: Any) -> Chunk:
        found = self.roles.split(table)
        return found.seen_through(self.through, _where(start, table.num_rows))

    def _look_at(self, start: int, table: Any, halvings: int | None = None) -> Look:
        """A look at a table, which draws rows if it is said how seldom."""
        chunk, where = self._chunk(start, table), _where(start, table.num_rows)
        if halvings is None:
            return look_at(start, chunk, where, self.soft_classes)
        return look_at(start, chunk, where, self.soft_classes, halvings=halvings, start=start)

    def look_ahead(self, gather: Callable[[Rows], S]) -> S | None:
        as_they_are = self.known is None and self.sides is None and not self.real
        if self._seen or not as_they_are or not self._parts:
            return None
        glimpse = self._glimpse(self._parts)
        return None if glimpse is None else gather_ahead(self, glimpse, gather)

    def _glimpse(self, parts: Sequence[Part]) -> Glimpse | None:
        """What a few rows show; None if something is wrong with them, which all rows will tell."""
        few = {parts[i].start: parts[i] for i in (0, len(parts) // 2, -1)}
        looks: list[Look] = []

        def see(part: Part) -> Look:
            return self._look_at(*next(self._tables_of(part)))

        try:
            with self._watched():
                map_in_order(see, list(few.values()), looks.append)
            look = whole_look(looks)
            if look.labels is None:
                return None
            schema = self._schema_of(look)
            return Glimpse(schema, look.labels.classes(), look.labels.soft)
        except DataError:
            return None

    def look_and_sum(self, glimpse: Glimpse, kernel: Kernel[S], block_entries: int | None) -> S:
        reader = Reader(glimpse.schema, glimpse.classes, named=self.soft_classes)
        surprises, found = list[int](), list[_Seen]()

        def see(start: int, table: Any) -> _Seen:
            seen = None if surprises else add_up(start, table)
            if seen is None:
                surprises.append(start)
            return seen or _Seen(self._look_at(start, table), _Total())

        def add_up(start: int, table: Any) -> _Seen | None:
            chunk, where = self._chunk(start, table), _where(start, table.num_rows)
            with suppress(DataError):
                rows = reader(chunk, start, where)
                known = glimpse.look_at(start, chunk, rows)
                look = known or self._look_at(start, table)
                if known or glimpse.covers(look):
                    return _Seen(look, _Total(rows.n_rows, rows.add_up(kernel, block_entries)))
            return None

        self.spool.begin_if_asked()
        self._see_all(see, found)
        self._seen.append(whole_look([seen.look for seen in found]))
        if surprises or not glimpse.is_of(self):
            raise Surprise
        return cast(S, found[0].beside.value)

    def _least_halvings(self) -> int:
        """Halvings of the sample that will be needed, where files tell how many rows they have."""
        n_rows = sum(part.n_rows for part in self._parts or ())
        return sample_halvings(n_rows, len(self.roles.features(self.dataset.schema.names)))

    def _draw(self, limit: int, halvings: int) -> Drawn:
        found: list[Drawn] = []
        self.spool.go_on()

        def draw(start: int, table: Any) -> Drawn:
            return Drawn.of(start, self._chunk(start, table), limit, halvings)

        self._fold(draw, lambda drawn: _add_to(found, drawn))
        return found[0]

    def _sum(self, kernel: Kernel[S], block_entries: int | None) -> S:
        reader, total = self.reader, _Total()
        self.spool.go_on()

        def add_up(start: int, table: Any) -> _Total:
            rows = reader(self._chunk(start, table), start, _where(start, table.num_rows))
            return _Total(rows.n_rows, rows.add_up(kernel, block_entries))

        self._fold(add_up, total.add)
        self._check_number(total.n_rows)
        self._keep_whole(total.n_rows)
        return cast(S, total.value)

    def fold(self, step: Callable[[T, MemoryRows], T], state: T) -> T:
        reader, seen = self.reader, 0
        with self.one_pass(self.n_source), self._watched():
            for start, table in self._tables():
                rows = reader(self._chunk(start, table), start, _where(start, table.num_rows))
                state = step(state, rows)
                self.progress.advance(rows.n_rows)
                seen += rows.n_rows
            self._check_number(seen)
        return state

    def _check_number(self, n_rows: int) -> None:
        """An error where a pass met more rows, or fewer, than the first look."""
        if n_rows != self.n_source:
            raise SourceError(
                f"The source has {n_rows:,} rows, and had {self.n_source:,} when it was first "
                "looked at.",
                "Scan again, and fit to what is there now.",
            )

    def each(self, make: Callable[[Chunk], list[T]], receive: Callable[[list[T]], object]) -> None:
        answered = 0

        def made(start: int, table: Any) -> _Total:
            rest = table.slice(max(answered - start, 0))  # after a column got a wider type
            try:
                return _Total(rest.num_rows, make(self.roles.split(rest)) if rest.num_rows else [])
            except (DataError, ScaleError) as error:
                raise told_where(error, _where(start, table.num_rows)) from error

        def take_in(made: _Total) -> None:
            nonlocal answered
            answered += made.n_rows
            receive(made.value)

        def answer() -> None:
            with self.one_pass(None):
                self._fold(made, take_in)

        until_types_hold(answer)
        if self._seen:
            self._check_number(answered)

    def _fold(self, task: Callable[[int, Any], T], receive: Callable[[T], object]) -> None:
        """`receive` gets `task` of every table and the number of its first row, in order.

        What `task` gives for the tables of one part is added up by the thread that reads them.
        """

        def of_part(part: Part) -> tuple[int, T]:
            found: list[Any] = []
            for start, table in self._tables_of(part):
                _add_to(found, task(start, table))
            return part.n_rows, cast(T, found[0])

        def of_table(each: tuple[int, Any]) -> tuple[int, T]:
            return each[1].num_rows, task(*each)

        def take_in(result: tuple[int, T]) -> None:
            receive(result[1])
            self.progress.advance(result[0])

        with self._watched():
            if self._parts is not None:
                map_in_order(of_part, self._parts, take_in)
            else:
                map_in_order(of_table, self._stream(), take_in)

    def _tables(self) -> Iterator[tuple[int, Any]]:
        """Tables and the numbers of their first rows, in the order of files and rows."""
        if self._parts is None:
            return self._stream()
        return chain.from_iterable(map(self._tables_of, self._parts))

    def _tables_of(self, part: Part) -> Iterator[tuple[int, Any]]:
        kept = self.spool.find(part.start, part.start + part.n_rows)
        return self._counted(self._decoded(part) if kept is None else kept)

    def _decoded(self, part: Part) -> Iterator[tuple[int, Any]]:
        start = part.start
        try:
            batches = part.batches(self._columns, self.dataset.schema, self._batch_rows)
            for table, was_decoded in batches:
                if was_decoded:
                    self.spool.put(start, table)
                yield start, table
                start += table.num_rows
            if start != part.start + part.n_rows:
                raise OSError("it has fewer rows than it says")
        except (OSError, import_module("pyarrow").ArrowException) as error:
            raise SourceError(
                f"The file {part.path} cannot be read: {error}.", "Look at it, or leave it out."
            ) from error

    def _stream(self) -> Iterator[tuple[int, Any]]:
        """The same by pyarrow's scanner, which reads ahead."""
        kept = self.spool.find(0, self.n_source) if self._seen else None
        return self._counted(self._scanned() if kept is None else kept)

    def _scanned(self) -> Iterator[tuple[int, Any]]:
        batches = self.dataset.to_batches(
            columns=self._columns,
            batch_size=self._batch_rows,
            batch_readahead=_READ_AHEAD,
            fragment_readahead=1,
        )
        start = 0
        for table in together(batches, self._batch_rows, 8 * BATCH_ENTRIES):
            self.spool.put(start, table)
            yield start, table
            start += table.num_rows

    def _counted(self, tables: Iterator[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
        for start, table in tables:
            self.log.read(table.nbytes)
            yield start, table

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """What goes wrong within is told with the file that has changed, if one has."""
        for mark in self.marks:
            mark.check()
        arrow_error = import_module("pyarrow").ArrowException
        try:
            yield
        except (arrow_error, OSError, SourceError) as error:
            for mark in self.marks:
                mark.check()
            if isinstance(error, SourceError):
                raise
            raise SourceError(
                f"The source cannot be read: {error}.",
                "Look at the file; for CSV, name the types in a pyarrow dataset of your own.",
            ) from error
        for mark in self.marks:
            mark.check()


@dataclass
class _Total:
    """A sum, and of how many rows it is."""

    n_rows: int = 0
    value: Any = None

    def add(self, other: "_Total") -> None:
        self.value = other.value if self.value is None else self.value + other.value
        self.n_rows += other.n_rows

    def __add__(self, other: "_Total") -> "_Total":
        if self.value is None or other.value is None:
            return self if other.value is None else other
        return _Total(self.n_rows + other.n_rows, self.value + other.value)


@dataclass(frozen=True, eq=False)
class _Seen:
    """A look at tables, and what was summed beside."""

    look: Look
    beside: _Total

    def __add__(self, other: "_Seen") -> "_Seen":
        return _Seen(self.look + other.look, self.beside + other.beside)


def _add_to(total: list[Any], value: Any) -> None:
    """Add to a sum, which is a list of nothing before the first."""
    total[:] = [total[0] + value] if total else [value]


def _where(start: int, n_rows: int) -> str:
    return f"In rows {start:,} to {start + n_rows - 1:,}, counted from 0 there"


def file_rows(
    dataset: Any,
    roles: Roles,
    classes: Any,
    declared: Mapping[str, tuple[Any, ...]],
    progress: Any,
    cache: Any,
) -> FileRows:
    """The rows of a dataset, with the marks of its files.

    `declared` has the order of the levels of columns, where a frame has one.
    """
    spool = read_cache(cache)
    if isinstance(dataset, import_module("pyarrow.dataset").InMemoryDataset):
        spool = Spool("never", spool.folder)
    features = roles.features(without_index(dataset.schema, roles))
    roles = replace(roles, columns=tuple(features))
    if isinstance(dataset, CsvFiles):
        dataset = dataset.with_text(roles.categories)
        dataset.declare_doubles([*features, *filter(None, (roles.weight, roles.offset))])
    files = getattr(dataset, "files", ())
    marks = tuple(Mark.of(path) for path in files if os.path.exists(path))
    check_types(dataset.schema, roles)
    passes = Passes(read_progress(progress))
    return FileRows(dataset, roles, marks, declared, spool, soft_classes=classes, progress=passes)
