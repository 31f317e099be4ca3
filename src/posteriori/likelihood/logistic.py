"""Two classes by the logistic sigmoid (4.87)-(4.90), the canonical case."""

import math

import numpy as np
from scipy.special import expit, logit

from posteriori.likelihood.loss import Loss
from posteriori.typing import Array

_GROUP = 64
"""Probabilities multiplied together before a logarithm is taken of them."""

_TINY = np.finfo(np.float64).tiny
"""Products below this have lost digits."""

_ENOUGH = 1e-3
"""A mean loss above this is had from logarithms of products without losing a digit that counts."""


class LogisticLoss(Loss):
    """-t ln σ(a) - (1 - t) ln(1 - σ(a)) = ln(1 + eᵃ) - ta, for t from zero to one (4.90).

    The derivative is σ(a) - t (4.91), the curvature σ(a)(1 - σ(a)) (4.97).

    >>> LogisticLoss().value(np.array([0.0, 800.0]), np.array([1.0, 0.0])).round(6)
    array([6.93147e-01, 8.00000e+02])
    """

    def value(self, a: Array, t: Array) -> Array:
        return np.maximum(a, 0.0) - a * t + np.log1p(np.exp(-abs(a)))

    def gradient(self, a: Array, t: Array) -> Array:
        return (1 - t) * expit(a) - t * expit(-a)

    def curvature(self, a: Array, t: Array) -> Array:
        return self.information(a)

    def information(self, a: Array) -> Array:
        e = np.exp(-abs(a))
        return e / np.square(1 + e)

    def information_slope(self, a: Array) -> Array:
        return self.information(a) * np.tanh(-a / 2)

    def mean(self, a: Array) -> Array:
        return expit(a)

    def activation(self, mean: Array) -> Array:
        return logit(mean)


class SignedLogisticLoss(LogisticLoss):
    """The same where t is -1 or +1 for the two classes: ln(1 + exp(-ta)).

    The probability of the label that was seen gives both value and gradient, and one logarithm
    serves 64 rows: Σ ln σ = ln Π σ.
    """

    def value(self, a: Array, t: Array) -> Array:
        return super().value(a * t, np.ones(len(t)))

    def gradient(self, a: Array, t: Array) -> Array:
        return -t * expit(-a * t)

    def mean(self, a: Array) -> Array:
        return np.tanh(a / 2)

    def activation(self, mean: Array) -> Array:
        return 2.0 * np.arctanh(mean)

    def sum_and_gradient(self, a: Array, t: Array, weight: Array | None) -> tuple[float, Array]:
        a *= t
        seen = expit(a)
        total = self._total(seen, a) if weight is None else float(weight @ self._losses(a))
        seen -= 1.0
        seen *= t
        if weight is not None:
            seen *= weight
        return total, seen

    def _losses(self, margin: Array) -> Array:
        return super().value(margin, np.ones(len(margin)))

    def _total(self, seen: Array, margin: Array) -> float:
        size = len(seen) // _GROUP * _GROUP
        product = np.multiply.reduce(seen[:size].reshape(_GROUP, -1), axis=0)
        rest = float(np.multiply.reduce(seen[size:]))
        if rest > _TINY and np.minimum.reduce(product, initial=1.0) > _TINY:
            total = -float(np.add.reduce(np.log(product))) - math.log(rest)
            if total > _ENOUGH * len(seen):
                return total
        return float(self._losses(margin).sum())
