"""Picking rows out of the user's X, in the user's own type."""

from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from scipy import sparse

from posteriori.errors import ShapeError
from posteriori.rows.series import complex_error
from posteriori.typing import Codes


def as_pickable(X: Any) -> Any:
    """X in a form from which rows can be picked: a list, a data frame, CSR, or an array."""
    if isinstance(X, list) or _is_frame(X):
        return X
    rows = X.tocsr() if sparse.issparse(X) else np.asarray(X)
    if rows.ndim == 0:
        raise ShapeError(f"X is a {type(X).__name__}, not a table.", "Pass an array of rows.")
    if rows.dtype.kind == "c":
        raise complex_error()
    return rows


def _is_frame(X: Any) -> bool:
    return isinstance(nw.from_native(X, eager_only=True, pass_through=True), nw.DataFrame)


def count_rows(X: Any) -> int:
    """How many rows X has."""
    return len(X) if isinstance(X, list) else int(X.shape[0])


def pick_rows(X: Any, rows: Codes) -> Any:
    """Some rows of X, in the user's own type."""
    if isinstance(X, list):
        return [X[row] for row in rows]
    if _is_frame(X):
        return nw.from_native(X, eager_only=True)[rows].to_native()
    return X[rows]
