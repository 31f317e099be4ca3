"""Leverages and Cook's distances beside statsmodels, condition indices beside singular values."""

from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose

from posteriori import GLM, LogisticRegression, ProbitRegression
from posteriori.design.columns import Columns
from posteriori.posterior.diagnostics import collinearity_of, influence_of
from posteriori.rows.features import read_features
from posteriori.rows.in_memory import MemoryRows, read_rows

RANDOM = np.random.default_rng(3)
N = 200
X = RANDOM.normal(size=(N, 3))
DESIGN = sm.add_constant(X)
MEAN = np.exp(X @ [0.4, -0.3, 0.2])
Y = (RANDOM.uniform(size=N) < 1 / (1 + np.exp(-(X @ [1.0, -0.5, 0.3] + 0.2)))).astype(int)
MANY = RANDOM.integers(3, size=N)
REAL = MEAN + RANDOM.normal(size=N)
LINKS = sm.families.links
CASES = {  # model, target, family of statsmodels, tolerance
    "logistic": (LogisticRegression(), Y, sm.families.Binomial(), 1e-8),
    "poisson": (GLM(family="poisson"), RANDOM.poisson(MEAN), sm.families.Poisson(), 1e-8),
    "probit": (ProbitRegression(), Y, sm.families.Binomial(LINKS.Probit()), 1e-6),
    "gamma": (
        GLM(family="gamma", link="log"),
        RANDOM.gamma(2.0, MEAN / 2),
        sm.families.Gamma(LINKS.Log()),
        1e-6,
    ),
}


def all_rows(model):
    return influence_of(model._inference, most=N)


@pytest.mark.parametrize("name", CASES)
def test_distances_and_leverages_are_those_of_statsmodels(name):
    """By the expected curvature, which for canonical links is the observed one."""
    model, t, family, rtol = CASES[name]
    fit = sm.GLM(t, DESIGN, family=family).fit(tol=1e-14, maxiter=200)
    leverage = fit.get_hat_matrix_diag(observed=False)
    distance = fit.resid_pearson**2 * leverage / (1 - leverage) ** 2 / fit.scale / 4
    found = all_rows(model.fit(X, t))
    assert found.row.tolist() == list(range(N))
    assert_allclose(found.leverage, leverage, rtol=min(rtol, 1e-7))
    assert_allclose(found.distance, distance, rtol=rtol, atol=1e-12)


@pytest.mark.parametrize("y", [Y, MANY], ids=["two classes", "three"])
@pytest.mark.parametrize("prior", [None, 2.0])
def test_a_distance_is_the_length_of_a_newton_step_without_the_row(y, prior):
    weight = np.where(np.arange(N) == 5, 4.0, 1.0)
    model = LogisticRegression(prior=prior).fit(X, y, sample_weight=weight)
    objective, w = model._inference.objective, model._inference.w
    H, expected = objective(w, "full").hessian, []
    for row in range(15):
        one = read_rows(X[[row]], y[[row]], weight[[row]], classes=np.unique(y))
        if len(one.classes) == 2:
            one = replace(one, y=2.0 * one.y - 1.0)
        own = replace(objective, rows=one).likelihood(w, "full", "observed")
        step = np.linalg.solve(H - own.hessian, own.gradient)
        expected.append(step @ H @ step / len(w))
    found = all_rows(model)
    assert_allclose(found.distance[:15], expected, rtol=1e-6)
    few = influence_of(model._inference, most=3)
    assert set(few.row[few.by_distance()]) == set(np.argsort(-found.distance)[:3])
    assert set(few.row[few.by_leverage()]) == set(np.argsort(-found.leverage)[:3])
    if prior is None:
        assert found.leverage.sum() == pytest.approx(len(w), rel=1e-9)


def test_a_row_that_alone_determines_a_coefficient_has_an_infinite_distance():
    found = all_rows(GLM().fit(np.column_stack([X, np.arange(N) == 9]), REAL))
    assert np.flatnonzero(np.isinf(found.distance)).tolist() == [9]
    assert found.leverage[9] == pytest.approx(1.0)


Z = RANDOM.normal([0.0, 3.0, -1.0, 0.0], 1.0, size=(N, 4))
Z[:, 3] = 10.0 + Z[:, 0] + 0.05 * RANDOM.normal(size=N)
Z[:, 2] += 6 * Z[:, 1]


def found_in(X, intercept=True):
    rows = MemoryRows(read_features(X, None, "test"))
    return collinearity_of(rows, Columns(rows.schema), intercept)


def by_singular_values(X):
    """Indices, the largest first, and proportions, from the matrix itself (Belsley 1991)."""
    _, values, right = np.linalg.svd(X / np.linalg.norm(X, axis=0), full_matrices=False)
    shares = (right / values[:, None]) ** 2
    return (values[0] / values)[::-1], (shares / shares.sum(axis=0))[::-1]


@pytest.mark.parametrize("intercept", [True, False])
def test_with_an_intercept_columns_are_taken_about_their_means(intercept):
    found = found_in(Z, intercept)
    indices, proportions = by_singular_values(Z - intercept * Z.mean(axis=0))
    assert_allclose(found.indices, indices, rtol=1e-8)
    assert_allclose(found.proportions, proportions, rtol=1e-8, atol=1e-10)


def test_the_columns_of_each_dependency_are_named():
    first, second = found_in(Z).dependencies(above=5.0)
    assert set(first.columns) == {"x0", "x3"}
    assert set(second.columns) == {"x1", "x2"}
    assert first.index > second.index
    assert min(first.proportions) > 0.9
    assert found_in(Z).dependencies(above=1e3) == ()
    exact = found_in(np.column_stack([Z[:, :3], Z[:, 0] + Z[:, 1]]))
    assert exact.largest == np.inf
    assert set(exact.dependencies()[0].columns) == {"x0", "x1", "x3"}
    assert np.isfinite(exact.proportions).all()


def test_a_column_that_never_changes_is_left_out():
    found = found_in(np.column_stack([Z[:, :2], np.full(N, 7.3)]))
    assert found.constant == ("x2",)
    assert_allclose(found.indices, found_in(Z[:, :2]).indices, rtol=1e-9)
    nothing = found_in(np.zeros((5, 2)))
    assert nothing.constant == ("x0", "x1")
    assert (nothing.largest, nothing.dependencies()) == (1.0, ())
