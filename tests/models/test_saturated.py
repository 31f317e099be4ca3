"""Fits to grouped or soft labels with as many coefficients as groups, and nearly equal columns."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import brentq

from posteriori import GLM, LogisticRegression, ProbitRegression, ThresholdRegression
from posteriori.errors import ConvergenceWarning, RankDeficiencyWarning

X = [[0.0], [1.0]]
TWO = [[0.9, 0.1], [0.7, 0.3]]
THREE = [[0.8, 0.1, 0.1], [0.6, 0.3, 0.1]]


def grouped(model, labels):
    return model.fit(X, labels, sample_weight=[50, 60], classes=np.arange(len(labels[0])))


@pytest.mark.parametrize(
    ("model", "labels"),
    [
        (LogisticRegression(), TWO),
        (LogisticRegression(), THREE),
        (ProbitRegression(), TWO),
        (ThresholdRegression(), TWO),
        (GLM(family="bernoulli"), TWO),
        (GLM(family="bernoulli", link="probit"), TWO),
        (GLM(family="bernoulli", link="cloglog"), TWO),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("error")
def test_a_saturated_fit_to_shares_has_these_shares(model, labels):
    model = grouped(model, labels)
    assert_allclose(model.predict_proba(X), labels, atol=1e-9)
    assert model.separation_.kind == "none"
    assert np.isfinite(model.tidy()["std_error"]).all()


@pytest.mark.parametrize("labels", [TWO, THREE])
def test_rows_shared_by_classes_are_not_separated_before_convergence_either(labels):
    with pytest.warns(ConvergenceWarning, match="before it converged"):
        model = grouped(LogisticRegression(max_iter=2), labels)
    assert model.separation_.kind == "none"
    assert_allclose(model.predict_proba(X), labels, atol=0.01)


@pytest.mark.parametrize("share", [1e-5, 1e-6])
@pytest.mark.parametrize("mean", [0.0, 20.0])
def test_columns_that_nearly_agree_are_both_fitted(share, mean):
    random = np.random.default_rng(1)
    x, z = random.normal(size=(2, 5000)) + mean
    y = 2 * (x - mean) + (z - mean) + random.logistic(size=5000) > 0
    apart = LogisticRegression().fit(np.column_stack([x, z]), y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        close = LogisticRegression().fit(np.column_stack([x, x + share * z]), y)
    assert close.log_likelihood_ == pytest.approx(apart.log_likelihood_, abs=1e-4)
    assert_allclose(close.coef_[0, 1] * share, apart.coef_[0, 1], rtol=1e-3)


def test_columns_that_agree_to_all_digits_are_named():
    x, z = np.random.default_rng(2).normal(size=(2, 500))
    columns = np.column_stack([x, z, x + z, 3 * x])
    with pytest.warns(RankDeficiencyWarning, match="Columns 2, 3"):
        LogisticRegression().fit(columns, z + x > np.random.default_rng(3).logistic(size=500))


def test_columns_of_sizes_far_apart_without_an_intercept():
    """The maximum solves Σ x (t - σ(wx)) = 0; the row of 1e6 only says that w is not negative."""
    x, t = np.array([0.0, 0.0, 1e6, 1.0, 2.0]), np.array([0.0, 1.0, 1.0, 0.0, 1.0])
    model = LogisticRegression(fit_intercept=False).fit(x[:, None], t.astype(int))
    best = brentq(lambda w: x @ (t - 1 / (1 + np.exp(-w * x))), 1e-3, 5.0, xtol=1e-14)
    assert_allclose(model.coef_[0, 0], best, rtol=1e-6)
