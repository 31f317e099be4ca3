"""One row in many, by the numbers of the rows: the same rows wherever they lie.

Of two rows one is taken, of two of those one, and so on, each time by a bit that looks random and
depends on the numbers of the rows alone. So one row in 2m is also one of those that are one in m,
whoever takes them, and labels that come in turns are not missed.
"""

import numpy as np
from numpy.typing import NDArray

from posteriori.typing import Codes

_AT_ONCE = 2**14
"""Groups whose rows are worked out together: what is made on the way stays in the cache."""


def one_in(many: int, start: int, n_rows: int) -> Codes:
    """Places, among the rows from `start` on, of one row of each `many` consecutive ones.

    >>> one_in(4, 0, 12), one_in(4, 5, 7)
    (array([ 0,  4, 11]), array([6]))
    """
    first, last = start // many, (start + n_rows - 1) // many + 1
    places = np.empty(last - first, dtype=np.intp)
    for low in range(first, last, _AT_ONCE):
        groups = np.arange(low, min(low + _AT_ONCE, last))
        places[groups - first] = _taken(groups, many)
    places -= start
    return places[(places >= 0) & (places < n_rows)]


def one_of(many: int, rows: Codes) -> Codes:
    """The same places, among rows of which not all are there: their numbers, in order.

    >>> one_of(4, np.array([0, 1, 3, 7, 8, 11]))
    array([0, 5])
    """
    if many == 1 or not len(rows):
        return np.arange(len(rows))
    start, n_rows = int(rows[0]), int(rows[-1] - rows[0]) + 1
    is_taken = np.zeros(n_rows, dtype=np.bool_)
    is_taken[one_in(many, start, n_rows)] = True
    return np.flatnonzero(is_taken[rows - start])


def is_one_in(many: int, rows: Codes) -> NDArray[np.bool_]:
    """Whether a row, by its number, is the one of the `many` that it lies among."""
    return _taken(rows // many, many) == rows


def _taken(groups: Codes, many: int) -> Codes:
    """The number of the row taken from each group of `many`."""
    halvings = (many & -many).bit_length() - 1
    odd, taken = many >> halvings, groups
    while halvings:
        # Eight groups that lie together are a tree of seven pairs, a bit of one number for each.
        below = (halvings - 1) // 3 * 3
        depth = 3 - (halvings - below)
        eight, place = taken >> depth, taken & (2**depth - 1)
        bits = _scrambled(eight, below)
        for above in range(depth, 3):
            place = 2 * place + (bits >> (2**above - 1 + place) & 1)
        taken, halvings = 8 * eight + place, below
    return taken if odd == 1 else taken * odd + _scrambled(taken, -1) % odd


def _scrambled(numbers: Codes, step: int) -> Codes:
    """Whole numbers that look random (the last steps of MurmurHash3), others at each step."""
    x, shift = numbers.astype(np.uint64), np.uint64(33)
    x += np.uint64((step * 0x9E3779B97F4A7C15) % 2**64)
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        x ^= x >> shift
        x *= np.uint64(factor)
    return (x >> shift).astype(np.intp)
