"""Answers for rows that the answering model has not seen, wherever the rows lie.

Each fold of the rows is answered by a copy of the estimator that is fitted to all other folds; or
all rows are by an estimator that comes fitted. The answers are `Rows` again: numbers in place of
the columns, with the labels and weights that the rows have.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self, cast

import numpy as np
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from posteriori.errors import DataError, ParameterError, PosterioriError, ScaleError
from posteriori.models.anywhere import inside, known_to
from posteriori.models.folds import check_folds, deal, read_key
from posteriori.models.meta import Training, Wrapping, read_pickable
from posteriori.models.sourced import AsLots, FoldOf, Sourced, read_source, weights_of
from posteriori.models.unchanged import all_or_nothing
from posteriori.rows.chunk import Chunk, Lens
from posteriori.rows.chunked import ChunkedRows, PassLog
from posteriori.rows.dask import dask_rows, is_dask
from posteriori.rows.digests import row_lots
from posteriori.rows.in_memory import Among, MemoryRows
from posteriori.rows.schema import Schema
from posteriori.rows.tables import DenseTable
from posteriori.typing import Array, Codes, Labels

Answer = Callable[[Any, Any], Array]
"""The answers (n,) or (n, m) of a fitted estimator for rows X of any type."""

_TRIED = 9
"""Rows that are looked at for one that has an answer."""


class HoldingBack(Wrapping):
    """An estimator around another, of which it asks about rows that it has not seen.

    A subclass says what is learnt from the answers (`_learn`), and which settings cannot be
    honoured (`_check_settings`).
    """

    folds: int
    random_state: Any
    passes_: PassLog

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the estimator, and learn from its answers for rows that it has not seen.

        A weight counts how often its row occurred; weight zero is as good as absent. X may be rows
        of `scan`, or in Dask, if the estimator is one that fits to them or comes fitted.
        """
        self._check()
        self.__dict__.pop("passes_", None)
        if is_dask(X):
            X, y, sample_weight = dask_rows(X, y, sample_weight), None, None
        if not isinstance(X, ChunkedRows):
            self._learn(self._read(X, y, sample_weight))
            return self
        begun = replace(X.log)
        with X.between_passes():
            labelled, known = self._needs_labels, self._known_classes()
            self._learn(read_source(self, X, y, sample_weight, known, labelled))
        self.passes_ = X.log.since(begun)
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
        """An error for what cannot be honoured."""

    @abstractmethod
    def _learn(self, rows: Training | Sourced) -> None:
        """Set `estimator_`, and what is learnt from its answers."""

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
                f"{type(self).__name__} cannot pick rows out of a precomputed kernel.",
                "Use an estimator that computes its kernel.",
            )

    def _known_classes(self) -> Labels | None:
        """Those of a frozen estimator, where labels are needed."""
        return np.asarray(self.estimator.classes_) if self._frozen and self._needs_labels else None

    def _read(self, X: Any, y: Any, sample_weight: Any) -> Training:
        """A table that `fit` was given, checked; a row of weight zero is as good as absent.

        The classes are those of a frozen estimator, else the labels of the rows that are left.
        Where no labels are needed, all rows are of one class.
        """
        takes_weights = self._frozen or has_fit_parameter(self.estimator, "sample_weight")
        if sample_weight is not None and not takes_weights:
            raise ParameterError(
                f"sample_weight was given, but {type(self.estimator).__name__} takes none.",
                "Leave the weights out, or use an estimator whose fit takes them.",
            )
        name, labelled = type(self).__name__, self._needs_labels
        return read_pickable(X, y, sample_weight, name, self._known_classes(), labelled)


def held_back(
    rows: Training | Sourced, model: HoldingBack, answer: Answer, width: int
) -> MemoryRows | ChunkedRows:
    """The answers, `width` numbers a row, of all rows of a fit of the model."""
    if isinstance(rows, Sourced):
        return rows.rows.seen_as_numbers(_in_source(rows, model, answer, width), width)
    if model._frozen:
        return rows.as_numbers(answer(model.estimator_, rows.X))
    folds = deal(rows, model.folds, model.random_state)
    return rows.as_numbers(out_of_fold(rows, model.estimator, answer, folds))


def out_of_fold(rows: Training, estimator: Any, answer: Answer, folds: Codes) -> Array:
    """answer(fitted, X) for the rows of each fold, by an estimator fitted to all other folds."""
    parts, places = [], []
    for fold in np.unique(folds):
        held, rest = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        fitted = rows.pick(rest).fitted(estimator)
        given = Asked(partial(answer, fitted), lambda some: rows.pick(some).X)
        parts.append(given(held, held if rows.among is None else rows.among.numbers[held]))
        places.append(held)
    joined = np.concatenate(parts)
    found = np.empty_like(joined)
    found[np.concatenate(places)] = joined
    return found


@dataclass(frozen=True, eq=False)
class Asked:
    """Answers for rows that are taken out of others, and errors that call a row by its number."""

    answer: Callable[[Any], Array]
    take: Callable[[Codes], Any]

    def __call__(self, rows: Codes, numbers: Codes) -> Array:
        """The answers for some rows, which have these numbers."""
        try:
            return self.answer(self.take(rows))
        except (DataError, ScaleError) as error:
            raise self._by_number(rows, numbers) or error from error

    def _by_number(self, rows: Codes, numbers: Codes) -> PosterioriError | None:
        """The error of the first row that has one, among as many as make its number right."""
        good, bad = 0, len(rows)  # so many at the beginning have answers, or not
        while bad - good > 1:
            middle = (good + bad) // 2
            good, bad = (good, middle) if self._error(rows[:middle]) else (middle, bad)
        others = rows[good - 1 : good] if good else rows[1:_TRIED]
        other = next((row for row in others if not self._error(rows[rows == row])), None)
        before = int(numbers[good])
        if before and other is None:
            return None
        return self._error(np.append(np.full(before, other or 0), rows[good]))

    def _error(self, rows: Codes) -> PosterioriError | None:
        try:
            self.answer(self.take(rows))
        except (DataError, ScaleError) as error:
            return error
        return None


def _in_source(rows: Sourced, model: HoldingBack, answer: Answer, width: int) -> "_Answers":
    if model._frozen:
        return _Answers(answer, {0: model.estimator_}, None, width)
    dealt = rows.dealt(model.folds, read_key(model.random_state))
    fitted = {fold: dealt.without(fold).fitted(model.estimator) for fold in dealt.used}
    return _Answers(answer, fitted, dealt.fold_of, width)


@dataclass(frozen=True, eq=False)
class _Answers:
    """The lens under which a row is the answer for it, by the estimator of its fold.

    Rows without weight, which may hold anything, have zeros.
    """

    answer: Answer
    fitted: Mapping[int, Any]
    fold_of: FoldOf | None
    width: int

    def __call__(self, chunk: Chunk) -> Chunk:
        found = np.zeros((chunk.n_rows, self.width))
        fold = np.zeros(chunk.n_rows) if self.fold_of is None else self.fold_of(chunk)
        counts = weights_of(chunk) > 0
        for number, fitted in self.fitted.items():
            own = np.flatnonzero(counts & (fold == number))
            if len(own):
                table = Chunk(known_to(inside(fitted), chunk.X))
                given = Asked(partial(self.answer, fitted), partial(_rows_of, table))
                found[own] = given(own, own).reshape(len(own), -1)
        return chunk._replace(X=found)


def _rows_of(table: Chunk, rows: Codes) -> Any:
    """Some of the rows; all as they are."""
    return table.X if np.array_equal(rows, np.arange(table.n_rows)) else table.take(rows).X


def with_lots(
    rows: Training | Sourced, found: MemoryRows | ChunkedRows
) -> MemoryRows | ChunkedRows:
    """The answers for rows, and beside them the lot of each row."""
    if isinstance(rows, Sourced):
        beside = _Beside((cast(ChunkedRows, found).through[-1], AsLots()))
        return rows.rows.seen_as_numbers(beside, len(found.schema) + 1)
    answers = cast(DenseTable, cast(MemoryRows, found).table).values
    return rows.as_numbers(np.column_stack([answers, row_lots(rows.X)]))


@dataclass(frozen=True, eq=False)
class _Beside:
    """The lens under which a row is what several others make of it, side by side."""

    lenses: tuple[Lens, ...]

    def __call__(self, chunk: Chunk) -> Chunk:
        return chunk._replace(X=np.column_stack([lens(chunk).X for lens in self.lenses]))


def mapped(
    rows: MemoryRows | ChunkedRows, change: Callable[[Array], Array], width: int
) -> MemoryRows | ChunkedRows:
    """Rows of numbers (n, m), of which `change` makes `width` others."""
    if isinstance(rows, ChunkedRows):
        return rows.seen_as_numbers(_Changed(change), width)
    values = change(cast(Array, rows.table.cut(0, rows.n_rows)))
    return replace(rows, table=DenseTable(values, Schema.unnamed(width)))


@dataclass(frozen=True, eq=False)
class _Changed:
    """The lens that makes other numbers of numbers."""

    change: Callable[[Array], Array]

    def __call__(self, chunk: Chunk) -> Chunk:
        return chunk._replace(X=self.change(chunk.X))
