"""Whatever holds the table, the numbers that come out are the same."""

from datetime import datetime
from functools import reduce
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from posteriori import (
    GLM,
    CalibratedClassifier,
    LogisticRegression,
    NaiveBayes,
    OneVersusRest,
    scan,
)
from posteriori.design.columns import Columns
from posteriori.errors import (
    ColumnNameError,
    ColumnTypeError,
    IdentifierColumnError,
    LevelError,
    ParameterError,
    ShapeError,
)
from posteriori.rows.block import MISSING, UNSEEN, Block, Mixed, take_block
from posteriori.rows.features import read_features
from posteriori.rows.in_memory import read_rows
from posteriori.rows.schema import Column, Schema
from posteriori.statistics.statistic import union_of_columns

NUMBERS = np.array([[0.0, 1.5, -2.0], [3.0, 0.0, 0.0], [0.0, -4.25, 5.0], [6.0, 0.0, 7.0]])


def cut(X: Any, schema: Schema | None = None) -> Any:
    table = read_features(X, schema, "TheModel")
    return table.cut(0, table.n_rows)


def dense(part: Any) -> np.ndarray:
    return part.toarray() if sparse.issparse(part) else part


NUMERIC_SOURCES = {
    "array": lambda: NUMBERS,
    "np.matrix": lambda: NUMBERS.copy().view(np.matrix),
    "csr_array": lambda: sparse.csr_array(NUMBERS),
    "pyarrow record batch": lambda: pa.record_batch(dict(zip("abc", NUMBERS.T, strict=True))),
}


@pytest.mark.parametrize("source", NUMERIC_SOURCES)
def test_every_source_gives_the_same_numbers(source):
    table = read_features(NUMERIC_SOURCES[source]())
    for low, high in ((0, 4), (1, 3), (2, 2), (3, 4)):
        values = dense(table.cut(low, high))
        assert values.dtype == np.float64
        assert type(values) is np.ndarray
        np.testing.assert_array_equal(values, NUMBERS[low:high])
    assert table.n_rows == 4
    named = source.startswith("pyarrow")
    assert table.schema.names == (tuple("abc") if named else ("x0", "x1", "x2"))
    assert table.schema.named is named
    np.testing.assert_array_equal(dense(cut(NUMERIC_SOURCES[source](), table.schema)), NUMBERS)


def test_an_array_of_doubles_is_not_copied_and_masked_entries_are_missing():
    X, rows = np.asfortranarray(NUMBERS), sparse.csr_array(NUMBERS)
    assert np.shares_memory(cut(X), X)
    assert np.shares_memory(cut(rows).data, rows.data)
    masked = np.ma.array([[1, 2], [3, 4]], mask=[[False, True], [False, False]])
    np.testing.assert_array_equal(cut(masked), [[1.0, np.nan], [3.0, 4.0]])


# Tables of mixed kinds: numbers, whole numbers, booleans, text, and an ordered factor.

MIXED = {
    "size": [1.5, None, -2.0, 0.25],
    "count": [3, 1, None, 2],
    "flag": [True, None, False, True],
    "colour": ["red", "blue", None, "red"],
    "grade": ["mid", "low", "mid", None],
}
GRADES = ["low", "mid", "high"]


GRADE = pd.Categorical(MIXED["grade"], categories=GRADES, ordered=True)


def arrow_table() -> pa.Table:
    grade = pa.DictionaryArray.from_arrays(pa.array([1, 0, 1, None], pa.int32()), GRADES)
    return pa.table(MIXED | {"grade": grade})


MIXED_SOURCES = {
    "pandas nullable": lambda: pd.DataFrame(MIXED).convert_dtypes().assign(grade=GRADE),
    "pandas plain": lambda: pd.DataFrame(MIXED).assign(grade=GRADE),
    "pandas objects": lambda: pd.DataFrame(MIXED, dtype=object).assign(grade=GRADE),
    "pandas arrow": lambda: arrow_table().to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda: pl.DataFrame(MIXED, schema_overrides={"grade": pl.Enum(GRADES)}),
    "pyarrow": arrow_table,
}
MIXED_SCHEMA = Schema(
    (
        Column("size"),
        Column("count"),
        Column("flag", "boolean"),
        Column("colour", "categorical", ("blue", "red")),
        Column("grade", "categorical", ("low", "mid")),
    ),
    named=True,
)
MIXED_NUMBERS = np.array(
    [[1.5, 3.0, 1.0], [np.nan, 1.0, np.nan], [-2.0, np.nan, 0.0], [0.25, 2.0, 1.0]]
)
MIXED_CODES = np.array([[1, 1], [0, 0], [MISSING, 1], [1, MISSING]])


@pytest.mark.parametrize("times", [1, 1000])
@pytest.mark.parametrize("source", MIXED_SOURCES)
def test_every_data_frame_gives_the_same_numbers_codes_and_gaps(source, times):
    frame = MIXED_SOURCES[source]()
    join = {pd.DataFrame: pd.concat, pl.DataFrame: pl.concat, pa.Table: pa.concat_tables}
    frame = join[type(frame)]([frame] * times)
    names = list(MIXED)[::-1]
    turned = frame[names] if isinstance(frame, pd.DataFrame) else frame.select(names)
    tables = [read_features(frame), *(read_features(X, MIXED_SCHEMA) for X in (frame, turned))]
    for table in tables:
        assert table.schema == MIXED_SCHEMA
        for low, high in ((0, 4 * times), (1, 3)):
            part = table.cut(low, high)
            assert isinstance(part, Mixed)
            numbers, codes = (np.tile(each, (times, 1)) for each in (MIXED_NUMBERS, MIXED_CODES))
            np.testing.assert_array_equal(part.numeric, numbers[low:high])
            np.testing.assert_array_equal(part.codes, codes[low:high])


@pytest.mark.parametrize(
    ("values", "levels", "codes"),
    [
        ([3, None, 1], ("1", "3"), [1, MISSING, 0]),
        ([2.5, None, 1.0], ("1.0", "2.5"), [1, MISSING, 0]),
        ([True, None, False], ("False", "True"), [1, MISSING, 0]),
    ],
)
def test_levels_that_are_not_text_are_known_by_their_names(values, levels, codes):
    frame = pd.DataFrame({"a": pd.Categorical(values)})
    table = read_features(frame)
    assert table.schema.columns[0].levels == levels
    assert table.cut(0, 3).codes[:, 0].tolist() == codes
    # A gap among new rows must not change what the levels are called.
    assert cut(frame[:2], table.schema).codes[:, 0].tolist() == codes[:2]


@pytest.mark.parametrize("gap", [None, np.nan, pd.NA, pd.NaT], ids=repr)
def test_objects_are_numbers_or_levels_column_by_column(gap):
    table = read_features([["b", 1.5], ["a", gap], [gap, 2], ["b", True]])
    assert table.schema.columns == (
        Column("x0", "categorical", ("a", "b")),
        Column("x1", "numeric"),
    )
    part = table.cut(0, 4)
    np.testing.assert_array_equal(part.numeric[:, 0], [1.5, np.nan, 2.0, 1.0])
    assert part.codes[:, 0].tolist() == [1, 0, MISSING, 1]
    text = cut(np.array([["u", "y"], ["v", "x"]]))
    assert (text.numeric.shape, text.codes.tolist()) == ((2, 0), [[0, 1], [1, 0]])


# Against the schema of a fit.


@pytest.mark.parametrize(
    "make",
    [
        pl.DataFrame,
        lambda data: pd.DataFrame(data, dtype="category"),
        lambda data: pl.DataFrame(data, schema={"f": pl.Enum(["b", "puma", "a", "zebra"])}),
        lambda data: np.array(data["f"])[:, None],
    ],
    ids=["text", "category", "Enum", "strings"],
)
def test_the_first_level_never_seen_is_named(make):
    named = not isinstance(make({"f": ["a"]}), np.ndarray)
    schema = Schema((Column("f" if named else "x0", "categorical", ("a", "b")),), named=named)
    data = make({"f": ["b", "a", "zebra", "puma", "a"]})
    part = cut(data, schema)
    assert part.codes[:, 0].tolist() == [1, 0, UNSEEN, UNSEEN, 0]
    where = "column 'f'" if named else "column 0"
    block = Block(part, None, None, 0)
    for rows in (block, take_block(block, np.array([1, 2]))):
        with pytest.raises(
            LevelError, match=f"Row 2 has the level 'zebra' in {where}, which was not"
        ):
            Columns(schema).design(rows)
    assert read_features(data, schema).schema == schema


# Levels have one order: as declared, else sorted.

PARTS = [["low", "low"], ["high", "low"], ["mid", "mid"]]
TYPES = {
    "pandas text": (pd.Series, ("high", "low", "mid")),
    "pandas category": (
        lambda v: pd.Series(v, dtype=pd.CategoricalDtype(GRADES)),
        ("low", "mid", "high"),
    ),
    "polars Enum": (lambda v: pl.Series(v, dtype=pl.Enum(GRADES)), ("low", "mid", "high")),
    "polars Categorical": (
        lambda v: pl.Series(v, dtype=pl.Categorical),
        ("high", "low", "mid"),
    ),
}


@pytest.mark.parametrize("source", TYPES)
def test_levels_have_one_order_in_memory_in_batches_and_in_sums(source):
    make, expected = TYPES[source]
    frame = pl.DataFrame if source.startswith("polars") else pd.DataFrame
    whole = frame({"f": make([level for part in PARTS for level in part])})
    assert read_features(whole).schema.columns[0].levels == expected
    for order in permutations(PARTS):
        parts = [frame({"f": make(part)}) for part in order]
        table = read_features(parts[0])
        for part in parts[1:]:
            table = read_features(part, table.schema, new_levels=True)
        joined = reduce(union_of_columns, [read_features(part).schema for part in parts])
        assert table.schema.columns[0].levels == joined.columns[0].levels == expected


# Text that is no factor.

IDENTIFIERS = [f"user {i}" for i in range(30_000)]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_an_identifier_is_refused(frame):
    for ids in (IDENTIFIERS, ["same"] * 1000 + IDENTIFIERS, [None] * 5000 + IDENTIFIERS):
        with pytest.raises(IdentifierColumnError, match=r"Column 'id' is text with 30,00.*Drop"):
            read_rows(frame({"id": ids, "x": np.ones(len(ids))}), np.arange(len(ids)) % 2)


def test_identifiers_are_refused_in_formulas_wrappers_and_files(tmp_path):
    frame = pl.DataFrame({"id": IDENTIFIERS, "x": 1.0, "y": np.arange(30_000) % 2})
    frame.write_parquet(tmp_path / "a.parquet")
    for model, *data in (
        (LogisticRegression(), "y ~ x + id", frame),
        (CalibratedClassifier(estimator=NaiveBayes()), frame.drop("y"), frame["y"]),
        (LogisticRegression(), scan(tmp_path, target="y")),
    ):
        with pytest.raises(IdentifierColumnError, match="Column 'id'"):
            model.fit(*data)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_text_that_looks_like_dates_is_said_to(frame):
    for days in (
        ["2024-01-31", "2024-02-01"],
        ["2024-1-3 12:30", "2024-02-01T08:00:00Z"],
        ["31/01/2024", "1.2.2024"],
        [" 2024/01/31 ", None],
    ):
        with pytest.raises(ColumnTypeError, match=r"'opened' is text that looks like dates.*a ref"):
            read_rows(frame({"opened": days * 5, "x": np.arange(10.0)}), [0, 1] * 5)


@pytest.mark.parametrize(
    "levels",
    [
        IDENTIFIERS[:100],
        IDENTIFIERS[:180] + IDENTIFIERS[:20],
        IDENTIFIERS[:3] + [None] * 197,
        pd.Categorical(IDENTIFIERS[:200]),
        pd.Categorical(["2024-01-31", "2024-02-01"]),
        ["2024-01", "2024-02"],
        ["2024-01-31", "never"],
    ],
    ids=lambda levels: str(levels[:2]),
)
def test_few_rows_few_values_and_declared_levels_are_neither_identifiers_nor_dates(levels):
    rows = read_rows(pd.DataFrame({"f": levels}), np.arange(len(levels)) % 2)
    assert rows.schema.columns[0].kind == "categorical"


# What cannot be a table.


@pytest.mark.parametrize("X", ["flights", Path("flights")], ids=type)
@pytest.mark.parametrize("model", [GLM(), OneVersusRest(estimator=NaiveBayes())], ids=repr)
def test_a_path_is_an_error_that_says_to_use_scan(model, X):
    with pytest.raises(ParameterError, match=r"X is 'flights', .* To read files, pass scan.'fl"):
        model.fit(X, "late")


LEVELS = Schema((Column("a", "categorical", ("u",)), Column("b")), named=True)
AB = Schema.of_names(["a", "b"])
DAY = datetime(2020, 1, 1)


def _of_one_row(make: Any, **columns: Any) -> Any:
    return make({name: [value] for name, value in columns.items()})


REFUSED: dict[str, tuple[Any, Schema | None, type[Exception], str]] = {
    "complex array": (np.array([[1j]]), None, ColumnTypeError, "Complex data not supported"),
    "complex sparse": (sparse.csr_array([[1j]]), None, ColumnTypeError, "Complex data not supp"),
    "dates": (np.array([["2020-01-01"]], dtype="M8[D]"), None, ColumnTypeError, "'x0' is a date"),
    "durations": (pd.DataFrame({"b": pd.to_timedelta([3], unit="D")}), None, ColumnTypeError,
                  "Column 'b' is a duration"),
    "lists": (pl.DataFrame({"b": [[1]]}), None, ColumnTypeError, "Column 'b' has the type List"),
    "mixture": (pd.DataFrame({"b": [1, "a"]}), None, ColumnTypeError, "Column 'b' mixes values"),
    "lazy frame": (pl.LazyFrame({"a": [1.0]}), None, ColumnTypeError, r"Call collect\(\)"),
    "vector": (np.ones(3), None, ShapeError, "Expected 2D array, got 1D array"),
    "None": (None, None, ShapeError, "Expected 2D array, got 0D array"),
    "unequal rows": ([[1.0], [1.0, 2.0]], None, ShapeError, "rows of equal length"),
    "no rows": (np.empty((0, 3)), None, ShapeError, "0 sample"),
    "no columns": (np.empty((3, 0)), None, ShapeError, "0 feature"),
    "partly named": (pd.DataFrame([[1.0, 2.0]], columns=["a", 1]), None, ColumnNameError,
                     "Some column names are strings and some are not"),
    "tuples": (pd.DataFrame([[1.0]], columns=pd.MultiIndex.from_product([["a"], [1]])), None,
               ColumnNameError, r"A column name is a tuple, \('a', 1\)\. Rename"),
    "too wide": (np.ones((2, 3)), AB, ShapeError, "X has 3 features, but TheModel is expecting 2"),
    "numbers only": (np.ones((1, 2)), LEVELS, ColumnTypeError, "levels in column 'a', but X has"),
}  # fmt: skip
for _name, _make in (("pd", pd.DataFrame), ("pl", pl.DataFrame), ("pa", pa.table)):
    REFUSED |= {
        f"{_name}, date": (_of_one_row(_make, a=1.0, b=DAY), AB, ColumnTypeError, "'b' is a date"),
        f"{_name}, no rows": (_make({"a": np.empty(0)}), None, ShapeError, r"0 sample\(s\)"),
        f"{_name}, text": (_of_one_row(_make, a=1.0, b="u"), AB, ColumnTypeError,
                           "Column 'b' is categorical but was numeric"),
        f"{_name}, number": (_of_one_row(_make, a=1.0, b=1.0), LEVELS, ColumnTypeError,
                             "Column 'a' is numeric but was categorical"),
        f"{_name}, renamed": (_of_one_row(_make, a=1.0, B=1.0), AB, ColumnNameError,
                              "missing since fit time: 'b'; unseen at fit time: 'B'"),
    }  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_a_table_is_named(case):
    X, schema, error, words = REFUSED[case]
    with pytest.raises(error, match=words):
        cut(X, schema)
