"""One column of a data frame, or of Python objects, as numbers or as codes of levels."""

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, time, timedelta
from decimal import Decimal
from importlib import import_module
from numbers import Real
from typing import Any, NamedTuple

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from posteriori.errors import ColumnTypeError, IdentifierColumnError, ScaleError
from posteriori.rows.arrow import dictionary_of as arrow_dictionary
from posteriori.rows.block import MISSING, UNSEEN
from posteriori.rows.schema import Column, Kind, Strange, merge_columns, order_levels

_FEW_ROWS = 1000
"""Text of no more rows is encoded in Python, which is faster than to call a library."""

_IDENTIFIER_ROWS, _IDENTIFIER_SHARE = 100, 0.9
"""Text with more rows than this, and a larger share of distinct values, is an identifier."""

_TEXT_DATE = re.compile(r"(\d{4}([-/.])\d\d?\2\d\d?|\d\d?([-/.])\d\d?\3\d{4})([T ]\d\d?:\d\d.*)?")

Values = NDArray[Any]
"""Entries of a column: numbers, or codes of levels."""


def is_missing(value: object) -> bool:
    """Whether a Python object stands for no value: None, NaN, NaT or pandas.NA."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas.NA does not say whether it equals itself
        return True


def as_series(values: Any) -> "nw.Series[Any] | None":
    """A column of a data frame library, also without its frame; None for anything else."""
    if type(values) in (np.ndarray, list):
        return None
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(values, pandas.Categorical | pandas.CategoricalIndex):
        values = pandas.Series(values)
    if pandas is not None and isinstance(values, pandas.Series) and values.dtype == object:
        return None  # narwhals would look at every object to find its type
    if hasattr(values, "dictionary_encode") and not hasattr(values, "chunks"):
        values = import_module("pyarrow").chunked_array([values])  # a single pyarrow array
    found = nw.from_native(values, series_only=True, pass_through=True)
    return found if isinstance(found, nw.Series) else None


def has_levels(series: "nw.Series[Any]") -> bool:
    """Whether a column has levels: text, or a categorical type."""
    return series.dtype in (nw.String, nw.Categorical, nw.Enum)


class Dictionary(NamedTuple):
    """Distinct values, and per row the place of its own among them, -1 where it is missing.

    `declared` says that the type of the column lists the values in an order of its own; some may
    then be in no row.
    """

    values: list[Any]
    codes: Values
    declared: bool = False


def dictionary_of(series: "nw.Series[Any]") -> Dictionary:
    """A column of text or of a categorical type, encoded by the library that it is of."""
    native, is_polars = series.to_native(), series.implementation.is_polars()
    is_text = series.dtype == nw.String or (is_polars and series.dtype == nw.Categorical)
    if is_text and len(series) <= _FEW_ROWS:
        return encode_list(series.to_list())
    if series.implementation.is_pandas() and not _is_arrow_dictionary(native):
        if hasattr(native, "cat"):
            return Dictionary(native.cat.categories.tolist(), native.cat.codes.to_numpy(), True)
        codes, values = native.factorize()
        return Dictionary(values.tolist(), codes)
    if is_polars:
        if is_text:
            values = series.drop_nulls().unique().cast(nw.String).to_list()
            native = native.cast(import_module("polars").Enum(values))
        codes = native.to_physical().cast(int).fill_null(MISSING).to_numpy()
        return Dictionary(native.dtype.categories.to_list(), codes, not is_text)
    array = series.to_arrow()
    return Dictionary(*arrow_dictionary(array), getattr(array.type, "ordered", False))


def _is_arrow_dictionary(native: Any) -> bool:
    return str(native.dtype).startswith("dictionary")


def encode_list(values: Sequence[Any]) -> Dictionary:
    """The same for a list of Python objects.

    >>> encode_list(["b", None, "a", "b"])
    Dictionary(values=['b', 'a'], codes=array([ 0, -1,  1,  0]), declared=False)
    """
    place: dict[Any, int] = {}
    codes = [MISSING if is_missing(v) else place.setdefault(v, len(place)) for v in values]
    return Dictionary(list(place), np.array(codes))


def read_column(
    series: "nw.Series[Any]", name: str, known: Column | None, new_levels: bool
) -> tuple[Column, Values]:
    """A column of a data frame, and its numbers or codes; `known` is the column of the fit."""
    dtype = series.dtype
    kind = _kind_of(series)
    if dtype == nw.Object:
        return read_objects(series.to_numpy(), name, known, new_levels)
    if (kind is None or not _fits(kind, known)) and series.null_count() == len(series):
        return _all_missing(len(series), name, known)
    if kind == "categorical":
        return _read_levels(dictionary_of(series), name, known, new_levels)
    if kind is not None:
        _check_kind(name, kind, known)
        return Column(name, kind), _numbers(series)
    native = getattr(series.to_native(), "dtype", dtype)
    if getattr(native, "kind", "") == "c":
        raise complex_error(name)
    if dtype.is_temporal():
        raise date_error(name, "a duration" if dtype == nw.Duration else "a date")
    raise ColumnTypeError(
        f"Column '{name}' has the type {native}, which is neither numeric, boolean nor text.",
        "Convert it to numbers or to text, or drop it.",
    )


def _kind_of(series: "nw.Series[Any]") -> Kind | None:
    dtype = series.dtype
    if dtype.is_numeric():
        return "numeric"
    if dtype == nw.Boolean:
        return "boolean"
    return "categorical" if has_levels(series) else None


def _all_missing(n: int, name: str, known: Column | None) -> tuple[Column, Values]:
    """A column without a value is of the kind it had in the fit, or numeric."""
    if known is not None and known.kind == "categorical":
        return known, np.full(n, MISSING, dtype=np.int32)
    return Column(name, "numeric" if known is None else known.kind), np.full(n, np.nan)


def _numbers(series: "nw.Series[Any]") -> Values:
    """A view where there can be one; doubles with NaN where entries are missing."""
    if not series.dtype.is_decimal():
        values = series.to_numpy()
        if values.dtype.kind in "fiub":
            return values
    return series.cast(nw.Float64).to_numpy()


def _read_levels(
    found: Dictionary, name: str, known: Column | None, new_levels: bool
) -> tuple[Column, Values]:
    """Codes of the levels that occur, or of those of the fit."""
    codes, names = found.codes, [str(value) for value in found.values]
    present = np.bincount(codes.astype(np.intp) + 1, minlength=len(names) + 1)[1:] > 0
    if not present.any():
        return _all_missing(len(codes), name, known)
    _check_kind(name, "categorical", known)
    declared = tuple(dict.fromkeys(names)) if found.declared else ()
    occur = {level for level, here in zip(names, present, strict=True) if here}
    column = Column(name, "categorical", order_levels(occur, declared), declared)
    if known is not None:
        column = merge_columns(known, column) if new_levels else known
    if column.levels == tuple(names):
        return column, codes
    place = {level: code for code, level in enumerate(column.levels)}
    new = np.array([*(place.get(level, UNSEEN) for level in names), MISSING], dtype=np.int32)[codes]
    return _with_strange(column, new, lambda row: names[codes[row]]), new


def _with_strange(column: Column, codes: Values, level_of: Callable[[int], Any]) -> Column:
    """The column with the first of its levels that was not in the fit, if there is one."""
    unseen = codes == UNSEEN
    if not unseen.any():
        return column
    row = int(unseen.argmax())
    return replace(column, strange=Strange(row, level_of(row)))


def declared_levels(series: "nw.Series[Any]") -> tuple[str, ...]:
    """The categories that the type of a column declares, in order; none for text."""
    if series.dtype not in (nw.Categorical, nw.Enum):
        return ()
    found = dictionary_of(series)
    return tuple(map(str, found.values)) if found.declared else ()


def check_text(column: Column, n_present: int) -> None:
    """An error for text to be fitted that is no factor: dates, and identifiers.

    An identifier has a value of its own in nearly every row, of the `n_present` that have one.
    Levels that are declared, by a categorical type or by the user, are not checked.
    """
    levels = column.levels
    if column.declared or not levels:
        return
    if all(_TEXT_DATE.fullmatch(level.strip()) for level in levels[:5]):
        raise date_error(column.name, "text that looks like dates")
    if n_present > _IDENTIFIER_ROWS and len(levels) > _IDENTIFIER_SHARE * n_present:
        raise IdentifierColumnError(
            f"Column '{column.name}' is text with {len(levels):,} different values in "
            f"{n_present:,} rows, as an identifier has.",
            "Drop the column, or group its values into fewer levels.",
        )


def date_error(name: str, what: str) -> ColumnTypeError:
    unit = "days" if what == "a duration" else "days since a reference date"
    return ColumnTypeError(
        f"Column '{name}' is {what}.", f"Convert it to a number (for example {unit}) or drop it."
    )


def _fits(kind: Kind, known: Column | None) -> bool:
    return known is None or (kind == "categorical") == (known.kind == "categorical")


def _check_kind(name: str, kind: Kind, known: Column | None) -> None:
    if known is not None and not _fits(kind, known):
        raise ColumnTypeError(
            f"Column '{name}' is {kind} but was {known.kind} in the fit.",
            "Pass it as the same type as in the fit.",
        )


def read_objects(
    values: Values, name: str, known: Column | None, new_levels: bool
) -> tuple[Column, Values]:
    """A column of Python objects: all numbers, or all strings, with None where missing."""
    entries = values.tolist()
    present = [value for value in entries if not is_missing(value)]
    if not present:
        return _all_missing(len(values), name, known)
    if all(isinstance(value, str) for value in present):
        return _read_levels(encode_list(entries), name, known, new_levels)
    if all(isinstance(value, Real | np.bool_ | Decimal) for value in present):
        logical = all(isinstance(value, bool | np.bool_) for value in present)
        kind: Kind = "boolean" if logical else "numeric"
        _check_kind(name, kind, known)
        return Column(name, kind), _as_doubles(entries, name)
    if any(isinstance(value, complex | np.complexfloating) for value in present):
        raise complex_error(name)
    if all(isinstance(value, date | time | timedelta) for value in present):
        raise date_error(name, "a duration" if isinstance(present[0], timedelta) else "a date")
    kinds = sorted({type(value).__name__ for value in present})
    raise ColumnTypeError(
        f"Column '{name}' {'mixes' if len(kinds) > 1 else 'has'} values of type "
        f"{', '.join(kinds)}; each argument must be a string or a real number, and of one kind.",
        "Make the column all numbers or all strings.",
    )


def _as_doubles(values: Sequence[Any], name: str) -> NDArray[np.float64]:
    try:
        return np.array([np.nan if is_missing(v) else float(v) for v in values])
    except OverflowError as error:
        raise ScaleError(
            f"Column '{name}' has a whole number beyond the largest double, 1.8e308.",
            "Divide the column by a power of ten.",
        ) from error


def complex_error(name: str | None = None) -> ColumnTypeError:
    """Complex numbers, in whatever they come."""
    where = "" if name is None else f" (column '{name}')"
    return ColumnTypeError(
        f"Complex data not supported{where}.",
        "Pass the real and the imaginary parts as two columns.",
    )
