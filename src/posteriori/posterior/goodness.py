"""How well a fit describes its rows: likelihood, deviances, dispersion, and what they cost.

Weights count rows: a row of weight w is w rows.
"""

from contextlib import suppress
from copy import copy
from functools import cached_property
from typing import cast

import numpy as np

from posteriori.errors import InferenceError
from posteriori.likelihood.glm import TargetFamily
from posteriori.likelihood.loss import Loss
from posteriori.likelihood.real_losses import GaussianIdentityLoss
from posteriori.posterior.null_model import null_deviance
from posteriori.posterior.objective import BLOCK_ENTRIES, LogPosterior
from posteriori.rows.threads import one_blas_thread
from posteriori.statistics.goodness_of_fit import (
    FitSums,
    Fitted,
    GatherClassFit,
    GatherClassTargets,
    GatherFamilyFit,
)
from posteriori.typing import Array

_MOVED, _ROUNDING = 1e-3, 1e-10
"""By how much, plainly and beside its size, the loss can differ on the rows of the fit."""

_NOTHING = 1e-15
"""A deviance of this size, beside the log-likelihood, is rounding."""


class Goodness:
    """Sums over the rows of a fit with parameters w (p,), made when first asked for.

    `family` is that of a target which is a number; without one, the target is a class. Where the
    family leaves the dispersion s open, it is estimated by Pearson's χ² over the rows less the
    parameters. `others` is how many numbers were estimated beside w and s. `loss` is the sum that
    the fit ended with, by which rows that changed since are noticed.
    """

    _others = 0
    _known: float | None = None

    def __init__(
        self,
        objective: LogPosterior,
        w: Array,
        family: TargetFamily | None = None,
        others: int = 0,
        loss: float | None = None,
    ) -> None:
        self._objective: LogPosterior | None = objective
        self._w = w
        self._family = family
        self._others = others
        self._loss = loss

    def learn(self, loss: float) -> None:
        """The loss of all rows at w, from a pass that was made for another purpose."""
        if self._loss is not None:
            check_same_rows(self._loss, loss)
        self._known = loss

    def without_rows(self) -> "Goodness":
        """All of it, without the rows."""
        if self._objective is not None:
            _ = self._sums
            with suppress(InferenceError):
                _ = self.log_likelihood
            with suppress(InferenceError):
                _ = self.null_deviance
        out = copy(self)
        out._objective = None
        return out

    @cached_property
    def _sums(self) -> FitSums:
        return self._sums_at(1.0)

    def _sums_at(self, dispersion: float) -> FitSums:
        objective = rows_needed(self._objective)
        loss, target = objective.loss, objective.target
        if self._family is None and self._known is not None:
            with one_blas_thread():
                found = objective.rows.map_sum(GatherClassTargets(loss, target))
            return found.with_loss(self._known)
        fitted = Fitted(objective.kernel(self._w))
        kernel = (
            GatherClassFit(loss, target, fitted)
            if self._family is None
            else GatherFamilyFit(cast(Loss, loss), self._family, target, fitted, dispersion)
        )
        with one_blas_thread():
            found = objective.rows.map_sum(kernel, block_entries=BLOCK_ENTRIES)
        if self._loss is not None:
            check_same_rows(self._loss, found.loss)
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
        dispersion = self._sums.pearson / self.freedom
        if not np.isfinite(dispersion):
            raise InferenceError(
                "The dispersion does not fit in a double: some mean is far from its target.",
                "Look at the offsets and the scales of the columns, and whether the fit converged.",
            )
        return dispersion

    @cached_property
    def log_likelihood(self) -> float:
        """ln p(t|w), without the prior.

        At the dispersion estimated; for a Gaussian target with the identity link at Σ(t - μ)²/n,
        which makes it largest. These are the numbers of statsmodels. A fit without any error has an
        infinite one.
        """
        if not self.estimates_dispersion:
            return self._sums.log_likelihood
        own = isinstance(rows_needed(self._objective).loss, GaussianIdentityLoss)
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
        sums, objective = self._sums, rows_needed(self._objective)
        with one_blas_thread():
            return null_deviance(objective, sums, self._family)

    @property
    def aic(self) -> float:
        """2 (parameters - ln p), a dispersion that was estimated being one of them, as in R."""
        return 2 * (self.n_estimated - self.log_likelihood)

    @property
    def bic(self) -> float:
        """parameters · ln n - 2 ln p."""
        return self.n_estimated * float(np.log(self.n_obs)) - 2 * self.log_likelihood


def rows_needed(objective: LogPosterior | None) -> LogPosterior:
    """The objective with its rows; an error where they were left behind."""
    if objective is None:
        raise InferenceError(
            "This model was loaded from a file, without the rows it was fitted to.",
            "Ask for it before saving the model, or fit again.",
        )
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
