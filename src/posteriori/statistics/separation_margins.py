"""Margins of pairs of classes, for deciding whether the classes can be separated."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any, NamedTuple, cast

import numpy as np
from scipy import sparse

from posteriori.design.columns import Columns
from posteriori.design.matrix import Coded, Design, Sparse, Stacked
from posteriori.rows.block import Block, split_sparse, take_block
from posteriori.rows.finite import check_finite
from posteriori.rows.rows import Kernel, Rows, S
from posteriori.rows.schema import Schema
from posteriori.statistics.coordinates import Coordinates, Mask, Pairs, Support
from posteriori.statistics.statistic import Statistic
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
    """What a look at all rows says of a direction θ.

    Of the open pairs: how many there are (`n_open`), how many have a `CLEAR` margin (`n_clear`),
    and the least of these. Of the constraints asked about: the `most` worst of those not met.
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
class GatherMargins:
    """The kernel: a block to the `Margins` of its rows along θ.

    Asked about are the constraints of the open pairs; with a `goal`, that open pairs have margin
    zero and separated ones the goal at least. Met are those with a slack of `floor` and more.
    """

    coordinates: Coordinates
    pairs: PairsOf
    theta: Array
    floor: float
    most: int
    goal: float | None = None

    def __call__(self, block: Block) -> Margins:
        return reduce(add, map(self._margins, pieces(self.coordinates, block)))

    def _margins(self, block: Block) -> Margins:
        pairs, is_open = self.pairs(block)
        short = self.coordinates.shortening(block)
        margins = Ray(self.coordinates, self.theta).margins(block, pairs) * short
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
class GatherPull:
    """The kernel: the gradient (p, c) of the sum of all open margins that may be positive."""

    coordinates: Coordinates
    pairs: PairsOf

    def __call__(self, block: Block) -> Array:
        return reduce(add, map(self._pull, pieces(self.coordinates, block)))

    def _pull(self, block: Block) -> Array:
        pairs, is_open = self.pairs(block)
        times = (is_open & pairs.unequal()) * self.coordinates.shortening(block)
        design = self.coordinates.design(block)
        return self.coordinates.transpose_times(design, pairs.sums(times))


@dataclass(frozen=True, eq=False)
class Balance(Statistic):
    """How a ray R and a direction θ for its open pairs can be joined into one ray ρR + θ.

    Its margins are positive on all pairs that either separates if `low` < ρ < `high`. For the ρ
    asked about, `least` is the smallest of them, `loose` the largest |margin| of all other pairs.
    """

    low: float
    high: float
    least: float
    loose: float

    def __add__(self, other: "Balance") -> "Balance":
        return Balance(
            max(self.low, other.low),
            min(self.high, other.high),
            min(self.least, other.least),
            max(self.loose, other.loose),
        )


@dataclass(frozen=True, eq=False)
class GatherBalance:
    """The kernel: a block to the `Balance` of the ray of `pairs` with a second one, for ρ."""

    pairs: PairsOf
    second: Ray
    rho: float

    def __call__(self, block: Block) -> Balance:
        return reduce(add, map(self._balance, pieces(self.second.coordinates, block)))

    def _balance(self, block: Block) -> Balance:
        first = self.pairs.ray
        assert first is not None
        pairs = Pairs.of(self.pairs.support(block), self.pairs.n_classes)
        one, two = first.margins(block, pairs), self.second.margins(block, pairs)
        short = first.coordinates.shortening(block)
        clear = two * self.second.coordinates.shortening(block) > CLEAR
        separated = pairs.all() & ((one * short > OPEN) | clear)
        with np.errstate(divide="ignore", invalid="ignore"):
            bound, joined = -two / one, (self.rho * one + two) * short
        return Balance(
            float(bound[separated & (one > 0)].max(initial=0.0)),
            float(bound[separated & (one < 0)].min(initial=np.inf)),
            float(joined[separated].min(initial=np.inf)),
            float(abs(joined[pairs.all() & ~separated]).max(initial=0.0)),
        )


def pieces(coordinates: Coordinates, block: Block) -> Iterable[Block]:
    """The block, in pieces where it is sparse and has to be filled in."""
    fills_in = coordinates.far and isinstance(block.X, sparse.csr_array)
    return split_sparse(block) if fills_in else (block,)


@dataclass(frozen=True, eq=False)
class ClassRanges(Statistic):
    """Least and largest entry of each column in the rows of each class (K, m)."""

    low: Array
    high: Array

    def __add__(self, other: "ClassRanges") -> "ClassRanges":
        return ClassRanges(np.minimum(self.low, other.low), np.maximum(self.high, other.high))


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
        low, high = zip(*(_ranges(self.columns.design(part)) for part in parts), strict=True)
        return ClassRanges(np.stack(low), np.stack(high))


def _ranges(design: Design) -> tuple[Array, Array]:
    """Least and largest entry of each column."""
    n, m = design.shape
    if n == 0:
        return np.full(m, np.inf), np.full(m, -np.inf)
    if isinstance(design, Stacked):
        low, high = zip(*map(_ranges, design.parts), strict=True)
        return design.joined(low), design.joined(high)
    if isinstance(design, Coded):
        counts = design.transpose_times(np.ones(n))
        return (counts == n).astype(np.float64), (counts > 0).astype(np.float64)
    if isinstance(design, Sparse):
        return design.values.min(axis=0).toarray(), design.values.max(axis=0).toarray()
    values = design.array()
    return values.min(axis=0), values.max(axis=0)


@dataclass(frozen=True, eq=False)
class Reach(Statistic):
    """The smallest t with margins of θ + t ray that are large enough on all separated pairs."""

    t: float

    def __add__(self, other: "Reach") -> "Reach":
        return Reach(max(self.t, other.t))


@dataclass(frozen=True, eq=False)
class GatherReach:
    """The kernel: how far to go from θ (p, c), in the units of the columns, along the ray of
    `pairs`, until all pairs that it separates have a margin."""

    pairs: PairsOf
    theta: Array
    margin: float

    def __call__(self, block: Block) -> Reach:
        ray: Any = self.pairs.ray
        return reduce(add, map(self._reach, pieces(ray.coordinates, block)))

    def _reach(self, block: Block) -> Reach:
        ray: Any = self.pairs.ray
        pairs, is_open = self.pairs(block)
        here = Ray(ray.coordinates, ray.coordinates.standard(self.theta)).margins(block, pairs)
        separated = ~is_open & pairs.all()
        lacking = self.margin - here[separated]
        return Reach(float((lacking / ray.margins(block, pairs)[separated]).max(initial=0.0)))


@dataclass(frozen=True, eq=False)
class SomeClasses:
    """Rows that belong to some of the classes only; a `Rows`.

    `codes` are the codes of these classes, which become 0, 1, ... in the order given.
    """

    rows: Rows
    codes: Sequence[int]

    @property
    def schema(self) -> Schema:
        return self.rows.schema

    @property
    def n_rows(self) -> int:
        """The number of all rows, of which those of other classes are left out on the way."""
        return self.rows.n_rows

    @property
    def classes(self) -> Labels | None:
        known = self.rows.classes
        return None if known is None else known[list(self.codes)]

    @property
    def soft(self) -> bool:
        return self.rows.soft

    def map_sum(self, kernel: Kernel[S], *, block_entries: int | None = None) -> S:
        return self.rows.map_sum(
            lambda block: kernel(self._part(block)), block_entries=block_entries
        )

    def _part(self, block: Block) -> Block:
        if cast(Array, block.y).ndim == 2:
            shares = cast(Array, block.y)[:, list(self.codes)]
            kept = np.flatnonzero(shares.sum(axis=1) > 1 - 1e-6)
            return replace(take_block(block, kept), y=shares[kept])
        places = np.full(len(cast(Labels, self.rows.classes)), -1)
        places[list(self.codes)] = np.arange(len(self.codes))
        codes = places[cast(Codes, block.y)]
        kept = np.flatnonzero(codes >= 0)
        return replace(take_block(block, kept), y=codes[kept])


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
