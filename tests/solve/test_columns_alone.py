"""Columns that separate by themselves, against what their entries in each class say."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from posteriori.design.columns import Columns
from posteriori.rows.in_memory import read_rows
from posteriori.solve.columns_alone import columns_alone
from posteriori.solve.separation import find_separation
from posteriori.statistics.coordinates import Coordinates, GatherSample, by_label
from posteriori.statistics.separation_margins import PairsOf


def alone(X, y, intercept=True):
    """The coefficients of the columns that separate by themselves, in their own units."""
    rows = read_rows(X, y)
    columns = Columns(rows.schema)
    at = Coordinates.of(rows.map_sum(GatherSample(columns, by_label, 200)), columns, intercept)
    return at.original(columns_alone(rows, at, PairsOf(by_label, len(rows.classes))))


Y = np.array([0, 0, 0, 0, 1, 1, 1, 1])
OVERLAP = [0.0, 1, 2, 3, 0, 1, 2, 3]
ONES = [0.0, 0, 0, 0, 0, 0, 1, 1]
LESS = [9.0, 8, 7, 5, 5, 4, 3, 2]
CONSTANT = [4.0] * 8


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_ranges_that_touch_or_miss_each_other_are_found(form):
    X = np.column_stack([OVERLAP, ONES, LESS, CONSTANT])
    theta = alone(form(X), Y)[:, 0]
    assert theta[1] == theta[4] == 0
    assert theta[2] > 0 > theta[3]
    margins = (X @ theta[1:] + theta[0]) * np.where(Y, 1, -1)
    assert_allclose(margins[[3, 4]], 0.0, atol=1e-12)
    assert (margins[[0, 1, 2, 5, 6, 7]] > 0.1).all()


def test_without_an_intercept_ranges_must_meet_at_zero():
    theta = alone(np.column_stack([OVERLAP, ONES, LESS]), Y, intercept=False)[:, 0]
    assert theta[1] > 0
    assert theta[0] == theta[2] == 0


def test_overlap_and_rows_of_two_classes_are_not_separated():
    X = np.column_stack([OVERLAP, ONES])
    shares = np.eye(2)[Y]
    assert alone(X, shares)[2, 0] > 0
    shares[-1] = 0.5
    assert not alone(X, shares).any()


def test_each_of_several_classes_is_told_from_all_others():
    X = np.column_stack([[0, 1, 0, 0, 1, 0, 0.0, 0], [0, 0, 0, 0, 0, 0, 2, 0.0]])
    theta = alone(X, np.array([0, 0, 0, 1, 1, 1, 2, 2]))
    assert (theta[1] < 0).tolist() == [False, False, True]
    assert (theta[2] > 0).tolist() == [False, False, True]
    assert not theta[1:, :2].clip(0).any()


def test_a_level_of_a_factor_with_one_class_alone_is_named():
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.normal(size=(3000, 200))).rename(columns=str)
    y = random.integers(2, size=3000)
    level = random.choice(["a", "b"], size=3000).astype(object)
    level[np.flatnonzero(y)[:9]] = "rare"
    frame["level"] = pd.Categorical(level)
    found = find_separation(read_rows(frame, y), 2)
    assert found.kind == "quasi"
    assert found.columns == ("level[rare]",)
