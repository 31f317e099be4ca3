"""The model of docs/scaling.md: sizes of real sums, and passes whose length is known."""

import doctest
import pickle
from dataclasses import asdict, replace
from pathlib import Path

import cloudpickle
import numpy as np
import pytest

pytest.importorskip("dask")

from benchmarks.scaling import tables
from benchmarks.scaling.cost import (
    FAN_IN,
    Cost,
    Machine,
    Shape,
    best_chunk_rows,
    kernel_bytes,
    n_sums,
    operations,
    passes,
    sample_rows,
    sum_bytes,
)
from benchmarks.scaling.measure import chunked_rows, columns_of, counted_passes, kernel_of, rows_of
from benchmarks.scaling.simulate import MOST_CHUNKS, Tasks, Weather, parents, simulate

from posteriori.posterior import levels
from posteriori.rows import dask as dask_rows
from posteriori.rows import look
from posteriori.rows.chunk import Reader
from posteriori.rows.dask_tasks import AddUp, MakeChunk, ReadChunk, Sent

DOCUMENT = (Path(__file__).parents[1] / "docs" / "scaling.md").read_text(encoding="utf-8")

MACHINE = Machine(
    activation=5e-9,
    entry=8e-10,
    copy=2e-9,
    product=8e-11,
    add=1e-10,
    pickle=3e-10,
    cholesky=1e-11,
    dispatch=1e-3,
    worker_task=1e-3,
)

KINDS = pytest.mark.parametrize("kind", ["gradient", "hessian", "moments"])
SHAPES = pytest.mark.parametrize(
    "shape", [Shape(60, 20), Shape(60, 200), Shape(60, 30, 4)], ids=str
)


class TestSizes:
    @KINDS
    @SHAPES
    def test_of_a_sum(self, kind, shape):
        found = rows_of(shape).map_sum(kernel_of(kind, shape))
        size = len(pickle.dumps(found, protocol=5))
        assert size == pytest.approx(sum_bytes(kind, shape), rel=0.03)

    @KINDS
    @SHAPES
    @pytest.mark.parametrize("first", [0, 10**12])
    def test_of_what_is_sent_to_the_workers(self, kind, shape, first):
        """With many chunks, whose first rows have large numbers."""
        rows = rows_of(shape)
        reader = Reader(rows.schema, rows.classes)
        lengths = dict.fromkeys(range(70_000, 72_000), 10**6)
        starts = {i: first + i * 10**6 for i in lengths}
        read = ReadChunk(MakeChunk(None, starts=starts), reader, lengths)
        sent = AddUp(read, kernel_of(kind, shape), None)
        size = len(cloudpickle.dumps(sent))
        assert size == pytest.approx(kernel_bytes(kind, shape, 2000), rel=0.1)

    @KINDS
    def test_operations_grow_with_the_rows(self, kind):
        one, ten = (np.array(operations(kind, Shape(n, 30, 3))) for n in (10**3, 10**4))
        np.testing.assert_allclose(ten, 10 * one)

    def test_products_of_all_pairs_once(self):
        assert operations("moments", Shape(7, 30)).products == 7 * 30 * 30 / 2
        assert operations("hessian", Shape(7, 29)).products == 7 * 30 * 30 / 2

    def test_the_tree_is_that_of_the_library(self):
        assert FAN_IN == dask_rows._AT_ONCE

    @pytest.mark.parametrize("chunks", [1, 2, 8, 9, 17, 64, 65, 100, 513])
    def test_tasks_of_a_pass(self, chunks, monkeypatch):
        """Counted in the graph that a pass hands to Dask; the last sum is made by the client."""
        tasks = set()

        def compute(*found):
            tasks.update(key for one in found for key in one.dask)
            return [1] * len(found)

        monkeypatch.setattr("dask.compute", compute)
        rows = chunked_rows(Shape(chunks, 2), 1)
        rows._compute(Sent(None), range(chunks), FAN_IN)
        assert len(tasks) == 3 * chunks + n_sums(chunks) - (chunks > 1)
        assert len(parents(chunks)) == chunks + n_sums(chunks)


class TestPasses:
    @pytest.mark.parametrize(
        "shape", [Shape(200_000, 5), Shape(60_000, 30), Shape(70_000, 30)], ids=str
    )
    def test_of_a_fit(self, shape):
        """Never more than expected; up to two fewer, as gradients better the metric on the way."""
        assert 0 <= sum(passes(shape)) - counted_passes(shape) <= 2

    def test_of_a_fit_whose_sample_takes_a_pass(self, monkeypatch):
        monkeypatch.setattr(look, "SAMPLE_ENTRIES", 2**15)
        shape = Shape(60_000, 80)
        assert sample_rows(shape.n, shape.d) < 12 * shape.p
        counted = counted_passes(shape)
        assert counted <= sum(passes(shape))
        monkeypatch.setattr(levels, "MOST_ENTRIES", 0)
        assert counted < counted_passes(shape)

    def test_no_sample_is_large_enough_for_many_columns(self):
        assert passes(Shape(10**9, 1600)).products == 0
        assert passes(Shape(10**9, 1700)).products == 1

    def test_sample_is_that_of_the_first_look(self):
        import dask

        shape = Shape(30_000, 400)
        X, y = columns_of(shape)
        chunks = [(X[i : i + 3000], y[i : i + 3000], None, None) for i in range(0, 30_000, 3000)]
        with dask.config.set(scheduler="synchronous"):
            rows = dask_rows.DaskRows(tuple(chunks))
            found = rows.sample.rows.n_rows
        assert found == pytest.approx(sample_rows(shape.n, shape.d), rel=0.1)


class TestSimulation:
    def test_workers_that_never_wait(self):
        found = simulate(Tasks(chunks=96, workers=8, chunk=2.0))
        assert found.seconds == pytest.approx(96 / 8 * 2.0)
        assert found.busy == pytest.approx(1.0)

    @pytest.mark.parametrize("chunks", [1, 64, 1000])
    def test_scheduler_that_never_waits(self, chunks):
        tasks = Tasks(chunks, 50, chunk=0.0, chunk_dispatch=0.003, plus_dispatch=0.001)
        expected = 0.003 * chunks + 0.001 * n_sums(chunks)
        assert simulate(tasks).seconds == pytest.approx(expected)

    def test_one_worker_does_one_thing_after_the_other(self):
        tasks = Tasks(100, 1, 2.0, 0.5, 0.01, 0.001, start=7.0)
        added = 0.5 * (100 + n_sums(100) - 1)
        expected = 7.0 + 100 * 2.01 + added + 0.001 * n_sums(100)
        assert simulate(tasks).seconds == pytest.approx(expected)

    def test_the_tree_of_a_chunk_for_each_worker(self):
        found = simulate(Tasks(64, 64, chunk=2.0, part=0.5))
        assert found.seconds == pytest.approx(2.0 + 2 * 8 * 0.5)

    @KINDS
    @pytest.mark.parametrize("workers", [3, 40, 1000])
    def test_between_the_bound_and_an_even_pass(self, kind, workers):
        cost = Cost(kind, Shape(10**9, 100), workers, 10**5, MACHINE)
        found = simulate(Tasks.of(cost)).seconds
        assert cost.bound_seconds <= found <= 1.02 * cost.even_seconds

    def test_more_workers_are_of_no_use_to_a_busy_scheduler(self):
        cost = Cost("gradient", Shape(10**9, 20), 1, 10**5, MACHINE)
        few, many, more = (
            simulate(Tasks.of(replace(cost, workers=round(times * cost.useful_workers))))
            for times in (0.5, 3, 6)
        )
        assert few.busy > 0.95
        assert many.seconds == pytest.approx(more.seconds, rel=0.01)
        assert many.seconds == pytest.approx(cost.scheduler_seconds, rel=0.02)
        assert more.busy == pytest.approx(many.busy / 2, rel=0.02)

    def test_larger_chunks_help_then(self):
        shape = Shape(10**9, 20)
        small = Cost("gradient", shape, 200, 10**4, MACHINE)
        best = replace(small, chunk_rows=best_chunk_rows("gradient", shape, 200, MACHINE))
        assert simulate(Tasks.of(best)).seconds < simulate(Tasks.of(small)).seconds / 5

    def test_slow_workers_hold_up_the_end(self):
        tasks = Tasks(80, 10, chunk=1.0)
        slow = simulate(tasks, Weather(slow_share=1.0, slow_factor=3.0)).seconds
        assert slow == pytest.approx(3 * simulate(tasks).seconds)
        some = simulate(tasks, Weather(slow_share=0.2, slow_factor=3.0)).seconds
        assert some == pytest.approx(12.0)

    def test_noise_has_the_mean_of_the_model(self):
        found = simulate(Tasks(20_000, 10, chunk=1.0), Weather(noise=0.5)).seconds
        assert found == pytest.approx(2000, rel=0.02)

    def test_what_dead_workers_did_is_done_again(self):
        tasks = Tasks(2000, 20, chunk=10.0, part=0.1)
        calm = simulate(tasks)
        found = simulate(tasks, Weather(deaths_per_hour=2.0))
        assert calm.again == 0
        assert found.again > 5
        lost = found.again * 10.0 / 20
        assert calm.seconds < found.seconds < calm.seconds + lost + 500

    def test_more_chunks_than_are_played(self):
        tasks = Tasks(3 * MOST_CHUNKS, 100, 1.0, 0.01, 0.001, 0.001)
        expected = 3 * MOST_CHUNKS * (1.001 + 0.01 * 8 / 7) / 100
        assert simulate(tasks).seconds == pytest.approx(expected, rel=0.01)
        with pytest.raises(ValueError, match="up to 24,000 chunks"):
            simulate(tasks, Weather(deaths_per_hour=1.0))


class TestDocument:
    def test_sizes_are_those_of_the_model(self):
        assert tables.sizes() in DOCUMENT

    @pytest.mark.parametrize("name", ["traffic", "chunk sizes", "tree"])
    def test_simulated_tables_follow_from_its_constants(self, name):
        machine = tables.read_constants(DOCUMENT)
        made = {"traffic": tables.traffic, "chunk sizes": tables.chunk_sizes, "tree": tables.tree}
        assert made[name](machine) in DOCUMENT

    def test_constants_are_read_as_they_are_written(self):
        found = tables.read_constants(tables.constants(MACHINE, 1.0))
        assert asdict(found) == pytest.approx(asdict(MACHINE), rel=1e-12)

    def test_examples_of_the_tables(self):
        assert doctest.testmod(tables).failed == 0

    def test_tables_are_put_in_their_places(self):
        text = (
            "a\n\n<!-- one -->\n\nold\n\n<!-- end -->\n\nb\n\n<!-- two -->\n\n?\n\n<!-- end -->\n"
        )
        found = tables.put(text, {"one": "new"})
        assert found == text.replace("old", "new")
        with pytest.raises(ValueError, match="no place"):
            tables.put(text, {"three": ""})
