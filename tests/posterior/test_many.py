"""The losses of many parameters at once are those of each by itself."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.optimize import approx_fprime
from sklearn.datasets import load_breast_cancer, load_iris

from posteriori import GLM, GaussianPrior, LogisticRegression, ProbitRegression
from posteriori.errors import ParameterError, RankDeficiencyWarning
from posteriori.posterior.many import ManyDensities, White
from posteriori.posterior.many_jeffreys import densities_of
from posteriori.rows.threads import threads

CANCER, IRIS = load_breast_cancer(return_X_y=True), load_iris(return_X_y=True)
RANDOM = np.random.default_rng(0)
X, y = CANCER[0][:, :4], CANCER[1]
SOFT = 0.7 * np.eye(3)[IRIS[1]] + 0.1
WEIGHT = RANDOM.uniform(0.2, 3.0, len(y))
COUNTS = RANDOM.poisson(2.0, len(y))
TABLE = pd.DataFrame({"size": X[:, 0], "kind": RANDOM.choice(list("abc"), len(y))})
PRIOR = GaussianPrior(
    precision=np.diag([1.0, 2.0, 3.0, 4.0]) + 0.5, mean=0.3, intercept_precision=0.1
)


def _jeffreys(*data, fit_intercept=True, **given):
    return LogisticRegression(prior="jeffreys", fit_intercept=fit_intercept).fit(*data, **given)


def _dependent_columns():
    with pytest.warns(RankDeficiencyWarning):
        return _jeffreys(np.column_stack([X, X[:, 0] + X[:, 1]]), y)


FITS = {
    "two classes": lambda: LogisticRegression(prior=1.0).fit(X, y),
    "no prior, no intercept": lambda: LogisticRegression(fit_intercept=False).fit(X, y),
    "a full prior": lambda: LogisticRegression(prior=PRIOR).fit(X, y),
    "weights": lambda: LogisticRegression(prior=1.0).fit(X, y, sample_weight=WEIGHT),
    "far from zero": lambda: LogisticRegression(prior=1.0).fit(X + 1e7, y),
    "sparse": lambda: LogisticRegression(prior=1.0).fit(sparse.csr_array(X), y),
    "factors": lambda: LogisticRegression(prior=1.0).fit(TABLE, y),
    "label noise": lambda: LogisticRegression(prior=1.0, label_noise=0.05).fit(X, y),
    "soft labels": lambda: LogisticRegression(prior=1.0).fit(
        X, np.column_stack([y, 1 - y]) * 0.9 + 0.05
    ),
    "three classes": lambda: LogisticRegression(prior=1.0).fit(*IRIS),
    "three classes, weights": lambda: LogisticRegression(prior=1.0).fit(
        *IRIS, sample_weight=WEIGHT[:150]
    ),
    "three classes, soft": lambda: LogisticRegression(prior=1.0).fit(IRIS[0], SOFT),
    "probit": lambda: ProbitRegression(prior=1.0).fit(X, y),
    "counts with offsets": lambda: GLM(family="poisson", prior=1.0).fit(
        X, COUNTS, offset=0.1 * WEIGHT
    ),
    "two classes with offsets": lambda: GLM(family="bernoulli", prior=1.0).fit(
        X, y, offset=0.1 * WEIGHT
    ),
    "Jeffreys, two classes": lambda: _jeffreys(X, y),
    "Jeffreys, no intercept": lambda: _jeffreys(X, y, fit_intercept=False),
    "Jeffreys, weights": lambda: _jeffreys(X, y, sample_weight=WEIGHT),
    "Jeffreys, offsets": lambda: _jeffreys(X, y, offset=0.1 * WEIGHT),
    "Jeffreys, far from zero": lambda: _jeffreys(X + 1e6, y),
    "Jeffreys, sparse": lambda: _jeffreys(sparse.csr_array(np.where(X > 0, X, 0.0)), y),
    "Jeffreys, factors": lambda: _jeffreys(TABLE, y),
    "Jeffreys, dependent columns": _dependent_columns,
    "Jeffreys, soft labels": lambda: _jeffreys(X, np.column_stack([y, 1 - y]) * 0.9 + 0.05),
    "Jeffreys, three classes": lambda: _jeffreys(*IRIS),
    "Jeffreys, three classes, weights": lambda: _jeffreys(*IRIS, sample_weight=WEIGHT[:150]),
    "Jeffreys, three classes, offsets": lambda: _jeffreys(
        *IRIS, offset=RANDOM.normal(size=(150, 3))
    ),
    "Jeffreys, three classes, soft": lambda: _jeffreys(IRIS[0], SOFT),
}


@pytest.fixture(scope="module", params=FITS)
def fit(request):
    model = FITS[request.param]()
    w = model.solution_.parameters
    objective = model._inference.objective
    spread = 1 / np.sqrt(np.diagonal(objective(w, "full").hessian))
    return objective, w + 2 * spread * RANDOM.normal(size=(5, len(w)))


def test_many_are_each_by_itself(fit):
    objective, W = fit
    value, gradient = densities_of(objective).with_gradient(W)
    each = [objective(w, "none") for w in W]
    np.testing.assert_allclose(-value, [one.value for one in each], rtol=1e-12)
    size = abs(gradient).max()
    np.testing.assert_allclose(-gradient, [one.gradient for one in each], atol=1e-12 * size)
    np.testing.assert_array_equal(densities_of(objective).log_density(W), value)


def test_gradients_are_those_of_the_values(fit):
    objective, W = fit
    many = White(densities_of(objective), W[0], np.eye(W.shape[1]))
    _, gradient = many.with_gradient(np.zeros((1, W.shape[1])))
    seen = approx_fprime(np.zeros(W.shape[1]), lambda z: many.log_density(z[None])[0], 1e-6)
    np.testing.assert_allclose(gradient[0], seen, rtol=1e-4, atol=1e-4 * abs(seen).max())


def test_a_weight_of_two_is_the_row_twice():
    weight = 1 + np.arange(len(y)) % 3
    one = LogisticRegression(prior=1.0).fit(X, y, sample_weight=weight)
    other = LogisticRegression(prior=1.0).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    theta = one._inference.objective.standard.to_user(RANDOM.normal(size=(3, 5)))

    def values(model):
        objective = model._inference.objective
        return ManyDensities(objective).log_density(objective.standard.from_user(theta))

    np.testing.assert_allclose(values(one), values(other), rtol=1e-11)


def test_activations_beyond_the_doubles():
    objective = LogisticRegression(prior=1e-3).fit(X, y)._inference.objective
    W = np.array([[0.0, 30.0, 0, 0, 0], [0.0, 0.0, 900.0, 0, 0], [0.0, 1e6, 0, 0, 0]])
    value, gradient = densities_of(objective).with_gradient(W)
    each = [objective(w, "none") for w in W]
    np.testing.assert_allclose(-value, [one.value for one in each], rtol=1e-12)
    np.testing.assert_allclose(-gradient, [one.gradient for one in each], rtol=1e-9, atol=1e-9)


def test_bits_do_not_depend_on_threads():
    rows = RANDOM.normal(size=(30_000, 4))
    model = LogisticRegression(prior=1.0).fit(rows, rows[:, 0] > RANDOM.logistic(size=len(rows)))
    many, W = ManyDensities(model._inference.objective), 0.1 * RANDOM.normal(size=(50, 5))
    with threads(1):
        alone = many.with_gradient(W)
    with threads(3):
        together = many.with_gradient(W)
    np.testing.assert_array_equal(alone[0], together[0])
    np.testing.assert_array_equal(alone[1], together[1])


def test_a_prior_that_is_not_gaussian_is_refused():
    objective = LogisticRegression(prior="jeffreys").fit(X, y)._inference.objective
    with pytest.raises(ParameterError, match="Gaussian prior"):
        ManyDensities(objective)
