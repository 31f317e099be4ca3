"""Rows in files larger than memory: Parquet, CSV and Arrow IPC, by pyarrow."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from importlib import import_module
from operator import add
from typing import Any, NamedTuple, TypeVar

import numpy as np

from posteriori.errors import SourceError
from posteriori.rows.batch import Batch, Roles
from posteriori.rows.ipc_cache import IpcCache, IpcFile
from posteriori.rows.schema import Column, Kind, Schema
from posteriori.rows.source import Purpose, SourceRows
from posteriori.rows.threads import map_in_order
from posteriori.typing import Labels

S = TypeVar("S")

BATCH_ENTRIES = 2**21
"""Numbers that are read at once: 16 MiB of doubles."""

_LONGEST_BATCH = 2**17
_PART_ROWS = 2**18
"""Row groups that lie together are read as one part until it has this many rows."""


_BUFFER = 2**16
"""Bytes of a column that are read at once; without it, all of its row group would be."""


class FileStamp(NamedTuple):
    """A file as it was when it was scanned, so that one that has changed since is named."""

    path: str
    inode: int
    size: int
    changed: tuple[int, int]

    @classmethod
    def of(cls, path: str) -> "FileStamp":
        found = os.stat(path)
        return cls(path, found.st_ino, found.st_size, (found.st_mtime_ns, found.st_ctime_ns))

    def check(self) -> None:
        """An error unless the file is still what it was."""
        try:
            now = FileStamp.of(self.path)
        except OSError as error:
            raise SourceError(
                f"The file {self.path} is gone since it was scanned.", "Put it back, or scan again."
            ) from error
        if now != self:
            raise SourceError(
                f"The file {self.path} has changed since it was scanned.",
                "Scan again, and fit to what is there now.",
            )


@dataclass(frozen=True, eq=False)
class RowGroups:
    """Row groups of a Parquet file, the number of their first row, and its partition values."""

    path: str
    metadata: Any
    groups: tuple[int, ...]
    start: int
    n_rows: int
    partition: dict[str, Any]

    def batches(self, columns: list[str], schema: Any, n_rows: int) -> Iterator[Any]:
        """Record batches of at most so many rows, with these columns of the schema."""
        pyarrow = import_module("pyarrow")
        parquet = import_module("pyarrow.parquet")
        own = [name for name in columns if name not in self.partition]
        options = {"pre_buffer": False, "buffer_size": _BUFFER}
        with parquet.ParquetFile(self.path, metadata=self.metadata, **options) as file:
            for batch in file.iter_batches(n_rows, list(self.groups), own, use_threads=False):
                arrays = []
                for name in columns:
                    kind = schema.field(name).type
                    if name in self.partition:
                        value = pyarrow.scalar(self.partition[name]).cast(kind)
                        arrays.append(pyarrow.repeat(value, batch.num_rows))
                    else:
                        arrays.append(_cast(batch.column(name), kind))
                yield _record_batch(arrays, columns, batch.num_rows)


def _cast(values: Any, kind: Any) -> Any:
    """The values in the type that the column has in all files."""
    if values.type == kind:
        return values
    return values.cast(kind, safe=not import_module("pyarrow.types").is_floating(kind))


def _record_batch(arrays: list[Any], names: list[str], n_rows: int) -> Any:
    pyarrow = import_module("pyarrow")
    if arrays:
        return pyarrow.RecordBatch.from_arrays(arrays, names)
    empty = pyarrow.struct([])
    return pyarrow.RecordBatch.from_struct_array(pyarrow.array([{}] * n_rows, empty))


def row_groups(dataset: Any) -> list[RowGroups] | None:
    """The parts of a dataset of Parquet files, in order; None for any other."""
    datasets = import_module("pyarrow.dataset")
    is_parquet = isinstance(getattr(dataset, "format", None), datasets.ParquetFileFormat)
    if not is_parquet or dataset.filesystem.type_name != "local":
        return None
    try:
        fragments = list(dataset.get_fragments())
    except ValueError:  # the dataset filters rows
        return None
    parts: list[RowGroups] = []
    start = 0
    for fragment in fragments:
        metadata = fragment.metadata
        partition = datasets.get_partition_keys(fragment.partition_expression)
        groups: list[int] = []
        n_rows = 0
        for group in range(metadata.num_row_groups):
            groups.append(group)
            n_rows += metadata.row_group(group).num_rows
            if n_rows >= _PART_ROWS or group == metadata.num_row_groups - 1:
                found = RowGroups(fragment.path, metadata, tuple(groups), start, n_rows, partition)
                parts += [found] * (n_rows > 0)
                start, groups, n_rows = start + n_rows, [], 0
    return parts


@dataclass(frozen=True, eq=False)
class FileRows(SourceRows):
    """Rows of a pyarrow dataset.

    Threads read the row groups of Parquet files; other formats are read in order by pyarrow's
    scanner, which reads ahead. Batches come from the `cache` once it holds all of them.
    `infers_types` says that the files are CSV, with types inferred from their first megabyte.
    """

    dataset: Any
    stamps: tuple[FileStamp, ...] = ()
    declared: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    cache: IpcCache = field(default_factory=IpcCache)
    infers_types: bool = False

    def __repr__(self) -> str:
        names = [os.path.basename(path) for path in self.files[:1]]
        more = f" and {len(self.files) - 1} more" if len(self.files) > 1 else ""
        what = f"{names[0]}{more}" if names else "a table"
        roles = f"target={self.roles.target!r}, {len(self.roles.columns or ())} feature columns"
        found = f"{self.n_source:,} rows" if self._found else "not read yet"
        return f"<rows of {what}, {found}>\n{roles}"

    @property
    def files(self) -> Sequence[str]:
        return [stamp.path for stamp in self.stamps]

    @cached_property
    def _parts(self) -> list[RowGroups] | None:
        with self._reading():
            return row_groups(self.dataset)

    @property
    def _n_expected(self) -> int | None:
        return None if self._parts is None else sum(part.n_rows for part in self._parts)

    @cached_property
    def _columns(self) -> list[str]:
        return [*(self.roles.columns or ()), *self.roles.others]

    @cached_property
    def _batch_rows(self) -> int:
        return max(1, min(_LONGEST_BATCH, BATCH_ENTRIES // len(self._columns)))

    def _kind(self, name: str) -> Kind | None:
        """What the type of a column says of it; None where its entries must be read for it."""
        types, kind = import_module("pyarrow.types"), self.dataset.schema.field(name).type
        if types.is_boolean(kind):
            return "boolean"
        is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
        return "numeric" if is_number else None

    def _ordered(self, schema: Schema) -> Schema:
        found = {column.name: column for column in schema.columns}
        columns = tuple(
            found.get(name) or Column(name, self._kind(name) or "numeric")
            for name in self.roles.columns or ()
        )
        whole = Schema(columns, named=True).in_order(self.declared)
        return super()._ordered(whole)

    def read_as(self, schema: Schema | None, classes: Labels | None = None) -> "FileRows":
        """Columns that were text in the fit are read as text, also where they have only digits."""
        if not self.infers_types:
            return self
        columns = () if schema is None else schema.columns
        text = [column.name for column in columns if column.kind == "categorical"]
        if isinstance(self.roles.target, str) and classes is not None:
            text += [self.roles.target] * all(isinstance(label, str) for label in classes)
        written = next(iter(self.dataset.get_fragments())).physical_schema.names
        kind = import_module("pyarrow").string()
        dataset = with_types(self.dataset, {name: kind for name in text if name in written})
        if dataset.schema == self.dataset.schema:
            return self
        cache = IpcCache(self.cache.folder, self.cache.enabled)
        return replace(self, dataset=dataset, cache=cache, _found=[])

    def with_numbers(self) -> "FileRows":
        """The same rows with the target as a number, which may have decimals in later rows."""
        found = super().with_numbers()
        if not self.infers_types:
            return found
        dataset = with_types(self.dataset, _doubles(self.dataset.schema, self.roles.targets))
        if dataset.schema == self.dataset.schema:
            return found
        cache = IpcCache(self.cache.folder, self.cache.enabled)
        return replace(found, dataset=dataset, cache=cache, _found=[])

    # Passes.

    def _sum_batches(
        self, task: Callable[[Batch], S], receive: Callable[[S], object], purpose: Purpose
    ) -> None:
        columns = self._columns
        if purpose == "discovery" and self._parts is not None and self.cache.file is None:
            columns = [name for name in columns if not self._is_known(name)]
        caches = purpose != "once" and len(columns) == len(self._columns)
        cached = self.cache.begin() if caches else None

        def sum_part(part: Iterable[Batch]) -> S:
            return reduce(add, map(task, part))

        with self._reading():
            map_in_order(sum_part, self._read_parts(columns, cached), receive)
            self.cache.keep(cached)

    def _is_known(self, name: str) -> bool:
        """Whether discovery need not read a column: plain numbers that are no target."""
        return name not in self.roles.others and self._kind(name) is not None

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
        if self._parts is not None:
            return [self._part(part, columns, cached) for part in self._parts]
        return ([batch] for batch in self._stream(columns, cached))

    def _part(self, part: RowGroups, columns: list[str], cached: IpcFile | None) -> Iterator[Batch]:
        """The batches of row groups, from the cache if they are there."""
        end = part.start + part.n_rows
        if self.cache.file is not None:
            for start, where, batch in self.cache.file.batches(part.start, end):
                yield self._batch(batch, start, where)
            return
        start = part.start
        with _named(part.path):
            for batch in part.batches(columns, self.dataset.schema, self._batch_rows):
                yield self._batch(batch, start, part.path, cached)
                start += batch.num_rows
            if start != end:
                raise OSError("it has fewer rows than its metadata says")

    def _stream(self, columns: list[str], cached: IpcFile | None) -> Iterator[Batch]:
        """The batches by pyarrow's scanner, file by file, from the cache if they are there."""
        if self.cache.file is not None:
            for start, where, batch in self.cache.file.batches():
                yield self._batch(batch, start, where)
            return
        schema, start = self.dataset.schema, 0
        options = {"columns": columns, "batch_size": self._batch_rows, "batch_readahead": 4}
        for path, fragment in _fragments(self.dataset):
            own = {"schema": schema} if path else {}
            with _named(path, self._misfit):
                batches = fragment.to_batches(**own, **options)
                for batch in _joined(batches, self._batch_rows):
                    yield self._batch(batch, start, path, cached)
                    start += batch.num_rows

    def _batch(self, rows: Any, start: int, where: str, cached: IpcFile | None = None) -> Batch:
        if cached is not None:
            cached.put(start, where, rows)
        self.log.read(rows.nbytes)
        table = import_module("pyarrow").Table.from_batches([rows])
        batch = split_arrow(self.roles, table, start, where)
        return batch._replace(y=_ordered(batch.y)) if self.roles.target in self.declared else batch

    def _misfit(self, error: Exception) -> str:
        """What to do about a value of a CSV file that does not fit the type of its column."""
        if not self.infers_types:
            return "Look at the file, or leave it out."
        place = re.search(r"CSV column #(\d+)", str(error))
        name = self.dataset.schema.names[int(place[1])] if place else "name"
        return (
            f"The type of a column is that of the first megabyte of its file. If column '{name}' "
            f"is text, scan with dtypes={{{name!r}: 'string'}}; otherwise correct the value, or "
            "leave it empty if it is missing."
        )

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Errors of reading are told with the file that has changed, if one has."""
        self._check_stamps()
        try:
            yield
        except (OSError, SourceError, import_module("pyarrow").ArrowException) as error:
            self._check_stamps()
            if isinstance(error, SourceError):
                raise
            raise SourceError(
                f"The source cannot be read: {error}.", "Look at its files."
            ) from error
        self._check_stamps()

    def _check_stamps(self) -> None:
        for stamp in self.stamps:
            stamp.check()


@contextmanager
def _named(path: str, remedy: Callable[[Exception], str] | None = None) -> Iterator[None]:
    """Errors of pyarrow with the file in which they came up."""
    try:
        yield
    except (OSError, import_module("pyarrow").ArrowException) as error:
        raise SourceError(
            f"The file {path} cannot be read: {str(error).rstrip('.')}.",
            remedy(error) if remedy else "Look at it, or leave it out.",
        ) from error


def _fragments(dataset: Any) -> Iterator[tuple[str, Any]]:
    """The files of a dataset, each with its path; the dataset itself where it has none."""
    try:
        fragments = [(fragment.path, fragment) for fragment in dataset.get_fragments()]
    except (AttributeError, ValueError):  # a table in memory, or rows that a dataset filters
        fragments = [("", dataset)]
    return iter(fragments)


def _joined(batches: Iterable[Any], n_rows: int) -> Iterator[Any]:
    """Batches, which may be small, as ones of about so many rows."""
    pyarrow = import_module("pyarrow")
    found: list[Any] = []
    rows = 0

    def whole() -> Any:
        table = pyarrow.Table.from_batches(found)
        if any(map(pyarrow.types.is_dictionary, table.schema.types)):
            table = table.unify_dictionaries()
        return table.combine_chunks().to_batches()[0]

    for batch in batches:
        if found and rows + batch.num_rows > n_rows:
            yield whole()
            found, rows = [], 0
        if batch.num_rows:
            found.append(batch)
            rows += batch.num_rows
    if found:
        yield whole()


def split_arrow(roles: Roles, table: Any, start: int, where: str) -> Batch:
    """A table as a batch, of the features that it has."""
    y = table.select(list(roles.targets)) if len(roles.targets) > 1 else None
    if len(roles.targets) == 1:
        y = table.column(roles.targets[0])
    weight, offset = (
        None if name is None else table.column(name) for name in (roles.weight, roles.offset)
    )
    names = set(table.column_names)
    features = [name for name in roles.columns or () if name in names]
    return Batch(table.select(features), y, weight, offset, start, where)


def _ordered(column: Any) -> Any:
    """A dictionary as one whose values are in the order declared; other columns as they are."""
    pyarrow = import_module("pyarrow")
    if not pyarrow.types.is_dictionary(column.type):  # as the cache has text
        return column
    make = pyarrow.DictionaryArray.from_arrays
    return pyarrow.chunked_array(
        [make(each.indices, each.dictionary, ordered=True) for each in column.chunks]
    )


def with_types(dataset: Any, types: Mapping[str, Any]) -> Any:
    """A dataset of files with other types of some columns."""
    pyarrow, datasets = import_module("pyarrow"), import_module("pyarrow.dataset")
    fields = [each.with_type(types.get(each.name, each.type)) for each in dataset.schema]
    schema = pyarrow.schema(fields, metadata=dataset.schema.metadata)
    fragments = list(dataset.get_fragments())
    return datasets.FileSystemDataset(fragments, schema, dataset.format, dataset.filesystem)


def _doubles(schema: Any, names: Iterable[str]) -> dict[str, Any]:
    """Doubles for columns of whole numbers or nothing in CSV files."""
    pyarrow = import_module("pyarrow")
    wide = (pyarrow.int64(), pyarrow.null())
    return {name: pyarrow.float64() for name in names if schema.field(name).type in wide}


def csv_doubles(dataset: Any, roles: Roles) -> Any:
    """CSV files with whole numbers read as doubles, but for a target of one column (labels)."""
    names = [*(roles.columns or ()), *filter(None, (roles.weight, roles.offset))]
    names += roles.targets if len(roles.targets) > 1 else ()
    return with_types(dataset, _doubles(dataset.schema, names))
