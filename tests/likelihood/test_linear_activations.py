"""Linear activations, near the origin and far from it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oracle import doubles, exact
from scipy import sparse

from posteriori.likelihood.linear_activations import Linear, contrasts
from posteriori.rows.schema import Schema

W = np.array([[1.0, -2.0, 0.5], [0.25, 3.0, -1.0]])
BIAS = np.array([0.1, -0.2, 0.3])
X = np.array([[1.0, 2.0], [-3.0, 0.5], [0.0, 0.0]])


@pytest.mark.parametrize("far", [0.0, 10.0, 1e8])
def test_the_activation_is_linear_about_the_centre(far):
    centre = np.array([far, -far]) + 0.375
    found = Linear.about(centre, W, BIAS)(X + centre)
    expected = (exact(X + centre) - exact(centre)) @ exact(W) + exact(BIAS)
    assert_allclose(found, doubles(expected), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("far", [10.0, 1e6])
def test_sparse_rows_have_the_activations_of_dense_ones(far):
    linear = Linear.about(np.array([far, 0.0]), W, BIAS)
    found = linear.of_rows(sparse.csr_array(X), Schema.unnamed(2))
    assert_allclose(found, linear(X), rtol=1e-13)


def test_contrasts_of_two_classes_and_of_a_class_that_cannot_occur():
    coef, intercept = Linear(W[:, :2], BIAS[:2], None).coefficients()
    assert_allclose(coef, [[-3.0, 2.75]])
    assert_allclose(intercept, [-0.3])
    coef, intercept = contrasts(W.T, np.array([1.0, -np.inf, 3.0]))
    assert_array_equal(intercept, [-1.0, -np.inf, 1.0])
    assert np.isfinite(coef).all()
