"""Targets, weights and offsets of rows: class labels of any sortable kind, soft labels, numbers."""

import sys
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
from posteriori.rows.categories import (
    Dictionary,
    as_series,
    dictionary_of,
    encode_list,
    has_levels,
    is_missing,
)
from posteriori.rows.schema import listed, merge_orders
from posteriori.typing import Array, Codes, Labels

_SUM_TOLERANCE = 1e-6

_NEAR = 1024
"""Whole numbers within a range of this size are encoded by a table, however few they are."""

_LEAST_WEIGHT, _MOST_WEIGHT = 1e-305, 1e305
"""Sums of weights whose products with ordinary numbers keep full precision."""


def as_array(values: Any) -> NDArray[Any]:
    """Lists as an array; numbers among strings stay numbers, where NumPy would make strings."""
    array = np.asarray(values)
    if array.dtype.kind in "US" and not isinstance(values, np.ndarray):
        objects = np.asarray(values, dtype=object)
        if not all(isinstance(value, str | bytes) for value in objects.flat):
            return objects
    return array


def as_vector(values: Any) -> NDArray[Any]:
    """A list, array or data frame column as an array."""
    if type(values) is np.ndarray:
        return values
    series = as_series(values)
    if series is not None:
        return cast(NDArray[Any], series.to_numpy())
    frame = _as_frame(values)
    if frame is not None:
        return cast(NDArray[Any], frame.to_numpy())
    try:
        return as_array(values)
    except ValueError as error:
        raise ShapeError(
            f"The labels or weights have an irregular shape: {error}.", "Pass one value per row."
        ) from error


def read_target(
    y: Any, n_rows: int, classes: Any = None, *, known: Labels | None = None
) -> tuple[Labels, Codes | Array]:
    """The classes in order, and per row the class code, or the soft labels as they are.

    Classes are sorted, or in the order that a categorical y declares. `classes` are the names of
    all classes (of the columns of soft labels, in their order), `known` those of a fit, whose order
    is kept.
    """
    values = _one_target(y, n_rows, LabelError)
    if len(values.shape) == 2:
        frame = _as_frame(y)
        return _read_soft(values, classes, None if frame is None else frame.columns, known)
    found, codes = encode(values)
    if known is None and classes is not None:
        known = read_classes(classes)
    return (found, codes) if known is None else (known, _among(found, codes, known))


def _one_target(y: Any, n_rows: int, error: type[DataError]) -> Any:
    """The target as a column with levels or as an array (n,) or (n, K), of the right length."""
    if y is None:
        raise error(
            "This model requires y to be passed, but the target y is None.",
            "Pass one value per row as y.",
        )
    values = _labels_or_array(y)
    shape = values.shape
    if len(shape) not in (1, 2):
        raise ShapeError(f"y has {len(shape)} dimensions.", "Pass one value per row.")
    if shape[0] != n_rows:
        raise ShapeError(f"X has {n_rows} rows but y has {shape[0]}.", "Pass one value per row.")
    if shape[1:] != (1,):
        return values
    warn(
        DataConversionWarning(
            "A column-vector y was passed when a 1d array was expected. "
            "Please change the shape of y to (n_samples,), for example using ravel()."
        )
    )
    return values[:, 0]


def _labels_or_array(values: Any) -> Any:
    """A column of text or of a categorical type as it is, anything else as an array."""
    series = as_series(values)
    return series if series is not None and has_levels(series) else as_vector(values)


def read_classes(classes: Any) -> Labels:
    """The classes that the user names, each once: sorted, or in the order a categorical declares.

    >>> read_classes(["b", "a", "b"])
    array(['a', 'b'], dtype='<U1')
    """
    values = _labels_or_array(classes)
    if len(values.shape) != 1 or not len(values):
        raise LabelError(f"classes={classes!r} is not a list of labels.", "Pass classes=[...].")
    return encode(values, "classes")[0]


def same_classes(classes: Any, known: Labels) -> bool:
    """Whether the user names these classes, in any order."""
    return set(read_classes(classes).tolist()) == set(known.tolist())


def merge_classes(a: Labels, b: Labels) -> tuple[Labels, Codes, Codes]:
    """The classes of both, and where those of `a` and of `b` are among them.

    They are in an order that `a` and `b` agree with, so sorted where both are.
    """
    both = _joined(a, b)
    ours, theirs = both[: len(a)].tolist(), both[len(a) :].tolist()
    try:
        order = merge_orders(ours, theirs)
    except TypeError as error:
        raise _unsortable(error, "two statistics") from error
    place = {label: k for k, label in enumerate(order)}
    places = np.array([place[label] for label in (*ours, *theirs)], dtype=np.intp)
    first = np.unique(places, return_index=True)[1]
    return both[first], places[: len(a)], places[len(a) :]


def _joined(a: Labels, b: Labels) -> Labels:
    """Both; numbers beside text stay numbers, where NumPy would make strings."""
    mixed = (a.dtype.kind in "US") != (b.dtype.kind in "US")
    return np.concatenate([a, b], dtype=object if mixed else None)


def _among(found: Labels, codes: Codes, known: Labels) -> Codes:
    """The place of each row's label among the classes known."""
    place = {label: k for k, label in enumerate(known.tolist())}
    labels = found.astype(known.dtype) if found.dtype.kind == known.dtype.kind == "M" else found
    places = np.array([place.get(label, -1) for label in labels.tolist()], dtype=np.intp)
    if (places < 0).any():
        row = int(np.argmax(places[codes] < 0))
        raise LabelError(
            f"Row {{row}} of y is {found[codes[row : row + 1]].tolist()[0]!r}, which is not among "
            f"the classes given, {listed(known.tolist())}.",
            "Add it to classes. With partial_fit name all classes in the first call: "
            "partial_fit(X, y, classes=[...]).",
            row,
        )
    return codes if np.array_equal(places, np.arange(len(places))) else places[codes]


def _as_frame(values: Any) -> "nw.DataFrame[Any] | None":
    """A data frame; None for anything else."""
    if type(values) is np.ndarray:
        return None
    try:
        frame = nw.from_native(values, eager_only=True, pass_through=True)
    except DuplicateError as error:
        raise ShapeError(
            "Columns of the labels or weights have the same name.", "Rename one of them."
        ) from error
    return frame if isinstance(frame, nw.DataFrame) else None


def _read_soft(
    y: NDArray[Any], classes: Any, columns: list[Any] | None, known: Labels | None
) -> tuple[Labels, Array]:
    """Classes in order and soft labels; `columns` are the names that a data frame has.

    Where these are the classes, they say which column is which, in any order.
    """
    if y.dtype.kind not in "fiub":
        raise LabelError("A two-dimensional y must hold numbers.", "Pass one label per row.")
    soft = np.ascontiguousarray(y, dtype=np.float64)
    bad = ~(np.isfinite(soft).all(1) & (soft >= 0).all(1))
    bad |= abs(soft.sum(1) - 1) > _SUM_TOLERANCE
    if bad.any():
        row = int(bad.argmax())
        raise LabelError(
            f"Row {{row}} of y, {np.array2string(soft[row], threshold=6)}, is not a probability "
            "distribution over the classes (multilabel targets are not supported).",
            "Pass labels, or rows that are not negative and sum to one.",
            row,
        )
    names = _soft_names(soft.shape[1], known if classes is None else classes, columns)
    ordered = read_classes(names) if known is None else known
    place = {name: j for j, name in enumerate(names.tolist())}
    if not len(names) == len(place) == soft.shape[1] or set(place) != set(ordered.tolist()):
        raise LabelError(
            f"y has {soft.shape[1]} columns but classes names {len(set(ordered.tolist()))}.",
            "Name each column of y once, in its order.",
        )
    return ordered, soft[:, [place[name] for name in ordered.tolist()]]


def _soft_names(n_columns: int, classes: Any, columns: list[Any] | None) -> Labels:
    """The class of each column: its name in a frame, or as the user says, else its number."""
    numbers = list(range(n_columns))
    own = as_vector(columns if columns is not None and _are_labels(columns) else numbers)
    if classes is None:
        return own
    given = as_vector(classes)
    named = own.tolist() != numbers
    return own if named and set(own.tolist()) == set(given.tolist()) else given


def _are_labels(names: list[Any]) -> bool:
    return any(all(isinstance(name, kind) for name in names) for kind in (str, Integral))


def encode(y: Any, name: str = "y") -> tuple[Labels, Codes]:
    """Distinct labels in order, and the place of each row's label among them.

    y: an array, or a column of text or of a categorical type, whose order is kept.

    >>> encode(np.array(["b", "a", "b"]))
    (array(['a', 'b'], dtype='<U1'), array([1, 0, 1]))
    """
    if isinstance(y, nw.Series):
        return _encode_series(y, name)
    if y.dtype.kind == "c":
        raise LabelError("Complex labels have no order.", "Pass strings or whole numbers.")
    if y.dtype.kind == "f":
        _check_whole(y, name)
    if y.dtype.kind in "mM" and np.isnat(y).any():
        raise _missing_label(int(np.isnat(y).argmax()), name)
    if y.dtype.kind == "O":
        return _encode_objects(y, name)
    if y.dtype.kind in "iu" and len(y):
        low, high = int(y.min()), int(y.max())
        if high - low <= max(_NEAR, len(y)) and high <= np.iinfo(np.intp).max:
            return _encode_small_integers(y, low, high)
    classes, codes = np.unique(y, return_inverse=True)
    return classes, codes.reshape(-1)


def _encode_objects(y: NDArray[Any], name: str) -> tuple[Labels, Codes]:
    """Labels that are Python objects: sorted by value, looked up by hash."""
    try:
        found = _object_dictionary(y)
        if (found.codes < 0).any():
            raise _missing_label(int((found.codes < 0).argmax()), name)
        if any(isinstance(label, float) and not label.is_integer() for label in found.values):
            _check_whole(y.astype(np.float64), name)
        ordered = sorted(found.values)
    except TypeError as error:
        raise _unsortable(error, name) from error
    place = {label: code for code, label in enumerate(ordered)}
    places = np.array([place[label] for label in found.values], dtype=np.intp)
    return _objects(ordered), places[found.codes]


def _object_dictionary(y: NDArray[Any]) -> Dictionary:
    pandas = sys.modules.get("pandas")
    if pandas is None:
        return encode_list(y.tolist())
    codes, values = pandas.factorize(y)
    return Dictionary(values.tolist(), codes)


def _encode_series(series: "nw.Series[Any]", name: str) -> tuple[Labels, Codes]:
    values, codes, declared = dictionary_of(series)
    if (codes < 0).any():
        raise _missing_label(int((codes < 0).argmax()), name)
    present = np.flatnonzero(np.bincount(codes, minlength=len(values)))
    labels = [values[k] for k in present]
    as_objects = any(isinstance(label, str) for label in labels)
    ordered, places = encode(_objects(labels) if as_objects else as_array(labels))
    if declared:
        ordered, places = ordered[places], np.arange(len(labels))
    if not declared or len(present) < len(values):
        place = np.zeros(len(values), dtype=np.intp)
        place[present] = places
        codes = place[codes]
    return ordered, codes.astype(np.intp)


def declared_classes(y: Any) -> Labels | None:
    """All categories of a categorical target in their order, also those of no row.

    >>> import pandas
    >>> declared_classes(pandas.Categorical(["case"], ["control", "case"]))
    array(['control', 'case'], dtype=object)
    """
    series = as_series(y)
    if series is None or series.dtype not in (nw.Categorical, nw.Enum):
        return None
    values, _, declared = dictionary_of(series)
    if not declared:
        return None
    return _objects(values) if any(isinstance(v, str) for v in values) else as_array(values)


def _objects(labels: Sequence[Any]) -> Labels:
    classes = np.empty(len(labels), dtype=object)
    classes[:] = labels
    return classes


def _encode_small_integers(y: NDArray[Any], low: int, high: int) -> tuple[Labels, Codes]:
    wide = y.astype(np.intp, copy=False)  # before the shift: 127 - (-128) is no int8
    shifted = wide if low == 0 else wide - low
    present = np.bincount(shifted, minlength=high - low + 1) > 0
    classes = (np.flatnonzero(present) + low).astype(y.dtype)
    if present.all():
        return classes, shifted
    return classes, (np.cumsum(present) - 1)[shifted]


def _check_whole(y: NDArray[Any], name: str) -> None:
    for what, bad in (("NaN", np.isnan(y)), ("infinity", np.isinf(y))):
        if bad.any():
            raise _missing_label(int(bad.argmax()), name, what)
    if (y != np.floor(y)).any():
        row = int((y != np.floor(y)).argmax())
        raise LabelError(
            f"Unknown label type: continuous. Row {{row}} of {name} is {y[row]}.",
            "Pass class labels; for a numeric target use a regression model such as GLM.",
            row,
        )


def _missing_label(row: int, name: str, what: str = "NaN or None") -> LabelError:
    return LabelError(
        f"Input {name} contains {what} (first in row {{row}}).",
        "Drop these rows or give them a label.",
        row,
    )


def _unsortable(error: TypeError, name: str) -> LabelError:
    return LabelError(
        f"The labels in {name} cannot be sorted together: {error}.",
        "Use labels of one kind, such as strings.",
    )


def read_real_target(y: Any, n_rows: int) -> Array:
    """One finite number per row (n,), as doubles.

    >>> read_real_target([1, 2.5, True], 3)
    array([1. , 2.5, 1. ])
    """
    values = _one_target(y, n_rows, DomainError)
    values = values.to_numpy() if isinstance(values, nw.Series) else values
    if values.ndim == 2:
        raise ShapeError(
            f"y has the shape {values.shape}; several targets at once are not supported.",
            "Pass one number per row, and fit one model per target.",
        )
    numbers = _as_doubles(values)
    for what, bad in (("NaN", np.isnan(numbers)), ("infinity", np.isinf(numbers))):
        if bad.any():
            raise DomainError(
                f"Input y contains {what} (first in row {{row}}).",
                "Drop these rows, or give them a finite number.",
                int(bad.argmax()),
            )
    return numbers


def _as_doubles(y: NDArray[Any]) -> Array:
    if y.dtype.kind in "fiub":
        return y.astype(np.float64)
    remedy = (
        "Pass numbers; for class labels use a classifier: LogisticRegression, or "
        "GLM(family='bernoulli') or GLM(family='categorical')."
    )
    if y.dtype.kind != "O":
        raise DomainError(f"y has values of type {type(y.flat[0]).__name__}, not numbers.", remedy)
    for row, value in enumerate(y):
        if not (is_missing(value) or isinstance(value, Real | np.bool_ | Decimal)):
            problem = f"Row {{row}} of y is {value!r}, which is not a number."
            raise DomainError(problem, remedy, row)
    try:
        return np.array([np.nan if is_missing(value) else float(value) for value in y])
    except OverflowError:
        raise ScaleError(
            "y has a whole number beyond the largest double, 1.8e308.",
            "Divide y by a power of ten.",
        ) from None


def read_weight(weight: Any, n_rows: int) -> Array | None:
    """Weights as doubles: finite, not negative, not all zero, with a sum of ordinary size."""
    if weight is None:
        return None
    w = as_vector(weight)
    if w.dtype.kind not in "fiub":
        raise WeightError("sample_weight does not hold numbers.", "Pass one number per row.")
    w = w.astype(np.float64)
    if w.shape != (n_rows,):
        raise ShapeError(
            f"sample_weight has shape {w.shape}, expected ({n_rows},).", "Pass one weight per row."
        )
    bad = ~(np.isfinite(w) & (w >= 0))
    if bad.any():
        row = int(bad.argmax())
        raise WeightError(
            f"sample_weight of row {{row}} is {w[row]}.",
            "Weights must be finite and not negative.",
            row,
        )
    if not w.any():
        raise WeightError(
            "sample_weight is zero in every row: no rows are left.", "Pass a positive weight."
        )
    with np.errstate(over="ignore"):
        check_total_weight(float(w.sum()))
    return cast(Array, w)


def check_total_weight(total: float) -> None:
    """An error where sums with such weights would be infinite, or lose precision."""
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
            "Pass one number per row" + ("." if n_activations == 1 else " and class."),
        )
    values = values.astype(np.float64)
    if not np.isfinite(values).all():
        row = int(np.argmax(~np.isfinite(values.reshape(n_rows, -1)).all(axis=1)))
        raise DataError("The offset of row {row} is not finite.", "Pass finite numbers.", row)
    return values
