"""Expectation-maximisation as a loop over any step."""

import numpy as np
from numpy.testing import assert_allclose

from posteriori.solve.em import expectation_maximisation
from posteriori.solve.solution import Status


def halve(x):
    """A step to half, and the 'log-likelihood' of what was given."""
    return x / 2, -(x**2)


def distance(a, b):
    return abs(a - b)


def test_it_stops_when_the_parameters_move_no_more():
    found = expectation_maximisation(halve, distance, 1.0, tol=2.0**-10, max_iter=100)
    assert found.status is Status.CONVERGED
    assert found.converged
    assert found.parameters == 2.0**-10
    assert len(found.trace) == 10


def test_the_trace_is_the_log_likelihood_before_each_step():
    found = expectation_maximisation(halve, distance, 1.0, tol=0.1, max_iter=100)
    assert_allclose(found.trace, [-1.0, -0.25, -0.0625, -0.015625], rtol=0)


def test_it_says_so_when_it_is_stopped():
    found = expectation_maximisation(halve, distance, 1.0, tol=0.0, max_iter=3)
    assert not found.converged
    assert found.status.value == "The iteration was stopped before it converged."
    assert found.parameters == 0.125


def test_a_step_to_nowhere_is_not_convergence():
    found = expectation_maximisation(
        lambda x: (x, np.nan), lambda a, b: np.nan, 1.0, tol=1.0, max_iter=5
    )
    assert not found.converged


def test_a_mixture_of_two_coins_is_found():
    # Two coins are drawn with equal odds and tossed ten times each; which one is hidden.
    heads = np.array([9, 8, 1, 2, 9, 1, 8, 2, 9, 1.0])

    def step(p):
        logs = np.outer(heads, np.log(p)) + np.outer(10 - heads, np.log1p(-p))
        total = np.logaddexp(logs[:, 0], logs[:, 1])
        share = np.exp(logs - total[:, None])
        return (heads @ share) / (10 * share.sum(axis=0)), float(total.sum())

    found = expectation_maximisation(
        step, lambda a, b: abs(a - b).max(), np.array([0.6, 0.4]), tol=1e-12, max_iter=500
    )
    assert found.converged
    assert (np.diff(found.trace) >= -1e-12).all()
    assert_allclose(found.parameters, [0.86, 0.14], atol=1e-3)
