"""A noisy threshold (4.112)-(4.113): two classes by the distribution function of any noise."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from posteriori.likelihood.binary import BinaryLoss
from posteriori.likelihood.link import ProbabilityLink
from posteriori.likelihood.loss import Loss
from posteriori.likelihood.soft_ends import domain_of, ends, softened
from posteriori.likelihood.threshold import ThresholdLoss
from posteriori.linalg import unit_diagonal
from posteriori.models.discriminative import WITH_A_NUMBER, Solver
from posteriori.models.edges import in_words, rows_at, solved
from posteriori.models.fitting import Prepared, Problem
from posteriori.models.linked import LinkedClassifier
from posteriori.models.scoring import choice, scored
from posteriori.posterior.objective import LogPosterior
from posteriori.posterior.priors import PriorLike, PriorName
from posteriori.rows.rows import Rows
from posteriori.rows.schema import Unseen
from posteriori.solve.separation import Separation
from posteriori.solve.solution import Iteration, Solution, Status
from posteriori.statistics.local_quadratic import Information
from posteriori.typing import Array

_NOTHING = 1e-12
"""A loss of all rows together that is no more than rounding."""

_FLAT = 1e-10
"""A curvature that is no more than rounding, beside those of single coefficients."""


class ThresholdRegression(LinkedClassifier):
    """p(C₂|x) = F(wᵀφ(x)), F the distribution function of the noise (4.113).

    A row is of the second class where wᵀφ exceeds a threshold θ, and θ is drawn from the noise
    (4.112), so that F(a) = ∫ p(θ) dθ up to a, as in Figure 4.13. Normal noise is probit regression,
    logistic noise is logistic regression; heavy tails, such as Student's, make the fit robust.

    Parameters
    ----------
    noise : a continuous distribution of SciPy, its name, or a `Mixture`
        `scipy.stats.cauchy`, `scipy.stats.t(3)`, `"gumbel_r"`, or
        `Mixture([0.4, 0.6], [norm(-1, 0.5), norm(1.5, 1)])`.
    prior, fit_intercept, tol, max_iter, unseen
        As in `ProbitRegression`.

    Attributes
    ----------
    coef_ (1, d), intercept_ (1,), classes_; n_iter_, converged_, solution_; coef_covariance_
    (intercept first, by the expected second derivative f²/(F(1 - F))), log_likelihood_;
    n_parameters_.

    `decision_function` is wᵀφ less the median of the noise: positive where the second class is the
    more probable one.

    The fit starts at the quantile of the share of the second class. Unless ln F and ln(1 - F) are
    known to be concave it takes steps of Fisher scoring until it is close, as the likelihood may
    have several maxima, of which it finds one. Noise of bounded support makes rows certain: the
    fit never gives a label probability zero.

    Examples
    --------
    >>> from scipy.stats import cauchy
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = ThresholdRegression(noise=cauchy).fit(X[:, :2], y)
    >>> model.coef_.round(3), model.intercept_.round(3)
    (array([[-1.684, -0.307]]), array([30.769]))
    """

    solver: Solver = "auto"
    _information: Information = "expected"

    def __init__(
        self,
        *,
        noise: Any = "norm",
        prior: PriorLike | PriorName = None,
        fit_intercept: bool = True,
        tol: float = 1e-4,
        max_iter: int | None = None,
        unseen: Unseen = "error",
    ) -> None:
        self.noise = noise
        self.prior = prior
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.unseen = unseen

    def _loss(self, n_classes: int, soft: bool) -> Loss:
        return ThresholdLoss(self.noise)

    def _make_link(self) -> ProbabilityLink:
        return cast(ThresholdLoss, self._loss(2, False)).link

    def _problem(self, rows: Rows) -> Problem:
        domain = domain_of(self._make_link())
        self._check_prior(domain.is_bounded)
        return replace(super()._problem(rows), domain=domain)

    def _solve(self, prepared: Prepared) -> Solution[Array, Iteration]:
        self.solver_, self.solver_reason_ = choice(prepared.objective)
        link, suspicion = self._fitted_link, self._suspicion(prepared.objective)
        places = ends(link)
        if not places:
            return scored(prepared.levels, prepared.start, self.max_iter, suspicion)
        solution, at_end = solved(
            prepared, lambda width: BinaryLoss(softened(link, width)), self.max_iter, suspicion
        )
        if self._has_no_optimum(prepared.objective, solution, at_end):
            return replace(solution, status=Status.SEPARATED)
        if at_end:
            self._warn_of_ends(prepared.objective, solution, places)
        return solution

    def _has_no_optimum(
        self, objective: LogPosterior, solution: Solution[Array, Iteration], at_end: bool
    ) -> bool:
        """Whether separated classes leave the optimum open: certain rows can go on for ever."""
        is_separated = self._suspicion(objective)
        if is_separated is None or not (at_end or _is_flat(objective, solution)):
            return False
        kinds = ("complete",) if at_end else ("quasi", "complete")
        return is_separated() and cast(Separation, self._separation).kind in kinds

    def _finish(self, prepared: Prepared, remedies: str = WITH_A_NUMBER) -> None:
        super()._finish(prepared, WITH_A_NUMBER if ends(self._fitted_link) else remedies)

    def _proves_overlap(self, objective: LogPosterior) -> bool:
        # Labels are certain beyond an end of the noise, so that a maximum proves nothing.
        return not ends(self._fitted_link) and super()._proves_overlap(objective)

    def _warn_of_ends(
        self,
        objective: LogPosterior,
        solution: Solution[Array, Iteration],
        places: Sequence[float],
    ) -> None:
        low, high = self._fitted_link.activation(np.array([0.25, 0.75]))
        edge = rows_at(objective, solution.parameters, places, high - low)
        if edge.n_rows:
            self._warn_of_edge(
                f"The likelihood is largest where {in_words(edge)} lies at an end of the support "
                "of the noise. It has a kink there, so that standard errors do not hold.",
                "Use noise whose density is smooth for inference.",
            )


def _is_flat(objective: LogPosterior, solution: Solution[Array, Iteration]) -> bool:
    """Whether the objective is level along some way from the optimum, moved rows being certain."""
    if objective.is_wide:
        return solution.value <= _NOTHING
    matrix, _ = unit_diagonal(cast(Array, objective(solution.parameters, "full").hessian))
    return bool(np.linalg.eigvalsh(matrix)[0] < _FLAT)
