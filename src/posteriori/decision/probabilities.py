"""Readers of probabilities, labels and names of classes for the functions of this package.

Conventions: n rows, K classes. A weight counts how often its row occurred; rows of weight zero are
left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from posteriori.errors import (
    ColumnTypeError,
    LabelError,
    MissingValueError,
    ParameterError,
    PosterioriError,
    ProbabilityError,
    ShapeError,
)
from posteriori.rows.features import as_frame
from posteriori.rows.frames import make_frame
from posteriori.rows.target import as_vector, read_target, read_weight
from posteriori.typing import Array, Codes, Labels


def places_of(wanted: Sequence[Any], given: Sequence[Any], what: str, kind: str) -> list[int]:
    """The position of each wanted name among those given; an error unless they are the same.

    Names may be labels as text: "0" for 0.

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


def read_names(names: Any, n: int, what: str, kind: str) -> Labels:
    """The labels of n columns, each once."""
    found = as_vector(names)
    if found.shape != (n,):
        raise ParameterError(
            f"{what} has shape {found.shape}, but there are {n} columns.",
            f"Name each {kind} once, in the order of the columns.",
        )
    check_distinct(found.tolist(), what, kind)
    return cast(Labels, found)


def own_names(names: Sequence[Any], labels: Sequence[Any]) -> Sequence[Any] | None:
    """Names of rows or columns; None if they are only their numbers, and not the labels.

    >>> own_names([0, 1], ["no", "yes"]), own_names([0, 1], [1, 0])
    (None, [0, 1])
    """
    are_numbers = list(names) == list(range(len(names)))
    return None if are_numbers and set(names) != set(labels) else names


def read_numbers(
    values: Any, name: str, error: type[PosterioriError] = ParameterError
) -> NDArray[Any]:
    """Real numbers as an array, in their own precision; masked and absent ones are NaN."""
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.float64), np.nan)
    try:
        found = as_vector(values)
        found = found.astype(np.float64) if found.dtype.kind == "O" else found
    except (TypeError, ValueError) as other:
        raise error(f"{name} does not hold numbers in a regular shape.", "Give numbers.") from other
    if found.dtype.kind not in "fiub":
        raise error(f"{name} does not hold numbers.", "Give numbers.")
    return found


class Result:
    """A frozen dataclass as a data frame: a row for each entry of its arrays, or one row.

    The columns are `_columns`, by default all fields.
    """

    _columns: ClassVar[tuple[str, ...]] = ()

    def to_frame(self, backend: str | None = None) -> Any:
        """The numbers as a data frame of "pandas", "polars" or "pyarrow"."""
        names = self._columns or list(vars(self))
        columns = {name: np.atleast_1d(getattr(self, name)).tolist() for name in names}
        return make_frame(columns, backend)


@dataclass(frozen=True, eq=False)
class Probabilities:
    """The probabilities of the classes, (n, K), each row a distribution.

    `single` if they were given as that of the second of two classes, (n,).
    """

    values: Array
    classes: Labels
    single: bool = False


def read_proba(proba: Any, classes: Any = None) -> Probabilities:
    """Probabilities as an array (n, K), a data frame with a column a class, or (n,) for two.

    The classes are those given, else the columns of the frame, else 0, 1, ... Columns whose names
    are the classes are put into the order of `classes`.

    >>> read_proba([0.25, 0.5], ["no", "yes"]).values
    array([[0.75, 0.25],
           [0.5 , 0.5 ]])
    """
    frame, values = as_frame(proba), read_numbers(proba, "proba", ColumnTypeError)
    single = values.ndim == 1
    if single:
        values = np.column_stack([1 - values, values])
    if values.ndim != 2 or values.shape[1] == 0:
        raise ShapeError(
            f"proba has shape {values.shape}.",
            "Pass one row per observation, and one column per class.",
        )
    values = _distributions(values)
    columns = range(values.shape[1]) if frame is None else list(frame.columns)
    if classes is None:
        return Probabilities(values, as_vector(list(columns)), single)
    known = read_names(classes, values.shape[1], "classes", "class")
    names = None if frame is None else own_names(columns, known.tolist())
    if names is not None:
        values = values[:, places_of(known.tolist(), names, "proba", "class")]
    return Probabilities(values, known, single)


def _distributions(values: NDArray[Any]) -> Array:
    """The rows as doubles, each a distribution up to the rounding of its own precision."""
    unit = float(np.finfo(values.dtype).eps) if values.dtype.kind == "f" else 0.0
    values = values.astype(np.float64, copy=False)
    total: Array = values.sum(axis=1)
    near = abs(total - 1) <= max(1e-6, 4 * unit * values.shape[1])  # no NaN is near
    negative = np.asarray((values < -8 * unit).any(axis=1))
    if near.all() and not negative.any():
        return np.clip(values, 0.0, 1.0)
    row = int((~near | negative).argmax())
    shown = f"Row {row} of proba, {np.array2string(values[row], precision=8, threshold=6)},"
    if np.isnan(values[row]).any():
        raise MissingValueError(
            f"{shown} has a missing entry.",
            "Drop these rows, or predict them with a model that accepts missing entries.",
        )
    raise ProbabilityError(
        f"{shown} is not a probability distribution: it sums to {total[row]:.8g}"
        f"{' and has a negative entry' * bool(negative[row])}.",
        "Pass one column a class, or the probability of the second of two classes as a vector.",
    )


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
            f"There are {len(labels)} classes, and label is missing.",
            f"Pass label=, one of {labels[:8]}.",
        )
    if label not in labels:
        raise ParameterError(f"There is no class {label!r}.", f"Use one of {labels[:8]}.")
    return labels.index(label)


def read_labelled(y: Any, proba: Any, classes: Any = None, sample_weight: Any = None) -> Labelled:
    """Labels `y`, `proba` (n, K) or (n,) for the second of two classes, and weights, checked.

    Column j is of class j of `classes`, by default the labels in y in their order; the columns of a
    data frame go by their names if these are the classes.
    """
    probability = read_proba(proba).values
    n, K = probability.shape
    if not probability.size or K < 2:
        raise ShapeError(
            f"proba has shape {probability.shape}.",
            "Pass rows with a column a class, or one number a row for the second of two classes.",
        )
    given = None if classes is None else read_names(classes, K, "classes", "class")
    if given is None and K == 2 and as_vector(y).dtype.kind == "b":
        given = np.array([False, True])
    known, codes = read_target(y, n, known=given)
    if codes.ndim == 2:
        raise LabelError("y has soft labels, not one label a row.", "Pass one label a row.")
    if len(known) != K:
        raise LabelError(
            f"proba is of {K} classes, but y has {len(known)}: {known.tolist()[:8]}.",
            "Pass classes=, the class of each column of proba, such as model.classes_.",
        )
    frame = as_frame(proba)
    if frame is not None and set(frame.columns) == set(known.tolist()):
        probability = probability[:, [frame.columns.index(label) for label in known.tolist()]]
    weight = read_weight(sample_weight, n)
    weight = np.ones(n) if weight is None else weight
    kept = np.flatnonzero(weight)
    return Labelled(known, probability[kept], cast(Codes, codes)[kept], weight[kept], kept)
