"""Finding rows that are the same in every entry, in any storage."""

from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from posteriori.rows.block import Block, Features, Mixed, take_rows
from posteriori.typing import Array, Codes

Prints = NDArray[np.uint64]

_CELLS = 2**15
"""Numbers that are mixed at a time, so that they stay in the cache."""


def fingerprints(X: Features, codes: Codes) -> Prints:
    """A 64-bit number for each row with its class: the same for the same rows, dense or sparse.

    Others are alike by chance once in 1e19 pairs.

    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, -0.0]])
    >>> a, b, c = fingerprints(X, np.array([0, 0, 0]))
    >>> bool(a == c), bool(a == b)
    (True, False)
    """
    with np.errstate(over="ignore"):
        return _mixed_up(_of_entries(X) + _odd_numbers(1, start=0) * (codes + 1).astype(np.uint64))


def entry_prints(X: Features) -> Prints:
    """The same for a row whatever its class."""
    with np.errstate(over="ignore"):
        return _mixed_up(_of_entries(X))


def merged(block: Block) -> tuple[Block, Prints]:
    """The rows of a block, each but once and with the weight of all that are the same.

    They come in the order of their fingerprints, which are given too.
    """
    codes, weight = cast(Codes, block.y), cast(Array, block.weight)
    prints, first, group = np.unique(
        fingerprints(block.X, codes), return_index=True, return_inverse=True
    )
    total = np.bincount(group, weight).astype(np.float64)
    return Block(take_rows(block.X, first), codes[first], total, 0), prints


def _of_entries(X: Features) -> Prints:
    if isinstance(X, Mixed):
        levels = X.codes.astype(np.float64) + 1.0
        p = X.numeric.shape[1]
        return _of_dense(X.numeric, 1) + _of_dense(levels, 1 + p)
    if isinstance(X, sparse.csr_array):
        return _of_sparse(X)
    return _of_dense(X, 1)


def _of_dense(X: Array, start: int) -> Prints:
    n, d = X.shape
    found, odd = np.empty(n, dtype=np.uint64), _odd_numbers(d, start)
    step = max(1, _CELLS // max(d, 1))
    for low in range(0, n, step):
        bits = _mixed_up(_bits(X[low : low + step]))
        bits *= odd
        bits.sum(axis=1, dtype=np.uint64, out=found[low : low + step])
    return found


def _of_sparse(X: sparse.csr_array) -> Prints:
    """Entries that are zero count for nothing, whether they are stored or not."""
    parts = _mixed_up(_bits(X.data)) * _odd_numbers(X.shape[1], 1)[X.indices]
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(parts, dtype=np.uint64)])
    return sums[X.indptr[1:]] - sums[X.indptr[:-1]]


def _bits(values: Array) -> Prints:
    """The bits of the numbers; 0 for zero of either sign."""
    return np.ascontiguousarray(values + 0.0).view(np.uint64)


def _mixed_up(bits: Prints) -> Prints:
    """Bits that depend on all bits (Stafford's variant 13 of a finaliser); 0 stays 0."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def _odd_numbers(n: int, start: int) -> Prints:
    """One odd number a column, of no pattern."""
    steps = np.arange(start + 1, start + n + 1, dtype=np.uint64)
    return _mixed_up(steps * np.uint64(0x9E3779B97F4A7C15)) | np.uint64(1)
