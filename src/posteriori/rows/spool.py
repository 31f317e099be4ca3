"""What files hold, decoded once and kept on disk, so that later passes need not decode it again."""

import io
import os
from collections.abc import Iterator, Sequence
from importlib import import_module
from threading import get_ident
from time import perf_counter
from typing import Any, Literal, NamedTuple, cast

from posteriori.errors import ParameterError, SourceError
from posteriori.rows.kept import room_here
from posteriori.rows.scratch import Place, Scratch, free_in, name_of

_OF_MEMORY = 1 / 4
"""Where nobody asks for it, a spool takes this share of the memory at most: so much the system can
keep at hand, beside all else."""

_OF_DISK = 1 / 2
"""And of what is free on the disk."""

_DEAR = 2.0
"""And each table of it at most so often the time to read one, which two later passes save. A system
has who writes wait for the disk, when too much is still to be written there. The rest is left for
the next pass."""

_LITTLE = 0.02
"""Seconds a table that are never too much: nobody waits for the disk in so short a time."""

_JUDGED = 4
"""Tables by which this is judged, the last of them most."""

Kept = Literal["never", "if it fits", "always"]


class Spool:
    """Tables by the number of their first row, on disk as they lie in memory.

    `folder` is where (None: where temporary files do). Kept "if it fits", it takes in tables as
    long as there is room for them; if they are kept "always", it is an error that there is none.
    """

    def __init__(self, kept: Kept = "never", folder: str | None = None) -> None:
        self._kept, self.folder = kept, folder
        self._held: _Held | None = None
        self._has_begun = False

    def __reduce__(self) -> tuple[Any, ...]:
        """Without the file, which belongs to this process."""
        return Spool, (self._kept, self.folder)

    def fresh(self) -> "Spool":
        """An empty one in the same place."""
        return Spool(self._kept, self.folder)

    def begin(self) -> None:
        """Take in tables from now on, and forget those before."""
        self._has_begun = True
        self._held = None if self._kept == "never" else _Held(self._kept, self.folder)

    def go_on(self) -> None:
        """Take in what is not here yet."""
        if not self._has_begun:
            self.begin()
        elif self._held is not None:
            self._held.go_on()

    def begin_if_asked(self) -> None:
        """Take in tables from now on if the user wants it, though they may not be needed again."""
        if self._kept == "always":
            self.begin()

    def put(self, start: int, table: Any) -> None:
        """Take in a table, unless it is here; several threads may do so at once."""
        held = self._held
        if held is not None and start not in held.tables:
            held.put(start, table)

    def find(self, low: int, high: int) -> Iterator[tuple[int, Any]] | None:
        """The tables of these rows, each with the number of its first row; None if one is not here.

        They are read while others may begin the spool again.
        """
        return None if self._held is None else self._held.find(low, high)

    def drop_unless(self, low: int, high: int) -> None:
        """Keep nothing, if there is no room for all these rows."""
        held = self._held
        if held is not None and held.is_full and held.find(low, high) is None:
            self._held = None


class _Table(NamedTuple):
    """Where a table lies, and how many rows it has."""

    place: Place
    n_rows: int


class _Held:
    """The tables of one file; `is_full` says that there was no room for more."""

    def __init__(self, kept: Kept, folder: str | None) -> None:
        self._kept, self._folder = kept, folder
        self._scratch: Scratch | None = None
        self.tables: dict[int, _Table] = {}
        self.is_full = False
        self._limit = float("inf")
        self.go_on()
        try:
            self._scratch = Scratch(folder)
            if kept == "if it fits":
                self._limit = _room_in(folder)
        except OSError as error:
            self._give_up(error)

    def go_on(self) -> None:
        """Take in tables as long as that is not slow."""
        self._is_slow = False
        self._reading = self._writing = 0.0
        self._ends: dict[int, float] = {}
        self._n_judged = 0

    def put(self, start: int, table: Any) -> None:
        """Take in a table, if there is room and time."""
        if self._scratch is None or self._scratch.size + table.nbytes > self._limit:
            self.is_full = True
        if self.is_full or self._is_slow:
            return
        begun = perf_counter()
        try:
            place = cast(Scratch, self._scratch).add(_pieces(table))
            self.tables[start] = _Table(place, table.num_rows)
        except OSError as error:
            self._give_up(error)
        self._judge(begun, perf_counter())

    def _judge(self, begun: float, ended: float) -> None:
        """See whether writing has become slow beside reading; each thread does both."""
        before = self._ends.get(get_ident())
        self._ends[get_ident()] = ended
        if before is None or self._kept == "always":
            return
        self._reading += (begun - before - self._reading) / _JUDGED
        self._writing += (ended - begun - self._writing) / _JUDGED
        self._n_judged += 1
        most = max(_DEAR * self._reading, _LITTLE)
        self._is_slow |= self._n_judged >= _JUDGED and self._writing > most

    def _give_up(self, error: OSError) -> None:
        """Take in no more; an error where the user has asked for it."""
        self.is_full = True
        if self._kept == "always":
            raise SourceError(
                f"What was read cannot be kept in {name_of(self._folder)}: {error}.",
                "Name a folder with room, cache='...'; or have the files read in each pass, "
                "cache=False.",
            ) from error

    def find(self, low: int, high: int) -> Iterator[tuple[int, Any]] | None:
        """The tables of these rows; None if one is not here."""
        starts = []
        while low < high and low in self.tables:
            starts.append(low)
            low += self.tables[low].n_rows
        return self._read(starts) if low == high else None

    def _read(self, starts: Sequence[int]) -> Iterator[tuple[int, Any]]:
        pyarrow, ipc = import_module("pyarrow"), import_module("pyarrow.ipc")
        scratch = cast(Scratch, self._scratch)
        places = [self.tables[start].place for start in starts]
        for i, start in enumerate(starts):
            if i + 1 < len(places):
                scratch.ask_for(places[i + 1])
            yield start, ipc.open_stream(pyarrow.py_buffer(scratch.window(places[i]))).read_all()


class _Pieces(io.RawIOBase):
    """A file that remembers what is written to it, without copying it."""

    def __init__(self) -> None:
        self.found: list[Any] = []

    def writable(self) -> bool:
        return True

    def write(self, piece: Any) -> int:
        self.found.append(piece)
        return len(piece)


def _pieces(table: Any) -> list[Any]:
    """The bytes of a table, in order."""
    pyarrow, ipc = import_module("pyarrow"), import_module("pyarrow.ipc")
    out = _Pieces()
    with ipc.new_stream(pyarrow.PythonFile(out, "w"), table.schema) as writer:
        writer.write_table(table)
    return out.found


def _room_in(folder: str | None) -> float:
    """Bytes that may be kept without being asked for."""
    disk, memory = _OF_DISK * free_in(folder), room_here().n_bytes
    return disk if memory is None else min(disk, _OF_MEMORY * memory)


def read_cache(cache: Any) -> Spool:
    """What the user asked for: a spool where there is room, in any case, in a folder, or none."""
    if cache is None:
        return Spool("if it fits")
    if cache is False:
        return Spool("never")
    if cache is True:
        return Spool("always")
    if not isinstance(cache, str | os.PathLike):
        raise ParameterError(
            f"cache={cache!r} is neither True, False, None nor a folder.",
            "Leave it out, or name a folder with room for what is read.",
        )
    folder = os.path.abspath(os.path.expanduser(os.fspath(cache)))
    if not os.path.isdir(folder):
        raise ParameterError(f"cache={cache!r} is no folder.", "Make it, or name another.")
    return Spool("always", folder)
