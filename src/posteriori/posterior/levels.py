"""Ever more of the rows, on which a fit starts before it looks at all of them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from posteriori.posterior.objective import LogPosterior
from posteriori.rows.chunked import ChunkedRows
from posteriori.rows.look import GROWTH, sample_halvings
from posteriori.rows.rows import Rows
from posteriori.statistics.sample import sample_rows

_ROWS_PER_PARAMETER = 12
_SMALLEST_SAMPLE = 1000
_DAMPING = 0.1
"""Precision that keeps a subsample whose classes can be separated from running away."""

_NOISE = 0.3
"""How near to the optimum of a subsample it pays to go, in its distance from that of all rows."""


class RowLevel(NamedTuple):
    """Rows, how many times their weight all rows have, and their share of all rows."""

    rows: Rows
    factor: float
    share: float


def row_levels(rows: Rows, p: int) -> list[RowLevel]:
    """Subsamples that grow up to all rows; only these if they are few for p parameters."""
    levels = [RowLevel(rows, 1.0, 1.0)]
    least = max(_SMALLEST_SAMPLE, _ROWS_PER_PARAMETER * p)
    if isinstance(rows, ChunkedRows):  # of which no more is brought into memory than was
        levels += _first_looked_at(rows, least)
        if len(levels) == 1:
            return levels
    many = _first_growth(rows, least) if len(levels) == 1 else GROWTH
    while levels[-1].rows.n_rows // many >= least:
        last = levels[-1]
        drawn, times = sample_rows(last.rows, many)
        many = GROWTH
        if not np.isfinite(times):
            break
        share = drawn.n_rows / rows.n_rows
        levels.append(RowLevel(drawn, last.factor * times, share))
    return levels[::-1]


def _first_growth(rows: Rows, least: int) -> int:
    """How many times the rows of the largest subsample all rows are.

    It has as many as a first look at rows elsewhere would keep, so that fits go the same way.
    """
    many = max(GROWTH, 2 ** sample_halvings(rows.n_rows, len(rows.schema)))
    return many if rows.n_rows // many >= least else GROWTH


def _first_looked_at(rows: ChunkedRows, least: int) -> list[RowLevel]:
    """The rows that the first look has brought into memory; some of them if they are not few."""
    if rows.n_rows // GROWTH < least or not rows.look.drawn.n_rows:
        return []
    some, times = rows.sample
    if some.n_rows > rows.n_rows // 2:
        some, more = sample_rows(some, GROWTH)
        times *= more
    if some.n_rows < least or not np.isfinite(times):
        return []
    return [RowLevel(some, times, some.n_rows / rows.n_rows)]


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
