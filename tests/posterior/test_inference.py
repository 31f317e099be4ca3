"""Families with a dispersion, criteria, and null models."""

import pickle

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.special import expit
from scipy.stats import t as student

from posteriori import GLM, LogisticRegression
from posteriori.errors import InferenceError

N = 200
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(N, 2)) * [1.0, 3.0] + [0.0, 2.0]
Z = sm.add_constant(X)
ACTIVATION = 0.4 * X[:, 0] - 0.1 * X[:, 1]
REAL = ACTIVATION + 0.5 * RANDOM.normal(size=N)
COUNTS = RANDOM.poisson(np.exp(ACTIVATION)).astype(float)
TIMES = RANDOM.gamma(3.0, np.exp(ACTIVATION) / 3)
CLASSES = (RANDOM.random(N) < expit(ACTIVATION)).astype(float)
OFFSET = 0.3 * RANDOM.normal(size=N)
LINKS = sm.families.links
CASES = {
    ("gaussian", "identity"): (REAL, sm.families.Gaussian()),
    ("gaussian", "log"): (np.exp(REAL), sm.families.Gaussian(LINKS.Log())),
    ("poisson", "log"): (COUNTS, sm.families.Poisson()),
    ("gamma", "log"): (TIMES, sm.families.Gamma(LINKS.Log())),
    ("bernoulli", "logit"): (CLASSES, sm.families.Binomial()),
    ("bernoulli", "probit"): (CLASSES, sm.families.Binomial(LINKS.Probit())),
}


@pytest.mark.parametrize(("family", "link"), CASES)
def test_criteria_and_robust_errors_are_those_of_statsmodels(family, link):
    t, theirs = CASES[family, link]
    ours = GLM(family=family, link=link).fit(X, t)
    theirs = sm.GLM(t, Z, family=theirs).fit(tol=1e-15, tol_criterion="params", maxiter=200)
    extra = family in ("gaussian", "gamma")  # the dispersion is a parameter
    assert ours.aic_ == pytest.approx(theirs.aic + 2 * extra, rel=1e-9)
    assert ours.bic_ == pytest.approx((3 + extra) * np.log(N) - 2 * theirs.llf, rel=1e-9)
    scores = theirs.model.score_obs(theirs.params, scale=1.0)
    inverse = np.linalg.inv(-theirs.model.hessian(theirs.params, scale=1.0, observed=True))
    wanted = np.sqrt(np.diag(inverse @ scores.T @ scores @ inverse))
    np.testing.assert_allclose(ours.tidy(errors="robust")["std_error"], wanted, rtol=1e-7)


@pytest.mark.parametrize(
    ("family", "link", "t"), [("gaussian", "identity", REAL), ("gamma", "log", TIMES)]
)
def test_an_estimated_dispersion_asks_for_students_t(family, link, t):
    found = GLM(family=family, link=link).fit(X, t).tidy(level=0.9)
    tail = 2 * student.sf(abs(found["statistic"]), N - 3)
    np.testing.assert_allclose(found["p_value"], tail, rtol=1e-10)
    half = student.ppf(0.95, N - 3) * found["std_error"]
    np.testing.assert_allclose(found["conf_high"] - found["estimate"], half, rtol=1e-10)


def test_no_rows_left_for_the_dispersion_are_an_error_that_says_so():
    model = GLM().fit(X[:3], REAL[:3])
    for ask in (lambda: model.dispersion_, model.tidy):
        message = r"3 rows leave none .* 3 parameters.* fewer columns"
        with pytest.raises(InferenceError, match=message):
            ask()
    assert model.deviance_ == pytest.approx(0.0, abs=1e-20)
    pickle.dumps(model)


def test_the_null_model_without_an_intercept_has_the_offsets_alone():
    ours = GLM(family="poisson", fit_intercept=False).fit(X, COUNTS, offset=OFFSET)
    t, mean = COUNTS, np.exp(OFFSET)
    wanted = 2 * (np.where(t > 0, t * np.log(np.maximum(t, 1) / mean), 0.0) - t + mean).sum()
    assert ours.null_deviance_ == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize(
    ("rates", "share"), [((0.1, 0.2), CLASSES.mean()), ((0.7, 0.1), 0.7), ((0.1, 0.8), 0.2)]
)
def test_the_null_model_of_noisy_labels_has_a_share_between_the_rates(rates, share):
    ones, zeros = CLASSES.sum(), N - CLASSES.sum()
    wanted = -2 * (ones * np.log(share) + zeros * np.log(1 - share))
    model = LogisticRegression(label_noise=rates, prior=1.0).fit(X, CLASSES)
    assert model.null_deviance_ == pytest.approx(wanted, rel=1e-9)


def test_coefficients_that_are_not_determined_are_named():
    inference = GLM(family="bernoulli").fit(X, CLASSES)._inference
    with pytest.raises(InferenceError) as caught:
        inference._inverse(np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1.0, 1.0]]))
    assert "some combination of coefficients ('x0', 'x1') is not determined" in str(caught.value)
