"""Columns with any number of states, each with a probability of its own (Exercise 4.11)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from posteriori.errors import MissingValueError
from posteriori.likelihood.family import Entries, Family, Mask, Places, in_parts
from posteriori.rows.block import MISSING, UNSEEN
from posteriori.typing import Array

Levels: TypeAlias = tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class Categorical(Family):
    """State l of column j has probability μ_kjl: ln p(x|C_k) = Σ_j ln μ_k,j,x_j.

    `tables` has for each column the logarithms (L + 2, K): one row a level, then that of a level
    never seen, then zeros for an entry that is missing, so that the codes -2 and -1 find them.
    `coded` says whether x holds codes of levels, or the levels themselves (numbers).

    >>> column = Categorical.of_probabilities((("a", "b"),), [np.array([[0.2, 0.8]])], coded=True)
    >>> np.exp(column.log_density(np.array([[1], [-1]])))
    array([[0.8],
           [1. ]])
    """

    levels: Levels
    tables: tuple[Array, ...]
    coded: bool

    name = "categorical"
    domain = "a finite number or a level"
    summary = "counts"

    @classmethod
    def of_probabilities(
        cls, levels: Levels, probability: Sequence[Array], coded: bool, unseen: Any = None
    ) -> Self:
        """From tables (K, L) of probabilities, and (K,) for a level never seen (else zero)."""
        unseen = [np.zeros(len(p)) for p in probability] if unseen is None else unseen
        with np.errstate(divide="ignore"):
            tables = [
                np.log(np.vstack([p.T, u[None], np.ones((1, len(p)))]))
                for p, u in zip(probability, unseen, strict=True)
            ]
        return cls(levels, tuple(tables), coded)

    @classmethod
    def estimate(
        cls,
        levels: Levels,
        counts: Sequence[Array],
        pseudocount: float,
        places: Places,
        *,
        coded: bool,
    ) -> Self:
        """μ = (N_kl + α) / (N_k + αL) from tables (K, L); α / (N_k + αL) for a state not seen."""
        probability, unseen = [], []
        for j, table in enumerate(counts):
            _check_levels(levels[j], places, j)
            if pseudocount == 0:
                (table,) = places.fill_vacant(table)
            total = table.sum(axis=1) + pseudocount * table.shape[1]
            _check_total(total, places, j)
            probability.append((table + pseudocount) / total[:, None])
            unseen.append(pseudocount / total)
        return cls.of_probabilities(levels, probability, coded, unseen)

    @staticmethod
    def outside(x: Array) -> Mask:
        return np.isinf(x)

    def log_density(self, x: Any) -> Array:
        values = np.zeros((len(x), self.tables[0].shape[1]))
        for j, table in enumerate(self.tables):
            codes = x[:, j] if self.coded else codes_among(self.levels[j], x[:, j])
            values += table[codes]
        return values

    def quick(self, x: Entries) -> Array:
        values = in_parts(self.log_density, x)
        return values if self.coded else self.spoil(values, x)

    def draw(self, k: int, n: int, random: np.random.Generator) -> Array:
        drawn = np.empty((n, len(self.tables)))
        for j, levels in enumerate(self.levels):
            p = np.exp(self.tables[j][: len(levels), k])
            codes = random.choice(len(levels), n, p=p / p.sum())
            drawn[:, j] = codes if self.coded else np.take(levels, codes)
        return drawn

    @property
    def n_parameters(self) -> int:
        K = self.tables[0].shape[1]
        return K * sum(len(levels) - 1 for levels in self.levels)

    def column(self, j: int) -> dict[str, Any]:
        table = np.exp(self.tables[j]).T
        n_levels = len(self.levels[j])
        return {
            "levels": self.levels[j],
            "probability": table[:, :n_levels],
            "unseen": table[:, n_levels],
        }


def codes_among(levels: Sequence[float], x: Array) -> NDArray[np.intp]:
    """The place of each number among sorted levels; UNSEEN or MISSING where it has none.

    >>> codes_among((1.0, 3.0), np.array([3.0, 2.0, np.nan]))
    array([ 1, -2, -1])
    """
    known = np.asarray(levels, dtype=np.float64)
    codes = np.minimum(np.searchsorted(known, x), len(known) - 1)
    codes[known[codes] != x] = UNSEEN
    codes[np.isnan(x)] = MISSING
    return codes


def _check_levels(levels: tuple[Any, ...], places: Places, j: int) -> None:
    if not levels:
        raise MissingValueError(
            f"{places.column(j).capitalize()} has no entry: all of them are missing.",
            "Drop the column.",
        )


def _check_total(total: Array, places: Places, j: int) -> None:
    lacking = np.zeros((len(total), len(places.columns)), dtype=np.bool_)
    lacking[:, j] = total == 0
    places.check_counted(np.where(lacking, 0.0, 1.0))
