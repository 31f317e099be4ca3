"""What files hold, decoded once and kept on disk, so that later passes need not decode it again."""

import io
import os
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Literal, cast
from weakref import WeakSet

from posteriori.errors import ParameterError, SourceError
from posteriori.rows.kept import room_here
from posteriori.rows.scratch import Place, Scratch, free_in, name_of

_SHARE_OF_MEMORY = 4
"""Where nobody asks for it, a spool takes a quarter of the memory at most: so much the system can
keep at hand, beside all else."""

_SHARE_OF_DISK = 2
"""And half of what is free on the disk."""


_unasked: WeakSet[Scratch] = WeakSet()
"""What this process keeps without having been asked to."""

Kept = Literal["never", "if it fits", "always"]


class Spool:
    """Tables by the number of their first row, on disk as they lie in memory.

    `folder` is where (None: where temporary files do). What is kept "if it fits" is given up where
    there is no room for it; for what is kept "always" that is an error.
    """

    def __init__(self, kept: Kept = "never", folder: str | None = None) -> None:
        self._kept, self.folder = kept, folder
        self._filled: _Filling | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Without the file, which belongs to this process."""
        return Spool, (self._kept, self.folder)

    def fresh(self) -> "Spool":
        """An empty one in the same place."""
        return Spool(self._kept, self.folder)

    @property
    def is_whole(self) -> bool:
        """Whether the tables can be had from here."""
        return self._filled is not None

    @contextmanager
    def filling(self) -> Iterator[Callable[[int, Any], None]]:
        """What takes in tables within, of several threads if need be; they can be had afterwards.

        Whoever fills it at the same time does so for himself, and the last one counts.
        """
        found = _Filling(self._kept, self.folder)
        yield found.put
        self._filled = found if found.places and not found.is_full else None

    def tables(self, low: int, high: int | None = None) -> Iterator[tuple[int, Any]]:
        """The tables that begin in these rows, each with the number of its first row."""
        pyarrow, ipc = import_module("pyarrow"), import_module("pyarrow.ipc")
        filled = cast(_Filling, self._filled)
        scratch, places = cast(Scratch, filled.scratch), filled.places
        starts = sorted(places)
        first = bisect_left(starts, low)
        last = len(starts) if high is None else bisect_left(starts, high)
        for i in range(first, last):
            if i + 1 < last:
                scratch.ask_for(places[starts[i + 1]])
            window = scratch.window(places[starts[i]])
            yield starts[i], ipc.open_stream(pyarrow.py_buffer(window)).read_all()


class _Filling:
    """The tables of one look, as they come in."""

    def __init__(self, kept: Kept, folder: str | None) -> None:
        self._kept, self._folder = kept, folder
        self.scratch: Scratch | None = None
        self.places: dict[int, Place] = {}
        self._limit = float("inf")
        if kept == "never":
            return
        try:
            self.scratch = Scratch(folder)
            if kept == "if it fits":
                self._limit = _room_in(folder)
                _unasked.add(self.scratch)
        except OSError as error:
            self._give_up(error)

    def put(self, start: int, table: Any) -> None:
        """Take in a table."""
        if self.scratch is None or self.is_full:
            return
        try:
            self.places[start] = self.scratch.add(_pieces(table))
        except OSError as error:
            self._give_up(error)

    @property
    def is_full(self) -> bool:
        """Whether there was no room for all."""
        return self.scratch is not None and self.scratch.size > self._limit

    def _give_up(self, error: OSError) -> None:
        """Do without; an error where the user has asked for it."""
        self._limit = -1
        if self._kept == "always":
            raise SourceError(
                f"What was read cannot be kept in {name_of(self._folder)}: {error}.",
                "Name a folder with room, cache='...'; or have the files read in each pass, "
                "cache=False.",
            ) from error


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
    """Bytes that may be kept without being asked for, beside those that are so already."""
    disk, memory = free_in(folder) / _SHARE_OF_DISK, room_here().n_bytes
    taken = sum(scratch.size for scratch in _unasked)
    return disk if memory is None else min(disk, memory / _SHARE_OF_MEMORY - taken)


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
