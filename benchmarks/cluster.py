"""Passes of a logistic fit on a Dask cluster of two worker processes with one thread each.

The rows are in memory on one side, and in chunks that the workers hold on the other.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.bayes import only_variant
from benchmarks.contender import Contender
from benchmarks.measures import Scale
from benchmarks.result import Result, Target, duration, result

COLUMNS = 50
CHUNKS = 4
WORKERS = 2

Data = tuple[Any, Any]


@dataclass(frozen=True)
class ClusterPass:
    """Time of a pass for value and gradient in Dask, over that in memory with as many threads."""

    ours: Contender
    data: str
    n_rows: int
    target: Target

    what = "gradient pass on two workers / in memory,"
    hessian = "none"

    @property
    def name(self) -> str:
        return f"{self.what} {self.ours.name}"

    def run(self, scale: Scale) -> Result:
        new = only_variant(self.ours)
        with on_cluster(self.n_rows // scale.shrink) as (memory, dask):
            tasks = {"memory": self._pass(new, memory), "Dask": self._pass(new, dask)}
            times = scale.best_times(tasks)
        return result(
            self.name,
            self.data,
            duration(times["Dask"]),
            f"{duration(times['memory'])} (in memory)",
            times["Dask"] / times["memory"],
            self.target,
        )

    def _pass(self, new: Callable[[], Any], data: Data) -> Callable[[], Any]:
        model = new().fit(*data)
        objective, w = model._inference.objective, model.solution_.parameters
        return lambda: objective(w, self.hessian)


class ClusterHessian(ClusterPass):
    """The same with the Hessian."""

    what = "Hessian pass on two workers / in memory,"
    hessian = "full"


@contextmanager
def on_cluster(n_rows: int) -> Iterator[tuple[Data, Data]]:
    """The same rows in memory and on the workers of a cluster that ends with the block."""
    import dask
    import dask.array as da
    from distributed import Client, LocalCluster, wait

    size = n_rows // CHUNKS
    parts = [_chunk(seed, size) for seed in range(CHUNKS)]
    X, y = (np.concatenate(each) for each in zip(*parts, strict=True))
    del parts
    with (
        warnings.catch_warnings(action="ignore"),
        LocalCluster(
            n_workers=WORKERS, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        Client(cluster),
    ):
        delayed = [dask.delayed(_chunk, nout=2)(seed, size) for seed in range(CHUNKS)]
        rows = da.concatenate([da.from_delayed(a, (size, COLUMNS), float) for a, _ in delayed])
        labels = da.concatenate([da.from_delayed(b, (size,), np.int64) for _, b in delayed])
        rows, labels = dask.persist(rows, labels)
        wait([rows, labels])
        yield (X, y), (rows, labels)


def _chunk(seed: int, n_rows: int) -> Data:
    """Independent columns, and two classes."""
    slopes = np.random.default_rng(0).normal(size=(COLUMNS, 2)) / 5
    random = np.random.default_rng([1, seed])
    X = random.normal(size=(n_rows, COLUMNS))
    return X, (X @ slopes + random.gumbel(size=(n_rows, 2))).argmax(axis=1)
