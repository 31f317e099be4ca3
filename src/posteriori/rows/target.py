"""Targets, weights and offsets of rows: class labels of any sortable kind, soft labels, numbers."""

from collections.abc import Sequence
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, cast

import narwhals.stable.v1 as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray
from sklearn.exceptions import DataConversionWarning

from posteriori.errors import (
    DataError,
    DomainError,
    LabelError,
    ScaleError,
    ShapeError,
    WeightError,
    warn,
)
from posteriori.typing import Array, Codes, Labels

_SUM_TOLERANCE = 1e-6

_NEAR = 1024

"""Whole numbers that lie no farther apart are looked up in a table, however few they are."""

_LEAST_WEIGHT, _MOST_WEIGHT = 1e-305, 1e305

"""Sums of weights whose products with ordinary numbers are doubles with all their digits."""


def as_array(values: Any) -> NDArray[Any]:
    """Lists as an array; numbers among strings stay numbers, where NumPy would spell them out."""
    array = np.asarray(values)
    if array.dtype.kind in "US" and not isinstance(values, np.ndarray):
        objects = np.asarray(values, dtype=object)
        if not all(isinstance(value, str | bytes) for value in objects.flat):
            return objects
    return array


def is_missing(value: object) -> bool:
    """Whether a Python object stands for no value: None, NaN, NaT or pandas.NA."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas.NA does not say whether it equals itself
        return True


def as_vector(values: Any) -> NDArray[Any]:
    """A list, array or data frame column as an array."""
    if type(values) is np.ndarray:
        return values
    native = nw.from_native(values, series_only=True, pass_through=True)
    if isinstance(native, nw.Series):
        return cast(NDArray[Any], native.to_numpy())
    frame = _as_frame(values)
    if frame is not None:
        return cast(NDArray[Any], frame.to_numpy())
    try:
        return as_array(values)
    except ValueError as error:
        raise ShapeError(
            f"The labels or weights are of no regular shape: {error}.", "Pass one a row."
        ) from error


def read_target(y: Any, n_rows: int, classes: Any = None) -> tuple[Labels, Codes | Array]:
    """The classes in order, and per row the class code, or the soft labels as they are."""
    if y is None:
        raise LabelError(
            "This model requires y to be passed, but the target y is None.",
            "Pass the class labels as y.",
        )
    frame, y = _as_frame(y), as_vector(y)
    if y.ndim == 2 and y.shape[1] == 1:
        warn_of_column()
        y = y[:, 0]
    if y.ndim not in (1, 2):
        raise ShapeError(f"y has {y.ndim} dimensions.", "Pass one label a row.")
    if len(y) != n_rows:
        raise ShapeError(f"X has {n_rows} rows but y has {len(y)}.", "Pass one label a row.")
    if y.ndim == 2:
        return _read_soft(y, classes, None if frame is None else list(frame.columns))
    known = None if classes is None else np.unique(as_vector(classes))
    if known is not None and (places := _places_of_integers(y, known)) is not None:
        return known, places
    found, codes = encode(y)
    if known is None:
        return found, codes
    strange = ~np.isin(found, known)
    if strange.any():
        row = int(np.argmax(strange[codes]))
        raise LabelError(
            f"Row {row} of y holds {found[codes[row : row + 1]].tolist()[0]!r}, which is not among "
            f"the classes given, {_listed(known.tolist())}.",
            "Add it to classes. With partial_fit name all classes in the first call: "
            "partial_fit(X, y, classes=[...]).",
        )
    return known, codes if len(found) == len(known) else np.searchsorted(known, found)[codes]


def warn_of_column() -> None:
    """Say that y is a column, in the words that scikit-learn has for it."""
    warn(
        DataConversionWarning(
            "A column-vector y was passed when a 1d array was expected. "
            "Please change the shape of y to (n_samples,), for example using ravel()."
        )
    )


def _listed(labels: Sequence[Any]) -> str:
    return ", ".join(map(repr, labels[:8])) + ", ..." * (len(labels) > 8)


def _as_frame(values: Any) -> "nw.DataFrame[Any] | None":
    """A data frame; None for anything else."""
    if type(values) is np.ndarray:
        return None
    try:
        frame = nw.from_native(values, eager_only=True, pass_through=True)
    except DuplicateError as error:
        raise ShapeError(
            "Columns of the labels or weights have the same name.", "Give each a name of its own."
        ) from error
    return frame if isinstance(frame, nw.DataFrame) else None


def _read_soft(y: NDArray[Any], classes: Any, columns: list[Any] | None) -> tuple[Labels, Array]:
    """Classes in order and soft labels; `columns` are the names that a data frame has.

    Names that are the classes say themselves which column is which, in whatever order.
    """
    if y.dtype.kind not in "fiub":
        raise LabelError("A two-dimensional y must hold numbers.", "Pass one label a row.")
    soft = np.ascontiguousarray(y, dtype=np.float64)
    bad = ~(np.isfinite(soft).all(1) & (soft >= 0).all(1))
    bad |= abs(soft.sum(1) - 1) > _SUM_TOLERANCE
    if bad.any():
        row = int(bad.argmax())
        raise LabelError(
            f"Row {row} of y, {np.array2string(soft[row], threshold=6)}, is not a probability "
            "distribution over the classes (multilabel targets are not supported).",
            "Pass labels, or rows that are not negative and sum to one.",
        )
    names = _soft_names(soft.shape[1], classes, columns)
    if len(names) != soft.shape[1] or len(set(names.tolist())) != len(names):
        raise LabelError(
            f"y has {soft.shape[1]} columns but classes names {len(set(names.tolist()))}.",
            "Name each column of y once, in its order.",
        )
    order = np.argsort(names)
    return names[order], soft[:, order]


def _soft_names(n_columns: int, classes: Any, columns: list[Any] | None) -> Labels:
    """The class of each column: as a frame or the user calls it, else its number."""
    numbers = list(range(n_columns))
    own = as_vector(columns if columns is not None and _are_labels(columns) else numbers)
    if classes is None:
        return own
    given = as_vector(classes)
    named = own.tolist() != numbers
    return own if named and set(own.tolist()) == set(given.tolist()) else given


def _are_labels(names: list[Any]) -> bool:
    return any(all(isinstance(name, kind) for name in names) for kind in (str, Integral))


def encode(y: NDArray[Any]) -> tuple[Labels, Codes]:
    """Distinct labels in order, and the place of each row's label among them.

    >>> encode(np.array(["b", "a", "b"]))
    (array(['a', 'b'], dtype='<U1'), array([1, 0, 1]))
    """
    if y.dtype.kind == "c":
        raise LabelError("Complex labels have no order.", "Pass strings or whole numbers.")
    if y.dtype.kind == "f":
        _check_whole(y)
    if y.dtype.kind in "mM":
        _check_present(y)
    if y.dtype.kind == "O":
        return _encode_objects(y)
    if y.dtype.kind in "iu" and len(y):
        low, high = int(y.min()), int(y.max())
        if high - low <= max(_NEAR, len(y)) and high <= np.iinfo(np.intp).max:
            return _encode_small_integers(y, low, high)
    classes, codes = np.unique(y, return_inverse=True)
    return classes, codes.reshape(-1)


def _encode_objects(y: NDArray[Any]) -> tuple[Labels, Codes]:
    """Labels that are Python objects: sorted by value, looked up by hash."""
    labels = y.tolist()
    try:
        distinct = set(labels)
        if any(map(is_missing, distinct)):
            _check_present(y)
        if any(isinstance(label, float) and not label.is_integer() for label in distinct):
            _check_whole(y.astype(np.float64))
        ordered = sorted(distinct)
    except TypeError as error:
        raise LabelError(
            f"The labels cannot be sorted: {error}.", "Use labels of one kind, such as strings."
        ) from error
    place = {label: code for code, label in enumerate(ordered)}
    classes = np.empty(len(ordered), dtype=object)
    classes[:] = ordered
    return classes, np.fromiter(map(place.__getitem__, labels), np.intp, len(labels))


def _places_of_integers(y: NDArray[Any], known: Labels) -> Codes | None:
    """The place of each label among the classes; None where one is strange, or they lie far apart.

    >>> _places_of_integers(np.array([7, 4, 7]), np.array([4, 7]))
    array([1, 0, 1])
    """
    if y.dtype.kind not in "iu" or known.dtype.kind not in "iu" or not len(y):
        return None
    low, high = int(known[0]), int(known[-1])
    if high - low > _NEAR or high > np.iinfo(np.intp).max or y.min() < low or y.max() > high:
        return None
    wide = y.astype(np.intp, copy=False)  # before the shift: 127 - (-128) is no int8
    shifted = wide if low == 0 else wide - low
    if len(known) == high - low + 1:
        return shifted
    places = np.full(high - low + 1, -1, dtype=np.intp)
    places[known.astype(np.intp) - low] = np.arange(len(known))
    found = places.take(shifted)
    return found if found.min() >= 0 else None


def _encode_small_integers(y: NDArray[Any], low: int, high: int) -> tuple[Labels, Codes]:
    wide = y.astype(np.intp, copy=False)  # before the shift: 127 - (-128) is no int8
    shifted = wide if low == 0 else wide - low
    present = np.bincount(shifted, minlength=high - low + 1) > 0
    classes = (np.flatnonzero(present) + low).astype(y.dtype)
    if present.all():
        return classes, shifted
    return classes, (np.cumsum(present) - 1)[shifted]


def _check_whole(y: NDArray[Any]) -> None:
    for what, bad in (("NaN", np.isnan(y)), ("infinity", np.isinf(y))):
        if bad.any():
            raise LabelError(
                f"Input y contains {what} (first in row {int(bad.argmax())}).",
                "Drop these rows or give them a label.",
            )
    if (y != np.floor(y)).any():
        row = int((y != np.floor(y)).argmax())
        raise LabelError(
            f"Unknown label type: continuous. Row {row} of y is {y[row]}.",
            "Pass class labels; for a real target use a regression model.",
        )


def _check_present(y: NDArray[Any]) -> None:
    for row, label in enumerate(y):
        if is_missing(label):
            raise LabelError(
                f"Input y contains NaN or None (first in row {row}).",
                "Drop these rows or give them a label.",
            )


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


def read_weight(weight: Any, n_rows: int) -> Array | None:
    """Weights as doubles: finite, not negative, not all zero, with a sum of ordinary size."""
    if weight is None:
        return None
    w = as_vector(weight)
    if w.dtype.kind not in "fiub":
        raise WeightError("sample_weight does not hold numbers.", "Pass one number a row.")
    w = w.astype(np.float64)
    if w.shape != (n_rows,):
        raise ShapeError(
            f"sample_weight has shape {w.shape}, expected ({n_rows},).", "Pass one weight a row."
        )
    bad = ~(np.isfinite(w) & (w >= 0))
    if bad.any():
        row = int(bad.argmax())
        raise WeightError(
            f"sample_weight of row {row} is {w[row]}.", "Weights must be finite and not negative."
        )
    if not w.any():
        raise WeightError(
            "sample_weight is zero in every row: no rows are left.", "Give some row a weight."
        )
    with np.errstate(over="ignore"):
        check_total_weight(float(w.sum()))
    return cast(Array, w)


def check_total_weight(total: float) -> None:
    """An error where sums with such weights would be infinite, or lose their digits."""
    if not _LEAST_WEIGHT <= total <= _MOST_WEIGHT:
        size = "large" if total > 1 else "small"
        raise WeightError(
            f"The weights are too {size}: they sum to {total:g}.",
            "Divide all of them by the largest.",
        )


def read_offset(offset: Any, n_rows: int, n_activations: int) -> Array:
    """Offsets as doubles: (n,), or (n, K) where each class has an activation.

    >>> read_offset([1, 2], 2, 1)
    array([1., 2.])
    """
    values = as_vector(offset)
    wanted = (n_rows,) if n_activations == 1 else (n_rows, n_activations)
    if values.dtype.kind not in "fiub" or values.shape != wanted:
        raise ShapeError(
            f"offset has shape {values.shape} and type {values.dtype}; expected numbers of shape "
            f"{wanted}.",
            "Pass one number a row" + ("." if n_activations == 1 else " and class."),
        )
    values = values.astype(np.float64)
    if not np.isfinite(values).all():
        row = int(np.argmax(~np.isfinite(values.reshape(n_rows, -1)).all(axis=1)))
        raise DataError(f"The offset of row {row} is not finite.", "Pass finite numbers.")
    return values
