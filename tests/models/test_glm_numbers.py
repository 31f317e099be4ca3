"""Generalised linear models: the numbers of statsmodels, family by family and link by link."""

import warnings

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.stats import logistic, norm
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from posteriori import GLM, LogisticRegression, ProbitRegression, ThresholdRegression

F, L = sm.families, sm.families.links
X, Y = load_diabetes(return_X_y=True)
X = X[:, [0, 1, 3]]
CANCER_X, CANCER_Y = load_breast_cancer(return_X_y=True)
CANCER_X = CANCER_X[:, :2]
RISK_X = np.column_stack([X[:, 1] > 0, X[:, 0] > 0.02, X[:, 2] > 0.03]).astype(float)
RANDOM = np.random.default_rng(0)
WEIGHT = RANDOM.integers(1, 4, 569).astype(float)
OFFSET = RANDOM.uniform(-0.1, 0.1, 569)

FAMILIES = {
    "gaussian": F.Gaussian,
    "poisson": F.Poisson,
    "gamma": F.Gamma,
    "exponential": F.Gamma,
    "bernoulli": F.Binomial,
}
LINKS = {
    "identity": L.Identity,
    "log": L.Log,
    "reciprocal": L.InversePower,
    "logit": L.Logit,
    "probit": L.Probit,
    "cloglog": L.CLogLog,
}
ALL = {
    "gaussian": ("identity", "log", "reciprocal"),
    "poisson": ("log", "identity"),
    "gamma": ("reciprocal", "log", "identity"),
    "exponential": ("reciprocal", "log", "identity"),
    "bernoulli": ("logit", "probit", "cloglog", "log", "identity"),
}
PAIRS = [(family, link) for family, links in ALL.items() for link in links]


def rows(family, link):
    """Rows and targets that keep inside the domain of the link, and the size of an offset there."""
    if family != "bernoulli":
        return X, Y, 0.001 if link == "reciprocal" else 1.0
    if link in ("log", "identity"):
        return RISK_X, (Y > 140).astype(int), 0.5
    return CANCER_X, CANCER_Y, 1.0


def theirs(family, link, X, y, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of links that can leave the domain
        model = sm.GLM(y, sm.add_constant(X), family=FAMILIES[family](LINKS[link]()), **given)
        fixed = {"scale": 1.0} if family == "exponential" else {}
        start = None
        if link in ("log", "identity", "reciprocal"):
            level = LINKS[link]()(np.average(y, weights=given.get("freq_weights")))
            start = np.r_[level, np.zeros(X.shape[1])]
        return model.fit(
            start_params=start, tol=1e-14, maxiter=500, tol_criterion="params", **fixed
        )


@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("family", "link"), PAIRS)
def test_all_that_is_estimated_is_the_same(family, link, weighted, offset):
    X, y, size = rows(family, link)
    ours, wanted, new = {}, {}, {}
    if weighted:
        ours["sample_weight"] = wanted["freq_weights"] = WEIGHT[: len(y)]
    if offset:
        ours["offset"] = wanted["offset"] = new["offset"] = size * OFFSET[: len(y)]
    model = GLM(family=family, link=link).fit(X, y, **ours)
    found = theirs(family, link, X, y, **wanted)
    np.testing.assert_allclose(
        np.r_[model.intercept_, np.ravel(model.coef_)], found.params, rtol=1e-8
    )
    np.testing.assert_allclose(np.sqrt(np.diag(model.coef_covariance_)), found.bse, rtol=1e-8)
    units = np.outer(found.bse, found.bse)
    np.testing.assert_allclose(
        model.coef_covariance_ / units, found.cov_params() / units, rtol=1e-8, atol=1e-9
    )
    assert model.log_likelihood_ == pytest.approx(found.llf, rel=1e-10)
    assert model.deviance_ == pytest.approx(found.deviance, rel=1e-10)
    assert model.null_deviance_ == pytest.approx(found.null_deviance, rel=1e-8)
    assert model.dispersion_ == pytest.approx(found.scale, rel=1e-9)
    mean = model.predict_proba(X, **new).T[1] if family == "bernoulli" else model.predict(X, **new)
    np.testing.assert_allclose(mean, found.fittedvalues, rtol=1e-8)


@pytest.mark.parametrize("weighted", [False, True])
def test_many_classes(weighted):
    X, y = load_wine(return_X_y=True)
    X = X[:, [1, 2]]
    weight = WEIGHT[: len(y)].astype(int) if weighted else np.ones(len(y), dtype=int)
    model = GLM(family="categorical").fit(X, y, sample_weight=weight)
    many = np.repeat(np.arange(len(y)), weight)
    found = sm.MNLogit(y[many], sm.add_constant(X[many])).fit(
        method="newton", disp=0, tol=1e-12, maxiter=100
    )
    all_of_them = np.column_stack([model.intercept_, model.coef_])
    np.testing.assert_allclose((all_of_them[1:] - all_of_them[0]).T, found.params, rtol=1e-8)
    error = np.sqrt(np.diag(model.coef_covariance_)).reshape(2, 3)
    np.testing.assert_allclose(error.T, found.bse, rtol=1e-8)
    assert model.log_likelihood_ == pytest.approx(found.llf, rel=1e-10)
    assert model.null_deviance_ == pytest.approx(-2 * found.llnull, rel=1e-8)
    np.testing.assert_allclose(model.predict_proba(X[many]), found.predict(), rtol=1e-8)


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
