"""Probabilities put right by rows that the model has not seen.

Conventions: n rows, K classes. `activation` (n, K) is ln p(C_k|x) of the estimator or, if it gives
no probabilities, its decision function: ln p up to a number that all classes have in common.
"""

from typing import Any, Literal, Self, cast

import numpy as np
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from posteriori.arguments import check_choice
from posteriori.decision.rule import most_probable
from posteriori.decision.temperature import likeliest_slope
from posteriori.errors import (
    CalibrationWarning,
    DataError,
    LabelError,
    ParameterError,
    SeparationWarning,
    warn,
)
from posteriori.models.anywhere import anywhere
from posteriori.models.folds import check_folds, deal, out_of_fold
from posteriori.models.logistic import LogisticRegression
from posteriori.models.meta import Training, Wrapping, read_training
from posteriori.models.telling import log_probabilities
from posteriori.models.unchanged import all_or_nothing
from posteriori.typing import Array, Codes, Labels

_SMALLEST_LOG = float(np.log(np.finfo(np.float64).smallest_subnormal))
"""A probability that a double cannot hold is at most this, in logarithms."""

_TOL = 1e-10
"""Standard errors by which a map may miss its optimum."""


class CalibratedClassifier(ClassifierMixin, Wrapping):
    """A classifier whose probabilities are put right by rows that it has not seen.

    With `method="temperature"` they become softmax(b ln p), with the one number b = 1/T of the
    largest likelihood: what is most probable stays so. With `method="platt"` two classes get
    σ(α + β ln(p/(1 - p))) by maximum likelihood; more get the softmax of a linear function of all
    ln p_k, whose prior is chosen by the evidence. Both are our own `LogisticRegression`.

    The rows for it are held back: each of `folds` parts is predicted by a copy of the estimator
    that is fitted to all others. Then the estimator is fitted to all rows. An estimator that is
    fitted already is not fitted again if wrapped in `sklearn.frozen.FrozenEstimator`; all rows
    then serve to put it right, and must be new to it.

    If the estimator gives no probabilities, its `decision_function` stands for their logarithms. A
    probability of exactly zero cannot be put right as it is: it counts as half the smallest
    positive one among the rows held back if any of these has a zero, and else as the smallest
    number of double precision.

    Parameters
    ----------
    estimator : a classifier with `predict_proba` or `decision_function`
    method : "temperature" or "platt"
    folds : int
    random_state : None, a seed or a generator
        How rows are dealt out to the folds; None does it in the same way every time. Equal rows of
        a class are in one fold, so that a weight of two is the same as the row twice.

    Attributes
    ----------
    estimator_, classes_, n_features_in_, feature_names_in_.
    temperature_ : 1/b, for method="temperature": above one if the estimator was too sure. Infinite,
        with a warning, if it does no better than chance; one, with a warning, if no row held back
        was misclassified, as then no temperature is low enough.
    calibrator_ : the `LogisticRegression` on the log odds, or on the ln p_k, for method="platt".

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from posteriori import NaiveBayes
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = CalibratedClassifier(NaiveBayes()).fit(X, y)  # columns are not independent
    >>> round(model.temperature_, 1)
    7.8
    """

    classes_: Labels
    temperature_: float
    calibrator_: LogisticRegression
    _zero: float

    def __init__(
        self,
        estimator: Any,
        *,
        method: Literal["temperature", "platt"] = "temperature",
        folds: int = 5,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.folds = folds
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the estimator, and the map of its probabilities; weight zero is as good as absent."""
        check_choice("method", self.method, ["temperature", "platt"])
        check_folds(self.folds)
        rows = read_training(self, X, y, sample_weight)
        self._check_classes(rows)
        self.estimator_ = self.estimator if self._frozen else rows.fitted(self.estimator)
        self.classes_ = rows.classes
        for name in ("temperature_", "calibrator_"):
            self.__dict__.pop(name, None)
        found = self._held_back(rows)
        _check_given(found)
        self._zero = _value_of_zero(found)
        found = _without_zeros(found, self._zero)
        weight = np.ones(len(found)) if rows.weight is None else rows.weight
        if self.method == "temperature":
            self.temperature_ = _temperature(found, rows.codes, weight)
        else:
            self.calibrator_ = _calibrator(found, rows, weight)
        return self

    @anywhere
    def predict_log_proba(self, X: Any) -> Array:
        """ln p(C_k|x), put right, (n, K)."""
        check_is_fitted(self)
        found = self._activation(self.estimator_, X)
        _check_given(found)
        found = _without_zeros(found, self._zero)
        if hasattr(self, "temperature_"):
            return cast(Array, log_softmax(found / self.temperature_, axis=1))
        return cast(Array, self.calibrator_.predict_log_proba(_columns(found)))

    @anywhere
    def predict_proba(self, X: Any) -> Array:
        """p(C_k|x), put right, (n, K)."""
        return np.exp(self.predict_log_proba(X))

    @anywhere
    def predict(self, X: Any) -> Labels:
        """The most probable class of each row; the first of several."""
        codes = most_probable(self.predict_log_proba(X))
        return self.classes_[codes]

    def _check_classes(self, rows: Training) -> None:
        name, K = type(self).__name__, len(rows.classes)
        if K < 2:
            raise LabelError(
                f"{name} needs rows of two classes at least; y has one class, "
                f"{rows.classes.tolist()[0]!r} (n_samples = {len(rows.codes)}).",
                "Pass rows of every class that is to be told apart.",
            )
        absent = np.bincount(rows.codes, minlength=K) == 0
        if self.method == "platt" and absent.any():
            raise LabelError(
                f"No row is of class {rows.classes.tolist()[int(absent.argmax())]!r}.",
                "Pass rows of it, or use method='temperature', which can do without.",
            )

    def _held_back(self, rows: Training) -> Array:
        """The activations of all rows, each by an estimator that has not seen it."""
        if self._frozen:
            return self._activation(self.estimator_, rows.X)
        folds = deal(rows, self.folds, self.random_state)
        return out_of_fold(rows, self.estimator, self._activation, folds)

    def _activation(self, fitted: Any, X: Any) -> Array:
        """In the order of `classes_`; a class that `fitted` does not know has probability zero."""
        some = np.asarray(_confidence(fitted, X), dtype=np.float64)
        found = np.full((len(some), len(self.classes_)), -np.inf)
        found[:, np.searchsorted(self.classes_, fitted.classes_)] = some
        return found


def _confidence(fitted: Any, X: Any) -> Array:
    if hasattr(fitted, "predict_proba"):
        return log_probabilities(fitted, X)
    if hasattr(fitted, "decision_function"):
        return _from_margins(np.asarray(fitted.decision_function(X)), len(fitted.classes_))
    raise ParameterError(
        f"{type(fitted).__name__} has neither predict_proba nor decision_function.",
        "Use a classifier that says how sure it is.",
    )


def _from_margins(margin: Array, n_classes: int) -> Array:
    if margin.ndim == 1:
        margin = np.column_stack([np.zeros_like(margin), margin])
    if margin.shape[1] != n_classes or not np.isfinite(margin).all():
        raise ParameterError(
            f"decision_function gives {margin.shape[1]} columns for {n_classes} classes, or "
            "infinite numbers.",
            "Use an estimator with a finite number a class, or with predict_proba.",
        )
    return margin


def _check_given(log_probability: Array) -> None:
    bad = np.isnan(log_probability).any(axis=1) | np.isneginf(log_probability).all(axis=1)
    if bad.any():
        raise DataError(
            f"The estimator gives no probabilities for row {int(bad.argmax())} (rows of weight "
            "zero are not counted).",
            "Find out what is special about that row, or use another estimator.",
        )


def _value_of_zero(log_probability: Array) -> float:
    """The logarithm that a probability of zero counts as."""
    positive = log_probability[~np.isneginf(log_probability)]
    if len(positive) == log_probability.size:
        return _SMALLEST_LOG
    return float(positive.min() - np.log(2))


def _without_zeros(log_probability: Array, zero: float) -> Array:
    if zero > _SMALLEST_LOG:  # so that no positive probability counts for less than zero
        return np.maximum(log_probability, zero)
    return np.where(np.isneginf(log_probability), zero, log_probability)


def _columns(activation: Array) -> Array:
    """What Platt's map is a function of: the log odds of two classes, or all ln p_k."""
    return activation[:, 1:] - activation[:, :1] if activation.shape[1] == 2 else activation


def _temperature(activation: Array, codes: Codes, weight: Array) -> float:
    b = likeliest_slope(activation, codes, weight)
    if b == 0:
        _warn_of_chance("All classes are given the same probability (temperature_ is infinite).")
        return np.inf
    if np.isfinite(b):
        return 1 / b
    warn(
        SeparationWarning(
            "No row that was held back is misclassified, so that the likelihood grows as the "
            "temperature falls to zero. The probabilities are left alone (temperature_ is 1).",
            "Use more rows, or method='platt', which has a finite answer.",
        )
    )
    return 1.0


def _calibrator(activation: Array, rows: Training, weight: Array) -> LogisticRegression:
    columns, target = _columns(activation), rows.classes[rows.codes]
    if len(rows.classes) > 2:
        return LogisticRegression(prior="evidence").fit(columns, target, weight)
    parted = _are_parted(columns[:, 0], rows.codes)
    if parted:
        warn(
            SeparationWarning(
                "The log odds of the rows that were held back part the two classes, so that the "
                "likelihood has no maximum. Jeffreys' prior was used.",
                "Use more rows, if the probabilities are to be trusted near zero and one.",
            )
        )
    model = LogisticRegression(prior="jeffreys" if parted else None, tol=_TOL)
    model.fit(columns, target, weight)
    if model.coef_[0, 0] <= 0:
        _warn_of_chance(f"The log odds were multiplied by {model.coef_[0, 0]:.3g} all the same.")
    return model


def _are_parted(log_odds: Array, codes: Codes) -> bool:
    first, second = log_odds[codes == 0], log_odds[codes == 1]
    if log_odds.min() == log_odds.max():
        return False
    return bool(first.max() <= second.min() or second.max() <= first.min())


def _warn_of_chance(taken: str) -> None:
    warn(
        CalibrationWarning(
            "On rows that were held back the estimator does no better than chance, or is wrong "
            f"more often than right. {taken}",
            "Look for labels that are mixed up, or use another estimator.",
        )
    )
