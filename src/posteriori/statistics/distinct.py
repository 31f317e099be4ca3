"""The distinct rows of a matrix that is made block by block."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from posteriori.rows.block import Block
from posteriori.statistics.statistic import Statistic
from posteriori.typing import Array


@dataclass(frozen=True, eq=False)
class Distinct(Statistic):
    """Rows (m, k), each once."""

    rows: Array

    def __add__(self, other: "Distinct") -> "Distinct":
        return Distinct(np.unique(np.concatenate([self.rows, other.rows]), axis=0))


@dataclass(frozen=True, eq=False)
class GatherDistinct:
    """The kernel: a block to the distinct rows of what is made of it."""

    values: Callable[[Block], Array]

    def __call__(self, block: Block) -> Distinct:
        return Distinct(np.unique(self.values(block), axis=0))
