"""Coupled probabilities against the minimum that they are, and mpmath."""

from itertools import combinations, permutations

import mpmath as mp
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from posteriori.models.multiclass import couple

RANDOM = np.random.default_rng(0)


def objective(p, r):
    """Wu, Lin and Weng (2004), (14), written out."""
    return sum((r[j, i] * p[i] - r[i, j] * p[j]) ** 2 for i, j in permutations(range(len(p)), 2))


def from_odds(odds):
    """r (n, K, K) of log odds, of which those of i < j count."""
    upper = np.triu(odds, 1)
    return expit(upper - upper.swapaxes(1, 2)) * (1 - np.eye(odds.shape[1]))


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
    r = from_odds(RANDOM.logistic(size=(5, n_classes, n_classes)))
    for own, found in zip(r, couple(r), strict=True):
        best = minimize(
            objective,
            np.full(n_classes, 1 / n_classes),
            args=(own,),
            bounds=[(0, 1)] * n_classes,
            constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
            options={"ftol": 1e-16, "maxiter": 1000},
        )
        np.testing.assert_allclose(found, best.x, atol=2e-6)
        assert objective(found, own) <= best.fun + 1e-14


@pytest.mark.parametrize("spread", [0.0, 1e-10, 1e-8, 1e-6, 1.0, 20.0])
@pytest.mark.parametrize("size", [1.0, 10.0, 100.0])
def test_small_probabilities_have_their_digits(size, spread):
    """Where comparisons all but agree, their last bits decide between them: see the tolerance."""
    for n_classes in (2, 3, 5, 8):
        logs = size * RANDOM.normal(size=(6, n_classes, 1))
        noise = RANDOM.normal(size=(6, n_classes, n_classes))
        r = from_odds(logs - logs.swapaxes(1, 2) + spread * noise)
        for comparisons, found in zip(r, couple(r), strict=True):
            for own, expected in zip(found, exact(comparisons), strict=True):
                if expected > 1e-20:
                    assert abs(mp.mpf(own) / expected - 1) < 1e-7
                if expected > 1e-14:
                    assert abs(mp.mpf(own) / expected - 1) < 1e-11
                else:
                    assert 0 <= own < 1.1e-14


def test_coupling_of_consistent_comparisons_gives_their_probabilities_back():
    p = RANDOM.dirichlet(np.ones(5), size=200)
    r = p[:, :, None] / (p[:, :, None] + p[:, None, :]) * (1 - np.eye(5))
    np.testing.assert_allclose(couple(r), p, rtol=0, atol=1e-14)
    np.testing.assert_allclose(couple(r), p, rtol=1e-12)


def test_coupling_sums_to_one_at_any_extreme_and_does_not_depend_on_the_split_of_rows():
    odds = RANDOM.logistic(size=(40_000, 3, 3))
    certain = np.where(RANDOM.uniform(size=odds.shape) < 0.3, np.sign(odds) * 1e3, odds)
    r = from_odds(certain)
    p = couple(r)
    assert np.isfinite(p).all()
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(p[[0, 35_000]], couple(r[[0, 35_000]]), atol=1e-14)
