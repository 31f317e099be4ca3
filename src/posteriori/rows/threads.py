"""Threads over blocks, with BLAS on one thread each."""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TypeVar
from weakref import WeakValueDictionary

from threadpoolctl import LibController

from posteriori.errors import ParameterError
from posteriori.linalg import blas_libraries

T = TypeVar("T")
R = TypeVar("R")

_n_threads: ContextVar[int | None] = ContextVar("threads", default=None)


def thread_count() -> int:
    """How many threads a sum over rows uses now; all cores, unless `threads` says otherwise."""
    is_known = hasattr(os, "sched_getaffinity")  # the cores that this process may run on
    return _n_threads.get() or (len(os.sched_getaffinity(0)) if is_known else os.cpu_count() or 1)


@contextmanager
def threads(n: int) -> Iterator[None]:
    """Use `n` threads inside the block. Results do not depend on it, to the last bit.

    The setting belongs to the context (`contextvars`): other Python threads keep their own.

    >>> with threads(1):
    ...     thread_count()
    1
    """
    if n < 1:
        raise ParameterError(f"threads({n}) cannot work.", "Ask for at least one thread.")
    before = _n_threads.set(n)
    try:
        yield
    finally:
        _n_threads.reset(before)


class _OneBlasThread:
    """BLAS on one thread, as long as anything refers to this object."""

    _before: Sequence[tuple[LibController, int]] = ()

    def __init__(self) -> None:
        libraries = blas_libraries().select(user_api="blas").lib_controllers
        self._before = [(library, library.num_threads) for library in libraries]
        for library in libraries:
            library.set_num_threads(1)

    def restore(self) -> None:
        for library, n in self._before:
            library.set_num_threads(n)

    __del__ = restore


_lock = threading.Lock()
_active = WeakValueDictionary[str, _OneBlasThread]()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread inside the block, which several threads may enter at once.

    Our own threads share the cores already. NumPy and SciPy each bring a BLAS whose idle workers
    keep spinning for a while, in the way of the other's: a small product then takes 16 ms. Blocks
    are counted by references, so that an interrupt at any moment restores the threads.
    """
    with _lock:
        own = _active.get("blas") or _OneBlasThread()
        _active["blas"] = own
    try:
        yield
    finally:
        with _lock:
            del own


def map_in_order(task: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """`task(item)` for each item, in the order of the items, by several threads.

    Results do not pile up: at most two items a thread are waiting. The error of the first item that
    fails is raised.
    """
    size = thread_count()
    # BLAS has one thread even when one thread works: the bits must not depend on `size`.
    with one_blas_thread():
        if size == 1:
            yield from map(task, items)
            return
        waiting = deque[Future[R]]()
        try:
            for item in items:
                waiting.append(_pool(size).submit(task, item))
                if len(waiting) == 2 * size:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            wait([future for future in waiting if not future.cancel()])


@cache
def _pool(size: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(size, "posteriori", initializer=_n_threads.set, initargs=(1,))


def _reset_in_child() -> None:
    """In a forked child, which has no other threads: new pools, and BLAS with all its threads."""
    _pool.cache_clear()
    for limit in _active.values():
        limit.restore()
    _active.clear()
    _lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_reset_in_child
    )
