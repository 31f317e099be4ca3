"""The seam between an activation and a mean: μ = f(a), the inverse of the link (4.120), pointwise.

Conventions: F is the mean of a target from zero to one, F' = f its slope. A likelihood of such a
target needs four functions that stay exact where F or 1 - F underflow:

    ln F,   ln(1 - F),   (ln F)' = f/F,   -(ln(1 - F))' = f/(1 - F)

and the two second derivatives. Everything else here follows from these.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from posteriori.likelihood.arithmetic import quiet, times
from posteriori.typing import Array


class Link(ABC):
    """A mean as a function of the activation. `domain` has the ends of the activations."""

    domain: ClassVar[tuple[float, float]] = (-np.inf, np.inf)

    @abstractmethod
    def mean(self, a: Array) -> Array:
        """μ = f(a), the activation function."""

    @abstractmethod
    def activation(self, mean: Array) -> Array:
        """The link itself: the a with that mean; not a number where there is none."""

    @abstractmethod
    def slope(self, a: Array) -> Array:
        """dμ/da."""

    @abstractmethod
    def bend(self, a: Array) -> Array:
        """d²μ/da²."""


class ProbabilityLink(Link):
    """A mean F from zero to one.

    `log_concave` says that ln F and ln(1 - F) both are, so that the loss is convex.
    """

    log_concave: bool = True

    @abstractmethod
    def logs(self, a: Array) -> tuple[Array, Array]:
        """ln F and ln(1 - F)."""

    @abstractmethod
    def rates(self, a: Array) -> tuple[Array, Array]:
        """(ln F)' = f/F and -(ln(1 - F))' = f/(1 - F), zero or more."""

    @abstractmethod
    def bends(self, a: Array) -> tuple[Array, Array]:
        """-(ln F)'' and -(ln(1 - F))''."""

    def log_mean(self, a: Array) -> Array:
        """ln F."""
        return self.logs(a)[0]

    def log_complement(self, a: Array) -> Array:
        """ln(1 - F)."""
        return self.logs(a)[1]

    def complement(self, a: Array) -> Array:
        """1 - F, with all its digits where F is close to one."""
        return np.exp(self.log_complement(a))

    def logs_and_rates(self, a: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """Both at once, for links where they share what is dear."""
        return self.logs(a), self.rates(a)

    def slope(self, a: Array) -> Array:
        return times(self.mean(a), self.rates(a)[0])

    @quiet
    def bend(self, a: Array) -> Array:
        return times(self.mean(a), self.rates(a)[0] ** 2 - self.bends(a)[0])


class SymmetricLink(ProbabilityLink):
    """F(-a) = 1 - F(a), so that one side says all."""

    @abstractmethod
    def log_mean(self, a: Array) -> Array:
        """ln F."""

    @abstractmethod
    def rate(self, a: Array) -> Array:
        """f/F."""

    @abstractmethod
    def log_bend(self, a: Array) -> Array:
        """-(ln F)''."""

    def complement(self, a: Array) -> Array:
        return self.mean(-a)

    def logs(self, a: Array) -> tuple[Array, Array]:
        return self.log_mean(a), self.log_mean(-a)

    def rates(self, a: Array) -> tuple[Array, Array]:
        return self.rate(a), self.rate(-a)

    def bends(self, a: Array) -> tuple[Array, Array]:
        return self.log_bend(a), self.log_bend(-a)


class LocatedLink(ProbabilityLink):
    """F((a - place) / width)."""

    def __init__(self, link: ProbabilityLink, place: float, width: float) -> None:
        self.link, self.place, self.width = link, place, width
        self.log_concave = link.log_concave

    def mean(self, a: Array) -> Array:
        return self.link.mean(self._inner(a))

    def activation(self, mean: Array) -> Array:
        return self.place + self.width * self.link.activation(mean)

    def logs(self, a: Array) -> tuple[Array, Array]:
        return self.link.logs(self._inner(a))

    @quiet
    def rates(self, a: Array) -> tuple[Array, Array]:
        rise, fall = self.link.rates(self._inner(a))
        return rise / self.width, fall / self.width

    @quiet
    def bends(self, a: Array) -> tuple[Array, Array]:
        rise, fall = self.link.bends(self._inner(a))
        return rise / self.width**2, fall / self.width**2

    @quiet
    def _inner(self, a: Array) -> Array:
        return (a - self.place) / self.width
