"""Two classes by any probability link: the likelihood of soft or hard labels (4.89), (4.111)."""

from posteriori.likelihood.arithmetic import quiet, times
from posteriori.likelihood.link import ProbabilityLink, SymmetricLink
from posteriori.likelihood.loss import Loss
from posteriori.likelihood.sigmoids import Logit
from posteriori.typing import Array


class BinaryLoss(Loss):
    """-t ln F(a) - (1 - t) ln(1 - F(a)) for t from zero to one.

    With h = f/F and k = f/(1 - F) the derivative is (1 - t)k - th. The expected second derivative
    is f²/(F(1 - F)) = hk, whose own derivative follows from h' and k'. A label given as the
    probability of the second class is what exercise 4.16 asks for.

    >>> import numpy as np
    >>> from posteriori.likelihood.sigmoids import Cloglog
    >>> BinaryLoss(Cloglog()).value(np.array([-1e4, 2.0]), np.array([1.0, 0.0]))
    array([1.0000000e+04, 7.3890561e+00])
    """

    def __init__(self, link: ProbabilityLink) -> None:
        self.link = link
        self.convex = link.log_concave
        self.canonical = isinstance(link, Logit)

    @quiet
    def value(self, a: Array, t: Array) -> Array:
        return _value(self.link.logs(a), t)

    @quiet
    def gradient(self, a: Array, t: Array) -> Array:
        return _gradient(self.link.rates(a), t)

    @quiet
    def curvature(self, a: Array, t: Array) -> Array:
        rise, fall = self.link.bends(a)
        return times(t, rise) + times(1 - t, fall)

    def information(self, a: Array) -> Array:
        return times(*self.link.rates(a))

    @quiet
    def information_slope(self, a: Array) -> Array:
        (rise, fall), (rise_bend, fall_bend) = self.link.rates(a), self.link.bends(a)
        return times(rise, fall_bend) - times(rise_bend, fall)

    def mean(self, a: Array) -> Array:
        return self.link.mean(a)

    def activation(self, mean: Array) -> Array:
        return self.link.activation(mean)

    @quiet
    def sum_and_gradient(self, a: Array, t: Array, weight: Array | None) -> tuple[float, Array]:
        if isinstance(self.link, SymmetricLink) and hard(t):
            sign = 2 * t - 1
            a *= sign
            return weighted(-self.link.log_mean(a), -sign * self.link.rate(a), weight)
        logs, rates = self.link.logs_and_rates(a)
        return weighted(_value(logs, t), _gradient(rates, t), weight)


def _value(logs: tuple[Array, Array], t: Array) -> Array:
    second, first = logs
    return -(times(t, second) + times(1 - t, first))


def _gradient(rates: tuple[Array, Array], t: Array) -> Array:
    rise, fall = rates
    return times(1 - t, fall) - times(t, rise)


def weighted(value: Array, gradient: Array, weight: Array | None) -> tuple[float, Array]:
    """Σ w·value and w·gradient."""
    if weight is None:
        return float(value.sum()), gradient
    return float(weight @ value), weight * gradient


def hard(t: Array) -> bool:
    """Whether every label is exactly zero or one.

    >>> import numpy as np
    >>> hard(np.array([0.0, 1.0])), hard(np.array([0.0, 0.9]))
    (True, False)
    """
    return bool((abs(t - 0.5) == 0.5).all())
