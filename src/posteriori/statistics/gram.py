"""Σ φφᵀ and Σ φtᵀ about their means: what least squares needs (4.16)."""

from dataclasses import dataclass, replace
from functools import reduce
from operator import add

import numpy as np
from scipy import sparse

from posteriori.design.columns import Columns
from posteriori.design.products import Dense, Design
from posteriori.rows.block import Block, split_sparse
from posteriori.rows.finite import check_finite
from posteriori.rows.schema import Schema
from posteriori.statistics.labels import dense_membership, weights_of
from posteriori.statistics.levels import recoding, union_of_columns
from posteriori.statistics.statistic import (
    Statistic,
    in_same_units,
    same_kind,
    spread,
    union_of_classes,
)
from posteriori.typing import Array, Codes, Labels


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
            self, other = _aligned(self, other)
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
        unit[: len(schema.numeric)] = self.unit[: len(schema.numeric)]
        return replace(
            self,
            schema=schema,
            mean=M @ self.mean + offset,
            scatter=M @ self.scatter @ M.T,
            cross=M @ self.cross,
            unit=unit,
        )


def _aligned(a: Gram, b: Gram) -> tuple[Gram, Gram]:
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
