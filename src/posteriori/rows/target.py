"""Targets, weights and offsets of rows: class labels of any sortable kind, soft labels, numbers."""

from collections.abc import Sequence
from typing import Any, cast

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import DataConversionWarning

from posteriori.errors import DataError, DomainError, LabelError, ShapeError, WeightError, warn
from posteriori.rows.categories import LEVELS, Dictionary, as_series, dictionary_of, of_objects
from posteriori.rows.features import as_array, as_frame
from posteriori.rows.schema import listed, merge_orders
from posteriori.typing import Array, Codes, Labels

_SUM_TOLERANCE = 1e-6

_LEAST_WEIGHT, _MOST_WEIGHT = 1e-100, 1e100
"""Range of sums of weights; their squares and inverses are doubles."""


def as_vector(values: Any, *, keep_levels: bool = False) -> Any:
    """A list, array or data frame column as an array.

    With `keep_levels`, a column of text or of a categorical type is given as a narwhals series.
    """
    if type(values) is np.ndarray:
        return values
    series = as_series(values)
    if series is not None:
        return series if keep_levels and series.dtype in LEVELS else series.to_numpy()
    frame = as_frame(values, "the labels or weights")
    if frame is not None:
        return frame.to_numpy()
    return as_array(values)


def read_target(
    y: Any,
    n_rows: int,
    classes: Any = None,
    *,
    known: Labels | None = None,
    weight: Array | None = None,
) -> tuple[Labels, Codes | Array]:
    """The classes in order, and per row the class code, or the soft labels as they are.

    Classes are sorted, or in the order that a categorical y declares. `classes` are the names of
    all classes (of the columns of soft labels, in their order), `known` those of a fit, whose order
    is kept; labels of rows of `weight` zero need not be among them.
    """
    values = _one_target(y, n_rows, LabelError)
    if len(values.shape) == 2:
        frame = as_frame(y)
        return _read_soft(values, classes, None if frame is None else frame.columns, known)
    found, codes = encode(values)
    if known is None and classes is not None:
        known = read_classes(classes)
    return (found, codes) if known is None else (known, _among(found, codes, known, weight))


def _one_target(y: Any, n_rows: int, error: type[DataError]) -> Any:
    """The target as a column with levels or as an array (n,) or (n, K), of the right length."""
    if y is None:
        raise error(
            "This model requires y to be passed, but the target y is None.",
            "Pass one value per row as y.",
        )
    values = as_vector(y, keep_levels=True)
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


def read_classes(classes: Any) -> Labels:
    """The classes that the user names, each once: sorted, or in the order a categorical declares.

    >>> read_classes(["b", "a", "b"])
    array(['a', 'b'], dtype='<U1')
    """
    values = as_vector(classes, keep_levels=True)
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
    mixed = (a.dtype.kind in "US") != (b.dtype.kind in "US")  # NumPy would make numbers strings
    both = np.concatenate([a, b], dtype=object if mixed else None)
    labels = both.tolist()
    try:
        order = merge_orders(labels[: len(a)], labels[len(a) :])
    except TypeError as error:
        raise _unsortable(error, "two statistics") from error
    place = {label: k for k, label in enumerate(order)}
    places = np.array([place[label] for label in labels], dtype=np.intp)
    first = np.unique(places, return_index=True)[1]
    return both[first], places[: len(a)], places[len(a) :]


def _among(found: Labels, codes: Codes, known: Labels, weight: Array | None) -> Codes:
    """The index of each row's label in the known classes."""
    place = {label: k for k, label in enumerate(known.tolist())}
    places = np.array([place.get(label, -1) for label in found.tolist()], dtype=np.intp)
    lost = places[codes] < 0
    if weight is not None:
        lost &= weight > 0
    if lost.any():
        row = int(np.argmax(lost))
        raise LabelError(
            f"Row {{row}} of y is {found[codes[row : row + 1]].tolist()[0]!r}, which is not among "
            f"the classes given, {listed(known.tolist())}.",
            "Add it to classes. With partial_fit name all classes in the first call: "
            "partial_fit(X, y, classes=[...]).",
            row,
        )
    return np.maximum(places, 0)[codes]


def _read_soft(
    y: NDArray[Any], classes: Any, columns: Sequence[Any] | None, known: Labels | None
) -> tuple[Labels, Array]:
    """Classes in order and soft labels; `columns` are the names that a data frame has.

    Where these are the classes, they say which column is which, in any order.
    """
    if y.dtype.kind not in "fiub":
        raise LabelError("A two-dimensional y must hold numbers.", "Pass one label per row.")
    soft = np.ascontiguousarray(y, dtype=np.float64)
    _refuse(
        ~((soft >= 0).all(1) & (abs(soft.sum(1) - 1) <= _SUM_TOLERANCE)),
        soft,
        LabelError,
        "Row {row} of y, {value}, is not a probability distribution over the classes (multilabel "
        "targets are not supported).",
        "Pass labels, or rows that are not negative and sum to one.",
    )
    numbers = list(range(soft.shape[1]))
    names = numbers if columns is None else list(columns)
    given = known if classes is None else as_vector(classes)
    if given is not None and (names == numbers or set(names) != set(given.tolist())):
        names = given.tolist()
    ordered = read_classes(names) if known is None else known
    place = {name: j for j, name in enumerate(names)}
    if not len(names) == len(place) == soft.shape[1] or set(place) != set(ordered.tolist()):
        raise LabelError(
            f"y has {soft.shape[1]} columns but classes names {len(ordered)}.",
            "Name each column of y once, in its order.",
        )
    return ordered, soft[:, [place[name] for name in ordered.tolist()]]


def encode(y: Any, name: str = "y") -> tuple[Labels, Codes]:
    """Distinct labels in order, and the place of each row's label among them.

    y: an array, or a column of text or of a categorical type, whose order is kept.

    >>> encode(np.array(["b", "a", "b"]))
    (array(['a', 'b'], dtype='<U1'), array([1, 0, 1]))
    """
    if isinstance(y, nw.Series) or y.dtype.kind == "O":
        return _encode_objects(y, name)
    if y.dtype.kind == "c":
        raise LabelError(
            "Complex data not supported: complex labels have no order.",
            "Pass strings or whole numbers.",
        )
    if y.dtype.kind == "f":
        _check_whole(y, name)
    if y.dtype.kind in "mM":
        _refuse(np.isnat(y), y, LabelError, *_missing(name))
    if y.dtype.kind in "iu" and len(y):
        low, high = int(y.min()), int(y.max())
        if high - low <= max(1024, len(y)) and high <= np.iinfo(np.intp).max:  # a short table
            codes = y.astype(np.intp) - low  # as intp first: 127 - (-128) overflows int8
            present = np.bincount(codes) > 0
            classes = (np.flatnonzero(present) + low).astype(y.dtype)
            return classes, codes if present.all() else (np.cumsum(present) - 1)[codes]
    classes, codes = np.unique(y, return_inverse=True)
    return classes, codes.reshape(-1)


def _encode_objects(y: Any, name: str) -> tuple[Labels, Codes]:
    """Labels that are Python objects, or a column with levels: looked up by hash, then sorted."""
    try:
        values, codes, declared = dictionary_of(y)
        _refuse(codes < 0, codes, LabelError, *_missing(name))
        if any(isinstance(label, float) and not label.is_integer() for label in values):
            _check_whole(np.array(values, dtype=np.float64)[codes], name)
        present = np.flatnonzero(np.bincount(codes, minlength=len(values)))
        in_order = sorted(present, key=values.__getitem__)  # also to know that they are of one kind
        order = present if declared else in_order
    except TypeError as error:
        raise _unsortable(error, name) from error
    place = np.zeros(len(values), dtype=np.intp)
    place[order] = np.arange(len(order))
    labels = [values[k] for k in order]
    return (as_labels(labels) if isinstance(y, nw.Series) else _objects(labels)), place[codes]


def as_labels(values: Sequence[Any]) -> Labels:
    """Labels as an array, of objects where some are text."""
    return _objects(values) if any(isinstance(v, str) for v in values) else as_array(values)


def _objects(labels: Sequence[Any]) -> Labels:
    classes = np.empty(len(labels), dtype=object)
    classes[:] = labels
    return classes


def _refuse(bad: Any, values: Any, error: type[DataError], problem: str, remedy: str) -> None:
    """The error for the first row that is bad, if there is one."""
    if bad.any():
        row = int(bad.argmax())
        raise error(problem.replace("{value}", str(values[row])), remedy, row)


def _check_whole(y: NDArray[Any], name: str) -> None:
    _refuse(~np.isfinite(y), y, LabelError, *_missing(name))
    _refuse(
        y != np.floor(y),
        y,
        LabelError,
        f"Unknown label type: continuous. Row {{row}} of {name} is {{value}}.",
        "Pass class labels; for a numeric target use a regression model such as GLM.",
    )


def _missing(name: str) -> tuple[str, str]:
    problem = f"Input {name} contains NaN, None or infinity (first in row {{row}})."
    return problem, "Drop these rows, or give them a value."


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
    found = of_objects(values, "y")[1] if values.dtype.kind == "O" else values
    if isinstance(found, Dictionary) or found.dtype.kind not in "fiub":
        raise DomainError(
            f"y has values of type {type(values.flat[0]).__name__}, not numbers.",
            "Pass numbers; for class labels use a classifier: LogisticRegression, or "
            "GLM(family='bernoulli') or GLM(family='categorical').",
        )
    numbers = found.astype(np.float64)
    _refuse(~np.isfinite(numbers), numbers, DomainError, *_missing("y"))
    return cast(Array, numbers)


def read_weight(weight: Any, n_rows: int, *, all_zero: bool = False) -> Array | None:
    """Weights as doubles: finite, not negative, with a sum of ordinary size.

    They may be `all_zero` in a batch of many.
    """
    if weight is None:
        return None
    w = _numbers(weight, "sample_weight", (n_rows,), WeightError)
    problem = "sample_weight of row {row} is {value}."
    remedy = "Weights must be finite and not negative."
    _refuse(~(np.isfinite(w) & (w >= 0)), w, WeightError, problem, remedy)
    if not all_zero or w.any():
        with np.errstate(over="ignore"):
            check_total_weight(float(w.sum()))
    return w


def _numbers(values: Any, name: str, wanted: tuple[int, ...], error: type[DataError]) -> Array:
    """Numbers of the shape wanted as doubles."""
    found = as_vector(values)
    if found.dtype.kind not in "fiub":
        raise error(f"{name} does not hold numbers.", "Pass one number per row.")
    if found.shape != wanted:
        raise ShapeError(
            f"{name} has shape {found.shape}, expected numbers of shape {wanted}.",
            f"Pass one number per row{' and class' if len(wanted) > 1 else ''}.",
        )
    return cast(Array, found.astype(np.float64))


def check_total_weight(total: float) -> None:
    """An error where sums with such weights would be infinite, or lose precision."""
    if total == 0:
        raise WeightError(
            "The weight is zero in every row: no rows are left.", "Give some row a weight."
        )
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
    wanted = (n_rows,) if n_activations == 1 else (n_rows, n_activations)
    values = _numbers(offset, "offset", wanted, DataError)
    finite = np.isfinite(values.reshape(n_rows, -1)).all(axis=1)
    problem = "The offset of row {row} is not finite."
    _refuse(~finite, values, DataError, problem, "Pass finite numbers.")
    return values
