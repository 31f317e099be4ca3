"""Two classes by a noisy threshold (4.112): t = 1 where a exceeds θ, and θ has any distribution."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from posteriori.arguments import is_number
from posteriori.errors import ParameterError
from posteriori.likelihood.arithmetic import quiet, sharpened, times
from posteriori.likelihood.binary import BinaryLoss
from posteriori.likelihood.link import ProbabilityLink
from posteriori.likelihood.scipy_link import distribution_link
from posteriori.typing import Array

_ROUNDING = 1e-9
"""How far from one a sum of weights may be."""

_HALVINGS = 200
"""More than enough to bring two doubles of like size together."""


@dataclass(frozen=True)
class Mixture:
    """A mixture of SciPy distributions, or of their names, as in Figure 4.13.

    The weights sum to one. The activation function is F(a) = Σ_i w_i F_i(a) (4.113).

    >>> from scipy.stats import norm
    >>> two_bumps = Mixture([0.4, 0.6], [norm(-1.0, 0.5), norm(1.5, 1.0)])
    >>> cdf_link(two_bumps).mean(np.array([0.0])).round(4)
    array([0.431])
    """

    weights: Sequence[float]
    distributions: Sequence[Any]

    def __post_init__(self) -> None:
        weights, parts = self.weights, self.distributions
        if not (_is_list(weights) and _is_list(parts)):
            raise ParameterError(
                f"Mixture({weights!r}, {parts!r}) is not understood.",
                "Give a list of weights and a list of distributions.",
            )
        fair = all(is_number(weight) and 0 < weight < np.inf for weight in weights)
        if len(weights) != len(parts) or not fair:
            raise ParameterError(
                f"A mixture of {len(parts)} distributions has the weights {list(weights)}.",
                "Give one weight above zero for each.",
            )
        total = float(np.sum(weights))
        if abs(total - 1) > _ROUNDING:
            raise ParameterError(
                f"The weights of a mixture sum to {total:.6g}.", "Divide each by their sum."
            )


def _is_list(given: object) -> bool:
    if isinstance(given, np.ndarray):
        return given.ndim > 0
    return isinstance(given, Sequence) and not isinstance(given, str | bytes)


class MixtureLink(ProbabilityLink):
    """F = Σ_i w_i F_i.

    With the shares q_i = w_i F_i / F, (ln F)' is the mean of (ln F_i)' under q, and (ln F)'' the
    mean of (ln F_i)'' plus the variance of (ln F_i)', so that tails are as exact as in the parts.
    """

    log_concave = False

    def __init__(self, weights: Array, links: Sequence[ProbabilityLink]) -> None:
        self.weights, self.links = weights, links

    def mean(self, a: Array) -> Array:
        return self.weights @ [link.mean(a) for link in self.links]

    @quiet
    def activation(self, mean: Array) -> Array:
        """By halving the interval from the least to the largest activation among the parts."""
        ends = np.array([link.activation(mean) for link in self.links])
        low, high = least, most = ends.min(axis=0), ends.max(axis=0)
        for _ in range(_HALVINGS):
            middle = low + (high - low) / 2
            under = self.mean(middle) < mean
            low, high = np.where(under, middle, low), np.where(under, high, middle)
        return np.where(least == most, least, high)

    def logs(self, a: Array) -> tuple[Array, Array]:
        return self.logs_and_rates(a)[0]

    def rates(self, a: Array) -> tuple[Array, Array]:
        return self.logs_and_rates(a)[1]

    @quiet
    def logs_and_rates(self, a: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        (second, first), shares, rates = self._parts(a)
        rise, fall = times(shares, rates).sum(axis=0)
        return sharpened(second, first), (rise, fall)

    @quiet
    def bends(self, a: Array) -> tuple[Array, Array]:
        _, shares, rates = self._parts(a)
        spread = (rates - times(shares, rates).sum(axis=0)) ** 2
        bends = np.array([link.bends(a) for link in self.links])
        rise, fall = (times(shares, bends) - times(shares, spread)).sum(axis=0)
        return rise, fall

    def _parts(self, a: Array) -> tuple[Array, Array, Array]:
        """ln F and ln(1 - F) (2, n); the shares q_i and the rates of the parts (parts, 2, n)."""
        found = np.array([link.logs_and_rates(a) for link in self.links])
        logs, rates = found[:, 0] + np.log(self.weights)[:, None, None], found[:, 1]
        total = np.logaddexp.reduce(logs, axis=0)
        return total, np.nan_to_num(np.exp(logs - total)), rates


def cdf_link(noise: Any) -> ProbabilityLink:
    """The distribution function of a SciPy distribution or a `Mixture` as a link (4.113).

    >>> from scipy.stats import cauchy
    >>> cdf_link(cauchy).activation(np.array([0.25])).round(12)
    array([-1.])
    """
    if not isinstance(noise, Mixture):
        return distribution_link(noise)
    links = [distribution_link(part) for part in noise.distributions]
    return MixtureLink(np.asarray(noise.weights, dtype=np.float64), links)


class ThresholdLoss(BinaryLoss):
    """-t ln F(a) - (1 - t) ln(1 - F(a)), F the distribution function of the threshold (4.113).

    `noise` is a continuous SciPy distribution (frozen, with default arguments, or by name), or a
    `Mixture`.
    The value is infinite where the likelihood is zero, beyond the end of a bounded support.
    Normal, logistic, Cauchy, Laplace, both Gumbel and Student distributions and their mixtures
    are exact however far out; others as `ScipyLink` says.

    >>> from scipy.stats import cauchy, uniform
    >>> ThresholdLoss(cauchy()).value(np.array([0.0, -1e200]), np.array([1.0, 1.0]))
    array([  0.69314718, 461.66174848])
    >>> ThresholdLoss(uniform).value(np.array([0.5, -1.0]), np.array([1.0, 1.0]))
    array([0.69314718,        inf])
    """

    def __init__(self, noise: Any) -> None:
        super().__init__(cdf_link(noise))
        self.noise = noise
