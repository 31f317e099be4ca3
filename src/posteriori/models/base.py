"""What all classifiers share: reading rows, and turning activations into answers.

A classifier sets `schema_`, `classes_` and its parameters in `_fit_rows`, and gives
`_activations(X)`: one number a class, (n, K), equal to ln p(C_k|x) up to a constant of the row
(or, for discriminant functions, the values whose largest wins).
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from typing import Any, Self, cast

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError

from posteriori.decision.rule import most_probable
from posteriori.design.columns import Columns
from posteriori.errors import LabelError, ParameterError, ScaleError
from posteriori.models.anywhere import anywhere, check_alone, check_offsets
from posteriori.models.checking import Checking
from posteriori.models.effects import Effects
from posteriori.models.telling import Telling, linear_columns
from posteriori.models.unchanged import unchanged_on_error
from posteriori.posterior.classes import log_probabilities, probabilities
from posteriori.rows.block import Block, Features, Mixed, take_rows
from posteriori.rows.categories import check_text
from posteriori.rows.dask import is_table
from posteriori.rows.features import path_error
from posteriori.rows.finite import check_finite
from posteriori.rows.formula import Formula, read_formula
from posteriori.rows.frames import backend_of
from posteriori.rows.in_memory import (
    SERIAL_ENTRIES,
    Among,
    MemoryRows,
    check_several,
    read_new_rows,
    read_rows,
)
from posteriori.rows.scan import as_source, is_source
from posteriori.rows.schema import Schema, Unseen
from posteriori.rows.source import FitRows, PassLog, SourceRows
from posteriori.rows.target import read_classes
from posteriori.rows.threads import one_blas_thread
from posteriori.typing import Array, Labels

_DOUBLE = np.dtype(np.float64)


class Classifier(Telling, Effects, Checking, ClassifierMixin, BaseEstimator):
    """A classifier trained by sums over rows."""

    schema_: Schema
    classes_: Labels
    passes_: PassLog
    n_features_in_: int
    formula_: Formula | None = None
    unseen: Unseen = "error"

    _allows_missing = False
    _learns_levels = False

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, classes: Any = None) -> Self:
        """Fit to rows X (n, d) and class labels y (n,), or to a `Rows` with both.

        X: array, sparse matrix or data frame; or a formula, with the data frame as y. y: labels
        of any sortable kind, or an (n, K) matrix of soft labels whose rows sum to one.
        `sample_weight`: a weight of w counts as the row repeated w times. `classes` names the
        columns of soft labels; a data frame names its own. A fit that fails leaves the estimator
        as it was.
        """
        return self._fit_to(lambda: self._read(X, y, sample_weight, classes))

    def _fit_to_some(
        self, X: Any, y: Any, sample_weight: Any, among: Among | None, schema: Schema | None
    ) -> Self:
        """Fit to a table of some rows, with the numbers that these have `among` all.

        `schema` has the columns with the levels of all rows, where some may lack them.
        """

        def read() -> FitRows:
            rows = self._read(X, y, sample_weight, None, schema=schema)
            return replace(cast(MemoryRows, rows), among=among)

        return self._fit_to(read)

    def _fit_to(self, read: Callable[[], FitRows]) -> Self:
        """Fit to the rows that `read` gives; a fit that fails leaves the estimator as it was."""
        with self._all_or_nothing():
            rows = read()
            self.__dict__.pop("passes_", None)
            self._remember(rows.schema, cast(Labels, rows.classes))
            with rows.fitting():
                self._fit_rows(rows)
            if rows.log is not None:
                self.passes_ = rows.log.since_last()
        return self

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """What is learnt within, on one BLAS thread, is forgotten if an error ends it."""
        with unchanged_on_error(self), one_blas_thread():
            yield

    @abstractmethod
    def _fit_rows(self, rows: FitRows) -> None:
        """Set the parameters from the rows."""

    @abstractmethod
    def _activations(self, X: Features) -> Array:
        """One activation a class (n, K); NaN in rows with entries missing."""

    def _marginal(self, X: Features) -> Array:
        """Activations of rows with missing entries, for models that can leave them out."""
        raise NotImplementedError

    def _read(self, X: Any, y: Any, sample_weight: Any, classes: Any, **reading: Any) -> FitRows:
        self.formula_ = None
        self._frame_backend = None
        if is_source(X):
            return self._read_source(X, y, sample_weight, classes, **reading)
        if isinstance(X, MemoryRows):
            check_alone(self, y, sample_weight, classes)
            return self._with_labels(X)
        if isinstance(X, PathLike) or (isinstance(X, str) and "~" not in X):
            raise path_error(X, y)
        self._frame_backend = backend_of(y if isinstance(X, str) else X)
        if isinstance(X, str):
            X, y, self.formula_ = self._read_formula(X, y)
        return self._make_rows(X, y, sample_weight, classes, **reading)

    def _read_source(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        classes: Any,
        *,
        schema: Schema | None = None,
        known_classes: Labels | None = None,
        new_levels: bool = False,
        least_classes: int = 2,
    ) -> SourceRows:
        """Rows of `scan` or Dask collections, after their first pass."""
        name = type(self).__name__
        soft = classes if schema is None and is_table(y) else None
        rows = as_source(X, y, sample_weight, soft, name)
        known = known_classes
        if classes is not None and soft is None:
            known = read_classes(classes)
        check_offsets(rows, self, "fit")
        if schema is not None:
            rows = rows.read_as(schema, getattr(self, "classes_", known))
        with rows.fitting():
            if schema is None and known is None and least_classes > 1:
                self._discover(rows)
            rows.discover()
        if schema is not None or known is not None:
            rows = rows.known_as(schema or rows.schema, known, new_levels)
        check_several(self._with_labels(rows).classes, rows.n_rows, name, least_classes)
        for column in rows.schema.columns if schema is None else ():
            check_text(column, rows.n_rows)
        return rows

    def _with_labels(self, rows: FitRows) -> Any:
        """The rows; an error if they have no labels."""
        if rows.classes is None:
            name = type(self).__name__
            raise LabelError(f"{name} was given rows without labels.", "Name their target.")
        return rows

    def _discover(self, rows: SourceRows) -> None:
        """Make the first pass over a source, with a sum where one sum makes the model."""

    def _make_rows(
        self, X: Any, y: Any, sample_weight: Any, classes: Any, **reading: Any
    ) -> MemoryRows:
        """What the user passed, as rows with classes."""
        return read_rows(X, y, sample_weight, classes, model=type(self).__name__, **reading)

    def _read_formula(self, formula: str, data: Any) -> tuple[Any, Any, Formula]:
        """Rows and labels as a formula says: fit("y ~ a + b", data)."""
        found = read_formula(formula, data)
        if not found.formula.intercept and not hasattr(self, "fit_intercept"):
            raise ParameterError(
                f"{type(self).__name__} always has an intercept, but the formula takes it out.",
                "Leave out '- 1' or '+ 0'.",
            )
        return found.X, found.y, found.formula

    def _remember(self, schema: Schema, classes: Labels) -> None:
        self.schema_ = schema
        self.classes_ = classes
        self.n_features_in_ = len(schema)
        if schema.named:
            self.feature_names_in_ = np.array(schema.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _evaluate(
        self,
        X: Any,
        link: Callable[[Array], Array],
        width: int | None = None,
        activations: Callable[[Features], Array] | None = None,
    ) -> Array:
        """`link` of the activations of all rows, block by block; `width` columns of answers."""
        activate = activations or self._activations
        schema = self.schema_
        if (
            type(X) is np.ndarray
            and X.dtype is _DOUBLE
            and X.ndim == 2
            and 0 < X.size < SERIAL_ENTRIES
            and X.shape[1] == len(schema)
            and not schema.named
        ):
            with np.errstate(over="ignore", invalid="ignore"):
                activation = activate(X)
            # One comparison a row is all that a small clean request pays for being checked.
            if np.isfinite(activation.max(axis=1)).all():
                return link(activation)
        rows = self._new_rows(X)
        shape = (rows.n_rows,) if width is None else (rows.n_rows, width)
        return rows.fill(np.empty(shape), lambda block: link(self._checked(block, activate)))

    def _new_rows(self, X: Any) -> MemoryRows:
        """Rows to predict, by the formula of the fit if it had one."""
        if self.formula_ is not None:
            X = self.formula_.apply(X, self.unseen)
        return read_new_rows(X, self.schema_, type(self).__name__)

    def _checked(self, block: Block, activate: Callable[[Features], Array]) -> Array:
        """Activations of a block, with missing entries left out or named."""
        if isinstance(block.X, Mixed) and not self._learns_levels:
            Columns(self.schema_, self.unseen).design(block)
        with np.errstate(over="ignore", invalid="ignore"):
            activation = activate(block.X)
        doubtful = ~np.isfinite(activation.max(axis=1))
        if not doubtful.any():
            return activation
        check_finite(block, self.schema_, missing=self._allows_missing)
        unknown = np.isnan(activation).any(axis=1)
        if unknown.any() and self._allows_missing:
            with np.errstate(over="ignore", invalid="ignore"):
                activation[unknown] = self._marginal(take_rows(block.X, np.flatnonzero(unknown)))
            doubtful = ~np.isfinite(activation.max(axis=1))
        if doubtful.any():
            raise self._no_answer(block.row(int(doubtful.argmax())))
        return activation

    def _no_answer(self, row: int) -> ScaleError:
        """What to say of a row whose entries are all there, but none of whose activations is."""
        return beyond_doubles(row)

    @anywhere
    def decision_function(self, X: Any) -> Array:
        """Activations (n, K); for two classes (n,), positive where the second is chosen."""
        if len(self._known_classes()) == 2:
            return self._evaluate(X, _log_odds)
        return self._evaluate(X, lambda a: a, len(self.classes_))

    @anywhere
    def predict(self, X: Any) -> Labels:
        """The most probable class of each row."""
        self._known_classes()
        codes = self._evaluate(X, lambda a: most_probable(a).astype(np.float64))
        return self.classes_[codes.astype(np.intp)]

    def _parameter_columns(self) -> dict[str, list[Any]]:
        return linear_columns(self)

    def _known_classes(self) -> Labels:
        try:
            return self.classes_
        except AttributeError:
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet. Call fit first."
            ) from None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._allows_missing
        return tags


class ProbabilisticClassifier(Classifier):
    """A classifier whose activations are log posterior probabilities up to a constant."""

    @anywhere
    def predict_proba(self, X: Any) -> Array:
        """p(C_k|x) of each row and class (n, K); rows sum to one."""
        return self._evaluate(X, probabilities, len(self._known_classes()))

    @anywhere
    def predict_log_proba(self, X: Any) -> Array:
        """ln p(C_k|x), finite where the probability itself underflows."""
        return self._evaluate(X, log_probabilities, len(self._known_classes()))

    def _predicted(self, block: Block) -> Array:
        """The probabilities of the labels of a block's rows (n, K)."""
        return probabilities(self._checked(block, self._activations))

    def _no_answer(self, row: int) -> ScaleError:
        return ScaleError(
            "Row {row} has density zero in every class: it lies too far from all of them, or "
            "has a level or count that none of them can give.",
            "Look at its entries; drop the row, or fit with a pseudocount.",
            row,
        )


def beyond_doubles(row: int) -> ScaleError:
    """The error for a row whose linear activations overflow."""
    return ScaleError(
        "The activations of row {row} do not fit in a double: an entry is too large for the "
        "coefficients.",
        "Look at its entries; drop the row, or divide the column by a large number.",
        row,
    )


def _log_odds(activation: Array) -> Array:
    """The second activation less the first; infinite beyond the doubles."""
    with np.errstate(over="ignore"):
        return activation[:, 1] - activation[:, 0]
