"""Parquet, CSV and Arrow files: types and dictionaries, partitions, and files that change."""

import gc
import gzip
import os
import pickle
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose
from sources import (
    FEATURES,
    FRAME,
    PLAIN,
    N,
    assert_same,
    csv,
    fit,
    in_memory,
    ipc,
    over,
    parquet,
    parts,
    table,
)

from posteriori import GLM, GaussianClassifier, LogisticRegression, NaiveBayes, scan
from posteriori.errors import ColumnTypeError, DataError, MissingValueError, SourceError
from posteriori.rows import files

YES = (FRAME["y"] == "yes").to_numpy()
LABELS = {
    "booleans": YES,
    "large integers": 2**40 + YES.astype(np.int64),
    "dictionary": pa.array(FRAME["y"]).dictionary_encode(),
    "dictionary of integers": pa.array(YES * 7 - 3).dictionary_encode(),
    "days": np.datetime64("2020-02-02") + YES.astype("timedelta64[D]"),
}


@over("Parquet", "Arrow")
@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_labels_may_be_of_any_kind(tmp_path, kind, labels):
    features = FRAME[["size", "old"]]
    rows = table(features).append_column("y", pa.array(labels))
    found, expected = fit(kind(tmp_path, [rows])), in_memory(features, rows["y"].to_pandas())
    assert found.classes_.tolist() == sorted(set(rows["y"].to_pandas()))
    assert_same(found, expected)


COLOURS = pa.array(PLAIN["colour"], pa.string())
STORED = {
    **{kind: ("count", pa.array(PLAIN["count"].astype(kind))) for kind in ("uint64", "float16")},
    "decimal": ("count", pa.array(map(Decimal, PLAIN["count"]), pa.decimal128(21, 2))),
    "large text": ("colour", COLOURS.cast(pa.large_string())),
    "dictionary": ("colour", COLOURS.dictionary_encode()),
    "view": ("colour", COLOURS.cast(pa.string_view())),
}


@over("Parquet", "Arrow")
@pytest.mark.parametrize(("name", "values"), STORED.values(), ids=STORED)
def test_a_column_may_be_stored_in_several_ways_and_otherwise_in_the_next_file(
    tmp_path, kind, name, values
):
    stored = table().set_column(FEATURES.index(name), name, values)
    assert_same(fit(kind(tmp_path, [stored])), in_memory())
    if values.type != pa.string_view():
        assert_same(fit(kind(tmp_path, [stored[:100], table(PLAIN[100:])])), in_memory())


@pytest.mark.parametrize("columns", [["y"], ["colour", "count"]])
def test_hive_partitions_are_columns(tmp_path, columns):
    pq.write_to_dataset(table(), tmp_path / "a", partition_cols=columns)
    assert_same(fit(tmp_path / "a", columns=FEATURES), in_memory())
    names = [name for name in FEATURES if name not in columns]
    own = [name for name in columns if name != "y"]
    assert scan(tmp_path / "a", "y").discover().schema.names == (*names, *own)


def test_the_order_of_rows_is_that_of_the_list_of_files(tmp_path):
    bad = PLAIN.copy()
    bad.loc[3, "size"] = np.nan
    files = sorted(parquet(tmp_path, parts(bad)).iterdir())
    for row, source in ((3, files), (233, files[::-1])):
        with pytest.raises(MissingValueError, match=rf"row {row}, column 'size'"):
            fit(source)


def test_a_dataset_may_have_other_types_and_filter_its_rows(tmp_path):
    text = table().schema.set(1, pa.field("count", pa.string()))
    source = pads.dataset(parquet(tmp_path, [PLAIN]), schema=text)
    assert_same(fit(source), in_memory(PLAIN[FEATURES].astype({"count": str})))
    some = PLAIN[PLAIN["size"] > 0]
    source = pads.dataset(tmp_path / "a").filter(pads.field("size") > 0)
    assert_same(fit(source), in_memory(some[FEATURES], some["y"]))


@pytest.mark.parametrize("make", [parquet, ipc, lambda folder, tables: tables[0]])
def test_an_index_of_pandas_is_no_column_unless_it_is_named(tmp_path, make):
    source = make(tmp_path, [pa.Table.from_pandas(PLAIN[PLAIN["size"] > -1])])
    assert fit(source).feature_names_in_.tolist() == FEATURES
    named = scan(source, "y", columns=["size", "__index_level_0__"])
    assert len(named.discover().schema) == 2


ODD = [date(2020, 2, 2), timedelta(3), [1, 2], b"bytes"]


@pytest.mark.parametrize("value", ODD, ids=["date", "duration", "list", "bytes"])
def test_a_column_that_is_neither_number_nor_text_is_an_error_where_it_is_read(tmp_path, value):
    source = parquet(tmp_path, [table().append_column("odd", pa.array([value] * N))])
    with pytest.raises(ColumnTypeError, match=r"'odd' (has the type (list|bin)|is a (date|dur))"):
        fit(source)
    assert_same(fit(source, columns=FEATURES), in_memory())
    for role in ("target", "weight", "offset") if value == [1, 2] else ():
        with pytest.raises(DataError):
            fit(source, **{"target": "y", "columns": ["size"], role: "odd"})


@over("Parquet", "CSV")
def test_a_column_that_differs_or_lacks_is_an_error_where_it_is_read(tmp_path, kind):
    first, second = parts(PLAIN, [0, 100, N])
    ending = "csv" if kind is csv else "parquet"
    for other, message in [
        (second.assign(size="big"), rf"'size' is double in .*0\.{ending}, and \w*string in .*1"),
        (second.drop(columns="size"), rf"The file .*part-1\.{ending} has no column 'size'"),
    ]:
        source = kind(tmp_path, [first, other])
        with pytest.raises(SourceError, match=message):
            scan(source, "y")
        assert scan(source, "y", columns=["count"]).discover().n_rows == N


# Files that change, and files that cannot be read.


def _turn_round(path):
    frame = pd.read_parquet(path)
    pq.write_table(table(frame.assign(size=-frame["size"])), path)


CHANGES = {
    "removed": os.remove,
    "cut": lambda path: os.truncate(path, path.stat().st_size // 2),
    "emptied": lambda path: path.write_bytes(b""),
    "other numbers": _turn_round,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_file_that_changes_after_the_scan_is_named(tmp_path, change):
    source = parquet(tmp_path)
    rows, unread = scan(source, "y", columns=["size", "colour"]), scan(source, "y")
    model = GaussianClassifier().fit(rows)
    change(source / "part-3.parquet")
    for each in (rows, unread):
        what = "gone" if change is os.remove else "changed"
        with pytest.raises(SourceError, match=rf"part-3\.parquet (is|has) {what}"):
            model.fit(each)


def test_a_damaged_footer_is_an_error_that_names_the_file(tmp_path):
    source = parquet(tmp_path) / "part-0.parquet"
    whole, path, outcomes = source.read_bytes(), tmp_path / "damaged.parquet", []
    footer = int.from_bytes(whole[-8:-4], "little")
    for seed in range(60):
        random, damaged = np.random.default_rng(seed), bytearray(whole)
        for place in random.integers(len(whole) - 8 - footer, len(whole) - 8, 3):
            damaged[place] = random.integers(256)
        path.write_bytes(damaged)
        try:
            scan(path, "y").discover()
        except DataError as error:
            outcomes.append("damaged.parquet" in str(error))
    assert sum(outcomes) > 30  # of others, statistics alone are damaged, or a name


JUNK = {"a.parquet": b"no Parquet at all", "a.csv": b"", "b.csv": b"x,y\n1,no\n2,yes,3\n"}


@pytest.mark.parametrize("name", [*JUNK, "pages.parquet"])
def test_a_file_that_is_not_what_its_name_says_is_named(tmp_path, name):
    whole = (parquet(tmp_path) / "part-3.parquet").read_bytes()
    (tmp_path / name).write_bytes(JUNK.get(name, whole[:4] + b"\xff" * 200 + whole[204:]))
    with pytest.raises(SourceError, match=name):
        fit(tmp_path / name)


# CSV: types are those of the first megabyte, whole numbers are read as doubles.


def _long(path, last, first="{}"):
    """A CSV file of more than a megabyte, with this value of `a` in the last row."""
    rows = [
        f"{first.format(i % 7)},{i % 10}.12345678912,{'yes' if i % 3 else 'no'}"
        for i in range(60_000)
    ]
    path.write_text("\n".join(["a,b,y", *rows, f"{last},0.5,no"]) + "\n")
    assert path.stat().st_size > 2**20
    return path


def test_whole_numbers_may_have_decimals_after_the_first_megabyte(tmp_path):
    path = _long(tmp_path / "x.csv", "2.5")
    frame = pd.read_csv(path)
    found = GaussianClassifier().fit(scan(path, "y"))
    expected = GaussianClassifier().fit(frame[["a", "b"]], frame["y"])
    assert_allclose(found.means_, expected.means_, rtol=1e-12)
    weighted = NaiveBayes().fit(scan(path, "y", weight="a", columns=["b"]))
    assert weighted.class_count_.sum() == frame["a"].sum()
    counts = scan(path, "a", columns=["b"], dtypes={"a": "double"})
    assert GLM(family="poisson").fit(counts).converged_
    with pytest.raises(SourceError, match=r"Row #60002.* dtypes=\{'a': 'double'\} for numbers"):
        GLM(family="poisson").fit(scan(path, "a", columns=["b"]))


def test_a_value_that_does_not_fit_its_column_is_an_error_with_the_remedy(tmp_path):
    _long(tmp_path / "0.csv", "5")
    path = _long(tmp_path / "1.csv", "many")
    with pytest.raises(SourceError) as caught:
        NaiveBayes().fit(scan(tmp_path, "y"))
    # The row is in the words of pyarrow, by lines of the file.
    assert all(text in str(caught.value) for text in (str(path), "Row #60002"))
    assert "dtypes={'a': 'string'}" in str(caught.value)
    found = NaiveBayes().fit(scan(tmp_path, "y", dtypes={"a": "string"}))
    assert found.schema_.columns[0].levels == (*"0123456", "many")


def test_text_most_of_whose_values_are_numbers_is_an_error_unless_it_is_declared(tmp_path):
    path, code = tmp_path / "a.csv", [*map(str, range(100)), "n/a?"] * 2
    frame = pd.DataFrame({"code": code, "y": [0, 1] * 101})
    frame.to_csv(path, index=False)
    message = "'code' is text, but 100 of its 101 different values are numbers.*'n/a\\?'"
    for data in ([scan(path, "y")], [frame[["code"]], frame["y"]]):
        for model in (NaiveBayes(), GLM(family="gaussian")):
            with pytest.raises(ColumnTypeError, match=message):
                model.fit(*data)
    declared = frame[["code"]].astype("category")
    for data in (
        [scan(path, "y", dtypes={"code": "string"})],
        [scan(path, "y", categories={"code": code[:101]})],
        [declared, frame["y"]],
    ):
        assert len(NaiveBayes().fit(*data).schema_.columns[0].levels) == 101


def test_an_enum_of_polars_may_be_read_from_arrow_files(tmp_path):
    frame = pl.DataFrame({"x": [1.0, 2.0, 3.0, 1.0], "y": ["no", "yes", "no", "yes"]})
    frame.with_columns(pl.col("y").cast(pl.Enum(["yes", "no"]))).write_ipc(tmp_path / "a.arrow")
    model = LogisticRegression().fit(scan(tmp_path / "a.arrow", "y"))
    assert model.classes_.tolist() == ["yes", "no"]


@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_lines_may_end_within_quotes(tmp_path, ending):
    """In files so large that they are cut before quotes are looked for."""
    text = np.where(np.arange(N) % 3 == 0, "one\nline, and more\n" + 30_000 * "x", "plain")
    with (gzip.open if ending == "csv.gz" else open)(tmp_path / f"x.{ending}", "wt") as file:
        PLAIN.assign(note=text).to_csv(file, index=False)
    assert_same(fit(tmp_path, columns=FEATURES), in_memory())


def test_text_that_is_not_in_utf_8_is_an_error(tmp_path):
    frame = PLAIN[["size", "y"]].assign(c="häuser")
    frame.to_csv(tmp_path / "x.csv", index=False, encoding="latin-1")
    with pytest.raises(ColumnTypeError, match=r"'c' has the type binary"):
        fit(tmp_path)
    frame.rename(columns={"c": "größe"}).to_csv(tmp_path / "x.csv", index=False, encoding="latin-1")
    with pytest.raises(SourceError, match="must be written in UTF-8"):
        scan(tmp_path, "y")


# The cache of decoded batches.


@pytest.fixture
def source(tmp_path):
    levels = pd.Categorical(PLAIN["colour"], ["red", "green", "blue"])
    return parquet(tmp_path, [PLAIN.assign(colour=levels)])


@pytest.mark.parametrize("cache", [True, False])
def test_files_are_decoded_once_with_a_cache(source, monkeypatch, cache):
    decoded, read = [], pq.ParquetFile.iter_batches

    def counted(self, n_rows, groups, columns, **options):
        decoded.append(len(columns))
        return read(self, n_rows, groups, columns, **options)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", counted)
    rows = scan(source, "y", cache=cache)
    first = LogisticRegression(tol=1e-8).fit(rows)
    assert decoded.count(5) == (1 if cache else rows.log.passes)
    plain = LogisticRegression(tol=1e-8).fit(scan(source, "y", cache=not cache))
    np.testing.assert_array_equal(first.coef_, plain.coef_)
    assert first.schema_.columns[3].levels == ("red", "green", "blue")


def test_a_model_of_one_pass_writes_no_cache(source):
    rows = scan(source, "y")
    GaussianClassifier().fit(rows)
    assert rows.log.passes == 1
    assert rows.cache.file is None


def test_a_source_that_does_not_fit_is_read_in_each_pass(source, monkeypatch, tmp_path):
    expected = LogisticRegression().fit(scan(source, "y"))
    monkeypatch.setattr(files, "DISK_SHARE", 1e-9)
    rows = scan(source, "y")
    found = LogisticRegression().fit(rows)
    assert rows.cache.file is None
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    with pytest.raises(SourceError, match=r"cannot be cached in .*: they take more than"):
        LogisticRegression().fit(scan(source, "y", cache=tmp_path))


def test_the_file_is_private_and_gone_with_the_rows(source, tmp_path):
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("open files are listed by Linux alone")

    def open_files():
        links = [Path("/proc/self/fd") / name for name in os.listdir("/proc/self/fd")]
        return [p for p in links if p.is_symlink() and str(tmp_path / "kept") in os.readlink(p)]

    (tmp_path / "kept").mkdir()
    rows = scan(source, "y", cache=tmp_path / "kept")
    LogisticRegression().fit(rows)
    assert open_files()
    assert all(os.stat(found).st_mode & 0o077 == 0 for found in open_files())
    assert list((tmp_path / "kept").iterdir()) == []
    del rows
    gc.collect()
    assert open_files() == []


def test_rows_that_are_pickled_are_read_again(source):
    rows = scan(source, "y")
    found = LogisticRegression().fit(rows)
    again = pickle.loads(pickle.dumps(rows))
    assert again.cache.file is None
    np.testing.assert_array_equal(LogisticRegression().fit(again).coef_, found.coef_)


def test_an_interrupted_pass_leaves_no_half_written_cache(source):
    def stop(step):
        if step.number == 1 and step.rows:
            raise KeyboardInterrupt

    rows = scan(source, "y", progress=stop)
    with pytest.raises(KeyboardInterrupt, match="Stopped after pass 1"), rows.fitting():
        rows.discover()
    assert rows.cache.file is None
    assert rows.discover().map_sum(lambda block: block.X.shape[0]) == N
    assert rows.cache.file is not None
