"""CSV files whose later rows hold more than the first megabyte, by which pyarrow learns types."""

import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

from posteriori import GLM, GaussianClassifier, LogisticRegression, NaiveBayes, scan
from posteriori.errors import ColumnTypeError, LabelError, MissingValueError, SourceError
from posteriori.rows.schema import Column, Schema

N = 100_000
LATE = 90_000
"""The first row that lies far behind the first megabyte."""

_random = np.random.default_rng(7)
PLACE = _random.normal(size=N).round(6)
COUNT = _random.integers(0, 6, N)
YES = (_random.uniform(size=N) < 1 / (1 + np.exp(0.5 - PLACE - 0.2 * COUNT))).astype(int)
IS_LATE = np.arange(N) >= LATE
TEXTS = np.array(["blue", "green", "red"], dtype=object)[_random.integers(0, 3, N)]
FRAME = pd.DataFrame({"place": PLACE, "count": COUNT, "y": YES})
LATE_HALVES = np.where(IS_LATE, COUNT + 0.5, COUNT)
"""Whole numbers in the first megabyte, and decimals later."""


def _halves(whole):
    """As they are written: "2" first, and "2.5" late."""
    return [f"{k}.5" if late else str(k) for k, late in zip(whole, IS_LATE, strict=True)]


def _csv(path, separator=",", **columns):
    frame = FRAME.assign(**columns)
    frame.to_csv(path, index=False, sep=separator)
    return path


def _learnt(path, **options):
    """The types that pyarrow takes the columns for."""
    schema = pads.dataset(path, format="csv", **options).schema
    return {field.name: str(field.type) for field in schema}


def _assert_same(found, expected, tolerance=1e-10):
    for name in ("coef_", "intercept_", "coef_covariance_", "log_likelihood_"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(expected, name), rtol=tolerance, atol=tolerance
        )
    assert found.schema_ == expected.schema_


def _logistic(X, y=None, **given):
    return LogisticRegression(tol=1e-8).fit(X, y, **given)


def _gaussian(X, y=None):
    return GLM(family="gaussian", tol=1e-10).fit(X, y)


# Whole numbers, and decimals later.


def test_a_feature_of_whole_numbers_may_have_decimals_later(tmp_path):
    path = _csv(tmp_path / "a.csv", count=_halves(COUNT))
    assert _learnt(path)["count"] == "int64"
    rows = scan(path, "y")
    found = _logistic(rows)
    _assert_same(found, _logistic(FRAME[["place"]].assign(count=LATE_HALVES), YES))
    assert found.classes_.tolist() == [0, 1]
    assert found.classes_.dtype.kind == "i"


def test_files_whose_first_rows_tell_the_truth_are_read_once_a_look(tmp_path):
    starts = []
    rows = scan(_csv(tmp_path / "a.csv", count=_halves(COUNT)), "y", progress=starts.append)
    assert rows.n_rows == N
    assert {step.number for step in starts} == {1}


@pytest.mark.parametrize("role", ["weight", "offset"])
def test_weights_and_offsets_may_have_decimals_later(tmp_path, role):
    path = _csv(tmp_path / "a.csv", count=_halves(COUNT))
    given = {{"weight": "sample_weight", "offset": "offset"}[role]: LATE_HALVES}
    _assert_same(
        _logistic(scan(path, "y", **{role: "count"})), _logistic(FRAME[["place"]], YES, **given)
    )


@pytest.mark.parametrize("ending", [".csv.gz", ".tsv"])
def test_other_files_of_text_learn_types_alike(tmp_path, ending):
    path = _csv(
        tmp_path / f"a{ending}", "\t" if ending == ".tsv" else ",", y=_halves(COUNT), count=YES
    )
    expected = _gaussian(FRAME[["place"]].assign(count=YES), LATE_HALVES)
    _assert_same(_gaussian(scan(path, "y")), expected)


def test_a_target_of_whole_numbers_may_have_decimals_later(tmp_path):
    path = _csv(tmp_path / "a.csv", count=YES, y=_halves(COUNT))
    assert _learnt(path)["y"] == "int64"
    rows = scan(path, "y")
    expected = _gaussian(FRAME[["place"]].assign(count=YES), LATE_HALVES)
    _assert_same(_gaussian(rows), expected)
    _assert_same(_gaussian(rows), expected)  # the types stay what they have become


def test_shares_may_be_whole_first(tmp_path):
    share = np.where(IS_LATE, 0.25, YES)
    texts = [f"{s:g}" for s in share]
    rest = [f"{1 - s:g}" for s in share]
    path = _csv(tmp_path / "a.csv", yes=texts, no=rest)
    assert _learnt(path)["yes"] == "int64"
    found = _logistic(scan(path, ["no", "yes"], columns=["place"]))
    expected = _logistic(FRAME[["place"]], pd.DataFrame({"no": 1 - share, "yes": share}))
    _assert_same(found, expected)


def test_a_target_too_large_for_whole_numbers(tmp_path):
    large = np.where(IS_LATE, "30000000000000000000", YES.astype(str))
    rows = scan(_csv(tmp_path / "a.csv", y=large), "y")
    assert rows.classes.tolist() == [0.0, 1.0, 3e19]


def test_one_of_several_files_has_decimals_later(tmp_path):
    (tmp_path / "a").mkdir()
    _csv(tmp_path / "a" / "part-0.csv")
    # The columns of the second file are in another order.
    frame = FRAME.assign(y=_halves(COUNT))[["y", "count", "place"]]
    frame.to_csv(tmp_path / "a" / "part-1.csv", index=False)
    X = pd.concat([FRAME[["place", "count"]]] * 2, ignore_index=True)
    expected = _gaussian(X, np.concatenate([YES, LATE_HALVES]))
    _assert_same(_gaussian(scan(tmp_path / "a", "y")), expected)


def test_partitions_stay_columns_when_types_widen(tmp_path):
    for k in (3, 4):
        folder = tmp_path / "a" / f"k={k}"
        folder.mkdir(parents=True)
        _csv(folder / "part-0.csv", y=_halves(COUNT))
    X = pd.concat([FRAME[["place", "count"]].assign(k=k) for k in (3, 4)], ignore_index=True)
    expected = _gaussian(X, np.concatenate([LATE_HALVES] * 2))
    _assert_same(_gaussian(scan(tmp_path / "a", "y")), expected)


# Nothing at first, and something later.


def _gaps():
    return np.where(IS_LATE, PLACE**2, np.nan)


@pytest.mark.parametrize("model", [GaussianClassifier, NaiveBayes])
def test_an_empty_feature_may_have_numbers_later(tmp_path, model):
    # Long notes fill the first megabyte with few rows: many gaps take the Gaussian classifier long.
    n, path = 14_000, tmp_path / "a.csv"
    X = FRAME[["place"]][:n].assign(count=np.where(np.arange(n) < 6_000, np.nan, PLACE[:n] ** 2))
    X.assign(note="n" * 200, y=YES[:n]).to_csv(path, index=False)
    assert _learnt(path)["count"] == "null"
    found = model().fit(scan(path, "y", columns=["place", "count"]))
    expected = model().fit(X, YES[:n])
    np.testing.assert_allclose(found.predict_proba(X), expected.predict_proba(X), rtol=1e-10)


def test_an_empty_feature_is_told_of_where_none_may_be_missing(tmp_path):
    path = _csv(tmp_path / "a.csv", count=_gaps())
    with pytest.raises(MissingValueError, match="row 0, column 'count'") as caught:
        _logistic(scan(path, "y"))
    with pytest.raises(MissingValueError) as expected:
        _logistic(FRAME[["place"]].assign(count=_gaps()), YES)
    assert str(caught.value) == str(expected.value)


def test_an_empty_target_is_a_missing_label(tmp_path):
    path = _csv(tmp_path / "a.csv", y=np.where(IS_LATE, "1", ""))
    with pytest.raises(LabelError, match=r"contains NaN \(first in row 0\)"):
        _logistic(scan(path, "y"))


@pytest.mark.parametrize("empty", ["", "NA"])
@pytest.mark.parametrize("first", [True, False])
def test_an_empty_text_is_missing_wherever_it_stands(tmp_path, empty, first):
    """As it is to pandas and polars; it is no level of its own."""
    is_there = IS_LATE if first else IS_LATE[::-1]
    path = _csv(tmp_path / "a.csv", count=np.where(is_there, TEXTS, empty))
    assert _learnt(path)["count"] == ("null" if first else "string")
    X = FRAME[["place"]].assign(count=np.where(is_there, TEXTS, None))
    found, expected = NaiveBayes().fit(scan(path, "y")), NaiveBayes().fit(X, YES)
    assert found.schema_.columns[1].levels == ("blue", "green", "red")
    np.testing.assert_allclose(found.predict_proba(X), expected.predict_proba(X), rtol=1e-10)
    with pytest.raises(MissingValueError, match="column 'count'"):
        _logistic(scan(path, "y"))


def test_empty_first_and_dates_later_are_neither_numbers_nor_levels(tmp_path):
    path = _csv(tmp_path / "a.csv", count=np.where(IS_LATE, "2020-02-02", ""))
    with pytest.raises(ColumnTypeError, match="Column 'count' is a date"):
        _logistic(scan(path, "y"))


def test_truths_and_later_texts_are_levels(tmp_path):
    truths = np.where(IS_LATE, TEXTS, np.where(COUNT > 2, "true", "false"))
    path = _csv(tmp_path / "a.csv", count=truths)
    assert _learnt(path)["count"] == "bool"
    expected = _logistic(FRAME[["place"]].assign(count=truths), YES)
    _assert_same(_logistic(scan(path, "y")), expected)


def test_several_columns_widen_in_turn(tmp_path):
    """Empty, then whole, then decimal; and a target beside it."""
    steps = np.where(np.arange(N) < N - 5000, "3", "3.5")
    steps = np.where(IS_LATE, steps, "")
    path = _csv(tmp_path / "a.csv", count=steps, y=_halves(COUNT))
    rows = scan(path, "y").with_numbers()
    drawn = rows.sample.rows.table.columns[1]
    assert np.nanmin(drawn) == 3.0
    assert np.nanmax(drawn) == 3.5
    assert np.isnan(drawn).sum() == LATE


# What stays wrong.


@pytest.mark.parametrize("column", ["count", "place", "y"])
def test_numbers_and_a_later_text_are_an_error_that_names_it(tmp_path, column):
    values = FRAME[column].astype(str).to_numpy(dtype=object)
    values[LATE] = 'ma"ny'
    path = _csv(tmp_path / "a.csv", **{column: values})
    where = rf"The file {re.escape(str(path))}, line 90,002, has 'ma\"ny' in column '{column}'"
    with pytest.raises(SourceError, match=rf"{where}, which holds numbers elsewhere\. Correct"):
        _logistic(scan(path, "y"))


def test_the_file_of_a_bad_value_is_the_one_named(tmp_path):
    (tmp_path / "a").mkdir()
    _csv(tmp_path / "a" / "part-0.csv")
    values = COUNT.astype(str).astype(object)
    values[LATE] = "many"
    FRAME.assign(count=values)[["y", "count", "place"]].to_csv(
        tmp_path / "a" / "part-1.csv", index=False
    )
    with pytest.raises(
        SourceError, match=r"part-1\.csv, line 90,002, has 'many' in column 'count'"
    ):
        _logistic(scan(tmp_path / "a", "y"))


def test_a_late_row_of_too_many_values_is_told_with_its_file(tmp_path):
    (tmp_path / "a").mkdir()
    _csv(tmp_path / "a" / "part-0.csv")
    with _csv(tmp_path / "a" / "part-1.csv").open("a") as out:
        out.write("1,2,3,4\n")
    with pytest.raises(
        SourceError, match=r"part-1\.csv cannot be read: .*Expected 3 columns, got 4"
    ):
        _logistic(scan(tmp_path / "a", "y"))


def test_the_types_of_a_dataset_are_the_users_word(tmp_path):
    path = _csv(tmp_path / "a.csv", count=_halves(COUNT))
    with pytest.raises(SourceError, match=r"conversion error to int64: invalid value '\d\.5'"):
        _logistic(scan(pads.dataset(path, format="csv"), "y"))
    options = pacsv.ConvertOptions(column_types={"count": pa.string()})
    own = pads.dataset(path, format=pads.CsvFileFormat(convert_options=options))
    assert scan(own, "y").schema.columns[1].kind == "categorical"


# Answers.


def _answers(model, rows, to):
    return pq.read_table(model.predict_proba(rows, to=to)).to_pandas().to_numpy()


def test_answers_for_rows_that_hold_more_later(tmp_path):
    X = FRAME[["place"]].assign(count=LATE_HALVES)
    model = _logistic(X, YES)
    rows = scan(_csv(tmp_path / "a.csv", count=_halves(COUNT), y=_halves(YES)), "y")
    found = _answers(model, rows, tmp_path / "answers.parquet")
    np.testing.assert_allclose(found, model.predict_proba(X), rtol=1e-10)


@pytest.mark.parametrize(
    "values", [_gaps(), np.where(IS_LATE, TEXTS, None)], ids=["numbers", "texts"]
)
def test_answers_for_rows_that_are_empty_first(tmp_path, values):
    X = FRAME[["place"]].assign(count=values)
    model = NaiveBayes().fit(X, YES)
    path = _csv(tmp_path / "a.csv", count=values)
    found = _answers(model, scan(path, columns=["place", "count"]), tmp_path / "new.parquet")
    np.testing.assert_allclose(found, model.predict_proba(X), rtol=1e-10)


def test_answers_for_truths_that_turn_into_texts(tmp_path):
    X = FRAME[["place"]].assign(count=COUNT > 2)
    path = _csv(tmp_path / "a.csv", count=np.where(IS_LATE, TEXTS, COUNT > 2))
    with pytest.raises(ColumnTypeError, match="'count' is categorical but was boolean in the fit"):
        _answers(_logistic(X, YES), scan(path, columns=["place", "count"]), tmp_path / "new")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.csv"]


# Text that looks like something else.

LOOKS = {"truths": ["true", "false", "maybe"], "numbers": ["01", "2", "A"]}
DAYS = ["2024-01-01", "2024-01-02", "never"]


def _levels(of, n, seed=0):
    random = np.random.default_rng(seed)
    x = random.normal(size=n)
    frame = pd.DataFrame({"x": x, "level": random.choice(of, n)})
    return frame, np.array(of)[(x + random.logistic(size=n) > 0) * random.integers(1, len(of), n)]


def _written(path, frame, y):
    frame.assign(y=y).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("of", LOOKS.values(), ids=LOOKS)
def test_what_was_text_in_the_fit_is_read_as_text(tmp_path, of):
    """New rows have but the levels and labels that look like something else."""
    X, y = _levels(of, 300)
    more, labels = _levels(of[:2], 100, seed=1)
    first = scan(_written(tmp_path / "a.csv", X, y), "y")
    new = scan(_written(tmp_path / "b.csv", more, labels), "y")
    assert new.schema.columns[1].kind != "categorical"
    model = _logistic(X, y)
    found = _answers(model, new, tmp_path / "answers.parquet")
    np.testing.assert_allclose(found, model.predict_proba(more), rtol=1e-10)
    batches = NaiveBayes().partial_fit(first).partial_fit(new)
    assert batches.classes_.tolist() == sorted(of)
    expected = NaiveBayes().partial_fit(X, y).partial_fit(more, labels, classes=sorted(of))
    found = batches.predict_proba(more)
    np.testing.assert_allclose(found, expected.predict_proba(more), rtol=1e-12)


@pytest.mark.parametrize("of", [*LOOKS.values(), DAYS], ids=[*LOOKS, "days"])
def test_columns_whose_levels_are_given_are_text(tmp_path, of):
    X, _ = _levels(of[:2], 100)
    path = _written(tmp_path / "a.csv", X, YES[:100])
    given = {"level": [of[2], *of[:2]]}
    rows = scan(path, "y", categories=given)
    assert rows.schema.columns[1].levels == tuple(given["level"])
    table = scan(pa.table(X.assign(y=YES[:100])), "y", categories=given)
    np.testing.assert_array_equal(
        NaiveBayes().fit(rows).predict_proba(X), NaiveBayes().fit(table).predict_proba(X)
    )


def test_partitions_are_what_their_folders_say(tmp_path):
    X, y = _levels(["01", "2"], 100)
    for part in ("zone=1", "zone=2"):
        (tmp_path / part).mkdir()
        _written(tmp_path / part / "a.csv", X, y)
    rows = scan(tmp_path, "y", categories={"level": ["01", "2"]})
    assert [column.kind for column in rows.schema.columns] == ["numeric", "categorical", "numeric"]
    again = rows.read_as(Schema((Column("zone", "categorical", ("1", "2")),), named=True))
    assert again is rows
