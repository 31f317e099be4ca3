"""Rows with some columns changed, for counterfactual predictions.

Conventions: entries of a numeric or boolean column are numbers (n,), those of a categorical one
codes of its levels.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from posteriori.rows.block import Features, Mixed
from posteriori.rows.features import Table, as_frame
from posteriori.rows.frames import as_pickable
from posteriori.rows.schema import Column, Schema

Entries: TypeAlias = NDArray[Any]


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
    frame = as_frame(X)
    if frame is None or not table.schema.named:
        return _with_entries(X if frame is None else frame.to_numpy(), table.schema, entries)
    series = [_series(frame, table.schema.columns[j], new) for j, new in entries.items()]
    return frame.with_columns(*series).to_native() if series else X


def _with_entries(X: Any, schema: Schema, entries: dict[int, Entries]) -> Any:
    """An array with other columns."""
    new = {j: _in_its_type(schema.columns[j], values) for j, values in entries.items()}
    X = np.array(as_pickable(X))
    X = X.astype(np.result_type(X, *new.values()))
    for j, values in new.items():
        X[:, j] = values
    return X


def _in_its_type(column: Column, new: Entries) -> Entries:
    """Entries as levels, booleans or doubles."""
    if column.kind == "categorical":
        return np.array(column.levels, dtype=object)[new.astype(np.intp)]
    return new.astype(bool if column.kind == "boolean" else np.float64)


def _series(frame: "nw.DataFrame[Any]", column: Column, new: Entries) -> "nw.Series[Any]":
    """A column of a frame with other entries; levels keep the type of the column if they can."""
    values: Any = _in_its_type(column, new)
    if column.kind == "categorical":
        old = frame[column.name]
        place = {level: row for row, level in enumerate(old.to_list())}
        if all(level in place for level in values):
            return old[[place[level] for level in values]]
        values = values.tolist()
    return nw.new_series(column.name, values, backend=nw.get_native_namespace(frame))
