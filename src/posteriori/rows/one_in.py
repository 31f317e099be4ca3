"""One row in many, by the numbers of the rows: the same rows wherever they lie."""

import numpy as np

from posteriori.typing import Codes


def one_in(many: int, start: int, n_rows: int) -> Codes:
    """Places, among the rows from `start` on, of one row of each `many` consecutive ones.

    Which one is scrambled from group to group, so that labels that come in turns are not missed;
    it depends on the number of the row alone, not on where blocks begin.

    >>> one_in(4, 0, 12), one_in(4, 5, 7)
    (array([0, 6, 9]), array([1, 4]))
    """
    groups = np.arange(start // many, (start + n_rows - 1) // many + 1)
    places = groups * many + scrambled(groups) % many - start
    return places[(places >= 0) & (places < n_rows)]


def scrambled(numbers: Codes) -> Codes:
    """Whole numbers that look random, the same for the same input."""
    mixed = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return ((mixed ^ (mixed >> np.uint64(29))) >> np.uint64(33)).astype(np.intp)
