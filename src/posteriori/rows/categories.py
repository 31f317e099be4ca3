"""One column of a data frame, or of Python objects, as numbers or as codes of levels."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from numbers import Real
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from posteriori.errors import ColumnTypeError, ScaleError
from posteriori.rows.block import MISSING, UNSEEN
from posteriori.rows.schema import Column, Kind, Strange, levels_of_both
from posteriori.rows.target import is_missing


def read_column(
    series: "nw.Series[Any]", name: str, known: Column | None, new_levels: bool
) -> tuple[Column, NDArray[Any]]:
    """A column of a data frame, and its numbers or codes; `known` is what the fit saw."""
    dtype = series.dtype
    if series.null_count() == len(series):
        return _all_missing(len(series), name, known)
    if dtype == nw.Object:
        return read_objects(series.to_numpy(), name, known, new_levels)
    if dtype.is_numeric() or dtype == nw.Boolean:
        kind: Kind = "boolean" if dtype == nw.Boolean else "numeric"
        _check_kind(name, kind, known)
        return Column(name, kind), _numbers(series)
    if dtype in (nw.Categorical, nw.Enum, nw.String):
        _check_kind(name, "categorical", known)
        return _read_levels(series, name, known, new_levels)
    native = getattr(series.to_native(), "dtype", dtype)
    if getattr(native, "kind", "") == "c":
        raise complex_error(name)
    raise ColumnTypeError(
        f"Column '{name}' holds {native}, which is neither a number nor a level.",
        "Turn it into numbers (for dates: days since a fixed date) or into strings.",
    )


def _all_missing(n: int, name: str, known: Column | None) -> tuple[Column, NDArray[Any]]:
    """A column without a value is of the kind it had in the fit, or numeric."""
    if known is not None and known.kind == "categorical":
        return known, np.full(n, MISSING, dtype=np.int32)
    return Column(name, "numeric" if known is None else known.kind), np.full(n, np.nan)


def _numbers(series: "nw.Series[Any]") -> NDArray[Any]:
    """A view where there can be one; doubles with NaN where entries are missing."""
    if not series.dtype.is_decimal() and (series.dtype.is_float() or not series.null_count()):
        values = series.to_numpy()
        if values.dtype.kind in "fiub":
            return values
    return series.cast(nw.Float64).to_numpy()


def _read_levels(
    series: "nw.Series[Any]", name: str, known: Column | None, new_levels: bool
) -> tuple[Column, NDArray[Any]]:
    """Codes of the levels seen: in declared order for categories, else sorted."""
    stored = _stored_codes(series)
    if stored is not None:
        return _recode(*stored, name, known, new_levels)
    text = _as_text(series)
    seen = set(text.drop_nulls().unique().to_list())
    if known is not None:
        levels = levels_of_both(known.levels, seen) if new_levels else known.levels
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
    places = text.replace_strict(old, new, return_dtype=nw.Int64).fill_null(MISSING)
    codes = places.to_numpy().astype(np.int32)
    return _with_strange(Column(name, "categorical", levels), codes, lambda row: text[row]), codes


def _with_strange(column: Column, codes: NDArray[Any], level_of: Callable[[int], Any]) -> Column:
    """The column with the first of its levels that is not known, if there is one."""
    unseen = codes == UNSEEN
    if not unseen.any():
        return column
    row = int(unseen.argmax())
    return replace(column, strange=Strange(row, level_of(row)))


def _stored_codes(series: "nw.Series[Any]") -> tuple[NDArray[Any], list[str]] | None:
    """The codes that a categorical column holds (-1 where missing), and what they stand for."""
    native = series.to_native()
    if series.dtype == nw.Enum and series.implementation.is_polars():
        physical = nw.from_native(native.to_physical(), series_only=True)
        codes = physical.cast(nw.Int64).fill_null(MISSING).to_numpy()
        names = native.dtype.categories
    elif series.implementation.is_pandas() and hasattr(native, "cat"):
        try:
            codes, names = native.cat.codes.to_numpy(), native.cat.categories
        except AttributeError:  # pandas does not give the codes of an Arrow dictionary
            return None
    else:
        return None
    texts = [str(name) for name in names.to_list()]
    return None if len(set(texts)) < len(texts) else (codes, texts)


def _recode(
    codes: NDArray[Any], names: list[str], name: str, known: Column | None, new_levels: bool
) -> tuple[Column, NDArray[Any]]:
    """Stored codes as codes of the levels that occur, or of those of the fit."""
    occurs = np.bincount(codes.astype(np.intp) + 1, minlength=len(names) + 1)[1:] > 0
    seen = [level for level, here in zip(names, occurs, strict=True) if here]
    levels = tuple(seen)
    if known is not None:
        levels = levels_of_both(known.levels, seen) if new_levels else known.levels
    column = Column(name, "categorical", levels)
    if levels == tuple(names):
        return column, codes
    place = {level: code for code, level in enumerate(levels)}
    kind = np.min_scalar_type(-len(levels) - 2)
    new = np.array([*(place.get(n, UNSEEN) for n in names), MISSING], dtype=kind)[codes]
    return _with_strange(column, new, lambda row: names[codes[row]]), new


def declared_levels(series: "nw.Series[Any]") -> tuple[str, ...]:
    """The levels that a column declares, in order; none for text, and where it declares none."""
    is_ordered = series.dtype == nw.Enum or (
        series.dtype == nw.Categorical and series.implementation.is_pandas()
    )
    return tuple(map(str, _declared(series))) if is_ordered else ()


def _declared(series: "nw.Series[Any]") -> list[Any]:
    """The categories in the order declared, or sorted where they come as they first appeared."""
    if series.dtype == nw.Enum or series.implementation.is_pandas():
        try:
            return series.cat.get_categories().to_list()
        except AttributeError:  # pandas cannot list the levels of an Arrow dictionary
            pass
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


def read_objects(
    values: NDArray[Any], name: str, known: Column | None, new_levels: bool
) -> tuple[Column, NDArray[Any]]:
    """A column of Python objects: all numbers, or all strings, with None where missing."""
    present = [value for value in values if not is_missing(value)]
    if not present:
        return _all_missing(len(values), name, known)
    if all(isinstance(value, Real | np.bool_ | Decimal) for value in present):
        _check_kind(name, "numeric", known)
        logical = bool(present) and all(isinstance(v, bool | np.bool_) for v in present)
        return Column(name, "boolean" if logical else "numeric"), _as_doubles(values, name)
    if any(isinstance(value, complex | np.complexfloating) for value in present):
        raise complex_error(name)
    if all(isinstance(value, str) for value in present):
        _check_kind(name, "categorical", known)
        before = () if known is None else known.levels
        grows = known is None or new_levels
        levels = levels_of_both(before, set(present)) if grows else before
        place = {level: code for code, level in enumerate(levels)}
        codes = np.array(
            [place.get(v, UNSEEN) if isinstance(v, str) else MISSING for v in values],
            dtype=np.int32,
        )
        column = Column(name, "categorical", levels)
        return _with_strange(column, codes, lambda row: str(values[row])), codes
    kinds = sorted({type(value).__name__ for value in present})
    raise ColumnTypeError(
        f"Column '{name}' {'mixes' if len(kinds) > 1 else 'holds'} values of type "
        f"{', '.join(kinds)}; each argument must be a string "
        "or a real number, and of one kind.",
        "Make the column all numbers or all strings.",
    )


def _as_doubles(values: NDArray[Any], name: str) -> NDArray[np.float64]:
    try:
        return np.array([np.nan if is_missing(v) else float(v) for v in values])
    except OverflowError as error:
        raise ScaleError(
            f"Column '{name}' holds a whole number that no double can hold.",
            "Divide the column by a power of ten.",
        ) from error


def complex_error(name: str | None = None) -> ColumnTypeError:
    """Complex numbers, in whatever they come."""
    where = "" if name is None else f" (column '{name}')"
    return ColumnTypeError(
        f"Complex data not supported{where}.",
        "Pass the real and the imaginary parts as two columns.",
    )
