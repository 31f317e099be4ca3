"""Rows in Dask: arrays, data frames and delayed frames, on threads or on a cluster.

A pass is one task per chunk, and a tree of sums in the order of the chunks. Chunks are computed
again in every pass, on the worker that sums them. A lost worker costs time; the sum has the same
bits.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial, reduce
from importlib import import_module
from itertools import accumulate
from math import isnan
from operator import add
from typing import Any, ClassVar, TypeVar, cast
from zlib import crc32

import numpy as np
from scipy import sparse

from posteriori.errors import (
    ColumnTypeError,
    DataError,
    ParameterError,
    PosterioriError,
    ShapeError,
    SourceError,
)
from posteriori.rows.block import is_dask
from posteriori.rows.features import as_frame, check_shape
from posteriori.rows.schema import Batch, Roles
from posteriori.rows.source import SourceRows
from posteriori.rows.threads import one_blas_thread

S = TypeVar("S")
Parts = tuple[Any, ...]

_SUMS_A_TASK = 8
"""Sums that one task of the tree, or the client, adds up: a cluster takes milliseconds a task."""

_CHECKED = 4
"""Rows of each chunk by which chunks are recognised that differ each time they are made."""


def is_table(y: Any) -> bool:
    """Whether a Dask collection is known to have several columns, such as soft labels."""
    return hasattr(type(y), "ndim") and y.ndim == 2


@dataclass(frozen=True, eq=False, repr=False)
class DaskRows(SourceRows):
    """Rows in delayed chunks: one frame each if they are `framed`, else features, target, ....

    `owners` are the collections that the chunks come from: a reference to them keeps persisted data
    on the workers. A pickle, such as a task sent to a worker, does not contain the chunks.
    """

    chunks: tuple[Parts, ...]
    framed: bool = True
    owners: tuple[Any, ...] = ()

    is_distributed: ClassVar[bool] = True

    def __reduce__(self) -> Any:
        names = "real", "soft_classes", "known_schema", "known_classes", "code", "prepare", "_found"
        kept = {name: getattr(self, name) for name in names}
        return partial(DaskRows, **kept), (self.roles, ())

    @property
    def _origin(self) -> str:
        return f"{len(self.chunks)} Dask chunks"

    def with_offset(self, offset: Any) -> "DaskRows":
        """The same rows with offsets, which are in Dask too."""
        if self.framed:
            return super().with_offset(offset)
        parts = parts_of(aligned(lengths_of(self.owners[0]), offset, "offset"))
        check_number(len(self.chunks), len(parts), "offset")
        chunks = ((*own[:3], part) for own, part in zip(self.chunks, parts, strict=True))
        roles = replace(self.roles, offset="offset")
        return replace(self, roles=roles, chunks=tuple(chunks), owners=(*self.owners, offset))

    def each(self, make: Any) -> Iterator[Any]:
        raise ParameterError(
            "Predictions for the rows of a Dask collection are not written to a file.",
            "Pass the collection itself: the predictions are a collection like it.",
        )

    @property
    def _starts(self) -> dict[int, int]:
        """The number of the first row of each chunk that may have rows; 0 where it is unknown."""
        if not self.chunks:
            raise SourceError(
                "These rows were pickled, which leaves out their chunks.", "Fit again."
            )
        known = enumerate(lengths_of(self.owners[0]) or [0] * len(self.chunks))
        lengths = sorted(self.discovered.lengths) if self._found else list(known)
        firsts = (0, *accumulate(n for _, n in lengths))
        return {number: first for (number, _), first in zip(lengths, firsts, strict=False)}

    def _sum_batches(self, task: Callable[[Batch], S], once: bool = False) -> Iterator[S]:
        dask = import_module("dask")
        starts, roles = self._starts, self.roles if self.framed else None

        def run_on(number: int, *parts: Any) -> S:
            found: Any = task(make_batch(roles, number, starts[number], parts))
            return cast(S, replace(found, mark=_checksum(parts[0]) if found.n_rows else 0))

        # The function is a task of its own, so that it is sent once and shared by all others.
        shared = dask.delayed(run_on, pure=False, traverse=False)
        total = dask.delayed(lambda *sums: reduce(add, sums), pure=False, traverse=False)
        run = dask.delayed(_run, pure=False)
        sums = [run(shared, number, *self.chunks[number]) for number in starts]
        while len(sums) > _SUMS_A_TASK:
            groups = [sums[i : i + _SUMS_A_TASK] for i in range(0, len(sums), _SUMS_A_TASK)]
            sums = [run(total, *group) if len(group) > 1 else group[0] for group in groups]
        for found in self._compute(sums):
            if isinstance(found, PosterioriError):
                raise found
            yield cast(S, found)
        if self._found:
            self.log.read(8 * self.n_rows * (len(self.schema) + 1))

    def _compute(self, sums: list[Any]) -> Any:
        """The sums; where a chunk itself cannot be computed, an error that says which."""
        dask = import_module("dask")
        try:
            return dask.compute(*sums)
        except Exception as error:
            for number, parts in enumerate(self.chunks):
                try:
                    dask.compute(dask.delayed(lambda *parts: None)(*parts))  # sends no rows
                except Exception as own:
                    raise SourceError(
                        f"Chunk {number} of {len(self.chunks)} cannot be computed: "
                        f"{type(own).__name__}: {own}.",
                        "Correct what makes this chunk.",
                    ) from error
            raise

    def _iterate(self, random: np.random.Generator | None) -> Iterator[Batch]:
        dask, starts = import_module("dask"), self._starts
        numbers = list(starts)
        for i in range(len(numbers)) if random is None else random.permutation(len(numbers)):
            number = numbers[i]
            parts = dask.compute(*self.chunks[number])
            yield make_batch(self.roles if self.framed else None, number, starts[number], parts)


# What runs on the workers.


def _run(task: Callable[..., Any], *parts: Any) -> Any:
    """`task` of chunks or sums; or the first error, which is raised in the order of the rows."""
    try:
        with one_blas_thread():
            failed = [each for each in parts if isinstance(each, PosterioriError)]
            return failed[0] if failed else task(*parts)
    except PosterioriError as error:
        return error


def _checksum(X: Any) -> int:
    """A checksum of the first rows of a chunk, which differs if they are random."""
    frame = as_frame(X)
    if frame is not None:
        return crc32(repr(frame.head(_CHECKED).rows()).encode())
    rows = X[:_CHECKED]
    return crc32(repr((rows.toarray() if sparse.issparse(rows) else rows).tolist()).encode())


def make_batch(roles: Roles | None, number: int, start: int, parts: Parts) -> Batch:
    """A computed chunk as a batch: a frame that is split by roles, or its parts as they are."""
    where = f"chunk {number}"
    is_unknown = number > 0 and start == 0  # before discovery, unless an array knows it
    counted = f"{where} (rows counted from 0 there)" if is_unknown else where
    frame = None if roles is None else as_frame(parts[0])
    if frame is None and (roles is not None or not hasattr(parts[0], "shape")):
        raise ColumnTypeError(
            f"Chunk {number} is a {type(parts[0]).__name__}, not a data frame.",
            "Pass delayed frames, or Dask arrays to fit(X, y).",
        )
    if roles is not None and frame is not None:
        try:
            roles.features(frame.columns)
        except DataError as error:
            raise error.located(where) from error
        return roles.split(parts[0], frame.columns, start=start, where=counted, chunk=number)
    X, *rest = map(_in_one_piece, parts)
    y, weight, offset = (*rest, None, None, None)[:3]
    return Batch(X, y, weight, offset, start, counted, number)


def _in_one_piece(values: Any) -> Any:
    """A copy of what a transfer to another worker would lay out otherwise: sums then have the
    same last bits. Sparse matrices become CSR."""
    if sparse.issparse(values):
        return values.tocsr()
    if isinstance(values, np.ndarray) and not (values.flags.forc and values.flags.aligned):
        return np.array(values, order="A")
    return values


# What the user has.


def scan_dask(source: Any, roles: Roles, **given: Any) -> DaskRows:
    """Rows of a Dask data frame, or of one delayed frame or a list of them, in their order."""
    sources = list(source) if isinstance(source, list | tuple) else [source]
    if hasattr(type(sources[0]), "columns"):  # a delayed frame says yes to any name
        names = list(sources[0].columns)
        roles = replace(roles, columns=tuple(roles.features(names)))
        sources = [each[[*(roles.columns or ()), *roles.others]] for each in sources]
    elif any(hasattr(type(each), "chunks") for each in sources):
        raise ColumnTypeError(
            "A Dask array has no column names.",
            "Pass it to fit together with its target: fit(X, y).",
        )
    chunks = tuple((part,) for each in sources for part in parts_of(each, alone=True))
    return DaskRows(roles, chunks, True, tuple(sources), **given)


def dask_rows(X: Any, y: Any, sample_weight: Any = None, classes: Any = None) -> DaskRows:
    """What the user calls fit with: Dask arrays or frames, cut at the same rows.

    Arrays of known chunks are cut as X is; where sizes are unknown they must agree already.
    """
    X = whole_rows(X)
    cuts = lengths_of(X)
    others = {"y": y, "sample_weight": sample_weight}
    parts, owners = [parts_of(X)], [X]
    n = len(parts[0])
    for what, values in others.items():
        owners.append(aligned(cuts, values, what))
        parts.append([None] * n if values is None else parts_of(owners[-1]))
        check_number(n, len(parts[-1]), what)
    chunks = tuple(zip(*parts, strict=True))
    roles = Roles(() if y is None else ("y",), None if sample_weight is None else "sample_weight")
    return DaskRows(roles, chunks, False, tuple(owners), soft_classes=classes)


def check_number(n_chunks: int, found: int, what: str) -> None:
    if found != n_chunks:
        raise ShapeError(
            f"X has {n_chunks} chunks of rows, but {what} {found}.",
            "Cut them into chunks at the same rows.",
        )


def whole_rows(X: Any) -> Any:
    """An array with all columns in one chunk; anything else as it is."""
    if not hasattr(type(X), "rechunk"):
        return X
    check_shape(X.shape)
    return X if X.numblocks[1] == 1 else X.rechunk({1: -1})


def aligned(cuts: tuple[int, ...] | None, values: Any, what: str) -> Any:
    """Targets, weights or offsets in the chunks of X, where these are known."""
    if values is None:
        return None
    if not is_dask(values):
        raise ParameterError(
            f"X is a Dask collection, but {what} is in memory here.",
            f"Pass {what} in Dask too: dask.array.from_array({what}, chunks=X.chunks[0]).",
        )
    if not hasattr(type(values), "rechunk"):
        return values
    values = values if values.ndim == 1 or values.numblocks[1] == 1 else values.rechunk({1: -1})
    return values if None in (cuts, lengths_of(values)) else values.rechunk({0: cuts})


def lengths_of(values: Any) -> tuple[int, ...] | None:
    """The rows of each chunk of an array, where they are known."""
    if not hasattr(type(values), "rechunk") or any(map(isnan, values.chunks[0])):
        return None
    return tuple(map(int, values.chunks[0]))


def parts_of(values: Any, alone: bool = False) -> list[Any]:
    """The delayed chunks of a collection or a list of them, in the order of the rows.

    Frames that are read from files may be cut otherwise than they say, where Dask thinks that
    this is faster; those that are not `alone` are left as they are, for they must fit each other.
    """
    if isinstance(values, list | tuple):
        return [part for each in values for part in parts_of(each, alone)]
    if not hasattr(type(values), "to_delayed"):
        return [values]
    if hasattr(type(values), "simplify") and not alone:
        return list(values.simplify().to_delayed(optimize_graph=False))
    return list(np.ravel(cast(Any, values.to_delayed())))
