"""Data where they lie, as rows that every model fits to: `scan`."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import narwhals.stable.v1 as nw

from posteriori.errors import ColumnNameError, ParameterError
from posteriori.rows.chunk import Roles
from posteriori.rows.dask import is_dask, scan_dask
from posteriori.rows.features import as_frame
from posteriori.rows.files import file_rows, read_dataset
from posteriori.rows.rows import Rows
from posteriori.rows.series import declared_levels


def scan(
    source: Any,
    target: str | Sequence[str] | None = None,
    *,
    weight: str | None = None,
    offset: str | None = None,
    columns: Sequence[str] | None = None,
    categories: Mapping[str, Sequence[Any]] | None = None,
    classes: Any = None,
    format: str | None = None,
    progress: Any = False,
) -> Rows:
    """Rows that are read when they are needed, however many there are.

    Every model fits to them: `model.fit(scan("trips/", target="tip"))`; those that learn row by row
    in a random order (`Perceptron`, `Adaline`) keep all rows in memory for it. Types, levels of
    categorical columns and classes are learnt in one first look when they are first needed, and
    checked in every later pass. In CSV files an empty entry is missing, as are NA, NaN and null.

    Parameters
    ----------
    source : a path, a glob, a folder (with hive partitions), a list of files, a pyarrow dataset
        or table, a pandas or polars frame, a DuckDB relation; a Dask data frame, delayed frames.
    target : the column of class labels, or of numbers; several columns with the share of each
        class, which name the classes.
    weight, offset : columns of row weights, and of numbers added to the activations.
    columns : the features; all columns that are nothing else, if they are not given.
    categories : the levels of columns of text, in order, the first being the reference; without
        them they are those that occur, sorted or in the order in which a frame declares them.
        In CSV files these columns are text, whatever they look like.
    classes : what columns of shares are called, where their names do not say it.
    format : "parquet", "csv" or "ipc", where the names of the files do not say it.
    progress : True shows a bar for each pass; a function is called with where the pass is.

    >>> import pyarrow as pa, pyarrow.parquet as pq, tempfile
    >>> from posteriori import LogisticRegression
    >>> table = pa.table({"x": [0.0, 1.0, 2.0, 3.0], "y": ["no", "yes", "no", "yes"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pq.write_table(table, f"{folder}/part-0.parquet")
    ...     model = LogisticRegression(prior=1.0).fit(scan(folder, target="y"))
    >>> model.classes_, model.coef_.round(3)
    (array(['no', 'yes'], dtype=object), array([[0.453]]))
    """
    if classes is not None and (target is None or isinstance(target, str)):
        raise ParameterError(
            "classes names columns of shares, but the target is not made of several columns.",
            "Leave classes out: the labels name themselves.",
        )
    _check_name(target, "target")
    roles = Roles(
        target if target is None or isinstance(target, str) else tuple(target),
        weight,
        offset,
        None if columns is None else tuple(columns),
        {name: tuple(levels) for name, levels in (categories or {}).items()},
    )
    if is_dask(source) or (isinstance(source, list | tuple) and any(map(is_dask, source))):
        return scan_dask(source, roles, classes, progress)
    frame = None if isinstance(source, str | list | tuple) else as_frame(source)
    declared: dict[str, tuple[Any, ...]] = {}
    if frame is not None:
        for name in frame.columns:
            _check_name(name, "column")
        declared = {name: declared_levels(frame[name]) for name in frame.columns}
        # An index of pandas is no column.
        source = import_module("pyarrow.dataset").dataset(nw.maybe_reset_index(frame).to_arrow())
    elif hasattr(type(source), "__arrow_c_stream__"):  # such as a relation of DuckDB
        stream = import_module("pyarrow").RecordBatchReader.from_stream(source)
        source = import_module("pyarrow.dataset").dataset(stream.read_all())
    found = {name: levels for name, levels in declared.items() if levels}
    return file_rows(read_dataset(source, format), roles, classes, found, progress)


def _check_name(name: Any, what: str) -> None:
    """An error for a column that is not called by a word, such as those of a bare array."""
    if name is not None and not isinstance(name, str | Sequence):
        raise ColumnNameError(
            f"The {what} {name!r} is not called by a word.",
            "Give the columns names: frame.columns = frame.columns.astype(str).",
        )
