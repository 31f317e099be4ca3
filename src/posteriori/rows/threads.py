"""Threads over blocks, with BLAS on one thread each."""

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from typing import Any, Generic, TypeVar

from posteriori.errors import ParameterError
from posteriori.linalg import blas_libraries

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
            _limiter = blas_libraries().limit(limits=1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _limiter.restore_original_limits()


_here = threading.local()
"""Whether this thread is doing items of `map_in_order`."""


@cache
def _pool(size: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(size, thread_name_prefix="posteriori")


def map_in_order(
    task: Callable[[T], R],
    items: Iterable[T],
    receive: Callable[[R], object] = lambda result: None,
) -> None:
    """Hand `task` of each item to `receive`, in the order of the items.

    The calling thread works too, and each thread takes the next item when it is done with one, so
    that a pass costs one handing over, and results do not pile up. The error of the first item
    that fails is raised.
    """
    size = min(thread_count(), len(items)) if isinstance(items, Sized) else thread_count()
    # BLAS is held to one thread even when one thread works: the bits must not depend on `size`.
    with one_blas_thread():
        # Items of items are done by the thread that does the item: it would wait for itself else.
        if size <= 1 or getattr(_here, "is_working", False):
            for item in items:
                receive(task(item))
            return
        work = _Work(task, items, receive)
        others = [_pool(size - 1).submit(work.take_part) for _ in range(size - 1)]
        work.take_part()
        wait(others)
        work.raise_first_error()


class _Work(Generic[T, R]):
    """Items to be done by several threads, their results received in order."""

    def __init__(
        self, task: Callable[[T], R], items: Iterable[T], receive: Callable[[R], object]
    ) -> None:
        self._task, self._receive = task, receive
        self._items = enumerate(items)
        self._taking = threading.Lock()
        self._done: dict[int, R] = {}
        self._errors: dict[int, BaseException] = {}
        self._next = self._taken = 0
        self._lock = threading.Lock()

    def take_part(self) -> None:
        """Do the next item until none is left, or one has failed."""
        _here.is_working = True
        try:
            self._do_items()
        finally:
            _here.is_working = False

    def _do_items(self) -> None:
        while not self._errors and (taken := self._take()) is not None:
            place, item = taken
            try:
                self._hand_in(place, self._task(item))
            except BaseException as error:
                self._errors[place] = error

    def _take(self) -> tuple[int, T] | None:
        """The next item and its place; two threads may not ask a generator at once."""
        with self._taking:
            try:
                found = next(self._items, None)
            except BaseException as error:
                self._errors[self._taken] = error
                return None
            self._taken += 1
            return found

    def _hand_in(self, place: int, result: R) -> None:
        with self._lock:
            self._done[place] = result
            while self._next in self._done:
                self._receive(self._done.pop(self._next))
                self._next += 1

    def raise_first_error(self) -> None:
        if self._errors:
            raise self._errors[min(self._errors)]


def _forget_after_fork() -> None:
    """A forked child has none of its parent's threads: it makes pools and a lock of its own."""
    global _lock, _inside
    _pool.cache_clear()
    _lock, _inside = threading.Lock(), 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
