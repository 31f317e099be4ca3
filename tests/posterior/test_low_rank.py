"""Precisions of low rank and a diagonal, against the same by full matrices; and drawn Gaussians."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from posteriori.posterior.drawn_gaussian import DrawnGaussian
from posteriori.posterior.low_rank import LowRankPrecision

RANDOM = np.random.default_rng(1)
P, K = 12, 4
NEAR = LowRankPrecision(RANDOM.gamma(2.0, size=P), RANDOM.normal(size=(P, K)) * 3.0)
A = np.diag(NEAR.diagonal) + NEAR.factor @ NEAR.factor.T


def test_its_determinant_is_that_of_the_matrix():
    assert NEAR.log_determinant == pytest.approx(np.linalg.slogdet(A)[1], rel=1e-13)


def test_its_root_makes_the_inverse():
    root = NEAR.spread(np.eye(P)).T
    assert_allclose(root @ root.T, np.linalg.inv(A), rtol=1e-9, atol=1e-13)
    assert_allclose(root.T @ A @ root, np.eye(P), atol=1e-10)
    assert_allclose(NEAR.gathered(np.eye(P)).T, root.T, rtol=1e-12, atol=1e-14)


def test_directions_that_are_nothing_are_left_out():
    flat = LowRankPrecision(NEAR.diagonal, np.zeros((P, 2)))
    assert_allclose(flat.spread(np.eye(P)), np.diag(NEAR.diagonal**-0.5), rtol=1e-15)
    twice = LowRankPrecision(NEAR.diagonal, np.hstack([NEAR.factor, NEAR.factor]))
    full = np.diag(NEAR.diagonal) + 2 * NEAR.factor @ NEAR.factor.T
    assert twice.log_determinant == pytest.approx(np.linalg.slogdet(full)[1], rel=1e-12)


def test_draws_of_a_drawn_gaussian_have_its_covariance():
    drawn = DrawnGaussian(np.arange(3.0), RANDOM.normal(size=(3, 5)))
    found = drawn.sample(200_000, random_state=0)
    covariance = drawn.root @ drawn.root.T
    assert_allclose(np.cov(found, rowvar=False), covariance, atol=0.02 * abs(covariance).max())
    assert_allclose(found.mean(axis=0), drawn.mean, atol=0.02)
    assert_allclose(drawn.standard_deviation, np.sqrt(np.diagonal(covariance)), rtol=1e-14)


def test_a_pickle_has_the_parts_alone():
    drawn = DrawnGaussian(np.arange(3.0), RANDOM.normal(size=(3, 5)))
    _ = drawn.standard_deviation
    again = pickle.loads(pickle.dumps(drawn))
    assert set(vars(again)) == {"mean", "root"}
    assert_array_equal(again.standard_deviation, drawn.standard_deviation)
