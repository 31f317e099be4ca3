"""Rows of a block sorted by class, so that each class is one contiguous run."""

import math
import threading
from dataclasses import dataclass
from typing import Self, cast

import numpy as np
from scipy import sparse

from posteriori.linalg import over_rows
from posteriori.rows.block import Block
from posteriori.typing import Array, Codes

_FAR_FROM_ZERO = 1e8
"""(mean / sd)² beyond which the mean of a block is refined from its residuals."""

_FEW, _FEW_BY_ROW = 16, 8
"""Classes that are summed by a product with a column for each, of rows that lie column by column
in memory or row by row."""


_kept = threading.local()


def _workspace(shape: tuple[int, ...]) -> Array:
    """Memory of this thread for a copy of one block, used again for the next.

    Fresh memory would cost a page fault for every 4 KiB, more than the arithmetic done on it.
    """
    size = math.prod(shape)
    buffer = getattr(_kept, "buffer", None)
    if buffer is None or len(buffer) < size:
        buffer = _kept.buffer = np.empty(size)
    return buffer[:size].reshape(shape)


@dataclass(frozen=True, eq=False)
class RowsByClass:
    """A copy of the rows, class after class; `runs` has class and place of those present.

    The copy lies in the workspace of the thread: it is good until the next block.
    """

    rows: Array
    weight: Array | None
    runs: tuple[tuple[int, slice], ...]

    @classmethod
    def of(cls, X: Array, block: Block, n_classes: int) -> Self:
        """Sort the rows X of a block with one label a row."""
        order, ends = order_by_class(cast(Codes, block.y), n_classes)
        spans = enumerate(zip([0, *ends[:-1]], ends, strict=True))
        return cls(
            X.take(order, axis=0, out=_workspace(X.shape), mode="clip"),
            None if block.weight is None else block.weight[order],
            tuple((k, slice(low, high)) for k, (low, high) in spans if low < high),
        )

    def centre(self, mean: Array) -> None:
        """Take the mean of each class off its rows, and add it to its row of `mean` (K, d)."""
        for k, run in self.runs:
            rows = self.rows[run]
            weight = np.ones(len(rows)) if self.weight is None else self.weight[run]
            step = over_rows(rows, weight)
            step /= weight.sum()
            mean[k] += step
            rows -= step

    def weighted(self) -> Array:
        """Rows times the square root of their weights, whose products are weighted sums."""
        return self.rows if self.weight is None else self.rows * np.sqrt(self.weight)[:, None]


def order_by_class(codes: Codes, n_classes: int) -> tuple[Codes, list[int]]:
    """The rows in the order of their classes, and where each class ends."""
    # Sixteen bits are sorted by counting, which is several times faster.
    order = codes.astype(np.uint16 if n_classes < 2**16 else np.intp).argsort(kind="stable")
    return order, np.bincount(codes, minlength=n_classes).cumsum().tolist()


def sums_by_class(X: Array, codes: Codes, n_classes: int) -> Array:
    """Sum of the rows of each class (K, d), without sorting the rows themselves."""
    if n_classes <= (_FEW_BY_ROW if X.flags.c_contiguous else _FEW):
        hot, out = codes == np.arange(n_classes)[:, None], np.zeros((n_classes, X.shape[1]))
        present = hot.any(axis=1)  # classes without rows change no bit of the others
        out[present] = over_rows(X, hot[present].T.astype(np.float64)).T
        return out
    order, ends = order_by_class(codes, n_classes)
    member = sparse.csr_array((n_classes, len(X)))
    member.data, member.indices = np.ones(len(X)), order.astype(np.int32)
    member.indptr = np.array([0, *ends], dtype=np.int32)
    return cast(Array, member @ X)


def centre_if_far(X: Array) -> Array | None:
    """About the mean of the rows (d,), by a few of them; None where they lie near zero."""
    sample = X[:: max(1, len(X) // 64)]
    centre = sample.mean(axis=0)
    return None if (centre**2 <= sample.var(axis=0)).all() else centre


def moved(X: Array, centre: Array) -> Array:
    """X - centre, in the workspace of the thread."""
    return np.subtract(X, centre, out=_workspace(X.shape))


def is_far_from_zero(mean: Array, squares: Array, count: float) -> bool:
    """Whether some column lies so far from zero that its mean lost digits in the sum."""
    return bool((mean**2 * count > _FAR_FROM_ZERO * squares).any())
