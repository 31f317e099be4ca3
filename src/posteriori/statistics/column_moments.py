"""Count, mean and sum of squares of each design column, by class or of all rows.

Conventions: n rows, d design columns, K classes. For class k, with the weights w of its rows,
N_k = Σw, m_k = Σwx / N_k and S_k = Σ w (x - m_k)², column by column; missing entries are left out.

How digits are kept: columns far from zero are moved by about their mean first. Sums about that one
centre are products of the design matrix, in which sparse rows and levels are not filled in. Where
they lose digits about the class means, the rows are sorted by class and each class is centred.
Columns whose squares are outside the doubles are gathered once more in units of their size.
"""

import math
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.utils.random import sample_without_replacement

from posteriori.design.columns import Columns
from posteriori.design.matrix import Dense, Design, Stacked
from posteriori.linalg import transpose_matmul
from posteriori.rows.block import Block, Mixed, Rows, check_finite
from posteriori.rows.schema import Schema
from posteriori.statistics.statistic import (
    ColumnStatistic,
    Maximum,
    align,
    class_counts,
    class_sums,
    dense_pieces,
    is_soft,
    membership,
    recoding,
    with_hard_labels,
)
from posteriori.typing import Array, Codes, Labels

_DIGITS_KEPT = 1e-4
"""Share of a sum of squares about the common centre that must be left about the class means."""

_SMALLEST_SQUARE, _LARGEST_SQUARE = 1e-200, 1e200
"""Sums of squares outside of which columns are measured in units of their size. There is room for
the squares of class means, which can be larger than those within classes."""

SAMPLE = 10_000
"""Rows in the sample of an `Overview`."""


@dataclass(frozen=True, eq=False)
class ColumnMoments(ColumnStatistic):
    """Weight of each class (K,); per class and column (K, d) the weight of the entries present,
    their mean, and the sum of their squares about it."""

    class_count: Array
    count: Array
    mean: Array
    scatter: Array
    by_class: ClassVar = ("class_count", "count", "mean", "scatter")

    @property
    def squares(self) -> Array:
        """Sums of squares of the columns within the classes (d,)."""
        return np.sum(self.scatter, axis=0)

    def __add__(self, other: "ColumnMoments") -> "ColumnMoments":
        self, other = align(self, other)
        total, share, pair = merge_weights(self.count, other.count)
        step = other.mean - self.mean
        with np.errstate(over="ignore", invalid="ignore"):
            scatter = self.scatter + other.scatter + pair * step**2
        return replace(
            self,
            class_count=self.class_count + other.class_count,
            count=total,
            mean=self.mean + step * share,
            scatter=scatter,
        )

    def in_units(self, unit: Array) -> "ColumnMoments":
        ratio = self.unit / unit
        return replace(self, mean=self.mean * ratio, scatter=self.scatter * ratio**2, unit=unit)

    def with_levels(self, schema: Schema) -> "ColumnMoments":
        if schema == self.schema:
            return self
        M, offset = recoding(self.schema, schema)
        new, old = Columns(schema).numeric, Columns(self.schema).numeric
        unit, count = np.ones(len(M)), np.repeat(self.class_count[:, None], len(M), axis=1)
        unit[new], count[:, new] = self.unit[old], self.count[:, old]
        mean = np.where(count > 0, self.mean @ M.T + offset, 0.0)
        scatter = count * mean * (1 - mean)  # of indicators
        scatter[:, new] = self.scatter[:, old]
        return replace(self, schema=schema, count=count, mean=mean, scatter=scatter, unit=unit)


def merge_weights(a: Array, b: Array) -> tuple[Array, Array, Array]:
    """Total count, the share of `b` in it, and the weight ab/(a+b) of the squared step of means."""
    total = a + b
    share = over(b, total)
    return total, share, a * share


def over(sums: Array, count: Array) -> Array:
    """Sums over counts, zero where nothing was counted."""
    shape = np.broadcast_shapes(sums.shape, count.shape)
    return np.divide(sums, count, out=np.zeros(shape), where=count > 0)


@dataclass(frozen=True, eq=False)
class GatherColumnMoments:
    """The kernel: a block of rows to its `ColumnMoments`.

    With a single class, the targets of the rows are ignored.
    """

    columns: Columns
    classes: Labels
    unit: Array | None = None
    allow_missing: bool = True

    def __call__(self, block: Block) -> ColumnMoments:
        if len(self.classes) == 1:
            block = replace(block, y=np.zeros(block.X.shape[0], dtype=np.intp))
        with np.errstate(over="ignore", invalid="ignore"):
            design = scaled_design(self.columns, block, self.unit)
            if len(self.classes) > 1 and isinstance(design, Dense) and not is_soft(block):
                return self._about_means(block)  # to sort the rows is faster than a product a class
            return self._by_products(design, block)

    def _by_products(self, design: Design, block: Block) -> ColumnMoments:
        """Sums about one centre; columns that lose digits are filled in and summed again."""
        K = len(self.classes)
        design, centre = about_centre(design)
        count, shares = class_counts(block, K)[:, None], membership(block, K)
        mean = over(class_sums(design, block, K), count)
        squares = design.squares(shares).T
        scatter = np.maximum(squares - count * mean**2, 0.0)
        found = self._statistic(block, np.tile(count, design.shape[1]), mean + centre, scatter)
        lost = np.flatnonzero(~keeps_digits(scatter, squares).all(axis=0))
        lost = np.intersect1d(lost, self.columns.numeric)  # sums of indicators are exact
        if len(lost):
            self._sum_again(found, lost, block)
        return found

    def _sum_again(self, found: ColumnMoments, columns: Codes, block: Block) -> None:
        """Put the moments about the class means of some numeric columns into those found."""
        if not np.isfinite(found.mean).all():
            check_finite(block, self.columns.schema, missing=self.allow_missing)
        X: Any = block.X.numeric if isinstance(block.X, Mixed) else block.X
        own = np.searchsorted(self.columns.numeric, columns)
        unit = None if self.unit is None else self.unit[columns]
        part = replace(self, columns=Columns(Schema.unnamed(len(columns))), unit=unit)
        pieces = dense_pieces(replace(block, X=X[:, own]), part.columns)
        again = reduce(add, map(part._about_means, pieces))
        for name in ("count", "mean", "scatter"):
            getattr(found, name)[:, columns] = getattr(again, name)

    def _about_means(self, block: Block) -> ColumnMoments:
        """Each class centred by itself; entries may be missing."""
        hard, K = with_hard_labels(block), len(self.classes)
        X = scaled_design(self.columns, hard, self.unit).array()
        mean, scatter = np.zeros((K, X.shape[1])), np.zeros((K, X.shape[1]))
        for k, mean[k], rows in centred_classes(X, hard, K):
            scatter[k] = np.einsum("ij,ij->j", rows, rows)
        if not np.isfinite(mean).all():
            check_finite(block, self.columns.schema, missing=self.allow_missing)
            if np.isnan(X).any():
                X = scaled_design(self.columns, block, self.unit).array()
                return self._statistic(block, *_present(X, membership(block, K)))
        count = np.broadcast_to(class_counts(block, K)[:, None], scatter.shape)
        return self._statistic(block, count, mean, scatter)

    def _statistic(self, block: Block, count: Array, mean: Array, scatter: Array) -> ColumnMoments:
        unit = np.ones(mean.shape[1]) if self.unit is None else self.unit
        class_count, mean = class_counts(block, len(self.classes)), np.where(count > 0, mean, 0.0)
        schema = self.columns.schema
        return ColumnMoments(self.classes, schema, unit, class_count, count, mean, scatter)


def _present(X: Array, shares: Array) -> tuple[Array, Array, Array]:
    """Count, mean and sum of squares of the entries present, with the shares (n, K) as weights."""
    absent = np.isnan(X)
    count = transpose_matmul(shares, ~absent)
    X = np.where(absent, 0.0, X)
    mean = over(transpose_matmul(shares, X), count)
    scatter = np.empty_like(mean)
    for k in range(len(mean)):
        residual = np.where(absent, 0.0, X - mean[k])
        drift = over(transpose_matmul(residual, shares[:, k]), count[k])  # rounding, far from zero
        squares = transpose_matmul(residual**2, shares[:, k])
        scatter[k] = np.maximum(squares - count[k] * drift**2, 0.0)
        mean[k] += drift
    return count, mean, scatter


def scaled_design(columns: Columns, block: Block, unit: Array | None) -> Design:
    """The design matrix of a block, in multiples of `unit`."""
    design = columns.design(block)
    return design if unit is None else design.scaled(unit)


def about_centre(design: Design) -> tuple[Design, Array | float]:
    """Dense columns moved by about their mean where they are far from zero, and by how much."""
    if isinstance(design, Stacked):
        parts, centres = zip(*map(about_centre, design.parts), strict=True)
        whole = [np.broadcast_to(c, p.shape[1]) for c, p in zip(centres, parts, strict=True)]
        return Stacked(parts, design.positions), design.joined(whole)
    if not isinstance(design, Dense):
        return design, 0.0
    centre = far_centre(design.values)
    if isinstance(centre, float):
        return design, centre
    out = _workspace(design.shape)
    return Dense(np.subtract(design.values, centre, out=out)), centre


def far_centre(X: Array) -> Array | float:
    """About the mean of the rows (d,), by a few of them; zero where they are near that."""
    if not len(X):
        return 0.0
    sample = X[:: max(1, len(X) // 64)]
    centre = sample[0] + (sample - sample[0]).mean(axis=0)  # exact for constant columns
    return 0.0 if (centre**2 <= sample.var(axis=0)).all() else centre


def keeps_digits(scatter: Array, squares: Array) -> NDArray[np.bool_]:
    """Where enough of the sums of squares about the common centre is left about the means."""
    return scatter >= _DIGITS_KEPT * squares


_kept = threading.local()


def _workspace(shape: tuple[int, ...]) -> Array:
    """Memory of this thread for a copy of one block, used again for the next.

    Fresh memory would cost a page fault for every 4 KiB, more than the arithmetic done on it.
    """
    size = math.prod(shape)
    buffer = getattr(_kept, "buffer", None)
    if buffer is None or len(buffer) < size:
        buffer = _kept.buffer = np.empty(size)
    return buffer[:size].reshape(shape)


def centred_classes(X: Array, block: Block, n_classes: int) -> Iterator[tuple[int, Array, Array]]:
    """Of each class present: its number, its mean (d,), and its rows about the mean, times the
    roots of their weights.

    X are the rows of a block with one label a row. Those of a class are good until the next comes.
    """
    codes, centre = cast(Codes, block.y), far_centre(X)
    # Sixteen bits are sorted by counting, which is several times faster.
    order = codes.astype(np.uint16 if n_classes < 2**16 else np.intp).argsort(kind="stable")
    counts = np.bincount(codes, minlength=n_classes)
    ends = counts.cumsum()
    for k in np.flatnonzero(counts).tolist():
        own = order[ends[k] - counts[k] : ends[k]]
        weight = np.ones(len(own)) if block.weight is None else block.weight[own]
        rows = X.take(own, axis=0, out=_workspace((len(own), X.shape[1])), mode="clip")
        if not isinstance(centre, float):
            rows -= centre
        step = transpose_matmul(rows, weight) / weight.sum()
        rows -= step
        if block.weight is not None:
            rows *= np.sqrt(weight)[:, None]
        yield k, step + centre, rows


def gather(rows: Rows, kernel: Any, *, block_entries: int | None = None) -> Any:
    """The statistic of all rows, in units of each column's size where squares leave the doubles.

    `kernel` is a dataclass with `columns` and `unit`; its statistic has `number_squares`;
    the squares of indicators are of ordinary size.
    """
    found = rows.map_sum(kernel, block_entries=block_entries)
    squares = found.number_squares
    if ((squares > _SMALLEST_SQUARE) & (squares < _LARGEST_SQUARE)).all():
        return found
    unit = power_of_two(rows.map_sum(GatherLargest(kernel.columns)).value)
    return rows.map_sum(replace(kernel, unit=unit), block_entries=block_entries)


@dataclass(frozen=True, eq=False)
class GatherLargest:
    """The kernel: the largest |x| of each column (d,), missing entries left out."""

    columns: Columns

    def __call__(self, block: Block) -> Maximum:
        parts = self.columns.dense_parts(block)
        sizes = (abs(self.columns.design(part).array()) for part in parts)
        return reduce(add, (Maximum(np.fmax.reduce(X, axis=0, initial=0.0)) for X in sizes))


def power_of_two(largest: Array) -> Array:
    """The power of two at or below each number; one for zero.

    >>> power_of_two(np.array([3.0, 0.0, 0.3]))
    array([2.  , 1.  , 0.25])
    """
    # A power beyond 2**1000 would have no reciprocal that is a normal number.
    power = np.clip(np.frexp(largest)[1] - 1, -1000, 1000)
    return np.where(largest > 0, np.ldexp(1.0, power), 1.0)


class ColumnSpread(NamedTuple):
    """Mean and standard deviation of each design column (d,), in multiples of `unit` (d,)."""

    mean: Array
    deviation: Array
    unit: Array


def column_spread(rows: Rows, columns: Columns) -> ColumnSpread:
    """Mean and standard deviation of all rows, none of whose entries may be missing."""
    one_class = np.zeros(1, dtype=np.intp)
    found = gather(rows, GatherColumnMoments(columns, one_class, allow_missing=False))
    return ColumnSpread(found.mean[0], np.sqrt(found.scatter[0] / found.count[0]), found.unit)


@dataclass(frozen=True, eq=False)
class Overview:
    """Of each column the least and largest value, the mean and the standard deviation (d,).

    `spread` is infinite for columns that are constant: they have no length to measure by. `sample`
    has all rows, or `SAMPLE` of them.
    """

    schema: Schema
    n_rows: int
    low: Array
    high: Array
    mean: Array
    spread: Array
    sample: Array


def overview_of(rows: Rows, random: Any) -> Overview:
    """The overview of rows of numbers in memory, none of which may be missing or infinite."""
    chosen, schema = np.arange(rows.n_rows), rows.schema
    columns = Columns(schema)
    if len(chosen) > SAMPLE:
        chosen = np.sort(sample_without_replacement(len(chosen), SAMPLE, random_state=random))

    def of_parts(block: Block) -> list[tuple[Array, Array, Array]]:
        """Least and largest values, and the chosen rows, of each part of a block."""
        found = []
        for part in columns.dense_parts(block):
            X = dense(part, schema)
            first, last = np.searchsorted(chosen, (part.start, part.start + len(X)))
            found.append((X.min(axis=0), X.max(axis=0), X[chosen[first:last] - part.start]))
        return found

    lows, highs, samples = zip(*rows.map_sum(of_parts), strict=True)  # lists are added end to end
    low, high = np.min(lows, axis=0), np.max(highs, axis=0)
    found = column_spread(rows, columns)
    spread = np.where(low < high, found.deviation * found.unit, np.inf)
    sample = np.concatenate(samples)
    return Overview(schema, rows.n_rows, low, high, found.mean * found.unit, spread, sample)


def dense(block: Block, schema: Schema) -> Array:
    """The numbers of a block as an array; an error names one that is missing or infinite."""
    X = block.X.toarray() if isinstance(block.X, csr_array) else cast(Array, block.X)
    if not np.isfinite(X).all():
        check_finite(block, schema)
    return X
