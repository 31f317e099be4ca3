"""Leverages and Cook's distances, beside statsmodels and steps without the row."""

from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose

from posteriori import GLM, LogisticRegression, ProbitRegression
from posteriori.errors import InferenceError
from posteriori.posterior.influence import influence_of, roots_of
from posteriori.rows.in_memory import read_rows

RANDOM = np.random.default_rng(3)
N = 200
X = RANDOM.normal(size=(N, 3))
DESIGN = sm.add_constant(X)
MEAN = np.exp(X @ [0.4, -0.3, 0.2])
Y = (RANDOM.uniform(size=N) < 1 / (1 + np.exp(-(X @ [1.0, -0.5, 0.3] + 0.2)))).astype(int)
MANY = RANDOM.integers(3, size=N)
TARGETS = {
    "class": Y,
    "count": RANDOM.poisson(MEAN),
    "real": MEAN + RANDOM.normal(size=N),
    "positive": RANDOM.gamma(2.0, MEAN / 2),
}


def all_rows(model):
    return influence_of(model._inference, most=N)


def fitted(y, family):
    return sm.GLM(y, DESIGN, family=family).fit(tol=1e-14, maxiter=200)


@pytest.mark.parametrize(
    ("model", "family", "kind"),
    [
        (LogisticRegression(), sm.families.Binomial(), "class"),
        (GLM(family="poisson"), sm.families.Poisson(), "count"),
        (GLM(), sm.families.Gaussian(), "real"),
    ],
    ids=["logistic", "poisson", "gaussian"],
)
def test_distances_and_leverages_are_those_of_statsmodels(model, family, kind):
    expected = fitted(TARGETS[kind], family).get_influence()
    found = all_rows(model.fit(X, TARGETS[kind]))
    assert found.row.tolist() == list(range(N))
    assert_allclose(found.distance, expected.cooks_distance[0], rtol=1e-8, atol=1e-12)
    assert_allclose(found.leverage, expected.hat_matrix_diag, rtol=1e-8)


@pytest.mark.parametrize(
    ("model", "family", "kind"),
    [
        (ProbitRegression(), sm.families.Binomial(sm.families.links.Probit()), "class"),
        (GLM(family="gamma", link="log"), sm.families.Gamma(sm.families.links.Log()), "positive"),
    ],
    ids=["probit", "gamma"],
)
def test_links_that_are_not_canonical_go_by_the_expected_curvature(model, family, kind):
    fit = fitted(TARGETS[kind], family)
    leverage = fit.get_hat_matrix_diag(observed=False)
    distance = fit.resid_pearson**2 * leverage / (1 - leverage) ** 2 / fit.scale / 4
    found = all_rows(model.fit(X, TARGETS[kind]))
    assert_allclose(found.leverage, leverage, rtol=1e-7)
    assert_allclose(found.distance, distance, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("y", [Y, MANY], ids=["two classes", "three"])
@pytest.mark.parametrize("prior", [None, 2.0])
def test_a_distance_is_the_length_of_a_newton_step_without_the_row(y, prior):
    model = LogisticRegression(prior=prior).fit(X, y)
    objective, w = model._inference.objective, model._inference.w
    H, expected = objective(w, "full").hessian, []
    for row in range(15):
        one = read_rows(X[[row]], y[[row]], classes=np.unique(y))
        if len(one.classes) == 2:
            one = replace(one, y=2.0 * one.y - 1.0)
        own = replace(objective, rows=one).likelihood(w, "full", "observed")
        step = np.linalg.solve(H - own.hessian, own.gradient)
        expected.append(step @ H @ step / len(w))
    assert_allclose(all_rows(model).distance[:15], expected, rtol=1e-6)


@pytest.mark.parametrize("y", [Y, MANY], ids=["two classes", "three"])
def test_leverages_sum_to_the_number_of_parameters(y):
    model = LogisticRegression().fit(X, y)
    assert all_rows(model).leverage.sum() == pytest.approx(len(model._inference.w), rel=1e-9)


def test_a_row_counts_as_a_whole_with_its_weight():
    weight = np.ones(N)
    weight[5] = 4.0
    model = LogisticRegression().fit(X, Y, sample_weight=weight)
    p = model.predict_proba(X)[:, 1]
    H = (DESIGN.T * (weight * p * (1 - p))) @ DESIGN
    rest = H - 4 * p[5] * (1 - p[5]) * np.outer(DESIGN[5], DESIGN[5])
    step = np.linalg.solve(rest, 4 * (p[5] - Y[5]) * DESIGN[5])
    found = all_rows(model)
    assert found.distance[5] == pytest.approx(step @ H @ step / 4, rel=1e-8)
    assert found.leverage.sum() == pytest.approx(4.0)


def test_rows_of_weight_zero_are_not_there():
    weight = np.ones(N)
    weight[::2] = 0.0
    found = all_rows(LogisticRegression().fit(X, Y, sample_weight=weight))
    assert found.row.tolist() == list(range(1, N, 2))
    alone = all_rows(LogisticRegression().fit(X[1::2], Y[1::2]))
    assert_allclose(found.distance, alone.distance, rtol=1e-8)


def test_units_do_not_matter():
    plain = all_rows(LogisticRegression().fit(X, Y))
    moved = all_rows(LogisticRegression().fit(X * [1e100, 1e-100, 1.0] + [0, 0, 1e6], Y))
    assert_allclose(moved.distance, plain.distance, rtol=1e-5)
    assert_allclose(moved.leverage, plain.leverage, rtol=1e-5)


def test_dependent_columns_do_not_matter():
    with pytest.warns(UserWarning, match="can be computed from the other"):
        model = LogisticRegression().fit(np.column_stack([X, X[:, 0] + X[:, 1]]), Y)
    assert_allclose(all_rows(model).distance, all_rows(LogisticRegression().fit(X, Y)).distance)


def test_a_row_that_alone_determines_a_coefficient_has_an_infinite_distance():
    own = np.column_stack([X, np.arange(N) == 9])
    found = all_rows(GLM().fit(own, TARGETS["real"]))
    assert found.distance[9] == np.inf
    assert found.leverage[9] == pytest.approx(1.0)
    assert np.isfinite(np.delete(found.distance, 9)).all()


def test_a_fit_without_error_is_an_error():
    with pytest.raises(InferenceError, match="meets every target"):
        influence_of(GLM().fit(X, np.zeros(N))._inference)


def test_roots_may_lack_directions():
    v = np.array([[1.0, 2.0, 2.0]]) / 3
    R = roots_of(5 * v.T @ v)
    assert_allclose(R.T @ R, 5 * v.T @ v, atol=1e-12)


def test_parts_of_rows_give_the_rows_that_stand_out_of_all():
    model = LogisticRegression().fit(X, Y)
    few, every = influence_of(model._inference, most=3), all_rows(model)
    assert set(few.row[few.by_distance()]) == set(np.argsort(-every.distance)[:3])
    assert set(few.row[few.by_leverage()]) == set(np.argsort(-every.leverage)[:3])
