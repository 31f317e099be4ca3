"""What is measured: each class is one kind of case, with `run(scale)` giving one row."""

import subprocess
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Protocol

import numpy as np

from benchmarks.contender import Contender
from benchmarks.data import make, size_in_bytes
from benchmarks.memory import peak_in_fresh_process
from benchmarks.result import Result, Target, duration, result
from benchmarks.timing import Task, best_times, two_threads

AGREEMENT_ROWS = 20_000


@dataclass(frozen=True)
class Scale:
    """How large the data are (rows divided by `shrink`) and how long each side is timed.

    At least `turns` turns of about `turn_seconds`, and as many more as fit into `seconds`.
    """

    shrink: int = 1
    turns: int = 5
    turn_seconds: float = 0.3
    seconds: float = 5.0

    def best_times(self, tasks: Mapping[str, Task]) -> dict[str, float]:
        """Seconds of one call of each task, at its best, on two threads."""
        # Entered here too: a rival may have brought thread pools after the run began.
        with two_threads(), warnings.catch_warnings(action="ignore"):
            return best_times(
                tasks, turns=self.turns, turn_seconds=self.turn_seconds, seconds=self.seconds
            )


class Case(Protocol):
    """What stands in the table: a name to choose it by, and a row when it is run."""

    @property
    def name(self) -> str: ...

    @property
    def data(self) -> str: ...

    @property
    def target(self) -> Target | None: ...

    def run(self, scale: Scale) -> Result: ...


@dataclass(frozen=True)
class Comparison:
    """Ours against a rival on one data set."""

    ours: Contender
    rival: Contender
    data: str
    target: Target | None = None

    what = ""

    @property
    def name(self) -> str:
        return f"{self.what} {self.ours.name}"

    def row(self, ours: str, rival: str, value: float | None, *, valid: bool = True) -> Result:
        return result(self.name, self.data, ours, rival, value, self.target, valid=valid)

    def compare(self, task: Callable[[Any], Task], scale: Scale) -> Result:
        """Time `task` of every variant; the value is the rival's best time over our best."""
        ours = {self.ours.label(v): task(make) for v, make in self.ours.variants.items()}
        rival = {self.rival.label(v): task(make) for v, make in self.rival.variants.items()}
        times = scale.best_times(ours | rival)
        us, them = _fastest(times, ours), _fastest(times, rival)
        return self.row(
            duration(times[us]),
            f"{duration(times[them])} ({them})",
            self.value(times[us], times[them]),
        )

    def value(self, ours: float, rival: float) -> float:
        """How many times faster we are."""
        return rival / ours


class Fit(Comparison):
    """Time to fit. A small problem is fitted many times in a turn."""

    what = "fit"

    def run(self, scale: Scale) -> Result:
        X, y = make(self.data, scale.shrink)
        return self.compare(lambda new: lambda: new().fit(X, y), scale)


class FitWithin(Fit):
    """Time to fit, as a multiple of the rival's time."""

    what = "fit, our time / theirs:"

    def value(self, ours: float, rival: float) -> float:
        return ours / rival


class Predict(Comparison):
    """Time of `predict_proba` on all rows."""

    what = "predict_proba"

    def run(self, scale: Scale) -> Result:
        X, _ = make(self.data, scale.shrink)
        return self.compare(
            lambda new: partial(fitted(new, self.data, scale.shrink).predict_proba, X),
            scale,
        )


class PredictOne(Comparison):
    """Time of `predict_proba` on one row, over many calls."""

    what = "predict_proba, one row,"

    def run(self, scale: Scale) -> Result:
        X, _ = make(self.data, scale.shrink)
        row = X[:1]
        return self.compare(
            lambda new: partial(fitted(new, self.data, scale.shrink).predict_proba, row),
            scale,
        )


class Agreement(Comparison):
    """The largest difference between our posterior and that of any variant of the rival."""

    what = "largest |difference| of posteriors,"

    def run(self, scale: Scale) -> Result:
        X, _ = make(self.data, scale.shrink)
        rows = X[:AGREEMENT_ROWS]
        predictions = [
            {
                side.label(variant): fitted(new, self.data, scale.shrink).predict_proba(rows)
                for variant, new in side.variants.items()
            }
            for side in (self.ours, self.rival)
        ]
        ours = next(iter(predictions[0].values()))
        apart = {name: float(np.max(np.abs(p - ours))) for name, p in predictions[1].items()}
        worst = max(apart, key=apart.__getitem__)
        return self.row("", worst, apart[worst])


class Memory(Comparison):
    """Memory beyond the data during a fit, as a multiple of the data; the least of the rival's."""

    what = "memory of fit / data,"

    def run(self, scale: Scale) -> Result:
        X, _ = make(self.data, scale.shrink)
        size = size_in_bytes(X)
        ours, rival = (
            {
                side.label(variant): peak_in_fresh_process(new, self.data, scale.shrink)
                for variant, new in side.variants.items()
            }
            for side in (self.ours, self.rival)
        )
        if None in (*ours.values(), *rival.values()):
            return self.row("–", "–", None)
        us, them = _fastest(ours, ours), _fastest(rival, rival)
        return self.row(
            f"{ours[us] / size:.2f}", f"{rival[them] / size:.2f} ({them})", ours[us] / size
        )


@dataclass(frozen=True)
class ImportTime:
    """Seconds that one statement adds to `import sklearn.base`, in a fresh interpreter."""

    statement: str
    target: Target

    data = "after import sklearn.base"

    @property
    def name(self) -> str:
        return f"seconds of `{self.statement}`"

    def run(self, scale: Scale) -> Result:
        program = (
            "import sklearn.base, time; start = time.perf_counter()\n"
            f"{self.statement}\n"
            "print(time.perf_counter() - start)"
        )
        seconds = min(_run(program) for _ in range(scale.turns))
        return result(self.name, self.data, duration(seconds), "", seconds, self.target)


@lru_cache(maxsize=8)
def fitted(new: Callable[[], Any], data: str, shrink: int) -> Any:
    """The estimator that `new` makes, fitted; cached, because several cases need it."""
    X, y = make(data, shrink)
    return new().fit(X, y)


def _fastest(times: Mapping[str, Any], among: Mapping[str, object]) -> str:
    return min(among, key=times.__getitem__)


def _run(program: str) -> float:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return float(done.stdout)
