"""The rows of a fit that lie elsewhere, for estimators that hold another estimator."""

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from posteriori.errors import LabelError, ParameterError
from posteriori.models.anywhere import check_alone, check_offsets, inside
from posteriori.models.checking import Checking
from posteriori.models.folds import Deal, Folds, deal_out
from posteriori.rows.batch import Batch, Reader, read_batch_weight
from posteriori.rows.source import SourceRows
from posteriori.rows.digests import row_lots
from posteriori.rows.discovery import LabelCounts
from posteriori.typing import Array, Codes, Labels


@dataclass(frozen=True, eq=False)
class Sourced:
    """Rows of `scan` or in Dask, and their classes; none where labels do not matter."""

    rows: SourceRows
    classes: Labels

    @property
    def n_of_classes(self) -> Array:
        """How many rows with a weight each class has."""
        seen = cast(LabelCounts, self.rows.discovered.labels)
        count = dict(zip(seen.labels.tolist(), seen.count.tolist(), strict=True))
        return np.array([count.get(label, 0.0) for label in self.classes.tolist()])

    def fitted(self, estimator: Any) -> Any:
        """A copy of the estimator, fitted to these rows."""
        return clone(estimator).fit(self.rows)

    def dealt(self, number: int, key: int) -> "Dealt":
        """The rows in so many folds, by one pass."""
        lots = self.rows.as_numbers(AsLots(key), 1)
        found = deal_out(lots, number, self.classes)
        return Dealt(self, FoldOf(found.folds, key, self.rows.reader), found)


@dataclass(frozen=True, eq=False)
class FoldOf:
    """Which fold each row of a batch is in."""

    folds: Folds
    key: int
    reader: Reader

    def __call__(self, batch: Batch) -> Codes:
        codes = np.zeros(batch.n_rows, dtype=np.intp)
        if self.folds.need_classes:
            codes = self.reader.codes(batch, read_batch_weight(batch))
        return self.folds.fold(self.folds.lots(batch.X, self.key), codes)


@dataclass(frozen=True, eq=False)
class Dealt:
    """Rows that are dealt out to folds."""

    rows: Sourced
    fold_of: FoldOf
    found: Deal

    @property
    def used(self) -> list[int]:
        """The folds that have a row."""
        return np.flatnonzero(self.found.count.any(axis=0)).tolist()

    def without(self, fold: int) -> Sourced:
        """The rows of all other folds: those of this one have no weight."""
        others = np.arange(self.fold_of.folds.number) != fold
        weight, count = self.found.weight[:, others], self.found.count[:, others]
        labels = LabelCounts(self.rows.classes, weight.sum(axis=1), count.sum(axis=1))
        kept = self.rows.rows.reweighted(_Without(self.fold_of, fold), labels)
        return Sourced(kept, cast(Labels, kept.classes))


@dataclass(frozen=True)
class AsLots:
    """The lens under which a row is its lot."""

    key: int = 0

    def __call__(self, batch: Batch) -> Batch:
        return batch._replace(X=row_lots(batch.X, self.key)[:, None])


@dataclass(frozen=True, eq=False)
class _Without:
    """The lens under which the rows of a fold have no weight."""

    fold_of: FoldOf
    fold: int

    def __call__(self, batch: Batch) -> Batch:
        weight = weights_of(batch)
        return batch._replace(weight=np.where(self.fold_of(batch) == self.fold, 0.0, weight))


def check_source(model: Any, estimator: Any, y: Any, sample_weight: Any) -> None:
    """An error unless a model around the estimator can fit to a source, and was given that alone.

    The estimator must be one of ours, around none but ours; or come fitted.
    """
    check_alone(model, y, sample_weight)
    if not _fits_to_sources(estimator):
        raise ParameterError(
            f"{type(estimator).__name__} does not fit to a source of rows.",
            "Use an estimator of posteriori; or pass a table X and labels y; or fit the estimator "
            "first, and wrap it in sklearn.frozen.FrozenEstimator.",
        )


def _fits_to_sources(estimator: Any) -> bool:
    if isinstance(estimator, FrozenEstimator):
        return True
    within = getattr(estimator, "estimator", None)
    return isinstance(estimator, Checking) and (within is None or _fits_to_sources(within))


def check_labelled(model: Any, rows: SourceRows) -> None:
    """An error unless each row has one label."""
    if rows.discovered.labels is None or rows.soft:
        raise LabelError(
            f"{type(model).__name__} needs a label a row.", "Name one column of labels as target."
        )


def weights_of(batch: Batch) -> Array:
    """The weights of the rows of a batch, one where they have none."""
    weight = read_batch_weight(batch)
    return np.ones(batch.n_rows) if weight is None else weight


def read_source(
    model: Any, rows: SourceRows, y: Any, sample_weight: Any, known: Labels | None, labelled: bool
) -> Sourced:
    """Rows that `fit` of a model around another was given, checked.

    The classes are those `known`, else all that rows with a weight have; none if not `labelled`.
    """
    check_source(model, model.estimator, y, sample_weight)
    check_offsets(rows, model, "fit")
    rows.discover()
    if model._frozen:
        rows = rows.read_as(getattr(inside(model.estimator), "schema_", None), known)
    if not labelled:
        return Sourced(rows.without_labels(), np.empty(0))
    check_labelled(model, rows)
    if known is not None:
        rows = rows.known_as(rows.schema, known)
    return Sourced(rows, cast(Labels, rows.classes))
