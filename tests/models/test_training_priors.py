"""The priors that probabilities rest on, read from models, their wrappers, and weights."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from posteriori import CalibratedClassifier, DecidingClassifier
from posteriori.errors import ParameterError

RANDOM = np.random.default_rng(5)
N = 120
Y = np.repeat(["no", "yes"], [90, 30])
X = RANDOM.normal(size=(N, 2)) + (Y == "yes")[:, None]
WEIGHT = np.where(Y == "yes", 7.0, 1.0) * RANDOM.uniform(0.5, 1.5, N)
TOTAL = np.array([WEIGHT[Y == "no"].sum(), WEIGHT[Y == "yes"].sum()])
COUNT = np.array([90, 30])
NEW = [0.5, 0.5]


def priors_left(base, weight=None):
    return DecidingClassifier(base, priors=NEW).fit(X, Y, sample_weight=weight).training_priors_


def told_by_nothing(base):
    """What the model says of rows that all look the same: the priors that it has learnt."""
    return base.fit(np.zeros((N, 1)), Y, sample_weight=WEIGHT).predict_proba([[0.0]])[0]


BALANCED = {"class_weight": "balanced"}


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        (LogisticRegression(**BALANCED), np.ones(2)),
        (DecisionTreeClassifier(**BALANCED), TOTAL / COUNT),
        (LogisticRegression(class_weight={"no": 3.0}), TOTAL * [3, 1]),
        (DecisionTreeClassifier(class_weight={"no": 3.0}), TOTAL * [3, 1]),
        (LogisticRegression(), TOTAL),
    ],
)
def test_weights_of_rows_and_classes_make_the_priors_that_the_model_learns(base, expected):
    share = expected / expected.sum()
    assert_allclose(priors_left(base, WEIGHT), share, rtol=1e-12)
    assert_allclose(told_by_nothing(base), share, atol=1e-4)


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda base: GridSearchCV(base, {"tol": [1e-4]}, cv=2),
        lambda base: make_pipeline(StandardScaler(), base),
        lambda base: GridSearchCV(
            make_pipeline(StandardScaler(), base), {"logisticregression__C": [1.0]}, cv=2
        ),
        FixedThresholdClassifier,
        CalibratedClassifier,
        DecidingClassifier,
    ],
    ids=["search", "pipeline", "search of pipelines", "threshold", "calibrated", "deciding"],
)
def test_weights_of_classes_are_found_inside_of_wrappers(wrapped):
    base = wrapped(LogisticRegression(class_weight={"no": 1.0, "yes": 3.0}))
    assert_allclose(priors_left(base), [0.5, 0.5], rtol=1e-12)


def test_the_weights_that_a_search_has_chosen_are_those_that_count():
    grid = {"class_weight": [None]}
    search = GridSearchCV(LogisticRegression(**BALANCED), grid, cv=2)
    assert_allclose(priors_left(search), [0.75, 0.25], rtol=1e-12)


def test_priors_are_found_inside_of_wrappers():
    base = GaussianNB(priors=[0.2, 0.8])
    search = GridSearchCV(base, {"var_smoothing": [1e-9]}, cv=2)
    fitted = FrozenEstimator(make_pipeline(StandardScaler(), search).fit(X, Y))
    for model in (search, fitted, CalibratedClassifier(base)):
        assert_allclose(priors_left(model), [0.2, 0.8], rtol=1e-12)


def test_probabilities_put_right_by_rows_rest_on_their_shares():
    base = LogisticRegression(**BALANCED)
    for model in (CalibratedClassifier(base, method="platt"), CalibratedClassifierCV(base, cv=3)):
        assert_allclose(priors_left(model), [0.75, 0.25], rtol=1e-12)


def test_priors_that_were_changed_inside_are_the_ones_to_leave():
    inner = DecidingClassifier(LogisticRegression(), priors=[0.1, 0.9])
    model = DecidingClassifier(inner, priors=NEW).fit(X, Y)
    once = DecidingClassifier(LogisticRegression(), priors=NEW).fit(X, Y)
    assert_allclose(model.predict_proba(X), once.predict_proba(X), rtol=1e-12)


@pytest.mark.parametrize(
    ("base", "words"),
    [
        (FrozenEstimator(LogisticRegression().fit(X, Y)), "LogisticRegression is frozen"),
        (
            FrozenEstimator(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)),
            "LogisticRegression is frozen",
        ),
        (
            CalibratedClassifier(FrozenEstimator(LogisticRegression().fit(X, Y))),
            "LogisticRegression is frozen",
        ),
        (
            RandomForestClassifier(3, class_weight="balanced_subsample", random_state=0),
            "class_weight='balanced_subsample'",
        ),
        (OneVsRestClassifier(SGDClassifier(loss="log_loss", **BALANCED)), "OneVsRestClassifier"),
    ],
)
def test_priors_that_cannot_be_known_are_an_error(base, words):
    with pytest.raises(ParameterError, match=words):
        priors_left(base)
