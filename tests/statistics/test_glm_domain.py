"""Ranges of targets and offsets, and the first row that fulfils a condition."""

import numpy as np

from posteriori.likelihood.glm_families import GLM_FAMILIES
from posteriori.rows.in_memory import read_real_rows
from posteriori.statistics.glm_domain import first_row, offset_range, target_range

RANDOM = np.random.default_rng(0)
X, OFFSET = RANDOM.uniform(1, 2, size=(40, 2)), RANDOM.normal(size=40)
COUNTS = RANDOM.poisson(1.0, 40).astype(float)
WEIGHT = np.append(np.zeros(20), np.ones(20))


def test_ranges_and_first_rows_skip_rows_of_weight_zero():
    rows = read_real_rows(X, COUNTS, WEIGHT)
    assert target_range(rows, GLM_FAMILIES["poisson"]) == (COUNTS[20:].max(), np.inf)
    assert target_range(rows, GLM_FAMILIES["gamma"])[1] == 20 + np.flatnonzero(COUNTS[20:] == 0)[0]
    assert first_row(rows, lambda block: block.y > 1) == 20 + np.flatnonzero(COUNTS[20:] > 1)[0]
    assert first_row(rows, lambda block: block.y > 99) == np.inf
    assert offset_range(rows) == (0.0, 0.0)
    found = offset_range(read_real_rows(X, COUNTS).with_offset(OFFSET))
    assert found == (OFFSET.min(), OFFSET.max())
