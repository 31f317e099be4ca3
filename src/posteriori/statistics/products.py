"""Σ φφᵀ with the intercept first: which columns can be had from others."""

from dataclasses import dataclass

import numpy as np

from posteriori.design.columns import Columns
from posteriori.design.standard import Standard
from posteriori.rows.block import Block
from posteriori.statistics.local_quadratic import bordered
from posteriori.statistics.statistic import Statistic
from posteriori.typing import Array


@dataclass(frozen=True, eq=False)
class Products(Statistic):
    """Σ φφᵀ (q, q) of the columns that a `Standard` sums, weighted."""

    matrix: Array

    def __add__(self, other: "Products") -> "Products":
        return Products(self.matrix + other.matrix)


@dataclass(frozen=True, eq=False)
class GatherProducts:
    """The kernel: a block of rows to its `Products`."""

    columns: Columns
    standard: Standard

    def __call__(self, block: Block) -> Products:
        design = self.standard.design(self.columns.design(block))
        weight = np.ones(block.X.shape[0]) if block.weight is None else block.weight
        return Products(bordered(design, weight, self.standard.intercept))
