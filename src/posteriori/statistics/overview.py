"""Rows at a glance: range, mean and spread of each column, and a sample of the rows."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils.random import sample_without_replacement

from posteriori.design.columns import Columns
from posteriori.rows.block import Block, split_sparse
from posteriori.rows.finite import check_finite
from posteriori.rows.memory import MemoryRows
from posteriori.rows.rows import Rows
from posteriori.rows.schema import Schema
from posteriori.rows.tables import Table
from posteriori.statistics.column_moments import GatherColumnMoments
from posteriori.statistics.gather import gather
from posteriori.typing import Array, Codes

SAMPLE = 10_000
"""A sample has all rows, or this many of them."""


@dataclass(frozen=True, eq=False)
class Overview:
    """Of each column the least and largest value, the mean and the standard deviation (d,).

    `spread` is infinite for columns that are constant: they have no length to measure by.
    """

    schema: Schema
    n_rows: int
    low: Array
    high: Array
    mean: Array
    spread: Array
    sample: Array


def look_over(table: Table, random: Any) -> Overview:
    """The overview of a table of numbers, none of which may be missing or infinite."""
    chosen = np.arange(table.n_rows)
    if len(chosen) > SAMPLE:
        chosen = np.sort(sample_without_replacement(len(chosen), SAMPLE, random_state=random))
    rows = MemoryRows(table, np.zeros(table.n_rows, dtype=np.intp))
    # Lists are added end to end, so that a list of what each block gives is a sum over rows too.
    parts = rows.map_sum(lambda block: list(_glances(block, table.schema, chosen)))
    lows, highs, samples = zip(*parts, strict=True)
    low, high = np.min(lows, axis=0), np.max(highs, axis=0)
    mean, deviation = _mean_and_deviation(rows)
    spread = np.where(low < high, deviation, np.inf)
    return Overview(table.schema, table.n_rows, low, high, mean, spread, np.concatenate(samples))


def _glances(block: Block, schema: Schema, chosen: Codes) -> Iterator[tuple[Array, Array, Array]]:
    """Least and largest values, and the chosen rows, of each part of a block."""
    for part in split_sparse(block):
        X = dense(part, schema)
        first, last = np.searchsorted(chosen, (part.start, part.start + len(X)))
        yield X.min(axis=0), X.max(axis=0), X[chosen[first:last] - part.start]


def _mean_and_deviation(rows: Rows) -> tuple[Array, Array]:
    """Mean and standard deviation of each column, as of a single class."""
    one_class = np.zeros(1, dtype=np.intp)
    moments = gather(rows, GatherColumnMoments(Columns(rows.schema), one_class))
    deviation = np.sqrt(moments.scatter[0] / moments.count[0]) * moments.unit
    return moments.mean[0] * moments.unit, deviation


def dense(block: Block, schema: Schema) -> Array:
    """The numbers of a block as an array; an error names one that is missing or infinite."""
    X = block.X.toarray() if isinstance(block.X, csr_array) else cast(Array, block.X)
    if not np.isfinite(X).all():
        check_finite(block, schema)
    return X
