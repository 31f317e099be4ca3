"""Scores and their parts, against scikit-learn and by brute force."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import softmax, xlog1py, xlogy
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import brier_score_loss, log_loss

from posteriori.decision.scores import brier_score, decompose_score, log_score
from posteriori.errors import ImpossibleClassWarning, ParameterError

RANDOM = np.random.default_rng(5)
N = 200
P = RANDOM.beta(1, 2, N).round(2)  # with ties
Y = (RANDOM.random(N) < P**1.5).astype(int)
W = RANDOM.integers(0, 4, N).astype(float)
PROBA = softmax(2 * RANDOM.normal(size=(N, 3)), axis=1)
Y3 = np.array([RANDOM.choice(3, p=softmax(row)) for row in np.log(PROBA) / 2])
SCORES = pytest.mark.parametrize("score", ["brier", "log"])
SAFE = np.clip(P, 0.01, 0.99)


@pytest.mark.parametrize("weight", [None, W, W / 7 + 0.01])
def test_the_scores_are_those_of_scikit_learn(weight):
    given = {"sample_weight": weight}
    assert_allclose(float(log_score(Y, SAFE, **given)), log_loss(Y, SAFE, **given), rtol=1e-12)
    assert_allclose(float(log_score(Y3, PROBA, **given)), log_loss(Y3, PROBA, **given), rtol=1e-12)
    assert_allclose(float(brier_score(Y, P, **given)), brier_score_loss(Y, P, **given), rtol=1e-12)
    full = brier_score_loss(Y3, PROBA, scale_by_half=False, **given)
    assert_allclose(float(brier_score(Y3, PROBA, **given)), full, rtol=1e-12)


def test_the_std_error_is_that_of_a_mean():
    found = brier_score(Y, P).std_error
    assert_allclose(found, ((P - Y) ** 2).std(ddof=1) / np.sqrt(N), rtol=1e-12)
    assert brier_score([True], [0.9]).std_error == np.inf


@SCORES
def test_weight_two_is_the_row_twice(score):
    function = {"brier": brier_score, "log": log_score}[score]
    times = W.astype(int)
    weighted = function(Y, SAFE, sample_weight=W)
    repeated = function(Y.repeat(times), SAFE.repeat(times))
    assert_allclose(weighted.value, repeated.value, rtol=1e-12)
    assert_allclose(weighted.std_error, repeated.std_error, rtol=1e-12)
    one = decompose_score(Y, SAFE, score=score, sample_weight=W)
    other = decompose_score(Y.repeat(times), SAFE.repeat(times), score=score)
    assert_allclose(one.reliability, other.reliability, rtol=1e-10)
    assert_allclose(one.resolution, other.resolution, rtol=1e-10)


def losses(score, p, happened):
    if score == "brier":
        return (p - happened) ** 2
    return -xlogy(happened, p) - xlog1py(1 - happened, -p)


@SCORES
def test_the_parts_are_the_gains_of_isotonic_recalibration(score):
    again = IsotonicRegression(out_of_bounds="clip").fit(SAFE, Y, W).predict(SAFE)
    mean = {
        name: np.average(losses(score, p, Y), weights=W)
        for name, p in [("own", SAFE), ("again", again), ("share", np.average(Y, weights=W))]
    }
    found = decompose_score(Y, SAFE, score=score, sample_weight=W)
    assert_allclose(found.score, mean["own"], rtol=1e-12)
    assert_allclose(found.reliability, mean["own"] - mean["again"], rtol=1e-9)
    assert_allclose(found.resolution, mean["share"] - mean["again"], rtol=1e-9)
    assert_allclose(found.uncertainty, mean["share"], rtol=1e-12)


@SCORES
def test_the_parts_add_up_and_none_is_negative(score):
    for seed in range(20):
        random = np.random.default_rng(seed)
        p = random.beta(0.3, 0.3, 30)
        y = random.random(30) < 0.4
        parts = decompose_score(y, p, score=score)
        total = parts.reliability - parts.resolution + parts.uncertainty
        assert_allclose(total, parts.score, rtol=1e-13)
        assert min(parts.reliability, parts.resolution, parts.uncertainty) >= 0


def test_the_brier_score_of_many_classes_is_the_sum_over_classes():
    found = decompose_score(Y3, PROBA)
    each = [decompose_score(k == Y3, PROBA[:, k]) for k in range(3)]
    for part in ("score", "reliability", "resolution", "uncertainty"):
        assert_allclose(getattr(found, part), sum(getattr(one, part) for one in each), rtol=1e-12)


def test_the_impossible_makes_the_log_score_infinite_and_names_the_row():
    y, proba = ["a", "b", "b", "a"], [0.2, 0.9, 0.0, 0.3]
    with pytest.warns(ImpossibleClassWarning, match=r"Row 2 is of class 'b'.*1 such row"):
        found = log_score(y, proba)
    assert (found.value, found.std_error) == (np.inf, np.inf)
    with pytest.warns(ImpossibleClassWarning):
        parts = decompose_score(y, proba, score="log")
    assert (parts.score, parts.reliability) == (np.inf, np.inf)
    assert_allclose(parts.uncertainty, np.log(2))
    assert 0 <= parts.resolution < np.inf


def test_the_log_score_of_many_classes_is_not_taken_apart():
    with pytest.raises(ParameterError, match=r"not a sum over the classes.*score='brier'"):
        decompose_score(Y3, PROBA, score="log")
    with pytest.raises(ParameterError, match="score='f1'"):
        decompose_score(Y, P, score="f1")
