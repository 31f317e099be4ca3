"""Each row's own class against the others: what a linear function has to do to separate them.

Conventions: n rows, K classes. Two classes have one activation a row, c = 1, that of the second
class, the first one's being zero; more have c = K. A row has q pairs, q = 1 for two classes and
q = K for more, of which the one of a class with itself says nothing.

A step along θ lowers the likelihood of no row if, on each row, the classes that it may belong to
share the largest activation. So each pair gives a constraint: the margin a_own - a_other is not
negative, or is zero where the other class has a share in the row, too. A row with one label has
margins s φᵀθ, s = ±1, for two classes, and φᵀ(θ_y - θ_k) for more (Albert and Anderson 1984). For
counts, whose rate falls to zero with the activation, the two classes are none and some: φᵀθ ≤ 0
where nothing was counted, φᵀθ = 0 where something was.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from posteriori.rows.block import Block
from posteriori.typing import Array, Codes

Mask = NDArray[np.bool_]

Support = Callable[[Block], NDArray[Any]]
"""The classes that the rows of a block may belong to: codes (n,), or a mask (n, K)."""

TOUCHING = 1e-9
"""Margins of this size, for rows and directions of size one, cannot be told from zero."""


def by_label(block: Block) -> NDArray[Any]:
    """The class of each row, or the classes with a share in it."""
    y = cast(NDArray[Any], block.y)
    return y if y.ndim == 1 else y > 0


def by_count(block: Block) -> NDArray[Any]:
    """The first of two classes where a row counted nothing, both where it counted something."""
    some = cast(Array, block.y) > 0
    return np.column_stack([np.ones(len(some), dtype=bool), some])


@dataclass(frozen=True, eq=False)
class Pairs:
    """The pairs of some rows.

    own (n,): the class of a row, or the first of those that share it. equal (n, q): where the
    margin must be zero; None for nowhere.

    >>> pairs = Pairs.of(np.array([0, 1]), 2)
    >>> pairs.margins(np.array([[-3.0], [2.0]])).tolist()
    [[3.0], [2.0]]
    """

    n_classes: int
    own: Codes
    equal: Mask | None

    @classmethod
    def of(cls, support: NDArray[Any], n_classes: int) -> "Pairs":
        """The pairs of rows with the given classes."""
        if support.ndim == 1:
            return cls(n_classes, support, None)
        own = support.argmax(axis=1)
        if n_classes == 2:
            return cls(2, own, support[:, :1] & support[:, 1:])
        equal = support.copy()
        equal[np.arange(len(own)), own] = False
        return cls(n_classes, own, equal)

    def all(self) -> Mask:
        """All pairs of two classes, as a mask (n, q)."""
        if self.n_classes == 2:
            return np.ones((len(self.own), 1), dtype=bool)
        return self.own[:, None] != np.arange(self.n_classes)

    def unequal(self) -> Mask:
        """The pairs whose margin may be positive (n, q)."""
        return self.all() if self.equal is None else self.all() & ~self.equal

    def margins(self, activation: Array) -> Array:
        """a_own - a_other (n, q); infinite for a class with itself."""
        if self.n_classes == 2:
            return np.where(self.own == 1, activation[:, 0], -activation[:, 0])[:, None]
        rows = np.arange(len(self.own))
        margins = activation[rows, self.own][:, None] - activation
        margins[rows, self.own] = np.inf
        return margins

    def slack(self, margins: Array) -> Array:
        """The margin where it must not be negative; minus its size where it must be zero, unless
        it is zero already."""
        if self.equal is None:
            return margins
        wrong = np.where(abs(margins) > TOUCHING, -abs(margins), np.inf)
        return np.where(self.equal, wrong, margins)

    def directions(self, rows: Codes, others: Codes) -> Array:
        """The margins of some pairs as functions of the activations (k, c)."""
        own = self.own[rows]
        if self.n_classes == 2:
            return np.where(own == 1, 1.0, -1.0)[:, None]
        unit = np.eye(self.n_classes)
        return unit[own] - unit[others]

    def are_equal(self, rows: Codes, others: Codes) -> Mask:
        """Whether the margins of some pairs must be zero (k,)."""
        if self.equal is None:
            return np.zeros(len(rows), dtype=bool)
        return self.equal[rows, 0 if self.n_classes == 2 else others]

    def sums(self, times: Array) -> Array:
        """Σ over a row's pairs of `times` (n, q) its margin, as a form in activations (n, c)."""
        if self.n_classes == 2:
            return np.where(self.own == 1, 1.0, -1.0)[:, None] * times
        rows, sums = np.arange(len(self.own)), -times
        sums[rows, self.own] = 0.0
        sums[rows, self.own] = -sums.sum(axis=1)
        return sums
