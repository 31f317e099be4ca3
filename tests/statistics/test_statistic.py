"""Laws that every sum over rows keeps: any split, order, weights; nothing is changed in place."""

import numpy as np
import pytest
from kernels_registry import KERNELS, N, split

from posteriori.rows.block import take_block
from posteriori.statistics.statistic import Statistic

CUTS = [[1], [59], [20, 40], [7, 8, 9, 33], list(range(1, N))]


def over(wanted):
    chosen = {name: entry for name, entry in KERNELS.items() if wanted(entry)}
    return pytest.mark.parametrize("entry", chosen.values(), ids=chosen)


every = over(lambda entry: True)
weighing = over(lambda entry: entry.weighs)


def assert_same(entry, found, expected, rtol=1e-11):
    ours, theirs = entry.numbers(found), entry.numbers(expected)
    assert len(ours) == len(theirs) > 0
    for a, b in zip(ours, theirs, strict=True):
        if b.dtype.kind != "f":
            np.testing.assert_array_equal(a, b, strict=True)
            continue
        size = abs(b[np.isfinite(b)]).max(initial=0.0)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * size, strict=True)


@every
@pytest.mark.parametrize("cuts", CUTS, ids=[f"{len(cuts)} cuts" for cuts in CUTS])
def test_any_split_is_the_whole(entry, cuts):
    parts = entry.parts(cuts)
    total = sum(parts[1:], start=parts[0])
    assert_same(entry, total, entry.kernel(entry.block()))


@over(lambda entry: not entry.ordered)
def test_the_order_of_the_rows_does_not_matter(entry):
    block = entry.block()
    order = np.random.default_rng(0).permutation(N)
    assert_same(entry, entry.kernel(take_block(block, order)), entry.kernel(block))


@every
def test_zero_is_the_identity(entry):
    found = entry.kernel(entry.block())
    if isinstance(found, Statistic):
        assert 0 + found is found
        assert sum([found]) is found
        with pytest.raises(TypeError):
            1 + found
    else:
        assert_same(entry, sum([found]), found)


@every
def test_a_block_without_rows_adds_nothing(entry):
    """Such blocks come where all rows of a block have weight zero."""
    block = entry.block()
    nothing = entry.kernel(take_block(block, np.arange(0)))
    found = entry.kernel(block)
    assert_same(entry, nothing + found, found)
    assert_same(entry, found + nothing, found)


@every
def test_neither_rows_nor_terms_are_changed(entry):
    block = entry.block()
    rows = [np.copy(v) for v in (block.X, block.y, block.weight, block.offset)]
    terms = [entry.kernel(part) for part in split(block, [23])]
    before = [[np.copy(v) for v in entry.numbers(term)] for term in terms]
    terms[0] + terms[1]
    pairs = [*zip(rows, (block.X, block.y, block.weight, block.offset), strict=True)]
    for values, term in zip(before, terms, strict=True):
        pairs += zip(values, entry.numbers(term), strict=True)
    for old, new in pairs:
        np.testing.assert_array_equal(new, old)


@weighing
def test_weight_two_is_the_row_twice(entry):
    times = np.random.default_rng(1).integers(1, 4, size=N)
    weighted = entry.kernel(entry.block(weight=times.astype(float)))
    repeated = take_block(entry.block(weight=None), np.repeat(np.arange(N), times))
    assert_same(entry, weighted, entry.kernel(repeated))


@weighing
def test_no_weights_are_weights_of_one(entry):
    plain = entry.kernel(entry.block(weight=None))
    assert_same(entry, entry.kernel(entry.block(weight=np.ones(N))), plain)
