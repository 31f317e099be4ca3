"""Range, mean, spread and sample are those of the rows, whatever holds them."""

import numpy as np
import pytest
from scipy import sparse

from posteriori.errors import InfiniteValueError, MissingValueError
from posteriori.rows.features import read_features
from posteriori.statistics.column_moments import SAMPLE, look_over

RANDOM = np.random.default_rng(8)


def seen(X, seed=0):
    return look_over(read_features(X), np.random.RandomState(seed))


@pytest.mark.parametrize("make", [np.asarray, np.asfortranarray, sparse.csr_array])
def test_the_overview_is_that_of_the_array(make):
    X = RANDOM.normal(5, 2, (3000, 40)) * (RANDOM.random((3000, 40)) < 0.5)
    found = seen(make(X))
    np.testing.assert_array_equal(found.low, X.min(axis=0))
    np.testing.assert_array_equal(found.high, X.max(axis=0))
    np.testing.assert_allclose(found.mean, X.mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(found.spread, X.std(axis=0), rtol=1e-12)
    np.testing.assert_array_equal(found.sample, X)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_a_sample_has_distinct_rows_in_their_order(make):
    n = 3 * SAMPLE
    X = np.column_stack([np.arange(n), -np.arange(n)]).astype(float)
    found = seen(make(X))
    assert found.sample.shape == (SAMPLE, 2)
    assert (np.diff(found.sample[:, 0]) > 0).all()
    np.testing.assert_array_equal(found.sample[:, 1], -found.sample[:, 0])
    assert abs(found.sample[:, 0].mean() / n - 0.5) < 0.02
    np.testing.assert_array_equal(seen(make(X)).sample, found.sample)
    assert (seen(make(X), seed=1).sample != found.sample).any()


def test_a_constant_column_has_infinite_spread_whatever_its_rounding():
    X = np.full((1001, 3), [0.1, 1e8 / 3, 0.0])
    assert np.isinf(seen(X).spread).all()


def test_columns_beyond_the_squares_of_doubles_have_a_spread():
    X = RANDOM.normal(size=(100, 2))
    found = seen(X * [1e200, 1e-200])
    np.testing.assert_allclose(found.spread, X.std(axis=0) * [1e200, 1e-200], rtol=1e-12)


@pytest.mark.parametrize(
    ("entry", "error"), [(np.nan, MissingValueError), (-np.inf, InfiniteValueError)]
)
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_an_entry_that_is_no_number_is_named(make, entry, error):
    X = RANDOM.normal(size=(40_000, 5))
    X[31_234, 3] = entry
    with pytest.raises(error, match="row 31234, column 3"):
        seen(make(X))
