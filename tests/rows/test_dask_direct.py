"""Sums of chunks in the memory of workers are those of tasks, to the last bit, whatever happens."""

import asyncio
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from posteriori import GaussianClassifier, LogisticRegression
from posteriori.errors import MissingValueError
from posteriori.rows import dask as rows_in_dask
from posteriori.rows import dask_direct
from posteriori.rows.dask import DaskRows, dask_rows
from posteriori.rows.dask_direct import Residents, client_in_use
from posteriori.rows.dask_tasks import Sent

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

N = 8000


STAYING = {
    "distributed.scheduler.work-stealing": False,
    "distributed.scheduler.active-memory-manager.start": False,
}
"""Settings with which chunks stay on the workers that they were made by."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with (
        dask.config.set(STAYING),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as found,
    ):
        yield found


@pytest.fixture
def client(cluster: Any) -> Iterator[Any]:
    with distributed.Client(cluster) as found:
        found.wait_for_workers(2)
        yield found


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether the workers themselves could be asked, pass by pass."""
    found: list[bool] = []
    each = Residents.each

    def noted(self: Any, *args: Any) -> Any:
        sums = each(self, *args)
        found.append(sums is not None)
        return sums

    monkeypatch.setattr(Residents, "each", noted)
    return found


def lazy(n_chunks: int) -> tuple[Any, Any]:
    X = da.random.default_rng(0).normal(size=(N, 3), chunks=(N // n_chunks, 3))
    return X, (X[:, 0] + X[:, 1] ** 2 > 1).astype(int)


def in_memory(*collections: Any, turns: Sequence[int] = (0, 1)) -> tuple[Any, ...]:
    """Collections on the workers, whose chunks these take in turns, as long as they live."""
    workers = sorted(distributed.get_client().scheduler_info()["workers"])

    def turn(key: Any) -> list[str]:
        return [workers[turns[key[1] % len(turns)]]]

    with dask.annotate(workers=turn, allow_other_workers=True):
        found = dask.persist(*collections, optimize_graph=False)
    distributed.wait(found)
    return found


def persisted(n_chunks: int, turns: Sequence[int] = (0, 1)) -> tuple[Any, ...]:
    return in_memory(*lazy(n_chunks), turns=turns)


def by_tasks(monkeypatch: pytest.MonkeyPatch, fit: Any) -> Any:
    with monkeypatch.context() as patch:
        patch.setattr(Residents, "each", lambda self, task, numbers: None)
        return fit()


@pytest.mark.slow
class TestCluster:
    @pytest.mark.parametrize(
        ("n_chunks", "turns"),
        [(2, [0, 1]), (4, [0, 0, 1, 1]), (20, [0, 1]), (10, [0] * 6 + [1] * 4)],
    )
    def test_workers_are_asked_for_the_same_bits(
        self, n_chunks: int, turns: Any, client: Any, answers: Any, monkeypatch: Any
    ) -> None:
        data = persisted(n_chunks, turns)
        expected = by_tasks(monkeypatch, lambda: LogisticRegression().fit(*data))
        assert answers == []
        found = LogisticRegression().fit(*data)
        assert answers
        assert all(answers)
        assert_array_equal(found.coef_, expected.coef_)
        assert_array_equal(found.intercept_, expected.intercept_)
        assert found.passes_.passes == expected.passes_.passes
        assert found.passes_.bytes_read == expected.passes_.bytes_read

    def test_both_workers_sum_what_they_have_in_the_order_of_rows(
        self, client: Any, answers: Any
    ) -> None:
        rows = dask_rows(*persisted(4))
        found = rows.map_sum(lambda block: [(block.start, os.getpid())])
        assert answers == [True]
        assert [start for start, _ in found] == [0, 2000, 4000, 6000]
        assert {pid for _, pid in found} == set(client.run(os.getpid).values())

    def test_chunks_that_are_made_anew_are_summed_by_tasks(self, client: Any, answers: Any) -> None:
        GaussianClassifier().fit(*lazy(4))
        assert answers
        assert not any(answers)

    @pytest.mark.parametrize("turns", [[0], [0, 0, 0, 1]], ids=["all", "most"])
    def test_chunks_most_of_which_are_on_one_worker_are_summed_by_tasks(
        self, turns: Any, client: Any, answers: Any
    ) -> None:
        GaussianClassifier().fit(*persisted(4, turns))
        assert answers
        assert not any(answers)

    def test_many_chunks_are_summed_by_tasks(
        self, client: Any, answers: Any, monkeypatch: Any
    ) -> None:
        monkeypatch.setattr(dask_direct, "_MOST", 3)
        GaussianClassifier().fit(*persisted(4))
        assert answers == [False]

    @pytest.mark.parametrize(("n_chunks", "directly"), [(8, True), (10, False)])
    def test_more_than_eight_sums_come_back_if_they_are_small(
        self, n_chunks: int, directly: bool, client: Any, answers: Any, monkeypatch: Any
    ) -> None:
        data = persisted(n_chunks)
        limit = 8 * n_chunks * (2 * 4) ** 2  # two classes, three slopes and an intercept
        monkeypatch.setattr(rows_in_dask, "_LITTLE_BACK", limit)
        GaussianClassifier().fit(*data)
        assert answers == [True]
        monkeypatch.setattr(rows_in_dask, "_LITTLE_BACK", limit - 1)
        GaussianClassifier().fit(*data)
        assert answers == [True] * (1 + directly)

    def test_chunks_that_both_workers_have_are_shared_out(self, client: Any, answers: Any) -> None:
        data = persisted(4, turns=[0])
        rows = dask_rows(*data)

        def sums() -> Any:
            return rows.map_sum(lambda block: [(block.start, os.getpid())])

        starts = [start for start, _ in sums()]
        client.replicate(data)
        found = sums()
        assert [start for start, _ in found] == starts
        assert sorted(Counter(pid for _, pid in found).values()) == [2, 2]
        assert answers == [False, True]

    def test_a_chunk_that_is_not_there_is_missed(
        self, client: Any, answers: Any, monkeypatch: Any
    ) -> None:
        rows = dask_rows(*persisted(4))
        jobs_of = Residents._jobs

        def starts() -> Any:
            return rows.map_sum(lambda block: [block.start])

        def of_the_other(self: Any, *args: Any) -> Any:
            jobs = jobs_of(self, *args)
            return dict(zip(jobs, reversed(jobs.values()), strict=True))

        expected = starts()
        with monkeypatch.context() as patch:
            patch.setattr(Residents, "_jobs", of_the_other)
            assert starts() == expected
        assert starts() == expected
        assert answers == [True, False, False]

    def test_what_is_wrong_with_rows_is_said_as_by_tasks(
        self, client: Any, answers: Any, monkeypatch: Any
    ) -> None:
        X, y = lazy(4)
        X = da.where(da.arange(N, chunks=X.chunks[0])[:, None] == 5000, np.nan, X)
        data = in_memory(X, y)

        def message() -> str:
            with pytest.raises(MissingValueError) as error:
                LogisticRegression().fit(*data)
            return str(error.value)

        expected = by_tasks(monkeypatch, message)
        assert message() == expected
        assert answers
        assert all(answers)

    def test_a_task_that_fits_does_not_wait_for_itself(self, client: Any) -> None:
        data = persisted(4)

        def fit(X: Any, y: Any) -> Any:
            model = LogisticRegression().fit(X, y)
            return model.coef_, dask_rows(X, y)._residents._jobs(client_in_use(), range(4))

        packed = Sent(data)
        here, _ = fit(*data)
        there, found = client.submit(lambda: fit(*packed.value), pure=False).result(timeout=120)
        assert_array_equal(there, here)
        assert set(found) == set(client.nthreads())

    def test_a_worker_killed_while_it_sums_changes_no_bit(
        self, client: Any, answers: Any, monkeypatch: Any
    ) -> None:
        data = persisted(4)
        expected = LogisticRegression(tol=1e-8).fit(*data)
        assert all(answers)  # so that what is missing below is the answer of the one that died
        answers.clear()
        victim = min(client.run(os.getpid).values())
        add_up, killed = DaskRows._sum, list[int]()

        def watched(self: Any, kernel: Any, block_entries: Any) -> Any:
            if not killed:
                killed.append(victim)
                threading.Timer(0.3, os.kill, (victim, signal.SIGKILL)).start()
                return add_up(self, Slowly(kernel), block_entries)
            return add_up(self, kernel, block_entries)

        monkeypatch.setattr(DaskRows, "_sum", watched)
        found = LogisticRegression(tol=1e-8).fit(*data)
        assert answers[0] is False
        assert len(answers) > 2
        assert_array_equal(found.coef_, expected.coef_)
        assert_array_equal(found.intercept_, expected.intercept_)
        client.wait_for_workers(2)
        assert victim not in client.run(os.getpid).values()


class Slowly:
    """A kernel that takes a while."""

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel

    def __call__(self, block: Any) -> Any:
        time.sleep(0.4)
        return self.kernel(block)


@pytest.mark.parametrize(
    ("second", "expected"), [("y", {0: (0, 1, None), 7: (7, 2, None)}), ("z", {})]
)
def test_a_worker_that_has_written_a_chunk_to_disk_gives_no_sum(second: str, expected: Any) -> None:
    data = SimpleNamespace(memory={"x": 1, "y": 2}, disk={"z": 3})
    jobs = {"here": {0: ("x", None), 7: (second, None)}, "there": {3: ("w",)}}
    with ThreadPoolExecutor(1) as threads:
        worker = SimpleNamespace(data=data, address="here", executors={"default": threads})
        task = Sent(lambda number, *parts: (number, *parts))
        assert asyncio.run(dask_direct._sums_of(task, jobs, worker)) == expected


def test_without_a_cluster_nobody_is_asked(answers: Any) -> None:
    with dask.config.set(scheduler="threads"):
        GaussianClassifier().fit(*lazy(2))
    assert answers == [False]
