"""Data frames: results in the library of the user's frame, and rows selected from X."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from os import PathLike
from types import ModuleType
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from scipy import sparse

from posteriori.errors import ShapeError
from posteriori.rows.categories import complex_error
from posteriori.rows.features import as_frame, path_error
from posteriori.typing import Codes

_PREFERRED = ("pandas", "polars", "pyarrow")
"""For results, if X was no data frame: the first of these that is installed."""


def backend_of(X: Any) -> str | None:
    """The library that X is a frame of; None where X is something else.

    >>> import polars as pl
    >>> backend_of(pl.DataFrame({"a": [1]})), backend_of([[1]])
    ('polars', None)
    """
    frame = as_frame(X)
    return None if frame is None else str(nw.get_native_namespace(frame).__name__)


def make_frame(columns: Mapping[str, Sequence[Any]], backend: str | None) -> Any:
    """The columns as a frame of `backend`, or of the first library that is installed.

    Without any, a dictionary of lists.

    >>> make_frame({"term": ["intercept"], "estimate": [0.5]}, "pandas")
            term  estimate
    0  intercept       0.5
    """
    wanted = _PREFERRED if backend is None else (backend, *_PREFERRED)
    module = next(filter(None, map(_module, wanted)), None)
    if module is None:
        return {name: list(values) for name, values in columns.items()}
    return nw.from_dict(dict(columns), backend=module).to_native()


def _module(name: str) -> ModuleType | None:
    """The module, or None where it is not installed."""
    try:
        return import_module(name)
    except ImportError:
        return None


def as_pickable(X: Any) -> Any:
    """X in a form from which rows can be selected: a list, a data frame, CSR, or an array."""
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
    if isinstance(X, str | PathLike):
        raise path_error(X)
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
