"""Distribution functions as links (4.113): label 1 where a exceeds a threshold with any noise.

The noise is a continuous SciPy distribution or a `Mixture`. SciPy gives ln F, ln(1 - F) and ln f,
as far out as its own functions reach; beyond, a label has probability zero and an infinite loss.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

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

_LOG_DENSITY_SLOPES: dict[str, Callable[..., Array]] = {
    "cauchy": lambda z: -2 / (z + 1 / z),
    "laplace": lambda z: -np.sign(z),
    "t": lambda z, freedom: -(freedom + 1) / (z + freedom / z),
}
"""(ln f)' of standard distributions for which it is known, by SciPy's name."""


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
        weights, parts = self.weights, self.distributions
        if not (_is_list(weights) and _is_list(parts)):
            raise ParameterError(
                f"Mixture({weights!r}, {parts!r}) is not understood.",
                "Give a list of weights and a list of distributions.",
            )
        positive = all(is_number(weight) and 0 < weight < np.inf for weight in weights)
        if len(weights) != len(parts) or not positive:
            raise ParameterError(
                f"A mixture of {len(parts)} distributions has the weights {list(weights)}.",
                "Give one weight above zero for each.",
            )
        total = float(np.sum(weights))
        if abs(total - 1) > _ROUNDING:
            raise ParameterError(
                f"The weights of a mixture sum to {total:.6g}.", "Divide each by their sum."
            )

    def pdf(self, x: Any) -> Any:
        """The density, Σ_i w_i p_i(x)."""
        return sum(w * _freeze(d).pdf(x) for w, d in self._parts())

    def cdf(self, x: Any) -> Any:
        """The distribution function, Σ_i w_i F_i(x) (4.113)."""
        return sum(w * _freeze(d).cdf(x) for w, d in self._parts())

    def _parts(self) -> Any:
        return zip(self.weights, self.distributions, strict=True)


def _is_list(given: object) -> bool:
    if isinstance(given, np.ndarray):
        return given.ndim > 0
    return isinstance(given, Sequence) and not isinstance(given, str | bytes)


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
        links = [cdf_link(part) for part in noise.distributions]
        return MixtureLink(np.asarray(noise.weights, dtype=np.float64), links)
    frozen = _freeze(noise)
    values = _arguments(frozen)
    location, scale = values.pop("loc", 0.0), values.pop("scale", 1.0)
    standard = _CLOSED_FORMS.get(frozen.dist.name)
    if standard is None:
        return DistributionLink(frozen, tuple(values.values()), location, scale)
    return standard if (location, scale) == (0.0, 1.0) else ScaledLink(standard, location, scale)


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

    def logs(self, a: Array) -> Pair:
        return self._mirror.logs(-a)[::-1]

    def rates(self, a: Array) -> Pair:
        return self._mirror.rates(-a)[::-1]

    def curvatures(self, a: Array) -> Pair:
        return self._mirror.curvatures(-a)[::-1]


_CLOSED_FORMS: dict[str, ProbabilityLink] = {
    "norm": Probit(),
    "logistic": Logit(),
    "gumbel_l": Cloglog(),
    "gumbel_r": Loglog(),
}
"""Links of standard distributions that are exact at any distance, by SciPy's name."""


class ScaledLink(ProbabilityLink):
    """F((a - location) / scale)."""

    def __init__(self, link: ProbabilityLink, location: float, scale: float) -> None:
        self.link, self.location, self.scale = link, location, scale
        self.log_concave = link.log_concave

    def mean(self, a: Array) -> Array:
        return self.link.mean(self._standard(a))

    def activation(self, mean: Array) -> Array:
        return self.location + self.scale * self.link.activation(mean)

    def logs(self, a: Array) -> Pair:
        return self.link.logs(self._standard(a))

    @quiet
    def rates(self, a: Array) -> Pair:
        rise, fall = self.link.rates(self._standard(a))
        return rise / self.scale, fall / self.scale

    @quiet
    def curvatures(self, a: Array) -> Pair:
        rise, fall = self.link.curvatures(self._standard(a))
        return rise / self.scale**2, fall / self.scale**2

    @quiet
    def _standard(self, a: Array) -> Array:
        return (a - self.location) / self.scale


class DistributionLink(ProbabilityLink):
    """F of a frozen SciPy distribution.

    Second derivatives need the slope of ln f. Unless that is known, it is a central difference of
    eighth order, with a step of 1/50 of the interquartile range, or near an end of the support of
    the distance to it. Where ln f is smooth the slope is good to about ten digits of the largest
    terms; across a kink it is an average of both sides.
    """

    def __init__(
        self, frozen: Any, shapes: tuple[float, ...], location: float, scale: float
    ) -> None:
        self.distribution, self.shapes = frozen, shapes
        self.location, self.scale = location, scale
        self.log_concave = frozen.dist.name == "laplace"
        self.support = Domain(*map(float, frozen.support()))
        low, high = frozen.ppf([0.25, 0.75])
        self._step = _STEP * (high - low)

    @quiet
    def mean(self, a: Array) -> Array:
        return self.distribution.cdf(a)

    @quiet
    def activation(self, mean: Array) -> Array:
        return self.distribution.ppf(mean)

    @quiet
    def logs(self, a: Array) -> Pair:
        return log_pair(self.distribution.logcdf(a), self.distribution.logsf(a))

    def rates(self, a: Array) -> Pair:
        return self.logs_and_rates(a)[1]

    @quiet
    def logs_and_rates(self, a: Array) -> tuple[Pair, Pair]:
        logs, log_density = self.logs(a), self.distribution.logpdf(a)
        rise, fall = (np.where(np.isinf(p), 0.0, np.exp(log_density - p)) for p in logs)
        return logs, (rise, fall)

    @quiet
    def curvatures(self, a: Array) -> Pair:
        rise, fall = self.rates(a)
        slope = self._log_density_slope(a)
        return times(rise, rise - slope), times(fall, fall + slope)

    def _log_density_slope(self, a: Array) -> Array:
        """f'/f, zero outside the support."""
        known = _LOG_DENSITY_SLOPES.get(self.distribution.dist.name)
        if known is not None:
            return known((a - self.location) / self.scale, *self.shapes) / self.scale
        room = np.minimum(a - self.support.low, self.support.high - a)
        step = np.minimum(self._step, _STEP * room)
        places = np.arange(1.0, 5.0)[:, None] * step
        log_density = self.distribution.logpdf
        slope = _EIGHTH @ (log_density(a + places) - log_density(a - places)) / step
        return np.where(room > 0, slope, 0.0)


class MixtureLink(ProbabilityLink):
    """F = Σ_i w_i F_i.

    With the shares q_i = w_i F_i / F, (ln F)' is the mean of (ln F_i)' under q, and (ln F)'' the
    mean of (ln F_i)'' plus the variance of (ln F_i)', so that tails are as exact as in the parts.
    """

    log_concave = False

    def __init__(self, weights: Array, links: Sequence[ProbabilityLink]) -> None:
        self.weights, self.links = weights, links
        low, high = zip(*(link.support for link in links), strict=True)
        self.support = Domain(min(low), max(high))

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

    def logs(self, a: Array) -> Pair:
        return self.logs_and_rates(a)[0]

    def rates(self, a: Array) -> Pair:
        return self.logs_and_rates(a)[1]

    @quiet
    def logs_and_rates(self, a: Array) -> tuple[Pair, Pair]:
        (second, first), shares, rates = self._parts(a)
        rise, fall = times(shares, rates).sum(axis=0)
        return log_pair(second, first), (rise, fall)

    @quiet
    def curvatures(self, a: Array) -> Pair:
        _, shares, rates = self._parts(a)
        variance = (rates - times(shares, rates).sum(axis=0)) ** 2
        curvatures = np.array([link.curvatures(a) for link in self.links])
        rise, fall = (times(shares, curvatures) - times(shares, variance)).sum(axis=0)
        return rise, fall

    def _parts(self, a: Array) -> tuple[Array, Array, Array]:
        """ln F and ln(1 - F) (2, n); the shares q_i and the rates of the parts (parts, 2, n)."""
        found = np.array([link.logs_and_rates(a) for link in self.links])
        logs, rates = found[:, 0] + np.log(self.weights)[:, None, None], found[:, 1]
        total = np.logaddexp.reduce(logs, axis=0)
        return total, np.nan_to_num(np.exp(logs - total)), rates


def _freeze(distribution: Any) -> Any:
    """The distribution with its arguments."""
    if isinstance(distribution, str):
        name, distribution = distribution, getattr(stats, distribution, None)
        if not isinstance(distribution, stats.rv_continuous):
            raise ParameterError(
                f"noise={name!r} is not the name of a continuous distribution in scipy.stats.",
                "Use a name such as 'norm', 'cauchy' or 'gumbel_r', or a distribution itself.",
            )
    if isinstance(distribution, stats.rv_continuous):
        try:
            return distribution()
        except TypeError:
            raise ParameterError(
                f"The distribution {distribution.name!r} needs arguments.",
                f"Give them: scipy.stats.{distribution.name}({distribution.shapes}).",
            ) from None
    if not isinstance(getattr(distribution, "dist", None), stats.rv_continuous):
        raise ParameterError(
            f"{distribution!r} is not a continuous distribution of SciPy.",
            "Give one such as scipy.stats.cauchy() or scipy.stats.t(3).",
        )
    return distribution


def _arguments(frozen: Any) -> dict[str, float]:
    """The arguments of a frozen distribution by name."""
    shapes = frozen.dist.shapes
    names = [*(shapes.split(", ") if shapes else []), "loc", "scale"]
    values = dict(zip(names, frozen.args, strict=False)) | frozen.kwds
    for name, value in values.items():
        if np.ndim(value) > 0:
            raise ParameterError(
                f"The argument {name} of the distribution {frozen.dist.name!r} is {value!r}.",
                "Give a number.",
            )
    if np.isnan(frozen.median()):
        given = [*map(str, frozen.args), *(f"{name}={v}" for name, v in frozen.kwds.items())]
        raise ParameterError(
            f"The distribution {frozen.dist.name!r} does not exist with the arguments "
            f"{', '.join(given)}.",
            "See the documentation of scipy.stats for what they may be.",
        )
    return values
