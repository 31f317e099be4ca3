"""Generalised linear models (4.3.6): families of the target, and the loss of each with a link.

>>> glm_loss("poisson", "log").gradient(np.array([0.0]), np.array([3.0]))
array([-2.])
>>> GLM_FAMILIES["gamma"].links
('reciprocal', 'log', 'identity')
"""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlog1py, xlogy

from posteriori.arguments import either
from posteriori.errors import ParameterError
from posteriori.likelihood.arithmetic import quiet
from posteriori.likelihood.binary import BinaryLoss
from posteriori.likelihood.divergence import divergence, log_gamma_peak
from posteriori.likelihood.links import PROBABILITY_LINKS
from posteriori.likelihood.logistic import LogisticLoss
from posteriori.likelihood.loss import Loss
from posteriori.likelihood.probit import ProbitLoss
from posteriori.likelihood.real_losses import (
    GammaIdentityLoss,
    GammaLogLoss,
    GammaReciprocalLoss,
    GaussianIdentityLoss,
    GaussianLogLoss,
    GaussianReciprocalLoss,
    PoissonIdentityLoss,
    PoissonLogLoss,
)
from posteriori.typing import Array


class TargetFamily(ABC):
    """The distribution of a target t with mean μ and variance s·V(μ), s the dispersion (4.118).

    `losses` has the loss of each link, the canonical one first. `dispersion_fixed` says that s is
    one; otherwise it is to be estimated. `domain` says in words what the targets must be.
    """

    name: ClassVar[str]
    domain: ClassVar[str]
    dispersion_fixed: ClassVar[bool]
    losses: ClassVar[dict[str, Loss]]

    @property
    def links(self) -> tuple[str, ...]:
        """The names of the links it can have, the canonical one first."""
        return tuple(self.losses)

    @property
    def canonical(self) -> str:
        """The link for which the activation is the natural parameter (4.123), up to its sign."""
        return self.links[0]

    @abstractmethod
    def outside(self, t: Array) -> NDArray[np.bool_]:
        """Which targets cannot be."""

    @abstractmethod
    def variance(self, mean: Array) -> Array:
        """V(μ)."""

    @quiet
    def pearson(self, t: Array, mean: Array) -> Array:
        """(t - μ)²/V(μ), row by row."""
        return (t - mean) ** 2 / self.variance(mean)

    @abstractmethod
    def deviance(self, t: Array, mean: Array) -> Array:
        """2s (ln p(t|t) - ln p(t|μ)), row by row: never negative, zero at μ = t.

        Infinite where no distribution of the family has the mean, or none with it has the target.
        """

    @abstractmethod
    def log_density(self, t: Array, mean: Array, dispersion: float) -> Array:
        """ln p(t|μ, s)."""

    def log_likelihood(
        self, t: Array, mean: Array, dispersion: float = 1.0, weight: Array | None = None
    ) -> Array:
        """w ln p(t|μ, s), row by row; the weight says how often the row occurred.

        The sum is the `llf` of statsmodels, with its weights as `freq_weights`, if s is what it
        takes: one where it is fixed; Pearson's Σw(t - μ)²/V(μ) / (Σw - parameters) where not;
        and Σw(t - μ)² / Σw for a Gaussian with the identity link.
        """
        if self.dispersion_fixed and dispersion != 1.0:
            raise ParameterError(
                f"The dispersion of a {self.name} target is one, not {dispersion}.",
                "Leave it at one, or choose the gamma or the Gaussian family.",
            )
        log_density = self.log_density(t, mean, dispersion)
        return log_density if weight is None else weight * log_density


class GaussianTarget(TargetFamily):
    """t has the density N(t|μ, s), V = 1."""

    name = "gaussian"
    domain = "any number"
    dispersion_fixed = False
    losses: ClassVar[dict[str, Loss]] = {
        "identity": GaussianIdentityLoss(),
        "log": GaussianLogLoss(),
        "reciprocal": GaussianReciprocalLoss(),
    }

    def outside(self, t: Array) -> NDArray[np.bool_]:
        return np.isnan(t)

    def variance(self, mean: Array) -> Array:
        return np.ones_like(mean)

    @quiet
    def deviance(self, t: Array, mean: Array) -> Array:
        return _infinite_outside((t - mean) ** 2)

    @quiet
    def log_density(self, t: Array, mean: Array, dispersion: float) -> Array:
        return -((t - mean) ** 2 / dispersion + np.log(2 * np.pi * dispersion)) / 2


class BernoulliTarget(TargetFamily):
    """t is one with probability μ, V = μ(1 - μ); in between it is the share of ones in w trials."""

    name = "bernoulli"
    domain = "from zero to one"
    dispersion_fixed = True
    losses: ClassVar[dict[str, Loss]] = {
        "logit": LogisticLoss(),
        "probit": ProbitLoss(),
        **{name: BinaryLoss(PROBABILITY_LINKS[name]) for name in ("cloglog", "log", "identity")},
    }

    def outside(self, t: Array) -> NDArray[np.bool_]:
        return ~((t >= 0) & (t <= 1))

    def variance(self, mean: Array) -> Array:
        return mean * (1 - mean)

    def deviance(self, t: Array, mean: Array) -> Array:
        return _infinite_outside(2 * (divergence(t, mean) + divergence(1 - t, 1 - mean)))

    @quiet
    def log_density(self, t: Array, mean: Array, dispersion: float) -> Array:
        return xlogy(t, mean) + xlog1py(1 - t, -mean)


class PoissonTarget(TargetFamily):
    """t is a count with mean μ, V = μ.

    Rates are allowed: t events a unit of exposure with the exposure as weight give the fit of the
    counts themselves. Only then is the likelihood of a t that is not whole of use, and only to
    compare fits to the same rows.
    """

    name = "poisson"
    domain = "zero or more"
    dispersion_fixed = True
    losses: ClassVar[dict[str, Loss]] = {"log": PoissonLogLoss(), "identity": PoissonIdentityLoss()}

    def outside(self, t: Array) -> NDArray[np.bool_]:
        return ~(t >= 0)

    def variance(self, mean: Array) -> Array:
        return mean.copy()

    @quiet
    def pearson(self, t: Array, mean: Array) -> Array:
        return (t - mean) * ((t - mean) / mean)  # the square of a large count can be infinite

    def deviance(self, t: Array, mean: Array) -> Array:
        return _infinite_outside(np.where(mean >= 0, 2 * divergence(t, mean), np.nan))

    @quiet
    def log_density(self, t: Array, mean: Array, dispersion: float) -> Array:
        found = xlogy(t, mean) - mean - gammaln(t + 1)
        return np.where(np.isposinf(mean), -np.inf, found)


class GammaTarget(TargetFamily):
    """t > 0 with V = μ²: the gamma density of shape 1/s and mean μ."""

    name = "gamma"
    domain = "more than zero"
    dispersion_fixed = False
    losses: ClassVar[dict[str, Loss]] = {
        "reciprocal": GammaReciprocalLoss(),
        "log": GammaLogLoss(),
        "identity": GammaIdentityLoss(),
    }

    def outside(self, t: Array) -> NDArray[np.bool_]:
        return ~(t > 0)

    @quiet
    def variance(self, mean: Array) -> Array:
        return mean**2

    @quiet
    def pearson(self, t: Array, mean: Array) -> Array:
        # It has no units, though μ² may not fit in a double, nor μ itself.
        return np.where(np.isposinf(mean), 1.0, ((t - mean) / mean) ** 2)

    @quiet
    def deviance(self, t: Array, mean: Array) -> Array:
        return _infinite_outside(np.where(mean >= 0, 2 * divergence(mean, t) / mean, np.nan))

    @quiet
    def log_density(self, t: Array, mean: Array, dispersion: float) -> Array:
        return log_gamma_peak(dispersion) - self.deviance(t, mean) / 2 / dispersion - np.log(t)


class ExponentialTarget(GammaTarget):
    """t >= 0 with p = exp(-t/μ)/μ: the gamma density with dispersion one.

    The deviance of a target of zero is infinite, because its own likelihood has no maximum.
    """

    name = "exponential"
    domain = "zero or more"
    dispersion_fixed = True

    def outside(self, t: Array) -> NDArray[np.bool_]:
        return ~(t >= 0)

    @quiet
    def log_density(self, t: Array, mean: Array, dispersion: float) -> Array:
        found = -np.log(mean) - np.where(t == 0, 0.0, t / mean)
        return np.where((mean == 0) & (t > 0), -np.inf, found)


def _infinite_outside(deviance: Array) -> Array:
    return np.where(np.isnan(deviance), np.inf, deviance)


GLM_FAMILIES: dict[str, TargetFamily] = {
    family.name: family
    for family in (
        GaussianTarget(),
        BernoulliTarget(),
        PoissonTarget(),
        ExponentialTarget(),
        GammaTarget(),
    )
}
"""All families of the target by name."""


def glm_loss(family: str, link: str = "canonical") -> Loss:
    """The loss of a target of this family, with this link or the canonical one.

    >>> glm_loss("bernoulli").canonical, glm_loss("bernoulli", "cloglog").canonical
    (True, False)
    """
    if family not in GLM_FAMILIES:
        raise ParameterError(
            f"There is no family {family!r} of targets.", f"Choose {either(sorted(GLM_FAMILIES))}."
        )
    known = GLM_FAMILIES[family]
    if link == "canonical":
        link = known.canonical
    if link not in known.losses:
        raise ParameterError(
            f"A {family} target cannot have the link {link!r}.",
            f"Choose 'canonical', {either(list(known.links))}.",
        )
    return known.losses[link]
