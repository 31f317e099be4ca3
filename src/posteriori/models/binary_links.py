"""Two classes by a probability link p(C₂|x) = F(wᵀφ(x)) (4.111): probit, and threshold noise."""

from dataclasses import replace
from typing import Any, cast

import numpy as np

from posteriori.arguments import names_of_others
from posteriori.errors import BoundaryWarning, DomainError, LabelError, ParameterError, warn
from posteriori.likelihood.binary_losses import BinaryLoss
from posteriori.likelihood.cdf_links import cdf_link
from posteriori.likelihood.links import PROBABILITY_LINKS, Domain, ProbabilityLink
from posteriori.likelihood.loss import Loss
from posteriori.models.base import anywhere
from posteriori.models.fitting import Prepared
from posteriori.models.likelihood_fit import A_NUMBER, Plan, Solver
from posteriori.models.likelihood_model import LikelihoodModel
from posteriori.models.linear import Hyperplane
from posteriori.models.scoring import Solved, choice, scored
from posteriori.models.separation import SeparationSearch, Solve
from posteriori.posterior.priors import PriorLike, PriorName
from posteriori.rows.block import FitRows
from posteriori.rows.schema import HandleUnknown
from posteriori.solve.objective import Status
from posteriori.statistics.local_quadratic import Information
from posteriori.typing import Array, Labels


class LinkedClassifier(LikelihoodModel):
    """A classifier of two classes with a link F of its own.

    The classes are equally probable where F(a) = ½. For a symmetric F that is a = 0; otherwise
    `decision_function` and `hyperplane` subtract that activation, so that both change sign there.
    `coef_` and `intercept_` give the activation a itself.
    """

    def _plan(self, rows: FitRows) -> Plan:
        remedy = "Use LogisticRegression, or OneVersusRest with this estimator."
        check_two_classes(rows, type(self).__name__, remedy)
        return super()._plan(rows)

    @anywhere
    def decision_function(self, X: Any, offset: Any = None) -> Array:
        """Activations less those at which classes are equally probable: (n,) or (n, K)."""
        return super().decision_function(X, offset) - self._middle()

    def hyperplane(self, first: Any = None, second: Any = None) -> Hyperplane:
        """The boundary between two classes, where both are equally probable.

        Its positive side is that of `first`. Both labels can be left out for two classes: the
        positive side is then that of `classes_[1]`.
        """
        plane = super().hyperplane(first, second)
        side = 1.0 if first is None or first == self.classes_[1] else -1.0
        return Hyperplane(plane.normal, plane.offset - side * self._middle())

    def _middle(self) -> float:
        """The activation at which both classes are equally probable."""
        return float(self._link().activation(np.array([0.5]))[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def check_two_classes(rows: FitRows, what: str, remedy: str) -> None:
    """An error for more than two classes."""
    n_classes = len(cast(Labels, rows.classes))
    if n_classes > 2:
        raise LabelError(
            f"Only binary classification is supported. {what} has two classes; y has {n_classes}.",
            remedy,
        )


class ProbitRegression(LinkedClassifier):
    """p(C₂|x) = Φ(wᵀφ(x)), Φ the distribution function of the standard normal (4.114).

    A row is of the second class where wᵀφ exceeds a threshold drawn from N(0, 1) (4.112)-(4.113).
    Compared with the logistic sigmoid its tails fall as exp(-a²), so that outliers count for more.
    Fitted by Newton's method on -Σ ln p(t|a) - ln p(w), whose second derivative in a is
    (φ/Φ)(φ/Φ + a) (exercise 4.19).

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
        The largest number of steps; None leaves it to the solver.
    handle_unknown : "error" or "reference"
        What to do at prediction with a level of a factor that was not in the fit.

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

    @names_of_others
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
        return BinaryLoss(self._link())

    def _link(self) -> ProbabilityLink:
        return PROBABILITY_LINKS["probit"]


_PATIENCE = 30
"""Steps after which an optimum that is not at a kink of the likelihood would have been found."""


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
    known to be concave it takes steps of Fisher scoring, as the likelihood may have several maxima,
    of which it finds one. Noise of bounded support makes rows certain: the fit never gives an
    observed label the probability zero.

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
    _fitted_link: ProbabilityLink

    @names_of_others
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
        return BinaryLoss(self._fitted_link)

    def _link(self) -> ProbabilityLink:
        return self._fitted_link

    def _plan(self, rows: FitRows) -> Plan:
        self._fitted_link = link = cdf_link(self.noise)
        check_prior_and_domain(self.prior, link.support)
        plan, bounded = super()._plan(rows), link.support.is_bounded
        return replace(
            plan,
            problem=replace(plan.problem, domain=link.support),
            solve=_solver_of_noise(link, self.max_iter),
            remedies=A_NUMBER if bounded else plan.remedies,
        )


def check_prior_and_domain(prior: PriorLike | PriorName, domain: Domain) -> None:
    """An error for a prior that is chosen by the data where activations have ends."""
    if domain.is_bounded and isinstance(prior, str):
        raise ParameterError(
            f"prior={prior!r} cannot be combined with a link or noise of bounded support.",
            "Use None, a number or a GaussianPrior; or a link or noise of unbounded support.",
        )


_KINKS = (
    "The likelihood has kinks where rows lie at an end of the support of the noise, and the fit "
    "ended at one of them. It is close to the maximum, but no closer than Newton's method gets "
    "there, and standard errors are not valid."
)


def _solver_of_noise(link: ProbabilityLink, max_iter: int | None) -> Solve:
    """The solver for two classes whose likelihood may have kinks, or several maxima."""
    bounded = link.support.is_bounded

    def optimum(prepared: Prepared, search: SeparationSearch) -> Solved:
        objective, edge = prepared.objective, ""
        most = max_iter or (_PATIENCE if bounded else None)
        solution = scored(prepared.levels, prepared.start, most, search.callback(objective))
        if not np.isfinite(solution.value):
            raise DomainError(
                "No coefficients were found with which every label is possible: SciPy gives some "
                "of them the probability zero.",
                "Use noise with heavier tails, such as 'logistic' or 'cauchy', or smaller offsets.",
            )
        if bounded and solution.status is not Status.SEPARATED:
            # Labels are certain beyond an end of the noise, so that a maximum proves nothing.
            if search.may_diverge(objective) and search.diverges(objective, solution.parameters):
                solution = replace(solution, status=Status.SEPARATED)
            elif solution.status is Status.STALLED or not (solution.converged or max_iter):
                smooth = "Use noise with a smooth density, such as 'norm', 'logistic', 'gumbel_r'."
                warn(BoundaryWarning(_KINKS, smooth))
                solution, edge = replace(solution, status=Status.BOUNDARY), _KINKS
        return Solved(solution, *choice(objective), edge)

    return optimum
