"""Arrow tables without detours: numbers as views, labels by their dictionary.

What is not as plain as that (gaps, levels, decimals) is left to the readers of any frame.
"""

from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posteriori.rows.schema import Schema
from posteriori.rows.tables import ColumnTable, DenseTable, Table
from posteriori.typing import Codes, Labels

_NUMBERS = {
    "double": "f",
    "float": "f",
    **{f"{sign}int{bits}": "i" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
"""Types whose values NumPy can look at where they are."""


def is_arrow(data: Any) -> bool:
    """Whether it is a table or column of pyarrow, which need not be installed."""
    return type(data).__module__.startswith("pyarrow.")


def is_table(data: Any) -> bool:
    """Whether it is a table of pyarrow."""
    return is_arrow(data) and type(data).__name__ == "Table"


def plain_numbers(column: Any) -> NDArray[Any] | None:
    """The numbers of a column; None where some are missing, or it holds something else."""
    if column.null_count or str(column.type) not in _NUMBERS:
        return None
    chunk = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return chunk.to_numpy(zero_copy_only=False)


def plain_table(table: Any, schema: Schema) -> Table | None:
    """A table of numbers with the columns of the schema; None for any other."""
    if schema.categorical or not schema.named or table.column_names != list(schema.names):
        return None
    columns = [plain_numbers(column) for column in table.columns]
    if any(values is None for values in columns):
        return None
    found = tuple(values for values in columns if values is not None)
    if _share_memory(table):
        whole = _side_by_side(found)
        if whole is not None:
            return DenseTable(whole, schema)
    return ColumnTable(found, schema, table.num_rows)


def _share_memory(table: Any) -> bool:
    """Whether all columns are in one piece of memory, where they always lie in the same way."""
    owners = set()
    for column in table.columns:
        owner = column.chunk(0).buffers()[1].parent if column.num_chunks == 1 else None
        owners.add(None if owner is None else owner.address)
    return len(owners) == 1 and None not in owners


class _SideBySide:
    """Columns as one array, which keeps them in memory."""

    def __init__(self, columns: tuple[NDArray[Any], ...], gap: int) -> None:
        self._columns, first = columns, columns[0]
        shape, strides = (len(first), len(columns)), (first.itemsize, gap)
        self.__array_interface__ = first.__array_interface__ | {"shape": shape, "strides": strides}


def _side_by_side(columns: tuple[NDArray[Any], ...]) -> NDArray[Any] | None:
    """One array of columns that lie at equal distances; None if they do not."""
    first = columns[0]
    if any(values.dtype != first.dtype for values in columns):
        return None
    begins = [values.__array_interface__["data"][0] for values in columns]
    gaps = {high - low for low, high in pairwise(begins)} or {first.nbytes}
    gap = min(gaps)
    is_matrix = len(gaps) == 1 and gap >= first.nbytes and gap % first.itemsize == 0
    return np.asarray(_SideBySide(columns, gap)) if is_matrix else None


def label_codes(column: Any, classes: Labels) -> Codes | None:
    """The place of each label among the classes; None where one is missing or unknown."""
    if column.null_count:
        return None
    names, codes = dictionary_of(column)
    place = {label: code for code, label in enumerate(classes.tolist())}
    found = np.array([place.get(name, -1) for name in names], dtype=np.intp)[codes]
    return None if (found < 0).any() else found


def dictionary_of(column: Any) -> tuple[list[Any], Codes]:
    """The different values of a column, and the place of each row's among them; -1 if missing."""
    whole = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    if not str(column.type).startswith("dictionary"):
        whole = whole.dictionary_encode()
    indices = whole.indices.cast("int64")
    codes = (indices.fill_null(-1) if whole.null_count else indices).to_numpy()
    return whole.dictionary.to_pylist(), codes


def together(batches: Iterable[Any], n_rows: int, most_bytes: int) -> Iterator[Any]:
    """Batches, which may be small, as tables of at most so many rows and not many more bytes.

    Those with dictionaries, which may differ, stay apart.
    """
    pyarrow = import_module("pyarrow")
    found: list[Any] = []
    rows = n_bytes = 0
    for batch in batches:
        if found and (rows + batch.num_rows > n_rows or n_bytes > most_bytes):
            yield pyarrow.Table.from_batches(found).combine_chunks()
            found, rows, n_bytes = [], 0, 0
        if any(map(pyarrow.types.is_dictionary, batch.schema.types)) and batch.num_rows:
            yield pyarrow.Table.from_batches([batch])
        elif batch.num_rows:
            found.append(batch)
            rows, n_bytes = rows + batch.num_rows, n_bytes + batch.nbytes
    if found:
        yield pyarrow.Table.from_batches(found).combine_chunks()
