"""Novelty detection: rows whose density is too low for rows of the training distribution."""

from typing import Any, cast

import numpy as np
from sklearn.base import is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from posteriori.arguments import check_fraction
from posteriori.decision.decide import with_label
from posteriori.errors import DataError, IdentifiabilityWarning, ParameterError, warn
from posteriori.models.base import anywhere
from posteriori.models.wrapper import (
    Mask,
    Training,
    Wrapper,
    check_reject_label,
    held_out_predictions,
    overwrite,
)
from posteriori.typing import Array, Labels


def _classifies(model: "NoveltyDetector") -> bool:
    return is_classifier(model.estimator)


class NoveltyDetector(Wrapper):
    """A generative model that detects rows unlike those it was fitted to.

    A row is novel if its density ln p(x) is so low that it would be among the lowest
    `false_positive_rate` of rows of the training distribution. With s_1..s_n the densities of the
    training rows by models that were not fitted to them, its p-value is
    (1 + #{s_i <= s(x)})/(n + 1), and it is novel where that is at most `false_positive_rate` (a
    conformal test: for new rows of the same distribution the rate is right whether or not the
    model is).

    The s_i are cross-fitted: the test rows of each fold are evaluated by a copy of the estimator
    that is fitted to its training rows; the estimator itself is fitted to all rows. As new rows are
    evaluated by that fit, to slightly more rows, their rate is nearly the one requested. It is
    exactly that rate for an estimator in a `sklearn.frozen.FrozenEstimator`, which is not fitted
    again; the rows must then not be those it was fitted to.

    Parameters
    ----------
    estimator : a model with `score_samples`, such as `GaussianClassifier`, `NaiveBayes`, or one of
        scikit-learn's densities, which are fitted without labels
    false_positive_rate : float
        The share of ordinary rows that may be called novel. It takes at least
        1/false_positive_rate - 1 rows; with fewer, no row is novel, and you are warned.
    reject_label : any
        What `predict` gives for novel rows; in an array of Python objects if its type is another
        than that of the labels.
    cv : as for `CalibratedClassifier`.

    Attributes
    ----------
    threshold_ : the density below which a row is novel.
    estimator_, classes_ (of a classifier), n_features_in_, feature_names_in_.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from posteriori import GaussianClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = NoveltyDetector(GaussianClassifier(), false_positive_rate=0.05, reject_label=-1)
    >>> model = model.fit(X, y)
    >>> model.predict([[5.1, 3.5, 1.4, 0.2], [5.1, 3.5, 1.4, 9.9]])
    array([ 0, -1])
    >>> model.p_value([[5.1, 3.5, 1.4, 0.2], [5.1, 3.5, 1.4, 9.9]]).round(3)
    array([0.967, 0.007])
    """

    classes_: Labels
    threshold_: float
    _densities: Array
    _weight_below: Array

    def __init__(
        self,
        estimator: Any,
        *,
        false_positive_rate: float = 0.01,
        reject_label: Any = None,
        cv: Any = 5,
    ) -> None:
        self.estimator = estimator
        self.false_positive_rate = false_positive_rate
        self.reject_label = reject_label
        self.cv = cv

    @property
    def _needs_labels(self) -> bool:
        return is_classifier(self.estimator) and not isinstance(self.estimator, FrozenEstimator)

    def _learn(self, rows: Training) -> None:
        check_fraction("false_positive_rate", self.false_positive_rate)
        found, _, weight = held_out_predictions(rows, self.estimator, self.cv, _log_density)
        self.estimator_ = rows.fit(self.estimator)
        if is_classifier(self.estimator):
            self.classes_ = np.asarray(self.estimator_.classes_)
            check_reject_label(self.reject_label, self.classes_)
        order = np.argsort(found)
        self._densities = found[order]
        self._weight_below = np.append(0.0, np.cumsum(weight[order]))
        # Novel is below the largest s_i that would have a p-value of at most the rate if it were
        # any lower.
        total = self._weight_below[-1]
        lowest = (1 + self._weight_below[:-1]) / (1 + total)
        rare = np.flatnonzero(lowest <= self.false_positive_rate)
        self.threshold_ = float(self._densities[rare[-1]]) if len(rare) else -np.inf
        if not len(rare):
            needed = int(np.ceil(1 / self.false_positive_rate - 1))
            warn(
                IdentifiabilityWarning(
                    f"{total:g} rows are too few for false_positive_rate="
                    f"{self.false_positive_rate:g}: no row will be called novel.",
                    f"Pass {needed} rows or more, or allow a higher rate.",
                )
            )

    @anywhere
    def score_samples(self, X: Any) -> Array:
        """ln p(x) of each row, (n,), by the estimator."""
        check_is_fitted(self)
        return _log_density(self.estimator_, X)

    @anywhere
    def p_value(self, X: Any) -> Array:
        """The share (n,) of ordinary rows whose density is no higher, the row itself counted."""
        place = np.searchsorted(self._densities, self.score_samples(X), side="right")
        return (1 + self._weight_below[place]) / (1 + self._weight_below[-1])

    @anywhere
    def is_novel(self, X: Any) -> Mask:
        """Whether each row is novel, (n,)."""
        return np.asarray(self.p_value(X) <= self.false_positive_rate)

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


def _log_density(fitted: Any, X: Any) -> Array:
    if not hasattr(fitted, "score_samples"):
        raise ParameterError(
            f"{type(fitted).__name__} has no score_samples, and so no density.",
            "Use a generative model, such as GaussianClassifier or NaiveBayes.",
        )
    found = np.asarray(fitted.score_samples(X), dtype=np.float64)
    missing = np.isnan(found)
    if missing.any():
        raise DataError(
            "The estimator gives no density for row {row}.",
            "Check the entries of that row, or use another estimator.",
            int(missing.argmax()),
        )
    return found
