"""Margins along a direction, and the constraints that they violate, against plain arithmetic."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from posteriori.design.columns import Columns
from posteriori.design.standardise import Standard
from posteriori.rows.in_memory import read_rows
from posteriori.statistics.separation_margins import (
    GatherMargins,
    GatherStepLength,
    MarginGradient,
    Pairs,
    pair_sums,
)

RANDOM = np.random.default_rng(4)
X = RANDOM.normal(size=(60, 3))
Y = RANDOM.integers(3, size=60)
CENTRE, SCALE = np.array([0.0, 7.0, 0.0]), np.array([1.0, 50.0, 1e-3])


def pairs_of(rows, K, centre=CENTRE, scale=SCALE):
    standard = Standard(np.array(centre), np.array(scale), True)
    return Pairs(Columns(rows.schema), standard, pair_sums(rows, K)[0].support, K)


def plain_margins(theta, y, K):
    """a_own - a_other of each row, (60, K), zero for a class with itself."""
    a = np.column_stack([np.ones(60), X]) @ theta.T
    a = np.column_stack([np.zeros(60), a]) if K == 2 else a
    return a[np.arange(60), y][:, None] - a


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array, pd.DataFrame])
def test_gradient_and_constraints_are_those_of_the_margins(K, storage):
    y = Y % K
    rows = read_rows(storage(X * SCALE + CENTRE), y)
    pairs, c = pairs_of(rows, K), 1 if K == 2 else K
    theta = RANDOM.normal(size=(c, 4))
    margins = plain_margins(theta, y, K)
    gradient = rows.map_sum(MarginGradient(pairs, 0 * theta))
    assert_allclose(np.sum(gradient * theta), margins.sum(), rtol=1e-12)
    others = np.arange(K) != y[:, None]
    found = rows.map_sum(GatherMargins(pairs, theta, 0 * theta, 0.0, 7))
    assert found.n_open == 60 * (K - 1)
    assert found.n_clear == (margins[others] > 0).sum()
    assert found.least_clear == pytest.approx(margins[margins > 0].min(), rel=1e-12)
    least = np.where(others, margins, np.inf).min(axis=1)
    assert_allclose(np.sort(found.violated.slack), np.sort(least)[:7], rtol=1e-9)
    assert_allclose(found.violated.matrix @ theta.ravel(), found.violated.slack, rtol=1e-9)


def test_pairs_that_a_ray_separates_are_no_longer_open_and_a_step_gives_them_their_margin():
    rows = read_rows([[-1.0], [0.0], [0.0], [2.0]], [0, 0, 1, 1])
    pairs, ray = pairs_of(rows, 2, [0.0], [1.0]), np.array([[0.0, 1.0]])
    found = rows.map_sum(GatherMargins(pairs, np.array([[1.0, 0.0]]), ray, 0.0, 9))
    assert (found.n_open, found.n_clear) == (2, 1)
    assert_allclose(rows.map_sum(MarginGradient(pairs, ray)), [[0.0, 0.0]], atol=1e-15)
    like = rows.map_sum(GatherMargins(pairs, 0.5 * ray, ray, -1e-6, 9, like_ray=True))
    assert like.violated.slack.tolist() == [-0.5]
    assert like.violated.goal.tolist() == [1.0]
    theta = np.array([[3.0, 0.5]])  # margins -2.5 and 4
    length = rows.map_sum(GatherStepLength(pairs, theta, ray, ray, 40.0)).value
    assert length == pytest.approx(42.5, rel=1e-15)
    assert rows.map_sum(GatherStepLength(pairs, theta, -ray, ray, 40.0)).value == np.inf
    far = theta + 50 * ray
    assert rows.map_sum(GatherStepLength(pairs, far, -ray, ray, 40.0)).value == 0.0
