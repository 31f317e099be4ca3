"""Predictions for sources: in a file that is whole or not there, and in Dask as in memory."""

import dask.array as da
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pyarrow import parquet as pq
from sources import FEATURES, FRAME, PLAIN, csv, dask_frame, delayed, in_memory, parquet, parts

from posteriori import (
    FisherDiscriminant,
    GaussianClassifier,
    LogisticRegression,
    NoveltyDetector,
    OneVersusRest,
    errors,
    scan,
)

X = FRAME[["size", "push"]].to_numpy()
Y = np.array(["a", "b", "c"])[(X[:, 0] > 0.5).astype(int) + (X[:, 1] > 0)]
ROWS = FRAME[["size", "push"]]


def _written(model, rows, to):
    return pq.read_table(model.predict(rows, to=to))["prediction"].to_pylist()


def test_predictions_never_replace_the_rows_they_are_for(tmp_path):
    file = parquet(tmp_path) / "part-0.parquet"
    for to in (file, str(tmp_path / "." / "a" / "part-0.parquet")):
        with pytest.raises(errors.ParameterError, match="one of the files that the rows are"):
            in_memory().predict(scan(tmp_path, columns=FEATURES), to=to)
    assert pq.read_table(file).column_names == list(PLAIN)


@pytest.mark.parametrize(
    ("to", "message"),
    [
        (1, "to=1 names no file"),
        (".", "is not a file in an existing"),
        ("nowhere/x.parquet", "is not a file in an existing folder"),
        (300 * "x", "cannot be written to .*: File name too long"),
    ],
)
def test_a_file_that_cannot_be_written_is_an_error(tmp_path, monkeypatch, to, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(errors.ParameterError, match=message):
        in_memory().predict(scan(FRAME[FEATURES]), to=to)
    assert list(tmp_path.iterdir()) == []


def test_the_unfinished_file_follows_no_link(tmp_path, monkeypatch):
    names, target, to = iter(["planted", "a"]), tmp_path / "target", tmp_path / "p.parquet"
    monkeypatch.setattr("posteriori.rows.predictions.token_hex", lambda n: next(names))
    target.write_text("mine")
    (tmp_path / ".p.parquet.planted").symlink_to(target)
    model, rows = LogisticRegression(prior=1.0).fit(ROWS, Y), scan(ROWS)
    with pytest.raises(errors.ParameterError, match="cannot be written"):
        model.predict(rows, to=to)
    assert target.read_text() == "mine"
    assert _written(model, rows, to) == model.predict(ROWS).tolist()
    assert to.stat().st_mode == target.stat().st_mode


def test_a_full_disk_leaves_no_file_behind(tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    rows = scan(csv(tmp_path), columns=FEATURES)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert in_memory().predict(rows, to="~/x.parquet") == tmp_path / "x.parquet"
    monkeypatch.setattr(pq, "ParquetWriter", full)
    with pytest.raises(errors.ParameterError, match=r"written to .*z\.parquet': No space left"):
        in_memory().predict(rows, to=tmp_path / "z.parquet")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "x.parquet"]


@pytest.mark.parametrize("reject", [None, "unknown", -1])
def test_rejected_rows_have_their_label_in_files_and_in_dask(tmp_path, reject):
    one_of_many = OneVersusRest(estimator=LogisticRegression(prior=1.0), ambiguous="reject")
    for model in (one_of_many, NoveltyDetector(GaussianClassifier(), false_positive_rate=0.05)):
        model.set_params(reject_label=reject).fit(ROWS, Y)
        expected = model.predict(ROWS)
        assert reject in expected.tolist()
        found = model.predict(dask_frame(None, parts(ROWS)))
        assert found.dtype == expected.dtype
        assert found.compute().tolist() == expected.tolist()
        rows, to = scan(ROWS), tmp_path / "x.parquet"
        if reject == -1:
            with pytest.raises(errors.ParameterError, match="several types"):
                model.predict(rows, to=to)
        else:
            assert _written(model, rows, to) == expected.tolist()


DASK = {
    "arrays": lambda: (
        da.from_array(X, chunks=((10, 0, 90, 140), 1)),
        da.from_array(FRAME["times"].to_numpy(), chunks=70),
    ),
    "frames": lambda: (dask_frame(None, parts(ROWS)), dask_frame(None, parts(FRAME))["times"]),
    "delayed": lambda: (delayed(None, parts(ROWS)), delayed(None, parts(FRAME["times"]))),
    "one delayed": lambda: (delayed(None, [ROWS])[0], delayed(None, [FRAME["times"]])[0]),
}


@pytest.mark.parametrize("kind", DASK)
def test_predictions_in_dask_are_those_in_memory(kind):
    features = X if kind == "arrays" else ROWS
    rows, offset = DASK[kind]()
    model = LogisticRegression().fit(features, Y)
    assert_array_equal(model.predict(rows).compute(), model.predict(features))
    found = model.predict_interval(rows)
    assert found.shape[1:] == (3, 2)
    assert_allclose(found.compute(), model.predict_interval(features), rtol=1e-12)
    model.fit(features, Y == "a", offset=FRAME["times"])
    expected = model.predict_proba(features, offset=FRAME["times"])
    later = model.predict_proba(rows, offset=offset)
    model.fit(features, Y == "b")  # the model is sent as it was
    assert later.shape[1] == 2
    assert_allclose(later.compute(), expected, rtol=1e-10)
    model.fit(features, Y == "a", offset=FRAME["times"])
    with pytest.raises(errors.ParameterError, match="offset is in memory here"):
        model.predict_proba(rows, offset=FRAME["times"])
    with pytest.raises(ValueError, match=r"chunks|offset has shape"):
        model.predict_proba(rows, offset=offset[:1]).compute()


def test_errors_of_predictions_in_dask_say_where_rows_are_counted():
    rows = X.copy()
    rows[170, 1] = np.nan
    later = LogisticRegression().fit(X, Y).predict(da.from_array(rows, chunks=(50, 2)))
    with pytest.raises(errors.MissingValueError, match=r"chunk \(rows counted from 0.*: .* 20"):
        later.compute()
    with pytest.raises(errors.ParameterError, match="A Dask collection is not accepted here"):
        FisherDiscriminant().fit(X, Y).transform(da.from_array(X, chunks=(50, 2)))
