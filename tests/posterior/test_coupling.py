"""Coupled probabilities against the minimum that they are, and mpmath."""

from itertools import combinations

import mpmath as mp
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from posteriori.posterior.coupling import couple

RANDOM = np.random.default_rng(0)


def objective(p, r):
    return sum((r[j, i] * p[i] - r[i, j] * p[j]) ** 2 for i, j in combinations(range(len(p)), 2))


def from_odds(odds):
    """r (K, K, n) of log odds, of which those of i < j count."""
    upper = np.triu(np.moveaxis(odds, 2, 0), 1)
    both = np.moveaxis(upper - upper.swapaxes(1, 2), 0, 2)
    return expit(both) * (1 - np.eye(len(odds)))[:, :, None]


def exact(r):
    """p of one row at 80 digits."""
    with mp.workdps(80):
        n_classes = len(r)
        Q = mp.matrix(n_classes, n_classes)
        for i, j in combinations(range(n_classes), 2):
            ours, theirs = mp.mpf(float(r[i, j])), mp.mpf(float(r[j, i]))
            Q[i, j] = Q[j, i] = -ours * theirs
            Q[i, i] += theirs**2
            Q[j, j] += ours**2
        p = mp.lu_solve(Q + mp.ones(n_classes), mp.ones(n_classes, 1))
        return [each / sum(p) for each in p]


@pytest.mark.parametrize("n_classes", [3, 4, 6])
def test_coupling_is_the_minimum_of_the_objective(n_classes):
    r = from_odds(RANDOM.logistic(size=(n_classes, n_classes, 5)))
    for row, found in enumerate(couple(r)):
        best = minimize(
            objective,
            np.full(n_classes, 1 / n_classes),
            args=(r[:, :, row],),
            bounds=[(0, 1)] * n_classes,
            constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
            options={"ftol": 1e-16, "maxiter": 1000},
        )
        np.testing.assert_allclose(found, best.x, atol=2e-6)
        assert objective(found, r[:, :, row]) <= best.fun + 1e-14


@pytest.mark.parametrize("spread", [0.0, 1e-6, 1.0, 20.0])
@pytest.mark.parametrize("size", [1.0, 10.0, 100.0])
def test_small_probabilities_have_their_digits(size, spread):
    for n_classes in (2, 3, 5, 8):
        logs = size * RANDOM.normal(size=(n_classes, 6))
        odds = logs[:, None] - logs + spread * RANDOM.normal(size=(n_classes, n_classes, 6))
        r = from_odds(odds)
        for row, found in enumerate(couple(r)):
            for own, expected in zip(found, exact(r[:, :, row]), strict=True):
                if expected > 1e-20:
                    assert abs(mp.mpf(own) / expected - 1) < 1e-11
                else:
                    assert 0 <= own < 1e-19


def test_coupling_of_consistent_comparisons_gives_their_probabilities_back():
    p = RANDOM.dirichlet(np.ones(5), size=200).T
    r = p[:, None] / (p[:, None] + p)
    r[np.arange(5), np.arange(5)] = 0.0
    np.testing.assert_allclose(couple(r), p.T, rtol=1e-12)


def test_coupling_of_certain_comparisons_is_certain_and_of_a_certain_cycle_even():
    beats_all = np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]], dtype=float)
    np.testing.assert_allclose(couple(beats_all[:, :, None]), [[1, 0, 0]], atol=1e-15)
    cycle = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]], dtype=float)
    np.testing.assert_allclose(couple(cycle[:, :, None]), [[1 / 3] * 3], rtol=1e-14)


def test_coupling_sums_to_one_at_any_extreme_and_does_not_depend_on_the_split_of_rows():
    odds = RANDOM.logistic(size=(3, 3, 40_000))
    certain = np.where(RANDOM.uniform(size=odds.shape) < 0.3, np.sign(odds) * 1e3, odds)
    r = from_odds(certain)
    p = couple(r)
    assert np.isfinite(p).all()
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(p[[0, 35_000]], couple(r[:, :, [0, 35_000]]), atol=1e-14)
