"""All rows in one place, for solvers that visit them one after the other.

The other models need sums, so their rows may lie anywhere. A sequential solver needs the rows
themselves, in an order of its own and many times over: they are gathered into memory here, from
any source, by `map_sum` like everything else.

Conventions: n rows, m design columns, p = m + 1 parameters, the intercept first.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np
from scipy import sparse

from posteriori.errors import SourceError
from posteriori.rows.block import Block, Features, Mixed, take_rows
from posteriori.rows.chunked import ChunkedRows
from posteriori.rows.finite import check_finite
from posteriori.rows.rows import Rows
from posteriori.rows.schema import Schema
from posteriori.rows.tables import SparseTable
from posteriori.statistics.coordinates import Coordinates
from posteriori.statistics.labels import is_soft, weights_of
from posteriori.statistics.same_rows import fingerprints
from posteriori.statistics.statistic import Statistic
from posteriori.typing import Array, Codes

_SEGMENT = 2**17
"""Numbers that are laid out for the solver at a time: a mebibyte of doubles."""

_DIGITS = 9
"""Digits after the point to which rows are told apart when they are put in order."""

_KEPT = 2**24
"""Up to this many numbers (128 MiB), the rows are laid out once rather than in every epoch."""


def collected(rows: Rows) -> Block:
    """All rows as one block; an error where they lie elsewhere and memory has no room for them."""
    if isinstance(rows, ChunkedRows) and not isinstance(rows.sample.rows.table, SparseTable):
        _check_room(rows.n_rows, len(rows.schema))
    return rows.map_sum(Collect(rows.schema)).joined()


def _check_room(n_rows: int, n_columns: int) -> None:
    size, room = 8 * n_rows * n_columns, memory_size()
    if room is not None and 2 * size > room:  # they are put in order, which is a copy
        raise SourceError(
            f"The {n_rows:,} rows take {size / 1e9:.3g} GB in memory, and as much again to be put "
            f"in order; this machine has {room / 1e9:.3g} GB. A model that learns row by row needs "
            "them there.",
            "Learn from parts of the rows, by partial_fit; or use a model that is fitted by sums, "
            "such as LogisticRegression or LeastSquaresClassifier.",
        )


def memory_size() -> int | None:
    """Bytes of memory of this machine; None where the system does not tell."""
    if not hasattr(os, "sysconf"):
        return None
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@dataclass(frozen=True, eq=False)
class Collected(Statistic):
    """The blocks themselves, in their order."""

    blocks: tuple[Block, ...]

    def __add__(self, other: "Collected") -> "Collected":
        return Collected(self.blocks + other.blocks)

    def joined(self) -> Block:
        """One block of all rows: each with one class, and with a weight.

        A row with a soft label becomes one row for each class that shares it, by its share.
        """
        X = _stacked([block.X for block in self.blocks])
        y = np.concatenate([cast(Array, block.y) for block in self.blocks])
        weight = np.concatenate([weights_of(block) for block in self.blocks])
        if is_soft(self.blocks[0]):
            rows, codes = np.nonzero(y)
            return Block(take_rows(X, rows), codes, weight[rows] * y[rows, codes], 0)
        return Block(X, y, weight, 0)


def _stacked(parts: list[Features]) -> Features:
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], Mixed):
        mixed = cast(list[Mixed], parts)
        numeric = np.concatenate([part.numeric for part in mixed])
        return Mixed(numeric, np.concatenate([part.codes for part in mixed]))
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(cast(list[Array], parts))
    return sparse.csr_array(sparse.vstack(parts, format="csr"))


@dataclass(frozen=True, eq=False)
class Collect:
    """The kernel: a block as it is, if all its entries are there and finite."""

    schema: Schema

    def __call__(self, block: Block) -> Collected:
        X = block.X.numeric if isinstance(block.X, Mixed) else block.X
        with np.errstate(over="ignore", invalid="ignore"):
            total = X.sum()
        if not np.isfinite(total):
            check_finite(block, self.schema)
        return Collected((block,))


class Segment(NamedTuple):
    """Some rows to be visited: φ (k, p), class codes (k,) and weights (k,)."""

    rows: Array
    codes: Codes
    weight: Array


@dataclass(frozen=True, eq=False)
class Visits:
    """Rows to be visited in any order, standardised by `coordinates`, with weights of their own."""

    block: Block
    coordinates: Coordinates

    def __len__(self) -> int:
        return self.block.X.shape[0]

    def segments(self, order: Codes) -> Iterator[Segment]:
        """The rows in the order given, a segment at a time."""
        codes, weight = cast(Codes, self.block.y), cast(Array, self.block.weight)
        size = max(64, _SEGMENT // (len(self.coordinates.scale) + 1))
        for low in range(0, len(order), size):
            chosen = order[low : low + size]
            yield Segment(self._rows(chosen), codes[chosen], weight[chosen])

    def _rows(self, chosen: Codes) -> Array:
        if self._laid_out is not None:
            return self._laid_out[chosen]
        return self.coordinates.rows(self.block, chosen)

    @cached_property
    def _laid_out(self) -> Array | None:
        if len(self) * (len(self.coordinates.scale) + 1) > _KEPT:
            return None
        return self.coordinates.rows(self.block, np.arange(len(self)))

    def weighted(self, factor: float) -> "Visits":
        """The same rows, their weights multiplied."""
        weight = cast(Array, self.block.weight) * factor
        return Visits(replace(self.block, weight=weight), self.coordinates)

    def mean_square(self) -> float:
        """The mean of |φ|² over the rows, by weight."""
        total = sum(
            float(weight @ np.einsum("ij,ij->i", rows, rows))
            for rows, _, weight in self.segments(np.arange(len(self)))
        )
        return total / float(cast(Array, self.block.weight).sum())

    def sorted(self) -> "Visits":
        """The same rows in an order that depends on them alone, each but once.

        Rows that are alike in every entry and in the class become one, with their weights added.
        The order is that of a sum over the columns, in which each counts by how far apart it puts
        the classes: it does not depend on units, nor on the order of rows, columns or classes.
        """
        block = self.block
        codes, weight = cast(Codes, block.y), cast(Array, block.weight)
        prints, place = fingerprints(block.X, codes), self._importance()
        # Not a product, the last bits of which would depend on where a row stands.
        every = self.segments(np.arange(len(self)))
        place = np.concatenate([(segment.rows * place).sum(axis=1) for segment in every])
        _, first, group = np.unique(prints, return_index=True, return_inverse=True)
        order = np.lexsort((prints[first], np.round(place[first], _DIGITS)))
        chosen = first[order]
        total = np.bincount(group, weight).astype(np.float64)[order]
        return Visits(Block(take_rows(block.X, chosen), codes[chosen], total, 0), self.coordinates)

    def _importance(self) -> Array:
        """For each column of φ the variance of its class means (p,)."""
        K = int(cast(Codes, self.block.y).max()) + 1
        sums, counts = np.zeros((K, len(self.coordinates.scale) + 1)), np.zeros(K)
        for rows, codes, weight in self.segments(np.arange(len(self))):
            member = sparse.csr_array((weight, (codes, np.arange(len(codes)))), (K, len(codes)))
            sums += member @ rows
            counts += np.bincount(codes, weight, minlength=K)
        counts /= counts.sum()
        means = sums / sums[:, :1].sum() / np.where(counts > 0, counts, 1.0)[:, None]
        return counts @ (means - counts @ means) ** 2
