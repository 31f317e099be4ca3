"""Bayesian logistic regression (4.5): a posterior over the coefficients, and what it predicts."""

import math
from dataclasses import replace
from typing import Any, Literal, Self, cast, get_args

import numpy as np

from posteriori.arguments import as_generator, check_choice, check_count
from posteriori.errors import InferenceError, ParameterError
from posteriori.likelihood.link import ProbabilityLink
from posteriori.likelihood.links import PROBABILITY_LINKS
from posteriori.likelihood.logistic import LogisticLoss, SignedLogisticLoss
from posteriori.likelihood.loss import ClassLoss, Loss
from posteriori.likelihood.softmax import SoftmaxLoss
from posteriori.models.discriminative import Solver, with_offset
from posteriori.models.fitting import Prepared, Problem, is_large
from posteriori.models.posterior_report import PosteriorReport
from posteriori.models.posteriors import (
    INFERENCES,
    Asked,
    Found,
    verdict_on,
)
from posteriori.models.predicting import linear_function
from posteriori.models.predictive import (
    PredictiveName,
    read_predictive,
)
from posteriori.posterior.chosen_prior import Chosen, as_prior
from posteriori.posterior.evidence import check_proper
from posteriori.posterior.inference import Inference
from posteriori.posterior.objective import WIDE, LogPosterior
from posteriori.posterior.priors import PriorLike, PriorName
from posteriori.posterior.shown_posterior import Posterior
from posteriori.rows.rows import Rows
from posteriori.rows.schema import Unseen
from posteriori.solve.newton import polish
from posteriori.solve.solution import Iteration, Solution
from posteriori.typing import Array

BROAD = 10.0
"""Standard deviation of the prior on the intercept of centred columns."""

_NEAR = 3.0
"""Standard errors from the optimum, over the root of those allowed, from which one step with a new
Hessian leads to it: it squares them."""

InferenceChoice = Literal["auto", "laplace", "variational", "monte_carlo"]


class BayesianLogisticRegression(PosteriorReport):
    """Probabilities that know how much they know: p(C|x) = ∫ σ(wᵀφ) p(w|t) dw (4.145).

    The posterior p(w|t) is approximated, or drawn from, and integrated out of the predictions:
    far from the data they are no surer than the side of the boundary is. There is nothing to
    tune: the precision of the prior is the one of greatest evidence.

    Parameters
    ----------
    prior : "evidence", "ard", a number, or a `GaussianPrior`
        One precision for all slopes of standardised columns, chosen by the evidence; one for each
        column or factor, which switches irrelevant ones off; or a prior that is given. Where it
        leaves the intercept free, that of centred columns has standard deviation 10.
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
        `sample(n)`, and after Monte Carlo `draws` (chains, steps, coefficients).
    log_evidence_ : ln p(t): Laplace's approximation (4.137); the lower bound of a variational fit;
        after Monte Carlo the average over weighted draws. evidence_: the first in its parts.
    prior_ : the `GaussianPrior` that was chosen or given.
    inference_ : the name of the posterior that was taken.
    trust_ : how well a Gaussian posterior fits, in plain words, with its k-hat.
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
        if self.prior == "jeffreys":
            raise ParameterError(
                "prior='jeffreys' is not to be had here: evidence needs a proper prior, whose "
                "density is known.",
                "Use 'evidence', 'ard', a number above zero or a GaussianPrior; or "
                "LogisticRegression(prior='jeffreys').",
            )
        if self.prior is None:
            raise _improper(self.prior)
        check_choice("inference", self.inference, get_args(InferenceChoice))
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
        return replace(super()._problem(rows), intercept_precision=BROAD**-2)

    def _adapted(self, prepared: Prepared) -> Prepared:
        if prepared.objective.is_wide:
            size = prepared.objective.coordinates.size
            raise ParameterError(
                f"The posterior of {size:,} coefficients is not kept: their covariance has "
                f"{size**2:,} numbers. {WIDE:,} coefficients are the most.",
                "Use LogisticRegression(prior='evidence'), or fewer columns.",
            )
        try:
            check_proper(prepared.objective.penalty)
        except InferenceError as error:
            raise _improper(self.prior) from error
        found = super()._adapted(prepared)
        self.prior_ = as_prior(found.objective)
        return found

    # From the optimum to the posterior.

    def _solve_last(self, prepared: Prepared) -> Solution[Array, Iteration]:
        """The optimum; on many rows with its Hessian, which the posterior needs anyway."""
        self._curvature = None
        full = prepared.objective
        if len(prepared.levels) == 1 or full.is_wide:
            self._curvature = prepared.hessian if is_large(full) else None
            return self._solve(prepared)
        rough = replace(full, tolerance=_NEAR * math.sqrt(full.tolerance))
        found = self._solve(replace(prepared, levels=[*prepared.levels[:-1], rough]))
        if not found.converged:
            return self._solve(prepared)
        polished, self._curvature = polish(full, found)
        return polished

    def _infer(self, prepared: Prepared, solution: Solution[Array, Iteration]) -> Inference:
        found = super()._infer(prepared, solution)
        if self._curvature is not None:
            found.adopt(self._curvature)
            self._curvature = None
        return found

    def _fit_rows(self, rows: Rows) -> None:
        self._log_evidence_before = 0.0
        super()._fit_rows(rows)
        self._conclude(cast(Chosen, self.prior) if isinstance(self.prior, str) else None)

    def _conclude(self, chosen: Chosen | None) -> None:
        """Find the posterior, and predict by it."""
        asked = Asked(self._inference, chosen, self.n_draws, self.random_state)
        self._verdict = None
        name = self.inference
        if name == "auto":
            found = INFERENCES["laplace"](asked)
            self._verdict = verdict_on(asked.objective, found.gaussian)
            name = "laplace" if self._verdict.is_enough else "monte_carlo"
        self.inference_ = name
        self._take(asked, INFERENCES[name](asked))

    def _take(self, asked: Asked, found: Found) -> None:
        objective = replace(asked.objective, penalty=found.penalty)
        self._found, self.lower_bounds_ = found, found.bound
        if found.penalty is not asked.objective.penalty:
            self.prior_ = as_prior(objective)
        self.posterior_ = Posterior(asked.inference.shown, found.gaussian, found.chains)
        if self.inference_ != "laplace":
            mean = self.posterior_.free_mean
            self._inference = Inference.known(
                objective, mean, objective(mean, "none").value, self.posterior_.free_covariance
            )
            self._laplace_evidence = asked.inference.evidence
            self._linear = linear_function(objective, mean)

    # More rows.

    def update(self, X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None) -> Self:
        """Learn from more rows: the posterior so far is their prior.

        Columns and classes are those of the fit. Afterwards `prior_` is the posterior before;
        likelihoods, deviances and `evidence_` are those of these rows alone, `log_evidence_` is
        that of all rows so far. Of a posterior that was drawn, mean and covariance are kept.

        >>> X, y = np.arange(40.0)[:, None] % 10, np.arange(40) % 10 + np.arange(40) % 7 > 7
        >>> half = BayesianLogisticRegression(prior=1.0).fit(X[:20], y[:20])
        >>> whole = BayesianLogisticRegression(prior=1.0).fit(X, y)
        >>> half.update(X[20:], y[20:]).coef_.round(2), whole.coef_.round(2)
        (array([[0.77]]), array([[0.78]]))
        """
        self._known_classes()
        with self._all_or_nothing():
            self._learn(with_offset(self._read_more(X, y, sample_weight), offset))
        return self

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        classes: Any = None,
        offset: Any = None,
    ) -> Self:
        """`fit` to the first batch, whose labels or `classes` name all classes; then `update`."""
        if not hasattr(self, "posterior_"):
            return self.fit(X, y, sample_weight, classes, offset)
        if classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ParameterError(
                f"classes={list(classes)} are not those of the first batch.",
                f"Leave classes out, or pass {self.classes_.tolist()}.",
            )
        return self.update(X, y, sample_weight, offset)

    def _read_more(self, X: Any, y: Any, sample_weight: Any) -> Rows:
        formula, schema = self.formula_, self.schema_
        if formula is not None:
            X = formula.apply(X, self.unseen)
        rows = self._read(X, y, sample_weight, self.classes_, schema=schema)
        self.formula_ = formula
        return rows

    def _learn(self, rows: Rows) -> None:
        self._check_parameters()
        prior, shown = self.posterior_, self.posterior_.shown
        problem = self._problem(rows)
        objective = LogPosterior(
            problem.rows,
            shown.columns,
            shown.standard,
            problem.loss,
            problem.target,
            prior.as_penalty(),
            shown.coordinates,
            self.tol**2,
        )
        self._log_evidence_before += self._found.log_evidence
        nothing = np.empty(0, dtype=np.intp)
        self._finish(Prepared([objective], prior.free_mean, nothing))
        self._conclude(None)
        self.prior_ = prior


def _improper(prior: Any) -> ParameterError:
    return ParameterError(
        f"Evidence needs a proper prior; prior={prior!r} is improper: it leaves coefficients free "
        "to be anything.",
        "Use 'evidence', 'ard', a number above zero, or a GaussianPrior with a precision above "
        "zero in every direction.",
    )
