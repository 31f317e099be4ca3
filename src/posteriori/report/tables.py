"""The rows that a picture shows: a data frame, or an array whose columns go by their numbers.

Conventions: n rows, d columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any, cast

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from posteriori.errors import LabelError, ParameterError, ShapeError
from posteriori.rows.categories import is_missing
from posteriori.rows.features import as_frame
from posteriori.rows.target import as_vector
from posteriori.typing import Array, Codes, Labels


@dataclass(frozen=True, eq=False)
class Table:
    """Rows by their columns; `frame` is None where X is an array."""

    X: Any
    frame: "nw.DataFrame[Any] | None"
    array: NDArray[Any]

    @property
    def n_rows(self) -> int:
        return len(self.array)

    @property
    def n_columns(self) -> int:
        return self.array.shape[1]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What axes call the columns."""
        if self.frame is not None:
            return tuple(self.frame.columns)
        return tuple(f"column {j}" for j in range(self.n_columns))

    def place(self, column: Any) -> int:
        """The place of a column by its name, or by its number."""
        return place_of(column, self.names, named=self.frame is not None)

    def is_numeric(self, j: int) -> bool:
        """Whether a column holds numbers that have a mean."""
        if self.frame is not None:
            return bool(self.frame[self.names[j]].dtype.is_numeric())
        if self.array.dtype.kind != "O":
            return self.array.dtype.kind in "fiu"
        return not any(isinstance(value, str | bool | np.bool_) for value in self.array[:, j])

    def numbers(self, j: int) -> Array:
        """A column (n,) of numbers; NaN where one is missing."""
        if self.frame is not None:
            return _as_numbers(self.frame[self.names[j]].to_numpy(), self.names[j])
        return _as_numbers(self.array[:, j], self.names[j])

    def finite(self, j: int) -> Array:
        """A column (n,) that can be drawn: numbers, none of them missing or infinite."""
        values = self.numbers(j)
        if not np.isfinite(values).all():
            raise ShapeError(
                f"Row {int((~np.isfinite(values)).argmax())} of {self.names[j]!r} is missing or "
                "infinite; a picture needs numbers without missing entries.",
                "Drop such rows.",
            )
        return values

    def matrix(self) -> Array:
        """All columns (n, d) as numbers that can be drawn."""
        return np.column_stack([self.finite(j) for j in range(self.n_columns)])

    def typical(self, j: int) -> Any:
        """The mean of a column, rounded where all of it is whole; of others the most frequent."""
        if self.is_numeric(j):
            values = self.numbers(j)
            values = values[np.isfinite(values)]
            if not len(values):
                raise ShapeError(f"All of {self.names[j]!r} is missing.", "Drop the column.")
            mean = float(values.mean())
            return round(mean) if (values == np.floor(values)).all() else mean
        return self.array[self._most_frequent(j), j]

    def _most_frequent(self, j: int) -> int:
        """A row that has the most frequent value of a column; the first of several."""
        found: dict[Any, list[int]] = {}
        for i, value in enumerate(self.array[:, j].tolist()):
            if not is_missing(value):
                found.setdefault(value, []).append(i)
        if not found:
            raise ShapeError(f"All of {self.names[j]!r} is missing.", "Drop the column.")
        return max(found.values(), key=len)[0]

    def with_columns(self, given: dict[int, Array]) -> Any:
        """Rows like those of X with these columns, all others at what is typical of them."""
        m = len(next(iter(given.values())))
        if self.frame is None:
            return self._array_with(given, m)
        namespace = nw.get_native_namespace(self.frame)
        columns = []
        for j, name in enumerate(self.names):
            if j in given or self.is_numeric(j):
                values = given[j] if j in given else np.full(m, float(self.typical(j)))
                columns.append(nw.new_series(name, values, native_namespace=namespace))
            else:  # a row of the frame itself keeps the type of the column
                picked = self.frame[name][[self._most_frequent(j)] * m]
                columns.append(nw.maybe_reset_index(picked))
        return nw.from_dict({series.name: series for series in columns}).to_native()

    def _array_with(self, given: dict[int, Array], m: int) -> NDArray[Any]:
        kind = np.float64 if self.array.dtype.kind in "fiub" else object
        rows = np.empty((m, self.n_columns), dtype=kind)
        for j in range(self.n_columns):
            rows[:, j] = given[j] if j in given else self.typical(j)
        return rows

    def like(self, values: Array) -> Any:
        """Numbers (m, d) as a data frame of the kind and with the columns of X, if X is one."""
        if self.frame is None:
            return values
        return self.with_columns(dict(enumerate(values.T)))


def read_table(X: Any) -> Table:
    """X as a table, or an error that says what a picture needs."""
    frame = as_frame(X)
    array = frame.to_numpy() if frame is not None else np.asarray(X)
    if array.ndim != 2 or not array.size:
        raise ShapeError(
            f"A picture needs a table of rows and columns; X has shape {array.shape}.",
            "Pass a data frame or a two-dimensional array with at least one row.",
        )
    return Table(X, frame, array)


def place_of(column: Any, names: Sequence[str], *, named: bool) -> int:
    """The place of a column by its name, or by its number.

    >>> place_of("age", ["name", "age"], named=True), place_of(0, ["name", "age"], named=True)
    (1, 0)
    """
    if isinstance(column, str) and column in names:
        return list(names).index(column)
    is_number = isinstance(column, Integral) and not isinstance(column, bool)
    if is_number and 0 <= int(column) < len(names):
        return int(column)
    known = list(names[:8]) if named else f"0 to {len(names) - 1}"
    raise ParameterError(f"There is no column {column!r}.", f"Use one of {known}.")


def _as_numbers(values: NDArray[Any], name: str) -> Array:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(
            f"{name!r} is not a column of numbers, so that it has no place on an axis.",
            "Pass numeric columns only, or choose two of them by columns=.",
        ) from None


def classes_of(model: Any) -> Labels:
    """The classes of a fitted classifier, or an error where there are none."""
    classes = getattr(model, "classes_", None)
    if classes is None:
        raise ParameterError(
            f"This {type(model).__name__} has no classes: it is not fitted, or no classifier.",
            "Pass a fitted classifier.",
        )
    return np.asarray(classes)


def codes_of(y: Any, classes: Labels, n_rows: int) -> Codes:
    """The class of each row (n,) as its place among `classes`."""
    labels = as_vector(y)
    if labels.shape != (n_rows,):
        raise ShapeError(f"y has shape {labels.shape} for {n_rows} rows.", "Pass one label a row.")
    place = {label: k for k, label in enumerate(classes.tolist())}
    unknown = [label for label in labels.tolist() if label not in place]
    if unknown:
        raise LabelError(
            f"The model has no class {unknown[0]!r}.", "Draw the rows of its classes only."
        )
    return np.array([place[label] for label in labels.tolist()], dtype=np.intp)


def probabilities(model: Any, rows: Any) -> Array:
    """p(C_k|x) (n, K), or an error where the model has none."""
    predict = getattr(model, "predict_proba", None)
    if predict is None:
        raise ParameterError(
            f"This {type(model).__name__} gives no probabilities.",
            "Pass a fitted classifier with predict_proba.",
        )
    return cast(Array, np.asarray(predict(rows), dtype=np.float64))
