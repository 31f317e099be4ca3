"""A file without a name for what memory should not hold: written once, then mapped in parts."""

import mmap
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

_MAPPED = 2**20
"""Fewer bytes than this are read: each map takes one of the files that a process may have open."""


class Place(NamedTuple):
    """Where something lies in the file, in bytes."""

    offset: int
    length: int


class Scratch:
    """Bytes that are kept on disk, in `folder` or where temporary files lie.

    Nobody else can cut the file short under a reader. It is gone with this object and what was read
    from it, however the process ends.
    """

    def __init__(self, folder: str | None) -> None:
        self._file: Any = tempfile.TemporaryFile(buffering=0, dir=folder)  # noqa: SIM115, see below
        weakref.finalize(self, self._file.close)
        self._moving = threading.Lock()
        self.size = 0

    def add(self, pieces: Sequence[Any]) -> Place:
        """Keep bytes, in one run; several threads may do so at once."""
        length = sum(memoryview(piece).nbytes for piece in pieces)
        with self._moving:
            place = Place(self.size, length)
            self.size += -(-length // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY
        offset = place.offset
        for piece in pieces:
            rest = memoryview(piece).cast("B")
            while len(rest):
                written = self._write(rest, offset)
                rest, offset = rest[written:], offset + written
        return place

    def _write(self, piece: memoryview, offset: int) -> int:
        if hasattr(os, "pwrite"):
            return os.pwrite(self._file.fileno(), piece, offset)
        with self._moving:
            self._file.seek(offset)
            return int(self._file.write(piece))

    def window(self, place: Place) -> memoryview:
        """The bytes; many of them are in memory only where they are looked at."""
        offset, length = place
        if length >= _MAPPED:
            file = self._file.fileno()
            return memoryview(mmap.mmap(file, length, access=mmap.ACCESS_READ, offset=offset))
        with self._moving:
            self._file.seek(offset)
            return memoryview(self._file.read(length))

    def ask_for(self, place: Place) -> None:
        """Have the system read from the disk what will be needed next, unless it has it at hand."""
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._file.fileno(), *place, os.POSIX_FADV_WILLNEED)


def name_of(folder: str | None) -> str:
    """What to call a folder in a message; there may be none for temporary files."""
    return "the folder of temporary files" if folder is None else folder


def free_in(folder: str | None) -> int:
    """Bytes that are free on the disk of a folder, or of temporary files if these have one."""
    try:
        return shutil.disk_usage(folder or tempfile.gettempdir()).free
    except FileNotFoundError:
        return 0
