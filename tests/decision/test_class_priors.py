"""Class priors: as the user gives them, changed, undone, or estimated from rows without labels."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, softmax
from scipy.stats import chi2
from statsmodels.tools.numdiff import approx_hess

from posteriori import GaussianClassifier
from posteriori.decision.class_priors import (
    adjust_priors,
    estimate_priors,
    log_priors,
    read_priors,
    undo_sampling,
)
from posteriori.errors import IdentifiabilityWarning, ParameterError, ProbabilityError

OLD, NEW = [0.2, 0.3, 0.5], [0.6, 0.3, 0.1]


def two_groups(random, n, prior):
    """The probability of the second of two normal classes, under equal priors."""
    x = random.normal(size=n) + 2 * (random.uniform(size=n) < prior)
    return expit(2 * x - 2)


X = np.random.default_rng(0).normal(size=(90, 3))
Y = np.repeat(list("abc"), 30)
CLASSES = np.array(["ant", "bee", "cat"])


def test_priors_are_given_by_label_or_in_the_order_of_the_classes():
    for given in ({"cat": 0.5, "ant": 0.2, "bee": 0.3}, (0.2, 0.3, 0.5), np.array([0.2, 0.3, 0.5])):
        assert_array_equal(read_priors(given, CLASSES), [0.2, 0.3, 0.5])
    numbers = {np.int64(7): 0.25, 3: 0.75}
    assert_array_equal(read_priors(numbers, np.array([3, 7])), [0.75, 0.25])
    assert_array_equal(log_priors(np.array([0.0, 1.0])), [-np.inf, 0.0])


@pytest.mark.parametrize(
    ("priors", "words"),
    [
        ({"ant": 0.5, "bee": 0.5, "dog": 0.0, "cat": 0.0}, "unknown class 'dog'"),
        ({"ant": 0.5, "bee": 0.5}, "no class 'cat'"),
        ([0.5, 0.5], "shape"),
        ([0.2, 0.3, 0.6], "sum to 1.1"),
        ([0.7, 0.7, -0.4], "negative"),
        ([0.5, 0.5, np.nan], "finite"),
        ("equal", "priors"),
    ],
)
def test_priors_that_are_none_are_an_error_that_says_why(priors, words):
    with pytest.raises(ParameterError, match=words):
        read_priors(priors, CLASSES)


def test_the_answer_is_that_of_a_generative_model_with_these_priors():
    before = GaussianClassifier(covariance="full", priors=OLD).fit(X, Y)
    after = GaussianClassifier(covariance="full", priors=NEW).fit(X, Y)
    found = adjust_priors(before.predict_proba(X), OLD, NEW)
    assert_allclose(found, after.predict_proba(X), rtol=1e-12, atol=1e-15)
    assert_allclose(adjust_priors([0.5], [0.5, 0.5], [0.9, 0.1]), [0.1])
    assert adjust_priors(np.empty((0, 3)), OLD, NEW).shape == (0, 3)
    p = [[0.0, 0.5, 0.5], [0.2, 0.0, 0.8]]
    assert_allclose(adjust_priors(p, OLD, [0.5, 0.5, 0.0]), [[0, 1, 0], [1, 0, 0]], atol=0)


def test_sampling_is_undone_to_the_model_of_the_whole():
    """Keeping a share of each class makes the priors proportional to share times prior."""
    rates = np.array([0.1, 1.0, 2.5])
    thinned = np.array(NEW) * rates / (np.array(NEW) @ rates)
    model = GaussianClassifier(priors=thinned).fit(X, Y)
    whole = GaussianClassifier(priors=NEW).fit(X, Y)
    found = undo_sampling(model.predict_proba(X), rates)
    assert_allclose(found, whole.predict_proba(X), rtol=1e-12, atol=1e-15)
    assert_allclose(undo_sampling(model.predict_proba(X), 1e200 * rates), found)
    assert_allclose(undo_sampling(pd.Series([0.5]), {0: 0.25, 1: 1.0}), [0.2])


def test_priors_and_columns_go_by_name():
    frame = pd.DataFrame({"b": [0.5], "a": [0.3], "c": [0.2]})
    old, new = dict(zip("abc", OLD, strict=True)), dict(zip("cba", NEW[::-1], strict=True))
    found = adjust_priors(frame, old, new, classes=["a", "b", "c"])
    assert_allclose(found, adjust_priors([[0.3, 0.5, 0.2]], OLD, NEW), rtol=1e-15)
    assert_allclose(adjust_priors(frame, old, new), found[:, [1, 0, 2]], rtol=1e-15)


@pytest.mark.parametrize(
    ("old", "new", "error", "words"),
    [
        ([0.5, 0.5, 0], NEW, ParameterError, "Class 2 has prior zero in old"),
        (OLD, [0.5, 0.6, 0.1], ParameterError, "new sum to 1.2"),
        (OLD, [1.0, 0.0, 0.0], ProbabilityError, "Row 1 .* prior is now zero"),
        ([0, 0.5, 0.5], [0, 0.5, 0.5], ProbabilityError, r"Row 0 .* probability 0\.3 for class 0"),
    ],
)
def test_priors_that_cannot_be_are_an_error(old, new, error, words):
    with pytest.raises(error, match=words):
        adjust_priors([[0.3, 0.3, 0.4], [0.0, 1.0, 0.0]], old, new)


def test_the_priors_are_the_mean_of_the_probabilities_under_them():
    """A fixed point of EM; at zero, one that no class wants to leave: the maximum."""
    random = np.random.default_rng(3)
    for K, n in [(2, 50), (3, 400), (40, 300)]:
        p = softmax(random.normal(size=(n, K)) * 1.5, axis=1)
        p[:, 0] *= 0.2
        p /= p.sum(axis=1, keepdims=True)
        old = np.arange(1.0, K + 1) / np.arange(1.0, K + 1).sum()
        found = estimate_priors(adjust_priors(p, np.full(K, 1 / K), old), old)
        score = (p / (p @ found.priors)[:, None]).mean(axis=0)
        assert_allclose(found.priors * score, found.priors, atol=1e-12)
        assert score.max() <= 1 + 1e-10
        assert_allclose(found.priors.sum(), 1, rtol=1e-14)
        assert found.converged
        statistic = 2 * np.log((p @ found.priors) / (p @ old)).sum()
        assert_allclose(found.statistic, statistic, rtol=1e-7)
        assert_allclose(found.p_value, chi2.sf(statistic, K - 1), rtol=1e-6)


def test_std_errors_are_those_of_the_second_differences():
    p = softmax(np.random.default_rng(2).normal(size=(400, 3)), axis=1)
    found = estimate_priors(p, [1 / 3, 1 / 3, 1 / 3])

    def log_likelihood(step):
        return np.log(p @ (found.priors + np.append(step, -step.sum()))).sum()

    hessian = approx_hess(np.zeros(2), log_likelihood)
    covariance = np.linalg.inv(-hessian)
    expected = np.sqrt([*np.diag(covariance), covariance.sum()])
    assert_allclose(found.std_error, expected, rtol=1e-5)
    certain = estimate_priors(np.eye(3)[[0, 0, 1, 2, 2, 2, 2, 2]], [1 / 3, 1 / 3, 1 / 3])
    shares = np.array([2, 1, 5]) / 8
    assert_allclose(certain.priors, shares, rtol=1e-12)
    rare = estimate_priors(np.eye(2)[[0, 0, 0, 1]], [1.0, 1e-200])
    assert_allclose(rare.priors, [0.75, 0.25], rtol=1e-12)
    assert_allclose(certain.std_error, np.sqrt(shares * (1 - shares) / 8), rtol=1e-10)


def test_a_change_has_a_verdict():
    p = two_groups(np.random.default_rng(4), 500, 0.1)
    found = estimate_priors(p, [0.5, 0.5], classes=["no", "yes"])
    assert (found.df, found.verdict) == (1, "changed")
    assert repr(found).startswith("EstimatedPriors('no': 0.8")
    assert found.to_frame("pandas").columns.tolist() == ["classes", "priors", "std_error"]
    same = estimate_priors(two_groups(np.random.default_rng(4), 500, 0.5), [0.5, 0.5])
    assert same.verdict == "no change shown"


def test_a_class_that_could_not_occur_stays_out():
    p = two_groups(np.random.default_rng(7), 200, 0.2)
    three = np.column_stack([1 - p, np.zeros(200), p])
    found, two = estimate_priors(three, [0.5, 0.0, 0.5]), estimate_priors(p, [0.5, 0.5])
    assert_allclose(found.priors, [two.priors[0], 0, two.priors[1]], rtol=1e-12)
    assert (found.df, found.p_value) == (1, two.p_value)
    only = estimate_priors([[1.0, 0.0]], [1.0, 0.0])
    assert (only.priors.tolist(), only.df, only.p_value) == ([1.0, 0.0], 0, 1.0)
    assert only.std_error.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("p", "old", "unknown"),
    [
        (np.full((50, 2), 0.5), [0.5, 0.5], "0, 1"),
        (np.full(50, 0.3) + np.linspace(0, 1e-9, 50), [0.7, 0.3], "0, 1"),
        ([[0.6, 0.2, 0.2], [0.2, 0.4, 0.4], [0.1, 0.45, 0.45]] * 80, [1 / 3] * 3, "1, 2"),
    ],
)
def test_classes_that_cannot_be_told_apart_are_named(p, old, unknown):
    with pytest.warns(IdentifiabilityWarning, match=f"priors of {unknown}:"):
        found = estimate_priors(p, old)
    assert np.isfinite(found.priors).all()
    assert not np.isnan(found.std_error).any()
    assert found.statistic >= 0
    assert found.p_value <= 1
