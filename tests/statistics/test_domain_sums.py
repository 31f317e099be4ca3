"""Targets that a family cannot have, ranges of offsets, and rows that fulfil a condition."""

import numpy as np

from posteriori.likelihood.glm_families import GLM_FAMILIES
from posteriori.rows.block import Block
from posteriori.rows.in_memory import read_real_rows
from posteriori.statistics.glm_domain import (
    CountRows,
    GatherTargetRange,
    offset_range,
)

RANDOM = np.random.default_rng(0)
X = RANDOM.uniform(1, 2, size=(40, 2))
T = RANDOM.poisson(1.0, 40).astype(float)
OFFSET = RANDOM.normal(size=40)


def target(block):
    return block.y


BLOCK = Block(X, T, None, 0, None, OFFSET)


def test_rows_that_fulfil_a_condition_are_counted_and_the_first_is_named():
    found = CountRows(lambda b: b.offset > 0.2)(BLOCK)
    wanted = np.flatnonzero(OFFSET > 0.2)
    assert (found.n_rows, found.first) == (len(wanted), wanted[0])
    assert str(found) == f"row {wanted[0]} (and {len(wanted) - 1} more)"
    assert CountRows(lambda b: b.offset > 99.0)(BLOCK).n_rows == 0


def test_the_first_impossible_target_is_named():
    found = GatherTargetRange(GLM_FAMILIES["gamma"], target)(BLOCK)
    assert found.bad == (np.flatnonzero(T == 0)[0], 0.0)
    assert found.largest == T.max()
    assert GatherTargetRange(GLM_FAMILIES["poisson"], target)(BLOCK).bad[0] == np.inf


def test_the_range_of_offsets_is_zero_without_offsets():
    rows = read_real_rows(X, T)
    assert offset_range(rows) == (0.0, 0.0)
    assert offset_range(rows.with_offset(OFFSET)) == (OFFSET.min(), OFFSET.max())
