"""Σ φφᵀ and Σ φtᵀ about their means: what least squares needs (4.16)."""

from dataclasses import dataclass, replace

import numpy as np

from posteriori.design.columns import Columns
from posteriori.design.products import Scaled
from posteriori.rows.block import Block
from posteriori.rows.finite import check_finite
from posteriori.rows.schema import Schema
from posteriori.statistics.labels import dense_membership, weights_of
from posteriori.statistics.statistic import (
    Statistic,
    same_columns,
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
        if other.classes is not self.classes or other.schema is not self.schema:
            self, other = _aligned(self, other)
        if other.unit is not self.unit and not np.array_equal(other.unit, self.unit):
            unit = np.maximum(self.unit, other.unit)
            self, other = self.in_units(unit), other.in_units(unit)
        total = self.weight + other.weight
        share = other.weight / total if total else 0.0
        step = other.mean - self.mean
        target_step = other.target_mean - self.target_mean
        pair = self.weight * share
        return replace(
            self,
            weight=total,
            mean=self.mean + step * share,
            target_mean=self.target_mean + target_step * share,
            scatter=self.scatter + other.scatter + pair * np.outer(step, step),
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


def _aligned(a: Gram, b: Gram) -> tuple[Gram, Gram]:
    schema = same_columns(a.schema, b.schema)
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


@dataclass(frozen=True, eq=False)
class GatherGram:
    """The kernel: a block of rows to its `Gram`, by the three products of the design."""

    columns: Columns
    classes: Labels
    unit: Array | None = None

    def __call__(self, block: Block) -> Gram:
        with np.errstate(over="ignore", invalid="ignore"):
            design = self.columns.design(block)
            if self.unit is not None:
                design = Scaled(design, self.unit)
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
        if not np.isfinite(mean).all():
            check_finite(block, self.columns.schema)
        unit = np.ones(len(mean)) if self.unit is None else self.unit
        return Gram(
            self.columns.schema,
            self.classes,
            float(total),
            mean + drift,
            target_mean,
            scatter,
            cross,
            unit,
        )
