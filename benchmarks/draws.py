"""Draws from a posterior: their effective number, and whether two sets of them agree.

Both sides draw from one posterior: slopes of standardised columns have the prior N(0, 1), the
intercept of centred ones N(0, 10²). Draws (chains, steps, coefficients) are in the user's units.
"""

import numpy as np

from posteriori.posterior.monte_carlo import diagnostics

CHAINS = 4
DRAWS = 4_000
"""Of all chains together, after the warm-up."""

SLOPE_PRECISION = 1.0
INTERCEPT_PRECISION = 0.01

AGREE = 4.5
"""The largest |z| of some dozens of true differences of zero is below this, but for one in
thousands of times."""


def n_effective(draws: np.ndarray) -> float:
    """Effective draws of the coefficient that has fewest, for its middle or for its tails.

    Antithetic draws have more effective draws for means than there are draws; those for the tails
    are the smaller number then.
    """
    found = diagnostics(draws)
    return float(min(found["ess_bulk"].min(), found["ess_tail"].min()))


def largest_z(one: np.ndarray, other: np.ndarray) -> float:
    """The largest difference of means or standard deviations, in Monte Carlo standard errors."""
    return max(_z(*_means(one), *_means(other)), _z(*_deviations(one), *_deviations(other)))


def _means(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return draws.mean(axis=(0, 1)), diagnostics(draws)["mcse_mean"]


def _deviations(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Standard deviations s, and their errors: that of s² over 2s."""
    squares = (draws - draws.mean(axis=(0, 1))) ** 2
    deviations = np.sqrt(squares.mean(axis=(0, 1)))
    return deviations, diagnostics(squares)["mcse_mean"] / (2 * deviations)


def _z(one: np.ndarray, error: np.ndarray, other: np.ndarray, its_error: np.ndarray) -> float:
    return float(np.max(np.abs(one - other) / np.hypot(error, its_error)))
