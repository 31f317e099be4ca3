"""Rows that count the less, the farther they lie from most others.

Conventions: m columns; z = (x - centre) / scale with the medians of `Coordinates`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posteriori.design.columns import Columns
from posteriori.rows.block import Block
from posteriori.rows.rows import Kernel, Rows, S
from posteriori.rows.schema import Schema
from posteriori.statistics.coordinates import Coordinates, GatherSample
from posteriori.typing import Array, Labels

_SAMPLED = 1000
"""Rows whose medians stand for those of all."""


@dataclass(frozen=True, eq=False)
class Reweighted:
    """Rows whose weights are multiplied by a function of each block; a `Rows`."""

    rows: Rows
    factor: Callable[[Block], Array]

    @property
    def schema(self) -> Schema:
        return self.rows.schema

    @property
    def n_rows(self) -> int:
        return self.rows.n_rows

    @property
    def classes(self) -> Labels | None:
        return self.rows.classes

    @property
    def soft(self) -> bool:
        return self.rows.soft

    def map_sum(self, kernel: Kernel[S], *, block_entries: int | None = None) -> S:
        def reweighted(block: Block) -> S:
            factor = self.factor(block)
            weight = factor if block.weight is None else factor * block.weight
            return kernel(replace(block, weight=weight))

        return self.rows.map_sum(reweighted, block_entries=block_entries)


def near_rows(rows: Rows, columns: Columns) -> Reweighted:
    """The rows with weights 1/(1 + |z|²/m): a fit that single rows far away cannot turn.

    >>> from posteriori.rows.memory import read_rows
    >>> rows = read_rows([[0.0], [1.0], [2.0], [9.0]], [0, 1, 0, 1])
    >>> near_rows(rows, Columns(rows.schema)).map_sum(lambda block: block.weight).round(3)
    array([0.308, 0.8  , 0.8  , 0.017])
    """
    sample = rows.map_sum(GatherSample(columns, _nothing, _SAMPLED))
    at = Coordinates.of(sample, columns, intercept=True)

    def factor(block: Block) -> Array:
        with np.errstate(over="ignore"):
            square = np.square(at.design(block).array()).mean(axis=1)
        return 1 / (1 + square)

    return Reweighted(rows, factor)


def _nothing(block: Block) -> NDArray[Any]:
    return np.zeros(block.X.shape[0])
