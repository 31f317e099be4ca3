"""Predictions for rows that do not fit in memory: written to Parquet, or as a Dask array."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from importlib import import_module
from os import PathLike
from pathlib import Path
from secrets import token_hex
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posteriori.errors import DataError, ParameterError, ScaleError, ShapeError
from posteriori.rows.dask import aligned, check_number, lengths_of, parts_of, whole_rows
from posteriori.rows.schema import Batch
from posteriori.rows.source import SourceRows


def write_predictions(
    rows: SourceRows,
    predict: Callable[[Batch], Mapping[str, NDArray[Any]]],
    to: Any,
    labels: Sequence[Any],
) -> Path:
    """A Parquet file with the predictions for all rows, in their order; `labels` may occur in them.

    `predict` gives the columns for the rows of a batch.

    The file appears when it is whole: what goes wrong before leaves nothing behind.
    """
    pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    path = new_file(to, rows)
    unfinished = path.with_name(f".{path.name}.{token_hex(8)}")
    writer: Any = None
    try:
        kind = pyarrow.array(labels).type  # of a column of labels, the same in all its parts
    except pyarrow.ArrowException as error:
        raise ParameterError(
            f"The predictions are of several types, which no column holds: {list(labels)}.",
            "Let reject_label be of the kind of the classes.",
        ) from error

    def column(values: NDArray[Any]) -> Any:
        return pyarrow.array(values, kind if values.dtype == object else None)

    def make(batch: Batch) -> list[Any]:
        try:
            return [pyarrow.table({name: column(own) for name, own in predict(batch).items()})]
        except (DataError, ScaleError) as error:
            raise error.located("", batch.start) from error

    with _writing(path):
        file = unfinished.open("xb")  # an error if something, such as a link, has that name
    try:
        for tables in rows.each(make):
            with _writing(path):
                for table in tables:
                    writer = writer or parquet.ParquetWriter(file, table.schema)
                    writer.write_table(table)
        if writer is None:
            raise ShapeError("There are no rows.", "Pass a source with at least one row.")
        with _writing(path):
            writer.close()
            file.close()
            unfinished.replace(path)
    finally:
        if writer is not None and writer.is_open:
            writer.close()
        file.close()
        unfinished.unlink(missing_ok=True)
    return path


def new_file(to: Any, *sources: SourceRows) -> Path:
    """The file that is named, if predictions may be written there: none that rows are read from."""
    if not isinstance(to, str | PathLike) or not str(to):
        raise ParameterError(
            f"to={to!r} names no file, and predictions for a source may be too many for memory.",
            "Name one: predict_proba(rows, to='predictions.parquet').",
        )
    path = Path(to).expanduser()
    with _writing(path):
        if not path.parent.is_dir() or (path.exists() and not path.is_file()):
            raise ParameterError(
                f"to={str(to)!r} is not a file in an existing folder.",
                "Create the folder, or name another file.",
            )
    if path.resolve() in {Path(file).resolve() for rows in sources for file in rows.files}:
        raise ParameterError(
            f"to={str(to)!r} is one of the files that the rows are read from.",
            "Name another file for the predictions.",
        )
    return path


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Errors of writing, with the name of the file."""
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
    names = [str(label) for label in labels]
    if what == "interval":
        classes = [""] if values.ndim == 2 else [f"_{name}" for name in names]
        names = [f"{end}{name}" for name in classes for end in ("low", "high")]
        values = values.reshape(len(values), -1)
    return {f"{what}_{name}": values[:, i].copy() for i, name in enumerate(names)}


def predict_dask(
    method: Callable[..., Any], X: Any, shape: tuple[int, ...], dtype: Any, offset: Any = None
) -> Any:
    """`method` of every chunk of a Dask collection, as a Dask array that is computed later.

    `shape` is that of the prediction for one row: () for a label, (K,) for probabilities. `method`
    belongs to an estimator, which is sent as it is now, whatever it learns afterwards. `offset`
    is cut as X is.
    """
    X = whole_rows(X)
    cuts, parts = lengths_of(X), parts_of(X)
    offsets = [None] * len(parts) if offset is None else parts_of(aligned(cuts, offset, "offset"))
    check_number(len(parts), len(offsets), "offset")
    dask, array = import_module("dask"), import_module("dask.array")
    none = np.empty((0, *shape), dtype)
    own = deepcopy(method)

    def of_chunk(X: Any, offset: Any) -> Any:
        if X.shape[0] == 0:
            return none
        try:
            found = own(X) if offset is None else own(X, offset=offset)
        except (DataError, ScaleError) as error:
            raise error.located("In a chunk (rows counted from 0 there)") from error
        return np.asarray(found).astype(dtype, copy=False)

    # One delayed task that all others share.
    predict = dask.delayed(of_chunk, pure=False, traverse=False)
    found = [
        array.from_delayed(predict(part, given), (n, *shape), meta=none)
        for n, part, given in zip(cuts or (np.nan,) * len(parts), parts, offsets, strict=True)
    ]
    return array.concatenate(found, allow_unknown_chunksizes=True)
