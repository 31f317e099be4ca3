"""Jeffreys' posterior at many parameters at once: in parts, and far out.

That many are each by itself is tested with the other priors.
"""

import numpy as np
import pytest

from posteriori import LogisticRegression
from posteriori.posterior.many_jeffreys import JeffreysDensities
from posteriori.rows.threads import threads

RANDOM = np.random.default_rng(3)


@pytest.fixture(scope="module")
def objective():
    X = RANDOM.normal([0.0, 1.0, 5.0, 0.0], size=(5000, 4))
    y = X[:, 0] + RANDOM.logistic(size=len(X)) > 0.5
    return LogisticRegression(prior="jeffreys").fit(X, y)._inference.objective


def test_parts_of_the_points_and_threads_change_nothing(objective, monkeypatch):
    W = RANDOM.normal(size=(7, 5))
    expected = JeffreysDensities(objective).with_gradient(W)
    monkeypatch.setattr("posteriori.posterior.many_jeffreys._SUMS", 50)
    with threads(1):
        found = JeffreysDensities(objective).with_gradient(W)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-13)


def test_far_out_the_density_is_zero_and_its_gradient_finite(objective):
    W = np.array([[0.0, 1e7, 0.0, 0.0, 0.0], [0.0, 1e300, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0, 0]])
    value, gradient = JeffreysDensities(objective).with_gradient(W)
    assert value[:2].tolist() == [-np.inf, -np.inf]
    assert np.isfinite(value[2])
    assert np.isfinite(gradient).all()
