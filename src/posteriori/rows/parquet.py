"""Parquet files by runs of row groups, of which each thread reads one, page by page."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from itertools import repeat
from typing import Any

import numpy as np

from posteriori.rows.pages import WIDTH, PlainColumn, plain_column

PART_ROWS = 2**18
"""Row groups that lie together are read as one part until it has this many rows."""

_BUFFER = 2**14
"""Bytes of a column in which the head of a page is looked for; the rest of it is read past them."""


_DECODED = 2**14
"""Rows that are decoded at once, where the numbers after them are read as they lie."""

_REMEMBERED = 2**14
"""Columns of row groups of which is remembered how they lie: some MiB. Of others it is learnt in
each pass."""


class Plain:
    """The columns of files that can be read as they lie, as far as there is room to remember."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, int, int], PlainColumn | None] = {}

    def column(self, file: int, part: "Part", group: int, number: int) -> PlainColumn | None:
        """How a column of a row group is read; None if pyarrow must."""
        key = (part.path, group, number)
        if key in self._found:
            return self._found[key]
        found = plain_column(file, part.metadata, group, number)
        if len(self._found) < _REMEMBERED:
            self._found[key] = found
        return found


@dataclass(frozen=True, eq=False)
class Part:
    """Row groups of a file, the number of their first row, and what its folder says of them."""

    path: str
    metadata: Any
    groups: tuple[int, ...]
    start: int
    n_rows: int
    keys: dict[str, Any]
    plain: Plain

    def batches(self, columns: list[str], schema: Any, n_rows: int) -> Iterator[tuple[Any, bool]]:
        """Tables of at most so many rows, with these columns of the schema.

        With each comes whether it was decoded, so that it pays to keep it.
        """
        pyarrow = import_module("pyarrow")
        with self._opened() as file:
            held = file.schema_arrow
            own = [name for name in columns if name in held.names]
            other = [name for name in own if held.field(name).type != schema.field(name).type]
            with self._as_it_lies() as raw:
                plain = {} if raw is None else self._plain_columns(raw, own)
                if plain:
                    batches = self._with_plain(file, raw, plain, own, n_rows)
                else:
                    batches = self._decoded(file, own, n_rows)
                for batch in batches:
                    table = pyarrow.Table.from_batches([batch])
                    for name in other:
                        table = _with_type(table, name, schema.field(name).type)
                    if len(own) < len(columns):
                        table = self._whole(table, columns, schema)
                    yield table, len(plain) < len(own) / 2

    def _opened(self) -> Any:
        return import_module("pyarrow.parquet").ParquetFile(
            self.path, metadata=self.metadata, buffer_size=_BUFFER, pre_buffer=False
        )

    @contextmanager
    def _as_it_lies(self) -> Iterator[int | None]:
        """The file by itself, where a system can fill several pieces of memory from it at once."""
        if len(self.groups) > 1 or not hasattr(os, "preadv"):
            yield None
            return
        raw = os.open(self.path, os.O_RDONLY)
        try:
            yield raw
        finally:
            os.close(raw)

    def _plain_columns(self, raw: int, names: list[str]) -> dict[str, PlainColumn]:
        """Those of the columns that can be read as they lie."""
        schema = self.metadata.schema
        numbers = {schema.column(i).path: i for i in range(len(schema.names))}
        found = {
            name: self.plain.column(raw, self, self.groups[0], numbers[name])
            for name in names
            if name in numbers
        }
        return {name: column for name, column in found.items() if column is not None}

    def _decoded(self, file: Any, names: list[str], n_rows: int) -> Iterator[Any]:
        return file.iter_batches(n_rows, list(self.groups), names, use_threads=False)

    def _with_plain(
        self, file: Any, raw: int, plain: dict[str, PlainColumn], names: list[str], n_rows: int
    ) -> Iterator[Any]:
        """Batches in which the plain columns lie side by side in memory."""
        pyarrow = import_module("pyarrow")
        late = {j: name for j, name in enumerate(plain) if plain[name].first}
        begins = _Begins(self._decoded(file, list(late.values()), _DECODED), list(late))
        last = max(column.first for column in plain.values())
        rest = [name for name in names if name not in plain]
        with self._opened() as again:
            others = self._decoded(again, rest, n_rows) if rest else repeat(None)
            for low in range(0, self.n_rows, n_rows):
                high = min(low + n_rows, self.n_rows)
                out = _SideBySide(len(plain), high - low)
                begins.copy(min(high, last) - low, out)
                for j, column in enumerate(plain.values()):
                    begin = min(max(low, column.first), high)
                    column.read(raw, begin, high, out.column(j)[WIDTH * (begin - low) :])
                found = dict(zip(plain, out.arrays(), strict=True))
                other = next(others)
                found |= {} if other is None else dict(zip(rest, other.columns, strict=True))
                yield pyarrow.RecordBatch.from_arrays([found[name] for name in names], names)

    def _whole(self, table: Any, columns: list[str], schema: Any) -> Any:
        """With the columns that the folder names, and nulls in those that the file lacks."""
        pyarrow = import_module("pyarrow")
        for place, name in enumerate(columns):
            if name not in table.column_names:
                field = schema.field(name)
                value = pyarrow.scalar(self.keys.get(name)).cast(field.type)
                table = table.add_column(place, field, pyarrow.repeat(value, table.num_rows))
        return table


class _SideBySide:
    """Columns of doubles in one piece of memory, each a multiple of 64 bytes from the first."""

    def __init__(self, n_columns: int, n_rows: int) -> None:
        self._n_columns, self._n_rows = n_columns, n_rows
        self._gap = -(-WIDTH * n_rows // 64) * 64
        self._buffer = import_module("pyarrow").allocate_buffer(n_columns * self._gap)
        self._bytes = memoryview(self._buffer).cast("B")

    def column(self, j: int) -> memoryview:
        return self._bytes[j * self._gap :][: WIDTH * self._n_rows]

    def arrays(self) -> Iterator[Any]:
        pyarrow = import_module("pyarrow")
        for j in range(self._n_columns):
            part = self._buffer.slice(j * self._gap, WIDTH * self._n_rows)
            yield pyarrow.Array.from_buffers(pyarrow.float64(), self._n_rows, [None, part])


class _Begins:
    """The first rows of some of the columns, decoded and copied to where they are wanted."""

    def __init__(self, batches: Iterator[Any], places: Sequence[int]) -> None:
        self._batches, self._places = batches, places
        self._left: Any = None

    def copy(self, n_rows: int, out: _SideBySide) -> None:
        """The next rows, to the beginning of their columns."""
        done = 0
        while done < n_rows:
            if self._left is None or not self._left.num_rows:
                self._left = next(self._batches)
            part = self._left.slice(0, n_rows - done)
            for j, values in zip(self._places, part.columns, strict=True):
                to = out.column(j)[WIDTH * done : WIDTH * (done + part.num_rows)]
                np.copyto(np.frombuffer(to), values.to_numpy())
            self._left = self._left.slice(part.num_rows)
            done += part.num_rows


def _with_type(table: Any, name: str, kind: Any) -> Any:
    """With a column of another type: as the dataset has it, whatever the file holds."""
    place, column = table.column_names.index(name), table.column(name)
    is_float = import_module("pyarrow").types.is_floating(kind)
    return table.set_column(place, name, column.cast(kind, safe=not is_float))


def parts_of(dataset: Any) -> list[Part] | None:
    """The parts of a dataset of Parquet files, in order; None for any other."""
    datasets = import_module("pyarrow.dataset")
    is_parquet = isinstance(getattr(dataset, "format", None), datasets.ParquetFileFormat)
    if not is_parquet or dataset.filesystem.type_name != "local":
        return None
    parts: list[Part] = []
    plain = Plain()
    start = 0
    try:
        fragments = list(dataset.get_fragments())
    except ValueError:  # some of the rows are filtered out
        return None
    for fragment in fragments:
        keys = datasets.get_partition_keys(fragment.partition_expression)
        for groups, n_rows in _runs(fragment.metadata):
            parts.append(Part(fragment.path, fragment.metadata, groups, start, n_rows, keys, plain))
            start += n_rows
    return parts


def _runs(metadata: Any) -> Iterator[tuple[tuple[int, ...], int]]:
    """Row groups that are read together, and how many rows they have."""
    groups: list[int] = []
    n_rows = 0
    for group in range(metadata.num_row_groups):
        groups.append(group)
        n_rows += metadata.row_group(group).num_rows
        if n_rows >= PART_ROWS:
            yield tuple(groups), n_rows
            groups, n_rows = [], 0
    if n_rows:
        yield tuple(groups), n_rows
