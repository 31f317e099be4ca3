"""Value, gradient and Hessian of a sum over rows, against finite differences and plain formulas."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.special import expit

from posteriori.design.columns import Columns
from posteriori.design.standardise import Standard
from posteriori.likelihood.binary_losses import LogisticLoss, SignedLogisticLoss
from posteriori.likelihood.glm_families import glm_loss
from posteriori.likelihood.softmax import NoisyClassLoss, SoftmaxLoss
from posteriori.models.fitting import of_many, second_of_two, signs
from posteriori.rows.in_memory import read_rows
from posteriori.statistics.local_quadratic import GatherQuadratic, GatherScores

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


def kernel_and_rows(name, X=X, weight=WEIGHT, intercept=True, theta=None, **asked):
    loss, code, n_classes = LOSSES[name]
    y = np.arange(N) % n_classes
    rows = read_rows(X, y, weight)
    columns = Columns(rows.schema)
    m = len(columns.names)
    standard = Standard(np.zeros(m), np.ones(m), intercept)
    c = 1 if n_classes == 2 else n_classes
    if theta is None:
        theta = np.random.default_rng(0).normal(size=(c, m + intercept))
    return GatherQuadratic(
        columns, standard, loss, lambda block: code(block.y), theta, **asked
    ), rows


def sums(name, theta=None, entries=30, **options):
    kernel, rows = kernel_and_rows(name, theta=theta, **options)
    return rows.map_sum(kernel, block_entries=entries)


def differences(function, theta, step=1e-5):
    """Central differences of a function of θ, entry by entry."""
    out = []
    for place in np.ndindex(theta.shape):
        up, down = theta.copy(), theta.copy()
        up[place] += step
        down[place] -= step
        out.append((function(up) - function(down)) / (2 * step))
    return np.array(out)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("name", LOSSES)
def test_gradient_and_hessian_are_the_slopes_of_value_and_gradient(name, intercept):
    def at(theta=None, **asked):
        return sums(name, theta, intercept=intercept, **asked)

    theta, found = kernel_and_rows(name, intercept=intercept)[0].theta, at(hessian="full")
    slopes = differences(lambda t: at(t).value, theta)
    np.testing.assert_allclose(found.gradient.ravel(), slopes, rtol=1e-6, atol=1e-6)
    slopes = differences(lambda t: at(t).gradient.ravel(), theta)
    np.testing.assert_allclose(found.hessian, slopes, rtol=1e-6, atol=1e-6)
    diagonal = at(hessian="diagonal").hessian
    np.testing.assert_allclose(diagonal, np.diagonal(found.hessian), rtol=1e-12)


LETTERS = np.array(list("pqr"))[np.arange(N) % 3]
INDICATORS = np.stack([X[:, 0], LETTERS == "q", LETTERS == "r"], axis=1)
FORMS = {
    "sparse": (sparse.csr_array(X), X),
    "frame": (pd.DataFrame(X, columns=list("abc")), X),
    "factor": (pd.DataFrame({"x": X[:, 0], "f": pd.Categorical(LETTERS)}), INDICATORS),
}


@pytest.mark.parametrize("name", ["signed", "softmax", "noisy"])
@pytest.mark.parametrize("form", FORMS)
def test_storage_does_not_matter_and_factors_count_as_their_indicators(name, form):
    other, dense = (sums(name, X=data, hessian="full") for data in FORMS[form])
    assert other.value == pytest.approx(dense.value, rel=1e-13)
    np.testing.assert_allclose(other.gradient, dense.gradient, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(other.hessian, dense.hessian, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", ["signed", "softmax"])
def test_the_filling_of_the_sandwich_is_the_sum_of_squared_gradients(name):
    kernel, rows = kernel_and_rows(name)
    found = rows.map_sum(GatherScores(kernel), block_entries=30)
    phi = np.column_stack([np.ones(N), X])
    a = phi @ kernel.theta.T
    if name == "signed":
        residual = expit(a) - (np.arange(N) % 2)[:, None]
    else:
        residual = np.exp(a) / np.exp(a).sum(axis=1, keepdims=True) - np.eye(K)[np.arange(N) % K]
    scores = (residual[:, :, None] * phi[:, None, :]).reshape(N, -1)
    np.testing.assert_allclose(found, scores.T @ (WEIGHT[:, None] * scores), rtol=1e-11, atol=1e-11)


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
    a = phi @ theta.T
    odds = np.exp(a - a[:, :1])
    p = odds / odds.sum(axis=1, keepdims=True)
    pairs = -p[:, :, None] * p[:, None, :]
    pairs[:, np.arange(K), np.arange(K)] = p * (p @ (1 - np.eye(K)))
    plain = np.einsum("n,njk,na,nb->jakb", WEIGHT, pairs, phi, phi)
    found = sums("softmax", theta, entries=rows * n_columns, X=X, hessian="full").hessian
    size = np.sqrt(np.outer(np.diagonal(found), np.diagonal(found)))
    np.testing.assert_allclose(found / size, plain.reshape(found.shape) / size, atol=1e-13)
    np.testing.assert_array_equal(found, found.T)
