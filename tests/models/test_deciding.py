"""Classifiers that act: decisions by the probabilities of another, under losses and priors."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import posteriori
from posteriori import CalibratedClassifier, GaussianClassifier
from posteriori.decision.class_priors import adjust_priors
from posteriori.decision.decide import decide
from posteriori.errors import (
    DecisionWarning,
    LabelError,
    MissingValueError,
    ParameterError,
    ShapeError,
)
from posteriori.models.deciding import DecidingClassifier

X, CODES = make_blobs(n_samples=150, centers=3, cluster_std=3.0, random_state=1)
Y = np.array(["ant", "bee", "cat"])[CODES]
LOSS = np.array([[0.0, 4.0, 0.5, 9.0], [2.0, 0.0, 0.5, 9.0], [30.0, 8.0, 2.0, 0.0]])
ACTIONS = ["feed", "keep", "wait", "shoo"]
GIVEN = [0.2, 0.2, 0.6]
NEW = {"cat": 0.7, "ant": 0.1, "bee": 0.2}


@parametrize_with_checks([DecidingClassifier(LogisticRegression())])
def test_keeps_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("base", [LogisticRegression(), GaussianClassifier(), GaussianNB()])
@pytest.mark.parametrize("cost", [None, 0.8])
def test_decisions_are_those_by_the_probabilities_of_the_estimator(base, cost):
    model = DecidingClassifier(base, loss=LOSS, actions=ACTIONS, reject_cost=cost).fit(X, Y)
    p = clone(base).fit(X, Y).predict_proba(X)
    expected = decide(p, LOSS, actions=ACTIONS, reject_cost=cost)
    assert_array_equal(model.predict_proba(X), p)
    assert_array_equal(model.predict(X), expected.action)
    assert_array_equal(model.expected_loss(X), expected.expected_loss)
    assert_array_equal(model.decide(X).rejected, expected.rejected)
    assert_allclose(model.predict_log_proba(X), np.log(p), rtol=1e-9, atol=1e-15)
    assert set(model.predict(X)) == {*ACTIONS, *(["reject"] if cost else [])}


def test_with_other_priors_it_is_the_model_with_these_priors():
    model = DecidingClassifier(GaussianClassifier(), priors=NEW).fit(X, Y)
    other = GaussianClassifier(priors=NEW).fit(X, Y)
    assert_allclose(model.predict_proba(X), other.predict_proba(X), rtol=1e-12, atol=1e-15)
    assert_allclose(model.predict_log_proba(X), other.predict_log_proba(X), rtol=1e-10)
    assert_array_equal(model.predict(X), other.predict(X))


@pytest.mark.parametrize(
    "base",
    [
        GaussianNB(priors=GIVEN),
        GaussianClassifier(priors=GIVEN),
        make_pipeline(StandardScaler(), GaussianNB(priors=GIVEN)),
        FrozenEstimator(make_pipeline(StandardScaler(), GaussianNB(priors=GIVEN)).fit(X, Y)),
        GridSearchCV(GaussianNB(priors=GIVEN), {"var_smoothing": [1e-9]}, cv=2),
        DecidingClassifier(GaussianNB(), priors=GIVEN),
    ],
)
def test_priors_that_the_model_was_given_are_the_ones_to_leave(base):
    model = DecidingClassifier(base, priors=NEW).fit(X, Y)
    assert_allclose(model.training_priors_, GIVEN)
    expected = adjust_priors(model.estimator_.predict_proba(X), GIVEN, [0.1, 0.2, 0.7])
    assert_allclose(model.predict_proba(X), expected, rtol=1e-13)


def test_the_training_priors_are_the_shares_of_the_classes_by_weight():
    few = np.r_[np.flatnonzero(CODES == 0)[:10], np.flatnonzero(CODES > 0)]
    model = DecidingClassifier(LogisticRegression(), priors=NEW).fit(X[few], Y[few])
    assert_allclose(model.training_priors_, np.array([10, 50, 50]) / 110)
    weight = np.where(Y[few] == "ant", 5.0, 1.0)
    model.fit(X[few], Y[few], sample_weight=weight)
    assert_allclose(model.training_priors_, np.array([50, 50, 50]) / 150)
    soft = np.full((150, 3), 0.1)
    soft[np.arange(150), CODES] = 0.8
    soft[:50] = [0.5, 0.5, 0.0]
    base = posteriori.LogisticRegression(prior=1.0)
    model = DecidingClassifier(base, priors=[0.1, 0.2, 0.7]).fit(X, soft)
    assert_allclose(model.training_priors_, soft.mean(axis=0))
    frame = pd.DataFrame(X, columns=["u", "v"]).assign(y=Y)
    model = DecidingClassifier(base, priors=NEW).fit("y ~ u + v", frame)
    assert_allclose(model.training_priors_, [1 / 3, 1 / 3, 1 / 3])
    plain = DecidingClassifier(base, priors=NEW).fit(X, Y)
    assert_allclose(model.predict_proba(frame), plain.predict_proba(X), rtol=1e-6)


@pytest.mark.parametrize(
    "base",
    [
        FrozenEstimator(LogisticRegression().fit(X, Y)),
        CalibratedClassifier(GaussianNB(priors=GIVEN)),
        LogisticRegression(class_weight="balanced"),
        make_pipeline(StandardScaler(), LogisticRegression(class_weight={"ant": 3.0})),
        OneVsRestClassifier(LogisticRegression(class_weight="balanced")),
    ],
)
def test_training_priors_that_are_not_known_are_to_be_given(base):
    model = DecidingClassifier(base, priors=NEW)
    with pytest.raises(ParameterError, match=r"priors are not known.*training_priors="):
        model.fit(X, Y)
    model.set_params(training_priors=[1 / 3, 1 / 3, 1 / 3]).fit(X, Y)
    p = model.estimator_.predict_proba(X)
    expected = adjust_priors(p, [1 / 3, 1 / 3, 1 / 3], [0.1, 0.2, 0.7])
    assert_allclose(model.predict_proba(X), expected, rtol=1e-12)


def test_the_score_is_minus_the_mean_loss_that_came_true():
    model = DecidingClassifier(GaussianNB(), loss=LOSS, actions=ACTIONS, reject_cost=0.8)
    found = model.fit(X, Y).decide(X)
    losses = [0.8 if a < 0 else LOSS[k, a] for k, a in zip(CODES, found.code, strict=True)]
    assert_allclose(model.score(X, Y), -np.mean(losses), rtol=1e-14)
    weight = np.arange(150.0)
    expected = -np.average(losses, weights=weight)
    assert_allclose(model.score(X, Y, sample_weight=weight), expected, rtol=1e-14)
    with pytest.raises(LabelError, match="'dog'"):
        model.score(X[:2], ["ant", "dog"])
    with pytest.raises(LabelError, match="soft"):
        model.score(X[:1], [[0.5, 0.5, 0.0]])
    plain = GaussianNB().fit(X, Y)
    model = DecidingClassifier(GaussianNB()).fit(X, Y)
    assert_array_equal(model.predict(X), plain.predict(X))
    assert model.score(X, Y) == plain.score(X, Y)
    assert model.score(X[:2], ["dog", "dog"]) == 0.0


def test_rows_may_have_losses_and_costs_of_rejecting_of_their_own():
    model = DecidingClassifier(GaussianNB(), loss=np.c_[LOSS, [50, 50, 50]])
    with pytest.warns(DecisionWarning, match="4 is never") as caught:
        model.fit(X, Y)
    assert [each.filename for each in caught] == [__file__]
    model.decide(X)  # without a warning, which would be an error
    model.set_params(loss=LOSS, actions=ACTIONS).fit(X, Y)
    own = LOSS + np.random.default_rng(0).uniform(size=(150, 1, 1)) * LOSS[:, ::-1]
    costs = np.einsum("nk,nka->na", model.predict_proba(X), own)
    found = model.decide(X, loss=own)
    assert_array_equal(found.action, np.array(ACTIONS)[costs.argmin(axis=1)])
    assert_allclose(found.expected_loss, costs.min(axis=1))
    cost = np.linspace(-0.1, 3, 150)
    found = model.decide(X, reject_cost=cost)
    assert_array_equal(found.rejected, cost < model.expected_loss(X))


@pytest.mark.parametrize(
    ("base", "given", "error", "words"),
    [
        (LinearSVC(), {}, ParameterError, "LinearSVC has no predict_proba"),
        (GaussianNB(), {"loss": LOSS[:2]}, ShapeError, r"\(2, 4\)"),
        (GaussianNB(), {"loss": LOSS + np.nan}, MissingValueError, "in class 'ant' is missing"),
        (GaussianNB(), {"reject_cost": np.nan}, MissingValueError, "reject_cost"),
        (GaussianNB(), {"reject_cost": np.ones(150)}, ShapeError, "a number"),
    ],
)
def test_what_cannot_be_done_is_an_error_in_the_fit(base, given, error, words):
    with pytest.raises(error, match=words):
        DecidingClassifier(base, **given).fit(X, Y)


def test_the_summary_shows_losses_actions_reject_cost_and_threshold():
    model = DecidingClassifier(GaussianNB(), loss=LOSS, actions=ACTIONS, reject_cost=0.8)
    page = str(model.fit(X, Y).summary())
    for text in ("Losses in class 'ant': 'feed' 0, 'keep' 4, 'wait' 0.5, 'shoo' 9.", "Reject cost"):
        assert text in " ".join(page.split())
    assert "Threshold" not in page
    two = DecidingClassifier(GaussianClassifier(), loss=[[0, 1], [9, 0]]).fit(X, CODES > 0)
    assert two.rule_.threshold == two.decide(X).threshold == 0.1
    page = " ".join(str(two.summary()).split())
    assert "Threshold 0.1" in page
    assert_array_equal(two.predict(X), two.predict_proba(X)[:, 1] > 0.1)
