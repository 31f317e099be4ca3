"""The links by name: how a mean depends on one activation (4.120).

The link of any other distribution function is `posteriori.likelihood.threshold.cdf_link`.

>>> sorted(LINKS)
['cloglog', 'identity', 'log', 'logit', 'probit', 'reciprocal']
>>> LINKS["reciprocal"].mean(np.array([4.0]))
array([0.25])
"""

import numpy as np

from posteriori.likelihood.arithmetic import log_one_minus_exp, quiet
from posteriori.likelihood.link import Link, ProbabilityLink
from posteriori.likelihood.sigmoids import Cloglog, Logit, Probit
from posteriori.typing import Array


class Identity(Link):
    """μ = a."""

    def mean(self, a: Array) -> Array:
        return a.copy()

    def activation(self, mean: Array) -> Array:
        return mean.copy()

    def slope(self, a: Array) -> Array:
        return np.ones_like(a)

    def bend(self, a: Array) -> Array:
        return np.zeros_like(a)


class PositiveIdentity(Identity):
    """μ = a for a >= 0: the means of counts and waiting times."""

    domain = (0.0, np.inf)


class Log(Link):
    """μ = eᵃ, the canonical link of counts."""

    @quiet
    def mean(self, a: Array) -> Array:
        return np.exp(a)

    @quiet
    def activation(self, mean: Array) -> Array:
        return np.log(mean)

    def slope(self, a: Array) -> Array:
        return self.mean(a)

    def bend(self, a: Array) -> Array:
        return self.mean(a)


class Reciprocal(Link):
    """μ = 1/a for a > 0, the canonical link of waiting times.

    The natural parameter is -a. In 004 that is the activation itself, which then must be negative.
    """

    domain = (0.0, np.inf)

    @quiet
    def mean(self, a: Array) -> Array:
        return 1 / positive(a)

    @quiet
    def activation(self, mean: Array) -> Array:
        return 1 / positive(mean)

    @quiet
    def slope(self, a: Array) -> Array:
        return -1 / positive(a) ** 2

    @quiet
    def bend(self, a: Array) -> Array:
        return 2 / positive(a) ** 3


class ProbabilityIdentity(Identity, ProbabilityLink):
    """F = a, from zero to one."""

    domain = (0.0, 1.0)

    @quiet
    def logs(self, a: Array) -> tuple[Array, Array]:
        a = _between(a, 0.0, 1.0)
        return _impossible(np.log(a)), _impossible(np.log1p(-a))

    @quiet
    def rates(self, a: Array) -> tuple[Array, Array]:
        a = _between(a, 0.0, 1.0)
        return 1 / a, 1 / (1 - a)

    @quiet
    def bends(self, a: Array) -> tuple[Array, Array]:
        rise, fall = self.rates(a)
        return rise**2, fall**2


class ProbabilityLog(Log, ProbabilityLink):
    """F = eᵃ for a <= 0: relative risks."""

    domain = (-np.inf, 0.0)

    def logs(self, a: Array) -> tuple[Array, Array]:
        a = _between(a, -np.inf, 0.0)
        return _impossible(a), _impossible(log_one_minus_exp(a))

    @quiet
    def rates(self, a: Array) -> tuple[Array, Array]:
        a = _between(a, -np.inf, 0.0)
        return np.where(np.isnan(a), np.nan, 1.0), 1 / np.expm1(-a)

    @quiet
    def bends(self, a: Array) -> tuple[Array, Array]:
        rise, fall = self.rates(a)
        return rise - 1.0, fall * (fall + 1)


def positive(a: Array) -> Array:
    """Not a number where a is zero or less, so that what follows from it is not one either."""
    return np.where(a > 0, a, np.nan)


def _between(a: Array, low: float, high: float) -> Array:
    return np.where((a >= low) & (a <= high), a, np.nan)


def _impossible(log_probability: Array) -> Array:
    """Minus infinity for what is not a number: outside the domain no target is possible."""
    return np.where(np.isnan(log_probability), -np.inf, log_probability)


_SIGMOIDS: dict[str, ProbabilityLink] = {
    "logit": Logit(),
    "probit": Probit(),
    "cloglog": Cloglog(),
}

LINKS: dict[str, Link] = {
    **_SIGMOIDS,
    "log": Log(),
    "identity": Identity(),
    "reciprocal": Reciprocal(),
}
"""All links by name."""

PROBABILITY_LINKS: dict[str, ProbabilityLink] = {
    **_SIGMOIDS,
    "log": ProbabilityLog(),
    "identity": ProbabilityIdentity(),
}
"""Those that a probability can have, with their domain cut down to it."""
