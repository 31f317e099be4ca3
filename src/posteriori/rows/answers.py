"""Answers for rows that do not fit in memory, written to a Parquet file part by part."""

import os
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from posteriori.errors import ParameterError, ShapeError
from posteriori.rows.chunk import Chunk
from posteriori.rows.chunked import ChunkedRows

Answer = Callable[[Chunk], Mapping[str, NDArray[Any]]]
"""Columns of answers for the rows of a chunk."""


def write_answers(rows: ChunkedRows, answer: Answer, to: Any) -> Path:
    """A Parquet file with the answers for all rows, in their order.

    The file appears when it is whole: what goes wrong before leaves nothing behind.
    """
    if to is None:
        raise ParameterError(
            "The answers for rows of a source may be too many for memory, and no file is named.",
            "Name one: predict_proba(rows, to='answers.parquet').",
        )
    pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    path = Path(to)
    half_done = path.with_name(f".{path.name}.{os.getpid()}")
    writer: Any = None

    def make(chunk: Chunk) -> list[Any]:
        return [pyarrow.table(dict(answer(chunk)))]

    def write(tables: list[Any]) -> None:
        nonlocal writer
        for table in tables:
            if writer is None:
                writer = parquet.ParquetWriter(half_done, table.schema)
            writer.write_table(table)

    try:
        rows.each(make, write)
        if writer is None:
            raise ShapeError("There are no rows.", "Pass a source with at least one row.")
        writer.close()
        half_done.replace(path)
    finally:
        if writer is not None and writer.is_open:
            writer.close()
        half_done.unlink(missing_ok=True)
    return path


def named(values: NDArray[Any], what: str, labels: list[Any]) -> dict[str, NDArray[Any]]:
    """The columns of answers by name: one, one a class, or the two ends of an interval.

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
