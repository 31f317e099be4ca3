"""Data frames: results in the library of the user's frame, rows selected from X, and rows with
some columns changed, for counterfactual predictions.

Conventions: entries of a numeric or boolean column are numbers (n,), those of a categorical one
codes of its levels.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from posteriori.errors import ShapeError
from posteriori.rows.block import Features, Mixed
from posteriori.rows.features import Table, as_frame, as_numbers
from posteriori.rows.schema import Column, Schema
from posteriori.typing import Codes

Entries: TypeAlias = NDArray[Any]

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


@dataclass(frozen=True)
class Change:
    """A change of the column at this position: `new` maps its old entries to new ones."""

    column: int
    new: Callable[[Entries], Entries]


Changes: TypeAlias = Sequence[Change]


def set_to(column: int, value: float) -> Change:
    """The same entry in every row.

    >>> set_to(0, 2.0).new(np.array([5.0, 7.0]))
    array([2., 2.])
    """
    return Change(column, lambda entries: np.full(entries.shape, value))


def add_to(column: int, amount: float) -> Change:
    """`amount` added to every entry."""
    return Change(column, lambda entries: entries + amount)


def changed_features(X: Features, schema: Schema, changes: Changes) -> Features:
    """A copy of the features of a block with the changes made one after the other.

    >>> schema = Schema.of_names(["a", "b"])
    >>> changed_features(np.array([[1.0, 2.0]]), schema, [add_to(1, 0.5), set_to(0, 9.0)])
    array([[9. , 2.5]])
    """
    if not changes:
        return X
    if isinstance(X, sparse.csr_array):
        return _changed_sparse(X, changes)
    X = Mixed(X.numeric.copy(), X.codes.copy(), X.unseen) if isinstance(X, Mixed) else X.copy()
    for change in changes:
        entries = Table(X, schema).column(change.column)
        entries[:] = change.new(entries)
    return X


def _changed_sparse(X: Any, changes: Changes) -> sparse.csr_array:
    for change in changes:
        old = X[:, [change.column]].toarray().ravel()
        gain, rows = change.new(old) - old, np.arange(len(old))
        places = rows, np.full(len(old), change.column)
        X = sparse.csr_array(X + sparse.csr_array((gain, places), shape=X.shape))
    return X


def entries_of(table: Table, column: int) -> Entries:
    """One column of a table: doubles, or codes of levels."""
    values = table.column(column)
    is_level = column in table.schema.categorical
    return values if is_level else values.astype(np.float64, copy=False)


def changed_table(X: Any, table: Table, changes: Changes) -> Any:
    """A copy of the user's X, of the same type, with the changes made; `table` is X as read.

    >>> import polars as pl
    >>> from posteriori.rows.features import read_features
    >>> X = pl.DataFrame({"age": [30, 40], "sex": ["f", "m"]})
    >>> found = changed_table(X, read_features(X), [add_to(0, 0.5), set_to(1, 1)])
    >>> found.rows()
    [(30.5, 'm'), (40.5, 'm')]
    """
    if sparse.issparse(X):
        return _changed_sparse(sparse.csr_array(X).astype(np.float64), changes)
    entries: dict[int, Entries] = {}
    for change in changes:
        j = change.column
        entries[j] = change.new(entries[j] if j in entries else entries_of(table, j))
    columns = table.schema.columns
    for j, values in entries.items():
        if columns[j].kind == "categorical":
            entries[j] = np.array(columns[j].levels, dtype=object)[values.astype(np.intp)]
        else:
            entries[j] = values.astype(bool if columns[j].kind == "boolean" else np.float64)
    frame = as_frame(X)
    if frame is not None and table.schema.named:
        series = [_as_series(values, columns[j], frame) for j, values in entries.items()]
        return frame.with_columns(*series).to_native()
    X = np.array(as_pickable(X if frame is None else frame.to_numpy()))
    X = X.astype(np.result_type(X, *entries.values()))
    for j, values in entries.items():
        X[:, j] = values
    return X


def _as_series(values: Any, column: Column, frame: "nw.DataFrame[Any]") -> "nw.Series[Any]":
    """Entries as a column of the frame; levels keep the type of the column if they can."""
    if column.kind == "categorical":
        old = frame[column.name]
        place = {level: row for row, level in enumerate(old.to_list())}
        if all(level in place for level in values):
            return old[[place[level] for level in values]]
        values = values.tolist()
    return nw.new_series(column.name, values, backend=nw.get_native_namespace(frame))
