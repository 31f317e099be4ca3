"""Dask collections give the numbers of memory, however they are cut and whoever sums them."""

import gc
import os
import pickle
import signal
import threading
import time

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sources import CUTS, FRAME, PLAIN, N, dask_frame, delayed, parts

from posteriori import (
    Adaline,
    GaussianClassifier,
    LogisticRegression,
    NaiveBayes,
    errors,
    scan,
)
from posteriori.rows.dask import DaskRows, dask_rows

NAMES = ["size", "count", "push"]
DATA = FRAME[[*NAMES, "times", "half"]].astype(float).assign(y=(FRAME["y"] == "yes").astype(int))
X, Y = DATA[NAMES].to_numpy(), DATA["y"].to_numpy()


def _array(values, *chunks):
    return da.from_array(np.asarray(values), chunks=chunks)


def _columns(frame):
    return frame[NAMES], frame["y"], frame["times"], frame["half"]


def _read_from_files(folder):
    """Of few columns Dask reads several files at once."""
    for i, part in enumerate(parts(DATA.assign(note="x" * 50), [0, 50, 90, 140, 200, N])):
        part.to_parquet(folder / f"{i}.parquet")
    return _columns(dd.read_parquet(folder))


def _arrays(folder):
    cut = [_array(DATA[name], n) for name, n in (("y", 45), ("times", 100), ("half", N))]
    return [_array(X, 70, 2), *cut]


COLLECTIONS = {
    "arrays cut at other rows and along columns": _arrays,
    "sparse blocks": lambda folder: [
        _array(X, 70, 3).map_blocks(sparse.csr_array),
        *_arrays(folder)[1:],
    ],
    "arrays of unknown sizes": lambda folder: [
        each.to_dask_array() for each in _columns(dask_frame(None, parts(DATA)))
    ],
    "frame and series": lambda folder: _columns(dask_frame(None, parts(DATA))),
    "frame read from files": _read_from_files,
    "delayed frames": lambda folder: [delayed(None, parts(each)) for each in _columns(DATA)],
}


@pytest.mark.parametrize("make", COLLECTIONS.values(), ids=COLLECTIONS)
def test_collections_give_the_fit_in_memory(tmp_path, make):
    rows, y, weight, offset = make(tmp_path)
    found = LogisticRegression(tol=1e-8).fit(rows, y, weight, offset=offset)
    expected = LogisticRegression(tol=1e-8).fit(X, Y, DATA["times"], offset=DATA["half"])
    for name in ("coef_", "intercept_", "coef_covariance_"):
        assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "model",
    [LogisticRegression(prior=1.0, tol=1e-8), NaiveBayes(), Adaline(random_state=0)],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::posteriori.errors.PosterioriWarning")
def test_classes_that_are_named_may_have_no_rows(model):
    for classes in ([-1, 0, 1], [0, 1, 2]):
        for method in filter(lambda name: hasattr(model, name), ("fit", "partial_fit")):
            expected = getattr(clone(model), method)(X, Y, classes=classes)
            rows = _array(X, 70, 3), _array(Y, 70)
            found = getattr(clone(model), method)(*rows, classes=classes)
            assert found.classes_.tolist() == expected.classes_.tolist() == classes
            both = (each.decision_function(X) for each in (found, expected))
            assert_allclose(*both, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("model", [GaussianClassifier(), Adaline(random_state=0)], ids=str)
def test_chunks_that_a_network_leaves_unaligned_have_the_same_bits(model):
    def unaligned(values):
        room = np.empty(values.nbytes + 8, np.uint8)[1 : 1 + values.nbytes]
        found = room.view(values.dtype).reshape(values.shape)
        found[...] = values
        return found

    rows = _array(X, 70, 3), _array(Y.astype(float), 70)
    moved = [each.map_blocks(unaligned) for each in rows]
    assert not moved[0].to_delayed()[0, 0].compute().flags.aligned
    assert_array_equal(clone(model).fit(*moved).coef_, clone(model).fit(*rows).coef_)


# Passes.


def test_rows_that_are_pickled_leave_their_chunks_behind():
    many = pd.concat([PLAIN] * 80)
    rows = scan(delayed(None, parts(many, [0, 1000, len(many)])), "y").discover()
    packed = pickle.dumps(rows)
    assert len(packed) < 5000
    again = pickle.loads(packed)
    assert again.schema == rows.schema
    assert again.n_rows == len(many)
    with pytest.raises(errors.SourceError, match="leaves out their chunks"):
        again.map_sum(lambda block: 1)


# What can be wrong.


def test_chunks_that_are_not_the_same_twice_are_an_error():
    sizes = iter([10, 9])
    rows = scan(dask.delayed(lambda: PLAIN[: next(sizes)], pure=False)(), "y", columns=["size"])
    with pytest.raises(errors.SourceError, match="The source has 9 rows, and had 10"):
        LogisticRegression().fit(rows)


@pytest.mark.parametrize("kind", ["frames", "sparse blocks"])
def test_chunks_with_other_rows_each_time_are_an_error(kind):
    random = np.random.default_rng()
    if kind == "frames":
        make = dask.delayed(lambda: PLAIN.assign(size=random.normal(size=N)), pure=False)
        given = [scan([make(), make()], "y", columns=["size"])]
    else:
        rows = _array(X, 70, 3).map_blocks(lambda block: block + random.normal(size=block.shape))
        given = [rows.map_blocks(sparse.csr_array), _array(Y, 70)]
    with pytest.raises(errors.SourceError, match=r"Chunks have other rows than.*fix seeds"):
        LogisticRegression().fit(*given)


def test_a_chunk_that_raises_is_named():
    def make(first):
        if first:
            return PLAIN[:20]
        raise OSError("the disk is gone")

    rows = scan([dask.delayed(make, pure=False)(first) for first in (True, False)], "y")
    message = "Chunk 1 of 2 cannot be computed: OSError: the disk is gone"
    with pytest.raises(errors.SourceError, match=message):
        LogisticRegression().fit(rows)


def test_chunks_that_are_no_tables_are_an_error():
    with pytest.raises(errors.ColumnTypeError, match="Chunk 0 is a list, not a data frame"):
        NaiveBayes().fit(dask.delayed([[1.0], [2.0]]), dask.delayed(np.array([0, 1])))
    with pytest.raises(errors.ColumnTypeError, match="Chunk 0 is a list, not a data frame"):
        scan(dask.delayed([[1.0], [2.0]]), "y").discover()
    with pytest.raises(errors.ColumnTypeError, match=r"Dask array has no column.*fit\(X, y\)"):
        scan(_array(X, 70, 3), "y")
    with pytest.raises(errors.ParameterError, match="cache and dtypes are for files"):
        scan(delayed(), "y", cache=False)


def test_targets_that_do_not_fit_the_rows_are_an_error():
    rows, frame = _array(X, 70, 3), dask_frame()
    with pytest.raises(errors.ParameterError, match="y is in memory"):
        dask_rows(rows, Y)
    with pytest.raises(errors.ShapeError, match="2D"):
        dask_rows(da.zeros(5), da.zeros(5))
    with pytest.raises(errors.ShapeError, match="X has 4 chunks of rows, but y 2"):
        dask_rows(frame[["size"]], frame["y"].repartition(npartitions=2))
    short = dask_frame(None, parts(PLAIN, [*CUTS[:-1], N - 1]))
    with pytest.raises(errors.ShapeError, match=r"chunk 3 .*X has 140 rows but y has 139"):
        NaiveBayes().fit(frame[["size"]], short["y"])


def test_the_row_of_a_label_in_an_array_is_that_of_the_whole_array():
    y = Y.astype(float)
    y[123] = np.nan
    with pytest.raises(errors.LabelError, match=r"chunk 1: .* contains NaN.* \(first in row 123\)"):
        NaiveBayes().fit(_array(X, 70, 3), _array(y, 70))


# A cluster.


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    ) as found:
        yield found


@pytest.fixture
def client(cluster):
    with pytest.importorskip("distributed").Client(cluster) as found:
        found.wait_for_workers(2)
        yield found


def _slow_chunks(n_chunks, seconds=0.0):
    """Frames that are made on the workers, each time anew, and take a while."""

    def make(i):
        time.sleep(seconds)
        rng = np.random.default_rng(i)
        out = pd.DataFrame(rng.normal(size=(2000, 4)), columns=list("pqrs"))
        out["label"] = np.where(out["p"] - out["q"] + rng.logistic(size=2000) > 0, "yes", "no")
        return out

    make_one = dask.delayed(make, pure=False)
    return [make_one(i) for i in range(n_chunks)]


class TestCluster:
    @pytest.mark.parametrize(
        "model", [LogisticRegression(prior=1.0), Adaline(random_state=0, max_epochs=3)], ids=str
    )
    @pytest.mark.filterwarnings("ignore::posteriori.errors.ConvergenceWarning")
    def test_bits_are_those_on_threads(self, client, model):
        chunks = _slow_chunks(12)
        found = clone(model).fit(scan(chunks, "label"))
        with dask.config.set(scheduler="threads"):
            expected = clone(model).fit(scan(chunks, "label"))
            rows = pd.concat(dask.compute(*chunks))[list("pqrs")]
        assert_array_equal(found.decision_function(rows), expected.decision_function(rows))

    def test_rows_are_there_as_long_as_the_model(self, client):
        """Though nobody else holds on to what the workers have of them."""
        rows = da.random.default_rng(0).normal(size=(2000, 3), chunks=(500, 3)).persist()
        y = (rows[:, 0] > 0).astype(int).persist()
        model = LogisticRegression(prior=1.0).fit(rows, y)
        objective = model._inference.objective
        expected = objective(model.solution_.parameters, "none").value
        del rows, y
        gc.collect()
        assert objective(model.solution_.parameters, "none").value == expected

    def test_a_worker_killed_in_the_middle_of_a_fit_changes_no_bit(self, client, monkeypatch):
        chunks = _slow_chunks(6, 0.1)
        with dask.config.set(scheduler="threads"):
            expected = LogisticRegression().fit(scan(chunks, "label"))
        victim = min(client.run(os.getpid).values())
        sum_batches, passes, in_pass, killed_in_pass = DaskRows._sum_batches, [0], [False], []

        def kill():
            killed_in_pass.append(in_pass[0])
            os.kill(victim, signal.SIGKILL)

        def watched(self, *args):
            passes[0] += 1
            in_pass[0] = True
            if passes[0] == 2:
                threading.Timer(0.1, kill).start()
            try:
                yield from sum_batches(self, *args)
            finally:
                in_pass[0] = False

        monkeypatch.setattr(DaskRows, "_sum_batches", watched)
        found = LogisticRegression().fit(scan(chunks, "label"))
        assert killed_in_pass == [True]
        assert passes[0] > 2
        assert_array_equal(found.coef_, expected.coef_)
        assert_array_equal(found.intercept_, expected.intercept_)
        assert victim not in client.run(os.getpid).values()
