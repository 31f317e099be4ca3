"""The hash of the row number: random samples, the same wherever blocks begin."""

import numpy as np
import pytest
from scipy.stats import chi2

from posteriori.rows.block import row_hash, sample_positions

NUMBERS = np.arange(200_000)


@pytest.mark.parametrize("one_in", [1, 2, 24, 1000.0])
def test_a_sample_has_one_row_of_every_run(one_in):
    rows = sample_positions(one_in, NUMBERS)
    assert (rows // one_in == np.arange(len(NUMBERS) / one_in)[: len(rows)]).all()
    counts = np.bincount((rows % one_in).astype(int), minlength=int(one_in))
    assert chi2.sf(((counts - counts.mean()) ** 2 / counts.mean()).sum(), max(one_in - 1, 1)) > 1e-3


@pytest.mark.parametrize("one_in", [2.5, 8])
def test_a_sample_is_the_same_wherever_blocks_begin_and_whichever_rows_are_left_out(one_in):
    whole = sample_positions(one_in, NUMBERS)
    n, share = len(NUMBERS), 1 / one_in
    assert abs(len(whole) - n * share) <= 4 * np.sqrt(n * share * (1 - share))
    parts = np.split(NUMBERS, [1, 1001, 1007, 150_000])
    found = np.concatenate([part[sample_positions(one_in, part)] for part in parts])
    np.testing.assert_array_equal(found, whole)
    odd = NUMBERS[1::2]
    np.testing.assert_array_equal(odd[sample_positions(one_in, odd)], whole[whole % 2 == 1])


@pytest.mark.parametrize("period", [2, 3, 10])
def test_hashes_are_independent_of_the_row_number_of_its_neighbours_and_of_other_seeds(period):
    """Chi-squared tests, so that labels in a regular order are sampled and dealt out evenly."""
    own, other = ((row_hash(NUMBERS, seed) % np.uint64(period)).astype(int) for seed in (0, 1))
    for beside in (NUMBERS % period, np.roll(own, 1), other):
        counts = np.bincount(own * period + beside, minlength=period**2)
        expected = len(NUMBERS) / period**2
        statistic = ((counts - expected) ** 2 / expected).sum()
        low, high = chi2.ppf([0.0005, 0.9995], period**2 - 1)
        assert low / 2 < statistic < high
