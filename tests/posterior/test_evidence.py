"""The evidence against 50 digits and brute force, and the precisions that make it largest."""

import mpmath as mp
import numpy as np
import pytest
from scipy.integrate import dblquad
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_expit
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.linear_model import BayesianRidge

from posteriori import (
    GLM,
    BayesianLogisticRegression,
    GaussianPrior,
    LogisticRegression,
    ProbitRegression,
)
from posteriori.errors import IdentifiabilityWarning, InferenceError, ParameterError
from posteriori.models import choosing
from posteriori.posterior.quadratic_evidence import QuadraticEvidence

CANCER = load_breast_cancer(return_X_y=True)
IRIS = load_iris(return_X_y=True)


def proper(precision, **settings):
    return GaussianPrior(precision=precision, intercept_precision=0.01, **settings)


def laplace_at_50_digits(value, start):
    """ln ∫ exp(-value) by Laplace's approximation, with derivatives by differences of mpmath."""
    p = len(start)

    def gradient(w):
        return mp.matrix([_derivative(value, w, [i]) for i in range(p)])

    def hessian(w):
        return mp.matrix([[_derivative(value, w, [i, j]) for j in range(p)] for i in range(p)])

    w = mp.matrix([mp.mpf(float(v)) for v in start])
    for _ in range(6):
        w = w - mp.lu_solve(hessian(w), gradient(w))
    found = -value(w) + p * mp.log(2 * mp.pi) / 2 - mp.log(mp.det(hessian(w))) / 2
    return float(found)


def _derivative(value, w, places):
    orders = tuple(places.count(i) for i in range(len(w)))
    return mp.diff(lambda *v: value(mp.matrix(v)), tuple(w), orders)


def gaussian_prior(w, precisions):
    """-ln N(w|0, 1/precisions)."""
    return sum(
        (a * v * v - mp.log(a / (2 * mp.pi))) / 2 for a, v in zip(precisions, w, strict=True)
    )


@pytest.mark.parametrize("link", ["logit", "probit"])
def test_the_evidence_of_two_classes_is_that_of_50_digits(link):
    random = np.random.default_rng(0)
    X = random.normal(size=(12, 2))
    y = (X[:, 0] + random.normal(size=12) > 0.3).astype(int)
    model = LogisticRegression if link == "logit" else ProbitRegression
    model = model(prior=proper([0.5, 2.0])).fit(X, y)
    rows = [[mp.mpf(float(v)) for v in row] for row in X]

    def value(w):
        total = gaussian_prior(w, [mp.mpf("0.01"), mp.mpf("0.5"), mp.mpf(2)])
        for row, t in zip(rows, y, strict=True):
            a = (w[0] + w[1] * row[0] + w[2] * row[1]) * (1 if t else -1)
            total -= mp.log(1 / (1 + mp.exp(-a)) if link == "logit" else mp.ncdf(a))
        return total

    start = [model.intercept_[0], *model.coef_[0]]
    with mp.workdps(50):
        expected = laplace_at_50_digits(value, start)
    assert model.log_evidence_ == pytest.approx(expected, abs=1e-9)
    parts = model.evidence_
    assert parts.log_likelihood == pytest.approx(model.log_likelihood_, rel=1e-12)
    assert parts.log_occam_factor == pytest.approx(expected - model.log_likelihood_, abs=1e-9)


def test_the_evidence_of_three_classes_is_that_of_50_digits():
    random = np.random.default_rng(1)
    x, y = random.normal(size=10), np.arange(10) % 3
    model = LogisticRegression(prior=proper(0.7)).fit(x[:, None], y)
    contrasts = [[mp.sqrt(mp.mpf(1) / 2), -mp.sqrt(mp.mpf(1) / 2), 0]]
    contrasts += [[mp.sqrt(mp.mpf(1) / 6)] * 2 + [-2 * mp.sqrt(mp.mpf(1) / 6)]]

    def value(w):  # two contrasts, an intercept and a slope each
        total = gaussian_prior(w, [mp.mpf(0.01), mp.mpf(0.7)] * 2)
        for one, t in zip(x, y, strict=True):
            free = [w[0] + w[1] * mp.mpf(float(one)), w[2] + w[3] * mp.mpf(float(one))]
            a = [sum(free[j] * contrasts[j][k] for j in range(2)) for k in range(3)]
            total -= a[t] - mp.log(sum(mp.exp(v) for v in a))
        return total

    B = np.array(contrasts, dtype=float)
    start = (B @ np.column_stack([model.intercept_, model.coef_[:, 0]])).ravel()
    with mp.workdps(50):
        expected = laplace_at_50_digits(value, start)
    assert model.log_evidence_ == pytest.approx(expected, abs=1e-9)


def test_the_evidence_of_counts_is_that_of_50_digits():
    x, y = np.array([0.0, 1.0, 2.0, 3.0]), np.array([1.0, 0.0, 3.0, 6.0])
    model = GLM(family="poisson", prior=proper(2.0)).fit(x[:, None], y)

    def value(w):
        total = gaussian_prior(w, [mp.mpf(0.01), mp.mpf(2)])
        for one, t in zip(x, y, strict=True):
            a = w[0] + w[1] * mp.mpf(float(one))
            total += mp.exp(a) - a * mp.mpf(float(t)) + mp.loggamma(mp.mpf(float(t)) + 1)
        return total

    with mp.workdps(50):
        expected = laplace_at_50_digits(value, [model.intercept_, model.coef_[0]])
    assert model.log_evidence_ == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("n", [20, 200])
def test_the_evidence_is_near_that_of_integration(n):
    random = np.random.default_rng(2)
    x = random.normal(size=n)
    y = (x + random.logistic(size=n) > 0).astype(int)
    model = LogisticRegression(prior=proper(1.0)).fit(x[:, None], y)
    top = model.log_likelihood_

    def density(slope, intercept):
        a = (intercept + slope * x) * (2 * y - 1)
        prior = 0.5 * np.log(0.01 / (2 * np.pi)) + 0.5 * np.log(1 / (2 * np.pi))
        prior -= 0.005 * intercept**2 + 0.5 * slope**2
        return np.exp(log_expit(a).sum() - top + prior)

    exact = top + np.log(dblquad(density, -6, 6, -6, 6, epsabs=1e-10, epsrel=1e-8)[0])
    assert model.log_evidence_ == pytest.approx(exact, abs=2.0 / n)


@pytest.mark.parametrize("prior", [None, 1.0, "evidence", "jeffreys", GaussianPrior(0.0)])
def test_evidence_needs_a_proper_prior(prior):
    X, y = CANCER
    model = LogisticRegression(prior=prior).fit(X[:, :2], y)
    with pytest.raises(InferenceError, match="Evidence needs a proper prior"):
        _ = model.log_evidence_


def test_what_is_estimated_beside_coefficients_has_no_evidence():
    X, y = load_diabetes(return_X_y=True)
    with pytest.raises(InferenceError, match="other numbers were estimated"):
        _ = GLM(prior=proper(1.0)).fit(X, y).log_evidence_


def quadratic(seed=0, groups=(-1, 0, 0, 1, 1, 2, 3)):
    random = np.random.default_rng(seed)
    p = len(groups)
    X = random.normal(size=(20, p))
    held = np.zeros((p, p))
    held[0, 0] = 0.01
    return QuadraticEvidence(X.T @ X, X.T @ X @ random.normal(size=p), held, np.array(groups))


ONE, MANY = (-1, 0, 0, 0, -1, 0), (-1, 0, 0, 1, 1, 2, 3)


@pytest.mark.parametrize("groups", [ONE, MANY], ids=["one", "many"])
def test_slopes_and_curvatures_of_the_quadratic_evidence_are_those_of_differences(groups):
    model, step = quadratic(groups=groups), 1e-5
    rho = np.array([0.3, -1.0, 0.5, 2.0])[: model.n_groups]
    here = model.at(rho)
    sides = [(model.at(rho + step * e), model.at(rho - step * e)) for e in np.eye(len(rho))]
    slopes = [(up.value - down.value) / (2 * step) for up, down in sides]
    curvatures = [(up.gradient - down.gradient) / (2 * step) for up, down in sides]
    np.testing.assert_allclose(here.gradient, slopes, rtol=1e-7)
    np.testing.assert_allclose(here.hessian, curvatures, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("groups", [ONE, MANY], ids=["one", "many"])
def test_the_quadratic_evidence_is_that_of_a_gaussian_target(groups):
    model = quadratic(groups=groups)
    rho = np.array([0.3, -1.0, 0.5, 2.0])[: model.n_groups]
    chosen = np.array(groups) >= 0
    prior = np.exp(rho)[np.array(groups)[chosen]]
    A = model.hessian + model.held
    A[chosen, chosen] += prior
    mean = np.linalg.solve(A, model.linear)
    expected = 0.5 * model.linear @ mean
    expected += 0.5 * np.log(prior).sum() - 0.5 * np.linalg.slogdet(A)[1]
    assert model.at(rho).value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(model.at(rho).mean, mean, rtol=1e-11)


def test_a_curvature_that_is_not_positive_has_no_quadratic_evidence():
    model = QuadraticEvidence(np.diag([1.0, -1.0]), np.ones(2), np.zeros((2, 2)), np.zeros(2, int))
    assert model.at(np.array([-0.1])) is None
    assert model.at(np.array([0.1])) is not None


@pytest.mark.parametrize("seed", range(5))
def test_no_precisions_near_by_have_more_quadratic_evidence(seed):
    model = quadratic(seed)
    best = model.largest(np.zeros(4))
    found = minimize(lambda rho: -model.at(rho).value, best, method="Nelder-Mead")
    # Precisions that go to infinity stop at 1e8 times the curvature.
    assert model.at(best).value >= -found.fun - 1e-7


@pytest.mark.parametrize(
    ("model", "data"),
    [
        (LogisticRegression, (CANCER[0][:, :5], CANCER[1])),
        (LogisticRegression, IRIS),
        (ProbitRegression, (CANCER[0][:100, :3], CANCER[1][:100])),
    ],
    ids=["logit", "softmax", "probit"],
)
def test_the_precision_chosen_has_the_most_evidence(model, data):
    def minus_evidence(rho):
        prior = GaussianPrior(precision=np.exp(rho), intercept_precision=1e-6, units="standardised")
        return -model(prior=prior).fit(*data).log_evidence_

    best = minimize_scalar(minus_evidence, bracket=(-2.0, -1.0), tol=1e-8).x
    found = model(prior="evidence").fit(*data)
    assert np.log(found.prior_.precision) == pytest.approx(best, abs=2e-4)
    assert found.prior_.units == "standardised"
    again = model(prior=found.prior_).fit(*data)
    np.testing.assert_allclose(again.coef_, found.coef_, rtol=1e-8)


def test_the_precision_of_many_rows_is_that_of_few_to_within_its_tolerance():
    random = np.random.default_rng(3)
    X = random.normal(size=(60000, 10))
    y = X @ np.linspace(-0.5, 0.5, 10) + random.logistic(size=60000) > 0
    found = LogisticRegression(prior="evidence").fit(X, y)

    def minus_evidence(rho):
        prior = GaussianPrior(np.exp(rho), intercept_precision=1e-6, units="standardised")
        return -LogisticRegression(prior=prior).fit(X, y).log_evidence_

    best = minimize_scalar(minus_evidence, bracket=(2.0, 2.5), tol=1e-4)
    rho = np.log(found.prior_.precision)
    assert rho == pytest.approx(best.x, abs=0.02)
    assert minus_evidence(rho) == pytest.approx(best.fun, abs=1e-3)


def on_many_rows(K):
    random = np.random.default_rng(6)
    X = random.normal(size=(120_000, 6))
    slopes = random.normal(size=(6, K)) * [[1.0], [0.3], [0.1], [0.008], [0.0], [0.0]]
    return X, (X @ slopes + random.gumbel(size=(len(X), K))).argmax(axis=1)


@pytest.mark.parametrize("prior", ["evidence", "ard"])
@pytest.mark.parametrize("K", [2, 3])
def test_few_looks_at_many_rows_choose_what_the_search_for_the_evidence_does(K, prior, monkeypatch):
    data = on_many_rows(K)
    found = BayesianLogisticRegression(prior=prior).fit(*data)
    monkeypatch.setattr(choosing, "choose_on_many", lambda *arguments: None)
    searched = BayesianLogisticRegression(prior=prior).fit(*data)
    assert found.log_evidence_ == pytest.approx(searched.log_evidence_, abs=1e-3)
    errors = np.sqrt(np.diagonal(searched.posterior_.covariance))
    away = (found.posterior_.mean - searched.posterior_.mean) / errors
    # The prior moves coefficients by far less than its precision is uncertain.
    assert abs(away).max() < 0.02
    np.testing.assert_allclose(
        found.posterior_.covariance, searched.posterior_.covariance, rtol=1e-3, atol=1e-9
    )
    again = LogisticRegression(prior=found.prior_, tol=1e-8).fit(*data)
    if K == 2:
        assert abs((again.coef_ - found.coef_) / errors[1:]).max() < 1e-4


def test_a_column_that_few_rows_would_switch_off_is_kept_where_all_rows_show_it():
    random = np.random.default_rng(7)
    X = random.normal(size=(200_000, 4))
    y = X @ [1.0, 0.5, 0.025, 0.0] + random.logistic(size=len(X)) > 0
    model = LogisticRegression(prior="ard").fit(X, y)
    likely = LogisticRegression().fit(X, y).coef_[0, 2]
    assert likely > 0.01
    assert 0.7 * likely < model.coef_[0, 2] < likely


@pytest.mark.parametrize("prior", ["evidence", "ard"])
@pytest.mark.parametrize("model", [LogisticRegression, ProbitRegression], ids=["logit", "probit"])
def test_units_of_the_columns_do_not_matter(model, prior):
    X, y = CANCER[0][:, 4:8], CANCER[1]
    scale, shift = np.array([1e-6, 1.0, 30.0, 1e9]), np.array([1.0, -5.0, 1e3, 0.0])
    here = model(prior=prior).fit(X, y)
    there = model(prior=prior).fit(X * scale + shift, y)
    np.testing.assert_allclose(there.coef_ * scale, here.coef_, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(there.prior_.precision, here.prior_.precision, rtol=1e-3)
    np.testing.assert_allclose(
        there.predict_proba(X * scale + shift), here.predict_proba(X), rtol=1e-5
    )


def test_weights_count_as_repeated_rows():
    X, y = IRIS
    weight = np.arange(len(y)) % 3
    here = LogisticRegression(prior="evidence").fit(X, y, sample_weight=weight)
    there = LogisticRegression(prior="evidence").fit(X.repeat(weight, 0), y.repeat(weight))
    assert here.prior_.precision == pytest.approx(there.prior_.precision, rel=1e-6)
    np.testing.assert_allclose(here.coef_, there.coef_, rtol=1e-6)


def test_ard_switches_half_of_the_irrelevant_columns_off_and_no_other():
    random = np.random.default_rng(4)
    X = random.normal(size=(400, 8))
    y = 2 * X[:, 0] - X[:, 3] + random.logistic(size=400) > 0
    model = LogisticRegression(prior="ard").fit(X, y)
    off = abs(model.coef_[0]) < 1e-6
    assert not off[[0, 3]].any()
    assert off.sum() >= 3
    relevant = LogisticRegression(prior=model.prior_).fit(X, y)
    np.testing.assert_allclose(relevant.coef_, model.coef_, rtol=1e-6, atol=1e-9)


def test_levels_of_a_factor_share_one_precision():
    pandas = pytest.importorskip("pandas")
    random = np.random.default_rng(5)
    kind = random.integers(0, 4, 500)
    frame = pandas.DataFrame({"kind": np.array(list("abcd"))[kind], "x": random.normal(size=500)})
    y = 0.8 * (kind - 1.5) + random.logistic(size=500) > 0
    model = LogisticRegression(prior="ard").fit(frame, y)
    assert len(set(model.prior_.precision[:3])) == 1
    assert model.prior_.precision[3] != model.prior_.precision[0]


def test_separated_classes_take_the_weakest_prior_and_say_so():
    X, y = load_wine(return_X_y=True)
    with pytest.warns(IdentifiabilityWarning, match="columns 0, 1, 2.* gets weaker"):
        model = LogisticRegression(prior="evidence").fit(X, y)
    assert model.prior_.precision == pytest.approx(1e-4)
    assert model.converged_


def test_a_gaussian_target_has_the_precisions_of_bayesian_ridge():
    X, y = load_diabetes(return_X_y=True)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    model = GLM(prior="evidence").fit(X, y)
    n = len(y)
    gram, pull = Z.T @ Z, Z.T @ (y - y.mean())

    def minus_evidence(rho):
        # The intercept is integrated out with a flat prior, so that n - 1 is left of n.
        alpha, s = np.exp(rho)
        A = gram + alpha * np.eye(Z.shape[1])
        least = ((y - y.mean()) ** 2).sum() - pull @ np.linalg.solve(A, pull)
        fit = 0.5 * least / s + 0.5 * (n - 1) * np.log(s)
        return fit + 0.5 * np.linalg.slogdet(A)[1] - 0.5 * Z.shape[1] * np.log(alpha)

    best = minimize(minus_evidence, [2.0, 8.0], method="Nelder-Mead", options={"xatol": 1e-9})
    assert np.log(model.prior_.precision) == pytest.approx(best.x[0], abs=1e-4)
    ridge = BayesianRidge(alpha_1=0, alpha_2=0, lambda_1=0, lambda_2=0, tol=1e-8).fit(Z, y)
    # There the intercept is taken for known.
    np.testing.assert_allclose(model.coef_ * X.std(axis=0), ridge.coef_, rtol=2e-3, atol=0.02)


@pytest.mark.parametrize("prior", ["evidence", "ard"])
def test_a_target_that_columns_fit_exactly_has_a_finite_answer_and_a_warning(prior):
    random = np.random.default_rng(8)
    X = random.normal(size=(12, 3))
    y = X @ [1.0, -2.0, 0.5] + 3.0
    with pytest.warns(IdentifiabilityWarning, match="fit the target exactly"):
        model = GLM(prior=prior).fit(X, y)
    np.testing.assert_allclose(model.coef_, [1.0, -2.0, 0.5], rtol=1e-4)


def test_a_target_that_never_changes_leaves_no_prior_to_choose():
    model = GLM(prior="evidence").fit(np.arange(6.0)[:, None], np.full(6, 2.5))
    assert "never changes" in model.prior_reason_
    assert model.intercept_ == pytest.approx(2.5)
    assert model.coef_ == pytest.approx(0.0)


@pytest.mark.parametrize("prior", ["evidence", "ard"])
def test_what_a_chosen_prior_cannot_be_combined_with(prior):
    X, y = CANCER[0][:, :2], CANCER[1]
    with pytest.raises(ParameterError, match="cannot be combined with label_noise"):
        LogisticRegression(prior=prior, label_noise=0.1).fit(X, y)
    with pytest.raises(ParameterError, match="bounded support"):
        GLM(family="bernoulli", link="identity", prior=prior).fit(X, y)
