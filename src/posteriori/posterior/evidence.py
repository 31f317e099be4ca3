"""The evidence ln p(t) of a model by Laplace's approximation, and the parts it is made of (4.137).

Conventions: p free parameters w (p,), in c vectors of q numbers; A (p, p) is the Hessian of
-ln p(t|w) - ln p(w) at the most probable w.
"""

import math
from dataclasses import dataclass

import numpy as np

from posteriori.errors import InferenceError
from posteriori.linalg import cholesky, unit_diagonal
from posteriori.posterior.priors import Penalty
from posteriori.typing import Array

_LOG_TWO_PI = math.log(2 * math.pi)


@dataclass(frozen=True)
class Evidence:
    """ln p(t) ≈ ln p(t|w) + ln p(w) + (p/2) ln 2π - ½ ln|A| at the most probable w (4.137).

    The first part says how well the model fits at its best. The others are the logarithm of the
    Occam factor: the volume that the posterior takes up of that of the prior. `standard_error` is
    that of the value where ln|A| was found by random vectors, as it is of very many coefficients.

    >>> found = Evidence(log_likelihood=-10.0, log_prior=-3.0, log_volume=1.0)
    >>> found.value, found.log_occam_factor
    (-12.0, -2.0)
    """

    log_likelihood: float
    log_prior: float
    log_volume: float
    standard_error: float = 0.0

    @property
    def log_occam_factor(self) -> float:
        """ln p(w) + (p/2) ln 2π - ½ ln|A|: what a model pays for what it could have been."""
        return self.log_prior + self.log_volume

    @property
    def value(self) -> float:
        """ln p(t)."""
        return self.log_likelihood + self.log_occam_factor


def evidence_of(
    penalty: Penalty,
    vectors: Array,
    log_likelihood: float,
    log_determinant: float,
    standard_error: float = 0.0,
) -> Evidence:
    """The evidence, given ln p(t|w) and ln|A| at the most probable w, its c vectors (c, q).

    `standard_error` is that of ln|A|, if it has one.

    With a flat prior on the intercept it is known up to a constant: that of a density of one.
    """
    return Evidence(
        log_likelihood,
        log_normaliser(penalty, len(vectors)) - penalty.value(vectors),
        0.5 * (vectors.size * _LOG_TWO_PI - log_determinant),
        0.5 * standard_error,
    )


def log_normaliser(penalty: Penalty, c: int) -> float:
    """The logarithm of what makes exp(-penalty) of c vectors a density in what it holds."""
    precision = penalty.precision
    if precision.ndim == 1:
        held = precision[precision > 0]
        return 0.5 * c * float(np.log(held).sum() - len(held) * _LOG_TWO_PI)
    times = 1 if penalty.is_joint(c) else c
    places = np.flatnonzero(np.diagonal(precision) > 0)
    inner = precision[np.ix_(places, places)]
    return 0.5 * times * (log_determinant(inner) - len(places) * _LOG_TWO_PI)


def log_determinant(matrix: Array) -> float:
    """ln|matrix|; an error where the matrix is not positive definite."""
    scaled, scale = unit_diagonal(matrix)
    lower = cholesky(scaled)
    if lower is None:
        raise InferenceError(
            "The curvature at the optimum is not positive definite, so that there is no evidence "
            "by Laplace's approximation.",
            "Look at collinear columns, or set a prior that holds every coefficient.",
        )
    return 2.0 * float(np.log(np.diagonal(lower) * scale).sum())


def check_proper(penalty: Penalty) -> None:
    """An error unless the prior holds every coefficient, the intercept among them."""
    precision = penalty.precision
    if precision.ndim == 1:
        holds = bool((precision > 0).all())
    else:
        holds = bool((np.diagonal(precision) > 0).all())
        holds = holds and cholesky(unit_diagonal(precision)[0]) is not None
    if not holds:
        raise InferenceError(
            "Evidence needs a proper prior: this one leaves the intercept or other coefficients "
            "free, so that every evidence is zero.",
            "Use BayesianLogisticRegression, or a GaussianPrior that has a precision for every "
            "coefficient and an intercept_precision.",
        )
