"""Probabilities, labels and names of classes as the functions of this room take them.

Conventions: n rows, K classes. A weight counts how often its row occurred; weight zero is absence.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from posteriori.errors import (
    ColumnTypeError,
    LabelError,
    MissingValueError,
    ParameterError,
    ProbabilityError,
    ShapeError,
)
from posteriori.rows.features import as_frame
from posteriori.rows.frames import make_frame
from posteriori.rows.target import as_vector, read_target, read_weight
from posteriori.typing import Array, Codes, Labels


def places_of(wanted: Sequence[Any], given: Sequence[Any], what: str, kind: str) -> list[int]:
    """Where each of the names wanted stands among those given; an error unless they are the same.

    Names of columns may be the labels as text: "0" for 0.

    >>> places_of([0, 1], ["1", "0"], "loss", "class")
    [1, 0]
    """
    if all(isinstance(name, str) for name in given):
        meant = {str(label): label for label in wanted}
        given = [meant.get(name, name) for name in given]
    unknown = [name for name in given if name not in wanted]
    absent = [name for name in wanted if name not in given]
    if unknown or absent:
        found = f"an unknown {kind} {unknown[0]!r}" if unknown else f"no {kind} {absent[0]!r}"
        raise ParameterError(
            f"{what} has {found}.", f"Give one number for each {kind} of {list(wanted)[:8]}."
        )
    check_distinct(given, what, kind)
    place = {name: i for i, name in enumerate(given)}
    return [place[name] for name in wanted]


def check_distinct(names: Sequence[Any], what: str, kind: str) -> None:
    """An error if two of the names are the same."""
    if len(set(names)) != len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise ParameterError(f"{what} has the {kind} {twice!r} twice.", f"Name each {kind} once.")


def own_names(names: Sequence[Any], labels: Sequence[Any]) -> Sequence[Any] | None:
    """Names of rows or columns; None if they are but their numbers, and not the labels.

    >>> own_names([0, 1], ["no", "yes"]), own_names([0, 1], [1, 0])
    (None, [0, 1])
    """
    are_numbers = list(names) == list(range(len(names)))
    return None if are_numbers and set(names) != set(labels) else names


class Result:
    """A frozen dataclass whose `_columns` can be had as a frame: a row an entry, or one row."""

    _columns: ClassVar[tuple[str, ...]]

    def to_frame(self, backend: str | None = None) -> Any:
        """The numbers as a data frame of "pandas", "polars" or "pyarrow"."""
        columns = {name: np.atleast_1d(getattr(self, name)).tolist() for name in self._columns}
        return make_frame(columns, backend)


_SUM_TOLERANCE = 1e-6

_ROUNDING = 8
"""Units in the last place of one by which an entry may lie below zero."""


@dataclass(frozen=True, eq=False)
class Probabilities:
    """The probabilities of the classes, (n, K), in their own precision.

    `single` if they were given as that of the second of two classes, (n,).
    """

    values: NDArray[Any]
    classes: Labels
    single: bool = False

    @property
    def tolerance(self) -> float:
        """By how much a row may miss one; more where numbers are kept to fewer digits."""
        return max(_SUM_TOLERANCE, 4 * self._spacing * self.values.shape[1])

    @property
    def _spacing(self) -> float:
        """The unit in the last place of one, in the type that was given."""
        kind = self.values.dtype
        return float(np.finfo(kind if kind.kind == "f" else np.float64).eps)

    def checked(self) -> Array:
        """All of them as doubles, each row a distribution; no rounding leaves [0, 1]."""
        values = self.values.astype(np.float64, copy=False)
        self.check(values, values.sum(axis=1))
        return np.clip(values, 0.0, 1.0)

    def check(self, values: Array, total: Array, first: int = 0) -> None:
        """An error unless no entry is negative and every total is one; `first` is the first row."""
        near, least = abs(total - 1) <= self.tolerance, -_ROUNDING * self._spacing  # no NaN is near
        if near.all() and values.min(initial=0.0) >= least:
            return
        row = int((~near | (values < least).any(axis=1)).argmax())
        shown = np.array2string(values[row], precision=8, threshold=6)
        if np.isnan(values[row]).any():
            raise MissingValueError(
                f"Row {first + row} of proba, {shown}, has a missing entry.",
                "Drop these rows, or predict them with a model that can.",
            )
        raise ProbabilityError(
            f"Row {first + row} of proba, {shown}, is not a probability distribution: it sums to "
            f"{total[row]:.8g}{' and has a negative entry' * bool((values[row] < least).any())}.",
            "Pass one column a class, or the probability of the second of two classes as a vector.",
        )


def read_proba(proba: Any, classes: Any = None) -> Probabilities:
    """Probabilities as an array (n, K), a data frame with a column a class, or (n,) for two.

    The classes are those given, else the columns of the frame, else 0, 1, ... Columns whose names
    are the classes are put into the order of `classes`.

    >>> read_proba([0.25, 0.5], ["no", "yes"]).values
    array([[0.75, 0.25],
           [0.5 , 0.5 ]])
    """
    frame, values = as_frame(proba), _as_numbers(proba)
    single = values.ndim == 1
    if single:
        values = values.astype(np.result_type(values, np.float32), copy=False)
        values = np.column_stack([1 - values, values])
    if values.ndim != 2 or values.shape[1] == 0:
        raise ShapeError(
            f"proba has shape {values.shape}.", "Pass one row a row, and one column a class."
        )
    columns = range(values.shape[1]) if frame is None else list(frame.columns)
    if classes is None:
        return Probabilities(values, as_vector(list(columns)), single)
    known = _classes(classes, values.shape[1])
    names = None if frame is None else own_names(columns, known.tolist())
    if names is not None:
        values = values[:, places_of(known.tolist(), names, "proba", "class")]
    return Probabilities(values, known, single)


def _as_numbers(proba: Any) -> NDArray[Any]:
    if isinstance(proba, np.ma.MaskedArray):
        proba = np.ma.filled(proba.astype(np.float64), np.nan)
    values = as_vector(proba)
    if values.dtype.kind == "O":
        with suppress(TypeError, ValueError):
            values = values.astype(np.float64)
    if values.dtype.kind not in "fiub":
        raise ColumnTypeError(
            "proba does not hold numbers.", "Pass probabilities, as predict_proba gives them."
        )
    return values


def _classes(classes: Any, n_columns: int) -> Labels:
    known = as_vector(classes)
    if known.shape != (n_columns,):
        raise ParameterError(
            f"classes has shape {known.shape}, but proba has {n_columns} columns.",
            "Name each class once, in the order of the columns.",
        )
    check_distinct(known.tolist(), "classes", "class")
    return known


@dataclass(frozen=True, eq=False)
class Labelled:
    """Rows with their probabilities (n, K), the code of the class that occurred, and a weight.

    `row` is the number of each among the rows that were given; those of weight zero are left out.
    """

    classes: Labels
    probability: Array
    codes: Codes
    weight: Array
    row: Codes

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @property
    def own(self) -> Array:
        """The probability (n,) of the class that occurred."""
        return np.take_along_axis(self.probability, self.codes[:, None], axis=1)[:, 0]

    def place(self, label: Any) -> int:
        """The column of a class; None for the second of two."""
        return class_place(label, self.classes)


def class_place(label: Any, classes: Labels) -> int:
    """The place of the class `label`; None is the second of two."""
    labels = classes.tolist()
    if label is None and len(labels) == 2:
        return 1
    if label is None:
        raise ParameterError(
            f"There are {len(labels)} classes, and label does not say which is meant.",
            f"Pass label=, one of {labels[:8]}.",
        )
    if label not in labels:
        raise ParameterError(f"There is no class {label!r}.", f"Use one of {labels[:8]}.")
    return labels.index(label)


def read_labelled(y: Any, proba: Any, classes: Any = None, sample_weight: Any = None) -> Labelled:
    """Labels `y`, `proba` (n, K) or (n,) for the second of two classes, and weights, checked.

    Column j is of class j of `classes`, by default the labels in y in their order. In a data frame
    whose columns are called as the classes, each is of the class it is called after.
    """
    probability = read_proba(proba).checked()
    n, K = probability.shape
    if not probability.size or K < 2:
        raise ShapeError(
            f"proba has shape {probability.shape}.",
            "Pass rows with a column a class, or one number a row for the second of two classes.",
        )
    labels = as_vector(y)
    if labels.ndim == 0:
        raise LabelError(f"y is {y!r}, not a list of labels.", "Pass one label a row.")
    if len(labels) != n:
        raise ShapeError(f"proba has {n} rows but y has {len(labels)}.", "Pass one label a row.")
    given = None if classes is None else np.atleast_1d(as_vector(classes))
    if given is None and labels.dtype.kind == "b" and K == 2:
        given = np.array([False, True])
    known, codes = read_target(y, n, known=given)
    if codes.ndim == 2:
        raise LabelError("y has a column a class.", "Pass one label a row.")
    _check_number(known, given, K)
    probability = probability[:, _columns_of(known.tolist(), proba)]
    weight = read_weight(sample_weight, n)
    weight = np.ones(n) if weight is None else weight
    kept = np.flatnonzero(weight)
    return Labelled(known, probability[kept], cast(Codes, codes)[kept], weight[kept], kept)


def _columns_of(classes: list[Any], proba: Any) -> list[int]:
    """The column of each class: by name where a data frame has them as names, else by order."""
    frame = as_frame(proba)
    names = classes if frame is None else list(frame.columns)
    if set(names) != set(classes):
        names = classes
    return [names.index(label) for label in classes]


def _check_number(known: Labels, given: Labels | None, K: int) -> None:
    if given is not None and len(set(given.tolist())) < len(given):
        raise LabelError("classes names a class twice.", "Name each column of proba once.")
    if len(known) != K:
        what = "y has" if given is None else "classes names"
        raise LabelError(
            f"proba is of {K} classes, but {what} {len(known)}: {known.tolist()[:8]}.",
            "Pass classes=, the class of each column of proba, such as model.classes_.",
        )
