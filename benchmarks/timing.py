"""Time two sides fairly: turn by turn in one process, the best turn of each."""

from collections.abc import Callable, Mapping
from time import perf_counter, sleep
from timeit import timeit

Task = Callable[[], object]

MOST_TURNS = 40

REST = 0.05
"""Seconds before each turn, in which the idle BLAS threads of the other side stop spinning."""


def best_times(
    tasks: Mapping[str, Task], *, turns: int, calls: int = 1, seconds: float = 0.0
) -> dict[str, float]:
    """Seconds of one call of each task: the best of its turns, a turn being `calls` calls.

    At least `turns` turns each, and as many more as fit into `seconds`: quick tasks suffer most
    from whatever else the machine is doing.
    """
    best = dict.fromkeys(tasks, float("inf"))
    start, done = perf_counter(), 0
    while done < turns or (perf_counter() - start < seconds and done < MOST_TURNS):
        for name, task in tasks.items():
            sleep(REST)
            best[name] = min(best[name], timeit(task, number=calls) / calls)
        done += 1
    return best


def calls_within(task: Task, seconds: float, most: int) -> int:
    """How many calls of `task` fit into `seconds`, from one to `most`.

    The call that finds out also pays for thread pools and first imports.
    """
    task()
    start = perf_counter()
    task()
    return max(1, min(most, int(seconds / (perf_counter() - start + 1e-9))))
