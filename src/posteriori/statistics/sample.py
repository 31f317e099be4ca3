"""Some of the rows, brought into memory: a first look that costs a fraction of a pass."""

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from scipy import sparse

from posteriori.rows.block import Block, Features, Mixed, take_block
from posteriori.rows.memory import MemoryRows
from posteriori.rows.one_in import one_in, one_of
from posteriori.rows.rows import Rows
from posteriori.rows.schema import Schema
from posteriori.rows.tables import table_of
from posteriori.statistics.statistic import Statistic
from posteriori.typing import Labels

_LOOK = 2**20
"""Numbers a block when few of them are looked at."""

_ALL = 2**62
"""All of them in one block, where it is no copy: then what is taken need not be put together."""


@dataclass(frozen=True, eq=False)
class Sample(Statistic):
    """Parts of blocks, and the weight of all rows they were taken from."""

    parts: tuple[Block, ...]
    weight: float

    def __add__(self, other: "Sample") -> "Sample":
        return Sample(self.parts + other.parts, self.weight + other.weight)

    def rows(self, schema: Schema, classes: Labels | None) -> MemoryRows:
        """The rows taken, as rows in memory."""

        def joined(name: str) -> Any:
            values = [getattr(part, name) for part in self.parts]
            return values[0] if len(values) == 1 or values[0] is None else np.concatenate(values)

        table = table_of(_stack([part.X for part in self.parts]), schema)
        return MemoryRows(table, joined("y"), joined("weight"), classes, joined("offset"))

    def drawn(self) -> float:
        """The weight of the rows taken."""
        return sum(_weight_of(part) for part in self.parts)


def _weight_of(block: Block) -> float:
    return float(block.X.shape[0] if block.weight is None else block.weight.sum())


def _stack(parts: list[Features]) -> Features:
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], Mixed):
        mixed = cast(list[Mixed], parts)
        return Mixed(
            np.concatenate([part.numeric for part in mixed]),
            np.concatenate([part.codes for part in mixed]),
        )
    if isinstance(parts[0], sparse.csr_array):
        return sparse.vstack(parts, format="csr")
    return np.concatenate(cast(Any, parts))


@dataclass(frozen=True, eq=False)
class TakeOneOf:
    """The kernel: one row of each `many` consecutive ones, by their numbers."""

    many: int

    def __call__(self, block: Block) -> Sample:
        if block.kept is None:
            places = one_in(self.many, block.start, block.X.shape[0])
        else:
            places = one_of(self.many, block.start + block.kept)
        return Sample((take_block(block, places),), _weight_of(block))


def sample_rows(rows: Rows, many: int) -> tuple[MemoryRows, float]:
    """One row in `many`, in memory, and how many times their weight all rows have."""
    whole = isinstance(rows, MemoryRows) and not rows.table.copies
    found = rows.map_sum(TakeOneOf(many), block_entries=_ALL if whole else _LOOK)
    drawn = found.drawn()
    return found.rows(rows.schema, rows.classes), found.weight / drawn if drawn else np.inf
