"""A lot for each row: a number that depends on what it holds, and not on where it stands.

Each value is a double (of decimals the nearest, where casts may be a bit off); what is missing is
NaN, and a text some number that its hash gives. Of a value, r are the bits of the nearest single,
and s are 32 bits that depend on all of the double. With odd constants for each column, Σ_j a_j r_j
and Σ_j b_j s_j, modulo 2^32, stand for a row: the bits that lead its lot are mixed from the first
sum, and those behind from both. So what leads is the same in float32 and in doubles.
"""

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import lru_cache
from hashlib import blake2b
from math import ldexp
from numbers import Real
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from posteriori.rows.arrow import dictionary_of, is_table, plain_numbers
from posteriori.rows.categories import is_missing
from posteriori.rows.features import as_frame
from posteriori.rows.target import as_array
from posteriori.typing import Array

Bits = NDArray[np.uint64]
Words = NDArray[np.uint32]
Read = Callable[[NDArray[Any]], tuple[Words, ...]]

LAST = 23
"""Bits at the end of a lot that depend on more than float32 holds."""

_CELLS, _ROWS = 2**15, 2**12
"""Values that are summed, and sums that are mixed, at a time, so that they stay in the cache."""

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SHIFTS = np.uint64(30), np.uint64(27), np.uint64(31)
_HALF = np.uint64(32)
_DOWN = np.uint32(16), np.uint32(8)
_LEADING, _LAST = np.uint64(64 - (53 - LAST)), np.uint64(64 - LAST)


def row_lots(X: Any, key: int = 0) -> Array:
    """A lot for each row of a table, the same for equal rows, and as good as random else.

    These are whole numbers below 2^53, which a double holds. The last `LAST` bits tell apart
    what is equal in float32. Another `key` gives other lots.

    >>> first, second, third = row_lots(np.array([[0.1, 0.0], [2.0, 5.0], [0.1, -0.0]]))
    >>> bool(first == third), bool(first == second)
    (True, False)
    """
    sums = _sums(X, key, _of_singles_and_doubles)
    lots = _leading(sums[0]) * 2**LAST
    for low in range(0, len(lots), _ROWS):
        singles, doubles = sums[:, low : low + _ROWS].astype(np.uint64)
        lots[low : low + _ROWS] += _mix(singles | doubles << _HALF) >> _LAST
    return lots


def leading_bits(X: Any, key: int = 0) -> Array:
    """The bits that lead each lot, in less time: a whole number below 2^30.

    >>> X = np.array([[0.1, 0.0], [2.0, 5.0]])
    >>> bool((leading_bits(X) == row_lots(X) // 2**LAST).all())
    True
    """
    return _leading(_sums(X, key, _of_singles)[0])


def _leading(sums: Words) -> Array:
    found = np.empty(len(sums))
    for low in range(0, len(sums), _ROWS):
        found[low : low + _ROWS] = _mix(sums[low : low + _ROWS].astype(np.uint64)) >> _LEADING
    return found


def _sums(X: Any, key: int, read: Read) -> Words:
    """The sum over the columns of each of the words that `read` gives for a value, (words, n)."""
    if is_table(X):
        return _of_columns([_arrow_doubles(column) for column in X.columns], key, read)
    frame = as_frame(X)
    if frame is not None:
        columns = [_series_doubles(frame[:, j]) for j in range(frame.shape[1])]
        return _of_columns(columns, key, read)
    if sparse.issparse(X):
        return _of_sparse(X, key, read)
    values = as_array(X)
    if values.ndim != 2:  # such as texts, one a row
        values = values.reshape(len(values), -1)
    if values.dtype.kind in "fiub":
        return _of_numbers(values, key, read)
    return _of_columns([_object_doubles(column) for column in values.T.tolist()], key, read)


def _of_columns(columns: Sequence[Array], key: int, read: Read) -> Words:
    found = np.zeros((2, len(columns[0])), dtype=np.uint32)
    for doubles, constants in zip(columns, _constants(len(columns), key).T, strict=True):
        for low in range(0, len(doubles), _CELLS):
            part = slice(low, low + _CELLS)
            for own, words, constant in zip(found, read(doubles[part]), constants, strict=False):
                own[part] += words * constant
    return found


def _of_numbers(values: NDArray[Any], key: int, read: Read) -> Words:
    n, d = values.shape
    constants, rows = _constants(d, key), max(1, _CELLS // max(d, 1))
    found = np.empty((2, n), dtype=np.uint32)
    for low in range(0, n, rows):
        part = slice(low, low + rows)
        for own, words, constant in zip(found, read(values[part]), constants, strict=False):
            np.einsum("ij,j->i", words, constant, out=own[part])
    return found


def _of_sparse(X: Any, key: int, read: Read) -> Words:
    rows = sparse.csr_array(X, copy=True)
    rows.sum_duplicates()
    found = np.empty((2, rows.shape[0]), dtype=np.uint32)
    before = np.zeros(len(rows.data) + 1, dtype=np.uint32)
    constants = _constants(rows.shape[1], key)
    for own, words, constant in zip(found, read(rows.data), constants, strict=False):
        np.cumsum(words * constant[rows.indices], out=before[1:])
        own[:] = before[rows.indptr[1:]] - before[rows.indptr[:-1]]
    return found


def _of_singles(values: NDArray[Any]) -> tuple[Words]:
    """The bits r of the single nearest to each number.

    Those of a zero, of which there is one, are all zero, and there is one NaN. Leading bits, in
    which small whole numbers have all their digits, are taken along into those behind.
    """
    with np.errstate(all="ignore"):
        singles = np.asarray(values, dtype=np.float64, order="C").astype(np.float32)
        singles += np.float32(0.0)  # makes -0.0 the 0.0 that it equals
    missing = np.isnan(singles)
    if missing.any():
        singles[missing] = np.nan
    r = singles.view(np.uint32)
    for shift in _DOWN:
        r ^= r >> shift
    return (r,)


def _of_singles_and_doubles(values: NDArray[Any]) -> tuple[Words, Words]:
    """The same, and bits s of both halves of the double."""
    doubles = np.add(values, 0.0, dtype=np.float64, order="C")
    missing = np.isnan(doubles)
    if missing.any():
        doubles[missing] = np.nan
    (r,) = _of_singles(doubles)
    bits = doubles.view(np.uint64)
    bits ^= bits >> _HALF
    s = bits.astype(np.uint32)
    s ^= s >> _DOWN[0]
    s ^= r
    return r, s


def _series_doubles(series: "nw.Series[Any]") -> Array:
    dtype = series.dtype
    if (dtype.is_numeric() and not dtype.is_decimal()) or dtype == nw.Boolean:
        return series.cast(nw.Float64).to_numpy()
    values = series.to_list()
    if not (dtype.is_decimal() or dtype in (nw.String, nw.Categorical, nw.Enum)):
        return _object_doubles(values)
    place = {value: code for code, value in enumerate(dict.fromkeys(values))}
    return _object_doubles(list(place))[np.fromiter(map(place.__getitem__, values), np.intp)]


def _arrow_doubles(column: Any) -> Array:
    """The same without detours, where these are numbers or levels."""
    numbers = plain_numbers(column)
    if numbers is not None:
        return numbers
    series = nw.from_native(column, series_only=True)
    if not (series.dtype.is_decimal() or series.dtype in (nw.String, nw.Categorical)):
        return _series_doubles(series)
    names, codes = dictionary_of(column)
    return _object_doubles([*names, None])[codes]


def _object_doubles(values: Sequence[Any]) -> Array:
    numbers = zip(map(_as_number, values), values, strict=True)
    return np.array([_of_text(str(value)) if x is None else x for x, value in numbers])


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
def _of_text(text: str) -> float:
    """A number whose sign, digits and size between 2^-32 and 2^32 come from a hash."""
    hashed = blake2b(text.encode(errors="surrogatepass"), digest_size=8)
    bits = int.from_bytes(hashed.digest(), "little")
    size, digits = divmod(bits % 2**63, 2**57)
    value = ldexp(1 + digits / 2**57, size - 32)
    return -value if bits >= 2**63 else value


def _constants(n_columns: int, key: int) -> Words:
    """Two odd numbers (2, d) for each column, by place and key."""
    places = np.arange(1, 2 * n_columns + 1, dtype=np.uint64) * _STEP
    mixed = _mix(places + _mix(np.array([key], dtype=np.uint64)))
    return ((mixed >> _HALF).astype(np.uint32) | np.uint32(1)).reshape(2, n_columns)


def _mix(values: Bits) -> Bits:
    """The last step of SplitMix64 (Steele, Lea and Flood, 2014): every bit depends on all bits."""
    mixed = (values ^ (values >> _SHIFTS[0])) * _FACTORS[0]
    mixed = (mixed ^ (mixed >> _SHIFTS[1])) * _FACTORS[1]
    return mixed ^ (mixed >> _SHIFTS[2])
