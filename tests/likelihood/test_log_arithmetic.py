"""Differences that keep their digits, against mpmath."""

import mpmath as mp
import numpy as np
import pytest

from posteriori.likelihood.log_arithmetic import divergence, log_gamma_peak


@pytest.mark.parametrize(
    ("t", "mean"),
    [(1e12 + 1, 1e12), (3.0, 3.0 + 1e-9), (0.3, 0.36), (0.3, 0.37), (1e-300, 2.0), (5.0, 1e-300)],
)
def test_divergence_keeps_its_digits(t, mean):
    with mp.workdps(60):
        x, m = mp.mpf(t), mp.mpf(mean)
        expected = x * mp.log(x / m) + m - x
    found = divergence(np.array([t]), np.array([mean]))[0]
    assert found == pytest.approx(float(expected), rel=1e-13)


def test_divergence_at_zero():
    found = divergence(np.array([0.0, 0.0, 2.0]), np.array([0.0, 3.0, 0.0]))
    assert found.tolist() == [0.0, 3.0, np.inf]


@pytest.mark.parametrize(
    "dispersion", [1e-32, 1e-9, 1e-3, 0.02, 0.049999, 0.050001, 0.3, 1.0, 40.0]
)
def test_the_gamma_density_at_its_mean_keeps_its_digits(dispersion):
    with mp.workdps(80):
        k = 1 / mp.mpf(dispersion)
        exact = k * mp.log(k) - k - mp.loggamma(k)
    # At k = 20 terms of size 60 leave 0.6: 2e-14 is what rounding takes.
    assert log_gamma_peak(dispersion) == pytest.approx(float(exact), rel=1e-14, abs=2e-14)
