"""Standard errors, likelihoods and what follows from them, on every model fitted by likelihood."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from posteriori.arguments import check_flag
from posteriori.errors import InferenceError, ParameterError
from posteriori.likelihood.link import Link
from posteriori.likelihood.sigmoids import Logit
from posteriori.models.anywhere import anywhere
from posteriori.models.telling import passes_text
from posteriori.posterior.coefficients import Intervals, coefficients_of
from posteriori.posterior.evidence import Evidence
from posteriori.posterior.inference import Errors, Inference
from posteriori.posterior.intervals import MeanInterval
from posteriori.posterior.page import About, glance_of, listed, summary_of
from posteriori.posterior.priors import GaussianPrior
from posteriori.posterior.summary import Summary
from posteriori.rows.frames import make_frame
from posteriori.rows.in_memory import MemoryRows
from posteriori.rows.target import read_offset
from posteriori.solve.solution import Iteration, Solution, Status
from posteriori.typing import Array


class Inferring:
    """A mixin for models that keep an `Inference` of their fit.

    The model keeps a reference to the rows it was fitted to, and looks at them again when it is
    first asked. A copy made by pickle leaves the rows behind, and keeps what was worked out.
    """

    solution_: Solution[Array, Iteration]
    n_iter_: int
    converged_: bool
    prior: Any

    _inference: Inference
    _new_rows: Callable[[Any], MemoryRows]
    _frame_backend: str | None

    @abstractmethod
    def _link(self) -> Link:
        """The mean, or the probability of the second of two classes, of an activation."""

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

        It needs a prior that holds every coefficient, the intercept too: without one, any two
        models have evidences in no proportion, and this is an error.

        >>> from posteriori import GaussianPrior, LogisticRegression
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 1, 0, 1, 1]
        >>> model = LogisticRegression(prior=GaussianPrior(intercept_precision=0.01)).fit(X, y)
        >>> round(model.evidence_.log_likelihood, 3), round(model.evidence_.log_occam_factor, 3)
        (-2.641, -3.266)
        """
        return self._fitted_inference().evidence

    @property
    def log_evidence_(self) -> float:
        """ln p(t), what is left once the coefficients are integrated out (4.137)."""
        return self.evidence_.value

    def tidy(
        self,
        level: float = 0.95,
        errors: Errors = "model",
        intervals: Intervals = "wald",
        *,
        odds_ratios: bool = False,
        reference: Any = None,
    ) -> Any:
        """The coefficients as a frame of the kind that the model was fitted to.

        Its columns are term, class (for more than two), estimate, std_error, statistic, p_value,
        conf_low, conf_high. For more than two classes they are contrasts with the `reference`.

        Parameters
        ----------
        level : the probability that an interval is to have.
        errors : "model", the curvature that is usual for the model; "observed" or "expected",
            that curvature by choice; "robust", the sandwich (HC0) about the observed curvature,
            right even where the model of the target's spread is not.
        intervals : "wald", estimate and standard errors to either side; "profile", the values
            that the likelihood (with the prior, if there is one) does not rule out: infinite at
            a side where it never does.
        odds_ratios : estimate and ends as e to their power, by which the odds are multiplied where
            the column grows by one; std_error stays that of the logarithm.
        reference : the class that others are compared with, where there are more than two; by
            default the first.

        >>> from posteriori import LogisticRegression
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 1, 0, 1, 1]
        >>> frame = LogisticRegression().fit(X, y).tidy()
        >>> frame[["term", "estimate", "std_error"]].round(3)
                term  estimate  std_error
        0  intercept    -3.035      2.546
        1         x0     1.214      0.913
        """
        inference = self._compared_with(reference)
        self._check_odds(odds_ratios)
        labels = getattr(self, "classes_", None)
        found = coefficients_of(inference, labels, level, errors, intervals)
        found = found.as_odds_ratios() if odds_ratios else found
        return make_frame(found.columns(), self._frame_backend)

    def _compared_with(self, reference: Any) -> Inference:
        """What is known of the fit, with contrasts of several classes with this one."""
        inference, labels = self._fitted_inference(), getattr(self, "classes_", None)
        if reference is None:
            return inference
        if labels is None or len(labels) < 3:
            raise ParameterError(
                f"reference={reference!r} is for more than two classes.", "Leave it out."
            )
        known = labels.tolist()
        if reference not in known:
            raise ParameterError(f"There is no class {reference!r}.", f"Use one of {known[:8]}.")
        return inference.against(known.index(reference))

    def _check_odds(self, wanted: bool) -> None:
        """An error where coefficients are no logarithms of odds ratios."""
        check_flag("odds_ratios", wanted)
        labels = getattr(self, "classes_", None)
        has_odds = labels is not None and (len(labels) > 2 or isinstance(self._link(), Logit))
        if wanted and not has_odds:
            raise ParameterError(
                f"The coefficients of this {type(self).__name__} are no logarithms of odds ratios.",
                "Use odds_ratios with the logit link, as LogisticRegression has it.",
            )

    def glance(self) -> Any:
        """The fit as a frame with one row: likelihood, deviances, criteria, and how it ended.

        >>> from posteriori import LogisticRegression
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 1, 0, 1, 1]
        >>> frame = LogisticRegression().fit(X, y).glance()
        >>> frame[["n_obs", "n_parameters", "log_likelihood", "null_deviance"]].round(3)
           n_obs  n_parameters  log_likelihood  null_deviance
        0      6             2          -2.478          8.318
        """
        return make_frame(glance_of(self._fitted_inference(), self._about()), self._frame_backend)

    def summary(
        self,
        level: float = 0.95,
        errors: Errors = "model",
        *,
        odds_ratios: bool = False,
        reference: Any = None,
    ) -> Summary:
        """The fit on one page, to print or to look at in a notebook; `.latex()` for a document.

        The arguments are those of `tidy`. Where there are no standard errors, as of more than 2,100
        coefficients, it has the estimates alone, and says why.

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
        inference = self._compared_with(reference)
        self._check_odds(odds_ratios)
        try:
            return summary_of(inference, self._about(), level, errors, odds_ratios)
        except InferenceError as error:
            page = super().summary()  # type: ignore[misc]
            return replace(page, notes=(*page.notes, f"No standard errors: {error.problem}"))

    @anywhere
    def predict_interval(self, X: Any, level: float = 0.95, offset: Any = None) -> Array:
        """An interval for the mean of each row: for two classes the probability of the second.

        Ends (n, 2); for more than two classes (n, K, 2), one interval a class. They are those of
        the activation and so many standard errors to either side; for more than two classes of
        the log odds of each class against the rest. With a prior the errors are those of the
        posterior. The interval is for the mean, not for a single target.

        >>> from posteriori import LogisticRegression
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 1, 0, 1, 1]
        >>> LogisticRegression().fit(X, y).predict_interval([[2.5]]).round(3)
        array([[0.099, 0.901]])
        """
        inference = self._fitted_inference()
        kernel = MeanInterval.of(inference, self._link(), level)
        rows = self._new_rows(X)
        K = inference.shown.coordinates.n_activations
        if offset is not None:
            rows = replace(rows, offset=read_offset(offset, rows.n_rows, K))
        shape = (rows.n_rows, 2) if K == 1 else (rows.n_rows, K, 2)
        return rows.fill(np.empty(shape), kernel)

    def _about(self) -> About:
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
        """Names and values that only this model has, for its page."""
        return ()

    def _summary_notes(self) -> tuple[str, ...]:
        """What a reader of the page has to know of how the fit ended."""
        status = self.solution_.status
        if status is Status.CONVERGED:
            return ()
        found = getattr(self, "separation_", None) if status is Status.SEPARATED else None
        if found is None:
            return (status.value,)
        runs = (
            f"coefficient of {listed(found.columns)} runs"
            if len(found.columns) == 1
            else f"coefficients of {listed(found.columns)} run"
        )
        return (
            f"{status.value} The {runs} to infinity: what is shown is large enough for the "
            "probabilities.",
        )

    def __getstate__(self) -> dict[str, Any]:
        state = dict(cast(dict[str, Any], super().__getstate__()))
        if "_inference" in state:
            state["_inference"] = state["_inference"].without_rows()
        return state


def _prior_text(prior: Any) -> str:
    """A prior in a few characters; nothing for none."""
    if prior is None or (isinstance(prior, float | int) and prior == 0):
        return ""
    if isinstance(prior, GaussianPrior):
        return "Gaussian"
    return prior if isinstance(prior, str) else f"precision {prior:g}"
