"""One row in many, by the numbers of the rows."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import chi2

from posteriori.rows.one_in import is_one_in, one_in, one_of


@pytest.mark.parametrize("many", [1, 2, 3, 4, 8, 12, 16, 32, 64, 128])
def test_half_as_many_are_some_of_them(many):
    rows = 7 + one_in(many, 7, 100_000)
    assert np.isin(7 + one_in(2 * many, 7, 100_000), rows).all()
    every = np.arange(7, 100_007)
    np.testing.assert_array_equal(every[is_one_in(many, every)], rows)
    some = every[every % 5 < 3]
    np.testing.assert_array_equal(some[one_of(many, some)], np.intersect1d(some, rows))
    assert len(one_of(many, some[:0])) == 0


@pytest.mark.parametrize("many", [1, 6, 8, 64])
def test_they_do_not_depend_on_where_blocks_begin(many):
    cuts = [0, 1, 5, 70, 70_000, 200_001]
    parts = [low + one_in(many, low, high - low) for low, high in pairwise(cuts)]
    np.testing.assert_array_equal(np.concatenate(parts), one_in(many, 0, 200_001))


def test_no_place_among_many_is_preferred():
    """Nor is it in every second group, and neighbours are taken independently of each other."""
    for many in (2, 8, 24, 64):
        rows = one_in(many, 0, 4000 * many)
        assert len(rows) == 4000
        for counts in (np.bincount(rows % many), np.bincount(rows[::2] % many)):
            expected = counts.sum() / many
            statistic = ((counts - expected) ** 2 / expected).sum()
            assert chi2.ppf(0.001, many - 1) < statistic < chi2.ppf(0.999, many - 1)
        steps = np.diff(rows)  # from 1 to 2 many - 1, a triangle
        assert steps.std() == pytest.approx(many * ((1 - many**-2) / 6) ** 0.5, rel=0.05)
