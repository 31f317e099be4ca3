"""Answers for rows that lie in files or in Dask, and what a fit to them tells on the way."""

import signal

import dask
import dask.array as da
import fsspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import csv, dataset, parquet
from sklearn.base import clone

from posteriori import (
    Adaline,
    BayesianLogisticRegression,
    GaussianClassifier,
    LeastSquaresClassifier,
    LogisticRegression,
    NaiveBayes,
    Perceptron,
    scan,
)
from posteriori.errors import (
    Interrupted,
    SourceError,
)
from posteriori.models import fitting, likelihood_model
from posteriori.rows import files
from posteriori.statistics import row_stream
from posteriori.statistics.row_stream import RowStream

RANDOM = np.random.default_rng(0)
N = 3000
X = RANDOM.normal(size=(N, 3))
Y = np.array(["no", "so", "yes"])[
    (X @ RANDOM.normal(size=(3, 3)) + RANDOM.gumbel(size=(N, 3))).argmax(axis=1)
]
COUNTS = RANDOM.poisson(2, N)
SHARES = np.column_stack([X[:, 0] < 0, X[:, 0] >= 0]) * 0.75 + 0.125
WEIGHT = RANDOM.integers(0, 3, N).astype(float)
TABLE = pa.table(
    {"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": Y, "n": COUNTS}
    | {"no": SHARES[:, 0], "yes": SHARES[:, 1], "w": WEIGHT, "side": np.sign(X[:, 0])}
)
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
    assert model.passes_.passes == 1  # discovery and the sums at once
    assert 8 * 3 * N <= model.passes_.bytes_read < 3 * 8 * 3 * N
    assert GaussianClassifier().fit(rows).passes_.passes == 1
    assert "Passes" in str(LogisticRegression().fit(rows).summary())
    assert not hasattr(model.fit(X, Y), "passes_")


def test_files_of_another_file_system_are_read_by_a_dataset(folder):
    there = fsspec.filesystem("memory")
    for path in folder.iterdir():
        there.pipe(f"/store/{path.name}", path.read_bytes())
    source = dataset.dataset("/store", filesystem=there, format="parquet")
    model = LogisticRegression(tol=1e-8).fit(scan(source, "y", columns=FEATURES))
    expected = LogisticRegression(tol=1e-8).fit(X, Y)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-10)
    there.rm("/store/part-2.parquet")
    with pytest.raises(SourceError, match=r"part-2\.parquet"):
        model.fit(scan(source, "y", columns=FEATURES))


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


@pytest.mark.parametrize("source", [lambda folder: folder, lambda folder: _dask(folder)])
def test_an_interrupt_outside_of_passes_tells_the_last_one(source, folder, monkeypatch):
    model = LogisticRegression().fit(X, Y)
    before = model.coef_.copy()

    def stop(*args):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(likelihood_model, "finish", stop)
    with pytest.raises(
        Interrupted, match=r"Stopped after pass \d, row 3,000 of 3,000\. The estimator"
    ):
        model.fit(scan(source(folder), "y", columns=FEATURES))
    np.testing.assert_array_equal(model.coef_, before)


@pytest.mark.parametrize("model", [Perceptron(averaged=True), Adaline(tol=1e-12)])
@pytest.mark.parametrize("source", [lambda folder: folder, lambda folder: _dask(folder)])
@pytest.mark.filterwarnings("ignore::posteriori.errors.ConvergenceWarning")
def test_an_interrupt_between_epochs_tells_the_last_pass(model, source, folder, monkeypatch):
    model = clone(model).set_params(max_epochs=3).fit(X, Y)
    before, epochs, segments = model.coef_.copy(), [], RowStream.segments

    def stop(self, random=None):
        epochs.append(random is not None)
        if sum(epochs) == 2:
            signal.raise_signal(signal.SIGINT)
        return segments(self, random)

    monkeypatch.setattr(RowStream, "segments", stop)
    with pytest.raises(Interrupted, match=r"Stopped after pass \d, .*The estimator is as it was"):
        model.fit(scan(source(folder), "y", columns=FEATURES))
    np.testing.assert_array_equal(model.coef_, before)


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


def _csv(folder):
    csv.write_csv(parquet.read_table(folder), folder.parent / "rows.csv")
    return folder.parent / "rows.csv"


def _given(kind, weighted):
    """The columns of the target, the target itself, and the weights."""
    target, y = ("y", Y) if kind == "labels" else (["no", "yes"], SHARES)
    return target, y, WEIGHT if weighted else None


def _data(kind):
    """Rows of three classes, or of two, and their weights."""
    random = np.random.default_rng(1)
    X = random.normal(size=(12_000, 40 if kind == "wide" else 3))
    scores = X[:, :3] @ random.normal(size=(3, 3)) + random.gumbel(size=(len(X), 3))
    weight = random.choice([0.0, 0.0, 1.0, 2.5], size=len(X)) if kind == "weights of zero" else None
    return X, scores.argmax(axis=1) % (2 if kind == "two classes" else 3), weight


def _assert_went_the_same_way(found, expected):
    """Coefficients, standard errors and what the fit is worth."""
    # Columns without an effect have coefficients near zero, with the rounding of others.
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-12, atol=1e-15)
    errors = (np.diag(each.coef_covariance_) for each in (found, expected))
    np.testing.assert_allclose(*errors, rtol=1e-11)
    worth = "log_evidence_" if hasattr(found, "inference") else "log_likelihood_"
    assert getattr(found, worth) == pytest.approx(getattr(expected, worth), rel=1e-13)
    assert found.n_iter_ == expected.n_iter_


@pytest.mark.parametrize(
    ("kind", "entries"),
    [
        ("usual", 2**11),
        ("weights of zero", 2**11),
        ("wide", 2**11),
    ],
)
@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        LogisticRegression(prior="evidence"),
        BayesianLogisticRegression(),
    ],
    ids=str,
)
def test_fits_go_the_same_way_wherever_rows_lie(model, kind, entries, tmp_path, monkeypatch):
    """At the usual tolerance, which leaves a part of a standard error that others would not."""
    monkeypatch.setattr(fitting, "_SAMPLE_ENTRIES", entries)
    monkeypatch.setattr(fitting, "_SMALL", 0)
    X, y, weight = _data(kind)
    names = [f"x{j}" for j in range(X.shape[1])]
    frame = pd.DataFrame(X, columns=names).assign(y=y)
    columns = {"target": "y"}
    if weight is not None:
        frame, columns = frame.assign(w=weight), {"target": "y", "weight": "w"}
    parts = [frame.iloc[part] for part in np.split(np.arange(len(X)), [3_001, 3_009, 8_000])]
    for i, part in enumerate(parts):
        part.to_parquet(tmp_path / f"{i}.parquet", row_group_size=1_000)
        if kind != "wide":  # which takes long
            part.to_csv(tmp_path / f"{i}.csv", index=False)
    expected = clone(model).fit(X, y, sample_weight=weight)
    endings = {path.suffix for path in tmp_path.iterdir()}
    sources = [sorted(tmp_path.glob(f"*{ending}")) for ending in sorted(endings)]
    sources.append([dask.delayed(part, pure=False) for part in parts])
    cuts = (6_000, 5_999, 1)
    in_dask = [
        None if each is None else da.from_array(each, chunks=[cuts, X.shape[1]][: each.ndim])
        for each in (X, y, weight)
    ]
    for given in (*((scan(source, **columns),) for source in sources), in_dask):
        found = clone(model).fit(*given)
        _assert_went_the_same_way(found, expected)


def _dask(folder):
    return [dask.delayed(pd.read_parquet)(part) for part in sorted(folder.iterdir())]


@pytest.mark.filterwarnings("ignore::posteriori.errors.ConvergenceWarning")
@pytest.mark.parametrize(("kind", "weighted"), [("labels", False), ("shares", True)])
@pytest.mark.parametrize("source", [lambda folder: folder, _csv, _dask])
@pytest.mark.parametrize(
    "model",
    [
        Perceptron(averaged=True, shuffle=False, max_epochs=3),
        Perceptron(shuffle=False, max_epochs=2),
        Adaline(shuffle=False, max_epochs=4),
    ],
    ids=["averaged", "perceptron", "adaline"],
)
def test_rows_are_learnt_in_their_order_where_they_lie(
    model, source, kind, weighted, folder, monkeypatch
):
    target, y, weight = _given(kind, weighted)
    here = clone(model).fit(TABLE.select(FEATURES).to_pandas(), y, weight)
    monkeypatch.setattr(row_stream, "LAID_OUT", 0)
    monkeypatch.setattr(files, "BATCH_ENTRIES", 4 * 700)
    rows = scan(source(folder), target, weight="w" if weighted else None, columns=FEATURES)
    there = clone(model).fit(rows)
    assert there.n_updates_ == here.n_updates_
    assert there.n_iter_ == here.n_iter_
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=1e-10)
    np.testing.assert_allclose(there.intercept_, here.intercept_, rtol=1e-10, atol=1e-12)
    assert there.passes_.passes > there.n_iter_


@pytest.mark.parametrize("source", [lambda folder: folder, _csv, lambda folder: _dask(folder)])
def test_rows_are_shuffled_batch_by_batch(source, folder, monkeypatch):
    """Epochs are others than in memory, and end at a solution all the same."""
    monkeypatch.setattr(row_stream, "LAID_OUT", 0)
    monkeypatch.setattr(files, "BATCH_ENTRIES", 4 * 700)
    rows, frame = scan(source(folder), "y", columns=FEATURES), TABLE.select(FEATURES)
    model = Adaline(random_state=0, tol=1e-3)
    found = [clone(model).fit(rows).decision_function(frame) for _ in range(2)]
    np.testing.assert_array_equal(*found)
    here = clone(model).fit(frame, Y).decision_function(frame)
    assert 1e-6 < abs(found[0] - here).max() < 5e-3
    expected = LeastSquaresClassifier().fit(frame, Y).decision_function(frame)
    np.testing.assert_allclose(found[0], expected, atol=5e-3)
    apart = scan(source(folder), "side", columns=["a", "b", "yes"])
    perceptron = Perceptron(random_state=0).fit(apart)
    assert perceptron.converged_
    assert perceptron.score(TABLE.select(["a", "b", "yes"]), np.sign(X[:, 0])) == 1.0
    assert perceptron.passes_.passes >= perceptron.n_iter_
