"""Probit regression (4.3.5): two classes by the distribution function of the normal."""

from posteriori.likelihood.link import ProbabilityLink
from posteriori.likelihood.links import PROBABILITY_LINKS
from posteriori.likelihood.loss import Loss
from posteriori.likelihood.probit import ProbitLoss
from posteriori.models.discriminative import Solver
from posteriori.models.linked import LinkedClassifier
from posteriori.posterior.priors import PriorLike, PriorName
from posteriori.rows.schema import Unseen


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
    unseen : "error" or "reference"
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
        unseen: Unseen = "error",
    ) -> None:
        self.prior = prior
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.unseen = unseen

    def _loss(self, n_classes: int, soft: bool) -> Loss:
        return ProbitLoss()

    def _make_link(self) -> ProbabilityLink:
        return PROBABILITY_LINKS["probit"]
