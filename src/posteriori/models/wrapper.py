"""What estimators that hold another estimator have in common."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Tags, get_tags

from posteriori.errors import LabelError, ParameterError
from posteriori.inspection.results import linear_columns
from posteriori.models.base import Estimator
from posteriori.rows.dask import is_dask
from posteriori.rows.features import Table, as_frame, read_features
from posteriori.rows.frames import as_pickable, count_rows, pick_rows
from posteriori.rows.in_memory import Among, MemoryRows, check_aligned, check_text_columns
from posteriori.rows.schema import Schema
from posteriori.rows.target import encode, read_target, read_weight
from posteriori.typing import Array, Codes, Labels

Mask = NDArray[np.bool_]


class Wrapping(Estimator):
    """An estimator around another, `estimator`, whose fitted copy is `estimator_`.

    The parameters that it tells of are those of the latter.
    """

    estimator: Any
    estimator_: Any

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

    `among` has the numbers of the rows, where these are not all that were `passed`. Rows that are
    not `labelled` are all of one class.
    """

    X: Any
    classes: Labels
    codes: Codes
    weight: Array | None
    among: Among | None = None
    passed: "Passed | None" = None
    labelled: bool = True

    @property
    def schema(self) -> Schema | None:
        """The columns of all rows that were passed, if some have levels, which these may lack."""
        return None if self.passed is None else self.passed.schema

    @property
    def n_of_classes(self) -> Array:
        """How many rows each class has."""
        return np.bincount(self.codes, minlength=len(self.classes)).astype(np.float64)

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

    def within(self, among: Among | None, schema: Schema | None) -> "Training":
        """The same rows, which have been passed as some `among` others, with all their levels."""
        if among is not None and self.among is not None:
            among = Among(among.numbers[self.among.numbers], among.n_rows)
        passed = self.passed if schema is None else Passed(self.X, "", schema)
        return replace(self, among=self.among if among is None else among, passed=passed)

    def as_numbers(self, values: Array) -> MemoryRows:
        """The same rows with other columns: the values (n,) or (n, m) of each."""
        columns = values.reshape(len(values), -1)
        table = Table(columns, Schema.unnamed(columns.shape[1]))
        return MemoryRows(table, self.codes, self.weight, self.classes, among=self.among)

    def fitted(self, estimator: Any) -> Any:
        """A copy of the estimator, fitted to these rows."""
        copy, labels = clone(estimator), self.classes[self.codes]
        if self.labelled and is_ours(copy):
            return copy._fit_to_some(self.X, labels, self.weight, self.among, self.schema)
        given = {} if self.weight is None else {"sample_weight": self.weight}
        return copy.fit(self.X, *([labels] if self.labelled else []), **given)


@dataclass(frozen=True, eq=False)
class Passed:
    """All rows that the user passed, for the levels of their columns; `name` is for messages.

    Where these are some of others, the levels of all are `told`.
    """

    X: Any
    name: str
    told: Schema | None = None

    @cached_property
    def schema(self) -> Schema | None:
        if self.told is not None:
            return self.told
        if as_frame(self.X) is None:
            return None
        table = read_features(self.X, None, self.name)
        check_text_columns(table)
        found = table.schema
        return found if found.categorical else None


def is_ours(estimator: Any) -> bool:
    """Whether its fit is one of those here, which can be told of levels and numbers of rows."""
    fit = getattr(type(estimator), "fit", None)
    is_here = getattr(fit, "__module__", "").startswith("posteriori.")
    return is_here and hasattr(estimator, "_fit_to_some")


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
    check_aligned(X, y=y, sample_weight=sample_weight)
    X = as_pickable(X)
    n_rows = count_rows(X)
    y = y if labelled else np.zeros(n_rows, dtype=np.intp)
    classes, codes = read_labels(y, n_rows, name)
    weight = read_weight(sample_weight, n_rows)
    counts = np.ones(n_rows, dtype=np.bool_) if weight is None else weight > 0
    if known is not None:
        labels = np.full(n_rows, known[0], dtype=object)
        labels[counts] = classes[codes[counts]]
        classes, codes = read_labels(labels, n_rows, name, known)
    rows = Training(X, classes, codes, weight, passed=Passed(X, name), labelled=labelled)
    if counts.all():
        return rows
    kept = rows.pick(np.flatnonzero(counts))
    if known is not None:
        return kept
    present, codes = encode(kept.codes)
    return replace(kept, classes=classes[present], codes=codes)


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
