"""Distribution functions as links (4.113): label 1 where a exceeds a threshold with any noise.

The noise is a continuous SciPy distribution or a `Mixture`. SciPy gives ln F, ln(1 - F) and ln f,
as far out as its own functions reach; beyond, a label has probability zero and an infinite loss.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from scipy import stats
from scipy.special import logsumexp

from posteriori.arguments import is_number
from posteriori.errors import ParameterError
from posteriori.likelihood.links import Cloglog, Domain, Logit, Pair, ProbabilityLink, Probit
from posteriori.likelihood.log_arithmetic import log_pair, quiet, times
from posteriori.typing import Array

_ROUNDING = 1e-9
"""How far from one a sum of weights may be."""

_HALVINGS = 200
"""More than enough to bring two doubles of like size together."""

_EIGHTH = np.array([4 / 5, -1 / 5, 4 / 105, -1 / 280])
"""Weights of the central difference of eighth order, at 1, 2, 3 and 4 steps."""

_STEP = 0.02
"""A step as a part of the length on which the density changes."""


@dataclass(frozen=True)
class Mixture:
    """A mixture of SciPy distributions, or of their names, as in Figure 4.13.

    The weights sum to one. The activation function is F(a) = Σ_i w_i F_i(a) (4.113).

    >>> from scipy.stats import norm
    >>> two_bumps = Mixture([0.4, 0.6], [norm(-1.0, 0.5), norm(1.5, 1.0)])
    >>> two_bumps.cdf(0.0).round(4), two_bumps.pdf([0.0, 1.0]).round(4)
    (np.float64(0.431), array([0.1209, 0.2113]))
    """

    weights: Sequence[float]
    distributions: Sequence[Any]

    def __post_init__(self) -> None:
        weights, n = np.atleast_1d(self.weights).tolist(), len(self.distributions)
        positive = all(is_number(weight) and weight > 0 for weight in weights)
        if len(weights) != n or not positive or abs(sum(weights) - 1) > _ROUNDING:
            raise ParameterError(
                f"A mixture of {n} distributions has the weights {weights}.",
                "Give one weight above zero for each, with a sum of 1.",
            )

    def pdf(self, x: Any) -> Any:
        """The density, Σ_i w_i p_i(x)."""
        return sum(w * _freeze(d).pdf(x) for w, d in self._parts())

    def cdf(self, x: Any) -> Any:
        """The distribution function, Σ_i w_i F_i(x) (4.113)."""
        return sum(w * _freeze(d).cdf(x) for w, d in self._parts())

    def _parts(self) -> Any:
        return zip(self.weights, self.distributions, strict=True)


def cdf_link(noise: Any) -> ProbabilityLink:
    """The distribution function of a SciPy distribution or a `Mixture` as a link (4.113).

    A distribution is frozen, has default arguments, or is given by name.

    >>> from scipy.stats import cauchy, norm
    >>> cdf_link(cauchy).activation(np.array([0.25])).round(12)
    array([-1.])
    >>> cdf_link(norm(2.0, 3.0)).mean(np.array([2.0]))
    array([0.5])
    """
    if isinstance(noise, Mixture):
        return NoiseLink(noise.weights, [_freeze(part) for part in noise.distributions])
    frozen = _freeze(noise)
    has_default_arguments = not (frozen.args or frozen.kwds)
    if has_default_arguments and frozen.dist.name in _CLOSED_FORMS:
        return _CLOSED_FORMS[frozen.dist.name]
    return NoiseLink([1.0], [frozen])


_CLOSED_FORMS: dict[str, ProbabilityLink] = {
    "norm": Probit(),
    "logistic": Logit(),
    "gumbel_l": Cloglog(),
}
"""Links of standard distributions, by SciPy's name."""


class NoiseLink(ProbabilityLink):
    """F = Σ_i w_i F_i of frozen SciPy distributions, one or more.

    Second derivatives need the slope of ln f. It is a central difference of eighth order, with a
    step of 1/50 of the smallest interquartile range, or near an end of the support of the distance
    to it. Where ln f is smooth the slope is good to about ten digits of the largest terms; across
    a kink it is an average of both sides.
    """

    log_concave = False

    def __init__(self, weights: Sequence[float], distributions: Sequence[Any]) -> None:
        self.log_weights, self.distributions = np.log(weights), distributions
        low, high = zip(*(each.support() for each in distributions), strict=True)
        self.support = Domain(float(min(low)), float(max(high)))
        quartiles = [each.ppf([0.25, 0.75]) for each in distributions]
        self._step = _STEP * float(np.diff(quartiles).min())

    def mean(self, a: Array) -> Array:
        return np.exp(self.logs(a)[0])

    @quiet
    def activation(self, mean: Array) -> Array:
        """By halving the interval from the least to the largest activation among the parts."""
        ends = np.array([each.ppf(mean) for each in self.distributions])
        low, high = least, most = ends.min(axis=0), ends.max(axis=0)
        for _ in range(_HALVINGS if len(ends) > 1 else 0):
            middle = low + (high - low) / 2
            under = self.mean(middle) < mean
            low, high = np.where(under, middle, low), np.where(under, high, middle)
        return np.where(least == most, least, high)

    @quiet
    def logs(self, a: Array) -> Pair:
        return log_pair(self._sum("logcdf", a), self._sum("logsf", a))

    @quiet
    def rates(self, a: Array) -> Pair:
        logs, log_density = self.logs(a), self._log_density(a)
        rise, fall = (np.where(np.isinf(p), 0.0, np.exp(log_density - p)) for p in logs)
        return rise, fall

    @quiet
    def curvatures(self, a: Array) -> Pair:
        rise, fall = self.rates(a)
        room = np.minimum(a - self.support.low, self.support.high - a)
        step = np.minimum(self._step, _STEP * room)
        places = np.arange(1.0, 5.0)[:, None] * step
        change = self._log_density(a + places) - self._log_density(a - places)
        slope = np.where(room > 0, _EIGHTH @ change / step, 0.0)  # f'/f
        return times(rise, rise - slope), times(fall, fall + slope)

    def _log_density(self, a: Array) -> Array:
        return self._sum("logpdf", a)

    def _sum(self, function: str, a: Array) -> Array:
        """ln Σ_i w_i exp(g_i(a)) of a function g of the distributions."""
        each = [getattr(part, function)(a) for part in self.distributions]
        if len(each) == 1:
            return cast(Array, each[0])
        weights = self.log_weights.reshape(-1, *np.ones(a.ndim, dtype=int))
        return cast(Array, logsumexp(weights + each, axis=0))


def _freeze(distribution: Any) -> Any:
    """The distribution with its arguments; an error where it is not one, or does not exist."""
    found: Any = distribution
    if isinstance(found, str):
        found = getattr(stats, found, None)
    try:
        found = found() if isinstance(found, stats.rv_continuous) else found
        median = found.median() if isinstance(found.dist, stats.rv_continuous) else np.nan
    except (AttributeError, TypeError):  # another object, or arguments are missing
        median = np.nan
    if np.ndim(median) > 0 or np.isnan(median):
        name = getattr(getattr(found, "dist", found), "name", distribution)
        raise ParameterError(
            f"noise={name!r} is not a continuous distribution of SciPy, or needs other arguments.",
            "Use a name such as 'norm', 'cauchy' or 'gumbel_r', or a distribution with its "
            "arguments, such as scipy.stats.t(3).",
        )
    return found
