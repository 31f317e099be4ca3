"""Threads over items: order, errors, contexts, and children forked on the way."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import reduce

import pytest
from threadpoolctl import ThreadpoolController

from posteriori.errors import ParameterError
from posteriori.linalg import blas_libraries
from posteriori.rows.threads import (
    _OneBlasThread,
    map_in_order,
    one_blas_thread,
    thread_count,
    threads,
)


@pytest.mark.parametrize("n", [1, 3])
def test_results_arrive_in_order_few_of_them_wait_and_the_first_error_is_raised(n):
    begun, received = [], []

    def run(task, items):
        for result in map_in_order(task, items):
            received.append(result)

    def items(fails: bool) -> Iterator[int]:
        for i in range(40):
            begun.append(i)
            assert len(begun) - len(received) <= 2 * n
            yield i
        if fails:
            raise ValueError("no item 40")

    def task(i: int) -> int:
        if i in (3, 7):
            raise ValueError(f"item {i}")
        return i

    with threads(n):
        run(lambda i: i * i, items(fails=False))
        assert received == [i * i for i in range(40)]
        with pytest.raises(ValueError, match="item 3"):
            run(task, range(10))
        begun.clear()
        received.clear()
        with pytest.raises(ValueError, match="no item 40"):
            run(abs, items(fails=True))


def test_items_may_have_items_of_their_own_and_an_interrupt_stops_those_that_wait():
    def outer(i):
        return list(map_in_order(lambda j: 10 * i + j, range(3)))

    def fail(result, other):
        raise KeyboardInterrupt

    done: list[int] = []
    with threads(2):
        found = list(map_in_order(outer, range(4)))
        with pytest.raises(KeyboardInterrupt):
            reduce(fail, map_in_order(done.append, range(1000)), None)
    assert found == [[10 * i + j for j in range(3)] for i in range(4)]
    assert len(done) <= 4


def test_threads_of_one_context_are_not_those_of_another():
    both_inside, found = threading.Barrier(2), {}

    def use(n: int) -> None:
        with threads(n):
            both_inside.wait()
            found[n] = thread_count()
            both_inside.wait()
        found[-n] = thread_count()

    before = thread_count()
    users = [threading.Thread(target=use, args=(n,)) for n in (3, 5)]
    for user in users:
        user.start()
    for user in users:
        user.join()
    assert found == {3: 3, 5: 5, -3: before, -5: before}
    with pytest.raises(ParameterError, match="at least one thread"), threads(0):
        pass


def test_an_interrupt_at_any_moment_leaves_blas_its_threads():
    """A profile function raises after calls, where Python raises for the signal of Ctrl-C."""
    ours = {one_blas_thread.__wrapped__.__code__, _OneBlasThread.__init__.__code__}
    libraries = blas_libraries().select(user_api="blas").lib_controllers
    with ThreadpoolController().limit(limits=2, user_api="blas"):
        interrupted, moment = True, 0
        while interrupted:
            left = [moment]

            def profile(frame, event, arg, left=left):
                if frame.f_code in ours and event in ("call", "c_return"):
                    left[0] -= 1
                    if left[0] == -1:
                        raise KeyboardInterrupt

            sys.setprofile(profile)
            try:
                with one_blas_thread():
                    assert {library.num_threads for library in libraries} == {1}
            except KeyboardInterrupt:
                pass
            finally:
                sys.setprofile(None)
            interrupted = left[0] < 0
            assert {library.num_threads for library in libraries} == {2}
            moment += 1
    assert moment > 4


FORK = """
import os
import numpy as np
from threadpoolctl import threadpool_info
from posteriori import LogisticRegression
from posteriori.linalg import blas_libraries
from posteriori.rows.threads import one_blas_thread, threads

def blas_threads():
    return [found["num_threads"] for found in threadpool_info() if found["user_api"] == "blas"]

blas_libraries().limit(limits=2, user_api="blas")
X = np.random.default_rng(0).normal(size=(60_000, 2))
y = X[:, 0] + np.random.default_rng(1).normal(size=60_000) > 0
with threads(2), one_blas_thread():
    coef = LogisticRegression().fit(X, y).coef_
    assert set(blas_threads()) == {1}
    child = os.fork()
    if child == 0:
        assert set(blas_threads()) == {2}, blas_threads()
        assert (LogisticRegression().fit(X, y).coef_ == coef).all()
if child == 0:
    with one_blas_thread():
        assert set(blas_threads()) == {1}
    assert set(blas_threads()) == {2}
    os._exit(0)
assert set(blas_threads()) == {2}
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_a_child_forked_during_a_fit_has_its_blas_threads_back_and_can_fit():
    subprocess.run([sys.executable, "-W", "ignore", "-c", FORK], check=True, timeout=120)
