"""The posterior over coefficients as users read it: class by class, in the units of the columns.

Conventions: p free parameters w (p,) of standardised columns; θ (k,) in the user's units, k = q
for two classes and Kq for K, class by class with the intercept first, classes summing to zero.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from posteriori.arguments import as_generator, check_count
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
    """

    coefficient_map: CoefficientMap
    gaussian: Gaussian | DiagonalGaussian
    chains: Draws | None = None

    def __repr__(self) -> str:
        size = f"{len(self.mean)} coefficients"
        if isinstance(self.gaussian, DiagonalGaussian):
            return f"<Posterior: a diagonal Gaussian over {size}>"
        if self.chains is None:
            return f"<Posterior: a Gaussian over {size}>"
        return f"<Posterior: {len(self.chains.pooled)} draws of {size}>"

    @cached_property
    def mean(self) -> Array:
        """E[θ] (k,)."""
        return self.in_user_units(self.free_mean)

    @cached_property
    def covariance(self) -> Array:
        """cov[θ] (k, k)."""
        free, size = self.free_covariance, self.coefficient_map.coordinates.size
        to_user = self.in_user_units(np.eye(size)) - self.in_user_units(np.zeros(size))
        found = to_user.T @ free @ to_user
        return (found + found.T) / 2

    @cached_property
    def standard_deviation(self) -> Array:
        """The root of its diagonal (k,)."""
        if isinstance(self.gaussian, DiagonalGaussian):
            variance = 1 / self.gaussian.precision
            return self.coefficient_map.independent_errors(
                variance, self.coefficient_map.coordinates.contrasts
            )
        return np.sqrt(np.maximum(np.diagonal(self.covariance), 0.0))

    @cached_property
    def draws(self) -> Array:
        """Draws of Markov chains (chains, steps, k); an error where there are none."""
        if self.chains is None:
            raise InferenceError(
                "This posterior is a Gaussian, and was not drawn from.",
                "Use sample(n), or inference='monte_carlo'.",
            )
        return self.in_user_units(self.chains.values)

    def sample(self, n: int = 1, random_state: Any = None) -> Array:
        """`n` draws (n, k): of the Gaussian, or out of those of the chains."""
        return self.in_user_units(self.free_sample(n, random_state))

    @cached_property
    def free_mean(self) -> Array:
        """Of the free parameters (p,)."""
        return self.gaussian.mean if self.chains is None else self.chains.pooled.mean(axis=0)

    @cached_property
    def free_covariance(self) -> Array:
        """Of the free parameters (p, p)."""
        if isinstance(self.gaussian, DiagonalGaussian):
            raise InferenceError(
                f"The covariance of {len(self.mean):,} coefficients is not computed: their "
                "posterior has the diagonal of the second derivatives alone.",
                "Use posterior_.standard_deviation, or fit fewer columns.",
            )
        if self.chains is None:
            return self.gaussian.covariance
        return np.atleast_2d(np.cov(self.chains.pooled, rowvar=False))

    def free_sample(self, n: int, random_state: Any = None) -> Array:
        """Of the free parameters (n, p)."""
        if self.chains is None:
            return self.gaussian.sample(n, random_state)
        check_count("n", n, "draws")
        pooled = self.chains.pooled
        return pooled[as_generator(random_state).choice(len(pooled), n, replace=n > len(pooled))]

    def as_penalty(self) -> Penalty:
        """The same Gaussian, or that of the draws, as the prior of rows to come."""
        gaussian, mean = self.gaussian, self.coefficient_map.coordinates.vectors(self.free_mean)
        if isinstance(gaussian, DiagonalGaussian):
            raise InferenceError(
                f"The posterior of {len(self.mean):,} coefficients has the diagonal of the second "
                "derivatives alone, which is not enough as the prior of more rows.",
                "Fit to all rows at once: scan() reads those that do not fit in memory.",
            )
        drawn = self.chains is not None
        precision = inverse_of(self.free_covariance) if drawn else gaussian.precision
        return Penalty(mean, precision, proper=True)

    def in_user_units(self, w: Array) -> Array:
        """θ (..., k) of free parameters (..., p)."""
        coordinates, flat = self.coefficient_map.coordinates, w.reshape(-1, w.shape[-1])
        theta = np.stack([coordinates.expand(one) for one in flat])
        with np.errstate(over="ignore"):
            return self.coefficient_map.standard.to_user(theta).reshape(*w.shape[:-1], -1)
