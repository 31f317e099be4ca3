"""The evidence from draws of the posterior, by weighting draws of a distribution like theirs.

With q(w) Student's t of the draws' mean and covariance, whose tails no log-concave posterior has,

    p(t) = ∫ p(t, w) dw ≈ (1/S) Σ_s p(t, w_s) / q(w_s),   w_s ~ q.
"""

import numpy as np
from scipy.special import gammaln, logsumexp

from posteriori.linalg import cholesky, solve_lower, unit_diagonal
from posteriori.posterior.many import Densities
from posteriori.typing import Array

_DEGREES = 5.0


def drawn_log_evidence(
    target: Densities, draws: Array, n_points: int, random: np.random.Generator
) -> float:
    """ln ∫ exp(target), from draws (S, p) of the density that the target has.

    >>> class Normal:
    ...     def log_density(self, W):
    ...         return -0.5 * (W**2).sum(axis=1)
    >>> random = np.random.default_rng(0)
    >>> found = drawn_log_evidence(Normal(), random.normal(size=(500, 2)), 20_000, random)
    >>> round(found, 2), round(float(np.log(2 * np.pi)), 2)
    (1.84, 1.84)
    """
    mean, p = draws.mean(axis=0), draws.shape[1]
    matrix, scale = unit_diagonal(np.atleast_2d(np.cov(draws, rowvar=False)))
    lower = cholesky(matrix)
    factor = np.diag(scale) if lower is None else lower * scale[:, None]
    white = random.standard_normal((n_points, p))
    white /= np.sqrt(random.chisquare(_DEGREES, n_points) / _DEGREES)[:, None]
    points = mean + white @ factor.T
    log_q = _log_student(solve_lower(factor, (points - mean).T).T, factor)
    found = target.log_density(points) - log_q
    return float(logsumexp(found) - np.log(n_points))


def _log_student(white: Array, factor: Array) -> Array:
    """ln q (n,) of points that are white (n, p) for the factor of the scale matrix."""
    p, half = white.shape[1], 0.5 * (_DEGREES + white.shape[1])
    constant = gammaln(half) - gammaln(0.5 * _DEGREES) - 0.5 * p * np.log(_DEGREES * np.pi)
    constant -= np.log(np.diagonal(factor)).sum()
    return np.asarray(constant - half * np.log1p(np.square(white).sum(axis=1) / _DEGREES))
