"""Rows in memory: arrays, sparse matrices and data frames, cut into cache-sized blocks."""

import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import starmap
from operator import add
from typing import Any, ClassVar, Literal, TypeGuard, TypeVar, cast

import numpy as np
from scipy import sparse

from posteriori.errors import LabelError, MissingValueError, ShapeError
from posteriori.rows.block import Block, Kernel, check_missing, take_block
from posteriori.rows.categories import check_text
from posteriori.rows.features import Table, read_features
from posteriori.rows.schema import Schema
from posteriori.rows.target import read_offset, read_real_target, read_target, read_weight
from posteriori.rows.threads import map_in_order
from posteriori.typing import Array, Codes, Labels

S = TypeVar("S")

BLOCK_ENTRIES = 2**18
"""Numbers per block in prediction: 2 MiB of doubles, and 2 MiB of intermediate results."""

SUM_ENTRIES = 2**20
"""Numbers per block in sums, which have few intermediate results."""

PART_ENTRIES = 2**22
"""The same where each thread sums a batch of its own: work per block holds the interpreter's lock,
so there should be few blocks."""

SERIAL_ENTRIES = 4 * 10**5
"""Below this many numbers a prediction is made of all rows at once."""

RUNS = 32
"""Sums are added up in this many runs of blocks at most, whatever the number of threads."""

Run = list[tuple[int, int]]


@dataclass(frozen=True)
class MemoryRows:
    """A table with its targets and weights; the in-memory `Rows`.

    `start` is the number of the first row, where these are a batch of others. Such a batch
    (`is_batch`) is summed by one thread, in large blocks.
    """

    table: Table
    y: Codes | Array | None = None
    weight: Array | None = None
    classes: Labels | None = None
    offset: Array | None = None
    start: int = 0
    is_batch: bool = False

    in_memory: ClassVar[Literal[True]] = True
    log: ClassVar[None] = None

    @property
    def schema(self) -> Schema:
        return self.table.schema

    @property
    def n_rows(self) -> int:
        return self.table.n_rows

    @property
    def has_target(self) -> bool:
        return self.y is not None

    @property
    def soft(self) -> bool:
        return self.y is not None and self.y.ndim == 2

    def map_sum(self, kernel: Kernel[S], *, block_entries: int | None = None) -> S:
        if self.is_batch:
            with self.fitting():
                return self._sum(kernel, self._spans(block_entries or PART_ENTRIES))
        # Large blocks, but enough of them to keep many threads at work.
        entries = self._entries()
        size = block_entries or min(max(entries // 16, BLOCK_ENTRIES // 4), SUM_ENTRIES)
        if entries <= size:
            return kernel(self._block(0, self.n_rows))
        return reduce(add, cast(Any, self._each(partial(self._sum, kernel), size)))

    def _sum(self, kernel: Kernel[S], spans: Run) -> S:
        return reduce(add, map(cast(Any, kernel), starmap(self._block, spans)))

    @contextmanager
    def fitting(self) -> Iterator[None]:
        """The context of a fit, in which an error for missing entries counts those of all rows."""
        try:
            yield
        except MissingValueError as error:
            if error.row is not None:
                self.check_missing()
            raise

    def check_missing(self) -> None:
        """An error that lists the columns with missing entries."""
        check_missing((self._block(*span) for span in self._spans(SUM_ENTRIES)), self.schema)

    def block(self) -> Block:
        """All rows with a weight as one block."""
        return self._block(0, self.n_rows)

    def copied(self) -> "MemoryRows":
        """The same rows with a copy of the user's numbers, which may be edited afterwards."""
        values = self.table.values
        own = self.table.cut(0, self.n_rows) if isinstance(values, tuple) else deepcopy(values)
        return replace(self, table=Table(own, self.schema), y=deepcopy(self.y))

    def recoded(self, code: Callable[[Any], Array]) -> "MemoryRows":
        """The same rows with `code` of their targets in place of these."""
        return replace(self, y=code(self.y))

    def with_offset(self, offset: Any) -> "MemoryRows":
        """The same rows with numbers that are added to their activations."""
        K = 2 if self.classes is None else len(self.classes)
        return replace(self, offset=read_offset(offset, self.n_rows, 1 if K == 2 else K))

    def batches(self, random: np.random.Generator | None = None) -> "Iterator[MemoryRows]":
        """All rows at once; a source yields them batch by batch."""
        yield self

    def fill(self, out: Array, values: Callable[[Block], Array]) -> Array:
        """Write `values` of every block into its rows of `out`."""

        def write(run: Run) -> None:
            for low, high in run:
                out[low:high] = values(self._block(low, high))

        with self.fitting():
            deque(self._each(write, BLOCK_ENTRIES), maxlen=0)
        return out

    def _each(self, task: Callable[[Run], S], block_entries: int) -> Iterator[S]:
        """`task` of every run of blocks, in order; runs do not depend on threads."""
        spans = self._spans(block_entries)
        size = -(-len(spans) // RUNS)
        runs = [spans[i : i + size] for i in range(0, len(spans), size)]
        return (map_in_order if len(runs) > 1 else map)(task, runs)

    def _spans(self, block_entries: int) -> Run:
        """First and last row of each block of about so many numbers."""
        rows = max(1, int(block_entries * self.n_rows / max(self._entries(), 1)))
        starts = range(0, self.n_rows, rows)
        return [(low, min(low + rows, self.n_rows)) for low in starts]

    def _entries(self) -> int:
        if sparse.issparse(self.table.values):
            return max(int(cast(Any, self.table.values).nnz), self.n_rows)
        return self.n_rows * len(self.schema)

    def _block(self, low: int, high: int) -> Block:
        X = self.table.cut(low, high)
        y = None if self.y is None else self.y[low:high]
        offset = None if self.offset is None else self.offset[low:high]
        weight = None if self.weight is None else self.weight[low:high]
        block = Block(X, y, weight, self.start + low, offset=offset)
        if weight is None or weight.all():
            return block
        return take_block(block, np.flatnonzero(weight))


def is_memory_rows(X: Any) -> TypeGuard[MemoryRows]:
    """Whether X is a `MemoryRows`."""
    return isinstance(X, MemoryRows)


def read_rows(
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    classes: Any = None,
    *,
    model: str = "The model",
    schema: Schema | None = None,
    known_classes: Labels | None = None,
    new_levels: bool = False,
    least_classes: int = 2,
) -> MemoryRows:
    """The arguments of `fit` as rows of at least `least_classes` classes.

    With the `schema` of earlier rows, the columns are checked against it; `new_levels` says whether
    categorical columns may bring new levels. `known_classes` are those of earlier rows, in order.
    """
    check_aligned(X, y=y, sample_weight=sample_weight)
    table = read_features(X, schema, model, new_levels=new_levels)
    if schema is None:
        check_text_columns(table)
    labels, target = read_target(y, table.n_rows, classes, known=known_classes)
    weight = read_weight(sample_weight, table.n_rows)
    if classes is None and known_classes is None and target.ndim == 1 and weight is not None:
        present = np.bincount(target.astype(np.intp), weight, minlength=len(labels)) > 0
        if not present.all():  # classes of which all rows have weight zero
            labels, target = labels[present], np.maximum(np.cumsum(present) - 1, 0)[target]
    check_several(labels, table.n_rows, model, least_classes)
    return MemoryRows(table, target, weight, labels)


def read_real_rows(
    X: Any, y: Any, sample_weight: Any = None, *, model: str = "The model"
) -> MemoryRows:
    """The same with a target that is a number; such rows have no classes."""
    check_aligned(X, y=y, sample_weight=sample_weight)
    table = read_features(X, None, model)
    check_text_columns(table)
    target = read_real_target(y, table.n_rows)
    return MemoryRows(table, target, read_weight(sample_weight, table.n_rows))


def check_text_columns(table: Table) -> None:
    """An error for columns of text that are dates, numbers or identifiers."""
    for j in table.schema.categorical:
        check_text(table.schema.columns[j], int(np.count_nonzero(table.column(j) >= 0)))


def check_aligned(X: Any, **others: Any) -> None:
    """An error for pandas objects of one length whose indices differ.

    >>> import pandas as pd
    >>> check_aligned(pd.DataFrame({"a": [1, 2]}), y=pd.Series([0, 1], index=[1, 0]))
    Traceback (most recent call last):
    posteriori.errors.ShapeError: The indices of X and y are not aligned. ...
    """
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(X, pandas.DataFrame):
        return
    for name, other in others.items():
        if not isinstance(other, pandas.Series | pandas.DataFrame) or len(other) != len(X):
            continue
        if not X.index.equals(other.index):
            raise ShapeError(
                f"The indices of X and {name} are not aligned.",
                f"Put {name} into the order of X: {name}.loc[X.index]; or, if the rows are in the "
                f"same order, use {name}.to_numpy().",
            )


def check_several(labels: Labels, n_rows: int, model: str, least: int = 2) -> None:
    """An error for rows of one class only."""
    if len(labels) < least:
        raise LabelError(
            f"{model} needs rows of two classes at least; y has one class, {labels.tolist()[0]!r} "
            f"(n_samples = {n_rows}).",
            "Pass rows of every class, or name all classes: partial_fit(X, y, classes=[...]).",
        )


def read_new_rows(X: Any, schema: Schema, model: str) -> MemoryRows:
    """Rows to predict, checked against the columns of the fit."""
    return MemoryRows(read_features(X, schema, model))
