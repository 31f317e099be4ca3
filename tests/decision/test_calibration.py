"""Curve, error and test of calibration, and residuals: by brute force and scikit-learn."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import softmax
from scipy.stats import binom, binomtest, norm
from sklearn.calibration import calibration_curve

from posteriori.decision.calibration import (
    OUTSIDE,
    BinnedResiduals,
    binned_residuals,
    calibration_error,
    exact_interval,
    mean_gap_by_chance,
    reliability_curve,
)
from posteriori.errors import ParameterError

RANDOM = np.random.default_rng(8)
N = 300
P = RANDOM.beta(1.5, 1, N)
Y = (RANDOM.random(N) < P).astype(int)
PROBA = softmax(RANDOM.normal(size=(N, 3)), axis=1)
Y3 = (PROBA.cumsum(axis=1) < RANDOM.random((N, 1))).sum(axis=1)
CURVE = ("predicted", "observed", "low", "high", "n")


def test_the_curve_is_that_of_scikit_learn():
    observed, predicted = calibration_curve(Y, P, n_bins=10, strategy="quantile")
    curve = reliability_curve(Y, P, bins=10)
    assert_allclose(curve.observed, observed, rtol=1e-12)
    assert_allclose(curve.predicted, predicted, rtol=1e-12)
    assert curve.n.tolist() == [30.0] * 10
    one, other = reliability_curve(Y3, PROBA, label=2), reliability_curve(Y3 == 2, PROBA[:, 2])
    assert one.label == 2
    for name in CURVE:
        assert_allclose(getattr(one, name), getattr(other, name))
    for proba, given in ((PROBA, {}), (P, {"level": 1.0}), (P, {"bins": 2.5})):
        with pytest.raises(ParameterError, match=next(iter(given), "label=")):
            reliability_curve(Y3 if proba is PROBA else Y, proba, **given)
    with pytest.raises(ParameterError, match="kind="):
        calibration_error(Y, P, kind="all")


def test_the_interval_of_a_rate_is_exact():
    for hits, n in [(0, 7), (3, 7), (7, 7), (1, 200)]:
        low, high = exact_interval(np.array([hits / n]), np.array([float(n)]), 0.9)
        exact = binomtest(hits, n).proportion_ci(0.9, "exact")
        assert_allclose([low[0], high[0]], [exact.low, exact.high], rtol=1e-9)


def test_weight_two_is_the_row_twice_in_the_curve():
    times = RANDOM.integers(0, 4, N)
    one = reliability_curve(Y, P, sample_weight=times)
    other = reliability_curve(Y.repeat(times), P.repeat(times))
    for name in CURVE:
        assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-10)
    first = calibration_error(Y, P, sample_weight=times)
    second = calibration_error(Y.repeat(times), P.repeat(times))
    for name in ("expected", "expected_by_chance", "z", "p_value"):
        assert_allclose(getattr(first, name), getattr(second, name), rtol=1e-9)
    tiny, plain = (calibration_error(Y, P, sample_weight=times * w, bins=7) for w in (1e-9, 1))
    assert_allclose(tiny.expected, plain.expected, rtol=1e-11)


def by_hand(p, happened, bins):
    """|rate - mean| of equal parts of the sorted rows, averaged."""
    order = np.argsort(p)
    parts = zip(np.split(p[order], bins), np.split(happened[order], bins), strict=True)
    return np.mean([abs(rates.mean() - part.mean()) for part, rates in parts])


def test_the_expected_error_is_the_mean_gap():
    top, right = PROBA.max(axis=1), PROBA.argmax(axis=1) == Y3
    found = calibration_error(Y3, PROBA, bins=10)
    assert_allclose(found.expected, by_hand(top, right, 10), rtol=1e-12)
    found = calibration_error(Y3, PROBA, kind="classwise", bins=10)
    each = [by_hand(PROBA[:, k], k == Y3, 10) for k in range(3)]
    assert_allclose(found.expected, np.mean(each), rtol=1e-12)


def exact_mean_gap(p):
    """By the distribution of the number of events, one row after another."""
    mass = np.ones(1)
    for each in p:
        mass = np.convolve(mass, [1 - each, each])
    return mass @ abs(np.arange(len(mass)) - p.sum()) / len(p)


@pytest.mark.parametrize(
    ("p", "within"),
    [
        (np.full(50, 0.002), 1e-12),
        (np.full(40, 0.95), 1e-12),
        (np.linspace(0, 0.1, 60), 1e-3),
        (np.linspace(0, 1, 60), 1e-2),
        (np.array([0.0, 1.0, 1.0]), 1e-12),
    ],
)
def test_the_gap_by_chance_is_that_of_the_number_of_events(p, within):
    bins = binned(p, p > 0.5, bins=1)
    assert_allclose(mean_gap_by_chance(bins)[0], exact_mean_gap(p), rtol=within, atol=1e-300)


def test_spiegelhalters_z_is_the_brier_score_less_what_the_model_expects():
    happened = np.arange(3) == Y3[:, None]
    score = ((PROBA - happened) ** 2).sum(axis=1)
    # by enumeration of what can occur
    outcomes = ((PROBA[:, None, :] - np.eye(3)) ** 2).sum(axis=2)
    mean = (PROBA * outcomes).sum(axis=1)
    variance = (PROBA * (outcomes - mean[:, None]) ** 2).sum(axis=1)
    found = calibration_error(Y3, PROBA)
    assert_allclose(found.z, (score - mean).sum() / np.sqrt(variance.sum()), rtol=1e-10)
    assert_allclose(found.p_value, 2 * norm.sf(abs(found.z)), rtol=1e-12)
    for proba in (np.full(4, 0.5, np.float32), np.full((4, 3), 1 / 3)):
        none = calibration_error([0, 1, 1, 0] if proba.ndim == 1 else [0, 1, 2, 2], proba)
        assert (none.z, none.p_value) == (0, 1)
    two = ((Y - P) * (1 - 2 * P)).sum() / np.sqrt(((1 - 2 * P) ** 2 * P * (1 - P)).sum())
    assert_allclose(calibration_error(Y, P).z, two, rtol=1e-10)


# --- Residuals ------------------------------------------------------------------------------------


def binned(p, t, weight=None, **given):
    weight = np.ones(len(p)) if weight is None else weight
    return binned_residuals(p, t.astype(float), p * (1 - p), weight, **given)


def test_bins_are_means_of_equal_numbers_of_rows_in_order():
    random = np.random.default_rng(0)
    p = random.uniform(size=400)
    t = random.uniform(size=400) < p
    found, order = binned(p, t), np.argsort(p)
    parts = order.reshape(20, 20)
    assert_allclose(found.n, 20)
    assert_allclose(found.predicted, p[parts].mean(axis=1))
    assert_allclose(found.observed, t[parts].mean(axis=1))
    assert_allclose(found.std_error, np.sqrt((p * (1 - p))[parts].sum(axis=1)) / 20)
    assert_allclose(found.z, (found.observed - found.predicted) / found.std_error)
    wrong = binned(np.repeat([0.0, 0.5, 1.0], 20), np.repeat([True, False, True], 20), bins=3)
    assert wrong.z.tolist() == [np.inf, wrong.z[1], 0.0]  # certain and wrong, certain and right


def test_the_p_value_is_the_chance_of_so_many_bins():
    ones = np.ones(20)
    found = BinnedResiduals(ones, ones, 0 * ones, np.r_[3.0, -4.0, 5.0, np.zeros(17)], ones)
    assert found.share == pytest.approx(0.15)
    assert pytest.approx(2 * norm.sf(2), abs=1e-5) == OUTSIDE
    assert found.p_value == pytest.approx(binom.sf(2, 20, OUTSIDE))
    assert found.worst == 2
    assert BinnedResiduals(*[ones] * 5).p_value == 1.0
