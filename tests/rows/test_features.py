"""Whatever holds the table, the numbers that come out are the same."""

from datetime import date, datetime
from functools import reduce
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
    ColumnNameWarning,
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


def strided() -> np.ndarray:
    wide = np.full((8, 9), np.inf)
    wide[::2, ::3] = NUMBERS
    return wide[::2, ::3]


def reversed_rows() -> np.ndarray:
    return NUMBERS[::-1].copy()[::-1]


NUMERIC_SOURCES = {
    "float64 C": lambda: NUMBERS.copy(order="C"),
    "float64 Fortran": lambda: NUMBERS.copy(order="F"),
    "float32": lambda: NUMBERS.astype(np.float32),
    "float16": lambda: NUMBERS.astype(np.float16),
    "longdouble": lambda: NUMBERS.astype(np.longdouble),
    "big-endian": lambda: NUMBERS.astype(">f8"),
    "strided view": strided,
    "negative stride": reversed_rows,
    "np.matrix": lambda: NUMBERS.copy().view(np.matrix),
    "list of lists": lambda: NUMBERS.tolist(),
    "tuple of arrays": lambda: tuple(NUMBERS),
    "object array": lambda: NUMBERS.astype(object),
    "csr_array": lambda: sparse.csr_array(NUMBERS),
    "csr_matrix": lambda: sparse.csr_matrix(NUMBERS),
    "csr float32": lambda: sparse.csr_array(NUMBERS.astype(np.float32)),
    "csc_array": lambda: sparse.csc_array(NUMBERS),
    "csc_matrix": lambda: sparse.csc_matrix(NUMBERS),
    "coo_array": lambda: sparse.coo_array(NUMBERS),
    "coo_matrix": lambda: sparse.coo_matrix(NUMBERS),
    "lil_matrix": lambda: sparse.lil_matrix(NUMBERS),
    "pandas": lambda: pd.DataFrame(NUMBERS, columns=list("abc")),
    "pandas without names": lambda: pd.DataFrame(NUMBERS),
    "pandas Float64": lambda: pd.DataFrame(NUMBERS, columns=list("abc")).astype("Float64"),
    "pandas arrow": lambda: pd.DataFrame(NUMBERS, columns=list("abc")).astype("double[pyarrow]"),
    "polars": lambda: pl.DataFrame(NUMBERS, schema=list("abc")),
    "pyarrow": lambda: pa.table(dict(zip("abc", NUMBERS.T, strict=True))),
    "pyarrow in chunks": lambda: pa.concat_tables(
        [pa.table(dict(zip("abc", part.T, strict=True))) for part in (NUMBERS[:1], NUMBERS[1:])]
    ),
}


@pytest.mark.parametrize("source", NUMERIC_SOURCES)
def test_every_source_gives_the_same_numbers(source):
    table = read_features(NUMERIC_SOURCES[source]())
    for low, high in ((0, 4), (1, 3), (2, 2), (3, 4)):
        part = table.cut(low, high)
        values = part.toarray() if sparse.issparse(part) else part
        assert values.dtype == np.float64
        assert type(values) is np.ndarray
        np.testing.assert_array_equal(values, NUMBERS[low:high])
    assert table.n_rows == 4
    named = source.split()[0] in ("pandas", "polars", "pyarrow") and "without" not in source
    assert table.schema.names == (tuple("abc") if named else ("x0", "x1", "x2"))
    assert table.schema.named is named


@pytest.mark.parametrize("dtype", ["i1", "i8", "u1", "u8", "?"])
def test_whole_numbers_and_booleans_become_doubles(dtype):
    X = np.array([[0, 1], [1, 1], [0, 0]]).astype(dtype)
    np.testing.assert_array_equal(cut(X), [[0.0, 1.0], [1.0, 1.0], [0.0, 0.0]])
    kind = "boolean" if dtype == "?" else "numeric"
    assert [c.kind for c in read_features(X).schema.columns] == [kind, kind]


def test_an_array_of_doubles_is_not_copied():
    X = np.asfortranarray(NUMBERS)
    assert np.shares_memory(cut(X), X)
    rows = sparse.csr_array(NUMBERS)
    assert np.shares_memory(cut(rows).data, rows.data)


def test_duplicates_in_a_coo_matrix_are_summed():
    entries = (np.array([1.0, 2.5, -1.0]), (np.array([0, 0, 1]), np.array([1, 1, 0])))
    for kind in (sparse.coo_array, sparse.coo_matrix):
        np.testing.assert_array_equal(
            cut(kind(entries, shape=(2, 2))).toarray(), [[0.0, 3.5], [-1.0, 0.0]]
        )


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
def test_reading_does_not_touch_the_users_sparse_matrix(kind):
    data, indices, indptr = np.array([1.0, 2.0, 4.0]), np.array([1, 0, 1]), np.array([0, 3])
    X = kind((data, indices, indptr), shape=(1, 2))
    np.testing.assert_array_equal(cut(X).toarray(), [[2.0, 5.0]])
    assert X.data.tolist() == [1.0, 2.0, 4.0]
    assert X.indices.tolist() == [1, 0, 1]


def test_masked_entries_are_missing_entries():
    X = np.ma.array([[1, 2], [3, 4]], mask=[[False, True], [False, False]])
    np.testing.assert_array_equal(cut(X), [[1.0, np.nan], [3.0, 4.0]])


# Tables of mixed kinds: numbers, whole numbers, booleans, text, and an ordered factor.

MIXED = {
    "size": [1.5, None, -2.0, 0.25],
    "count": [3, 1, None, 2],
    "flag": [True, None, False, True],
    "colour": ["red", "blue", None, "red"],
    "grade": ["mid", "low", "mid", None],
}
GRADES = ["low", "mid", "high"]


def pandas_nullable() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "size": pd.Series(MIXED["size"], dtype="Float64"),
            "count": pd.Series(MIXED["count"], dtype="Int64"),
            "flag": pd.Series(MIXED["flag"], dtype="boolean"),
            "colour": pd.Series(MIXED["colour"], dtype="string"),
            "grade": pd.Categorical(MIXED["grade"], categories=GRADES, ordered=True),
        }
    )


def pandas_plain() -> pd.DataFrame:
    frame = pd.DataFrame(MIXED)
    frame["grade"] = pd.Categorical(MIXED["grade"], categories=GRADES)
    return frame


def pandas_objects() -> pd.DataFrame:
    frame = pd.DataFrame({name: pd.Series(v, dtype=object) for name, v in MIXED.items()})
    frame["grade"] = pd.Categorical(MIXED["grade"], categories=GRADES)
    return frame


def pandas_arrow() -> pd.DataFrame:
    return arrow_table().to_pandas(types_mapper=pd.ArrowDtype)


def polars_frame() -> pl.DataFrame:
    return pl.DataFrame(MIXED, schema_overrides={"grade": pl.Enum(GRADES)})


def arrow_table() -> pa.Table:
    grade = pa.DictionaryArray.from_arrays(pa.array([1, 0, 1, None], pa.int32()), GRADES)
    return pa.table({**{k: MIXED[k] for k in ("size", "count", "flag", "colour")}, "grade": grade})


MIXED_SOURCES = {
    "pandas nullable": pandas_nullable,
    "pandas plain": pandas_plain,
    "pandas objects": pandas_objects,
    "pandas arrow": pandas_arrow,
    "polars": polars_frame,
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


@pytest.mark.parametrize("source", MIXED_SOURCES)
def test_every_data_frame_gives_the_same_numbers_codes_and_gaps(source):
    table = read_features(MIXED_SOURCES[source]())
    assert table.schema == MIXED_SCHEMA
    for low, high in ((0, 4), (1, 3)):
        part = table.cut(low, high)
        assert isinstance(part, Mixed)
        np.testing.assert_array_equal(part.numeric, MIXED_NUMBERS[low:high])
        np.testing.assert_array_equal(part.codes, MIXED_CODES[low:high])


@pytest.mark.parametrize("source", MIXED_SOURCES)
def test_reordered_columns_are_put_back_in_order(source):
    names = list(MIXED)[::-1]
    frame = MIXED_SOURCES[source]()
    frame = frame.select(names) if isinstance(frame, pl.DataFrame | pa.Table) else frame[names]
    part = cut(frame, MIXED_SCHEMA)
    np.testing.assert_array_equal(part.numeric, MIXED_NUMBERS)
    np.testing.assert_array_equal(part.codes, MIXED_CODES)


def test_the_levels_of_text_are_sorted_and_those_of_a_category_keep_their_order():
    text = read_features(pl.DataFrame({"a": ["c", "a", "b"]}))
    enum = read_features(pl.DataFrame({"a": ["c", "a", "b"]}, schema={"a": pl.Enum(list("cbza"))}))
    assert text.schema.columns[0].levels == ("a", "b", "c")
    assert enum.schema.columns[0].levels == ("c", "b", "a")


@pytest.mark.parametrize("values", [[3, None, 1], [3, 2, 1], [2.5, None, 1.0], [True, None, False]])
def test_levels_that_are_not_text_are_known_by_their_names(values):
    frame = pd.DataFrame({"a": pd.Categorical(values)})
    present = sorted(v for v in values if v is not None)
    table = read_features(frame)
    if isinstance(values[0], float):
        present = [float(v) for v in present]
    assert table.schema.columns[0].levels == tuple(map(str, present))
    expected = [MISSING if v is None else present.index(v) for v in values]
    assert table.cut(0, 3).codes[:, 0].tolist() == expected
    # A gap among new rows must not change what the levels are called.
    again = read_features(frame[:2], table.schema)
    assert again.cut(0, 2).codes[:, 0].tolist() == expected[:2]


def test_rows_of_lists_that_mix_text_and_numbers_keep_their_numbers():
    table = read_features([["a", 1.5], ["b", None], [None, 2], ["a", float("nan")]])
    assert table.schema.columns == (
        Column("x0", "categorical", ("a", "b")),
        Column("x1", "numeric"),
    )
    part = table.cut(0, 4)
    np.testing.assert_array_equal(part.numeric[:, 0], [1.5, np.nan, 2.0, np.nan])
    assert part.codes[:, 0].tolist() == [0, 1, MISSING, 0]


@pytest.mark.parametrize("gap", [None, np.nan, pd.NA, pd.NaT], ids=repr)
def test_any_sign_for_a_gap_among_objects_is_a_missing_entry(gap):
    X = np.array([[1, "a"], [gap, gap], [2.5, "b"]], dtype=object)
    part = cut(X)
    np.testing.assert_array_equal(part.numeric[:, 0], [1.0, np.nan, 2.5])
    assert part.codes[:, 0].tolist() == [0, MISSING, 1]


def test_an_array_of_strings_is_a_table_of_levels():
    part = cut(np.array([["u", "y"], ["v", "x"]]))
    assert part.numeric.shape == (2, 0)
    assert part.codes.tolist() == [[0, 1], [1, 0]]


# Against the schema of a fit.


@pytest.mark.parametrize("source", ["pandas nullable", "polars", "pyarrow"])
def test_a_missing_or_unknown_column_is_named(source):
    frame = MIXED_SOURCES[source]()
    drop = frame.drop if isinstance(frame, pl.DataFrame) else lambda n: frame.drop(columns=n)
    less = frame.drop_columns("flag") if isinstance(frame, pa.Table) else drop("flag")
    with pytest.raises(ColumnNameError, match=r"missing since fit time: 'flag'\)"):
        cut(less, MIXED_SCHEMA)
    fewer = Schema(MIXED_SCHEMA.columns[:-1], named=True)
    with pytest.raises(ColumnNameError, match=r"unseen at fit time: 'grade'\)"):
        cut(frame, fewer)


def test_a_renamed_column_is_both_missing_and_unknown():
    with pytest.raises(
        ColumnNameError, match="missing since fit time: 'b'; unseen at fit time: 'B'"
    ):
        cut(pl.DataFrame({"a": [1.0], "B": [2.0]}), Schema.of_names(["a", "b"]))


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pd", "pl", "pa"])
def test_a_level_never_seen_has_its_own_code_and_the_design_refuses_it(make):
    schema = Schema((Column("f", "categorical", ("a", "b")),), named=True)
    part = cut(make({"f": ["b", None, "zebra", "a"]}), schema)
    assert part.codes[:, 0].tolist() == [1, MISSING, UNSEEN, 0]
    block = Block(cut(make({"f": ["b", "zebra", "a"]}), schema), None, None, 40)
    with pytest.raises(LevelError, match=r"Row 41 .* column 'f', .* The levels are 'a', 'b'"):
        Columns(schema).design(block)


@pytest.mark.parametrize(
    "make",
    [
        pd.DataFrame,
        pl.DataFrame,
        pa.table,
        lambda data: pd.DataFrame(data, dtype=object),
        lambda data: pd.DataFrame(data, dtype="category"),
        lambda data: pl.DataFrame(data, schema={"f": pl.Categorical}),
        lambda data: pl.DataFrame(data, schema={"f": pl.Enum(["b", "puma", "a", "zebra"])}),
        lambda data: np.array(data["f"], dtype=object)[:, None],
        lambda data: np.array(data["f"])[:, None],
    ],
    ids=["pd", "pl", "pa", "objects", "category", "Categorical", "Enum", "array", "strings"],
)
def test_the_first_level_never_seen_is_named(make):
    named = not isinstance(make({"f": ["a"]}), np.ndarray)
    schema = Schema((Column("f" if named else "x0", "categorical", ("a", "b")),), named=named)
    data = make({"f": ["b", "a", "zebra", "puma", "a"]})
    part = cut(data, schema)
    where = "column 'f'" if named else "column 0"
    with pytest.raises(LevelError, match=f"Row 2 has the level 'zebra' in {where}, which the fit"):
        Columns(schema).design(Block(part, None, None, 0))
    some = take_block(Block(part, None, None, 0), np.array([1, 2]))
    with pytest.raises(LevelError, match=f"Row 2 has the level 'zebra' in {where}, which the fit"):
        Columns(schema).design(some)
    assert read_features(data, schema).schema == schema


def test_an_object_array_is_checked_against_the_levels_of_the_fit():
    schema = Schema((Column("x0", "categorical", ("a", "b")), Column("x1")), named=False)
    part = cut(np.array([["b", 1.0], ["q", 2]], dtype=object), schema)
    assert part.codes[:, 0].tolist() == [1, UNSEEN]
    assert part.numeric[:, 0].tolist() == [1.0, 2.0]


def test_a_column_that_changed_kind_is_named():
    schema = Schema.of_names(["a", "b"])
    with pytest.raises(ColumnTypeError, match="Column 'b' is categorical but was numeric"):
        cut(pl.DataFrame({"a": [1.0], "b": ["u"]}), schema)
    levels = Schema((Column("a", "categorical", ("u",)),), named=True)
    with pytest.raises(ColumnTypeError, match="Column 'a' is numeric but was categorical"):
        cut(pl.DataFrame({"a": [1.0]}), levels)
    with pytest.raises(ColumnTypeError, match="levels in column 'a', but X has numbers only"):
        cut(np.ones((1, 1)), levels)


def test_whole_numbers_and_booleans_may_stand_in_for_numbers():
    schema = Schema.of_names(["a", "b"])
    np.testing.assert_array_equal(
        cut(pl.DataFrame({"b": [True, False], "a": [2, 3]}), schema), [[2.0, 1.0], [3.0, 0.0]]
    )


@pytest.mark.parametrize("X", [np.ones((2, 3)), sparse.csr_array(np.ones((2, 3)))], ids=type)
def test_the_wrong_width_is_said_with_both_widths(X):
    with pytest.raises(ShapeError, match="X has 3 features, but TheModel is expecting 2 features"):
        cut(X, Schema.unnamed(2))


def test_names_on_one_side_only_give_a_warning():
    with pytest.warns(ColumnNameWarning, match="fitted with feature names"):
        np.testing.assert_array_equal(cut(NUMBERS, Schema.of_names("abc")), NUMBERS)
    with pytest.warns(ColumnNameWarning, match="fitted without feature names"):
        cut(pl.DataFrame(NUMBERS, schema=list("abc")), Schema.unnamed(3))


FRAMES = [
    name for name in NUMERIC_SOURCES if name[:2] in ("pa", "po", "py") and "without" not in name
]

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
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (0, 2, 1)])
def test_levels_have_one_order_in_memory_in_batches_and_in_sums(source, order):
    make, expected = TYPES[source]
    frame = pl.DataFrame if source.startswith("polars") else pd.DataFrame
    parts = [frame({"f": make(PARTS[i])}) for i in order]
    whole = frame({"f": make([level for part in PARTS for level in part])})
    assert read_features(whole).schema.columns[0].levels == expected
    table = read_features(parts[0])
    for part in parts[1:]:
        table = read_features(part, table.schema, new_levels=True)
    assert table.schema.columns[0].levels == expected
    joined = reduce(union_of_columns, [read_features(part).schema for part in parts])
    assert joined.columns[0].levels == expected
    model = NaiveBayes()
    for part in parts:
        model.partial_fit(part, [0, 1])
    assert model.schema_.columns[0].levels == expected


@pytest.mark.parametrize("source", MIXED_SOURCES)
def test_many_rows_and_few_are_read_alike(source):
    few = MIXED_SOURCES[source]()
    join = {pd.DataFrame: pd.concat, pl.DataFrame: pl.concat, pa.Table: pa.concat_tables}
    many = join[type(few)]([few] * 1000)
    for schema in (None, MIXED_SCHEMA):
        part = cut(many, schema)
        np.testing.assert_array_equal(part.numeric, np.tile(MIXED_NUMBERS, (1000, 1)))
        np.testing.assert_array_equal(part.codes, np.tile(MIXED_CODES, (1000, 1)))


@pytest.mark.parametrize("source", FRAMES)
def test_a_small_frame_of_numbers_is_checked_against_the_fit(source):
    frame = NUMERIC_SOURCES[source]()
    table = read_features(frame)
    np.testing.assert_array_equal(cut(frame, table.schema), NUMBERS)
    backwards = frame[list("cba")] if isinstance(frame, pd.DataFrame) else frame.select(list("cba"))
    np.testing.assert_array_equal(cut(backwards, table.schema), NUMBERS)


def test_dates_are_not_taken_for_numbers_in_a_small_frame():
    schema = Schema.of_names(["a", "b"])
    for frame in (pl.DataFrame, pd.DataFrame, pa.table):
        with pytest.raises(ColumnTypeError, match="Column 'b' is a date"):
            cut(frame({"a": [1.0], "b": [datetime(2020, 1, 1)]}), schema)


# Text that is no factor.

IDENTIFIERS = [f"user {i}" for i in range(30_000)]


@pytest.mark.parametrize(
    "make",
    [
        lambda ids: pd.DataFrame({"id": ids, "x": 1.0}),
        lambda ids: pd.DataFrame({"id": ids, "x": 1.0}).astype({"id": object}),
        lambda ids: pl.DataFrame({"id": ids, "x": 1.0}),
        lambda ids: pa.table({"id": ids, "x": np.ones(len(ids))}),
    ],
    ids=["text", "objects", "polars", "Arrow"],
)
def test_an_identifier_is_refused(make):
    for ids in (IDENTIFIERS, ["same"] * 1000 + IDENTIFIERS, [None] * 5000 + IDENTIFIERS):
        with pytest.raises(IdentifierColumnError, match=r"Column 'id' is text with 30,00.*Drop"):
            read_rows(make(ids), np.arange(len(ids)) % 2)


def test_identifiers_are_refused_in_formulas_wrappers_and_files(tmp_path):
    frame = pl.DataFrame({"id": IDENTIFIERS, "x": 1.0, "y": np.arange(30_000) % 2})
    frame.write_parquet(tmp_path / "a.parquet")
    for fit in (
        lambda: LogisticRegression().fit("y ~ x + id", frame),
        lambda: CalibratedClassifier(estimator=NaiveBayes()).fit(frame.drop("y"), frame["y"]),
        lambda: LogisticRegression().fit(scan(tmp_path, target="y")),
    ):
        with pytest.raises(IdentifierColumnError, match="Column 'id'"):
            fit()


def test_few_rows_few_values_and_declared_levels_are_no_identifiers():
    y = np.arange(200) % 2
    for frame in (
        pd.DataFrame({"id": IDENTIFIERS[:100]}),
        pd.DataFrame({"id": IDENTIFIERS[:180] + IDENTIFIERS[:20]}),
        pd.DataFrame({"id": IDENTIFIERS[:3] + [None] * 197}),
        pd.DataFrame({"id": pd.Categorical(IDENTIFIERS[:200])}),
    ):
        model = NaiveBayes().fit(frame, y[: len(frame)])
    assert model.predict(pd.DataFrame({"id": IDENTIFIERS[:200]})).shape == (200,)


@pytest.mark.parametrize(
    "days",
    [
        ["2024-01-31", "2024-02-01"],
        ["2024-1-3 12:30", "2024-02-01T08:00:00Z"],
        ["31/01/2024", "1.2.2024"],
        [" 2024/01/31 ", None],
    ],
    ids=str,
)
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_text_that_looks_like_dates_is_said_to(frame, days):
    X = frame({"opened": days * 5, "x": np.arange(10.0)})
    with pytest.raises(ColumnTypeError) as caught:
        read_rows(X, [0, 1] * 5)
    assert caught.value.problem == "Column 'opened' is text that looks like dates."
    assert "Convert it to a number (for example days since a reference" in caught.value.remedy


def test_levels_with_digits_are_no_dates():
    for levels in (
        ["2024", "2025"],
        ["2024-01", "2024-02"],
        ["1-2", "3-4"],
        ["2024-01-31", "never"],
    ):
        NaiveBayes().fit(pd.DataFrame({"f": levels * 5}), [0, 1] * 5)
    declared = pd.Categorical(["2024-01-31", "2024-02-01"] * 5)
    NaiveBayes().fit(pd.DataFrame({"f": declared}), [0, 1] * 5)


# What cannot be a table.

NOT_DATA = (
    "X is 'flights', which is neither data nor a formula. To read files, pass scan.'flights', "
)


@pytest.mark.parametrize("X", ["flights", Path("flights")], ids=type)
@pytest.mark.parametrize(
    "model",
    [LogisticRegression(), GLM(), NaiveBayes(), OneVersusRest(estimator=NaiveBayes())],
    ids=lambda model: type(model).__name__,
)
def test_a_path_is_an_error_that_says_to_use_scan(model, X):
    with pytest.raises(ParameterError, match=NOT_DATA):
        model.fit(X, "late")


@pytest.mark.parametrize(
    "columns", [[("a", 1), ("a", 2)], pd.MultiIndex.from_product([["a"], [1, 2]])]
)
def test_column_names_that_are_tuples_are_refused(columns):
    with pytest.raises(ColumnNameError, match=r"A column name is a tuple, \('a', 1\)\. Rename"):
        cut(pd.DataFrame([[1.0, 2.0]], columns=columns))


OF_THE_WRONG_TYPE = {
    "pandas dates": lambda: pd.DataFrame({"ok": [1.0], "bad": pd.to_datetime(["2020-01-01"])}),
    "pandas spans": lambda: pd.DataFrame({"ok": [1.0], "bad": pd.to_timedelta([3], unit="D")}),
    "pandas complex": lambda: pd.DataFrame({"ok": [1.0], "bad": [1j]}),
    "pandas mixture": lambda: pd.DataFrame({"ok": [1.0, 2.0], "bad": [1, "a"]}),
    "polars dates": lambda: pl.DataFrame({"ok": [1.0], "bad": [date(2020, 1, 1)]}),
    "polars lists": lambda: pl.DataFrame({"ok": [1.0], "bad": [[1]]}),
    "pyarrow dates": lambda: pa.table({"ok": [1.0], "bad": [date(2020, 1, 1)]}),
    "pyarrow structs": lambda: pa.table({"ok": [1.0], "bad": [{"u": 1}]}),
}


@pytest.mark.parametrize("case", OF_THE_WRONG_TYPE)
def test_a_column_of_the_wrong_type_is_named(case):
    with pytest.raises(ColumnTypeError, match=r"[Cc]olumn 'bad'"):
        cut(OF_THE_WRONG_TYPE[case]())


def test_mixtures_in_an_object_array_name_the_column_and_the_types():
    X = np.array([[1.0, "a"], [2.0, 3]], dtype=object)
    with pytest.raises(ColumnTypeError, match="Column 'x1' mixes values of type int, str"):
        cut(X)


@pytest.mark.parametrize(
    "X",
    [
        np.array([[1j]]),
        np.array([[1j]], dtype=object),
        [[1.0, 2j]],
        sparse.csr_array(np.array([[1j]])),
    ],
    ids=["array", "object", "list", "sparse"],
)
def test_complex_numbers_are_refused(X):
    with pytest.raises(ColumnTypeError, match="Complex data not supported"):
        cut(X)


def test_dates_in_an_array_are_refused():
    with pytest.raises(ColumnTypeError, match="Column 'x0' is a date"):
        cut(np.array([["2020-01-01"]], dtype="M8[D]"))


def test_a_lazy_frame_says_what_to_call():
    with pytest.raises(ColumnTypeError, match=r"Call collect\(\) on it first"):
        cut(pl.LazyFrame({"a": [1.0]}))


@pytest.mark.parametrize(
    ("X", "dimensions"),
    [(np.ones(3), 1), ([1.0, 2.0], 1), (np.ones((1, 1, 1)), 3), (2.5, 0), (None, 0)],
)
def test_only_two_dimensions_make_a_table(X, dimensions):
    with pytest.raises(ShapeError, match=f"Expected 2D array, got {dimensions}D array"):
        cut(X)


@pytest.mark.parametrize(
    ("X", "what"),
    [
        (np.empty((0, 3)), "0 sample"),
        (np.empty((3, 0)), "0 feature"),
        (sparse.csr_array((0, 3)), "0 sample"),
        (sparse.csr_array((3, 0)), "0 feature"),
        (pd.DataFrame({"a": []}), "0 sample"),
        (pl.DataFrame({"a": []}, schema={"a": pl.Float64}), "0 sample"),
        (pa.table({"a": pa.array([], pa.float64())}), "0 sample"),
    ],
    ids=str,
)
def test_an_empty_table_is_refused(X, what):
    with pytest.raises(ShapeError, match=what):
        cut(X)


def test_rows_of_unequal_length_are_refused():
    with pytest.raises(ShapeError, match="rows of equal length"):
        cut([[1.0], [1.0, 2.0]])


def test_names_that_are_partly_strings_are_refused():
    with pytest.raises(ColumnNameError, match="Some column names are strings and some are not"):
        cut(pd.DataFrame([[1.0, 2.0]], columns=["a", 1]))


def test_a_table_of_no_rows_to_predict_is_an_error_in_every_kind_of_frame():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [0.5, 0.25]})
    schema = read_features(frame).schema
    for table in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        assert read_features(table, schema).n_rows == 2
        with pytest.raises(ShapeError, match=r"Found array with 0 sample\(s\)"):
            read_features(table[:0], schema)
