"""The user's X (array, sparse matrix or data frame) as a table of columns."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from os import PathLike
from typing import Any, cast

import narwhals.stable.v1 as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray
from scipy import sparse

from posteriori.errors import (
    ColumnNameError,
    ColumnNameWarning,
    ColumnTypeError,
    ParameterError,
    ShapeError,
    warn,
)
from posteriori.rows.block import Features, Mixed, take_rows
from posteriori.rows.categories import date_error, read_column
from posteriori.rows.schema import Kind, Schema
from posteriori.typing import Array

_ARROW_NUMBERS = {
    "double",
    "float",
    *(f"{sign}int{n}" for sign in ("", "u") for n in (8, 16, 32, 64)),
}
"""Arrow types whose values NumPy reads where they are."""

_SMALL_FRAME = 10**5
"""A data frame of no more numbers is copied at once, rather than read column by column."""


@dataclass(frozen=True, slots=True)
class Table:
    """Columns in memory, from which consecutive rows are taken.

    `values` is an array of numbers in any memory order, a CSR matrix, a `Mixed`, or a tuple of
    columns, each of numbers or codes of levels.
    """

    values: "NDArray[Any] | sparse.csr_array | Mixed | tuple[NDArray[Any], ...]"
    schema: Schema

    @property
    def n_rows(self) -> int:
        values = self.values
        return len(values[0]) if isinstance(values, tuple) else int(values.shape[0])

    def cut(self, low: int, high: int) -> Features:
        """Rows low to high as doubles (a view where they are doubles already)."""
        values = self.values
        if isinstance(values, tuple):
            numeric = self._stack(self.schema.numeric, low, high, np.float64)
            places = self.schema.categorical
            if not places:
                return numeric
            unseen = tuple(self.schema.columns[j].unseen for j in places)
            return Mixed(numeric, self._stack(places, low, high, np.int32), unseen)
        if isinstance(values, Mixed):
            return take_rows(values, slice(low, high))
        if isinstance(values, np.ndarray):
            return cast(Array, values[low:high].astype(np.float64, copy=False))
        rows = values if high - low == values.shape[0] else values[low:high]
        return rows.astype(np.float64, copy=False)

    def _stack(self, positions: list[int], low: int, high: int, dtype: Any) -> NDArray[Any]:
        out = np.empty((high - low, len(positions)), dtype=dtype, order="F")
        for i, j in enumerate(positions):
            out[:, i] = cast(Any, self.values)[j][low:high]
        return out

    def column(self, j: int) -> NDArray[Any]:
        """One column: numbers, or codes of levels."""
        values = self.values
        if isinstance(values, tuple):
            return values[j]
        if isinstance(values, Mixed):
            is_level = j in self.schema.categorical
            part: NDArray[Any] = values.codes if is_level else values.numeric
            return part[:, (self.schema.categorical if is_level else self.schema.numeric).index(j)]
        if isinstance(values, np.ndarray):
            return values[:, j]
        return cast(NDArray[Any], values[:, [j]].toarray().ravel())


def read_features(
    X: Any, schema: Schema | None = None, model: str = "This model", *, new_levels: bool = False
) -> Table:
    """X as a table; with the `schema` of a fit, checked against it and put into its order.

    Levels that the schema lacks are coded `UNSEEN` or, with `new_levels`, added to it.
    """
    for sign, what in (("map_sum", "source"), ("__dask_graph__", "Dask collection")):
        if hasattr(type(X), sign):
            raise ParameterError(
                f"A {what} is not accepted here.",
                "Pass data in memory: an array or a data frame (of Dask: X.compute()).",
            )
    table = _from_arrow(X, schema) if is_arrow_table(X) else None
    if table is not None:
        return table
    frame = as_frame(X)
    if frame is not None:
        return _from_frame(frame, schema, model, new_levels)
    values = _as_csr(X) if sparse.issparse(X) else as_numbers(X)
    if values.dtype.kind == "c":
        raise ColumnTypeError(
            "Complex data not supported.",
            "Pass the real and the imaginary parts as two columns.",
        )
    check_shape(values.shape)
    d, is_numbers = values.shape[1], values.dtype.kind in "fiub"
    if schema is not None:
        if schema.categorical and is_numbers and d == len(schema):
            raise ColumnTypeError(
                f"{model} was fitted with levels in {schema.describe_all(schema.categorical)}, "
                "but X has numbers only.",
                "Pass a data frame with the columns of the fit.",
            )
        _check_width(False, d, schema, model)
    if is_numbers:
        kind: Kind = "boolean" if values.dtype.kind == "b" else "numeric"
        return Table(values, Schema.unnamed(d, kind) if schema is None else schema)
    return _by_column(values.T, [f"x{j}" for j in range(d)], False, schema, new_levels)


def as_frame(X: Any, name: str = "X") -> "nw.DataFrame[Any] | None":
    """A data frame in memory; None for anything else."""
    if type(X) is np.ndarray:  # asking narwhals takes longer than all other checks of it
        return None
    if type(X).__module__.startswith("pyarrow.") and type(X).__name__ == "RecordBatch":
        X = import_module("pyarrow").Table.from_batches([X])  # narwhals knows tables only
    try:
        frame = nw.from_native(X, pass_through=True)
    except DuplicateError as error:
        names = list(X.column_names if hasattr(X, "column_names") else X.columns)
        twice = next((each for each in names if names.count(each) > 1), None)
        raise ColumnNameError(
            f"Two columns of {name} have the same name, {twice!r}.", "Rename one of them."
        ) from error
    if isinstance(frame, nw.LazyFrame):
        call = "compute" if hasattr(type(X), "__dask_graph__") else "collect"
        raise ColumnTypeError(
            f"{name} is a lazy frame, whose rows are not in memory.", f"Call {call}() on it first."
        )
    return frame if isinstance(frame, nw.DataFrame) else None


def is_arrow_table(X: Any) -> bool:
    """Whether X is a table of pyarrow, which need not be installed."""
    return type(X).__module__.startswith("pyarrow.") and type(X).__name__ == "Table"


def _from_arrow(X: Any, schema: Schema | None) -> Table | None:
    """The columns where they are, if all are plain numbers and none is missing; None otherwise."""
    names = X.column_names
    if not X.num_rows or not names or len(set(names)) < len(names):
        return None
    if schema is not None:
        if schema.categorical or not schema.named:
            return None
        if tuple(names) != schema.names:
            schema.check_names(names)
            X = X.select(schema.names)
    found = []
    for column in X.columns:
        if column.null_count or str(column.type) not in _ARROW_NUMBERS:
            return None
        chunk = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        found.append(chunk.to_numpy(zero_copy_only=False))
    return Table(tuple(found), Schema.of_names(names) if schema is None else schema)


def path_error(X: Any, y: Any = None) -> ParameterError:
    """The error for a path, or other text that is not a formula, in place of X."""
    target = f"'{y}'" if isinstance(y, str) else "..."
    return ParameterError(
        f"X is {str(X)!r}, which is neither data nor a formula.",
        f"To read files, pass scan({str(X)!r}, target={target}); a formula has the form "
        "'target ~ a + b'.",
    )


def as_array(values: Any) -> NDArray[Any]:
    """Lists as an array; numbers among strings stay numbers, where NumPy would make strings."""
    array = np.asarray(values)
    if array.dtype.kind in "US" and not isinstance(values, np.ndarray):
        objects = np.asarray(values, dtype=object)
        if not all(isinstance(value, str | bytes) for value in objects.flat):
            return objects
    return array


def as_numbers(X: Any) -> NDArray[Any]:
    """X as an array of numbers, strings or Python objects; masked entries are NaN."""
    if isinstance(X, str | PathLike):
        raise path_error(X)
    if isinstance(X, np.ma.MaskedArray) and X.dtype.kind in "fiub":
        X = np.ma.filled(X.astype(np.float64), np.nan)
    try:
        values = X if type(X) is np.ndarray else as_array(X)
    except (ValueError, NotImplementedError) as error:
        raise ShapeError(
            f"X is not a table: {error}.", "Pass a data frame, or rows of equal length."
        ) from error
    if values.dtype.kind in "mM":
        raise date_error("x0", "a duration" if values.dtype.kind == "m" else "a date")
    return values


def _as_csr(X: Any) -> Any:
    rows = sparse.csr_array(X)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def check_shape(shape: tuple[int, ...]) -> None:
    """An error for an array that is not two-dimensional, or has no rows or columns."""
    if len(shape) != 2:
        raise ShapeError(
            f"Expected 2D array, got {len(shape)}D array instead.",
            "Reshape your data: X.reshape(-1, 1) for one column, X.reshape(1, -1) for one row.",
        )
    for n, what, remedy in ((shape[0], "sample", "row"), (shape[1], "feature", "column")):
        if n == 0:
            raise ShapeError(
                f"Found array with 0 {what}(s) (shape={shape}) while a minimum of 1 is required.",
                f"Pass at least one {remedy}.",
            )


def _check_width(named: bool, n_columns: int, schema: Schema, model: str) -> None:
    """Columns that are taken by position: as many as in the fit, a warning if names are lost."""
    if n_columns != len(schema):
        raise ShapeError(
            f"X has {n_columns} features, but {model} is expecting {len(schema)} features as "
            "input.",
            "Pass the columns of the fit.",
        )
    if named != schema.named:
        problem = (
            f"X has feature names, but {model} was fitted without feature names."
            if named
            else f"X does not have valid feature names, but {model} was fitted with feature names."
        )
        warn(ColumnNameWarning(problem, "Use names in both, so that the order can be checked."))


def _from_frame(
    frame: "nw.DataFrame[Any]", schema: Schema | None, model: str, new_levels: bool
) -> Table:
    names = list(frame.columns)
    if len(frame) and not (names if schema is None else schema.columns):  # an intercept alone
        return Table(np.empty((len(frame), 0)), Schema((), named=True))
    check_shape(frame.shape)
    named = are_names(names)
    if schema is not None and named and schema.named:
        if names != list(schema.names):  # columns that the fit did not have are ignored
            schema.check_names(names)
            frame, names = frame.select(schema.names), list(schema.names)
    elif schema is not None:
        _check_width(named, len(names), schema, model)
    n, d = frame.shape
    own = Schema.of_names(names) if named else Schema.unnamed(d)
    types = set(frame.schema.values()).difference(() if schema is None else {nw.Boolean()})
    is_plain = all(dtype.is_numeric() for dtype in types) and not (schema or own).categorical
    if is_plain and n * d <= _SMALL_FRAME:
        # A copy, because the bits of sums depend on the layout in memory.
        values = np.array(frame.to_numpy(), order="F")
        if values.dtype.kind in "fiub":  # not where entries of a column are missing
            return Table(values, own if schema is None else schema)
    columns = [frame.get_column(name) for name in names]
    return _by_column(columns, own.names, named, schema, new_levels)


def are_names(names: list[Any]) -> bool:
    """Whether the columns have names, rather than numbers; an error where some have neither."""
    strings = [isinstance(name, str) for name in names]
    if any(strings) and not all(strings):
        raise ColumnNameError(
            "Some column names are strings and some are not.",
            "Rename the columns: X.columns = X.columns.astype(str).",
        )
    nested = [name for name in names if isinstance(name, tuple)]
    if nested:
        raise ColumnNameError(
            f"A column name is a tuple, {nested[0]!r}.",
            "Rename the columns: X.columns = ['_'.join(map(str, name)) for name in X.columns].",
        )
    return all(strings)


def _by_column(
    columns: Any, names: Sequence[str], named: bool, schema: Schema | None, new_levels: bool
) -> Table:
    """Columns read one by one; those of the schema keep its names and kinds, may gain levels."""
    known = [None] * len(names) if schema is None else schema.columns
    found = zip(columns, names, known, strict=True)
    read = [read_column(each, name, old, new_levels) for each, name, old in found]
    own = tuple(column for column, _ in read)
    if schema is not None:
        pairs = zip(own, schema.columns, strict=True)
        own = tuple(replace(column, name=old.name, kind=old.kind) for column, old in pairs)
        named = schema.named
    return Table(tuple(values for _, values in read), Schema(own, named))
