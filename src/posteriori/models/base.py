"""What all estimators share: reading rows, predictions from activations, and inspection.

A classifier sets `schema_`, `classes_` and its parameters in `_fit_rows`, and gives
`_activations(X)`: one number a class, (n, K), equal to ln p(C_k|x) up to a constant of the row
(or, for discriminant functions, the values whose largest wins). A fit that ends in an error, or by
Ctrl-C, leaves the estimator as it was.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from importlib.util import find_spec
from inspect import Parameter, signature
from os import PathLike
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from posteriori.design.columns import Columns
from posteriori.errors import LabelError, ParameterError, ScaleError
from posteriori.likelihood.linear_activations import Linear
from posteriori.linalg import read_only
from posteriori.models.linear import Hyperplane, boundary, coefficient_names, signed_distance
from posteriori.rows.block import (
    Block,
    Features,
    FitRows,
    Mixed,
    check_finite,
    is_dask,
    is_scanned,
    is_source,
    take_rows,
)
from posteriori.rows.features import is_arrow_table, path_error
from posteriori.rows.frames import backend_of
from posteriori.rows.in_memory import (
    SERIAL_ENTRIES,
    MemoryRows,
    check_several,
    is_memory_rows,
    read_new_rows,
    read_rows,
)
from posteriori.rows.schema import Batch, HandleUnknown, Schema
from posteriori.rows.target import read_classes
from posteriori.rows.threads import one_blas_thread
from posteriori.typing import Array, Labels

if TYPE_CHECKING:
    from posteriori.inspection.checks import Checks
    from posteriori.inspection.explain import Explanation
    from posteriori.inspection.results import Summary
    from posteriori.rows.formula import Formula
    from posteriori.rows.source import PassLog, SourceRows

F = TypeVar("F", bound=Callable[..., Any])


@contextmanager
def unchanged_on_error(estimator: Any) -> Iterator[None]:
    """Restore the attributes of an estimator if an error ends the block."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        estimator.__dict__ = before
        raise


def all_or_nothing(fit: F) -> F:
    """A method that leaves the attributes of its estimator as they were if it fails."""

    @wraps(fit)
    def fitted(self: Any, *args: Any, **kwargs: Any) -> Any:
        with unchanged_on_error(self):
            return fit(self, *args, **kwargs)

    return cast(F, fitted)


class Estimator(BaseEstimator):
    """A fitted model that is inspected: summaries, effects, explanations and checks.

    A subclass gives `_parameter_columns`: a table of its parameters, of which the first column is
    `term`, a further one perhaps `class`.
    """

    _frame_backend: str | None = None
    _estimates = ""

    @abstractmethod
    def _parameter_columns(self) -> dict[str, list[Any]]:
        """The parameters, column by column."""

    def tidy(self) -> Any:
        """The parameters as a frame of the kind that the model was fitted to.

        >>> from posteriori import LeastSquaresClassifier
        >>> LeastSquaresClassifier().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).tidy().round(3)
                term  estimate
        0  intercept      -1.2
        1         x0       0.8
        """
        from posteriori.inspection.results import tidy

        return tidy(self)

    def glance(self) -> Any:
        """The fit as a frame with one row."""
        from posteriori.inspection.results import glance

        return glance(self)

    def summary(self) -> "Summary":
        """The fit on one page, to print or to look at in a notebook; `.latex()` for a document."""
        from posteriori.inspection.results import summary

        return summary(self)

    def _n_obs(self) -> float | None:
        """The weight of the rows, where it is known."""
        return None

    def augment(self, X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None) -> Any:
        """The rows of X with the predictions of the model, as a frame of the kind that X is.

        The columns added are `predicted` and, if the model has probabilities, `p_` with the label
        of each class. With labels y there is also `log_loss`, -ln p of the label (of soft labels
        the mean). A GLM of numbers has `fitted` and, with y, `residual`. `sample_weight` becomes a
        column, and `offset` is added to the activations.

        >>> import pandas as pd
        >>> from posteriori import LogisticRegression
        >>> X, y = pd.DataFrame({"dose": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]}), [0, 0, 1, 0, 1, 1]
        >>> LogisticRegression().fit(X, y).augment(X, y).round(2).tail(2)
           dose  predicted   p_0   p_1  log_loss
        4   4.0          1  0.14  0.86      0.15
        5   5.0          1  0.05  0.95      0.05
        """
        from posteriori.inspection.results import augment

        return augment(self, X, y, sample_weight, offset)

    def predictions(self, X: Any = None, **given: Any) -> Any:
        """Probabilities with intervals, row by row, averaged, or at chosen values.

        predictions(X=None, *, at=None, average=False, level=0.95, sample_weight=None, offset=None);
        see `posteriori.predictions`.
        """
        from posteriori.inspection.effects import predictions

        return predictions(self, X, **given)

    def comparisons(self, X: Any = None, **given: Any) -> Any:
        """The change of probabilities when a column changes.

        comparisons(X=None, *, columns=None, change=1.0, at=None, average=True, level=0.95,
        sample_weight=None, offset=None); see `posteriori.comparisons`.
        """
        from posteriori.inspection.effects import comparisons

        return comparisons(self, X, **given)

    def slopes(self, X: Any = None, **given: Any) -> Any:
        """The change of probabilities with each unit of a numeric column.

        slopes(X=None, *, columns=None, at=None, average=True, level=0.95, sample_weight=None,
        offset=None); see `posteriori.slopes`.
        """
        from posteriori.inspection.effects import slopes

        return slopes(self, X, **given)

    def explain(
        self, x: Any, *, label: Any = None, against: Any = None, offset: Any = None
    ) -> "Explanation":
        """What each column contributes to the log odds of one row.

        See `posteriori.inspection.explain.explain`.
        """
        from posteriori.inspection.explain import explain

        return explain(self, x, label=label, against=against, offset=offset)

    def check(
        self,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        offset: Any = None,
        *,
        ignore: str | Iterable[str] = (),
    ) -> "Checks":
        """Diagnostics of the fit: a verdict in words on each of eight subjects.

        See `posteriori.inspection.checks.check`.
        """
        from posteriori.inspection.checks import check

        return check(self, X, y, sample_weight, offset, ignore=ignore)

    def _caveats(self) -> tuple[str, ...]:
        """Warnings about the fit, a few words each."""
        return () if getattr(self, "converged_", True) else ("it did not converge",)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        plain = super().__repr__(N_CHAR_MAX)
        classes = getattr(self, "classes_", None)
        width = getattr(self, "n_features_in_", None)
        if width is None:
            return plain
        told = [f"{width} column{'s' * (width != 1)}"]
        told += [] if classes is None else [f"{len(classes)} classes"]
        steps = getattr(self, "n_iter_", None)
        if getattr(self, "converged_", False) and steps is not None:
            told.append(f"converged in {steps} step{'s' * (steps != 1)}")
        return f"<{plain}, fitted: {', '.join([*told, *self._caveats()])}>"


_NAMES = {
    "predict": "prediction",
    "predict_proba": "probability",
    "predict_log_proba": "log_probability",
    "decision_function": "decision",
    "predict_interval": "interval",
    "score_samples": "log_density",
    "p_value": "p_value",
    "is_novel": "novel",
}
"""Names of the columns of a file with the predictions of a method."""


def anywhere(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method, extended to datasets: predict_proba(rows, to="predictions.parquet").

    For the rows of `scan` the predictions are written to a Parquet file, batch by batch, and its
    path is returned. For a Dask collection they are a Dask array.
    """
    what = _NAMES[method.__name__]

    @wraps(method)
    def answer(self: Any, X: Any, *arguments: Any, to: Any = None, **settings: Any) -> Any:
        if is_scanned(X):
            from posteriori.rows.predictions import named, write_predictions

            check_is_fitted(self)
            check_offsets(X, self, method.__name__)
            labels = list(getattr(self, "classes_", ()))
            innermost = inside(self)

            def of_batch(batch: Batch) -> Any:
                own = settings if batch.offset is None else {**settings, "offset": batch.offset}
                found = method(self, known_to(innermost, batch.X), *arguments, **own)
                return named(found, what, labels)

            return write_predictions(X, of_batch, to, list(_possible(self)) if labels else ())
        if is_dask(X):
            from posteriori.rows.predictions import predict_dask

            check_is_fitted(self)
            offset = settings.pop("offset", None)
            own = partial(getattr(self, method.__name__), *arguments, **settings)
            return predict_dask(own, X, *_kind(self, method.__name__), offset)
        if to is not None:
            raise ParameterError(
                "to= names a file for the rows of scan(), but X is in memory.",
                "Leave to out; the predictions are returned.",
            )
        return method(self, X, *arguments, **settings)

    known = signature(method)
    file = Parameter("to", Parameter.KEYWORD_ONLY, default=None, annotation=Any)
    answer.__signature__ = known.replace(parameters=[*known.parameters.values(), file])  # type: ignore[attr-defined]
    return answer


def inside(model: Any) -> Any:
    """The innermost fitted model of nested wrappers."""
    while True:
        if isinstance(model, FrozenEstimator):
            model = model.estimator
        elif isinstance(model, Estimator) and hasattr(model, "estimator_"):
            model = model.estimator_
        elif isinstance(model, Estimator) and hasattr(model, "estimators_"):
            model = model.estimators_[0]
        else:
            return model


def known_to(fitted: Any, X: Any) -> Any:
    """Rows as a table that a model accepts: Arrow tables as pandas frames for other libraries."""
    if not is_arrow_table(X) or isinstance(fitted, Estimator) or find_spec("pandas") is None:
        return X
    return X.to_pandas()


def _possible(model: Any) -> Labels:
    """All labels that `predict` may return."""
    return model._possible_answers if hasattr(model, "_possible_answers") else model.classes_


def _kind(model: Any, name: str) -> tuple[tuple[int, ...], Any]:
    """The shape of the prediction of one row, and the type of its numbers or labels."""
    labels = getattr(model, "classes_", None)
    K = 1 if labels is None else len(labels)
    if name == "predict":
        return (), np.float64 if labels is None else _possible(model).dtype
    if name == "is_novel":
        return (), np.bool_
    if name in ("predict_proba", "predict_log_proba"):
        return (K,), np.float64
    if name == "predict_interval":
        return (2,) if K <= 2 else (K, 2), np.float64
    return (K,) if name == "decision_function" and K > 2 else (), np.float64


def check_alone(model: Any, *others: Any) -> None:
    """An error if labels or weights are passed beside rows that have their own."""
    if any(given is not None for given in others):
        raise ParameterError(
            f"The rows passed to {type(model).__name__} have labels and weights of their own.",
            "Pass the rows alone, without y, sample_weight and classes.",
        )


def check_offsets(rows: "SourceRows", model: Any, method: str) -> None:
    """An error for offsets that the model does not use."""
    if rows.has_offsets and "offset" not in signature(getattr(model, method)).parameters:
        raise ParameterError(
            f"{type(model).__name__} does not support offsets, but the rows have them.",
            "Scan them without offset=, or use a model with offsets, such as LogisticRegression.",
        )


class Classifier(ClassifierMixin, Estimator):
    """A classifier trained by sums over rows."""

    schema_: Schema
    classes_: Labels
    passes_: "PassLog"
    n_features_in_: int
    formula_: "Formula | None" = None
    handle_unknown: HandleUnknown = "error"

    _linear: Any
    _allows_missing = False
    _learns_levels = False

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, classes: Any = None) -> Self:
        """Fit to rows X (n, d) and class labels y (n,), or to a `Rows` with both.

        X: array, sparse matrix or data frame; or a formula, whose terms are Python code, with the
        data frame as y. y: labels of any sortable kind, or an (n, K) matrix of soft labels whose
        rows sum to one.
        `sample_weight`: a weight of w counts as the row repeated w times. `classes` names the
        columns of soft labels; a data frame names its own. A fit that fails leaves the estimator
        as it was.
        """
        return self._fit_to(lambda: self._read(X, y, sample_weight, classes))

    def _fit_to(self, read: Callable[[], FitRows]) -> Self:
        """Fit to the rows that `read` gives; a fit that fails leaves the estimator as it was."""
        with self._all_or_nothing():
            rows = read()
            self.__dict__.pop("passes_", None)
            self._remember(rows.schema, rows.classes)
            with rows.fitting():
                self._fit_rows(rows)
            if rows.log is not None:
                self.passes_ = rows.log.since_last()
        return self

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Run a fit on one BLAS thread; an error leaves the estimator as it was."""
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
        if isinstance(X, str) and "~" in X and is_source(y):
            X, y, self.formula_ = self._read_formula(X, y)
        if is_source(X):
            return self._read_source(X, y, sample_weight, classes, **reading)
        if is_memory_rows(X):
            check_alone(self, y, sample_weight, classes)
            return self._with_labels(X)
        if isinstance(X, PathLike) or (isinstance(X, str) and ("~" not in X or isinstance(y, str))):
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
    ) -> "SourceRows":
        """Rows of `scan` or Dask collections, after their first pass."""
        from posteriori.rows.dask import is_table
        from posteriori.rows.scan import as_source

        name = type(self).__name__
        soft = classes if schema is None and is_table(y) else None
        rows = as_source(X, y, sample_weight, soft, name)
        known = known_classes
        if classes is not None and soft is None:
            known = read_classes(classes)
        check_offsets(rows, self, "fit")
        with rows.fitting():
            if schema is None and known is None and least_classes > 1:
                self._discover(rows)
            rows.discover()
        if schema is not None or known is not None:
            rows = rows.known_as(schema or rows.schema, known, new_levels)
        check_several(self._with_labels(rows).classes, rows.n_rows, name, least_classes)
        if schema is None:
            rows.check_text()
        return rows

    def _with_labels(self, rows: FitRows) -> Any:
        """The rows; an error if they have no labels."""
        if rows.classes is None:
            name = type(self).__name__
            raise LabelError(f"The rows passed to {name} are without labels.", "Name their target.")
        return rows

    def _discover(self, rows: "SourceRows") -> None:
        """Make the first pass over a source, with a sum where one sum makes the model."""

    def _make_rows(
        self, X: Any, y: Any, sample_weight: Any, classes: Any, **reading: Any
    ) -> MemoryRows:
        """The arguments of `fit` as rows with classes."""
        return read_rows(X, y, sample_weight, classes, model=type(self).__name__, **reading)

    def _read_formula(self, formula: str, data: Any) -> "tuple[Any, Any, Formula]":
        """Rows and labels as a formula says: fit("y ~ a + b", data)."""
        from posteriori.rows.formula import read_formula

        found = read_formula(formula, data)
        if not found.formula.intercept and not hasattr(self, "fit_intercept"):
            raise ParameterError(
                f"{type(self).__name__} always has an intercept, but the formula removes it.",
                "Leave out '- 1' or '+ 0'.",
            )
        return found.X, found.y, found.formula

    def _remember(self, schema: Schema, classes: Labels | None) -> None:
        """Keep the columns and, unless the target is a number, the classes."""
        self.schema_ = schema
        self.__dict__.pop("classes_", None)
        if classes is not None:
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
        """`link` of the activations of all rows, block by block, in `width` columns."""
        activate = activations or self._activations
        schema = self.schema_
        is_plain = type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2
        fits = is_plain and X.shape[1] == len(schema) and not schema.named
        if fits and 0 < X.size < SERIAL_ENTRIES:  # one check a row is enough
            with np.errstate(over="ignore", invalid="ignore"):
                activation = activate(X)
            if np.isfinite(activation.max(axis=1)).all():
                return link(activation)
        rows = self._new_rows(X)
        shape = (rows.n_rows,) if width is None else (rows.n_rows, width)
        return rows.fill(np.empty(shape), lambda block: link(self._checked(block, activate)))

    def _new_rows(self, X: Any) -> MemoryRows:
        """Rows to predict, by the formula of the fit if it had one."""
        if self.formula_ is not None:
            X = self.formula_.apply(X, self.handle_unknown)
        return read_new_rows(X, self.schema_, type(self).__name__)

    def _checked(self, block: Block, activate: Callable[[Features], Array]) -> Array:
        """Activations of a block, with missing entries left out or named."""
        if isinstance(block.X, Mixed) and not self._learns_levels:
            Columns(self.schema_, self.handle_unknown).design(block)
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
        """The error for a row of finite entries whose activations are not finite."""
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
        codes = self._evaluate(X, lambda a: a.argmax(axis=1).astype(np.float64))
        return self.classes_[codes.astype(np.intp)]

    def _linear_function(self) -> Linear:
        """The activations as a linear function; an error if not fitted, or not linear."""
        check_is_fitted(self)
        return self._linear

    @property
    def coef_(self) -> Array:
        """w of (4.66): (1, d) for two classes, second less first; else (K, d), summing to zero."""
        return read_only(self._linear_function().coefficients()[0])

    @property
    def intercept_(self) -> Array:
        """w0 of (4.67), (1,) or (K,); infinite where a class has prior zero."""
        return read_only(self._linear_function().coefficients()[1])

    @property
    def coef_names_(self) -> Labels:
        """Names of the columns of `coef_` (d,), in the order of the columns of X.

        A factor f has its levels l but the first in its place, called f[l].
        """
        return coefficient_names(self)

    def hyperplane(self, first: Any = None, second: Any = None) -> Hyperplane:
        """The boundary between two classes, (w_k - w_j)ᵀx + (w_k0 - w_j0) = 0 (4.10).

        `first` and `second` are labels; the positive side is that of `first`. With two classes
        both can be left out: the positive side is then that of `classes_[1]`, as in
        `decision_function`, so `hyperplane()` is `hyperplane(classes_[1], classes_[0])`.
        """
        check_is_fitted(self)
        return boundary(self, first, second)

    def signed_distance(self, X: Any, first: Any = None, second: Any = None) -> Array:
        """The signed distance of each row from the boundary between two classes (4.7), (n,).

        It is positive on the side of `first`, or of `classes_[1]` where two classes are left out.
        """
        return signed_distance(self, X, self.hyperplane(first, second))

    def _middle(self) -> float:
        """The activation at which two classes are equally probable."""
        return 0.0

    def _parameter_columns(self) -> dict[str, list[Any]]:
        from posteriori.inspection.results import linear_columns

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
