"""The model without columns: an intercept, where the fit has one, and the offsets.

Conventions: K activations a row (1 for two classes or a number). The intercept-only model is the
same in every row, so that without offsets its mean is the mean target, whatever the link.
"""

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from posteriori.errors import InferenceError
from posteriori.likelihood.glm import TargetFamily
from posteriori.likelihood.logistic import LogisticLoss
from posteriori.likelihood.loss import ClassLoss, Loss
from posteriori.likelihood.softmax import SoftmaxLoss
from posteriori.posterior.objective import LogPosterior
from posteriori.rows.block import Block
from posteriori.solve.local import Curvature, Local
from posteriori.solve.newton import newton
from posteriori.statistics.glm_domain import GatherLogLevel
from posteriori.statistics.goodness_of_fit import (
    ConstantActivation,
    FitSums,
    GatherClassFit,
    GatherFamilyFit,
    negative_entropy,
)
from posteriori.statistics.local_quadratic import Information, LocalQuadratic, Target
from posteriori.typing import Array

_TOLERANCE = 1e-8
"""Standard errors from the optimum of the intercepts."""

_MOST_DOUBLINGS = 40
"""How often the way to a start inside the domain of a link is doubled."""

_MOST_HALVINGS = 60
"""How often the way to an end of the domain is halved: to the last digit."""


def null_deviance(objective: LogPosterior, fitted: FitSums, family: TargetFamily | None) -> float:
    """The deviance of the model without columns, given the sums at the fit."""
    loss, target = objective.loss, objective.target
    constant = objective.standard.intercept and not fitted.has_offset
    if family is None and constant and np.isfinite(_level_of(loss, fitted.mean)).all():
        return _at_mean(loss, fitted)
    level = ConstantActivation(_intercepts(objective, fitted))
    if family is None:
        return objective.rows.map_sum(GatherClassFit(loss, target, level)).deviance
    kernel = GatherFamilyFit(cast(Loss, loss), family, target, level)
    return objective.rows.map_sum(kernel).deviance


def _at_mean(loss: Loss | ClassLoss, fitted: FitSums) -> float:
    """The deviance where every row has the mean target as its mean.

    -ln p(t|a) is linear in the shares t, so that the mean target stands for all rows.
    """
    mean = fitted.mean[None, :] if isinstance(loss, ClassLoss) else fitted.mean
    saturated = fitted.deviance / 2 + fitted.log_likelihood
    return 2 * (saturated - fitted.weight * float(negative_entropy(mean)[0]))


def _intercepts(objective: LogPosterior, fitted: FitSums) -> Array:
    """The intercepts (K,) of the model without columns; zero where there are none."""
    if not objective.standard.intercept:
        return np.zeros(objective.coordinates.n_activations)
    start = _level_of(objective.loss, fitted.mean)
    if not (fitted.has_offset or np.isnan(start).any()):
        return start
    if isinstance(objective.loss, Loss) and objective.loss.log_power is not None:
        kernel = GatherLogLevel(objective.target, objective.loss.log_power)
        return np.array([objective.rows.map_sum(kernel).level])
    start = np.where(np.isfinite(start), start, 0.0) - fitted.mean_offset
    contrasts = objective.coordinates.contrasts
    free = _Intercepts(objective, contrasts)
    return contrasts @ _solved(free, _inside(free, contrasts.T @ start))


def _solved(free: "_Intercepts", start: Array) -> Array:
    """The free parameters of the intercepts, by whichever second derivative leads there."""
    solution = newton([free], start, always_fresh=True)
    if not solution.converged:
        observed = replace(free, information="observed")
        solution = newton([observed], solution.parameters, always_fresh=True)
    if solution.converged:
        return solution.parameters
    end = _end(free, solution.parameters)
    if end is not None and free(end, "none").value <= solution.value:
        return end
    raise InferenceError(
        f"The model without columns could not be fitted. {solution.status.value}",
        "The offsets may be too large: look at them, or at the row of the largest.",
    )


def _end(free: "_Intercepts", w: Array) -> Array | None:
    """The end of the domain that a single intercept is drawn to; None where there is none."""
    if len(w) > 1:
        return None
    step = -np.sign(free(w, "none").gradient) * (1 + abs(w))
    inside, outside = 0.0, 1.0
    if np.isfinite(free(w + step, "none").value):
        return None
    for _ in range(_MOST_HALVINGS):
        middle = (inside + outside) / 2
        if np.isfinite(free(w + middle * step, "none").value):
            inside = middle
        else:
            outside = middle
    return w + inside * step


def _inside(objective: "_Intercepts", start: Array) -> Array:
    """The start, or one to either side of it that the offsets of all rows allow."""
    for reach in (0.0, *2.0 ** np.arange(_MOST_DOUBLINGS)):
        for side in (1.0, -1.0):
            there: Array = start + side * reach * (1 + abs(start))
            if len(start) > 1 or np.isfinite(objective(there, "none").value):
                return there
    return start


def _level_of(loss: Loss | ClassLoss, mean: Array) -> Array:
    """Activations (K,) with this mean; not numbers where it is not sure that there are any."""
    with np.errstate(divide="ignore"):
        if isinstance(loss, ClassLoss):
            return np.log(mean) if isinstance(loss, SoftmaxLoss) else np.full(len(mean), np.nan)
        # The loss of signed labels is logistic too, and the mean is one of shares.
        return (LogisticLoss() if isinstance(loss, LogisticLoss) else loss).activation(mean)


@dataclass(frozen=True, eq=False)
class _Intercepts:
    """-ln p(t|w) with the intercepts alone free; a solver's `Objective`."""

    of: LogPosterior
    contrasts: Array
    information: Information = "expected"
    price: float = 1.0
    start_price: float = 1.0
    unit: float = 1.0
    share: float = 1.0
    tolerance: float = _TOLERANCE

    @property
    def n_rows(self) -> int:
        return self.of.n_rows

    def __call__(self, w: Array, hessian: Curvature) -> Local:
        level = ConstantActivation(self.contrasts @ w)
        kernel = _GatherLevel(self.of.loss, self.of.target, level, self.information)
        found = self.of.rows.map_sum(kernel)
        curved = self.contrasts.T @ cast(Array, found.hessian) @ self.contrasts
        return Local(found.value, self.contrasts.T @ found.gradient, curved)


@dataclass(frozen=True, eq=False)
class _GatherLevel:
    """The kernel: value, gradient (K,) and Hessian (K, K) in the intercepts."""

    loss: Loss | ClassLoss
    target: Target
    level: ConstantActivation
    information: Information

    def __call__(self, block: Block) -> LocalQuadratic:
        a, t, weight = self.level(block), self.target(block), block.weight
        expected = self.information == "expected"
        with np.errstate(over="ignore", invalid="ignore"):  # infinite outside of a domain
            curved = self.loss.information(a) if expected else self.loss.curvature(a, t)
            curved = curved.sum(axis=0) if weight is None else np.tensordot(weight, curved, 1)
            value, residual = self.loss.sum_and_gradient(a, t, weight)
            gradient = np.atleast_1d(residual.sum(axis=0))
        return LocalQuadratic(value, gradient, np.reshape(curved, (len(gradient), -1)))
