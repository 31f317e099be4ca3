"""One pass over the rows; more only where a column is too large or too small to be squared."""

from dataclasses import replace
from typing import Any

from posteriori.rows.rows import Rows
from posteriori.statistics.extremes import GatherExtremes

_SMALLEST_SQUARE, _LARGEST_SQUARE = 1e-200, 1e200
"""Room is left for the squares of class means, which can be larger than those within classes."""


def gather(rows: Rows, kernel: Any, *, block_entries: int | None = None) -> Any:
    """The statistic of all rows, in units of each column's size where squares leave the doubles.

    `kernel` is a dataclass with `columns` and `unit`; its statistic has `squares` (d,).
    """
    found = rows.map_sum(kernel, block_entries=block_entries)
    squares = found.squares
    if ((squares > _SMALLEST_SQUARE) & (squares < _LARGEST_SQUARE)).all():
        return found
    unit = rows.map_sum(GatherExtremes(kernel.columns)).unit()
    return rows.map_sum(replace(kernel, unit=unit), block_entries=block_entries)
