"""Tables handed back to the user, in the kind of frame that was handed in."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

import narwhals.stable.v1 as nw

from posteriori.rows.features import as_frame

_PREFERRED = ("pandas", "polars", "pyarrow")
"""Where the user has shown no liking: the first of these that is there."""


def backend_of(X: Any) -> str | None:
    """The library that X is a frame of; None where X is something else.

    >>> import polars as pl
    >>> backend_of(pl.DataFrame({"a": [1]})), backend_of([[1]])
    ('polars', None)
    """
    frame = as_frame(X)
    return None if frame is None else str(nw.get_native_namespace(frame).__name__)


def make_frame(columns: Mapping[str, Sequence[Any]], backend: str | None) -> Any:
    """The columns as a frame of `backend`, or of the first library that is there.

    Without any, a plain dictionary of lists.

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
