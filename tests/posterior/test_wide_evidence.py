"""Precisions of many slopes, by products with the curvature, against all second derivatives."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from posteriori import GLM, GaussianPrior, LogisticRegression
from posteriori.posterior import objective as objectives
from posteriori.posterior.wide_evidence import SlopeCurvature, _Place
from posteriori.solve.lanczos import lanczos

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(1500, 60)) * 3.0 + 5.0
SLOPES = RANDOM.normal(size=(60, 3)) * 0.1
TWO = (X - 5) @ SLOPES[:, 0] + RANDOM.logistic(size=1500) > 0.5
THREE = ((X - 5) @ SLOPES + RANDOM.gumbel(size=(1500, 3))).argmax(axis=1)


@pytest.fixture
def wide(monkeypatch):
    """Problems of more than fifty parameters count as wide."""
    monkeypatch.setattr(objectives, "WIDE", 50)


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_products_are_those_of_what_is_left_of_the_hessian(y, fit_intercept):
    model = LogisticRegression(prior=1.0, fit_intercept=fit_intercept).fit(X, y)
    objective, w = model._inference.objective, model.solution_.parameters
    q, c = objective.coordinates.q, objective.coordinates.c
    curvature = SlopeCurvature(objective, w)
    H = objective.likelihood(w, "full", "observed").hessian
    first = np.arange(c) * q if fit_intercept else np.empty(0, dtype=int)
    slopes = np.setdiff1d(np.arange(c * q), first)
    S = H[np.ix_(slopes, slopes)]
    if fit_intercept:
        S = S - H[np.ix_(slopes, first)] @ np.linalg.solve(
            H[np.ix_(first, first)], H[np.ix_(first, slopes)]
        )
    vectors = RANDOM.normal(size=(3, len(slopes)))
    np.testing.assert_allclose(curvature.times(vectors), vectors @ S, rtol=1e-9, atol=1e-8)
    # At the minimum the slopes are (S + P)⁻¹b.
    precision = np.tile(objective.penalty.precision[int(fit_intercept) :], c)
    solved = np.linalg.solve(S + np.diag(precision), curvature.pull())
    np.testing.assert_allclose(solved, w[slopes], rtol=1e-7)


def test_lanczos_finds_quadratic_forms_of_functions():
    A = RANDOM.normal(size=(80, 40))
    S = A.T @ A
    starts = RANDOM.normal(size=(2, 40))
    values, vectors = np.linalg.eigh(S)
    for seen, start in zip(lanczos(lambda v: v @ S, starts, 40), starts, strict=True):
        expected = np.square(vectors.T @ start) @ np.log(values + 0.5)
        assert seen.of(lambda v: np.log(v + 0.5)) == pytest.approx(expected, rel=1e-9)
    few, many = (lanczos(lambda v: v @ S, starts, k)[0] for k in (12, 30))
    assert_allclose(many.first(12).times(np.sqrt), few.times(np.sqrt), rtol=1e-6)
    expected = np.square(vectors.T @ starts[0]) @ np.log(values + 10.0)
    assert few.of(lambda v: np.log(v + 10.0)) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("K", [2, 3])
def test_the_slope_of_the_evidence_is_that_of_differences(K, fit_intercept):
    """With vectors of signs that are orthogonal, traces and leverages are exact."""
    x, y = X[:60, :4], THREE[:60] % K

    def fitted(rho):
        precision = np.exp(rho) if K == 2 else np.full(4, np.exp(rho))
        prior = GaussianPrior(precision, intercept_precision=0.3, units="standardised")
        model = LogisticRegression(prior=prior, fit_intercept=fit_intercept, tol=1e-10)
        return model.fit(x, y)

    rho, step = 1.2, 1e-4
    model = fitted(rho)
    objective, w = model._inference.objective, model.solution_.parameters
    signs = np.array([[1.0]])
    while signs.shape[1] < 4 * (K - 1):
        signs = np.block([[signs, signs], [signs, -signs]])
    place = _Place.at(objective, w, rho, signs)
    above, below = fitted(rho + step).log_evidence_, fitted(rho - step).log_evidence_
    slope = place.slope(rho) + place.tilt()
    assert slope == pytest.approx((above - below) / (2 * step), rel=1e-5)
    assert abs(place.tilt()) > 1e-3  # and it is not for nothing
    foretold = (place.foretold(rho + step) - place.foretold(rho - step)) / (2 * step)
    assert place.slope(rho) == pytest.approx(foretold, rel=1e-6)


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
def test_one_precision_is_near_that_of_all_second_derivatives(y, request):
    exact = LogisticRegression(prior="evidence").fit(X, y)
    assert exact.prior_reason_ == "by all second derivatives"
    request.getfixturevalue("wide")
    model = LogisticRegression(prior="evidence").fit(X, y)
    assert "stochastic traces" in model.prior_reason_
    assert np.log(model.prior_.precision) == pytest.approx(np.log(exact.prior_.precision), abs=0.1)
    np.testing.assert_allclose(model.predict_proba(X), exact.predict_proba(X), atol=3e-3)


def test_a_sparse_table_gives_the_same(wide):
    table = np.where(RANDOM.random(X.shape) < 0.1, X, 0.0)
    dense = LogisticRegression(prior="evidence").fit(table, TWO)
    thin = LogisticRegression(prior="evidence").fit(sparse.csr_array(table), TWO)
    assert thin.prior_.precision == pytest.approx(dense.prior_.precision, rel=1e-4)


def test_a_precision_each_switches_columns_off(wide):
    y = (X[:, 0] - 5) * 0.7 + RANDOM.logistic(size=1500) > 0
    model = LogisticRegression(prior="ard").fit(X, y)
    assert "diagonal" in model.prior_reason_
    size = abs(model.coef_[0]) * 3.0
    assert size[0] > 1.5
    assert np.median(size[1:]) < 0.02


def test_counts_have_it_too(request):
    counts = RANDOM.poisson(np.exp(0.3 * (X - 5) @ SLOPES[:, 0]))
    exact = GLM(family="poisson", prior="evidence").fit(X, counts)
    request.getfixturevalue("wide")
    model = GLM(family="poisson", prior="evidence").fit(X, counts)
    assert "stochastic traces" in model.prior_reason_
    assert np.log(model.prior_.precision) == pytest.approx(np.log(exact.prior_.precision), abs=0.1)
