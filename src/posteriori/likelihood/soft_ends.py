"""Distribution functions of bounded noise, with the kinks at the ends of the support rounded off.

Where the density jumps at an end of the support, ln F or ln(1 - F) has a kink there, and the
likelihood may be largest just at it, where no derivative vanishes. With

    h(a) = low + τ ln(1 + exp((a - low)/τ)),

and likewise at the other end, F(h(a)) is smooth, and F(a) as τ goes to zero.
"""

from collections.abc import Sequence

import numpy as np
from scipy.special import expit

from posteriori.likelihood.arithmetic import quiet, times
from posteriori.likelihood.domain import Domain
from posteriori.likelihood.link import ProbabilityLink
from posteriori.likelihood.scipy_link import ScipyLink
from posteriori.likelihood.threshold import MixtureLink
from posteriori.typing import Array


class SoftEnds(ProbabilityLink):
    """F(h(a)), h(a) being a but for a smooth turn of width τ at each finite end.

    >>> from scipy.stats import uniform
    >>> SoftEnds(ScipyLink(uniform()), 0.01).mean(np.array([-1.0, 0.0, 0.5])).round(4)
    array([0.    , 0.0069, 0.5   ])
    """

    log_concave = False

    def __init__(self, link: ScipyLink, width: float) -> None:
        self.link, self.width = link, width
        self.low, self.high = link.distribution.support()

    def mean(self, a: Array) -> Array:
        return self.link.mean(self._turned(a)[0])

    def activation(self, mean: Array) -> Array:
        return self.link.activation(mean)

    def logs(self, a: Array) -> tuple[Array, Array]:
        return self.link.logs(self._turned(a)[0])

    def rates(self, a: Array) -> tuple[Array, Array]:
        h, slope, _ = self._turned(a)
        rise, fall = self.link.rates(h)
        return _possible(times(slope, rise)), _possible(times(slope, fall))

    @quiet
    def bends(self, a: Array) -> tuple[Array, Array]:
        h, slope, bend = self._turned(a)
        rates, bends = self.link.rates(h), self.link.bends(h)
        rise, fall = (times(slope**2, inner) for inner in bends)
        return (
            _possible(rise - times(bend, rates[0])),
            _possible(fall + times(bend, rates[1])),
        )

    @quiet
    def _turned(self, a: Array) -> tuple[Array, Array, Array]:
        """h and its two derivatives."""
        h, slope, bend = a, np.ones_like(a), np.zeros_like(a)
        if self.low > -np.inf:
            x = (h - self.low) / self.width
            h, slope = self.low + self.width * np.logaddexp(0.0, x), expit(x)
            bend = slope * expit(-x) / self.width
        if self.high < np.inf:
            x = (self.high - h) / self.width
            turn = expit(x)
            bend = turn * bend - slope**2 * turn * expit(-x) / self.width
            h, slope = self.high - self.width * np.logaddexp(0.0, x), slope * turn
        return h, slope, bend


def _possible(derivative: Array) -> Array:
    """Zero where F or 1 - F is less than any double, and a label so impossible that none has it."""
    return np.where(np.isfinite(derivative), derivative, 0.0)


def softened(link: ProbabilityLink, width: float) -> ProbabilityLink:
    """The link with soft ends, of `width` times the interquartile range of the noise."""
    if isinstance(link, MixtureLink):
        return MixtureLink(link.weights, [softened(part, width) for part in link.links])
    if not isinstance(link, ScipyLink):
        return link
    return SoftEnds(link, width * quartile_range(link))


def quartile_range(link: ScipyLink) -> float:
    """The distance between the quartiles of the noise."""
    low, high = link.activation(np.array([0.25, 0.75]))
    return float(high - low)


def ends(link: ProbabilityLink) -> list[float]:
    """Where the density of the noise, or of a part of it, may jump."""
    return [end for part in _parts(link) for end in _support(part) if np.isfinite(end)]


def domain_of(link: ProbabilityLink) -> Domain:
    """Beyond which activations the distribution function is zero or one.

    >>> from scipy.stats import uniform
    >>> domain_of(ScipyLink(uniform(-1.0, 2.0)))
    Domain(low=-1.0, high=1.0, by_label=True)
    """
    spans = np.array([_support(part) for part in _parts(link)])
    return Domain(float(spans[:, 0].min()), float(spans[:, 1].max()), by_label=True)


def _parts(link: ProbabilityLink) -> Sequence[ProbabilityLink]:
    return link.links if isinstance(link, MixtureLink) else [link]


def _support(link: ProbabilityLink) -> tuple[float, float]:
    if not isinstance(link, ScipyLink):
        return -np.inf, np.inf
    low, high = link.distribution.support()
    return float(low), float(high)
