"""Dask gives the numbers of memory, whatever the chunks are and whoever sums them."""

import gc
import os
import pickle
import signal
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

from posteriori import (
    GLM,
    Adaline,
    CalibratedClassifier,
    FisherDiscriminant,
    GaussianClassifier,
    LeastSquaresClassifier,
    LogisticRegression,
    NaiveBayes,
    NoveltyDetector,
    OneVersusRest,
    Perceptron,
)
from posteriori.errors import (
    ColumnNameError,
    ColumnTypeError,
    ConvergenceWarning,
    LabelError,
    MissingValueError,
    ParameterError,
    ShapeError,
    SourceError,
)
from posteriori.rows import dask as rows_in_dask
from posteriori.rows import look
from posteriori.rows.chunk import Roles
from posteriori.rows.dask import DaskRows, dask_rows, is_dask, scan_dask
from posteriori.rows.dask_kept import OnWorkers, room_on_workers
from posteriori.rows.kept import Room, room_here
from posteriori.rows.one_in import one_in
from posteriori.rows.predictions import predict_dask
from posteriori.rows.scan import scan
from posteriori.statistics import bins, walks

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

N = 3000
NUMBERS = ["a", "b", "c"]


def frame(n: int = N) -> pd.DataFrame:
    """Rows of which the first sixth lacks a class, and each third has one level only."""
    rng = np.random.default_rng(3)
    out = pd.DataFrame(rng.normal(size=(n, 3)), columns=NUMBERS)
    out["group"] = np.repeat(["u", "v", "w"], -(-n // 3))[:n]
    score = out["a"] + rng.logistic(size=n)
    label = np.where(score > 1, "high", np.where(score < -1, "low", "mid"))
    label[: n // 6][label[: n // 6] == "high"] = "mid"
    out["label"] = label
    out["count"] = rng.poisson(np.exp(0.3 * out["b"]))
    out["times"] = rng.integers(0, 4, size=n).astype(float)
    return out


def models() -> list[Any]:
    return [LogisticRegression(tol=1e-8), GaussianClassifier(), NaiveBayes()]


def name(model: Any) -> str:
    return type(model).__name__


def cut(data: pd.DataFrame, *at: int) -> list[Any]:
    """Delayed frames, cut at these rows; equal ones are an empty chunk."""
    edges = [0, *at, len(data)]
    return [dask.delayed(data.iloc[low:high], pure=False) for low, high in pairwise(edges)]


def assert_same(model: Any, other: Any, X: Any) -> None:
    assert_array_equal(model.classes_, other.classes_)
    assert_allclose(other.predict_proba(X), model.predict_proba(X), rtol=1e-10, atol=1e-12)


class TestTheSameNumbersAsMemory:
    @pytest.mark.parametrize("model", models(), ids=name)
    def test_array_cut_along_columns_too(self, model: Any) -> None:
        data = frame()
        X, y = data[NUMBERS].to_numpy(), data["label"].to_numpy(str)
        expected = model.fit(X, y)
        found = type(model)(**model.get_params()).fit(
            dask_rows(da.from_array(X, chunks=(700, 2)), da.from_array(y, chunks=450))
        )
        assert_same(expected, found, X)

    @pytest.mark.parametrize("model", models(), ids=name)
    def test_frame(self, model: Any) -> None:
        data = frame()
        columns = NUMBERS if isinstance(model, GaussianClassifier) else [*NUMBERS, "group"]
        expected = model.fit(data[columns], data["label"])
        found = type(model)(**model.get_params()).fit(
            scan(dd.from_pandas(data, npartitions=7), target="label", columns=columns)
        )
        assert_same(expected, found, data[columns])

    @pytest.mark.parametrize("model", models(), ids=name)
    def test_delayed_frames_with_empty_ones_and_a_single_row(self, model: Any) -> None:
        data = frame()
        columns = NUMBERS if isinstance(model, GaussianClassifier) else [*NUMBERS, "group"]
        chunks = cut(data, 0, 0, 1, 900, 1000, 1000, 1001, 2500, N)
        expected = model.fit(data[columns], data["label"])
        found = type(model)(**model.get_params()).fit(scan(chunks, target="label", columns=columns))
        assert_same(expected, found, data[columns])

    @pytest.mark.parametrize("model", models(), ids=name)
    def test_unknown_sizes_and_chunks_that_a_filter_has_emptied(self, model: Any) -> None:
        data = frame()
        columns = NUMBERS if isinstance(model, GaussianClassifier) else [*NUMBERS, "group"]
        collection = dd.from_pandas(data, npartitions=9)
        collection = collection[collection["group"] != "v"]
        kept = data[data["group"] != "v"]
        expected = model.fit(kept[columns], kept["label"])
        found = type(model)(**model.get_params()).fit(
            scan(collection, target="label", columns=columns)
        )
        assert_same(expected, found, kept[columns])

    def test_arrays_of_unknown_sizes(self) -> None:
        data = frame()
        data["label"] = (data["label"] == "low").astype(int)
        collection = dd.from_pandas(data, npartitions=5)
        collection = collection[collection["a"] > 0]
        kept = data[data["a"] > 0]
        rows = dask_rows(collection[NUMBERS].to_dask_array(), collection["label"].to_dask_array())
        expected = LogisticRegression(tol=1e-8).fit(kept[NUMBERS].to_numpy(), kept["label"])
        found = LogisticRegression(tol=1e-8).fit(rows)
        assert_same(expected, found, kept[NUMBERS].to_numpy())

    def test_frame_and_series(self) -> None:
        data = frame()
        collection = dd.from_pandas(data, npartitions=5)
        rows = dask_rows(collection[[*NUMBERS, "group"]], collection["label"], collection["times"])
        X = data[[*NUMBERS, "group"]]
        expected = LogisticRegression(tol=1e-8).fit(X, data["label"], data["times"])
        assert_same(expected, LogisticRegression(tol=1e-8).fit(rows), X)

    @pytest.mark.parametrize("model", models(), ids=name)
    def test_weights_that_are_all_zero_in_a_chunk(self, model: Any) -> None:
        data = frame()
        data.loc[500:999, "times"] = 0.0
        X = data[NUMBERS]
        expected = model.fit(X, data["label"], data["times"])
        found = type(model)(**model.get_params()).fit(
            scan(cut(data, 500, 1000), target="label", weight="times", columns=NUMBERS)
        )
        assert_same(expected, found, X)

    def test_poisson_with_weights(self) -> None:
        data = frame()
        X = data[[*NUMBERS, "group"]]
        expected = GLM(family="poisson", tol=1e-8).fit(X, data["count"], data["times"])
        source = dd.from_pandas(data.drop(columns="label"), npartitions=4)
        found = GLM(family="poisson", tol=1e-8).fit(scan(source, target="count", weight="times"))
        assert_allclose(found.coef_, expected.coef_, rtol=1e-10)
        assert_allclose(found.intercept_, expected.intercept_, rtol=1e-10)
        assert_allclose(found.coef_covariance_, expected.coef_covariance_, rtol=1e-8)

    def test_offsets(self) -> None:
        data = frame()
        expected = GLM(family="poisson", tol=1e-8).fit(
            data[["a", "b"]], data["count"], offset=data["c"]
        )
        found = GLM(family="poisson", tol=1e-8).fit(
            scan(cut(data, 800, 1900), target="count", offset="c", columns=["a", "b"])
        )
        assert_allclose(found.coef_, expected.coef_, rtol=1e-10)
        source = dd.from_pandas(data, npartitions=3)
        rows = dask_rows(source[["a", "b"]], source["count"]).with_offset(source["c"])
        again = GLM(family="poisson", tol=1e-8).fit(rows)
        assert_allclose(again.coef_, expected.coef_, rtol=1e-10)

    @pytest.mark.parametrize("model", models(), ids=name)
    def test_order_of_chunks_does_not_matter(self, model: Any) -> None:
        data = frame()
        chunks = cut(data, 400, 1100, 1100, 2300)
        expected = model.fit(data[NUMBERS], data["label"])
        for seed in range(3):
            order = np.random.default_rng(seed).permutation(len(chunks))
            found = type(model)(**model.get_params()).fit(
                scan([chunks[i] for i in order], target="label", columns=NUMBERS)
            )
            assert_same(expected, found, data[NUMBERS])

    @pytest.mark.parametrize("kind", ["polars", "pyarrow"])
    def test_frames_of_other_libraries(self, kind: str) -> None:
        data = frame()[[*NUMBERS, "group", "label"]]
        polars = pytest.importorskip("polars")
        whole = polars.from_pandas(data)
        parts = [whole[:900], whole[900:900], whole[900:]]
        parts = [part.to_arrow() for part in parts] if kind == "pyarrow" else parts
        X = data.drop(columns="label")
        expected = LogisticRegression(tol=1e-8).fit(X, data["label"])
        found = LogisticRegression(tol=1e-8).fit(
            scan([dask.delayed(part, pure=False) for part in parts], target="label")
        )
        assert_same(expected, found, X)

    def test_sparse_blocks(self) -> None:
        rng = np.random.default_rng(5)
        X = rng.poisson(0.1, size=(4000, 12)).astype(float)
        y = (X[:, 0] + rng.logistic(size=4000) > 0).astype(int)
        blocks = da.from_array(X, chunks=(900, 12)).map_blocks(sparse.csr_array)
        expected = LogisticRegression(tol=1e-8).fit(sparse.csr_array(X), y)
        found = LogisticRegression(tol=1e-8).fit(dask_rows(blocks, da.from_array(y, chunks=900)))
        assert_same(expected, found, X)

    def test_shares_of_classes(self) -> None:
        data = frame()[NUMBERS]
        share = 1 / (1 + np.exp(-data["a"]))
        data["yes"], data["no"] = share, 1 - share
        X = data[NUMBERS]
        expected = LogisticRegression(tol=1e-8).fit(X, data[["yes", "no"]])
        found = LogisticRegression(tol=1e-8).fit(
            scan(dd.from_pandas(data, npartitions=3), target=["yes", "no"])
        )
        assert_same(expected, found, X)
        y = da.from_array(data[["yes", "no"]].to_numpy(), chunks=(1000, 1))
        rows = dask_rows(da.from_array(X.to_numpy(), chunks=(1000, 3)), y, classes=["yes", "no"])
        again = LogisticRegression(tol=1e-8).fit(rows)
        assert_allclose(again.coef_, expected.coef_, rtol=1e-10, atol=1e-12)

    def test_levels_keep_their_declared_order(self) -> None:
        data = frame()
        data["group"] = pd.Categorical(data["group"], categories=["w", "u", "v"])
        rows = scan(cut(data, 1000, 2000), target="label", columns=["a", "group"])
        assert rows.schema.columns[1].levels == ("w", "u", "v")

    @pytest.mark.parametrize(
        "model",
        [
            LogisticRegression(prior=1.0, tol=1e-8),
            GaussianClassifier(),
            NaiveBayes(),
            Perceptron(random_state=0, averaged=True),
            Adaline(random_state=0),
            LeastSquaresClassifier(),
        ],
        ids=name,
    )
    @pytest.mark.parametrize("absent", [0, 3])
    @pytest.mark.filterwarnings("ignore::posteriori.errors.PosterioriWarning")
    def test_classes_that_are_named_and_have_no_rows(self, model: Any, absent: int) -> None:
        X = frame()[NUMBERS].to_numpy()
        y = 1 + (X[:, 0] + X[:, 1] > 0)
        named = sorted({1, 2, absent})
        whole, hard = da.from_array(X, chunks=(700, 3)), da.from_array(y, chunks=700)
        for method in ("fit", "partial_fit"):
            if not hasattr(model, method):
                continue
            expected = getattr(clone(model), method)(X, y, classes=named)
            found = getattr(clone(model), method)(whole, hard, classes=named)
            assert found.classes_.tolist() == expected.classes_.tolist() == named
            assert_allclose(
                found.decision_function(X), expected.decision_function(X), rtol=1e-7, atol=1e-9
            )

    def test_frames_that_are_read_from_files(self, tmp_path: Any) -> None:
        """Of few columns Dask reads several files at once."""
        data = frame().assign(note="x" * 50)
        for part in range(5):
            data[600 * part : 600 * part + 600].to_parquet(tmp_path / f"{part}.parquet")
        whole = dd.read_parquet(tmp_path)
        found = LogisticRegression(tol=1e-8).fit(whole[NUMBERS], whole["label"], whole["times"])
        expected = LogisticRegression(tol=1e-8).fit(data[NUMBERS], data["label"], data["times"])
        assert_same(expected, found, data[NUMBERS])

    def test_lists_of_delayed_frames(self) -> None:
        data = frame()
        X, y, offset = data[NUMBERS], data["label"] == "high", data["times"]
        expected = LogisticRegression(tol=1e-8).fit(X, y, offset=offset)
        at = 500, 500, 1700
        found = LogisticRegression(tol=1e-8).fit(cut(X, *at), cut(y, *at), offset=cut(offset, *at))
        assert_allclose(found.coef_, expected.coef_, rtol=1e-8)
        assert_allclose(
            found.predict_proba(cut(X, *at), offset=cut(offset, *at)).compute(),
            expected.predict_proba(X, offset=offset),
            rtol=1e-8,
        )

    def test_offsets_are_cut_as_x_is(self) -> None:
        data = frame()
        X, y, offset = data[NUMBERS].to_numpy(), (data["label"] == "high").to_numpy(), data["times"]
        expected = LogisticRegression(tol=1e-8).fit(X, y, offset=offset)
        found = LogisticRegression(tol=1e-8).fit(
            da.from_array(X, chunks=(700, 3)),
            da.from_array(y, chunks=500),
            offset=da.from_array(offset.to_numpy(), chunks=400),
        )
        assert_allclose(found.coef_, expected.coef_, rtol=1e-8)

    @pytest.mark.parametrize("model", [GaussianClassifier(), Adaline(random_state=0)], ids=name)
    def test_chunks_in_odd_places_of_memory_have_the_same_bits(self, model: Any) -> None:
        """As they come from the network."""

        def oddly(values: np.ndarray) -> np.ndarray:
            room = np.empty(values.nbytes + 8, np.uint8)[1 : 1 + values.nbytes]
            found = room.view(values.dtype).reshape(values.shape)
            found[...] = values
            return found

        data = frame()
        X = da.from_array(data[NUMBERS].to_numpy(), chunks=(700, 3))
        y = da.from_array((data["label"] == "high").to_numpy().astype(float), chunks=700)
        assert not X.map_blocks(oddly).to_delayed()[0, 0].compute().flags.aligned
        expected = clone(model).fit(X, y).coef_
        assert_array_equal(
            clone(model).fit(X.map_blocks(oddly), y.map_blocks(oddly)).coef_, expected
        )

    def test_dense_and_sparse_blocks_in_an_order(self) -> None:
        data = frame()
        X, y = data[NUMBERS].to_numpy(), (data["label"] == "high").to_numpy()

        def some(block: Any, block_info: Any = None) -> Any:
            return sparse.csr_array(block) if block_info[0]["chunk-location"][0] % 2 else block

        mixed = da.from_array(X, chunks=(700, 3)).map_blocks(some, meta=np.empty((0, 3)))
        model = Adaline(random_state=0, max_epochs=50)
        found = clone(model).fit(mixed, da.from_array(y, chunks=700))
        assert_allclose(found.coef_, model.fit(X, y).coef_, rtol=1e-8)


class TestAPass:
    def test_bits_do_not_depend_on_the_scheduler(self) -> None:
        data = frame()
        fits = []
        for scheduler in ("synchronous", "threads"):
            with dask.config.set(scheduler=scheduler):
                rows = scan(cut(data, 300, 900, 900, 2000), target="label")
                fits.append(LogisticRegression(tol=1e-8, prior=1.0).fit(rows))
        assert_array_equal(fits[0].coef_, fits[1].coef_)

    def test_nothing_as_long_as_the_rows_comes_back(self, monkeypatch: Any) -> None:
        n = 60_000
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n, 5))
        y = (X[:, 0] + rng.logistic(size=n) > 0).astype(int)
        rows = dask_rows(da.from_array(X, chunks=(5000, 5)), da.from_array(y, chunks=5000))
        monkeypatch.setattr(look, "SAMPLE_ENTRIES", 10_000)
        sizes, compute = [], dask.compute

        def watched(*args: Any, **options: Any) -> Any:
            out = compute(*args, **options)
            sizes.append(len(pickle.dumps(out)))
            return out

        monkeypatch.setattr(dask, "compute", watched)
        model = LogisticRegression(tol=1e-8).fit(rows)
        assert_allclose(
            model.coef_, LogisticRegression(tol=1e-8).fit(X, y).coef_, rtol=1e-10, atol=1e-12
        )
        # The rows drawn in the first look, then a gradient and a matrix.
        assert sizes[0] < 8 * n
        assert max(sizes[1:]) < 2000

    def test_small_rows_are_not_drawn_whole(self) -> None:
        rows = scan(cut(frame(), 1000), target="label")
        assert 0 < rows.drawn.n_rows < N / 6

    def test_rows_are_drawn_by_numbers_that_the_first_look_has_learnt(self) -> None:
        """In a pass of its own, once; the rows are those that memory takes."""
        data = frame()
        rows = scan(cut(data, 300, 900, 900, 2000), target="label", columns=["a"])
        assert rows.look.drawn.n_rows == 0
        assert rows.log.passes == 1
        expected = data["a"].to_numpy()[one_in(8, 0, N)]
        compared = rows.comparing([0, -1, 1])
        for each in (rows, rows, compared):
            assert_array_equal(
                np.concatenate([part.X["a"] for _, part in each.drawn.parts]), expected
            )
        assert rows.log.passes == 2
        assert rows.log.bytes_read == 2 * rows.look.n_bytes
        own = data["label"].to_numpy()[one_in(8, 0, N)] != rows.classes[1]
        assert_array_equal(compared.sample.rows.table.cut(0, own.sum())[:, 0], expected[own])
        n_own = (data["label"] != rows.classes[1]).sum()
        assert compared.n_rows == n_own
        assert compared.n_source == N
        assert compared.sample.times == n_own / own.sum()

    def test_what_is_sent_leaves_the_rows_behind(self) -> None:
        rows = scan(cut(frame(20_000), 1000), target="label")
        _ = rows.look
        packed = pickle.dumps(rows)
        again = pickle.loads(packed)
        assert len(packed) < 5000
        assert again.schema == rows.schema
        assert again.n_rows == 20_000
        with pytest.raises(SourceError, match="left where they lie"):
            again.map_sum(lambda block: len(block.X))

    def test_the_first_look_is_shared_with_numbers(self) -> None:
        rows = scan(cut(frame(), 1000), target="count", columns=["a"])
        assert rows.with_numbers().look is rows.look
        assert rows.log.passes == 1

    def test_many_chunks_are_added_in_their_order(self) -> None:
        chunks = cut(frame(), *range(10, 1500, 10))
        rows = scan(chunks, target="label", columns=["a"])
        starts = rows.map_sum(lambda block: [block.start])
        assert starts == [*range(0, 1500, 10)]
        assert rows.n_rows == N

    def test_progress_is_told(self) -> None:
        steps: list[Any] = []
        rows = scan(cut(frame(), 700), target="label", columns=["a"], progress=steps.append)
        model = NaiveBayes().fit(rows)
        assert [step.rows for step in steps] == [0, 0, N]
        assert steps[-1].is_last
        assert model.passes_.passes == 2

    def test_rows_are_numbered_through_the_chunks(self) -> None:
        rows = scan(cut(frame(), 0, 700, 700, 2000), target="label", columns=["a"])
        starts = rows.map_sum(lambda block: [(block.start, len(block.X))])
        assert starts == [(0, 700), (700, 1300), (2000, 1000)]


class TestWhatIsWrongIsNamed:
    def test_chunks_that_are_no_arrays(self) -> None:
        with pytest.raises(ColumnTypeError, match="Chunk 0 holds a list, which is no array"):
            NaiveBayes().fit(dask.delayed([[1.0], [2.0]]), dask.delayed(np.array([0, 1])))

    def test_without_a_cluster_this_machine_has_to_have_room(self) -> None:
        assert room_on_workers() == room_here()

    def test_a_chunk_that_is_not_the_same_twice(self) -> None:
        sizes = iter([10, 9])

        def make() -> pd.DataFrame:
            return frame(next(sizes))

        rows = scan(dask.delayed(make, pure=False)(), target="label", columns=["a"])
        with pytest.raises(SourceError, match="Chunk 0 has 9 rows, and had 10"):
            NaiveBayes().fit(rows)

    def test_a_column_that_is_not_there(self) -> None:
        with pytest.raises(ColumnNameError, match="'nothing' is not among"):
            scan(dd.from_pandas(frame(), npartitions=2), target="nothing")
        with pytest.raises(ColumnNameError, match="'nothing' is not among"):
            NaiveBayes().fit(scan(cut(frame(), 5), target="nothing"))

    def test_a_label_that_is_missing(self) -> None:
        data = frame()
        data.loc[1500, "label"] = None
        with pytest.raises(LabelError, match=r"Input y contains NaN or None \(first in row 500\)"):
            NaiveBayes().fit(scan(cut(data, 1000), target="label"))

    def test_no_rows(self) -> None:
        with pytest.raises(ShapeError, match="no rows"):
            NaiveBayes().fit(scan(cut(frame().iloc[:0]), target="label"))

    def test_targets_in_memory_or_cut_otherwise(self) -> None:
        X = da.from_array(np.zeros((6, 1)), chunks=(3, 1))
        with pytest.raises(ParameterError, match="y is in memory"):
            dask_rows(X, np.zeros(6))
        with pytest.raises(ShapeError, match="6 rows, but y 5"):
            dask_rows(X, da.zeros(5, chunks=5))
        with pytest.raises(ShapeError, match="2D"):
            dask_rows(da.zeros(5), da.zeros(5))
        collection = dd.from_pandas(frame(), npartitions=3)
        with pytest.raises(ShapeError, match="X has 3 chunks of rows, but y 2"):
            dask_rows(collection[["a"]], collection["label"].repartition(npartitions=2))
        other = dd.from_pandas(frame().iloc[:-1], npartitions=3)
        with pytest.raises(ShapeError, match=r"In chunk 2 .* X has 1,000 rows, but y 999"):
            NaiveBayes().fit(dask_rows(collection[["a"]], other["label"]))

    def test_scan_of_an_array(self) -> None:
        with pytest.raises(ColumnTypeError, match=r"fit\(X, y\)"):
            scan_dask(da.zeros((3, 2)), Roles("y"))


class TestPredictions:
    def test_array(self) -> None:
        data = frame()
        X = data[NUMBERS].to_numpy()
        model = GaussianClassifier().fit(X, data["label"].to_numpy(str))
        collection = da.from_array(X, chunks=(800, 2))
        labels = predict_dask(model.predict, collection, (), model.classes_.dtype)
        shares = predict_dask(model.predict_proba, collection, (3,), float)
        assert is_dask(labels)
        assert labels.chunks == ((800, 800, 800, 600),)
        assert shares.shape == (N, 3)
        assert_array_equal(labels.compute(), model.predict(X))
        assert_array_equal(shares.compute(), model.predict_proba(X))

    def test_frame_with_empty_partitions(self) -> None:
        data = frame()
        columns = [*NUMBERS, "group"]
        model = LogisticRegression().fit(data[columns], data["label"])
        collection = dd.from_pandas(data, npartitions=6)
        collection = collection[collection["group"] != "v"][columns]
        kept = data[data["group"] != "v"][columns]
        labels = predict_dask(model.predict, collection, (), model.classes_.dtype)
        shares = predict_dask(model.predict_proba, collection, (3,), float)
        assert isinstance(shares, da.Array)
        assert_array_equal(labels.compute(), model.predict(kept))
        assert_array_equal(shares.compute(), model.predict_proba(kept))

    def test_delayed_frame(self) -> None:
        data = frame()
        model = NaiveBayes().fit(data[NUMBERS], data["label"])
        found = predict_dask(model.predict_proba, dask.delayed(data[NUMBERS]), (3,), float)
        assert_array_equal(found.compute(), model.predict_proba(data[NUMBERS]))

    def test_model_is_taken_as_it_is_now(self) -> None:
        data = frame()
        X = data[NUMBERS].to_numpy()
        model = GaussianClassifier().fit(X, data["label"])
        expected = model.predict_proba(X)
        later = predict_dask(model.predict_proba, da.from_array(X, chunks=(999, 3)), (3,), float)
        model.fit(-X, data["label"])
        assert_array_equal(later.compute(), expected)

    def test_intervals_of_several_classes(self) -> None:
        data = frame()
        X = data[NUMBERS].to_numpy()
        model = LogisticRegression().fit(X, data["label"])
        expected = model.predict_interval(X[:700])
        for chunks in (700, (300, 150, 250)):
            found = model.predict_interval(da.from_array(X[:700], chunks=(chunks, 3)))
            assert found.shape == (700, 3, 2)
            assert_allclose(found.compute(), expected, rtol=1e-12)

    @pytest.mark.parametrize("kind", ["array", "frame", "delayed", "list"])
    def test_offsets_go_to_their_chunks(self, kind: str) -> None:
        data = frame()
        X, y, offset = data[NUMBERS], data["label"] == "high", data["times"]
        model = LogisticRegression().fit(X, y, offset=offset)
        expected = model.predict_proba(X, offset=offset)
        if kind == "array":
            offsets = da.from_array(offset.to_numpy(), chunks=800)
            model.fit(X.to_numpy(), y, offset=offset)
            rows = da.from_array(X.to_numpy(), chunks=(700, 3))
        elif kind == "frame":
            whole = dd.from_pandas(data, npartitions=4)
            rows, offsets = whole[NUMBERS], whole["times"]
        else:
            rows, offsets = cut(X, 500, 1200), cut(offset, 500, 1200)
            if kind == "delayed":
                rows, offsets = dask.delayed(X, pure=False), dask.delayed(offset, pure=False)
        found = model.predict_proba(rows, offset=offsets)
        assert found.shape[1] == 2
        assert_allclose(found.compute(), expected, rtol=1e-10)
        with pytest.raises(ParameterError, match="offset is in memory here"):
            model.predict_proba(rows, offset=offset)
        with pytest.raises(ShapeError):
            model.predict_proba(rows, offset=offsets[:1]).compute()

    @pytest.mark.parametrize("reject", [None, "unknown", -1])
    @pytest.mark.parametrize("kind", [str, int])
    def test_labels_of_rows_that_are_rejected(self, reject: Any, kind: Any) -> None:
        X = frame()[NUMBERS].to_numpy()
        y = (X[:, 0] > 0.5).astype(int) + (X[:, 1] > 0)
        y = np.array(["a", "b", "c"])[y] if kind is str else y
        rows = da.from_array(X, chunks=(700, 3))
        for model in (
            OneVersusRest(
                estimator=LogisticRegression(prior=1.0), ambiguous="reject", reject_label=reject
            ),
            NoveltyDetector(GaussianClassifier(), false_alarm=0.05, reject_label=reject),
        ):
            expected = model.fit(X, y).predict(X)
            assert reject in expected.tolist()
            found = model.predict(rows)
            assert found.dtype == expected.dtype
            assert found.compute().tolist() == expected.tolist()

    def test_rows_are_told_where_they_are_counted(self) -> None:
        X = frame()[NUMBERS].to_numpy(copy=True)
        model = LogisticRegression().fit(X.copy(), frame()["label"])
        X[1700, 1] = np.nan
        later = model.predict(da.from_array(X, chunks=(500, 3)))
        with pytest.raises(MissingValueError, match=r"In a chunk, its rows counted from 0: .* 200"):
            later.compute()

    def test_what_gives_no_collection_takes_none(self) -> None:
        X = frame()[NUMBERS].to_numpy()
        model = FisherDiscriminant().fit(X, frame()["label"])
        with pytest.raises(ParameterError, match="A Dask collection is not accepted here"):
            model.transform(da.from_array(X, chunks=(500, 3)))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    ) as found:
        yield found


@pytest.fixture
def client(cluster: Any) -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    with distributed.Client(cluster) as found:
        found.wait_for_workers(2)
        yield found


def slow_chunks(n_chunks: int, seconds: float) -> list[Any]:
    """Frames that are made on the workers, each time anew, and take a while."""

    def make(i: int) -> pd.DataFrame:
        time.sleep(seconds)
        rng = np.random.default_rng(i)
        out = pd.DataFrame(rng.normal(size=(2000, 4)), columns=list("pqrs"))
        out["label"] = np.where(out["p"] - out["q"] + rng.logistic(size=2000) > 0, "yes", "no")
        return out

    make_one = dask.delayed(make, pure=False)
    return [make_one(i) for i in range(n_chunks)]


@pytest.mark.slow
class TestCluster:
    @pytest.mark.parametrize("model", models(), ids=name)
    def test_same_bits_as_on_threads(self, client: Any, model: Any) -> None:
        chunks = slow_chunks(7, 0.0)
        found = model.fit(scan(chunks, target="label"))
        with dask.config.set(scheduler="threads"):
            expected = type(model)(**model.get_params()).fit(scan(chunks, target="label"))
        X = np.random.default_rng(0).normal(size=(50, 4))
        X = pd.DataFrame(X, columns=list("pqrs"))
        assert_array_equal(found.predict_proba(X), expected.predict_proba(X))

    @pytest.mark.parametrize(
        "model",
        [
            CalibratedClassifier(LogisticRegression()),
            CalibratedClassifier(NaiveBayes(), method="platt"),
            NoveltyDetector(GaussianClassifier(), false_alarm=0.05),
        ],
        ids=str,
    )
    def test_rows_held_back_give_the_same_bits_as_on_threads(self, client: Any, model: Any) -> None:
        chunks = slow_chunks(7, 0.0)
        found = clone(model).fit(scan(chunks, target="label"))
        with dask.config.set(scheduler="threads"):
            expected = clone(model).fit(scan(chunks, target="label"))
        X = pd.concat(dask.compute(*chunks))[list("pqrs")]
        assert_array_equal(found.predict_proba(X), expected.predict_proba(X))
        if isinstance(model, NoveltyDetector):
            assert_array_equal(found.p_value(X), expected.p_value(X))

    def test_same_bits_each_time(self, client: Any) -> None:
        """Though what comes from the network may lie anywhere in memory."""
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(2000, 3)), rng.integers(0, 3, 2000)
        arrays = da.from_array(X, chunks=(500, 3)), da.from_array(y, chunks=500)
        found = [
            tuple(type(model)(**model.get_params()).fit(*arrays).coef_.tobytes() for _ in range(5))
            for model in (GaussianClassifier(), Adaline(random_state=0), LeastSquaresClassifier())
        ]
        assert [len(set(each)) for each in found] == [1, 1, 1]

    def test_predictions(self, client: Any) -> None:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(5000, 3))
        y = np.where(X[:, 0] + rng.logistic(size=5000) > 0, "yes", "no")
        arrays = da.from_array(X, chunks=(900, 3)), da.from_array(y, chunks=900)
        model = LogisticRegression(tol=1e-8).fit(dask_rows(*arrays))
        labels = predict_dask(model.predict, arrays[0], (), model.classes_.dtype)
        assert_array_equal(labels.compute(), model.predict(X))

    def test_client_that_is_not_the_default(self, cluster: Any) -> None:
        distributed = pytest.importorskip("distributed")
        with distributed.Client(cluster.scheduler_address, set_as_default=False) as remote:
            rows = scan(slow_chunks(3, 0.0), target="label")
            with remote.as_current():
                pids = set(rows.map_sum(lambda block: [os.getpid()]))
        assert pids
        assert os.getpid() not in pids

    def test_errors_come_back_as_they_are(self, client: Any) -> None:
        data = frame()
        data.loc[1500, "label"] = None
        with pytest.raises(LabelError, match=r"first in row 500"):
            NaiveBayes().fit(scan(cut(data, 1000), target="label"))
        other = dask.delayed(lambda: frame(np.random.default_rng().integers(10**4)), pure=False)
        with pytest.raises(SourceError, match="when it was first looked at"):
            NaiveBayes().fit(scan(other(), target="label"))

    def test_rows_are_put_in_order_on_a_worker(self, client: Any) -> None:
        chunks, model = slow_chunks(7, 0.0), Adaline(random_state=0, max_epochs=3, tol=1e-9)
        with pytest.warns(ConvergenceWarning):
            found = model.fit(scan(chunks, target="label")).coef_
        rows = scan(chunks, target="label")
        kept = rows.keep(lambda block: [len(block.y)], sum)
        keeper = kept.ask(lambda _: os.getpid())
        assert keeper in client.run(os.getpid).values()
        assert kept.then(lambda n: n / 7).ask(lambda share: share) == 2000
        os.kill(keeper, signal.SIGKILL)
        assert kept.ask(lambda n: n) == 14_000
        client.wait_for_workers(2)
        with dask.config.set(scheduler="threads"), pytest.warns(ConvergenceWarning):
            expected = model.fit(scan(chunks, target="label")).coef_
        assert_array_equal(found, expected)

    def test_errors_of_what_is_kept_come_back_as_they_are(self, client: Any) -> None:
        def refuse(total: Any) -> Any:
            raise ShapeError(f"There are {total}.", "Pass more.")

        rows = scan(slow_chunks(2, 0.0), target="label")
        with pytest.raises(ShapeError, match=r"There are 4000. Pass more."):
            rows.keep(lambda block: [len(block.y)], lambda parts: refuse(sum(parts)))

    def test_each_worker_has_to_have_room_for_its_share_of_rows_in_an_order(
        self, client: Any, monkeypatch: Any
    ) -> None:
        room = room_on_workers()
        [limit] = {worker["memory_limit"] for worker in client.scheduler_info()["workers"].values()}
        assert room == Room("each worker", int(0.6 * limit), 2)
        monkeypatch.setattr(rows_in_dask, "room_on_workers", lambda: Room("each worker", 10_000, 2))
        with pytest.raises(SourceError, match=r"each worker has room for 1e-05 GB\."):
            Adaline().fit(scan(slow_chunks(2, 0.0), target="label"))

    def test_rows_that_one_worker_has_no_room_for_are_dealt_out(
        self, client: Any, monkeypatch: Any
    ) -> None:
        """One of two is killed between epochs, which changes no bit."""
        chunks, model = slow_chunks(7, 0.0), Adaline(random_state=0, max_epochs=3, tol=1e-9)
        monkeypatch.setattr(bins, "BIN_ENTRIES", 8000)
        with dask.config.set(scheduler="threads"), pytest.warns(ConvergenceWarning):
            in_one_memory = model.fit(scan(chunks, target="label")).coef_
        needed = walks._needed(8 * 14_000 * 4 // 2)
        monkeypatch.setattr(rows_in_dask, "room_on_workers", lambda: Room("each", needed, 2))
        with pytest.warns(ConvergenceWarning):
            expected = model.fit(scan(chunks, target="label")).coef_
        assert_allclose(expected, in_one_memory, rtol=1e-13)
        fold, victims = OnWorkers.fold, []

        def watched(self: Any, *args: Any) -> Any:
            keepers = self.ask_each(lambda _: os.getpid())
            if not victims:
                assert len(set(keepers)) == 2
                seen = fold(self, lambda seen, i, _: [*seen, (i, os.getpid())], [], args[-1])
                assert seen == [(told, keepers[i]) for i, told in args[-1]]
                os.kill(keepers[0], signal.SIGKILL)
                victims.append(keepers[0])
            return fold(self, *args)

        monkeypatch.setattr(OnWorkers, "fold", watched)
        with pytest.warns(ConvergenceWarning):
            found = model.fit(scan(chunks, target="label")).coef_
        assert victims
        assert_array_equal(found, expected)
        client.wait_for_workers(2)

    def test_rows_are_there_as_long_as_the_model(self, client: Any) -> None:
        """Though nobody else holds on to what the workers have of them."""
        X = da.random.default_rng(0).normal(size=(2000, 3), chunks=(500, 3)).persist()
        y = (X[:, 0] > 0).astype(int).persist()
        model = LogisticRegression(prior=1.0).fit(X, y)
        objective = model._inference.objective
        expected = objective(model.solution_.parameters, "none").value
        del X, y
        gc.collect()
        assert objective(model.solution_.parameters, "none").value == expected

    def test_a_worker_killed_in_the_middle_of_a_fit_changes_no_bit(
        self, client: Any, monkeypatch: Any
    ) -> None:
        chunks = slow_chunks(12, 0.1)
        expected = LogisticRegression(tol=1e-8).fit(scan(chunks, target="label"))
        before = set(client.run(os.getpid).values())
        victim = min(before)
        add_up, passes, in_pass = DaskRows._sum, [0], [False]
        killed_in_pass: list[bool] = []

        def kill() -> None:
            killed_in_pass.append(in_pass[0])
            os.kill(victim, signal.SIGKILL)

        def watched(self: Any, *args: Any) -> Any:
            passes[0] += 1
            in_pass[0] = True
            if passes[0] == 3:
                threading.Timer(0.3, kill).start()
            try:
                return add_up(self, *args)
            finally:
                in_pass[0] = False

        monkeypatch.setattr(DaskRows, "_sum", watched)
        found = LogisticRegression(tol=1e-8).fit(scan(chunks, target="label"))
        assert killed_in_pass == [True]
        assert passes[0] > 3
        assert_array_equal(found.coef_, expected.coef_)
        assert_array_equal(found.intercept_, expected.intercept_)
        client.wait_for_workers(2)
        assert victim not in client.run(os.getpid).values()
