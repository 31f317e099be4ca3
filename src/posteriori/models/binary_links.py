"""Two classes by a probability link p(C₂|x) = F(wᵀφ(x)) (4.111): probit, and threshold noise."""

from dataclasses import replace
from typing import Any

import numpy as np

from posteriori.arguments import names_of_others
from posteriori.errors import DomainError, ParameterError
from posteriori.likelihood.binary_losses import BinaryLoss
from posteriori.likelihood.cdf_links import cdf_link
from posteriori.likelihood.links import PROBABILITY_LINKS, Domain, ProbabilityLink
from posteriori.likelihood.loss import Loss
from posteriori.models.fitting import Prepared
from posteriori.models.likelihood_fit import A_NUMBER, Plan, Solver
from posteriori.models.likelihood_model import LikelihoodModel
from posteriori.models.scoring import Solved, choice, scored
from posteriori.models.separation import SeparationSearch, Solve
from posteriori.posterior.priors import PriorLike, PriorName
from posteriori.rows.block import FitRows
from posteriori.rows.schema import HandleUnknown
from posteriori.statistics.local_quadratic import Information


class ProbitRegression(LikelihoodModel):
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

    _binary_only = True

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


class ThresholdRegression(LikelihoodModel):
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
    observed label the probability zero. The likelihood has kinks where the density of the noise
    does; a fit that ends at one of them warns that it did not converge.

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
    _binary_only = True
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
        plan = super()._plan(rows)
        return replace(
            plan,
            problem=replace(plan.problem, domain=link.support),
            solve=_solver_of_noise(self.max_iter),
            remedies=A_NUMBER if link.support.is_bounded else plan.remedies,
        )


def check_prior_and_domain(prior: PriorLike | PriorName, domain: Domain) -> None:
    """An error for a prior that is chosen by the data where activations have ends."""
    if domain.is_bounded and isinstance(prior, str):
        raise ParameterError(
            f"prior={prior!r} cannot be combined with a link or noise of bounded support.",
            "Use None, a number or a GaussianPrior; or a link or noise of unbounded support.",
        )


def _solver_of_noise(max_iter: int | None) -> Solve:
    """The solver for two classes whose likelihood may have several maxima."""

    def optimum(prepared: Prepared, search: SeparationSearch) -> Solved:
        check_separation = search.callback(prepared.objective)
        solution = scored(prepared.levels, prepared.start, max_iter, check_separation)
        if not np.isfinite(solution.value):
            raise DomainError(
                "No coefficients were found with which every label is possible: SciPy gives some "
                "of them the probability zero.",
                "Use noise with heavier tails, such as 'logistic' or 'cauchy', or smaller offsets.",
            )
        return Solved(solution, *choice(prepared.objective))

    return optimum
