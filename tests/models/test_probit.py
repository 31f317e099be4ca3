"""Probit regression: the numbers of statsmodels and of 50 digits, and activations of ±1e4."""

import mpmath
import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from sklearn.datasets import load_breast_cancer

from posteriori import GaussianPrior
from posteriori.errors import LabelError, LevelError, RankDeficiencyWarning, SeparationWarning
from posteriori.models.binary_links import ProbitRegression
from posteriori.models.multiclass import OneVersusRest

CANCER_X, CANCER_Y = load_breast_cancer(return_X_y=True)
CANCER_X = CANCER_X[:, [0, 1, 4, 5]]


def data(name):
    """A data set that ships with statsmodels, as numbers and labels 0 and 1."""
    found = getattr(sm.datasets, name).load_pandas()
    return found.exog.to_numpy(float), (found.endog.to_numpy() > 0).astype(int)


SETS = {"cancer": (CANCER_X, CANCER_Y), "spector": data("spector"), "fair": data("fair")}


def parameters(model):
    return np.concatenate([model.intercept_, model.coef_[0]])


def theirs(X, y, **given):
    return sm.Probit(y, sm.add_constant(X), **given).fit(disp=0, tol=1e-14, maxiter=100)


@pytest.mark.parametrize(("X", "y"), SETS.values(), ids=SETS)
def test_the_fit_equals_statsmodels(X, y):
    ours, other = ProbitRegression().fit(X, y), theirs(X, y)
    np.testing.assert_allclose(parameters(ours), other.params, rtol=1e-8)
    np.testing.assert_allclose(ours.coef_covariance_, other.cov_params(), rtol=1e-8)
    np.testing.assert_allclose(ours.predict_proba(X)[:, 1], other.predict(), rtol=1e-8)
    assert ours.log_likelihood_ == pytest.approx(other.llf, rel=1e-12)
    share = y.mean()
    entropy = share * np.log(share) + (1 - share) * np.log1p(-share)
    assert ours.null_deviance_ == pytest.approx(-2 * len(y) * entropy, rel=1e-12)
    assert ours.n_parameters_ == len(other.params)


def test_expected_errors_are_those_of_a_generalised_linear_model():
    X, y = SETS["fair"]
    ours = ProbitRegression().fit(X, y)
    family = sm.families.Binomial(sm.families.links.Probit())
    other = sm.GLM(y, sm.add_constant(X), family=family).fit(tol=1e-13, tol_criterion="params")
    found = ours.tidy(errors="expected")["std_error"].to_numpy()
    np.testing.assert_allclose(found, other.bse, rtol=1e-8)


def test_weights_are_rows_that_occur_as_often():
    X, y = SETS["fair"]
    weight = np.random.default_rng(1).integers(0, 4, len(y))
    ours = ProbitRegression().fit(X, y, sample_weight=weight)
    other = theirs(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(parameters(ours), other.params, rtol=1e-8)
    np.testing.assert_allclose(ours.coef_covariance_, other.cov_params(), rtol=1e-8)
    assert ours.log_likelihood_ == pytest.approx(other.llf, rel=1e-12)


def test_an_offset_is_a_column_whose_coefficient_is_one():
    X, y = SETS["fair"]
    offset = np.random.default_rng(6).normal(size=len(y))
    ours = ProbitRegression().fit(X, y, offset=offset)
    other = theirs(X, y, offset=offset)
    np.testing.assert_allclose(parameters(ours), other.params, rtol=1e-8)
    np.testing.assert_allclose(
        ours.predict_proba(X, offset=offset)[:, 1], other.predict(offset=offset), rtol=1e-8
    )


def test_soft_labels_are_rows_of_each_class_with_their_shares_as_weights():
    X, y = SETS["spector"]
    share = 0.8 * y + 0.1
    soft = ProbitRegression().fit(X, np.column_stack([1 - share, share]))
    hard = ProbitRegression().fit(
        np.repeat(X, 2, axis=0),
        np.tile([0, 1], len(y)),
        sample_weight=np.column_stack([1 - share, share]).ravel(),
    )
    np.testing.assert_allclose(parameters(soft), parameters(hard), rtol=1e-9)
    np.testing.assert_allclose(soft.coef_covariance_, hard.coef_covariance_, rtol=1e-8)


def test_without_intercept_equals_statsmodels():
    X, y = SETS["fair"]
    ours = ProbitRegression(fit_intercept=False).fit(X, y)
    other = sm.Probit(y, X).fit(disp=0, tol=1e-14)
    np.testing.assert_allclose(ours.coef_[0], other.params, rtol=1e-8)
    assert ours.intercept_[0] == 0.0


@pytest.mark.parametrize("precision", [None, 0.5], ids=["likelihood", "prior"])
def test_fifty_digits_agree(precision):
    X, y = SETS["spector"]
    ours = ProbitRegression(prior=precision, tol=1e-7).fit(X, y)
    alpha = precision or 0
    with mpmath.workdps(50):
        rows = [[mpmath.mpf(1), *map(mpmath.mpf, row)] for row in X.tolist()]

        def score(row, t, w):
            a = mpmath.fdot(w, row) * (2 * t - 1)
            return -(2 * t - 1) * mpmath.npdf(a) / mpmath.ncdf(a)

        def gradient(*w):
            pull = [score(row, int(t), w) for row, t in zip(rows, y, strict=True)]
            return [
                mpmath.fdot(pull, [row[j] for row in rows]) + (alpha * w[j] if j else 0)
                for j in range(len(w))
            ]

        exact = mpmath.findroot(gradient, parameters(ours).tolist())
    np.testing.assert_allclose(parameters(ours), [float(v) for v in exact], rtol=1e-11)


def test_a_gaussian_prior_pulls_towards_its_mean():
    X, y = SETS["spector"]
    prior = GaussianPrior(precision=1e8, mean=[0.1, 0.2, 0.3])
    found = ProbitRegression(prior=prior).fit(X, y).coef_[0]
    np.testing.assert_allclose(found, [0.1, 0.2, 0.3], atol=1e-5)


def test_activations_of_ten_thousand_have_exact_logarithms():
    model = ProbitRegression(prior=1.0).fit([[-1.0], [-0.5], [0.5], [1.0]], [0, 1, 0, 1])
    x = 1e4 / model.coef_[0, 0]
    a = model.decision_function([[x], [-x]])
    np.testing.assert_allclose(abs(a), 1e4, rtol=1e-12)
    with mpmath.workdps(50):
        expected = [[float(mpmath.log(mpmath.ncdf(s * mpmath.mpf(v)))) for s in (-1, 1)] for v in a]
    np.testing.assert_allclose(model.predict_log_proba([[x], [-x]]), expected, rtol=1e-13)
    np.testing.assert_array_equal(model.predict_proba([[x], [-x]]), [[0, 1], [1, 0]])


def test_a_row_ten_thousand_deviations_on_the_wrong_side_is_fitted():
    """Its loss is about ½a² there, so that it is nearly least squares for that row."""
    X = np.array([[-1.0], [1.0], [-2.0], [2.0], [-1e4], [1e4]])
    y = np.array([0, 1, 0, 1, 1, 0])
    model = ProbitRegression(prior=1e-6, tol=1e-8).fit(X, y)
    assert model.converged_
    w = parameters(model)
    with mpmath.workdps(50):

        def gradient(*w):
            a = [w[0] + w[1] * mpmath.mpf(x) for x in X[:, 0].tolist()]
            pull = [
                -s * mpmath.npdf(s * v) / mpmath.ncdf(s * v)
                for s, v in zip((2 * y - 1).tolist(), a, strict=True)
            ]
            return [
                mpmath.fsum(pull),
                mpmath.fdot(pull, X[:, 0].tolist()) + mpmath.mpf(1e-6) * w[1],
            ]

        exact = mpmath.findroot(gradient, w.tolist())
    np.testing.assert_allclose(w[1], float(exact[1]), rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_the_unit_of_a_column_changes_no_probability(scale):
    X, y = SETS["spector"]
    plain = ProbitRegression().fit(X, y).predict_proba(X)
    X = X * [scale, 1.0, 1.0]
    np.testing.assert_allclose(ProbitRegression().fit(X, y).predict_proba(X), plain, rtol=1e-8)


def test_a_column_far_from_zero_loses_no_digits():
    X, y = SETS["spector"]
    plain = ProbitRegression().fit(X, y).predict_proba(X)
    X = X + np.array([1e8, 0.0, -1e7])
    np.testing.assert_allclose(ProbitRegression().fit(X, y).predict_proba(X), plain, rtol=1e-6)


def test_dependent_columns_share_the_coefficient_of_smallest_norm():
    X, y = SETS["spector"]
    twice = np.column_stack([X, X[:, 0]])
    with pytest.warns(RankDeficiencyWarning, match="Column 3"):
        model = ProbitRegression().fit(twice, y)
    plain = ProbitRegression().fit(X, y)
    np.testing.assert_allclose(model.coef_[0, [0, 3]], plain.coef_[0, 0] / 2, rtol=1e-8)
    np.testing.assert_allclose(model.predict_proba(twice), plain.predict_proba(X), rtol=1e-9)


def test_separated_classes_are_named_and_certain():
    X = np.arange(8.0)[:, None]
    with pytest.warns(SeparationWarning, match="'x0'"):
        model = ProbitRegression().fit(X, X[:, 0] > 3)
    assert model.separation_.kind == "complete"
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], X[:, 0] > 3, atol=1e-12)


def test_jeffreys_prior_keeps_separated_classes_finite():
    X = np.arange(8.0)[:, None]
    model = ProbitRegression(prior="jeffreys").fit(X, X[:, 0] > 3)
    assert model.converged_
    assert 0.3 < model.coef_[0, 0] < 2
    np.testing.assert_allclose(model.intercept_, -3.5 * model.coef_[0], rtol=1e-6)


def test_factors_equal_their_indicators_and_unseen_levels_are_errors_or_the_reference():
    random = np.random.default_rng(3)
    levels = random.choice(["low", "mid", "top"], 300)
    x = random.normal(size=300)
    y = x + (levels == "top") + random.normal(size=300) > 0
    frame = pd.DataFrame({"level": levels, "x": x})
    ours = ProbitRegression().fit(frame, y)
    plain = ProbitRegression().fit(np.column_stack([levels == "mid", levels == "top", x]), y)
    np.testing.assert_allclose(ours.coef_, plain.coef_, rtol=1e-9)
    new = pd.DataFrame({"level": ["huge", "low"], "x": [0.5, 0.5]})
    with pytest.raises(LevelError, match="'level'"):
        ours.predict(new)
    found = ProbitRegression(handle_unknown="reference").fit(frame, y).predict_proba(new)
    np.testing.assert_array_equal(found[0], found[1])


def test_more_classes_than_two_are_an_error_with_the_remedy():
    X, y = np.arange(12.0)[:, None] % 5, np.arange(12) % 3
    with pytest.raises(LabelError, match=r"Only binary classification.*OneVersusRest"):
        ProbitRegression().fit(X, y)
    model = OneVersusRest(estimator=ProbitRegression(prior=1.0)).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0, rtol=1e-12)
