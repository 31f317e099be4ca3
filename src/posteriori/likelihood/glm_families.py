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
from posteriori.likelihood.binary_losses import BinaryLoss
from posteriori.likelihood.links import (
    PROBABILITY_LINKS,
    Domain,
    Identity,
    Log,
    PositiveIdentity,
    PowerLink,
    Reciprocal,
)
from posteriori.likelihood.log_arithmetic import divergence, log_gamma_peak, quiet, times
from posteriori.likelihood.loss import Loss
from posteriori.typing import Array


class PowerVarianceLoss(Loss):
    """-ln p(t|a) of a target with variance V(μ) = μᵖ, for dispersion one and up to a constant.

    p = 0 is Gaussian with ½(t - μ)², p = 1 Poisson with μ - t ln μ, p = 2 gamma with ln μ + t/μ.
    The derivative in μ is (μ - t)/μᵖ. With a link dμ/da = s μ^q and r = q - p the derivative in a
    is s(μ - t)μ^r, the second (μ(1 + r) - tr) μ^(2q - p - 1), and its expectation μ^(2q - p).
    Outside the domain of the link the value is infinite and its derivatives are not numbers.

    >>> loss = PowerVarianceLoss(1, Log())
    >>> loss.value(np.array([0.0, 1e4]), np.array([2.0, 1.0]))
    array([ 1., inf])
    >>> PowerVarianceLoss(2, Reciprocal()).value(np.array([2.0, -2.0]), np.array([3.0, 3.0]))
    array([5.30685282,        inf])
    """

    def __init__(self, power: int, link: PowerLink) -> None:
        self.power, self.link = power, link
        self.canonical = link.power == power
        # (1 + r)μ - rt is positive for all means and targets only where r is zero or minus one.
        self.convex = link.power - power in (0, -1)

    def mean(self, a: Array) -> Array:
        return self.link.mean(a)

    def activation(self, mean: Array) -> Array:
        return self.link.activation(mean)

    @quiet
    def value(self, a: Array, t: Array) -> Array:
        mean = self.mean(a)
        if self.power == 0:
            return _infinite_outside((t - mean) ** 2 / 2)
        if self.power == 1:
            log_mean = a if isinstance(self.link, Log) else np.log(mean)
            return _infinite_outside(mean - times(t, log_mean))
        return np.where(mean > 0, np.log(mean) + t / mean, np.inf)

    @quiet
    def gradient(self, a: Array, t: Array) -> Array:
        mean = self.mean(a)
        return self.link.sign * times(mean - t, mean ** float(self.link.power - self.power))

    @quiet
    def curvature(self, a: Array, t: Array) -> Array:
        q, r = self.link.power, self.link.power - self.power
        if r == 0:
            return self.information(a)
        mean = self.mean(a)
        return times((1 + r) * mean - r * t, mean ** float(q + r - 1))

    @quiet
    def information(self, a: Array) -> Array:
        mean = self.mean(a)
        return np.where(np.isnan(mean), np.nan, mean ** float(2 * self.link.power - self.power))

    @quiet
    def information_slope(self, a: Array) -> Array:
        q, power = self.link.power, 2 * self.link.power - self.power
        return self.link.sign * power * self.mean(a) ** float(power + q - 1)


class SquaredLoss(PowerVarianceLoss):
    """½(t - a)²: least squares (4.93)."""

    def __init__(self) -> None:
        super().__init__(0, Identity())


def _infinite_outside(value: Array) -> Array:
    return np.where(np.isnan(value), np.inf, value)


class BarrierLoss(Loss):
    """A loss plus -τ ln|a - end| for each finite end of the domain.

    As τ goes to zero its minimum goes to that of the loss inside the domain, or at an end of it:
    so the log-binomial and the identity-Poisson model are fitted where the likelihood is largest
    at an end.

    >>> loss = BarrierLoss(glm_loss("poisson", "identity"), Domain(low=0.0), 0.1)
    >>> loss.gradient(np.array([0.1]), np.array([0.0]))
    array([0.])
    """

    canonical = False

    def __init__(self, loss: Loss, domain: Domain, height: float) -> None:
        self.loss, self.height = loss, height
        self.ends = np.array([[end] for end in domain if np.isfinite(end)])
        self.convex = loss.convex

    @quiet
    def value(self, a: Array, t: Array) -> Array:
        return self.loss.value(a, t) - self.height * np.log(abs(a - self.ends)).sum(axis=0)

    @quiet
    def gradient(self, a: Array, t: Array) -> Array:
        return self.loss.gradient(a, t) - self.height * (1 / (a - self.ends)).sum(axis=0)

    def curvature(self, a: Array, t: Array) -> Array:
        return self.loss.curvature(a, t) + self._barrier_curvature(a)

    def information(self, a: Array) -> Array:
        return self.loss.information(a) + self._barrier_curvature(a)

    @quiet
    def _barrier_curvature(self, a: Array) -> Array:
        return self.height * (1 / (a - self.ends) ** 2).sum(axis=0)

    def mean(self, a: Array) -> Array:
        return self.loss.mean(a)

    def activation(self, mean: Array) -> Array:
        return self.loss.activation(mean)


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
        """Which targets are impossible."""

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
    def log_likelihood(self, t: Array, mean: Array, dispersion: float = 1.0) -> Array:
        """ln p(t|μ, s), row by row.

        The sum is the `llf` of statsmodels if s is what it takes: one where it is fixed;
        Pearson's Σw(t - μ)²/V(μ) / (Σw - parameters) where not; and Σw(t - μ)² / Σw for a Gaussian
        with the identity link.
        """


class GaussianTarget(TargetFamily):
    """t has the density N(t|μ, s), V = 1."""

    name = "gaussian"
    domain = "any number"
    dispersion_fixed = False
    losses: ClassVar[dict[str, Loss]] = {
        "identity": SquaredLoss(),
        "log": PowerVarianceLoss(0, Log()),
        "reciprocal": PowerVarianceLoss(0, Reciprocal()),
    }

    def outside(self, t: Array) -> NDArray[np.bool_]:
        return np.isnan(t)

    def variance(self, mean: Array) -> Array:
        return np.ones_like(mean)

    @quiet
    def deviance(self, t: Array, mean: Array) -> Array:
        return _infinite_outside((t - mean) ** 2)

    @quiet
    def log_likelihood(self, t: Array, mean: Array, dispersion: float = 1.0) -> Array:
        return -((t - mean) ** 2 / dispersion + np.log(2 * np.pi * dispersion)) / 2


class BernoulliTarget(TargetFamily):
    """t is one with probability μ, V = μ(1 - μ); in between it is the share of ones in w trials."""

    name = "bernoulli"
    domain = "from zero to one"
    dispersion_fixed = True
    losses: ClassVar[dict[str, Loss]] = {
        name: BinaryLoss(link) for name, link in PROBABILITY_LINKS.items()
    }

    def outside(self, t: Array) -> NDArray[np.bool_]:
        return ~((t >= 0) & (t <= 1))

    def variance(self, mean: Array) -> Array:
        return mean * (1 - mean)

    def deviance(self, t: Array, mean: Array) -> Array:
        return _infinite_outside(2 * (divergence(t, mean) + divergence(1 - t, 1 - mean)))

    @quiet
    def log_likelihood(self, t: Array, mean: Array, dispersion: float = 1.0) -> Array:
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
    losses: ClassVar[dict[str, Loss]] = {
        "log": PowerVarianceLoss(1, Log()),
        "identity": PowerVarianceLoss(1, PositiveIdentity()),
    }

    def outside(self, t: Array) -> NDArray[np.bool_]:
        return ~(t >= 0)

    def variance(self, mean: Array) -> Array:
        return mean

    def deviance(self, t: Array, mean: Array) -> Array:
        return _infinite_outside(np.where(mean >= 0, 2 * divergence(t, mean), np.nan))

    @quiet
    def log_likelihood(self, t: Array, mean: Array, dispersion: float = 1.0) -> Array:
        found = xlogy(t, mean) - mean - gammaln(t + 1)
        return np.where(np.isposinf(mean), -np.inf, found)


class GammaTarget(TargetFamily):
    """t > 0 with V = μ²: the gamma density of shape 1/s and mean μ."""

    name = "gamma"
    domain = "more than zero"
    dispersion_fixed = False
    losses: ClassVar[dict[str, Loss]] = {
        "reciprocal": PowerVarianceLoss(2, Reciprocal()),
        "log": PowerVarianceLoss(2, Log()),
        "identity": PowerVarianceLoss(2, PositiveIdentity()),
    }

    def outside(self, t: Array) -> NDArray[np.bool_]:
        return ~(t > 0)

    @quiet
    def variance(self, mean: Array) -> Array:
        return mean**2

    @quiet
    def deviance(self, t: Array, mean: Array) -> Array:
        return _infinite_outside(np.where(mean >= 0, 2 * divergence(mean, t) / mean, np.nan))

    @quiet
    def log_likelihood(self, t: Array, mean: Array, dispersion: float = 1.0) -> Array:
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
    def log_likelihood(self, t: Array, mean: Array, dispersion: float = 1.0) -> Array:
        found = -np.log(mean) - np.where(t == 0, 0.0, t / mean)
        return np.where((mean == 0) & (t > 0), -np.inf, found)


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
    if not isinstance(family, str) or family not in GLM_FAMILIES:
        raise ParameterError(
            f"family={family!r} is not understood.",
            f"Use {either([*GLM_FAMILIES, 'categorical'])} ('bernoulli' is the binomial family; "
            "counts of groups are shares with sample_weight).",
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
