"""Many classes from two-class classifiers: regions that nobody or everybody claims, coupling."""

from itertools import combinations

import mpmath as mp
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, log_expit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_blobs
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import posteriori as ours
from posteriori.errors import LabelError, ParameterError, ShapeError
from posteriori.models.multiclass import OneVersusOne, OneVersusRest

BOTH = pytest.mark.parametrize("way", [OneVersusRest, OneVersusOne])
X_BLOBS, Y_BLOBS = make_blobs(n_samples=120, centers=4, cluster_std=2.5, random_state=1)


class ReadsMargin(ClassifierMixin, BaseEstimator):
    """Its margin is the column of X that was its target, as -1 and 1, in the rows of the fit."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.column_ = int((2 * y[:, None] - 1 == X).all(axis=0).argmax())
        return self

    def decision_function(self, X):
        return np.asarray(X, dtype=float)[:, self.column_]

    def predict_log_proba(self, X):
        margin = self.decision_function(X)
        return np.column_stack([log_expit(-margin), log_expit(margin)])

    def predict_proba(self, X):
        return np.exp(self.predict_log_proba(X))


def rest_on_margins(labels, **given):
    """A OneVersusRest whose classifier k has column k of X as its margin."""
    return OneVersusRest(ReadsMargin(), **given).fit(2 * np.eye(len(labels)) - 1, labels)


def one_on_margins(n_classes, **given):
    """A OneVersusOne whose margins of (0, 1), (0, 2), ... are the columns of X."""
    pairs = combinations(range(n_classes), 2)
    X = np.array([(np.arange(n_classes) == j) * 1 - (np.arange(n_classes) == i) for i, j in pairs])
    return OneVersusOne(ReadsMargin(), **given).fit(X.T, np.arange(n_classes))


# --- Ambiguous regions (Figure 4.2), rejection ----------------------------------------------------


def test_rows_that_not_exactly_one_class_claims_are_ambiguous():
    margins = np.array([[-1.0, -2.0, -3.0], [0.5, -1.0, -1.0], [1.0, 2.0, -1.0], [0, 0, 0]])
    model = rest_on_margins(["a", "b", "c"])
    assert_array_equal(model.ambiguous_rows(margins), [True, False, True, True])
    assert_array_equal(model.predict(margins), ["a", "a", "b", "a"])
    assert_array_equal(model.decision_function(margins), margins)


CYCLE = [-1.0, 2.0, -0.5]  # 0 beats 1, 2 beats 0, 1 beats 2


def test_a_cycle_of_pairs_is_ambiguous_and_goes_to_the_largest_sum_of_margins():
    model = one_on_margins(3)
    X = np.array([CYCLE, [-1.0, -1.0, 5.0], [3.0, 3.0, 0.1], [np.inf, np.inf, -np.inf]])
    assert_array_equal(model.ambiguous_rows(X), [True, False, False, False])
    assert_array_equal(model.predict(X), [2, 0, 2, 1])
    sums = np.array([1.0 - 2.0, -1.0 + 0.5, 2.0 - 0.5])
    expected = 1 + sums / (3 * (abs(sums) + 1))
    assert_allclose(model.decision_function(X)[0], expected, rtol=1e-14)


@BOTH
def test_two_classes_need_one_classifier_and_are_never_ambiguous(way):
    X, y = X_BLOBS[Y_BLOBS < 2], np.array(["u", "v"])[Y_BLOBS[Y_BLOBS < 2]]
    model, alone = way(LogisticRegression()).fit(X, y), LogisticRegression().fit(X, y)
    assert len(model.estimators_) == 1
    for name in ("decision_function", "predict_proba", "predict_log_proba", "predict"):
        assert_array_equal(getattr(model, name)(X), getattr(alone, name)(X))
    assert not model.ambiguous_rows(X).any()
    for name in ("predict_proba", "predict_log_proba"):  # only if the estimator has them
        assert hasattr(way(LogisticRegression()), name)
        assert not hasattr(way(LinearSVC()), name)


@pytest.mark.parametrize(
    ("labels", "reject", "kept"),
    [
        ([1, 2, 3], None, False),
        ([1.0, 2.0, 3.0], 9, True),
        (["aa", "bb", "cc"], "unknown", True),
        (["aa", "bb", "cc"], 0, False),
    ],
)
def test_rejected_rows_have_the_reject_label_and_score_as_wrong(labels, reject, kept):
    model = rest_on_margins(labels, ambiguous="reject", reject_label=reject)
    X = [[-1, -1, -1], [1, -1, -1]]
    predicted = model.predict(X)
    assert predicted.dtype.kind == (model.classes_.dtype.kind if kept else "O")
    assert predicted.tolist() == [reject, labels[0]]
    assert model.score(X, labels[:1] * 2) == 0.5
    assert model.score(X, labels[:1] * 2, sample_weight=[1, 3]) == 0.75


# --- Probabilities --------------------------------------------------------------------------------


def test_an_estimator_with_probabilities_only_has_them_less_one_half_as_margins():
    model = OneVersusRest(GaussianProcessClassifier()).fit(X_BLOBS, Y_BLOBS)
    p = np.column_stack([fitted.predict_proba(X_BLOBS)[:, 1] for fitted in model.estimators_])
    assert_allclose(model.decision_function(X_BLOBS), p - 0.5, atol=1e-14)
    assert_array_equal(model.ambiguous_rows(X_BLOBS), (p > 0.5).sum(axis=1) != 1)
    assert_allclose(model.predict_proba(X_BLOBS), p / p.sum(axis=1, keepdims=True), rtol=1e-12)
    logs = np.log(p / p.sum(axis=1, keepdims=True))
    assert_allclose(model.predict_log_proba(X_BLOBS), logs, atol=1e-12)


def exact_coupling(r):
    """p of one row at 80 digits: Q of Wu, Lin and Weng (2004), (16), and Qp = c1."""
    with mp.workdps(80):
        n_classes = len(r)
        Q = mp.matrix(n_classes, n_classes)
        for i, j in combinations(range(n_classes), 2):
            ours, theirs = mp.mpf(float(r[i, j])), mp.mpf(float(r[j, i]))
            Q[i, j] = Q[j, i] = -ours * theirs
            Q[i, i] += theirs**2
            Q[j, j] += ours**2
        p = mp.lu_solve(Q + mp.ones(n_classes), mp.ones(n_classes, 1))
        return [float(each / sum(p)) for each in p]


@pytest.mark.parametrize("size", [1.0, 10.0])
@pytest.mark.parametrize("n_classes", [3, 8])
def test_the_probabilities_of_pairs_are_coupled(n_classes, size):
    random = np.random.default_rng(0)
    pairs = list(combinations(range(n_classes), 2))
    logs, noise = size * random.normal(size=(6, n_classes)), random.normal(size=(6, len(pairs)))
    margins = np.column_stack([logs[:, j] - logs[:, i] for i, j in pairs]) + noise
    r = np.zeros((6, n_classes, n_classes))
    for (i, j), margin in zip(pairs, margins.T, strict=True):
        r[:, i, j], r[:, j, i] = expit(-margin), expit(margin)
    exact = np.array([exact_coupling(comparisons) for comparisons in r])
    found = one_on_margins(n_classes).predict_proba(margins)
    assert_allclose(found[exact > 1e-14], exact[exact > 1e-14], rtol=1e-11)
    assert_allclose(found, exact, rtol=1e-7, atol=1e-20)


# --- The fits -------------------------------------------------------------------------------------


def test_each_classifier_is_the_one_fitted_by_hand():
    rest = OneVersusRest(LogisticRegression()).fit(X_BLOBS, Y_BLOBS).estimators_
    for k, fitted in enumerate(rest):
        by_hand = LogisticRegression().fit(X_BLOBS, k == Y_BLOBS)
        assert_array_equal(fitted.coef_, by_hand.coef_)
    one = OneVersusOne(LogisticRegression()).fit(X_BLOBS, Y_BLOBS).estimators_
    for pair, fitted in zip(combinations(range(4), 2), one, strict=True):
        rows = np.isin(Y_BLOBS, pair)
        by_hand = LogisticRegression().fit(X_BLOBS[rows], Y_BLOBS[rows])
        assert_array_equal(fitted.coef_, by_hand.coef_)


@pytest.mark.filterwarnings("ignore::posteriori.errors.SingularCovarianceWarning")
@pytest.mark.parametrize(
    "base", [ours.LogisticRegression(prior=1.0), ours.FisherDiscriminant(shrinkage=0.1)], ids=str
)
def test_pairs_know_the_levels_that_only_other_classes_have(base):
    random = np.random.default_rng(0)
    y = np.arange(90) % 3
    colour = np.where(y == 2, "teal", random.choice(["blue", "red"], size=90))
    frame = pd.DataFrame({"size": random.normal(size=90) + y, "colour": colour})
    model = OneVersusOne(base).fit(frame, y)
    assert all(e.schema_.columns[1].levels == ("blue", "red", "teal") for e in model.estimators_)
    expected = clone(base).fit(frame, y, (y < 2) * 1.0).predict_proba(frame)
    assert_allclose(model.estimators_[0].predict_proba(frame), expected, rtol=1e-10)


@parametrize_with_checks([OneVersusRest(LogisticRegression()), OneVersusOne(LogisticRegression())])
def test_keeps_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


@BOTH
@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"y": np.zeros(120, dtype=int)}, LabelError, "one class"),
        ({"sample_weight": (Y_BLOBS == 2) * 1.0}, LabelError, "one class"),
        ({"y": np.eye(4)[Y_BLOBS]}, LabelError, "does not take soft labels"),
        ({"y": Y_BLOBS[:-1]}, ShapeError, "X has 120 rows but y has 119"),
        ({"ambiguous": "first"}, ParameterError, "ambiguous='first' is not understood"),
        ({"ambiguous": "reject", "reject_label": 3}, ParameterError, "reject_label=3 is a class"),
    ],
)
def test_what_cannot_be_fitted_is_named(way, given, error, words):
    model = way(LogisticRegression())
    rows = {"X": X_BLOBS, "y": Y_BLOBS} | {k: v for k, v in given.items() if not hasattr(model, k)}
    model.set_params(**{k: v for k, v in given.items() if hasattr(model, k)})
    with pytest.raises(error, match=words):
        model.fit(**rows)
