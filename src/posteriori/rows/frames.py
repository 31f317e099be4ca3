"""Data frames: results in the library of the user's frame, and rows selected from X."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import narwhals.stable.v1 as nw
from scipy import sparse

from posteriori.errors import ShapeError
from posteriori.rows.features import as_frame, as_numbers
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
    for library in _PREFERRED if backend is None else (backend, *_PREFERRED):
        try:
            return nw.from_dict(dict(columns), backend=import_module(library)).to_native()
        except ImportError:
            continue
    return {name: list(values) for name, values in columns.items()}


def as_pickable(X: Any) -> Any:
    """X in a form from which rows can be selected: a list, a data frame, CSR, or an array."""
    if isinstance(X, list) or as_frame(X) is not None:
        rows = X
    else:
        rows = X.tocsr() if sparse.issparse(X) else as_numbers(X)
        if rows.ndim == 0:
            raise ShapeError(f"X is a {type(X).__name__}, not a table.", "Pass an array of rows.")
    if count_rows(rows) == 0:
        raise ShapeError(
            "Found array with 0 sample(s) while a minimum of 1 is required.",
            "Pass at least one row.",
        )
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
