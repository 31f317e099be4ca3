"""Two classes by a probability link p(C₂|x) = F(wᵀφ(x)) (4.111): probit, and threshold noise."""

from abc import abstractmethod
from dataclasses import replace
from typing import Any, NoReturn, cast

import numpy as np
from numpy.typing import NDArray

from posteriori.errors import BoundaryWarning, DomainError, LabelError, ParameterError, warn
from posteriori.likelihood.binary_losses import BinaryLoss
from posteriori.likelihood.cdf_links import cdf_link
from posteriori.likelihood.links import PROBABILITY_LINKS, ProbabilityLink
from posteriori.likelihood.loss import Loss
from posteriori.linalg import unit_diagonal
from posteriori.models.base import anywhere
from posteriori.models.fitting import Prepared, Problem
from posteriori.models.likelihood_model import WITH_A_NUMBER, LikelihoodModel, Solver
from posteriori.models.linear import Hyperplane
from posteriori.models.scoring import choice, scored
from posteriori.posterior.log_posterior import LogPosterior
from posteriori.posterior.priors import PriorLike, PriorName
from posteriori.rows.block import Block, Rows
from posteriori.rows.schema import HandleUnknown
from posteriori.solve.objective import Iteration, Solution, Status
from posteriori.solve.separation import Separation
from posteriori.statistics.glm_domain import CountRows
from posteriori.statistics.goodness_of_fit import Fitted
from posteriori.statistics.local_quadratic import Information
from posteriori.typing import Array, Labels


class LinkedClassifier(LikelihoodModel):
    """A classifier of two classes with a link F of its own.

    The classes are equally probable where F(a) = ½. For a symmetric F that is a = 0; otherwise
    `decision_function` and `hyperplane` take the middle off, so that both change sign there.
    `coef_` and `intercept_` give the activation a itself.
    """

    _fitted_link: ProbabilityLink
    _edge: str | None

    @abstractmethod
    def _make_link(self) -> ProbabilityLink:
        """F, from the parameters of the estimator."""

    def _link(self) -> ProbabilityLink:
        return self._fitted_link

    def _problem(self, rows: Rows) -> Problem:
        self._check_classes(cast(Labels, rows.classes))
        self._fitted_link, self._edge = self._make_link(), None
        return super()._problem(rows)

    def _check_classes(self, classes: Labels) -> None:
        if len(classes) > 2:
            raise LabelError(
                f"Only binary classification is supported. {type(self).__name__} tells two "
                f"classes apart; y has {len(classes)}.",
                "Use LogisticRegression, or OneVersusRest with this estimator.",
            )

    def _check_prior(self, has_ends: bool) -> None:
        if has_ends and isinstance(self.prior, str):
            raise ParameterError(
                f"prior={self.prior!r} cannot be combined with a link or noise of bounded support.",
                "Use None, a number or a GaussianPrior; or a link or noise without ends.",
            )

    def _warn_of_edge(self, problem: str, remedy: str) -> None:
        """Say that the optimum lies at an end, now and on the page of the fit."""
        self._edge = problem
        warn(BoundaryWarning(problem, remedy))

    def _summary_notes(self) -> tuple[str, ...]:
        notes = super()._summary_notes()
        return notes if self._edge is None else (*notes, self._edge)

    def _middle(self) -> float:
        """The activation at which both classes are equally probable."""
        return float(self._link().activation(np.array([0.5]))[0])

    @anywhere
    def decision_function(self, X: Any, offset: Any = None) -> Array:
        """Activations less the one with F = ½ (n,): positive where the second class is chosen."""
        self._known_classes()
        return super().decision_function(X, offset) - self._middle()

    def hyperplane(self, first: Any = None, second: Any = None) -> Hyperplane:
        """The boundary between the classes, where F(wᵀx + w₀) = ½; its positive side is `first`.

        Both labels can be left out: the positive side is then that of `classes_[1]`.
        """
        plane = super().hyperplane(first, second)
        side = 1.0 if first is None or first == self.classes_[1] else -1.0
        return Hyperplane(plane.normal, plane.offset - side * self._middle())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


class ProbitRegression(LinkedClassifier):
    """p(C₂|x) = Φ(wᵀφ(x)), Φ the distribution function of the standard normal (4.114).

    A row is of the second class where wᵀφ exceeds a threshold drawn from N(0, 1) (4.112)-(4.113).
    Compared with the logistic sigmoid its tails fall as exp(-a²), so that outliers count for more.
    Fitted by Newton's method on -Σ ln p(t|a) - ln p(w), whose second derivative in a is
    (φ/Φ)(φ/Φ + a) (exercise 4.19), in a form that keeps its digits out to activations of ±1e4.

    Parameters
    ----------
    prior : None, a number, a `GaussianPrior` or "jeffreys"
        None is maximum likelihood. A number α is N(0, 1/α) on every slope, and nothing on the
        intercept. Jeffreys' prior keeps coefficients finite where classes can be separated.
    solver : "auto" or the name of a solver
        As in `LogisticRegression`.
    fit_intercept : bool
    tol : float
        The iteration ends within about this many standard errors of the optimum; much nearer
        where that costs little.
    max_iter : int or None
        Steps before the iteration is given up; None leaves it to the solver.
    handle_unknown : "error" or "reference"
        What to do with a level of a factor that the fit never saw.

    Attributes
    ----------
    coef_ (1, d), intercept_ (1,), classes_; n_iter_, converged_, solution_; coef_covariance_
    (intercept first, by the second derivative as observed), log_likelihood_; n_parameters_.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = ProbitRegression().fit(X[:, :2], y)
    >>> model.coef_.round(3), model.intercept_.round(3)
    (array([[-0.581, -0.123]]), array([10.971]))
    >>> model.predict_proba(X[:1, :2]).round(4)
    array([[0.7751, 0.2249]])
    """

    def __init__(
        self,
        *,
        prior: PriorLike | PriorName = None,
        solver: Solver = "auto",
        fit_intercept: bool = True,
        tol: float = 1e-4,
        max_iter: int | None = None,
        handle_unknown: HandleUnknown = "error",
    ) -> None:
        self.prior = prior
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.handle_unknown = handle_unknown

    def _loss(self, n_classes: int, soft: bool) -> Loss:
        return BinaryLoss(PROBABILITY_LINKS["probit"])

    def _make_link(self) -> ProbabilityLink:
        return PROBABILITY_LINKS["probit"]


_NOTHING = 1e-12
"""A loss of all rows together that is no more than rounding."""

_PATIENCE = 30
"""Steps after which an optimum that is not at a kink of the likelihood would have been found."""

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
    prior, fit_intercept, tol, max_iter, handle_unknown
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
        handle_unknown: HandleUnknown = "error",
    ) -> None:
        self.noise = noise
        self.prior = prior
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.handle_unknown = handle_unknown

    def _loss(self, n_classes: int, soft: bool) -> Loss:
        return BinaryLoss(cdf_link(self.noise))

    def _make_link(self) -> ProbabilityLink:
        return cdf_link(self.noise)

    def _problem(self, rows: Rows) -> Problem:
        support = self._make_link().support
        self._check_prior(support.is_bounded)
        return replace(super()._problem(rows), domain=support)

    def _solve(self, prepared: Prepared) -> Solution[Array, Iteration]:
        self.solver_, self.solver_reason_ = choice(prepared.objective)
        objective, has_ends = prepared.objective, self._fitted_link.support.is_bounded
        check_separation = self._check_separation(objective)
        most = self.max_iter or (_PATIENCE if has_ends else None)
        solution = scored(prepared.levels, prepared.start, most, check_separation)
        if not np.isfinite(solution.value):
            self._raise_impossible(objective, solution)
        if not has_ends or solution.status is Status.SEPARATED:
            return solution
        if self._has_no_optimum(objective, solution):
            return replace(solution, status=Status.SEPARATED)
        if solution.status is Status.STALLED or not (solution.converged or self.max_iter):
            self._warn_of_edge(
                "The likelihood has kinks where rows lie at an end of the support of the noise, "
                "and the fit ended at one of them. It is close to the maximum, but no closer than "
                "Newton's method gets there, and standard errors do not hold.",
                "Use noise whose density is smooth, such as 'norm', 'logistic' or 'gumbel_r'.",
            )
            return replace(solution, status=Status.BOUNDARY)
        return solution

    def _raise_impossible(
        self, objective: LogPosterior, solution: Solution[Array, Iteration]
    ) -> NoReturn:
        """An error that names the first row whose label has probability zero."""
        activation = Fitted(objective.kernel(solution.parameters))

        def is_impossible(block: Block) -> NDArray[np.bool_]:
            value = cast(Loss, objective.loss).value(activation(block), objective.target(block))
            return ~np.isfinite(value)

        rows = objective.rows.map_sum(CountRows(is_impossible))
        raise DomainError(
            f"No coefficients were found with which every label is possible: SciPy gives the label "
            f"of {rows} the probability zero.",
            "Use noise with heavier tails, such as 'logistic' or 'cauchy', or smaller offsets.",
        )

    def _has_no_optimum(
        self, objective: LogPosterior, solution: Solution[Array, Iteration]
    ) -> bool:
        """Whether separated classes leave the optimum open: certain rows move at no cost."""
        at_end = not solution.converged
        unchecked = self._check_separation(objective) is not None
        if not (unchecked and (at_end or _is_flat(objective, solution))):
            return False
        kinds = ("complete",) if at_end else ("quasi", "complete")
        found = self._diverges(objective, solution.parameters)
        return found and cast(Separation, self._separation).kind in kinds

    def _finish(self, prepared: Prepared, remedies: str = WITH_A_NUMBER) -> None:
        has_ends = self._fitted_link.support.is_bounded
        super()._finish(prepared, WITH_A_NUMBER if has_ends else remedies)

    def _proves_overlap(self, objective: LogPosterior) -> bool:
        # Labels are certain beyond an end of the noise, so that a maximum proves nothing.
        return not self._fitted_link.support.is_bounded and super()._proves_overlap(objective)


def _is_flat(objective: LogPosterior, solution: Solution[Array, Iteration]) -> bool:
    """Whether the objective is level along some way from the optimum, moved rows being certain."""
    if objective.is_wide:
        return solution.value <= _NOTHING
    matrix, _ = unit_diagonal(cast(Array, objective(solution.parameters, "full").hessian))
    return bool(np.linalg.eigvalsh(matrix)[0] < _FLAT)
