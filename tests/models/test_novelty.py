"""Novelty: the rate of false alarms on new rows, conformal p-values by brute force, the ends."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KernelDensity
from sklearn.utils.estimator_checks import parametrize_with_checks

from posteriori import GaussianClassifier, NaiveBayes
from posteriori.errors import DataError, IdentifiabilityWarning, LabelError, ParameterError
from posteriori.models.novelty import NoveltyDetector

MEANS = np.array([[0.0, 0.0, 0.0], [3.0, 0.0, 1.0]])


def rows(n, seed):
    """Two classes with heavier tails than a Gaussian has."""
    random = np.random.default_rng(seed)
    y = random.integers(0, 2, n)
    return MEANS[y] + random.standard_t(4, size=(n, 3)), y


class Gives(KernelDensity):
    """Has the column of X as its logarithm of the density."""

    def score_samples(self, X):
        return np.asarray(X)[:, 0]


X, Y = rows(400, 0)
NEW = rows(20000, 1)[0]


# Of the 15 to 200 rows of these checks none is to be rejected.
@parametrize_with_checks(
    [NoveltyDetector(NaiveBayes(), false_positive_rate=1e-4, reject_label=-7)],
)
@pytest.mark.filterwarnings("ignore::posteriori.errors.PosterioriWarning")
def test_keeps_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", [NaiveBayes(), GaussianMixture(2, random_state=0)])
def test_new_rows_of_the_same_kind_are_rejected_at_the_rate_asked(estimator):
    rate = 0.1
    # The share among the 400 held-out rows has a Beta distribution about the rate.
    model = NoveltyDetector(estimator, false_positive_rate=rate).fit(X, Y)
    spread = np.sqrt(rate * (1 - rate) * (1 / len(X) + 1 / len(NEW)))
    assert abs(model.is_novel(NEW).mean() - rate) < 3 * spread


def test_the_p_value_is_the_share_of_rows_held_back_that_are_no_more_likely():
    model = NoveltyDetector(GaussianClassifier(), cv=4).fit(X, Y)
    held = np.empty(len(X))
    for rest, own in StratifiedKFold(4, shuffle=True, random_state=0).split(X, Y):
        held[own] = GaussianClassifier().fit(X[rest], Y[rest]).score_samples(X[own])
    scores = GaussianClassifier().fit(X, Y).score_samples(NEW[:300])
    expected = [(1 + (held <= s).sum()) / 401 for s in scores]
    assert_allclose(model.p_value(NEW[:300]), expected, rtol=1e-12)
    assert_allclose(model.score_samples(NEW[:300]), scores, rtol=1e-12)
    assert_allclose(model.threshold_, np.sort(held)[4 - 1], rtol=1e-12)  # floor(0.01 x 401) = 4


@pytest.mark.parametrize(("rate", "needed"), [(0.29, 3), (0.01, 99)])
def test_novel_is_what_has_a_p_value_up_to_the_rate(rate, needed):
    model = NoveltyDetector(GaussianClassifier(), false_positive_rate=rate).fit(X[:99], Y[:99])
    assert_array_equal(model.is_novel(NEW[:2000]), model.p_value(NEW[:2000]) <= rate)
    model.set_params(estimator=FrozenEstimator(model.estimator_))
    with pytest.warns(IdentifiabilityWarning, match=f"too few.*Pass {needed} rows or more"):
        model.fit(X[: needed - 1])
    assert model.threshold_ == -np.inf
    assert not model.is_novel([[1e9, 0, 0]]).any()
    assert np.isfinite(model.fit(X[:needed]).threshold_)


def test_rejected_rows_have_the_label_asked_for():
    far = np.array([[40.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    words = np.array(["ant", "bee"])[Y]
    found = NoveltyDetector(GaussianClassifier()).fit(X, words).predict(far)
    assert found.tolist() == [None, "ant"]
    model = NoveltyDetector(GaussianClassifier(), reject_label="new row").fit(X, words)
    assert model.predict(far).tolist() == ["new row", "ant"]
    for labels in (words, Y):
        model = NoveltyDetector(GaussianClassifier()).fit(X, labels)
        assert model.predict(far[1:]).dtype == labels.dtype  # where nothing is novel
    with pytest.raises(ParameterError, match="class of its own"):
        NoveltyDetector(GaussianClassifier(), reject_label="bee").fit(X, words)


def test_a_density_needs_no_labels_and_predicts_none():
    model = NoveltyDetector(KernelDensity(bandwidth=0.7), false_positive_rate=0.05).fit(X)
    assert model.is_novel([[40.0, 0.0, 0.0], [0.0, 0.0, 0.0]]).tolist() == [True, False]
    assert not hasattr(model, "predict")
    assert not hasattr(model, "classes_")


def test_a_frozen_classifier_needs_no_labels():
    fitted = FrozenEstimator(GaussianClassifier().fit(X, Y))
    model = NoveltyDetector(fitted, reject_label=-1).fit(NEW[:500])
    assert_array_equal(model.classes_, [0, 1])
    expected = np.sort(fitted.score_samples(NEW[:500]))[5 - 1]
    assert_allclose(model.threshold_, expected, rtol=1e-12)


def test_what_cannot_be_honoured_is_an_error():
    with pytest.raises(ParameterError, match="false_positive_rate=0"):
        NoveltyDetector(GaussianClassifier(), false_positive_rate=0).fit(X, Y)
    with pytest.raises(ParameterError, match="cv=1"):
        NoveltyDetector(GaussianClassifier(), cv=1).fit(X, Y)
    with pytest.raises(ParameterError, match="LogisticRegression has no score_samples"):
        NoveltyDetector(LogisticRegression()).fit(X, Y)
    with pytest.raises(LabelError, match="requires y"):
        NoveltyDetector(GaussianClassifier()).fit(X)
    with pytest.raises(DataError, match="no density for row 2"):
        NoveltyDetector(FrozenEstimator(Gives().fit(X))).fit([[0.0], [1.0], [np.nan]])


def test_p_values_and_threshold_with_weights_ties_and_infinite_densities_by_brute_force():
    random = np.random.default_rng(3)
    scores = random.integers(40, size=600).astype(float)
    scores[:3], scores[3:5] = -np.inf, np.inf
    weight = random.integers(1, 4, size=600).astype(float)

    model = NoveltyDetector(FrozenEstimator(Gives().fit(X)), false_positive_rate=0.05)
    rows = scores[:, None]
    found = model.fit(rows, None, weight)
    total = 1 + weight.sum()
    expected = np.array([(1 + weight[scores <= s].sum()) / total for s in scores])
    assert_allclose(found.p_value(rows), expected, rtol=1e-13)
    lower = np.array([(1 + weight[scores < s].sum()) / total for s in scores])
    assert found.threshold_ == scores[lower <= 0.05].max()
    assert_array_equal(found.is_novel(rows), expected <= 0.05)
