"""The evidence against 50 digits and brute force, and the precisions that make it largest."""

import itertools
from functools import partial

import mpmath as mp
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.optimize import minimize, minimize_scalar
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine

from posteriori import (
    GLM,
    BayesianLogisticRegression,
    GaussianPrior,
    LogisticRegression,
    ProbitRegression,
)
from posteriori.errors import IdentifiabilityWarning, InferenceError
from posteriori.posterior import log_posterior as objectives

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


RANDOM = np.random.default_rng(0)
XY = RANDOM.normal(size=(12, 3))
TWO = (XY[:, 0] + XY[:, 2] > 0.3).astype(int)
SQRT2, SQRT6 = mp.sqrt(mp.mpf(1) / 2), mp.sqrt(mp.mpf(1) / 6)
CONTRASTS = [[SQRT2, -SQRT2, 0], [SQRT6, SQRT6, -2 * SQRT6]]


def softmax_loss(a, t):
    """-ln p(t|a) for a (2,), the contrasts of three activations."""
    each = [sum(v * row[k] for v, row in zip(a, CONTRASTS, strict=True)) for k in range(3)]
    return mp.log(sum(mp.exp(v) for v in each)) - each[t]


FEW_ROWS = {  # model, rows, target, -ln p(t|a)
    "logit": (LogisticRegression, XY[:, :2], TWO, lambda a, t: mp.log1p(mp.exp((1 - 2 * t) * a))),
    "bayesian": (
        partial(BayesianLogisticRegression, inference="laplace"),
        XY[:, :2],
        TWO,
        lambda a, t: mp.log1p(mp.exp((1 - 2 * t) * a)),
    ),
    "probit": (ProbitRegression, XY[:, :2], TWO, lambda a, t: -mp.log(mp.ncdf((2 * t - 1) * a))),
    "counts": (
        partial(GLM, family="poisson"),
        np.arange(4.0)[:, None],
        np.array([1.0, 0.0, 3.0, 6.0]),
        lambda a, t: mp.exp(a) - a * t + mp.loggamma(t + 1),
    ),
    "three classes": (LogisticRegression, XY[:, :1], np.arange(12) % 3, softmax_loss),
}


@pytest.mark.parametrize("name", FEW_ROWS)
def test_the_evidence_is_that_of_50_digits(name):
    model, X, y, loss = FEW_ROWS[name]
    d, is_softmax = X.shape[1], loss is softmax_loss
    model = model(prior=proper([0.5, 2.0][:d])).fit(X, y)
    rows = [[mp.mpf(1), *(mp.mpf(float(v)) for v in row)] for row in X]
    precisions = [mp.mpf("0.01"), mp.mpf("0.5"), mp.mpf(2)][: d + 1] * (1 + is_softmax)

    def value(w):
        """-ln p(t, w)."""
        vectors = [list(w)[low : low + d + 1] for low in range(0, len(w), d + 1)]
        total = sum(
            (a * v * v - mp.log(a / (2 * mp.pi))) / 2 for a, v in zip(precisions, w, strict=True)
        )
        for row, t in zip(rows, y, strict=True):
            a = [sum(v * x for v, x in zip(vector, row, strict=True)) for vector in vectors]
            total += loss(a if is_softmax else a[0], int(t))
        return total

    theta = np.column_stack([np.atleast_1d(model.intercept_), np.atleast_2d(model.coef_)])
    start = np.array(CONTRASTS, dtype=float) @ theta if is_softmax else theta
    with mp.workdps(50):
        expected = laplace_at_50_digits(value, start.ravel())
    parts = model.evidence_
    assert model.log_evidence_ == pytest.approx(expected, abs=1e-9)
    assert parts.log_likelihood == pytest.approx(model.log_likelihood_, rel=1e-12)
    assert parts.log_occam_factor == pytest.approx(expected - model.log_likelihood_, abs=1e-9)


@pytest.mark.parametrize("prior", [None, 1.0, "evidence", "jeffreys", GaussianPrior(0.0)])
def test_evidence_needs_a_proper_prior_and_no_other_estimates(prior):
    model = LogisticRegression(prior=prior).fit(CANCER[0][:, :2], CANCER[1])
    with pytest.raises(InferenceError, match="Evidence needs a proper prior"):
        _ = model.log_evidence_
    model = GLM(prior=proper(1.0)).fit(*load_diabetes(return_X_y=True))
    with pytest.raises(InferenceError, match="other numbers were estimated"):
        _ = model.log_evidence_


WINE = load_wine(return_X_y=True)
DATA = {
    "cancer, 5 columns": (LogisticRegression, (CANCER[0][:, :5], CANCER[1])),
    "wine, 2 classes": (LogisticRegression, (WINE[0], WINE[1] == 1)),
    "wine, 4 columns": (LogisticRegression, (WINE[0][:, :4], WINE[1])),
    "iris": (LogisticRegression, IRIS),
    "probit": (ProbitRegression, (CANCER[0][:100, :3], CANCER[1][:100])),
}


def log_evidence(model, data, precision):
    prior = GaussianPrior(precision, intercept_precision=1e-9, units="standardised")
    return model(prior=prior).fit(*data).log_evidence_


@pytest.mark.parametrize("name", DATA)
def test_the_precision_chosen_has_the_most_evidence_of_all(name):
    model, data = DATA[name]
    found = model(prior="evidence").fit(*data)
    rho = np.log(found.prior_.precision)
    grid = [log_evidence(model, data, np.exp(each)) for each in np.linspace(-9, 7, 33)]
    near = np.exp(rho + np.array([0.0, -0.01, 0.01]))
    chosen, below, above = (log_evidence(model, data, each) for each in near)
    assert chosen > max(*grid, below, above)
    # The maximum of the parabola through the three.
    away = 0.005 * (above - below) / (2 * chosen - above - below)
    assert away == pytest.approx(0.0, abs=2e-4)


@pytest.mark.parametrize("name", ["cancer, 5 columns", "wine, 4 columns", "probit"])
def test_no_change_of_a_precision_by_ard_has_more_evidence(name):
    model, data = DATA[name]
    chosen = model(prior="ard").fit(*data).prior_.precision
    most = log_evidence(model, data, chosen)
    for j, factor in itertools.product(range(len(chosen)), (1e-3, 0.9, 1.1, 1e3)):
        other = chosen.copy()
        other[j] *= factor
        assert log_evidence(model, data, other) < most + 1e-9


def test_the_precision_of_many_rows_is_that_of_few_to_within_its_tolerance():
    random = np.random.default_rng(3)
    X = random.normal(size=(60000, 10))
    y = X @ np.linspace(-0.5, 0.5, 10) + random.logistic(size=60000) > 0
    found = BayesianLogisticRegression(prior="evidence").fit(X, y)

    def minus_evidence(rho):
        prior = GaussianPrior(np.exp(rho), intercept_precision=1e-6, units="standardised")
        return -LogisticRegression(prior=prior).fit(X, y).log_evidence_

    best = minimize_scalar(minus_evidence, bracket=(2.0, 2.5), tol=1e-4)
    rho = np.log(found.prior_.precision)
    assert rho == pytest.approx(best.x, abs=0.02)
    assert minus_evidence(rho) == pytest.approx(best.fun, abs=1e-3)
    again, posterior = LogisticRegression(prior=found.prior_, tol=1e-8).fit(X, y), found.posterior_
    np.testing.assert_allclose(posterior.mean[1:], again.coef_[0], atol=1e-6)
    np.testing.assert_allclose(posterior.covariance, again.coef_covariance_, rtol=1e-3, atol=1e-9)


@pytest.mark.parametrize("K", [2, 3])
def test_a_column_that_few_rows_would_switch_off_is_kept_where_all_rows_show_it(K):
    random = np.random.default_rng(7)
    X = random.normal(size=(200_000, 4))
    slopes = np.outer([1.0, 0.5, 0.025, 0.0], np.arange(K))
    y = (X @ slopes + random.gumbel(size=(len(X), K))).argmax(axis=1)
    kept, likely = (
        LogisticRegression(prior=prior).fit(X, y).coef_[-1, 2] for prior in ("ard", None)
    )
    assert likely > 0.01
    assert 0.7 * likely < kept < likely


def test_levels_of_a_factor_share_one_precision_and_separated_classes_have_the_weakest():
    random = np.random.default_rng(5)
    kind = random.integers(0, 4, 500)
    frame = pd.DataFrame({"kind": np.array(list("abcd"))[kind], "x": random.normal(size=500)})
    y = 0.8 * (kind - 1.5) + random.logistic(size=500) > 0
    precision = LogisticRegression(prior="ard").fit(frame, y).prior_.precision
    assert len(set(precision[:3])) == 1
    assert precision[3] != precision[0]
    with pytest.warns(IdentifiabilityWarning, match="columns 0, 1, 2.* gets weaker"):
        model = LogisticRegression(prior="evidence").fit(*WINE)
    assert model.prior_.precision == pytest.approx(1e-4)
    assert model.converged_


def test_a_gaussian_target_has_the_precisions_of_greatest_evidence():
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


@pytest.mark.parametrize("prior", ["evidence", "ard"])
def test_a_target_that_columns_fit_exactly_has_a_finite_answer_and_a_warning(prior):
    X = np.random.default_rng(8).normal(size=(12, 3))
    with pytest.warns(IdentifiabilityWarning, match="fit the target exactly"):
        model = GLM(prior=prior).fit(X, X @ [1.0, -2.0, 0.5] + 3.0)
    np.testing.assert_allclose(model.coef_, [1.0, -2.0, 0.5], rtol=1e-4)
    constant = GLM(prior=prior).fit(X, np.full(12, 2.5))
    assert "target is constant" in constant.prior_reason_
    assert constant.intercept_ == pytest.approx(2.5)
    assert constant.coef_ == pytest.approx(0.0)


# Very many coefficients: by the diagonal of the second derivatives.

MANY = RANDOM.normal(size=(1500, 60)) * 3.0 + 5.0
NOISY = (MANY - 5) @ RANDOM.normal(size=(60, 3)) * 0.1 + RANDOM.gumbel(size=(1500, 3))
TARGETS = {
    "two": (LogisticRegression(), NOISY[:, :2].argmax(axis=1)),
    "three": (LogisticRegression(), NOISY.argmax(axis=1)),
    "counts": (GLM(family="poisson"), RANDOM.poisson(np.exp(0.3 * NOISY[:, 0]))),
}


@pytest.mark.parametrize("name", TARGETS)
def test_one_precision_by_the_diagonal_is_near_that_by_all_second_derivatives(name, monkeypatch):
    model, y = TARGETS[name]
    model = model.set_params(prior="evidence")
    exact = clone(model).fit(MANY, y)
    assert exact.prior_reason_ == "by all second derivatives"
    monkeypatch.setattr(objectives, "WIDE", 50)
    found = clone(model).fit(MANY, y)
    assert found.prior_reason_ == "by the diagonal of the second derivatives"
    assert np.log(found.prior_.precision) == pytest.approx(np.log(exact.prior_.precision), abs=0.15)
    thin = clone(model).fit(sparse.csr_array(MANY), y)
    assert thin.prior_.precision == pytest.approx(found.prior_.precision, rel=1e-3)
    if name == "two":  # one for each column removes columns
        y = (MANY[:, 0] - 5) * 0.7 + RANDOM.logistic(size=1500) > 0
        size = abs(clone(model).set_params(prior="ard").fit(MANY, y).coef_[0]) * 3.0
        assert size[0] > 1.5
        assert np.median(size[1:]) < 0.02
