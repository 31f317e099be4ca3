"""The hash of the row number: nested random samples, the same wherever blocks begin."""

import numpy as np
import pytest
from scipy.stats import chi2

from posteriori.rows.block import row_hash, sample_positions

NUMBERS = np.arange(200_000)


@pytest.mark.parametrize("one_in", [1, 2, 2.5, 8, 24, 64, 1000.0])
def test_samples_have_the_expected_size_and_contain_smaller_ones(one_in):
    rows = sample_positions(one_in, NUMBERS)
    spread = np.sqrt(len(NUMBERS) / one_in * (1 - 1 / one_in))
    assert abs(len(rows) - len(NUMBERS) / one_in) <= 4 * spread
    assert np.isin(sample_positions(2 * one_in, NUMBERS), rows).all()


@pytest.mark.parametrize("seed", [0, 1, 12345])
@pytest.mark.parametrize("period", [2, 3, 8, 10])
def test_hashes_are_independent_of_the_row_number_of_its_neighbours_and_of_other_seeds(
    period, seed
):
    """Chi-squared tests, so that labels in a regular order are sampled and dealt out evenly."""
    own = (row_hash(NUMBERS, seed) % np.uint64(period)).astype(int)
    other = (row_hash(NUMBERS, seed + 1) % np.uint64(period)).astype(int)
    for beside in (NUMBERS % period, np.roll(own, 1), other):
        counts = np.bincount(own * period + beside, minlength=period**2)
        expected = len(NUMBERS) / period**2
        statistic = ((counts - expected) ** 2 / expected).sum()
        low, high = chi2.ppf([0.0005, 0.9995], period**2 - 1)
        assert low / 2 < statistic < high
