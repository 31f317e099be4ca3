"""Time two sides in turns in one process, two threads each; the best turn of each counts."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from time import perf_counter, sleep
from timeit import timeit

from threadpoolctl import threadpool_limits

Task = Callable[[], object]

THREADS = 2

MOST_TURNS = 40

SAMPLE = 0.01
"""Seconds that a sample of quick calls takes at least."""

LONG = 1.0
"""Seconds after which a call is known to be long without a second look."""

REST = 0.05
"""Seconds before each turn, in which the idle BLAS threads of the other side stop spinning."""


def best_times(
    tasks: Mapping[str, Task], *, turns: int, turn_seconds: float, seconds: float = 0.0
) -> dict[str, float]:
    """Seconds of one call of each task, at its best.

    The tasks take turns of about `turn_seconds` each: at least `turns` of them, and as many more
    as fit into `seconds`. Quick calls are timed many at once.
    """
    calls = {name: _calls_in_a_sample(task) for name, task in tasks.items()}
    best = dict.fromkeys(tasks, float("inf"))
    start, done = perf_counter(), 0
    while done < turns or (perf_counter() - start < seconds and done < MOST_TURNS):
        for name, task in tasks.items():
            sleep(REST)
            end = perf_counter() + turn_seconds
            while True:
                best[name] = min(best[name], timeit(task, number=calls[name]) / calls[name])
                if perf_counter() > end:
                    break
        done += 1
    return best


def _calls_in_a_sample(task: Task) -> int:
    """How many calls make a sample long enough for the clock.

    The first call also pays for thread pools and first imports.
    """
    if timeit(task, number=1) > LONG:
        return 1
    return max(1, int(SAMPLE / (timeit(task, number=1) + 1e-9)))


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
