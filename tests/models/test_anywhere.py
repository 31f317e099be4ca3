"""Answers for rows that lie in files or in Dask, and what a fit to them tells on the way."""

import signal

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from posteriori import (
    GLM,
    Adaline,
    BayesianLogisticRegression,
    GaussianClassifier,
    LogisticRegression,
    NaiveBayes,
    Perceptron,
    scan,
)
from posteriori.errors import (
    Interrupted,
    MissingValueError,
    ParameterError,
    ShapeError,
    SourceError,
)
from posteriori.statistics import sequence

RANDOM = np.random.default_rng(0)
N = 3000
X = RANDOM.normal(size=(N, 3))
Y = np.array(["no", "so", "yes"])[
    (X @ RANDOM.normal(size=(3, 3)) + RANDOM.gumbel(size=(N, 3))).argmax(axis=1)
]
TABLE = pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": Y, "n": RANDOM.poisson(2, N)})
FEATURES = ["a", "b", "c"]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "rows").mkdir()
    for part, first in enumerate(range(0, N, 700)):
        name = tmp_path / "rows" / f"part-{part}.parquet"
        parquet.write_table(TABLE.slice(first, 700), name, row_group_size=300)
    return tmp_path / "rows"


def written(path):
    table = parquet.read_table(path)
    return table.column_names, np.column_stack([column.to_numpy() for column in table.columns])


@pytest.mark.parametrize(
    "model",
    [LogisticRegression(), GaussianClassifier(), NaiveBayes(), BayesianLogisticRegression()],
)
def test_answers_in_a_file_are_those_in_memory(model, folder, tmp_path):
    model.fit(scan(folder, "y", columns=FEATURES))
    rows, frame = scan(folder, columns=["c", "a", "b"]), TABLE.select(FEATURES).to_pandas()
    names, found = written(model.predict_proba(rows, to=tmp_path / "p.parquet"))
    assert names == ["probability_no", "probability_so", "probability_yes"]
    np.testing.assert_array_equal(found, model.predict_proba(frame))
    names, found = written(model.predict(rows, to=tmp_path / "labels.parquet"))
    assert names == ["prediction"]
    assert found[:, 0].tolist() == model.predict(frame).tolist()


def test_intervals_and_means_have_names_of_their_own(folder, tmp_path):
    model = GLM(family="poisson").fit(scan(folder, "n", columns=FEATURES))
    rows, frame = scan(folder, columns=FEATURES), TABLE.select(FEATURES).to_pandas()
    names, found = written(model.predict_interval(rows, to=tmp_path / "ends.parquet"))
    assert names == ["interval_low", "interval_high"]
    np.testing.assert_array_equal(found, model.predict_interval(frame))
    names, found = written(model.predict(rows, to=tmp_path / "means.parquet"))
    np.testing.assert_array_equal(found[:, 0], model.predict(frame))


def test_no_rows_have_no_answers(tmp_path):
    model = LogisticRegression().fit(TABLE.select(FEATURES), Y)
    parquet.write_table(TABLE.slice(0, 0), tmp_path / "empty.parquet")
    rows = scan(tmp_path / "empty.parquet", columns=FEATURES)
    with pytest.raises(ShapeError, match="There are no rows"):
        model.predict(rows, to=tmp_path / "answers.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["empty.parquet"]


def test_a_file_has_to_be_named_for_rows_and_only_for_them(folder, tmp_path):
    model = LogisticRegression().fit(X, Y)
    with pytest.raises(ParameterError, match="no file is named"):
        model.predict(scan(folder, columns=FEATURES))
    with pytest.raises(ParameterError, match="X is in memory"):
        model.predict(X, to=tmp_path / "p.parquet")


def test_what_goes_wrong_leaves_no_file_behind(folder, tmp_path):
    model = LogisticRegression().fit(scan(folder, "y", columns=FEATURES))
    broken = TABLE.set_column(0, "a", pa.array([None if i == 2900 else 0.0 for i in range(N)]))
    parquet.write_table(broken, tmp_path / "broken.parquet")
    with pytest.raises(MissingValueError, match="In rows"):
        model.predict(
            scan(tmp_path / "broken.parquet", columns=FEATURES), to=tmp_path / "p.parquet"
        )
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["broken.parquet"]


def test_dask_collections_have_answers_in_dask(folder):
    da, dd = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")
    model = LogisticRegression(tol=1e-8).fit(da.from_array(X, chunks=(999, 2)), da.from_array(Y))
    expected = LogisticRegression(tol=1e-8).fit(X, Y)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-10)
    found = model.predict_proba(da.from_array(X, chunks=(500, 3)))
    assert found.numblocks == (6, 1)
    np.testing.assert_array_equal(found.compute(), model.predict_proba(X))
    frame = dd.from_pandas(TABLE.to_pandas(), npartitions=4)
    model = LogisticRegression(tol=1e-8).fit(frame[FEATURES], frame["y"])
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-10)
    labels = model.predict(frame[FEATURES]).compute()
    assert labels.tolist() == model.predict(TABLE.select(FEATURES).to_pandas()).tolist()


def test_a_fit_tells_how_often_it_read_its_rows(folder):
    rows = scan(folder, "y", columns=FEATURES)
    model = GaussianClassifier().fit(rows)
    assert model.passes_.passes == 2  # the first look, and the sums
    assert model.passes_.bytes_read >= 2 * 8 * 3 * N
    assert GaussianClassifier().fit(rows).passes_.passes == 1
    assert "Passes" in str(LogisticRegression().fit(rows).summary())
    assert not hasattr(model.fit(X, Y), "passes_")


def test_a_function_is_told_of_every_pass(folder):
    steps = []
    rows = scan(folder, "y", columns=FEATURES, progress=steps.append)
    model = LogisticRegression(prior=1.0).fit(rows)
    numbers = sorted({step.number for step in steps})
    assert numbers == list(range(1, model.passes_.passes + 1))
    for number in numbers:
        own = [step for step in steps if step.number == number]
        assert [step.rows for step in own][:1] == [0]
        assert own[-1].is_last
        assert own[-1].n_rows == N
        assert own[-1].seconds_left == 0.0
    assert steps[-1].objective == pytest.approx(-model.log_likelihood_, rel=0.1)


def test_a_bar_is_shown_if_it_is_asked_for(folder, capsys):
    GaussianClassifier().fit(scan(folder, "y", columns=FEATURES, progress=True))
    with pytest.raises(ParameterError, match="neither True, False nor callable"):
        scan(folder, "y", progress=3)


def test_an_interrupted_fit_leaves_the_model_as_it_was(folder):
    model = LogisticRegression().fit(X, Y)
    before = model.coef_.copy()

    def stop(step):
        if step.number == 3 and step.rows:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(Interrupted, match=r"Stopped in pass 3, row \d"):
        model.fit(scan(folder, "y", columns=FEATURES, progress=stop))
    np.testing.assert_array_equal(model.coef_, before)
    assert not issubclass(Interrupted, Exception)


def test_more_rows_may_come_from_files(folder):
    rows, more = scan(folder, "y", columns=FEATURES), TABLE.slice(0, 1000)
    first = (
        BayesianLogisticRegression(prior=1.0).fit(rows).update(scan(more, "y", columns=FEATURES))
    )
    second = BayesianLogisticRegression(prior=1.0).fit(X, Y).update(X[:1000], Y[:1000])
    np.testing.assert_allclose(first.coef_, second.coef_, rtol=1e-6)
    assert first.log_evidence_ == pytest.approx(second.log_evidence_, rel=1e-9)
    batches = GaussianClassifier().partial_fit(rows).partial_fit(scan(more, "y", columns=FEATURES))
    both = np.concatenate([X, X[:1000]]), np.concatenate([Y, Y[:1000]])
    np.testing.assert_allclose(batches.coef_, GaussianClassifier().fit(*both).coef_, rtol=1e-9)


@pytest.mark.parametrize(
    "model", [Perceptron(averaged=True), Adaline()], ids=["perceptron", "adaline"]
)
def test_rows_that_memory_has_no_room_for_are_not_gathered(model, folder, monkeypatch):
    """Two copies of N rows and 3 columns are just too many for one byte less."""
    rows, needed = scan(folder, target="y", columns=FEATURES), 2 * 8 * N * 3
    monkeypatch.setattr(sequence, "memory_size", lambda: needed - 1)
    with pytest.raises(SourceError, match="partial_fit"):
        model.fit(rows)
    model.fit(X, Y)
    monkeypatch.setattr(sequence, "memory_size", lambda: needed)
    model.fit(rows)


def test_this_machine_has_memory():
    assert 2**28 < sequence.memory_size() < 2**50


def test_categories_say_which_level_is_the_reference(tmp_path):
    level = np.array(["low", "mid", "high"])[RANDOM.integers(0, 3, N)]
    table = TABLE.append_column("level", pa.array(level))
    given = {"level": ["low", "mid", "high", "top"]}
    rows = scan(table, "y", columns=["a", "level"], categories=given)
    assert rows.schema.columns[1].levels == ("low", "mid", "high", "top")
    with pytest.raises(ValueError, match="'high', which is not among the categories"):
        _ = scan(table, "y", columns=["level"], categories={"level": ["low", "mid"]}).schema
    with pytest.raises(TypeError, match="which holds numbers"):
        _ = scan(table, "y", columns=["a"], categories={"a": ["low"]}).schema
