"""A number for each row that depends on what it holds, and not on where it stands.

Each value v is 64 bits: a number or truth value is its double (of decimals the nearest, where casts
may be a bit off), what is missing is the number NaN, and anything else a hash of its text. With an
odd constant c_j for each column, the number of a row is mix(Σ_j c_j (v_j ^ v_j >> 32)), modulo
2^64: the upper half of a double, where whole numbers have all their digits, is taken along into
the lower, from where the product carries it to all bits. So it does not matter which table holds
the values, and a zero, whose bits are all zero, adds nothing.
"""

from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache
from hashlib import blake2b
from numbers import Real
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from posteriori.rows.arrow import dictionary_of, is_table, plain_numbers
from posteriori.rows.features import as_frame
from posteriori.rows.labels import as_array, is_missing
from posteriori.typing import Array

Bits = NDArray[np.uint64]

_CELLS = 2**15
"""Values that are mixed at a time, so that they stay in the cache."""

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_HALF, _DROPPED = np.uint64(32), np.uint64(11)
_SHIFTS = np.uint64(30), np.uint64(27), np.uint64(31)


def row_digests(X: Any, key: int = 0) -> Bits:
    """A number for each row of a table: the same for equal rows, and as good as random else.

    Another `key` gives other numbers.

    >>> first, second, third = row_digests(np.array([[1.0, 0.0], [2.0, 5.0], [1.0, -0.0]]))
    >>> bool(first == third), bool(first == second)
    (True, False)
    """
    if is_table(X):
        return _of_columns([_arrow_bits(column) for column in X.columns], key)
    frame = as_frame(X)
    if frame is not None:
        return _of_columns([_series_bits(frame[:, j]) for j in range(frame.shape[1])], key)
    if sparse.issparse(X):
        return _of_sparse(X, key)
    values = as_array(X)
    if values.dtype.kind in "fiub":
        return _of_numbers(values, key)
    return _of_columns([_object_bits(column) for column in values.T.tolist()], key)


def row_lots(X: Any, key: int = 0) -> Array:
    """The same with fewer digits: whole numbers below 2^53, which a double holds.

    >>> row_lots(np.array([[1.0], [2.0], [1.0]]))
    array([2.28686768e+15, 2.99820291e+15, 2.28686768e+15])
    """
    return (row_digests(X, key) >> _DROPPED).astype(np.float64)


def _of_columns(columns: Sequence[Bits], key: int) -> Bits:
    found = np.zeros(len(columns[0]), dtype=np.uint64)
    for bits, constant in zip(columns, _constants(len(columns), key), strict=True):
        for low in range(0, len(bits), _CELLS):
            part = slice(low, low + _CELLS)
            found[part] += _spread(bits[part]) * constant
    return _mix(found)


def _of_numbers(values: NDArray[Any], key: int) -> Bits:
    n, d = values.shape
    constants, rows = _constants(d, key), max(1, _CELLS // d)
    found = np.empty(n, dtype=np.uint64)
    for i in range(0, n, rows):
        found[i : i + rows] = _spread(_number_bits(values[i : i + rows])) @ constants
    return _mix(found)


def _of_sparse(X: Any, key: int) -> Bits:
    rows = sparse.csr_array(X, copy=True)
    rows.sum_duplicates()
    own = _spread(_number_bits(rows.data)) * _constants(rows.shape[1], key)[rows.indices]
    before = np.concatenate([np.zeros(1, np.uint64), np.cumsum(own, dtype=np.uint64)])
    return _mix(before[rows.indptr[1:]] - before[rows.indptr[:-1]])


def _spread(bits: Bits) -> Bits:
    return bits ^ (bits >> _HALF)


def _series_bits(series: "nw.Series[Any]") -> Bits:
    dtype = series.dtype
    if (dtype.is_numeric() and not dtype.is_decimal()) or dtype == nw.Boolean:
        return _number_bits(series.cast(nw.Float64).to_numpy())
    values = series.to_list()
    if not (dtype.is_decimal() or dtype in (nw.String, nw.Categorical, nw.Enum)):
        return _object_bits(values)
    place = {value: code for code, value in enumerate(dict.fromkeys(values))}
    return _object_bits(list(place))[np.fromiter(map(place.__getitem__, values), np.intp)]


def _arrow_bits(column: Any) -> Bits:
    """The same without detours, where these are numbers or levels."""
    numbers = plain_numbers(column)
    if numbers is not None:
        return _number_bits(numbers)
    series = nw.from_native(column, series_only=True)
    if not (series.dtype.is_decimal() or series.dtype in (nw.String, nw.Categorical)):
        return _series_bits(series)
    names, codes = dictionary_of(column)
    return _object_bits([*names, None])[codes]


def _number_bits(values: NDArray[Any]) -> Bits:
    """The doubles bit by bit, with one zero and one NaN."""
    doubles = np.add(values, 0.0, dtype=np.float64)  # makes -0.0 the 0.0 that it equals
    missing = np.isnan(doubles)
    if missing.any():
        doubles[missing] = np.nan
    return doubles.view(np.uint64)


def _object_bits(values: Sequence[Any]) -> Bits:
    numbers = [_as_number(value) for value in values]
    bits = _number_bits(np.array([np.nan if each is None else each for each in numbers]))
    for row, number in enumerate(numbers):
        if number is None:
            bits[row] = _text_bits(str(values[row]))
    return bits


def _as_number(value: object) -> float | None:
    """The value as a double, NaN where there is none; None if it is no number.

    >>> _as_number(True), _as_number(Decimal("0.5")), _as_number(None), _as_number("1")
    (1.0, 0.5, nan, None)
    """
    if isinstance(value, str):
        return None
    if is_missing(value):
        return float("nan")
    if not isinstance(value, Real | Decimal | np.bool_):
        return None
    try:
        return float(value)
    except OverflowError:  # a whole number beyond all doubles
        return None


@lru_cache(maxsize=2**14)
def _text_bits(text: str) -> int:
    hashed = blake2b(text.encode(errors="surrogatepass"), digest_size=8)
    return int.from_bytes(hashed.digest(), "little")


def _constants(n_columns: int, key: int) -> Bits:
    """An odd number for each column, by place and key."""
    places = np.arange(1, n_columns + 1, dtype=np.uint64) * _STEP
    return _mix(places + _mix(np.array([key], dtype=np.uint64))) | np.uint64(1)


def _mix(values: Bits) -> Bits:
    """The last step of SplitMix64 (Steele, Lea and Flood, 2014): every bit depends on all bits."""
    mixed = (values ^ (values >> _SHIFTS[0])) * _FACTORS[0]
    mixed = (mixed ^ (mixed >> _SHIFTS[1])) * _FACTORS[1]
    return mixed ^ (mixed >> _SHIFTS[2])
