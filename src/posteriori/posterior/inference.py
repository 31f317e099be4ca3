"""Inference after a fit: the curvature at the optimum, standard errors, intervals and tests.

Conventions: p free parameters w (p,); the coefficients are those of `CoefficientMap`.
"""

from collections.abc import Callable
from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from posteriori.arguments import check_choice, check_fraction
from posteriori.errors import InferenceError, ParameterError
from posteriori.likelihood.glm_families import TargetFamily
from posteriori.linalg import cholesky, unit_diagonal
from posteriori.posterior.coefficient_table import CoefficientMap, Coefficients
from posteriori.posterior.evidence import (
    Evidence,
    check_proper,
    evidence_of,
    log_determinant_of,
    precision_diagonal,
)
from posteriori.posterior.fit_statistics import PARTIAL_FIT, FitStatistics, rows_needed
from posteriori.posterior.log_posterior import BLOCK_ENTRIES, LogPosterior
from posteriori.rows.threads import one_blas_thread
from posteriori.statistics.local_quadratic import GatherScores
from posteriori.typing import Array, Labels

Errors = Literal["model", "observed", "expected", "robust"]
"""Standard errors by the curvature the model stands for, as observed, as expected, or robust: the
sandwich H⁻¹ (Σ g gᵀ) H⁻¹, with H as observed and g the gradient of a row."""

Intervals = Literal["wald", "profile"]
"""Estimate and so many standard errors to either side, or by the profile of the likelihood."""

_OUTSIDE = 1e-6
"""How much of a direction may lie outside of those that are determined."""

_INVOLVED = 0.1
"""Share of the largest coefficient in a combination from which others are named with it."""


class Inference:
    """The optimum w of an objective, and what follows from the curvature there.

    `value` is the objective there, and `prior` what of it is not a sum over rows, if that is not
    the penalty alone. `family` is that of a target which is a number; its dispersion, where it is
    estimated, multiplies the covariance, and t takes the place of the normal. `others` is how many
    numbers were estimated beside w and the dispersion.

    Covariance and likelihood are computed at the first request, by one pass over the rows.

    Where classes can be separated, w is only a place far out, and `undetermined` (p, m) has
    orthonormal directions along which the objective is level there. What moves along them has an
    infinite standard error.

    With very many parameters the diagonal of the curvature is all there is; `is_diagonal` says that
    standard errors are by it.
    """

    undetermined: Array | None = None
    is_diagonal: bool = False
    draws: Array | None = None
    """Of the posterior (S, p), where there are some."""

    def __init__(
        self,
        objective: LogPosterior,
        w: Array,
        value: float,
        family: TargetFamily | None = None,
        others: int = 0,
        undetermined: Array | None = None,
        prior: float | None = None,
    ) -> None:
        if prior is None:
            prior, _ = objective.penalty.value_and_gradient(objective.coordinates.vectors(w))
        self._objective: LogPosterior | None = objective
        self._prior, self._value, self._family = prior, value, family
        self._free: dict[Errors, Array] = {}
        self._precision: Array | None = None
        self.undetermined = undetermined
        self.w = w
        self.coefficient_map = CoefficientMap.of(objective)
        self.goodness = FitStatistics(objective, w, family, others, value - prior)

    @classmethod
    def known(
        cls, objective: LogPosterior, mean: Array, covariance: Array, draws: Array | None = None
    ) -> "Inference":
        """That of a posterior whose mean (p,) and covariance (p, p) were found otherwise."""
        of_rows = objective.likelihood(mean, "none", objective.information)
        out = cls(objective, mean, of_rows.value, prior=0.0)
        out._free["model"], out._precision = covariance, inverse_of(covariance)
        out.draws, out.goodness.at_optimum = draws, False
        return out

    @classmethod
    def of_precision(cls, coef_map: CoefficientMap, w: Array, precision: Array) -> "Inference":
        """That of an optimum and its curvature alone, as after `partial_fit`."""
        out = cls.__new__(cls)
        out._objective, out._free, out._precision = None, {}, precision
        out.w, out.coefficient_map = w, coef_map
        out.goodness = FitStatistics(None, w, no_rows=PARTIAL_FIT)
        return out

    def adopt(self, hessian: Array) -> None:
        """Take this for the observed curvature of the objective at w, and spare a pass."""
        self._precision = hessian
        if self.objective.information == "observed":
            self._free["model"] = self.goodness.dispersion * self._inverse(hessian)

    @cached_property
    def diagonal(self) -> Array:
        """That of the curvature of the objective at the optimum (p,)."""
        with one_blas_thread():
            return precision_diagonal(self.objective, self.w)

    @property
    def objective(self) -> LogPosterior:
        """The objective with the rows of the fit; an error where they were left behind."""
        return rows_needed(self._objective, self.goodness.no_rows)

    def without_rows(self) -> "Inference":
        """The usual results without the rows, for files.

        Of rows on a cluster it is what was computed before.
        """
        if self.goodness.can_be_computed and not self.objective.is_wide:
            with suppress(InferenceError):
                self.free_covariance()
            with suppress(InferenceError):
                _ = self.evidence
        out = copy(self)
        out._objective, out._free = None, dict(self._free)
        out.goodness = self.goodness.without_rows()
        return out

    def against(self, reference: int) -> "Inference":
        """The same with the contrasts of several classes with another one of them."""
        out = copy(self)
        out.coefficient_map = replace(self.coefficient_map, reference=reference)
        return out

    @property
    def n_parameters(self) -> int:
        """How many numbers were free, but for the dispersion."""
        return self.goodness.n_parameters

    @property
    def estimates(self) -> Array:
        """The coefficients."""
        return self.coefficient_map.estimates(self.w)

    def covariance(self, errors: Errors = "model") -> Array:
        """Covariance of the coefficients; infinite variances have none with others."""
        found = self.coefficient_map.covariance(self.free_covariance(errors))
        infinite = self._is_undetermined(self.coefficient_map.directions)
        found[infinite] = found[:, infinite] = 0.0
        found[infinite, infinite] = np.inf
        return found

    def standard_errors(self, errors: Errors = "model") -> Array:
        """Standard errors of the coefficients."""
        if self.is_diagonal and errors == "model":
            return self.coefficient_map.independent_errors(1 / self.diagonal)
        found = self.coefficient_map.standard_errors(self.free_covariance(errors))
        return np.where(self._is_undetermined(self.coefficient_map.directions), np.inf, found)

    def quantiles(self, level: float) -> Array:
        """Ends (k, 2) that leave out equal shares of the draws of the coefficients."""
        check_fraction("level", level)
        values = cast(Array, self.draws) @ self.coefficient_map.directions.T
        ends = np.quantile(values, [(1 - level) / 2, (1 + level) / 2], axis=0)
        with np.errstate(over="ignore"):
            return (ends / self.coefficient_map.unit).T

    def _is_undetermined(self, directions: Array) -> NDArray[np.bool_]:
        """Which mᵀw, with m in the rows of `directions` (k, p), the rows do not determine."""
        if self.undetermined is None:
            return np.zeros(len(directions), dtype=np.bool_)
        left = np.linalg.norm(directions @ self.undetermined, axis=1)
        return left > _OUTSIDE * np.linalg.norm(directions, axis=1)

    def p_values(self, statistic: Array) -> Array:
        """Probability of a larger statistic, either sign: normal, or t with s estimated."""
        tail, freedom = -abs(statistic), self.goodness.freedom
        return cast(Array, 2 * (ndtr(tail) if freedom == np.inf else stdtr(freedom, tail)))

    def quantile(self, level: float) -> float:
        """How many standard errors to either side have this share of the probability."""
        check_fraction("level", level)
        below, freedom = (1 + level) / 2, self.goodness.freedom
        return float(ndtri(below) if freedom == np.inf else stdtrit(freedom, below))

    def table(
        self,
        labels: Labels | None,
        level: float = 0.95,
        errors: Errors = "model",
        intervals: Intervals = "wald",
    ) -> Coefficients:
        """The coefficients with their errors, tests and intervals; `labels` are the classes."""
        quantile, coef_map = self.quantile(level), self.coefficient_map
        check_choice("intervals", intervals, get_args(Intervals))
        if intervals == "profile" and errors == "robust":
            raise ParameterError(
                "intervals='profile' and errors='robust' exclude each other: a profile of the "
                "likelihood has no standard errors.",
                "Use intervals='wald' with errors='robust', or another kind of errors.",
            )
        if not self.goodness.at_optimum and (errors, intervals) != ("model", "wald"):
            raise ParameterError(
                f"errors={errors!r} with intervals={intervals!r} is for the mode of a posterior; "
                "this fit has posterior means and standard deviations.",
                "Use errors='model' and intervals='wald', or inference='laplace'.",
            )
        estimate, error = self.estimates, self.standard_errors(errors)
        if intervals == "profile":
            low, high, statistic = self.profile(level).T
        else:
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                statistic = np.where(np.isinf(error) | (estimate == 0), 0.0, estimate / error)
                low, high = estimate - quantile * error, estimate + quantile * error
            if self.draws is not None:
                low, high = self.quantiles(level).T
        classes = reference = None
        if labels is not None and coef_map.coordinates.n_activations > 1:
            classes = tuple(np.repeat(labels[coef_map.others], len(coef_map.terms)).tolist())
            reference = labels.tolist()[coef_map.reference]
        p_values = self.p_values(statistic)
        terms = coef_map.terms * coef_map.n_contrasts
        return Coefficients(
            terms, classes, estimate, error, statistic, p_values, low, high, reference
        )

    def profile(self, level: float) -> Array:
        """Both ends of each coefficient by its profile, and the signed root of the likelihood ratio
        against zero (k, 3).

        At the ends the profiled objective, over s, has risen by ½ quantile².
        """
        from posteriori.posterior.profile_likelihood import Profile

        dispersion = self.goodness.dispersion
        rise = 0.5 * self.quantile(level) ** 2 * dispersion
        directions, objective = self.coefficient_map.directions, self.objective
        exact = objective.has_exact_hessian
        objective = replace(objective, information="observed" if exact else "expected")
        self.goodness.check_rows()
        if self._is_undetermined(directions).any():
            raise InferenceError(
                "The classes can be separated, so that the likelihood has no maximum and some "
                "coefficients no profile.",
                "Use prior='jeffreys', or intervals='wald'.",
            )
        out = np.empty((len(directions), 3))
        with one_blas_thread():
            hessian = cast(Array, objective(self.w, "full").hessian)
            for j, (m, name) in enumerate(zip(directions, self.coefficient_map.names, strict=True)):
                profile = Profile(objective, self.w, self._value, hessian, m, name)
                ends = [profile.end(rise, side) for side in (-1.0, 1.0)]
                out[j] = *ends, profile.likelihood_ratio() / np.sqrt(dispersion)
        out[:, :2] /= self.coefficient_map.unit[:, None]
        return out

    @cached_property
    def evidence(self) -> Evidence:
        """The evidence by the curvature at the optimum; an error where it is not known."""
        objective = self.objective
        if self.goodness.estimates_dispersion or self.goodness.n_parameters > len(self.w):
            raise InferenceError(
                "The evidence is that of coefficients alone; here other numbers were estimated "
                "with them, the dispersion or the rate of wrong labels.",
                "Compare such fits by bic_ or aic_.",
            )
        check_proper(objective.penalty)
        found = objective.penalty, objective.coordinates.vectors(self.w), self._log_likelihood()
        curvature = self.diagonal if objective.is_wide else self.free_precision
        return evidence_of(*found, log_determinant_of(curvature))

    def _log_likelihood(self) -> float:
        """ln p(t|w): for classes it is the objective without its prior, and no pass is needed."""
        if self._family is None and np.isfinite(self._value):
            return self._prior - self._value
        return self.goodness.log_likelihood

    @property
    def free_precision(self) -> Array:
        """(p, p), the observed curvature of the objective at the optimum."""
        if self._precision is None:
            observed = self.objective.information == "observed"
            self.free_covariance("model" if observed else "observed")
        return cast(Array, self._precision)

    def free_covariance(self, errors: Errors = "model") -> Array:
        """(p, p), of the free parameters."""
        check_choice("errors", errors, get_args(Errors))
        if errors not in self._free:
            with one_blas_thread():
                self._free[errors] = self._free_covariance(errors)
        return self._free[errors]

    def _free_covariance(self, errors: Errors) -> Array:
        if self._objective is None and self._precision is not None and errors == "model":
            return inverse_of(self._precision)
        objective = self.objective
        if objective.is_wide:
            raise InferenceError(
                f"With {objective.coordinates.size} parameters their covariance was not computed.",
                "Fit fewer columns, or use predictions without standard errors.",
            )
        if errors == "robust":
            observed: Errors = "model" if objective.information == "observed" else "observed"
            inverse = self.free_covariance(observed) / self.goodness.dispersion
            return inverse @ self._scores(objective) @ inverse
        if errors != "model":
            objective = replace(objective, information=errors)
        local = objective(self.w, "full")
        self.goodness.learn(local.value - self._prior)
        hessian = cast(Array, local.hessian)
        inverse = self._inverse(hessian)
        if objective.information == "observed":
            self._precision = hessian
        return self.goodness.dispersion * inverse

    def _inverse(self, hessian: Array) -> Array:
        """H⁻¹, in the directions that are determined."""
        N = self.undetermined
        if N is None:
            return inverse_of(hessian, self._named)
        filled = hessian + max(np.diagonal(hessian).max(initial=0.0), 1.0) * N @ N.T
        inverse = inverse_of(filled, self._named)
        inverse -= inverse @ N @ N.T
        return inverse - N @ (N.T @ inverse)

    def _named(self, direction: Array) -> str:
        """The coefficients that make up a direction of w, for messages."""
        theta = abs(self.coefficient_map.coordinates.expand(direction)).max(axis=0)
        involved = np.flatnonzero(theta >= _INVOLVED * theta.max())
        terms = [repr(self.coefficient_map.terms[j]) for j in involved[:8]]
        return f"coefficients ({', '.join(terms)}{', ...' if len(involved) > 8 else ''})"

    def _scores(self, objective: LogPosterior) -> Array:
        """Σ w g gᵀ over rows, g being the gradient of a row; the filling of the sandwich."""
        kernel = GatherScores(objective.kernel(self.w), classes=self._family is None)
        found = objective.rows.map_sum(kernel, block_entries=BLOCK_ENTRIES)
        return objective.coordinates.contract_matrix(objective.standard.inward_matrix(found))


def inverse_of(
    hessian: Array, named: Callable[[Array], str] = lambda direction: "coefficients"
) -> Array:
    """The inverse of a positive definite matrix, scaled so that units do not matter.

    `named` says for an error which coefficients a direction is made of.
    """
    if not len(hessian):
        return hessian
    matrix, scale = unit_diagonal(hessian)
    lower = cholesky(matrix)
    if lower is None:
        raise InferenceError(
            "The curvature at the optimum is not positive definite: some combination of "
            f"{named(np.linalg.eigh(matrix)[1][:, 0] / scale)} is not determined by the data.",
            "Check separation_ and collinear columns, or set a prior on these coefficients "
            "(GaussianPrior takes one for the intercept too).",
        )
    inverse, _ = lapack.dpotri(lower, lower=1)
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    return inverse / scale / scale[:, None]
