"""Wrappers, estimators around another estimator: reading rows, folds, and metadata routing.

Cross-fitting gives predictions for rows that the predicting model was not fitted to: the test rows
of each fold are predicted by a copy of the estimator that is fitted to its training rows. The folds
are those of a splitter of scikit-learn. An estimator that is already fitted, in a
`FrozenEstimator`, predicts all rows.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Self, cast

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import Tags, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import _check_method_params, check_is_fitted

from posteriori.arguments import check_count
from posteriori.decision.decide import with_label
from posteriori.errors import (
    DataError,
    IdentifiabilityWarning,
    LabelError,
    ParameterError,
    ScaleError,
    warn,
)
from posteriori.inspection.results import linear_columns
from posteriori.models.base import Estimator, all_or_nothing
from posteriori.rows.block import is_source
from posteriori.rows.features import as_frame, path_error
from posteriori.rows.formula import read_formula
from posteriori.rows.frames import as_pickable, count_rows, pick_rows
from posteriori.rows.in_memory import check_aligned
from posteriori.rows.target import as_vector, encode, read_target, read_weight
from posteriori.typing import Array, Codes, Labels

Mask = NDArray[np.bool_]


class Wrapper(Estimator):
    """An estimator around another, `estimator`, whose fitted copy is `estimator_`."""

    estimator: Any
    estimator_: Any
    _least_classes = 1

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> Self:
        """Fit to a table in memory with labels y; rows of weight zero are ignored.

        Estimators of posteriori can be given a formula as X, and the data frame as y. `params` are
        passed on: `groups` to the splitter, if there is one, all others to the `fit` of the
        estimator, with metadata routing if that is enabled.
        """
        check_arguments(self, X, y, params)
        self._learn(read_training(self, X, y, sample_weight, params))
        return self

    def _learn(self, rows: "Training") -> None:
        """Fit the estimator to the rows, and learn from its predictions."""
        raise NotImplementedError

    @property
    def _needs_labels(self) -> bool:
        return True

    @property
    def _base(self) -> Any:
        """The estimator of which copies are fitted."""
        return self.estimator

    @property
    def _fitted(self) -> Any:
        """A fitted copy, with the columns of X."""
        return self.estimator_

    def get_metadata_routing(self) -> MetadataRouter:
        """Which arguments of `fit` go to the estimator and to the splitter, if there is one."""
        router = MetadataRouter(owner=self).add_self_request(self)
        fitting = MethodMapping().add(caller="fit", callee="fit")
        router.add(estimator=self._base, method_mapping=fitting)
        if hasattr(self, "cv"):
            splitting = MethodMapping().add(caller="fit", callee="split")
            router.add(splitter=self.cv, method_mapping=splitting)
        return router

    def _parameter_columns(self) -> dict[str, list[Any]]:
        inner = self._fitted
        if isinstance(inner, Estimator):
            return inner._parameter_columns()
        return linear_columns(inner) if hasattr(inner, "coef_") else {"term": []}

    def _caveats(self) -> tuple[str, ...]:
        inner = self._fitted
        if isinstance(inner, Estimator):
            return inner._caveats()
        return () if hasattr(inner, "coef_") else ("its parameters are in estimator_",)

    @property
    def n_features_in_(self) -> int:
        return cast(int, self._fitted.n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        return cast(NDArray[Any], self._fitted.feature_names_in_)

    def __sklearn_tags__(self) -> Tags:
        tags, inner = super().__sklearn_tags__(), get_tags(self._base)
        tags.input_tags = replace(inner.input_tags)
        tags.non_deterministic = inner.non_deterministic
        return tags


# --- Arguments of fit -----------------------------------------------------------------------------


def check_arguments(model: Wrapper, X: Any, y: Any, params: Mapping[str, Any]) -> None:
    """An error for what a wrapper cannot be fitted to."""
    name = type(model).__name__
    if any(is_source(each) or hasattr(type(each), "map_sum") for each in (X, y)):
        raise ParameterError(
            f"{name} does not fit to a dataset on disk or on a cluster.",
            "Bring the rows into memory; or fit the estimator to the dataset first, wrap it in "
            "sklearn.frozen.FrozenEstimator, and pass a table of other rows.",
        )
    if isinstance(X, str) and "~" not in X:
        raise path_error(X, y)
    if isinstance(X, str) and not is_ours(model._base):
        raise ParameterError(
            f"{name} was given a formula, but {type(model._base).__name__} takes none.",
            "Pass X and y, or use an estimator of posteriori.",
        )
    if params.get("offset") is not None:
        raise ParameterError(
            f"{name} does not take offsets.", "Fit the estimator alone, which may take them."
        )


def routed(
    model: Wrapper, sample_weight: Any, params: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arguments of the estimator's `fit`, and those of the splitter's `split`."""
    given = dict(params) if sample_weight is None else {**params, "sample_weight": sample_weight}
    if get_config()["enable_metadata_routing"]:
        found = process_routing(model, "fit", **given)
        return dict(found["estimator"]["fit"]), dict(found.get("splitter", {}).get("split", {}))
    groups = given.pop("groups", None) if hasattr(model, "cv") else None
    return given, {} if groups is None else {"groups": groups}


def is_ours(estimator: Any) -> bool:
    """Whether the innermost estimator is of this library."""
    while isinstance(estimator, FrozenEstimator) or (
        isinstance(estimator, Estimator) and getattr(estimator, "estimator", None) is not None
    ):
        estimator = estimator.estimator
    return isinstance(estimator, Estimator)


# --- Rows -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Training:
    """The rows of a fit as the user passed them, with their classes and weights.

    X is a data frame, and y None, if there is a `formula`. `used` (m,) has the numbers of the rows
    with a positive weight. `fit_params` and `split_params` are the other arguments of the estimator
    and of the splitter.
    """

    X: Any
    y: Any
    formula: str | None
    classes: Labels
    codes: Codes
    weight: Array
    used: Codes
    fit_params: Mapping[str, Any]
    split_params: Mapping[str, Any]

    def fit(self, estimator: Any, rows: Codes | None = None, labels: Any = None) -> Any:
        """A copy of the estimator, fitted to these rows, or to all with a weight.

        `labels`, one for each row of X, replace those of the user. An estimator of posteriori is
        passed all rows of a frame with text, with weight zero where they are not among `rows`, so
        that its schema has all levels of the columns.
        """
        if isinstance(estimator, FrozenEstimator):
            return estimator
        rows = self.used if rows is None else rows
        X, y, formula, params = self.X, self.y, self.formula, dict(self.fit_params)
        every = np.arange(len(self.codes))
        if labels is not None:
            X, y, formula = self._with_labels(labels)
        if not np.array_equal(rows, every):
            if is_ours(estimator) and _has_levels(X):
                times = np.bincount(rows, minlength=len(every))
                params["sample_weight"], rows = self.weight * times, every
            else:
                params = _check_method_params(X, params, indices=rows)
                X, y = pick_rows(X, rows), None if y is None else y[rows]
        y = y.to_native() if isinstance(y, nw.Series) else y
        given = (formula, X) if formula is not None else (X,) if y is None else (X, y)
        with _numbered(rows):
            return clone(estimator).fit(*given, **params)

    def _with_labels(self, labels: Any) -> tuple[Any, Any, str | None]:
        """X, y and the formula with other labels."""
        if self.formula is None:
            return self.X, labels, None
        frame, name = cast("nw.DataFrame[Any]", as_frame(self.X)), "posteriori_target"
        column = nw.new_series(name, labels, backend=nw.get_native_namespace(frame))
        terms = self.formula.split("~", 1)[1]
        return frame.with_columns(column).to_native(), None, f"{name} ~ {terms}"

    def predict(self, predict: Callable[[Any, Any], Any], fitted: Any, rows: Codes) -> Array:
        """What `predict(fitted, X)` gives for these rows."""
        with _numbered(rows):
            return np.asarray(predict(fitted, pick_rows(self.X, rows)), dtype=np.float64)


@contextmanager
def _numbered(rows: Codes) -> Iterator[None]:
    """Errors that name one of these rows have its number among those given instead."""
    try:
        yield
    except (DataError, ScaleError) as error:
        if error.row is None:
            raise
        raise error.located("", int(rows[error.row]) - error.row) from error


def read_training(
    model: Wrapper, X: Any, y: Any, sample_weight: Any, params: Mapping[str, Any]
) -> Training:
    """The rows that a model is fitted to.

    The classes are those of the estimator if it comes fitted, else the labels of the rows with a
    weight. Where the model needs no labels, all rows are of one class.
    """
    formula = None
    if isinstance(X, str):
        formula, X, y = X, y, read_formula(X, y).y
    check_aligned(X, y=y, sample_weight=sample_weight)
    X = as_pickable(X)
    n_rows = count_rows(X)
    weight = read_weight(sample_weight, n_rows)
    weight = np.ones(n_rows) if weight is None else weight
    used = np.flatnonzero(weight)
    classes, codes, labels = np.zeros(1), np.zeros(n_rows, dtype=np.intp), None
    is_frozen = isinstance(model._base, FrozenEstimator)
    if is_frozen:
        check_is_fitted(model._base)
    if model._needs_labels:
        known = getattr(model._base, "classes_", None) if is_frozen else None
        classes, codes = read_labels(y, n_rows, type(model).__name__, known)
        labels = None if formula is not None else as_vector(y, keep_levels=True)
        if known is None:
            present, of_used = encode(codes[used])
            classes, codes = classes[present], np.zeros_like(codes)
            codes[used] = of_used
    if len(classes) < model._least_classes:
        raise LabelError(
            f"{type(model).__name__} needs rows of at least two classes; y has one class, "
            f"{classes.tolist()[0]!r} (n_samples = {n_rows}).",
            "Pass rows of every class.",
        )
    given = routed(model, sample_weight, params)
    return Training(X, labels, formula, classes, codes, weight, used, *given)


def read_labels(
    y: Any, n_rows: int, model: str, classes: Labels | None = None
) -> tuple[Labels, Codes]:
    """The classes in order, and the code of each row; soft labels are an error."""
    found, codes = read_target(y, n_rows, known=classes)
    if codes.ndim == 2:
        raise LabelError(
            f"{model} does not take soft labels, and y has {codes.shape[1]} columns.",
            "Pass one label a row.",
        )
    return found, cast(Codes, codes)


def _has_levels(X: Any) -> bool:
    """Whether X is a frame with columns that are not numbers."""
    frame = as_frame(X)
    return frame is not None and not all(kind.is_numeric() for kind in frame.schema.values())


# --- Cross-fitting --------------------------------------------------------------------------------

_REMEDY = (
    "Pass more rows of it; or wrap a fitted estimator in sklearn.frozen.FrozenEstimator, and pass "
    "other rows."
)


def held_out_predictions(
    rows: Training, estimator: Any, cv: Any, predict: Callable[[Any, Any], Any]
) -> tuple[Array, Codes, Array]:
    """What `predict(fitted, X)` gives for rows that the estimator was not fitted to.

    Also the classes and weights of these rows. One that is predicted r times has 1/r of its weight
    each time.
    """
    is_frozen = isinstance(estimator, FrozenEstimator)
    folds = [(rows.used, rows.used)] if is_frozen else make_folds(cv, rows)
    parts = [rows.predict(predict, rows.fit(estimator, train), test) for train, test in folds]
    tested = np.concatenate([test for _, test in folds])
    times = np.bincount(tested)[tested]
    return np.concatenate(parts), rows.codes[tested], rows.weight[tested] / times


def make_folds(cv: Any, rows: Training) -> list[tuple[Codes, Codes]]:
    """The rows to fit to and those to predict, fold by fold, by their numbers among all.

    A number means `StratifiedKFold(cv, shuffle=True, random_state=0)`, but no more folds than rows
    in the largest class.
    """
    every, used = np.arange(len(rows.codes)), rows.used
    if np.iterable(cv) and not isinstance(cv, str) and not hasattr(cv, "split"):
        folds = [[part[rows.weight[part] > 0] for part in map(every.__getitem__, s)] for s in cv]
    else:
        splitter, codes = cv, rows.codes[used]
        if isinstance(cv, str) or not hasattr(cv, "split"):
            check_count("cv", cv, "folds")
            largest = int(np.bincount(codes).max())
            if min(cv, largest) < 2:
                raise ParameterError(
                    f"cv={cv} holds out no rows: the largest class has {largest} "
                    f"(n_samples = {len(codes)}).",
                    f"Use two folds or more. {_REMEDY}",
                )
            splitter = StratifiedKFold(min(cv, largest), shuffle=True, random_state=0)
        params = _check_method_params(rows.X, rows.split_params, indices=used)
        with warnings.catch_warnings():
            # A class with fewer rows than folds is in some of the folds only.
            warnings.filterwarnings("ignore", "The least populated class", UserWarning)
            splits = list(splitter.split(pick_rows(rows.X, used), codes, **params))
        folds = [[used[part] for part in split] for split in splits]
    for number, (train, test) in enumerate(folds, start=1):
        lacking = np.setdiff1d(rows.codes[test], rows.codes[train])
        if len(lacking):
            label = rows.classes.tolist()[lacking[0]]
            problem = f"No training row of fold {number} is of class {label!r}"
            warn(IdentifiabilityWarning(f"{problem}: it gets probability zero there.", _REMEDY))
    return [(train, test) for train, test in folds]


# --- Labels that are no class ---------------------------------------------------------------------


def check_reject_label(label: Any, classes: Labels) -> None:
    """An error if the label of rejected rows is that of a class."""
    if label in classes.tolist():
        raise ParameterError(
            f"reject_label={label!r} is a class of its own.", "Choose a label that y does not have."
        )


def accuracy(model: Wrapper, predicted: Labels, y: Any, sample_weight: Any) -> float:
    """The share of the rows with the right label; a rejected row does not have it."""
    labels, codes = read_labels(y, len(predicted), type(model).__name__)
    weight = read_weight(sample_weight, len(predicted))
    return float(np.average(predicted == labels[codes], weights=weight))


def overwrite(labels: Labels, where: Mask, label: Any) -> Labels:
    """`label` in the rows `where`; of the type of `with_label` if there are such rows."""
    if not where.any():
        return labels
    return with_label(labels, label)[np.where(where, len(labels), np.arange(len(labels)))]
