"""Models whose parameters follow from sums over rows: fit, `partial_fit`, statistics merged."""

from abc import abstractmethod
from collections.abc import Callable
from copy import copy
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from sklearn.utils.metaestimators import available_if

from posteriori.arguments import as_generator, check_count
from posteriori.decision.class_priors import PriorsLike, log_priors, read_priors
from posteriori.errors import (
    IdentifiabilityWarning,
    LabelError,
    MissingValueError,
    NotLinearError,
    ParameterError,
    ScaleError,
    SingularCovarianceError,
    StatisticsError,
    warn,
)
from posteriori.likelihood.linear_activations import Linear
from posteriori.likelihood.softmax import log_normaliser, log_probabilities, probabilities
from posteriori.linalg import read_only
from posteriori.models.base import Classifier, F, anywhere
from posteriori.rows.block import Features, FitRows, Rows
from posteriori.statistics.statistic import Statistic
from posteriori.typing import Array, Codes, Labels

if TYPE_CHECKING:
    from posteriori.rows.source import SourceRows

_CURED_BY_ROWS = SingularCovarianceError, MissingValueError, LabelError
"""Errors that more rows can cure: `partial_fit` gives a warning in their place."""


def only_if(attribute: str) -> Callable[[F], F]:
    """A method of those models alone whose attribute is true."""
    return cast(Callable[[F], F], available_if(attrgetter(attribute)))


class FromStatistics(Classifier):
    """A classifier whose parameters follow from one statistic of the rows, which can be added.

    A subclass gives `_gather` (rows to a statistic) and `_estimate` (a statistic to parameters,
    `class_count_` and, where the boundaries are linear, `_linear`). A generative one, a model of
    p(x|C_k) and p(C_k) and so of p(C_k|x) (4.57), sets `_is_generative`, gives `_log_density` and
    `_draw`, and calls `_set_priors` in `_estimate`; `with_priors`, `score_samples` and `sample`
    are for these alone. `predict_proba` is for models whose activations are ln p(C_k|x) up to a
    constant of the row.
    """

    _is_generative = False
    _has_probabilities = True

    class_count_: Array
    priors: PriorsLike | None
    priors_: Array
    _log_priors: Array
    _linear: Linear | None = None
    _statistics: Statistic | None = None
    _statistic_types: tuple[type[Statistic], ...]

    @abstractmethod
    def _gather(self, rows: Rows, before: Any = None) -> Statistic:
        """The sufficient statistic of the rows, to be added to the one `before`, if any."""

    @abstractmethod
    def _estimate(self, statistic: Any) -> None:
        """Set the parameters from the statistic."""

    def _check_parameters(self, classes: Labels) -> None:
        """An error for a parameter that cannot be used with these classes."""

    def _convert(self, statistics: Any) -> Any:
        """The statistic as this model needs it."""
        return statistics

    def _prepare(self) -> None:
        """Compute what depends on the class priors."""

    def _sum(self, rows: Any, before: Any = None) -> Statistic:
        self._check_parameters(rows.classes)
        return self._gather(rows, before)

    def _discover(self, rows: "SourceRows") -> None:
        self._first_pass = rows.discover_and_sum(self._sum)

    def _fit_rows(self, rows: FitRows) -> None:
        found = self.__dict__.pop("_first_pass", None)
        self._check_parameters(self.classes_)
        self._learn(self._sum(rows) if found is None else found)

    def _learn(self, statistics: Statistic) -> None:
        self._statistics = statistics
        self._estimate(statistics)
        self._prepare()

    def _n_obs(self) -> float | None:
        return float(self.class_count_.sum())

    @property
    def statistics_(self) -> Any:
        """The sums the model was fitted to. Those of two sites can be added."""
        if self._statistics is None:
            raise AttributeError(f"There are no statistics_: {self._why_no_statistics()}")
        return self._statistics

    def _why_no_statistics(self) -> str:
        if hasattr(self, "schema_"):
            return "the model was fitted by expectation-maximisation to rows with missing entries."
        return "the model is not fitted."

    @classmethod
    def from_statistics(cls, statistics: Any, **parameters: Any) -> Self:
        """The model fitted to statistics, such as `a + b`; parameters are the constructor's."""
        model = cls(**parameters)
        with model._all_or_nothing():
            model._adopt(statistics)
        return model

    def _adopt(self, statistics: Any) -> None:
        if type(statistics) not in self._statistic_types:
            raise StatisticsError(
                f"{type(self).__name__} cannot be fitted to {type(statistics).__name__}.",
                "Pass the statistics_ of fitted models of this kind.",
            )
        self._check_parameters(statistics.classes)
        statistics = self._convert(statistics)
        self._remember(statistics.schema, statistics.classes)
        self._learn(statistics)

    def partial_fit(
        self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Add rows to those of earlier calls; the result is that of one fit to all of them.

        A batch may lack classes, and may bring new classes and new levels. `classes` may name
        classes that have no rows yet; these have prior zero. While the rows do not suffice for a
        model, a warning says so, and predictions are an error.
        """
        with self._all_or_nothing():
            before: Any = self._statistics
            if before is None and hasattr(self, "schema_"):
                raise StatisticsError(
                    f"No rows can be added: {self._why_no_statistics()}",
                    "Fit to all rows at once, or use covariance='diagonal'.",
                )
            schema = None if before is None else before.schema
            rows = self._read(
                X, y, sample_weight, classes, schema=schema, new_levels=True, least_classes=1
            )
            try:
                statistic = self._sum(rows, before)
            except MissingValueError as error:
                if not self._allows_missing:
                    raise
                raise StatisticsError(
                    f"{error.problem} Rows with missing entries cannot be added.",
                    "Fit to all rows at once, or use covariance='diagonal'.",
                ) from error
            try:
                self._adopt(statistic if before is None else before + statistic)
            except _CURED_BY_ROWS as error:
                del self.classes_
                warn(
                    IdentifiabilityWarning(
                        f"{error.problem} The rows are counted, but the model cannot predict yet.",
                        "Pass more rows to partial_fit.",
                    )
                )
        return self

    def _activations(self, X: Features) -> Array:
        if self._linear is None:
            return self._log_density(X) + self._log_priors
        return self._linear.of_rows(X, self.schema_)

    def _linear_function(self) -> Linear:
        self._known_classes()
        if self._linear is None:
            raise self._not_linear()
        return self._linear

    def _not_linear(self) -> NotLinearError:
        return NotLinearError("The boundaries are not linear.", "Use decision_function.")

    @only_if("_has_probabilities")
    @anywhere
    def predict_proba(self, X: Any) -> Array:
        """p(C_k|x) of each row and class (n, K); rows sum to one."""
        return self._evaluate(X, probabilities, len(self._known_classes()))

    @only_if("_has_probabilities")
    @anywhere
    def predict_log_proba(self, X: Any) -> Array:
        """ln p(C_k|x), finite where the probability itself underflows."""
        return self._evaluate(X, log_probabilities, len(self._known_classes()))

    def _no_answer(self, row: int) -> ScaleError:
        if not self._is_generative:
            return super()._no_answer(row)
        return ScaleError(
            "Row {row} has density zero in every class: it is too far from all of them, or has a "
            "level or count that is impossible in each of them.",
            "Correct or drop the row, or fit with a pseudocount.",
            row,
        )

    def _log_density(self, X: Features) -> Array:
        """ln p(x|C_k) (n, K); NaN, or the marginal density, where entries are missing."""
        raise NotImplementedError

    def _draw(self, k: int, n: int, random: np.random.Generator) -> Array:
        """`n` rows from the density of class k."""
        raise NotImplementedError

    def _set_priors(self, class_count: Array) -> None:
        """Priors as given, or the share of each class (4.73); zero for classes without rows."""
        self.class_count_ = read_only(class_count)
        priors = class_count / class_count.sum()
        if self.priors is not None:
            priors = read_priors(self.priors, self.classes_)
            if not class_count.all():
                priors = np.where(class_count > 0, priors, 0.0)
                if not priors.any():
                    raise ParameterError(
                        "The classes that have rows all have the prior zero.",
                        "Give one of them a prior.",
                    )
                priors = priors / priors.sum()
        self.priors_, self._log_priors = read_only(priors), log_priors(priors)

    @only_if("_is_generative")
    def with_priors(self, priors: PriorsLike) -> Self:
        """The same model under other class priors: {label: p}, or in the order of `classes_`.

        Only ln p(C_k) changes (4.57); nothing is fitted again, and the copy has no
        `log_likelihood_`.
        """
        self._known_classes()
        given = read_priors(priors, self.classes_)
        unknown = (given > 0) & (self.class_count_ == 0)
        if unknown.any():
            raise ParameterError(
                f"Class {self.classes_.tolist()[int(unknown.argmax())]!r} has no rows, so its "
                "density is unknown, but its prior is positive.",
                "Give it the prior zero.",
            )
        other = copy(self)
        other.priors = priors
        other.priors_, other._log_priors = read_only(given), log_priors(given)
        for name in ("log_likelihood_", "log_likelihood_trace_"):
            other.__dict__.pop(name, None)
        other._prepare()
        return other

    @only_if("_is_generative")
    @anywhere
    def score_samples(self, X: Any) -> Array:
        """ln p(x) = ln Σ_k p(x|C_k) p(C_k) of each row; missing entries are integrated out."""
        self._known_classes()
        return self._evaluate(
            X, log_normaliser, activations=lambda rows: self._log_density(rows) + self._log_priors
        )

    @only_if("_is_generative")
    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Array, Labels]:
        """Rows and labels drawn from the model: C_k from the priors, then x from p(x|C_k)."""
        classes = self._known_classes()
        check_count("n_samples", n_samples, "rows")
        random = as_generator(random_state)
        codes: Codes = random.choice(len(classes), size=n_samples, p=self.priors_)
        X = np.empty((n_samples, self.n_features_in_))
        for k in range(len(classes)):
            of_class = codes == k
            X[of_class] = self._draw(k, int(of_class.sum()), random)
        return X, classes[codes]
