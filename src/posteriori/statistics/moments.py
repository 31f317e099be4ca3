"""Means and scatter matrices, by class or by group of classes."""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import cast

import numpy as np
from scipy import sparse

from posteriori.design.columns import Columns
from posteriori.design.matrix import Dense, Design
from posteriori.errors import StatisticsError
from posteriori.linalg import transpose_matmul
from posteriori.rows.block import Block, split_sparse
from posteriori.rows.finite import check_finite
from posteriori.rows.schema import Schema
from posteriori.statistics.column_moments import (
    ColumnMoments,
    RowsByClass,
    centre_if_far,
    is_far_from_zero,
    moved,
    sums_by_class,
)
from posteriori.statistics.statistic import (
    Statistic,
    class_counts,
    dense_membership,
    group_places,
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

_DIGITS_KEPT = 0.01

"""Share of a sum of squares about zero that must be left about the means."""


@dataclass(frozen=True, eq=False)
class Moments(Statistic):
    """Count (K,), mean (K, d) and pooled scatter (G, d, d), in multiples of `unit` (d,).

    `sharing` names, for each class, the group whose scatter it goes into. `unit` holds powers of
    two, all one unless the columns are too large or too small to be squared.

    >>> import numpy as np
    >>> one = Moments.of_point(np.array([1.0, 2.0]), "a")
    >>> both = one + Moments.of_point(np.array([3.0, 2.0]), "a")
    >>> both.mean[0], both.scatter[0].tolist()
    (array([2., 2.]), [[2.0, 0.0], [0.0, 0.0]])
    """

    schema: Schema
    classes: Labels
    sharing: tuple[Hashable, ...]
    count: Array
    mean: Array
    scatter: Array
    unit: Array

    @classmethod
    def of_point(cls, x: Array, label: Hashable) -> "Moments":
        """The statistic of a single row."""
        d = len(x)
        return cls(
            Schema.unnamed(d),
            np.array([label]),
            (label,),
            np.ones(1),
            x[None, :].astype(np.float64),
            np.zeros((1, d, d)),
            np.ones(d),
        )

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
        same_kind(self, other)
        same = other.classes is self.classes and other.sharing is self.sharing
        if not same or other.schema is not self.schema:
            self, other = _aligned(self, other)
        self, other = in_same_units(self, other)
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

    def in_units(self, unit: Array) -> "Moments":
        """The same statistic in other units (exact: units are powers of two)."""
        ratio = self.unit / unit
        return replace(
            self,
            mean=self.mean * ratio,
            scatter=self.scatter * ratio * ratio[:, None],
            unit=unit,
        )

    def with_levels(self, schema: Schema) -> "Moments":
        """The same statistic with the levels of another schema, of which it has some."""
        if schema == self.schema:
            return self
        M, offset = recoding(self.schema, schema)
        unit = np.ones(len(M))
        unit[Columns(schema).numeric] = self.unit[Columns(self.schema).numeric]
        mean = np.where(self.count[:, None] > 0, self.mean @ M.T + offset, 0.0)
        return replace(self, schema=schema, mean=mean, scatter=M @ self.scatter @ M.T, unit=unit)

    def pooled(self) -> "Moments":
        """All classes in one group (4.78)."""
        return replace(
            self, sharing=(None,) * len(self.classes), scatter=self.scatter.sum(0, keepdims=True)
        )

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
            self.schema, self.classes, self.count, count, self.mean, squares, self.unit
        )

    def with_vacant_classes_centred(self) -> "Moments":
        """Classes without rows stand where the others do, lest they pull the centre away."""
        if self.count.all():
            return self
        return replace(self, mean=np.where(self.count[:, None] > 0, self.mean, self.total()[1]))

    def total(self) -> tuple[float, Array, Array]:
        """Count, mean (d,) and scatter (d, d) of all rows, whatever their class (4.43)-(4.45)."""
        n = self.count.sum()
        mean = self.count @ self.mean / n
        step = self.mean - mean
        return n, mean, self.scatter.sum(0) + (step * self.count[:, None]).T @ step


def _aligned(a: Moments, b: Moments) -> tuple[Moments, Moments]:
    """Both over all classes of either, groups in the same order."""
    schema = union_of_columns(a.schema, b.schema)
    a, b = a.with_levels(schema), b.with_levels(schema)
    classes, in_a, in_b = union_of_classes(a.classes, b.classes)
    keys: list[Hashable] = [None] * len(classes)
    for statistic, places in ((a, in_a), (b, in_b)):
        for place, key in zip(places, statistic.sharing, strict=True):
            keys[place] = key
    sharing = tuple(keys)
    for statistic, places in ((a, in_a), (b, in_b)):
        if tuple(sharing[place] for place in places) != statistic.sharing:
            raise StatisticsError(
                "The statistics pool their scatter over different groups of classes.",
                "Gather both with the same covariance setting.",
            )
    order = {key: g for g, key in enumerate(dict.fromkeys(sharing))}

    def lay_out(statistic: Moments, places: Codes) -> Moments:
        own = np.array([order[key] for key in dict.fromkeys(statistic.sharing)])
        return replace(
            statistic,
            schema=schema,
            classes=classes,
            sharing=sharing,
            count=spread(statistic.count, places, len(classes)),
            mean=spread(statistic.mean, places, len(classes)),
            scatter=_spread_groups(statistic.scatter, own, len(order)),
        )

    return lay_out(a, in_a), lay_out(b, in_b)


def _spread_groups(scatter: Array, places: Codes, n_groups: int) -> Array:
    out = np.zeros((n_groups, *scatter.shape[1:]))
    out[places] = scatter
    return out


@dataclass(frozen=True, eq=False)
class GatherMoments:
    """The kernel: a block of rows to its `Moments`, about the means of the block itself."""

    columns: Columns
    classes: Labels
    sharing: tuple[Hashable, ...]
    unit: Array | None = None

    def __call__(self, block: Block) -> Moments:
        return reduce(add, map(self._moments, self.columns.dense_parts(block)))

    def _moments(self, block: Block) -> Moments:
        with np.errstate(over="ignore", invalid="ignore"):
            X = self.columns.design(block).array()
            if self.unit is not None:
                X = X / self.unit
            count = class_counts(block, len(self.classes))
            is_hard = not is_soft(block)
            mean, scatter = self._hard(X, block, count) if is_hard else self._soft(X, block)
        if not np.isfinite(mean).all():
            check_finite(block, self.columns.schema)
        unit = np.ones(X.shape[1]) if self.unit is None else self.unit
        return Moments(self.columns.schema, self.classes, self.sharing, count, mean, scatter, unit)

    def _hard(self, X: Array, block: Block, count: Array) -> tuple[Array, Array]:
        """About zero where that keeps the digits, else about the class means of the block."""
        if block.weight is None:
            is_pooled = len(set(self.sharing)) == 1
            found = self._pooled(X, block, count) if is_pooled else self._by_group(X, block)
            mean, scatter, exact = found
            if exact:
                return mean, scatter
        return self._about_means(X, block)

    def _pooled(self, X: Array, block: Block, count: Array) -> tuple[Array, Array, bool]:
        """Σxxᵀ - Σ N_k m_k m_kᵀ, and whether no more than two digits cancelled."""
        centre = centre_if_far(X)
        if centre is not None:
            X = moved(X, centre)
        sums = sums_by_class(X, cast(Codes, block.y), len(self.classes))
        mean = sums / np.maximum(count, 1)[:, None]
        products = transpose_matmul(X, X)
        scatter = products - sums.T @ mean
        kept = _keeps_digits(scatter, products)
        return mean if centre is None else mean + centre, scatter[None], kept

    def _by_group(self, X: Array, block: Block) -> tuple[Array, Array, bool]:
        """The same for the classes of each group, their rows sorted."""
        found = RowsByClass.of(X, block, len(self.classes))
        centre = centre_if_far(X)
        if centre is not None:
            np.subtract(found.rows, centre, out=found.rows)
        mean, scatter = self._empty(X.shape[1])
        kept, groups = True, group_places(self.sharing)
        for k, run in found.runs:
            rows = found.rows[run]
            mean[k] = transpose_matmul(rows, np.ones(len(rows))) / len(rows)
            products = transpose_matmul(rows, rows)
            about_mean = products - np.outer(mean[k] * len(rows), mean[k])
            kept &= _keeps_digits(about_mean, products)
            scatter[groups[k]] += about_mean
        return mean if centre is None else mean + centre, scatter, kept

    def _about_means(self, X: Array, block: Block) -> tuple[Array, Array]:
        """Rows sorted by class, centred run by run; one product a group."""
        found = RowsByClass.of(X, block, len(self.classes))
        mean, scatter = self._empty(X.shape[1])
        found.centre(mean)
        self._products(found, scatter)
        squares = np.diagonal(scatter, axis1=1, axis2=2).sum(axis=0)
        if is_far_from_zero(mean, squares, len(X)):
            found.centre(mean)
            self._products(found, scatter)
        return mean, scatter

    def _products(self, found: RowsByClass, scatter: Array) -> None:
        rows = found.weighted()
        if len(scatter) == 1:
            scatter[0] = transpose_matmul(rows, rows)
            return
        scatter[:] = 0.0
        groups = group_places(self.sharing)
        for k, run in found.runs:
            scatter[groups[k]] += transpose_matmul(rows[run], rows[run])

    def _soft(self, X: Array, block: Block) -> tuple[Array, Array]:
        """Every row counts towards every class by its label's share."""
        mean, scatter = self._empty(X.shape[1])
        shares = dense_membership(block, len(self.classes))
        for k, g in enumerate(group_places(self.sharing)):
            total = shares[:, k].sum()
            if total > 0:
                mean[k] = transpose_matmul(X, shares[:, k]) / total
                drift = transpose_matmul(X - mean[k], shares[:, k]) / total
                mean[k] += drift
                rows = (X - mean[k]) * np.sqrt(shares[:, k])[:, None]
                scatter[g] += transpose_matmul(rows, rows)
        return mean, scatter

    def _empty(self, d: int) -> tuple[Array, Array]:
        return np.zeros((len(self.classes), d)), np.zeros((len(set(self.sharing)), d, d))


def _keeps_digits(scatter: Array, products: Array) -> bool:
    """Whether enough of the sums of squares about zero is left about the mean."""
    return bool((np.diagonal(scatter) >= _DIGITS_KEPT * np.diagonal(products)).all())


@dataclass(frozen=True, eq=False)
class Gram(Statistic):
    """Weight n, means of φ (m,) and of the targets t (K,), Σ φφᵀ (m, m), Σ φtᵀ (m, K), centred.

    The targets are the 1-of-K codes (or soft labels) of the classes; any other coding of the
    classes is a linear map of them.
    """

    schema: Schema
    classes: Labels
    weight: float
    mean: Array
    target_mean: Array
    scatter: Array
    cross: Array
    unit: Array

    @property
    def squares(self) -> Array:
        """Sums of squares of the columns (m,)."""
        return np.diagonal(self.scatter)

    def __add__(self, other: "Gram") -> "Gram":
        same_kind(self, other)
        if other.classes is not self.classes or other.schema is not self.schema:
            self, other = _aligned_gram(self, other)
        self, other = in_same_units(self, other)
        total = self.weight + other.weight
        share = other.weight / total if total else 0.0
        step = other.mean - self.mean
        target_step = other.target_mean - self.target_mean
        pair = self.weight * share
        with np.errstate(over="ignore", invalid="ignore"):
            scatter = self.scatter + other.scatter + pair * np.outer(step, step)
        return replace(
            self,
            weight=total,
            mean=self.mean + step * share,
            target_mean=self.target_mean + target_step * share,
            scatter=scatter,
            cross=self.cross + other.cross + pair * np.outer(step, target_step),
        )

    def in_units(self, unit: Array) -> "Gram":
        """The same statistic in other units (exact: units are powers of two)."""
        ratio = self.unit / unit
        return replace(
            self,
            mean=self.mean * ratio,
            scatter=self.scatter * ratio * ratio[:, None],
            cross=self.cross * ratio[:, None],
            unit=unit,
        )

    def with_levels(self, schema: Schema) -> "Gram":
        """The same statistic with the levels of another schema, of which it has some."""
        if schema == self.schema:
            return self
        M, offset = recoding(self.schema, schema)
        unit = np.ones(len(M))
        unit[Columns(schema).numeric] = self.unit[Columns(self.schema).numeric]
        return replace(
            self,
            schema=schema,
            mean=M @ self.mean + offset,
            scatter=M @ self.scatter @ M.T,
            cross=M @ self.cross,
            unit=unit,
        )


def _aligned_gram(a: Gram, b: Gram) -> tuple[Gram, Gram]:
    schema = union_of_columns(a.schema, b.schema)
    a, b = a.with_levels(schema), b.with_levels(schema)
    classes, in_a, in_b = union_of_classes(a.classes, b.classes)
    K = len(classes)

    def lay_out(gram: Gram, places: Codes) -> Gram:
        return replace(
            gram,
            schema=schema,
            classes=classes,
            target_mean=spread(gram.target_mean, places, K),
            cross=spread(gram.cross.T, places, K).T,
        )

    return lay_out(a, in_a), lay_out(b, in_b)


_FAR_FROM_ZERO = 1e6

"""(mean / sd)² beyond which a sparse block is filled in and centred before it is squared."""


def _is_far_from_zero(gram: Gram) -> bool:
    with np.errstate(over="ignore", invalid="ignore"):
        return bool((gram.weight * gram.mean**2 > _FAR_FROM_ZERO * gram.squares).any())


@dataclass(frozen=True, eq=False)
class GatherGram:
    """The kernel: a block of rows to its `Gram`, by the three products of the design."""

    columns: Columns
    classes: Labels
    unit: Array | None = None

    def __call__(self, block: Block) -> Gram:
        gram = self._gram(block, self.columns.design(block))
        if isinstance(block.X, sparse.csr_array) and _is_far_from_zero(gram):
            # Centring after the product would lose the digits; such columns have few zeros.
            return reduce(add, map(self._filled_in, split_sparse(block)))
        return gram

    def _filled_in(self, block: Block) -> Gram:
        return self._gram(block, Dense(self.columns.design(block).array()))

    def _gram(self, block: Block, design: Design) -> Gram:
        with np.errstate(over="ignore", invalid="ignore"):
            if self.unit is not None:
                design = design.scaled(self.unit)
            weight = weights_of(block)
            total = weight.sum()
            # A block whose rows all have weight zero has zeros for means, which count for nothing.
            over = 1.0 / total if total else 0.0
            targets = dense_membership(block, len(self.classes))
            target_mean = targets.sum(0) * over
            mean = design.transpose_times(weight) * over
            centred = design.shifted(mean)
            # What rounding left of the mean, far from zero, is taken off once more.
            drift = centred.transpose_times(weight) * over
            centred = centred.shifted(drift)
            cross = centred.transpose_times(targets - np.outer(weight, target_mean))
            scatter = centred.sandwich(weight)
            mean = mean + drift
        if not np.isfinite(mean).all():
            check_finite(block, self.columns.schema)
        unit = np.ones(len(mean)) if self.unit is None else self.unit
        return Gram(
            self.columns.schema,
            self.classes,
            float(total),
            mean,
            target_mean,
            scatter,
            cross,
            unit,
        )


@dataclass(frozen=True, eq=False)
class Spread(Statistic):
    """Weight n, mean (m,) and Σ(φ - mean)² (m,), in multiples of `unit` (m,)."""

    weight: float
    mean: Array
    squares: Array
    unit: Array

    def __add__(self, other: "Spread") -> "Spread":
        self, other = in_same_units(self, other)
        total = self.weight + other.weight
        share = other.weight / total if total else 0.0
        step = other.mean - self.mean
        with np.errstate(over="ignore", invalid="ignore"):
            squares = self.squares + other.squares + self.weight * share * step**2
        return Spread(total, self.mean + share * step, squares, self.unit)

    def in_units(self, unit: Array) -> "Spread":
        """The same statistic in other units (exact: units are powers of two)."""
        ratio = self.unit / unit
        return Spread(self.weight, self.mean * ratio, self.squares * ratio**2, unit)

    @property
    def deviation(self) -> Array:
        """Standard deviation of each column, in its unit."""
        return np.sqrt(self.squares / self.weight)


@dataclass(frozen=True, eq=False)
class GatherSpread:
    """The kernel: a block of rows to its `Spread`.

    Where columns are known to lie `near_zero`, within a few dozen deviations, their squares are
    summed as they are and nothing is lost; otherwise each block is centred first. With `means_only`
    the squares are zeros.
    """

    columns: Columns
    unit: Array | None = None
    near_zero: bool = False
    means_only: bool = False

    def __call__(self, block: Block) -> Spread:
        n = block.X.shape[0]
        weight = np.ones(n) if block.weight is None else block.weight
        total = float(weight.sum())
        over = 1.0 / total if total else 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            design = self.columns.design(block)
            if self.unit is not None:
                design = design.scaled(self.unit)
            mean = design.transpose_times(weight) * over
            centred, drift = design, mean
            if not self.near_zero:
                centred = design.shifted(mean)
                drift = centred.transpose_times(weight) * over
                mean = mean + drift
            squares = np.zeros(len(mean))
            if not self.means_only:
                squares = np.maximum(centred.squares(weight) - total * drift**2, 0.0)
        if not np.isfinite(mean).all():
            check_finite(block, self.columns.schema)
        unit = np.ones(len(mean)) if self.unit is None else self.unit
        return Spread(total, mean, squares, unit)
