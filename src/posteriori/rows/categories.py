"""One column of a data frame, or of Python objects, as numbers or as codes of levels."""

import re
import sys
from dataclasses import replace
from datetime import date, time, timedelta
from decimal import Decimal
from importlib import import_module
from itertools import filterfalse
from numbers import Real
from typing import Any, NamedTuple

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from posteriori.errors import ColumnTypeError, IdentifierColumnError
from posteriori.rows.block import MISSING, UNSEEN
from posteriori.rows.schema import Column, Kind, UnseenLevel, merge_columns, order_levels

_FEW_ROWS = 1000
"""Text of no more rows is encoded in Python, which is faster than to call a library."""

_IDENTIFIER_ROWS, _IDENTIFIER_SHARE = 100, 0.9
"""Text with more rows than this, and a larger share of distinct values, is an identifier."""

_MANY_NUMBERS = 10
"""Text with so many different numbers in it, and few other words, is a column of numbers."""

_TEXT_DATE = re.compile(r"(\d{4}([-/.])\d\d?\2\d\d?|\d\d?([-/.])\d\d?\3\d{4})([T ]\d\d?:\d\d.*)?")

LEVELS = (nw.String, nw.Categorical, nw.Enum)
"""Types of columns that have levels."""

Values = NDArray[Any]
"""Entries of a column: numbers or codes of levels."""


def is_missing(value: object) -> bool:
    """Whether a Python object is a missing value: None, NaN, NaT or pandas.NA."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas.NA does not say whether it equals itself
        return True
    except ValueError:  # an array
        return False


def as_series(values: Any) -> "nw.Series[Any] | None":
    """A column of a data frame library, also without its frame; None for anything else."""
    if type(values) in (np.ndarray, list):
        return None
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(values, pandas.Categorical | pandas.CategoricalIndex):
        values = pandas.Series(values)
    if pandas is not None and isinstance(values, pandas.Series) and values.dtype == object:
        return None  # narwhals would inspect every object to find its type
    if hasattr(values, "dictionary_encode") and not hasattr(values, "chunks"):
        values = import_module("pyarrow").chunked_array([values])  # a single pyarrow array
    found = nw.from_native(values, series_only=True, pass_through=True)
    return found if isinstance(found, nw.Series) else None


class Dictionary(NamedTuple):
    """Distinct values, and for each row the index of its value, -1 where it is missing.

    `declared` says that the type of the column lists the values in order; some may then not occur.
    """

    values: list[Any]
    codes: Values
    declared: bool = False


def dictionary_of(column: Any) -> Dictionary:
    """An array of Python objects, or a narwhals series of text or of a categorical type.

    >>> dictionary_of(np.array(["b", None, "a", "b"], dtype=object))
    Dictionary(values=['b', 'a'], codes=array([ 0, -1,  1,  0]), declared=False)
    """
    is_objects = isinstance(column, np.ndarray)
    native: Any = column if is_objects else column.to_native()
    library = "pandas" if is_objects else column.implementation.value
    text = (nw.String, nw.Categorical) if library == "polars" else (nw.String,)
    is_text = is_objects or column.dtype in text
    if is_text and (len(column) <= _FEW_ROWS or (is_objects and "pandas" not in sys.modules)):
        place: dict[Any, int] = {}
        entries = column.tolist() if is_objects else column.to_list()
        codes = [MISSING if is_missing(v) else place.setdefault(v, len(place)) for v in entries]
        return Dictionary(list(place), np.array(codes, dtype=np.intp))
    if library == "polars":
        if is_text:
            polars = import_module("polars")
            values = native.drop_nulls().unique().cast(polars.String)
            native = native.cast(polars.Enum(values))
        codes = native.to_physical().cast(int).fill_null(MISSING).to_numpy()
        return Dictionary(native.dtype.categories.to_list(), codes, not is_text)
    if library == "pandas" and not str(native.dtype).startswith("dictionary"):
        if hasattr(native, "cat"):
            return Dictionary(native.cat.categories.tolist(), native.cat.codes.to_numpy(), True)
        codes, values = import_module("pandas").factorize(native)
        return Dictionary(values.tolist(), codes)
    array = column.to_arrow()
    ordered = getattr(array.type, "ordered", False)
    whole = array.combine_chunks() if hasattr(array, "combine_chunks") else array
    whole = whole if hasattr(whole, "dictionary") else whole.dictionary_encode()
    codes = whole.indices.cast("int64").fill_null(MISSING).to_numpy(zero_copy_only=False)
    return Dictionary(whole.dictionary.to_pylist(), codes, ordered)


def read_column(
    entries: Any, name: str, known: Column | None, new_levels: bool
) -> tuple[Column, Values]:
    """A narwhals series or an array of Python objects, and its numbers or codes of levels.

    `known` is the column of the fit. A column without a value has the kind that it had there.
    """
    is_objects = isinstance(entries, np.ndarray) or entries.dtype == nw.Object
    kind, found = (of_objects if is_objects else _of_series)(entries, name)
    was = kind if known is None else known.kind
    if isinstance(found, Dictionary):
        names = [str(value) for value in found.values]
        present = np.bincount(found.codes.astype(np.intp) + 1, minlength=len(names) + 1)[1:] > 0
        is_empty = not present.any()
    else:
        is_empty = was == "categorical" and bool(np.isnan(found).all())
    if is_empty and known is not None and was == "categorical":
        return known, np.full(len(entries), MISSING, dtype=np.int32)
    if is_empty:
        return Column(name, "numeric" if known is None else was), np.full(len(entries), np.nan)
    if (kind == "categorical") != (was == "categorical"):
        raise ColumnTypeError(
            f"Column '{name}' is {kind} but was {was} in the fit.",
            f"Pass it as the same type as in the fit; of CSV files, scan(..., dtypes={{{name!r}: "
            "'string'}) reads text.",
        )
    if not isinstance(found, Dictionary):
        return Column(name, kind), found
    declared = tuple(dict.fromkeys(names)) if found.declared else ()
    occur = {level for level, here in zip(names, present, strict=True) if here}
    column = Column(name, "categorical", order_levels(occur, declared), declared)
    if known is not None:
        column = merge_columns(known, column) if new_levels else known
    if column.levels == tuple(names):
        return column, found.codes
    place = {level: code for code, level in enumerate(column.levels)}
    new = [*(place.get(level, UNSEEN) for level in names), MISSING]
    codes = np.array(new, dtype=np.int32)[found.codes]
    if not occur <= place.keys():
        row = int(np.argmax(codes == UNSEEN))
        column = replace(column, unseen=UnseenLevel(row, names[found.codes[row]]))
    return column, codes


def _of_series(series: "nw.Series[Any]", name: str) -> tuple[Kind, Values | Dictionary]:
    """The kind of a column of a data frame, and its numbers or levels."""
    dtype = series.dtype
    if dtype in LEVELS:
        return "categorical", dictionary_of(series)
    if dtype.is_numeric() or dtype == nw.Boolean:
        values = None if dtype.is_decimal() else series.to_numpy()
        if values is None or values.dtype.kind not in "fiub":  # where entries are missing
            values = series.cast(nw.Float64).to_numpy()
        return "boolean" if dtype == nw.Boolean else "numeric", values
    if series.null_count() == len(series):
        return "numeric", np.full(len(series), np.nan)
    native = series.to_native()
    native = getattr(native, "type", getattr(native, "dtype", dtype))
    if dtype.is_temporal():
        raise date_error(name, "a duration" if dtype == nw.Duration else "a date")
    raise ColumnTypeError(
        f"Column '{name}' has the type {native}, which is neither numeric, boolean nor text.",
        "Convert it to numbers or to text, or drop it.",
    )


def of_objects(entries: Any, name: str) -> tuple[Kind, Values | Dictionary]:
    """The same of Python objects: all numbers, or all strings, with None where missing."""
    values = entries if isinstance(entries, np.ndarray) else entries.to_numpy()
    present = [value for value in values.tolist() if not is_missing(value)]
    if present and all(isinstance(value, str) for value in present):
        return "categorical", dictionary_of(values)
    if all(isinstance(value, Real | np.bool_ | Decimal) for value in present):
        logical = present and all(isinstance(value, bool | np.bool_) for value in present)
        kind: Kind = "boolean" if logical else "numeric"
        numbers = [np.nan if is_missing(value) else float(value) for value in values.tolist()]
        return kind, np.array(numbers)
    if all(isinstance(value, date | time | timedelta) for value in present):
        raise date_error(name, "a duration" if isinstance(present[0], timedelta) else "a date")
    kinds = sorted({type(value).__name__ for value in present})
    raise ColumnTypeError(
        f"Column '{name}' {'mixes' if len(kinds) > 1 else 'has'} values of type "
        f"{', '.join(kinds)}; each argument must be a string or a real number, and of one kind.",
        "Make the column all numbers or all strings.",
    )


def declared_values(column: Any) -> list[Any] | None:
    """The categories that the type of a column declares, in order; None if it declares none.

    >>> import pandas
    >>> declared_values(pandas.Categorical(["case"], ["control", "case"]))
    ['control', 'case']
    """
    series = column if isinstance(column, nw.Series) else as_series(column)
    if series is None or series.dtype not in (nw.Categorical, nw.Enum):
        return None
    found = dictionary_of(series)
    return found.values if found.declared else None


def check_text(column: Column, n_present: int, is_code: bool = False) -> None:
    """An error for text that cannot be a factor: dates, numbers and identifiers.

    Most of the levels, and at least `_MANY_NUMBERS`, are numbers: an error unless they are codes.
    In an identifier nearly every one of the `n_present` entries differs from all others. Levels
    that are declared, by a categorical type or by the user, are not checked.
    """
    levels = column.levels
    if column.declared or not levels:
        return
    if all(_TEXT_DATE.fullmatch(level.strip()) for level in levels[:5]):
        raise date_error(column.name, "text that looks like dates")
    words = list(filterfalse(_is_number_text, levels))
    n = len(levels) - len(words)
    if words and n >= max(_MANY_NUMBERS, len(words)) and not is_code:
        raise ColumnTypeError(
            f"Column '{column.name}' is text, but {n:,} of its {len(levels):,} different values "
            f"are numbers; the first that is not is {words[0]!r}.",
            "Correct it or leave it empty, and make the column numbers; if the values are codes, "
            "say so by a categorical type, or by categories or dtypes of scan.",
        )
    if n_present > _IDENTIFIER_ROWS and len(levels) > _IDENTIFIER_SHARE * n_present:
        raise IdentifierColumnError(
            f"Column '{column.name}' is text with {len(levels):,} different values in "
            f"{n_present:,} rows, as an identifier has.",
            "Drop the column, or group its values into fewer levels.",
        )


def _is_number_text(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def date_error(name: str, what: str) -> ColumnTypeError:
    """The error for a column of dates or durations."""
    unit = "days" if what == "a duration" else "days since a reference date"
    return ColumnTypeError(
        f"Column '{name}' is {what}.", f"Convert it to a number (for example {unit}) or drop it."
    )
