"""Sums that are made along with the first look at rows, as what a few of them show may be all.

Who sums needs the columns and classes of all rows, and is told those of a few. Where the look at
all rows finds others, the sums are thrown away, and made again in a pass of their own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeVar, cast

import numpy as np

from posteriori.errors import PosterioriError
from posteriori.rows.arrow import is_table
from posteriori.rows.chunk import Chunk
from posteriori.rows.in_memory import MemoryRows
from posteriori.rows.look import Look, SeenColumn, look_at_known
from posteriori.rows.rows import Kernel, Rows
from posteriori.rows.schema import Column, Schema
from posteriori.typing import Labels

S = TypeVar("S")


class Surprise(Exception):
    """All rows have turned out to be others than a few of them."""


@dataclass(frozen=True, eq=False)
class Glimpse:
    """The columns and classes of a few rows."""

    schema: Schema
    classes: Labels
    soft: bool

    @cached_property
    def seen(self) -> tuple[SeenColumn, ...]:
        """The columns, where these are numbers."""
        return tuple(SeenColumn(column.name, column.kind) for column in self.schema.columns)

    def look_at(self, number: int, chunk: Chunk, rows: MemoryRows) -> Look | None:
        """The look at rows that were read from a chunk as these; None if they may hold others.

        They do not if they are numbers without gaps, of which alone a table has this very schema,
        and have one label each, all of which were known: those of rows without weight are not read.
        """
        all_count = rows.weight is None or bool(rows.weight.all())
        if not is_table(chunk.X) or rows.schema is not self.schema or rows.soft or not all_count:
            return None
        return look_at_known(number, rows, self.seen)

    def covers(self, look: Look) -> bool:
        """Whether rows that were looked at have no others."""
        labels = look.labels
        if labels is None or labels.problem is not None or labels.soft != self.soft:
            return False
        columns = zip(look.columns, self.schema.columns, strict=True)
        return bool(np.isin(labels.classes(), self.classes).all()) and all(
            _is_known(seen, column) for seen, column in columns
        )

    def is_of(self, rows: Rows) -> bool:
        """Whether these are the columns and classes of the rows."""
        classes = cast(Labels, rows.classes)
        same_labels = classes.dtype == self.classes.dtype and np.array_equal(classes, self.classes)
        return same_labels and rows.schema == self.schema and rows.soft == self.soft


def _is_known(seen: SeenColumn, column: Column) -> bool:
    return seen.kind in (column.kind, None) and seen.levels <= set(column.levels)


class Unseen(Rows, Protocol):
    """Rows that can be summed while they are first looked at."""

    def look_and_sum(self, glimpse: Glimpse, kernel: Kernel[S], block_entries: int | None) -> S:
        """A sum over all rows, if the first look beside it finds no others than a few showed.

        A `Surprise` if it does.
        """
        ...


@dataclass(eq=False)
class _Ahead:
    """Rows as a few of them are, until the first sum."""

    rows: Unseen
    glimpse: Glimpse
    has_begun: bool = False

    @property
    def schema(self) -> Schema:
        return self.glimpse.schema

    @property
    def classes(self) -> Labels:
        return self.glimpse.classes

    @property
    def soft(self) -> bool:
        return self.glimpse.soft

    @property
    def n_rows(self) -> int:
        return self.rows.n_rows

    def map_sum(self, kernel: Kernel[S], *, block_entries: int | None = None) -> S:
        if self.has_begun:
            return self.rows.map_sum(kernel, block_entries=block_entries)
        self.has_begun = True
        return self.rows.look_and_sum(self.glimpse, kernel, block_entries)


def gather_ahead(rows: Unseen, glimpse: Glimpse, gather: Callable[[Rows], S]) -> S | None:
    """What `gather` makes of rows that are first looked at meanwhile; None if it must do so again.

    What it says against a few rows it need not say against all.
    """
    ahead = _Ahead(rows, glimpse)
    try:
        return gather(ahead)
    except Surprise:
        return None
    except PosterioriError:
        if ahead.has_begun:
            raise
        return None
