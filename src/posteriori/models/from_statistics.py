"""Models made from sums over rows: fit, `partial_fit`, and statistics of several sites merged."""

from abc import abstractmethod
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from posteriori.arguments import as_generator
from posteriori.decision.class_priors import PriorsLike, log_priors, read_priors
from posteriori.errors import (
    IdentifiabilityWarning,
    LabelError,
    MissingValueError,
    ParameterError,
    PosterioriError,
    PosterioriWarning,
    SingularCovarianceError,
    SingularCovarianceWarning,
    StatisticsError,
    warn,
)
from posteriori.likelihood.softmax import log_normaliser
from posteriori.models.base import Classifier, ProbabilisticClassifier, anywhere
from posteriori.rows.block import Features, Rows
from posteriori.rows.source import FitRows, SourceRows
from posteriori.statistics.statistic import Statistic
from posteriori.typing import Array, Codes, Labels

_WAITS_FOR: dict[type[PosterioriError], type[PosterioriWarning]] = {
    SingularCovarianceError: SingularCovarianceWarning,
    MissingValueError: SingularCovarianceWarning,
    LabelError: IdentifiabilityWarning,
}
"""What is wrong with sums that more rows can set right, and the warning of it."""


class FromStatistics(Classifier):
    """A classifier whose parameters follow from one statistic of the rows, which can be added.

    A subclass gives `_gather` (rows to a statistic), `_estimate` (a statistic to parameters) and,
    if it likes, `_prepare`. Where the sums of a few batches are too small yet, `_estimate` raises
    one of the errors that `partial_fit` waits for.
    """

    _statistics: Statistic | None
    _first_pass: Statistic | None
    _statistic_types: tuple[type[Statistic], ...]
    _why_no_sums = "the model is not fitted."

    @abstractmethod
    def _gather(self, rows: Rows) -> Statistic:
        """The sufficient statistic of the rows."""

    @abstractmethod
    def _estimate(self, statistic: Any) -> None:
        """Set the parameters from the statistic."""

    def _prepare(self) -> None:
        """Work out what prediction needs from the parameters."""

    def _discover(self, rows: SourceRows) -> None:
        self._first_pass = rows.discover_and_sum(self._gather)

    def _fit_rows(self, rows: FitRows) -> None:
        found = self.__dict__.pop("_first_pass", None)
        self._statistics = self._gather(rows) if found is None else found
        self._estimate(self._statistics)
        self._prepare()

    def _class_count(self) -> Array | None:
        """The weight of each class (K,), where the sums tell it."""
        sums = getattr(self, "_statistics", None)
        return getattr(sums, "class_count", getattr(sums, "count", None))

    def _n_obs(self) -> float | None:
        count = self._class_count()
        return None if count is None else float(count.sum())

    @property
    def statistics_(self) -> Any:
        """The sums the fit was made from. Those of two sites can be added and fitted together."""
        found = getattr(self, "_statistics", None)
        if found is None:
            raise AttributeError(f"statistics_ is not there: {self._why_no_sums}")
        return found

    @classmethod
    def from_statistics(cls, statistics: Any, **parameters: Any) -> Self:
        """The model fitted to rows known only by their statistics, such as `a + b`.

        The parameters are those of the constructor.
        """
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
        self._remember(statistics.schema, statistics.classes)
        self._statistics = statistics
        self._estimate(statistics)
        self._prepare()

    def partial_fit(
        self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Add rows to those seen before; the result is that of one fit to all of them.

        A batch may lack classes or bring new ones, and new levels. `classes` may name classes
        before their first row comes; until then none is predicted. While the rows so far do not
        make a model, a warning says so, and it waits for more.
        """
        with self._all_or_nothing():
            before = self._sums_so_far()
            rows = self._read(
                X,
                y,
                sample_weight,
                classes,
                schema=None if before is None else before.schema,
                new_levels=True,
                least_classes=1,
            )
            statistic = self._gather_batch(rows)
            self._take(statistic if before is None else before + statistic)
        return self

    def _sums_so_far(self) -> Any:
        """The sums of all rows before; None where there were none."""
        return getattr(self, "_statistics", None)

    def _gather_batch(self, rows: Rows) -> Statistic:
        """The statistic of some of the rows, to be added to that of others."""
        return self._gather(rows)

    def _take(self, statistics: Statistic) -> None:
        """Adopt sums that may still be too small for a model."""
        try:
            self._adopt(statistics)
        except tuple(_WAITS_FOR) as error:
            del self.classes_
            warn(
                _WAITS_FOR[type(error)](
                    f"{error.problem} The rows are kept, but the model cannot predict yet.",
                    "Pass more rows to partial_fit.",
                )
            )


class GenerativeClassifier(FromStatistics, ProbabilisticClassifier):
    """A model of p(x|C_k) and p(C_k), hence of p(C_k|x) by Bayes' theorem (4.57).

    A subclass gives, beside what `FromStatistics` asks of it, `_log_density` and `_draw`; its
    `_estimate` calls `_set_priors`.
    """

    priors: PriorsLike | None
    priors_: Array
    _log_priors: Array
    _seen: NDArray[np.bool_]

    _allows_missing = True

    @abstractmethod
    def _log_density(self, X: Features) -> Array:
        """ln p(x|C_k) (n, K); NaN, or the marginal density, where entries are missing."""

    @abstractmethod
    def _draw(self, k: int, n: int, random: np.random.Generator) -> Array:
        """`n` rows from the density of class k."""

    def _set_priors(self, class_count: Array) -> None:
        """Priors as given, or the share of each class (4.73)."""
        if self.priors is None:
            self.priors_ = class_count / class_count.sum()
        else:
            self.priors_ = read_priors(self.priors, self.classes_)
            if not class_count.all():
                self.priors_ = _of_classes_seen(self.priors_, class_count > 0)
        self._seen = class_count > 0
        self._log_priors = log_priors(self.priors_)

    def with_priors(self, priors: PriorsLike) -> Self:
        """The same model under other class priors: {label: p}, or in the order of `classes_`.

        Only ln p(C_k) changes (4.57); nothing is fitted again, and the copy has no
        `log_likelihood_`.
        """
        self._known_classes()
        other = copy(self)
        other.priors = priors
        other.priors_ = read_priors(priors, self.classes_)
        unknown = (other.priors_ > 0) & ~self._seen
        if unknown.any():
            raise ParameterError(
                f"Class {self.classes_.tolist()[int(unknown.argmax())]!r} is given a prior, but "
                "no row of it was seen, so its density is not known.",
                "Give it the prior zero.",
            )
        other._log_priors = log_priors(other.priors_)
        for name in ("log_likelihood_", "log_likelihood_trace_"):
            other.__dict__.pop(name, None)  # that of the labels has changed
        other._prepare()
        return other

    def _log_joint(self, X: Features) -> Array:
        """ln p(x|C_k) p(C_k)."""
        return self._log_density(X) + self._log_priors

    def _activations(self, X: Features) -> Array:
        return self._log_joint(X)

    @anywhere
    def score_samples(self, X: Any) -> Array:
        """ln p(x) = ln Σ_k p(x|C_k) p(C_k) of each row; missing entries are integrated out."""
        self._known_classes()
        return self._evaluate(X, log_normaliser, activations=self._log_joint)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Array, Labels]:
        """Rows and labels drawn from the model: C_k from the priors, then x from p(x|C_k)."""
        classes = self._known_classes()
        if not isinstance(n_samples, int | np.integer) or n_samples < 1:
            raise ParameterError(f"n_samples is {n_samples}.", "Ask for at least one row.")
        random = as_generator(random_state)
        codes: Codes = random.choice(len(classes), size=n_samples, p=self.priors_)
        X = np.empty((n_samples, self.n_features_in_))
        for k in range(len(classes)):
            here = codes == k
            X[here] = self._draw(k, int(here.sum()), random)
        return X, classes[codes]


def _of_classes_seen(priors: Array, seen: NDArray[np.bool_]) -> Array:
    """Nothing for the classes whose rows have not come yet, the others in proportion."""
    left = np.where(seen, priors, 0.0)
    if not left.any():
        raise ParameterError(
            "The classes that have rows all have the prior zero.", "Give one of them a prior."
        )
    return left / left.sum()
