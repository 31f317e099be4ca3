"""Models that sums over rows make, whole: from batches, and from sites that keep their rows."""

from abc import abstractmethod
from typing import Any, Self

from posteriori.errors import (
    IdentifiabilityWarning,
    LabelError,
    MissingValueError,
    PosterioriError,
    PosterioriWarning,
    SingularCovarianceError,
    SingularCovarianceWarning,
    StatisticsError,
    warn,
)
from posteriori.models.base import Classifier
from posteriori.rows.rows import Rows
from posteriori.rows.source import FitRows, SourceRows
from posteriori.statistics.statistic import Statistic
from posteriori.typing import Array

_WAITS_FOR: dict[type[PosterioriError], type[PosterioriWarning]] = {
    SingularCovarianceError: SingularCovarianceWarning,
    MissingValueError: SingularCovarianceWarning,
    LabelError: IdentifiabilityWarning,
}
"""What is wrong with sums that more rows can set right, and the warning of it."""


class ClassifierFromSums(Classifier):
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
