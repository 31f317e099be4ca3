"""The seam between a fit and the effects that it tells of: means of rows, slopes, and how sure.

Conventions: n rows, K means a row: one for two classes, that of the second; one for a number.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from posteriori.posterior.activation_gaussian import split_block
from posteriori.posterior.shown import Shown
from posteriori.rows.block import Block
from posteriori.typing import Array, Codes

Kernel: TypeAlias = "Callable[[Block], Moved]"


@dataclass(frozen=True, eq=False)
class Moved:
    """Values (..., K), and how far each moves (..., K, m): along m directions, or in m draws."""

    value: Array
    moved: Array

    def __add__(self, other: "Moved") -> "Moved":
        return Moved(self.value + other.value, self.moved + other.moved)

    def __mul__(self, factor: float) -> "Moved":
        return Moved(factor * self.value, factor * self.moved)

    def summed(self, weight: Array | None) -> "Moved":
        """The weighted sum over the first axis."""
        if weight is None:
            return Moved(self.value.sum(axis=0), self.moved.sum(axis=0))
        return Moved(np.tensordot(weight, self.value, 1), np.tensordot(weight, self.moved, 1))


@dataclass(frozen=True, eq=False)
class Total:
    """Sums over rows, and the weight of these."""

    weight: float
    sums: Moved

    def __add__(self, other: "Total") -> "Total":
        return Total(self.weight + other.weight, self.sums + other.sums)

    @property
    def average(self) -> Moved:
        return self.sums * (1 / self.weight)


class Measure(ABC):
    """What a fit says of the means of rows, and how sure it is.

    `has_errors` says whether anything is known of the uncertainty.
    """

    shown: Shown
    has_errors: bool = True

    @property
    @abstractmethod
    def entries(self) -> int:
        """Numbers that a row needs."""

    @abstractmethod
    def means(self, block: Block) -> Moved:
        """Means (n, K) of rows."""

    @abstractmethod
    def slopes(self, block: Block, places: Codes) -> Moved:
        """Their slopes (n, J, K) in J design columns, in the user's units."""

    @abstractmethod
    def judged(self, found: Moved) -> Array:
        """Estimate, standard error and both ends of an interval (..., K, 4)."""

    @abstractmethod
    def judged_means(self, found: Moved) -> Array:
        """The same of averages of means, with ends that a mean can have."""

    @property
    def sum_entries(self) -> int:
        """Numbers that a row needs in sums."""
        return self.entries

    @property
    def n_means(self) -> int:
        """K."""
        return self.shown.coordinates.n_activations

    def parts(self, block: Block) -> Iterator[Block]:
        """A block in parts that there is room for."""
        return split_block(block, self.entries)

    def derived(self, found: Moved) -> Moved:
        """Slopes that were taken by differences of means over small steps."""
        return found

    def total_means(self, block: Block) -> Moved:
        """The weighted sum (K,) of the means of rows."""
        return self.means(block).summed(block.weight)

    def total_slopes(self, block: Block, places: Codes) -> Moved:
        """The weighted sum (J, K) of the slopes of rows."""
        return self.slopes(block, places).summed(block.weight)

    def total(self, block: Block, of_part: Kernel) -> Total:
        """Sums of a block, some rows at a time."""
        parts = [of_part(part) for part in split_block(block, self.sum_entries)]
        n = block.X.shape[0] if block.weight is None else float(block.weight.sum())
        return Total(n, sum(parts[1:], start=parts[0]))
