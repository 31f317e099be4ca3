"""Logistic regression (4.3.2)-(4.3.4): two classes, and more by the softmax function.

`partial_fit` keeps the first rows and a quadratic approximation of the likelihood of the others.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from sklearn.utils.metaestimators import available_if

from posteriori.arguments import is_number, names_of_others
from posteriori.errors import (
    ConvergenceWarning,
    InferenceError,
    ParameterError,
    warn,
)
from posteriori.likelihood.binary_losses import LogisticLoss, SignedLogisticLoss
from posteriori.likelihood.links import PROBABILITY_LINKS, ProbabilityLink
from posteriori.likelihood.loss import ClassLoss, Loss
from posteriori.likelihood.softmax import SoftmaxLoss
from posteriori.models.fitting import Problem, prepare
from posteriori.models.likelihood_fit import A_NUMBER, Fit, Plan, Solver, finish, solver_of
from posteriori.models.likelihood_model import LikelihoodModel
from posteriori.models.separation import SeparationSearch
from posteriori.posterior.coefficient_table import CoefficientMap
from posteriori.posterior.inference import Inference, inverse_of
from posteriori.posterior.log_posterior import WIDE, Coordinates, LogPosterior
from posteriori.posterior.priors import Penalty, PriorLike, PriorName, flat
from posteriori.rows.block import Block, FitRows
from posteriori.rows.in_memory import MemoryRows
from posteriori.rows.schema import HandleUnknown
from posteriori.solve.objective import Iteration, Solution
from posteriori.solve.online_update import BROAD, QuadraticApproximation, online_update
from posteriori.statistics.row_sample import join_rows, sample_rows, thin_rows
from posteriori.typing import Array

if TYPE_CHECKING:
    from posteriori.models.label_noise import LabelNoise, Noise, NoisyLoss

_LEAST, _ENOUGH = 5, 20
"""Rows a parameter that are kept at least, and if they are not too many numbers."""

_KEPT_ENTRIES = 2**22

_UNLIKE = 10.0
"""Squared first decrement of a batch, relative to that of chance, that indicates other rows."""


@dataclass(frozen=True, eq=False)
class BatchState:
    """The state after `n_seen` rows: a sample `rows`, and a quadratic approximation of the `rest`.

    Without a rest, all rows are there. `penalty` is the prior, in the columns that were
    standardised when rows were first dropped; None where it is in the rest.
    """

    rows: MemoryRows | None
    n_seen: int
    rest: QuadraticApproximation | None = None
    penalty: Penalty | None = None


def rows_to_keep(problem: Problem) -> int:
    """How many rows are kept before any is dropped; after that, a decreasing share of new rows."""
    q = len(problem.columns.names) + int(problem.intercept)
    p = Coordinates(problem.n_activations, q).size
    if p > WIDE:
        raise ParameterError(
            f"partial_fit keeps the curvature of all {p} parameters, which are too many.",
            "Use fit, or fewer columns.",
        )
    d = max(len(problem.rows.schema), 1)
    return max(_LEAST * p, min(_ENOUGH * p, _KEPT_ENTRIES // d))


def joined(first: MemoryRows, second: MemoryRows) -> MemoryRows:
    """Both as one; where only one of them has offsets, those of the other are zero."""
    return join_rows(_offset_like(first, second), _offset_like(second, first))


def _offset_like(rows: MemoryRows, other: MemoryRows) -> MemoryRows:
    if rows.offset is not None or other.offset is None:
        return rows
    return replace(rows, offset=np.zeros((rows.n_rows, *other.offset.shape[1:])))


def is_unlike(solution: Solution[Array, Iteration], ratio: float) -> bool:
    """Whether a batch, `ratio` times as large as all before, changes more than by chance.

    For rows like those before, the first decrement is about √(p · ratio).
    """
    chance = 1.0 + len(solution.parameters) * ratio
    return bool(solution.trace) and solution.trace[0].decrement ** 2 > _UNLIKE * chance


def _learns_in_batches(model: "LogisticRegression") -> bool:
    model._check_sequential()
    return True


def _quadratic(loss: LogPosterior, w: Array) -> QuadraticApproximation:
    return QuadraticApproximation.about(w, loss(w, "full"))


def _in_memory(rows: FitRows) -> MemoryRows:
    return sample_rows(rows, 1)[0]


def _with_all_columns(objective: LogPosterior) -> LogPosterior:
    """The objective in the parameters of all columns, dependent or not."""
    return replace(objective, coordinates=replace(objective.coordinates, basis=None))


def _warn_of_unlike_rows() -> None:
    warn(
        ConvergenceWarning(
            "This batch differs from the rows before, most of which are summarised by a quadratic "
            "approximation that may not hold for the new coefficients.",
            "Pass rows in random order, or fit to all of them.",
        )
    )


def _warn_of_gaps() -> None:
    warn(
        ConvergenceWarning(
            "The rows so far do not determine all coefficients. A broad prior (standard deviation "
            f"{BROAD:g} for standardised columns) was used.",
            "Pass more rows to partial_fit, or set a prior.",
        )
    )


class LogisticRegression(LikelihoodModel):
    """Logistic regression by maximum likelihood, or with a `prior`; softmax for K > 2 classes.

    p(C|x) is σ(wᵀφ) for two classes (4.87) and the softmax of w_kᵀφ for more (4.104); w makes
    -ln p(t|w) - ln p(w) smallest (4.90), (4.108). Columns are centred and scaled internally; a data
    frame may have categorical columns, which get treatment coding.

    Methods
    -------
    fit(X, y), fit("sick ~ age + sex", frame), partial_fit(X, y, classes)
    predict(X), predict_proba(X), predict_interval(X), decision_function(X), score(X, y)
    summary(), tidy(), glance(), augment(X, y), check(X, y)
    predictions(X), comparisons(X), slopes(X), explain(row), hyperplane()
    mislabelled_probability(X, y)

    Parameters
    ----------
    prior : None, a number, a `GaussianPrior`, "evidence", "ard" or "jeffreys"
        None is maximum likelihood. A number is the precision of every slope (1/C of scikit-learn).
        "evidence" chooses one precision for all slopes of standardised columns, "ard" one for each
        column, by the largest evidence. "jeffreys" is Firth's reduction of bias, which is finite
        where the classes can be separated.
    label_noise : a number, a pair, or "estimate"
        The probability that a label is wrong (4.117): one for all classes, one for each of two, or,
        for two classes, to be estimated with the coefficients.
    solver : "auto", "newton", "newton-cg", "gradient", "coordinate" or "sequential"
        All reach the same optimum; `solver_` and `solver_reason_` say which one "auto" used.
    fit_intercept : bool
    tol : float
        The iteration ends within about this many standard errors of the optimum; much nearer
        where that costs little.
    max_iter : int or None
        The largest number of steps; None leaves it to the solver.
    handle_unknown : "error" or "reference"
        What to do at prediction with a level that the fit did not have.
    keep_path : bool
        Whether the coefficients of every step of Newton's method are kept, as `path_`.

    Attributes
    ----------
    coef_, intercept_ : (1, d) and (1,) for two classes, (K, d) and (K,) for more, summing to zero.
    coef_names_ : names (d,) of its columns: those of X in order, levels in the place of a factor.
    classes_, n_iter_, converged_, n_parameters_, solver_, solver_reason_.
    solution_ : how the iteration ended, and a trace of it.
    coef_covariance_, log_likelihood_, deviance_, null_deviance_, aic_, bic_.
    prior_, prior_reason_ : the prior that "evidence" or "ard" chose, and how.
    separation_ : whether the classes can be separated, and by which columns.
    label_noise_, label_noise_error_ : the rate(s) of wrong labels, and the standard error of an
        estimated one (None where it was given, or is zero).
    penalised_log_likelihood_ : with prior="jeffreys", ln p(t|w) + ½ ln|I|.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> X = X[["mean radius", "mean texture"]]
    >>> model = LogisticRegression().fit(X, y)
    >>> model.tidy()[["term", "estimate", "std_error"]].round(3)
               term  estimate  std_error
    0     intercept    19.849      1.774
    1   mean radius    -1.057      0.101
    2  mean texture    -0.218      0.037
    >>> model.predict_proba(X[:1]).round(3), model.predict_interval(X[:1]).round(3)
    (array([[0.807, 0.193]]), array([[0.085, 0.381]]))
    """

    _batches: BatchState
    _n_fitted: int

    label_noise_: float | tuple[float, float]
    label_noise_error_: float | None
    _noisy_loss: "NoisyLoss | None"

    @available_if(_learns_in_batches)  # type: ignore[untyped-decorator]
    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        classes: Any = None,
        sample_weight: Any = None,
        offset: Any = None,
    ) -> Self:
        """Learn from more rows, without those before.

        The first call names the classes: by `classes`, or by labels of all of them. Its columns
        (and levels) are those of all batches to come. The first 20 rows a coefficient are all
        kept, and the result is that of `fit`. After that a decreasing share of rows is kept, with a
        quadratic approximation of the likelihood of the others. The result is then a small
        fraction of a standard error from `fit` to all rows, whatever the size of the batches; where
        a batch is unlike those before, as in rows sorted by class, a `ConvergenceWarning` says so.
        Rows that are kept are in pickles too. What needs all rows again, such as
        `log_likelihood_`, is an error. The prior counts once. After `fit`, its rows count as the
        first batch. `offset` is that of `fit`; rows of a call without one have zeros.

        >>> import numpy as np
        >>> from posteriori import LogisticRegression
        >>> X, y = np.arange(200.0)[:, None] % 10, np.arange(200) % 10 + np.arange(200) % 7 > 7
        >>> model = LogisticRegression()
        >>> for batch in range(4):
        ...     part = slice(50 * batch, 50 * batch + 50)
        ...     model = model.partial_fit(X[part], y[part], classes=[False, True])
        >>> model.coef_.round(2), LogisticRegression().fit(X, y).coef_.round(2)
        (array([[0.89]]), array([[0.89]]))
        """
        with self._all_or_nothing():
            self._check_parameters()
            self._take(self._read_batch(X, y, classes, sample_weight, offset))
        return self

    def _fit_rows(self, rows: FitRows) -> None:
        super()._fit_rows(rows)
        self.__dict__.pop("_batches", None)
        self._n_fitted = rows.n_rows

    def _take(self, rows: FitRows) -> None:
        state = self.__dict__.get("_batches")
        if state is None and hasattr(self, "_inference"):
            state = BatchState(None, self._n_fitted, self._quadratic_of_fit())
        if state is None:
            self._fit_whole(rows)
        elif state.rest is not None:
            self._update(state, rows)
        elif rows.n_rows < self._n_kept(rows):
            # The new ones first, so that errors tell their numbers.
            self._fit_whole(joined(_in_memory(rows), state.rows))
        else:
            self._fit_whole(rows)
            self._update(self._batches, state.rows)

    def _quadratic_of_fit(self) -> QuadraticApproximation:
        """The quadratic approximation of the likelihood of the rows of a `fit`."""
        inference = self._inference
        if (
            inference.coefficient_map.coordinates.basis is not None
            or inference.undetermined is not None
        ):
            raise InferenceError(
                "The rows of the fit did not determine all coefficients, and are not kept.",
                "Begin with partial_fit, or set a prior.",
            )
        precision = inverse_of(inference.free_covariance())
        return QuadraticApproximation(precision, precision @ inference.w)

    def _n_kept(self, rows: FitRows) -> int:
        return rows_to_keep(self._plan(rows).problem)

    def _fit_whole(self, rows: FitRows) -> None:
        """Fit to all rows, and summarise them if they are many."""
        plan = replace(self._plan(rows), remedies=A_NUMBER)
        prepared = prepare(plan.problem)
        self._keep(plan, finish(plan, prepared))
        if rows.n_rows < rows_to_keep(plan.problem):
            self._batches = BatchState(_in_memory(rows), rows.n_rows)
            return
        objective = _with_all_columns(prepared.objective)
        w = prepared.objective.coordinates.vectors(self.solution_.parameters).ravel()
        self._batches = BatchState(None, 0, QuadraticApproximation.zero(len(w)), objective.penalty)
        self._summarise(rows, objective, w)
        quadratic = _quadratic(objective, w)
        self._adopt(objective, w, quadratic, quadratic.determined and self.solution_.converged)

    def _update(self, state: BatchState, rows: FitRows) -> None:
        """Learn from a batch together with the state."""
        coef_map = self._inference.coefficient_map
        new = self._loss_of(rows, coef_map)
        losses = [new]
        if state.rows is not None:
            kept = self._loss_of(state.rows, coef_map)
            losses.append(replace(kept, penalty=state.penalty or kept.penalty))
        rest = cast(QuadraticApproximation, state.rest)
        update = online_update(rest, losses, self._inference.w, self.tol)
        self.solution_, self._batches, w = update.solution, state, update.solution.parameters
        self._summarise(rows, new, w)
        self._adopt(new, w, update.quadratic, update.determined)
        if is_unlike(update.solution, rows.n_rows / state.n_seen):
            _warn_of_unlike_rows()

    def _loss_of(self, rows: FitRows, coef_map: CoefficientMap) -> LogPosterior:
        """-ln p(t|w) of some rows, without a prior."""
        problem = self._plan(rows).problem
        return LogPosterior(
            problem.rows,
            coef_map.columns,
            coef_map.standard,
            problem.loss,
            problem.target,
            flat(coef_map.coordinates.q),
            coef_map.coordinates,
            self.tol,
        )

    def _summarise(self, rows: FitRows, objective: LogPosterior, w: Array) -> None:
        """Keep a sample of these rows, and the quadratic approximation of the others."""
        state, coef_map = self._batches, CoefficientMap.of(objective)
        n_seen = state.n_seen + rows.n_rows
        sample = thin_rows(rows, min(self._n_kept(rows) / n_seen, 1.0), seed=n_seen)
        rest = cast(QuadraticApproximation, state.rest) + _quadratic(
            self._loss_of(rows, coef_map), w
        )
        kept = state.rows
        if sample is not None:
            rest = rest - _quadratic(self._loss_of(sample, coef_map), w)
            kept = sample if kept is None else joined(kept, sample)
        self._batches = replace(state, rows=kept, n_seen=n_seen, rest=rest)

    def _adopt(
        self, objective: LogPosterior, w: Array, quadratic: QuadraticApproximation, determined: bool
    ) -> None:
        """Predict and infer from the optimum of all rows, and the curvature there."""
        self.n_iter_ = max(len(self.solution_.trace), 1)
        self.converged_ = determined
        self._inference = Inference.of_precision(
            CoefficientMap.of(objective), w, quadratic.precision
        )
        self._search = SeparationSearch()
        self._linear = objective.linear(w)
        if not determined:
            _warn_of_gaps()

    @names_of_others
    def __init__(
        self,
        *,
        prior: PriorLike | PriorName = None,
        label_noise: "LabelNoise" = 0.0,
        solver: Solver = "auto",
        fit_intercept: bool = True,
        tol: float = 1e-4,
        max_iter: int | None = None,
        handle_unknown: HandleUnknown = "error",
        keep_path: bool = False,
    ) -> None:
        self.prior = prior
        self.label_noise = label_noise
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.handle_unknown = handle_unknown
        self.keep_path = keep_path

    def _plan(self, rows: FitRows) -> Plan:
        plan = super()._plan(rows)
        noise = self._noise(max(plan.problem.n_activations, 2))
        if self.keep_path:
            by_newton = noise is None and self.prior != "jeffreys"
            if not (by_newton and self.solver in ("auto", "newton")):
                raise ParameterError(
                    "keep_path=True is for Newton's method.",
                    "Use solver='newton' without label noise and Jeffreys' prior.",
                )
            plan = replace(plan, solve=solver_of("newton", self.tol, self.max_iter, True))
        if noise is None:
            return plan
        if isinstance(self.prior, str):
            raise ParameterError(
                f"prior={self.prior!r} cannot be combined with label_noise.",
                "Use a number as prior, or label_noise=0.0.",
            )
        if self.solver not in ("auto", "newton"):
            raise ParameterError(
                f"solver={self.solver!r} cannot be combined with label_noise, whose likelihood "
                "is not convex.",
                "Use solver='auto' or 'newton'.",
            )
        from posteriori.models.label_noise import solver_of_noise

        # With labels that may be wrong, a maximum proves nothing of the labels themselves.
        search = replace(plan.search, during_fit=False)
        return replace(plan, noise=noise, solve=solver_of_noise(self.max_iter), search=search)

    def _loss(self, n_classes: int, soft: bool) -> Loss | ClassLoss:
        if n_classes > 2:
            return SoftmaxLoss()
        return LogisticLoss() if soft or self._noise(2) is not None else SignedLogisticLoss()

    def _noise(self, n_classes: int) -> "Noise | None":
        """The label noise that was requested; None for no noise."""
        if is_number(self.label_noise) and self.label_noise == 0:
            return None
        from posteriori.models.label_noise import read_label_noise

        return read_label_noise(self.label_noise, n_classes)

    def _link(self) -> ProbabilityLink:
        return PROBABILITY_LINKS["logit"]

    def _keep(self, plan: Plan, fit: Fit) -> None:
        super()._keep(plan, fit)
        found = fit.noisy
        self._noisy_loss = None if found is None else found.loss
        self.label_noise_ = 0.0 if found is None else found.rate
        self.label_noise_error_ = None if found is None else found.rate_error

    @property
    def path_(self) -> Array:
        """With `keep_path`, the coefficients before each step and at the end (steps + 1, K, 1 + d).

        The intercept is first; for two classes K is 1.
        """
        inference, trace = self._fitted_inference(), self.solution_.trace
        w = [step.parameters for step in trace if step.parameters is not None]
        if not w:
            raise InferenceError("The path was not kept.", "Fit with keep_path=True.")
        coef_map = inference.coefficient_map
        thetas = [coef_map.coordinates.expand(each) for each in (*w, self.solution_.parameters)]
        return coef_map.standard.to_user(np.stack(thetas))

    def _predicted(self, block: Block) -> Array:
        found = super()._predicted(block)
        return found if self._noisy_loss is None else found @ self._noisy_loss.transition

    def _check_sequential(self) -> None:
        """An error where the settings need all rows at once, so that there is no partial_fit."""
        if isinstance(self.prior, str):
            raise ParameterError(
                f"prior={self.prior!r} needs all rows at once.",
                "Use None, a number or a GaussianPrior, or fit.",
            )
        if self._noise(2) is not None:
            raise ParameterError(
                "partial_fit has no label noise, whose likelihood has no quadratic approximation.",
                "Use label_noise=0.0, or fit.",
            )

    def _summary_facts(self) -> tuple[tuple[str, str], ...]:
        facts = super()._summary_facts()
        if self._noisy_loss is None:
            return facts
        from posteriori.models.label_noise import noise_fact

        return (*facts, noise_fact(self.label_noise_, self.label_noise_error_))

    def mislabelled_probability(self, X: Any, y: Any, offset: Any = None) -> Array:
        """The probability that the label of each row is wrong (n,), by Bayes' rule.

        `offset` is that of `fit`, for these rows. The probability is zero for a fit with
        `label_noise=0.0`.

        >>> X, y = [[-3.0], [-2.0], [-1.0], [1.0], [2.0], [3.0], [2.5]], [0, 0, 0, 1, 1, 1, 0]
        >>> model = LogisticRegression(prior=0.1, label_noise=0.1).fit(X, y)
        >>> model.mislabelled_probability(X, y).round(2)
        array([0.  , 0.01, 0.02, 0.08, 0.03, 0.01, 0.39])
        """
        from posteriori.models.label_noise import wrong_label_probability

        K = len(self._known_classes())
        activation = self._evaluate_with(X, offset, lambda a: a, 1 if K == 2 else K)
        return wrong_label_probability(self._noisy_loss, activation, y, self.classes_)
