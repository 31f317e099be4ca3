"""The base of models fitted by likelihood: fit, predictions, standard errors, tables.

Conventions: n rows, K classes, d design columns. Two classes have one activation, positive for
the second class; more have one each.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, cast, get_args

import numpy as np
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from posteriori.arguments import check_choice, check_count, check_flag, check_fraction
from posteriori.errors import InferenceError, LabelError, ParameterError
from posteriori.likelihood.linear_activations import Linear
from posteriori.likelihood.links import Logit, ProbabilityLink
from posteriori.likelihood.loss import ClassLoss, Loss
from posteriori.likelihood.softmax import log_probabilities, probabilities
from posteriori.models.base import Classifier, anywhere
from posteriori.models.fitting import Problem, prepare, read_problem
from posteriori.models.likelihood_fit import (
    Fit,
    Plan,
    Solver,
    choose_prior,
    finish,
    solver_of,
)
from posteriori.models.separation import SeparationSearch
from posteriori.posterior.evidence import Evidence
from posteriori.posterior.inference import Errors, Inference, Intervals
from posteriori.posterior.priors import GaussianPrior, PriorLike, PriorName, check_prior
from posteriori.rows.block import Block, Features, FitRows
from posteriori.rows.frames import make_frame
from posteriori.rows.in_memory import MemoryRows, check_aligned, is_memory_rows
from posteriori.rows.schema import HandleUnknown, Schema, listed
from posteriori.rows.target import as_vector, read_offset, same_classes
from posteriori.rows.threads import one_blas_thread
from posteriori.solve.objective import Iteration, Solution, Status
from posteriori.solve.separation import Separation
from posteriori.statistics.local_quadratic import Information
from posteriori.typing import Array, Labels

if TYPE_CHECKING:
    from posteriori.inspection.results import About, Summary


def _prior_text(prior: Any) -> str:
    """A prior in a few characters; nothing for none."""
    if prior is None or (isinstance(prior, float | int) and prior == 0):
        return ""
    if isinstance(prior, GaussianPrior):
        return "Gaussian"
    return prior if isinstance(prior, str) else f"precision {prior:g}"


_SMALL = 10**6
"""A model keeps a copy of an X of fewer numbers."""


class LikelihoodModel(Classifier):
    """A classifier p(C|x) = f(wᵀφ(x)), fitted by maximum likelihood or with a prior on w.

    A subclass has a `_loss`, a `_link` and, where more is special about its fit, a `_plan`.
    """

    prior: PriorLike | PriorName
    solver: Solver
    fit_intercept: bool
    tol: float
    max_iter: int | None
    handle_unknown: HandleUnknown

    solution_: Solution[Array, Iteration]
    solver_: str
    solver_reason_: str
    n_iter_: int
    converged_: bool
    prior_: Any
    prior_reason_: str

    _linear: Linear
    _inference: Inference
    _search: SeparationSearch
    _edge = ""

    _information: Information = "observed"
    _binary_only = False
    """Whether there can be no more than two classes."""

    def _activations(self, X: Features) -> Array:
        return self._linear.of_rows(X, self.schema_, self.handle_unknown)

    def _predicted(self, block: Block) -> Array:
        return self._probabilities(self._block_activations(block))

    def _block_activations(self, block: Block) -> Array:
        """The activations of a block's rows, with their offsets (n, K)."""
        a = self._checked(block, self._activations)
        return a if block.offset is None else a + block.offset.reshape(len(a), -1)

    @anywhere
    def decision_function(self, X: Any, offset: Any = None) -> Array:
        """Activations (n, K); for two classes (n,), positive where the second is chosen.

        With a link that is not symmetric, the activation at which two classes are equally probable
        is subtracted.
        """
        if len(self._known_classes()) > 2:
            return self._evaluate_with(X, offset, lambda a: a, len(self.classes_))
        return self._evaluate_with(X, offset, lambda a: a[:, 0]) - self._middle()

    @anywhere
    def predict_proba(self, X: Any, offset: Any = None) -> Array:
        """p(C_k|x) of each row and class (n, K); rows sum to one."""
        return self._evaluate_with(X, offset, self._probabilities, len(self._known_classes()))

    @anywhere
    def predict_log_proba(self, X: Any, offset: Any = None) -> Array:
        """ln p(C_k|x), finite where the probability itself underflows.

        With a link whose tail falls as exp(-exp(a)), such as cloglog or Gumbel noise, the
        logarithm -exp(a) leaves the doubles itself beyond an activation of 709, and is -inf there.
        """
        return self._evaluate_with(X, offset, self._log_probabilities, len(self._known_classes()))

    @anywhere
    def predict(self, X: Any, offset: Any = None) -> Labels:
        """The most probable class of each row."""
        self._known_classes()
        codes = self._evaluate_with(X, offset, self._codes)
        return self.classes_[codes.astype(np.intp)]

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> float:
        """The share of rows whose class is predicted right."""
        return float(accuracy_score(y, self.predict(X, offset=offset), sample_weight=sample_weight))

    def _evaluate_with(
        self, X: Any, offset: Any, link: Callable[[Array], Array], width: int | None = None
    ) -> Array:
        """`link` of the activations, to which the offset is added first."""
        if offset is None:
            return self._evaluate(X, link, width)
        K = self._linear.weights.shape[1]
        activation = self._evaluate(X, lambda a: a, K)
        added = read_offset(offset, len(activation), K)
        return link(activation + added.reshape(len(activation), -1))

    def _probabilities(self, activation: Array) -> Array:
        if activation.shape[1] > 1:
            return probabilities(activation)
        link, a = self._link(), activation[:, 0]
        out = np.empty((len(a), 2))
        out[:, 0], out[:, 1] = link.complement(a), link.mean(a)
        return out

    def _log_probabilities(self, activation: Array) -> Array:
        if activation.shape[1] > 1:
            return log_probabilities(activation)
        second, first = self._link().logs(activation[:, 0])
        return np.stack([first, second], axis=1)

    def _codes(self, activation: Array) -> Array:
        if activation.shape[1] > 1:
            return activation.argmax(axis=1).astype(np.float64)
        second, first = self._link().logs(activation[:, 0])
        return (second > first).astype(np.float64)

    def _fitted_inference(self) -> Inference:
        check_is_fitted(self)
        return self._inference

    @property
    def coef_covariance_(self) -> Array:
        """Covariance of the coefficients, the intercept first.

        The inverse of the curvature of -ln p(t|w), or with a prior of -ln p(w|t); times the
        dispersion, where one is estimated. For more than two classes it is that of the contrasts
        with the first class, class by class.
        """
        return self._fitted_inference().covariance()

    @property
    def log_likelihood_(self) -> float:
        """ln p(t|w) at the coefficients found, without the prior."""
        return self._fitted_inference().goodness.log_likelihood

    @property
    def deviance_(self) -> float:
        """2 (ln p of the saturated model - ln p), times the dispersion where one is estimated.

        The saturated model gives every row its own target as its mean. For hard labels its ln p
        is zero.
        """
        return self._fitted_inference().goodness.deviance

    @property
    def null_deviance_(self) -> float:
        """The deviance of the model with the intercept alone, and the offsets if there are any.

        Without an intercept in the model there is none here either.
        """
        return self._fitted_inference().goodness.null_deviance

    @property
    def aic_(self) -> float:
        """Akaike's criterion, 2 (parameters - ln p), an estimated dispersion being a parameter."""
        return self._fitted_inference().goodness.aic

    @property
    def bic_(self) -> float:
        """Schwarz's criterion, parameters · ln n - 2 ln p, with n the total weight of the rows."""
        return self._fitted_inference().goodness.bic

    @property
    def evidence_(self) -> Evidence:
        """The evidence by Laplace's approximation in its parts (4.137): fit and Occam factor.

        It needs a proper prior on every coefficient, the intercept included; otherwise this is an
        error.

        >>> from posteriori import GaussianPrior, LogisticRegression
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 1, 0, 1, 1]
        >>> model = LogisticRegression(prior=GaussianPrior(intercept_precision=0.01)).fit(X, y)
        >>> round(model.evidence_.log_likelihood, 3), round(model.evidence_.log_occam_factor, 3)
        (-2.641, -3.266)
        """
        return self._fitted_inference().evidence

    @property
    def log_evidence_(self) -> float:
        """ln p(t), the logarithm of the marginal likelihood (4.137)."""
        return self.evidence_.value

    def tidy(
        self,
        level: float = 0.95,
        errors: Errors = "model",
        intervals: Intervals = "wald",
        *,
        odds_ratios: bool = False,
        reference: Any = None,
        positive: Any = None,
    ) -> Any:
        """The coefficients as a frame of the kind that the model was fitted to.

        Its columns are term, class (for more than two), estimate, std_error, statistic, p_value,
        conf_low, conf_high. For more than two classes they are contrasts with the `reference`.

        Parameters
        ----------
        level : the coverage of the intervals.
        errors : "model", the curvature that is usual for the model; "observed" or "expected",
            that curvature by choice; "robust", the sandwich (HC0) about the observed curvature,
            right even where the model of the target's spread is not.
        intervals : "wald", estimate and standard errors to either side; "profile", the values
            that the likelihood ratio test (with the prior, if there is one) does not reject:
            infinite at a side where it never does. `statistic` is then the signed root of the
            likelihood ratio against zero, and `p_value` that of the test.
        odds_ratios : estimates and ends are exponentiated: the factors by which the odds are
            multiplied where the column increases by one; std_error stays on the log scale.
        reference : the baseline class; by default the first.
        positive : of two classes the one whose probability is modelled; by default the second.

        >>> from posteriori import LogisticRegression
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 1, 0, 1, 1]
        >>> frame = LogisticRegression().fit(X, y).tidy()
        >>> frame[["term", "estimate", "std_error"]].round(3)
                term  estimate  std_error
        0  intercept    -3.035      2.546
        1         x0     1.214      0.913
        """
        inference = self._compared_with(reference, positive)
        self._check_odds(odds_ratios)
        labels = getattr(self, "classes_", None)
        found = inference.table(labels, level, errors, intervals)
        found = found.as_odds_ratios() if odds_ratios else found
        found = found.as_posterior() if self._about().is_posterior else found
        return make_frame(found.columns(), self._frame_backend)

    def _compared_with(self, reference: Any, positive: Any) -> Inference:
        """The inference for contrasts of the other classes with the reference."""
        inference, labels = self._fitted_inference(), getattr(self, "classes_", None)
        if reference is None and positive is None:
            return inference
        known = [] if labels is None else labels.tolist()
        for label in (reference, positive):
            if label is not None and label not in known:
                raise ParameterError(
                    f"There is no class {label!r}.",
                    f"Use one of {known[:8]}."
                    if known
                    else "The target is a number: leave it out.",
                )
        if positive is not None and (len(known) > 2 or positive == reference):
            raise ParameterError(
                f"positive={positive!r} names one of two classes, with the other as reference.",
                "Use reference= for more than two classes.",
            )
        if reference is None:
            return inference.against(1 - known.index(positive))
        return inference.against(known.index(reference))

    def _check_odds(self, wanted: bool) -> None:
        """An error where coefficients are not logarithms of odds ratios."""
        check_flag("odds_ratios", wanted)
        labels = getattr(self, "classes_", None)
        has_odds = labels is not None and (len(labels) > 2 or isinstance(self._link(), Logit))
        if wanted and not has_odds:
            raise ParameterError(
                f"Coefficients of this {type(self).__name__} are not logarithms of odds ratios.",
                "Use odds_ratios=True with the logit link, as in LogisticRegression.",
            )

    def glance(self) -> Any:
        """The fit as a frame with one row: likelihood, deviances, criteria and convergence.

        >>> from posteriori import LogisticRegression
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 1, 0, 1, 1]
        >>> frame = LogisticRegression().fit(X, y).glance()
        >>> frame[["n_obs", "n_parameters", "log_likelihood", "null_deviance"]].round(3)
           n_obs  n_parameters  log_likelihood  null_deviance
        0      6             2          -2.478          8.318
        """
        from posteriori.inspection.results import glance_of

        return make_frame(glance_of(self._fitted_inference(), self._about()), self._frame_backend)

    def summary(
        self,
        level: float = 0.95,
        errors: Errors = "model",
        *,
        intervals: Intervals = "wald",
        odds_ratios: bool = False,
        reference: Any = None,
        positive: Any = None,
    ) -> "Summary":
        """A summary of the fit, to print or to display in a notebook; `.latex()` for a document.

        The arguments are those of `tidy`. Where there are no standard errors, as with more than
        5,000 coefficients, it has the estimates alone, and a note says why.

        >>> from posteriori import LogisticRegression
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 1, 0, 1, 1]
        >>> print(LogisticRegression().fit(X, y).summary())
        LogisticRegression, fitted by maximum likelihood
        ==============================================================================
        Rows                                6    Log-likelihood                  -2.48
        Parameters                          2    Deviance                         4.96
        Class                     1 against 0    Null deviance                    8.32
        Solver                newton, 6 steps    AIC                              8.96
        Converged                         yes    BIC                              8.54
        ------------------------------------------------------------------------------
                                   estimate  std error      z       p   [0.025  0.975]
        ------------------------------------------------------------------------------
        intercept                   -3.035      2.546   -1.19  0.2332  -8.025   1.954
        x0                           1.2140     0.9126   1.33  0.1834  -0.5746  3.0027
        ==============================================================================
        """
        from posteriori.inspection.results import summary_of

        inference, about = self._compared_with(reference, positive), self._about()
        self._check_odds(odds_ratios)
        if (
            about.labels is not None
            and len(about.labels) == 2
            and inference.coefficient_map.reference == 1
        ):
            about = replace(about, labels=about.labels[::-1])
        try:
            return summary_of(inference, about, level, errors, odds_ratios, intervals)
        except InferenceError as error:
            page = super().summary()
            return replace(page, notes=(*page.notes, f"No standard errors: {error.problem}"))

    @anywhere
    def predict_interval(self, X: Any, level: float = 0.95, offset: Any = None) -> Array:
        """A confidence interval for the mean of each row: the probability of the second class.

        The ends are (n, 2); for more than two classes (n, K, 2), one interval a class. The interval
        is symmetric in the activation, or for more than two classes in the log odds of each class
        against the rest, and then transformed. With a prior the standard errors are those of the
        posterior. The interval is for the mean, not for a single target.

        >>> from posteriori import LogisticRegression
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 1, 0, 1, 1]
        >>> LogisticRegression().fit(X, y).predict_interval([[2.5]]).round(3)
        array([[0.099, 0.901]])
        """
        inference = self._fitted_inference()
        kernel = self._interval_kernel(level)
        rows, K = self._rows_with(X, offset), inference.coefficient_map.coordinates.n_activations
        shape = (rows.n_rows, 2) if K == 1 else (rows.n_rows, K, 2)
        with one_blas_thread():
            return rows.fill(np.empty(shape), kernel)

    def _interval_kernel(self, level: float) -> Callable[[Block], Array]:
        """A block of rows to the ends of their intervals."""
        from posteriori.posterior.activations import MeanInterval

        return MeanInterval.of(self._inference, self._link(), level)

    def _rows_with(self, X: Any, offset: Any) -> MemoryRows:
        """Rows to predict, with their offsets."""
        rows = self._new_rows(X)
        if offset is None:
            return rows
        width = self._inference.coefficient_map.coordinates.n_activations
        return replace(rows, offset=read_offset(offset, rows.n_rows, width))

    def _about(self) -> "About":
        from posteriori.inspection.results import About, passes_text

        return About(
            type(self).__name__,
            _prior_text(self.prior),
            getattr(self, "classes_", None),
            getattr(self, "solver_", "newton"),
            self.n_iter_,
            self.converged_,
            (*self._summary_facts(), *passes_text(self)),
            self._summary_notes(),
        )

    def _summary_facts(self) -> tuple[tuple[str, str], ...]:
        """Names and values of facts that only this model has, for its summary."""
        return ()

    def _summary_notes(self) -> tuple[str, ...]:
        """Notes of the summary on how the fit ended."""
        status = self.solution_.status
        if status is Status.CONVERGED:
            return (self._edge,) if self._edge else ()
        found = getattr(self, "separation_", None) if status is Status.SEPARATED else None
        if found is None:
            return (status.value, self._edge) if self._edge else (status.value,)
        diverges = (
            f"coefficient of {listed(found.columns)} diverges"
            if len(found.columns) == 1
            else f"coefficients of {listed(found.columns)} diverge"
        )
        return (
            f"{status.value} The {diverges}: the fit was stopped where separated rows are certain.",
        )

    def __getstate__(self) -> dict[str, Any]:
        state = dict(cast(dict[str, Any], super().__getstate__()))
        if "_inference" in state:
            state["_inference"] = state["_inference"].without_rows()
        return state

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        classes: Any = None,
        offset: Any = None,
    ) -> Self:
        """Fit to rows X (n, d) and class labels y (n,), or to the rows of `scan` with both.

        X: array, sparse matrix or data frame; or a formula, whose terms are Python code, with the
        data frame as y, as in fit("sick ~ age + C(region)", frame). y: labels of any
        sortable kind, or an (n, K) matrix of soft labels whose rows sum to one; counts of groups
        are fractions with the trials as `sample_weight`. A weight of w counts as the row repeated
        w times. `offset`
        (n,) is added to the activations; for more than two classes (n, K). `classes` names the
        columns of soft labels; a data frame names its own. A fit that fails leaves the estimator
        as it was.
        """
        check_aligned(y if isinstance(X, str) else X, offset=offset)
        return self._fit_to(lambda: with_offset(self._read(X, y, sample_weight, classes), offset))

    def _read_batch(self, X: Any, y: Any, classes: Any, sample_weight: Any, offset: Any) -> FitRows:
        """Rows of a first batch, or of a further one with its columns and classes."""
        if not hasattr(self, "classes_"):
            rows = self._read(X, y, sample_weight, classes)
            self._remember(rows.schema, rows.classes)
        elif is_memory_rows(X):
            rows = self._read(X, y, sample_weight, classes)
            self._check_same(rows.classes, rows.schema)
        else:
            self._check_same(classes, self.schema_)
            rows = self._read_more(X, y, sample_weight)
        return with_offset(rows, offset)

    def _check_same(self, classes: Any, schema: Schema) -> None:
        """An error unless classes and columns are those of the first batch."""
        if classes is not None and not same_classes(classes, self.classes_):
            raise ParameterError(
                f"classes={as_vector(classes).tolist()} are not those of the first batch.",
                f"Leave classes out, or pass {self.classes_.tolist()}.",
            )
        if schema != self.schema_:
            raise ParameterError(
                "The columns of these rows are not those of the first batch: "
                f"{self.schema_.difference(schema)}.",
                "Pass rows with the same columns, kinds and levels.",
            )

    def _read_more(self, X: Any, y: Any, sample_weight: Any) -> FitRows:
        """Rows of a further batch, with the columns, levels and classes of the fit."""
        formula = self.formula_
        if isinstance(X, str):
            if formula is None or formula.text != X:
                raise ParameterError(
                    f"The formula {X!r} is not that of the fit.",
                    "Pass X and y." if formula is None else f"Use {formula.text!r}, or X and y.",
                )
            X, y = y, None
        if formula is not None:
            y = formula.target(X) if y is None else y
            X = formula.apply(X, self.handle_unknown)
        known = {"schema": self.schema_, "known_classes": self.classes_}
        rows = self._read(X, y, sample_weight, None, **known)
        self.formula_ = formula
        return rows

    @abstractmethod
    def _loss(self, n_classes: int, soft: bool) -> Loss | ClassLoss:
        """The model of the labels: a `Loss` for two classes, else a `ClassLoss`."""

    @abstractmethod
    def _link(self) -> ProbabilityLink:
        """For two classes, the probability of the second as a function of the activation."""

    def _middle(self) -> float:
        return float(self._link().activation(np.array([0.5]))[0])

    def _plan(self, rows: FitRows) -> Plan:
        """What to fit to these rows, and how."""
        n_classes = len(cast(Labels, rows.classes))
        return Plan(
            self._problem(rows, self._loss(n_classes, rows.soft)),
            self.prior,
            solver_of(self.solver, self.tol, self.max_iter),
            SeparationSearch(),
            self._link(),
            max_iter=self.max_iter,
        )

    def _problem(self, rows: FitRows, loss: Loss | ClassLoss) -> Problem:
        """The likelihood of the target of these rows, with the prior."""
        intercept = self.fit_intercept and (self.formula_ is None or self.formula_.intercept)
        settings = (self.handle_unknown, intercept, self.prior, self.tol, self._information)
        return read_problem(rows, loss, *settings)

    def _fit_rows(self, rows: FitRows) -> None:
        self._check_parameters()
        n_classes = 0 if rows.classes is None else len(rows.classes)
        if self._binary_only and n_classes > 2:
            raise LabelError(
                "Only binary classification is supported by this model and its link; y has "
                f"{n_classes} classes.",
                "Use LogisticRegression, GLM(family='categorical'), or OneVersusRest with this "
                "estimator.",
            )
        plan = self._plan(rows)
        prepared, prior, how = choose_prior(plan, prepare(plan.problem))
        self.__dict__.pop("prior_", None)
        self.__dict__.pop("prior_reason_", None)
        if how:
            self.prior_, self.prior_reason_ = prior, how
        self._keep(plan, finish(plan, prepared))

    def _keep(self, plan: Plan, fit: Fit) -> None:
        """Keep what predictions and inference need of a fit."""
        self._search, self._inference, self._linear = plan.search, fit.inference, fit.linear
        self.solution_, self.solver_, self.solver_reason_ = (
            fit.solution,
            fit.solver,
            fit.solver_reason,
        )
        self.n_iter_ = max(len(fit.solution.trace), 1)
        self.converged_ = fit.solution.converged
        self._edge = fit.edge
        self.__dict__.pop("penalised_log_likelihood_", None)
        if fit.penalised_log_likelihood is not None:
            self.penalised_log_likelihood_ = fit.penalised_log_likelihood

    def _check_parameters(self) -> None:
        """An error for an argument that is not what it may be."""
        check_prior(self.prior)
        check_choice("solver", self.solver, get_args(Solver))
        if self.prior == "jeffreys" and self.solver not in ("auto", "newton"):
            raise ParameterError(
                f"solver={self.solver!r} is not for prior='jeffreys', which needs the information "
                "matrix in every step.",
                "Use solver='auto'.",
            )
        check_flag("fit_intercept", self.fit_intercept)
        check_fraction("tol", self.tol)
        check_count("max_iter", self.max_iter, "steps", none=True)
        check_choice("handle_unknown", self.handle_unknown, get_args(HandleUnknown))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = not self._binary_only
        return tags

    def _caveats(self) -> tuple[str, ...]:
        status = self.solution_.status
        found = super()._caveats()
        if status is Status.SEPARATED:
            found = ("the classes can be separated (see separation_)",)
        if self._inference.coefficient_map.dependent:
            found = (*found, "some columns depend on others")
        return found

    @property
    def separation_(self) -> Separation:
        """Whether the classes can be separated, and by which columns: decided by linear programs.

        A maximum of the likelihood proves that they cannot. With a prior, the programs are solved
        when this is first requested: separation is a property of the labels, not of the fit.
        """
        check_is_fitted(self)
        with one_blas_thread():
            known = self._search.found
            return known or self._search.of_labels(self._inference.objective, self._inference.w)

    @property
    def n_parameters_(self) -> int:
        """Free numbers: an intercept and a slope a column, for each class but one."""
        return self._fitted_inference().n_parameters


def with_offset(rows: FitRows, offset: Any) -> FitRows:
    """The rows with what the user adds to their activations; as they are where that is None.

    Few rows are copied: the model keeps them for its standard errors, and X may be edited.
    """
    if is_memory_rows(rows) and rows.n_rows * len(rows.schema) < _SMALL:
        rows = rows.copied()
    return rows if offset is None else rows.with_offset(offset)
