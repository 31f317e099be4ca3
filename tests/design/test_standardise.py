"""Standardised parameters and back: activations, gradients and covariances agree."""

import numpy as np
import pytest

from posteriori.design.matrix import Dense
from posteriori.design.standardise import Standard
from posteriori.statistics.local_quadratic import activations, bordered, gradient_of

RANDOM = np.random.default_rng(5)
X = RANDOM.normal([3.0, -40.0, 0.0], [1.0, 7.0, 0.01], (60, 3))
THETA = RANDOM.normal(size=(2, 4))


def standard(intercept: bool) -> Standard:
    centre = X.mean(axis=0) if intercept else np.zeros(3)
    return Standard(centre, X.std(axis=0), intercept)


def moved(of: Standard) -> Dense:
    return Dense((X - of.centre) / of.scale)


@pytest.mark.parametrize("intercept", [True, False])
def test_parameters_of_the_users_columns_give_the_same_activations(intercept):
    s = standard(intercept)
    theta = THETA if intercept else THETA[:, 1:]
    there = activations(moved(s), theta, intercept, None)
    here = activations(Dense(X), s.to_user(theta), intercept, None)
    np.testing.assert_allclose(here, there, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(s.from_user(s.to_user(theta)), theta, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("intercept", [True, False])
def test_gradients_and_hessians_are_pulled_back(intercept):
    s, r = standard(intercept), RANDOM.normal(size=len(X))
    weight = RANDOM.random(len(X))
    gradient = gradient_of(Dense(X), r, intercept)
    np.testing.assert_allclose(
        s.inward(gradient), gradient_of(moved(s), r, intercept), rtol=1e-10, atol=1e-10
    )
    hessian = bordered(Dense(X), weight, intercept)
    np.testing.assert_allclose(
        s.inward_matrix(hessian), bordered(moved(s), weight, intercept), rtol=1e-9, atol=1e-10
    )


@pytest.mark.parametrize(
    ("centre", "scale", "moves"),
    [(1.0, 1.0, False), (2e3, 1.0, True), (0.0, 1e-80, True), (0.0, 1e80, True)],
)
def test_numbers_are_moved_only_where_digits_would_be_lost(centre, scale, moves):
    assert Standard(np.array([centre]), np.array([scale]), True).moves is moves
