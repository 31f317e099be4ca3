"""Rows in files larger than memory: Parquet, CSV and Arrow IPC, by pyarrow."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from importlib import import_module
from itertools import starmap
from operator import add
from typing import Any, NamedTuple, TypeVar

import numpy as np

from posteriori.errors import SourceError
from posteriori.rows.ipc_cache import IpcCache, IpcFile
from posteriori.rows.schema import Batch, listed
from posteriori.rows.source import Purpose, SourceRows
from posteriori.rows.threads import map_in_order

S = TypeVar("S")

BATCH_ENTRIES = 2**21
"""Numbers that are read at once: 16 MiB of doubles."""

_LONGEST_BATCH = 2**17

_PART_ROWS = 2**18
"""Consecutive row groups are read as one part, of at least this many rows where there are more."""

_BUFFER = 2**16
"""Bytes of a Parquet column that are read at once; without it, all of its row group would be."""

_CSV_BLOCK = 2**24
"""Bytes of a CSV file that are parsed at once."""


class FileStamp(NamedTuple):
    """Size and time of a file when it was scanned, to name one that has changed since."""

    path: str
    inode: int
    size: int
    changed: int

    @classmethod
    def of(cls, path: str) -> "FileStamp":
        found = os.stat(path)
        return cls(path, found.st_ino, found.st_size, found.st_mtime_ns)


class RowGroups(NamedTuple):
    """Row groups of a Parquet file, the number of their first row, and its partition values."""

    path: str
    metadata: Any
    groups: list[int]
    start: int
    n_rows: int
    partition: dict[str, Any]

    def batches(self, columns: list[str], schema: Any, n_rows: int) -> Iterator[Any]:
        """Record batches of at most so many rows, with these columns of the schema."""
        pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
        own = [name for name in columns if name not in self.partition]
        options = {"pre_buffer": False, "buffer_size": _BUFFER}
        with parquet.ParquetFile(self.path, metadata=self.metadata, **options) as file:
            for batch in file.iter_batches(n_rows, self.groups, own, use_threads=False):
                n, arrays = batch.num_rows, []
                for name in columns:
                    kind, value = schema.field(name).type, self.partition.get(name)
                    values = batch.column(name) if name in own else pyarrow.repeat(value, n)
                    if values.type != kind:  # of another file
                        values = values.cast(kind, safe=not pyarrow.types.is_floating(kind))
                    arrays.append(values)
                yield pyarrow.RecordBatch.from_arrays(arrays, columns)


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


@dataclass(frozen=True, eq=False)
class FileRows(SourceRows):
    """Rows of a pyarrow dataset.

    Threads read the row groups of Parquet files (`groups`); other formats are read in order by
    pyarrow's scanner, which reads ahead. Batches come from the `cache` once it holds all of them.
    """

    dataset: Any
    groups: Sequence[RowGroups] | None = None
    stamps: tuple[FileStamp, ...] = ()
    cache: IpcCache = field(default_factory=IpcCache)

    def __repr__(self) -> str:
        more = f" and {len(self.files) - 1} more" if len(self.files) > 1 else ""
        what = f"{os.path.basename(self.files[0])}{more}" if self.files else "a table"
        n = len(self.roles.columns or ())
        roles = f"target={listed(self.roles.targets)}, {n} feature column{'s' if n > 1 else ''}"
        found = f"{self.n_rows:,} rows" if self._found else "not read yet"
        return f"<rows of {what}, {found}>\n{roles}"

    @property
    def files(self) -> Sequence[str]:
        return [stamp.path for stamp in self.stamps]

    def with_columns(self, columns: Sequence[str], target: str) -> "FileRows":
        cache = IpcCache(self.cache.folder, self.cache.enabled)  # which has other columns
        return replace(super().with_columns(columns, target), cache=cache)

    # Passes.

    def _sum_batches(self, task: Callable[[Batch], S], purpose: Purpose) -> Iterator[S]:
        names, others = [*(self.roles.columns or ()), *self.roles.others], self.roles.others
        columns, known = names, self.roles.known
        if purpose == "discovery" and self.groups is not None and self.cache.file is None:
            # Of plain numbers, which need not be read, the type says all.
            columns = [n for n in names if n in others or n not in known or known[n].declared]
            columns = columns or names[:1]
        cached = self.cache.begin() if purpose != "once" and columns == names else None
        with self._reading():
            parts = self._read_parts(columns, cached)
            yield from map_in_order(lambda part: reduce(add, map(task, part)), parts)
            self.cache.keep(cached)

    def _iterate(self, random: np.random.Generator | None) -> Iterator[Batch]:
        with self._reading():
            parts = self._read_parts([*(self.roles.columns or ()), *self.roles.others], None)
            if random is not None and isinstance(parts, list):
                parts = [parts[i] for i in random.permutation(len(parts))]
            for part in parts:
                yield from part

    def _read_parts(
        self, columns: list[str], cached: IpcFile | None
    ) -> list[Iterable[Batch]] | Iterator[Iterable[Batch]]:
        """Batches in parts that are read by one thread each, the same whatever is cached."""
        n_rows = max(1, min(_LONGEST_BATCH, BATCH_ENTRIES // len(columns)))
        if self.groups is None:
            return ([batch] for batch in self._scan(columns, n_rows, cached))
        return [self._read_groups(part, columns, n_rows, cached) for part in self.groups]

    def _read_groups(
        self, part: RowGroups, columns: list[str], n_rows: int, cached: IpcFile | None
    ) -> Iterator[Batch]:
        """The batches of row groups, from the cache if they are there."""
        start, end = part.start, part.start + part.n_rows
        if self.cache.file is not None:
            yield from starmap(self._batch, self.cache.file.batches(start, end))
            return
        with _named_errors(part.path):
            for batch in part.batches(columns, self.dataset.schema, n_rows):
                yield self._batch(start, part.path, batch, cached)
                start += batch.num_rows
            if start != end:
                raise OSError("it has fewer rows than its metadata says")

    def _scan(self, columns: list[str], n_rows: int, cached: IpcFile | None) -> Iterator[Batch]:
        """The batches by pyarrow's scanner, file by file, from the cache if they are there."""
        if self.cache.file is not None:
            yield from starmap(self._batch, self.cache.file.batches())
            return
        start, options = 0, {"columns": columns, "batch_size": n_rows, "batch_readahead": 4}
        datasets, csv = import_module("pyarrow.dataset"), import_module("pyarrow.csv")
        format = getattr(self.dataset, "format", None)
        if isinstance(format, datasets.CsvFileFormat):
            convert = format.default_fragment_scan_options.convert_options
            read = csv.ReadOptions(block_size=_CSV_BLOCK)
            options["fragment_scan_options"] = datasets.CsvFragmentScanOptions(convert, read)
        for path, fragment in _fragments(self.dataset):
            own = {"schema": self.dataset.schema} if path else {}
            with _named_errors(path, fragment):
                for batch in fragment.to_batches(**own, **options):
                    yield self._batch(start, path, batch, cached)
                    start += batch.num_rows

    def _batch(self, start: int, where: str, rows: Any, cached: IpcFile | None = None) -> Batch:
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
        for stamp in self.stamps:
            is_there = os.path.exists(stamp.path)
            if not is_there or FileStamp.of(stamp.path) != stamp:
                raise SourceError(
                    f"The file {stamp.path} {'has changed' if is_there else 'is gone'} since it "
                    "was scanned.",
                    "Put it back, or scan again and fit to what is there now.",
                )


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
