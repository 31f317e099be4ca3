"""The seam between a model of the target and the sums over rows: -ln p(t|a), pointwise.

Conventions: n rows, K classes. A `Loss` has one activation a row: a (n,), t (n,). A `ClassLoss`
has one a class: a (n, K), t (n, K), rows of t summing to one. Nothing here depends on X, of weights
or of parameters.

Values leave out what does not depend on the activation. Outside the domain of
a link the value is infinite, so a line search that starts inside stays inside.
"""

from abc import ABC, abstractmethod

from posteriori.typing import Array


class PointwiseLoss(ABC):
    """-ln p(t|a) with its derivatives in the activations.

    `curvature` is the second derivative as observed; `information` its expectation over t given
    a, which is never negative. `convex` says whether the curvature is never negative, either.
    """

    convex: bool = True

    @abstractmethod
    def value(self, a: Array, t: Array) -> Array:
        """-ln p(t|a) up to a constant (n,); infinite outside the domain."""

    @abstractmethod
    def gradient(self, a: Array, t: Array) -> Array:
        """Its derivative in a, of the shape of a."""

    @abstractmethod
    def curvature(self, a: Array, t: Array) -> Array:
        """Its second derivative in a: (n,) or (n, K, K)."""

    @abstractmethod
    def information(self, a: Array) -> Array:
        """The expected second derivative: (n,), zero or more, or (n, K, K), semi-definite."""

    def value_and_gradient(self, a: Array, t: Array) -> tuple[Array, Array]:
        """Both at once, where that saves an exponential."""
        return self.value(a, t), self.gradient(a, t)

    def sum_and_gradient(self, a: Array, t: Array, weight: Array | None) -> tuple[float, Array]:
        """Σ w·value and w·gradient; may write over `a`. The hot path of every fit."""
        return weighted_sum(self.value(a, t), self.gradient(a, t), weight)


class Loss(PointwiseLoss):
    """-ln p(t|a) + constant of a target t given one activation a.

    For a canonical link curvature and information are the same (4.124). With a dispersion, values
    are for dispersion one.
    """

    canonical: bool = True

    @abstractmethod
    def mean(self, a: Array) -> Array:
        """E[t|a]: the inverse of the link, or activation function."""

    @abstractmethod
    def activation(self, mean: Array) -> Array:
        """The link: the a with that mean. Fits start from the activation of the mean target."""

    def information_slope(self, a: Array) -> Array:
        """The derivative of `information` in a (n,), for Jeffreys' prior and evidence."""
        raise NotImplementedError


class ClassLoss(PointwiseLoss):
    """-Σ_k t_k ln p_k(a) of a distribution t over K classes given an activation of each."""


def weighted_sum(value: Array, gradient: Array, weight: Array | None) -> tuple[float, Array]:
    """Σ w·value and w·gradient.

    >>> import numpy as np
    >>> weighted_sum(np.array([1.0, 2.0]), np.array([3.0, 4.0]), np.array([1.0, 0.5]))
    (2.0, array([3., 2.]))
    """
    if weight is None:
        return float(value.sum()), gradient
    return float(weight @ value), (weight * gradient.T).T
