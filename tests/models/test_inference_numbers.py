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

NUMBERS = ["estimate", "std_error", "statistic", "p_value", "conf_low", "conf_high"]


def fair():
    data = sm.datasets.fair.load_pandas()
    return data.exog, (data.endog > 0).to_numpy()


def iris():
    X, y = load_iris(return_X_y=True, as_frame=True)
    return X + np.random.default_rng(0).normal(size=X.shape), y.to_numpy()


def theirs_of(X, y, model=sm.Logit, **fit):
    return model(y, sm.add_constant(np.asarray(X))).fit(disp=0, tol=1e-13, maxiter=200, **fit)


def check_tidy(found, theirs, rtol=1e-8):
    """All six columns against a fit of statsmodels, contrasts class by class."""
    ends = np.asarray(theirs.conf_int()).reshape(-1, 2)
    flat = [np.asarray(v).ravel("F") for v in (theirs.params, theirs.bse, theirs.tvalues)]
    columns = [*flat, np.asarray(theirs.pvalues).ravel("F"), ends[:, 0], ends[:, 1]]
    for name, wanted in zip(NUMBERS, columns, strict=True):
        # A tail probability of z has z² times its relative error.
        np.testing.assert_allclose(found[name], wanted, rtol=rtol * (100 if "p_" in name else 1))


@pytest.mark.parametrize("errors", ["model", "robust"])
def test_two_classes_have_the_numbers_of_statsmodels_and_a_weight_is_so_many_rows(errors):
    X, y = fair()
    weight = np.random.default_rng(1).integers(0, 4, len(y))
    theirs = theirs_of(
        X.to_numpy().repeat(weight, axis=0),
        y.repeat(weight),
        cov_type="HC0" if errors == "robust" else "nonrobust",
    )
    ours = LogisticRegression().fit(X, y, sample_weight=weight)
    found, line = ours.tidy(errors=errors), ours.glance()
    assert list(found["term"]) == ["intercept", *X.columns]
    assert list(found.columns) == ["term", *NUMBERS]
    check_tidy(found, theirs)
    expected = [theirs.nobs, 9, theirs.llf, -2 * theirs.llf, theirs.aic, theirs.bic]
    names = ["n_obs", "n_parameters", "log_likelihood", "deviance", "aic", "bic"]
    np.testing.assert_allclose(line[names].to_numpy()[0].astype(float), expected, rtol=1e-10)
    # The null model of statsmodels is itself a fit, of fewer digits.
    assert line["null_deviance"].item() == pytest.approx(-2 * theirs.llnull, rel=1e-7)


def test_many_classes_have_the_numbers_of_statsmodels():
    X, y = iris()
    ours, theirs = LogisticRegression().fit(X, y), theirs_of(X, y, sm.MNLogit)
    found = ours.tidy(level=0.95)
    assert list(found.columns) == ["term", "class", *NUMBERS]
    assert list(found["class"]) == [1] * 5 + [2] * 5
    assert list(found["term"]) == ["intercept", *X.columns] * 2
    check_tidy(found, theirs)
    # statsmodels has no sandwich for many classes: one from the scores of its own model.
    inverse = np.linalg.inv(-theirs.model.hessian(theirs.params))
    scores = theirs.model.score_obs(theirs.params)
    robust = np.sqrt(np.diag(inverse @ scores.T @ scores @ inverse))
    np.testing.assert_allclose(ours.tidy(errors="robust")["std_error"], robust, rtol=1e-8)


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
    wanted = theirs_of(np.repeat(x, counts), np.repeat(label, counts), cov_type="HC0").bse
    for model in (grouped, pairs, each):
        errors = model.tidy(errors="robust")["std_error"]
        np.testing.assert_allclose(errors, wanted, rtol=1e-7)
    np.testing.assert_allclose(wanted, [5.166, 2.888], rtol=1e-3)


def test_a_model_from_a_file_keeps_its_tables():
    X, y = iris()
    model = LogisticRegression(prior=0.3).fit(X, y, offset=np.zeros((150, 3)))
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded.coef_covariance_, model.coef_covariance_)
    np.testing.assert_array_equal(loaded.predict_interval(X), model.predict_interval(X))
    pd.testing.assert_frame_equal(loaded.tidy(), model.tidy())
    pd.testing.assert_frame_equal(loaded.glance(), model.glance())
    assert str(loaded.summary()) == str(model.summary())
    again = pickle.loads(pickle.dumps(loaded))
    assert again.bic_ == model.bic_
    for ask in ({"errors": "robust"}, {"intervals": "profile"}, {"errors": "observed"}):
        with pytest.raises(InferenceError, match="loaded from a file") as caught:
            loaded.tidy(**ask)
        assert "fit again" in str(caught.value)


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
