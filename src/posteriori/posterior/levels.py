"""Ever more of the rows, on which a fit starts before it looks at all of them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from posteriori.posterior.objective import LogPosterior
from posteriori.rows.chunked import ChunkedRows
from posteriori.rows.in_memory import MemoryRows
from posteriori.rows.look import GROWTH, sample_halvings
from posteriori.rows.rows import Rows
from posteriori.statistics.row_sample import sample_rows

_ROWS_PER_PARAMETER = 12
_SMALLEST_SAMPLE = 1000
MOST_ENTRIES = 2**25
"""Numbers of a subsample at most; where these are too few rows, a fit starts without one."""

_DAMPING = 0.1
"""Precision that keeps a subsample whose classes can be separated from running away."""

_NOISE = 0.3
"""How near to the optimum of a subsample it pays to go, in its distance from that of all rows."""


_Counted = ChunkedRows | MemoryRows


class RowLevel(NamedTuple):
    """Rows, how many times their weight all rows have, and their share of all rows."""

    rows: Rows
    factor: float
    share: float


def all_rows(rows: Rows) -> RowLevel:
    """The last level."""
    return RowLevel(rows, 1.0, 1.0)


def row_levels(rows: Rows, p: int) -> list[RowLevel]:
    """Subsamples that grow up to all rows; only these if they are few for p parameters."""
    levels = [all_rows(rows)]
    least = max(_SMALLEST_SAMPLE, _ROWS_PER_PARAMETER * p)
    many = _first_growth(rows, least)
    while levels[-1].rows.n_rows // many >= least:
        last = levels[-1]
        some, times = _one_in(last.rows, many)
        if some.n_rows < least or not np.isfinite(times):
            break
        levels.append(RowLevel(some, last.factor * times, some.n_rows / rows.n_rows))
        many = GROWTH
    return levels[::-1]


def _first_growth(rows: Rows, least: int) -> int:
    """How many times the rows of the largest subsample all rows are: the same from every source.

    It has the rows that a first look brings into memory; where these are too few for so many
    columns, more of them, as far as there is room.
    """
    usual = _usual_growth(rows)
    if rows.n_rows // usual >= least:
        return usual
    width = rows.width if isinstance(rows, _Counted) else len(rows.schema)
    most = min(2 * least, int(MOST_ENTRIES / width))
    return max(GROWTH, rows.n_rows // max(most, 1))


def _usual_growth(rows: Rows) -> int:
    n_rows = rows.n_source if isinstance(rows, _Counted) else rows.n_rows
    return max(GROWTH, 2 ** sample_halvings(n_rows, len(rows.schema)))


def _one_in(rows: Rows, many: int) -> tuple[MemoryRows, float]:
    """One row in `many`, in memory, and how many times their weight all rows have."""
    if isinstance(rows, ChunkedRows) and many >= _usual_growth(rows):
        return rows.one_in(many)
    return sample_rows(rows, many)


def on_levels(full: LogPosterior, levels: Sequence[RowLevel]) -> list[LogPosterior]:
    """The objective on each level; on a subsample its noise is tolerance enough."""
    p = full.coordinates.size
    rough = [
        replace(
            full,
            rows=level.rows,
            factor=level.factor,
            share=level.share,
            tolerance=_NOISE * np.sqrt(p * level.factor),
            damping=0.0 if full.penalty.proper else _DAMPING * level.factor * np.sqrt(p),
        )
        for level in levels[:-1]
    ]
    return [*rough, full]
