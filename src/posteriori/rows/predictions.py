"""Predictions for rows that do not fit in memory: written to Parquet, or as a Dask array."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posteriori.errors import DataError, ParameterError, ScaleError, ShapeError
from posteriori.rows.batch import Batch
from posteriori.rows.dask import Sent, aligned, check_number, lengths_of, parts_of, whole_rows
from posteriori.rows.source import SourceRows

Predict = Callable[[Batch], Mapping[str, NDArray[Any]]]

"""Columns of predictions for the rows of a chunk."""


def write_predictions(rows: SourceRows, predict: Predict, to: Any, labels: Sequence[Any]) -> Path:
    """A Parquet file with the predictions for all rows, in their order; `labels` may occur in them.

    The file appears when it is whole: what goes wrong before leaves nothing behind.
    """
    pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    path = new_file(to, rows)
    half_done = path.with_name(f".{path.name}.{os.getpid()}")
    writer: Any = None

    kind = _type_of(labels)

    def column(values: NDArray[Any]) -> Any:
        return pyarrow.array(values, kind if values.dtype == object else None)

    def make(batch: Batch) -> list[Any]:
        return [pyarrow.table({name: column(own) for name, own in predict(batch).items()})]

    def write(tables: list[Any]) -> None:
        nonlocal writer
        with _told_of(path):
            for table in tables:
                if writer is None:
                    writer = parquet.ParquetWriter(half_done, table.schema)
                writer.write_table(table)

    with _told_of(path):
        half_done.touch()
    try:
        rows.each(make, write)
        if writer is None:
            raise ShapeError("There are no rows.", "Pass a source with at least one row.")
        with _told_of(path):
            writer.close()
            half_done.replace(path)
    finally:
        if writer is not None and writer.is_open:
            writer.close()
        half_done.unlink(missing_ok=True)
    return path


def _type_of(labels: Sequence[Any]) -> Any:
    """The type of a column of labels, the same in all its parts."""
    pyarrow = import_module("pyarrow")
    try:
        return pyarrow.array(labels).type
    except pyarrow.ArrowException as error:
        raise ParameterError(
            f"The predictions are of several types, which no column holds: {list(labels)}.",
            "Let reject_label be of the kind of the classes.",
        ) from error


def new_file(to: Any, *sources: SourceRows) -> Path:
    """The file that is named, if predictions may be written there: none that rows are read from."""
    if to is None:
        raise ParameterError(
            "The predictions for a source may be too many for memory, and no file is named.",
            "Name one: predict_proba(rows, to='predictions.parquet').",
        )
    if not isinstance(to, str | PathLike) or not str(to):
        raise ParameterError(
            f"to={to!r} names no file.", "Name one: predict_proba(rows, to='predictions.parquet')."
        )
    path = Path(to).expanduser()
    with _told_of(path):
        if not path.parent.is_dir():
            raise ParameterError(
                f"There is no folder {str(path.parent)!r} for the predictions.",
                "Make it, or name another.",
            )
        if path.exists() and not path.is_file():
            raise ParameterError(f"to={str(to)!r} is no file.", "Name a file in it, or beside it.")
    if path.resolve() in {Path(file).resolve() for rows in sources for file in rows.files}:
        raise ParameterError(
            f"to={str(to)!r} is one of the files that the rows are read from.",
            "Name another file for the predictions.",
        )
    return path


@contextmanager
def _told_of(path: Path) -> Iterator[None]:
    """What the system says against writing, as an error of the file and not of the source."""
    try:
        yield
    except OSError as error:
        raise ParameterError(
            f"The predictions cannot be written to {str(path)!r}: {error.strerror or error}.",
            "Name a file that can be written, where there is room.",
        ) from error


def named(values: NDArray[Any], what: str, labels: list[Any]) -> dict[str, NDArray[Any]]:
    """The columns of predictions by name: one, one a class, or the two ends of an interval.

    >>> import numpy as np
    >>> named(np.array([[0.2, 0.8]]), "probability", ["no", "yes"])
    {'probability_no': array([0.2]), 'probability_yes': array([0.8])}
    >>> sorted(named(np.array([[0.1, 0.3]]), "interval", ["no", "yes"]))
    ['interval_high', 'interval_low']
    """
    if values.ndim == 1:
        return {what: values}
    if values.ndim == 2 and what != "interval":
        return {f"{what}_{label}": values[:, k].copy() for k, label in enumerate(labels)}
    ends = [f"{what}_low", f"{what}_high"]
    if values.ndim == 2:
        return {end: values[:, i].copy() for i, end in enumerate(ends)}
    return {
        f"{end}_{label}": values[:, k, i].copy()
        for k, label in enumerate(labels)
        for i, end in enumerate(ends)
    }


def predict_dask(
    method: Callable[..., Any], X: Any, shape: tuple[int, ...], dtype: Any, offset: Any = None
) -> Any:
    """`method` of every chunk of a Dask collection, as a Dask array that is computed later.

    `shape` is that of the prediction for one row: () for a label, (K,) for probabilities. `method`
    belongs to an estimator, which is sent as it is now, whatever it learns afterwards. `offset`
    is cut as X is.
    """
    name = getattr(method, "__name__", "predict")
    predict = _Prediction(Sent(method), np.empty((0, *shape), dtype), name)
    X = whole_rows(X)
    cuts, parts = lengths_of(X), parts_of(X)
    offsets = [None] * len(parts) if offset is None else parts_of(aligned(cuts, offset, "offset"))
    check_number(len(parts), len(offsets), "offset")
    dask, array = import_module("dask"), import_module("dask.array")
    each = dask.delayed(predict, pure=False, traverse=False)
    lengths = cuts or (np.nan,) * len(parts)
    found = [
        array.from_delayed(each(part, own), (n, *shape), meta=predict.none)
        for n, part, own in zip(lengths, parts, offsets, strict=True)
    ]
    return array.concatenate(found, allow_unknown_chunksizes=True)


class _Prediction:
    """A method of an estimator, which may be asked about no rows at all."""

    def __init__(self, method: Sent, none: Any, name: str) -> None:
        self._method, self.none, self.__name__ = method, none, name

    def __call__(self, X: Any, offset: Any = None) -> Any:
        if X.shape[0] == 0:
            return self.none
        given = {} if offset is None else {"offset": offset}
        try:
            found = self._method.value(X, **given)
        except (DataError, ScaleError) as error:
            raise error.located("In a chunk (rows counted from 0 there)") from error
        return np.asarray(found).astype(self.none.dtype, copy=False)

    def __dask_tokenize__(self) -> str:
        return self._method.__dask_tokenize__()
