"""Count, mean and sum of squares of each class and column by itself; missing entries left out."""

from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from scipy import sparse

from posteriori.design.columns import Columns
from posteriori.linalg import over_rows
from posteriori.rows.block import Block
from posteriori.rows.finite import check_finite
from posteriori.rows.schema import Schema
from posteriori.statistics.by_class import RowsByClass, is_far_from_zero
from posteriori.statistics.labels import class_counts, dense_membership, is_soft, weights_of
from posteriori.statistics.levels import recoding, union_of_columns
from posteriori.statistics.statistic import (
    Statistic,
    in_same_units,
    merge_weights,
    same_kind,
    spread,
    union_of_classes,
)
from posteriori.typing import Array, Codes, Labels


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
        p = len(schema.numeric)
        unit, count = np.ones(len(M)), np.repeat(self.class_count[:, None], len(M), axis=1)
        unit[:p], count[:, :p] = self.unit[:p], self.count[:, :p]
        mean = np.where(count > 0, self.mean @ M.T + offset, 0.0)
        scatter = count * mean * (1 - mean)  # of indicators
        scatter[:, :p] = self.scatter[:, :p]
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
    count = over_rows(shares, ~absent)
    X = np.where(absent, 0.0, X)
    mean = _over(over_rows(shares, X), count)
    scatter = np.empty_like(mean)
    for k in range(len(mean)):
        residual = np.where(absent, 0.0, X - mean[k])
        drift = _over(over_rows(residual, shares[:, k]), count[k])
        squares = over_rows(residual**2, shares[:, k])
        scatter[k] = np.maximum(squares - count[k] * drift**2, 0.0)
        mean[k] += drift
    return count, mean, scatter
