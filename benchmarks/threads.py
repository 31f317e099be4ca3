"""Two threads for each side, no more."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits

THREADS = 2


@contextmanager
def two_threads() -> Iterator[None]:
    """Run on two cores, with BLAS and OpenMP held to two threads."""
    can_pin = hasattr(os, "sched_getaffinity")
    cores = os.sched_getaffinity(0) if can_pin else set()
    if can_pin:
        os.sched_setaffinity(0, sorted(cores)[:THREADS])
    try:
        with threadpool_limits(THREADS):
            yield
    finally:
        if can_pin:
            os.sched_setaffinity(0, cores)
