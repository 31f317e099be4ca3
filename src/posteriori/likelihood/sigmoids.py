"""Probability links with a closed form: logit, probit, cloglog and those of other noise (4.113)."""

import numpy as np
from scipy.special import (
    erfcx,
    expit,
    exprel,
    hyp2f1,
    log_expit,
    log_ndtr,
    logit,
    ndtr,
    ndtri,
    poch,
    stdtr,
    stdtrit,
)

from posteriori.likelihood.arithmetic import log_one_minus_exp, quiet, times
from posteriori.likelihood.link import ProbabilityLink, SymmetricLink
from posteriori.typing import Array

_FAR = -6.0
"""Below this the normal rate is had from a continued fraction."""

_TERMS = 20
"""So many terms of it give all digits of a double at 6, and beyond."""

_TINY = -30.0
"""Below this activation the square of eᵃ is nothing to it."""

_LARGE = 1e100
"""Numbers whose square is a double, with room to spare."""


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

    def log_bend(self, a: Array) -> Array:
        return expit(a) * expit(-a)  # (4.88)


class Probit(SymmetricLink):
    """F = Φ(a) = ½(1 + erf(a/√2)) (4.114).

    f/F is the inverse of Mills' ratio. Far below zero it is -a + 1/(-a + 2/(-a + 3/(...))), which
    keeps the digits of (f/F)(f/F + a), the second derivative, where the sum would lose them.

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

    def log_bend(self, a: Array) -> Array:
        rate = self.rate(a)
        excess = rate + a
        far = a < _FAR
        excess[far] = _mills_excess(-a[far])
        return times(rate, excess)


def _mills_excess(x: Array) -> Array:
    """φ(x)/Φ(-x) - x for x > 6, by its continued fraction from the bottom up."""
    fraction = x
    for k in range(_TERMS, 1, -1):
        fraction = x + k / fraction
    return 1 / fraction


class Cloglog(ProbabilityLink):
    """F = 1 - exp(-eᵃ), the distribution function of the least of many (Gumbel).

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
    def logs(self, a: Array) -> tuple[Array, Array]:
        u = np.exp(a)
        return np.where(a < _TINY, a - u / 2, log_one_minus_exp(-u)), -u

    @quiet
    def rates(self, a: Array) -> tuple[Array, Array]:
        u = np.exp(a)
        return 1 / exprel(u), u

    @quiet
    def bends(self, a: Array) -> tuple[Array, Array]:
        u = np.exp(a)
        rate = 1 / exprel(u)
        excess = np.where(u < 1, u / 2 + _coth_excess(u / 2), rate - 1 + u)
        return times(rate, excess), u


def _coth_excess(x: Array) -> Array:
    """x coth x - 1 for x up to a half, by its continued fraction."""
    square = x * x
    fraction: Array = np.full_like(x, 15.0)
    for odd in (13.0, 11.0, 9.0, 7.0, 5.0, 3.0):
        fraction = odd + square / fraction
    return square / fraction


class Loglog(ProbabilityLink):
    """F = exp(-e⁻ᵃ), the distribution function of the largest of many (Gumbel).

    It is 1 - F(-a) of `Cloglog`.
    """

    _mirror = Cloglog()

    @quiet
    def mean(self, a: Array) -> Array:
        return np.exp(-np.exp(-a))

    @quiet
    def activation(self, mean: Array) -> Array:
        return -np.log(-np.log(mean))

    def logs(self, a: Array) -> tuple[Array, Array]:
        first, second = self._mirror.logs(-a)
        return second, first

    def rates(self, a: Array) -> tuple[Array, Array]:
        fall, rise = self._mirror.rates(-a)
        return rise, fall

    def bends(self, a: Array) -> tuple[Array, Array]:
        fall, rise = self._mirror.bends(-a)
        return rise, fall


class Cauchit(SymmetricLink):
    """F = ½ + arctan(a)/π; its tails fall as 1/a, so that outliers count for little."""

    log_concave = False

    def mean(self, a: Array) -> Array:
        return np.arctan2(1.0, -a) / np.pi

    @quiet
    def activation(self, mean: Array) -> Array:
        return np.where(mean < 0.5, -1 / np.tan(np.pi * mean), 1 / np.tan(np.pi * (1.0 - mean)))

    def log_mean(self, a: Array) -> Array:
        return _log_of_either(self.mean(a), self.mean(-a))

    def rate(self, a: Array) -> Array:
        distance = np.hypot(1.0, a)
        return 1 / np.arctan2(1.0, -a) / distance / distance

    def log_bend(self, a: Array) -> Array:
        distance = np.hypot(1.0, a)
        rate = self.rate(a)
        return rate * (rate + 2 * (a / distance) / distance)


class Laplace(SymmetricLink):
    """F = ½eᵃ below zero and 1 - ½e⁻ᵃ above."""

    def mean(self, a: Array) -> Array:
        tail = np.exp(-abs(a)) / 2
        return np.where(a < 0, tail, 1 - tail)

    @quiet
    def activation(self, mean: Array) -> Array:
        return np.where(mean < 0.5, np.log(2 * mean), -np.log(2 * (1.0 - mean)))

    def log_mean(self, a: Array) -> Array:
        return np.where(a < 0, a - np.log(2.0), np.log1p(-np.exp(-abs(a)) / 2))

    def rate(self, a: Array) -> Array:
        tail = np.exp(-abs(a)) / 2
        return np.where(a < 0, 1.0, tail / (1 - tail))

    def log_bend(self, a: Array) -> Array:
        rate = self.rate(a)
        return np.where(a < 0, 0.0, rate * (rate + 1))


class Student(SymmetricLink):
    """Student's t with ν degrees of freedom.

    Below -1, f/F = ν / (|a| G) with G = ₂F₁((ν+1)/2, 1; ν/2+1; ν/(ν+a²)), a sum of positive terms,
    and ln F = ln f - ln f/F. The second derivative loses as many digits as the smaller of ν
    and a² has.
    """

    log_concave = False

    def __init__(self, freedom: float) -> None:
        self.freedom = freedom

    def mean(self, a: Array) -> Array:
        return stdtr(self.freedom, a)

    def activation(self, mean: Array) -> Array:
        return stdtrit(self.freedom, mean)

    @quiet
    def log_mean(self, a: Array) -> Array:
        found, far = np.empty_like(a), a < -1
        found[far] = self._log_density(a[far]) - np.log(self._far_rate(a[far]))
        found[~far] = _log_of_either(self.mean(a[~far]), self.mean(-a[~far]))
        return found

    @quiet
    def rate(self, a: Array) -> Array:
        found, far = np.empty_like(a), a < -1
        found[far] = self._far_rate(a[far])
        found[~far] = np.exp(self._log_density(a[~far])) / self.mean(a[~far])
        return found

    @quiet
    def log_bend(self, a: Array) -> Array:
        score = -(self.freedom + 1) / (self.freedom / a + a)
        rate = self.rate(a)
        return rate * (rate - score)

    def _far_rate(self, a: Array) -> Array:
        v = self.freedom
        return -v / (a * hyp2f1((v + 1) / 2, 1.0, v / 2 + 1, v / (v + a * a)))

    def _log_density(self, a: Array) -> Array:
        v = self.freedom
        far = 2 * np.log(abs(a)) - np.log(v)
        spread = np.where(abs(a) < _LARGE, np.log1p(a * a / v), far)
        return np.log(poch(v / 2, 0.5) / np.sqrt(v * np.pi)) - (v + 1) / 2 * spread


@quiet
def _log_of_either(mean: Array, complement: Array) -> Array:
    """ln F from the smaller of F and 1 - F, which has the more digits."""
    return np.where(mean < 0.5, np.log(mean), np.log1p(-complement))
