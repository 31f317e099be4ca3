"""The rows whose means go to zero as coefficients run to infinity, and what they share."""

from dataclasses import dataclass

import numpy as np

from posteriori.design.columns import Columns
from posteriori.posterior.objective import LogPosterior
from posteriori.rows.block import Block, Mixed
from posteriori.statistics.statistic import Statistic
from posteriori.typing import Array, Codes

_NOTHING = 1e-9
"""Activations of this size, beside coefficients of size one, are rounding."""

_MOST_LEVELS = 3
"""Levels that a message lists."""


@dataclass(frozen=True, eq=False)
class Pulled(Statistic):
    """How many rows go, the first of them, and for each factor how many do at each level and how
    many rows there are in all."""

    n_rows: int
    first: int
    going: tuple[Codes, ...]
    all_rows: tuple[Codes, ...]

    def __add__(self, other: "Pulled") -> "Pulled":
        known = [part.first for part in (self, other) if part.n_rows]
        return Pulled(
            self.n_rows + other.n_rows,
            min(known, default=0),
            tuple(a + b for a, b in zip(self.going, other.going, strict=True)),
            tuple(a + b for a, b in zip(self.all_rows, other.all_rows, strict=True)),
        )

    def words(self, columns: Columns) -> str:
        """What they have in common: the levels that no other row has, or else their numbers."""
        schema = columns.schema
        for j, going, everyone in zip(schema.categorical, self.going, self.all_rows, strict=True):
            levels = np.flatnonzero((going > 0) & (going == everyone))
            if going[levels].sum() == self.n_rows:
                named = [repr(schema.columns[j].levels[k]) for k in levels[:_MOST_LEVELS]]
                more = len(levels) - len(named)
                either = " or ".join(named) + (f" (and {more} more)" if more else "")
                return f"every target with {schema.columns[j].name} = {either} is zero"
        if self.n_rows == 1:
            return f"the target of row {self.first} is zero"
        return f"the targets of row {self.first} and {self.n_rows - 1} more are zero"


@dataclass(frozen=True, eq=False)
class GatherPulled:
    """The kernel: a block to its rows whose activations move along a direction (p,), by its sign.

    None of them has a target above zero.
    """

    objective: LogPosterior
    direction: Array
    sign: float

    def __call__(self, block: Block) -> Pulled:
        found = self.sign * along(self.objective, self.direction[:, None], block)[:, 0]
        going = (found > 0) & (self.objective.target(block) <= 0)
        schema, X = self.objective.columns.schema, block.X
        codes = X.codes.T if isinstance(X, Mixed) else np.empty((0, len(going)), dtype=np.int32)
        sizes = [len(schema.columns[j].levels) for j in schema.categorical]
        each = [np.maximum(one, 0) for one in codes]  # levels never seen count as the reference
        return Pulled(
            int(going.sum()),
            block.row(int(np.argmax(going))) if going.any() else 0,
            tuple(np.bincount(c[going], minlength=n) for c, n in zip(each, sizes, strict=True)),
            tuple(np.bincount(c, minlength=n) for c, n in zip(each, sizes, strict=True)),
        )


def along(objective: LogPosterior, directions: Array, block: Block) -> Array:
    """φᵀθ (n, k) of the rows of a block, θ along k directions (p, k) of the free parameters."""
    theta = np.concatenate([objective.coordinates.expand(v) for v in directions.T])
    theta = objective.standard.outward(theta)
    first = int(objective.standard.intercept)
    design = objective.standard.design(objective.columns.design(block))
    found = design.times(theta[:, first:].T)
    if first:
        found = found + theta[:, 0]
    found[abs(found) < _NOTHING * abs(theta).max(axis=1)] = 0.0
    return found
