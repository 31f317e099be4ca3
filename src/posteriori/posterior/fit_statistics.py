"""How well a fit describes its rows: likelihood, deviances, dispersion, criteria; the null model.

Weights count rows: a row of weight w is w rows. The null model has no columns: an intercept, where
the fit has one, and the offsets. Without offsets its mean is the mean target, whatever the link.
"""

from contextlib import suppress
from copy import copy
from functools import cached_property
from typing import cast

import numpy as np

from posteriori.design.columns import Columns
from posteriori.design.standardise import Standard
from posteriori.errors import InferenceError
from posteriori.likelihood.binary_losses import LogisticLoss
from posteriori.likelihood.glm_families import SquaredLoss, TargetFamily
from posteriori.likelihood.loss import ClassLoss, Loss
from posteriori.likelihood.softmax import SoftmaxLoss
from posteriori.posterior.log_posterior import BLOCK_ENTRIES, Coordinates, LogPosterior
from posteriori.posterior.priors import flat
from posteriori.rows.schema import Schema
from posteriori.rows.threads import one_blas_thread
from posteriori.solve.newton import scoring
from posteriori.statistics.glm_domain import offset_range
from posteriori.statistics.goodness_of_fit import (
    FitSums,
    Fitted,
    GatherClassTargets,
    GatherFamilyFit,
    negative_entropy,
)
from posteriori.statistics.local_quadratic import GatherQuadratic
from posteriori.typing import Array

_MOVED, _ROUNDING = 1e-3, 1e-10
"""By how much, plainly and beside its size, the loss can differ on the rows of the fit."""

_TOLERANCE = 1e-10
"""Standard errors from the intercepts of the null model."""

_NOTHING = 1e-15
"""A deviance of this size, beside the log-likelihood, is rounding."""

LOADED = (
    "This model was loaded from a file, without the rows it was fitted to.",
    "Ask for it before saving the model, or fit again.",
)
PARTIAL_FIT = (
    "partial_fit does not keep the rows, and this cannot be computed without them.",
    "Use fit with all rows.",
)
"""Why there are no rows, and what to do."""


class FitStatistics:
    """Sums over the rows of a fit with parameters w (p,), computed at the first request.

    `family` is that of a target which is a number; without one, the target is a class. Where the
    family leaves the dispersion s open, it is estimated by Pearson's χ² over the rows less the
    parameters. `others` is how many numbers were estimated beside w and s. `loss` is the sum that
    the fit ended with, by which rows that changed since are noticed. `no_rows` is the error of a
    fit whose rows were not kept.
    """

    _known: float | None = None
    at_optimum = True
    """Whether w is an optimum, not the mean of a posterior."""

    def __init__(
        self,
        objective: LogPosterior | None,
        w: Array,
        family: TargetFamily | None = None,
        others: int = 0,
        loss: float | None = None,
        no_rows: tuple[str, str] | None = None,
    ) -> None:
        self._objective = objective
        self._w = w
        self._family = family
        self._others = others
        self._loss = loss
        self.no_rows = no_rows or LOADED

    def learn(self, loss: float) -> None:
        """The loss of all rows at w, from a pass that was made for another purpose."""
        if self._loss is not None:
            check_same_rows(self._loss, loss)
        self._known = loss

    def check_rows(self) -> None:
        """An error where the rows are gone, or are not those of the fit."""
        objective = rows_needed(self._objective, self.no_rows)
        with one_blas_thread():
            self.learn(objective.likelihood(self._w, "none", objective.information).value)

    @property
    def can_be_computed(self) -> bool:
        """Whether the rows are there, and no scheduler is needed to read them."""
        rows = None if self._objective is None else self._objective.rows
        return rows is not None and not getattr(rows, "is_distributed", False)

    def without_rows(self) -> "FitStatistics":
        """All of it, without the rows."""
        if self.can_be_computed:
            for name in ("_sums", "log_likelihood", "null_deviance"):
                with suppress(InferenceError):
                    getattr(self, name)
        out = copy(self)
        out._objective = None
        return out

    @cached_property
    def _sums(self) -> FitSums:
        return self._sums_at(1.0)

    def _sums_at(self, dispersion: float) -> FitSums:
        objective = rows_needed(self._objective, self.no_rows)
        loss, target = objective.loss, objective.target
        if self._family is None:
            if self._known is None:
                self.check_rows()
            with one_blas_thread():
                found = objective.rows.map_sum(GatherClassTargets(loss, target))
            return found.with_loss(cast(float, self._known))
        fitted = Fitted(objective.kernel(self._w))
        kernel = GatherFamilyFit(cast(Loss, loss), self._family, target, fitted, dispersion)
        with one_blas_thread():
            found = objective.rows.map_sum(kernel, block_entries=BLOCK_ENTRIES)
        if self._loss is not None:
            check_same_rows(self._loss, found.loss)
        if not np.isfinite([found.deviance, found.pearson]).all():
            raise InferenceError(
                "The deviance does not fit in a double: some mean is far from its target.",
                "Look at the offsets and the scales of the columns, and whether the fit converged.",
            )
        return found

    @property
    def n_obs(self) -> float:
        """n, the total weight of the rows."""
        return self._sums.weight

    @property
    def n_parameters(self) -> int:
        """Numbers that were free, but for the dispersion."""
        return len(self._w) + self._others

    @property
    def n_estimated(self) -> int:
        """The same with the dispersion, if it was open."""
        return self.n_parameters + int(self.estimates_dispersion)

    @property
    def estimates_dispersion(self) -> bool:
        """Whether the family leaves the dispersion open."""
        return self._family is not None and not self._family.dispersion_fixed

    @property
    def freedom(self) -> float:
        """Rows less parameters; infinite where no dispersion is estimated."""
        return self.n_obs - self.n_parameters if self.estimates_dispersion else np.inf

    @property
    def dispersion(self) -> float:
        """s: one, or Pearson's estimate; an error where no rows are left for it."""
        if not self.estimates_dispersion:
            return 1.0
        if self.freedom <= 0:
            raise InferenceError(
                f"{self.n_obs:g} rows leave none to estimate the dispersion from, beside "
                f"{self.n_parameters} parameters.",
                "Fit fewer columns, or more rows.",
            )
        return self._sums.pearson / self.freedom

    @cached_property
    def log_likelihood(self) -> float:
        """ln p(t|w), without the prior.

        At the dispersion estimated; for a Gaussian target with the identity link at Σ(t - μ)²/n,
        which makes it largest. These are the numbers of statsmodels. A fit without any error has an
        infinite one.
        """
        if not self.estimates_dispersion:
            return self._sums.log_likelihood
        own = isinstance(rows_needed(self._objective, self.no_rows).loss, SquaredLoss)
        dispersion = self.deviance / self.n_obs if own else self.dispersion
        return self._sums_at(dispersion).log_likelihood if dispersion > 0 else np.inf

    @property
    def deviance(self) -> float:
        """2s (ln p of the saturated model - ln p); zero if that is rounding beside ln p."""
        found = self._sums.deviance
        if self.estimates_dispersion:
            return found
        return 0.0 if found <= _NOTHING * abs(self._sums.log_likelihood) < np.inf else found

    @cached_property
    def null_deviance(self) -> float:
        """The deviance of the model without columns."""
        sums, objective = self._sums, rows_needed(self._objective, self.no_rows)
        with one_blas_thread():
            return null_deviance(objective, sums, self._family)

    @property
    def aic(self) -> float:
        """2 (parameters - ln p), a dispersion that was estimated being one of them, as in R."""
        self._check_optimum()
        return 2 * (self.n_estimated - self.log_likelihood)

    @property
    def bic(self) -> float:
        """parameters · ln n - 2 ln p."""
        self._check_optimum()
        return self.n_estimated * float(np.log(self.n_obs)) - 2 * self.log_likelihood

    def _check_optimum(self) -> None:
        if not self.at_optimum:
            raise InferenceError(
                "AIC and BIC need the likelihood at its maximum; this is the mean of a posterior.",
                "Use log_evidence_, or compare() with held-out rows.",
            )


def rows_needed(objective: LogPosterior | None, no_rows: tuple[str, str]) -> LogPosterior:
    """The objective with its rows; an error where they were left behind."""
    if objective is None:
        raise InferenceError(*no_rows)
    return objective


def check_same_rows(before: float, now: float) -> None:
    """An error if the loss of the rows is not what it was at the end of the fit."""
    is_close = np.isfinite(now) and abs(now - before) <= _MOVED + _ROUNDING * abs(now)
    if now != before and not is_close:
        raise InferenceError(
            f"The loss was {before:.10g} at the end of the fit and is {now:.10g} now: the rows "
            "have changed since.",
            "Fit again, and do not change the data in place before asking for standard errors, "
            "likelihoods or deviances.",
        )


def null_deviance(objective: LogPosterior, fitted: FitSums, family: TargetFamily | None) -> float:
    """The deviance of the model without columns, given the sums at the fit."""
    loss, target = objective.loss, objective.target
    level = _level_of(loss, fitted.mean)
    constant = objective.standard.intercept and not fitted.has_offset
    saturated = fitted.deviance / 2 + fitted.log_likelihood
    if family is None and constant and np.isfinite(level).all():
        # -ln p(t|a) is linear in the shares t, so that the mean target stands for all rows.
        mean = fitted.mean[None, :] if isinstance(loss, ClassLoss) else fitted.mean
        return 2 * (saturated - fitted.weight * float(negative_entropy(mean)[0]))
    null = _null_model(objective, level, fitted.mean_offset)
    if family is None:
        return 2 * (saturated + float(objective.rows.map_sum(null).value))
    kernel = GatherFamilyFit(cast(Loss, loss), family, target, Fitted(null))
    return objective.rows.map_sum(kernel).deviance


def _null_model(objective: LogPosterior, level: Array, mean_offset: Array) -> GatherQuadratic:
    """The model without columns, fitted by maximum likelihood from activations near `level`."""
    first = objective.standard.intercept
    null = LogPosterior(
        objective.rows,
        Columns(Schema((), named=False)),
        Standard(np.zeros(0), np.ones(0), first),
        objective.loss,
        objective.target,
        flat(int(first)),
        Coordinates(objective.coordinates.n_activations, int(first)),
        _TOLERANCE,
        "expected",
        mean_weight=objective.mean_weight,
    )
    if not first:
        return null.kernel(np.empty(0))
    level = null.coordinates.contrasts.T @ np.where(np.isfinite(level), level, 0.0)
    moves = null.coordinates.contrasts.T @ mean_offset, *offset_range(objective.rows)
    starts = [level - move for move in moves]  # the offsets may leave the domain of the link
    inside = (start for start in starts if np.isfinite(null(start, "none").value))
    solution = scoring(null, next(inside, level))
    if not solution.converged:
        raise InferenceError(
            f"The model without columns could not be fitted. {solution.status.value}",
            "The offsets may be too large: check them, the largest first.",
        )
    return null.kernel(solution.parameters)


def _level_of(loss: Loss | ClassLoss, mean: Array) -> Array:
    """Activations (K,) with this mean; not numbers where it is not sure that there are any."""
    with np.errstate(divide="ignore"):
        if isinstance(loss, ClassLoss):
            return np.log(mean) if isinstance(loss, SoftmaxLoss) else np.full(len(mean), np.nan)
        # The loss of signed labels is logistic too, and the mean is one of shares.
        return (LogisticLoss() if isinstance(loss, LogisticLoss) else loss).activation(mean)
