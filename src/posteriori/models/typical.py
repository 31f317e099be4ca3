"""What is typical of a column: its mean, spread, quartiles, and most frequent level."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from posteriori.errors import MissingValueError
from posteriori.rows.changes import Change, Entries, set_to
from posteriori.rows.schema import Schema
from posteriori.typing import Array

_EPSILON = float(np.finfo(np.float64).eps)

_SHARE = 0.02
"""Of the smallest entry, where all are positive: their logarithms must stay what they are."""


@dataclass(eq=False)
class Entry:
    """The entries of a column, and the weights of their rows; missing ones are left out.

    >>> column = Entry(np.array([1.0, 2.0, np.nan, 6.0]), None)
    >>> column.mean, round(column.deviation, 3), column.quantile(0.5)
    (3.0, 2.646, 2.0)
    """

    values: Entries
    weight: Array | None
    name: str = "column"

    @cached_property
    def present(self) -> tuple[Array, Array]:
        """The finite entries, and their weights."""
        values = np.asarray(self.values, dtype=np.float64)
        weight = np.ones(len(values)) if self.weight is None else self.weight
        kept = np.isfinite(values) & (weight > 0)
        if not kept.any():
            raise MissingValueError(
                f"All entries of {self.name} are missing.", "Pass rows that have some."
            )
        return values[kept], weight[kept]

    @property
    def mean(self) -> float:
        values, weight = self.present
        return self._unit * float(np.average(values / self._unit, weights=weight))

    @property
    def deviation(self) -> float:
        """The standard deviation, a weight of two being two rows; zero for one row."""
        values, weight = self.present
        freedom = weight.sum() - 1
        squares = weight @ np.square((values - self.mean) / self._unit)
        return self._unit * float(np.sqrt(squares / freedom)) if freedom > 0 else 0.0

    @property
    def _unit(self) -> float:
        """The size of the largest entry: squares leave the doubles long before entries do."""
        return float(abs(self.present[0]).max()) or 1.0

    def quantile(self, share: float) -> float:
        """The smallest entry up to which there is this share of the weight."""
        values, weight = self.present
        order = np.argsort(values)
        below = np.cumsum(weight[order])
        place = np.searchsorted(below, share * below[-1] * (1 - 1e-12))
        return float(values[order][min(place, len(values) - 1)])

    @property
    def apart(self) -> tuple[float, float]:
        """Two values far from each other, of the same sign as the entries.

        They are the outer tenths; where those are one, values nearer to zero and farther off.
        """
        low, high = self.quantile(0.1), self.quantile(0.9)
        if low < high:
            return low, high
        return low / 16, 2 * low + (1.0 if low >= 0 else -1.0)

    @property
    def most_frequent(self) -> float:
        """The entry with most weight, the smallest of several; a missing level is none."""
        values, weight = self.present
        levels, places = np.unique(values, return_inverse=True)
        share = np.bincount(places, weight * (values >= 0))
        return float(levels[share.argmax()])

    @property
    def small_step(self) -> float:
        """A step h over which differences of the fourth order stand for derivatives.

        In deviations, its fourth power and the rounding of entries divided by h are alike.
        """
        spread = self.deviation or self._unit
        step = spread * (_EPSILON * max(1.0, self._unit / spread)) ** 0.2
        smallest = float(self.present[0].min())
        return min(step, _SHARE * smallest) if 0 < _SHARE * smallest < step else step


def typical_changes(schema: Schema, entries: Sequence[Entry]) -> list[Change]:
    """What makes any row the typical one: means of numbers, most frequent levels and booleans."""
    return [
        set_to(j, entry.mean if column.kind == "numeric" else entry.most_frequent)
        for j, (column, entry) in enumerate(zip(schema.columns, entries, strict=True))
    ]
