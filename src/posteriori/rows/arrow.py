"""Plain numbers of Arrow tables, without detours; all else is left to the readers of any frame."""

from typing import Any

from numpy.typing import NDArray

from posteriori.rows.schema import Schema
from posteriori.rows.tables import ColumnTable
from posteriori.typing import Codes

_NUMBERS = {"double", "float", *(f"{sign}int{n}" for sign in ("", "u") for n in (8, 16, 32, 64))}
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


def plain_table(table: Any, schema: Schema) -> ColumnTable | None:
    """A table of numbers with the columns of the schema; None for any other."""
    if schema.categorical or not schema.named or table.column_names != list(schema.names):
        return None
    columns = [plain_numbers(column) for column in table.columns]
    found = tuple(values for values in columns if values is not None)
    return ColumnTable(found, schema, table.num_rows) if len(found) == len(columns) else None


def dictionary_of(column: Any) -> tuple[list[Any], Codes]:
    """The distinct values of a column, and the place of each row's among them; -1 if missing."""
    whole = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    if not str(column.type).startswith("dictionary"):
        whole = whole.dictionary_encode()
    indices = whole.indices.cast("int64")
    codes = (indices.fill_null(-1) if whole.null_count else indices).to_numpy()
    return whole.dictionary.to_pylist(), codes
