"""Families with a dispersion, null models, and intervals of a mean."""

from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm
from objectives import log_posterior
from scipy.special import expit
from scipy.stats import t as student

from posteriori import GLM
from posteriori.design.standardise import Standard
from posteriori.errors import DomainError, InferenceError
from posteriori.likelihood.binary_losses import NoisyLogisticLoss
from posteriori.posterior.activations import root_of
from posteriori.posterior.fit_statistics import FitStatistics

N = 200
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(N, 2)) * [1.0, 3.0] + [0.0, 2.0]
Z = sm.add_constant(X)
ACTIVATION = 0.4 * X[:, 0] - 0.1 * X[:, 1]
REAL = ACTIVATION + 0.5 * RANDOM.normal(size=N)
COUNTS = RANDOM.poisson(np.exp(ACTIVATION)).astype(float)
TIMES = RANDOM.gamma(3.0, np.exp(ACTIVATION) / 3)
CLASSES = (RANDOM.random(N) < expit(ACTIVATION)).astype(float)
WEIGHT = RANDOM.integers(0, 4, N).astype(float)
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
@pytest.mark.parametrize("rich", [False, True])
def test_families_have_the_numbers_of_statsmodels(family, link, rich):
    t, theirs = CASES[family, link]
    given = {"sample_weight": WEIGHT, "offset": OFFSET} if rich else {}
    ours = GLM(family=family, link=link).fit(X, t, **given)._inference
    given = {"freq_weights": WEIGHT, "offset": OFFSET} if rich else {}
    theirs = sm.GLM(t, Z, family=theirs, **given).fit(
        tol=1e-15, tol_criterion="params", maxiter=200
    )
    goodness, n = ours.goodness, float(WEIGHT.sum()) if rich else N
    np.testing.assert_allclose(ours.estimates, theirs.params, rtol=1e-7)
    np.testing.assert_allclose(ours.standard_errors(), theirs.bse, rtol=1e-7)
    assert goodness.n_obs == n
    assert goodness.dispersion == pytest.approx(theirs.scale, rel=1e-9)
    assert goodness.deviance == pytest.approx(theirs.deviance, rel=1e-9)
    assert goodness.null_deviance == pytest.approx(theirs.null_deviance, rel=1e-9)
    assert goodness.log_likelihood == pytest.approx(theirs.llf, rel=1e-9)
    extra = family in ("gaussian", "gamma")
    assert goodness.aic == pytest.approx(theirs.aic + 2 * extra, rel=1e-9)
    assert goodness.bic == pytest.approx((3 + extra) * np.log(n) - 2 * theirs.llf, rel=1e-9)
    if not rich:
        scores = theirs.model.score_obs(theirs.params, scale=1.0)
        inverse = np.linalg.inv(-theirs.model.hessian(theirs.params, scale=1.0, observed=True))
        wanted = np.sqrt(np.diag(inverse @ scores.T @ scores @ inverse))
        np.testing.assert_allclose(ours.standard_errors("robust"), wanted, rtol=1e-7)


@pytest.mark.parametrize(("family", "t"), [("gaussian", REAL), ("gamma", TIMES)])
def test_an_estimated_dispersion_asks_for_students_t(family, t):
    ours = GLM(family=family, link="identity" if family == "gaussian" else "log").fit(X, t)
    found = ours._inference.table(None, level=0.9)
    tail = 2 * student.sf(abs(found.statistic), N - 3)
    np.testing.assert_allclose(found.p_value, tail, rtol=1e-10)
    half = student.ppf(0.95, N - 3) * found.std_error
    np.testing.assert_allclose(found.conf_high - found.estimate, half, rtol=1e-10)


def test_no_rows_left_for_the_dispersion_are_an_error_that_says_so():
    ours = GLM().fit(X[:3], REAL[:3])._inference
    for ask in (lambda: ours.goodness.dispersion, ours.standard_errors):
        with pytest.raises(InferenceError, match=r"3 rows leave none .* 3 parameters") as caught:
            ask()
        assert "fewer columns" in str(caught.value)
    assert ours.goodness.deviance == pytest.approx(0.0, abs=1e-20)
    ours.without_rows()


def test_the_null_model_without_an_intercept_has_the_offsets_alone():
    ours = GLM(family="poisson", fit_intercept=False).fit(X, COUNTS, offset=OFFSET)
    t, mean = COUNTS, np.exp(OFFSET)
    wanted = 2 * (np.where(t > 0, t * np.log(np.maximum(t, 1) / mean), 0.0) - t + mean).sum()
    assert ours.null_deviance_ == pytest.approx(wanted, rel=1e-12)


def test_the_null_model_of_classes_has_their_shares():
    y = np.arange(N) % 3 + (X[:, 0] > 0.5)
    n = np.bincount(y.astype(int))
    wanted = -2 * (n * np.log(n / N)).sum()
    assert GLM(family="categorical").fit(X, y).null_deviance_ == pytest.approx(wanted, rel=1e-12)


def test_noisy_labels_have_a_null_model_of_their_own():
    ones, zeros = CLASSES.sum(), N - CLASSES.sum()
    standard, T = Standard(np.zeros(2), np.ones(2), True), np.column_stack([1 - CLASSES, CLASSES])
    plain = log_posterior(X, T, None, standard=standard)
    for rates, share in (((0.1, 0.2), CLASSES.mean()), ((0.7, 0.1), 0.7), ((0.1, 0.8), 0.2)):
        # The share of ones that such labels can have ends at the rates.
        objective = replace(plain, loss=NoisyLogisticLoss(*rates))
        wanted = -2 * (ones * np.log(share) + zeros * np.log(1 - share))
        found = FitStatistics(objective, np.zeros(3)).null_deviance
        assert found == pytest.approx(wanted, rel=1e-9)


def test_intervals_of_a_mean_stay_in_its_domain():
    t = RANDOM.gamma(3.0, 1 / (1 + 0.2 * abs(X[:, 0])) / 3)
    model = GLM(family="gamma", link="reciprocal").fit(abs(X[:, :1]), t)
    new = np.linspace(3, -30, 300)[:, None]
    a = model.intercept_ + new @ model.coef_
    Z = sm.add_constant(new)
    away = student.ppf(0.975, N - 2) * np.sqrt(((Z @ model.coef_covariance_) * Z).sum(axis=1))
    inside, certain = a > 0, a - away > 0
    assert 0 < certain.sum() < inside.sum() < 300
    low, high = model.predict_interval(new[inside]).T
    np.testing.assert_allclose(low, 1 / (a + away)[inside], rtol=1e-9)
    np.testing.assert_allclose(high[certain[inside]], 1 / (a - away)[certain], rtol=1e-9)
    assert (high[~certain[inside]] == np.inf).all()
    first = int(np.argmin(inside))
    with pytest.raises(DomainError, match=f"Row {first} has the activation {a[first]:.6g}"):
        model.predict_interval(new)


def test_a_singular_covariance_has_a_root_too():
    A = np.array([[1.0, 2.0], [2.0, 4.0]])
    root = root_of(A)
    np.testing.assert_allclose(root @ root.T, A, rtol=1e-12)


def test_coefficients_that_are_not_determined_are_named():
    inference = GLM(family="bernoulli").fit(X, CLASSES)._inference
    with pytest.raises(InferenceError) as caught:
        inference._inverse(np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1.0, 1.0]]))
    assert "some combination of coefficients ('x0', 'x1') is not determined" in str(caught.value)
