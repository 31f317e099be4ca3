"""Targets that are numbers: -ln p(t|a) of Gaussian, Poisson and gamma targets, link by link.

Up to what does not depend on a, and with dispersion one,

    Gaussian ½(t - μ)²,   Poisson μ - t ln μ,   gamma ln μ + t/μ

with μ = a, eᵃ or 1/a. Each combination is written out, so that no digit is lost to terms that
cancel. Outside its domain a value is infinite and its derivatives are not numbers.
"""

from typing import ClassVar

import numpy as np
from scipy.special import gammaln, xlogy

from posteriori.likelihood.arithmetic import quiet, times
from posteriori.likelihood.link import Link
from posteriori.likelihood.links import Identity, Log, Reciprocal, positive
from posteriori.likelihood.loss import Loss
from posteriori.typing import Array


class RealLoss(Loss):
    """A loss whose mean is that of its `link`."""

    link: ClassVar[Link]

    def mean(self, a: Array) -> Array:
        return self.link.mean(a)

    def activation(self, mean: Array) -> Array:
        return self.link.activation(mean)


class _GaussianLoss(RealLoss):
    """½(t - μ)²."""

    @quiet
    def value(self, a: Array, t: Array) -> Array:
        return _infinite_outside((t - self.mean(a)) ** 2 / 2)

    def constant(self, t: Array) -> Array:
        return np.full(len(t), np.log(2 * np.pi) / 2)


class GaussianIdentityLoss(_GaussianLoss):
    """½(t - a)²: least squares (4.93).

    >>> GaussianIdentityLoss().gradient(np.array([3.0]), np.array([1.0]))
    array([2.])
    """

    link = Identity()

    @quiet
    def gradient(self, a: Array, t: Array) -> Array:
        return a - t

    def curvature(self, a: Array, t: Array) -> Array:
        return self.information(a)

    def information(self, a: Array) -> Array:
        return np.ones_like(a)

    def information_slope(self, a: Array) -> Array:
        return np.zeros_like(a)


class GaussianLogLoss(_GaussianLoss):
    """½(t - eᵃ)²."""

    link = Log()
    canonical = convex = False

    @quiet
    def gradient(self, a: Array, t: Array) -> Array:
        mean = np.exp(a)
        return mean * (mean - t)

    @quiet
    def curvature(self, a: Array, t: Array) -> Array:
        mean = np.exp(a)
        return mean * (2 * mean - t)

    @quiet
    def information(self, a: Array) -> Array:
        return np.exp(2 * a)

    @quiet
    def information_slope(self, a: Array) -> Array:
        return 2 * np.exp(2 * a)


class GaussianReciprocalLoss(_GaussianLoss):
    """½(t - 1/a)² for a > 0."""

    link = Reciprocal()
    canonical = convex = False

    @quiet
    def gradient(self, a: Array, t: Array) -> Array:
        mean = self.mean(a)
        return mean**2 * (t - mean)

    @quiet
    def curvature(self, a: Array, t: Array) -> Array:
        mean = self.mean(a)
        return mean**3 * (3 * mean - 2 * t)

    @quiet
    def information(self, a: Array) -> Array:
        return self.mean(a) ** 4

    @quiet
    def information_slope(self, a: Array) -> Array:
        return -4 * self.mean(a) ** 5


class _PoissonLoss(RealLoss):
    """μ - t ln μ."""

    def constant(self, t: Array) -> Array:
        return gammaln(t + 1)


class PoissonLogLoss(_PoissonLoss):
    """eᵃ - ta: counts, with their canonical link.

    >>> PoissonLogLoss().value(np.array([0.0, 1e4]), np.array([2.0, 1.0]))
    array([ 1., inf])
    """

    link = Log()
    log_power = 1.0

    @quiet
    def value(self, a: Array, t: Array) -> Array:
        mean = np.exp(a)
        return np.where(np.isinf(mean), np.inf, mean - t * a)

    @quiet
    def gradient(self, a: Array, t: Array) -> Array:
        return np.exp(a) - t

    def curvature(self, a: Array, t: Array) -> Array:
        return self.information(a)

    @quiet
    def information(self, a: Array) -> Array:
        return np.exp(a)

    def information_slope(self, a: Array) -> Array:
        return self.information(a)

    @quiet
    def sum_and_gradient(self, a: Array, t: Array, weight: Array | None) -> tuple[float, Array]:
        gradient = np.exp(a)
        a *= t
        value = np.where(np.isinf(gradient), np.inf, gradient - a)
        gradient -= t
        if weight is None:
            return float(value.sum()), gradient
        gradient *= weight
        return float(weight @ value), gradient


class PoissonIdentityLoss(_PoissonLoss):
    """a - t ln a for a > 0, and for a = 0 where t is."""

    link = Identity()
    canonical = False

    @quiet
    def value(self, a: Array, t: Array) -> Array:
        return np.where(a >= 0, a - xlogy(t, a), np.inf)

    @quiet
    def gradient(self, a: Array, t: Array) -> Array:
        return np.where(a >= 0, 1 - times(t, 1 / a), np.nan)

    @quiet
    def curvature(self, a: Array, t: Array) -> Array:
        return np.where(a >= 0, times(t, 1 / a / a), np.nan)

    @quiet
    def information(self, a: Array) -> Array:
        return 1 / positive(a)

    @quiet
    def information_slope(self, a: Array) -> Array:
        return -1 / positive(a) ** 2


class GammaReciprocalLoss(RealLoss):
    """ta - ln a for a > 0: waiting times, with their canonical link.

    >>> GammaReciprocalLoss().value(np.array([2.0, -2.0]), np.array([3.0, 3.0]))
    array([5.30685282,        inf])
    """

    link = Reciprocal()

    @quiet
    def value(self, a: Array, t: Array) -> Array:
        return _infinite_outside(t * a - np.log(positive(a)))

    @quiet
    def gradient(self, a: Array, t: Array) -> Array:
        return t - 1 / positive(a)

    def curvature(self, a: Array, t: Array) -> Array:
        return self.information(a)

    @quiet
    def information(self, a: Array) -> Array:
        return 1 / positive(a) ** 2

    @quiet
    def information_slope(self, a: Array) -> Array:
        return -2 / positive(a) ** 3


class GammaLogLoss(RealLoss):
    """a + te⁻ᵃ: waiting times whose logarithm is linear."""

    link = Log()
    canonical = False
    log_power = 2.0

    @quiet
    def value(self, a: Array, t: Array) -> Array:
        return a + times(t, np.exp(-a))

    @quiet
    def gradient(self, a: Array, t: Array) -> Array:
        return 1 - times(t, np.exp(-a))

    @quiet
    def curvature(self, a: Array, t: Array) -> Array:
        return times(t, np.exp(-a))

    def information(self, a: Array) -> Array:
        return np.ones_like(a)

    def information_slope(self, a: Array) -> Array:
        return np.zeros_like(a)

    @quiet
    def sum_and_gradient(self, a: Array, t: Array, weight: Array | None) -> tuple[float, Array]:
        ratio = times(t, np.exp(-a))
        a += ratio
        gradient = np.subtract(1, ratio, out=ratio)
        if weight is None:
            return float(a.sum()), gradient
        gradient *= weight
        return float(weight @ a), gradient


class GammaIdentityLoss(RealLoss):
    """ln a + t/a for a > 0."""

    link = Identity()
    canonical = convex = False

    @quiet
    def value(self, a: Array, t: Array) -> Array:
        a = positive(a)
        return _infinite_outside(np.log(a) + t / a)

    @quiet
    def gradient(self, a: Array, t: Array) -> Array:
        a = positive(a)
        return (1 - t / a) / a

    @quiet
    def curvature(self, a: Array, t: Array) -> Array:
        a = positive(a)
        return (2 * t / a - 1) / a / a

    @quiet
    def information(self, a: Array) -> Array:
        return 1 / positive(a) ** 2

    @quiet
    def information_slope(self, a: Array) -> Array:
        return -2 / positive(a) ** 3


def _infinite_outside(value: Array) -> Array:
    return np.where(np.isnan(value), np.inf, value)
