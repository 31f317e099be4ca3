"""Generalised linear models: the numbers of statsmodels, family by family and link by link."""

import warnings

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.stats import logistic, norm
from sklearn.datasets import load_breast_cancer, load_diabetes

from posteriori import GLM, LogisticRegression, ProbitRegression, ThresholdRegression

X, Y = load_diabetes(return_X_y=True)
X = X[:, :3]
F, L = sm.families, sm.families.links
CANCER_X, CANCER_Y = load_breast_cancer(return_X_y=True)
CANCER_X = CANCER_X[:, :2]

REAL = {
    ("gaussian", "identity"): F.Gaussian(),
    ("gaussian", "log"): F.Gaussian(L.Log()),
    ("poisson", "log"): F.Poisson(),
    ("poisson", "identity"): F.Poisson(L.Identity()),
    ("gamma", "reciprocal"): F.Gamma(),
    ("gamma", "log"): F.Gamma(L.Log()),
}
BINARY = {"logit": L.Logit(), "probit": L.Probit(), "cloglog": L.CLogLog()}


def theirs(y, X, family, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of links that can leave the domain
        return sm.GLM(y, sm.add_constant(X), family=family, **given).fit(
            tol=1e-13, maxiter=300, tol_criterion="params"
        )


def agree(ours, found):
    np.testing.assert_allclose(
        np.r_[ours.intercept_, np.ravel(ours.coef_)], found.params, rtol=1e-8, atol=1e-10
    )
    np.testing.assert_allclose(np.sqrt(np.diagonal(ours.coef_covariance_)), found.bse, rtol=1e-8)
    assert ours.log_likelihood_ == pytest.approx(found.llf, rel=1e-10)
    assert ours.deviance_ == pytest.approx(found.deviance, rel=1e-10)


@pytest.mark.parametrize(("family", "link"), REAL)
def test_real_targets(family, link):
    ours = GLM(family=family, link=link).fit(X, Y)
    found = theirs(Y, X, REAL[family, link])
    agree(ours, found)
    assert ours.dispersion_ == pytest.approx(found.scale, rel=1e-9)
    np.testing.assert_allclose(ours.predict(X), found.fittedvalues, rtol=1e-8)


@pytest.mark.parametrize(("family", "link"), REAL)
def test_weights_are_repetitions(family, link):
    weight = np.random.default_rng(0).integers(1, 4, len(Y))
    ours = GLM(family=family, link=link).fit(X, Y, sample_weight=weight)
    agree(ours, theirs(Y, X, REAL[family, link], freq_weights=weight))


def test_offsets_are_added_to_the_activation():
    offset = np.log(np.random.default_rng(1).uniform(0.5, 2.0, len(Y)))
    ours = GLM(family="poisson").fit(X, Y, offset=offset)
    agree(ours, theirs(Y, X, F.Poisson(), offset=offset))


@pytest.mark.parametrize("link", BINARY)
def test_binary_targets(link):
    ours = GLM(family="bernoulli", link=link).fit(CANCER_X, CANCER_Y)
    found = theirs(CANCER_Y, CANCER_X, F.Binomial(BINARY[link]))
    agree(ours, found)
    np.testing.assert_allclose(ours.predict_proba(CANCER_X)[:, 1], found.fittedvalues, rtol=1e-7)


def test_the_exponential_family_is_gamma_with_dispersion_one():
    ours = GLM(family="exponential", link="log").fit(X, Y)
    gamma = GLM(family="gamma", link="log").fit(X, Y)
    np.testing.assert_allclose(ours.coef_, gamma.coef_, rtol=1e-9)
    np.testing.assert_allclose(
        ours.coef_covariance_ * gamma.dispersion_, gamma.coef_covariance_, rtol=1e-8
    )
    assert ours.dispersion_ == 1.0


def test_probit_equals_statsmodels_with_observed_information():
    ours = ProbitRegression().fit(CANCER_X, CANCER_Y)
    found = sm.Probit(CANCER_Y, sm.add_constant(CANCER_X)).fit(disp=0, tol=1e-13)
    np.testing.assert_allclose(np.r_[ours.intercept_, ours.coef_[0]], found.params, rtol=1e-8)
    np.testing.assert_allclose(ours.coef_covariance_, found.cov_params(), rtol=1e-8)
    assert ours.log_likelihood_ == pytest.approx(found.llf, rel=1e-12)


@pytest.mark.parametrize(
    ("noise", "other"), [(norm(), ProbitRegression()), (logistic(), LogisticRegression())]
)
def test_a_threshold_with_known_noise_is_the_model_with_that_link(noise, other):
    ours = ThresholdRegression(noise=noise).fit(CANCER_X, CANCER_Y)
    other.fit(CANCER_X, CANCER_Y)
    np.testing.assert_allclose(ours.coef_, other.coef_, rtol=1e-7)
    np.testing.assert_allclose(
        ours.predict_proba(CANCER_X), other.predict_proba(CANCER_X), rtol=1e-6, atol=1e-12
    )
