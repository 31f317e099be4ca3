"""Learning from more rows: the posterior so far is their prior."""

from abc import abstractmethod
from dataclasses import replace
from typing import Any, Self, cast

import numpy as np

from posteriori.errors import IdentifiabilityWarning, ParameterError, warn
from posteriori.models.discriminative import with_offset
from posteriori.models.fitting import Prepared
from posteriori.models.keeping import joined, rows_to_keep
from posteriori.models.posterior_report import PosteriorReport, together
from posteriori.models.posteriors import Earlier
from posteriori.models.verdict import worst
from posteriori.posterior.chosen_prior import Chosen
from posteriori.posterior.objective import LogPosterior
from posteriori.posterior.page import listed
from posteriori.posterior.shown import Shown
from posteriori.posterior.shown_posterior import Posterior
from posteriori.rows.in_memory import MemoryRows
from posteriori.rows.source import FitRows
from posteriori.rows.target import as_vector, same_classes
from posteriori.typing import Codes, Labels

_HELD = 0.01
"""What rows say of a coefficient beside what its prior says, up to which that alone holds it."""

NONE_DEPENDENT: Codes = np.empty(0, dtype=np.intp)
"""Columns that others explain, where a proper prior tells all of them apart."""


class SequentialPosterior(PosteriorReport):
    """A classifier with a posterior that is the prior of rows to come."""

    _kept: MemoryRows | None

    @abstractmethod
    def _conclude(self, chosen: Chosen | None) -> None:
        """Find the posterior, and predict by it."""

    def update(self, X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None) -> Self:
        """Learn from more rows: the posterior so far is their prior.

        Columns and classes are those of the fit. Afterwards `prior_` is the posterior before;
        likelihoods, deviances and `evidence_` are those of these rows alone, `log_evidence_` is
        that of all rows so far. A prior that the evidence chose stays as it was chosen.

        The rows before are known by a Gaussian alone: for Laplace the posterior itself, for draws
        their mean and covariance, for a variational fit its mean with the curvature of the
        posterior there, as its own deviations are too small; its `log_evidence_` is then no longer
        a bound. What the Gaussian lost of them stays lost, and `trust_` cannot see it. Ten updates
        with 50 rows each were 0.1 to 0.4 standard deviations from the posterior of 500 rows
        together where classes overlap much, 0.1 to 1.0 where they hardly do, and deviations too
        small by up to a tenth, or a quarter. The more rows the first fit has, the less is lost.

        >>> from posteriori import BayesianLogisticRegression
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
        """`fit` to the first rows, whose labels or `classes` name all classes; then `update`.

        The first 20 rows a coefficient are kept, and the answer is that of `fit` to all of them
        with a prior that is chosen anew: a few rows choose none that later ones could do with.
        They are kept in pickles too; where rows must not travel, use `fit` and `update`.
        """
        with self._all_or_nothing():
            if not hasattr(self, "posterior_"):
                rows = with_offset(self._read(X, y, sample_weight, classes), offset)
                self._remember(rows.schema, cast(Labels, rows.classes))
                self._fit_and_keep(rows)
                return self
            self._check_same_classes(classes)
            rows = with_offset(self._read_more(X, y, sample_weight), offset)
            if self._kept is not None and rows.in_memory:
                # The new ones first, so that errors tell their numbers.
                self._fit_and_keep(joined(rows, self._kept))
            else:
                self._learn(rows)
        return self

    def _fit_and_keep(self, rows: FitRows) -> None:
        """Fit to rows that are all there, and keep them while they are few."""
        self._check_parameters()
        self._fit_rows(rows)
        if rows.in_memory and rows.n_rows < rows_to_keep(self._problem(rows)):
            self._kept = rows

    def _check_same_classes(self, classes: Any) -> None:
        if classes is not None and not same_classes(classes, self.classes_):
            raise ParameterError(
                f"classes={as_vector(classes).tolist()} are not those of the first batch.",
                f"Leave classes out, or pass {self.classes_.tolist()}.",
            )

    def _read_more(self, X: Any, y: Any, sample_weight: Any) -> FitRows:
        formula, schema = self.formula_, self.schema_
        if formula is not None:
            X = formula.apply(X, self.unseen)
        rows = self._read(X, y, sample_weight, None, schema=schema, known_classes=self.classes_)
        self.formula_ = formula
        return rows

    def _learn(self, rows: FitRows) -> None:
        self._check_parameters()
        prior = self._handed_on()
        if prior.shown.coordinates.basis is not None:
            raise _undetermined(prior.shown)
        if isinstance(self.prior, str) and not self._earlier.n_fits:
            self._warn_of_held()
        shown, problem = prior.shown, self._problem(rows)
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
        self._earlier, self._kept = self._with_the_last(), None
        self._count(rows)
        self._finish(Prepared([objective], prior.free_mean, NONE_DEPENDENT))
        self._conclude(None)
        self.prior_ = prior

    def _handed_on(self) -> Posterior:
        """The posterior as the prior of rows to come."""
        if self.inference_ == "variational":
            return replace(self.posterior_, gaussian=self._found.curved)
        return self.posterior_

    def _with_the_last(self) -> Earlier:
        """What was learnt up to the last fit, which is behind now."""
        before = self._earlier
        known = "usable" if self._verdict is None else worst("usable", self._verdict.word)
        return Earlier(
            together(before.log_evidence, self._found.log_evidence),
            before.n_obs + self._n_last,
            before.n_fits + 1,
            worst(before.word, known),
        )

    def _warn_of_held(self) -> None:
        """Tell of coefficients that the prior which a first fit chose will never let go."""
        shown, precision = self.posterior_.shown, self._found.penalty.precision
        first, c = int(shown.standard.intercept), shown.coordinates.c
        variance = np.square(self._found.gaussian.standard_deviation).reshape(c, -1)
        learnt = (1.0 - precision * variance).max(axis=0)[first:]
        held = np.flatnonzero(learnt < _HELD)
        if not len(held):
            return
        columns = shown.columns.as_schema().describe_all(held)
        least = float(precision[first:][held].min())
        warn(
            IdentifiabilityWarning(
                f"The {self._n_last:g} rows of the first fit say next to nothing of the "
                f"coefficient of {columns}, and the prior that they chose, a standard deviation of "
                f"{least**-0.5:.2g} for standardised columns, stays: rows to come will hardly "
                "change it.",
                "Fit to more rows first, begin with partial_fit, or set a number as prior.",
            )
        )


def _undetermined(shown: Shown) -> ParameterError:
    return ParameterError(
        f"With prior='jeffreys' the first rows said nothing of some combination of "
        f"{listed(shown.dependent)}, and rows to come would have no prior for it.",
        "Drop columns that depend on others, fit to all rows at once, or use another prior.",
    )
