"""Recalibration of any classifier by its predictions for held-out rows.

Conventions: n rows, K classes. An activation (n, K) is ln p(C_k|x) of the estimator or, if it gives
no probabilities, its decision function: ln p up to a number that all classes have in common.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, Literal, cast

import numpy as np
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from posteriori.arguments import check_choice
from posteriori.decision.calibration import fit_inverse_temperature
from posteriori.decision.decide import most_probable
from posteriori.errors import (
    CalibrationWarning,
    DataError,
    LabelError,
    ParameterError,
    SeparationWarning,
    warn,
)
from posteriori.inspection.results import predicted_log_probabilities
from posteriori.models.base import anywhere
from posteriori.models.cross_fit import HeldOut, check_folds, held_out_predictions
from posteriori.models.logistic import LogisticRegression
from posteriori.models.wrapper import Training, Wrapper
from posteriori.typing import Array, Codes, Labels

_SMALLEST_LOG = float(np.log(np.finfo(np.float64).smallest_subnormal))


class CalibratedClassifier(ClassifierMixin, Wrapper):
    """A classifier recalibrated by temperature scaling or Platt scaling on held-out rows.

    With `method="temperature"` its probabilities become softmax(b ln p), with the one number
    b = 1/T of the largest likelihood: the most probable class does not change. With
    `method="platt"` two classes get σ(α + β ln(p/(1 - p))) by maximum likelihood; more get the
    softmax of a linear function of all ln p_k, whose prior is chosen by the evidence. Both are
    fitted by `LogisticRegression`.

    The map is fitted to cross-fitted predictions: the test rows of each fold are predicted by a
    copy of the estimator that is fitted to its training rows. The estimator itself is fitted to all
    rows. An estimator in a `sklearn.frozen.FrozenEstimator` is not fitted again: all rows
    recalibrate it, and must be new to it.

    If the estimator gives no probabilities, its `decision_function` stands for their logarithms. A
    probability of zero has no logarithm: it counts as half the smallest positive one among the
    held-out rows if any of these has a zero, and else as the smallest number of double precision.

    Parameters
    ----------
    estimator : a classifier with `predict_proba` or `decision_function`
    method : "temperature" or "platt"
    cv : int, splitter of scikit-learn, or list of (train, test)
        A number n means StratifiedKFold(n, shuffle=True, random_state=0). Splitters that need
        groups get those of `fit(X, y, groups=...)`.

    Attributes
    ----------
    estimator_, classes_, n_features_in_, feature_names_in_.
    temperature_ : 1/b, for method="temperature": above one if the estimator was overconfident.
        Infinite, with a warning, if it does no better than chance; one, with a warning, if no
        held-out row was misclassified, as then no temperature is low enough.
    calibrator_ : the `LogisticRegression` on the log odds, or on the ln p_k, for method="platt";
        its classes are the places of the classes in `classes_`.

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
        cv: Any = 5,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.cv = cv

    def _check_settings(self) -> None:
        check_choice("method", self.method, ["temperature", "platt"])
        check_folds(self.cv)

    def _learn(self, rows: Training, split_params: Mapping[str, Any]) -> None:
        for name in ("temperature_", "calibrator_"):
            self.__dict__.pop(name, None)
        self.classes_ = rows.classes
        _check_several(type(self).__name__, rows)
        self.estimator_ = self.estimator if self._frozen else rows.fit(self.estimator)
        found = held_out_predictions(rows, self, partial(_activations, self.classes_), split_params)
        zeros = np.isneginf(found.values)
        lowest = found.values[~zeros].min()
        self._zero = float(lowest - np.log(2)) if zeros.any() else _SMALLEST_LOG
        values = self._without_zeros(found.values)
        if self.method == "temperature":
            self.temperature_ = _temperature(values, found)
        else:
            _check_every_class(self.classes_, found.codes)
            self.calibrator_ = _calibrator(_columns(values), found)

    @anywhere
    def predict_log_proba(self, X: Any) -> Array:
        """ln p(C_k|x), recalibrated, (n, K)."""
        check_is_fitted(self)
        logs = self._without_zeros(_activations(self.classes_, self.estimator_, X))
        if hasattr(self, "temperature_"):
            return cast(Array, log_softmax(logs / self.temperature_, axis=1))
        return cast(Array, self.calibrator_.predict_log_proba(_columns(logs)))

    @anywhere
    def predict_proba(self, X: Any) -> Array:
        """p(C_k|x), recalibrated, (n, K)."""
        return np.exp(self.predict_log_proba(X))

    @anywhere
    def predict(self, X: Any) -> Labels:
        """The most probable class of each row; the first of several."""
        codes = most_probable(self.predict_log_proba(X))
        return self.classes_[codes]

    def _without_zeros(self, logs: Array) -> Array:
        """The logarithms, with one in place of that of zero."""
        if self._zero > _SMALLEST_LOG:  # so that no positive probability counts for less than zero
            return np.maximum(logs, self._zero)
        return np.where(np.isneginf(logs), self._zero, logs)


def _activations(classes: Labels, fitted: Any, X: Any) -> Array:
    """ln p of all `classes`; a class that the estimator does not know has probability zero."""
    if hasattr(fitted, "predict_proba"):
        own = predicted_log_probabilities(fitted, X)
    elif hasattr(fitted, "decision_function"):
        own = _from_margins(np.asarray(fitted.decision_function(X)), len(fitted.classes_))
    else:
        raise ParameterError(
            f"{type(fitted).__name__} has neither predict_proba nor decision_function.",
            "Use a classifier that has one of them.",
        )
    found = np.full((len(own), len(classes)), -np.inf)
    place = {label: k for k, label in enumerate(classes.tolist())}
    found[:, [place[label] for label in np.asarray(fitted.classes_).tolist()]] = own
    bad = np.isnan(found).any(axis=1) | np.isneginf(found).all(axis=1)
    if bad.any():
        raise DataError(
            "The estimator gives no probabilities for row {row}.",
            "Look at the entries of that row, or use another estimator.",
            int(bad.argmax()),
        )
    return found


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


def _columns(logs: Array) -> Array:
    """What Platt's map is a function of: the log odds of two classes, or all ln p_k."""
    return logs[:, 1:] - logs[:, :1] if logs.shape[1] == 2 else logs


def _check_several(name: str, rows: Training) -> None:
    if len(rows.classes) < 2:
        raise LabelError(
            f"{name} needs rows of two classes at least; y has one class, "
            f"{rows.classes.tolist()[0]!r} (n_samples = {len(rows.codes)}).",
            "Pass rows of every class.",
        )


def _check_every_class(classes: Labels, codes: Codes) -> None:
    counts = np.bincount(codes, minlength=len(classes))
    if not counts.all():
        raise LabelError(
            f"No held-out row is of class {classes.tolist()[int(counts.argmin())]!r}.",
            "Pass rows of it, or use method='temperature', which does not need them.",
        )


def _temperature(activations: Array, found: HeldOut) -> float:
    b = fit_inverse_temperature(activations, found.codes, found.weight)
    if b == 0:
        _warn_of_chance("All classes are given the same probability (temperature_ is infinite).")
        return np.inf
    if np.isfinite(b):
        return 1 / b
    warn(
        SeparationWarning(
            "No held-out row is misclassified, so that the likelihood increases as the "
            "temperature falls to zero. The probabilities are left as they are (temperature_ is "
            "1).",
            "Use more rows, or method='platt', which has a finite estimate.",
        )
    )
    return 1.0


def _calibrator(columns: Array, found: HeldOut) -> LogisticRegression:
    if columns.shape[1] > 1:
        return LogisticRegression(prior="evidence").fit(columns, found.codes, found.weight)
    first, second = (columns[found.codes == k, 0] for k in (0, 1))
    separated = first.max() <= second.min() or second.max() <= first.min()
    separated = bool(separated and np.ptp(columns) > 0)
    if separated:
        warn(
            SeparationWarning(
                "The log odds of the held-out rows separate the two classes, so that the "
                "likelihood has no maximum. Jeffreys' prior was used.",
                "Use more rows, if you need probabilities near zero and one.",
            )
        )
    model = LogisticRegression(prior="jeffreys" if separated else None, tol=1e-10)
    model.fit(columns, found.codes, found.weight)
    if model.coef_[0, 0] <= 0:
        _warn_of_chance(f"The log odds were multiplied by {model.coef_[0, 0]:.3g} all the same.")
    return model


def _warn_of_chance(consequence: str) -> None:
    warn(
        CalibrationWarning(
            "On held-out rows the estimator does no better than chance, or is wrong "
            f"more often than right. {consequence}",
            "Look for labels that are mixed up, or use another estimator.",
        )
    )
