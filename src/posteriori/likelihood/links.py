"""Links (4.120): how a mean depends on one activation, μ = f(a), pointwise.

A mean F from zero to one is a probability, with f = F'. The likelihood of a label needs four
functions that stay exact where F or 1 - F underflow,

    ln F,   ln(1 - F),   (ln F)' = f/F,   -(ln(1 - F))' = f/(1 - F),

and the two second derivatives. Links from other distribution functions are in `cdf_links`.

>>> sorted(PROBABILITY_LINKS)
['cloglog', 'identity', 'log', 'logit', 'probit']
>>> Reciprocal().mean(np.array([4.0]))
array([0.25])
"""

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import erfcx, expit, exprel, log_expit, log_ndtr, logit, ndtr, ndtri

from posteriori.likelihood.log_arithmetic import log_one_minus_exp, quiet, times
from posteriori.typing import Array

Pair = tuple[Array, Array]
"""A function of F, and the same of 1 - F."""


class Domain(NamedTuple):
    """Activations from `low` to `high`."""

    low: float = -np.inf
    high: float = np.inf

    @property
    def is_bounded(self) -> bool:
        """Whether it ends anywhere."""
        return self.low > -np.inf or self.high < np.inf

    def restrict(self, a: Array) -> Array:
        """The activations, NaN outside the domain."""
        return np.where((a >= self.low) & (a <= self.high), a, np.nan)

    @property
    def words(self) -> str:
        """The domain in words.

        >>> Domain(0.0).words, Domain(high=0.0).words, Domain(0.0, 1.0).words
        ('above zero', 'below zero', 'from zero to 1')
        """
        low, high = (f"{end:g}" if end else "zero" for end in self)
        if np.isinf(self.high):
            return f"above {low}"
        return f"below {high}" if np.isinf(self.low) else f"from {low} to {high}"


class Link(ABC):
    """A mean as a function of the activation. Activations outside of `domain` have none."""

    domain: ClassVar[Domain] = Domain()

    @abstractmethod
    def mean(self, a: Array) -> Array:
        """μ = f(a), the activation function."""

    @abstractmethod
    def activation(self, mean: Array) -> Array:
        """The link itself: the a with that mean; not a number where there is none."""

    @abstractmethod
    def slope(self, a: Array) -> Array:
        """dμ/da."""

    @abstractmethod
    def second_derivative(self, a: Array) -> Array:
        """d²μ/da²."""


class PowerLink(Link):
    """A link with dμ/da = s μ^q: s = `sign` and q = `power`, so that d²μ/da² = q μ^(2q - 1)."""

    sign: ClassVar[float] = 1.0
    power: ClassVar[int]

    @quiet
    def slope(self, a: Array) -> Array:
        return self.sign * self.mean(a) ** self.power

    @quiet
    def second_derivative(self, a: Array) -> Array:
        if self.power == 0:
            return np.zeros_like(a)
        return self.power * self.mean(a) ** (2 * self.power - 1)


class Identity(PowerLink):
    """μ = a."""

    power = 0

    def mean(self, a: Array) -> Array:
        return a.copy()

    def activation(self, mean: Array) -> Array:
        return mean.copy()


class PositiveIdentity(Identity):
    """μ = a for a >= 0: the means of counts and waiting times."""

    domain = Domain(low=0.0)

    def mean(self, a: Array) -> Array:
        return self.domain.restrict(a)


class Log(PowerLink):
    """μ = eᵃ, the canonical link of counts."""

    power = 1

    @quiet
    def mean(self, a: Array) -> Array:
        return np.exp(a)

    @quiet
    def activation(self, mean: Array) -> Array:
        return np.log(mean)


class Reciprocal(PowerLink):
    """μ = 1/a for a > 0, the canonical link of waiting times.

    The natural parameter is -a. In 004 that is the activation itself, which then must be negative.
    """

    domain = Domain(low=0.0)
    sign, power = -1.0, 2

    @quiet
    def mean(self, a: Array) -> Array:
        return np.where(a > 0, 1 / a, np.nan)

    def activation(self, mean: Array) -> Array:
        return self.mean(mean)


class ProbabilityLink(Link):
    """A mean F from zero to one.

    `log_concave` says that ln F and ln(1 - F) both are, so that the loss is convex. Outside of
    `support` F is zero or one.
    """

    log_concave: bool = True
    support: Domain = Domain()

    @abstractmethod
    def logs(self, a: Array) -> Pair:
        """ln F and ln(1 - F)."""

    @abstractmethod
    def rates(self, a: Array) -> Pair:
        """(ln F)' = f/F and -(ln(1 - F))' = f/(1 - F), zero or more."""

    @abstractmethod
    def curvatures(self, a: Array) -> Pair:
        """-(ln F)'' and -(ln(1 - F))''."""

    def complement(self, a: Array) -> Array:
        """1 - F, with all its digits where F is close to one."""
        return np.exp(self.logs(a)[1])

    def slope(self, a: Array) -> Array:
        return times(self.mean(a), self.rates(a)[0])

    @quiet
    def second_derivative(self, a: Array) -> Array:
        return times(self.mean(a), self.rates(a)[0] ** 2 - self.curvatures(a)[0])


class SymmetricLink(ProbabilityLink):
    """F(-a) = 1 - F(a), so that the functions of F give those of 1 - F."""

    @abstractmethod
    def log_mean(self, a: Array) -> Array:
        """ln F."""

    @abstractmethod
    def rate(self, a: Array) -> Array:
        """f/F."""

    @abstractmethod
    def log_curvature(self, a: Array) -> Array:
        """-(ln F)''."""

    def complement(self, a: Array) -> Array:
        return self.mean(-a)

    def logs(self, a: Array) -> Pair:
        return self.log_mean(a), self.log_mean(-a)

    def rates(self, a: Array) -> Pair:
        return self.rate(a), self.rate(-a)

    def curvatures(self, a: Array) -> Pair:
        return self.log_curvature(a), self.log_curvature(-a)


class Logit(SymmetricLink):
    """F = σ(a) = 1/(1 + e⁻ᵃ) (4.59).

    >>> Logit().activation(np.array([0.25]))
    array([-1.09861229])
    """

    def mean(self, a: Array) -> Array:
        return expit(a)

    def activation(self, mean: Array) -> Array:
        return logit(mean)

    def log_mean(self, a: Array) -> Array:
        return log_expit(a)

    def rate(self, a: Array) -> Array:
        return expit(-a)

    def log_curvature(self, a: Array) -> Array:
        return expit(a) * expit(-a)  # (4.88)


class Probit(SymmetricLink):
    """F = Φ(a) = ½(1 + erf(a/√2)) (4.114).

    f/F = √(2/π) / erfcx(-a/√2), the inverse of Mills' ratio, is exact where Φ underflows. The
    second derivative (f/F)(f/F + a) loses digits far below zero: eight are left at -1e4.

    >>> Probit().rate(np.array([-1e4, 0.0, 1e4]))
    array([1.00000001e+04, 7.97884561e-01, 0.00000000e+00])
    """

    def mean(self, a: Array) -> Array:
        return ndtr(a)

    def activation(self, mean: Array) -> Array:
        return ndtri(mean)

    def log_mean(self, a: Array) -> Array:
        return log_ndtr(a)

    @quiet
    def rate(self, a: Array) -> Array:
        return np.sqrt(2 / np.pi) / erfcx(-a / np.sqrt(2))

    @quiet
    def log_curvature(self, a: Array) -> Array:
        rate = self.rate(a)
        return np.clip(times(rate, rate + a), 0.0, 1.0)


class Cloglog(ProbabilityLink):
    """F = 1 - exp(-eᵃ), the distribution function of the smallest of many (Gumbel).

    With u = eᵃ: ln(1 - F) = -u and f/F = u/(eᵘ - 1), both exact far out.

    >>> Cloglog().logs(np.array([-1e4]))
    (array([-10000.]), array([-0.]))
    """

    @quiet
    def mean(self, a: Array) -> Array:
        return -np.expm1(-np.exp(a))

    @quiet
    def activation(self, mean: Array) -> Array:
        return np.log(-np.log1p(-mean))

    @quiet
    def logs(self, a: Array) -> Pair:
        u = np.exp(a)
        return np.where(a < 0, a + np.log(exprel(-u)), np.log1p(-np.exp(-u))), -u

    @quiet
    def rates(self, a: Array) -> Pair:
        u = np.exp(a)
        return 1 / exprel(u), u

    @quiet
    def curvatures(self, a: Array) -> Pair:
        rise, u = self.rates(a)
        return np.maximum(times(rise, rise - 1 + u), 0.0), u


class ProbabilityIdentity(Identity, ProbabilityLink):
    """F = a, from zero to one."""

    domain = Domain(0.0, 1.0)

    @quiet
    def logs(self, a: Array) -> Pair:
        a = self.domain.restrict(a)
        return _impossible(np.log(a)), _impossible(np.log1p(-a))

    @quiet
    def rates(self, a: Array) -> Pair:
        a = self.domain.restrict(a)
        return 1 / a, 1 / (1 - a)

    @quiet
    def curvatures(self, a: Array) -> Pair:
        rise, fall = self.rates(a)
        return rise**2, fall**2


class ProbabilityLog(Log, ProbabilityLink):
    """F = eᵃ for a <= 0: relative risks."""

    domain = Domain(high=0.0)

    def logs(self, a: Array) -> Pair:
        a = self.domain.restrict(a)
        return _impossible(a), _impossible(log_one_minus_exp(a))

    @quiet
    def rates(self, a: Array) -> Pair:
        a = self.domain.restrict(a)
        return np.where(np.isnan(a), np.nan, 1.0), 1 / np.expm1(-a)

    @quiet
    def curvatures(self, a: Array) -> Pair:
        rise, fall = self.rates(a)
        return rise - 1.0, fall * (fall + 1)


def _impossible(log_probability: Array) -> Array:
    """Minus infinity for what is not a number: outside the domain no target is possible."""
    return np.where(np.isnan(log_probability), -np.inf, log_probability)


PROBABILITY_LINKS: dict[str, ProbabilityLink] = {
    "logit": Logit(),
    "probit": Probit(),
    "cloglog": Cloglog(),
    "log": ProbabilityLog(),
    "identity": ProbabilityIdentity(),
}
"""The links of a probability by name, with domains that no probability leaves."""
