"""The distribution function of any continuous SciPy distribution as a link (4.113).

Distributions whose closed form is in `sigmoids` are recognised. For all others SciPy gives ln F,
ln(1 - F) and ln f, as far out as its own functions reach, and the slope of ln f is a difference
quotient; it enters second derivatives only.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

from posteriori.errors import ParameterError
from posteriori.likelihood.arithmetic import quiet, sharpened
from posteriori.likelihood.link import LocatedLink, ProbabilityLink
from posteriori.likelihood.sigmoids import (
    Cauchit,
    Cloglog,
    Laplace,
    Logit,
    Loglog,
    Probit,
    Student,
)
from posteriori.typing import Array

_CLOSED: dict[type, Callable[..., ProbabilityLink]] = {
    type(stats.norm): Probit,
    type(stats.logistic): Logit,
    type(stats.cauchy): Cauchit,
    type(stats.laplace): Laplace,
    type(stats.gumbel_l): Cloglog,
    type(stats.gumbel_r): Loglog,
    type(stats.t): Student,
}

_EIGHTH = np.array([4 / 5, -1 / 5, 4 / 105, -1 / 280])
"""Weights of the central difference of eighth order, at 1, 2, 3 and 4 steps."""

_SIXTH = np.array([3 / 4, -3 / 20, 1 / 60, 0.0])
"""Those of sixth order, which say how far the other can be trusted."""

_STEP = 0.02
"""A step as a part of the length on which the density changes."""


def distribution_link(distribution: Any) -> ProbabilityLink:
    """The link of a continuous SciPy distribution: frozen, with default arguments, or by name.

    >>> distribution_link(stats.norm(2.0, 3.0)).mean(np.array([2.0]))
    array([0.5])
    """
    frozen = _freeze(distribution)
    values = _arguments(frozen)
    place, width = values.pop("loc", 0.0), values.pop("scale", 1.0)
    closed = _CLOSED.get(type(frozen.dist))
    if closed is None:
        return ScipyLink(frozen)
    link = Probit() if closed is Student and np.isinf(values["df"]) else closed(*values.values())
    return link if (place, width) == (0.0, 1.0) else LocatedLink(link, place, width)


class ScipyLink(ProbabilityLink):
    """F of a frozen distribution, without a closed form of its own.

    The slope of ln f is a central difference of eighth order, with a step of 1/50 of the
    interquartile range or of the distance from the median, whichever of the two agrees better with
    the difference of sixth order; near an end of the support, of 1/50 of the distance to it. Where
    ln f is smooth the slope is good to about ten digits of the largest terms. Across a kink it
    is an average of both sides.
    """

    log_concave = False

    def __init__(self, frozen: Any) -> None:
        self.distribution = frozen
        low, self._median, high = frozen.ppf([0.25, 0.5, 0.75])
        self._width = high - low

    @quiet
    def mean(self, a: Array) -> Array:
        return self.distribution.cdf(a)

    @quiet
    def activation(self, mean: Array) -> Array:
        return self.distribution.ppf(mean)

    @quiet
    def logs(self, a: Array) -> tuple[Array, Array]:
        return sharpened(self.distribution.logcdf(a), self.distribution.logsf(a))

    def rates(self, a: Array) -> tuple[Array, Array]:
        return self.logs_and_rates(a)[1]

    @quiet
    def logs_and_rates(self, a: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        logs, log_density = self.logs(a), self.distribution.logpdf(a)
        rise, fall = (np.where(np.isinf(p), 0.0, np.exp(log_density - p)) for p in logs)
        return logs, (rise, fall)

    @quiet
    def bends(self, a: Array) -> tuple[Array, Array]:
        rise, fall = self.rates(a)
        slope = self._log_density_slope(a)
        return rise * (rise - slope), fall * (fall + slope)

    def _log_density_slope(self, a: Array) -> Array:
        """f'/f, zero outside the support."""
        low, high = self.distribution.support()
        room = _STEP * np.minimum(a - low, high - a)
        distance = np.maximum(abs(a - self._median), self._width)
        near, near_error = self._difference(a, np.minimum(_STEP * self._width, room))
        far, far_error = self._difference(a, np.minimum(_STEP * distance, room))
        slope = np.where(far_error < near_error, far, near)
        return np.where(room > 0, slope, 0.0)

    def _difference(self, a: Array, step: Array) -> tuple[Array, Array]:
        """The quotient of eighth order, and how far from it that of sixth order is."""
        places = np.arange(1.0, 5.0)[:, None] * step
        log_density = self.distribution.logpdf
        change = log_density(a + places) - log_density(a - places)
        eighth, sixth = _EIGHTH @ change / step, _SIXTH @ change / step
        return eighth, np.nan_to_num(abs(eighth - sixth), nan=np.inf)


def _freeze(distribution: Any) -> Any:
    """The distribution with its arguments."""
    if isinstance(distribution, str):
        distribution = _of_name(distribution)
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


def _of_name(name: str) -> stats.rv_continuous:
    found = getattr(stats, name, None)
    if not isinstance(found, stats.rv_continuous):
        raise ParameterError(
            f"noise={name!r} is not the name of a continuous distribution in scipy.stats.",
            "Use a name such as 'norm', 'cauchy' or 'gumbel_r', or a distribution itself.",
        )
    return found


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
