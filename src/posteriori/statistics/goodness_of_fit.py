"""How well activations describe the targets: log-likelihood, deviance, Pearson's χ², and means.

Conventions: n rows, c activations a row. Targets t are shares of the second class (n,), shares of
each class (n, K), or numbers (n,).
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import xlogy

from posteriori.likelihood.binary_losses import SignedLogisticLoss
from posteriori.likelihood.glm_families import TargetFamily
from posteriori.likelihood.loss import ClassLoss, Loss
from posteriori.rows.block import Block
from posteriori.statistics.local_quadratic import GatherQuadratic, Target
from posteriori.statistics.statistic import LARGEST, Statistic, weights_of
from posteriori.typing import Array

Activation = Callable[[Block], Array]
"""The activations of a block's rows: (n,), or (n, K)."""


@dataclass(frozen=True, eq=False)
class TargetMean(Statistic):
    """Σw, Σwt (c,) and the same of the offsets (c,)."""

    weight: float
    target: Array
    offset: Array

    @property
    def mean(self) -> Array:
        """The mean target (c,)."""
        return self.target / self.weight

    @property
    def mean_offset(self) -> Array:
        """The mean offset (c,)."""
        return self.offset / self.weight


@dataclass(frozen=True, eq=False)
class FitSums(TargetMean):
    """With these the sums of ln p(t|a), of the deviance, of the loss that was minimised, which is
    -ln p(t|a) up to a constant in the activations, and of (t - μ)²/V(μ) (zero for classes)."""

    has_offset: bool = field(metadata=LARGEST)
    log_likelihood: float
    deviance: float
    loss: float
    pearson: float = 0.0

    def with_loss(self, loss: float) -> "FitSums":
        """The sums of targets alone, now with the loss of a model for classes."""
        return replace(self, log_likelihood=-loss, deviance=self.deviance + 2 * loss, loss=loss)


@dataclass(frozen=True, eq=False)
class Fitted:
    """The activations of a fit."""

    at: GatherQuadratic

    def __call__(self, block: Block) -> Array:
        return self.at.design_and_activations(block)[1]


@dataclass(frozen=True, eq=False)
class GatherClassTargets:
    """The kernel for classes, without the loss, for which no columns are needed.

    The saturated ln p is Σ_k t_k ln t_k: zero for hard labels.
    """

    loss: Loss | ClassLoss
    target: Target

    def __call__(self, block: Block) -> FitSums:
        share = shares(self.loss, self.target(block))
        saturated = _total(negative_entropy(share), block.weight)
        return FitSums(*_means(share, block), block.offset is not None, 0.0, 2 * saturated, 0.0)


@dataclass(frozen=True, eq=False)
class GatherFamilyFit:
    """The kernel for a family of targets, at a given dispersion."""

    loss: Loss
    family: TargetFamily
    target: Target
    activation: Activation
    dispersion: float = 1.0

    def __call__(self, block: Block) -> FitSums:
        t, weight = self.target(block), block.weight
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            a = self.activation(block)
            mean = self.loss.mean(a)
            loss, _ = self.loss.sum_and_gradient(a, t, weight)
            log_density = self.family.log_likelihood(t, mean, self.dispersion)
            each = log_density, self.family.deviance(t, mean), self.family.pearson(t, mean)
            log_likelihood, deviance, pearson = (_total(values, weight) for values in each)
        of_target = *_means(t, block), block.offset is not None
        return FitSums(*of_target, log_likelihood, deviance, loss, pearson)


def shares(loss: Loss | ClassLoss, t: Array) -> Array:
    """How much each row belongs to the second class, or to each, from what the loss receives.

    >>> shares(SignedLogisticLoss(), np.array([-1.0, 1.0]))
    array([0., 1.])
    """
    return (1 + t) / 2 if isinstance(loss, SignedLogisticLoss) else t


def negative_entropy(share: Array) -> Array:
    """Σ_k t_k ln t_k of distributions over classes (n, K), or of shares of the second of two (n,).

    >>> negative_entropy(np.array([0.5, 1.0]))
    array([-0.69314718,  0.        ])
    """
    own: Array = xlogy(share, share)
    return own.sum(axis=1) if share.ndim == 2 else own + xlogy(1 - share, 1 - share)


def _total(values: Array, weight: Array | None) -> float:
    return float(values.sum() if weight is None else weight @ values)


def _means(t: Array, block: Block) -> tuple[float, Array, Array]:
    """Weight, Σwt and Σw·offset."""
    weight = weights_of(block)
    offset = np.zeros(t.shape[1:]) if block.offset is None else weight @ block.offset
    return float(weight.sum()), np.atleast_1d(weight @ t), np.atleast_1d(offset)


@dataclass(frozen=True, eq=False)
class GatherTargetMean:
    """The kernel: a block of rows to its `TargetMean`."""

    target: Target

    def __call__(self, block: Block) -> TargetMean:
        return TargetMean(*_means(self.target(block), block))
