"""Labels of any sortable kind, soft labels, numbers and weights."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.exceptions import DataConversionWarning

from posteriori.errors import DomainError, LabelError, ScaleError, ShapeError, WeightError
from posteriori.rows.target import (
    encode,
    merge_classes,
    read_classes,
    read_real_target,
    read_target,
    read_weight,
)

DATES = np.array(["2021-03-01", "2020-01-01", "2021-03-01"], dtype="M8[D]")

LABELS = {
    "whole numbers": ([2, 0, 2, 1], [0, 1, 2]),
    "negative": ([-7, 3, -7, 0], [-7, 0, 3]),
    "sparse": ([10**12, -(10**12), 5], [-(10**12), 5, 10**12]),
    "far from zero": ([10**15 + 2, 10**15, 10**15 + 2], [10**15, 10**15 + 2]),
    "int8 from end to end": (np.array([-128, 127, 0], dtype=np.int8), [-128, 0, 127]),
    "uint8": (np.array([255, 0, 255], dtype=np.uint8), [0, 255]),
    "uint64 beyond int64": (
        np.array([2**64 - 1, 2**64 - 5], dtype=np.uint64),
        [2**64 - 5, 2**64 - 1],
    ),
    "booleans": ([True, False, True], [False, True]),
    "whole floats": ([1.0, -0.0, 0.0, 1e300], [0.0, 1.0, 1e300]),
    "strings": (["b", "a", "c", "a"], ["a", "b", "c"]),
    "object strings": (np.array(["b", "a"], dtype=object), ["a", "b"]),
    "bytes": (np.array([b"b", b"a"]), [b"a", b"b"]),
    "dates": (DATES, sorted(set(DATES))),
    "pandas category": (pd.Series(["b", "a", "b"], dtype="category"), ["a", "b"]),
    "pandas Int64": (pd.Series([4, 2], dtype="Int64", index=[7, 8]), [2, 4]),
    "pandas string": (pd.Series(["b", "a"], dtype="string"), ["a", "b"]),
    "polars": (pl.Series(["b", "a"]), ["a", "b"]),
    "polars enum": (pl.Series(["b", "a"], dtype=pl.Enum(["b", "a"])), ["b", "a"]),
    "pyarrow": (pa.chunked_array([["b"], ["a"]]), ["a", "b"]),
    "list of python numbers": ([3, 1.0, True], [1.0, 3.0]),
}


@pytest.mark.parametrize("case", LABELS)
def test_classes_are_sorted_and_codes_point_at_them(case):
    y, expected = LABELS[case]
    classes, codes = read_target(y, len(y))
    assert classes.tolist() == np.array(expected).tolist()
    original = y.to_pylist() if isinstance(y, pa.ChunkedArray) else list(y)
    assert [classes[code] for code in codes] == original


def test_integer_classes_keep_their_type():
    for dtype in ("i1", "i2", "i4", "i8", "u1", "u4", "u8"):
        classes, codes = encode(np.array([100, 7, 100], dtype=dtype))
        assert classes.dtype == np.dtype(dtype)
        assert codes.tolist() == [1, 0, 1]


def test_tuples_in_an_object_array_are_labels_but_a_list_of_them_is_a_matrix():
    y = np.empty(3, dtype=object)
    y[:] = [("b", 1), ("a", 2), ("b", 1)]
    classes, codes = read_target(y, 3)
    assert classes.tolist() == [("a", 2), ("b", 1)]
    assert codes.tolist() == [1, 0, 1]
    with pytest.raises(LabelError, match="not a probability distribution"):
        read_target([(1, 2), (3, 4)], 2)


def test_a_column_vector_is_read_with_a_warning():
    with pytest.warns(DataConversionWarning):
        classes, codes = read_target(np.array([["b"], ["a"]]), 2)
    assert classes.tolist() == ["a", "b"]
    assert codes.tolist() == [1, 0]


GAPS = {
    "NaN": np.array([0.0, 1.0, np.nan]),
    "infinity": np.array([0.0, 1.0, np.inf]),
    "None": np.array(["a", "b", None], dtype=object),
    "NaN among objects": np.array(["a", "b", np.nan], dtype=object),
    "pandas.NA among objects": np.array(["a", "b", pd.NA], dtype=object),
    "NaN in a list of strings": ["a", "b", float("nan")],
    "NaT": np.array(["2020-01-01", "2020-01-02", "NaT"], dtype="M8[D]"),
    "pandas str": pd.Series(["a", "b", None]),
    "pandas string": pd.Series(["a", "b", None], dtype="string"),
    "pandas category": pd.Series(["a", "b", None], dtype="category"),
    "pandas Int64": pd.Series([1, 2, None], dtype="Int64"),
    "pandas boolean": pd.Series([True, False, None], dtype="boolean"),
    "polars int": pl.Series([1, 2, None]),
    "polars string": pl.Series(["a", "b", None]),
    "polars boolean": pl.Series([True, False, None]),
    "pyarrow": pa.chunked_array([["a", "b", None]]),
}


@pytest.mark.parametrize("case", GAPS)
def test_a_missing_label_is_an_error_that_names_the_row(case):
    with pytest.raises(LabelError, match="row 2"):
        read_target(GAPS[case], 3)


def test_a_continuous_target_is_refused():
    with pytest.raises(LabelError, match=r"Unknown label type: continuous\. Row 1 of y is .*0.5"):
        read_target([1.0, 0.5], 2)


@pytest.mark.parametrize("y", [np.array([1, "a"], dtype=object), [1, "a"]], ids=["object", "list"])
def test_labels_that_cannot_be_sorted_are_refused(y):
    with pytest.raises(LabelError, match="cannot be sorted together"):
        read_target(y, 2)


@pytest.mark.parametrize(
    ("y", "error"),
    [
        (None, LabelError),
        (np.array([1j, 2.0]), LabelError),
        ([0, 1, 1], ShapeError),
        (np.zeros((2, 2, 2)), ShapeError),
        (1.0, ShapeError),
        (np.array([["a", "b"], ["a", "b"]]), LabelError),
    ],
    ids=["none", "complex", "length", "3D", "number", "text matrix"],
)
def test_what_is_no_target_is_refused(y, error):
    with pytest.raises(error):
        read_target(y, 2)


# Declared order.

SIDES = ["case", "control", "case", "case"]
ORDER = ["never", "control", "case"]


def _arrow_dictionary(ordered):
    codes = pa.array([ORDER.index(side) for side in SIDES], pa.int8())
    return pa.DictionaryArray.from_arrays(codes, ORDER, ordered=ordered)


DECLARED = {
    "pandas.Categorical": lambda: pd.Categorical(SIDES, ORDER),
    "CategoricalIndex": lambda: pd.CategoricalIndex(SIDES, ORDER),
    "pandas": lambda: pd.Series(pd.Categorical(SIDES, ORDER), index=[4, 3, 2, 1]),
    "pandas, Arrow": lambda: pd.Series(
        SIDES, dtype=pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string()))
    ).astype(pd.CategoricalDtype(ORDER)),
    "polars Enum": lambda: pl.Series(SIDES, dtype=pl.Enum(ORDER)),
    "Arrow array": lambda: _arrow_dictionary(ordered=True),
    "Arrow column": lambda: pa.chunked_array([_arrow_dictionary(ordered=True)]),
}
NOT_DECLARED = {
    "pandas text": lambda: pd.Series(SIDES),
    "pandas objects": lambda: pd.Series(SIDES, dtype=object),
    "polars Categorical": lambda: pl.Series(SIDES, dtype=pl.Categorical),
    "Arrow, not ordered": lambda: pa.chunked_array([_arrow_dictionary(ordered=False)]),
}


@pytest.mark.parametrize("times", [1, 1000])
@pytest.mark.parametrize("source", [*DECLARED, *NOT_DECLARED])
def test_a_categorical_target_keeps_its_order_and_drops_classes_without_rows(source, times):
    y = (DECLARED | NOT_DECLARED)[source]()
    y = (
        y
        if times == 1
        else y.take(np.arange(4 * times) % 4)
        if hasattr(y, "take")
        else y.gather(np.arange(4 * times) % 4)
    )
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
    assert read_target(frame.to_numpy(), 1, list("cab"), known=known)[1].tolist() == [
        [0.5, 0.2, 0.3]
    ]


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([0, 2], [1, 2], [0, 1, 2]),
        (["control", "case"], ["case"], ["control", "case"]),
        (["case"], ["control", "case"], ["control", "case"]),
        (["control", "case"], ["case", "control"], ["control", "case"]),
        (["z", "m"], ["m", "a"], ["z", "m", "a"]),
        ([1.0], [2], [1.0, 2.0]),
    ],
)
def test_the_classes_of_two_statistics_are_in_an_order_that_both_have(a, b, expected):
    classes, in_a, in_b = merge_classes(np.array(a), np.array(b))
    assert classes.tolist() == expected
    assert classes[in_a].tolist() == a
    assert classes[in_b].tolist() == b


@pytest.mark.parametrize(
    "classes", [[0, "a"], 5, [[1, 2]], [], [None, 1], [{}], [0.5, 1.0]], ids=str
)
def test_classes_that_are_no_labels_are_a_named_error(classes):
    with pytest.raises(LabelError, match="classes"):
        read_classes(classes)


def test_the_classes_of_a_categorical_are_in_its_order():
    assert read_classes(pd.Categorical(["b", "a"], ["b", "a"])).tolist() == ["b", "a"]
    assert read_classes(["b", "a", "b"]).tolist() == ["a", "b"]


# Classes given.


def test_classes_given_stand_in_order_even_when_absent():
    classes, codes = read_target(["b", "d", "b"], 3, classes=["d", "a", "b"])
    assert classes.tolist() == ["a", "b", "d"]
    assert codes.tolist() == [1, 2, 1]


def test_a_class_given_twice_counts_once():
    classes, codes = read_target([1, 2], 2, classes=[2, 1, 1])
    assert classes.tolist() == [1, 2]
    assert codes.tolist() == [0, 1]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64])
@pytest.mark.parametrize("classes", [[3, 4, 5], [2, 5, 120], [3, 5, 2**40], [5]])
def test_whole_numbers_have_their_place_among_the_classes(dtype, classes):
    top = np.iinfo(dtype).max
    known = np.array([label for label in classes if label <= top])
    y = known[np.arange(50) % len(known)].astype(dtype)
    found, codes = read_target(y, 50, classes)
    assert found.tolist() == classes
    assert codes.tolist() == [i % len(known) for i in range(50)]
    for strange in (4, 1, 121):
        if strange not in classes:
            with pytest.raises(LabelError, match=rf"Row 50 of y is {strange},"):
                read_target(np.append(y, dtype(strange)), 51, classes)


def test_whole_numbers_at_both_ends_of_a_byte_have_their_place():
    y = np.array([127, -128, 0], dtype=np.int8)
    assert read_target(y, 3, [-128, 0, 127])[1].tolist() == [2, 0, 1]


def test_a_label_that_is_not_among_the_classes_given_is_named():
    with pytest.raises(LabelError) as caught:
        read_target(["a", "c"], 2, classes=["a", "b"])
    assert "Row 1 of y is 'c', which is not among the classes given, 'a', 'b'." in str(caught.value)
    assert "name all classes in the first call: partial_fit(X, y, classes=[...])" in str(
        caught.value
    )


def test_a_number_is_not_the_string_that_spells_it():
    with pytest.raises(LabelError, match="not among the classes"):
        read_target([1, 2], 2, classes=["1", "2"])


# Soft labels.


def test_soft_labels_are_kept_as_they_are():
    soft = [[0.25, 0.75], [1.0, 0.0]]
    classes, y = read_target(soft, 2)
    assert classes.tolist() == [0, 1]
    np.testing.assert_array_equal(y, soft)


def test_columns_of_soft_labels_follow_their_classes():
    soft = np.array([[0.2, 0.3, 0.5], [0.0, 1.0, 0.0]])
    classes, y = read_target(soft, 2, classes=["c", "a", "b"])
    assert classes.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(y, soft[:, [1, 2, 0]])


@pytest.mark.parametrize(
    "frame", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"]
)
@pytest.mark.parametrize("classes", [None, ["no", "yes"], ["yes", "no"]])
def test_the_columns_of_a_data_frame_of_soft_labels_name_the_classes(frame, classes):
    y = frame({"yes": [0.3, 0.0], "no": [0.7, 1.0]})
    found, soft = read_target(y, 2, classes)
    assert found.tolist() == ["no", "yes"]
    np.testing.assert_array_equal(soft, [[0.7, 0.3], [1.0, 0.0]])


def test_columns_with_other_names_are_the_classes_given_in_their_order():
    y = pd.DataFrame({"first": [0.3, 0.0], "second": [0.7, 1.0]})
    found, soft = read_target(y, 2, classes=["yes", "no"])
    assert found.tolist() == ["no", "yes"]
    np.testing.assert_array_equal(soft, [[0.7, 0.3], [1.0, 0.0]])


@pytest.mark.parametrize(
    ("columns", "classes", "wanted"),
    [
        ([2, 1], None, [1, 2]),
        ([True, False], None, [False, True]),
        ([0, 1], None, [0, 1]),
        ([0, 1], ["b", "a"], ["a", "b"]),
        ([0, "a"], None, [0, 1]),
    ],
)
def test_numbers_name_columns_too_unless_they_are_those_of_no_names(columns, classes, wanted):
    found, soft = read_target(pd.DataFrame([[0.3, 0.7]], columns=columns), 1, classes)
    assert found.tolist() == wanted
    swapped = columns[0] in (2, True) or classes is not None
    np.testing.assert_array_equal(soft, [[0.7, 0.3] if swapped else [0.3, 0.7]])


def test_unnamed_columns_are_the_classes_given_in_their_order():
    found, soft = read_target(pd.DataFrame([[0.3, 0.7]]), 1, classes=[1, 0])
    assert found.tolist() == [0, 1]
    np.testing.assert_array_equal(soft, [[0.7, 0.3]])


def test_two_columns_of_one_name_are_an_error():
    y = pd.DataFrame([[0.3, 0.7]], columns=[5, 5])
    with pytest.raises(ShapeError, match="Columns of the labels or weights have the same name"):
        read_target(y, 1)


@pytest.mark.parametrize(
    "row", [[0.5, 0.6], [-0.1, 1.1], [np.nan, 1.0], [np.inf, 0.0], [0.0, 0.0], [1, 1]], ids=str
)
def test_a_row_that_is_no_distribution_is_named(row):
    with pytest.raises(LabelError, match="Row 1 of y"):
        read_target(np.array([[0.5, 0.5], row]), 2)


@pytest.mark.parametrize("classes", [["a"], ["a", "a"], ["a", "b", "c"]])
def test_soft_labels_need_one_class_a_column(classes):
    with pytest.raises(LabelError, match="y has 2 columns"):
        read_target(np.array([[0.5, 0.5]]), 1, classes=classes)


# Targets that are numbers.

VALUES = [1.0, -2.5, 0.0, 1e300]

SOURCES = {
    "list": list,
    "tuple": tuple,
    "array": np.array,
    "objects": lambda v: np.array(v, dtype=object),
    "decimals": lambda v: [Decimal(x) for x in v],
    "fractions": lambda v: [Fraction(x) for x in v],
    "pandas": pd.Series,
    "pandas nullable": lambda v: pd.Series(v, dtype="Float64"),
    "pandas with an index": lambda v: pd.Series(v, index=[9, 4, 2, 7]),
    "polars": pl.Series,
    "pyarrow": pa.chunked_array,
}


@pytest.mark.parametrize("source", [s for n, s in SOURCES.items() if n != "pyarrow"])
def test_numbers_of_any_source_are_doubles(source):
    found = read_real_target(source(VALUES), 4)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, VALUES)


def test_an_arrow_column_is_read_too():
    np.testing.assert_array_equal(read_real_target(pa.chunked_array([VALUES]), 4), VALUES)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint16, np.int64, np.float16, np.longdouble])
def test_numbers_of_any_type_are_doubles(dtype):
    found = read_real_target(np.array([0, 1, 1], dtype=dtype), 3)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, [0.0, 1.0, 1.0])


def test_the_answer_is_the_readers_own():
    y = np.array([1.0, 2.0])
    read_real_target(y, 2)[0] = 5.0
    assert y[0] == 1.0


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (None, "requires y to be passed"),
        ([1.0, 2.0, np.nan], r"contains NaN \(first in row 2\)"),
        ([1.0, None, 2.0], r"contains NaN \(first in row 1\)"),
        (pd.Series([1, pd.NA, 2], dtype="Int64"), r"contains NaN \(first in row 1\)"),
        (pl.Series([None, 1.0, 2.0]), r"contains NaN \(first in row 0\)"),
        ([1.0, np.inf, -np.inf], r"contains infinity \(first in row 1\)"),
        (["a", "b", "c"], "values of type str"),
        (["1", "2", "3"], "values of type str"),
        (np.array([1.0, "b", 2.0], dtype=object), "Row 1 of y is 'b'"),
        ([1j, 2j, 3j], "complex"),
        (np.array(["2024-01-01"] * 3, dtype="M8[D]"), "datetime64"),
        (np.array([1, 2, 3], dtype="m8[s]"), "timedelta64"),
    ],
    ids=str,
)
def test_what_is_no_finite_number_is_named(y, words):
    with pytest.raises(DomainError, match=words):
        read_real_target(y, 3)


def test_a_whole_number_beyond_all_doubles_is_named():
    with pytest.raises(ScaleError, match="beyond the largest double"):
        read_real_target([1, 10**400], 2)


@pytest.mark.parametrize("y", [np.ones(4), np.ones((3, 2)), np.ones((3, 1, 1)), 1.0], ids=str)
def test_a_wrong_shape_is_named(y):
    with pytest.raises(ShapeError, match="y"):
        read_real_target(y, 3)


def test_one_column_is_taken_with_the_warning_of_scikit_learn():
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        found = read_real_target(np.ones((3, 1)), 3)
    np.testing.assert_array_equal(found, np.ones(3))


# Weights.


@pytest.mark.parametrize(
    "weight",
    [
        [0, 1, 3],
        np.array([0, 1, 3], dtype=np.uint8),
        np.array([0.0, 1.0, 3.0], dtype=np.float32),
        pd.Series([0, 1, 3], dtype="Int64"),
        pl.Series([0.0, 1.0, 3.0]),
        pa.chunked_array([[0, 1, 3]]),
    ],
    ids=type,
)
def test_weights_become_doubles(weight):
    w = read_weight(weight, 3)
    assert w.dtype == np.float64
    assert w.tolist() == [0.0, 1.0, 3.0]


def test_no_weights_stay_none():
    assert read_weight(None, 3) is None


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf, -np.inf])
def test_a_bad_weight_names_its_row(bad):
    with pytest.raises(WeightError, match="sample_weight of row 2"):
        read_weight([1.0, 0.0, bad], 3)


def test_a_missing_weight_in_a_data_frame_names_its_row():
    for weight in (pd.Series([1, None], dtype="Int64"), pl.Series([1, None])):
        with pytest.raises(WeightError, match="sample_weight of row 1"):
            read_weight(weight, 2)


@pytest.mark.parametrize(
    ("weight", "error", "match"),
    [
        ([0.0, 0.0], WeightError, "zero in every row"),
        (["a", "b"], WeightError, "does not hold numbers"),
        ([1.0], ShapeError, r"shape \(1,\), expected \(2,\)"),
        ([1.0, 1.0, 1.0], ShapeError, r"expected \(2,\)"),
        ([[1.0], [1.0]], ShapeError, r"expected \(2,\)"),
        (2.0, ShapeError, r"expected \(2,\)"),
    ],
    ids=["zeros", "text", "short", "long", "matrix", "number"],
)
def test_weights_that_cannot_be_used_are_refused(weight, error, match):
    with pytest.raises(error, match=match):
        read_weight(weight, 2)
