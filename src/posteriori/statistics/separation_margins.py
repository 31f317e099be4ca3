"""By how much a direction separates the rows: sums for the linear programs of separation.

Conventions: n rows, p parameters, q pairs a row and c activations as in `coordinates.Pairs`; a
direction is θ (p, c) in some coordinates. Where some rows are very long, margins are divided by the
lengths of their rows, so that they are of the size of θ.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from posteriori.design.columns import Columns
from posteriori.rows.block import Block, split_sparse, take_block
from posteriori.rows.finite import check_finite
from posteriori.rows.rows import Rows
from posteriori.statistics.coordinates import Coordinates, Mask, Pairs, Support, column_ranges
from posteriori.statistics.statistic import LARGEST, SMALLEST, MappedRows, Maximum, Statistic
from posteriori.typing import Array, Codes, Labels

CLEAR = 1e-6
"""Margins above this, along a θ of size one, are positive beyond doubt."""

OPEN = 0.5
"""Along a ray a margin is zero or at least one; below this it is taken for zero."""


@dataclass(frozen=True, eq=False)
class Ray:
    """A direction that separates: along it the margin of each pair is zero, or one and more.

    Pairs of margin zero are open; the others are separated.
    """

    coordinates: Coordinates
    theta: Array

    def margins(self, block: Block, pairs: Pairs) -> Array:
        """Margins along the ray (n, q), as they are."""
        with np.errstate(over="ignore", invalid="ignore"):
            design = self.coordinates.design(block)
            margins = pairs.margins(self.coordinates.times(design, self.theta))
        if np.isnan(margins).any():
            check_finite(block, self.coordinates.columns.schema)
        return margins

    def open(self, block: Block, pairs: Pairs) -> Mask:
        """The pairs that the ray does not separate (n, q)."""
        return self.margins(block, pairs) * self.coordinates.shortening(block) <= OPEN


@dataclass(frozen=True, eq=False)
class PairsOf:
    """The pairs of a block's rows, and which of them are open: all, or those not on a ray."""

    support: Support
    n_classes: int
    ray: Ray | None = None

    def __call__(self, block: Block) -> tuple[Pairs, Mask]:
        pairs = Pairs.of(self.support(block), self.n_classes)
        return pairs, pairs.all() if self.ray is None else self.ray.open(block, pairs)

    def has_open(self, block: Block) -> Mask:
        """The rows with an open pair (n,)."""
        return cast(Mask, self(block)[1].any(axis=1))


@dataclass(frozen=True, eq=False)
class PairKernel(ABC):
    """A kernel over the pairs of the rows of a block, in some coordinates.

    A sparse block whose rows have to be filled in is summed piece by piece.
    """

    coordinates: Coordinates
    pairs: PairsOf

    def __call__(self, block: Block) -> Any:
        return reduce(add, map(self._sum, pieces(self.coordinates, block)))

    @abstractmethod
    def _sum(self, block: Block) -> Any:
        """What the pairs of the rows add up to."""

    def _margins(self, block: Block, pairs: Pairs, theta: Array) -> Array:
        """Margins along θ (n, q), over the lengths of long rows."""
        margins = Ray(self.coordinates, theta).margins(block, pairs)
        return margins * self.coordinates.shortening(block)


def pieces(coordinates: Coordinates, block: Block) -> Iterable[Block]:
    """The block, in pieces where it is sparse and has to be filled in."""
    fills_in = coordinates.far and isinstance(block.X, sparse.csr_array)
    return split_sparse(block) if fills_in else (block,)


_FILLED_IN = 2**19
"""Numbers of rows that are filled in at once."""


class Constraints(NamedTuple):
    """Constraints φᵀ θ e ≥ goal (or =, where `equal`), with φ (k, p), e (k, c) and goal (k,).

    `slack` (k,) is what the left side had beyond the goal when the constraint was found. φ is
    sparse: with factors of many levels, most of its entries are zero.
    """

    rows: sparse.csr_array
    directions: Array
    goal: Array
    equal: Mask
    slack: Array

    def worst(self, most: int) -> "Constraints":
        """The `most` of them with the least slack."""
        return self.chosen(np.argsort(self.slack, kind="stable")[:most])

    def chosen(self, places: Codes | Mask) -> "Constraints":
        """Some of them."""
        values: list[Any] = [part[places] for part in self]
        return Constraints(*values)

    def joined(self, other: "Constraints") -> "Constraints":
        """Both sets of constraints."""
        pairs = zip(self[1:], other[1:], strict=True)
        values: list[Any] = [np.concatenate(pair) for pair in pairs]
        return Constraints(sparse.vstack([self.rows, other.rows], format="csr"), *values)


@dataclass(frozen=True, eq=False)
class Margins(Statistic):
    """The margins of all rows along a direction θ.

    Of the open pairs: how many there are (`n_open`), how many have a `CLEAR` margin (`n_clear`),
    and the least of these. Of the constraints requested: the `most` worst of those not met.
    """

    most: int
    n_open: int
    n_clear: int
    least_clear: float
    worst: Constraints

    def __add__(self, other: "Margins") -> "Margins":
        return Margins(
            self.most,
            self.n_open + other.n_open,
            self.n_clear + other.n_clear,
            min(self.least_clear, other.least_clear),
            self.worst.joined(other.worst).worst(self.most),
        )


@dataclass(frozen=True, eq=False)
class GatherMargins(PairKernel):
    """The kernel: a block to the `Margins` of its rows along θ.

    The constraints are those of the open pairs; with a `goal`, that open pairs have margin zero
    and separated ones the goal at least. Met are those with a slack of `floor` and more.
    """

    theta: Array
    floor: float
    most: int
    goal: float | None = None

    def _sum(self, block: Block) -> Margins:
        pairs, is_open = self.pairs(block)
        short = self.coordinates.shortening(block)
        margins = self._margins(block, pairs, self.theta)
        clear = margins[is_open & (margins > CLEAR)]
        if self.goal is None:
            slack = np.where(is_open, pairs.slack(margins), np.inf)
        else:
            slack = np.where(is_open, -abs(margins), margins - self.goal)
        chosen, others = self._lacking(slack)
        return Margins(
            self.most,
            int(is_open.sum()),
            len(clear),
            float(clear.min(initial=np.inf)),
            Constraints(
                self._rows(block, chosen, short),
                pairs.directions(chosen, others),
                *self._goals(pairs, is_open, chosen, others),
                slack[chosen, others],
            ),
        )

    def _rows(self, block: Block, chosen: Codes, short: Array) -> sparse.csr_array:
        """φ of the rows chosen, filled in a few at a time."""
        step = max(1, _FILLED_IN // (len(self.coordinates.scale) + 1))
        parts = [chosen[low : low + step] for low in range(0, max(len(chosen), 1), step)]
        return sparse.vstack(
            [sparse.csr_array(self.coordinates.rows(block, p) * short[p]) for p in parts],
            format="csr",
        )

    def _lacking(self, slack: Array) -> tuple[Codes, Codes]:
        """Rows and other classes of the pairs with too little slack, the worst few of each row."""
        rows, few = np.arange(len(slack)), 1 + slack.shape[1] // 20
        if few == 1:
            chosen, others = rows, slack.argmin(axis=1)
        else:
            others = np.argpartition(slack, few, axis=1)[:, :few].ravel()
            chosen = rows.repeat(few)
        least = slack[chosen, others]
        kept = np.flatnonzero(least < self.floor)
        if len(kept) > self.most:
            kept = kept[np.argpartition(least[kept], self.most)[: self.most]]
        return chosen[kept], others[kept]

    def _goals(
        self, pairs: Pairs, is_open: Mask, chosen: Codes, others: Codes
    ) -> tuple[Array, Mask]:
        """What the margins have to reach, and where they must be no more."""
        if self.goal is None:
            return np.zeros(len(chosen)), pairs.are_equal(chosen, others)
        equal = is_open[chosen, others]
        return np.where(equal, 0.0, self.goal), equal


@dataclass(frozen=True, eq=False)
class MarginGradient(PairKernel):
    """The kernel: the gradient (p, c) of the sum of all open margins that may be positive."""

    def _sum(self, block: Block) -> Array:
        pairs, is_open = self.pairs(block)
        times = (is_open & pairs.unequal()) * self.coordinates.shortening(block)
        design = self.coordinates.design(block)
        return self.coordinates.transpose_times(design, pairs.sums(times))


@dataclass(frozen=True, eq=False)
class Balance(Statistic):
    """How a ray R and a direction θ for its open pairs can be joined into one ray ρR + θ.

    Its margins are positive on all pairs that either separates if `low` < ρ < `high`. For a given
    ρ, `least` is the smallest of them, `loose` the largest |margin| of all other pairs.
    """

    low: float = field(metadata=LARGEST)
    high: float = field(metadata=SMALLEST)
    least: float = field(metadata=SMALLEST)
    loose: float = field(metadata=LARGEST)


@dataclass(frozen=True, eq=False)
class GatherBalance(PairKernel):
    """The kernel: a block to the `Balance` of the ray of `pairs` with the direction θ, for ρ."""

    theta: Array
    rho: float

    def _sum(self, block: Block) -> Balance:
        first, second = cast(Ray, self.pairs.ray), Ray(self.coordinates, self.theta)
        pairs = Pairs.of(self.pairs.support(block), self.pairs.n_classes)
        one, two = first.margins(block, pairs), second.margins(block, pairs)
        short = first.coordinates.shortening(block)
        clear = two * self.coordinates.shortening(block) > CLEAR
        separated = pairs.all() & ((one * short > OPEN) | clear)
        with np.errstate(divide="ignore", invalid="ignore"):
            bound, joined = -two / one, (self.rho * one + two) * short
        return Balance(
            float(bound[separated & (one > 0)].max(initial=0.0)),
            float(bound[separated & (one < 0)].min(initial=np.inf)),
            float(joined[separated].min(initial=np.inf)),
            float(abs(joined[pairs.all() & ~separated]).max(initial=0.0)),
        )


@dataclass(frozen=True, eq=False)
class ClassRanges(Statistic):
    """Least and largest entry of each column in the rows of each class (K, m)."""

    low: Array = field(metadata=SMALLEST)
    high: Array = field(metadata=LARGEST)


@dataclass(frozen=True, eq=False)
class GatherClassRanges:
    """The kernel: a block to the `ClassRanges` of its rows with an open pair.

    A row that may belong to several classes counts in each of them.
    """

    columns: Columns
    pairs: PairsOf

    def __call__(self, block: Block) -> ClassRanges:
        if self.pairs.ray is not None:
            block = take_block(block, np.flatnonzero(self.pairs.has_open(block)))
        support = self.pairs.support(block)
        if support.ndim == 1:
            support = support[:, None] == np.arange(self.pairs.n_classes)
        parts = [take_block(block, np.flatnonzero(rows)) for rows in support.T]
        low, high = zip(*(column_ranges(self.columns.design(part)) for part in parts), strict=True)
        return ClassRanges(np.stack(low), np.stack(high))


@dataclass(frozen=True, eq=False)
class GatherReach(PairKernel):
    """The kernel: the smallest t at which θ + t ray has the margin on every pair that the ray of
    `pairs` separates. θ (p, c) is in the units of the columns."""

    theta: Array
    margin: float

    def _sum(self, block: Block) -> Maximum:
        ray = cast(Ray, self.pairs.ray)
        pairs, is_open = self.pairs(block)
        here = Ray(ray.coordinates, ray.coordinates.standard(self.theta)).margins(block, pairs)
        separated = ~is_open & pairs.all()
        lacking = self.margin - here[separated]
        return Maximum(float((lacking / ray.margins(block, pairs)[separated]).max(initial=0.0)))


def some_classes(rows: Rows, codes: Sequence[int]) -> MappedRows:
    """The rows that belong to some of the classes only, whose codes become 0, 1, ... in order.

    `n_rows` counts all rows; those of other classes are left out block by block.
    """
    known = cast(Labels, rows.classes)
    places = np.full(len(known), -1)
    places[list(codes)] = np.arange(len(codes))

    def part(block: Block) -> Block:
        y = cast(NDArray[Any], block.y)
        if y.ndim == 2:
            labels = y[:, list(codes)]
            kept = np.flatnonzero(labels.sum(axis=1) > 1 - 1e-6)
        else:
            labels = places[y]
            kept = np.flatnonzero(labels >= 0)
        return replace(take_block(block, kept), y=labels[kept])

    return MappedRows(rows, part, known[list(codes)])


@dataclass(frozen=True, eq=False)
class Distinct(Statistic):
    """Rows (m, k), each once."""

    rows: Array

    def __add__(self, other: "Distinct") -> "Distinct":
        return Distinct(np.unique(np.concatenate([self.rows, other.rows]), axis=0))


@dataclass(frozen=True, eq=False)
class GatherDistinct:
    """The kernel: a block to the distinct rows of a function of it."""

    values: Callable[[Block], Array]

    def __call__(self, block: Block) -> Distinct:
        return Distinct(np.unique(self.values(block), axis=0))
