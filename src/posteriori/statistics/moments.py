"""Weighted count, mean and scatter matrix of each class, merged stably.

Conventions: K classes, d design columns, G groups of classes that pool their scatter: one group for
a shared covariance, K groups for one covariance a class. With the weights w of the rows of class k,
N_k = Σw and m_k = Σwx / N_k; for group g, S_g = Σ_{k in g} Σ w (x - m_k)(x - m_k)ᵀ (4.75)-(4.80).

Digits are kept as in `column_moments`.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import ClassVar

import numpy as np

from posteriori.design.columns import Columns
from posteriori.design.matrix import Dense
from posteriori.errors import StatisticsError
from posteriori.linalg import transpose_matmul
from posteriori.rows.block import Block, check_finite
from posteriori.rows.schema import Schema
from posteriori.statistics.column_moments import (
    ColumnMoments,
    about_centre,
    centred_classes,
    keeps_digits,
    merge_weights,
    over,
    scaled_design,
)
from posteriori.statistics.statistic import (
    ColumnStatistic,
    align,
    class_counts,
    class_sums,
    dense_pieces,
    group_places,
    is_soft,
    recoding,
    weights_of,
    with_hard_labels,
)
from posteriori.typing import Array, Codes, Labels

_NO_GROUP = object()
"""The group of a class that one of two statistics lacks."""


@dataclass(frozen=True, eq=False)
class Moments(ColumnStatistic):
    """Count (K,), mean (K, d) and pooled scatter (G, d, d), in multiples of `unit` (d,).

    `sharing` names, for each class, the group whose scatter it is part of.
    """

    sharing: tuple[Hashable, ...]
    count: Array
    mean: Array
    scatter: Array
    by_class: ClassVar = ("count", "mean")

    @property
    def squares(self) -> Array:
        """Sums of squares of the columns within the classes (d,)."""
        return np.diagonal(self.scatter, axis1=1, axis2=2).sum(0)

    @property
    def groups(self) -> Codes:
        """The group of each class (K,)."""
        return group_places(self.sharing)

    @property
    def group_count(self) -> Array:
        """Total weight of each group (G,)."""
        return np.bincount(self.groups, self.count).astype(np.float64)

    def __add__(self, other: "Moments") -> "Moments":
        self, other = align(self, other)
        if self.sharing != other.sharing:
            self, other = _align_groups(self, other)
        total, share, pair = merge_weights(self.count, other.count)
        step = other.mean - self.mean
        with np.errstate(over="ignore", invalid="ignore"):
            scatter = self.scatter + other.scatter
            if len(scatter) == 1:
                scatter[0] += (step * pair[:, None]).T @ step
            else:
                for k, g in enumerate(self.groups):
                    scatter[g] += np.outer(pair[k] * step[k], step[k])
        mean = self.mean + step * share[:, None]
        return replace(self, count=total, mean=mean, scatter=scatter)

    def with_classes(self, classes: Labels, places: Codes) -> "Moments":
        sharing: list[Hashable] = [_NO_GROUP] * len(classes)
        for place, key in zip(places, self.sharing, strict=True):
            sharing[place] = key
        found = super().with_classes(classes, places)
        return replace(found, sharing=tuple(sharing), scatter=self._in_groups(sharing))

    def _in_groups(self, sharing: Iterable[Hashable]) -> Array:
        """The scatter of the groups in another order, with zeros for those it lacks."""
        own, wanted = (
            [k for k in dict.fromkeys(keys) if k is not _NO_GROUP]
            for keys in (self.sharing, sharing)
        )
        zeros = np.zeros(self.scatter.shape[1:])
        return np.array([self.scatter[own.index(key)] if key in own else zeros for key in wanted])

    def in_units(self, unit: Array) -> "Moments":
        ratio = self.unit / unit
        scatter = self.scatter * ratio * ratio[:, None]
        return replace(self, mean=self.mean * ratio, scatter=scatter, unit=unit)

    def with_levels(self, schema: Schema) -> "Moments":
        if schema == self.schema:
            return self
        M, offset = recoding(self.schema, schema)
        unit = np.ones(len(M))
        unit[Columns(schema).numeric] = self.unit[Columns(self.schema).numeric]
        mean = np.where(self.count[:, None] > 0, self.mean @ M.T + offset, 0.0)
        return replace(self, schema=schema, mean=mean, scatter=M @ self.scatter @ M.T, unit=unit)

    def pooled(self) -> "Moments":
        """All classes in one group (4.78)."""
        sharing = (None,) * len(self.classes)
        return replace(self, sharing=sharing, scatter=self.scatter.sum(0, keepdims=True))

    def regrouped(self, sharing: tuple[Hashable, ...]) -> "Moments":
        """Of sums of each class by itself, those of other groups of classes."""
        places = group_places(sharing)
        scatter = np.zeros((places.max() + 1, *self.scatter.shape[1:]))
        np.add.at(scatter, places, self.scatter[self.groups])
        return replace(self, sharing=sharing, scatter=scatter)

    def by_column(self) -> ColumnMoments:
        """Of sums of each class by itself, those of each column alone."""
        count = np.repeat(self.count[:, None], self.mean.shape[1], axis=1)
        squares = np.einsum("kii->ki", self.scatter)[self.groups]
        return ColumnMoments(
            self.classes, self.schema, self.unit, self.count, count, self.mean, squares
        )

    def with_vacant_classes_centred(self) -> "Moments":
        """With the means of classes without rows at the mean of all rows."""
        if self.count.all():
            return self
        return replace(self, mean=np.where(self.count[:, None] > 0, self.mean, self.total()[1]))

    def total(self) -> tuple[float, Array, Array]:
        """Count, mean (d,) and scatter (d, d) of all rows, whatever their class (4.43)-(4.45)."""
        n = self.count.sum()
        near = self.mean[self.count.argmax()]  # far from zero, the mean about it has more digits
        mean = near + self.count @ (self.mean - near) / n
        step = self.mean - mean
        return n, mean, self.scatter.sum(0) + (step * self.count[:, None]).T @ step


def _align_groups(a: Moments, b: Moments) -> tuple[Moments, Moments]:
    """Both with the groups of either, in one order; an error where a class has two groups."""
    pairs = list(zip(a.sharing, b.sharing, strict=True))
    if any(x != y and _NO_GROUP not in (x, y) for x, y in pairs):
        raise StatisticsError(
            "The statistics pool their scatter over different groups of classes.",
            "Gather both with the same covariance setting.",
        )
    sharing = tuple(y if x is _NO_GROUP else x for x, y in pairs)
    return (
        replace(a, sharing=sharing, scatter=a._in_groups(sharing)),
        replace(b, sharing=sharing, scatter=b._in_groups(sharing)),
    )


@dataclass(frozen=True, eq=False)
class GatherMoments:
    """The kernel: a block of rows to its `Moments`."""

    columns: Columns
    classes: Labels
    sharing: tuple[Hashable, ...]
    unit: Array | None = None

    def __call__(self, block: Block) -> Moments:
        with np.errstate(over="ignore", invalid="ignore"):
            found = self._by_products(block) if len(set(self.sharing)) == 1 else None
            if found is None:
                found = reduce(add, map(self._about_means, dense_pieces(block, self.columns)))
        if not np.isfinite(found.mean).all():
            check_finite(block, self.columns.schema)
        return found

    def _by_products(self, block: Block) -> Moments | None:
        """Σxxᵀ - Σ N_k m_k m_kᵀ about one centre; None where that loses digits."""
        design, centre = about_centre(scaled_design(self.columns, block, self.unit))
        sums = class_sums(design, block, len(self.classes))
        if isinstance(design, Dense) and block.weight is None:
            products = transpose_matmul(design.values, design.values)
        else:
            products = design.sandwich(weights_of(block))
        mean = over(sums, class_counts(block, len(self.classes))[:, None])
        squares = np.diagonal(products).copy()
        products -= sums.T @ mean
        kept = keeps_digits(np.diagonal(products), squares)
        if block.weight is None and not is_soft(block):
            kept = kept[self.columns.numeric]  # sums of indicators are exact
        if not kept.all():
            return None
        return self._statistic(block, mean + centre, products[None])

    def _about_means(self, block: Block) -> Moments:
        """Each class centred by itself; one product a class."""
        hard = with_hard_labels(block)
        X = scaled_design(self.columns, hard, self.unit).array()
        K, d, groups = len(self.classes), X.shape[1], group_places(self.sharing)
        mean, scatter = np.zeros((K, d)), np.zeros((groups.max() + 1, d, d))
        for k, mean[k], rows in centred_classes(X, hard, K):
            scatter[groups[k]] += transpose_matmul(rows, rows)
        return self._statistic(block, mean, scatter)

    def _statistic(self, block: Block, mean: Array, scatter: Array) -> Moments:
        unit = np.ones(mean.shape[1]) if self.unit is None else self.unit
        count = class_counts(block, len(self.classes))
        mean = np.where(count[:, None] > 0, mean, 0.0)
        schema = self.columns.schema
        return Moments(self.classes, schema, unit, self.sharing, count, mean, scatter)
