"""What may be scanned: each file once, each column as it is meant; what is wrong is named."""

import gzip
from decimal import Decimal
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import dataset, feather, parquet

import posteriori.rows.scan as scanning
from posteriori import (
    GLM,
    Adaline,
    DecidingClassifier,
    FisherDiscriminant,
    GaussianClassifier,
    LeastSquaresClassifier,
    LogisticRegression,
    NaiveBayes,
    NoveltyDetector,
    Perceptron,
    scan,
)
from posteriori.errors import ColumnTypeError, ParameterError, SourceError

RANDOM = np.random.default_rng(4)
N = 200
FRAME = pd.DataFrame(
    {
        "a": RANDOM.normal(size=N),
        "c": RANDOM.choice(["r", "s", "t"], N),
        "o": RANDOM.normal(size=N),
        "y": RANDOM.choice(["no", "yes"], N),
    }
)
PLAIN = FRAME[["a", "y"]]


def fit(rows, model=LogisticRegression):
    return model().fit(rows)


def written(path, frame=PLAIN):
    path.parent.mkdir(parents=True, exist_ok=True)
    {".parquet": frame.to_parquet, ".csv": frame.to_csv}[path.suffix](path, index=False)
    return path


def assert_same(one, other):
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-6, atol=1e-9)
    assert one.log_likelihood_ == pytest.approx(other.log_likelihood_, rel=1e-10)


# Which files.


@pytest.mark.parametrize("glob", ["**", "**/*", "**/*.parquet", "*", "s/*", "s", "[s]", "s/x.*"])
def test_each_file_is_read_once(tmp_path, glob):
    written(tmp_path / "s" / "x.parquet")
    assert scan(str(tmp_path / glob), target="y").discover().n_rows == N


def test_a_file_that_is_named_twice_is_an_error(tmp_path):
    file = written(tmp_path / "s" / "x.parquet")
    for source in ([tmp_path, file], [file, str(file)], [str(tmp_path / "*"), tmp_path / "s"]):
        with pytest.raises(SourceError, match=r"x\.parquet' is named twice"):
            scan(source, target="y")


@pytest.mark.parametrize("name", ["v11 [1]", "really?", "5*"])
def test_signs_of_globs_may_be_part_of_a_name(tmp_path, name):
    file = written(tmp_path / name / "x [2].parquet")
    for source in (tmp_path / name, str(file), [file]):
        assert scan(source, target="y").discover().n_rows == N


def test_globs_leave_out_what_folders_leave_out(tmp_path):
    written(tmp_path / "x.parquet")
    for other in ("_SUCCESS", ".x.parquet.crc", "README.md"):
        (tmp_path / other).write_text("nothing")
    assert scan(str(tmp_path / "*"), target="y").discover().n_rows == N
    written(tmp_path / "_hidden" / ".y.parquet")
    assert scan(str(tmp_path / "**"), target="y").discover().n_rows == N
    assert scan(str(tmp_path / "_hidden" / ".*"), target="y").discover().n_rows == N


def test_tabs_and_commas_are_not_mixed(tmp_path):
    written(tmp_path / "x.csv")
    PLAIN.to_csv(tmp_path / "y.tsv", sep="\t", index=False)
    with pytest.raises(ParameterError, match="separated by tabs"):
        scan(tmp_path, target="y")


# Which columns, and of which type.


def test_the_types_of_a_parquet_dataset_are_the_users_word(tmp_path):
    frame = PLAIN.assign(z=np.arange(N) % 3)
    file = written(tmp_path / "x.parquet", frame)
    schema = pa.schema([("a", pa.float64()), ("z", pa.string()), ("y", pa.string())])
    found = fit(scan(dataset.dataset(file, schema=schema), target="y"))
    expected = LogisticRegression().fit(frame[["a", "z"]].astype({"z": str}), frame["y"])
    assert found.schema_ == expected.schema_
    assert_same(found, expected)


def test_rows_that_a_dataset_filters_are_left_out(tmp_path):
    file = written(tmp_path / "x.parquet")
    some = dataset.dataset(file).filter(dataset.field("a") > 0)
    assert_same(fit(scan(some, target="y")), fit(scan(PLAIN[PLAIN["a"] > 0], target="y")))


@pytest.mark.parametrize("kind", ["parquet", "feather", "table", "batch"])
def test_an_index_of_pandas_is_no_column(tmp_path, kind):
    frame = PLAIN[PLAIN["a"] > -1]
    table = pa.Table.from_pandas(frame)
    assert "__index_level_0__" in table.column_names
    if kind == "parquet":
        parquet.write_table(table, tmp_path / "x.parquet")
    elif kind == "feather":
        feather.write_feather(table, tmp_path / "x.feather")
    source = {"table": table, "batch": table.combine_chunks().to_batches()[0]}.get(kind, tmp_path)
    found = fit(scan(source, target="y"))
    assert found.feature_names_in_.tolist() == ["a"]
    named = scan(source, target="y", columns=["a", "__index_level_0__"])
    assert len(named.discover().schema) == 2


TEXTS = {
    "text": pa.array(FRAME["c"]).cast(pa.string()),
    "large": pa.array(FRAME["c"]).cast(pa.large_string()),
    "dictionary": pa.array(FRAME["c"]).cast(pa.string()).dictionary_encode(),
    "view": pa.array(FRAME["c"]).cast(pa.string()).cast(pa.string_view()),
}


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
@pytest.mark.parametrize("other", TEXTS)
@pytest.mark.parametrize("first", ["text", "view"])
def test_text_may_be_stored_in_several_ways(tmp_path, first, other, ending):
    for name in (first, other):
        table = pa.table({"a": FRAME["a"], "c": TEXTS[name], "y": FRAME["y"]})
        if ending == "parquet":
            parquet.write_table(table, tmp_path / f"{name}.parquet")
        else:
            feather.write_feather(table, tmp_path / f"{name}.arrow")
    rows = FRAME if first == other else pd.concat([FRAME, FRAME])
    expected = LogisticRegression().fit(rows[["a", "c"]], rows["y"])
    assert_same(fit(scan(tmp_path, target="y")), expected)


@pytest.mark.parametrize("kind", [pa.decimal32(7, 2), pa.decimal64(9, 2), pa.decimal256(50, 2)])
def test_decimals_of_any_width(tmp_path, kind):
    numbers = pa.array([Decimal(int(100 * a)) / 100 for a in FRAME["a"]])
    table = pa.table({"a": numbers.cast(kind), "y": FRAME["y"]})
    parquet.write_table(table, tmp_path / "x.parquet")
    feather.write_feather(
        pa.table({"a": np.arange(5), "y": ["no", "yes"] * 2 + ["no"]}), tmp_path / "x.arrow"
    )
    feather.write_feather(pa.table({"a": numbers, "y": FRAME["y"]}), tmp_path / "y.arrow")
    plain = FRAME[["y"]].assign(a=np.array(numbers.cast(pa.float64())))
    expected = LogisticRegression().fit(plain[["a"]], plain["y"])
    assert_same(fit(scan(tmp_path / "x.parquet", target="y")), expected)
    rows = scan(str(tmp_path / "*.arrow"), target="y").discover()
    found = [float(x) for batch in rows.batches() for x in batch.table.cut(0, batch.n_rows)[:, 0]]
    np.testing.assert_array_equal(found, [*range(5), *plain["a"]])


def test_columns_that_differ_are_an_error_only_where_they_are_read(tmp_path):
    parquet.write_table(
        pa.table({"a": [1.0, 2.0], "z": [1, 2], "y": [0, 1]}), tmp_path / "0.parquet"
    )
    parquet.write_table(
        pa.table({"a": [3.0, 4.0], "z": ["u", "v"], "y": [0, 1]}), tmp_path / "1.parquet"
    )
    assert scan(tmp_path, "y", columns=["a"]).discover().n_rows == 4
    with pytest.raises(SourceError, match=r"'z' is int64 in .*0\.parquet, and string in .*1\.p"):
        scan(tmp_path, "y")


def two_files(folder, *levels):
    """CSV files whose columns z have these levels, and the rows of both."""
    parts = [PLAIN.assign(z=RANDOM.choice(own, N)) for own in levels]
    for number, part in enumerate(parts):
        written(folder / f"{number}.csv", part)
    return pd.concat(parts)


def test_text_in_some_csv_files_is_text_where_its_levels_are_known(tmp_path):
    both = two_files(tmp_path, ["1", "2"], ["1", "x"])
    expected = LogisticRegression().fit(both[["a", "z"]], both["y"])
    rows = scan(tmp_path, target="y", categories={"z": ["1", "2", "x"]})
    assert_same(fit(rows), expected)
    path = expected.predict_proba(
        scan(tmp_path, columns=["a", "z"], dtypes={"z": "string"}), to=tmp_path / "p.parquet"
    )
    found = parquet.read_table(path).to_pandas().to_numpy()
    np.testing.assert_allclose(found, expected.predict_proba(both[["a", "z"]]), rtol=1e-12)
    assert scan(str(tmp_path / "*.csv"), "y", columns=["a"]).discover().n_rows == 2 * N
    with pytest.raises(SourceError, match=r"'z' is int64 in .*0\.csv, and string in .*1\.csv"):
        fit(scan(str(tmp_path / "*.csv"), target="y"))


def test_truths_in_one_csv_file_and_texts_in_the_next_are_levels(tmp_path):
    both = two_files(tmp_path, ["true", "false"], ["true", "perhaps"])
    expected = LogisticRegression().fit(both[["a", "z"]], both["y"])
    assert_same(fit(scan(tmp_path, target="y")), expected)


@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_lines_may_end_within_quotes(tmp_path, ending):
    """In files so large that they are cut before quotes are looked for."""
    text = np.where(np.arange(N) % 3 == 0, "one\nline, and more\n" + 30_000 * "x", "plain")
    frame = FRAME.assign(note=text)
    opened = gzip.open if ending == "csv.gz" else open
    with opened(tmp_path / f"x.{ending}", "wt") as file:
        frame.to_csv(file, index=False)
    rows = scan(tmp_path, "y", columns=["a", "c"])
    assert_same(fit(rows), LogisticRegression().fit(FRAME[["a", "c"]], FRAME["y"]))


def test_text_that_is_not_in_utf_8_is_told_of(tmp_path):
    frame = PLAIN.assign(c="häuser")
    frame.to_csv(tmp_path / "x.csv", index=False, encoding="latin-1")
    with pytest.raises(ColumnTypeError, match=r"'c' holds binary.* in UTF-8"):
        scan(tmp_path, "y")
    frame.rename(columns={"c": "größe"}).to_csv(tmp_path / "x.csv", index=False, encoding="latin-1")
    with pytest.raises(SourceError, match="must be written in UTF-8"):
        scan(tmp_path, "y")


@pytest.mark.parametrize("role", ["target", "weight", "offset"])
def test_several_values_a_row_are_no_label_and_no_number(role):
    table = pa.table({"a": [1.0, 2.0], "y": ["no", "yes"], "z": [[1.0, 2.0], [3.0]]})
    with pytest.raises(ColumnTypeError, match=r"'z' holds list<.*>, several values a row"):
        scan(table, **{"target": "y", "columns": ["a"], role: "z"})


# What is no source, not the name.


@pytest.mark.parametrize("source", [None, 3, b"x", [None], {"a": 1}.keys()])
def test_what_is_no_source(source):
    with pytest.raises(ParameterError, match="is not a source of rows"):
        scan(source, "y")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"target": []}, r"target=\[\] does not name columns"),
        ({"target": ["y", 3]}, "does not name columns"),
        ({"columns": "a"}, "columns='a' does not name columns"),
        ({"columns": [0]}, r"columns=\[0\] does not name columns"),
        ({"weight": np.ones(N)}, "weight is a ndarray, not the name"),
        ({"offset": 3.0}, "offset is a float, not the name"),
        ({"categories": ["c"]}, "categories is a list, not a mapping"),
        ({"categories": {"c": ["r", "s", "t", "r"]}}, "the level 'r' of column 'c' twice"),
        ({"categories": {"c": [1, "1"]}}, "the level '1' of column 'c' twice"),
    ],
)
def test_what_names_no_column(given, told):
    with pytest.raises(ParameterError, match=told):
        scan(FRAME, **{"target": "y", **given})


@pytest.mark.parametrize(
    "values", [[1 + 2j] * N, [1, "x"] * (N // 2), [10**30] * N], ids=["complex", "objects", "large"]
)
def test_frames_that_arrow_cannot_hold(values):
    with pytest.raises(ColumnTypeError, match="has a column that Arrow cannot hold"):
        scan(FRAME.assign(a=values), "y")


def test_polars_behind_a_stream():
    frame = pl.DataFrame(
        {"a": FRAME["a"].to_numpy(), "c": FRAME["c"].tolist(), "y": FRAME["y"].tolist()}
    )

    class Stream:
        def __arrow_c_stream__(self, requested=None):
            return frame.__arrow_c_stream__(requested)

    expected = LogisticRegression().fit(FRAME[["a", "c"]], FRAME["y"])
    assert_same(fit(scan(Stream(), "y")), expected)


# Offsets.


@pytest.mark.parametrize(
    "model",
    [
        GaussianClassifier,
        NaiveBayes,
        Perceptron,
        Adaline,
        LeastSquaresClassifier,
        FisherDiscriminant,
    ],
)
def test_offsets_are_an_error_for_models_that_have_none(model, tmp_path):
    rows = scan(FRAME, "y", columns=["a"], offset="o")
    with pytest.raises(ParameterError, match=f"{model.__name__} knows no offsets"):
        model().fit(rows)
    fitted = model(averaged=True) if model is Perceptron else model()
    fitted.fit(FRAME[["a"]], FRAME["y"])
    with pytest.raises(ParameterError, match=f"{model.__name__} knows no offsets"):
        fitted.predict(rows, to=tmp_path / "x.parquet")
    if hasattr(fitted, "partial_fit"):
        with pytest.raises(ParameterError, match=f"{model.__name__} knows no offsets"):
            fitted.partial_fit(rows)


# Answers.


def answered(to, rows=None):
    model = LogisticRegression().fit(PLAIN[["a"]], PLAIN["y"])
    return model.predict(scan(PLAIN[["a"]]) if rows is None else rows, to=to)


def test_answers_never_take_the_place_of_what_they_are_about(tmp_path):
    file = written(tmp_path / "x.parquet")
    for to in (file, str(tmp_path / "." / "x.parquet")):
        with pytest.raises(ParameterError, match="one of the files that the rows are read from"):
            answered(to, scan(tmp_path, columns=["a"]))
    assert parquet.read_table(file).column_names == ["a", "y"]


@pytest.mark.parametrize(
    ("to", "told"),
    [
        ("", "to='' names no file"),
        (1, "to=1 names no file"),
        (".", "is no file"),
        ("/dev/null", "is no file"),
        ("nowhere/x.parquet", "There is no folder"),
        ("x.csv/x.parquet", "There is no folder"),
        (300 * "x", "cannot be written to .*: File name too long"),
    ],
)
def test_answers_that_have_no_place_are_told_of(tmp_path, monkeypatch, to, told):
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "x.csv")
    with pytest.raises(ParameterError, match=told):
        answered(to)
    assert [path.name for path in tmp_path.iterdir()] == ["x.csv"]


def test_home_is_where_answers_may_go(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert answered("~/x.parquet") == tmp_path / "x.parquet"
    assert [path.name for path in tmp_path.iterdir()] == ["x.parquet"]


def test_a_disk_that_is_full_is_no_fault_of_the_source(tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(parquet, "ParquetWriter", full)
    with pytest.raises(ParameterError, match=r"written to .*x\.parquet': No space left on device"):
        answered(tmp_path / "x.parquet", scan(written(tmp_path / "a.csv"), columns=["a"]))
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


def test_labels_have_one_type_in_all_parts_of_the_answers(tmp_path):
    labels = np.array([Decimal("1"), Decimal("10")], dtype=object)[(PLAIN["a"] > 0).astype(int)]
    model = GaussianClassifier().fit(PLAIN[["a"]], labels)
    low, high = PLAIN[PLAIN["a"] < -0.5], PLAIN[PLAIN["a"] > 0.5]
    parts = [written(tmp_path / "0.parquet", low), written(tmp_path / "1.parquet", high)]
    found = parquet.read_table(model.predict(scan(parts, columns=["a"]), to=tmp_path / "p.parquet"))
    assert sorted(set(found["prediction"].to_pylist())) == [1, 10]


@pytest.mark.parametrize("reject", [None, "unknown", -1])
def test_rejected_rows_have_their_label_in_a_file_too(tmp_path, reject):
    model = NoveltyDetector(GaussianClassifier(), false_alarm=0.1, reject_label=reject)
    model.fit(PLAIN[["a"]], PLAIN["y"])
    rows = scan(PLAIN[["a"]])
    if reject == -1:
        with pytest.raises(ParameterError, match=r"several types.*\['no', 'yes', -1\]"):
            model.predict(rows, to=tmp_path / "x.parquet")
        return
    found = parquet.read_table(model.predict(rows, to=tmp_path / "x.parquet"))["prediction"]
    assert found.to_pylist() == model.predict(PLAIN[["a"]]).tolist()
    assert reject in found.to_pylist()


def test_actions_may_be_of_another_kind_than_classes(tmp_path):
    loss = [[0.0, 1.0], [1.0, 0.0]]
    model = DecidingClassifier(
        LogisticRegression(), loss=loss, actions=["wait", "treat"], reject_cost=0.45
    )
    model.fit(PLAIN[["a"]], (PLAIN["a"] > 0).astype(int) + RANDOM.integers(0, 2, N) > 0)
    found = parquet.read_table(model.predict(scan(PLAIN[["a"]]), to=tmp_path / "x.parquet"))
    assert found["prediction"].to_pylist() == model.predict(PLAIN[["a"]]).tolist()


# Batches, and what does not take rows.


@pytest.mark.parametrize(
    "model",
    [LogisticRegression, partial(Perceptron, random_state=0), GaussianClassifier, NaiveBayes],
    ids=["logistic", "perceptron", "gaussian", "naive"],
)
@pytest.mark.filterwarnings("ignore::posteriori.errors.PosterioriWarning")
def test_a_first_batch_may_lack_a_class_that_is_named(model, tmp_path):
    one, rest = PLAIN[PLAIN["y"] == "no"].head(9), PLAIN.head(20)
    first = scan(written(tmp_path / "x.csv", one), "y")
    found = model().partial_fit(first, classes=["no", "yes"])
    found.partial_fit(scan(rest, "y"))
    assert found.classes_.tolist() == ["no", "yes"]
    expected = model().partial_fit(one[["a"]], one["y"], classes=["no", "yes"])
    expected.partial_fit(rest[["a"]], rest["y"])
    np.testing.assert_allclose(
        found.decision_function(PLAIN[["a"]]), expected.decision_function(PLAIN[["a"]]), rtol=1e-6
    )


def test_a_table_is_asked_for_where_rows_are_not_taken():
    rows = scan(PLAIN, "y")
    model = FisherDiscriminant().fit(rows)
    with pytest.raises(ParameterError, match="A source is not accepted here"):
        model.transform(rows)


def test_the_file_that_cannot_be_read_is_named(tmp_path):
    for name in ("0", "1"):
        written(tmp_path / f"{name}.parquet")
    rows = scan(tmp_path, "y")
    held = (tmp_path / "1.parquet").read_bytes()
    (tmp_path / "1.parquet").write_bytes(held[:4] + b"\xff" * 200 + held[204:])
    with pytest.raises(SourceError, match=r"The file .*1\.parquet (cannot be read|has changed)"):
        fit(rows)
    with pytest.raises(SourceError, match=r"The file .*1\.parquet cannot be read"):
        fit(scan(tmp_path, "y"))


# CSV: types are those of the first megabyte, whole numbers are read as doubles.


def _late(path, value, column="a", before=60_000):
    """A CSV file of more than a megabyte, the last row of which has this value."""
    names = ["a", "b", "y"]
    rows = [
        {"a": str(i % 7), "b": f"{i % 10}.12345678912", "y": "no" if i % 3 else "yes"}
        for i in range(before)
    ]
    rows.append(rows[0] | {column: value})
    lines = [",".join(names), *(",".join(row[name] for name in names) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    assert path.stat().st_size > 2**20
    return path


def test_whole_numbers_may_have_decimals_after_the_first_megabyte(tmp_path):
    path = _late(tmp_path / "x.csv", "2.5")
    found = GaussianClassifier().fit(scan(path, "y"))
    expected = GaussianClassifier().fit(pd.read_csv(path)[["a", "b"]], pd.read_csv(path)["y"])
    np.testing.assert_allclose(found.means_, expected.means_, rtol=1e-12)
    weighted = NaiveBayes().fit(scan(path, "y", weight="a", columns=["b"]))
    assert weighted.class_count_.sum() == pd.read_csv(path)["a"].sum()
    numbers = GLM(family="poisson").fit(scan(_late(tmp_path / "z.csv", "2.5"), "a", columns=["b"]))
    assert numbers.converged_


def test_a_value_that_does_not_fit_its_column_is_an_error_with_the_remedy(tmp_path):
    first, path = tmp_path / "0.csv", _late(tmp_path / "1.csv", "many")
    _late(first, "5")
    with pytest.raises(SourceError) as caught:
        NaiveBayes().fit(scan(tmp_path, "y"))
    message = str(caught.value)
    assert str(path) in message
    assert "Row #60002" in message  # in the words of pyarrow, by lines of the file
    assert "dtypes={'a': 'string'}" in message
    found = NaiveBayes().fit(scan(tmp_path, "y", dtypes={"a": "string"}))
    assert found.schema_.columns[0].levels == ("0", "1", "2", "3", "4", "5", "6", "many")


def test_a_column_that_is_empty_first_holds_numbers(tmp_path):
    path = tmp_path / "x.csv"
    rows = [f",{i % 5}.123456789123,{'no' if i % 3 else 'yes'}" for i in range(60_000)]
    path.write_text("\n".join(["a,b,y", *rows, "2.5,1.0,no", "3.5,1.0,yes"]) + "\n")
    rows = scan(path, "y").discover()
    assert rows.schema.columns[0].kind == "numeric"
    assert rows.map_sum(lambda block: np.nansum(block.X[:, 0])) == 6.0


@pytest.mark.parametrize("dtypes", [{"a": "nothing"}, 3, {"a": 3}])
def test_dtypes_that_are_not_understood(tmp_path, dtypes):
    PLAIN.to_csv(tmp_path / "x.csv", index=False)
    with pytest.raises(ParameterError, match="dtypes="):
        scan(tmp_path / "x.csv", "y", dtypes=dtypes)


def test_dtypes_are_for_csv_files(tmp_path):
    PLAIN.to_parquet(tmp_path / "x.parquet")
    with pytest.raises(ParameterError, match="dtypes is for CSV files"):
        scan(tmp_path, "y", dtypes={"a": "string"})


def test_text_of_digits_is_read_as_the_fit_knows_it(tmp_path):
    frame = PLAIN.assign(z=RANDOM.choice(["1", "2", "x"], N))
    model = LogisticRegression(prior=1.0).fit(frame[["a", "z"]], frame["y"])
    frame[frame["z"] != "x"][["a", "z"]].to_csv(tmp_path / "x.csv", index=False)
    path = model.predict_proba(scan(tmp_path / "x.csv"), to=tmp_path / "p.parquet")
    found = parquet.read_table(path).to_pandas().to_numpy()
    expected = model.predict_proba(frame[frame["z"] != "x"][["a", "z"]])
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_file_that_lacks_a_column_is_named(tmp_path):
    PLAIN.to_parquet(tmp_path / "0.parquet")
    PLAIN.drop(columns="a").to_parquet(tmp_path / "1.parquet")
    with pytest.raises(SourceError, match=r"The file .*1\.parquet has no column 'a'"):
        scan(tmp_path, "y")


def test_the_representation_has_two_lines(tmp_path):
    PLAIN.to_parquet(tmp_path / "0.parquet")
    rows = scan(tmp_path, "y")
    assert repr(rows) == "<rows of 0.parquet, not read yet>\ntarget='y', 1 feature columns"
    assert repr(rows.discover()).startswith(f"<rows of 0.parquet, {N} rows>")


def test_a_pyarrow_that_is_missing_and_one_that_is_broken_are_told_apart(tmp_path, monkeypatch):
    PLAIN.to_parquet(tmp_path / "0.parquet")
    monkeypatch.setattr(scanning, "find_spec", lambda name: None)
    with pytest.raises(ParameterError, match="pyarrow, which is not installed"):
        scan(tmp_path, "y")
    monkeypatch.undo()

    def broken(name):
        raise ImportError("libarrow.so: cannot open shared object file")

    monkeypatch.setattr(scanning, "import_module", broken)
    with pytest.raises(ParameterError, match=r"cannot be loaded: libarrow\.so"):
        scan(tmp_path, "y")
