"""Standard errors, likelihoods, intervals: the numbers of statsmodels, and changed or lost rows."""

import pickle

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris

from posteriori import GLM, LogisticRegression
from posteriori.errors import InferenceError, ParameterError


def fair():
    data = sm.datasets.fair.load_pandas()
    return data.exog, (data.endog > 0).to_numpy()


def iris():
    X, y = load_iris(return_X_y=True, as_frame=True)
    return X + np.random.default_rng(0).normal(size=X.shape), y.to_numpy()


def test_a_table_has_a_row_for_each_coefficient_and_contrast():
    X, y = iris()
    numbers = ["estimate", "std_error", "statistic", "p_value", "conf_low", "conf_high"]
    two, three = LogisticRegression().fit(X, y > 0).tidy(), LogisticRegression().fit(X, y).tidy()
    assert list(two.columns) == ["term", *numbers]
    assert list(two["term"]) == ["intercept", *X.columns]
    assert list(three.columns) == ["term", "class", *numbers]
    assert list(three["term"]) == ["intercept", *X.columns] * 2
    assert list(three["class"]) == [1] * 5 + [2] * 5


def test_a_weight_is_so_many_rows_of_statsmodels():
    X, y = fair()
    weight = np.random.default_rng(1).integers(0, 4, len(y))
    design = sm.add_constant(X.to_numpy().repeat(weight, axis=0))
    theirs = sm.Logit(y.repeat(weight), design).fit(disp=0, tol=1e-13)
    ours = LogisticRegression().fit(X, y, sample_weight=weight)
    wanted = {
        "estimate": theirs.params,
        "std_error": theirs.bse,
        "statistic": theirs.tvalues,
        "p_value": theirs.pvalues,
        "conf_low": theirs.conf_int()[:, 0],
        "conf_high": theirs.conf_int()[:, 1],
    }
    for name, numbers in wanted.items():
        # A tail probability of z has z² times its relative error.
        rtol = 1e-6 if name == "p_value" else 1e-8
        np.testing.assert_allclose(ours.tidy()[name], numbers, rtol=rtol)
    expected = [theirs.nobs, 9, theirs.llf, -2 * theirs.llf, theirs.aic, theirs.bic]
    names = ["n_obs", "n_parameters", "log_likelihood", "deviance", "aic", "bic"]
    found = ours.glance()[names].to_numpy()[0].astype(float)
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    # The null model of statsmodels is itself a fit, of fewer digits.
    assert ours.null_deviance_ == pytest.approx(-2 * theirs.llnull, rel=1e-7)


def test_robust_errors_of_grouped_counts_are_those_of_single_rows():
    """Beetles killed by a dose (Bliss 1935): shares with weights, two rows a group, a row each."""
    dose = np.array([1.6907, 1.7242, 1.7552, 1.7842, 1.8113, 1.8369, 1.8610, 1.8839])
    n = np.array([59, 60, 62, 56, 63, 59, 62, 60])
    killed = np.array([6, 13, 18, 28, 52, 53, 61, 60])
    share = np.column_stack([1 - killed / n, killed / n])
    x, label = np.repeat(dose, 2), np.tile([0, 1], 8)
    counts = np.column_stack([n - killed, killed]).ravel()
    grouped = LogisticRegression().fit(dose[:, None], share, sample_weight=n)
    pairs = LogisticRegression().fit(x[:, None], label, sample_weight=counts)
    each = LogisticRegression().fit(np.repeat(x, counts)[:, None], np.repeat(label, counts))
    design = sm.add_constant(np.repeat(x, counts))
    theirs = sm.Logit(np.repeat(label, counts), design).fit(disp=0, tol=1e-13, cov_type="HC0")
    for model in (grouped, pairs, each):
        errors = model.tidy(errors="robust")["std_error"]
        np.testing.assert_allclose(errors, theirs.bse, rtol=1e-7)
    np.testing.assert_allclose(theirs.bse, [5.166, 2.888], rtol=1e-3)


@pytest.mark.parametrize(
    "model", [LogisticRegression(), LogisticRegression(prior="jeffreys"), GLM(family="gamma")]
)
def test_editing_the_rows_of_a_small_fit_changes_nothing(model):
    X, y = fair()
    X = X.to_numpy()[:, :2].copy()
    plain, edited = clone(model).fit(X.copy(), y + 1), clone(model).fit(X, y + 1)
    X *= 1.1
    np.testing.assert_array_equal(edited.coef_covariance_, plain.coef_covariance_)
    pd.testing.assert_frame_equal(edited.tidy(), plain.tidy())
    pd.testing.assert_frame_equal(edited.glance(), plain.glance())
    for ask in ({"intervals": "profile"}, {"errors": "observed"}):
        pd.testing.assert_frame_equal(edited.tidy(**ask), plain.tidy(**ask))


def test_rows_of_a_large_fit_that_changed_are_an_error():
    random = np.random.default_rng(3)
    X = random.normal(size=(300_000, 4))
    model = LogisticRegression().fit(X, X[:, 0] + random.logistic(size=len(X)) > 0)
    X += 0.5
    with pytest.raises(InferenceError, match="rows have changed"):
        model.tidy()


def test_more_parameters_than_can_be_inverted_are_named():
    random = np.random.default_rng(9)
    X = sparse.random_array((300, 5500), density=0.01, rng=random, format="csr")
    y = random.integers(0, 2, 300)
    model = LogisticRegression(prior=1.0).fit(X, y)
    with pytest.raises(InferenceError, match="5501 parameters"):
        model.tidy()
    assert model.deviance_ == pytest.approx(-2 * model.log_likelihood_)
    assert pickle.loads(pickle.dumps(model)).bic_ == model.bic_


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"level": 1.0}, "level=1.0"),
        ({"errors": "hc3"}, "errors='hc3'"),
        ({"intervals": "bootstrap"}, "intervals='bootstrap'"),
        ({"intervals": "profile", "errors": "robust"}, "robust"),
    ],
)
def test_settings_that_cannot_be_honoured_are_errors(arguments, message):
    model = LogisticRegression().fit(*iris())
    with pytest.raises(ParameterError, match=message):
        model.tidy(**arguments)
