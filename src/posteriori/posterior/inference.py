"""What a fit knows of its own uncertainty: the curvature at the optimum, in the user's units.

Conventions: p free parameters w (p,); the parameters shown to users are those of `Shown`.
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
from posteriori.errors import InferenceError
from posteriori.likelihood.glm import TargetFamily
from posteriori.linalg import cholesky, unit_diagonal
from posteriori.posterior.evidence import Evidence, check_proper, evidence_of, log_determinant
from posteriori.posterior.goodness import Goodness, rows_needed
from posteriori.posterior.objective import BLOCK_ENTRIES, LogPosterior
from posteriori.posterior.profile import profile_ends
from posteriori.posterior.runaway import runaway_ends
from posteriori.posterior.shown import Shown
from posteriori.posterior.wide_laplace import WideLaplace, wide_laplace
from posteriori.rows.threads import one_blas_thread
from posteriori.statistics.local_quadratic import GatherScores
from posteriori.typing import Array

Errors = Literal["model", "observed", "expected", "robust"]
"""Standard errors by the curvature the model stands for, as observed, as expected, or robust: the
sandwich H⁻¹ (Σ g gᵀ) H⁻¹, with H as observed and g the gradient of a row."""

_OUTSIDE = 1e-6
"""How much of a direction may lie outside of those that are determined."""

_INVOLVED = 0.1
"""Share of the largest coefficient in a combination from which others are named with it."""


class Inference:
    """The optimum w of an objective, and what its curvature there says.

    `value` is the objective there, and `prior` what of it is not a sum over rows, if that is not
    the penalty alone. `family` is that of a target which is a number; its dispersion, where it is
    estimated, multiplies the covariance, and t takes the place of the normal. `others` is how many
    numbers were estimated beside w and the dispersion.

    The rows of the fit are kept, and looked at again when a question comes: one pass for the
    curvature, and one for likelihood and deviance; after the other this needs the targets alone.

    Where classes can be separated, w is only a place far out, and `determined` (p, k) has
    orthonormal directions along which the objective has a minimum. What leaves them has an
    infinite standard error.

    With very many parameters there is no curvature, but `wide` has draws by it, once it is asked
    for; `is_drawn` says that standard errors go by these.
    """

    determined: Array | None = None
    is_drawn: bool = False

    def __init__(
        self,
        objective: LogPosterior,
        w: Array,
        value: float,
        family: TargetFamily | None = None,
        others: int = 0,
        determined: Array | None = None,
        prior: float | None = None,
    ) -> None:
        self._objective: LogPosterior | None = objective
        if prior is None:
            prior = objective.penalty.value(objective.coordinates.vectors(w))
        self._prior, self._value, self._family = prior, value, family
        self._free: dict[Errors, Array] = {}
        self._precision: Array | None = None
        self.determined = determined
        self.w = w
        self.shown = Shown.of(objective)
        self.goodness = Goodness(objective, w, family, others, value - prior)

    @classmethod
    def known(cls, objective: LogPosterior, mean: Array, covariance: Array) -> "Inference":
        """That of a posterior whose mean (p,) and covariance (p, p) were found otherwise."""
        of_rows = objective.likelihood(mean, "none", objective.information)
        out = cls(objective, mean, of_rows.value, prior=0.0)
        out._free["model"], out._precision = covariance, inverse_of(covariance)
        return out

    def adopt(self, hessian: Array) -> None:
        """Take this for the observed curvature of the objective at w, and spare a pass."""
        self._precision = hessian
        if rows_needed(self._objective).information == "observed":
            self._free["model"] = self.goodness.dispersion * self._inverse(hessian)

    @cached_property
    def wide(self) -> WideLaplace:
        """Of very many parameters: draws of the Gaussian of the curvature, and its determinant."""
        with one_blas_thread():
            return wide_laplace(rows_needed(self._objective), self.w)

    @property
    def objective(self) -> LogPosterior:
        """The objective with the rows of the fit; an error where they were left behind."""
        return rows_needed(self._objective)

    def without_rows(self) -> "Inference":
        """All that is usually asked, without the rows: for files."""
        if self._objective is not None and (
            "low_rank" in self.__dict__ or not self._objective.is_wide
        ):
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
        out.shown = replace(self.shown, reference=reference)
        return out

    @property
    def n_parameters(self) -> int:
        """How many numbers were free, but for the dispersion."""
        return self.goodness.n_parameters

    @property
    def estimates(self) -> Array:
        """The parameters shown."""
        return self.shown.estimates(self.w)

    def covariance(self, errors: Errors = "model") -> Array:
        """Covariance of the parameters shown; infinite variances have none with others."""
        found = self.shown.covariance(self.free_covariance(errors))
        infinite = self.undetermined(self.shown.directions)
        found[infinite] = found[:, infinite] = 0.0
        found[infinite, infinite] = np.inf
        return found

    def standard_errors(self, errors: Errors = "model") -> Array:
        """Standard errors of the parameters shown."""
        if self.is_drawn and errors == "model":
            return self.shown.drawn_errors(self.wide.gaussian.root)
        found = self.shown.standard_errors(self.free_covariance(errors))
        return np.where(self.undetermined(self.shown.directions), np.inf, found)

    def undetermined(self, directions: Array) -> NDArray[np.bool_]:
        """Which mᵀw, with m in the rows of `directions` (k, p), the rows do not determine."""
        D = self.determined
        if D is None:
            return np.zeros(len(directions), dtype=np.bool_)
        left = np.linalg.norm(directions - directions @ D @ D.T, axis=1)
        return left > _OUTSIDE * np.linalg.norm(directions, axis=1)

    def p_values(self, statistic: Array) -> Array:
        """Probability of a larger statistic, either sign: normal, or t with s estimated."""
        tail, freedom = -abs(statistic), self._freedom
        return cast(Array, 2 * (ndtr(tail) if freedom == np.inf else stdtr(freedom, tail)))

    def quantile(self, level: float) -> float:
        """How many standard errors to either side hold this share of the probability."""
        check_fraction("level", level)
        below, freedom = (1 + level) / 2, self._freedom
        return float(ndtri(below) if freedom == np.inf else stdtrit(freedom, below))

    @property
    def _freedom(self) -> float:
        return self.goodness.freedom if self.goodness.estimates_dispersion else np.inf

    @cached_property
    def evidence(self) -> Evidence:
        """The evidence by the curvature at the optimum; an error where it is not known."""
        objective = rows_needed(self._objective)
        if self.goodness.estimates_dispersion or self.goodness.n_parameters > len(self.w):
            raise InferenceError(
                "The evidence is that of coefficients alone; here other numbers were estimated "
                "with them, the dispersion or the rate of wrong labels.",
                "Compare such fits by bic_ or aic_.",
            )
        check_proper(objective.penalty)
        found = objective.penalty, objective.coordinates.vectors(self.w), self._log_likelihood()
        if objective.is_wide:
            return evidence_of(*found, self.wide.log_determinant, self.wide.standard_error)
        return evidence_of(*found, log_determinant(self.free_precision))

    def _log_likelihood(self) -> float:
        """ln p(t|w): for classes it is the objective without its prior, and no pass is needed."""
        if self._family is None and np.isfinite(self._value):
            return self._prior - self._value
        return self.goodness.log_likelihood

    @property
    def free_precision(self) -> Array:
        """(p, p), the observed curvature of the objective at the optimum."""
        if self._precision is None:
            objective = rows_needed(self._objective)
            self.free_covariance("model" if objective.information == "observed" else "observed")
        return cast(Array, self._precision)

    def profile(self, level: float) -> Array:
        """Ends (shown, 2) at which the profiled objective, over s, has risen by ½ quantile²."""
        rise = 0.5 * self.quantile(level) ** 2 * self.goodness.dispersion
        objective = rows_needed(self._objective)
        self.free_covariance()  # an error if the rows have changed
        with one_blas_thread():
            if self.determined is None:
                names = self.shown.names
                ends = profile_ends(objective, self.w, self.shown.directions, rise, names)
            else:
                ends = runaway_ends(objective, self.shown.directions, rise)
        return ends / self.shown.unit[:, None]

    def free_covariance(self, errors: Errors = "model") -> Array:
        """(p, p), of the free parameters."""
        check_choice("errors", errors, get_args(Errors))
        if errors not in self._free:
            with one_blas_thread():
                self._free[errors] = self._worked_out(errors)
        return self._free[errors]

    def _worked_out(self, errors: Errors) -> Array:
        objective = rows_needed(self._objective)
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
        D = self.determined
        if D is None:
            return inverse_of(hessian, self._named)
        inverse = inverse_of(D.T @ hessian @ D, lambda direction: self._named(D @ direction))
        return D @ inverse @ D.T

    def _named(self, direction: Array) -> str:
        """The coefficients that make up a direction of w, for messages."""
        theta = abs(self.shown.coordinates.expand(direction)).max(axis=0)
        involved = np.flatnonzero(theta >= _INVOLVED * theta.max())
        terms = [repr(self.shown.terms[j]) for j in involved[:8]]
        return f"coefficients ({', '.join(terms)}{', ...' if len(involved) > 8 else ''})"

    def _scores(self, objective: LogPosterior) -> Array:
        """Σ w g gᵀ over rows, g being the gradient of a row; the filling of the sandwich."""
        kernel = GatherScores(objective.kernel(self.w))
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
            "Look at separation_ and at collinear columns, or set a prior that holds them "
            "(GaussianPrior takes one for the intercept too).",
        )
    inverse, _ = lapack.dpotri(lower, lower=1)
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    return inverse / scale / scale[:, None]
