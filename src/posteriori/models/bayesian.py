"""Bayesian logistic regression (4.4)-(4.5): predictions with the coefficients integrated out."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, Self, get_args

import numpy as np

from posteriori.arguments import as_generator, check_choice, check_count, names_of_others
from posteriori.decision.decide import most_probable
from posteriori.errors import (
    ApproximationWarning,
    IdentifiabilityWarning,
    InferenceError,
    ParameterError,
    warn,
)
from posteriori.inspection.results import About, glance_of, number_text
from posteriori.likelihood.binary_losses import LogisticLoss, SignedLogisticLoss
from posteriori.likelihood.links import PROBABILITY_LINKS, ProbabilityLink
from posteriori.likelihood.loss import ClassLoss, Loss
from posteriori.likelihood.softmax import SoftmaxLoss
from posteriori.models.base import anywhere
from posteriori.models.fitting import Prepared, prepare
from posteriori.models.likelihood_fit import A_NUMBER, Plan, Solver, choose_prior, finish
from posteriori.models.likelihood_model import LikelihoodModel, with_offset
from posteriori.models.logistic import joined, rows_to_keep
from posteriori.models.posteriors import (
    DIAGONAL,
    ApproximationCheck,
    Earlier,
    Found,
    Word,
    by_laplace,
    by_monte_carlo,
    by_variational,
    check_posterior,
    drawn_classes,
    is_affordable,
    to_arviz,
)
from posteriori.posterior.coefficient_posterior import Posterior
from posteriori.posterior.evidence import Evidence, as_prior, check_proper
from posteriori.posterior.inference import Inference
from posteriori.posterior.log_posterior import WIDE, LogPosterior
from posteriori.posterior.monte_carlo import Draws, diagnostics
from posteriori.posterior.predictive import (
    PredictiveName,
    interval_kernel,
    log_kernel,
    read_predictive,
)
from posteriori.posterior.priors import PriorLike, PriorName
from posteriori.rows.block import Block, FitRows
from posteriori.rows.frames import make_frame
from posteriori.rows.in_memory import MemoryRows, is_memory_rows
from posteriori.rows.schema import HandleUnknown, listed
from posteriori.rows.threads import one_blas_thread
from posteriori.typing import Array, Labels

_METHODS = {
    "laplace": "Laplace's approximation",
    "variational": "a variational bound",
    "monte_carlo": "Monte Carlo",
}
_ERRORS = {
    "laplace": "Estimates are the mode of the posterior, standard errors its standard deviations "
    "by the curvature there.",
    "variational": "Estimates and standard errors are mean and standard deviations of the "
    "Gaussian with the largest bound; they tend to be too small.",
    "monte_carlo": "Estimates and standard errors are mean and standard deviations of the draws, "
    "intervals their quantiles.",
}

_LAST = "Likelihoods, deviances and criteria are those of the rows of the last fit"
_ALL = "; the log evidence is that of all rows, with a Gaussian in place of the earlier ones"


def _no_evidence() -> InferenceError:
    return InferenceError(
        "There is no evidence with prior='jeffreys', which is improper.",
        "Compare such fits by bic_ or aic_, or use another prior.",
    )


_FIXED = 0.01
"""Information of the rows on a coefficient, relative to all, below which its prior fixes it."""

BROAD = 10.0
"""Standard deviation of the prior on the intercept of centred columns."""

InferenceChoice = Literal["auto", "laplace", "variational", "monte_carlo"]


class BayesianLogisticRegression(LikelihoodModel):
    """Bayesian logistic regression: p(C|x) = ∫ σ(wᵀφ) p(w|t) dw (4.145).

    The posterior p(w|t) is approximated, or sampled, and predictions are averages over it, so that
    they are less certain far from the data. The precision of the prior is chosen by the evidence.

    Parameters
    ----------
    prior : "evidence", "ard", "jeffreys", a number, or a `GaussianPrior`
        One precision for all slopes of standardised columns, chosen by the evidence; one for each
        column or factor, which switches irrelevant ones off; |I(w)|^½ with I the expected
        information, which is improper (defined up to a constant), so that there is no evidence;
        or a given prior: a number is the precision of the slopes of the original columns. Where
        the prior leaves the intercept free, that of centred columns has standard deviation 10.
    inference : "auto", "laplace", "variational" or "monte_carlo"
        Laplace's approximation, and Monte Carlo where `approximation_check_` finds that poor and
        draws take no more than some seconds (beyond, a warning); the Gaussian of the curvature at
        the mode (4.144); the Gaussian of the largest quadratic lower bound on the evidence; draws
        from the exact posterior. With prior="jeffreys" there is only Laplace's.
    predictive : "auto", "probit", "quadrature" or "monte_carlo"
        How the integral (4.145) is taken. Two classes: the closed form (4.155), an exact one
        ("auto"), or an average over draws. More: an extended closed form, or draws ("auto").
        After Monte Carlo it is always its own draws that are averaged over.
    fit_intercept, tol, max_iter, handle_unknown : as in `LogisticRegression`.
    n_draws : int
        Draws from the posterior, with inference="monte_carlo"; more where chains need them.
    random_state : None, int, Generator or RandomState

    Attributes
    ----------
    posterior_ : mean, covariance (class by class, intercept first, in the user's units),
        `sample(n)`, and after Monte Carlo `draws` (chains, steps, coefficients). Of more than
        5,000 coefficients it has the diagonal of the curvature alone: there are a mean, a
        `standard_deviation` and samples, but no covariance.
    log_evidence_ : ln p(t): Laplace's approximation (4.137); the lower bound of a variational fit;
        after Monte Carlo by importance sampling, with its standard error log_evidence_error_.
        evidence_: the first in its parts.
    prior_ : the `GaussianPrior` that was chosen or given, in "standardised" units: precision and
        mean are those of slopes of columns divided by their standard deviations in the rows of the
        fit, so that prior=a becomes a/sd² for each column; intercept_precision that of the
        intercept of centred columns. As the `prior` of a fit to the same rows it gives the same
        posterior. With prior="jeffreys" it is that string; after `update` the posterior before.
    inference_, inference_reason_ : the inference that was used, and why.
    approximation_check_ : how well a Gaussian posterior approximates the exact one.
    lower_bounds_ : after a variational fit, the bound on ln p(t) after each step.
    diagnostics_ : after Monte Carlo, R-hat and effective numbers of draws; `to_arviz()`.
    coef_, intercept_ : the mean of the posterior; for Laplace the mode.
    tidy(), summary(), glance() and the other results of `LogisticRegression`, with the standard
        deviations of the posterior; after Monte Carlo intervals are quantiles of the draws. The
        ends of predict_interval(X) are quantiles of the posterior of the probability.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> X = X[["mean radius", "mean texture"]]
    >>> model = BayesianLogisticRegression().fit(X, y)
    >>> round(model.log_evidence_, 2), model.approximation_check_.word
    (-155.69, 'usable')
    >>> model.predict_proba(X[:1]).round(3), model.predict_interval(X[:1]).round(3)
    (array([[0.789, 0.211]]), array([[0.089, 0.389]]))
    """

    predictive: PredictiveName
    posterior_: Posterior

    solver: Solver = "auto"

    inference_: str
    inference_reason_: str
    lower_bounds_: tuple[float, ...]

    _found: Found
    _earlier: Earlier
    _check: ApproximationCheck | None
    _weight: float | None
    _kept: MemoryRows | None
    _random: np.random.Generator

    def _log_kernel(self) -> Callable[[Block], Array]:
        method = read_predictive(self.predictive, len(self.classes_))
        return log_kernel(self.posterior_, method, self._link())

    def _interval_kernel(self, level: float) -> Callable[[Block], Array]:
        return interval_kernel(self.posterior_, level, self._link())

    def _predicted(self, block: Block) -> Array:
        return np.exp(self._log_kernel()(block))

    @anywhere
    def predict_log_proba(self, X: Any, offset: Any = None) -> Array:
        """ln p(C_k|x) of the predictive distribution (n, K)."""
        K = len(self._known_classes())
        rows = self._rows_with(X, offset)
        with one_blas_thread():
            return rows.fill(np.empty((rows.n_rows, K)), self._log_kernel())

    @anywhere
    def predict_proba(self, X: Any, offset: Any = None) -> Array:
        """p(C_k|x) of the predictive distribution (4.145), (n, K); rows sum to one."""
        return np.exp(self.predict_log_proba(X, offset))

    @anywhere
    def decision_function(self, X: Any, offset: Any = None) -> Array:
        """Log odds of the second class (n,); for more than two classes ln p(C_k|x) (n, K)."""
        found = self.predict_log_proba(X, offset)
        return found if found.shape[1] > 2 else found[:, 1] - found[:, 0]

    @anywhere
    def predict(self, X: Any, offset: Any = None) -> Labels:
        """The most probable class of each row.

        For two classes and a Gaussian posterior that is also the class of the mean coefficients
        (4.155): averaging moves probabilities towards a half, but none across it.
        """
        codes = most_probable(self.predict_log_proba(X, offset))
        return self.classes_[codes.astype(np.intp)]

    def glance(self) -> Any:
        """The fit as a frame with one row, with its log evidence and inference.

        After `update`, n_obs and likelihoods are those of the last of n_fits; log_evidence is
        that of all n_obs_total rows.
        """
        self._known_classes()
        total = self._n_all
        found = glance_of(self._inference, self._about()) | {
            "log_evidence": [self._log_evidence],
            "n_obs_total": [int(total) if total == int(total) else total],
            "n_fits": [self._earlier.n_fits + 1],
            "inference": [self.inference_],
        }
        return make_frame(found, self._frame_backend)

    def _about(self) -> About:
        name, found = self.inference_, super()._about()
        prior = "posterior before" if self._earlier.n_fits else found.prior
        return replace(
            found, prior=prior, method=_METHODS[name], errors=_ERRORS[name], is_posterior=True
        )

    def _summary_facts(self) -> tuple[tuple[str, str], ...]:
        value, error, facts = self._log_evidence, self.log_evidence_error_, []
        if self._earlier.n_fits:
            n_fits = f"{self._earlier.n_fits + 1} fits"
            facts.append(("Rows in all", f"{number_text(self._n_all)}, {n_fits}"))
        if value is not None:
            either_side = "" if error is None else f" ± {error:.2g}"
            facts.append(("Log evidence", number_text(value) + either_side))
        return tuple(facts)

    def _summary_notes(self) -> tuple[str, ...]:
        notes = super()._summary_notes()
        if self._inference.is_diagonal:
            notes = (*notes, DIAGONAL)
        if not self._earlier.n_fits:
            return notes
        return (*notes, f"{_LAST}{'' if self._log_evidence is None else _ALL}.")

    @property
    def _n_last(self) -> float:
        """The weight of the rows of the last fit."""
        return self._inference.goodness.n_obs if self._weight is None else self._weight

    @property
    def _n_all(self) -> float:
        """The weight of all rows so far."""
        return self._earlier.n_obs + self._n_last

    @property
    def evidence_(self) -> Evidence:
        """ln p(t) by Laplace's approximation, in its parts: fit and Occam factor (4.137).

        With Jeffreys' prior there is none, as that is improper.
        """
        self._known_classes()
        if self._found.evidence is None:
            raise _no_evidence()
        return self._found.evidence

    @property
    def log_evidence_(self) -> float:
        """ln p(t), what is left once the coefficients are integrated out."""
        self._known_classes()
        if self._log_evidence is None:
            raise _no_evidence()
        return self._log_evidence

    @property
    def _log_evidence(self) -> float | None:
        before, last = self._earlier.log_evidence, self._found.log_evidence
        return None if before is None or last is None else before + last

    @property
    def log_evidence_error_(self) -> float | None:
        """The Monte Carlo standard error of the last log evidence; None without draws."""
        self._known_classes()
        return self._found.evidence_error

    @property
    def approximation_check_(self) -> ApproximationCheck:
        """How well the posterior found approximates the exact one: word, sentence and numbers.

        For a Gaussian, by the importance weights of its draws: their spread, and k-hat, the shape
        of their tail by Pareto smoothing. Computed when first requested, or by inference="auto".
        Draws of Monte Carlo are exact if their chains agree. After `update` it is the last fit that
        is checked, and the word is "usable" at best, as the rows before enter as a Gaussian.
        """
        self._known_classes()
        if self._check is None:
            self._check = check_posterior(self._inference, self._found)
        if not self._earlier.n_fits:
            return self._check
        last, total = number_text(self._n_last), number_text(self._n_all)
        of_last = f"This check is of the last {last} of {total} rows"
        sentence = f"{self._check.sentence} {of_last}: those before enter as a Gaussian prior."
        word: Word = "poor" if self._check.word == "poor" else "usable"
        return replace(self._check, word=word, sentence=sentence)

    @property
    def diagnostics_(self) -> Any:
        """Of draws by Monte Carlo, a frame of the kind that the model was fitted to.

        Its columns are term, class (for more than two), mean, sd, rhat (split, rank-normalised;
        one where chains agree), ess_bulk and ess_tail (effective numbers of draws), and mcse_mean
        (the Monte Carlo error of the mean).
        """
        self._known_classes()
        draws, terms = self.posterior_.draws, list(self.posterior_.coefficient_map.terms)
        columns: dict[str, Any] = {"term": terms}
        if len(self.classes_) > 2:
            each = np.repeat(self.classes_, len(terms)).tolist()
            columns = {"term": terms * len(self.classes_), "class": each}
        columns["mean"] = draws.mean(axis=(0, 1)).tolist()
        columns["sd"] = draws.std(axis=(0, 1), ddof=1).tolist()
        columns |= {name: values.tolist() for name, values in diagnostics(draws).items()}
        return make_frame(columns, self._frame_backend)

    def to_arviz(self, n_draws: int = 1000, by_row: bool = True) -> Any:
        """Draws for the package arviz, as for az.summary, az.loo, az.compare, az.plot_ppc.

        Its groups are posterior (`intercept`, `coef`) and, with `by_row`, log_likelihood,
        posterior_predictive and observed_data (class codes `y`) of the rows of the fit. After Monte
        Carlo these are the draws of the chains; else `n_draws` of the Gaussian posterior.
        """
        self._known_classes()
        free, random = self.posterior_.free, as_generator(self.random_state)
        draws = free.values if isinstance(free, Draws) else free.sample(n_draws, random)[None]
        objective = self._inference.objective if by_row else None
        return to_arviz(self.posterior_, draws, self.classes_, self._link(), objective, random)

    def sample_predictive(
        self, X: Any, n: int = 1000, random_state: Any = None, offset: Any = None
    ) -> Labels:
        """Labels (n, rows) drawn from the predictive distribution, with n draws of coefficients.

        >>> from posteriori import BayesianLogisticRegression
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], list("nnynyy")
        >>> model = BayesianLogisticRegression(prior=1.0, inference="laplace").fit(X, y)
        >>> drawn = model.sample_predictive([[0.0], [5.0]], n=4000, random_state=0)
        >>> drawn.shape, (drawn == "y").mean(axis=0).round(1)
        ((4000, 2), array([0.2, 0.8]))
        """
        self._known_classes()
        random, link = as_generator(random_state), self._link()
        draws = self.posterior_.free.sample(n, random)
        codes = drawn_classes(self._rows_with(X, offset), self.posterior_, draws, link, random)
        return self.classes_[codes]

    def update(self, X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None) -> Self:
        """Learn from more rows: the posterior so far is their prior.

        Columns and classes are those of the fit. Afterwards `prior_` is the posterior before;
        likelihoods, deviances and `evidence_` are those of these rows alone, `log_evidence_` is
        that of all rows so far. A prior that the evidence chose stays as it was chosen.

        The rows before enter as a Gaussian: for Laplace the posterior itself, for draws their mean
        and covariance, for a variational fit its mean with the curvature of the posterior there;
        its `log_evidence_` is then no longer a bound. `approximation_check_` does not measure the
        error of that Gaussian. Ten updates with 50 rows each were 0.1 to 0.4 standard deviations
        from the posterior of 500 rows together where classes overlap much, 0.1 to 1.0 where they
        hardly do. The more rows the first fit has, the smaller the error.

        >>> from posteriori import BayesianLogisticRegression
        >>> X, y = np.arange(40.0)[:, None] % 10, np.arange(40) % 10 + np.arange(40) % 7 > 7
        >>> half = BayesianLogisticRegression(prior=1.0, inference="laplace").fit(X[:20], y[:20])
        >>> whole = BayesianLogisticRegression(prior=1.0, inference="laplace").fit(X, y)
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
        classes: Any = None,
        sample_weight: Any = None,
        offset: Any = None,
    ) -> Self:
        """`fit` to the first rows, whose labels or `classes` name all classes; then `update`.

        The first 20 rows a coefficient are kept, and the result is that of `fit` to all of them,
        with a prior that is chosen anew. Pickles contain them; use `fit` and `update` where models
        must not contain training data.
        """
        with self._all_or_nothing():
            is_first = not hasattr(self, "posterior_")
            rows = self._read_batch(X, y, classes, sample_weight, offset)
            if is_first:
                self._fit_and_keep(rows)
            elif self._kept is not None and is_memory_rows(rows):
                # The new ones first, so that errors have their row numbers.
                self._fit_and_keep(joined(rows, self._kept))
            else:
                self._learn(rows)
        return self

    def _fit_and_keep(self, rows: FitRows) -> None:
        """Fit to all rows so far, and keep them while they are few."""
        self._fit_rows(rows)
        if is_memory_rows(rows) and rows.n_rows < rows_to_keep(self._plan(rows).problem):
            self._kept = rows

    def _learn(self, rows: FitRows) -> None:
        """Update the posterior by further rows."""
        self._check_parameters()
        prior = self.posterior_
        if self._found.curved is not None:
            prior = replace(prior, free=self._found.curved)
        coef_map, plan = prior.coefficient_map, self._plan(rows)
        if coef_map.coordinates.basis is not None:
            raise ParameterError(
                "With prior='jeffreys' the first rows do not determine some combination of "
                f"{listed(coef_map.dependent)}, which has no prior for further rows.",
                "Drop columns that depend on others, fit to all rows, or use another prior.",
            )
        if self.prior in ("evidence", "ard") and not self._earlier.n_fits:
            self._warn_of_fixed()
        problem = plan.problem
        objective = LogPosterior(
            problem.rows,
            coef_map.columns,
            coef_map.standard,
            problem.loss,
            problem.target,
            prior.as_penalty(),
            coef_map.coordinates,
            self.tol**2,
        )
        n_fits, none_dependent = self._earlier.n_fits + 1, np.empty(0, dtype=np.intp)
        self._earlier, self._kept = Earlier(self._log_evidence, self._n_all, n_fits), None
        self._conclude(plan, Prepared([objective], prior.free.mean, none_dependent))
        self.prior_ = prior

    def _warn_of_fixed(self) -> None:
        """Warn of coefficients that the chosen prior fixes."""
        coef_map = self.posterior_.coefficient_map
        first, c = int(coef_map.standard.intercept), coef_map.coordinates.c
        precision = np.broadcast_to(self.prior_.precision, len(coef_map.columns.names))
        variance = np.diagonal(self.posterior_.free.covariance).reshape(c, -1)[:, first:]
        learnt = (1.0 - precision * variance).max(axis=0)
        fixed = np.flatnonzero(learnt < _FIXED)
        if not len(fixed):
            return
        columns = coef_map.columns.as_schema().describe_all(fixed)
        least = float(precision[fixed].min())
        warn(
            IdentifiabilityWarning(
                f"The {self._n_last:g} rows of the first fit hardly determine the coefficient of "
                f"{columns}, and the prior that they chose, a standard deviation of "
                f"{least**-0.5:.2g} for standardised columns, does not change with further rows.",
                "Fit to more rows first, begin with partial_fit, or set a number as prior.",
            )
        )

    @names_of_others
    def __init__(
        self,
        *,
        prior: PriorLike | PriorName = "evidence",
        inference: InferenceChoice = "auto",
        predictive: PredictiveName = "auto",
        fit_intercept: bool = True,
        tol: float = 1e-4,
        max_iter: int | None = None,
        handle_unknown: HandleUnknown = "error",
        n_draws: int = 4000,
        random_state: Any = None,
    ) -> None:
        self.prior = prior
        self.inference = inference
        self.predictive = predictive
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.handle_unknown = handle_unknown
        self.n_draws = n_draws
        self.random_state = random_state

    def _loss(self, n_classes: int, soft: bool) -> Loss | ClassLoss:
        if n_classes > 2:
            return SoftmaxLoss()
        return LogisticLoss() if soft else SignedLogisticLoss()

    def _link(self) -> ProbabilityLink:
        return PROBABILITY_LINKS["logit"]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("inference", self.inference, get_args(InferenceChoice))
        if self.prior == "jeffreys" and self.inference in ("variational", "monte_carlo"):
            raise ParameterError(
                f"inference={self.inference!r} is for a Gaussian prior, not for prior='jeffreys'.",
                "Use inference='laplace', or another prior.",
            )
        check_count("n_draws", self.n_draws, "draws")
        read_predictive(self.predictive, len(self.classes_))
        if self.inference == "monte_carlo" and self.predictive in ("probit", "quadrature"):
            raise ParameterError(
                f"predictive={self.predictive!r} is for a Gaussian posterior; with "
                "inference='monte_carlo' predictions are averages over its draws.",
                "Use predictive='auto' or 'monte_carlo', or another inference.",
            )

    def _plan(self, rows: FitRows) -> Plan:
        plan = super()._plan(rows)
        precision = 0.0 if self.prior == "jeffreys" else BROAD**-2
        return replace(
            plan,
            problem=replace(plan.problem, intercept_precision=precision),
            search=replace(plan.search, during_fit=False),  # the prior keeps coefficients finite
            jeffreys_errors="observed",
            keeps_hessian=True,
            remedies=A_NUMBER,
        )

    def _fit_rows(self, rows: FitRows) -> None:
        self._check_parameters()
        self._earlier, self._kept = Earlier(), None
        self._random = as_generator(self.random_state)
        plan = self._plan(rows)
        prepared = prepare(plan.problem)
        self._check_prepared(prepared.objective)
        prepared, _, reason = choose_prior(plan, prepared)
        self.__dict__.pop("prior_reason_", None)
        if reason:
            self.prior_reason_ = reason
        is_jeffreys = self.prior == "jeffreys"
        self.prior_ = "jeffreys" if is_jeffreys else as_prior(prepared.objective)
        self._conclude(plan, prepared)

    def _check_prepared(self, objective: LogPosterior) -> None:
        """An error where the inference cannot have so many coefficients, or needs another prior."""
        size = objective.coordinates.size
        if objective.is_wide and self.inference in ("variational", "monte_carlo"):
            raise ParameterError(
                f"inference={self.inference!r} needs the covariance of all {size:,} coefficients, "
                f"which has {size**2:,} numbers. {WIDE:,} coefficients are the most.",
                "Use inference='laplace' or 'auto', which approximate it, or fewer columns.",
            )
        if self.prior != "jeffreys":
            check_proper(objective.penalty)

    # From the optimum to the posterior.

    def _conclude(self, plan: Plan, prepared: Prepared) -> None:
        """Find the optimum and the posterior, and predict by it."""
        rows = plan.problem.rows
        # The owner of rows in memory may put others there.
        self._weight = None
        if is_memory_rows(rows):
            self._weight = float(rows.n_rows if rows.weight is None else rows.weight.sum())
        self._keep(plan, finish(plan, prepared))
        self._check, self.inference_reason_ = None, "requested"
        self.inference_ = "laplace" if self.inference == "auto" else self.inference
        inference, objective = self._inference, self._inference.objective
        if self.inference_ == "laplace":
            self._found = by_laplace(inference)
        if self.inference == "auto":
            self._choose_inference(objective)
        if self.inference_ == "variational":
            self._found = by_variational(inference)
        if self.inference_ == "monte_carlo":
            self._found = by_monte_carlo(inference, self.n_draws, self._random)
        free = self._found.free
        self.lower_bounds_ = self._found.bound
        self.posterior_ = Posterior(inference.coefficient_map, free)
        if self.inference_ != "laplace":
            draws = free.pooled if isinstance(free, Draws) else None
            self._inference = Inference.known(objective, free.mean, free.covariance, draws)
            self._linear = objective.linear(free.mean)

    def _choose_inference(self, objective: LogPosterior) -> None:
        """For "auto" Monte Carlo, if Laplace's approximation is poor and draws can be had."""
        check = check_posterior(self._inference, self._found)
        self._check, self.inference_reason_ = check, check.sentence
        if check.word != "poor":
            return
        if self.predictive in ("probit", "quadrature"):
            instead = f"predictive={self.predictive!r} needs a Gaussian."
        elif self._found.evidence is None:
            instead = "There is no Monte Carlo with prior='jeffreys'."
        elif not is_affordable(objective, self.n_draws):
            instead = "Monte Carlo would take long on so many rows and coefficients."
        else:
            self.inference_, self._check = "monte_carlo", None
            return
        self.inference_reason_ = f"{check.sentence} {instead}"
        warn(ApproximationWarning(self.inference_reason_, check.remedy))
