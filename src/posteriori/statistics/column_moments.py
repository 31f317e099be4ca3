"""Means, variances and ranges of single columns, by class."""

import math
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any, Self, cast

import numpy as np
from scipy import sparse
from scipy.sparse import csr_array
from sklearn.utils.random import sample_without_replacement

from posteriori.design.columns import Columns
from posteriori.linalg import transpose_matmul
from posteriori.rows.block import Block, Mixed, split_sparse
from posteriori.rows.finite import check_finite
from posteriori.rows.in_memory import MemoryRows
from posteriori.rows.rows import Rows
from posteriori.rows.schema import Schema
from posteriori.rows.tables import Table
from posteriori.statistics.statistic import (
    Statistic,
    class_counts,
    dense_membership,
    in_same_units,
    is_soft,
    merge_weights,
    recoding,
    same_kind,
    spread,
    union_of_classes,
    union_of_columns,
    weights_of,
)
from posteriori.typing import Array, Codes, Labels

_FAR_FROM_ZERO = 1e8

"""(mean / sd)² beyond which the mean of a block is refined from its residuals."""

_FEW, _FEW_BY_ROW = 16, 8

"""Classes that are summed by a product with a column for each, of rows that lie column by column
in memory or row by row."""


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


@dataclass(frozen=True, eq=False)
class RowsByClass:
    """A copy of the rows, class after class; `runs` has class and place of those present.

    The copy lies in the workspace of the thread: it is good until the next block.
    """

    rows: Array
    weight: Array | None
    runs: tuple[tuple[int, slice], ...]

    @classmethod
    def of(cls, X: Array, block: Block, n_classes: int) -> Self:
        """Sort the rows X of a block with one label a row."""
        order, ends = order_by_class(cast(Codes, block.y), n_classes)
        spans = enumerate(zip([0, *ends[:-1]], ends, strict=True))
        return cls(
            X.take(order, axis=0, out=_workspace(X.shape), mode="clip"),
            None if block.weight is None else block.weight[order],
            tuple((k, slice(low, high)) for k, (low, high) in spans if low < high),
        )

    def centre(self, mean: Array) -> None:
        """Take the mean of each class off its rows, and add it to its row of `mean` (K, d)."""
        for k, run in self.runs:
            rows = self.rows[run]
            weight = np.ones(len(rows)) if self.weight is None else self.weight[run]
            step = transpose_matmul(rows, weight)
            step /= weight.sum()
            mean[k] += step
            rows -= step

    def weighted(self) -> Array:
        """Rows times the square root of their weights, whose products are weighted sums."""
        return self.rows if self.weight is None else self.rows * np.sqrt(self.weight)[:, None]


def order_by_class(codes: Codes, n_classes: int) -> tuple[Codes, list[int]]:
    """The rows in the order of their classes, and where each class ends."""
    # Sixteen bits are sorted by counting, which is several times faster.
    order = codes.astype(np.uint16 if n_classes < 2**16 else np.intp).argsort(kind="stable")
    return order, np.bincount(codes, minlength=n_classes).cumsum().tolist()


def sums_by_class(X: Array, codes: Codes, n_classes: int) -> Array:
    """Sum of the rows of each class (K, d), without sorting the rows themselves."""
    if n_classes <= (_FEW_BY_ROW if X.flags.c_contiguous else _FEW):
        hot, out = codes == np.arange(n_classes)[:, None], np.zeros((n_classes, X.shape[1]))
        present = hot.any(axis=1)  # classes without rows change no bit of the others
        out[present] = transpose_matmul(X, hot[present].T.astype(np.float64)).T
        return out
    order, ends = order_by_class(codes, n_classes)
    member = sparse.csr_array((n_classes, len(X)))
    member.data, member.indices = np.ones(len(X)), order.astype(np.int32)
    member.indptr = np.array([0, *ends], dtype=np.int32)
    return cast(Array, member @ X)


def centre_if_far(X: Array) -> Array | None:
    """About the mean of the rows (d,), by a few of them; None where they lie near zero."""
    sample = X[:: max(1, len(X) // 64)]
    centre = sample.mean(axis=0)
    return None if (centre**2 <= sample.var(axis=0)).all() else centre


def moved(X: Array, centre: Array) -> Array:
    """X - centre, in the workspace of the thread."""
    return np.subtract(X, centre, out=_workspace(X.shape))


def is_far_from_zero(mean: Array, squares: Array, count: float) -> bool:
    """Whether some column lies so far from zero that its mean lost digits in the sum."""
    return bool((mean**2 * count > _FAR_FROM_ZERO * squares).any())


@dataclass(frozen=True, eq=False)
class ColumnMoments(Statistic):
    """Weight of each class (K,); per class and column (K, d) the weight of the entries present,
    their mean, and the sum of their squares about it, in multiples of `unit` (d,)."""

    schema: Schema
    classes: Labels
    class_count: Array
    count: Array
    mean: Array
    scatter: Array
    unit: Array

    @property
    def squares(self) -> Array:
        """Sums of squares of the columns within the classes (d,)."""
        return np.sum(self.scatter, axis=0)

    def __add__(self, other: "ColumnMoments") -> "ColumnMoments":
        same_kind(self, other)
        if other.classes is not self.classes or other.schema is not self.schema:
            self, other = _aligned(self, other)
        self, other = in_same_units(self, other)
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
        """The same statistic in other units (exact: units are powers of two)."""
        ratio = self.unit / unit
        return replace(self, mean=self.mean * ratio, scatter=self.scatter * ratio**2, unit=unit)

    def with_levels(self, schema: Schema) -> "ColumnMoments":
        """The same statistic with the levels of another schema, of which it has some."""
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


def _aligned(a: ColumnMoments, b: ColumnMoments) -> tuple[ColumnMoments, ColumnMoments]:
    schema = union_of_columns(a.schema, b.schema)
    a, b = a.with_levels(schema), b.with_levels(schema)
    classes, in_a, in_b = union_of_classes(a.classes, b.classes)

    def lay_out(statistic: ColumnMoments, places: Codes) -> ColumnMoments:
        return replace(
            statistic,
            schema=schema,
            classes=classes,
            class_count=spread(statistic.class_count, places, len(classes)),
            count=spread(statistic.count, places, len(classes)),
            mean=spread(statistic.mean, places, len(classes)),
            scatter=spread(statistic.scatter, places, len(classes)),
        )

    return lay_out(a, in_a), lay_out(b, in_b)


@dataclass(frozen=True, eq=False)
class GatherColumnMoments:
    """The kernel: a block of rows to its `ColumnMoments`."""

    columns: Columns
    classes: Labels
    unit: Array | None = None

    def __call__(self, block: Block) -> ColumnMoments:
        if isinstance(block.X, Mixed):
            return reduce(add, map(self._moments, self.columns.dense_parts(block)))
        return self._moments(block)

    def _moments(self, block: Block) -> ColumnMoments:
        K = len(self.classes)
        with np.errstate(over="ignore", invalid="ignore"):
            if isinstance(block.X, sparse.csr_array) and not is_soft(block):
                count, mean, scatter = self._sparse(block)
            else:
                count, mean, scatter = self._dense(block)
        if not np.isfinite(mean).all():
            check_finite(block, self.columns.schema, missing=True)
        unit = np.ones(mean.shape[1]) if self.unit is None else self.unit
        class_count = class_counts(block, K)
        return ColumnMoments(
            self.columns.schema, self.classes, class_count, count, mean, scatter, unit
        )

    def _dense(self, block: Block) -> tuple[Array, Array, Array]:
        X = self.columns.design(block).array()
        if self.unit is not None:
            X = X / self.unit
        if not is_soft(block):
            mean, scatter = self._complete(X, block)
            if not np.isnan(mean).any():
                counts = class_counts(block, len(self.classes))
                return np.repeat(counts[:, None], X.shape[1], axis=1), mean, scatter
        return _skipping_missing(X, dense_membership(block, len(self.classes)))

    def _complete(self, X: Array, block: Block) -> tuple[Array, Array]:
        """Rows with one label and every entry: sorted by class, and centred run by run."""
        found = RowsByClass.of(X, block, len(self.classes))
        mean = np.zeros((len(self.classes), X.shape[1]))
        found.centre(mean)
        scatter = _squares(found, mean.shape)
        if is_far_from_zero(mean, scatter.sum(axis=0), len(X)):
            found.centre(mean)
            scatter = _squares(found, mean.shape)
        return mean, scatter

    def _sparse(self, block: Block) -> tuple[Array, Array, Array]:
        """Sums over the stored entries; the zeros between them are counted, not visited."""
        X = cast(sparse.csr_array, block.X)
        K, d = len(self.classes), X.shape[1]
        per_row = np.diff(X.indptr)
        place = np.repeat(cast(Codes, block.y) * d, per_row) + X.indices
        weight = np.repeat(weights_of(block), per_row)
        data = X.data if self.unit is None else X.data / self.unit[X.indices]

        def total(values: Array) -> Array:
            sums = np.bincount(place, values, minlength=K * d)
            return sums.astype(np.float64, copy=False).reshape(K, d)

        # Both terms are added up in the same order: exactly zero for a column without zeros.
        zeros = class_counts(block, K)[:, None] - total(weight)
        absent = np.isnan(data)
        if absent.any():
            weight, data = np.where(absent, 0.0, weight), np.where(absent, 0.0, data)
        count = zeros + total(weight)
        mean = _over(total(weight * data), count)
        residual = data - mean.ravel()[place]
        drift = _over(total(weight * residual) - zeros * mean, count)
        scatter = total(weight * residual**2) + zeros * mean**2 - count * drift**2
        return count, mean + drift, np.maximum(scatter, 0.0)


def _over(sums: Array, count: Array) -> Array:
    """Sums over counts, zero where nothing was counted."""
    return np.divide(sums, count, out=np.zeros(count.shape), where=count > 0)


def _squares(found: RowsByClass, shape: tuple[int, ...]) -> Array:
    """Sums of squares of each class and column."""
    scatter, rows = np.zeros(shape), found.weighted()
    for k, run in found.runs:
        scatter[k] = np.einsum("ij,ij->j", rows[run], rows[run])
    return scatter


def _skipping_missing(X: Array, shares: Array) -> tuple[Array, Array, Array]:
    """Count, mean and sum of squares when rows belong to each class by their share (n, K)."""
    absent = np.isnan(X)
    count = transpose_matmul(shares, ~absent)
    X = np.where(absent, 0.0, X)
    mean = _over(transpose_matmul(shares, X), count)
    scatter = np.empty_like(mean)
    for k in range(len(mean)):
        residual = np.where(absent, 0.0, X - mean[k])
        drift = _over(transpose_matmul(residual, shares[:, k]), count[k])
        squares = transpose_matmul(residual**2, shares[:, k])
        scatter[k] = np.maximum(squares - count[k] * drift**2, 0.0)
        mean[k] += drift
    return count, mean, scatter


@dataclass(frozen=True, eq=False)
class Extremes(Statistic):
    """Largest |x| of each column; the sum of two is the larger of both."""

    largest: Array

    def __add__(self, other: "Extremes") -> "Extremes":
        return Extremes(np.maximum(self.largest, other.largest))

    def unit(self) -> Array:
        """For each column the power of two just below its largest value (one for all zeros)."""
        # A power beyond 2**1000 would have no reciprocal that is a normal number.
        power = np.clip(np.frexp(self.largest)[1] - 1, -1000, 1000)
        return np.where(self.largest > 0, np.ldexp(1.0, power), 1.0)


@dataclass(frozen=True, eq=False)
class GatherExtremes:
    """The kernel: a block of rows to its `Extremes`; missing entries are passed over."""

    columns: Columns

    def __call__(self, block: Block) -> Extremes:
        return reduce(add, map(self._extremes, self.columns.dense_parts(block)))

    def _extremes(self, block: Block) -> Extremes:
        X = self.columns.design(block).array()
        return Extremes(np.fmax.reduce(abs(X), axis=0, initial=0.0))


_SMALLEST_SQUARE, _LARGEST_SQUARE = 1e-200, 1e200

"""Room is left for the squares of class means, which can be larger than those within classes."""


def gather(rows: Rows, kernel: Any, *, block_entries: int | None = None) -> Any:
    """The statistic of all rows, in units of each column's size where squares leave the doubles.

    `kernel` is a dataclass with `columns` and `unit`; its statistic has `squares` (d,).
    """
    found = rows.map_sum(kernel, block_entries=block_entries)
    squares = found.squares
    if ((squares > _SMALLEST_SQUARE) & (squares < _LARGEST_SQUARE)).all():
        return found
    unit = rows.map_sum(GatherExtremes(kernel.columns)).unit()
    return rows.map_sum(replace(kernel, unit=unit), block_entries=block_entries)


SAMPLE = 10_000

"""A sample has all rows, or this many of them."""


@dataclass(frozen=True, eq=False)
class Overview:
    """Of each column the least and largest value, the mean and the standard deviation (d,).

    `spread` is infinite for columns that are constant: they have no length to measure by.
    """

    schema: Schema
    n_rows: int
    low: Array
    high: Array
    mean: Array
    spread: Array
    sample: Array


def look_over(table: Table, random: Any) -> Overview:
    """The overview of a table of numbers, none of which may be missing or infinite."""
    chosen = np.arange(table.n_rows)
    if len(chosen) > SAMPLE:
        chosen = np.sort(sample_without_replacement(len(chosen), SAMPLE, random_state=random))
    rows = MemoryRows(table, np.zeros(table.n_rows, dtype=np.intp))
    # Lists are added end to end, so that a list of what each block gives is a sum over rows too.
    parts = rows.map_sum(lambda block: list(_glances(block, table.schema, chosen)))
    lows, highs, samples = zip(*parts, strict=True)
    low, high = np.min(lows, axis=0), np.max(highs, axis=0)
    mean, deviation = _mean_and_deviation(rows)
    spread = np.where(low < high, deviation, np.inf)
    return Overview(table.schema, table.n_rows, low, high, mean, spread, np.concatenate(samples))


def _glances(block: Block, schema: Schema, chosen: Codes) -> Iterator[tuple[Array, Array, Array]]:
    """Least and largest values, and the chosen rows, of each part of a block."""
    for part in split_sparse(block):
        X = dense(part, schema)
        first, last = np.searchsorted(chosen, (part.start, part.start + len(X)))
        yield X.min(axis=0), X.max(axis=0), X[chosen[first:last] - part.start]


def _mean_and_deviation(rows: Rows) -> tuple[Array, Array]:
    """Mean and standard deviation of each column, as of a single class."""
    one_class = np.zeros(1, dtype=np.intp)
    moments = gather(rows, GatherColumnMoments(Columns(rows.schema), one_class))
    deviation = np.sqrt(moments.scatter[0] / moments.count[0]) * moments.unit
    return moments.mean[0] * moments.unit, deviation


def dense(block: Block, schema: Schema) -> Array:
    """The numbers of a block as an array; an error names one that is missing or infinite."""
    X = block.X.toarray() if isinstance(block.X, csr_array) else cast(Array, block.X)
    if not np.isfinite(X).all():
        check_finite(block, schema)
    return X
