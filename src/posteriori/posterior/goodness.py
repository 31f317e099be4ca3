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
from posteriori.statistics.fit_sums import FitSums, Fitted, GatherClassFit, GatherFamilyFit
from posteriori.typing import Array


class Goodness:
    """Sums over the rows of a fit with parameters w (p,), made when first asked for.

    `family` is that of a target which is a number; without one, the target is a class. Where the
    family leaves the dispersion s open, it is estimated by Pearson's χ² over the rows less the
    parameters. `others` is how many numbers were estimated beside w and s.
    """

    _others = 0

    def __init__(
        self,
        objective: LogPosterior,
        w: Array,
        family: TargetFamily | None = None,
        others: int = 0,
    ) -> None:
        self._objective: LogPosterior | None = objective
        self._w = w
        self._family = family
        self._others = others

    def without_rows(self) -> "Goodness":
        """All of it, without the rows."""
        if self._objective is not None:
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
        fitted = Fitted(objective.kernel(self._w))
        with one_blas_thread():
            if self._family is None:
                kernel = GatherClassFit(loss, target, fitted)
                return objective.rows.map_sum(kernel, block_entries=BLOCK_ENTRIES)
            own = GatherFamilyFit(cast(Loss, loss), self._family, target, fitted, dispersion)
            return objective.rows.map_sum(own, block_entries=BLOCK_ENTRIES)

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
        """s: one, or Pearson's estimate; not a number where no rows are left for it."""
        if not self.estimates_dispersion:
            return 1.0
        return self._sums.pearson / self.freedom if self.freedom > 0 else np.nan

    @cached_property
    def log_likelihood(self) -> float:
        """ln p(t|w), without the prior.

        At the dispersion estimated; for a Gaussian target with the identity link at Σ(t - μ)²/n,
        which makes it largest. These are the numbers of statsmodels.
        """
        if not self.estimates_dispersion:
            return self._sums.log_likelihood
        own = isinstance(rows_needed(self._objective).loss, GaussianIdentityLoss)
        dispersion = self.deviance / self.n_obs if own else self.dispersion
        return self._sums_at(dispersion).log_likelihood if dispersion > 0 else np.nan

    @property
    def deviance(self) -> float:
        """2s (ln p of the saturated model - ln p)."""
        return self._sums.deviance

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
