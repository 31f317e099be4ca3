"""Answers for the rows of a Dask collection, as a Dask array that is computed later."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from posteriori.errors import DataError, ScaleError
from posteriori.rows.chunk import told_where
from posteriori.rows.dask import aligned, check_number, lengths_of, parts_of, whole_rows
from posteriori.rows.dask_tasks import Sent


def predict_dask(
    method: Callable[..., Any], X: Any, shape: tuple[int, ...], dtype: Any, offset: Any = None
) -> Any:
    """`method` of every chunk of a Dask collection, as a Dask array that is computed later.

    `shape` is that of the answer for one row: () for a label, (K,) for probabilities. `method`
    belongs to an estimator, which is sent as it is now, whatever it learns afterwards. `offset`
    is cut as X is.
    """
    name = getattr(method, "__name__", "predict")
    answer = _Answer(Sent(method), np.empty((0, *shape), dtype), name)
    if not isinstance(X, list | tuple) and offset is None:
        if hasattr(type(X), "rechunk"):
            X = whole_rows(X)
            if not shape:
                return X.map_blocks(answer, meta=answer.none, drop_axis=1)
            chunks, new = (X.chunks[0], *shape), list(range(2, 1 + len(shape)))
            return X.map_blocks(answer, meta=answer.none, chunks=chunks, new_axis=new)
        if hasattr(type(X), "map_partitions"):
            return X.map_partitions(answer, meta=answer.none)
    X = whole_rows(X)
    cuts, parts = lengths_of(X), parts_of(X)
    offsets = [None] * len(parts) if offset is None else parts_of(aligned(cuts, offset, "offset"))
    check_number(len(parts), len(offsets), "offset")
    dask, array = import_module("dask"), import_module("dask.array")
    each = dask.delayed(answer, pure=False, traverse=False)
    lengths = cuts or (np.nan,) * len(parts)
    found = [
        array.from_delayed(each(part, own), (n, *shape), meta=answer.none)
        for n, part, own in zip(lengths, parts, offsets, strict=True)
    ]
    return array.concatenate(found, allow_unknown_chunksizes=True)


class _Answer:
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
            raise told_where(error, "In a chunk, its rows counted from 0") from error
        return np.asarray(found).astype(self.none.dtype, copy=False)

    def __dask_tokenize__(self) -> str:
        return self._method.__dask_tokenize__()
