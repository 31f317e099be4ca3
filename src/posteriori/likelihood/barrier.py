"""A loss with a wall at each end of its domain, for likelihoods that are largest at an end."""

import numpy as np

from posteriori.likelihood.arithmetic import quiet
from posteriori.likelihood.domain import Domain
from posteriori.likelihood.loss import Loss
from posteriori.typing import Array


class BarrierLoss(Loss):
    """The loss plus -τ ln(a - low) - τ ln(high - a), which grows without bound towards an end.

    As τ goes to zero its minimum goes to that of the loss inside the domain, or at an end of it.

    >>> from posteriori.likelihood.real_losses import PoissonIdentityLoss
    >>> loss = BarrierLoss(PoissonIdentityLoss(), Domain(low=0.0), 0.1)
    >>> loss.gradient(np.array([0.1]), np.array([0.0]))
    array([0.])
    """

    canonical = False

    def __init__(self, loss: Loss, domain: Domain, height: float) -> None:
        self.loss, self.domain, self.height = loss, domain, height
        self.convex = loss.convex

    @quiet
    def value(self, a: Array, t: Array) -> Array:
        rooms = (room for _, room in self._rooms(a))
        wall = sum((-np.log(room) for room in rooms), np.zeros_like(a))
        found = self.loss.value(a, t) + self.height * wall
        return np.where(np.isnan(found), np.inf, found)

    @quiet
    def gradient(self, a: Array, t: Array) -> Array:
        wall = sum((-sign / room for sign, room in self._rooms(a)), np.zeros_like(a))
        return self.loss.gradient(a, t) + self.height * wall

    def curvature(self, a: Array, t: Array) -> Array:
        return self.loss.curvature(a, t) + self._wall_curvature(a)

    def information(self, a: Array) -> Array:
        return self.loss.information(a) + self._wall_curvature(a)

    @quiet
    def _wall_curvature(self, a: Array) -> Array:
        wall = sum((1 / room**2 for _, room in self._rooms(a)), np.zeros_like(a))
        return self.height * wall

    def _rooms(self, a: Array) -> list[tuple[float, Array]]:
        """The distance to each finite end, with the sign of its derivative."""
        rooms = []
        if self.domain.low > -np.inf:
            rooms.append((1.0, a - self.domain.low))
        if self.domain.high < np.inf:
            rooms.append((-1.0, self.domain.high - a))
        return rooms

    def mean(self, a: Array) -> Array:
        return self.loss.mean(a)

    def activation(self, mean: Array) -> Array:
        return self.loss.activation(mean)
