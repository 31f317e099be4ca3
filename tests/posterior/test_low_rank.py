"""Gaussians with a precision of low rank and a diagonal, against the same by full matrices."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from posteriori.posterior.low_rank import LowRankGaussian
from posteriori.posterior.normal_posterior import Gaussian

RANDOM = np.random.default_rng(1)
P, K = 12, 4
NEAR = LowRankGaussian(
    RANDOM.normal(size=P), RANDOM.gamma(2.0, size=P), RANDOM.normal(size=(P, K)) * 3.0
)
A = np.diag(NEAR.diagonal) + NEAR.factor @ NEAR.factor.T
FULL = Gaussian.of(NEAR.mean, A)


def test_variances_determinant_and_density_are_those_of_the_matrix():
    assert_allclose(NEAR.variance, np.diagonal(FULL.covariance), rtol=1e-12)
    assert_allclose(NEAR.standard_deviation, FULL.standard_deviation, rtol=1e-12)
    assert NEAR.log_determinant == pytest.approx(FULL.log_determinant, rel=1e-13)
    x = RANDOM.normal(size=(5, P))
    assert_allclose(NEAR.log_density(x), FULL.log_density(x), rtol=1e-12)
    assert_allclose(NEAR.log_density(x[0]), FULL.log_density(x[0]), rtol=1e-12)
    assert_allclose(np.diag(1 / NEAR.diagonal) - NEAR.known @ NEAR.known.T, FULL.covariance)


def test_its_root_makes_the_covariance_and_its_draws_have_it():
    root = NEAR.spread(np.eye(P)).T
    assert_allclose(root @ root.T, FULL.covariance, rtol=1e-10, atol=1e-13)
    assert_allclose(NEAR.gathered(np.eye(P)).T, root.T, rtol=1e-12, atol=1e-14)
    draws = NEAR.sample(40_000, random_state=0)
    white = (draws - NEAR.mean) @ FULL.precision_cholesky
    assert_allclose(np.cov(white, rowvar=False), np.eye(P), atol=0.03)
    assert_allclose(white.mean(axis=0), 0, atol=0.02)


def test_directions_that_are_nothing_are_left_out():
    flat = LowRankGaussian(NEAR.mean, NEAR.diagonal, np.zeros((P, 2)))
    assert_array_equal(flat.variance, 1 / NEAR.diagonal)
    twice = LowRankGaussian(NEAR.mean, NEAR.diagonal, np.hstack([NEAR.factor, NEAR.factor]))
    full = np.diag(NEAR.diagonal) + 2 * NEAR.factor @ NEAR.factor.T
    assert_allclose(twice.variance, np.diagonal(np.linalg.inv(full)), rtol=1e-11)


def test_a_pickle_has_the_parts_alone():
    _ = NEAR.variance
    again = pickle.loads(pickle.dumps(NEAR))
    assert set(vars(again)) == {"mean", "diagonal", "factor"}
    assert_array_equal(again.variance, NEAR.variance)
