"""Samples of rows: which rows, with what belongs to them, from any storage."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from posteriori.design.columns import Columns
from posteriori.rows.in_memory import Among, read_rows
from posteriori.rows.one_in import one_in
from posteriori.statistics.row_sample import TakeOneOf, sample_rows

N = 103
NUMBERS = np.arange(N, dtype=np.float64)


def sources():
    frame = pd.DataFrame({"x": NUMBERS, "f": pd.Categorical(["a", "b", "c", "d"] * 25 + ["a"] * 3)})
    return {
        "dense": np.stack([NUMBERS, -NUMBERS], axis=1),
        "sparse": sparse.csr_array(np.stack([NUMBERS, -NUMBERS], axis=1)),
        "frame": frame,
    }


@pytest.mark.parametrize("source", ["dense", "sparse", "frame"])
def test_one_row_of_each_seven_is_taken_wherever_blocks_begin(source):
    X, y = sources()[source], (NUMBERS % 2).astype(int)
    rows = read_rows(X, y, sample_weight=NUMBERS + 1)
    whole = rows.map_sum(TakeOneOf(7)).rows(rows.schema, rows.classes)
    parts = rows.map_sum(TakeOneOf(7), block_entries=11).rows(rows.schema, rows.classes)
    first, second = (
        np.concatenate(
            taken.map_sum(lambda block: [Columns(rows.schema).design(block).array()[:, 0]])
        )
        for taken in (whole, parts)
    )
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first // 7, np.arange(len(first)))
    np.testing.assert_array_equal(whole.y, first % 2)
    np.testing.assert_array_equal(whole.weight, first + 1)


def test_labels_that_come_in_turns_are_all_sampled():
    for period in (2, 4, 8, 16):
        rows = read_rows(np.ones((16_000, 1)), np.arange(16_000) % period)
        taken, _ = sample_rows(rows, 8)
        shares = np.bincount(taken.y, minlength=period) / taken.n_rows
        np.testing.assert_allclose(shares, 1 / period, rtol=0.35)


def test_the_factor_is_the_ratio_of_weights():
    weight = NUMBERS + 1
    rows = read_rows(NUMBERS[:, None], (NUMBERS % 2).astype(int), sample_weight=weight)
    taken, factor = sample_rows(rows, 10)
    assert factor == pytest.approx(weight.sum() / taken.weight.sum(), rel=1e-14)


def test_rows_of_weight_zero_are_not_sampled():
    weight = np.where(NUMBERS % 3 == 0, 0.0, 1.0)
    rows = read_rows(NUMBERS[:, None], (NUMBERS % 2).astype(int), sample_weight=weight)
    taken, _ = sample_rows(rows, 2)
    assert (taken.weight > 0).all()


def test_rows_are_taken_by_the_numbers_they_have_among_others():
    """Whether others have the weight zero, or are not there."""
    y, many = (NUMBERS % 2).astype(int), 4
    kept = np.flatnonzero(NUMBERS % 5 != 2)
    expected = np.intersect1d(one_in(many, 0, N), kept)
    there = read_rows(NUMBERS[:, None], y, sample_weight=np.isin(np.arange(N), kept).astype(float))
    picked = replace(read_rows(NUMBERS[kept, None], y[kept]), among=Among(kept, N))
    for rows in (there, picked):
        for block_entries in (None, 9):
            found = rows.map_sum(TakeOneOf(many), block_entries=block_entries)
            values = found.rows(rows.schema, rows.classes).table.values[:, 0]
            np.testing.assert_array_equal(values, expected)
