"""The objective in free, standardised parameters: derivatives and subsamples."""

from dataclasses import replace

import numpy as np
import pytest
from objectives import differences, log_posterior

from posteriori.design.standardise import Standard
from posteriori.models.fitting import on_subsamples, subsamples
from posteriori.posterior.priors import GaussianPrior

RANDOM = np.random.default_rng(3)
PRIOR = GaussianPrior(precision=[[2.0, 0.3], [0.3, 1.0]], mean=[0.5, -1.0], intercept_precision=0.7)


def objective(n_classes, n=90, prior=PRIOR, basis=None):
    X = RANDOM.normal([2.0, -1.0], [1.0, 3.0], (n, 2))
    T, weight = np.eye(n_classes)[np.arange(n) % n_classes], RANDOM.random(n) + 0.1
    standard = Standard(X.mean(axis=0), X.std(axis=0), True)
    return log_posterior(X, T, prior, weight, standard=standard, basis=basis)


@pytest.mark.parametrize("damping", [0.0, 0.4])
@pytest.mark.parametrize("basis", [None, np.array([[1.0, 0.0], [0.0, 0.6], [0.0, -0.2]])])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_derivatives_are_those_of_the_value(n_classes, basis, damping):
    plain = objective(n_classes, basis=basis)
    penalty = plain.penalty.damped(damping, plain.standard.intercept)
    f = replace(plain, penalty=penalty, factor=2.5)
    w = RANDOM.normal(size=f.coordinates.size)
    here = f(w, "full")
    slopes = differences(lambda v: f(v, "none").value, w)
    np.testing.assert_allclose(here.gradient, slopes, rtol=1e-6, atol=1e-6)
    bends = differences(lambda v: f(v, "none").gradient, w)
    np.testing.assert_allclose(here.hessian, bends, rtol=1e-6, atol=1e-6)


def test_subsamples_grow_to_all_rows_and_stand_for_all_of_them():
    f = objective(2, n=150_000, prior=1.0)
    levels = on_subsamples(f, subsamples(f.rows, f.coordinates.size))
    assert [level.n_rows for level in levels] == [2344, 18_750, 150_000]
    assert levels[0].row_fraction == 2344 / 150_000
    w = np.array([0.1, 0.2, -0.3])
    values = [level(w, "none").value for level in levels]
    np.testing.assert_allclose(values, values[-1], rtol=0.02)
    assert levels[-1] is f
    few = objective(2, n=7_900)
    assert len(subsamples(few.rows, 3)) == 1
