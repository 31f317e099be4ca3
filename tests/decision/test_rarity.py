"""What is rare among numbers of which not all are kept, against all of them in order."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from posteriori.errors import DataError
from posteriori.models.novelty import rarity
from posteriori.rows.features import Table
from posteriori.rows.in_memory import MemoryRows
from posteriori.rows.schema import Schema
from posteriori.statistics import calibration

RATES = [0.001, 0.01, 0.05, 0.3, 0.9]


def found_in(numbers, share, weight=None):
    table = Table(numbers.astype(float)[:, None], Schema.unnamed(1))
    return rarity(MemoryRows(table, weight=weight), share)


def draws(kind, n, seed=3):
    random = np.random.default_rng(seed)
    if kind == "ties":
        return random.integers(40, size=n).astype(float)
    numbers = random.normal(size=n)
    if kind == "far":
        numbers[: n // 10] = -1e6 * random.random(n // 10)
    if kind == "infinite":
        numbers[:3], numbers[3:5] = -np.inf, np.inf
    return numbers


def threshold(numbers, weight, share):
    """The largest of the numbers that is rare enough, one after the other."""
    p = [(1 + weight[numbers < v].sum()) / (1 + weight.sum()) for v in np.unique(numbers)]
    allowed = np.unique(numbers)[np.array(p) <= share]
    return allowed[-1] if len(allowed) else -np.inf


@pytest.mark.parametrize("most", [2**16, 300, 16, 4])
@pytest.mark.parametrize("share", RATES)
@pytest.mark.parametrize("kind", ["usual", "ties", "far", "infinite"])
def test_the_threshold_is_that_of_all_numbers_or_the_next_smaller_that_is_kept(
    kind, share, most, monkeypatch
):
    monkeypatch.setattr(calibration, "MOST", most)
    numbers = draws(kind, 1200)
    weight = np.random.default_rng(0).integers(1, 4, size=1200).astype(float)
    found, exact = found_in(numbers, share, weight), threshold(numbers, weight, share)
    assert found.total == weight.sum()
    if len(np.unique(numbers)) <= most or exact < np.unique(numbers)[most]:
        assert found.threshold == exact
    else:
        kept = found.levels[found.levels <= exact]
        assert found.threshold == kept[-1]
        skipped = weight[(numbers >= found.threshold) & (numbers < exact)].sum()
        assert skipped / weight.sum() < 12 / most


@pytest.mark.parametrize("most", [2**16, 300, 16, 4])
@pytest.mark.parametrize("kind", ["usual", "ties", "far", "infinite"])
def test_p_values_are_never_too_small_and_exact_at_the_lower_end(kind, most, monkeypatch):
    monkeypatch.setattr(calibration, "MOST", most)
    numbers = draws(kind, 1200)
    asked = np.concatenate([draws(kind, 400, seed=5), numbers[:50]])
    found = found_in(numbers, 0.05)
    p = found.p_value(asked)
    exact = np.array([(1 + (numbers <= x).sum()) / 1201 for x in asked])
    assert (p >= exact).all()
    few = len(np.unique(numbers)) <= most
    lowest = asked < np.unique(numbers)[min(most, len(np.unique(numbers))) - 1]
    assert_allclose(p[lowest | few], exact[lowest | few], rtol=1e-14)
    assert (p - exact).max() < 12 / most
    assert_array_equal(p <= 0.05, asked < found.threshold)


def test_a_row_without_a_number_is_named():
    with pytest.raises(DataError, match="no density for row 2"):
        found_in(np.array([0.0, 1.0, np.nan]), 0.5)
