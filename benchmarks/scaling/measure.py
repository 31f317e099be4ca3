"""The constants of the model on this machine, and how near it comes to what is measured.

Seconds of one core are those that the process was at work, so that other work on the machine
counts for little. Passes on a cluster are timed by the clock.
"""

import pickle
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from time import perf_counter, process_time, thread_time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from benchmarks.scaling.cost import Cost, Kind, Machine, Shape, n_sums, operations, passes
from benchmarks.scaling.simulate import Tasks, simulate
from posteriori import LogisticRegression
from posteriori.design.columns import Columns
from posteriori.design.standardise import Standard
from posteriori.likelihood.logistic import SignedLogisticLoss
from posteriori.likelihood.softmax import SoftmaxLoss
from posteriori.linalg import cholesky
from posteriori.models.targets import coded, of_many, signs
from posteriori.rows.dask import DaskRows
from posteriori.rows.in_memory import MemoryRows, read_rows
from posteriori.rows.threads import one_blas_thread
from posteriori.statistics.local_quadratic import GatherQuadratic, LocalQuadratic
from posteriori.statistics.moments import GatherMoments
from posteriori.typing import Array

SHAPES: tuple[tuple[Kind, Shape], ...] = (
    ("gradient", Shape(400_000, 20)),
    ("gradient", Shape(50_000, 200)),
    ("gradient", Shape(5_000, 2000)),
    ("gradient", Shape(100_000, 20, 10)),
    ("hessian", Shape(200_000, 20)),
    ("hessian", Shape(40_000, 200)),
    ("hessian", Shape(5_000, 2000)),
    ("hessian", Shape(20_000, 20, 10)),
    ("moments", Shape(400_000, 20)),
    ("moments", Shape(50_000, 200)),
    ("moments", Shape(5_000, 2000)),
)
"""Passes in the memory of a worker, to which the constants are fitted."""

CLUSTER: tuple[tuple[Kind, Shape, int], ...] = (
    ("gradient", Shape(2_000, 20), 100),
    ("gradient", Shape(20_000_000, 20), 500_000),
    ("hessian", Shape(800_000, 200), 25_000),
    ("moments", Shape(1_000_000, 200), 50_000),
)
"""Passes on two workers, and the rows of their chunks."""

FITS = (
    Shape(400_000, 20),
    Shape(2_000_000, 20),
    Shape(400_000, 20, 4),
    Shape(150_000, 200),
    Shape(100_000, 700),
    Shape(20_000, 1000),
)
"""Fits whose passes are counted."""

TURNS, TASKS = 3, 300
BLOCK_ENTRIES = 2**19
LOOPBACK = 2e9


class Compared(NamedTuple):
    """Seconds that the model says, and those that were measured."""

    kind: Kind
    shape: Shape
    predicted: float
    measured: float


class OnCore(NamedTuple):
    """A pass of one core in a Dask worker, and its seconds outside of one."""

    worker: Compared
    outside: float


class OnCluster(NamedTuple):
    """The same of a pass in so many chunks: what its workers do, and what the clock shows."""

    chunks: int
    work: Compared
    clock: Compared


class Measured(NamedTuple):
    """All that is measured. `decode` is how many bytes of numbers a core reads from Parquet."""

    machine: Machine
    decode: float
    one_core: list[OnCore]
    cluster: list[OnCluster]
    fits: list[tuple[Shape, int, int]]


def measure() -> Measured:
    """The constants, rounded, and the model beside passes on one core, on two, and whole fits."""
    with two_workers() as client:
        of_tasks = _task_seconds(client)  # first: our own tasks set how workers keep memory
        times = [client.submit(pass_seconds, *each, pure=False).result() for each in SHAPES]
        counted = np.array([operations(*each) for each in SHAPES])
        # Shares of each time, so that short passes count as much as long ones.
        found, _ = nnls(counted / np.array(times)[:, None], np.ones(len(times)))
        of_sums = (_add_seconds(), _pickle_seconds(), _factor_seconds())
        constants = (*found, *of_sums, *of_tasks)
        machine = Machine(*(float(f"{each:.3g}") for each in constants))
        on_cluster = [_on_cluster(client, *each, machine) for each in CLUSTER]
    alone = [
        OnCore(
            Compared(kind, shape, machine.seconds(operations(kind, shape)), seconds),
            pass_seconds(kind, shape),
        )
        for (kind, shape), seconds in zip(SHAPES, times, strict=True)
    ]
    fits = [(shape, sum(passes(shape)), counted_passes(shape)) for shape in FITS]
    return Measured(machine, _decode_speed(), alone, on_cluster, fits)


# One core.


def columns_of(shape: Shape) -> tuple[Array, NDArray[np.int64]]:
    """Independent columns, and labels drawn by a softmax of them."""
    random = np.random.default_rng(0)
    X = random.normal(size=(shape.n, shape.d))
    slopes = random.normal(size=(shape.d, shape.K)) / np.sqrt(shape.d)
    return X, (X @ slopes + random.gumbel(size=(shape.n, shape.K))).argmax(axis=1)


def rows_of(shape: Shape) -> MemoryRows:
    return read_rows(*columns_of(shape), classes=np.arange(shape.K))


def kernel_of(kind: Kind, shape: Shape) -> Callable[[Any], Any]:
    """What a model sums in such a pass."""
    rows = rows_of(replace(shape, n=2))
    columns, classes = Columns(rows.schema), np.arange(shape.K)
    if kind == "moments":
        return GatherMoments(columns, classes, (None,) * shape.K)
    loss = SignedLogisticLoss() if shape.K == 2 else SoftmaxLoss()
    _, target = coded(rows, signs if shape.K == 2 else of_many(shape.K), once=False)
    standard = Standard(np.zeros(shape.d), np.ones(shape.d), True)
    theta = np.random.default_rng(1).normal(0, 0.1, (shape.c, shape.q))
    return GatherQuadratic(
        columns, standard, loss, target, theta, "full" if kind == "hessian" else "none"
    )


def pass_seconds(kind: Kind, shape: Shape) -> float:
    """A pass over rows in memory by one core."""
    rows, kernel = rows_of(shape), kernel_of(kind, shape)
    return best(lambda: rows.add_up(kernel, BLOCK_ENTRIES))


def best(task: Callable[[], object]) -> float:
    """Seconds of this thread, the least of a few turns."""
    found = []
    with one_blas_thread():
        for _ in range(TURNS):
            begun = thread_time()
            task()
            found.append(thread_time() - begun)
    return min(found)


def _large_sum() -> LocalQuadratic:
    return LocalQuadratic(0.0, np.ones((1, 1500)), np.ones((1500, 1500)))


def _add_seconds() -> float:
    one = _large_sum()
    return best(lambda: one + one) / (8 * 1500**2)


def _pickle_seconds() -> float:
    one = _large_sum()
    return best(lambda: pickle.loads(pickle.dumps(one))) / (8 * 1500**2)


def _factor_seconds() -> float:
    matrix = np.eye(1500) + 0.1
    return best(lambda: cholesky(matrix)) / 1500**3


def _decode_speed() -> float:
    """Bytes of numbers a second from a Parquet file that the system holds in memory."""
    pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    X, _ = columns_of(Shape(500_000, 20))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        parquet.write_table(pyarrow.table({f"x{j}": X[:, j] for j in range(20)}), path)
        parquet.read_table(path)  # the first time pays for imports
        begun = process_time()  # other threads may decode
        parquet.read_table(path, use_threads=False)
        return X.nbytes / (process_time() - begun)


# Two workers.


@contextmanager
def two_workers() -> Iterator[Any]:
    """A client of two processes of one thread each."""
    distributed = import_module("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.wait_for_workers(2)
        yield client


@lru_cache(maxsize=1)
def _kept(shape: Shape) -> tuple[Array, NDArray[np.int64]]:
    return columns_of(shape)


def _features(number: int, shape: Shape) -> Array:
    """Columns of a chunk, made once by each worker: what is left is the cost of summing them."""
    return _kept(shape)[0]


def _labels(number: int, shape: Shape) -> NDArray[np.int64]:
    return _kept(shape)[1]


def chunked_rows(shape: Shape, chunk_rows: int) -> DaskRows:
    """Rows in chunks that are all the same, of two tasks each."""
    dask = import_module("dask")
    part = replace(shape, n=chunk_rows)
    features, labels = (dask.delayed(f, pure=False) for f in (_features, _labels))
    return DaskRows(
        tuple(
            (features(i, part), labels(i, part), None, None) for i in range(shape.n // chunk_rows)
        )
    )


def _task_seconds(client: Any) -> tuple[float, float]:
    """Of a task, in client and scheduler, which share this process; and in the workers."""
    shape = Shape(4 * TASKS, 2)
    rows, kernel = chunked_rows(shape, 4), kernel_of("gradient", shape)
    _ = rows.look
    rows.map_sum(kernel)
    workers, begun = _worked(client), process_time()
    for _ in range(TURNS):
        rows.map_sum(kernel)
    tasks = TURNS * (3 * TASKS + n_sums(TASKS))
    here = process_time() - begun
    return here / tasks, (_worked(client) - workers) / tasks


def _worked(client: Any) -> float:
    """Seconds that all workers have been at work."""
    return float(sum(client.run(process_time).values()))


def _on_cluster(
    client: Any, kind: Kind, shape: Shape, chunk_rows: int, machine: Machine
) -> OnCluster:
    """Passes on two workers beside the simulation, where nothing is read."""
    rows, kernel = chunked_rows(shape, chunk_rows), kernel_of(kind, shape)
    _ = rows.look
    clock, workers = [], _worked(client)
    for _ in range(TURNS):
        begun = perf_counter()
        rows.map_sum(kernel, block_entries=BLOCK_ENTRIES)
        clock.append(perf_counter() - begun)
    worked = (_worked(client) - workers) / TURNS
    here = replace(machine, read=np.inf, network=LOOPBACK)
    cost = Cost(kind, shape, 2, chunk_rows, here)
    return OnCluster(
        cost.chunks,
        Compared(kind, shape, 2 * cost.work_seconds, worked),
        Compared(kind, shape, simulate(Tasks.of(cost)).seconds, min(clock)),
    )


# Whole fits.


def counted_passes(shape: Shape) -> int:
    """Passes of a fit to Dask arrays."""
    dask, array = import_module("dask"), import_module("dask.array")
    X, y = columns_of(shape)
    size = shape.n // 8
    with dask.config.set(scheduler="synchronous"):
        model = LogisticRegression().fit(
            array.from_array(X, chunks=(size, shape.d)), array.from_array(y, chunks=size)
        )
    return int(model.passes_.passes)
