"""What is measured of files that do not fit in memory: the speed of a pass, and the peak of memory.

The files are Parquet as pyarrow writes it, in a folder that is gone after the run. Both sides read
all columns from the cache of the system, which holds the files after the first time. A pass is one
of a fit to rows that were fitted to before; a whole fit has the first pass too.
"""

import os
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from benchmarks.bayes import only_variant
from benchmarks.contender import Contender
from benchmarks.measures import Scale
from benchmarks.memory import peak_so_far
from benchmarks.result import Result, Target, duration, result
from benchmarks.timing import two_threads

COLUMNS = 20
FILE_ROWS = 1_000_000
TURNS = 5


class Measured(NamedTuple):
    """Seconds of a pass of ours and of pyarrow alone, passes of the fit, and its peak in bytes.

    `whole` are the seconds of a fit to files after a new `scan`, with its first pass.
    """

    ours: float
    theirs: float
    passes: int
    peak: int | None
    whole: float


@dataclass(frozen=True)
class FilePass:
    """Speed of a pass of the fit, as a share of that with which pyarrow alone reads the files."""

    ours: Contender
    data: str
    n_rows: int
    n_classes: int
    target: Target | None = None

    what = "speed of a pass / of pyarrow's scan,"

    @property
    def name(self) -> str:
        return f"{self.what} {self.ours.name}"

    def run(self, scale: Scale) -> Result:
        found = self.measured(scale)
        return result(
            self.name,
            self.data,
            f"{duration(found.ours)} a pass, {found.passes} passes",
            f"{duration(found.theirs)} (pyarrow)",
            found.theirs / found.ours,
            self.target,
        )

    def measured(self, scale: Scale) -> Measured:
        return measured(only_variant(self.ours), self.n_rows // scale.shrink, self.n_classes)


class FileFit(FilePass):
    """Speed of a whole fit, its first pass and all, against as many scans as it makes passes."""

    what = "speed of a whole fit / of pyarrow's scans,"

    def run(self, scale: Scale) -> Result:
        found = self.measured(scale)
        theirs = found.passes * found.theirs
        return result(
            self.name,
            self.data,
            f"{duration(found.whole)}, {found.passes} passes",
            f"{duration(theirs)} (pyarrow)",
            theirs / found.whole,
            self.target,
        )


class FileMemory(FilePass):
    """The peak of resident memory of a process that does nothing but such a fit, in megabytes."""

    what = "megabytes of a process that fits to files,"

    def run(self, scale: Scale) -> Result:
        peak = self.measured(scale).peak
        value = None if peak is None else peak / 2**20
        return result(self.name, self.data, "", "", value, self.target)


@lru_cache
def folder(n_rows: int, n_classes: int) -> tempfile.TemporaryDirectory[str]:
    """The files, which live as long as the run."""
    import pyarrow as pa
    from pyarrow import parquet

    out = tempfile.TemporaryDirectory()
    random = np.random.default_rng(0)
    slopes = random.normal(size=(COLUMNS, n_classes)) / 3
    for number, low in enumerate(range(0, n_rows, FILE_ROWS)):
        n = min(FILE_ROWS, n_rows - low)
        X = random.normal(size=(n, COLUMNS))
        y = (X @ slopes + random.gumbel(size=(n, n_classes))).argmax(axis=1).astype(np.int8)
        table = {f"x{j}": X[:, j] for j in range(COLUMNS)} | {"y": y}
        parquet.write_table(pa.table(table), Path(out.name) / f"part-{number:04d}.parquet")
    os.sync()  # the system shall not be busy with them when others write
    return out


@lru_cache
def measured(new: Callable[[], Any], n_rows: int, n_classes: int) -> Measured:
    """In a fresh process, so that the peak is that of this fit."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:
        return fresh.submit(_measure, new, folder(n_rows, n_classes).name).result()


def _measure(new: Callable[[], Any], path: str) -> Measured:
    from posteriori import scan

    with two_threads():
        rows = scan(path, target="y")
        found, peak = new().fit(rows).passes_, peak_so_far()
        again = [new().fit(rows).passes_ for _ in range(TURNS)]
        del rows  # and its cache
        whole = min(_seconds(lambda: new().fit(scan(path, target="y"))) for _ in range(TURNS))
        theirs = min(_seconds(lambda: _scan(path)) for _ in range(TURNS + 1))
    ours = min(log.seconds / log.passes for log in again)
    return Measured(ours, theirs, found.passes, peak, whole)


def _seconds(call: Callable[[], Any]) -> float:
    begun = perf_counter()
    call()
    return perf_counter() - begun


def _scan(path: str) -> None:
    """What pyarrow alone does."""
    from pyarrow import dataset

    for batch in dataset.dataset(path).to_batches():
        _ = batch.num_rows
