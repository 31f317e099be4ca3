"""Picking rows out of the user's X, in the user's own type."""

from typing import Any

import numpy as np
from scipy import sparse

from posteriori.errors import ShapeError
from posteriori.rows.features import as_frame
from posteriori.rows.series import complex_error
from posteriori.typing import Codes


def as_pickable(X: Any) -> Any:
    """X in a form from which rows can be picked: a list, a data frame, CSR, or an array."""
    if isinstance(X, list) or as_frame(X) is not None:
        rows = X
    elif isinstance(X, np.ma.MaskedArray) and X.dtype.kind in "fiub":
        rows = np.ma.filled(X.astype(np.float64), np.nan)  # else the mask would be lost
    else:
        rows = _as_rows(X)
    if count_rows(rows) == 0:
        raise ShapeError(
            "Found array with 0 sample(s) while a minimum of 1 is required.",
            "Pass at least one row.",
        )
    return rows


def _as_rows(X: Any) -> Any:
    rows = X.tocsr() if sparse.issparse(X) else np.asarray(X)
    if rows.ndim == 0:
        raise ShapeError(f"X is a {type(X).__name__}, not a table.", "Pass an array of rows.")
    if rows.dtype.kind == "c":
        raise complex_error()
    return rows


def count_rows(X: Any) -> int:
    """How many rows X has."""
    return len(X) if isinstance(X, list) else int(X.shape[0])


def pick_rows(X: Any, rows: Codes) -> Any:
    """Some rows of X, in the user's own type."""
    if isinstance(X, list):
        return [X[row] for row in rows]
    frame = as_frame(X)
    return X[rows] if frame is None else frame[rows].to_native()
