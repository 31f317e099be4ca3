"""The seam between a model of the target and the sums over rows: -ln p(t|a), pointwise.

Conventions: n rows, K classes. A `Loss` has one activation a row: a (n,), t (n,). A `ClassLoss`
has one a class: a (n, K), t (n, K), rows of t summing to one. Nothing here knows of X, of weights
or of parameters.

Values leave out what does not depend on the activation; `constant` has it. Outside the domain of
a link the value is infinite, so a line search that starts inside stays inside.
"""

from abc import ABC, abstractmethod

import numpy as np

from posteriori.typing import Array


class Loss(ABC):
    """-ln p(t|a) + constant of a target t given one activation a.

    `curvature` is the second derivative as observed; `information` its expectation over t given
    a, which is never negative. For a canonical link both are the same (4.124). `convex` says
    whether the curvature is never negative. With a dispersion, values are for dispersion one.
    `log_power` is k where μ = eᵃ and V(μ) = μᵏ: then the best intercept has a formula.
    """

    convex: bool = True
    canonical: bool = True
    log_power: float | None = None

    @abstractmethod
    def value(self, a: Array, t: Array) -> Array:
        """-ln p(t|a) up to `constant` (n,); infinite outside the domain."""

    @abstractmethod
    def gradient(self, a: Array, t: Array) -> Array:
        """Its derivative in a (n,)."""

    @abstractmethod
    def curvature(self, a: Array, t: Array) -> Array:
        """Its second derivative in a (n,)."""

    @abstractmethod
    def information(self, a: Array) -> Array:
        """The expected second derivative (n,), zero or more."""

    @abstractmethod
    def mean(self, a: Array) -> Array:
        """E[t|a]: the inverse of the link, or activation function."""

    @abstractmethod
    def activation(self, mean: Array) -> Array:
        """The link: the a with that mean. Fits start from the activation of the mean target."""

    def constant(self, t: Array) -> Array:
        """What `value` leaves out of -ln p(t|a) (n,)."""
        return np.zeros(len(t))

    def information_slope(self, a: Array) -> Array:
        """The derivative of `information` in a (n,), which Jeffreys' prior needs."""
        raise NotImplementedError

    def sum_and_gradient(self, a: Array, t: Array, weight: Array | None) -> tuple[float, Array]:
        """Σ w·value and w·gradient; may write over `a`. The hot path of every fit."""
        value, gradient = self.value(a, t), self.gradient(a, t)
        if weight is None:
            return float(value.sum()), gradient
        return float(weight @ value), weight * gradient


class ClassLoss(ABC):
    """-Σ_k t_k ln p_k(a) of a distribution t over K classes given an activation of each."""

    convex: bool = True

    @abstractmethod
    def value(self, a: Array, t: Array) -> Array:
        """-Σ_k t_k ln p_k(a) (n,)."""

    @abstractmethod
    def gradient(self, a: Array, t: Array) -> Array:
        """Its derivative in a (n, K)."""

    @abstractmethod
    def curvature(self, a: Array, t: Array) -> Array:
        """Its second derivative (n, K, K)."""

    @abstractmethod
    def information(self, a: Array) -> Array:
        """The expected second derivative (n, K, K), positive semi-definite."""

    def sum_and_gradient(self, a: Array, t: Array, weight: Array | None) -> tuple[float, Array]:
        """Σ w·value and w·gradient; may write over `a`."""
        value, gradient = self.value(a, t), self.gradient(a, t)
        if weight is None:
            return float(value.sum()), gradient
        return float(weight @ value), weight[:, None] * gradient
