"""Targets that are numbers: read, checked, and put beside the rows they belong to."""

from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posteriori.errors import DomainError, ScaleError, ShapeError
from posteriori.rows.features import read_features
from posteriori.rows.in_memory import MemoryRows
from posteriori.rows.target import as_vector, is_missing, read_weight, warn_of_column
from posteriori.typing import Array


def read_real_rows(
    X: Any, y: Any, sample_weight: Any = None, *, model: str = "The model"
) -> MemoryRows:
    """What the user calls fit with, as rows whose target is a number; they have no classes."""
    table = read_features(X, None, model)
    target = read_real_target(y, table.n_rows)
    return MemoryRows(table, target, read_weight(sample_weight, table.n_rows))


def read_real_target(y: Any, n_rows: int) -> Array:
    """One finite number a row (n,), as doubles.

    >>> read_real_target([1, 2.5, True], 3)
    array([1. , 2.5, 1. ])
    """
    if y is None:
        raise DomainError(
            "This model requires y to be passed, but the target y is None.",
            "Pass one number a row as y.",
        )
    values = _one_column(as_vector(y))
    if len(values) != n_rows:
        raise ShapeError(f"X has {n_rows} rows but y has {len(values)}.", "Pass one number a row.")
    numbers = _as_doubles(values)
    for what, bad in (("NaN", np.isnan(numbers)), ("infinity", np.isinf(numbers))):
        if bad.any():
            raise DomainError(
                f"Input y contains {what} (first in row {int(bad.argmax())}).",
                "Drop these rows, or give them a finite number.",
            )
    return numbers


def _one_column(y: NDArray[Any]) -> NDArray[Any]:
    if y.ndim == 2 and y.shape[1] == 1:
        warn_of_column()
        return y[:, 0]
    if y.ndim != 1:
        raise ShapeError(
            f"y has the shape {y.shape}; several targets at once are not supported.",
            "Pass one number a row, and fit one model a target.",
        )
    return y


def _as_doubles(y: NDArray[Any]) -> Array:
    if y.dtype.kind in "fiub":
        return y.astype(np.float64)
    if y.dtype.kind == "O":
        return np.fromiter((_as_double(value, row) for row, value in enumerate(y)), np.float64)
    raise DomainError(f"y holds {_kind(y)}, not numbers.", _WORDS)


def _as_double(value: object, row: int) -> float:
    if is_missing(value):
        return np.nan
    if not isinstance(value, Real | np.bool_ | Decimal):
        raise DomainError(f"Row {row} of y is {value!r}, which is not a number.", _WORDS)
    try:
        return float(value)
    except OverflowError:
        raise ScaleError(
            f"Row {row} of y is a whole number that no double can hold.",
            "Divide y by a power of ten.",
        ) from None


def _kind(y: NDArray[Any]) -> str:
    kinds = {"U": "strings", "S": "strings", "c": "complex numbers", "M": "dates", "m": "durations"}
    return kinds.get(y.dtype.kind, str(y.dtype))


_WORDS = (
    "Pass numbers; for class labels use a classifier: LogisticRegression, or "
    "GLM(family='bernoulli') or GLM(family='categorical')."
)
