"""Labels of any sortable kind, soft labels, numbers and weights."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.exceptions import DataConversionWarning

from posteriori.errors import (
    ColumnNameError,
    DomainError,
    LabelError,
    ShapeError,
    WeightError,
)
from posteriori.rows.target import (
    merge_classes,
    read_classes,
    read_real_target,
    read_target,
    read_weight,
    same_classes,
)

LABELS = {
    "sparse": ([10**12, -(10**12), 5], [-(10**12), 5, 10**12]),
    "int8 from end to end": (np.array([-128, 127, 0], dtype=np.int8), [-128, 0, 127]),
    "uint64 beyond int64": (np.array([2**64 - 1, 2**63], dtype=np.uint64), [2**63, 2**64 - 1]),
    "booleans": ([True, False, True], [False, True]),
    "whole floats": ([1.0, -0.0, 0.0, 1e300], [0.0, 1.0, 1e300]),
    "object strings": (np.array(["b", "a"], dtype=object), ["a", "b"]),
    "bytes": (np.array([b"b", b"a"]), [b"a", b"b"]),
    "pandas Int64": (pd.Series([4, 2], dtype="Int64", index=[7, 8]), [2, 4]),
    "list of python numbers": ([3, 1.0, True], [1.0, 3.0]),
}


@pytest.mark.parametrize("case", LABELS)
def test_classes_are_sorted_and_codes_point_at_them(case):
    y, expected = LABELS[case]
    classes, codes = read_target(y, len(y))
    assert classes.tolist() == np.array(expected).tolist()
    assert [classes[code] for code in codes] == list(y)
    if isinstance(y, np.ndarray):
        assert classes.dtype == y.dtype


def test_tuples_are_labels_and_a_column_vector_is_read_with_a_warning():
    y = np.empty(3, dtype=object)
    y[:] = [("b", 1), ("a", 2), ("b", 1)]
    classes, codes = read_target(y, 3)
    assert (classes.tolist(), codes.tolist()) == ([("a", 2), ("b", 1)], [1, 0, 1])
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        classes, codes = read_target(np.array([["b"], ["a"]]), 2)
    assert (classes.tolist(), codes.tolist()) == (["a", "b"], [1, 0])


@pytest.mark.parametrize("y", [[0, 1, 1], np.zeros((2, 2, 2)), 1.0], ids=["length", "3D", "number"])
@pytest.mark.parametrize("read", [read_target, read_real_target])
def test_a_target_of_the_wrong_shape_is_refused(read, y):
    with pytest.raises(ShapeError, match="y"):
        read(y, 2)


GAPS = {
    "NaN": np.array([0.0, 1.0, np.nan]),
    "infinity": np.array([0.0, 1.0, np.inf]),
    "None": np.array(["a", "b", None], dtype=object),
    "NaN in a list of strings": ["a", "b", float("nan")],
    "NaT": np.array(["2020-01-01", "2020-01-02", "NaT"], dtype="M8[D]"),
    "pandas str": pd.Series(["a", "b", None]),
    "polars string": pl.Series(["a", "b", None]),
    "pyarrow": pa.chunked_array([["a", "b", None]]),
}


@pytest.mark.parametrize("case", GAPS)
def test_a_missing_label_is_an_error_that_names_the_row(case):
    with pytest.raises(LabelError, match="row 2"):
        read_target(GAPS[case], 3)


# Declared order.

SIDES = ["case", "control", "case", "case"]
ORDER = ["never", "control", "case"]


def _arrow_dictionary(sides, ordered=True):
    codes = pa.array([ORDER.index(side) for side in sides], pa.int8())
    return pa.DictionaryArray.from_arrays(codes, ORDER, ordered=ordered)


DECLARED = {
    "pandas.Categorical": lambda sides: pd.Categorical(sides, ORDER),
    "pandas": lambda sides: pd.Series(pd.Categorical(sides, ORDER), index=range(len(sides), 0, -1)),
    "polars Enum": lambda sides: pl.Series(sides, dtype=pl.Enum(ORDER)),
    "Arrow array": _arrow_dictionary,
}
NOT_DECLARED = {
    "pandas text": pd.Series,
    "polars Categorical": lambda sides: pl.Series(sides, dtype=pl.Categorical),
    "Arrow, not ordered": lambda sides: pa.chunked_array([_arrow_dictionary(sides, False)]),
}


@pytest.mark.parametrize("times", [1, 1000])
@pytest.mark.parametrize("source", [*DECLARED, *NOT_DECLARED])
def test_a_categorical_target_keeps_its_order_and_drops_classes_without_rows(source, times):
    y = (DECLARED | NOT_DECLARED)[source](SIDES * times)
    classes, codes = read_target(y, 4 * times)
    expected = ["control", "case"] if source in DECLARED else ["case", "control"]
    assert classes.tolist() == expected
    assert [expected[code] for code in codes] == SIDES * times
    # The order of a fit is kept, whatever labels come later.
    known, codes = read_target(y, 4 * times, known=np.array(["control", "other", "case"]))
    assert known.tolist() == ["control", "other", "case"]
    assert codes.tolist() == [2, 0, 2, 2] * times


def test_soft_labels_follow_the_order_of_the_classes_known():
    known = np.array(["b", "c", "a"])
    frame = pd.DataFrame([[0.2, 0.3, 0.5]], columns=["a", "b", "c"])
    for y, expected in ((frame, [0.3, 0.5, 0.2]), (frame.to_numpy(), [0.2, 0.3, 0.5])):
        classes, soft = read_target(y, 1, known=known)
        assert classes is known
        assert soft.tolist() == [expected]
    _, soft = read_target(frame.to_numpy(), 1, list("cab"), known=known)
    assert soft.tolist() == [[0.5, 0.2, 0.3]]
    assert same_classes(["a", "b", "c"], known)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([0, 2], [1, 2], [0, 1, 2]),
        (["case"], ["control", "case"], ["control", "case"]),
        (["control", "case"], ["case", "control"], ["control", "case"]),
        (["z", "m"], ["m", "a"], ["z", "m", "a"]),
    ],
)
def test_the_classes_of_two_statistics_are_in_an_order_that_both_have(a, b, expected):
    classes, in_a, in_b = merge_classes(np.array(a), np.array(b))
    assert classes.tolist() == expected
    assert (classes[in_a].tolist(), classes[in_b].tolist()) == (a, b)


@pytest.mark.parametrize("classes", [[0, "a"], 5, [[1, 2]], [], [None, 1], [{}], [0.5, 1.0]])
def test_classes_that_are_no_labels_are_a_named_error(classes):
    with pytest.raises(LabelError, match="classes"):
        read_classes(classes)


# Classes given.


@pytest.mark.parametrize(
    ("y", "classes", "expected", "codes"),
    [
        (["b", "d", "b"], ["d", "a", "b"], ["a", "b", "d"], [1, 2, 1]),
        ([1, 2], [2, 1, 1], [1, 2], [0, 1]),
        ([5, 3], [3, 5, 2**40], [3, 5, 2**40], [1, 0]),
    ],
    ids=str,
)
def test_labels_have_their_place_among_the_classes_given(y, classes, expected, codes):
    found, own = read_target(y, len(y), classes)
    assert (found.tolist(), own.tolist()) == (expected, codes)


@pytest.mark.parametrize(
    ("y", "classes", "words"),
    [
        (["a", "c"], ["a", "b"], "Row 1 of y is 'c', which is not among the .* 'a', 'b'.* Add it"),
        ([1, 2], ["1", "2"], "Row 0 of y is 1, which is not among the classes"),
        ([1.0, 0.5], None, r"Unknown label type: continuous\. Row 1 of y is .*0.5"),
        (np.array([1, "a"], dtype=object), None, "cannot be sorted together"),
        (None, None, "requires y to be passed"),
        (np.array([1j, 2.0]), None, "complex labels have no order"),
        (np.array([["a", "b"], ["a", "b"]]), None, "must hold numbers"),
        (np.full((2, 2), 0.5), ["a", "b", "c"], "y has 2 columns"),
    ],
    ids=str,
)
def test_labels_that_cannot_be_used_are_named(y, classes, words):
    with pytest.raises(LabelError, match=words):
        read_target(y, 2, classes)


# Soft labels.


@pytest.mark.parametrize(
    ("columns", "classes", "wanted", "swapped"),
    [
        (["yes", "no"], None, ["no", "yes"], True),
        (["first", "second"], ["yes", "no"], ["no", "yes"], True),
        (None, None, [0, 1], False),
        (None, ["b", "a"], ["a", "b"], True),
        ([0, 1], ["b", "a"], ["a", "b"], True),
    ],
)
def test_columns_of_soft_labels_name_the_classes_unless_they_have_no_names(
    columns, classes, wanted, swapped
):
    soft = [[0.3, 0.7], [1.0, 0.0]]
    frames = [soft if columns is None else pd.DataFrame(soft, columns=columns)]
    if columns is not None and isinstance(columns[0], str):
        frames += [pl.from_pandas(frames[0]), pa.Table.from_pandas(frames[0])]
    for y in frames:
        found, own = read_target(y, 2, classes)
        assert found.tolist() == wanted
        np.testing.assert_array_equal(own, np.array(soft)[:, [1, 0] if swapped else [0, 1]])


def test_columns_of_one_name_or_of_two_kinds_are_an_error():
    with pytest.raises(ColumnNameError, match="Two columns of the labels or weights have the same"):
        read_target(pd.DataFrame([[0.3, 0.7]], columns=[5, 5]), 1)
    with pytest.raises(LabelError, match="classes cannot be sorted together"):
        read_target(pd.DataFrame([[0.3, 0.7]], columns=[0, "a"]), 1)


@pytest.mark.parametrize(
    "row", [[0.5, 0.6], [-0.1, 1.1], [np.nan, 1.0], [np.inf, 0.0], [0.0, 0.0], [1, 1]], ids=str
)
def test_a_row_that_is_no_distribution_is_named(row):
    with pytest.raises(LabelError, match="Row 1 of y"):
        read_target(np.array([[0.5, 0.5], row]), 2)


# Targets that are numbers.

VALUES = [1.0, -2.5, 0.0, 1e90]

NUMBERS = {
    "array": np.array,
    "decimals": lambda v: [Decimal(x) for x in v],
    "pandas nullable": lambda v: pd.Series(v, dtype="Float64"),
    "pandas with an index": lambda v: pd.Series(v, index=[9, 4, 2, 7]),
    "polars": pl.Series,
    "pyarrow": lambda v: pa.chunked_array([v]),
}


@pytest.mark.parametrize("source", NUMBERS)
def test_numbers_of_any_source_are_doubles(source):
    values = NUMBERS[source](VALUES)
    found = read_real_target(values, 4)
    assert found.dtype == np.float64
    assert not np.shares_memory(found, np.asarray(values))
    np.testing.assert_array_equal(found, VALUES)
    if source not in ("decimals",):
        np.testing.assert_array_equal(read_weight(NUMBERS[source](np.abs(VALUES)), 4), abs(found))


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (None, "requires y to be passed"),
        ([1.0, 2.0, np.nan], r"contains NaN.* \(first in row 2\)"),
        (pl.Series([None, 1.0, 2.0]), r"contains NaN.* \(first in row 0\)"),
        ([1.0, np.inf, -np.inf], r"infinity \(first in row 1\)"),
        (["a", "b", "c"], "values of type str"),
        (np.array(["2024-01-01"] * 3, dtype="M8[D]"), "datetime64"),
    ],
    ids=str,
)
def test_what_is_no_finite_number_is_named(y, words):
    with pytest.raises(DomainError, match=words):
        read_real_target(y, 3)


def test_several_targets_are_an_error():
    with pytest.raises(ShapeError, match="several targets at once"):
        read_real_target(np.ones((3, 2)), 3)


# Weights.


@pytest.mark.parametrize(
    ("weight", "error", "match"),
    [
        ([1.0, -1.0], WeightError, "sample_weight of row 1 is -1.0"),
        ([1.0, np.nan], WeightError, "sample_weight of row 1"),
        (pl.Series([1, None]), WeightError, "sample_weight of row 1"),
        ([0.0, 0.0], WeightError, "zero in every row"),
        ([1e306, 1.0], WeightError, "too large"),
        (["a", "b"], WeightError, "does not hold numbers"),
        ([1.0], ShapeError, r"shape \(1,\), expected numbers of shape \(2,\)"),
        (2.0, ShapeError, r"expected numbers of shape \(2,\)"),
    ],
    ids=str,
)
def test_weights_that_cannot_be_used_are_refused(weight, error, match):
    with pytest.raises(error, match=match):
        read_weight(weight, 2)
