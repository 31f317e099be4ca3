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
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import posteriori as ours
from posteriori.errors import ColumnTypeError, LabelError, ParameterError, ShapeError
from posteriori.models.multiclass import OneVersusOne, OneVersusRest, couple

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


class ReadsProbability(ReadsMargin):
    """The same, but the numbers are probabilities, and there are no logarithms of them."""

    decision_function = property()
    predict_log_proba = property()

    def predict_proba(self, X):
        return np.column_stack([1 - X[:, self.column_], X[:, self.column_]])


def rest_on_margins(labels, estimator=None, **given):
    """A OneVersusRest whose classifier k has column k of X as its margin."""
    X = 2 * np.eye(len(labels)) - 1
    return OneVersusRest(estimator or ReadsMargin(), **given).fit(X, labels)


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
        ([1, 2, 3], -1, True),
        ([1, 2, 3], "none", False),
        ([1.0, 2.0, 3.0], np.nan, True),
        (["aa", "bb", "cc"], "unknown", True),
        (["aa", "bb", "cc"], 0, False),
        (np.array(["aa", "bb", "cc"], dtype=object), ("any", "thing"), True),
    ],
)
def test_rejected_rows_have_the_reject_label_and_the_type_of_the_labels_if_that_holds_it(
    labels, reject, kept
):
    model = rest_on_margins(labels, ambiguous="reject", reject_label=reject)
    predicted = model.predict([[-1, -1, -1], [1, -1, -1]])
    assert predicted.dtype.kind == (model.classes_.dtype.kind if kept else "O")
    assert predicted[0] == reject or (predicted[0] != predicted[0] and reject != reject)
    assert type(predicted[0]) is type(reject) or kept
    assert predicted[1] == labels[0]


def test_a_rejected_row_scores_as_wrong():
    X = np.array([CYCLE, [3.0, 3.0, 0.1], [-1.0, -1.0, 1.0], [-1.0, -1.0, 1.0]])
    y = [2, 2, 0, 1]
    assert one_on_margins(3).score(X, y) == 0.75
    rejecting = one_on_margins(3, ambiguous="reject")
    assert rejecting.score(X, y) == 0.5
    assert rejecting.score(X, y, sample_weight=[0, 3, 1, 1]) == pytest.approx(0.8)


# --- Probabilities --------------------------------------------------------------------------------


def test_the_probabilities_of_pairs_are_coupled_in_the_right_order():
    p = np.array([[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.25, 0.05]])
    X = np.column_stack([np.log(p[:, j] / p[:, i]) for i, j in combinations(range(4), 2)])
    model = one_on_margins(4)
    assert_allclose(model.predict_proba(X), p, rtol=1e-12)
    assert_allclose(model.predict_log_proba(X), np.log(p), rtol=1e-12)


def test_against_the_rest_probabilities_are_normalised():
    X = np.array([[0.5, -1.0, 2.0], [-3.0, -4.0, -5.0]])
    expected = expit(X) / expit(X).sum(axis=1, keepdims=True)
    model = rest_on_margins([0, 1, 2])
    assert_allclose(model.predict_proba(X), expected, rtol=1e-14)
    assert_allclose(model.predict_log_proba(X), np.log(expected), rtol=1e-12)


def test_without_decision_values_the_probability_less_one_half_is_the_margin():
    model = rest_on_margins([0, 1, 2], ReadsProbability())
    X = np.array([[0.2, 0.7, 0.6], [0.5, 0.1, 0.2], [0.0, 0.0, 0.0], [0.0, 0.2, 0.6]])
    assert_allclose(model.decision_function(X), X - 0.5)
    assert_array_equal(model.ambiguous_rows(X), [True, True, True, False])
    expected = [[1 / 3, 1 / 3, 1 / 3], [0, 0.25, 0.75]]  # where all are zero, they share it
    assert_allclose(model.predict_proba(X[2:]), expected, rtol=1e-14)


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
        ({"y": X_BLOBS[:, 0]}, LabelError, "continuous"),
        ({"y": Y_BLOBS[:-1]}, ShapeError, "X has 120 rows but y has 119"),
        ({"X": X_BLOBS * 1j}, ColumnTypeError, "Complex"),
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


# --- Coupling of pairwise probabilities -----------------------------------------------------------

RANDOM = np.random.default_rng(0)


def from_odds(odds):
    """r (n, K, K) of log odds, of which those of i < j count."""
    upper = np.triu(odds, 1)
    return expit(upper - upper.swapaxes(1, 2)) * (1 - np.eye(odds.shape[1]))


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
        return [each / sum(p) for each in p]


@pytest.mark.parametrize("spread", [0.0, 1.0])
@pytest.mark.parametrize("size", [1.0, 10.0])
def test_coupled_probabilities_are_accurate(size, spread):
    for n_classes in (2, 3, 8):
        logs = size * RANDOM.normal(size=(6, n_classes, 1))
        noise = RANDOM.normal(size=(6, n_classes, n_classes))
        r = from_odds(logs - logs.swapaxes(1, 2) + spread * noise)
        for comparisons, found in zip(r, couple(r), strict=True):
            exact = np.array([float(each) for each in exact_coupling(comparisons)])
            large = exact > 1e-14
            assert_allclose(found[large], exact[large], rtol=1e-11)
            assert_allclose(found, exact, rtol=1e-7, atol=1e-20)
