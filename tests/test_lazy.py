"""Cached properties: computed once, also in a child that is forked while one is computed."""

import os
import subprocess
import sys

import pytest

from posteriori.lazy import cached_property


def test_a_property_is_computed_once_for_each_object():
    class Square:
        """Of a side."""

        def __init__(self, side: float) -> None:
            self.side, self.n_computed = side, 0

        @cached_property
        def area(self) -> float:
            """The side squared."""
            self.n_computed += 1
            return self.side**2

    small, large = Square(1.0), Square(3.0)
    assert (large.area, large.area, small.area) == (9.0, 9.0, 1.0)
    assert (large.n_computed, small.n_computed) == (1, 1)
    assert Square.area.__doc__ == "The side squared."


FORK = """
import os, signal, threading
from posteriori.rows.schema import Schema

begun, forked = threading.Event(), threading.Event()

class Slow(tuple):
    def __iter__(self):
        begun.set()
        forked.wait()
        return super().__iter__()

thread = threading.Thread(target=lambda: Schema(Slow(), named=True).names)
thread.start()
begun.wait()
child = os.fork()
if child == 0:
    signal.alarm(20)
    assert Schema.of_names(["a"]).names == ("a",)
    os._exit(0)
forked.set()
thread.join()
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_a_child_forked_while_a_property_is_computed_can_compute_it():
    subprocess.run([sys.executable, "-W", "ignore", "-c", FORK], check=True, timeout=60)
