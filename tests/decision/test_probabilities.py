"""Probabilities that come from anywhere: what is taken, and what is an error that names the row."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal

from posteriori.decision.probabilities import read_labelled, read_proba
from posteriori.errors import (
    ColumnTypeError,
    LabelError,
    MissingValueError,
    ParameterError,
    ProbabilityError,
    ShapeError,
    WeightError,
)

GOOD = np.array([[0.25, 0.75], [1.0, 0.0], [0.5, 0.5]])


def test_one_number_a_row_is_that_of_the_second_class():
    for kind in (np.array, list, pd.Series, pl.Series):
        assert_array_equal(read_proba(kind([0.75, 0.0, 0.5])).values, GOOD)


def test_single_precision_may_miss_one_by_more():
    coarse = np.array([[1 / 3, 1 / 3, 1 / 3], [0.1, 0.2, 0.7]], dtype=np.float32)
    coarse[1, 2] += np.float32(1.2e-6)
    assert_array_equal(read_proba(coarse).values, coarse)
    with pytest.raises(ProbabilityError, match=r"Row 1 of proba.* sums to 1\.000001"):
        read_proba(coarse.astype(np.float64))


@pytest.mark.parametrize(
    ("proba", "error", "words"),
    [
        ([0.5, 1.1], ProbabilityError, "Row 1 of proba.*negative"),
        ([[0.5, 0.5], [1.5, -0.5]], ProbabilityError, "Row 1 of proba.*negative"),
        ([[0.5, 0.5], [0.5, 0.4999]], ProbabilityError, "Row 1 of proba.* sums to 0.9999"),
        ([0.5, np.nan], MissingValueError, "Row 1"),
        (np.ma.array([0.5, 0.5], mask=[0, 1]), MissingValueError, "Row 1"),
        ([0.5 + 0j], ColumnTypeError, "numbers"),
        (0.5, ShapeError, r"\(\)"),
    ],
)
def test_what_is_no_probability_is_an_error_that_names_the_row(proba, error, words):
    with pytest.raises(error, match=words):
        read_proba(proba)


def test_columns_are_those_of_classes_or_of_a_frame_by_name():
    frame = pd.DataFrame({"b": [0.9, 0.2, 0.6], "a": [0.1, 0.8, 0.4]})
    assert_array_equal(read_labelled(["b", "a", "b"], frame).own, [0.9, 0.8, 0.6])
    rows = read_labelled(["b", "b"], [[0.7, 0.2, 0.1]] * 2, classes=["c", "b", "a"])
    assert rows.classes.tolist() == ["c", "b", "a"]
    assert_array_equal(rows.probability[0], [0.7, 0.2, 0.1])
    assert_array_equal(rows.own, [0.2, 0.2])
    assert_array_equal(read_labelled(["b"], [0.7], classes=["b", "a"]).own, [1 - 0.7])


def test_a_row_of_weight_zero_is_absent_and_the_others_keep_their_numbers():
    rows = read_labelled([0, 1, 0], [0.1, 0.9, 0.2], sample_weight=[0, 2, 1])
    assert rows.row.tolist() == [1, 2]
    assert rows.weight.tolist() == [2.0, 1.0]


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"proba": [[1.0], [1.0], [1.0]]}, ShapeError, r"\(3, 1\)"),
        ({"y": [0, 1, 2]}, LabelError, "y has 3"),
        ({"y": None}, LabelError, "the target y is None"),
        ({"y": GOOD}, LabelError, "one label"),
        ({"classes": [0, 0]}, ParameterError, "class 0 twice"),
        ({"classes": [0, 1, 2]}, ParameterError, "there are 2 columns"),
        ({"classes": [0, 2]}, LabelError, "Row 1 of y is 1"),
        ({"sample_weight": [1, -1, 1]}, WeightError, "row 1"),
        ({"sample_weight": [0, 0, 0]}, WeightError, "no rows"),
    ],
)
def test_labels_that_do_not_go_with_the_probabilities_are_an_error(given, error, words):
    with pytest.raises(error, match=words):
        read_labelled(**{"y": [0, 1, 0], "proba": GOOD, **given})


def test_one_of_many_classes_has_to_be_named():
    rows = read_labelled([0, 1, 2], np.full((3, 3), 1 / 3))
    assert rows.place(2) == 2
    with pytest.raises(ParameterError, match="label="):
        rows.place(None)
    with pytest.raises(ParameterError, match="no class 7"):
        rows.place(7)
