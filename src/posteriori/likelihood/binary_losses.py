"""Two classes (4.87)-(4.90), (4.111): the likelihood of hard or soft labels by any link.

Conventions: t from zero to one is the probability of the second class, which is what exercise
4.16 asks for; `SignedLogisticLoss` has t = -1 or +1.
"""

import numpy as np
from scipy.special import expit, log_expit

from posteriori.likelihood.links import Logit, Pair, ProbabilityLink, SymmetricLink
from posteriori.likelihood.log_arithmetic import quiet, sum_of_logs, times
from posteriori.likelihood.loss import Loss, weighted_sum
from posteriori.typing import Array

_ENOUGH = 1e-3
"""A mean loss above this loses no digit that counts to rounding of the probabilities."""


class BinaryLoss(Loss):
    """-t ln F(a) - (1 - t) ln(1 - F(a)) for t from zero to one.

    With h = f/F and k = f/(1 - F) the derivative is (1 - t)k - th. The expected second derivative
    is f²/(F(1 - F)) = hk, whose own derivative follows from h' and k'. Beyond the end of a bounded
    support the likelihood may be zero, and the value infinite.

    >>> from posteriori.likelihood.cdf_links import cdf_link
    >>> from posteriori.likelihood.links import Cloglog
    >>> BinaryLoss(Cloglog()).value(np.array([-1e4, 2.0]), np.array([1.0, 0.0]))
    array([1.0000000e+04, 7.3890561e+00])
    >>> BinaryLoss(cdf_link("uniform")).value(np.array([0.5, -1.0]), np.array([1.0, 1.0]))
    array([0.69314718,        inf])
    """

    def __init__(self, link: ProbabilityLink) -> None:
        self.link = link
        self.convex = link.log_concave
        self.canonical = isinstance(link, Logit)

    @quiet
    def value(self, a: Array, t: Array) -> Array:
        second, first = self.link.logs(a)
        return -(times(t, second) + times(1 - t, first))

    @quiet
    def gradient(self, a: Array, t: Array) -> Array:
        rise, fall = self.link.rates(a)
        return times(1 - t, fall) - times(t, rise)

    @quiet
    def curvature(self, a: Array, t: Array) -> Array:
        if isinstance(self.link, SymmetricLink) and hard(t):
            return self.link.log_curvature(a * (2 * t - 1))
        rise, fall = self.link.curvatures(a)
        return times(t, rise) + times(1 - t, fall)

    def information(self, a: Array) -> Array:
        return times(*self.link.rates(a))

    @quiet
    def information_slope(self, a: Array) -> Array:
        (rise, fall), (rise_slope, fall_slope) = self.link.rates(a), self.link.curvatures(a)
        return times(rise, fall_slope) - times(rise_slope, fall)

    def mean(self, a: Array) -> Array:
        return self.link.mean(a)

    def activation(self, mean: Array) -> Array:
        return self.link.activation(mean)

    @quiet
    def sum_and_gradient(self, a: Array, t: Array, weight: Array | None) -> tuple[float, Array]:
        if isinstance(self.link, SymmetricLink) and hard(t):
            sign = 2 * t - 1
            a *= sign
            return weighted_sum(-self.link.log_mean(a), -sign * self.link.rate(a), weight)
        return super().sum_and_gradient(a, t, weight)


def hard(t: Array) -> bool:
    """Whether every label is exactly zero or one.

    >>> hard(np.array([0.0, 1.0])), hard(np.array([0.0, 0.9]))
    (True, False)
    """
    return bool((abs(t - 0.5) == 0.5).all())


class LogisticLoss(BinaryLoss):
    """-t ln σ(a) - (1 - t) ln(1 - σ(a)) = ln(1 + eᵃ) - ta, for t from zero to one (4.90).

    The derivative is σ(a) - t (4.91), the curvature σ(a)(1 - σ(a)) (4.97).

    >>> LogisticLoss().value(np.array([0.0, 800.0]), np.array([1.0, 0.0])).round(6)
    array([6.93147e-01, 8.00000e+02])
    """

    def __init__(self) -> None:
        super().__init__(Logit())

    def curvature(self, a: Array, t: Array) -> Array:
        return self.information(a)

    def information(self, a: Array) -> Array:
        e = np.exp(-abs(a))
        return e / np.square(1 + e)


class SignedLogisticLoss(LogisticLoss):
    """The same where t is -1 or +1 for the two classes: ln(1 + exp(-ta)).

    The probability of the observed label gives both value and gradient.
    """

    def value(self, a: Array, t: Array) -> Array:
        return self.value_and_gradient(a, t)[0]

    def gradient(self, a: Array, t: Array) -> Array:
        return -t * expit(-a * t)

    def mean(self, a: Array) -> Array:
        return np.tanh(a / 2)

    def activation(self, mean: Array) -> Array:
        return 2.0 * np.arctanh(mean)

    def value_and_gradient(self, a: Array, t: Array) -> tuple[Array, Array]:
        margin = a * t
        e = np.exp(-abs(margin))
        value = np.log1p(e) - np.minimum(margin, 0.0)
        return value, -t * np.where(margin > 0, e, 1.0) / (1 + e)

    def sum_and_gradient(self, a: Array, t: Array, weight: Array | None) -> tuple[float, Array]:
        a *= t
        p = expit(a)
        total = -sum_of_logs(p) if weight is None else np.inf
        if not _ENOUGH * len(p) < total < np.inf:
            value = -log_expit(a)
            total = float(value.sum() if weight is None else weight @ value)
        p -= 1.0
        p *= t
        if weight is not None:
            p *= weight
        return total, p


class NoisyLogit(ProbabilityLink):
    """p(t = 1|a) = (1 - ε₁)σ(a) + ε₀(1 - σ(a)) (4.117): labels that may be wrong.

    Of the rows that are of the first class, a share ε₀ is labelled second; of those of the second,
    a share ε₁ is labelled first. Given its label t, a row is truly of the second class with
    probability σ(a + c_t), where c₁ = ln (1 - ε₁)/ε₀ and c₀ = ln ε₁/(1 - ε₀). The derivative of
    ln p(t|a) is σ(a + c_t) - σ(a) = (1 - exp(-c_t)) σ(a + c_t) σ(-a), where nothing cancels.
    """

    @quiet
    def __init__(self, flip_first: float, flip_second: float) -> None:
        self.flip_first, self.flip_second = flip_first, flip_second
        self.log_concave = flip_first == flip_second == 0
        self._log_flip_first, self._log_flip_second = np.log(flip_first), np.log(flip_second)
        self._log_keep_first, self._log_keep_second = np.log1p(-flip_first), np.log1p(-flip_second)
        self.shift_second = self._log_keep_second - self._log_flip_first  # c₁
        self.shift_first = self._log_flip_second - self._log_keep_first  # c₀

    def mean(self, a: Array) -> Array:
        return (1 - self.flip_second) * expit(a) + self.flip_first * expit(-a)

    @quiet
    def activation(self, mean: Array) -> Array:
        return np.log(mean - self.flip_first) - np.log(1 - self.flip_second - mean)

    @quiet
    def logs(self, a: Array) -> Pair:
        second, first = log_expit(a), log_expit(-a)
        return (
            np.logaddexp(self._log_keep_second + second, self._log_flip_first + first),
            np.logaddexp(self._log_flip_second + second, self._log_keep_first + first),
        )

    def rates(self, a: Array) -> Pair:
        second, first = self.shift_second, self.shift_first
        return (
            -np.expm1(-second) * expit(a + second) * expit(-a),
            -np.expm1(first) * expit(a) * expit(-a - first),
        )

    def curvatures(self, a: Array) -> Pair:
        rise, fall = self.rates(a)
        return (
            rise * (expit(a) - expit(-a - self.shift_second)),
            fall * (expit(-a) - expit(a + self.shift_first)),
        )


class NoisyLogisticLoss(BinaryLoss):
    """-t ln p(t = 1|a) - (1 - t) ln p(t = 0|a), where labels are flipped with known probabilities.

    `flip_first` = ε₀ is the probability that a row of the first class is labelled second,
    `flip_second` = ε₁ that of the reverse. The loss of a row far on the wrong side is -ln ε and
    no more, so that outliers have no influence.

    >>> loss = NoisyLogisticLoss(0.1, 0.2)
    >>> loss.value(np.array([-1e4, 1e4]), np.array([1.0, 0.0])) == -np.log([0.1, 0.2])
    array([ True,  True])
    >>> loss.wrong_label_probability(np.array([0.0]), np.array([1.0]))
    array([0.11111111])
    """

    link: NoisyLogit

    def __init__(self, flip_first: float, flip_second: float) -> None:
        super().__init__(NoisyLogit(flip_first, flip_second))

    @property
    def transition(self) -> Array:
        """The probabilities (2, 2) that a row of each class is labelled as each."""
        first, second = self.link.flip_first, self.link.flip_second
        return np.array([[1 - first, first], [second, 1 - second]])

    def wrong_label_probability(self, a: Array, t: Array) -> Array:
        """p(the true class is the other one | a, t); for a soft label its average over t."""
        return t * expit(-a - self.link.shift_second) + (1 - t) * expit(a + self.link.shift_first)
