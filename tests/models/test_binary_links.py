"""Two classes by a probability link: probit, and noise on a threshold."""

import mpmath
import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats
from sklearn.datasets import load_breast_cancer

from posteriori.errors import (
    ConvergenceWarning,
    DomainError,
    LabelError,
    ParameterError,
)
from posteriori.likelihood.cdf_links import Mixture
from posteriori.models.binary_links import ProbitRegression, ThresholdRegression
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
    assert ours.null_deviance_ == pytest.approx(-2 * other.llnull, rel=1e-9)
    family = sm.families.Binomial(LINKS.Probit())
    other = sm.GLM(y, sm.add_constant(X), family=family).fit(tol=1e-13, tol_criterion="params")
    found = ours.tidy(errors="expected")["std_error"].to_numpy()
    np.testing.assert_allclose(found, other.bse, rtol=1e-8)


def test_activations_of_ten_thousand_have_exact_logarithms():
    model = ProbitRegression(prior=1.0).fit([[-1.0], [-0.5], [0.5], [1.0]], [0, 1, 0, 1])
    x = 1e4 / model.coef_[0, 0]
    a = model.decision_function([[x], [-x]])
    np.testing.assert_allclose(abs(a), 1e4, rtol=1e-12)
    with mpmath.workdps(50):
        expected = [[float(mpmath.log(mpmath.ncdf(s * mpmath.mpf(v)))) for s in (-1, 1)] for v in a]
    np.testing.assert_allclose(model.predict_log_proba([[x], [-x]]), expected, rtol=1e-13)
    np.testing.assert_array_equal(model.predict_proba([[x], [-x]]), [[0, 1], [1, 0]])


def test_more_classes_than_two_are_an_error_with_the_remedy():
    X, y = np.arange(12.0)[:, None] % 5, np.arange(12) % 3
    with pytest.raises(LabelError, match=r"Only binary classification.*OneVersusRest"):
        ProbitRegression().fit(X, y)
    model = OneVersusRest(estimator=ProbitRegression(prior=1.0)).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0, rtol=1e-12)


LINKS = sm.families.links
TWO_BUMPS = Mixture([0.4, 0.6], [stats.norm(-1.0, 0.5), stats.norm(1.5, 1.0)])  # Figure 4.13


SPECTOR, FAIR = SETS["spector"], SETS["fair"]


def drawn(noise, seed, n=60):
    """Rows whose labels come from a threshold with this noise."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 2))
    theta = noise.rvs(n, random_state=random)
    return X, (X @ [1.0, -0.5] + noise.median() > theta).astype(int)


NAMED = {
    "norm": LINKS.Probit(),
    "logistic": LINKS.Logit(),
    "cauchy": LINKS.Cauchy(),
    "gumbel_l": LINKS.CLogLog(),
    "gumbel_r": LINKS.LogLog(),
}


@pytest.mark.parametrize(("X", "y"), [SPECTOR, FAIR], ids=["spector", "fair"])
@pytest.mark.parametrize("noise", NAMED)
def test_noise_with_a_link_of_its_own_equals_statsmodels(noise, X, y):
    ours = ThresholdRegression(noise=noise, tol=1e-5).fit(X, y)
    family = sm.families.Binomial(NAMED[noise])
    theirs = sm.GLM(y, sm.add_constant(X), family=family).fit(
        tol=1e-13, tol_criterion="params", maxiter=500
    )
    np.testing.assert_allclose(parameters(ours), theirs.params, rtol=1e-8)
    np.testing.assert_allclose(ours.coef_covariance_, theirs.cov_params(), rtol=1e-8)
    np.testing.assert_allclose(ours.predict_proba(X)[:, 1], theirs.fittedvalues, rtol=1e-8)
    assert ours.log_likelihood_ == pytest.approx(theirs.llf, rel=1e-12)


def test_place_and_width_of_the_noise_shift_and_scale_the_coefficients():
    X, y = FAIR
    plain = ThresholdRegression(noise=stats.t(4)).fit(X, y)
    moved = ThresholdRegression(noise=stats.t(4, loc=2.0, scale=3.0)).fit(X, y)
    np.testing.assert_allclose(moved.coef_, 3 * plain.coef_, rtol=1e-7)
    np.testing.assert_allclose(moved.intercept_, 3 * plain.intercept_ + 2, rtol=1e-7)
    np.testing.assert_allclose(moved.predict_proba(X), plain.predict_proba(X), rtol=1e-7)
    assert moved.log_likelihood_ == pytest.approx(plain.log_likelihood_, rel=1e-12)


@pytest.mark.parametrize("noise", [stats.gumbel_r(), stats.expon(-0.5), TWO_BUMPS])
def test_the_decision_changes_sign_where_both_classes_are_equally_probable(noise):
    X, y = FAIR
    model = ThresholdRegression(noise=noise, prior=1.0).fit(X, y)
    p, decision = model.predict_proba(X)[:, 1], model.decision_function(X)
    np.testing.assert_array_equal(decision > 0, p > 0.5)
    np.testing.assert_array_equal(model.predict(X), (p > 0.5).astype(int))
    length = np.linalg.norm(model.coef_)
    np.testing.assert_allclose(model.signed_distance(X), decision / length, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.signed_distance(X, 0, 1), -model.signed_distance(X))
    activation = X @ model.coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(np.diff(decision), np.diff(activation), rtol=1e-9, atol=1e-9)


def test_noise_with_an_end_makes_rows_certain_and_no_label_impossible():
    X, y = FAIR
    model = ThresholdRegression(noise=stats.uniform()).fit(X, y)
    p = model.predict_proba(X)
    assert model.converged_
    assert (p == 0).any()
    assert (p[np.arange(len(y)), y] > 0).all()
    assert np.isfinite(model.log_likelihood_)


def test_uniform_noise_does_not_converge_at_a_kink():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(6, 10)), random.permutation([0, 0, 0, 1, 1, 1])
    with pytest.warns(ConvergenceWarning) as caught:
        model = ThresholdRegression(noise="uniform", prior=1.0).fit(X, y)
    assert len(caught) == 1
    assert not model.converged_


def test_a_label_that_scipy_makes_impossible_is_an_error():
    X, y = drawn(stats.norm(), 0)
    offset = np.where(y == 1, -1e3, 1e3)
    with pytest.raises(DomainError, match=r"every label is possible.*probability zero"):
        ThresholdRegression(noise=stats.skewnorm(2.0)).fit(X, y, offset=offset)


def test_jeffreys_prior_is_for_noise_without_ends():
    X = np.arange(8.0)[:, None]
    y = X[:, 0] > 3
    for model in (ProbitRegression(), ThresholdRegression(noise="cauchy")):
        finite = model.set_params(prior="jeffreys").fit(X, y)
        assert finite.converged_
        np.testing.assert_allclose(finite.intercept_, -3.5 * finite.coef_[0], rtol=1e-6)
    with pytest.raises(ParameterError, match=r"jeffreys.*bounded support"):
        ThresholdRegression(noise="uniform", prior="jeffreys").fit(X, y)
