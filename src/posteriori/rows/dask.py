"""Rows in Dask: arrays, data frames and delayed frames, on threads or on a cluster.

A pass is one task a chunk, and a tree of `+` in the order of the chunks. The chunks are
made again in every pass, where they are summed: a lost worker takes nothing with it, and the sum
has the same bits whoever did what. Only a few sums come back, or small ones.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from importlib import import_module
from itertools import accumulate
from math import isnan
from operator import add
from typing import Any, TypeVar, cast

import numpy as np

from posteriori.errors import ColumnTypeError, ParameterError, ShapeError, SourceError
from posteriori.rows.chunk import Roles
from posteriori.rows.chunked import ChunkedRows
from posteriori.rows.dask_direct import Residents
from posteriori.rows.dask_kept import OnWorker, OnWorkers, room_on_workers
from posteriori.rows.dask_tasks import (
    AddUp,
    Draw,
    GoOn,
    LookAt,
    Make,
    MakeChunk,
    Parts,
    ReadChunk,
    Sent,
    chain,
    or_raise,
    plus,
    run,
)
from posteriori.rows.in_memory import MemoryRows
from posteriori.rows.kept import Kept, Room
from posteriori.rows.look import Drawn, Look, sample_halvings, whole_look
from posteriori.rows.progress import Passes, read_progress
from posteriori.rows.rows import Kernel
from posteriori.rows.schema import Schema

S = TypeVar("S")
T = TypeVar("T")

_HALVINGS = 3
"""One row in eight at most is drawn, so that what comes back is never all."""

_AT_ONCE = 8
"""Sums that one task adds up: a cluster takes milliseconds a task."""

_ROWS_AT_ONCE = 2
"""The same, where they bring rows along."""

_LITTLE = 2**20
"""Bytes of what all tasks of a pass are told, up to which each is told it by itself."""

_LITTLE_BACK = 2**25
"""Bytes of sums that come back to be added up by the client, where they are more than eight."""


def is_dask(X: Any) -> bool:
    """Whether X is a Dask collection or a list of them; dask is not imported to know it."""
    if isinstance(X, list | tuple):
        return len(X) > 0 and all(map(is_dask, X))
    return hasattr(type(X), "__dask_graph__")  # on X itself, this would build the graph


def is_table(y: Any) -> bool:
    """Whether a Dask collection is known to have several columns, such as the shares of classes."""
    return hasattr(type(y), "ndim") and y.ndim == 2


@dataclass(frozen=True, eq=False)
class DaskRows(ChunkedRows):
    """Rows in delayed chunks: one frame each if there are `roles`, else features, target, ....

    `cuts` are the rows of each chunk where they were known from the start; some of the rows are
    then drawn in the first look, one in 2^`halvings`. `owners` are the collections that the
    chunks come from: what these have on the workers is there as long as they are. Pickled, as a
    part of what is sent to the workers, the rows stay behind: what was learnt of them goes along.
    """

    chunks: tuple[Parts, ...]
    roles: Roles | None = None
    cuts: tuple[int, ...] | None = None
    halvings: int = 0
    owners: tuple[Any, ...] = ()

    def __reduce__(self) -> Any:
        seen = [replace(look, drawn=Drawn(1, 0)) for look in self._seen]
        names = ("real", "soft_classes", "known", "sides", "some")
        kept = {name: getattr(self, name) for name in names}
        return _left_behind, (self.roles, seen, kept)

    def _first_look(self) -> Look:
        starts = None if self.cuts is None else (0, *accumulate(self.cuts))
        first = Sent(LookAt(self._make_chunk, self.soft_classes, self.halvings, starts))
        with self.one_pass(None):
            at_once = _AT_ONCE if starts is None else _ROWS_AT_ONCE
            found = self._compute(first, range(len(self.chunks)), at_once)
            look = whole_look([] if found is None else [found])
            self.log.read(look.n_bytes)
        return look

    def _draw(self, limit: int, halvings: int) -> Drawn:
        task = Sent(Draw(self._read_chunk, limit, max(_HALVINGS, halvings)))
        found = self._compute(task, self._with_rows, _ROWS_AT_ONCE)
        self._count()
        return cast(Drawn, found)

    def _learnt_schema(self) -> Schema:
        found = self.look.schema()
        return found if self.roles is None else self.roles.with_levels(found)

    def with_offset(self, offset: Any) -> "DaskRows":
        """The same rows with offsets, which are in Dask too."""
        parts = parts_of(aligned(self.cuts, offset, "offset"))
        check_number(len(self.chunks), len(parts), "offset")
        chunks = ((*own[:3], part) for own, part in zip(self.chunks, parts, strict=True))
        return replace(self, chunks=tuple(chunks), owners=(*self.owners, offset), _seen=[])

    def _sum(self, kernel: Kernel[S], block_entries: int | None) -> S:
        task, numbers = Sent(AddUp(self._read_chunk, kernel, block_entries)), self._with_rows
        sums = self._residents.each(task, numbers) if self._brings_little(len(numbers)) else None
        if sums is None:
            found = self._compute(task, numbers, _AT_ONCE)
        else:
            found = or_raise(plus(*_in_groups(sums, _AT_ONCE, plus)))
        self._count()
        return cast(S, found)

    @cached_property
    def _residents(self) -> Residents:
        return Residents(self.chunks)

    def _brings_little(self, n_sums: int) -> bool:
        """Whether so many sums may come back: few, or small even as second derivatives."""
        columns = 1 + sum(max(len(column.levels) - 1, 1) for column in self.schema.columns)
        parameters = columns * (1 if self.classes is None else len(self.classes))
        return n_sums <= _AT_ONCE or 8 * n_sums * parameters**2 <= _LITTLE_BACK

    def fold(self, step: Callable[[T, MemoryRows], T], state: T) -> T:
        """A chain of tasks: nothing but the state goes from worker to worker."""
        turns = ((i, *self.chunks[i]) for i in self._with_rows)
        with self.one_pass(self.n_source):
            result = chain(Sent(GoOn(self._read_chunk, step)), state, turns)
            self._count()
        return cast(T, result)

    def keep(self, kernel: Kernel[S], make: Callable[[S], T]) -> Kept[T]:
        """One worker gets the sums of all chunks, and keeps what it makes of them."""
        task = Sent(AddUp(self._read_chunk, kernel, None))
        with self.one_pass(self.n_source):
            sums = self._each_chunk(task, self._with_rows)
            kept = OnWorker.made(lambda *sums: make(reduce(add, sums)), *sums)
            self._count()
        return kept

    def deal(
        self, split: Callable[[MemoryRows], Sequence[S]], make: Callable[..., T], n_parts: int
    ) -> OnWorkers[T]:
        """What `make` gives for the first parts of all chunks, for the second, ...: a pass."""
        task = Sent(Make(self._read_chunk, split))
        with self.one_pass(self.n_source):
            dealt = OnWorkers.dealt(self._each_chunk(task, self._with_rows), make, n_parts)
            self._count()
        return dealt

    @property
    def has_offsets(self) -> bool:
        if self.roles is not None:
            return self.roles.offset is not None
        return any(len(parts) > 3 and parts[3] is not None for parts in self.chunks[:1])

    @property
    def room(self) -> Room:
        return room_on_workers()

    def _count(self) -> None:
        """All chunks have been read once more."""
        self.log.read(self.look.n_bytes)
        self.progress.advance(self.n_source)

    @property
    def _with_rows(self) -> list[int]:
        """The numbers of chunks that are not empty."""
        if not self.chunks:
            raise SourceError(
                "These rows were left where they lie when they were pickled.", "Read them again."
            )
        lengths = dict(self.look.lengths)
        return [i for i in range(len(self.chunks)) if lengths[i]]

    @property
    def _read_chunk(self) -> ReadChunk:
        look = self.look
        return ReadChunk(self._make_chunk, self.reader, dict(look.lengths), look.starts())

    @property
    def _make_chunk(self) -> MakeChunk:
        return MakeChunk(self.roles, self.through)

    def _compute(self, task: Sent, numbers: Sequence[int], at_once: int) -> Any:
        """The sum of a task over chunks, `at_once` added in a task: as many sums come back."""
        if not numbers:
            return None
        dask = import_module("dask")
        both, each = dask.delayed(plus, pure=False), self._each_chunk(task, numbers)
        return or_raise(plus(*dask.compute(*_in_groups(each, at_once, both))))

    def _each_chunk(self, task: Sent, numbers: Sequence[int]) -> list[Any]:
        """A task for each chunk, delayed."""
        dask = import_module("dask")
        # With each task if that is little, as what tasks share is one more step on their way.
        shared = len(task.packed) * len(numbers) > _LITTLE
        sent = dask.delayed(task, pure=False, traverse=False) if shared else task
        each = dask.delayed(run, pure=False)
        return [each(sent, i, *self.chunks[i]) for i in numbers]


def _in_groups(found: list[Any], at_once: int, both: Callable[..., Any]) -> list[Any]:
    """At most so many sums, of which each is one of as many others, and so on, in their order."""
    while len(found) > at_once:
        groups = [found[i : i + at_once] for i in range(0, len(found), at_once)]
        found = [both(*group) if len(group) > 1 else group[0] for group in groups]
    return found


def _left_behind(roles: Roles | None, seen: list[Look], kept: dict[str, Any]) -> DaskRows:
    return DaskRows((), roles, _seen=seen, **kept)


# What the user has.


def scan_dask(source: Any, roles: Roles, classes: Any = None, progress: Any = False) -> DaskRows:
    """Rows of a Dask data frame, or of one delayed frame or a list of them, in their order."""
    sources = list(source) if isinstance(source, list | tuple) else [source]
    if not sources:
        raise ShapeError("There are no rows.", "Pass a source with at least one row.")
    if hasattr(type(sources[0]), "columns"):  # a delayed frame says yes to any name
        names = list(sources[0].columns)
        roles = replace(roles, columns=tuple(roles.features(names)))
        sources = [each[roles.needed(names)] for each in sources]
    elif any(hasattr(type(each), "chunks") for each in sources):
        raise ColumnTypeError(
            "A Dask array has no names of columns that could be scanned.",
            "Pass it to fit together with its target: fit(X, y).",
        )
    chunks = tuple((part,) for each in sources for part in parts_of(each, alone=True))
    passes = Passes(read_progress(progress))
    return DaskRows(chunks, roles, owners=tuple(sources), soft_classes=classes, progress=passes)


def dask_rows(
    X: Any, y: Any, sample_weight: Any = None, offset: Any = None, classes: Any = None
) -> DaskRows:
    """What the user calls fit with: Dask arrays or frames, cut at the same rows.

    Arrays of known chunks are cut as X is; where sizes are unknown they must agree already.
    """
    X = whole_rows(X)
    cuts = lengths_of(X)
    others = {"y": y, "sample_weight": sample_weight, "offset": offset}
    cut = [aligned(cuts, values, what) for what, values in others.items()]
    parts = [parts_of(X), *(None if each is None else parts_of(each) for each in cut)]
    n = len(parts[0] or ())
    for what, own in zip(others, parts[1:], strict=True):
        if own is not None:
            check_number(n, len(own), what)
    chunks = zip(*([None] * n if own is None else own for own in parts), strict=True)
    halvings = 0
    if cuts is not None:
        halvings = max(_HALVINGS, sample_halvings(sum(cuts), X.shape[1]))
    return DaskRows(tuple(chunks), None, cuts, halvings, (X, *cut), soft_classes=classes)


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
    if X.ndim != 2:
        raise ShapeError(
            f"Expected 2D array, got {X.ndim}D array instead.",
            "Reshape your data: X.reshape(-1, 1) for one column, X.reshape(1, -1) for one row.",
        )
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
    theirs = lengths_of(values)
    if cuts is None or theirs is None or cuts == theirs:
        return values
    if sum(cuts) != sum(theirs):
        raise ShapeError(
            f"X has {sum(cuts):,} rows, but {what} {sum(theirs):,}.", "Pass one of each a row."
        )
    return values.rechunk({0: cuts})


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
