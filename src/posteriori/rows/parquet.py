"""Parquet files by runs of row groups, of which each thread reads one, page by page."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

from posteriori.rows.page_heads import NotPlain
from posteriori.rows.plain import PlainGroup, Remembered, as_it_lies

PART_ROWS = 2**18
"""Row groups that lie together are read as one part until it has this many rows."""

_GROUP_ROWS = 2**16
"""Row groups that have fewer rows each are better read together, by pyarrow."""

_BUFFER = 2**14
"""Bytes of a column in which the head of a page is looked for; the rest of it is read past them."""


@dataclass(frozen=True, eq=False)
class Part:
    """Row groups of a file, the number of their first row, and what its folder says of them."""

    path: str
    metadata: Any
    groups: tuple[int, ...]
    start: int
    n_rows: int
    keys: dict[str, Any]
    remembered: Remembered

    def batches(self, columns: list[str], schema: Any, n_rows: int) -> Iterator[tuple[Any, bool]]:
        """Tables of at most so many rows, with these columns of the schema.

        With each comes whether it was decoded, so that it pays to keep it.
        """
        pyarrow = import_module("pyarrow")
        file = import_module("pyarrow.parquet").ParquetFile(
            self.path, metadata=self.metadata, buffer_size=_BUFFER, pre_buffer=False
        )
        held = file.schema_arrow
        names = set(held.names)
        own = [name for name in columns if name in names]
        other = [name for name in own if held.field(name).type != schema.field(name).type]
        with file, as_it_lies(self.path) as raw:
            groups = [self._plain(file, raw, group, own) for group in self.groups]
            n_plain = sum(len(group.plain) * group.n_rows for group in groups)
            if n_plain:
                batches = self._as_they_lie(file, groups, own, n_rows)
            else:
                batches = _decoded(file, self.groups, own, n_rows)
            for batch in batches:
                table = pyarrow.Table.from_batches([batch])
                for name in other:
                    table = _with_type(table, name, schema.field(name).type)
                table = self._whole(table, columns, schema) if len(own) < len(columns) else table
                yield table, 2 * n_plain < len(own) * self.n_rows

    def _plain(self, file: Any, raw: int, group: int, names: list[str]) -> PlainGroup:
        """A row group, and what of it can be read as it lies: nothing, if it is small."""
        held, n_rows = file.schema_arrow, self.metadata.row_group(group).num_rows
        doubles = [name for name in names if str(held.field(name).type) == "double"]
        if self.n_rows < _GROUP_ROWS * (len(self.groups) - 1):
            doubles = []
        plain = self.remembered.columns(raw, self.path, self.metadata, group, doubles)
        return PlainGroup(raw, n_rows, plain, partial(_decoded, file, [group]))

    def _as_they_lie(
        self, file: Any, groups: Sequence[PlainGroup], names: list[str], n_rows: int
    ) -> Iterator[Any]:
        """Batches group by group, by pyarrow alone where a column is not what it seemed."""
        for number, group in zip(self.groups, groups, strict=True):
            done = 0
            try:
                for batch in group.batches(names, n_rows):
                    yield batch
                    done += batch.num_rows
            except NotPlain:
                self.remembered.leave_to_pyarrow(self.path, number)
                for batch in _decoded(file, [number], names, n_rows):
                    if batch.num_rows > done:
                        yield batch.slice(done)
                    done -= min(done, batch.num_rows)

    def _whole(self, table: Any, columns: list[str], schema: Any) -> Any:
        """With the columns that the folder names, and nulls in those that the file lacks."""
        pyarrow = import_module("pyarrow")
        for place, name in enumerate(columns):
            if name not in table.column_names:
                field = schema.field(name)
                value = pyarrow.scalar(self.keys.get(name)).cast(field.type)
                table = table.add_column(place, field, pyarrow.repeat(value, table.num_rows))
        return table


def _decoded(file: Any, groups: Sequence[int], names: list[str], n_rows: int) -> Iterator[Any]:
    """Batches by pyarrow."""
    return file.iter_batches(n_rows, list(groups), names, use_threads=False)


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
    remembered = Remembered()
    start = 0
    try:
        fragments = list(dataset.get_fragments())
    except ValueError:  # some of the rows are filtered out
        return None
    for fragment in fragments:
        keys = datasets.get_partition_keys(fragment.partition_expression)
        for groups, n_rows in _runs(fragment.metadata):
            parts.append(
                Part(fragment.path, fragment.metadata, groups, start, n_rows, keys, remembered)
            )
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
