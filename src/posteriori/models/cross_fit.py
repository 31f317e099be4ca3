"""Cross-fitting: predictions for rows that the predicting model was not fitted to.

Each fold of the rows is predicted by a copy of the estimator that is fitted to all other folds; or
all rows are, by an estimator that is fitted already. The predictions are `Rows` again: numbers in
place of the columns, with the labels and weights of the rows. Folds of a table are scikit-learn's
`StratifiedKFold`, folds of a source the hash of the row number.
"""

import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self, cast

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from posteriori.arguments import as_generator, check_count
from posteriori.errors import (
    DataError,
    IdentifiabilityWarning,
    LabelError,
    ParameterError,
    ScaleError,
    warn,
)
from posteriori.models.base import (
    all_or_nothing,
    check_labelled,
    check_offsets,
    check_source,
    inside,
    known_to,
)
from posteriori.models.wrapper import Training, Wrapping, read_pickable
from posteriori.rows.discovery import LabelCounts
from posteriori.rows.features import Table
from posteriori.rows.frames import pick_rows
from posteriori.rows.in_memory import Among
from posteriori.rows.scan import as_source, is_source
from posteriori.rows.schema import Batch, Schema
from posteriori.rows.source import FitRows, PassLog, SourceRows
from posteriori.rows.target import read_weight
from posteriori.statistics.calibration import CountFolds, FoldCounts, RowFolds
from posteriori.typing import Array, Codes, Labels

Predict = Callable[[Any, Any], Array]
"""Predictions (n,) or (n, m) of a fitted estimator for rows X of any type."""


class CrossFitted(Wrapping):
    """An estimator around another, which learns from predictions for held-out rows.

    A subclass says what it learns from them (`_learn`), and checks its settings
    (`_check_settings`).
    """

    folds: int
    random_state: Any
    passes_: PassLog

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the estimator, and learn from its predictions for held-out rows.

        X: a table, with labels y; or a dataset of `scan` or in Dask, if the estimator is one of
        posteriori's or already fitted. Rows of weight zero are ignored.
        """
        self._check()
        self.__dict__.pop("passes_", None)
        if not is_source(X):
            self._learn(self._read(X, y, sample_weight))
            return self
        rows = as_source(X, y, sample_weight, None, type(self).__name__)
        begun = replace(rows.log)
        with rows.fitting():
            self._learn(read_source(self, rows, self._known_classes(), self._needs_labels))
        self.passes_ = rows.log.since(begun)
        return self

    @all_or_nothing
    def _fit_to_some(
        self, X: Any, y: Any, sample_weight: Any, among: Among | None, schema: Schema | None
    ) -> Self:
        """Fit to a table of some rows; as `Classifier._fit_to_some`."""
        self._check()
        self.__dict__.pop("passes_", None)
        self._learn(self._read(X, y, sample_weight).within(among, schema))
        return self

    @abstractmethod
    def _check_settings(self) -> None:
        """An error for settings that cannot be honoured."""

    @abstractmethod
    def _learn(self, rows: "Training | TrainingSource") -> None:
        """Set `estimator_`, and what is learnt from its predictions."""

    @property
    def _needs_labels(self) -> bool:
        """Whether rows must have labels."""
        return True

    def _check(self) -> None:
        self._check_settings()
        check_folds(self.folds)
        if self._frozen:
            check_is_fitted(self.estimator)
        if get_tags(self.estimator).input_tags.pairwise:
            raise ParameterError(
                f"{type(self).__name__} cannot take rows from a precomputed kernel.",
                "Use an estimator that computes its kernel.",
            )

    def _known_classes(self) -> Labels | None:
        """Those of a frozen estimator, where labels are needed."""
        return np.asarray(self.estimator.classes_) if self._frozen and self._needs_labels else None

    def _read(self, X: Any, y: Any, sample_weight: Any) -> Training:
        """A table that `fit` was given, checked, without rows of weight zero.

        The classes are those of a frozen estimator, else the labels of the remaining rows. Where
        no labels are needed, all rows are of one class.
        """
        takes_weights = self._frozen or has_fit_parameter(self.estimator, "sample_weight")
        if sample_weight is not None and not takes_weights:
            raise ParameterError(
                f"sample_weight was given, but {type(self.estimator).__name__} takes none.",
                "Leave the weights out, or use an estimator whose fit takes them.",
            )
        name, labelled = type(self).__name__, self._needs_labels
        return read_pickable(X, y, sample_weight, name, self._known_classes(), labelled)


# --- Folds --------------------------------------------------------------------------------------


def check_folds(folds: Any) -> None:
    """An error unless this is a number of folds."""
    check_count("folds", folds, "folds")
    if folds < 2:
        raise ParameterError("folds=1 holds out no rows.", "Use two folds or more.")


def read_seed(random_state: Any) -> int:
    """A seed for the folds; 0 without `random_state`, so that fits are reproducible."""
    generator = as_generator(0 if random_state is None else random_state)
    if random_state is None or isinstance(random_state, int | np.integer):
        return int(random_state or 0) % 2**32
    return int(generator.integers(2**32))


def assign_folds(codes: Codes, classes: Labels, n_folds: int, random_state: Any) -> Codes:
    """The fold (n,) of each row of a table by `StratifiedKFold`, with the rows shuffled.

    There are fewer folds where no class has so many rows.
    """
    folds, n_folds = np.zeros_like(codes), min(n_folds, int(np.bincount(codes).max()))
    if n_folds > 1:
        splitter = StratifiedKFold(n_folds, shuffle=True, random_state=read_seed(random_state))
        with warnings.catch_warnings():
            # A class with fewer rows than folds is in some of the folds only.
            warnings.simplefilter("ignore", UserWarning)
            for fold, (_, held_out) in enumerate(splitter.split(codes, codes)):
                folds[held_out] = fold
    in_fold = codes * n_folds + folds
    counts = np.bincount(in_fold, minlength=len(classes) * n_folds).reshape(-1, n_folds)
    _check_classes_known(counts, classes)
    return folds


def _check_classes_known(counts: Array | Codes, classes: Labels) -> None:
    """Warn of classes with all rows in one fold; an error if the other folds lack two classes.

    `counts` (K, folds): the rows of each class in each fold.
    """
    unknown = (counts > 0).sum(axis=1) == 1
    if not unknown.any():
        return
    k = int(unknown.argmax())
    problem = (
        f"All rows of class {classes.tolist()[k]!r} are in one fold (it has {counts[k].sum():g}): "
        "the estimator does not know the class where they are held out"
    )
    remedy = (
        "Pass more rows of it; or wrap a fitted estimator in sklearn.frozen.FrozenEstimator, and "
        "pass other rows."
    )
    if len(unknown) - unknown.sum() < min(2, len(unknown)):
        raise LabelError(f"{problem} (n_samples = {counts.sum():g}).", remedy)
    warn(IdentifiabilityWarning(f"{problem}.", remedy))


# --- Predictions for held-out rows --------------------------------------------------------------


def held_out_predictions(
    rows: "Training | TrainingSource", model: CrossFitted, predict: Predict, width: int
) -> FitRows:
    """Predictions, `width` numbers a row, for all rows of a fit of the model."""
    if isinstance(rows, TrainingSource):
        return rows.rows.as_numbers(_fit_folds(rows, model, predict, width), width)
    if model._frozen:
        return rows.as_numbers(predict(model.estimator_, rows.X))
    folds = assign_folds(rows.codes, rows.classes, model.folds, model.random_state)
    return rows.as_numbers(out_of_fold(rows, model.estimator, predict, folds))


def out_of_fold(rows: Training, estimator: Any, predict: Predict, folds: Codes) -> Array:
    """Predictions for the rows of each fold by an estimator fitted to all other folds."""
    places, parts = [], []
    for fold in np.unique(folds):
        held_out = np.flatnonzero(folds == fold)
        fitted = rows.pick(np.flatnonzero(folds != fold)).fitted(estimator)
        places.append(held_out)
        numbers = held_out if rows.among is None else rows.among.numbers[held_out]
        parts.append(_predict_part(partial(predict, fitted), rows.pick(held_out).X, numbers))
    joined = np.concatenate(parts)
    found = np.empty_like(joined)
    found[np.concatenate(places)] = joined
    return found


def _predict_part(predict: Callable[[Any], Array], part: Any, numbers: Codes) -> Array:
    """Predictions for some rows, of which an error names one by its number among all."""
    try:
        return predict(part)
    except (DataError, ScaleError) as error:
        if error.row is None:
            raise
        raise error.located("", int(numbers[error.row]) - error.row) from error


def _fit_folds(
    rows: "TrainingSource", model: CrossFitted, predict: Predict, width: int
) -> "_HeldOut":
    if model._frozen:
        return _HeldOut(predict, {0: model.estimator_}, RowFolds(1), width)
    # Folds within folds are independent of them.
    folds = RowFolds(model.folds, read_seed(model.random_state) + len(rows.rows.transforms))
    counts = rows.rows.map_sum(CountFolds(folds, len(rows.classes)))
    _check_classes_known(counts.count, rows.classes)
    used = np.flatnonzero(counts.count.any(axis=0)).tolist()
    fitted = {fold: rows.without(fold, folds, counts).fitted(model.estimator) for fold in used}
    return _HeldOut(predict, fitted, folds, width)


@dataclass(frozen=True, eq=False)
class _HeldOut:
    """Replaces the columns of a batch by predictions, of the estimator of the fold of each row.

    Rows without weight, which may hold anything, have zeros.
    """

    predict: Predict
    fitted: Mapping[int, Any]
    folds: RowFolds
    width: int

    def __call__(self, batch: Batch) -> Batch:
        found = np.zeros((batch.n_rows, self.width))
        counting = np.flatnonzero(_weights_of(batch))
        fold = self.folds.of(batch.numbers[counting])
        for number, fitted in self.fitted.items():
            own = counting[fold == number]
            if len(own):
                X = known_to(inside(fitted), batch.X)
                part = X if len(own) == batch.n_rows else pick_rows(X, own)
                predicted = _predict_part(partial(self.predict, fitted), part, own)
                found[own] = predicted.reshape(len(own), -1)
        return batch._replace(X=found)


def transformed(rows: FitRows, change: Callable[[Array], Array], width: int) -> FitRows:
    """Rows of numbers (n, m), of which `change` makes `width` others."""
    if not rows.in_memory:
        return rows.as_numbers(_Transformed(change), width)
    values = change(cast(Array, rows.table.cut(0, rows.n_rows)))
    return replace(rows, table=Table(values, Schema.unnamed(width)))


@dataclass(frozen=True, eq=False)
class _Transformed:
    """Changes the numbers of a batch."""

    change: Callable[[Array], Array]

    def __call__(self, batch: Batch) -> Batch:
        return batch._replace(X=self.change(batch.X))


# --- Datasets on disk or on a cluster -----------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TrainingSource:
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

    def without(self, fold: int, folds: RowFolds, counts: FoldCounts) -> "TrainingSource":
        """The rows of all other folds: those of this one have no weight."""
        others = np.arange(folds.n_folds) != fold
        weight, count = counts.weight[:, others], counts.count[:, others]
        labels = LabelCounts(self.classes, weight.sum(axis=1), count.sum(axis=1))
        kept = self.rows.reweighted(_Without(folds, fold), labels)
        return TrainingSource(kept, cast(Labels, kept.classes))


@dataclass(frozen=True, eq=False)
class _Without:
    """Sets the weights of the rows of a fold to zero."""

    folds: RowFolds
    fold: int

    def __call__(self, batch: Batch) -> Batch:
        held_out = self.folds.of(batch.numbers) == self.fold
        return batch._replace(weight=np.where(held_out, 0.0, _weights_of(batch)))


def _weights_of(batch: Batch) -> Array:
    weight = read_weight(batch.weight, batch.n_rows, all_zero=True)
    return np.ones(batch.n_rows) if weight is None else weight


def read_source(
    model: CrossFitted, rows: SourceRows, known: Labels | None, labelled: bool
) -> TrainingSource:
    """Rows of a source that `fit` was given, checked.

    The classes are those `known`, else all that rows with a weight have; none if not `labelled`.
    """
    check_source(model.estimator)
    check_offsets(rows, model, "fit")
    if not labelled:
        return TrainingSource(rows.without_labels(), np.empty(0))
    rows.discover()
    check_labelled(model, rows)
    if known is not None:
        rows = rows.known_as(rows.schema, known)
    return TrainingSource(rows, cast(Labels, rows.classes))
