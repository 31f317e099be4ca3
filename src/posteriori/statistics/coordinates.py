"""Pairs of classes that a linear function has to separate, and robust coordinates of the rows.

Conventions: n rows, K classes, m design columns, p parameters: the m columns, after the intercept
where there is one. Two classes have one activation a row, c = 1, that of the second class; more
have c = K. A row has q pairs of its own class and another: q = 1 for two classes, and q = K for
more, of which the pair of a class with itself does not count.

A step along θ lowers the likelihood of no row if, on each row, the classes that it may belong to
share the largest activation. So each pair gives a constraint: the margin a_own - a_other is not
negative, or is zero where the other class has a share in the row, too (Albert and Anderson 1984).
For counts, whose rate falls to zero with the activation, the two classes are none and some.

θ (p, c) belongs to rows φ = (1, (x - centre) / scale), with medians from a sample of the rows: an
entry of 1e12 in a column of ordinary numbers changes neither.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from posteriori.design.columns import Columns
from posteriori.design.matrix import Coded, Dense, Design, Scaled, Shifted, Sparse, Stacked
from posteriori.rows.block import Block, row_hash, take_block
from posteriori.rows.finite import check_finite
from posteriori.statistics.column_moments import power_of_two
from posteriori.statistics.statistic import Statistic
from posteriori.typing import Array, Codes

Mask = NDArray[np.bool_]

Support = Callable[[Block], NDArray[Any]]
"""The classes that the rows of a block may belong to: codes (n,), or a mask (n, K)."""

TOUCHING = 1e-9
"""Margins of this size, for rows and directions of size one, cannot be distinguished from zero."""


def by_label(block: Block) -> NDArray[Any]:
    """The class of each row, or the classes with a share in it."""
    y = cast(NDArray[Any], block.y)
    return y if y.ndim == 1 else y > 0


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


_FAR = 1e3
"""Scales from zero beyond which columns are moved before they are multiplied, and scales from the
centre beyond which margins are judged relative to the length of their rows."""

_MOST = 1e250
"""Entries are at most this many scales, so that no product overflows."""

_ROUNDING = 1e-12
"""Range, over the largest entry, below which a column is taken for constant."""

_PLAIN = 1e-200, 1e200
"""Sizes of columns from which no unit need be taken out before they are moved and scaled."""


@dataclass(frozen=True, eq=False)
class Sample(Statistic):
    """A random sample of rows (k, m), and the range of each column in all rows.

    A row has a pseudo-random number that depends on its place in the data alone; the rows with the
    `most` smallest numbers are the sample, however the rows are cut into blocks.
    """

    most: int
    numbers: NDArray[np.uint64]
    rows: Array
    support: NDArray[Any]
    low: Array
    high: Array

    def __add__(self, other: "Sample") -> "Sample":
        numbers = np.concatenate([self.numbers, other.numbers])
        kept = np.argsort(numbers, kind="stable")[: self.most]
        return Sample(
            self.most,
            numbers[kept],
            np.concatenate([self.rows, other.rows])[kept],
            np.concatenate([self.support, other.support])[kept],
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
        )


@dataclass(frozen=True, eq=False)
class GatherSample:
    """The kernel: a block to a `Sample` of `most` of its rows, with their support.

    `wanted` says which rows take part; all of them unless it is given.
    """

    columns: Columns
    support: Support
    most: int
    wanted: Callable[[Block], Mask] | None = None

    def __call__(self, block: Block) -> Sample:
        if self.wanted is not None:
            block = take_block(block, np.flatnonzero(self.wanted(block)))
        numbers = row_hash(block.numbers)
        kept = np.argsort(numbers, kind="stable")[: self.most]
        chosen = take_block(block, kept)
        low, high = column_ranges(self.columns.design(block))
        if len(numbers) and not (np.isfinite(low).all() and np.isfinite(high).all()):
            check_finite(block, self.columns.schema)
        rows = self.columns.design(chosen).array()
        return Sample(self.most, numbers[kept], rows, self.support(chosen), low, high)


def column_ranges(design: Design) -> tuple[Array, Array]:
    """Least and largest entry of each column."""
    n, m = design.shape
    if n == 0:
        return np.full(m, np.inf), np.full(m, -np.inf)
    if isinstance(design, Stacked):
        low, high = zip(*map(column_ranges, design.parts), strict=True)
        return design.joined(low), design.joined(high)
    if isinstance(design, Coded):
        counts = design.transpose_times(np.ones(n))
        return (counts == n).astype(np.float64), (counts > 0).astype(np.float64)
    if isinstance(design, Sparse):
        return design.values.min(axis=0).toarray(), design.values.max(axis=0).toarray()
    values = design.array()
    return values.min(axis=0), values.max(axis=0)


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Centre and scale of each column (m,), and whether there is an intercept before them.

    far: whether rows are so far from zero that they must be moved before they are multiplied.
    long: whether some rows are so long that margins count relative to their length.
    unit: powers of two taken out first, one unless a column is of a size at the end of the doubles.
    """

    columns: Columns
    intercept: bool
    centre: Array
    scale: Array
    far: bool
    long: bool
    unit: Array

    @classmethod
    def of(cls, sample: Sample, columns: Columns, intercept: bool) -> "Coordinates":
        """Medians, and the median distance from them, of the rows in a sample."""
        largest = np.maximum(abs(sample.low), abs(sample.high))
        plain = (largest == 0) | ((largest > _PLAIN[0]) & (largest < _PLAIN[1]))
        unit = np.where(plain, 1.0, power_of_two(largest))
        low, high, rows = sample.low / unit, sample.high / unit, sample.rows / unit
        centre = np.median(rows, axis=0) if intercept else np.zeros(len(unit))
        reach = np.maximum(abs(low - centre), abs(high - centre))
        scale = np.maximum(_typical_distance(abs(rows - centre), reach), reach / _MOST)
        size = np.maximum(abs(low), abs(high))
        scale = np.where(reach > _ROUNDING * size, scale, np.where(size > 0, size, 1.0))
        far, long = abs(centre) > _FAR * scale, reach > _FAR * scale
        return cls(columns, intercept, centre, scale, bool(far.any()), bool(long.any()), unit)

    def design(self, block: Block) -> Design:
        """(x - centre) / scale for the rows of a block, as a design without intercept."""
        design = self.columns.design(block)
        if self.far and isinstance(block.X, sparse.csr_array):
            design = Dense(design.array())
        if (self.unit != 1).any():
            design = design.scaled(self.unit)
        if self.far:
            return Scaled(design.shifted(self.centre), self.scale)
        return Scaled(Shifted(design, self.centre), self.scale)

    def times(self, design: Design, theta: Array) -> Array:
        """φᵀθ of the rows of such a design (n, c)."""
        if not self.intercept:
            return design.times(theta)
        activation = design.times(theta[1:])
        activation += theta[0]
        return activation

    def transpose_times(self, design: Design, r: Array) -> Array:
        """Σ φ rᵀ over the rows, (p, c)."""
        slopes = design.transpose_times(r)
        return np.vstack([r.sum(axis=0), slopes]) if self.intercept else slopes

    def shortening(self, block: Block) -> Array:
        """What margins are multiplied by: one over the length of each row (n, 1), or ones."""
        if not self.long:
            return np.ones((block.X.shape[0], 1))
        largest = _largest(self.columns.design(block), self.unit, self.centre, self.scale)
        return (1 / (1.0 + largest))[:, None]

    def rows(self, block: Block, chosen: Codes) -> Array:
        """φ (k, p) of some rows of a block."""
        return self.complete(self.design(take_block(block, chosen)).array())

    def complete(self, slopes: Array) -> Array:
        """Columns (k, m) with the intercept before them."""
        return np.column_stack([np.ones(len(slopes)), slopes]) if self.intercept else slopes

    def standardise(self, rows: Array) -> Array:
        """φ (k, p) of rows (k, m) as they are."""
        return self.complete((rows / self.unit - self.centre) / self.scale)

    def from_other(self, other: "Coordinates", theta: Array) -> Array:
        """In these coordinates, what is θ in others of the same columns: φᵀ(result) = φ'ᵀθ."""
        ratio = self.unit / other.unit
        if not self.intercept:
            return theta * (self.scale / other.scale * ratio)[:, None]
        moved = (self.centre * ratio - other.centre) / other.scale
        slopes = theta[1:] * (self.scale / other.scale * ratio)[:, None]
        return np.vstack([theta[:1] + moved @ theta[1:], slopes])

    def standard(self, coefficients: Array) -> Array:
        """θ of coefficients of the columns as they are, the intercept before them (p, c)."""
        if not self.intercept:
            return coefficients * self.unit[:, None] * self.scale[:, None]
        slopes = coefficients[1:] * self.unit[:, None] * self.scale[:, None]
        return np.vstack([coefficients[0] + (self.centre / self.scale) @ slopes, slopes])

    def original(self, theta: Array) -> Array:
        """The coefficients of the columns as they are, the intercept before them (p, c)."""
        slopes = theta[1:] if self.intercept else theta
        with np.errstate(over="ignore"):
            coefficients = slopes / self.scale[:, None] / self.unit[:, None]
        if not self.intercept:
            return coefficients
        return np.vstack([theta[0] - (self.centre / self.scale) @ slopes, coefficients])


def _typical_distance(distance: Array, reach: Array) -> Array:
    """The median distance, or the smallest of some larger quantiles that is not zero."""
    scale = np.where(reach > 0, reach, 1.0)
    for quantile in (1.0, 0.95, 0.75, 0.5):
        found = np.quantile(distance, quantile, axis=0)
        scale = np.where(found > 0, found, scale)
    return scale


def _largest(design: Design, unit: Array, centre: Array, scale: Array) -> Array:
    """The largest |(x / unit - centre) / scale| of each row, among the entries stored."""
    if isinstance(design, Stacked):
        parts = zip(design.parts, design.positions, strict=True)
        found = [_largest(part, unit[at], centre[at], scale[at]) for part, at in parts]
        return np.maximum.reduce(found)
    if isinstance(design, Coded):
        bound = np.maximum(abs(centre), abs(1 - centre)) / scale
        return np.full(design.shape[0], bound.max(initial=0.0))
    if isinstance(design, Sparse):
        X = design.values
        data = abs((X.data / unit[X.indices] - centre[X.indices]) / scale[X.indices])
        return sparse.csr_array((data, X.indices, X.indptr), shape=X.shape).max(axis=1).toarray()
    return abs((design.array() / unit - centre) / scale).max(axis=1, initial=0.0)
