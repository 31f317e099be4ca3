"""Row groups of Parquet files of which columns are read as they lie, side by side in memory."""

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from posteriori.rows.page_heads import NotPlain
from posteriori.rows.pages import WIDTH, PlainColumn, plain_column

_DECODED = 2**14
"""Rows that are decoded at once, where the numbers after them are read as they lie."""

_REMEMBERED = 2**14
"""Columns of row groups of which is remembered how they lie: some MiB. Of others it is learnt in
each pass."""


_IS_POSSIBLE = hasattr(os, "preadv") and sys.byteorder == "little"
"""Whether the system can fill several pieces of memory at once with what a file holds."""


@contextmanager
def as_it_lies(path: str) -> Iterator[int]:
    """A file by itself."""
    file = os.open(path, os.O_RDONLY)
    try:
        yield file
    finally:
        os.close(file)


class Remembered:
    """How columns of row groups are read as they lie, as far as there is room to remember it."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, int, int], PlainColumn | None] = {}

    def columns(
        self, file: int, path: str, metadata: Any, group: int, names: Sequence[str]
    ) -> dict[str, PlainColumn]:
        """Those of the columns of doubles that can be read as they lie."""
        if not _IS_POSSIBLE:
            return {}
        schema = metadata.schema
        paths = [schema.column(i).path for i in range(len(schema.names))]
        numbers, often = {name: i for i, name in enumerate(paths)}, Counter(paths)
        own = {name: numbers[name] for name in names if often[name] == 1}
        found = {name: self._column(file, path, metadata, group, i) for name, i in own.items()}
        return {name: column for name, column in found.items() if column is not None}

    def _column(
        self, file: int, path: str, metadata: Any, group: int, number: int
    ) -> PlainColumn | None:
        key = (path, group, number)
        if key in self._found:
            return self._found[key]
        found = plain_column(file, metadata, group, number)
        if len(self._found) < _REMEMBERED:
            self._found[key] = found
        return found

    def leave_to_pyarrow(self, path: str, group: int) -> None:
        """All columns of a row group, as one of them was not what it seemed."""
        for key in list(self._found):
            if key[:2] == (path, group):
                self._found[key] = None


@dataclass(frozen=True, eq=False)
class PlainGroup:
    """A row group of so many rows, and which of its columns are read as they lie.

    `decoded` gives batches of any columns, of at most so many rows, by pyarrow.
    """

    file: int
    n_rows: int
    plain: dict[str, PlainColumn]
    decoded: Callable[[list[str], int], Iterator[Any]]

    def batches(self, names: list[str], most: int) -> Iterator[Any]:
        """Batches of about equal size; NotPlain as soon as a column is not what it seemed."""
        if not self.plain:
            yield from self.decoded(names, most)
            return
        size = -(-self.n_rows // -(-self.n_rows // most))
        rest = [name for name in names if name not in self.plain]
        others = self.decoded(rest, size)
        begins = self._begins()
        last = max(column.first for column in self.plain.values())
        for low in range(0, self.n_rows, size):
            high = min(low + size, self.n_rows)
            out = _SideBySide(len(self.plain), high - low)
            begins.copy(min(high, last) - low, out)
            for j, column in enumerate(self.plain.values()):
                begin = min(max(low, column.first), high)
                column.read(self.file, begin, high, out.column(j)[WIDTH * (begin - low) :])
            found = dict(zip(self.plain, out.arrays(), strict=True))
            if rest:
                other = next(others, None)
                if other is None or other.num_rows != high - low:
                    raise NotPlain
                found |= {name: other.column(name) for name in rest}
            arrays = [found[name] for name in names]
            yield import_module("pyarrow").RecordBatch.from_arrays(arrays, names)

    def _begins(self) -> "_Begins":
        """What comes before the plain pages of columns that do not begin with one."""
        late = {j: name for j, name in enumerate(self.plain) if self.plain[name].first}
        return _Begins(self.decoded(list(late.values()), _DECODED), late)


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

    def __init__(self, batches: Iterator[Any], names: dict[int, str]) -> None:
        self._batches, self._names = batches, names
        self._left: Any = None

    def copy(self, n_rows: int, out: _SideBySide) -> None:
        """The next rows, to the beginning of their columns."""
        done = 0
        while done < n_rows:
            if self._left is None or not self._left.num_rows:
                self._left = next(self._batches, None)
            if self._left is None:
                raise NotPlain
            part = self._left.slice(0, n_rows - done)
            for j, name in self._names.items():
                values = part.column(name)
                if values.null_count:
                    raise NotPlain
                to = out.column(j)[WIDTH * done : WIDTH * (done + part.num_rows)]
                np.copyto(np.frombuffer(to), values.to_numpy())
            self._left = self._left.slice(part.num_rows)
            done += part.num_rows
