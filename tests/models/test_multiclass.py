"""Many classes from two-class classifiers: regions that nobody or everybody claims, coupling."""

from itertools import combinations, permutations

import mpmath as mp
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_expit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import posteriori as ours
from posteriori import FisherDiscriminant, NaiveBayes
from posteriori.errors import (
    ColumnTypeError,
    LabelError,
    ParameterError,
    ShapeError,
)
from posteriori.models.multiclass import OneVersusOne, OneVersusRest, couple

BOTH = pytest.mark.parametrize("way", [OneVersusRest, OneVersusOne])
X_BLOBS, Y_BLOBS = make_blobs(n_samples=120, centers=4, cluster_std=2.5, random_state=1)


class NearerMean(ClassifierMixin, BaseEstimator):
    """Which of two means is nearer; positive for the second. It gives no probabilities."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.n_features_in_ = X.shape[1]
        self.n_parameters_ = 3
        first, second = (X[y == label].mean(axis=0) for label in self.classes_)
        self.normal_ = second - first
        self.offset_ = (first @ first - second @ second) / 2
        return self

    def decision_function(self, X):
        return np.asarray(X) @ self.normal_ + self.offset_

    def predict(self, X):
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


class ReadsMargin(NearerMean):
    """Takes its margin from the column that is the target, as -1 and 1, in the rows of the fit."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.column_ = int((np.asarray(X) == 2 * y[:, None] - 1).all(axis=0).argmax())
        return self

    def decision_function(self, X):
        return np.asarray(X, dtype=float)[:, self.column_]

    def predict_log_proba(self, X):
        margin = self.decision_function(X)
        return np.column_stack([log_expit(-margin), log_expit(margin)])

    def predict_proba(self, X):
        margin = self.decision_function(X)
        return np.column_stack([expit(-margin), expit(margin)])


class ReadsProbability(ReadsMargin):
    """As `ReadsMargin`, but the numbers are probabilities, and there are no logarithms of them."""

    decision_function = property()
    predict_log_proba = property()

    def predict_proba(self, X):
        wins = np.asarray(X, dtype=float)[:, self.column_]
        return np.column_stack([1 - wins, wins])

    def predict(self, X):
        return self.classes_[(self.predict_proba(X)[:, 1] > 0.5).astype(int)]


class RemembersType(LogisticRegression):
    """Logistic regression that keeps what it was fitted with."""

    def fit(self, X, y, sample_weight=None):
        self.seen_ = type(X), X, sample_weight
        return super().fit(X, y, sample_weight)


def pairs(n_classes):
    return [(i, j) for i in range(n_classes) for j in range(i + 1, n_classes)]


def rest_on_margins(n_classes, estimator=None, **given):
    """A OneVersusRest whose classifier k has column k of X as its margin."""
    X = 2 * np.eye(n_classes) - 1
    base = ReadsMargin() if estimator is None else estimator
    return OneVersusRest(base, **given).fit(X, np.arange(n_classes))


def one_on_margins(n_classes, estimator=None, **given):
    """A OneVersusOne whose margins of (0, 1), (0, 2), ... are the columns of X."""
    X = np.array([[(j == k) - (i == k) for i, j in pairs(n_classes)] for k in range(n_classes)])
    base = ReadsMargin() if estimator is None else estimator
    return OneVersusOne(base, **given).fit(X, np.arange(n_classes))


# --- Ambiguous regions (Figure 4.2) ---------------------------------------------------------

ANGLES = np.pi / 2 + np.arange(3) * 2 * np.pi / 3
CORNERS = np.column_stack([np.cos(ANGLES), np.sin(ANGLES)])


def test_against_the_rest_the_centre_is_nobodys_and_the_sides_are_claimed_twice():
    # The mean of the rest is -v/2, so corner v claims where vᵀx > 1/4.
    model = OneVersusRest(NearerMean()).fit(CORNERS, ["a", "b", "c"])
    centre, near_a, between = np.zeros(2), 0.3 * CORNERS[0], -0.6 * CORNERS[2]
    X = np.array([centre, near_a, between, 0.24 * CORNERS[1], -0.49 * CORNERS[0]])
    claims = (X @ CORNERS.T > 0.25).sum(axis=1)
    np.testing.assert_array_equal(claims, [0, 1, 2, 0, 0])
    np.testing.assert_array_equal(model.ambiguous_rows(X), claims != 1)
    np.testing.assert_allclose(model.decision_function(X), 1.5 * (X @ CORNERS.T) - 0.375)


CYCLE = [-1.0, 2.0, -0.5]  # 0 beats 1, 2 beats 0, 1 beats 2


def test_a_cycle_of_pairs_is_ambiguous_and_goes_to_the_largest_sum_of_margins():
    model = one_on_margins(3)
    X = np.array([CYCLE, [-1.0, -1.0, 5.0], [3.0, 3.0, 0.1]])
    np.testing.assert_array_equal(model.ambiguous_rows(X), [True, False, False])
    np.testing.assert_array_equal(model.predict(X), [2, 0, 2])
    sums = np.array([1.0 - 2.0, -1.0 + 0.5, 2.0 - 0.5])
    np.testing.assert_allclose(
        model.decision_function(X)[0], 1 + np.arctan(np.arcsinh(sums)) / 4, rtol=1e-14
    )


@BOTH
def test_two_classes_need_one_classifier_and_are_never_ambiguous(way):
    X, y = X_BLOBS[Y_BLOBS < 2], np.array(["u", "v"])[Y_BLOBS[Y_BLOBS < 2]]
    model = way(LogisticRegression()).fit(X, y)
    alone = LogisticRegression().fit(X, y)
    assert len(model.estimators_) == 1
    np.testing.assert_array_equal(model.decision_function(X), alone.decision_function(X))
    np.testing.assert_array_equal(model.predict_proba(X), alone.predict_proba(X))
    np.testing.assert_array_equal(model.predict_log_proba(X), alone.predict_log_proba(X))
    np.testing.assert_array_equal(model.predict(X), alone.predict(X))
    assert not model.ambiguous_rows(X).any()


# --- Rejection ------------------------------------------------------------------------------


def test_rejected_rows_have_the_reject_label_and_others_are_unchanged():
    model = one_on_margins(3, ambiguous="reject", reject_label=-1)
    X = np.array([CYCLE, [3.0, 3.0, 0.1]])
    np.testing.assert_array_equal(model.predict(X), [-1, 2])
    assert model.predict(X).dtype == model.classes_.dtype


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
def test_the_labels_keep_their_type_where_it_holds_the_reject_label(labels, reject, kept):
    model = OneVersusRest(NearerMean(), ambiguous="reject", reject_label=reject)
    model.fit(CORNERS, labels)
    predicted = model.predict(np.array([[0.0, 0.0], CORNERS[0]]))
    assert (predicted.dtype.kind == model.classes_.dtype.kind) == kept
    assert kept or predicted.dtype == object
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


# --- Probabilities --------------------------------------------------------------------------


def test_the_probabilities_of_pairs_are_coupled_in_the_right_order():
    p = np.array([[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.25, 0.05]])
    margins = np.column_stack([np.log(p[:, j] / p[:, i]) for i, j in pairs(4)])
    model = one_on_margins(4)
    np.testing.assert_allclose(model.predict_proba(margins), p, rtol=1e-12)
    np.testing.assert_allclose(model.predict_log_proba(margins), np.log(p), rtol=1e-12)


def test_against_the_rest_probabilities_are_normalised():
    X = np.array([[0.5, -1.0, 2.0], [-3.0, -4.0, -5.0]])
    expected = expit(X) / expit(X).sum(axis=1, keepdims=True)
    model = rest_on_margins(3)
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-14)
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(expected), rtol=1e-12)


def test_classes_that_all_have_probability_zero_share_it():
    model = OneVersusRest(ReadsProbability())
    model.fit(2 * np.eye(4) - 1, np.arange(4))
    X = np.array([[0.0, 0.0, 0.0, 0.0], [0.0, 0.2, 0.6, 0.0]])
    np.testing.assert_allclose(model.predict_proba(X), [[0.25] * 4, [0, 0.25, 0.75, 0]], rtol=1e-14)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))


def test_without_decision_values_the_probability_less_one_half_is_the_margin():
    model = OneVersusRest(ReadsProbability())
    model.fit(2 * np.eye(3) - 1, np.arange(3))
    X = np.array([[0.2, 0.7, 0.6], [0.5, 0.1, 0.2]])
    np.testing.assert_allclose(model.decision_function(X), X - 0.5)
    np.testing.assert_array_equal(model.ambiguous_rows(X), [True, True])
    np.testing.assert_array_equal(model.predict(X), [1, 0])


@BOTH
def test_probabilities_are_there_only_if_the_estimator_has_them(way):
    for name in ("predict_proba", "predict_log_proba"):
        assert hasattr(way(LogisticRegression()), name)
        assert not hasattr(way(LinearSVC()), name)
        assert not hasattr(way(NearerMean()).fit(CORNERS, [0, 1, 2]), name)


# --- The fits -------------------------------------------------------------------------------


def test_each_classifier_of_the_rest_is_the_one_fitted_by_hand():
    model = OneVersusRest(LogisticRegression()).fit(X_BLOBS, Y_BLOBS)
    for k, fitted in enumerate(model.estimators_):
        by_hand = LogisticRegression().fit(X_BLOBS, k == Y_BLOBS)
        np.testing.assert_array_equal(fitted.coef_, by_hand.coef_)


def test_each_classifier_of_a_pair_is_the_one_fitted_by_hand():
    model = OneVersusOne(LogisticRegression()).fit(X_BLOBS, Y_BLOBS)
    assert len(model.estimators_) == 6
    for (i, j), fitted in zip(pairs(4), model.estimators_, strict=True):
        rows = np.isin(Y_BLOBS, [i, j])
        by_hand = LogisticRegression().fit(X_BLOBS[rows], Y_BLOBS[rows])
        np.testing.assert_array_equal(fitted.coef_, by_hand.coef_)


FRAMES = [
    pd.DataFrame,
    pl.DataFrame,
    lambda columns: pa.table({k: list(columns[k]) for k in columns}),
]


@BOTH
@pytest.mark.parametrize("frame", FRAMES, ids=["pandas", "polars", "pyarrow"])
def test_frames_give_the_same_as_arrays_and_reach_the_estimator_as_frames(way, frame):
    X = frame({"p": X_BLOBS[:, 0], "q": X_BLOBS[:, 1]})
    labels = np.array(["k", "l", "m", "n"])[Y_BLOBS]
    model = way(RemembersType()).fit(X, labels)
    plain = way(LogisticRegression()).fit(X_BLOBS, labels)
    for fitted in model.estimators_:
        assert fitted.seen_[0] is type(X)
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X_BLOBS))
    np.testing.assert_array_equal(model.predict(X), plain.predict(X_BLOBS))
    assert model.n_features_in_ == 2
    assert list(model.feature_names_in_) == ["p", "q"]


def test_rows_are_picked_by_place_whatever_the_index_of_the_frame():
    X = pd.DataFrame(X_BLOBS, columns=["p", "q"], index=np.zeros(len(X_BLOBS), dtype=int))
    model = OneVersusOne(RemembersType()).fit(X, pd.Series(Y_BLOBS, index=X.index))
    np.testing.assert_array_equal(model.estimators_[1].seen_[1], X_BLOBS[np.isin(Y_BLOBS, [0, 2])])


# --- Errors ---------------------------------------------------------------------------------


@BOTH
def test_what_cannot_be_fitted_is_named(way):
    model = way(LogisticRegression())
    with pytest.raises(LabelError, match="one class"):
        model.fit(X_BLOBS, np.zeros(120, dtype=int))
    with pytest.raises(LabelError, match="one class"):
        model.fit(X_BLOBS, Y_BLOBS, sample_weight=(Y_BLOBS == 2).astype(float))
    with pytest.raises(LabelError, match="does not take soft labels"):
        model.fit(X_BLOBS, np.eye(4)[Y_BLOBS])
    with pytest.raises(LabelError, match="continuous"):
        model.fit(X_BLOBS, X_BLOBS[:, 0])
    with pytest.raises(ShapeError, match="X has 120 rows but y has 119"):
        model.fit(X_BLOBS, Y_BLOBS[:-1])
    with pytest.raises(ColumnTypeError, match="lazy frame"):
        model.fit(pl.LazyFrame({"x": [1.0, 2.0]}), [0, 1])
    with pytest.raises(ColumnTypeError, match="Complex"):
        model.fit(X_BLOBS * 1j, Y_BLOBS)


@BOTH
def test_settings_that_cannot_be_honoured_are_errors(way):
    base = LogisticRegression()
    with pytest.raises(ParameterError, match="ambiguous='first' is not understood"):
        way(base, ambiguous="first").fit(X_BLOBS, Y_BLOBS)
    with pytest.raises(ParameterError, match="reject_label=3 is a class"):
        way(base, ambiguous="reject", reject_label=3).fit(X_BLOBS, Y_BLOBS)


@pytest.mark.filterwarnings("ignore::posteriori.errors.SingularCovarianceWarning")
@pytest.mark.parametrize(
    "base",
    [ours.LogisticRegression(prior=1.0), NaiveBayes(), FisherDiscriminant(shrinkage=0.1)],
    ids=str,
)
def test_pairs_know_the_levels_that_only_other_classes_have(base):
    random = np.random.default_rng(0)
    y = np.arange(90) % 3
    colour = np.where(y == 2, "teal", random.choice(["blue", "red"], size=90))
    frame = pd.DataFrame({"size": random.normal(size=90) + y, "colour": colour})
    model = OneVersusOne(base).fit(frame, y)
    assert all(e.schema_.columns[1].levels == ("blue", "red", "teal") for e in model.estimators_)
    assert model.score(frame, y) > 0.6
    weight = (y < 2) * 1.0
    expected = clone(base).fit(frame, y, weight).predict_proba(frame)
    np.testing.assert_allclose(model.estimators_[0].predict_proba(frame), expected, rtol=1e-10)


@parametrize_with_checks([OneVersusRest(LogisticRegression()), OneVersusOne(LogisticRegression())])
def test_the_contract_of_scikit_learn_holds(estimator, check):
    check(estimator)


# Coupling of pairwise probabilities.


RANDOM = np.random.default_rng(0)


def objective(p, r):
    """Wu, Lin and Weng (2004), (14), written out."""
    return sum((r[j, i] * p[i] - r[i, j] * p[j]) ** 2 for i, j in permutations(range(len(p)), 2))


def from_odds(odds):
    """r (n, K, K) of log odds, of which those of i < j count."""
    upper = np.triu(odds, 1)
    return expit(upper - upper.swapaxes(1, 2)) * (1 - np.eye(odds.shape[1]))


def exact_coupling(r):
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


@pytest.mark.parametrize("spread", [0.0, 1e-6, 1.0])
@pytest.mark.parametrize("size", [1.0, 10.0])
def test_small_probabilities_have_their_digits(size, spread):
    """Where comparisons all but agree, their last bits decide between them: see the tolerance."""
    for n_classes in (2, 3, 5, 8):
        logs = size * RANDOM.normal(size=(6, n_classes, 1))
        noise = RANDOM.normal(size=(6, n_classes, n_classes))
        r = from_odds(logs - logs.swapaxes(1, 2) + spread * noise)
        for comparisons, found in zip(r, couple(r), strict=True):
            for own, expected in zip(found, exact_coupling(comparisons), strict=True):
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
