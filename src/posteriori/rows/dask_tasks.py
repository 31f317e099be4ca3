"""What runs on the workers of a Dask cluster: looks at chunks, sums of them, and steps by them.

An error comes back in place of a sum, so that the first in the order of the rows is raised.
"""

import ctypes
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, lru_cache, reduce
from importlib import import_module
from operator import add
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
from scipy import sparse

from posteriori.errors import (
    ColumnTypeError,
    DataError,
    PosterioriError,
    ShapeError,
    SourceError,
)
from posteriori.rows.chunk import Chunk, Lens, Reader, Roles, told_where
from posteriori.rows.features import as_frame
from posteriori.rows.in_memory import MemoryRows
from posteriori.rows.look import Drawn, Look, look_at
from posteriori.rows.rows import Kernel
from posteriori.rows.threads import one_blas_thread

Parts = tuple[Any, ...]

_KEPT = {-1: 2**26, -3: 2**24}
"""Limits of glibc's malloc.h: bytes of M_TRIM_THRESHOLD and M_MMAP_THRESHOLD."""


class Sent:
    """Something that is sent to the workers as it is now, closures and all.

    Not a dataclass, whose fields Dask would search for collections.
    """

    def __init__(self, value: Any) -> None:
        self.packed: bytes = import_module("cloudpickle").dumps(value)

    @property
    def value(self) -> Any:
        return _unpacked(self.packed)

    def __dask_tokenize__(self) -> str:
        return uuid4().hex


@lru_cache(maxsize=2)
def _unpacked(packed: bytes) -> Any:
    """Once for all chunks of a worker."""
    return import_module("cloudpickle").loads(packed)


class Failed(NamedTuple):
    """An error in place of a sum, so that the first in the order of the rows is raised."""

    kind: type[PosterioriError]
    problem: str
    remedy: str


def or_raise(result: Any) -> Any:
    """What came back from the workers, or the error that did."""
    if isinstance(result, Failed):
        raise result.kind(result.problem, result.remedy)
    return result


def _tried(task: Callable[[], Any], parts: Parts) -> Any:
    """What the task makes of the parts, or its error; or the first of theirs."""
    failed = next((part for part in parts if isinstance(part, Failed)), None)
    if failed is not None:
        return failed
    _keep_some_memory()
    try:
        with one_blas_thread():
            return task()
    except PosterioriError as error:
        return Failed(type(error), error.problem, error.remedy)


@cache
def _keep_some_memory() -> None:
    """Let a worker keep up to 64 MiB of what is freed, for the blocks to come.

    Dask sets its workers to hand all of it back at once, so that every temporary array of every
    block would have to be asked for page by page: a Hessian then takes half as long again.
    """
    if "MALLOC_TRIM_THRESHOLD_" not in os.environ:
        return
    with suppress(AttributeError, OSError, TypeError):  # where there is no such thing
        set_limit = ctypes.CDLL(None).mallopt
        for limit, size in _KEPT.items():
            set_limit(limit, size)


def run(sent: Sent, *parts: Any) -> Any:
    """What was sent, called with the parts; or the first error that is one of them."""
    return _tried(lambda: sent.value(*parts), parts)


def plus(*parts: Any) -> Any:
    return _tried(lambda: reduce(add, parts), parts)


def chain(sent: Sent, state: Any, turns: Iterable[Sequence[Any]]) -> Any:
    """The state after what was sent has gone on from it, turn by turn, wherever these lie."""
    dask = import_module("dask")
    after = dask.delayed(run, pure=False)
    step = dask.delayed(sent, pure=False, traverse=False)
    found = dask.delayed(state, pure=False, traverse=False)
    for turn in turns:
        found = after(step, found, *turn)
    return or_raise(found.compute())


@dataclass(frozen=True)
class MakeChunk:
    """How what a worker has becomes a chunk, seen through lenses."""

    roles: Roles | None
    through: tuple[Lens, ...] = ()

    def __call__(self, number: int, parts: Parts) -> Chunk:
        found = _chunk(self.roles, number, parts)
        return found.seen_through(self.through, _where(number)) if found.n_rows else found


@dataclass(frozen=True)
class LookAt:
    """The task of a first look at a chunk."""

    make: MakeChunk
    classes: Any
    halvings: int
    starts: tuple[int, ...] | None

    def __call__(self, number: int, *parts: Any) -> Look:
        chunk = self.make(number, parts)
        start = None if self.starts is None else self.starts[number]
        where, halvings = _where(number), self.halvings
        found = look_at(number, chunk, where, self.classes, halvings=halvings, start=start)
        return replace(found, n_bytes=chunk.n_bytes)


@dataclass(frozen=True)
class ReadChunk:
    """How a chunk becomes rows in memory, the same as when it was first looked at."""

    make: MakeChunk
    reader: Reader
    lengths: dict[int, int]
    starts: dict[int, int]

    def __call__(self, number: int, parts: Parts) -> MemoryRows:
        return self.reader(self.chunk(number, parts), self.starts[number], _where(number))

    def chunk(self, number: int, parts: Parts) -> Chunk:
        """The chunk, which is as long as it was."""
        chunk = self.make(number, parts)
        if chunk.n_rows != self.lengths[number]:
            raise SourceError(
                f"Chunk {number} has {chunk.n_rows:,} rows, and had {self.lengths[number]:,} "
                "when it was first looked at.",
                "Chunks must be the same each time they are made: fix seeds, and do not change "
                "their files.",
            )
        return chunk


@dataclass(frozen=True)
class Draw:
    """The task of drawing some of the rows of a chunk."""

    read: ReadChunk
    limit: int
    halvings: int

    def __call__(self, number: int, *parts: Any) -> Drawn:
        start = self.read.starts[number]
        return Drawn.of(start, self.read.chunk(number, parts), self.limit, self.halvings)


@dataclass(frozen=True)
class AddUp:
    """The task of summing a kernel over a chunk."""

    read: ReadChunk
    kernel: Kernel[Any]
    block_entries: int | None

    def __call__(self, number: int, *parts: Any) -> Any:
        return self.read(number, parts).add_up(self.kernel, self.block_entries)


@dataclass(frozen=True)
class Make:
    """The task of making something of the rows of a chunk."""

    read: ReadChunk
    make: Callable[[MemoryRows], Any]

    def __call__(self, number: int, *parts: Any) -> Any:
        return self.make(self.read(number, parts))


@dataclass(frozen=True)
class GoOn:
    """The task of going on from a state with the rows of a chunk."""

    read: ReadChunk
    step: Callable[[Any, MemoryRows], Any]

    def __call__(self, state: Any, number: int, *parts: Any) -> Any:
        return self.step(state, self.read(number, parts))


def _where(number: int) -> str:
    return f"In chunk {number} (rows counted from 0 there)"


def _chunk(roles: Roles | None, number: int, parts: Parts) -> Chunk:
    """The parts of a chunk, laid out in memory as they are wherever they come from."""
    if roles is not None:
        return roles.split(_frame(roles, number, parts[0]))
    strange = [part for part in parts if part is not None and not hasattr(part, "shape")]
    if strange:
        raise ColumnTypeError(
            f"Chunk {number} holds a {type(strange[0]).__name__}, which is no array and no frame.",
            "Pass delayed arrays or frames.",
        )
    chunk = Chunk(*map(_in_one_piece, parts))
    for what, values in zip(("y", "sample_weight", "offset"), chunk[1:], strict=True):
        if values is not None and values.shape[0] != chunk.n_rows:
            raise ShapeError(
                f"{_where(number)}: X has {chunk.n_rows:,} rows, but {what} {values.shape[0]:,}.",
                "Cut them into chunks at the same rows.",
            )
    return chunk


def _frame(roles: Roles, number: int, values: Any) -> Any:
    """A chunk that has the columns named; an error where it is no frame or lacks them."""
    frame = as_frame(values)
    if frame is None:
        raise ColumnTypeError(
            f"Chunk {number} is no data frame but {type(values).__name__}.",
            "Pass delayed frames, or Dask arrays to fit(X, y).",
        )
    try:
        roles.features(frame.columns)
    except DataError as error:
        raise told_where(error, _where(number)) from error
    return values


def _in_one_piece(values: Any) -> Any:
    """A view with gaps is copied, as a transfer to another worker would.

    So is what a transfer has put in an odd place, where sums may have other last bits. Sparse
    matrices of any kind become such that rows can be taken of.
    """
    if sparse.issparse(values):
        return values.tocsr()
    if isinstance(values, np.ndarray) and not (values.flags.forc and values.flags.aligned):
        return np.array(values, order="A")
    return values
