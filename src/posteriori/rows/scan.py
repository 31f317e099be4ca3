"""Data where they lie, as rows that every model fits to: `scan`."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

import narwhals.stable.v1 as nw

from posteriori.errors import ColumnNameError, ColumnTypeError, ParameterError
from posteriori.rows.arrow import is_arrow
from posteriori.rows.categories import declared_levels
from posteriori.rows.chunk import Roles
from posteriori.rows.dask import is_dask, scan_dask
from posteriori.rows.datasets import plain_type, read_dataset
from posteriori.rows.features import as_frame
from posteriori.rows.files import file_rows
from posteriori.rows.rows import Rows


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
    cache: Any = None,
    progress: Any = False,
) -> Rows:
    """Rows that are read when they are needed, however many there are.

    Every model fits to them: `model.fit(scan("trips/", target="tip"))`. Types, levels of
    categorical columns and classes are learnt in one first look when they are first needed, and
    checked in every later pass. In CSV files an empty entry is missing, as are NA, NaN and null.

    Parameters
    ----------
    source : a path, a glob, a folder (with hive partitions), a list of files, a pyarrow dataset
        or table, a pandas or polars frame, a DuckDB relation (which is read into memory); a Dask
        data frame, delayed frames. Hidden files are left out, and an index of pandas is no column.
    target : the column of class labels, or of numbers; several columns with the share of each
        class, which name the classes.
    weight, offset : columns of row weights, and of numbers added to the activations.
    columns : the features; all columns that are nothing else, if they are not given.
    categories : the levels of columns of text, in order, the first being the reference; without
        them they are those that occur, sorted or in the order in which a frame declares them.
        In CSV files these columns are text, whatever they look like.
    classes : what columns of shares are called, where their names do not say it.
    format : "parquet", "csv" or "ipc", where the names of the files do not say it.
    cache : where what was decoded is kept for later passes. None: in a temporary file, as far as
        that takes no more than a quarter of the memory and half of the free disk, and the disk is
        not too slow; True: there in any case; a folder: in a file there; False: nowhere, the files
        are read in each pass. The file is gone with the rows and the models that were fitted to
        them. What lies in Parquet files as it does in memory is read from there.
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
        target if target is None or isinstance(target, str) else _names("target", target, 1),
        _name("weight", weight),
        _name("offset", offset),
        None if columns is None else _names("columns", columns),
        _levels(categories),
    )
    if is_dask(source) or (isinstance(source, list | tuple) and any(map(is_dask, source))):
        if cache is not None:
            raise ParameterError(
                "cache is for files, but the source is a Dask collection.",
                "Leave it out; source.persist() keeps what its workers have read.",
            )
        return scan_dask(source, roles, classes, progress)
    if is_arrow(source) and type(source).__name__ == "RecordBatch":
        source = import_module("pyarrow").Table.from_batches([source])
    frame = None if isinstance(source, str | list | tuple) else as_frame(source)
    declared: dict[str, tuple[Any, ...]] = {}
    if frame is not None:
        for name in frame.columns:
            _check_name(name, "column")
        declared = {name: declared_levels(frame[name]) for name in frame.columns}
        # An index of pandas is no column.
        source = _dataset_of(nw.maybe_reset_index(frame).to_arrow)
    elif hasattr(type(source), "__arrow_c_stream__"):  # such as a relation of DuckDB
        stream = import_module("pyarrow").RecordBatchReader.from_stream(source)
        source = _dataset_of(stream.read_all)
    found = {name: levels for name, levels in declared.items() if levels}
    dataset = read_dataset(source, format, roles)
    return file_rows(dataset, roles, classes, found, progress, cache)


def _dataset_of(read: Callable[[], Any]) -> Any:
    """An Arrow table as a dataset, its types such as files have."""
    pyarrow = import_module("pyarrow")
    try:
        table = read()
    except (pyarrow.ArrowException, OverflowError, TypeError) as error:
        raise ColumnTypeError(
            f"The frame holds what Arrow has no column for: {error}.",
            "Leave the column out of the frame, or make it one of numbers or text.",
        ) from error
    fields = [field.with_type(plain_type(field.type)) for field in table.schema]
    whole = pyarrow.schema(fields, metadata=table.schema.metadata)
    return import_module("pyarrow.dataset").dataset(table.cast(whole))


def _names(what: str, names: Any, least: int = 0) -> tuple[str, ...]:
    """Several columns by name."""
    found = (None,) if isinstance(names, str) or not isinstance(names, Iterable) else tuple(names)
    if len(found) < least or not all(isinstance(name, str) for name in found):
        raise ParameterError(
            f"{what}={names!r} does not name columns.", f"Pass a list of names: {what}=['a', 'b']."
        )
    return found


def _name(what: str, name: Any) -> str | None:
    """One column by name."""
    if name is not None and not isinstance(name, str):
        raise ParameterError(
            f"{what} is a {type(name).__name__}, and no name of a column.",
            f"Write {what} as a column of the source, and name it.",
        )
    return name


def _levels(categories: Any) -> dict[str, tuple[str, ...]]:
    """The levels of columns, each once."""
    if categories is None:
        return {}
    if not isinstance(categories, Mapping):
        raise ParameterError(
            f"categories is a {type(categories).__name__}, which says no levels.",
            "Pass the levels of each column: categories={'size': ['small', 'big']}.",
        )
    found = {name: tuple(map(str, levels)) for name, levels in categories.items()}
    for name, levels in found.items():
        twice = [level for level, times in Counter(levels).items() if times > 1]
        if twice:
            raise ParameterError(
                f"categories has the level {twice[0]!r} of column '{name}' twice.",
                "Name each level once.",
            )
    return found


def _check_name(name: Any, what: str) -> None:
    """An error for a column that is not called by a word, such as those of a bare array."""
    if name is not None and not isinstance(name, str | Sequence):
        raise ColumnNameError(
            f"The {what} {name!r} is not called by a word.",
            "Give the columns names: frame.columns = frame.columns.astype(str).",
        )
