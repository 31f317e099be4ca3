"""A loss seen from afar, for activations that differ by more than exponentials can bear."""

from posteriori.likelihood.arithmetic import quiet
from posteriori.likelihood.loss import Loss
from posteriori.typing import Array


class DistantLoss(Loss):
    """width · loss(c + (a - c)/width) with the `centre` c: the loss itself if the width is one.

    With a large width its curvature changes slowly, and Newton's steps lead to its minimum from
    anywhere. As the width shrinks, the minimum goes to that of the loss.

    >>> import numpy as np
    >>> from posteriori.likelihood.real_losses import GammaLogLoss
    >>> DistantLoss(GammaLogLoss(), 0.0, 1e3).gradient(np.array([-1e3]), np.array([1.0]))
    array([-1.71828183])
    """

    canonical = False

    def __init__(self, loss: Loss, centre: float, width: float) -> None:
        self.loss, self.centre, self.width = loss, centre, width
        self.convex = loss.convex

    @quiet
    def value(self, a: Array, t: Array) -> Array:
        return self.width * self.loss.value(self._near(a), t)

    def gradient(self, a: Array, t: Array) -> Array:
        return self.loss.gradient(self._near(a), t)

    def curvature(self, a: Array, t: Array) -> Array:
        return self.loss.curvature(self._near(a), t) / self.width

    def information(self, a: Array) -> Array:
        return self.loss.information(self._near(a)) / self.width

    def mean(self, a: Array) -> Array:
        return self.loss.mean(self._near(a))

    def activation(self, mean: Array) -> Array:
        return self.centre + self.width * (self.loss.activation(mean) - self.centre)

    def _near(self, a: Array) -> Array:
        return self.centre + (a - self.centre) / self.width
