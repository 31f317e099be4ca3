"""The user's X, whatever it is, as something that can be cut into blocks without being copied."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Protocol, cast

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from posteriori.errors import (
    ColumnNameError,
    ColumnNameWarning,
    ColumnTypeError,
    ShapeError,
    warn,
)
from posteriori.rows.block import MISSING, UNSEEN, Features, Mixed
from posteriori.rows.labels import as_array, is_missing
from posteriori.rows.schema import Column, Schema
from posteriori.typing import Array


class Table(Protocol):
    """Columns that can be cut into runs of rows."""

    @property
    def schema(self) -> Schema: ...

    @property
    def n_rows(self) -> int: ...

    def cut(self, low: int, high: int) -> Features:
        """Rows low to high as doubles (a view where they are doubles already)."""
        ...


@dataclass(frozen=True, slots=True)
class DenseTable:
    """A NumPy array of numbers or booleans, in any memory order."""

    values: NDArray[Any]
    schema: Schema

    @property
    def n_rows(self) -> int:
        return len(self.values)

    def cut(self, low: int, high: int) -> Array:
        return cast(Array, self.values[low:high].astype(np.float64, copy=False))


@dataclass(frozen=True, slots=True)
class SparseTable:
    """A SciPy CSR matrix."""

    values: sparse.csr_array
    schema: Schema

    @property
    def n_rows(self) -> int:
        return int(self.values.shape[0])

    def cut(self, low: int, high: int) -> sparse.csr_array:
        indptr = self.values.indptr[low : high + 1]
        inside = slice(indptr[0], indptr[-1])
        data = self.values.data[inside].astype(np.float64, copy=False)
        return sparse.csr_array(
            (data, self.values.indices[inside], indptr - indptr[0]),
            shape=(high - low, self.values.shape[1]),
        )


@dataclass(frozen=True, slots=True)
class ColumnTable:
    """One array a column: numbers, or codes of levels."""

    columns: tuple[NDArray[Any], ...]
    schema: Schema
    n_rows: int

    def cut(self, low: int, high: int) -> Array | Mixed:
        numeric = self._stack(self.schema.numeric, low, high, np.float64)
        if not self.schema.categorical:
            return numeric
        return Mixed(numeric, self._stack(self.schema.categorical, low, high, np.int32))

    def _stack(self, positions: list[int], low: int, high: int, dtype: Any) -> NDArray[Any]:
        out = np.empty((high - low, len(positions)), dtype=dtype, order="F")
        for i, j in enumerate(positions):
            out[:, i] = self.columns[j][low:high]
        return out


def read_features(
    X: Any, schema: Schema | None = None, model: str = "This model", *, new_levels: bool = False
) -> Table:
    """X as a table; with the `schema` of a fit, checked against it and put into its order.

    Levels that the schema lacks are coded `UNSEEN` or, with `new_levels`, added to it.
    """
    table: DenseTable | SparseTable
    if sparse.issparse(X):
        table = _from_sparse(X)
    elif (frame := _as_frame(X)) is not None:
        return _from_frame(frame, schema, model, new_levels)
    else:
        values = X if type(X) is np.ndarray else _as_array(X)
        _check_shape(values.shape)
        if values.dtype.kind not in "fiub":
            return _from_objects(values, schema, model, new_levels)
        kind: Any = "boolean" if values.dtype.kind == "b" else "numeric"
        table = DenseTable(values, Schema.unnamed(values.shape[1], kind))
    return table if schema is None else _by_position(table, schema, model)


def _as_array(X: Any) -> NDArray[Any]:
    if isinstance(X, np.ma.MaskedArray) and X.dtype.kind in "fiub":
        return cast(Array, np.ma.filled(X.astype(np.float64), np.nan))
    try:
        return as_array(X)
    except ValueError as error:
        raise ShapeError(f"X is not a table: {error}.", "Pass rows of equal length.") from error


def _check_shape(shape: tuple[int, ...]) -> None:
    if len(shape) != 2:
        raise ShapeError(
            f"Expected 2D array, got {len(shape)}D array instead.",
            "Reshape your data: X.reshape(-1, 1) for one column, X.reshape(1, -1) for one row.",
        )
    if shape[0] == 0:
        raise ShapeError(
            f"Found array with 0 sample(s) (shape={shape}) while a minimum of 1 is required.",
            "Pass at least one row.",
        )
    if shape[1] == 0:
        raise ShapeError(
            f"Found array with 0 feature(s) (shape={shape}) while a minimum of 1 is required.",
            "Pass at least one column.",
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
            "but X holds numbers only.",
            "Pass a data frame with the columns of the fit.",
        )
    if schema.named:
        warn(
            ColumnNameWarning(
                f"X does not have valid feature names, but {model} was fitted with feature names.",
                "Pass a data frame, so that the order of its columns can be checked.",
            )
        )
    return replace(table, schema=schema)


def _from_sparse(X: Any) -> SparseTable:
    _check_shape(X.shape)
    if X.dtype.kind == "c":
        raise _complex_error()
    if X.dtype.kind not in "fiub":
        raise ColumnTypeError(
            f"A sparse matrix of {X.dtype} cannot be used.", "Pass one of numbers."
        )
    rows = sparse.csr_array(X)
    if not rows.has_canonical_format:
        rows = rows.copy() if X.format == "csr" else rows  # else the user's own would be changed
        rows.sum_duplicates()
    return SparseTable(rows, Schema.unnamed(X.shape[1]))


def _complex_error() -> ColumnTypeError:
    return ColumnTypeError(
        "Complex data not supported.", "Pass the real and the imaginary parts as two columns."
    )


def _as_frame(X: Any) -> "nw.DataFrame[Any] | None":
    frame = nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise ColumnTypeError(
            "X is a lazy frame, whose rows are not in memory.", "Call collect() on it first."
        )
    return frame if isinstance(frame, nw.DataFrame) else None


def _from_frame(
    frame: "nw.DataFrame[Any]", schema: Schema | None, model: str, new_levels: bool
) -> ColumnTable:
    names = list(frame.columns)
    _check_shape(frame.shape)
    named = all(isinstance(name, str) for name in names)
    if not named and any(isinstance(name, str) for name in names):
        raise ColumnNameError(
            "Some column names are strings and some are not.",
            "Rename the columns: X.columns = X.columns.astype(str).",
        )
    known: Sequence[Column | None] = [None] * len(names)
    order = list(range(len(names)))
    if schema is not None:
        if named and schema.named:
            order = schema.order_of(names)
        else:
            _check_width(len(names), schema, model)
            _warn_of_names(named, schema.named, model)
        known = schema.columns
    read = [
        _read_column(frame[:, i], names[i] if named else f"x{j}", column, new_levels)
        for j, (i, column) in enumerate(zip(order, known, strict=True))
    ]
    return _table_of(read, schema, named, len(frame))


def _table_of(
    read: list[tuple[Column, NDArray[Any]]], schema: Schema | None, named: bool, n_rows: int
) -> ColumnTable:
    """Columns as read; those of the schema keep its names and kinds, and may gain levels."""
    columns = tuple(column for column, _ in read)
    if schema is not None:
        pairs = zip(schema.columns, columns, strict=True)
        columns = tuple(replace(known, levels=found.levels) for known, found in pairs)
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


def _read_column(
    series: "nw.Series[Any]", name: str, known: Column | None, new_levels: bool
) -> tuple[Column, NDArray[Any]]:
    """A column of a data frame, and its numbers or codes; `known` is what the fit saw."""
    dtype = series.dtype
    if dtype == nw.Object:
        return _read_objects(series.to_numpy(), name, known, new_levels)
    if dtype.is_numeric() or dtype == nw.Boolean:
        kind: Any = "boolean" if dtype == nw.Boolean else "numeric"
        _check_kind(name, kind, known)
        plain = dtype.is_float() or not series.null_count()
        values = (
            series if plain and not dtype.is_decimal() else series.cast(nw.Float64)
        ).to_numpy()
        if values.dtype.kind == "O":
            values = series.cast(nw.Float64).to_numpy()
        return Column(name, kind), values
    if dtype in (nw.Categorical, nw.Enum, nw.String):
        _check_kind(name, "categorical", known)
        return _read_levels(series, name, known, new_levels)
    raise ColumnTypeError(
        f"Column '{name}' holds {dtype}, which is neither a number nor a level.",
        "Turn it into numbers (for dates: days since a fixed date) or into strings.",
    )


def _read_levels(
    series: "nw.Series[Any]", name: str, known: Column | None, new_levels: bool
) -> tuple[Column, NDArray[np.int32]]:
    """Codes of the levels seen: in declared order for categories, else sorted."""
    text = _as_text(series)
    seen = set(text.drop_nulls().unique().to_list())
    if known is not None:
        levels = _extended(known.levels, seen) if new_levels else known.levels
    elif series.dtype == nw.String:
        levels = tuple(sorted(seen))
    else:
        declared = map(str, _declared(series))
        levels = tuple(level for level in declared if level in seen)
    strange = sorted(seen.difference(levels))
    old = [*levels, *strange]
    new = [*range(len(levels)), *[UNSEEN] * len(strange)]
    if not old:
        return Column(name, "categorical", levels), np.full(len(text), MISSING, dtype=np.int32)
    codes = text.replace_strict(old, new, return_dtype=nw.Int64).fill_null(MISSING)
    return Column(name, "categorical", levels), codes.to_numpy().astype(np.int32)


def _extended(levels: tuple[Any, ...], seen: set[Any]) -> tuple[Any, ...]:
    """The levels known, then the new ones in order."""
    return (*levels, *sorted(seen.difference(levels)))


def _declared(series: "nw.Series[Any]") -> list[Any]:
    """The categories in order; sorted where pandas holds an Arrow dictionary it cannot list."""
    try:
        return series.cat.get_categories().to_list()
    except AttributeError:
        return sorted(series.cast(nw.String).drop_nulls().unique().to_list())


def _as_text(series: "nw.Series[Any]") -> "nw.Series[Any]":
    """The names of the levels; a level 3 is called "3" even where gaps make pandas write 3.0."""
    if series.dtype == nw.String:
        return series
    names = {level: str(level) for level in _declared(series)}
    if all(isinstance(level, str) for level in names):
        return series.cast(nw.String)
    text = [names.get(level) for level in series.to_list()]
    return nw.new_series(series.name, text, nw.String, backend=series.implementation)


def _check_kind(name: str, kind: str, known: Column | None) -> None:
    if known is not None and (kind == "categorical") != (known.kind == "categorical"):
        raise ColumnTypeError(
            f"Column '{name}' is {kind} but was {known.kind} in the fit.",
            "Pass it as the same type as in the fit.",
        )


def _from_objects(
    values: NDArray[Any], schema: Schema | None, model: str, new_levels: bool
) -> ColumnTable:
    """An array of Python objects or strings, read column by column."""
    if values.dtype.kind == "c":
        raise _complex_error()
    if values.dtype.kind in "mM":
        raise ColumnTypeError(
            f"X holds {values.dtype}, which is neither a number nor a level.",
            "Turn dates into numbers, for example days since a fixed date.",
        )
    if schema is not None:
        _check_width(values.shape[1], schema, model)
    read = [
        _read_objects(
            values[:, j], f"x{j}", None if schema is None else schema.columns[j], new_levels
        )
        for j in range(values.shape[1])
    ]
    return _table_of(read, schema, False, len(values))


def _read_objects(
    values: NDArray[Any], name: str, known: Column | None, new_levels: bool
) -> tuple[Column, NDArray[Any]]:
    """A column of Python objects: all numbers, or all strings, with None where missing."""
    present = [value for value in values if not is_missing(value)]
    if all(isinstance(value, Real | np.bool_) for value in present):
        _check_kind(name, "numeric", known)
        kind: Any = "boolean" if all(isinstance(v, bool | np.bool_) for v in present) else "numeric"
        numbers = np.array([np.nan if is_missing(v) else v for v in values], dtype=np.float64)
        return Column(name, kind), numbers
    if any(isinstance(value, complex | np.complexfloating) for value in present):
        raise _complex_error()
    if all(isinstance(value, str) for value in present):
        _check_kind(name, "categorical", known)
        before = () if known is None else known.levels
        grows = known is None or new_levels
        levels = _extended(before, set(present)) if grows else before
        place = {level: code for code, level in enumerate(levels)}
        codes = [place.get(v, UNSEEN) if isinstance(v, str) else MISSING for v in values]
        return Column(name, "categorical", levels), np.array(codes, dtype=np.int32)
    kinds = sorted({type(value).__name__ for value in present})
    raise ColumnTypeError(
        f"Column '{name}' mixes values of type {', '.join(kinds)}; each argument must be a string "
        "or a real number, and of one kind.",
        "Make the column all numbers or all strings.",
    )
