"""Count, mean and sum of squares of each design column, by class or of all rows.

Conventions: n rows, d design columns, K classes. For class k, with the weights w of its rows,
N_k = Σw, m_k = Σwx / N_k and S_k = Σ w (x - m_k)², column by column; missing entries are left out.

Squares are taken about the class means of each block, so that columns far from zero keep their
digits. Zeros of sparse rows and the indicators of levels are not filled in.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
from scipy.sparse import csr_array

from posteriori.design.columns import Columns
from posteriori.errors import ScaleError
from posteriori.linalg import transpose_matmul
from posteriori.rows.block import Block, Mixed, Rows, check_finite, take_rows
from posteriori.rows.schema import Schema
from posteriori.statistics.statistic import (
    ColumnStatistic,
    align,
    centred,
    class_counts,
    class_sums,
    hard_labels,
    recoding,
    rows_by_class,
)
from posteriori.typing import Array, Labels

_ROUNDING = 1e-12
"""A share of the weight below this is what adding up weights leaves of zero."""

_SMALLEST_SQUARES, _SMALLEST_SIZE = 1e-306, 1e-153
"""A sum of squares below the first, of numbers below the second, has lost digits."""


@dataclass(frozen=True, eq=False)
class ColumnMoments(ColumnStatistic):
    """Weight of each class (K,); per class and column (K, d) the weight of the entries present,
    their mean, and the sum of their squares about it."""

    class_count: Array
    count: Array
    scatter: Array
    by_class: ClassVar = ("class_count", "count", "mean", "scatter")

    @property
    def squares(self) -> Array:
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

    def with_levels(self, schema: Schema) -> "ColumnMoments":
        if schema == self.schema:
            return self
        M, offset = recoding(self.schema, schema)
        new, old = Columns(schema).numeric, Columns(self.schema).numeric
        count = np.repeat(self.class_count[:, None], len(M), axis=1)
        count[:, new] = self.count[:, old]
        mean = np.where(count > 0, self.mean @ M.T + offset, 0.0)
        scatter = count * mean * (1 - mean)  # of indicators
        scatter[:, new] = self.scatter[:, old]
        return replace(self, schema=schema, count=count, mean=mean, scatter=scatter)


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
    allow_missing: bool = True

    def __call__(self, block: Block) -> ColumnMoments:
        if len(self.classes) == 1:
            block = replace(block, y=np.zeros(block.X.shape[0], dtype=np.intp))
        class_count = class_counts(block, len(self.classes))
        with np.errstate(over="ignore", invalid="ignore"):
            if isinstance(block.X, Mixed):
                found = self._of_mixed(block.X, block, class_count)
            elif isinstance(block.X, csr_array):
                found = self._of_sparse(block, class_count)
            else:
                found = self._of_numbers(block.X, block)
        count, mean, scatter = found
        return ColumnMoments(self.classes, self.columns.schema, mean, class_count, count, scatter)

    def _of_numbers(self, X: Array, block: Block) -> tuple[Array, Array, Array]:
        """Count, mean and sum of squares (K, d) of dense columns."""
        count, mean, scatter = (np.zeros((len(self.classes), X.shape[1])) for _ in range(3))
        for k, own, weight in rows_by_class(X, block, len(self.classes)):
            count[k], mean[k], residual = centred(own, weight)
            if not np.isfinite(mean[k]).all():
                check_finite(block, self.columns.schema, missing=self.allow_missing)
                w, present = np.ones(len(own)) if weight is None else weight, ~np.isnan(own)
                near = np.nan_to_num(np.fmax.reduce(own, axis=0))
                residual = np.where(present, own - near, 0.0)
                count[k] = transpose_matmul(1.0 * present, w)
                step = over(transpose_matmul(residual, w), count[k])
                mean[k], residual = near + step, present * (residual - step) * np.sqrt(w)[:, None]
            scatter[k] = np.einsum("ij,ij->j", residual, residual)
        return count, mean, scatter

    def _of_sparse(self, block: Block, class_count: Array) -> tuple[Array, Array, Array]:
        """The same of sparse columns: of the stored entries, and of the zeros by their weight."""
        rows, y, weight = hard_labels(block)
        X: Any = take_rows(block.X, rows)
        shape = len(self.classes), X.shape[1]
        per_row = np.diff(X.indptr)
        place = np.repeat(y * shape[1], per_row) + X.indices
        w = np.ones(X.nnz) if weight is None else np.repeat(weight, per_row)

        def total(values: Array) -> Array:
            sums = np.bincount(place, w * values, minlength=shape[0] * shape[1])
            return cast(Array, sums.reshape(shape))

        absent, count = np.isnan(X.data), class_count[:, None]
        if not np.isfinite(X.data).all():
            check_finite(block, self.columns.schema, missing=self.allow_missing)
        zeros = count - total(np.ones(X.nnz))
        zeros = np.where(zeros > _ROUNDING * count, zeros, 0.0)
        count = np.repeat(count, shape[1], axis=1) - (total(1.0 * absent) if absent.any() else 0.0)
        mean = over(total(np.where(absent, 0.0, X.data)), count)
        residual = np.where(absent, 0.0, X.data - mean.ravel()[place])
        drift = over(total(residual) - zeros * mean, count)  # what adding up many numbers costs
        return count, mean + drift, total(residual**2) + zeros * mean**2

    def _of_mixed(self, X: Mixed, block: Block, class_count: Array) -> tuple[Array, Array, Array]:
        """The same of numbers and indicators, whose sums of squares are N_k m_k (1 - m_k)."""
        sums = class_sums(self.columns.design(block), block, len(self.classes))
        count = np.repeat(class_count[:, None], sums.shape[1], axis=1)
        mean = over(sums, count)
        scatter = count * mean * (1 - mean)
        at = self.columns.numeric
        count[:, at], mean[:, at], scatter[:, at] = self._of_numbers(X.numeric, block)
        return count, mean, scatter


def gather(rows: Rows, kernel: Any) -> Any:
    """The statistic of all rows; an error names a column too large or too small to be squared."""
    found = rows.map_sum(kernel)
    check_scale(found)
    return found


def check_scale(found: ColumnStatistic) -> None:
    """An error that names a column of numbers whose squares do not fit in doubles."""
    columns = Columns(found.schema)
    squares, size = found.squares[columns.numeric], abs(found.mean[:, columns.numeric]).max(axis=0)
    large = ~np.isfinite(squares)
    small = (squares < _SMALLEST_SQUARES) & (size > 0) & (size < _SMALLEST_SIZE)
    for bad, word, remedy in ((large, "large", "Divide"), (small, "small", "Multiply")):
        if bad.any():
            column = columns.as_schema().describe(int(columns.numeric[bad.argmax()]))
            raise ScaleError(
                f"The entries of {column} are too {word} to be squared.",
                f"{remedy} the column by a power of ten.",
            )


class ColumnSpread(NamedTuple):
    """Mean and standard deviation of each design column (d,)."""

    mean: Array
    deviation: Array


def column_spread(rows: Rows, columns: Columns) -> ColumnSpread:
    """Mean and standard deviation of all rows, none of whose entries may be missing."""
    one_class = np.zeros(1, dtype=np.intp)
    found = gather(rows, GatherColumnMoments(columns, one_class, allow_missing=False))
    return ColumnSpread(found.mean[0], np.sqrt(found.scatter[0] / found.count[0]))
