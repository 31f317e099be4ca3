"""Jeffreys' posterior at many parameters at once is that of each by itself."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.optimize import approx_fprime
from sklearn.datasets import load_iris

from posteriori import LogisticRegression
from posteriori.errors import RankDeficiencyWarning
from posteriori.posterior.many import White
from posteriori.posterior.many_jeffreys import JeffreysDensities, densities_of
from posteriori.rows.threads import threads

RANDOM = np.random.default_rng(3)
X = RANDOM.normal([0.0, 1.0, 5.0, 0.0], size=(5000, 4))
Y = (X[:, 0] + RANDOM.logistic(size=len(X)) > 0.5).astype(int)
WEIGHT = RANDOM.uniform(0.2, 3.0, len(X))
TABLE = pd.DataFrame({"size": X[:, 0], "kind": RANDOM.choice(list("abc"), len(X))})
IRIS = load_iris(return_X_y=True)
SOFT = 0.7 * np.eye(3)[IRIS[1]] + 0.1


def _fit(*data, **given):
    settings = {"fit_intercept": given.pop("fit_intercept", True)}
    return LogisticRegression(prior="jeffreys", **settings).fit(*data, **given)


def _dependent():
    with pytest.warns(RankDeficiencyWarning):
        return _fit(np.column_stack([X, X[:, 0] + X[:, 1]]), Y)


FITS = {
    "two classes": lambda: _fit(X, Y),
    "no intercept": lambda: _fit(X, Y, fit_intercept=False),
    "weights": lambda: _fit(X, Y, sample_weight=WEIGHT),
    "offsets": lambda: _fit(X, Y, offset=0.5 * WEIGHT),
    "far from zero": lambda: _fit(X + 1e6, Y),
    "sparse": lambda: _fit(sparse.csr_array(np.where(X > 0, X, 0.0)), Y),
    "factors": lambda: _fit(TABLE, Y),
    "dependent columns": _dependent,
    "soft labels": lambda: _fit(X, np.column_stack([Y, 1 - Y]) * 0.9 + 0.05),
    "three classes": lambda: _fit(*IRIS),
    "three classes, weights": lambda: _fit(*IRIS, sample_weight=WEIGHT[:150]),
    "three classes, offsets": lambda: _fit(*IRIS, offset=RANDOM.normal(size=(150, 3))),
    "three classes, soft": lambda: _fit(IRIS[0], SOFT),
}


@pytest.fixture(scope="module", params=FITS)
def fit(request):
    model = FITS[request.param]()
    w, objective = model.solution_.parameters, model._inference.objective
    spread = 1 / np.sqrt(np.diagonal(objective(w, "full").hessian))
    return objective, w + 2 * spread * RANDOM.normal(size=(5, len(w)))


def test_many_are_each_by_itself(fit):
    objective, W = fit
    value, gradient = densities_of(objective).with_gradient(W)
    each = [objective(w, "none") for w in W]
    np.testing.assert_allclose(-value, [one.value for one in each], rtol=1e-11)
    size = abs(gradient).max()
    np.testing.assert_allclose(-gradient, [one.gradient for one in each], atol=1e-11 * size)
    np.testing.assert_array_equal(densities_of(objective).log_density(W), value)


def test_gradients_are_those_of_the_values(fit):
    objective, W = fit
    many = White(densities_of(objective), W[0], np.eye(W.shape[1]))
    _, gradient = many.with_gradient(np.zeros((1, W.shape[1])))
    seen = approx_fprime(np.zeros(W.shape[1]), lambda z: many.log_density(z[None])[0], 1e-6)
    np.testing.assert_allclose(gradient[0], seen, rtol=1e-4, atol=1e-4 * abs(seen).max())


def test_parts_of_the_points_and_threads_change_nothing(monkeypatch):
    objective = FITS["two classes"]()._inference.objective
    W = RANDOM.normal(size=(7, 5))
    expected = JeffreysDensities(objective).with_gradient(W)
    monkeypatch.setattr("posteriori.posterior.many_jeffreys._SUMS", 50)
    with threads(1):
        found = JeffreysDensities(objective).with_gradient(W)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-13)


def test_far_out_the_density_is_zero_and_its_gradient_finite():
    objective = FITS["two classes"]()._inference.objective
    W = np.array([[0.0, 1e7, 0.0, 0.0, 0.0], [0.0, 1e300, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0, 0]])
    value, gradient = JeffreysDensities(objective).with_gradient(W)
    assert value[:2].tolist() == [-np.inf, -np.inf]
    assert np.isfinite(value[2])
    assert np.isfinite(gradient).all()
