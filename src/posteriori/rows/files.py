"""Rows in files larger than memory: Parquet, CSV and Arrow IPC, by pyarrow."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from importlib import import_module
from operator import add
from typing import Any, NamedTuple, TypeVar

import numpy as np

from posteriori.errors import SourceError
from posteriori.rows.discovery import LabelWeights
from posteriori.rows.ipc_cache import IpcCache, IpcFile
from posteriori.rows.schema import Batch, Column, Kind, Schema
from posteriori.rows.source import Purpose, SourceRows
from posteriori.rows.threads import map_in_order
from posteriori.typing import Labels

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

    def check(self) -> None:
        """An error unless the file is still what it was."""
        is_there = os.path.exists(self.path)
        if not is_there or FileStamp.of(self.path) != self:
            what = "has changed" if is_there else "is gone"
            raise SourceError(
                f"The file {self.path} {what} since it was scanned.",
                "Put it back, or scan again and fit to what is there now.",
            )


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

    Threads read the row groups of Parquet files (`parts`); other formats are read in order by
    pyarrow's scanner, which reads ahead. Batches come from the `cache` once it holds all of them.
    `declared` has the order of levels and classes of categorical columns, as text.
    """

    dataset: Any
    parts: Sequence[RowGroups] | None = None
    stamps: tuple[FileStamp, ...] = ()
    declared: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    cache: IpcCache = field(default_factory=IpcCache)

    def __repr__(self) -> str:
        more = f" and {len(self.files) - 1} more" if len(self.files) > 1 else ""
        what = f"{os.path.basename(self.files[0])}{more}" if self.files else "a table"
        n = len(self.roles.columns or ())
        roles = f"target={self.roles.target!r}, {n} feature column{'s' if n > 1 else ''}"
        found = f"{self.n_rows:,} rows" if self._found else "not read yet"
        return f"<rows of {what}, {found}>\n{roles}"

    @property
    def files(self) -> Sequence[str]:
        return [stamp.path for stamp in self.stamps]

    @property
    def _n_expected(self) -> int | None:
        return None if self.parts is None else sum(part.n_rows for part in self.parts)

    @property
    def _columns(self) -> list[str]:
        return [*(self.roles.columns or ()), *self.roles.others]

    def _kind(self, name: str) -> Kind | None:
        """The kind of a column by its type; None where it depends on the entries."""
        types, kind = import_module("pyarrow.types"), self.dataset.schema.field(name).type
        if types.is_boolean(kind):
            return "boolean"
        is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
        return "numeric" if is_number else None

    def _ordered(self, schema: Schema) -> Schema:
        """All columns, also those that discovery did not read."""
        found = {column.name: column for column in schema.columns}
        columns = tuple(
            found.get(name) or Column(name, self._kind(name) or "numeric")
            for name in self.roles.columns or ()
        )
        return super()._ordered(Schema(columns, named=True).in_order(self.declared))

    def _ordered_classes(self, labels: LabelWeights) -> Labels:
        classes = super()._ordered_classes(labels)
        place = {name: i for i, name in enumerate(self.declared.get(str(self.roles.target), ()))}
        places = [place.get(str(label), len(place)) for label in classes]
        return classes[np.argsort(places, kind="stable")]

    # Passes.

    def _sum_batches(
        self, task: Callable[[Batch], S], receive: Callable[[S], object], purpose: Purpose
    ) -> None:
        columns = self._columns
        if purpose == "discovery" and self.parts is not None and self.cache.file is None:
            others = self.roles.others  # plain numbers need not be read for their kind
            columns = [name for name in columns if name in others or self._kind(name) is None]
            columns = columns or self._columns[:1]
        writes = purpose != "once" and columns == self._columns
        cached = self.cache.begin() if writes else None

        def sum_part(part: Iterable[Batch]) -> S:
            return reduce(add, map(task, part))

        with self._reading():
            map_in_order(sum_part, self._read_parts(columns, cached), receive)
            self.cache.keep(cached)

    def _iterate(self, random: np.random.Generator | None) -> Iterator[Batch]:
        parts = self._read_parts(self._columns, None)
        if random is not None and isinstance(parts, list):
            parts = [parts[i] for i in random.permutation(len(parts))]
        with self._reading():
            for part in parts:
                yield from part

    def _read_parts(
        self, columns: list[str], cached: IpcFile | None
    ) -> list[Iterable[Batch]] | Iterator[Iterable[Batch]]:
        """Batches in parts that are read by one thread each, the same whatever is cached."""
        if self.parts is None:
            return ([batch] for batch in self._stream(columns, cached))
        return [self._part(part, columns, cached) for part in self.parts]

    def _part(self, part: RowGroups, columns: list[str], cached: IpcFile | None) -> Iterator[Batch]:
        """The batches of row groups, from the cache if they are there."""
        start, end = part.start, part.start + part.n_rows
        if self.cache.file is not None:
            yield from self._from_cache(self.cache.file, start, end)
            return
        with _named_errors(part.path):
            for batch in part.batches(columns, self.dataset.schema, self._batch_rows):
                yield self._batch(batch, start, part.path, cached)
                start += batch.num_rows
            if start != end:
                raise OSError("it has fewer rows than its metadata says")

    def _stream(self, columns: list[str], cached: IpcFile | None) -> Iterator[Batch]:
        """The batches by pyarrow's scanner, file by file, from the cache if they are there."""
        if self.cache.file is not None:
            yield from self._from_cache(self.cache.file)
            return
        start, options = 0, {"columns": columns, "batch_size": self._batch_rows}
        datasets, csv = import_module("pyarrow.dataset"), import_module("pyarrow.csv")
        format = getattr(self.dataset, "format", None)
        if isinstance(format, datasets.CsvFileFormat):
            options["fragment_scan_options"] = datasets.CsvFragmentScanOptions(
                format.default_fragment_scan_options.convert_options,
                csv.ReadOptions(block_size=_CSV_BLOCK),
            )
        for path, fragment in _fragments(self.dataset):
            own = {"schema": self.dataset.schema} if path else {}
            with _named_errors(path, fragment):
                for batch in fragment.to_batches(batch_readahead=4, **own, **options):
                    yield self._batch(batch, start, path, cached)
                    start += batch.num_rows

    def _from_cache(self, file: IpcFile, low: int = 0, high: int | None = None) -> Iterator[Batch]:
        for start, where, batch in file.batches(low, high):
            yield self._batch(batch, start, where)

    def _batch(self, rows: Any, start: int, where: str, cached: IpcFile | None = None) -> Batch:
        if cached is not None and rows.num_rows:
            cached.put(start, where, rows)
        self.log.read(rows.nbytes)
        table = import_module("pyarrow").Table.from_batches([rows])
        return self.roles.split(table, start=start, where=where)

    @property
    def _batch_rows(self) -> int:
        return max(1, min(_LONGEST_BATCH, BATCH_ENTRIES // len(self._columns)))

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
            stamp.check()


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
