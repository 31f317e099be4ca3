"""The user's X, whatever it is, as a table of columns."""

from collections.abc import Sequence
from dataclasses import replace
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
from posteriori.rows.arrow import is_table, plain_table
from posteriori.rows.categories import complex_error, date_error, read_column, read_objects
from posteriori.rows.schema import Column, Kind, Schema
from posteriori.rows.tables import ColumnTable, DenseTable, SparseTable, Table
from posteriori.rows.target import as_array
from posteriori.typing import Array

_SMALL_FRAME = 10**5
"""A data frame of no more numbers is copied at once, rather than read column by column."""


def read_features(
    X: Any, schema: Schema | None = None, model: str = "This model", *, new_levels: bool = False
) -> Table:
    """X as a table; with the `schema` of a fit, checked against it and put into its order.

    Levels that the schema lacks are coded `UNSEEN` or, with `new_levels`, added to it.
    """
    table: DenseTable | SparseTable
    _check_in_memory(X)
    if schema is not None and is_table(X) and X.num_rows:
        plain = plain_table(X, schema)
        if plain is not None:
            return plain
    if sparse.issparse(X):
        table = _from_sparse(X)
    elif (frame := as_frame(X)) is not None:
        return _from_frame(frame, schema, model, new_levels)
    else:
        values = X if type(X) is np.ndarray else _as_array(X)
        _check_shape(values.shape)
        if values.dtype.kind not in "fiub":
            return _from_objects(values, schema, model, new_levels)
        kind: Kind = "boolean" if values.dtype.kind == "b" else "numeric"
        table = DenseTable(values, Schema.unnamed(values.shape[1], kind))
    return table if schema is None else _by_position(table, schema, model)


def _check_in_memory(X: Any) -> None:
    """An error that says what to do with a source, a Dask collection or a path."""
    if hasattr(type(X), "map_sum"):
        raise ParameterError(
            "A source is not accepted here.", "Pass data in memory: an array or a data frame."
        )
    if hasattr(type(X), "__dask_graph__"):
        raise ParameterError(
            "A Dask collection is not accepted here.", "Pass X.compute(), or some of its rows."
        )
    if isinstance(X, str | PathLike):
        raise path_error(X)


def path_error(X: Any, y: Any = None) -> ParameterError:
    """A path, or any text that is no formula, in place of X."""
    target = f"'{y}'" if isinstance(y, str) else "..."
    return ParameterError(
        f"X is {str(X)!r}, which is neither data nor a formula.",
        f"To read files, pass scan({str(X)!r}, target={target}); a formula has the form "
        "'target ~ a + b'.",
    )


def _as_array(X: Any) -> NDArray[Any]:
    if isinstance(X, np.ma.MaskedArray) and X.dtype.kind in "fiub":
        return cast(Array, np.ma.filled(X.astype(np.float64), np.nan))
    try:
        return as_array(X)
    except (ValueError, NotImplementedError) as error:
        raise ShapeError(
            f"X is not a table: {error}.", "Pass a data frame, or rows of equal length."
        ) from error


def _check_shape(shape: tuple[int, ...]) -> None:
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


def _check_width(n_columns: int, schema: Schema, model: str) -> None:
    if n_columns != len(schema):
        raise ShapeError(
            f"X has {n_columns} features, but {model} is expecting {len(schema)} features as "
            "input.",
            "Pass the columns of the fit.",
        )


def _by_position(table: DenseTable | SparseTable, schema: Schema, model: str) -> Table:
    """Columns without names, taken to be those of the fit in the same order."""
    _check_width(len(table.schema), schema, model)
    if schema.categorical:
        raise ColumnTypeError(
            f"{model} was fitted with levels in {schema.describe_all(schema.categorical)}, "
            "but X has numbers only.",
            "Pass a data frame with the columns of the fit.",
        )
    _warn_of_names(False, schema.named, model)
    return replace(table, schema=schema)


def _from_sparse(X: Any) -> SparseTable:
    _check_shape(X.shape)
    if X.dtype.kind == "c":
        raise complex_error()
    if X.dtype.kind not in "fiub":
        raise ColumnTypeError(
            f"A sparse matrix of {X.dtype} cannot be used.", "Pass a matrix of numbers."
        )
    rows = X if X.format == "csr" else sparse.csr_array(X)
    if not rows.has_canonical_format:  # remembered by the user's own matrix, if it is CSR
        rows = sparse.csr_array(rows, copy=True)
        rows.sum_duplicates()
    kind: Kind = "boolean" if X.dtype.kind == "b" else "numeric"
    return SparseTable(rows, Schema.unnamed(X.shape[1], kind))


def as_frame(X: Any) -> "nw.DataFrame[Any] | None":
    """X as a data frame in memory; None if it is something else."""
    if type(X) is np.ndarray:  # asking narwhals takes longer than all other checks of it
        return None
    try:
        frame = nw.from_native(X, pass_through=True)
    except DuplicateError as error:
        raise ColumnNameError(
            f"Two columns of X have the same name, {_name_given_twice(X)!r}.",
            "Rename one of them.",
        ) from error
    if isinstance(frame, nw.LazyFrame):
        raise ColumnTypeError(
            "X is a lazy frame, whose rows are not in memory.",
            f"Call {'compute' if hasattr(type(X), '__dask_graph__') else 'collect'}() on it first.",
        )
    return frame if isinstance(frame, nw.DataFrame) else None


def _name_given_twice(X: Any) -> Any:
    names = list(X.column_names if hasattr(X, "column_names") else X.columns)
    return next((name for name in names if names.count(name) > 1), None)


def _from_frame(
    frame: "nw.DataFrame[Any]", schema: Schema | None, model: str, new_levels: bool
) -> Table:
    names = list(frame.columns)
    _check_shape(frame.shape)
    named = _are_names(names)
    known: Sequence[Column | None] = [None] * len(names)
    order = list(range(len(names)))
    if schema is not None:
        if named and schema.named:
            order = schema.order_of(names)
        else:
            _check_width(len(names), schema, model)
            _warn_of_names(named, schema.named, model)
        known = schema.columns
        if not schema.categorical and frame.shape[0] * frame.shape[1] <= _SMALL_FRAME:
            values = _small_frame(frame)
            if values is not None:
                return DenseTable(values[:, order], schema)
    read = [
        read_column(frame.get_column(names[i]), names[i] if named else f"x{j}", column, new_levels)
        for j, (i, column) in enumerate(zip(order, known, strict=True))
    ]
    return _table_of(read, schema, named, len(frame))


def _are_names(names: list[Any]) -> bool:
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


def _small_frame(frame: "nw.DataFrame[Any]") -> NDArray[Any] | None:
    """All columns as one array; None where some are not numbers."""
    if not all(dtype.is_numeric() or dtype == nw.Boolean for dtype in frame.schema.values()):
        return None
    values = frame.to_numpy()
    return values if values.dtype.kind in "fiub" else None


def _table_of(
    read: list[tuple[Column, NDArray[Any]]], schema: Schema | None, named: bool, n_rows: int
) -> ColumnTable:
    """Columns as read; those of the schema keep its names and kinds, and may gain levels."""
    columns = tuple(column for column, _ in read)
    if schema is not None:
        pairs = zip(schema.columns, columns, strict=True)
        columns = tuple(replace(found, name=known.name, kind=known.kind) for known, found in pairs)
        named = schema.named
    return ColumnTable(tuple(values for _, values in read), Schema(columns, named), n_rows)


def _warn_of_names(here: bool, fitted: bool, model: str) -> None:
    if here == fitted:
        return
    problem = (
        f"X has feature names, but {model} was fitted without feature names."
        if here
        else f"X does not have valid feature names, but {model} was fitted with feature names."
    )
    warn(ColumnNameWarning(problem, "Use names in both, so that the order can be checked."))


def _from_objects(
    values: NDArray[Any], schema: Schema | None, model: str, new_levels: bool
) -> ColumnTable:
    """An array of Python objects or strings, read column by column."""
    if values.dtype.kind == "c":
        raise complex_error()
    if values.dtype.kind in "mM":
        raise date_error("x0", "a duration" if values.dtype.kind == "m" else "a date")
    if schema is not None:
        _check_width(values.shape[1], schema, model)
    known = [None] * values.shape[1] if schema is None else schema.columns
    read = [
        read_objects(values[:, j], f"x{j}", column, new_levels) for j, column in enumerate(known)
    ]
    return _table_of(read, schema, False, len(values))
