"""Lots of rows: the same whatever table holds them, and different for different rows."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.naive_bayes import GaussianNB

from posteriori.models.calibrated import CalibratedClassifier
from posteriori.rows.digests import LAST, row_lots

COLUMNS = {
    "flag": [True, False, True, None],
    "size": [1, 2, 3, 4],
    "word": ["x", None, "x", "y"],
    "rate": [0.5, -0.0, None, 1e300],
}
OBJECTS = np.array(list(zip(*COLUMNS.values(), strict=True)), dtype=object)


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame(COLUMNS),
        pd.DataFrame(COLUMNS).convert_dtypes(),
        pd.DataFrame(OBJECTS),
        pd.DataFrame(COLUMNS).astype({"word": "category", "flag": "boolean"}),
        pl.DataFrame(COLUMNS),
        pl.DataFrame(COLUMNS).cast({"word": pl.Categorical, "size": pl.Float32}),
        pa.table(COLUMNS),
        OBJECTS.tolist(),
    ],
    ids=["pandas", "nullable", "objects", "category", "polars", "categorical", "arrow", "list"],
)
def test_the_number_of_a_row_is_the_same_in_every_table(table):
    assert_array_equal(row_lots(table, 3), row_lots(OBJECTS, 3))


def test_numbers_and_truth_values_are_doubles_wherever_they_stand():
    X = np.array([[1.0, 0.0, np.nan], [0.0, 7.0, 3.0], [1.0, -0.0, np.nan]])
    expected = row_lots(X)
    frame = {"a": [True, False, True], "b": [0, 7, 0], "c": [None, 3.0, np.nan]}
    objects = np.array([[True, 0, None], [np.False_, Decimal(7), 3], [1, -0.0, pd.NA]], object)
    for table in (pd.DataFrame(frame), pl.DataFrame(frame, strict=False), objects):
        assert_array_equal(row_lots(table), expected)
    for kind in (sparse.csr_array, sparse.csc_matrix, sparse.coo_array):
        assert_array_equal(row_lots(kind(X)), expected)
    assert expected[0] == expected[2] != expected[1]


def test_a_stored_zero_and_a_sum_of_two_entries_are_the_values_they_make():
    data, rows, columns = [0.0, 1.0, 2.0], [0, 1, 1], [1, 0, 0]
    table = sparse.csr_array((data, columns, [0, 1, 3, 3]), shape=(3, 2))
    assert_array_equal(row_lots(table), row_lots(np.array([[0, 0], [3, 0], [0, 0]])))
    assert_array_equal(
        row_lots(sparse.coo_array((data, (rows, columns)), shape=(3, 2))), row_lots(table)
    )
    assert table.nnz == 3


def test_columns_of_truth_values_have_the_numbers_of_zeros_and_ones():
    X = np.random.default_rng(0).integers(2, size=(20, 3))
    assert_array_equal(row_lots(X.astype(bool)), row_lots(X.astype(np.float32)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([1.0, 2.0], [2.0, 1.0]),
        ([1.0, 1.0], [2.0, 2.0]),
        (["1", 0.0], [1, 0.0]),
        (["a", "b"], ["b", "a"]),
        ([None, "x"], ["None", "x"]),
        ([10**400, 0], [10**401, 0]),
    ],
)
def test_what_differs_in_value_or_place_has_another_number(one, other):
    first, second = row_lots(np.array([one, other], dtype=object))
    assert first != second


def _bits(lots):
    """The 53 bits of each lot, the leading one first."""
    return (lots.astype(np.int64)[:, None] >> np.arange(53)[::-1]) & 1


@pytest.mark.parametrize("scale", [1, 0.1], ids=["whole numbers", "tenths"])
def test_among_many_rows_no_two_agree_and_every_bit_is_a_fair_coin(scale):
    X = np.indices((40, 40, 40)).reshape(3, -1).T * scale
    found = row_lots(X)
    assert len(np.unique(found)) == len(X)
    bits = _bits(found)
    assert abs(bits.mean(axis=0) - 0.5).max() < 4.5 * 0.5 / np.sqrt(len(X))
    for shift in (1, 40, 1600):
        changed = (bits[shift:] ^ bits[:-shift]).sum(axis=1)
        assert abs(changed.mean() - 53 / 2) < 5 * np.sqrt(53 / 4 / len(changed))


def test_what_leads_a_lot_is_the_same_in_float32():
    random = np.random.default_rng(0)
    X = random.normal(size=(3_000, 3)) * 10.0 ** random.integers(-60, 60, size=(3_000, 3))
    X[::7, 0], X[3::7, 1] = np.nan, -1e-60
    with np.errstate(over="ignore"):
        single = X.astype(np.float32)
    lots, expected = row_lots(X), row_lots(single)
    assert_array_equal(lots // 2**LAST, expected // 2**LAST)
    assert (lots % 2**LAST != expected % 2**LAST).mean() > 0.99
    assert_array_equal(row_lots(pd.DataFrame(single)), expected)
    assert_array_equal(row_lots(sparse.csr_array(single)), expected)


def test_rows_that_are_equal_in_float32_have_other_lots():
    times = 1.7e9 + np.arange(2_000)[:, None] / 1_000
    lots = row_lots(times)
    assert len(np.unique(lots // 2**LAST)) == 1
    assert len(np.unique(lots)) == len(times)


@pytest.mark.parametrize("power", [-160, -140, 130])
def test_numbers_beyond_float32_are_told_apart(power):
    random = np.random.default_rng(0)
    X = random.integers(1, 2**40, size=(500, 2)) * 2.0**power
    X[1::2] = -X[::2]
    assert len(np.unique(row_lots(X))) == len(X)
    small = random.integers(1, 2**8, size=(500, 4)) * 2.0**power
    assert len(np.unique(row_lots(small))) == len(X)
    powers = np.concatenate([sign * 2.0 ** np.arange(-1_000, 1_000) for sign in (1, -1)])
    assert len(np.unique(row_lots(powers[:, None]))) > len(powers) - 6  # 0.95 agree by chance


@pytest.mark.parametrize("values", [(-1, 1), (0, 2), (0, 1), (2, 3)])
def test_tables_of_two_values_have_many_leading_bits(values):
    X = np.random.default_rng(0).choice(values, size=(50_000, 40))
    assert len(np.unique(row_lots(X) // 2**LAST)) > 0.995 * len(X)


def test_words_lead_to_as_many_lots_as_numbers():
    words = np.array([[f"word {i}"] for i in range(4_000)], dtype=object)
    lots = row_lots(words)
    assert len(np.unique(lots // 2**LAST)) == len(words)
    assert abs(_bits(lots).mean(axis=0) - 0.5).max() < 4.5 * 0.5 / np.sqrt(len(words))


def test_the_order_of_memory_makes_no_difference():
    X = np.random.default_rng(1).normal(size=(200, 6))
    expected = row_lots(X[:, ::2])
    assert_array_equal(row_lots(X[:, ::2].copy()), expected)
    assert_array_equal(row_lots(np.asfortranarray(X[:, ::2])), expected)
    assert_array_equal(row_lots(X[:, ::2].astype(">f8")), expected)


def test_a_column_of_truth_values_is_calibrated_alike_in_frames_and_arrays():
    random = np.random.default_rng(3)
    X = np.column_stack([random.normal(size=200), random.random(200) < 0.4])
    y = (X.sum(axis=1) + random.normal(size=200) > 0.5).astype(int)
    mixed = pd.DataFrame({"a": X[:, 0], "b": X[:, 1].astype(bool)})
    model, other = (CalibratedClassifier(GaussianNB(), random_state=seed) for seed in (None, 1))
    expected = model.fit(X, y).temperature_
    assert model.fit(mixed, y).temperature_ == expected
    assert other.fit(X, y).temperature_ != expected
