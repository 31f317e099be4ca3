"""Value, gradient and Hessian of a sum over rows, against finite differences and plain formulas."""

import numpy as np
import pytest
from scipy.special import softmax

from posteriori.design.columns import Columns
from posteriori.design.standardise import Standard
from posteriori.likelihood.binary_losses import LogisticLoss, SignedLogisticLoss
from posteriori.likelihood.glm_families import glm_loss
from posteriori.likelihood.softmax import NoisyClassLoss, SoftmaxLoss
from posteriori.models.fitting import of_many, second_of_two, signs
from posteriori.rows.in_memory import read_rows
from posteriori.statistics.local_quadratic import GatherQuadratic

RANDOM = np.random.default_rng(11)
N, D, K = 70, 3, 4
X = RANDOM.normal(size=(N, D))
WEIGHT = RANDOM.random(N) + 0.5
CONFUSION = np.full((K, K), 0.05) + 0.8 * np.eye(K)

LOSSES = {
    "logistic": (LogisticLoss(), second_of_two, 2),
    "signed": (SignedLogisticLoss(), signs, 2),
    "probit": (glm_loss("bernoulli", "probit"), second_of_two, 2),
    "softmax": (SoftmaxLoss(), of_many(K), K),
    "noisy": (NoisyClassLoss(CONFUSION), of_many(K), K),
}


def sums(name, theta=None, X=X, intercept=True, entries=30, hessian="none"):
    """Value, gradient and Hessian of all rows, and θ."""
    loss, code, n_classes = LOSSES[name]
    rows = read_rows(X, np.arange(N) % n_classes, WEIGHT)
    m = X.shape[1]
    if theta is None:
        size = 1 if n_classes == 2 else n_classes, m + intercept
        theta = np.random.default_rng(0).normal(size=size)
    columns, standard = Columns(rows.schema), Standard(np.zeros(m), np.ones(m), intercept)
    kernel = GatherQuadratic(columns, standard, loss, lambda block: code(block.y), theta, hessian)
    return rows.map_sum(kernel, block_entries=entries), theta


def differences(function, theta, step=1e-5):
    """Central differences of a function of θ, entry by entry."""
    steps = step * np.eye(theta.size).reshape(-1, *theta.shape)
    return np.array([(function(theta + s) - function(theta - s)) / (2 * step) for s in steps])


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("name", LOSSES)
def test_gradient_and_hessian_are_the_slopes_of_value_and_gradient(name, intercept):
    def at(theta=None, hessian="none"):
        return sums(name, theta, intercept=intercept, hessian=hessian)[0]

    found, theta = sums(name, intercept=intercept, hessian="full")
    slopes = differences(lambda t: at(t).value, theta)
    np.testing.assert_allclose(found.gradient.ravel(), slopes, rtol=1e-6, atol=1e-6)
    slopes = differences(lambda t: at(t).gradient.ravel(), theta)
    np.testing.assert_allclose(found.hessian, slopes, rtol=1e-6, atol=1e-6)
    diagonal = at(hessian="diagonal").hessian
    np.testing.assert_allclose(diagonal, np.diagonal(found.hessian), rtol=1e-12)


@pytest.mark.parametrize("n_columns", [2, 40], ids=["few columns", "many columns"])
@pytest.mark.parametrize("far", [0.0, 60.0], ids=["unsure", "sure"])
@pytest.mark.parametrize("rows", [1, 10])
def test_a_softmax_has_the_curvature_of_its_formula(rows, n_columns, far):
    """In blocks of one row or more, and where 1 - p has no digit, as p is one but for 1e-26."""
    random = np.random.default_rng(3)
    X = random.normal(size=(N, n_columns))
    phi = np.column_stack([np.ones(N), X])
    theta = random.normal(size=(K, n_columns + 1)) / n_columns
    theta[0, 0] += far
    p = softmax(phi @ theta.T, axis=1)
    pairs = -p[:, :, None] * p[:, None, :]
    pairs[:, np.arange(K), np.arange(K)] = p * (p @ (1 - np.eye(K)))
    plain = np.einsum("n,njk,na,nb->jakb", WEIGHT, pairs, phi, phi)
    found = sums("softmax", theta, X, entries=rows * n_columns, hessian="full")[0].hessian
    size = np.sqrt(np.outer(np.diagonal(found), np.diagonal(found)))
    np.testing.assert_allclose(found / size, plain.reshape(found.shape) / size, atol=1e-13)
    np.testing.assert_array_equal(found, found.T)
