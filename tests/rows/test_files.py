"""Rows in files: the fit that the same rows in memory give, and errors that name what is wrong."""

import os
import re
import shutil
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from posteriori import GLM, GaussianClassifier, LogisticRegression, NaiveBayes, scan, threads
from posteriori.errors import (
    ColumnNameError,
    ColumnTypeError,
    DataError,
    DomainError,
    InfiniteValueError,
    LabelError,
    MissingValueError,
    ParameterError,
    ShapeError,
    SourceError,
    WeightError,
)
from posteriori.rows.rows import Rows

N = 240
FEATURES = ["size", "count", "old", "colour"]
CUTS = [0, 10, 10, 100, N]
"""Files of 10, 0, 90 and 140 rows."""


def _frame() -> pd.DataFrame:
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": random.normal(size=N),
            "count": random.integers(0, 5, N),
            "old": random.uniform(size=N) < 0.4,
            "colour": np.array(["blue", "green", "red"], dtype=object)[random.integers(0, 3, N)],
        }
    )
    odds = frame["size"] + 0.3 * frame["count"] - frame["old"] + (frame["colour"] == "red")
    yes = random.uniform(size=N) < 1 / (1 + np.exp(-odds))
    frame["y"] = np.array(["no", "yes"], dtype=object)[yes.astype(int)]
    frame["times"] = random.choice([0.0, 0.5, 2.0], size=N)
    frame["push"] = random.normal(size=N)
    frame["events"] = random.poisson(np.exp(0.5 * frame["size"]))
    return frame


FRAME = _frame()
PLAIN = FRAME[[*FEATURES, "y"]]


def _table(frame):
    return (
        frame if isinstance(frame, pa.Table) else pa.Table.from_pandas(frame, preserve_index=False)
    )


def _parts(frame, cuts=CUTS):
    return [frame.iloc[low:high] for low, high in pairwise(cuts)]


def _parquet(folder, parts, row_group_size=60):
    """A folder with a Parquet file for each part."""
    folder.mkdir()
    for i, part in enumerate(parts):
        pq.write_table(_table(part), folder / f"part-{i}.parquet", row_group_size=row_group_size)
    return folder


def _csv(folder, parts, ending=".csv", separator=","):
    folder.mkdir()
    for i, part in enumerate(parts):
        part.to_csv(folder / f"part-{i}{ending}", index=False, sep=separator)
    return folder


def _arrow(path, frame, rows_a_batch=50):
    table = _table(frame)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=rows_a_batch)
    return path


def _in_memory(X=None, y=None, **given):
    if X is None and y is None and not given:
        return _as_they_are()
    X, y = FRAME[FEATURES] if X is None else X, FRAME["y"] if y is None else y
    return LogisticRegression(tol=1e-8).fit(X, y, **given)


@cache
def _as_they_are():
    return LogisticRegression(tol=1e-8).fit(FRAME[FEATURES], FRAME["y"])


def _from(source, target="y", **given):
    return LogisticRegression(tol=1e-8).fit(scan(source, target, **given))


def _assert_same(found, expected, tolerance=1e-10):
    assert found.classes_.tolist() == expected.classes_.tolist()
    assert found.schema_ == expected.schema_
    assert found.feature_names_in_.tolist() == expected.feature_names_in_.tolist()
    for name in ("coef_", "intercept_", "coef_covariance_", "log_likelihood_", "null_deviance_"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(expected, name), rtol=tolerance, atol=tolerance
        )


# What rows may lie in.

SOURCES = {
    "Parquet": lambda p: _parquet(p / "a", [PLAIN]) / "part-0.parquet",
    "Parquet folder": lambda p: _parquet(p / "a", _parts(PLAIN)),
    "name of a Parquet folder": lambda p: str(_parquet(p / "a", _parts(PLAIN))),
    "Parquet row groups of five rows": lambda p: _parquet(p / "a", _parts(PLAIN), 5),
    "Parquet folder with a mark of success": lambda p: _with_file(
        _parquet(p / "a", _parts(PLAIN)), "_SUCCESS"
    ),
    "Parquet folder with a note in it": lambda p: _with_file(
        _parquet(p / "a", _parts(PLAIN)), "README.txt"
    ),
    "folders in a folder": lambda p: (
        _parquet(_parquet(p / "a", _parts(PLAIN, CUTS[:3])) / "b", [PLAIN[10:]]).parent
    ),
    "list of files": lambda p: sorted(_parquet(p / "a", _parts(PLAIN)).iterdir()),
    "list of names": lambda p: sorted(map(str, _parquet(p / "a", _parts(PLAIN)).iterdir())),
    "list of folders": lambda p: [
        _parquet(p / "a", [PLAIN[:100]]),
        _parquet(p / "b", [PLAIN[100:]]),
    ],
    "glob": lambda p: str(_parquet(p / "a", _parts(PLAIN)) / "*.parquet"),
    "glob of folders": lambda p: str(_parquet(p / "a", _parts(PLAIN)).parent / "[a-c]"),
    "pyarrow dataset": lambda p: pads.dataset(_parquet(p / "a", _parts(PLAIN))),
    "pyarrow dataset in memory": lambda p: pads.dataset(_table(PLAIN)),
    "CSV": lambda p: _csv(p / "a", [PLAIN]) / "part-0.csv",
    "CSV folder": lambda p: _csv(p / "a", _parts(PLAIN)),
    "CSV folder, first file empty": lambda p: _csv(p / "a", _parts(PLAIN, [0, 0, 100, N])),
    "CSV, zipped": lambda p: _csv(p / "a", [PLAIN], ".csv.gz") / "part-0.csv.gz",
    "CSV folder, zipped": lambda p: _csv(p / "a", _parts(PLAIN), ".csv.gz"),
    "TSV": lambda p: _csv(p / "a", [PLAIN], ".tsv", "\t") / "part-0.tsv",
    "TSV folder": lambda p: _csv(p / "a", _parts(PLAIN), ".tsv", "\t"),
    "TSV, zipped": lambda p: _csv(p / "a", [PLAIN], ".tsv.gz", "\t") / "part-0.tsv.gz",
    "Arrow": lambda p: _arrow(p / "a.arrow", PLAIN),
    "Arrow of polars": lambda p: _written_by_polars(p / "a.arrow"),
    "Feather": lambda p: _feather(p / "a.feather"),
    "pandas": lambda p: PLAIN,
    "polars": lambda p: pl.from_pandas(PLAIN),
    "pyarrow": lambda p: _table(PLAIN),
    "a stream of Arrow, as of DuckDB": lambda p: _Stream(_table(PLAIN)),
    "pandas, backwards": lambda p: PLAIN.iloc[::-1],
    "pyarrow in chunks": lambda p: pa.concat_tables([_table(part) for part in _parts(PLAIN)]),
}


class _Stream:
    """What hands out its rows by Arrow's protocol, and is nothing else that is known."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


def _with_file(folder, name):
    (folder / name).write_text("Written on a Monday.")
    return folder


def _written_by_polars(path):
    pl.from_pandas(PLAIN).write_ipc(path)
    return path


def _feather(path):
    feather.write_feather(_table(PLAIN), str(path))
    return path


@pytest.mark.parametrize("cache", [True, False], ids=["decoded once", "read in each pass"])
@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_any_source_gives_the_fit_in_memory(tmp_path, source, cache):
    rows = scan(source(tmp_path), "y", cache=cache).discover()
    assert isinstance(rows, Rows)
    assert rows.n_rows == N
    _assert_same(LogisticRegression(tol=1e-8).fit(rows), _in_memory())


def test_a_path_may_begin_at_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    _parquet(tmp_path / "a", [PLAIN])
    _assert_same(_from("~/a"), _in_memory())


def test_a_format_that_no_name_tells(tmp_path):
    for name, write in {
        "csv": lambda path: PLAIN.to_csv(path, index=False),
        "parquet": lambda path: pq.write_table(_table(PLAIN), path),
        "ipc": lambda path: _arrow(path, PLAIN),
    }.items():
        path = tmp_path / f"data_{name}"
        write(path)
        with pytest.raises(ParameterError, match="no format"):
            scan(path, "y")
        _assert_same(_from(path, format=name), _in_memory())


@pytest.mark.parametrize("column", ["colour", "count", "y"])
def test_a_hive_partition_is_a_column(tmp_path, column):
    pq.write_to_dataset(_table(PLAIN), tmp_path / "a", partition_cols=[column])
    _assert_same(_from(tmp_path / "a", columns=FEATURES), _in_memory())


def test_partitions_within_partitions(tmp_path):
    pq.write_to_dataset(_table(PLAIN), tmp_path / "a", partition_cols=["colour", "count"])
    rows = scan(tmp_path / "a", "y").discover()
    assert rows.schema.names == ("size", "old", "colour", "count")
    expected = _in_memory(FRAME[list(rows.schema.names)])
    _assert_same(LogisticRegression(tol=1e-8).fit(rows), expected)


def test_the_order_of_files_is_that_of_the_list(tmp_path):
    files = sorted(_parquet(tmp_path / "a", _parts(PLAIN)).iterdir())
    bad = PLAIN.copy()
    bad.loc[3, "size"] = np.nan
    pq.write_table(_table(bad[:10]), files[0])
    with pytest.raises(MissingValueError, match=r"row 233, column 'size'"):
        _from(files[::-1])
    with pytest.raises(MissingValueError, match=r"row 3, column 'size'"):
        _from(files)


# Which column is what.


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return _parquet(tmp_path_factory.mktemp("files") / "all", _parts(FRAME))


def test_features_are_the_columns_named_in_their_order(folder):
    for columns in (["size"], ["old", "count", "colour"]):
        found = _from(folder, columns=columns)
        _assert_same(found, _in_memory(FRAME[columns]))
        assert found.feature_names_in_.tolist() == columns


def test_features_are_all_columns_that_are_nothing_else(folder):
    rows = scan(folder, "y", weight="times", offset="push").discover()
    assert rows.schema.names == (*FEATURES, "events")
    plain = scan(folder).discover()
    assert plain.schema.names == tuple(FRAME.columns)
    assert plain.classes is None


def test_columns_that_are_not_read_may_hold_anything(tmp_path):
    frame = FRAME.assign(day=pd.Timestamp("2020-02-02"), list=[[1, 2]] * N)
    source = _parquet(tmp_path / "a", _parts(frame))
    _assert_same(_from(source, columns=FEATURES), _in_memory())


def test_weights_and_offsets_are_columns(folder):
    weighted = _from(folder, weight="times", columns=FEATURES)
    _assert_same(weighted, _in_memory(sample_weight=FRAME["times"]))
    pushed = _from(folder, offset="push", columns=FEATURES)
    _assert_same(pushed, _in_memory(offset=FRAME["push"]))
    both = _from(folder, weight="times", offset="push", columns=FEATURES)
    _assert_same(both, _in_memory(sample_weight=FRAME["times"], offset=FRAME["push"]))


def test_weights_may_be_whole_numbers_or_booleans(tmp_path):
    for kind in (np.int8, bool):
        frame = PLAIN.assign(w=(FRAME["times"] * 2).astype(kind))
        source = _parquet(tmp_path / kind.__name__, _parts(frame))
        expected = _in_memory(sample_weight=frame["w"].to_numpy())
        _assert_same(_from(source, weight="w"), expected)


def test_a_file_may_be_without_weight(tmp_path):
    weight = np.where(np.arange(N) < 100, 0.0, 1.5)
    source = _parquet(tmp_path / "a", _parts(PLAIN.assign(w=weight)))
    _assert_same(_from(source, weight="w"), _in_memory(sample_weight=weight))


def test_classes_with_weightless_rows_alone_are_absent(tmp_path):
    y = np.where(np.arange(N) % 40 == 3, "maybe", FRAME["y"]).astype(object)
    weight = np.where(y == "maybe", 0.0, 1.0)
    source = _parquet(tmp_path / "a", _parts(PLAIN.assign(y=y, w=weight)))
    found = _from(source, weight="w")
    assert found.classes_.tolist() == ["no", "yes"]
    _assert_same(found, _in_memory(y=y, sample_weight=weight))


# Targets.


def _soft(n_classes):
    shares = np.random.default_rng(3).dirichlet(np.ones(n_classes), size=N)
    return pd.DataFrame(shares, columns=["green", "amber", "red"][:n_classes])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_shares_of_classes_in_several_columns(tmp_path, n_classes):
    soft = _soft(n_classes)
    frame = pd.concat([FRAME[[*FEATURES, "times"]], soft], axis=1)
    source = _parquet(tmp_path / "a", _parts(frame))
    rows = scan(source, list(soft.columns), weight="times").discover()
    assert rows.soft
    found = LogisticRegression(tol=1e-8).fit(rows)
    assert found.classes_.tolist() == sorted(soft.columns)
    _assert_same(found, _in_memory(y=soft, sample_weight=FRAME["times"]))
    called = [7, 3, 5][:n_classes]
    renamed = _from(source, list(soft.columns), weight="times", classes=called)
    assert renamed.classes_.tolist() == sorted(called)
    expected = _in_memory(y=soft.to_numpy(), sample_weight=FRAME["times"], classes=called)
    _assert_same(renamed, expected)


def test_a_list_of_one_target_is_that_target(folder):
    _assert_same(_from(folder, ["y"], columns=FEATURES), _in_memory())


YES = (FRAME["y"] == "yes").to_numpy()
LABELS = {
    "strings": FRAME["y"].to_numpy(),
    "booleans": YES,
    "integers": YES * 7 - 3,
    "small integers": YES.astype(np.int8),
    "large integers": 2**40 + YES.astype(np.int64),
    "whole floats": YES * 2.0,
    "dictionary": pa.array(FRAME["y"]).dictionary_encode(),
    "dictionary of integers": pa.array(YES * 7 - 3).dictionary_encode(),
    "large strings": pa.array(FRAME["y"], pa.large_string()),
    "days": np.datetime64("2020-02-02") + YES.astype("timedelta64[D]"),
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_labels_of_any_kind(tmp_path, labels):
    features = FRAME[["size", "old"]]
    table = _table(features).append_column("y", pa.array(labels))
    expected = _in_memory(features, table["y"].to_pandas())
    assert expected.classes_.tolist() == sorted(set(table["y"].to_pandas()))
    for source in (_parquet(tmp_path / "a", [table]), _arrow(tmp_path / "a.arrow", table, 200)):
        found = _from(source)
        _assert_same(found, expected)
        assert found.predict(features[:20]).tolist() == expected.predict(features[:20]).tolist()


def test_three_classes(tmp_path):
    y = np.random.default_rng(5).choice(["a", "b", "c"], size=N)
    source = _parquet(tmp_path / "a", _parts(PLAIN.assign(y=y)))
    found, expected = _from(source), _in_memory(y=y)
    assert found.coef_.shape == (3, 5)
    _assert_same(found, expected)


@pytest.mark.parametrize("kind", [np.float64, np.uint8])
def test_a_target_may_be_a_number(tmp_path, kind):
    frame = FRAME.assign(events=FRAME["events"].astype(kind))
    source = _parquet(tmp_path / "a", _parts(frame))
    model = GLM(family="poisson", tol=1e-8)
    rows = scan(source, "events", weight="times", offset="push", columns=FEATURES)
    found = model.fit(rows)
    coefficients, intercept, covariance = found.coef_, found.intercept_, found.coef_covariance_
    given = {"sample_weight": FRAME["times"], "offset": FRAME["push"]}
    expected = model.fit(FRAME[FEATURES], FRAME["events"], **given)
    np.testing.assert_allclose(coefficients, expected.coef_, rtol=0, atol=1e-10)
    np.testing.assert_allclose(intercept, expected.intercept_, rtol=0, atol=1e-10)
    np.testing.assert_allclose(covariance, expected.coef_covariance_, rtol=1e-9)


def test_the_same_rows_serve_labels_and_numbers(folder):
    rows = scan(folder, "count", columns=["size"])
    labels = LogisticRegression(tol=1e-8).fit(rows)
    numbers = GLM(family="poisson", tol=1e-8).fit(rows)
    assert labels.classes_.tolist() == [0, 1, 2, 3, 4]
    expected = GLM(family="poisson", tol=1e-8).fit(FRAME[["size"]], FRAME["count"])
    np.testing.assert_allclose(numbers.coef_, expected.coef_, rtol=0, atol=1e-10)
    _assert_same(labels, _in_memory(FRAME[["size"]], FRAME["count"]))


def test_a_real_target_has_no_classes(folder):
    for target in ("size", "push"):
        rows = scan(folder, target, columns=["count"])
        found = GLM(tol=1e-8).fit(rows)
        expected = GLM(tol=1e-8).fit(FRAME[["count"]], FRAME[target])
        np.testing.assert_allclose(found.coef_, expected.coef_, rtol=0, atol=1e-10)
        with pytest.raises(LabelError, match=r"part-0.parquet: .*continuous. Row 0 of"):
            LogisticRegression().fit(rows)


# Columns that not all files show alike.


def test_dictionary_columns_with_other_dictionaries_in_each_file(tmp_path):
    parts = [
        part.assign(colour=part["colour"].astype("category"))
        for part in _parts(PLAIN, [0, 3, 9, N])
    ]
    source = _parquet(tmp_path / "a", parts)
    assert len({tuple(part["colour"].cat.categories) for part in parts}) > 1
    _assert_same(_from(source), _in_memory())


def test_a_file_without_some_class_or_level(tmp_path):
    order = np.lexsort([FRAME["y"], FRAME["colour"]])
    frame = PLAIN.iloc[order]
    cuts = [0, *(np.flatnonzero(np.diff((frame["colour"] + frame["y"]).factorize()[0])) + 1), N]
    parts = _parts(frame, cuts)
    assert all(part["y"].nunique() == part["colour"].nunique() == 1 for part in parts)
    for i, arranged in enumerate((parts, parts[::-1])):
        source = _parquet(tmp_path / str(i), arranged)
        found = _from(source)
        assert found.schema_.columns[3].levels == ("blue", "green", "red")
        _assert_same(found, _in_memory())


GAPS = {
    "NaN": lambda part: part.assign(size=np.nan),
    "null": lambda part: _table(part).set_column(0, "size", pa.nulls(len(part), pa.float64())),
    "of no type": lambda part: _table(part).set_column(0, "size", pa.nulls(len(part))),
}


@pytest.mark.parametrize("place", [0, 2])
@pytest.mark.parametrize("gap", GAPS.values(), ids=GAPS)
def test_a_file_in_which_a_column_is_empty(tmp_path, place, gap):
    parts = _parts(PLAIN)
    first, last = CUTS[place : place + 2]
    source = _parquet(
        tmp_path / "a", [gap(part) if i == place else part for i, part in enumerate(parts)]
    )
    holes = PLAIN.assign(size=PLAIN["size"].where(~np.isin(np.arange(N), range(first, last))))
    found = NaiveBayes().fit(scan(source, "y"))
    expected = NaiveBayes().fit(holes[FEATURES], holes["y"])
    assert found.schema_ == expected.schema_
    np.testing.assert_allclose(
        found.predict_proba(PLAIN[FEATURES]),
        expected.predict_proba(PLAIN[FEATURES]),
        rtol=0,
        atol=1e-10,
    )
    with pytest.raises(MissingValueError, match=rf"row {first}, column 'size'"):
        _from(source)


@pytest.mark.parametrize("place", [0, 2])
def test_a_file_in_which_a_column_of_levels_is_empty(tmp_path, place):
    first, last = CUTS[place : place + 2]
    holes = PLAIN.assign(colour=PLAIN["colour"].where(~np.isin(np.arange(N), range(first, last))))
    schema = _table(PLAIN).schema
    parts = [
        pa.Table.from_pandas(part, schema=schema, preserve_index=False) for part in _parts(holes)
    ]
    found = NaiveBayes().fit(scan(_parquet(tmp_path / "a", parts), "y"))
    expected = NaiveBayes().fit(holes[FEATURES], holes["y"])
    assert found.schema_ == expected.schema_
    assert found.schema_.columns[3].levels == ("blue", "green", "red")
    np.testing.assert_allclose(
        found.predict_proba(PLAIN[FEATURES]),
        expected.predict_proba(PLAIN[FEATURES]),
        rtol=0,
        atol=1e-10,
    )


def test_a_column_that_is_empty_everywhere_is_numeric(tmp_path):
    source = _parquet(tmp_path / "a", _parts(PLAIN.assign(size=np.nan)))
    assert scan(source, "y").discover().schema.columns[0].kind == "numeric"
    with pytest.raises(MissingValueError, match=r"row 0, column 'size'"):
        _from(source)


def test_whole_numbers_in_one_file_and_others_in_the_next(tmp_path):
    frame = PLAIN.assign(count=PLAIN["count"] + np.where(np.arange(N) < 100, 0.0, 0.25))
    parts = _parts(frame, [0, 100, N])
    parts[0] = parts[0].astype({"count": np.int32})
    _assert_same(_from(_parquet(tmp_path / "a", parts)), _in_memory(frame[FEATURES]))


@pytest.mark.parametrize(
    "kind", [pa.int8(), pa.uint64(), pa.float32(), pa.float16(), pa.decimal128(21, 2)], ids=str
)
def test_numbers_of_any_type(tmp_path, kind):
    counts = PLAIN["count"].to_numpy()
    half = pa.types.is_float16(kind)
    array = pa.array(counts.astype(np.float16)) if half else pa.array(counts).cast(kind)
    table = _table(PLAIN).set_column(1, "count", array)
    _assert_same(_from(_parquet(tmp_path / "a", [table])), _in_memory())


def test_single_precision_is_that_of_the_file(tmp_path):
    frame = PLAIN.astype({"size": np.float32})
    found = _from(_parquet(tmp_path / "a", _parts(frame)))
    _assert_same(found, _in_memory(frame[FEATURES]))
    exact = _in_memory()
    np.testing.assert_allclose(found.coef_, exact.coef_, rtol=0, atol=1e-6)
    assert abs(found.coef_ - exact.coef_).max() > 1e-10


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_order_of_rows_does_not_matter(tmp_path, kind):
    frame = PLAIN.astype({"size": kind})
    order = np.random.default_rng(8).permutation(N)
    found = _from(_parquet(tmp_path / "a", _parts(frame)))
    other = _from(_parquet(tmp_path / "b", _parts(frame.iloc[order], [0, 200, 201, N]), 50))
    _assert_same(other, found)


DECLARED = ["red", "blue", "green"]


@pytest.mark.parametrize(
    "frame",
    [
        PLAIN.assign(colour=pd.Categorical(PLAIN["colour"], DECLARED)),
        PLAIN.assign(colour=pd.Categorical(PLAIN["colour"], DECLARED, ordered=True)),
        pl.from_pandas(PLAIN).with_columns(pl.col("colour").cast(pl.Enum(DECLARED))),
    ],
    ids=["categories", "ordered categories", "enum"],
)
def test_a_frame_keeps_the_order_it_declares(frame):
    expected = _in_memory(frame[FEATURES])
    assert expected.schema_.columns[3].levels == tuple(DECLARED)
    _assert_same(_from(frame), expected)


# Passes.


def test_the_bits_do_not_depend_on_the_number_of_threads(folder):
    found = []
    for n in (1, 2, 3):
        with threads(n):
            found.append(_from(folder, weight="times", columns=FEATURES))
    for other in found[1:]:
        _assert_same(other, found[0], tolerance=0)


def test_the_bits_do_not_depend_on_what_was_read_before(folder):
    rows = scan(folder, "y", columns=FEATURES)
    first, second = (LogisticRegression(tol=1e-8).fit(rows) for _ in range(2))
    _assert_same(second, first, tolerance=0)


def test_the_log_counts_passes(folder):
    rows = scan(folder, "y", columns=["size", "count"], cache=False)
    assert rows.log.passes == 0
    assert rows.discover().n_rows == N
    assert rows.log.passes == 1
    labels = rows.log.bytes_read  # plain numbers are not read to discover them
    assert 2 * N < labels < N * 16
    rows.map_sum(lambda block: block.X.sum(axis=0))
    assert rows.log.passes == 2
    assert rows.log.bytes_read == pytest.approx(2 * labels + N * 16, rel=0.02)


def test_blocks_know_the_number_of_their_first_row(folder):
    rows = scan(folder, "y", columns=["size"]).discover()
    found = rows.map_sum(lambda block: [(block.start, block.X[:, 0])])
    for start, values in found:
        np.testing.assert_array_equal(values, FRAME["size"][start : start + len(values)])
    assert sum(len(values) for _, values in found) == N


# What can be wrong.


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"target": "z"}, r"target='z' is not among the columns. They are 'size', 'count', 'old'"),
        ({"target": ["y", "z"]}, "target='z'"),
        ({"target": "y", "weight": "w"}, "weight='w'"),
        ({"target": "y", "offset": "o"}, "offset='o'"),
        ({"target": "y", "columns": ["size", "sise"]}, "columns='sise'"),
        ({"target": "y", "columns": ["size", "y"]}, "Column 'y' is named twice"),
        ({"target": "y", "columns": ["size", "size"]}, "Column 'size' is named twice"),
        ({"target": "y", "weight": "y"}, "Column 'y' is named twice"),
        ({"target": "y", "weight": "times", "offset": "times"}, "Column 'times' is named twice"),
        ({"target": ["y", "y"]}, "Column 'y' is named twice"),
    ],
)
def test_a_column_that_is_not_there_or_named_twice(folder, given, message):
    with pytest.raises(ColumnNameError, match=message):
        scan(folder, **given)


def test_no_feature_is_left(tmp_path, folder):
    with pytest.raises(ShapeError, match="0 feature"):
        scan(folder, "y", columns=[])
    with pytest.raises(ShapeError, match="0 feature"):
        scan(_parquet(tmp_path / "a", [PLAIN[["y"]]]), "y")


@pytest.mark.parametrize("source", ["nowhere.parquet", "nowhere/", "*.csv", ["nowhere.csv"]])
def test_a_path_that_is_not_there(tmp_path, source):
    one = isinstance(source, str)
    path = str(tmp_path / source) if one else [str(tmp_path / name) for name in source]
    with pytest.raises(SourceError, match=r"There is no file '.*(nowhere|\*\.csv)"):
        scan(path, "y")


def test_a_folder_or_list_without_files(tmp_path):
    with pytest.raises(SourceError, match="There is no file in the folder"):
        scan(tmp_path, "y")
    with pytest.raises(SourceError, match="no file"):
        scan([], "y")


def test_two_formats_in_one_folder(tmp_path):
    source = _parquet(tmp_path / "a", _parts(PLAIN))
    PLAIN.to_csv(source / "more.csv", index=False)
    with pytest.raises(ParameterError, match="several formats: csv, parquet"):
        scan(source, "y")


def test_a_format_that_does_not_exist(folder):
    with pytest.raises(ParameterError, match="xml"):
        scan(folder, "y", format="xml")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("junk.parquet", "no Parquet at all"),
        ("junk.arrow", "no Arrow at all"),
        ("empty.csv", ""),
        ("ragged.csv", "x,y\n1,no\n2,yes,3\n"),
        ("twice.csv", "x,x,y\n1,2,no\n2,3,yes\n"),
    ],
)
def test_a_file_that_is_not_what_its_name_says(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(SourceError, match=name):
        _from(tmp_path / name)


@pytest.mark.parametrize(
    "values",
    [
        np.full(N, np.datetime64("2020-02-02")),
        np.full(N, np.timedelta64(3, "s")),
        [[1, 2]] * N,
        [b"bytes"] * N,
    ],
    ids=["dates", "durations", "lists", "bytes"],
)
def test_a_column_that_is_neither_number_nor_level(tmp_path, values):
    table = _table(PLAIN).append_column("odd", pa.array(values))
    source = _parquet(tmp_path / "a", [table])
    with pytest.raises(ColumnTypeError, match=r"Column 'odd' (holds|is a date)"):
        scan(source, "y")
    _assert_same(_from(source, columns=FEATURES), _in_memory())


def _with(name, row, value):
    frame = PLAIN.assign(w=1.0)
    if name == "y" and not isinstance(value, str | None):
        frame["y"] = YES.astype(float)
    frame.loc[row, name] = value
    return frame


def _assert_names(row, error):
    """The message names the file, and the row among those of all files."""
    place = max(i for i, first in enumerate(CUTS[:-1]) if first <= row)
    assert re.search(rf"part-{place}\.parquet: .*\brow {row}\b", str(error), re.IGNORECASE)


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("y", None, LabelError),
        ("y", np.nan, LabelError),
        ("y", np.inf, LabelError),
        ("y", 0.5, LabelError),
        ("w", -1.0, WeightError),
        ("w", np.nan, WeightError),
        ("w", np.inf, WeightError),
    ],
)
@pytest.mark.parametrize("row", [0, 123])
def test_a_label_or_weight_that_cannot_be_used_is_named(tmp_path, name, value, kind, row):
    source = _parquet(tmp_path / "a", _parts(_with(name, row, value)))
    with pytest.raises(kind) as caught:
        _from(source, weight="w")
    _assert_names(row, caught.value)


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("size", np.nan, MissingValueError),
        ("size", np.inf, InfiniteValueError),
        ("colour", None, MissingValueError),
    ],
)
@pytest.mark.parametrize("row", [123, N - 1])
def test_an_entry_that_cannot_be_used_is_named(tmp_path, name, value, kind, row):
    frame = _with(name, row, value)
    source = _parquet(tmp_path / "a", _parts(frame))
    with pytest.raises(kind, match=rf"row {row}, column '{name}'") as caught:
        _from(source, weight="w")
    with pytest.raises(kind) as expected:
        _in_memory(frame[FEATURES])
    assert caught.value.problem.endswith(expected.value.problem)
    assert re.search(r"part-\d\.parquet: ", caught.value.problem)


def test_the_first_of_several_bad_labels_is_named(tmp_path):
    frame = _with("y", 200, None)
    frame.loc[[12, 150], "y"] = None
    for n in (1, 2):
        with threads(n), pytest.raises(LabelError) as caught:
            _from(_parquet(tmp_path / str(n), _parts(frame), 5), weight="w")
        _assert_names(12, caught.value)


def test_an_offset_that_is_not_finite_is_named(tmp_path):
    source = _parquet(tmp_path / "a", _parts(_with("w", 123, np.nan)))
    with pytest.raises(DataError) as caught:
        _from(source, offset="w")
    _assert_names(123, caught.value)


def test_weights_that_are_no_numbers_or_all_zero(tmp_path):
    source = _parquet(tmp_path / "a", _parts(PLAIN.assign(w="much")))
    with pytest.raises(WeightError, match="does not hold numbers"):
        _from(source, weight="w")
    source = _parquet(tmp_path / "b", _parts(PLAIN.assign(w=0.0)))
    with pytest.raises(WeightError, match="zero in every row"):
        _from(source, weight="w")


def test_shares_that_are_no_distribution(tmp_path):
    soft = _soft(2)
    soft.loc[123, "green"] += 0.1
    source = _parquet(tmp_path / "a", _parts(pd.concat([FRAME[FEATURES], soft], axis=1)))
    with pytest.raises(LabelError, match="not a probability distribution") as caught:
        _from(source, ["green", "amber"])
    _assert_names(123, caught.value)


def test_a_number_that_is_none(tmp_path):
    frame = FRAME.assign(events=FRAME["events"].where(FRAME.index != 123))
    source = _parquet(tmp_path / "a", _parts(frame))
    with pytest.raises(DomainError) as caught:
        GLM(family="poisson").fit(scan(source, "events"))
    _assert_names(123, caught.value)
    with pytest.raises(DomainError, match="'no', which is not a number"):
        GLM(family="poisson").fit(scan(source, "y"))


def test_rows_of_one_class(tmp_path):
    source = _parquet(tmp_path / "a", _parts(PLAIN.assign(y="yes")))
    with pytest.raises(LabelError, match="two classes at least; y has one class, 'yes'"):
        _from(source)


def test_rows_without_a_target(folder):
    with pytest.raises(LabelError, match="without labels"):
        LogisticRegression().fit(scan(folder))
    with pytest.raises(LabelError, match="no target"):
        GLM(family="poisson").fit(scan(folder))


def test_labels_beside_rows_that_have_them(folder):
    with pytest.raises(ParameterError, match="targets and weights of their own"):
        LogisticRegression().fit(scan(folder, "y"), FRAME["y"])


def test_names_of_classes_that_only_shares_need(folder):
    with pytest.raises(ParameterError, match="classes"):
        scan(folder, "y", classes=["no", "yes", "maybe"])


def test_files_without_any_row(tmp_path):
    source = _parquet(tmp_path / "a", [PLAIN[:0], PLAIN[:0]])
    with pytest.raises(ShapeError, match="no rows"):
        _from(source)


def test_numbers_in_one_file_and_levels_in_another(tmp_path):
    parts = _parts(PLAIN)
    parts[3] = parts[3].assign(size="large")
    with pytest.raises((SourceError, ColumnTypeError), match=r"size|large"):
        _from(_parquet(tmp_path / "a", parts))


# Files that change between two passes.


def _flip(path):
    """Other numbers in as many rows."""
    frame = pd.read_parquet(path)
    pq.write_table(_table(frame.assign(size=-frame["size"])), path, row_group_size=17)


def _cut(path):
    os.truncate(path, path.stat().st_size // 2)


def _grow(path):
    frame = pd.read_parquet(path)
    pq.write_table(_table(pd.concat([frame, frame[:5]])), path)


def _new_level(path):
    pq.write_table(_table(pd.read_parquet(path).assign(colour="violet")), path)


def _other(path):
    pq.write_table(pa.table({"z": [1, 2]}), path)


CHANGES = {
    "removed": os.remove,
    "cut": _cut,
    "other numbers": _flip,
    "more rows": _grow,
    "a new level": _new_level,
    "another table": _other,
    "emptied": lambda path: path.write_bytes(b""),
}


@pytest.mark.parametrize("place", [0, 3])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_file_that_changes_after_the_scan_is_named(tmp_path, change, place):
    source = _parquet(tmp_path / "a", _parts(PLAIN))
    rows = scan(source, "y", columns=["size", "colour"])
    model = GaussianClassifier().fit(rows)
    before = dict(model.__dict__)
    change(source / f"part-{place}.parquet")
    what = "gone" if change is os.remove else "changed"
    with pytest.raises(SourceError, match=rf"part-{place}\.parquet (is|has) {what}"):
        model.fit(rows)
    assert model.__dict__ == before


def test_a_file_that_changes_during_a_pass_is_named(tmp_path):
    source = _parquet(tmp_path / "a", _parts(PLAIN))
    rows = scan(source, "y").discover()

    def kernel(block):
        if block.start == 0:
            _flip(source / "part-3.parquet")
        return block.X.shape[0]

    with threads(1), pytest.raises(SourceError, match=r"part-3\.parquet has changed"):
        rows.map_sum(kernel)


def test_a_file_that_is_removed_before_the_first_pass(tmp_path):
    source = _parquet(tmp_path / "a", _parts(PLAIN))
    rows = scan(source, "y")
    (source / "part-2.parquet").unlink()
    with pytest.raises(SourceError, match=r"part-2\.parquet is gone"):
        LogisticRegression().fit(rows)


def test_a_new_scan_sees_what_is_there_now(tmp_path):
    source = _parquet(tmp_path / "a", _parts(PLAIN))
    _assert_same(_from(source), _in_memory())
    pq.write_table(_table(PLAIN[:50]), source / "part-9.parquet")
    again = pd.concat([PLAIN, PLAIN[:50]])
    _assert_same(_from(source), _in_memory(again[FEATURES], again["y"]))


def test_a_fit_that_fails_leaves_the_model_as_it_was(tmp_path, folder):
    model = _from(folder, columns=FEATURES)
    before = dict(model.__dict__)
    spoilt = scan(_parquet(tmp_path / "a", _parts(_with("size", 123, np.nan))), "y")
    with pytest.raises(MissingValueError):
        model.fit(spoilt)
    assert model.__dict__ == before
    gone = scan(_parquet(tmp_path / "b", _parts(PLAIN)), "y")
    assert gone.discover().n_rows == N
    shutil.rmtree(tmp_path / "b")
    with pytest.raises(SourceError, match="gone"):
        model.fit(gone)
    assert model.__dict__ == before
    new = LogisticRegression()
    with pytest.raises(SourceError):
        new.fit(gone)
    assert not hasattr(new, "classes_")


def test_an_error_in_a_kernel_is_its_own(folder):
    rows = scan(folder, "y").discover()

    def kernel(block):
        if block.start >= 100:
            raise ZeroDivisionError("by the kernel")
        return 1

    with pytest.raises(ZeroDivisionError, match="by the kernel"):
        rows.map_sum(kernel)
    assert rows.map_sum(lambda block: block.X.shape[0]) == N


def test_dictionaries_of_several_files_are_joined(tmp_path):
    """All levels together would need wider codes than those of each file."""
    for i in range(3):
        levels = pa.array([f"{i}-{j}" for j in range(60)])
        codes = pa.array(np.arange(120) % 60, pa.int8())
        level = pa.DictionaryArray.from_arrays(codes, levels)
        feather.write_feather(
            pa.table({"level": level, "y": np.arange(120) // 60}), str(tmp_path / f"{i}.feather")
        )
    rows = scan(tmp_path, "y").discover()
    assert len(rows.schema.columns[0].levels) == 180
    assert NaiveBayes().fit(rows).classes_.tolist() == [0, 1]


def test_paths_may_be_relative(tmp_path, monkeypatch):
    _parquet(tmp_path / "a", _parts(PLAIN))
    monkeypatch.chdir(tmp_path)
    for source in (
        "a",
        Path("a"),
        "a/*.parquet",
        ["a/part-0.parquet", Path("a/part-2.parquet"), "a/part-3.parquet"],
    ):
        _assert_same(_from(source), _in_memory())


def test_column_names_that_are_no_strings_are_an_error():
    frame = pd.DataFrame(np.eye(3))
    with pytest.raises(ColumnNameError, match="column name 0 is not a string"):
        scan(frame)
    with pytest.raises(ColumnNameError, match="target=2 is not the name of a column"):
        scan(frame.rename(columns=str), target=2)
