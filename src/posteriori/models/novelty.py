"""Novelty detection: rows whose density is too low for rows of the kind in the training data."""

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from posteriori.arguments import check_fraction
from posteriori.errors import IdentifiabilityWarning, ParameterError, warn
from posteriori.models.base import anywhere
from posteriori.models.cross_fit import CrossFitted, TrainingSource, held_out_predictions
from posteriori.models.wrapper import Mask, Training, overwrite, with_label
from posteriori.rows.block import Rows
from posteriori.statistics.calibration import GatherBelow, GatherLowest, no_prediction
from posteriori.statistics.row_sample import sample_rows
from posteriori.typing import Array, Labels

_ROUNDING = 1e-12
"""Numbers that differ by less, beside themselves or one, are equal."""


@dataclass(frozen=True, eq=False)
class Rarity:
    """Numbers of ordinary rows in order, and the weight (m + 1,) below each and of all.

    A number is rare if it is below `threshold`: the largest level for which (1 + weight of rows
    below)/(1 + weight of all) is at most the share asked for; minus infinity if there is none.
    Where the rows have more than 65,536 different numbers, the levels are so many of the lowest,
    and a sample of about as many of all; the weights below them are those of all rows.
    """

    levels: Array
    below: Array
    threshold: float

    def p_value(self, numbers: Array) -> Array:
        """(1 + weight of ordinary rows that are no higher)/(1 + weight of all), of each number.

        Between two levels it is that of the upper one, which is never too small.
        """
        no_higher = self.below[np.searchsorted(self.levels, _raised(numbers), side="right")]
        return (1 + no_higher) / (1 + self.total)

    def is_rare(self, numbers: Array) -> NDArray[np.bool_]:
        """Whether each number has a p-value of at most the share asked for."""
        return np.asarray(_raised(numbers) < self.threshold)

    @property
    def total(self) -> float:
        return float(self.below[-1])


def _raised(numbers: Array) -> Array:
    """A little higher, so that the last bits of numbers that are equal do not count."""
    with np.errstate(invalid="ignore"):
        raised = numbers + _ROUNDING * np.maximum(abs(numbers), 1.0)
    return np.where(np.isfinite(numbers), raised, numbers)


def rarity(rows: Rows, share: float) -> Rarity:
    """What is rare, by the numbers in the one column of rows.

    The levels are all numbers of the rows if these are few, else the lowest of them and those of a
    random sample: then it takes three passes.
    """
    lowest = rows.map_sum(GatherLowest())
    if lowest.are_all:
        levels, below = lowest.values, np.concatenate([[0.0], np.cumsum(lowest.weight)])
    else:
        sample, _ = sample_rows(rows, lowest.n_rows / len(lowest.values))
        levels = np.union1d(lowest.values, cast(Array, sample.table.cut(0, sample.n_rows)))
        below = rows.map_sum(GatherBelow(levels)).weight
    rare = np.flatnonzero((1 + below[:-1]) / (1 + below[-1]) <= share)
    return Rarity(levels, below, float(levels[rare[-1]]) if len(rare) else -np.inf)


def _classifies(model: "NoveltyDetector") -> bool:
    return is_classifier(model.estimator)


class NoveltyDetector(CrossFitted):
    """A generative model that detects rows unlike those it was fitted to.

    A row is novel if its density ln p(x) is so low that it would be among the lowest
    `false_positive_rate` of rows of the training distribution. With s_1..s_n the densities of the
    training rows by models that were not fitted to them, its p-value is
    (1 + #{s_i <= s(x)})/(n + 1), and it is novel where that is at most `false_positive_rate` (a
    conformal test: for new rows of the same distribution the rate is right whether or not the
    model is).

    The s_i are cross-fitted: each of `folds` parts of the rows is evaluated by a copy of the
    estimator that is fitted to all others; the estimator is then fitted to all rows. As new rows
    are evaluated by that last fit, to slightly more rows, their rate is nearly the one asked for.
    It is that exactly if the estimator is fitted already, wrapped in
    `sklearn.frozen.FrozenEstimator`: the rows given must then be new to it.

    If the s_i have more than 65,536 different values, the lowest 65,536 and a random sample of as
    many are kept. A p-value is then that of the next larger value kept: never too small, exact
    among the lowest, and too large by a few parts in 65,536 elsewhere.

    Parameters
    ----------
    estimator : a model with `score_samples`, such as `GaussianClassifier`, `NaiveBayes`, or one of
        scikit-learn's densities, which are fitted without labels
    false_positive_rate : float
        The share of ordinary rows that may be called novel. It takes at least
        1/false_positive_rate - 1 rows; with fewer, no row is novel, and you are warned.
    reject_label : any
        What `predict` gives for novel rows; in an array of Python objects if the type of the labels
        cannot hold it.
    folds, random_state : as for `CalibratedClassifier`.

    Attributes
    ----------
    threshold_ : the density below which a row is novel.
    estimator_, classes_ (of a classifier), n_features_in_, feature_names_in_.
    passes_ : how often a dataset on disk or on a cluster was read.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from posteriori import GaussianClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = NoveltyDetector(
    ...     GaussianClassifier(), false_positive_rate=0.05, reject_label=-1
    ... ).fit(X, y)
    >>> model.predict([[5.1, 3.5, 1.4, 0.2], [5.1, 3.5, 1.4, 9.9]])
    array([ 0, -1])
    >>> model.p_value([[5.1, 3.5, 1.4, 0.2], [5.1, 3.5, 1.4, 9.9]]).round(3)
    array([0.967, 0.007])
    """

    classes_: Labels
    threshold_: float
    _rarity: Rarity

    def __init__(
        self,
        estimator: Any,
        *,
        false_positive_rate: float = 0.01,
        reject_label: Any = None,
        folds: int = 5,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.false_positive_rate = false_positive_rate
        self.reject_label = reject_label
        self.folds = folds
        self.random_state = random_state

    @property
    def _needs_labels(self) -> bool:
        return is_classifier(self.estimator) and not self._frozen

    def _check_settings(self) -> None:
        check_fraction("false_positive_rate", self.false_positive_rate)

    def _learn(self, rows: Training | TrainingSource) -> None:
        self.estimator_ = self.estimator if self._frozen else rows.fitted(self.estimator)
        if is_classifier(self.estimator):
            self.classes_ = np.asarray(self.estimator_.classes_)
            self._check_reject_label()
        densities = held_out_predictions(rows, self, _log_density, 1)
        self._rarity = rarity(densities, self.false_positive_rate)
        self.threshold_ = self._rarity.threshold
        if 1 / (1 + self._rarity.total) > self.false_positive_rate:
            self._warn_of_few()

    @anywhere
    def score_samples(self, X: Any) -> Array:
        """ln p(x) of each row, (n,), as the estimator has it."""
        check_is_fitted(self)
        return _checked(_log_density(self.estimator_, X))

    @anywhere
    def p_value(self, X: Any) -> Array:
        """The share (n,) of ordinary rows whose density is no higher, the row itself counted."""
        scores = self.score_samples(X)
        return self._rarity.p_value(scores)

    @anywhere
    def is_novel(self, X: Any) -> Mask:
        """Whether each row is novel, (n,)."""
        scores = self.score_samples(X)
        return self._rarity.is_rare(scores)

    @property
    def _possible_answers(self) -> Labels:
        return with_label(self.classes_, self.reject_label)

    @available_if(_classifies)  # type: ignore[untyped-decorator]
    @anywhere
    def predict(self, X: Any) -> Labels:
        """The class of each row, and `reject_label` for novel ones, (n,)."""
        check_is_fitted(self)
        found = np.array(self.estimator_.predict(X))
        return overwrite(found, self.is_novel(X), self.reject_label)

    @available_if(_classifies)  # type: ignore[untyped-decorator]
    @anywhere
    def predict_proba(self, X: Any) -> Array:
        """p(C_k|x), (n, K), of the estimator, for rows that are of one of its classes."""
        check_is_fitted(self)
        return cast(Array, self.estimator_.predict_proba(X))

    def __sklearn_tags__(self) -> Tags:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.target_tags.required = inner.target_tags.required
        tags.estimator_type, tags.classifier_tags = inner.estimator_type, inner.classifier_tags
        return tags

    def _check_reject_label(self) -> None:
        if self.reject_label in self.classes_.tolist():
            raise ParameterError(
                f"reject_label={self.reject_label!r} is a class of its own.",
                "Choose a label that y does not have.",
            )

    def _warn_of_few(self) -> None:
        needed = int(np.ceil(1 / self.false_positive_rate - 1))
        warn(
            IdentifiabilityWarning(
                f"{self._rarity.total:g} rows cannot tell which are the rarest in "
                f"{1 / self.false_positive_rate:.4g}: no row will be called novel.",
                f"Pass {needed} rows or more, or allow more false alarms.",
            )
        )


def _log_density(fitted: Any, X: Any) -> Array:
    if not hasattr(fitted, "score_samples"):
        raise ParameterError(
            f"{type(fitted).__name__} has no score_samples, and so no density.",
            "Use a generative model, such as GaussianClassifier or NaiveBayes.",
        )
    return np.asarray(fitted.score_samples(X), dtype=np.float64)


def _checked(log_density: Array) -> Array:
    missing = np.isnan(log_density)
    if missing.any():
        raise no_prediction("density", int(missing.argmax()))
    return log_density
