"""Ever more of the rows, on which a fit starts before it looks at all of them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from posteriori.posterior.objective import LogPosterior
from posteriori.rows.rows import Rows
from posteriori.statistics.row_sample import sample_rows

_ROWS_PER_PARAMETER = 12
_SMALLEST_SAMPLE = 1000
GROWTH = 8
"""How many times as many rows a fit goes on to, from a subsample, at least."""

_SAMPLE_ENTRIES = 2**22
"""Numbers of the largest subsample, or up to twice as many."""

_FEWEST_COLUMNS = 8
"""Columns that a row counts as, at least: it has a label and a weight too."""

MOST_ENTRIES = 2**25
"""Numbers of a subsample at most; where these are too few rows, a fit starts without one."""

_DAMPING = 0.1
"""Precision that keeps a subsample whose classes can be separated from running away."""

_NOISE = 0.3
"""How near to the optimum of a subsample it pays to go, in its distance from that of all rows."""


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
        some, times = sample_rows(last.rows, many)
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
    width = getattr(rows, "width", len(rows.schema))
    most = min(2 * least, int(MOST_ENTRIES / width))
    return max(GROWTH, rows.n_rows // max(most, 1))


def _usual_growth(rows: Rows) -> int:
    """How many times the rows of the largest subsample all rows are, by the number of columns."""
    most = 2 * _SAMPLE_ENTRIES // max(len(rows.schema), _FEWEST_COLUMNS)
    return max(GROWTH, 2 ** int(np.ceil(np.log2(max(rows.n_rows / most, 1)))))


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
