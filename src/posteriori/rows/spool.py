"""What files hold, decoded once and kept on disk, so that later passes need not decode it again."""

import io
import mmap
import os
import tempfile
import threading
import weakref
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import IO, Any, Literal, NamedTuple

from posteriori.errors import ParameterError, SourceError
from posteriori.rows.kept import room_here

_SHARE_OF_MEMORY = 4
"""Where nobody asks for it, a spool takes a quarter of the memory at most: so much the system can
keep at hand, beside all else."""

_SHARE_OF_DISK = 2
"""And half of what is free on the disk."""


class _Place(NamedTuple):
    """Where a table lies in the file, in bytes."""

    offset: int
    length: int


class Spool:
    """Tables by the number of their first row, in a file without a name.

    They lie there as they do in memory, and are mapped into it one at a time. Nobody else can cut
    the file short under a reader, and it is gone with its last reader, however the process ends.

    `folder` is where it lies (None: where temporary files do). One that is kept "if it fits" is
    given up where there is no room for it; for one that is kept "always" that is an error.
    """

    def __init__(
        self,
        kept: Literal["never", "if it fits", "always"] = "never",
        folder: str | None = None,
    ) -> None:
        self._kept, self._folder = kept, folder
        self._adding = threading.Lock()
        self._close = weakref.finalize(self, lambda: None)
        self._forget()

    def __reduce__(self) -> tuple[Any, ...]:
        """Without the file, which belongs to this process."""
        return Spool, (self._kept, self._folder)

    def fresh(self) -> "Spool":
        """An empty one in the same place."""
        return Spool(self._kept, self._folder)

    def _forget(self) -> None:
        self._close()
        self._file: IO[bytes] | None = None
        self._places: dict[int, _Place] = {}
        self._starts: list[int] = []
        self._end = 0
        self._limit = float("inf")

    @property
    def is_whole(self) -> bool:
        """Whether the tables can be had from here."""
        return bool(self._starts)

    @contextmanager
    def filling(self) -> Iterator[None]:
        """Tables are taken in within, and can be had afterwards."""
        self._forget()
        if self._kept != "never":
            self._open()
        try:
            yield
        except BaseException:
            self._forget()
            raise
        if self._end > self._limit:
            self._forget()
        self._starts = sorted(self._places)

    def _open(self) -> None:
        try:
            self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115, closed with self
            self._close = weakref.finalize(self, self._file.close)
            if self._kept == "if it fits":
                self._limit = _room_for(self._file)
        except OSError as error:
            self._give_up(error)

    def put(self, start: int, table: Any) -> None:
        """Take in a table; several threads may do so at once."""
        if self._file is None or self._end > self._limit:
            return
        pieces = _pieces(table)
        length = sum(map(len, pieces))
        with self._adding:
            place = _Place(self._end, length)
            self._end += -(-length // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY
            self._places[start] = place
        if self._end <= self._limit:
            try:
                _write(self._file.fileno(), pieces, place.offset)
            except OSError as error:
                self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        """Do without; an error where the user has asked for it."""
        self._limit = -1
        if self._kept == "always":
            folder = tempfile.gettempdir() if self._folder is None else self._folder
            raise SourceError(
                f"What was read cannot be kept in {folder}: {error}.",
                "Name a folder with room, cache='...'; or have the files read in each pass, "
                "cache=False.",
            ) from error

    def tables(self, low: int, high: int | None = None) -> Iterator[tuple[int, Any]]:
        """The tables that begin in these rows, each with the number of its first row."""
        first = bisect_left(self._starts, low)
        last = len(self._starts) if high is None else bisect_left(self._starts, high)
        starts = self._starts[first:last]
        for start, following in zip(starts, [*starts[1:], None], strict=True):
            if following is not None:
                self._ask_for(self._places[following])
            yield start, self._table(self._places[start])

    def _table(self, place: _Place) -> Any:
        pyarrow, ipc = import_module("pyarrow"), import_module("pyarrow.ipc")
        offset, length = place
        window = mmap.mmap(self._number, length, access=mmap.ACCESS_READ, offset=offset)
        return ipc.open_stream(pyarrow.py_buffer(window)).read_all()

    def _ask_for(self, place: _Place) -> None:
        """Have the system read it from the disk, where it is not in memory any more."""
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._number, *place, os.POSIX_FADV_WILLNEED)

    @property
    def _number(self) -> int:
        assert self._file is not None
        return self._file.fileno()


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


def _write(file: int, pieces: list[Any], offset: int) -> None:
    for piece in pieces:
        rest = memoryview(piece)
        while len(rest):
            written = os.pwrite(file, rest, offset)
            rest, offset = rest[written:], offset + written


def _room_for(file: IO[bytes]) -> float:
    """Bytes that may be kept without being asked for."""
    disk, memory = os.fstatvfs(file.fileno()), room_here().n_bytes
    free = disk.f_bavail * disk.f_frsize / _SHARE_OF_DISK
    return free if memory is None else min(free, memory / _SHARE_OF_MEMORY)


def read_cache(cache: Any) -> Spool:
    """What the user asked for: a spool where there is room, in any case, in a folder, or none."""
    has_means = hasattr(os, "pwrite")
    if cache is None:
        return Spool("if it fits" if has_means else "never")
    if cache is False:
        return Spool("never")
    if cache is not True and not isinstance(cache, str | os.PathLike):
        raise ParameterError(
            f"cache={cache!r} is neither True, False, None nor a folder.",
            "Leave it out, or name a folder with room for what is read.",
        )
    if not has_means:
        raise ParameterError(
            "What is read cannot be kept in a file on this system.",
            "Leave cache out: the files are read in each pass.",
        )
    folder = None if cache is True else os.path.expanduser(os.fspath(cache))
    if folder is not None and not os.path.isdir(folder):
        raise ParameterError(f"cache={cache!r} is no folder.", "Make it, or name another.")
    return Spool("always", folder)
