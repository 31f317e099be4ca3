"""A number for each row that depends on what it holds, and not on where it stands."""

from collections.abc import Iterator
from hashlib import blake2b
from itertools import repeat
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from posteriori.rows.features import as_frame
from posteriori.rows.labels import as_array

_ROWS = 1024
"""Rows of a sparse matrix that are written out at a time."""


def row_digests(X: Any, key: int = 0) -> NDArray[np.uint64]:
    """A number for each row of a table: the same for equal rows, and as good as random else.

    Another `key` gives other numbers.

    >>> first, second, third = row_digests(np.array([[1.0, 0.0], [2.0, 5.0], [1.0, -0.0]]))
    >>> bool(first == third), bool(first == second)
    (True, False)
    """
    secret = key.to_bytes(8, "little")
    digests = (blake2b(row, digest_size=8, key=secret).digest() for row in _row_bytes(X))
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


def _row_bytes(X: Any) -> Iterator[bytes]:
    frame = as_frame(X)
    if frame is not None:
        return _frame_bytes(frame)
    if sparse.issparse(X):
        rows = X.tocsr()
        starts = range(0, rows.shape[0], _ROWS)
        return (row for i in starts for row in _array_bytes(rows[i : i + _ROWS].toarray()))
    return _array_bytes(as_array(X))


def _array_bytes(values: NDArray[Any]) -> Iterator[bytes]:
    if values.dtype.kind not in "fiub":
        return (repr(row).encode() for row in values.tolist())
    # Adding zero makes -0.0 the 0.0 that it equals.
    return (row.tobytes() for row in values.astype(np.float64) + 0.0)


def _frame_bytes(frame: "nw.DataFrame[Any]") -> Iterator[bytes]:
    """Columns of numbers as an array has them, then all others as they are printed."""
    columns = list(frame.iter_columns())
    numbers = [each.to_numpy() for each in columns if each.dtype.is_numeric()]
    others = [each.to_list() for each in columns if not each.dtype.is_numeric()]
    first = _array_bytes(np.column_stack(numbers)) if numbers else repeat(b"", len(frame))
    if not others:
        return first
    printed = (repr(row).encode() for row in zip(*others, strict=True))
    return (number + other for number, other in zip(first, printed, strict=True))
