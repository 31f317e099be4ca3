"""The number of threads changes no bit."""

import re

import numpy as np
import pytest
from registry import FOUR
from samples import assert_same_outputs, outputs, over, rows_for

import posteriori
from posteriori.errors import InfiniteValueError
from posteriori.rows.in_memory import BLOCK_ENTRIES


@over(entries=FOUR)
def test_one_thread_and_two_give_the_same_bits(entry):
    rows = rows_for(entry, n=150_000, new=100_000)
    assert rows.X.size > 2 * BLOCK_ENTRIES
    assert rows.new.size > BLOCK_ENTRIES
    found = []
    for count in (1, 2):
        with posteriori.threads(count):
            model = entry.make(rows.classes).fit(rows.X, rows.y)
            found.append(outputs(model, rows.new))
    assert_same_outputs(*found, tolerance=0)


@over(entries=FOUR)
def test_errors_do_not_depend_on_threads(entry):
    rows = rows_for(entry, n=150_000, new=1)
    rows.X[[140_000, 70_000], 1] = np.inf
    messages = set()
    for count in (1, 2):
        with posteriori.threads(count), pytest.raises(InfiniteValueError) as caught:
            entry.make(rows.classes).fit(rows.X, rows.y)
        messages.add(str(caught.value))
    assert len(messages) == 1
    assert re.search(r"first in row \d+, column ('x)?1", messages.pop())
