"""What may be scanned: paths, formats and arguments; what is wrong is named."""

import sys
from pathlib import Path

import numpy as np
import pytest
from sources import FRAME, PLAIN, N, assert_same, csv, fit, in_memory, ipc, parquet, table

from posteriori import errors, scan
from posteriori.rows import scan as scanning

PATHS = [
    *("a", "a/", "~/a", "*", "**", "**/*", "**/*.parquet", "[a-c]", "a/*", "a/part-?.parquet"),
    Path("a"),
    ["a/part-0.parquet", Path("a/part-2.parquet"), "a/part-3.parquet"],
    ["a/part-0.parquet", "a/part-[1-9].parquet"],
]


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_folders_globs_and_lists_find_each_file_once(tmp_path, monkeypatch, path):
    """Hidden files, marks of success and notes are left out."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    folder = parquet(tmp_path)
    for other in ("_SUCCESS", ".part-0.parquet.crc", "README.md", "_old/a.parquet"):
        (folder / other).parent.mkdir(exist_ok=True)
        (folder / other).write_text("nothing")
    assert scan(path, "y").discover().n_rows == N
    if isinstance(path, str) and not path.startswith("~"):
        assert scan(str(tmp_path / path), "y").discover().n_rows == N


def test_a_path_may_name_hidden_files_and_have_signs_of_globs_in_it(tmp_path):
    for name in ("_old", "v11 [1]", "really?"):
        folder = parquet(tmp_path / name)
        for source in (folder, str(folder), [folder / "part-3.parquet"]):
            assert scan(source, "y").discover().n_rows in (N, 140)
    assert scan(str(tmp_path / "_old" / "*"), "y").discover().n_rows == N


def test_a_file_that_is_named_twice_is_an_error(tmp_path):
    file = parquet(tmp_path) / "part-3.parquet"
    for source in ([tmp_path, file], [file, str(file)], [str(tmp_path / "*"), tmp_path / "a"]):
        with pytest.raises(errors.SourceError, match=r"\.parquet' is named twice"):
            scan(source, "y")


@pytest.mark.parametrize("source", ["nowhere.parquet", "nowhere/", "*.csv", ["nowhere.csv"], []])
def test_a_path_without_files_is_an_error(tmp_path, monkeypatch, source):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(errors.SourceError, match="There is no file"):
        scan(source, "y")
    with pytest.raises(errors.SourceError, match="There is no file in the folder"):
        scan(tmp_path, "y")


@pytest.mark.parametrize(("name", "write"), [("csv", csv), ("parquet", parquet), ("ipc", ipc)])
def test_a_format_is_given_where_no_name_says_it(tmp_path, name, write):
    path = next(write(tmp_path, [PLAIN]).iterdir()).rename(tmp_path / "data")
    with pytest.raises(errors.ParameterError, match="no format"):
        scan(path, "y")
    assert_same(fit(path, format=name), in_memory())


def test_formats_and_separators_are_not_mixed(tmp_path):
    csv(parquet(tmp_path).parent)
    with pytest.raises(errors.ParameterError, match="several formats: csv, parquet"):
        scan(tmp_path, "y")
    csv(csv(tmp_path / "b").parent, ending=".tsv", separator="\t")
    with pytest.raises(errors.ParameterError, match="several formats: csv, tsv"):
        scan(tmp_path / "b", "y")


@pytest.mark.parametrize("source", [None, 3, b"x", [None]])
def test_what_is_no_source_is_an_error(source):
    with pytest.raises(errors.ParameterError, match="is not a source of rows"):
        scan(source, "y")


WRONG = [
    *(
        (given, errors.ParameterError, f"{next(iter(given))} does not name columns")
        for given in (
            {"target": []},
            {"target": ["y", 3]},
            {"target": 2},
            {"columns": "a"},
            {"weight": np.ones(N)},
            {"offset": 3.0},
        )
    ),
    ({"columns": []}, errors.ShapeError, "0 feature"),
    ({"cache": 3}, errors.ParameterError, "cache=3 is neither True, False nor an existing folder"),
    ({"cache": "nowhere"}, errors.ParameterError, "cache='nowhere' is neither"),
]


@pytest.mark.parametrize(("given", "error", "message"), WRONG)
def test_an_argument_that_is_not_understood_is_an_error(given, error, message):
    with pytest.raises(error, match=message):
        scan(PLAIN, **{"target": "y", **given})


def test_dtypes_are_types_of_columns_of_csv_files(tmp_path):
    with pytest.raises(errors.ColumnNameError, match="dtypes has a type for 'sise'"):
        scan(csv(tmp_path), "y", dtypes={"sise": "string"})
    with pytest.raises(errors.ParameterError, match="dtypes is for CSV files"):
        scan(parquet(tmp_path / "b"), "y", dtypes={"size": "string"})


def test_frames_with_names_or_entries_that_arrow_has_not_are_an_error():
    with pytest.raises(errors.ColumnNameError, match="Some column names are strings"):
        scan(PLAIN.rename(columns={"size": 0}))
    with pytest.raises(errors.ColumnNameError, match="column name 0 is not a string"):
        scan(PLAIN.set_axis(range(5), axis=1))
    with pytest.raises(errors.ColumnTypeError, match="has a column that Arrow cannot hold"):
        scan(PLAIN.assign(size=[1, "x"] * (N // 2)), "y")


def test_the_representation_has_two_lines(tmp_path):
    rows = scan(parquet(tmp_path, [PLAIN]), "y")
    assert repr(rows) == "<rows of part-0.parquet, not read yet>\ntarget='y'"
    assert repr(rows.discover()).startswith(f"<rows of part-0.parquet, {N} rows>\n")
    several = scan(parquet(tmp_path), "y")
    assert repr(several).startswith("<rows of part-0.parquet and 3 more, not read yet>\n")
    assert repr(scan(table(FRAME), "y")).startswith("<rows of a table, not read yet>\n")


def test_a_missing_pyarrow_and_a_broken_one_are_told_apart(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.dataset", None)
    with pytest.raises(errors.ParameterError, match=r"cannot be loaded: .* --force-reinstall"):
        scan(tmp_path, "y")
    monkeypatch.setattr(scanning, "find_spec", lambda name: None)
    with pytest.raises(errors.ParameterError, match=r"not installed.* 'posteriori\[files"):
        scan(tmp_path, "y")
