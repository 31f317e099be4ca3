"""Decoded batches of a source in one Arrow IPC file, memory-mapped for later passes."""

import mmap
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from posteriori.errors import ParameterError, SourceError

DISK_SHARE = 0.5
"""Share of the free disk space that a cache may take; a larger source is read in each pass."""


class IpcFile:
    """Record batches by the number of their first row, in a file without a name.

    Only its owner can read it, and it is gone with this object. `limit` is its size in bytes at
    most.
    """

    def __init__(self, folder: str | None) -> None:
        self._limit = DISK_SHARE * shutil.disk_usage(folder or tempfile.gettempdir()).free
        self._file: Any = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115, closed below
        weakref.finalize(self, self._file.close)
        self._lock = threading.Lock()
        self._batches: dict[int, tuple[int, str]] = {}
        self._writer: Any = None
        self._reader: Any = None
        self._error: Exception | None = None

    def put(self, start: int, where: str, batch: Any) -> None:
        """Write a record batch that begins with row `start`; several threads may call this."""
        pyarrow = import_module("pyarrow")
        with self._lock:
            self._batches[start] = len(self._batches), where
            if self._error is not None:
                return
            try:
                # Dictionaries may differ between batches, so that text is written as such.
                fields = [(each.name, plain_type(each.type)) for each in batch.schema]
                batch = batch.cast(pyarrow.schema(fields))
                if self._writer is None:
                    out = pyarrow.PythonFile(self._file, "w")
                    self._writer = pyarrow.ipc.new_file(out, batch.schema)
                if self._file.tell() + batch.nbytes > self._limit:
                    raise OSError(f"they take more than {DISK_SHARE:.0%} of the free space")
                self._writer.write_batch(batch)
            except (OSError, pyarrow.ArrowInvalid) as error:  # such as dictionaries of views
                self._error = error

    def finish(self) -> bool:
        """Map the file for reading, after all batches have been put; False if there are none.

        An error if a batch could not be written.
        """
        if self._error is not None:
            raise OSError(str(self._error)) from self._error
        if self._writer is None:
            return False
        self._writer.close()
        self._file.flush()
        pyarrow = import_module("pyarrow")
        mapped = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        self._reader = pyarrow.ipc.open_file(pyarrow.py_buffer(mapped))
        return True

    def batches(self, low: int = 0, high: int | None = None) -> Iterator[tuple[int, str, Any]]:
        """The batches of rows low to high: number of the first row, source file, rows."""
        while low in self._batches and (high is None or low < high):
            place, where = self._batches[low]
            batch = self._reader.get_batch(place)
            yield low, where, batch
            low += batch.num_rows


class IpcCache:
    """The file of decoded batches: in `folder`, among temporary files, or none.

    A folder that the user has named must have room; otherwise a source that does not fit is read
    in each pass. `file` is None until a pass has written all batches.
    """

    def __init__(self, folder: str | None = None, enabled: bool = True) -> None:
        self.folder, self.enabled = folder, enabled
        self.file: IpcFile | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Without the file, which belongs to this process."""
        return IpcCache, (self.folder, self.enabled)

    def begin(self) -> IpcFile | None:
        """A file for the batches of this pass; None if the cache is disabled or complete."""
        if not self.enabled or self.file is not None:
            return None
        try:
            return IpcFile(self.folder)
        except OSError as error:
            self._give_up(error)
            return None

    def keep(self, file: IpcFile | None) -> None:
        """Use the file in later passes, now that all batches have been put into it."""
        try:
            if file is not None and file.finish():
                self.file = file
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        self.enabled = False
        if self.folder is not None:
            raise SourceError(
                f"The decoded rows cannot be cached in {self.folder}: {error}.",
                "Name a folder with room, cache='...'; or read the files in each pass, "
                "cache=False.",
            ) from error


def plain_type(kind: Any) -> Any:
    """The type of the values of a dictionary; pyarrow cannot decode one of views."""
    types = import_module("pyarrow.types")
    coded = types.is_dictionary(kind) and not types.is_string_view(kind.value_type)
    return kind.value_type if coded else kind


def read_cache(cache: Any) -> IpcCache:
    """The `cache` argument of scan: where there is room, in a folder, or none."""
    if cache is True or cache is False:
        return IpcCache(enabled=cache)
    if not isinstance(cache, str | os.PathLike):
        raise ParameterError(
            f"cache={cache!r} is neither True, False nor a folder.",
            "Leave it out, or name a folder with room for what is read.",
        )
    folder = os.path.abspath(os.path.expanduser(os.fspath(cache)))
    if not os.path.isdir(folder):
        raise ParameterError(f"cache={cache!r} is not a folder.", "Create it, or name another.")
    return IpcCache(folder)
