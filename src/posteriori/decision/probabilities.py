"""Class probabilities of rows, whoever computed them.

Conventions: n rows, K classes; `values` (n, K), whose rows sum to one.
"""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posteriori.decision.names import check_distinct, own_names, places_of
from posteriori.errors import (
    ColumnTypeError,
    MissingValueError,
    ParameterError,
    ProbabilityError,
    ShapeError,
)
from posteriori.rows.features import as_frame
from posteriori.rows.target import as_vector
from posteriori.typing import Array, Labels

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
