"""The posterior over coefficients as users read it: class by class, in the units of the columns.

Conventions: p free parameters w (p,) of standardised columns; θ (k,) in the user's units, k = q
for two classes and Kq for K, class by class with the intercept first, classes summing to zero.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from posteriori.errors import InferenceError
from posteriori.posterior.coefficient_table import CoefficientMap
from posteriori.posterior.gaussian import DiagonalGaussian, Gaussian
from posteriori.posterior.inference import inverse_of
from posteriori.posterior.monte_carlo import Draws
from posteriori.posterior.priors import Penalty
from posteriori.typing import Array


@dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    """p(w|t): a Gaussian, or draws where there are some.

    mean (k,) and covariance (k, k) are class by class, the intercept first, in the user's units.
    For more than two classes the covariance has the rank of K - 1 of them, as classes sum to zero.
    Of very many coefficients the Gaussian has the diagonal of the curvature alone: there are
    standard deviations and samples, but no covariance.

    `free` is the distribution of the free parameters.
    """

    coefficient_map: CoefficientMap
    free: Gaussian | DiagonalGaussian | Draws

    def __repr__(self) -> str:
        size, kind = f"{len(self.mean)} coefficients", "a Gaussian over"
        if isinstance(self.free, DiagonalGaussian):
            kind = "a diagonal Gaussian over"
        elif isinstance(self.free, Draws):
            kind = f"{len(self.free.pooled)} draws of"
        return f"<Posterior: {kind} {size}>"

    @cached_property
    def mean(self) -> Array:
        """E[θ] (k,)."""
        return self.in_user_units(self.free.mean)

    @cached_property
    def covariance(self) -> Array:
        """cov[θ] (k, k)."""
        covariance = self.free.covariance
        unit = np.eye(len(covariance))
        to_user = self.in_user_units(unit) - self.in_user_units(0 * unit)
        found = to_user.T @ covariance @ to_user
        return (found + found.T) / 2

    @cached_property
    def standard_deviation(self) -> Array:
        """The root of its diagonal (k,)."""
        if isinstance(self.free, DiagonalGaussian):
            contrasts = self.coefficient_map.coordinates.contrasts
            return self.coefficient_map.independent_errors(1 / self.free.precision, contrasts)
        return np.sqrt(np.maximum(np.diagonal(self.covariance), 0.0))

    @cached_property
    def draws(self) -> Array:
        """Draws of Markov chains (chains, steps, k); an error where there are none."""
        if not isinstance(self.free, Draws):
            raise InferenceError(
                "This posterior is a Gaussian, and was not drawn from.",
                "Use sample(n), or inference='monte_carlo'.",
            )
        return self.in_user_units(self.free.values)

    def sample(self, n: int = 1, random_state: Any = None) -> Array:
        """`n` draws (n, k): of the Gaussian, or out of those of the chains."""
        return self.in_user_units(self.free.sample(n, random_state))

    def as_penalty(self) -> Penalty:
        """The same Gaussian, or that of the draws, as the prior of rows to come."""
        mean = self.coefficient_map.coordinates.vectors(self.free.mean)
        if isinstance(self.free, Gaussian):
            return Penalty(mean, self.free.precision, proper=True)
        return Penalty(mean, inverse_of(self.free.covariance), proper=True)

    def in_user_units(self, w: Array) -> Array:
        """θ (..., k) of free parameters (..., p)."""
        theta = self.coefficient_map.expand(w.reshape(-1, w.shape[-1]).T)
        with np.errstate(over="ignore"):
            theta = self.coefficient_map.standard.to_user(np.moveaxis(theta, -1, 0))
        return theta.reshape(*w.shape[:-1], -1)
