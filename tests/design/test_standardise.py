"""Standardised parameters and back: activations, gradients and covariances agree."""

import numpy as np
import pytest

from posteriori.design.matrix import Dense
from posteriori.design.standardise import Standard
from posteriori.statistics.local_quadratic import activations, bordered, gradient_of

RANDOM = np.random.default_rng(5)
X = RANDOM.normal([3.0, -40.0, 0.0], [1.0, 7.0, 0.01], (60, 3))
THETA = RANDOM.normal(size=(2, 4))


@pytest.mark.parametrize("intercept", [True, False])
def test_parameters_gradients_and_hessians_are_those_of_columns_that_are_standardised(intercept):
    s = Standard(X.mean(axis=0) if intercept else np.zeros(3), X.std(axis=0), intercept)
    plain, moved = Dense(X), Dense((X - s.centre) / s.scale)
    theta = THETA if intercept else THETA[:, 1:]
    there = activations(moved, theta, intercept, None)
    here = activations(plain, s.to_user(theta), intercept, None)
    np.testing.assert_allclose(here, there, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(s.from_user(s.to_user(theta)), theta, rtol=1e-12, atol=1e-12)
    r, weight = RANDOM.normal(size=len(X)), RANDOM.random(len(X))
    found, expected = (gradient_of(design, r, intercept) for design in (plain, moved))
    np.testing.assert_allclose(s.inward(found), expected, rtol=1e-10, atol=1e-10)
    found, expected = (bordered(design, weight, intercept) for design in (plain, moved))
    np.testing.assert_allclose(s.inward_matrix(found), expected, rtol=1e-9, atol=1e-10)
