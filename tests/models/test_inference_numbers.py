"""Standard errors, likelihoods, intervals: the numbers of statsmodels, mpmath and brute force."""

import pickle

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import sparse
from scipy.special import expit, logit, softmax
from scipy.stats import norm
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris

from posteriori import GLM, LogisticRegression
from posteriori.errors import (
    InferenceError,
    ParameterError,
)

NUMBERS = ["estimate", "std_error", "statistic", "p_value", "conf_low", "conf_high"]


def spector():
    data = sm.datasets.spector.load_pandas()
    return data.exog, data.endog.to_numpy()


def fair():
    data = sm.datasets.fair.load_pandas()
    return data.exog, (data.endog > 0).to_numpy()


def cancer():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return X.iloc[:, [0, 1, 4, 5]], y.to_numpy()


def iris():
    X, y = load_iris(return_X_y=True, as_frame=True)
    return X + np.random.default_rng(0).normal(size=X.shape), y.to_numpy()


BINARY = {"spector": spector, "fair": fair, "cancer": cancer}


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


def check_glance(found, theirs):
    assert found["n_obs"].item() == theirs.nobs
    assert found["n_parameters"].item() == np.size(theirs.params)
    for name, wanted in (
        ("log_likelihood", theirs.llf),
        ("deviance", -2 * theirs.llf),
        ("aic", theirs.aic),
        ("bic", theirs.bic),
    ):
        assert found[name].item() == pytest.approx(wanted, rel=1e-10)
    # The null model of statsmodels is itself a fit, of fewer digits.
    assert found["null_deviance"].item() == pytest.approx(-2 * theirs.llnull, rel=1e-7)


@pytest.mark.parametrize("data", BINARY)
def test_two_classes_have_the_numbers_of_statsmodels(data):
    X, y = BINARY[data]()
    ours, theirs = LogisticRegression().fit(X, y), theirs_of(X, y)
    found = ours.tidy()
    assert list(found["term"]) == ["intercept", *X.columns]
    assert list(found.columns) == ["term", *NUMBERS]
    check_tidy(found, theirs)
    check_glance(ours.glance(), theirs)
    np.testing.assert_allclose(ours.coef_covariance_, theirs.cov_params(), rtol=1e-8)


@pytest.mark.parametrize("data", BINARY)
def test_robust_errors_are_the_hc0_of_statsmodels(data):
    X, y = BINARY[data]()
    found = LogisticRegression().fit(X, y).tidy(errors="robust")
    check_tidy(found, theirs_of(X, y, cov_type="HC0"))


def test_many_classes_have_the_numbers_of_statsmodels():
    X, y = iris()
    ours, theirs = LogisticRegression().fit(X, y), theirs_of(X, y, sm.MNLogit)
    found = ours.tidy(level=0.95)
    assert list(found.columns) == ["term", "class", *NUMBERS]
    assert list(found["class"]) == [1] * 5 + [2] * 5
    assert list(found["term"]) == ["intercept", *X.columns] * 2
    check_tidy(found, theirs)
    check_glance(ours.glance(), theirs)
    # statsmodels has no sandwich for many classes: one from the scores of its own model.
    inverse = np.linalg.inv(-theirs.model.hessian(theirs.params))
    scores = theirs.model.score_obs(theirs.params)
    robust = np.sqrt(np.diag(inverse @ scores.T @ scores @ inverse))
    np.testing.assert_allclose(ours.tidy(errors="robust")["std_error"], robust, rtol=1e-8)


@pytest.mark.parametrize("errors", ["nonrobust", "HC0"])
@pytest.mark.parametrize("data", [fair, iris])
def test_a_weight_is_so_many_rows(data, errors):
    X, y = data()
    weight = np.random.default_rng(1).integers(0, 4, len(y))
    ours = LogisticRegression().fit(X, y, sample_weight=weight)
    again = LogisticRegression().fit(X.iloc[np.repeat(np.arange(len(y)), weight)], y.repeat(weight))
    kind = "model" if errors == "nonrobust" else "robust"
    for name in NUMBERS:
        np.testing.assert_allclose(
            ours.tidy(errors=kind)[name], again.tidy(errors=kind)[name], rtol=1e-7, atol=1e-300
        )
    for name in ("n_obs", "log_likelihood", "deviance", "null_deviance", "aic", "bic"):
        assert ours.glance()[name].item() == pytest.approx(again.glance()[name].item(), rel=1e-10)
    if data is fair:
        theirs = theirs_of(X.to_numpy().repeat(weight, axis=0), y.repeat(weight), cov_type=errors)
        check_tidy(ours.tidy(errors=kind), theirs)
        check_glance(ours.glance(), theirs)


def test_offsets_are_part_of_the_null_model():
    X, y = fair()
    random = np.random.default_rng(2)
    offset = random.normal(size=len(y))
    ours = LogisticRegression().fit(X, y, offset=offset)
    family = sm.families.Binomial()
    theirs = sm.GLM(y.astype(float), sm.add_constant(X), family=family, offset=offset)
    theirs = theirs.fit(tol=1e-14)
    assert ours.null_deviance_ == pytest.approx(theirs.null_deviance, rel=1e-10)
    assert ours.deviance_ == pytest.approx(theirs.deviance, rel=1e-12)
    np.testing.assert_allclose(ours.tidy()["std_error"], theirs.bse, rtol=1e-7)
    frame = theirs.get_prediction(sm.add_constant(X)[:5], offset=offset[:5]).summary_frame()
    np.testing.assert_allclose(
        ours.predict_interval(X[:5], offset=offset[:5]), frame.iloc[:, 2:4], rtol=1e-7
    )


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


def test_robust_errors_of_star98_are_those_of_statsmodels_on_single_rows():
    found = sm.datasets.star98.load_pandas()
    X, counts = found.exog.to_numpy(float)[:, :6], found.endog.to_numpy(int)
    trials = counts.sum(axis=1)
    model = LogisticRegression().fit(X, counts[:, ::-1] / trials[:, None], sample_weight=trials)
    rows = np.repeat(np.arange(2 * len(X)), counts.ravel())
    single = sm.GLM(1 - rows % 2, sm.add_constant(X[rows // 2]), family=sm.families.Binomial())
    theirs = single.fit(cov_type="HC0", tol=1e-13, tol_criterion="params")
    np.testing.assert_allclose(model.tidy(errors="robust")["statistic"], theirs.tvalues, rtol=1e-6)


def test_robust_errors_of_soft_labels_of_many_classes_are_those_of_hard_ones():
    X, y = iris()
    soft = 0.8 * np.eye(3)[y] + 0.2 / 3
    hard = LogisticRegression().fit(
        np.repeat(X, 3, axis=0), np.tile([0, 1, 2], len(y)), sample_weight=soft.ravel()
    )
    found = LogisticRegression().fit(X, soft).tidy(errors="robust")["std_error"]
    np.testing.assert_allclose(found, hard.tidy(errors="robust")["std_error"], rtol=1e-8)


def test_intervals_of_two_classes_are_those_of_statsmodels():
    X, y = spector()
    ours = LogisticRegression().fit(X, y)
    theirs = sm.GLM(y, sm.add_constant(X), family=sm.families.Binomial()).fit(tol=1e-14)
    frame = theirs.get_prediction(sm.add_constant(X)).summary_frame(alpha=0.1)
    np.testing.assert_allclose(
        ours.predict_interval(X, level=0.9), frame[["mean_ci_lower", "mean_ci_upper"]], rtol=1e-7
    )


@pytest.mark.parametrize("prior", [None, 0.7])
def test_intervals_of_many_classes_are_the_delta_method_by_differences(prior):
    X, y = iris()
    model = LogisticRegression(prior=prior).fit(X, y)
    theta = np.column_stack([model.intercept_, model.coef_])
    w = (theta[1:] - theta[:1]).ravel()
    rows = sm.add_constant(X.to_numpy()[::30], has_constant="add")

    def log_odds(w):
        a = rows @ np.vstack([np.zeros(5), w.reshape(2, 5)]).T
        return logit(softmax(a, axis=1))

    step = 1e-5
    slopes = np.stack(
        [(log_odds(w + step * e) - log_odds(w - step * e)) / (2 * step) for e in np.eye(10)], -1
    )
    error = np.sqrt(np.einsum("nkj,ji,nki->nk", slopes, model.coef_covariance_, slopes))
    wanted = expit(np.stack([log_odds(w) - 1.96 * error, log_odds(w) + 1.96 * error], axis=-1))
    level = 2 * norm.cdf(1.96) - 1
    np.testing.assert_allclose(model.predict_interval(X[::30], level), wanted, rtol=1e-7)


def test_a_model_from_a_file_keeps_what_was_worked_out():
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
    X, y = cancer()
    X = X.to_numpy()[:, :2].copy()
    plain, edited = clone(model).fit(X.copy(), y + 1), clone(model).fit(X, y + 1)
    X *= 1.1
    np.testing.assert_array_equal(edited.coef_covariance_, plain.coef_covariance_)
    pd.testing.assert_frame_equal(edited.tidy(), plain.tidy())
    pd.testing.assert_frame_equal(edited.glance(), plain.glance())
    for ask in ({"intervals": "profile"}, {"errors": "observed"}):
        pd.testing.assert_frame_equal(edited.tidy(**ask), plain.tidy(**ask))


def test_rows_of_a_large_fit_that_changed_are_noticed():
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
    X, y = spector()
    model = LogisticRegression().fit(X, y)
    with pytest.raises(ParameterError, match=message):
        model.tidy(**arguments)
