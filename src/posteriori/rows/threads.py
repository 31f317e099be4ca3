"""Threads over blocks, with BLAS on one thread each."""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

from posteriori.errors import ParameterError

T = TypeVar("T")
R = TypeVar("R")

_limit: int | None = None


def available_cores() -> int:
    """How many cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def thread_count() -> int:
    """How many threads a sum over rows uses now."""
    return _limit or available_cores()


@contextmanager
def threads(n: int) -> Iterator[None]:
    """Use `n` threads inside the block. The answers do not depend on it, to the last bit.

    >>> with threads(1):
    ...     thread_count()
    1
    """
    global _limit
    if n < 1:
        raise ParameterError(f"threads({n}) cannot work.", "Ask for at least one thread.")
    before, _limit = _limit, n
    try:
        yield
    finally:
        _limit = before


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


_lock = threading.Lock()
_inside = 0
_limiter: Any = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread inside the block, which may be entered by several threads at once.

    Our own threads share the cores already. NumPy and SciPy each bring a BLAS whose idle workers
    keep spinning for a while, in the way of the other's: a small product then takes 16 ms.
    """
    global _inside, _limiter
    with _lock:
        if _inside == 0:
            _limiter = _blas().limit(limits=1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _limiter.restore_original_limits()


@cache
def _pool(size: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(size, thread_name_prefix="posteriori")


def map_in_order(task: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
    """`task` of each item, in the order of the items; the first failing item's error is raised."""
    size = min(thread_count(), len(items))
    # BLAS is held to one thread even when one thread works: the bits must not depend on `size`.
    with one_blas_thread():
        yield from (map(task, items) if size <= 1 else _pool(size).map(task, items))


def _forget_after_fork() -> None:
    """A forked child has none of its parent's threads: it makes pools and a lock of its own."""
    global _lock, _inside
    _pool.cache_clear()
    _lock, _inside = threading.Lock(), 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
