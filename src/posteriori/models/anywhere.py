"""Answers for rows wherever they lie: in memory, or in a source that is read part by part."""

from collections.abc import Callable
from functools import partial, wraps
from importlib.util import find_spec
from inspect import signature
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from posteriori.errors import LabelError, ParameterError
from posteriori.models.checking import Checking
from posteriori.rows.arrow import is_table
from posteriori.rows.batch import Batch
from posteriori.rows.dask import is_dask
from posteriori.rows.predictions import named, predict_dask, write_predictions
from posteriori.rows.scan import is_scanned
from posteriori.rows.source import SourceRows
from posteriori.typing import Labels

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
"""What the columns of a file with the answers of a method are called."""


def anywhere(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method, for the rows of `scan` too: predict_proba(rows, to="predictions.parquet").

    The answers are then written to a Parquet file, part by part, and its path is returned. For a
    Dask collection they are a Dask array, which is computed when that is asked for.
    """
    what = _NAMES[method.__name__]

    @wraps(method)
    def answer(self: Any, X: Any, *arguments: Any, to: Any = None, **settings: Any) -> Any:
        if is_scanned(X):
            check_is_fitted(self)
            check_offsets(X, self, method.__name__)
            labels = list(getattr(self, "classes_", ()))
            innermost = inside(self)
            X = X.read_as(getattr(innermost, "schema_", None))

            def of_batch(batch: Batch) -> Any:
                own = settings if batch.offset is None else {**settings, "offset": batch.offset}
                found = method(self, known_to(innermost, batch.X), *arguments, **own)
                return named(found, what, labels)

            return write_predictions(X, of_batch, to, list(_possible(self)) if labels else ())
        if is_dask(X):
            check_is_fitted(self)
            offset = settings.pop("offset", None)
            own = partial(getattr(self, method.__name__), *arguments, **settings)
            return predict_dask(own, X, *_kind(self, method.__name__), offset)
        if to is not None:
            raise ParameterError(
                "to= names a file for the rows of scan(), but X is in memory.",
                "Leave to out; the answers are returned.",
            )
        return method(self, X, *arguments, **settings)

    return answer


def inside(model: Any) -> Any:
    """The fitted model within all those that are around others."""
    while True:
        if isinstance(model, FrozenEstimator):
            model = model.estimator
        elif isinstance(model, Checking) and hasattr(model, "estimator_"):
            model = model.estimator_
        elif isinstance(model, Checking) and hasattr(model, "estimators_"):
            model = model.estimators_[0]
        else:
            return model


def known_to(fitted: Any, X: Any) -> Any:
    """Rows in a kind of table that a model knows: those of others may know no Arrow."""
    if not is_table(X) or isinstance(fitted, Checking) or find_spec("pandas") is None:
        return X
    return X.to_pandas()


def _possible(model: Any) -> Labels:
    """All that `predict` may answer, where these are labels."""
    return model._possible_answers if hasattr(model, "_possible_answers") else model.classes_


def _kind(model: Any, name: str) -> tuple[tuple[int, ...], Any]:
    """The shape of the answer for one row, and the type of its numbers or labels."""
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
    """An error where a model was given rows of a source, and more with them."""
    if any(given is not None for given in others):
        raise ParameterError(
            f"{type(model).__name__} was given rows, which have labels and weights of their own, "
            "and others.",
            "Pass the rows alone.",
        )


def check_offsets(rows: SourceRows, model: Any, method: str) -> None:
    """An error for offsets that would count for nothing."""
    if rows.has_offsets and "offset" not in signature(getattr(model, method)).parameters:
        raise ParameterError(
            f"{type(model).__name__} knows no offsets, and the rows have some.",
            "Scan them without offset, or use a model of activations, such as LogisticRegression.",
        )


def check_source(estimator: Any) -> None:
    """An error unless a model around the estimator can fit to a source.

    The estimator must be one of ours, around none but ours; or come fitted.
    """
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
