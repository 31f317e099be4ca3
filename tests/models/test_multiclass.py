"""Many classes from two-class classifiers: regions that nobody or everybody claims, coupling."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from scipy.special import expit, log_expit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import posteriori as ours
from posteriori import FisherDiscriminant, NaiveBayes
from posteriori.errors import (
    ColumnTypeError,
    LabelError,
    ParameterError,
    ShapeError,
)
from posteriori.models.gaussian import GaussianClassifier
from posteriori.models.multiclass import OneVersusOne, OneVersusRest

BOTH = pytest.mark.parametrize("way", [OneVersusRest, OneVersusOne])
RANDOM = np.random.default_rng(3)
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


def test_no_sum_of_margins_outweighs_a_vote():
    model = one_on_margins(3)
    # 0 wins both by a hair, 2 wins the third by a mile.
    X = np.array([[-1e-9, -1e-9, 1e30]])
    assert model.predict(X)[0] == 0
    assert not model.ambiguous_rows(X)[0]


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
        ([1, 2, 3], 0.5, False),
        ([1, 2, 3], "none", False),
        ([1, 2, 3], False, False),
        ([1.0, 2.0, 3.0], np.nan, True),
        ([1.0, 2.0, 3.0], None, False),
        (np.array([1, 2, 3], dtype=np.uint8), -1, False),
        (["aa", "bb", "cc"], "?", True),
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


@BOTH
@pytest.mark.parametrize(
    "estimator", [LogisticRegression(), GaussianNB(), KNeighborsClassifier(7), GaussianClassifier()]
)
def test_probabilities_sum_to_one_and_scores_agree_with_predictions(way, estimator):
    model = way(estimator).fit(X_BLOBS, Y_BLOBS)
    X = np.vstack([X_BLOBS, 100 * X_BLOBS])
    p = model.predict_proba(X)
    assert np.isfinite(p).all()
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_array_equal(model.decision_function(X).argmax(axis=1), model.predict(X))


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


@BOTH
@pytest.mark.parametrize("form", ["csr", "csc"])
def test_sparse_rows_give_the_same_as_dense_ones(way, form):
    X = np.where(abs(X_BLOBS) > 2, X_BLOBS, 0.0)
    for rows in (sparse.csr_array(X).asformat(form), sparse.csr_matrix(X).asformat(form)):
        model = way(LogisticRegression(tol=1e-10)).fit(rows, Y_BLOBS)
        plain = way(LogisticRegression(tol=1e-10)).fit(X, Y_BLOBS)
        np.testing.assert_allclose(model.predict_proba(rows), plain.predict_proba(X), atol=1e-6)


@BOTH
def test_a_weight_of_two_is_a_row_twice_and_a_weight_of_zero_is_no_row(way):
    weight = RANDOM.integers(0, 3, size=len(Y_BLOBS)).astype(float)
    rows = np.repeat(np.arange(len(Y_BLOBS)), weight.astype(int))
    base = LogisticRegression(tol=1e-10)
    weighted = way(base).fit(X_BLOBS, Y_BLOBS, sample_weight=weight)
    repeated = way(base).fit(X_BLOBS[rows], Y_BLOBS[rows])
    np.testing.assert_allclose(
        weighted.predict_proba(X_BLOBS), repeated.predict_proba(X_BLOBS), atol=1e-6
    )


@BOTH
def test_a_class_of_weight_zero_is_absent(way):
    weight = np.where(Y_BLOBS == 1, 0.0, 1.0)
    for X in (X_BLOBS, pd.DataFrame(X_BLOBS), X_BLOBS.tolist(), sparse.csr_array(X_BLOBS)):
        model = way(LogisticRegression()).fit(X, Y_BLOBS, weight)
        np.testing.assert_array_equal(model.classes_, [0, 2, 3])
        assert model.predict_proba(X).shape == (120, 3)


@BOTH
def test_parameters_of_the_estimator_can_be_searched(way):
    model = way(make_pipeline(StandardScaler(), LogisticRegression()))
    grid = {"estimator__logisticregression__C": [1e-4, 1.0]}
    search = GridSearchCV(model, grid, cv=3).fit(X_BLOBS, Y_BLOBS)
    assert search.best_params_ == {"estimator__logisticregression__C": 1.0}
    assert clone(model).get_params()["estimator__logisticregression__C"] == 1.0


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
    with pytest.raises(ParameterError, match="precomputed kernel"):
        way(SVC(kernel="precomputed")).fit(X_BLOBS @ X_BLOBS.T, Y_BLOBS)


@BOTH
def test_nothing_is_predicted_before_the_fit(way):
    model = way(LogisticRegression())
    for method in (model.predict, model.decision_function, model.predict_proba):
        with pytest.raises(NotFittedError):
            method(X_BLOBS)
    with pytest.raises(NotFittedError):
        model.ambiguous_rows(X_BLOBS)


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


def test_classes_keep_the_order_that_a_categorical_declares():
    y = pd.Series(np.array(["mid", "low", "top"])[Y_BLOBS % 3]).astype(
        pd.CategoricalDtype(["low", "mid", "top"][::-1])
    )
    for model in (OneVersusRest(), OneVersusOne()):
        assert model.fit(X_BLOBS, y).classes_.tolist() == ["top", "mid", "low"]


@BOTH
def test_a_fit_that_is_interrupted_leaves_all_as_it_was(way, monkeypatch):
    model = way(ours.LogisticRegression(prior=1.0)).fit(X_BLOBS, Y_BLOBS)
    before, found = vars(model).copy(), model.predict_proba(X_BLOBS)
    fit, calls = ours.LogisticRegression.fit, []

    def stop(self, *args, **kwargs):
        calls.append(self)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return fit(self, *args, **kwargs)

    monkeypatch.setattr(ours.LogisticRegression, "fit", stop)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X_BLOBS, np.arange(len(X_BLOBS)) % 4)
    assert vars(model) == before
    np.testing.assert_array_equal(model.predict_proba(X_BLOBS), found)


@parametrize_with_checks([OneVersusRest(LogisticRegression()), OneVersusOne(LogisticRegression())])
def test_the_contract_of_scikit_learn_holds(estimator, check):
    check(estimator)
