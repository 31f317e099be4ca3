"""Predictive probabilities: integrals over uncertain activations, two classes and more."""

import mpmath
import numpy as np
import pytest
from scipy.special import log_expit, softmax

from posteriori.errors import ParameterError
from posteriori.likelihood.links import Cloglog, Logit
from posteriori.posterior.predictive import (
    class_intervals,
    extended_probit_logs,
    kappa_logs,
    monte_carlo_logs,
    probability_interval,
    quadrature_logs,
)

MEANS = np.array([0.0, 1e-3, 1.0, 5.0, 30.0, 1e3, 1e4])
DEVIATIONS = np.array([1e-6, 1e-2, 0.3, 1.0, 3.0, 10.0, 100.0, 1e3, 1e4])


def exact(m, s):
    """p at -m at 50 digits: by the trapezoidal rule, or as a step and what is left of σ."""
    with mpmath.workdps(50):
        m, s = mpmath.mpf(m), mpmath.mpf(s)
        if s > 100:
            normal = mpmath.npdf
            rest = mpmath.quad(
                lambda a: (normal(a, m, s) - normal(a, -m, s)) / (1 + mpmath.exp(a)),
                [0, 2, 6, 15, 40, 100, 200],
            )
            return mpmath.ncdf(-m / s) + rest
        step, peak = min(mpmath.mpf(1) / 5, mpmath.mpf("0.5") / s), min(s, m / s)
        n = int(10 / step)
        points = [peak + i * step for i in range(-n, n + 1)]
        terms = [mpmath.exp(-z * z / 2) / (1 + mpmath.exp(m - s * z)) for z in points]
        return mpmath.fsum(terms) * step / mpmath.sqrt(2 * mpmath.pi)


def by_product(mean, covariance, step=0.02, reach=6.5):
    """K = 3 by the trapezoidal rule over two contrasts."""
    z = np.arange(-reach, reach + step, step)
    weight = np.exp(-z * z / 2)
    T = np.array([[1.0, -1.0, 0.0], [1.0, 0.0, -1.0]])
    root = np.linalg.cholesky(T @ covariance @ T.T)
    d = (T @ mean)[:, None, None] + np.einsum("ij,jkl->ikl", root, np.array(np.meshgrid(z, z)))
    p = softmax(np.stack([np.zeros_like(d[0]), -d[0], -d[1]]), axis=0)
    return (p * np.outer(weight, weight)).sum(axis=(1, 2)) / weight.sum() ** 2


def random_activations(n, K, size, seed=0):
    random = np.random.default_rng(seed)
    root = size * random.normal(size=(n, K, K + 2)) / np.sqrt(K + 2)
    return 2 * random.normal(size=(n, K)), root @ root.swapaxes(1, 2)


def test_the_integral_is_that_of_fifty_digits_on_both_sides():
    m, s = (each.ravel()[::4] for each in np.meshgrid(MEANS, DEVIATIONS))
    p = [exact(*one) for one in zip(m, s, strict=True)]
    log_p = np.array([float(mpmath.log(one)) for one in p])
    log_rest = np.array([float(mpmath.log1p(-one)) for one in p])
    for sign, wanted in ((-1, (log_p, log_rest)), (1, (log_rest, log_p))):
        np.testing.assert_allclose(quadrature_logs(sign * m, s**2), wanted, rtol=1e-12)


def test_intervals_hold_the_probability_as_often_as_they_say():
    mean, deviation = np.array([-3.0, 0.4]), np.array([0.5, 2.0])
    draws = mean + deviation * np.random.default_rng(0).normal(size=(200_000, 2))
    for link in (Logit(), Cloglog()):
        low, high = probability_interval(mean, deviation, 0.8, link).T
        p = link.mean(draws.ravel()).reshape(draws.shape)
        np.testing.assert_allclose((p < low).mean(axis=0), 0.1, atol=0.003)
        np.testing.assert_allclose((p > high).mean(axis=0), 0.1, atol=0.003)
    with pytest.raises(ParameterError, match=r"level=1\.5 is out of range"):
        probability_interval(mean, deviation, 1.5, Logit())


@pytest.mark.parametrize("size", [0.5, 2.0])
def test_three_classes_have_the_integral_over_two_contrasts(size):
    mean, covariance = random_activations(12, 3, size)
    wanted = np.array([by_product(*one) for one in zip(mean, covariance, strict=True)])
    for logs, atol in (
        (monte_carlo_logs(mean, covariance), 2e-3),
        (monte_carlo_logs(mean, covariance, 2**14), 1e-4),
        (extended_probit_logs(mean, covariance), 0.03 * size),
    ):
        np.testing.assert_allclose(np.exp(logs), wanted, atol=atol)


def test_without_uncertainty_the_probability_is_that_of_the_mean_and_with_all_of_it_one_half():
    mean = np.array([-800.0, -3.0, 0.0, 3.0, 800.0])
    for logs in (kappa_logs, quadrature_logs):
        np.testing.assert_allclose(logs(mean, np.zeros(5))[0], log_expit(mean), rtol=1e-13)
    logs = quadrature_logs(np.array([-5.0, 0.0, 5.0]), np.array([1e20, 1e300, np.inf]))
    np.testing.assert_allclose(np.exp(logs), 0.5, atol=1e-8)


def test_two_classes_are_one_difference():
    mean, covariance = random_activations(50, 2, 2.0)
    apart = mean[:, 1] - mean[:, 0]
    variance = np.einsum("nij,i,j->n", covariance, [-1.0, 1.0], [-1.0, 1.0])
    closed, drawn = extended_probit_logs(mean, covariance), monte_carlo_logs(mean, covariance)
    np.testing.assert_allclose(closed[:, 1], kappa_logs(apart, variance)[0], atol=1e-12)
    exactly = np.exp(quadrature_logs(apart, variance)[0])
    np.testing.assert_allclose(np.exp(drawn[:, 1]), exactly, atol=2e-4)
    ends = class_intervals(mean, covariance, 0.9, 2**13)
    wanted = probability_interval(apart, np.sqrt(variance), 0.9, Logit())
    np.testing.assert_allclose(ends[:, 1], wanted, atol=1e-3)
    np.testing.assert_allclose(ends[:, 0], 1 - wanted[:, ::-1], atol=1e-3)


@pytest.mark.parametrize("K", [2, 3, 8])
def test_classes_sum_to_one_and_do_not_see_what_they_share(K):
    mean, covariance = random_activations(40, K, 1.5)
    random = np.random.default_rng(1)
    # Adding c to all activations of a row, c of any mean and correlated with them in any way.
    with_all = random.normal(size=(40, 1, K))
    moved = covariance + with_all + with_all.swapaxes(1, 2) + 3.0
    for function in (extended_probit_logs, monte_carlo_logs):
        logs = function(mean, covariance)
        np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1.0, rtol=1e-13)
        np.testing.assert_allclose(function(mean + 100.0, moved), logs, atol=1e-9)
