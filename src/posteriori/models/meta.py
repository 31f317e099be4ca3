"""What estimators that hold another estimator have in common."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from posteriori.errors import LabelError, ParameterError
from posteriori.models.base import Classifier
from posteriori.models.checking import Checking
from posteriori.models.discriminative import DiscriminativeClassifier
from posteriori.models.effects import Effects
from posteriori.models.telling import Telling, linear_columns
from posteriori.rows.dask import is_dask
from posteriori.rows.features import as_frame, read_features
from posteriori.rows.labels import encode, read_target, read_weight
from posteriori.rows.memory import Among
from posteriori.rows.pick import as_pickable, count_rows, pick_rows
from posteriori.rows.schema import Schema
from posteriori.typing import Array, Codes, Labels

Mask = NDArray[np.bool_]


class Wrapping(Telling, Effects, Checking, BaseEstimator):
    """An estimator around another, `estimator`, whose fitted copy is `estimator_`.

    The parameters that it tells of are those of the latter.
    """

    estimator: Any
    estimator_: Any

    def _parameter_columns(self) -> dict[str, list[Any]]:
        inner = self.estimator_
        if isinstance(inner, Telling):
            return inner._parameter_columns()
        return linear_columns(inner) if hasattr(inner, "coef_") else {"term": []}

    def _caveats(self) -> tuple[str, ...]:
        inner = self.estimator_
        if isinstance(inner, Telling):
            return inner._caveats()
        return () if hasattr(inner, "coef_") else ("its parameters are in estimator_",)

    @property
    def n_features_in_(self) -> int:
        return cast(int, self.estimator_.n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        return cast(NDArray[Any], self.estimator_.feature_names_in_)

    def __sklearn_tags__(self) -> Tags:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        for name in ("sparse", "allow_nan", "positive_only", "categorical", "string"):
            setattr(tags.input_tags, name, getattr(inner.input_tags, name))
        tags.non_deterministic = inner.non_deterministic
        return tags

    @property
    def _frozen(self) -> bool:
        """Whether the estimator comes fitted, so that all rows are new to it."""
        return isinstance(self.estimator, FrozenEstimator)


@dataclass(frozen=True, eq=False)
class Training:
    """The rows of a fit in the user's own type, the code of each row's class, and weights.

    `among` has the numbers of the rows, where these are not all that were `passed`.
    """

    X: Any
    classes: Labels
    codes: Codes
    weight: Array | None
    among: Among | None = None
    passed: "Passed | None" = None

    @property
    def schema(self) -> Schema | None:
        """The columns of all rows that were passed, if some have levels, which these may lack."""
        return None if self.passed is None else self.passed.schema

    @property
    def n_passed(self) -> int:
        """Rows that were passed, of which these are all or some."""
        return len(self.codes) if self.among is None else self.among.n_rows

    def pick(self, rows: Codes) -> "Training":
        """Some of the rows."""
        return replace(
            self,
            X=pick_rows(self.X, rows),
            codes=self.codes[rows],
            weight=None if self.weight is None else self.weight[rows],
            among=Among(rows if self.among is None else self.among.numbers[rows], self.n_passed),
        )

    def fitted(self, estimator: Any, labelled: bool = True) -> Any:
        """A copy of the estimator, fitted to these rows."""
        copy, labels = clone(estimator), self.classes[self.codes]
        if labelled and is_ours(copy):
            return copy._fit_to_some(self.X, labels, self.weight, self.among, self.schema)
        given = {} if self.weight is None else {"sample_weight": self.weight}
        return copy.fit(self.X, *([labels] if labelled else []), **given)


@dataclass(frozen=True, eq=False)
class Passed:
    """All rows that the user passed, for the levels of their columns; `name` is for messages."""

    X: Any
    name: str

    @cached_property
    def schema(self) -> Schema | None:
        if as_frame(self.X) is None:
            return None
        found = read_features(self.X, None, self.name).schema
        return found if found.categorical else None


def is_ours(estimator: Any) -> bool:
    """Whether its fit is one of those here, which can be told of levels and numbers of rows."""
    fit = getattr(type(estimator), "fit", None)
    return fit in (Classifier.fit, DiscriminativeClassifier.fit)


def read_training(
    model: Wrapping, X: Any, y: Any, sample_weight: Any, labelled: bool = True
) -> Training:
    """What `fit` was given, checked; a row of weight zero is as good as absent.

    The classes are those of a frozen estimator, else the labels of the rows that are left. Where
    no labels are wanted, all rows are of one class.
    """
    _check_inner(model, sample_weight)
    known = np.asarray(model.estimator.classes_) if model._frozen and labelled else None
    return read_pickable(X, y, sample_weight, type(model).__name__, known, labelled)


def read_pickable(
    X: Any,
    y: Any,
    sample_weight: Any,
    name: str,
    known: Labels | None = None,
    labelled: bool = True,
) -> Training:
    """Rows that can be picked out of a table, for `name`; where unlabelled, all of one class.

    A row of weight zero is as good as absent. The classes are those `known`, else the labels of
    the rows that are left.
    """
    if is_dask(X) or hasattr(type(X), "map_sum"):
        raise ParameterError(
            f"{name} holds rows back, and cannot pick them out of a {type(X).__name__}.",
            "Pass a table X and labels y; or fit the estimator first, wrap it in "
            "sklearn.frozen.FrozenEstimator, and pass a table of other rows.",
        )
    X = as_pickable(X)
    n_rows = count_rows(X)
    y = y if labelled else np.zeros(n_rows, dtype=np.intp)
    classes, codes = read_labels(y, n_rows, name, known)
    weight = read_weight(sample_weight, n_rows)
    every = Training(X, classes, codes, weight, passed=Passed(X, name))
    if weight is None or weight.all():
        return every
    kept = every.pick(np.flatnonzero(weight))
    if known is not None:
        return kept
    present, codes = encode(kept.codes)
    return replace(kept, classes=classes[present], codes=codes)


def _check_inner(model: Wrapping, sample_weight: Any) -> None:
    name, inner = type(model).__name__, type(model.estimator).__name__
    if model._frozen:
        check_is_fitted(model.estimator)
    takes_weights = model._frozen or has_fit_parameter(model.estimator, "sample_weight")
    if sample_weight is not None and not takes_weights:
        raise ParameterError(
            f"sample_weight was given, but {inner} takes none.",
            "Leave the weights out, or use an estimator whose fit takes them.",
        )
    if get_tags(model.estimator).input_tags.pairwise:
        raise ParameterError(
            f"{name} cannot pick rows out of a precomputed kernel.",
            "Use an estimator that computes its kernel.",
        )


def read_labels(
    y: Any, n_rows: int, model: str, classes: Labels | None = None
) -> tuple[Labels, Codes]:
    """The classes in order, and the code of each row; soft labels are an error."""
    found, codes = read_target(y, n_rows, classes)
    if codes.ndim == 2:
        raise LabelError(
            f"{model} does not take soft labels, and y has {codes.shape[1]} columns.",
            "Pass one label a row.",
        )
    return found, cast(Codes, codes)


def overwrite(found: Labels, where: Mask, label: Any) -> Labels:
    """`label` in the rows `where`, in an array of objects if it does not fit the others."""
    out = found if _holds(found.dtype, label) else found.astype(object)
    for row in np.flatnonzero(where):
        out[row] = label
    return out


def with_label(labels: Labels, label: Any) -> Labels:
    """The labels and one more, of the type that `overwrite` gives."""
    found = np.append(labels, labels[-1:])
    return overwrite(found, np.arange(len(found)) == len(labels), label)


def _holds(dtype: np.dtype[Any], label: Any) -> bool:
    """Whether an array of this type gives the label back unchanged."""
    if (dtype.kind == "b") != isinstance(label, bool | np.bool_):
        return dtype.kind == "O"
    cell = np.empty(1, dtype=object)
    cell[0] = label
    try:
        back = cell.astype(dtype)[0]
    except (TypeError, ValueError, OverflowError):
        return False
    return bool(back == label) or (dtype.kind == "f" and label != label)
