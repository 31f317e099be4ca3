"""Rows in files larger than memory: Parquet, CSV and Arrow IPC, by pyarrow.

The first pass that decodes all columns writes its batches to one Arrow IPC file, which later passes
map into memory.
"""

import mmap
import os
import re
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from importlib import import_module
from operator import add
from typing import Any, NamedTuple, TypeVar

import numpy as np

from posteriori.errors import SourceError
from posteriori.rows.schema import Batch
from posteriori.rows.source import SourceRows
from posteriori.rows.threads import map_in_order

S = TypeVar("S")

BATCH_ENTRIES = 2**21
"""Numbers that are read at once: 16 MiB of doubles."""

_PART_ROWS = 2**18
"""Consecutive row groups are read as one part, of at least this many rows where there are more."""

_BUFFER = 2**16
"""Bytes of a Parquet column that are read at once; without it, all of its row group would be."""

DISK_SHARE = 0.5
"""Share of the free disk space that a cache may take; a larger source is read in each pass."""


@dataclass(eq=False)
class IpcFile:
    """Record batches by the number of their first row, in a file without a name.

    Only its owner can read it, and it is gone with this object.
    """

    folder: str | None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _batches: dict[int, tuple[int, str]] = field(default_factory=dict)
    _file: Any = None
    _limit: float = 0.0
    _writer: Any = None
    _reader: Any = None
    _error: Exception | None = None

    def put(self, start: int, where: str, batch: Any) -> None:
        """Write a record batch that begins with row `start`; several threads may call this."""
        pyarrow = import_module("pyarrow")
        with self._lock:
            self._batches[start] = len(self._batches), where
            if self._error is not None:
                return
            try:
                if self._writer is None:
                    free = shutil.disk_usage(self.folder or tempfile.gettempdir()).free
                    self._limit = DISK_SHARE * free
                    self._file = tempfile.TemporaryFile(dir=self.folder)  # noqa: SIM115
                    weakref.finalize(self, self._file.close)
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


@dataclass
class IpcCache:
    """The file of decoded batches: in `folder`, among temporary files, or none.

    A folder that the user has named must have room; otherwise a source that does not fit is read
    in each pass. `file` is None until a pass has written all batches.
    """

    folder: str | None = None
    enabled: bool = True
    file: IpcFile | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Without the file, which belongs to this process."""
        return IpcCache, (self.folder, self.enabled)

    @contextmanager
    def writing(self, wanted: bool) -> Iterator[IpcFile | None]:
        """A file for the batches of a pass, read by later passes; None if it is not wanted."""
        if not (wanted and self.enabled and self.file is None):
            yield None
            return
        file = IpcFile(self.folder)
        yield file
        try:
            self.file = file if file.finish() else None
        except OSError as error:
            self.enabled = False
            if self.folder is not None:
                raise SourceError(
                    f"The decoded rows cannot be cached in {self.folder}: {error}.",
                    "Name a folder with room, cache='...'; or read the files in each pass, "
                    "cache=False.",
                ) from error


class RowGroups(NamedTuple):
    """Row groups of a Parquet file, the number of their first row, and its partition values."""

    path: str
    metadata: Any
    groups: list[int]
    start: int
    n_rows: int
    partition: dict[str, Any]


def row_groups(dataset: Any) -> list[RowGroups] | None:
    """The parts of a dataset of Parquet files, in order; None for any other."""
    datasets = import_module("pyarrow.dataset")
    is_parquet = isinstance(getattr(dataset, "format", None), datasets.ParquetFileFormat)
    if not is_parquet or dataset.filesystem.type_name != "local":
        return None
    parts: list[RowGroups] = []
    start = 0
    for path, fragment in _fragments(dataset):
        if not path:
            return None
        with _named_errors(path):
            metadata, groups, n_rows = fragment.metadata, [], 0
        partition = datasets.get_partition_keys(fragment.partition_expression)
        for group in range(metadata.num_row_groups):
            groups.append(group)
            n_rows += metadata.row_group(group).num_rows
            is_last = group == metadata.num_row_groups - 1
            if n_rows and (n_rows >= _PART_ROWS or is_last):
                parts.append(RowGroups(path, metadata, groups, start, n_rows, partition))
                start, groups, n_rows = start + n_rows, [], 0
    return parts


def _fragments(dataset: Any) -> list[tuple[str, Any]]:
    """The files of a dataset, each with its path; the dataset itself where it has none."""
    try:
        return [(fragment.path, fragment) for fragment in dataset.get_fragments()]
    except (AttributeError, ValueError):  # a table in memory, or a dataset with a filter
        return [("", dataset)]


@dataclass(frozen=True, eq=False, repr=False)
class FileRows(SourceRows):
    """Rows of a pyarrow dataset.

    Threads read the row groups of Parquet files (`groups`); other formats are read in order by
    pyarrow's scanner, which reads ahead. Batches come from the `cache` once it holds all of them.
    """

    dataset: Any
    groups: Sequence[RowGroups] | None = None
    stamps: Mapping[str, tuple[int, ...] | None] = field(default_factory=dict)
    cache: IpcCache = field(default_factory=IpcCache)

    @property
    def _origin(self) -> str:
        more = f" and {len(self.files) - 1} more" if len(self.files) > 1 else ""
        return f"{os.path.basename(self.files[0])}{more}" if self.files else "a table"

    @property
    def files(self) -> Sequence[str]:
        return list(self.stamps)

    def with_columns(self, columns: Sequence[str], target: str) -> "FileRows":
        cache = IpcCache(self.cache.folder, self.cache.enabled)  # which has other columns
        return replace(super().with_columns(columns, target), cache=cache)

    # Passes.

    def _sum_batches(self, task: Callable[[Batch], S], once: bool = False) -> Iterator[S]:
        with self.cache.writing(not once) as cached, self._reading():
            parts = self._read_parts(cached)
            yield from map_in_order(lambda part: reduce(add, map(task, part)), parts)

    def _iterate(self, random: np.random.Generator | None) -> Iterator[Batch]:
        with self._reading():
            parts = self._read_parts(None)
            if random is not None and isinstance(parts, list):
                parts = [parts[i] for i in random.permutation(len(parts))]
            for part in parts:
                yield from part

    def _read_parts(
        self, cached: IpcFile | None
    ) -> list[Iterable[Batch]] | Iterator[Iterable[Batch]]:
        """Batches in parts that are read by one thread each, the same whatever is cached."""
        columns = [*(self.roles.columns or ()), *self.roles.others]
        n_rows, file = max(1, BATCH_ENTRIES // len(columns)), self.cache.file
        if self.groups is None:
            batches = self._scan(columns, n_rows) if file is None else file.batches()
            return ([self._batch(*batch, cached)] for batch in batches)
        if file is None:
            found = (self._read_groups(part, columns, n_rows) for part in self.groups)
        else:
            found = (file.batches(part.start, part.start + part.n_rows) for part in self.groups)
        return [(self._batch(*batch, cached) for batch in batches) for batches in found]

    def _read_groups(
        self, part: RowGroups, columns: list[str], n_rows: int
    ) -> Iterator[tuple[int, str, Any]]:
        """Record batches of at most so many rows, with these columns of the schema."""
        pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
        own = [name for name in columns if name not in part.partition]
        options = {"pre_buffer": False, "buffer_size": _BUFFER}
        start, end = part.start, part.start + part.n_rows
        with (
            _named_errors(part.path),
            parquet.ParquetFile(part.path, metadata=part.metadata, **options) as file,
        ):
            for batch in file.iter_batches(n_rows, part.groups, own, use_threads=False):
                n, arrays = batch.num_rows, []
                for name in columns:
                    kind, value = self.dataset.schema.field(name).type, part.partition.get(name)
                    values = batch.column(name) if name in own else pyarrow.repeat(value, n)
                    if values.type != kind:  # of another file
                        values = values.cast(kind, safe=not pyarrow.types.is_floating(kind))
                    arrays.append(values)
                yield start, part.path, pyarrow.RecordBatch.from_arrays(arrays, columns)
                start += n
            if start != end:
                raise OSError("it has fewer rows than its metadata says")

    def _scan(self, columns: list[str], n_rows: int) -> Iterator[tuple[int, str, Any]]:
        """The same by pyarrow's scanner, file by file."""
        start, options = 0, {"columns": columns, "batch_size": n_rows, "batch_readahead": 4}
        for path, fragment in _fragments(self.dataset):
            own = {"schema": self.dataset.schema} if path else {}
            with _named_errors(path, fragment):
                for batch in fragment.to_batches(**own, **options):
                    yield start, path, batch
                    start += batch.num_rows

    def _batch(self, start: int, where: str, rows: Any, cached: IpcFile | None) -> Batch:
        if cached is not None and rows.num_rows:
            cached.put(start, where, rows)
        self.log.read(rows.nbytes)
        table = import_module("pyarrow").Table.from_batches([rows])
        return self.roles.split(table, table.column_names, start=start, where=where)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """The context of reading; an error names a file that has changed since the scan."""
        self._check_stamps()
        try:
            yield
        except (OSError, import_module("pyarrow").ArrowException) as error:
            raise SourceError(f"The source cannot be read: {error}.", "Check its files.") from error
        finally:
            self._check_stamps()

    def _check_stamps(self) -> None:
        for path, stamp in self.stamps.items():
            now = file_stamp(path)
            if now != stamp:
                raise SourceError(
                    f"The file {path} {'is gone' if now is None else 'has changed'} since it was "
                    "scanned.",
                    "Put it back, or scan again and fit to what is there now.",
                )


def file_stamp(path: str) -> tuple[int, ...] | None:
    """Number, size and time of a file, which differ if it has changed; None where it is gone."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


@contextmanager
def _named_errors(path: str, fragment: Any = None) -> Iterator[None]:
    """Errors of pyarrow with the name of the file, and what to do about them."""
    try:
        yield
    except (OSError, import_module("pyarrow").ArrowException) as error:
        text, remedy = " ".join(str(error).split()).rstrip("."), "Repair it, or leave it out."
        place = re.search(r"CSV column #(\d+)", text)
        if place is not None:
            name = fragment.physical_schema.names[int(place[1])]
            remedy = (
                "The type of a column is that of the first megabyte of its file. Correct the "
                f"value, leave it empty if it is missing, or scan with dtypes={{{name!r}: "
                f"'string'}} for text and dtypes={{{name!r}: 'double'}} for numbers."
            )
        raise SourceError(f"The file {path} cannot be read: {text}.", remedy) from error
