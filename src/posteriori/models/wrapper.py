"""What estimators around another estimator have in common: reading, picking and fitting rows."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self, cast

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Tags, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import _check_method_params, check_is_fitted, has_fit_parameter

from posteriori.errors import DataError, LabelError, ParameterError, ScaleError
from posteriori.inspection.results import linear_columns
from posteriori.models.base import Estimator, all_or_nothing
from posteriori.rows.categories import LEVELS
from posteriori.rows.features import as_frame, path_error
from posteriori.rows.formula import read_formula
from posteriori.rows.frames import as_pickable, count_rows, pick_rows
from posteriori.rows.in_memory import check_aligned
from posteriori.rows.scan import is_source
from posteriori.rows.target import as_vector, read_target, read_weight
from posteriori.typing import Array, Codes, Labels

Mask = NDArray[np.bool_]


class Wrapper(Estimator):
    """An estimator around another, `estimator`, whose fitted copy is `estimator_`."""

    estimator: Any
    estimator_: Any

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> Self:
        """Fit the estimator, and learn from its predictions for held-out rows.

        X: a table in memory with labels y; or a formula, with the data frame as y, for estimators
        of posteriori. Rows of weight zero are ignored. `params` are passed on: `groups` to the
        splitter, all others to the `fit` of the estimator, with metadata routing if that is
        enabled.
        """
        self._check_settings()
        check_arguments(self, self.estimator, X, y, sample_weight, params)
        check_not_pairwise(self, self.estimator)
        known = None
        if self._frozen:
            check_is_fitted(self.estimator)
            known = np.asarray(self.estimator.classes_) if self._needs_labels else None
        fit_params, split_params = routed(self, sample_weight, params)
        name, labelled = type(self).__name__, self._needs_labels
        rows = read_training(name, X, y, sample_weight, fit_params, known, labelled)
        self._learn(rows, split_params)
        return self

    @property
    def _needs_labels(self) -> bool:
        return True

    def _check_settings(self) -> None:
        """An error for settings that cannot be honoured."""

    def _learn(self, rows: "Training", split_params: Mapping[str, Any]) -> None:
        """Fit the estimator to the rows, and learn from its predictions."""
        raise NotImplementedError

    def get_metadata_routing(self) -> MetadataRouter:
        """Which arguments of `fit` go to the estimator and to the splitter."""
        return routing_of(self, self.estimator)

    def _parameter_columns(self) -> dict[str, list[Any]]:
        inner = self.estimator_
        if isinstance(inner, Estimator):
            return inner._parameter_columns()
        return linear_columns(inner) if hasattr(inner, "coef_") else {"term": []}

    def _caveats(self) -> tuple[str, ...]:
        inner = self.estimator_
        if isinstance(inner, Estimator):
            return inner._caveats()
        return () if hasattr(inner, "coef_") else ("its parameters are in estimator_",)

    @property
    def n_features_in_(self) -> int:
        return cast(int, self.estimator_.n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        return cast(NDArray[Any], self.estimator_.feature_names_in_)

    def __sklearn_tags__(self) -> Tags:
        return inherit_tags(super().__sklearn_tags__(), self.estimator)

    @property
    def _frozen(self) -> bool:
        """Whether the estimator comes fitted, so that all rows are new to it."""
        return isinstance(self.estimator, FrozenEstimator)


def inherit_tags(tags: Tags, estimator: Any) -> Tags:
    """The tags, with those of the estimator for its input."""
    inner = get_tags(estimator)
    for name in ("sparse", "allow_nan", "positive_only", "categorical", "string"):
        setattr(tags.input_tags, name, getattr(inner.input_tags, name))
    tags.non_deterministic = inner.non_deterministic
    return tags


# --- Reading ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Training:
    """The rows of a fit, as the user passed them, of which the numbers `rows` are used (None: all).

    X is a frame, and y None, if there is a `formula`. `all_codes` are the classes of all rows;
    `fit_params` other arguments of `fit`, `sample_weight` among them.
    """

    X: Any
    y: Any
    formula: str | None
    classes: Labels
    all_codes: Codes
    all_weights: Array
    rows: Codes | None = None
    fit_params: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def codes(self) -> Codes:
        """The class of each row in use."""
        return self.all_codes if self.rows is None else self.all_codes[self.rows]

    @cached_property
    def weight(self) -> Array:
        """The weight of each row in use."""
        return self.all_weights if self.rows is None else self.all_weights[self.rows]

    @property
    def features(self) -> Any:
        """X of the rows in use."""
        return self.X if self.rows is None else pick_rows(self.X, self.rows)

    def pick(self, places: Codes) -> "Training":
        """Some of the rows in use."""
        return replace(self, rows=places if self.rows is None else self.rows[places])

    def against(self, sides: Codes) -> "Training":
        """The rows of classes with a side, 0 or 1 rather than -1, and the side as their label."""
        own, y = np.flatnonzero(sides[self.codes] >= 0), sides[self.all_codes]
        found = self if (sides >= 0).all() else self.pick(own)
        if self.formula is None:
            return replace(found, y=y)
        target, terms = (part.strip() for part in self.formula.split("~", 1))
        frame = cast("nw.DataFrame[Any]", as_frame(self.X))
        target = target if target in frame.columns else "target"
        side = nw.new_series(target, y, backend=nw.get_native_namespace(frame))
        X = frame.with_columns(side).to_native()
        return replace(found, X=X, formula=f"{target} ~ {terms}")

    def fit(self, estimator: Any) -> Any:
        """A copy of the estimator, fitted to the rows in use.

        An estimator of posteriori is passed all rows of a frame with text, with weight zero where
        they are not in use, so that it knows all levels of the columns.
        """
        rows, X, y, params = self.rows, self.X, self.y, dict(self.fit_params)
        if rows is not None and is_ours(estimator) and _has_levels(X):
            weight = np.zeros(len(self.all_weights))
            weight[rows] = self.weight
            rows, params = None, {**params, "sample_weight": weight}
        if rows is not None:
            X, params = self.features, _check_method_params(X, params, indices=rows)
            y = None if y is None else _pick_labels(y, rows)
        given = (self.formula, X) if self.formula is not None else (X,) if y is None else (X, y)
        with _numbered(rows):
            return clone(estimator).fit(*given, **params)

    def predict(self, predict: Callable[[Any], Any]) -> Array:
        """What a function of X gives for the rows in use."""
        with _numbered(self.rows):
            return np.asarray(predict(self.features), dtype=np.float64)


@contextmanager
def _numbered(rows: Codes | None) -> Iterator[None]:
    """Errors that name one of some rows have its number among all rows instead."""
    try:
        yield
    except (DataError, ScaleError) as error:
        if error.row is None or rows is None:
            raise
        raise error.located("", int(rows[error.row]) - error.row) from error


def _pick_labels(y: Any, rows: Codes) -> Any:
    """Some labels, in a column that declares an order of its own where y does."""
    entries = as_vector(y, keep_levels=True)[rows]
    return entries.to_native() if isinstance(entries, nw.Series) else entries


def read_training(
    name: str,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    fit_params: Mapping[str, Any] | None = None,
    known: Labels | None = None,
    labelled: bool = True,
) -> Training:
    """The rows that `name` was given to fit, without those of weight zero.

    The classes are those `known`, else the labels of the remaining rows. Rows that are not
    `labelled` are all of one class.
    """
    formula = None
    if isinstance(X, str):
        formula, X, y = X, y, read_formula(X, y).y
    check_aligned(X, y=y, sample_weight=sample_weight)
    X = as_pickable(X)
    n_rows = count_rows(X)
    weight = read_weight(sample_weight, n_rows)
    rows = None if weight is None or weight.all() else np.flatnonzero(weight)
    if labelled:
        classes, codes = read_labels(y, n_rows, name, known)
    else:
        classes, codes, y = np.zeros(1), np.zeros(n_rows, dtype=np.intp), None
    if rows is not None and known is None:
        present, place = np.unique(codes[rows]), np.zeros(len(classes), dtype=np.intp)
        place[present] = np.arange(len(present))
        classes, codes = classes[present], place[codes]
    y = None if formula is not None else y
    weight = np.ones(n_rows) if weight is None else weight
    return Training(X, y, formula, classes, codes, weight, rows, fit_params or {})


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


def check_arguments(
    model: Any, estimator: Any, X: Any, y: Any, sample_weight: Any, params: Mapping[str, Any]
) -> None:
    """An error for what a model around the estimator cannot be fitted to."""
    name, inner = type(model).__name__, type(estimator).__name__
    if any(is_source(each) or hasattr(type(each), "map_sum") for each in (X, y)):
        raise ParameterError(
            f"{name} does not fit to a dataset on disk or on a cluster.",
            "Bring the rows into memory; or fit the estimator to the dataset first, wrap it in "
            "sklearn.frozen.FrozenEstimator, and pass a table of other rows.",
        )
    if isinstance(X, str) and "~" not in X:
        raise path_error(X, y)
    if isinstance(X, str) and not is_ours(estimator):
        raise ParameterError(
            f"{name} was given a formula, but {inner} does not take formulas.",
            "Pass X and y, or use an estimator of posteriori.",
        )
    if params.get("offset") is not None:
        raise ParameterError(
            f"{name} does not take offsets.", "Fit the estimator alone, which may take them."
        )
    takes = isinstance(estimator, FrozenEstimator) or has_fit_parameter(estimator, "sample_weight")
    if sample_weight is not None and not takes:
        raise ParameterError(
            f"sample_weight was given, but {inner} takes none.",
            "Leave the weights out, or use an estimator whose fit takes them.",
        )


def check_not_pairwise(model: Any, estimator: Any) -> None:
    """An error for estimators of which the rows are a precomputed kernel."""
    if get_tags(estimator).input_tags.pairwise:
        raise ParameterError(
            f"{type(model).__name__} cannot pick rows from a precomputed kernel.",
            "Use an estimator that computes its kernel.",
        )


def routing_of(model: Any, estimator: Any) -> MetadataRouter:
    """Which arguments of `fit` go to the estimator and to the splitter, where there is one."""
    router = MetadataRouter(owner=model).add_self_request(model)
    fitting = MethodMapping().add(caller="fit", callee="fit")
    router.add(estimator=estimator, method_mapping=fitting)
    if hasattr(model, "cv"):
        splitting = MethodMapping().add(caller="fit", callee="split")
        router.add(splitter=model.cv, method_mapping=splitting)
    return router


def routed(
    model: Any, sample_weight: Any, params: Mapping[str, Any]
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


def _has_levels(X: Any) -> bool:
    """Whether X is a frame with columns of text or of a categorical type."""
    frame = as_frame(X)
    return frame is not None and any(
        dtype in (*LEVELS, nw.Object) for dtype in frame.schema.values()
    )


# --- Labels of rejected rows --------------------------------------------------------------------


def overwrite(labels: Labels, where: Mask, label: Any) -> Labels:
    """`label` in the rows `where`; an array of objects if its type is another than the labels'."""
    if not where.any():
        return labels
    out = labels.astype(_joint_type(labels, label))
    for row in np.flatnonzero(where):
        out[row] = label
    return out


def with_label(labels: Labels, label: Any) -> Labels:
    """The labels and one more, of the type that `overwrite` gives."""
    longer = np.append(labels, labels[-1:])
    return overwrite(longer, np.arange(len(longer)) == len(labels), label)


def _joint_type(labels: Labels, label: Any) -> np.dtype[Any]:
    own, new = labels.dtype, np.array([label]).dtype if np.isscalar(label) else np.dtype(object)
    same = own.kind == new.kind or (own.kind == "f" and new.kind in "iu")
    return np.result_type(own, new) if same else np.dtype(object)
