"""Recalibration of any classifier by its predictions for held-out rows.

Conventions: n rows, K classes. An activation (n, K) is ln p(C_k|x) of the estimator or, if it gives
no probabilities, its decision function: ln p up to a number that all classes have in common.
"""

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
from posteriori.models.logistic import LogisticRegression
from posteriori.models.wrapper import Training, Wrapper, held_out_predictions
from posteriori.typing import Array, Codes, Labels

_LOWEST = -1e100
"""In place of ln 0, if no held-out row has a probability of zero."""


class CalibratedClassifier(ClassifierMixin, Wrapper):
    """A classifier recalibrated by temperature scaling or Platt scaling on held-out rows.

    With `method="temperature"` its probabilities become softmax(b ln p), with the one number
    b = 1/T of the largest likelihood: the most probable class does not change. With
    `method="platt"` two classes get σ(α + β ln(p/(1 - p))) by maximum likelihood; more get the
    softmax of a linear function of all ln p_k, whose prior is chosen by the evidence. Both are
    fitted by `LogisticRegression`.

    The map is fitted to cross-fitted predictions: the test rows of each fold are predicted by a
    copy of the estimator that is fitted to its training rows. The estimator itself is fitted to all
    rows. An estimator in a `sklearn.frozen.FrozenEstimator` is not fitted again: it is recalibrated
    on all rows, which must not be those it was fitted to.

    If the estimator has no `predict_proba`, its `decision_function` is used in place of ln p. If
    some probabilities of held-out rows are zero, these and all smaller than half the smallest
    positive one are replaced by that half.

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
        held-out row was misclassified, as the estimate would then be zero.
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
    _lowest: float
    _least_classes = 2

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

    def _learn(self, rows: Training) -> None:
        check_choice("method", self.method, ["temperature", "platt"])
        for name in ("temperature_", "calibrator_"):
            self.__dict__.pop(name, None)
        self.classes_ = rows.classes
        found, codes, weight = held_out_predictions(
            rows, self.estimator, self.cv, self._activations
        )
        self.estimator_ = rows.fit(self.estimator)
        zeros = np.isneginf(found)
        self._lowest = float(found[~zeros].min() - np.log(2)) if zeros.any() else _LOWEST
        activations = np.maximum(found, self._lowest)
        if self.method == "temperature":
            self.temperature_ = _temperature(activations, codes, weight)
        else:
            for label in np.delete(self.classes_, codes).tolist():
                raise LabelError(
                    f"No held-out row is of class {label!r}.",
                    "Pass rows of it, or use method='temperature', which does not need them.",
                )
            self.calibrator_ = _calibrator(_columns(activations), codes, weight)

    @anywhere
    def predict_log_proba(self, X: Any) -> Array:
        """ln p(C_k|x), recalibrated, (n, K)."""
        check_is_fitted(self)
        logs = np.maximum(self._activations(self.estimator_, X), self._lowest)
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

    def _activations(self, fitted: Any, X: Any) -> Array:
        """ln p of all classes; a class that the estimator does not know has probability zero."""
        if hasattr(fitted, "predict_proba"):
            own = predicted_log_probabilities(fitted, X)
        elif hasattr(fitted, "decision_function"):
            own = np.asarray(fitted.decision_function(X))
            own = np.column_stack([np.zeros_like(own), own]) if own.ndim == 1 else own
        else:
            raise ParameterError(
                f"{type(fitted).__name__} has neither predict_proba nor decision_function.",
                "Use a classifier that has one of them.",
            )
        labels = np.asarray(fitted.classes_).tolist()
        found = np.full((len(own), len(self.classes_)), -np.inf)
        place = {label: k for k, label in enumerate(self.classes_.tolist())}
        found[:, [place[label] for label in labels]] = own
        bad = ~np.isfinite(found.max(axis=1))
        if bad.any():
            raise DataError(
                "The estimator gives no probabilities for row {row}.",
                "Check the entries of that row, or use another estimator.",
                int(bad.argmax()),
            )
        return found


def _columns(logs: Array) -> Array:
    """The features of Platt scaling: the log odds of two classes, or all ln p_k."""
    return logs[:, 1:] - logs[:, :1] if logs.shape[1] == 2 else logs


def _temperature(activations: Array, codes: Codes, weight: Array) -> float:
    b = fit_inverse_temperature(activations, codes, weight)
    if b == 0:
        _warn_of_chance("All classes are given the same probability (temperature_ is infinite).")
        return np.inf
    if np.isfinite(b):
        return 1 / b
    warn(
        SeparationWarning(
            "No held-out row is misclassified, so that the likelihood increases as the "
            "temperature falls to zero. The probabilities are not changed (temperature_ is 1).",
            "Use more rows, or method='platt', which has a finite estimate.",
        )
    )
    return 1.0


def _calibrator(columns: Array, codes: Codes, weight: Array) -> LogisticRegression:
    if columns.shape[1] > 1:
        return LogisticRegression(prior="evidence").fit(columns, codes, weight)
    first, second = (columns[codes == k, 0] for k in (0, 1))
    apart = first.max() <= second.min() or second.max() <= first.min()
    separated = bool(apart and np.ptp(columns) > 0)
    if separated:
        warn(
            SeparationWarning(
                "The log odds of the held-out rows separate the two classes, so that the "
                "likelihood has no maximum. Jeffreys' prior was used.",
                "Use more rows, if you need probabilities near zero and one.",
            )
        )
    model = LogisticRegression(prior="jeffreys" if separated else None, tol=1e-10)
    model.fit(columns, codes, weight)
    if model.coef_[0, 0] <= 0:
        _warn_of_chance(f"The log odds are multiplied by {model.coef_[0, 0]:.3g}.")
    return model


def _warn_of_chance(consequence: str) -> None:
    warn(
        CalibrationWarning(
            "On held-out rows the estimator does no better than chance, or is wrong "
            f"more often than right. {consequence}",
            "Look for labels that are mixed up, or use another estimator.",
        )
    )
