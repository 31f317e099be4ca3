"""What is measured on a Dask cluster: two worker processes of one thread each, on this machine.

Both sides have the same rows, ours in Dask as chunks that the workers keep in memory.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from benchmarks import losses
from benchmarks.accuracy import ENOUGH
from benchmarks.bayes import fewer, only_variant
from benchmarks.contender import Contender
from benchmarks.measures import Scale
from benchmarks.problem import PRIOR
from benchmarks.result import Result, Target, duration, result

COLUMNS = 50
CHUNKS = 4
WORKERS = 2
EXACT = 1e-9
"""A `tol` with which the optimum is found that others are held against."""


class Everywhere(NamedTuple):
    """The same rows in memory and in Dask."""

    X: np.ndarray
    y: np.ndarray
    dask_X: Any
    dask_y: Any


@dataclass(frozen=True)
class ClusterCase:
    """A measure on so many rows and classes."""

    ours: Contender
    data: str
    n_rows: int
    n_classes: int = 2
    target: Target | None = None

    what = ""

    @property
    def name(self) -> str:
        return f"{self.what} {self.ours.name}"

    def run(self, scale: Scale) -> Result:
        with on_cluster(self.n_rows // scale.shrink, self.n_classes) as rows:
            return self.measured(rows, scale)

    def measured(self, rows: Everywhere, scale: Scale) -> Result:
        raise NotImplementedError


class ClusterPass(ClusterCase):
    """Time of a pass for value and gradient in Dask, over that in memory with as many threads."""

    what = "gradient pass on two workers / in memory,"
    hessian = "none"

    def measured(self, rows: Everywhere, scale: Scale) -> Result:
        new = only_variant(self.ours)
        fits = {"memory": new().fit(rows.X, rows.y), "Dask": new().fit(rows.dask_X, rows.dask_y)}
        times = scale.best_times({where: self._pass(fit) for where, fit in fits.items()})
        return result(
            self.name,
            self.data,
            duration(times["Dask"]),
            f"{duration(times['memory'])} (in memory)",
            times["Dask"] / times["memory"],
            self.target,
        )

    def _pass(self, fit: Any) -> Callable[[], Any]:
        objective, w = fit._inference.objective, fit.solution_.parameters
        return lambda: objective(w, self.hessian)


class ClusterHessian(ClusterPass):
    """The same with the Hessian."""

    what = "Hessian pass on two workers / in memory,"
    hessian = "full"


class ClusterFit(ClusterCase):
    """Time of a whole fit in Dask, the first pass included, over that in memory."""

    what = "fit on two workers / in memory,"

    def measured(self, rows: Everywhere, scale: Scale) -> Result:
        new = only_variant(self.ours)
        times = scale.best_times(
            {
                "Dask": lambda: new().fit(rows.dask_X, rows.dask_y),
                "memory": lambda: new().fit(rows.X, rows.y),
            }
        )
        passes = new().fit(rows.dask_X, rows.dask_y).passes_.passes
        return result(
            self.name,
            self.data,
            f"{duration(times['Dask'])}, {passes} passes",
            f"{duration(times['memory'])} (in memory)",
            times["Dask"] / times["memory"],
            self.target,
        )


class ClusterSame(ClusterCase):
    """The largest relative difference of coefficients, standard errors and evidence."""

    what = "largest difference of Dask from memory,"

    def measured(self, rows: Everywhere, scale: Scale) -> Result:
        new = only_variant(self.ours)
        here, there = (new().fit(*data) for data in (rows[:2], rows[2:]))
        found = {
            "coefficients": _apart(here.coef_, there.coef_),
            "errors": _apart(*(fit.posterior_.standard_deviation for fit in (here, there))),
            "evidence": abs(there.log_evidence_ / here.log_evidence_ - 1),
        }
        told = ", ".join(f"{name} {value:.0e}" for name, value in found.items())
        return result(self.name, self.data, told, "", max(found.values()), self.target)


class ClusterDuel(ClusterCase):
    """Time of a fit on the cluster, against dask-ml's fastest solver that reaches the optimum."""

    what = "fit on two workers, times faster than dask-ml,"

    def measured(self, rows: Everywhere, scale: Scale) -> Result:
        new = only_variant(self.ours)
        best = _objective(new(tol=EXACT).fit(rows.X, rows.y), rows)
        calls = {name: _fit_to(rows, make) for name, make in {"ours": new, **_rivals()}.items()}
        off = {name: abs(_objective(fit(), rows) / best - 1) for name, fit in calls.items()}
        near = {name: calls[name] for name in calls if off[name] <= ENOUGH}
        times = fewer(scale).best_times(near)
        ours = times.pop("ours")
        fastest = min(times, key=lambda name: times[name])
        return result(
            self.name,
            self.data,
            f"{duration(ours)} ({off['ours']:.0e} off)",
            f"{duration(times[fastest])} ({fastest}, {off[fastest]:.0e} off)",
            times[fastest] / ours,
            self.target,
            note=", ".join(name for name in _rivals() if name not in times),
        )


def _fit_to(rows: Everywhere, make: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: make().fit(rows.dask_X, rows.dask_y)


def _rivals() -> dict[str, Callable[[], Any]]:
    """dask-ml's solvers whose steps all workers take together; admm took 40 s for a tenth."""
    from dask_ml.linear_model import LogisticRegression

    def made(solver: str, tol: float) -> Callable[[], Any]:
        return lambda: LogisticRegression(C=1 / PRIOR, solver=solver, tol=tol)

    return {
        f"dask-ml {solver}": made(solver, tol)
        for solver, tol in (("lbfgs", 1e-4), ("newton", 1e-4), ("gradient_descent", 1e-8))
    }


def _objective(model: Any, rows: Everywhere) -> float:
    """The mean of what is made small, at the coefficients of a model of two classes."""
    w, first = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
    loss = losses.LOGISTIC.value((rows.X @ w + first)[:, None], rows.y)
    return float(loss.sum() + 0.5 * PRIOR * w @ w) / len(rows.y)


def _apart(a: np.ndarray, b: np.ndarray) -> float:
    return float(abs(a - b).max() / abs(a).max())


@contextmanager
def on_cluster(n_rows: int, n_classes: int) -> Iterator[Everywhere]:
    """Rows in memory and on the workers of a cluster that ends with the block."""
    import dask
    import dask.array as da
    from distributed import Client, LocalCluster, wait

    size = n_rows // CHUNKS
    parts = [_chunk(seed, size, n_classes) for seed in range(CHUNKS)]
    X, y = (np.concatenate(each) for each in zip(*parts, strict=True))
    del parts
    with (
        warnings.catch_warnings(action="ignore"),
        LocalCluster(
            n_workers=WORKERS, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        Client(cluster),
    ):
        delayed = [dask.delayed(_chunk, nout=2)(seed, size, n_classes) for seed in range(CHUNKS)]
        there = da.concatenate([da.from_delayed(a, (size, COLUMNS), float) for a, _ in delayed])
        labels = da.concatenate([da.from_delayed(b, (size,), np.int64) for _, b in delayed])
        there, labels = dask.persist(there, labels)
        wait([there, labels])
        yield Everywhere(X, y, there, labels)


def _chunk(seed: int, n_rows: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Independent columns, and labels by a softmax."""
    slopes = np.random.default_rng(0).normal(size=(COLUMNS, n_classes)) / 5
    random = np.random.default_rng([1, seed])
    X = random.normal(size=(n_rows, COLUMNS))
    return X, (X @ slopes + random.gumbel(size=(n_rows, n_classes))).argmax(axis=1)
