"""Recalibration: the maps against direct maximisation, mpmath and statsmodels; zeros and errors."""

import mpmath
import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, log_softmax, logit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_classification
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression as SklearnLogistic
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict
from sklearn.multiclass import OutputCodeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from posteriori import LogisticRegression
from posteriori.decision.calibration import fit_inverse_temperature
from posteriori.errors import (
    CalibrationWarning,
    DataError,
    LabelError,
    ParameterError,
    SeparationWarning,
)
from posteriori.models.calibrated import CalibratedClassifier

RANDOM = np.random.default_rng(1)
X2, Y2 = make_classification(400, 8, n_informative=3, n_redundant=4, flip_y=0.2, random_state=0)
Y4 = [0, 1, 0, 1]
METHODS = pytest.mark.parametrize("method", ["temperature", "platt"])


class Gives(ClassifierMixin, BaseEstimator):
    """Has the columns of X, one a class, as its logarithms of probabilities."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        self.n_features_in_ = np.shape(X)[1]
        return self

    def predict_log_proba(self, X):
        return log_softmax(np.asarray(X, dtype=float), axis=1)

    def predict_proba(self, X):
        return np.exp(self.predict_log_proba(X))


class GivesExactly(Gives):
    """Has the columns of X as its probabilities, zeros and all."""

    predict_log_proba = property()

    def predict_proba(self, X):
        return np.asarray(X, dtype=float)


def noisy(K, n=300, seed=0, b=0.3):
    """Activations that are too sure by 1/b, and labels."""
    random = np.random.default_rng(seed)
    a = 3 * random.normal(size=(n, K))
    p = np.exp(log_softmax(b * a, axis=1))
    return a, (p.cumsum(axis=1) < random.random((n, 1))).sum(axis=1)


def frozen(X, y, estimator=None, **given):
    """Around an estimator that is fitted already."""
    return CalibratedClassifier(FrozenEstimator((estimator or Gives()).fit(X, y)), **given)


@parametrize_with_checks(
    [CalibratedClassifier(SklearnLogistic())],
)
@pytest.mark.filterwarnings("ignore::posteriori.errors.PosterioriWarning")
def test_keeps_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


# --- Temperature ------------------------------------------------------------------------------


def test_the_derivative_at_the_temperature_is_zero_at_fifty_digits():
    a, y = noisy(4, n=40)
    weight = RANDOM.integers(1, 4, 40).astype(float)
    b = fit_inverse_temperature(a, y, weight)

    def derivative(b):
        total = mpmath.mpf(0)
        for row, own, w in zip(a.tolist(), y, weight, strict=True):
            e = [mpmath.exp(b * value) for value in row]
            total += w * (row[own] - mpmath.fdot(e, row) / mpmath.fsum(e))
        return total

    with mpmath.workdps(50):
        assert_allclose(b, float(mpmath.findroot(derivative, b)), rtol=1e-14)


def test_a_frozen_estimator_is_recalibrated_by_the_rows_given():
    a, y = noisy(3)
    model = frozen(a, y).fit(a, y)
    b = fit_inverse_temperature(a, y, np.ones(len(y)))
    assert_allclose(model.temperature_, 1 / b, rtol=1e-12)
    assert 2 < model.temperature_ < 5  # overconfident by 1/0.3
    assert_allclose(model.predict_log_proba(a), log_softmax(b * a, axis=1), rtol=1e-10)
    assert_array_equal(model.predict(a), a.argmax(axis=1))


def test_an_estimator_that_is_wrong_more_often_than_right_is_warned_of():
    a, y = noisy(3)
    with pytest.warns(CalibrationWarning, match=r"no better than chance.*infinite"):
        model = frozen(a, y).fit(-a, y)
    assert model.temperature_ == np.inf
    assert_allclose(model.predict_proba(a), 1 / 3)
    a, y = noisy(2)
    with pytest.warns(CalibrationWarning, match=r"multiplied by -0\.\d+"):
        model = frozen(a, y, method="platt").fit(-a, y)
    assert model.calibrator_.coef_[0, 0] < 0


@METHODS
@pytest.mark.parametrize("cv", [4, KFold(4, shuffle=True, random_state=3)])
@pytest.mark.parametrize(
    "inner", [GaussianNB(), DecisionTreeClassifier(max_depth=3, random_state=0)], ids=repr
)
def test_the_map_is_that_of_predictions_by_cross_validation(inner, cv, method):
    """With scikit-learn's own splitter and `cross_val_predict`."""
    X = X2[:, [0, 1, 2, 6]]  # of which none is redundant
    folds = StratifiedKFold(4, shuffle=True, random_state=0) if cv == 4 else cv
    p = cross_val_predict(inner, X, Y2, cv=folds, method="predict_proba")
    given = frozen(p, Y2, GivesExactly(), method=method)
    model = CalibratedClassifier(inner, method=method, cv=cv).fit(X, Y2)
    expected = given.fit(p, Y2).predict_proba(clone(inner).fit(X, Y2).predict_proba(X))
    assert_allclose(model.predict_proba(X), expected, rtol=1e-8)


# --- Platt ------------------------------------------------------------------------------------


def test_platts_map_is_that_of_statsmodels():
    a, y = noisy(2)
    weight = RANDOM.integers(1, 4, len(y)).astype(float)
    model = frozen(a, y, method="platt").fit(a, y, weight)
    odds = a[:, 1] - a[:, 0]
    design = sm.add_constant(odds)
    binomial = sm.families.Binomial()
    found = sm.GLM(y, design, family=binomial, freq_weights=weight).fit(tol=1e-14, maxiter=100)
    fitted = [model.calibrator_.intercept_[0], model.calibrator_.coef_[0, 0]]
    assert_allclose(fitted, found.params, rtol=1e-8)
    assert_allclose(model.predict_proba(a)[:, 1], expit(design @ found.params), rtol=1e-8)
    a, y = noisy(3)  # more classes: logistic regression on all logarithms
    model, logs = frozen(a, y, method="platt").fit(a, y), log_softmax(a, axis=1)
    expected = LogisticRegression(prior="evidence").fit(logs, y).predict_proba(logs)
    assert_allclose(model.predict_proba(a), expected, rtol=1e-10)


def test_held_out_rows_that_are_separated_leave_the_temperature_alone_and_get_jeffreys_prior():
    odds = np.array([-3.0, -2.0, 1.0, 2.0])[:, None]
    X, y = np.hstack([-odds / 2, odds / 2]), np.array([0, 0, 1, 1])
    with pytest.warns(SeparationWarning, match="temperature_ is 1"):
        model = frozen(X, y).fit(X, y)
    assert model.temperature_ == 1
    assert_allclose(model.predict_log_proba(X), log_softmax(X, axis=1), rtol=1e-14)
    with pytest.warns(SeparationWarning, match="Jeffreys"):
        model = frozen(X, y, method="platt").fit(X, y)
    expected = LogisticRegression(prior="jeffreys", tol=1e-10).fit(odds, y).predict_proba(odds)
    assert_allclose(model.predict_proba(X), expected, rtol=1e-8)


@METHODS
def test_without_probabilities_the_decision_function_is_recalibrated(method):
    """Also in a pipeline of texts."""
    random = np.random.default_rng(0)
    words, y = np.array(["good", "bad", "red", "blue"]), random.integers(2, size=200)
    texts = [" ".join(random.choice(words, 5, p=np.roll([0.4, 0.1, 0.2, 0.3], k))) for k in y]
    inner = make_pipeline(CountVectorizer(), LinearSVC(random_state=0))
    model = CalibratedClassifier(inner, method=method).fit(texts, y)
    margin = inner.fit(texts, y).decision_function(texts)
    p = model.predict_proba(pd.Series(texts))
    assert_allclose(p.sum(axis=1), 1)
    slope, intercept = np.polyfit(margin, logit(p[:, 1]), 1)
    assert_allclose(logit(p[:, 1]), slope * margin + intercept, atol=1e-8)
    assert slope > 0
    if method == "temperature":
        assert_allclose(slope, 1 / model.temperature_, rtol=1e-8)


# --- Zeros --------------------------------------------------------------------------------------


@METHODS
def test_probabilities_of_zero_and_one_become_rates(method):
    # Certain of the second class in 40 rows, right in 30; of the first in 60, right in 45.
    p = np.repeat([[0.0, 1.0], [1.0, 0.0]], [40, 60], axis=0)
    y = np.repeat([1, 0, 0, 1], [30, 10, 45, 15])
    model = frozen(p, y, GivesExactly(), method=method).fit(p, y)
    found = model.predict_proba([[0.0, 1.0], [1.0, 0.0]])
    assert_allclose(found, [[0.25, 0.75], [0.75, 0.25]], atol=1e-9)


def test_a_zero_counts_as_half_the_smallest_probability():
    p = np.array([[0.0, 1.0], [0.02, 0.98], [0.9, 0.1], [0.6, 0.4], [0.3, 0.7]] * 4)
    y = np.array([1, 1, 0, 1, 0] * 4)
    model = frozen(p, y, GivesExactly()).fit(p, y)
    b = fit_inverse_temperature(np.log(np.where(p == 0, 0.01, p)), y, np.ones(20))
    assert_allclose(model.temperature_, 1 / b, rtol=1e-12)
    found = model.predict_proba([[0.0, 1.0], [1e-9, 1 - 1e-9]])[:, 0]
    assert_allclose(found, expit(b * np.log(0.01)), rtol=1e-6)
    # The fit had no zero.
    model.fit(p[p[:, 0] > 0], y[p[:, 0] > 0])
    found = model.predict_log_proba([[0.0, 1.0], [1e-300, 1.0]])
    assert np.isfinite(found).all()
    assert found[0, 0] < found[1, 0] < np.log(1e-20)


# --- Errors -------------------------------------------------------------------------------------


def test_a_class_that_the_rows_lack_stays_a_class_of_a_frozen_estimator():
    a, y = noisy(3)
    two = y < 2
    model = frozen(a, y).fit(a[two], y[two])
    assert model.predict_proba(a).shape == (300, 3)
    with pytest.raises(LabelError, match=r"No held-out row is of class 2.*temperature"):
        frozen(a, y, method="platt").fit(a[two], y[two])
    with pytest.raises(LabelError, match="of y is 3"):
        frozen(a, y).fit(a, y + 1)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"method": "isotonic"}, "method='isotonic'"),
        ({"cv": 1}, "cv=1"),
        ({"cv": "five"}, "cv='five'"),
        ({"estimator": OutputCodeClassifier(GaussianNB())}, "has neither predict_proba"),
    ],
)
def test_what_cannot_be_honoured_is_an_error(given, words):
    given = {"estimator": GaussianNB(), **given}
    with pytest.raises(ParameterError, match=words):
        CalibratedClassifier(**given).fit(X2, Y2)


def test_a_row_without_probabilities_is_named():
    p = np.full((4, 2), np.nan)
    p[:2] = 0.5
    for model in (frozen(p, Y4, GivesExactly()), CalibratedClassifier(GivesExactly())):
        with pytest.raises(DataError, match="gives no probabilities for row 2"):
            model.fit(p, Y4)
