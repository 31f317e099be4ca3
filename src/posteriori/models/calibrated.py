"""Recalibration of any classifier by its predictions for held-out rows.

Conventions: n rows, K classes. `activation` (n, K) is ln p(C_k|x) of the estimator or, if it gives
no probabilities, its decision function: ln p up to a number that all classes have in common.
"""

from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from posteriori.arguments import check_choice
from posteriori.decision.calibration import likeliest_slope
from posteriori.decision.decide import most_probable
from posteriori.errors import (
    CalibrationWarning,
    LabelError,
    ParameterError,
    SeparationWarning,
    warn,
)
from posteriori.inspection.results import predicted_log_probabilities
from posteriori.models.base import anywhere
from posteriori.models.cross_fit import (
    CrossFitted,
    TrainingSource,
    held_out_predictions,
    transformed,
)
from posteriori.models.logistic import LogisticRegression
from posteriori.models.wrapper import Training
from posteriori.rows.block import Block, Rows
from posteriori.statistics.calibration import (
    GatherLogarithms,
    Logarithms,
    has_none,
    no_prediction,
)
from posteriori.statistics.statistic import Maximum
from posteriori.typing import Array, Labels

_SMALLEST_LOG = float(np.log(np.finfo(np.float64).smallest_subnormal))
"""A probability that a double cannot hold is at most this, in logarithms."""

_MOST = 1e150
"""A logarithm or a decision function that is larger counts as this: sums of it are doubles."""

_TOL = 1e-10
"""Standard errors by which a map may miss its optimum."""


class CalibratedClassifier(ClassifierMixin, CrossFitted):
    """A classifier recalibrated by temperature scaling or Platt scaling on held-out rows.

    With `method="temperature"` its probabilities become softmax(b ln p), with the one number
    b = 1/T of the largest likelihood: the most probable class does not change. With
    `method="platt"` two classes get σ(α + β ln(p/(1 - p))) by maximum likelihood; more get the
    softmax of a linear function of all ln p_k, whose prior is chosen by the evidence. Both are our
    own `LogisticRegression`.

    The map is fitted to cross-fitted predictions: each of `folds` parts of the rows is predicted by
    a copy of the estimator that is fitted to all others. Then the estimator is fitted to all rows.
    An estimator that is fitted already is not fitted again if wrapped in
    `sklearn.frozen.FrozenEstimator`; all rows then serve to recalibrate it, and must be new to it.

    If the estimator gives no probabilities, its `decision_function` stands for their logarithms. A
    probability of exactly zero has no logarithm: it counts as half the smallest positive one among
    the held-out rows if any of these has a zero, and else as the smallest number of double
    precision.

    Parameters
    ----------
    estimator : a classifier with `predict_proba` or `decision_function`
    method : "temperature" or "platt"
    folds : int
        The number of folds: those of scikit-learn's `StratifiedKFold(folds, shuffle=True)`, or of
        a hash of the row number for a dataset of `scan` or in Dask.
    random_state : None, a seed or a generator
        The seed of the folds; None is the seed 0.

    Attributes
    ----------
    estimator_, classes_, n_features_in_, feature_names_in_.
    temperature_ : 1/b, for method="temperature": above one if the estimator was overconfident.
        Infinite, with a warning, if it does no better than chance; one, with a warning, if no
        held-out row was misclassified, as then no temperature is low enough.
    calibrator_ : the `LogisticRegression` on the log odds, or on the ln p_k, for method="platt".
    passes_ : how often a dataset on disk or on a cluster was read.

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

    def _check_settings(self) -> None:
        check_choice("method", self.method, ["temperature", "platt"])

    def _learn(self, rows: Training | TrainingSource) -> None:
        for name in ("temperature_", "calibrator_"):
            self.__dict__.pop(name, None)
        self.classes_ = rows.classes
        self._check_classes(rows.n_of_classes)
        self.estimator_ = self.estimator if self._frozen else rows.fitted(self.estimator)
        K = len(self.classes_)
        found = held_out_predictions(rows, self, _Activation(self.classes_), K)
        logs = found.map_sum(GatherLogarithms())
        self._zero = _value_of_zero(logs)
        floor = _Floor(self._zero)
        if self.method == "temperature":
            self.temperature_ = _temperature(transformed(found, floor, K), logs.weight)
        else:
            columns = transformed(found, _Columns(floor), 1 if K == 2 else K)
            self.calibrator_ = _calibrator(columns, K)

    @anywhere
    def predict_log_proba(self, X: Any) -> Array:
        """ln p(C_k|x), recalibrated, (n, K)."""
        check_is_fitted(self)
        found = _Activation(self.classes_)(self.estimator_, X)
        _check_given(found)
        floor = _Floor(self._zero)
        if hasattr(self, "temperature_"):
            return cast(Array, log_softmax(floor(found) / self.temperature_, axis=1))
        return cast(Array, self.calibrator_.predict_log_proba(_Columns(floor)(found)))

    @anywhere
    def predict_proba(self, X: Any) -> Array:
        """p(C_k|x), recalibrated, (n, K)."""
        return np.exp(self.predict_log_proba(X))

    @anywhere
    def predict(self, X: Any) -> Labels:
        """The most probable class of each row; the first of several."""
        codes = most_probable(self.predict_log_proba(X))
        return self.classes_[codes]

    def _check_classes(self, n_of_classes: Array) -> None:
        labels = self.classes_.tolist()
        if len(labels) < 2:
            raise LabelError(
                f"{type(self).__name__} needs rows of two classes at least; y has one class, "
                f"{labels[0]!r} (n_samples = {n_of_classes[0]:g}).",
                "Pass rows of every class that is to be told apart.",
            )
        if self.method == "platt" and not n_of_classes.all():
            raise LabelError(
                f"No row is of class {labels[int(n_of_classes.argmin())]!r}.",
                "Pass rows of it, or use method='temperature', which can do without.",
            )


@dataclass(frozen=True, eq=False)
class _Activation:
    """ln p of all `classes`; a class that the estimator does not know has probability zero."""

    classes: Labels

    def __call__(self, fitted: Any, X: Any) -> Array:
        some = np.asarray(_confidence(fitted, X), dtype=np.float64)
        found = np.full((len(some), len(self.classes)), -np.inf)
        place = {label: k for k, label in enumerate(self.classes.tolist())}
        found[:, [place[label] for label in np.asarray(fitted.classes_).tolist()]] = some
        return found


def _confidence(fitted: Any, X: Any) -> Array:
    if hasattr(fitted, "predict_proba"):
        return predicted_log_probabilities(fitted, X)
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
    bad = has_none(log_probability)
    if bad.any():
        raise no_prediction("probabilities", int(bad.argmax()))


def _value_of_zero(found: Logarithms) -> float:
    """The logarithm that a probability of zero counts as."""
    return float(found.lowest - np.log(2)) if found.any_zero else _SMALLEST_LOG


@dataclass(frozen=True)
class _Floor:
    """What puts `zero` in the place of the logarithms of zeros, and cuts off what is enormous."""

    zero: float

    def __call__(self, log_probability: Array) -> Array:
        if self.zero > _SMALLEST_LOG:  # so that no positive probability counts for less than zero
            return np.clip(log_probability, self.zero, _MOST)
        known = np.where(np.isneginf(log_probability), self.zero, log_probability)
        return np.clip(known, -_MOST, _MOST)


@dataclass(frozen=True)
class _Columns:
    """What Platt's map is a function of: the log odds of two classes, or all ln p_k."""

    floor: _Floor

    def __call__(self, log_probability: Array) -> Array:
        found = self.floor(log_probability)
        return found[:, 1:] - found[:, :1] if found.shape[1] == 2 else found


def _temperature(activations: Rows, weight: float) -> float:
    b = likeliest_slope(activations, weight)
    if b == 0:
        _warn_of_chance("All classes are given the same probability (temperature_ is infinite).")
        return np.inf
    if np.isfinite(b):
        return 1 / b
    warn(
        SeparationWarning(
            "No held-out row is misclassified, so that the likelihood increases as the "
            "temperature falls to zero. The probabilities are left alone (temperature_ is 1).",
            "Use more rows, or method='platt', which has a finite answer.",
        )
    )
    return 1.0


def _calibrator(columns: Rows, n_classes: int) -> LogisticRegression:
    if n_classes > 2:
        return LogisticRegression(prior="evidence").fit(columns)
    separated = _are_separated(columns)
    if separated:
        warn(
            SeparationWarning(
                "The log odds of the held-out rows separate the two classes, so that the "
                "likelihood has no maximum. Jeffreys' prior was used.",
                "Use more rows, if the probabilities are to be trusted near zero and one.",
            )
        )
    model = LogisticRegression(prior="jeffreys" if separated else None, tol=_TOL).fit(columns)
    if model.coef_[0, 0] <= 0:
        _warn_of_chance(f"The log odds were multiplied by {model.coef_[0, 0]:.3g} all the same.")
    return model


def _are_separated(log_odds: Rows) -> bool:
    """Whether a threshold of one column separates the two classes, or they touch there."""

    def ends(block: Block) -> Maximum:
        """The largest entry of each class, and the largest of their opposites."""
        x, y = cast(Array, block.X)[:, 0], cast(Any, block.y)
        of_class = (y == 0, y == 1) if y.ndim == 1 else y.T > 0
        largest = [[(s * x)[own].max(initial=-np.inf) for own in of_class] for s in (1, -1)]
        return Maximum(np.array(largest))

    high, low = log_odds.map_sum(ends).value * [[1], [-1]]
    return bool(low.min() < high.max() and (high[0] <= low[1] or high[1] <= low[0]))


def _warn_of_chance(taken: str) -> None:
    warn(
        CalibrationWarning(
            "On held-out rows the estimator does no better than chance, or is wrong "
            f"more often than right. {taken}",
            "Look for labels that are mixed up, or use another estimator.",
        )
    )
