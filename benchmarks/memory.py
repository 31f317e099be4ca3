"""How much memory a fit takes beyond its data: the peak of a fresh process.

The kernel keeps the high-water mark of the resident set (VmHWM) and sets it back on request
(clear_refs), so no short peak is missed. Linux only; None on other systems.
"""

import ctypes
import gc
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.data import formed
from benchmarks.data.forms import as_made
from benchmarks.timing import two_threads

STATUS = Path("/proc/self/status")
CLEAR_REFS = Path("/proc/self/clear_refs")
WARM_UP_ROWS = 2_000


def peak_in_fresh_process(
    estimator: Callable[[], Any],
    data: str,
    shrink: int,
    form: Callable[[Any], Any] = as_made,
) -> int | None:
    """Bytes beyond the data at the worst moment of a fit, in a process that does nothing else."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:
        return fresh.submit(_peak_of_fit, estimator, data, shrink, form).result()


def _peak_of_fit(
    estimator: Callable[[], Any], data: str, shrink: int, form: Callable[[Any], Any]
) -> int | None:
    if not CLEAR_REFS.exists():
        return None
    X, y = formed(data, shrink, form)
    with two_threads(), warnings.catch_warnings(action="ignore"):
        # Imports, thread pools and the buffers of BLAS belong to the process, not to this fit.
        estimator().fit(X[:WARM_UP_ROWS], y[:WARM_UP_ROWS])
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        CLEAR_REFS.write_text("5")
        before = _status("VmRSS")
        estimator().fit(X, y)
    return max(0, _status("VmHWM") - before)


def peak_so_far() -> int | None:
    """The largest resident set that this process has had, in bytes."""
    return _status("VmHWM") if STATUS.exists() else None


def _status(field: str) -> int:
    """A size in bytes out of what the kernel says of this process."""
    lines = STATUS.read_text().splitlines()
    line = next(line for line in lines if line.startswith(field + ":"))
    return int(line.split()[1]) * 1024
