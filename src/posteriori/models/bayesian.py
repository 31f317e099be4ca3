"""Bayesian logistic regression (4.5): a posterior over the coefficients, and what it predicts."""

from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, cast, get_args

import numpy as np

from posteriori.arguments import as_generator, check_choice, check_count
from posteriori.design.standardise import STILL
from posteriori.errors import InferenceError, ParameterError
from posteriori.likelihood.link import ProbabilityLink
from posteriori.likelihood.links import PROBABILITY_LINKS
from posteriori.likelihood.logistic import LogisticLoss, SignedLogisticLoss
from posteriori.likelihood.loss import ClassLoss, Loss
from posteriori.likelihood.softmax import SoftmaxLoss
from posteriori.models.discriminative import Solver
from posteriori.models.fitting import Prepared, Problem, is_large
from posteriori.models.posteriors import INFERENCES, Asked, Earlier, Found, stream
from posteriori.models.predicting import linear_function
from posteriori.models.predictive import PredictiveName, read_predictive
from posteriori.models.sequential_posterior import NONE_DEPENDENT, SequentialPosterior
from posteriori.posterior.chosen_prior import Chosen, as_prior
from posteriori.posterior.evidence import check_proper
from posteriori.posterior.inference import Inference
from posteriori.posterior.jeffreys import JeffreysPosterior
from posteriori.posterior.many_jeffreys import curvature_at
from posteriori.posterior.objective import WIDE, LogPosterior
from posteriori.posterior.priors import PriorLike, PriorName
from posteriori.posterior.shown_posterior import Posterior
from posteriori.rows.rows import Rows
from posteriori.rows.schema import Unseen
from posteriori.rows.source import FitRows
from posteriori.solve.newton import polish
from posteriori.solve.search import near_enough
from posteriori.solve.solution import Iteration, Solution
from posteriori.statistics.column_moments import column_spread
from posteriori.typing import Array

BROAD = 10.0
"""Standard deviation of the prior on the intercept of centred columns."""

_DIGITS = 1e-6
"""A `tol` below which the Hessian is that of the optimum itself, and not of a place next to it."""

InferenceChoice = Literal["auto", "laplace", "variational", "monte_carlo"]


class BayesianLogisticRegression(SequentialPosterior):
    """Probabilities that know how much they know: p(C|x) = ∫ σ(wᵀφ) p(w|t) dw (4.145).

    The posterior p(w|t) is approximated, or drawn from, and integrated out of the predictions:
    far from the data they are no surer than the side of the boundary is. There is nothing to
    tune: the precision of the prior is the one of greatest evidence.

    Parameters
    ----------
    prior : "evidence", "ard", "jeffreys", a number, or a `GaussianPrior`
        One precision for all slopes of standardised columns, chosen by the evidence; one for each
        column or factor, which switches irrelevant ones off; |I(w)|^½ with I the expected
        information, which needs no units and is known but for a factor, so that there is no
        evidence; or a prior that is given: a number is the precision of the slopes of columns as
        they are. Where it leaves the intercept free, that of centred columns has standard
        deviation 10.
    inference : "laplace", "variational", "monte_carlo" or "auto"
        The Gaussian of the curvature at the mode (4.144); the Gaussian of the largest quadratic
        lower bound on the evidence; draws from the exact posterior; or Laplace's, and draws where
        `trust_` says that it does not do.
    predictive : "auto", "probit", "quadrature" or "monte_carlo"
        How the integral (4.145) is taken. Two classes: the closed form (4.155), an exact one
        ("auto"), or an average over draws. More: an extended closed form, or draws ("auto").
        After Monte Carlo it is always its own draws that are averaged over.
    fit_intercept, tol, max_iter, unseen : as in `LogisticRegression`.
    n_draws : int
        Draws from the posterior, with inference="monte_carlo"; more where chains need them.
    random_state : None, int, Generator or RandomState

    Attributes
    ----------
    posterior_ : mean, covariance (class by class, intercept first, in the user's units),
        `sample(n)`, and after Monte Carlo `draws` (chains, steps, coefficients). Of more than
        2,100 coefficients Laplace's Gaussian is known by draws of it: there are a mean, a
        `standard_deviation` and samples, but no covariance.
    log_evidence_ : ln p(t): Laplace's approximation (4.137); the lower bound of a variational fit;
        after Monte Carlo the average over weighted draws. evidence_: the first in its parts.
    prior_ : the `GaussianPrior` that was chosen or given, in "standardised" units: precision and
        mean are those of slopes of columns divided by their standard deviations in the rows of the
        fit, so that prior=a becomes a/sd² for each column; intercept_precision that of the
        intercept of centred columns. As the `prior` of a fit to the same rows it gives the same
        posterior. "jeffreys" is its own name. After `update` it is the posterior before.
    inference_ : the name of the posterior that was taken.
    trust_ : how well a Gaussian posterior fits, in plain words: its tails, mean and width.
    lower_bounds_ : after a variational fit, the bound on ln p(t) after each step.
    diagnostics_ : after Monte Carlo, R-hat and effective numbers of draws; `to_arviz()`.
    coef_, intercept_ : the mean of the posterior; for Laplace the mode.
    tidy(), summary() and what else `LogisticRegression` has, with the errors of the posterior.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> X = X[["mean radius", "mean texture"]]
    >>> model = BayesianLogisticRegression().fit(X, y)
    >>> round(model.log_evidence_, 2), model.trust_.word
    (-155.69, 'good')
    >>> model.predict_proba(X[:1]).round(3), model.predict_interval(X[:1]).round(3)
    (array([[0.789, 0.211]]), array([[0.089, 0.389]]))
    """

    solver: Solver = "auto"
    _jeffreys_errors = "observed"

    lower_bounds_: tuple[float, ...]
    _curvature: Array | None

    def __init__(
        self,
        *,
        prior: PriorLike | PriorName = "evidence",
        inference: InferenceChoice = "laplace",
        predictive: PredictiveName = "auto",
        fit_intercept: bool = True,
        tol: float = 1e-4,
        max_iter: int | None = None,
        unseen: Unseen = "error",
        n_draws: int = 4000,
        random_state: Any = None,
    ) -> None:
        self.prior = prior
        self.inference = inference
        self.predictive = predictive
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.unseen = unseen
        self.n_draws = n_draws
        self.random_state = random_state

    # The model, and the problem that it makes.

    def _loss(self, n_classes: int, soft: bool) -> Loss | ClassLoss:
        if n_classes > 2:
            return SoftmaxLoss()
        return LogisticLoss() if soft else SignedLogisticLoss()

    def _link(self) -> ProbabilityLink:
        return PROBABILITY_LINKS["logit"]

    def _proves_overlap(self, objective: LogPosterior) -> bool:
        return False  # the prior holds every coefficient, whatever the classes

    def _suspicion(self, objective: LogPosterior) -> None:
        return None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.prior is None:
            raise _improper(self.prior)
        check_choice("inference", self.inference, get_args(InferenceChoice))
        if self.prior == "jeffreys" and self.inference == "variational":
            raise ParameterError(
                "inference='variational' is for a Gaussian prior; with prior='jeffreys' the "
                "quadratic bound has no formula.",
                "Use inference='laplace', 'monte_carlo' or 'auto', or another prior.",
            )
        check_count("n_draws", self.n_draws, "draws")
        if not isinstance(self.random_state, np.random.RandomState):  # which it would move on
            as_generator(self.random_state)
        read_predictive(self.predictive, len(self.classes_))
        if self.inference == "monte_carlo" and self.predictive in ("probit", "quadrature"):
            raise ParameterError(
                f"predictive={self.predictive!r} is for a Gaussian posterior; with "
                "inference='monte_carlo' predictions are averages over its draws.",
                "Use predictive='auto' or 'monte_carlo', or another inference.",
            )

    def _problem(self, rows: Rows) -> Problem:
        precision = 0.0 if self.prior == "jeffreys" else BROAD**-2
        return replace(super()._problem(rows), intercept_precision=precision)

    def _adapted(self, prepared: Prepared) -> Prepared:
        if prepared.objective.is_wide and self.inference in ("variational", "monte_carlo"):
            size = prepared.objective.coordinates.size
            raise ParameterError(
                f"inference={self.inference!r} needs the covariance of all {size:,} coefficients, "
                f"which has {size**2:,} numbers. {WIDE:,} coefficients are the most.",
                "Use inference='laplace' or 'auto', which approximate it, or fewer columns.",
            )
        if self.prior == "jeffreys":
            found = super()._adapted(prepared)
            self.prior_ = "jeffreys"
            return found
        try:
            check_proper(prepared.objective.penalty)
        except InferenceError as error:
            raise _improper(self.prior) from error
        found = super()._adapted(prepared)
        if not isinstance(self.prior, str) and len(found.levels) == 1:
            self.prior_ = as_prior(found.objective)
        return found

    @cached_property
    def prior_(self) -> Any:
        """The prior of many rows, which were standardised by some of them; others are assigned."""
        self._known_classes()
        return as_prior(_by_all_rows(self._inference.objective))

    def __getstate__(self) -> dict[str, Any]:
        if "_inference" in self.__dict__:
            _ = self.prior_  # while its rows are there
        return super().__getstate__()

    def _with_chosen_prior(self, prepared: Prepared) -> Prepared:
        """With the precisions of greatest evidence; the variational bound chooses its own later."""
        return prepared if self.inference == "variational" else super()._with_chosen_prior(prepared)

    # From the optimum to the posterior.

    def _solve_last(self, prepared: Prepared) -> Solution[Array, Iteration]:
        """The optimum; on many rows with its Hessian, which the posterior needs anyway."""
        self._curvature = None
        full = prepared.objective
        if self.tol < _DIGITS or isinstance(full, JeffreysPosterior):
            return self._solve(prepared)
        if len(prepared.levels) == 1 or full.is_wide:
            self._curvature = prepared.hessian if is_large(full) else None
            return self._solve(prepared)
        rough = replace(full, tolerance=near_enough(full))
        found = self._solve(replace(prepared, levels=[*prepared.levels[:-1], rough]))
        polished = polish(full, found) if found.converged else None
        if polished is None:
            return self._solve(prepared)
        solution, self._curvature = polished
        return solution

    def _infer(self, prepared: Prepared, solution: Solution[Array, Iteration]) -> Inference:
        found, objective = super()._infer(prepared, solution), prepared.objective
        if isinstance(objective, JeffreysPosterior):
            self._curvature = curvature_at(objective, solution.parameters)
        if self._curvature is not None:
            found.adopt(self._curvature)
            self._curvature = None
        return found

    def _fit_rows(self, rows: FitRows) -> None:
        self._earlier, self._kept = Earlier(), None
        self._count(rows)
        super()._fit_rows(rows)
        is_chosen = self.prior in get_args(Chosen)
        self._conclude(cast(Chosen, self.prior) if is_chosen else None)

    def _conclude(self, chosen: Chosen | None) -> None:
        """Find the posterior, and predict by it."""
        random = stream(self.random_state, self._earlier.n_fits)
        asked = Asked(self._inference, chosen, self.n_draws, random)
        self._verdict = None
        name = self.inference
        if name == "auto":
            self._verdict = self._judged(INFERENCES["laplace"](asked))
            drawn = not (self._verdict.is_enough or asked.objective.is_wide)
            name = "monte_carlo" if drawn else "laplace"
        self.inference_ = name
        self._take(INFERENCES[name](asked))

    def _take(self, found: Found) -> None:
        if found.penalty is not self._inference.objective.penalty:
            self._adopt_prior(found)
        objective = self._inference.objective
        self._found, self.lower_bounds_ = found, found.bound
        self.posterior_ = Posterior(self._inference.shown, found.gaussian, found.chains)
        if self.inference_ != "laplace":
            mean = self.posterior_.free_mean
            if found.log_evidence is not None:
                self._laplace_evidence = self._inference.evidence
            self._inference = Inference.known(objective, mean, self.posterior_.free_covariance)
            self._linear = linear_function(objective, mean)

    def _adopt_prior(self, found: Found) -> None:
        """The mode again, with the prior that the bound chose: `evidence_` is that of `prior_`."""
        objective = replace(self._inference.objective, penalty=found.penalty)
        self._finish(Prepared([objective], found.gaussian.mean, NONE_DEPENDENT))
        self.prior_, self.prior_reason_ = as_prior(objective), "by the variational bound"


def _by_all_rows(objective: LogPosterior) -> LogPosterior:
    """With its prior in units of the standard deviations of all rows, not of those of some."""
    standard, penalty = objective.standard, objective.penalty
    found = column_spread(objective.rows, objective.columns)
    width = found.deviation if standard.intercept else np.hypot(found.deviation, found.mean)
    changes = found.deviation > STILL * abs(found.mean)
    ratio = standard.scale / np.where(changes, width * found.unit, standard.scale)
    ratio = np.concatenate([np.ones(int(standard.intercept)), ratio])
    squares = ratio**2 if penalty.precision.ndim == 1 else np.outer(ratio, ratio)
    precision, mean = penalty.precision * squares, penalty.mean / ratio
    return replace(objective, penalty=replace(penalty, precision=precision, mean=mean))


def _improper(prior: Any) -> ParameterError:
    return ParameterError(
        f"Evidence needs a proper prior; prior={prior!r} is improper: it leaves coefficients free "
        "to be anything.",
        "Use 'evidence', 'ard', a number above zero, or a GaussianPrior with a precision above "
        "zero in every direction.",
    )
