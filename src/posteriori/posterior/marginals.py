"""One variable of a Gaussian, seen through the coordinate that took its bounds away."""

from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from posteriori.errors import ParameterError
from posteriori.posterior.unbounded import Coordinate
from posteriori.typing import Array

_HALF_LOG_2PI = 0.5 * float(np.log(2 * np.pi))


@dataclass(frozen=True)
class Marginal:
    """The distribution of z(u) with u ~ N(centre, spread²): normal, lognormal or logit-normal.

    p(z) = N(u(z)|centre, spread²) du/dz, and quantiles are z of those of u.

    >>> from posteriori.posterior.unbounded import HalfLine
    >>> tau = Marginal(HalfLine(0.0, 1), 0.0, 1.0)
    >>> tau.mean, tau.sd, tau.ppf([0.025, 0.5]), tau.cdf(1.0)
    (1.648..., 2.161..., array([0.14..., 1.  ]), array(0.5))
    """

    coordinate: Coordinate
    centre: float
    spread: float

    @cached_property
    def _moments(self) -> tuple[float, float]:
        return self.coordinate.moments(self.centre, self.spread)

    @property
    def mean(self) -> float:
        """E[z], by formula where there is one, else by quadrature."""
        return self._moments[0]

    @property
    def sd(self) -> float:
        """The standard deviation of z."""
        return self._moments[1]

    def pdf(self, z: ArrayLike) -> Array:
        """Density at z; zero beyond the bounds.

        >>> from posteriori.posterior.unbounded import Line
        >>> Marginal(Line(), 0.0, 2.0).pdf([0.0])
        array([0.19947114])
        """
        z = np.asarray(z, dtype=np.float64)
        inside = (self.coordinate.low < z) & (z < self.coordinate.high)
        found = np.where(np.isnan(z), np.nan, 0.0)
        u = self.coordinate.inward(z[inside])
        t = (u - self.centre) / self.spread
        log = -0.5 * t**2 - np.log(self.spread) - _HALF_LOG_2PI - self.coordinate.slope(u).log
        found[inside] = np.exp(log)
        return found

    def cdf(self, z: ArrayLike) -> Array:
        """Probability of less than z.

        >>> from posteriori.posterior.unbounded import Interval
        >>> Marginal(Interval(0.0, 1.0), 0.0, 1.0).cdf([-1.0, 0.5, 2.0])
        array([0. , 0.5, 1. ])
        """
        within = np.clip(np.asarray(z, np.float64), self.coordinate.low, self.coordinate.high)
        with np.errstate(divide="ignore"):
            u = self.coordinate.inward(within)
        return np.asarray(ndtr((u - self.centre) / self.spread))

    def ppf(self, probability: ArrayLike) -> Array:
        """The z below which lies this probability.

        >>> from posteriori.posterior.unbounded import Line
        >>> Marginal(Line(), 1.0, 2.0).ppf([0.0, 0.5, 0.975])
        array([      -inf, 1.        , 4.91992797])
        """
        q = np.asarray(probability, dtype=np.float64)
        if not ((q >= 0) & (q <= 1)).all():
            raise ParameterError(
                f"{probability!r} are not all probabilities.", "Use numbers from zero to one."
            )
        with np.errstate(over="ignore"):
            found = self.coordinate.outward(self.centre + self.spread * cast(Array, ndtri(q)))
        return np.asarray(found)
