"""A classifier with a loss: decisions, the reject option, and the class priors they rest on."""

from collections.abc import Iterator, Mapping
from inspect import signature
from typing import Any, Self, cast

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, get_tags
from sklearn.utils.class_weight import compute_class_weight, compute_sample_weight
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from posteriori.decision.class_priors import (
    PriorsLike,
    log_ratio,
    read_priors,
    reweigh,
    weighed_logs,
)
from posteriori.decision.decide import Decisions, choices, read_rule
from posteriori.decision.loss import LossLike
from posteriori.decision.probabilities import read_proba
from posteriori.errors import LabelError, ParameterError
from posteriori.likelihood.softmax import log_probabilities
from posteriori.models.base import anywhere, check_source
from posteriori.models.calibrated import CalibratedClassifier
from posteriori.models.wrapper import Wrapping, read_pickable
from posteriori.rows.in_memory import Among
from posteriori.rows.scan import is_source
from posteriori.rows.schema import Schema
from posteriori.rows.source import PassLog
from posteriori.rows.target import read_target, read_weight
from posteriori.typing import Array, Codes, Labels

_BALANCES_WEIGHTS = (
    (LogisticRegression, LogisticRegressionCV)
    if "sample_weight" in signature(compute_class_weight).parameters
    else ()
)
"""Models that balance the weights of the classes; all others of scikit-learn balance their rows."""


def training_priors(fitted: Any, classes: Labels, y: Any, sample_weight: Any) -> Array:
    """The priors of the model, (K,): its own, or the shares of the classes in its rows.

    The share of class k is W_k c_k over the sum of all, with W_k the weight of its rows and c_k
    the class weight. Searches, pipelines and other wrappers are looked into.

    >>> from sklearn.naive_bayes import GaussianNB
    >>> model = GaussianNB(priors=[0.3, 0.7]).fit([[0], [1], [2], [3]], [0, 1, 0, 1])
    >>> training_priors(model, np.array([0, 1]), None, None)
    array([0.3, 0.7])
    """
    layers = list(_layers(fitted))
    for model in layers:
        if (own := _own_priors(model, classes)) is not None:
            return own
    if any(isinstance(model, FrozenEstimator) for model in layers):
        raise ParameterError(
            f"priors was given, but {type(layers[-1]).__name__} is frozen and keeps no priors: the "
            "shares of the classes in the rows that it was fitted to are not known.",
            "Use a model that keeps its priors_, or pass the estimator unfitted.",
        )
    if y is None:
        raise ParameterError(
            "priors was given, but the priors of the training rows are not known without labels y.",
            "Pass X and y, or use a model that keeps its priors_.",
        )
    return _shares(_weighing(layers), classes, y, sample_weight)


def _layers(fitted: Any) -> Iterator[Any]:
    """The model and what is inside it, from the outside in, as far as the probabilities go."""
    model = fitted
    while model is not None:
        yield model
        model = None if _recalibrated(model) else _inside(model)


def _recalibrated(model: Any) -> bool:
    """Whether the probabilities are those of the rows, whatever the model inside took for them."""
    calibrated = isinstance(model, CalibratedClassifier | CalibratedClassifierCV)
    return calibrated and model.method != "temperature"


def _inside(model: Any) -> Any:
    if isinstance(model, FrozenEstimator):
        return model.estimator
    if isinstance(model, Pipeline):
        return model.steps[-1][1]
    return getattr(model, "best_estimator_", getattr(model, "estimator_", None))


def _own_priors(model: Any, classes: Labels) -> Array | None:
    if hasattr(model, "training_priors_"):  # has put others in their place
        return read_priors(model.priors, classes)
    for name in ("priors_", "class_prior_"):
        if (own := getattr(model, name, None)) is not None:
            return np.asarray(own, dtype=np.float64)
    logs = getattr(model, "class_log_prior_", None)
    return None if logs is None else np.exp(logs)


def _weighing(layers: list[Any]) -> Any:
    """The outermost model with weights of classes; without any, the innermost."""
    for model in layers:
        if getattr(model, "class_weight", None) is not None:
            return model
    _check_nothing_hidden(layers[-1])
    return layers[-1]


def _check_nothing_hidden(model: Any) -> None:
    """An error if a model that cannot be looked into holds one with weights of classes."""
    if _recalibrated(model) or not hasattr(model, "get_params"):
        return
    for name, value in model.get_params().items():
        if name.endswith("__class_weight") and value is not None:
            raise ParameterError(
                f"priors was given, but what {name}={value!r} makes of the training priors of "
                f"{type(model).__name__} is not known.",
                "Leave class_weight out, or wrap the estimator in a CalibratedClassifier with "
                "method='platt'.",
            )


def _shares(model: Any, classes: Labels, y: Any, sample_weight: Any) -> Array:
    """The share of each class in y, by weight."""
    labels, codes = read_target(y, len(y))
    given = read_weight(sample_weight, len(codes))
    weight = np.ones(len(codes)) if given is None else given
    if codes.ndim == 2:
        total = cast(Array, codes).T @ weight
    else:
        total = _total(model, labels, cast(Codes, codes), weight)
    count = dict(zip(labels.tolist(), (total / total.sum()).tolist(), strict=True))
    return np.array([count.get(label, 0.0) for label in classes.tolist()])


def _total(model: Any, labels: Labels, codes: Codes, weight: Array) -> Array:
    """W_k c_k, up to a factor; where the weights are balanced c_k is 1/W_k, so that all are one."""
    class_weight = getattr(model, "class_weight", None)
    _check_class_weight(class_weight)
    total = cast(Array, np.bincount(codes, weight, len(labels)))
    if class_weight is None:
        return total
    if class_weight == "balanced" and isinstance(model, _BALANCES_WEIGHTS):
        return (total > 0).astype(np.float64)
    rows = weight * compute_sample_weight(class_weight, labels[codes])
    return cast(Array, np.bincount(codes, rows, len(labels)))


def _check_class_weight(class_weight: Any) -> None:
    known = class_weight is None or isinstance(class_weight, Mapping)
    if not known and not (isinstance(class_weight, str) and class_weight == "balanced"):
        raise ParameterError(
            f"priors was given, but what class_weight={class_weight!r} makes of the training "
            "priors is not known.",
            "Use class_weight='balanced', a dict from label to weight, or None.",
        )


class DecidingClassifier(ClassifierMixin, Wrapping):
    """Any classifier with probabilities, made to choose the action of least expected loss.

    With probabilities p_k of the estimator and losses L_ka, the action is argmin_a Σ_k p_k L_ka
    (1.81), or to reject the row, if that costs less than any of them.

    estimator : a classifier with `predict_proba`; fitted anew, unless in a `FrozenEstimator`.
    loss : (K, A), the classes in the order of `classes_`; a data frame with a row a class and a
        column an action; {class: {action: loss}}; or None: an error costs one. Rows with losses
        of their own: `decide(X, loss=...)`.
    actions : labels of the actions; by default those that `loss` names, else the classes if there
        are as many actions, else 0, 1, ...
    reject_cost : the cost of rejecting a row; None if no row may be rejected.
    priors : class priors of the rows to come, if others than those of the training rows. The
        latter are the model's own (`priors_`, or scikit-learn's names for them), else the shares
        of the classes in y, by `sample_weight` and the estimator's `class_weight`. A frozen
        model must keep its own.

    Fitted: estimator_, classes_, actions_ (A,), rule_, and, with `priors`, training_priors_ (K,).

    >>> from sklearn.datasets import load_breast_cancer
    >>> from posteriori import GaussianClassifier
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> loss = {0: {"operate": 0, "wait": 50}, 1: {"operate": 1, "wait": 0}}
    >>> model = DecidingClassifier(GaussianClassifier(), loss=loss, reject_cost=0.4).fit(X, y)
    >>> model.decide(X)
    Decisions('operate': 193, 'wait': 293, rejected: 83; mean expected loss 0.0913...)
    >>> model.predict(X[:2])
    array(['operate', 'operate'], dtype='<U7')
    """

    def __init__(
        self,
        estimator: Any,
        *,
        loss: LossLike | None = None,
        actions: Any = None,
        reject_cost: float | None = None,
        priors: PriorsLike | None = None,
    ) -> None:
        self.estimator = estimator
        self.loss = loss
        self.actions = actions
        self.reject_cost = reject_cost
        self.priors = priors

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the estimator, and read the losses; what cannot be chosen is named in a warning."""
        if is_source(X):
            check_source(self.estimator)
        return self._decide_by(self._fit_estimator(X, y, sample_weight), X, y, sample_weight)

    def _fit_to_some(
        self, X: Any, y: Any, sample_weight: Any, among: Among | None, schema: Schema | None
    ) -> Self:
        """Fit to a table of some rows; as `Classifier._fit_to_some`."""
        if self._frozen:
            return self.fit(X, y, sample_weight)
        if sample_weight is not None:
            self._check_takes_weights()
        rows = read_pickable(X, y, sample_weight, type(self).__name__)
        fitted = rows.within(among, schema).fitted(self.estimator)
        return self._decide_by(fitted, X, y, sample_weight)

    def _decide_by(self, fitted: Any, X: Any, y: Any, sample_weight: Any) -> Self:
        if not hasattr(fitted, "predict_proba"):
            raise ParameterError(
                f"{type(fitted).__name__} gives no probabilities to decide by.",
                "Use a classifier with predict_proba, or wrap it in a CalibratedClassifier.",
            )
        classes = np.asarray(fitted.classes_)
        rule = read_rule(self.loss, classes, None, self.actions, self.reject_cost)
        shift, old = None, None
        if self.priors is not None:
            new = read_priors(self.priors, classes)
            labels = None if isinstance(X, str) else y  # with a formula, y is a data frame
            old = training_priors(fitted, classes, labels, sample_weight)
            shift = log_ratio(old, new, classes)
        self.__dict__.pop("training_priors_", None)
        if old is not None:
            self.training_priors_ = old
        self.estimator_, self.classes_, self._shift = fitted, classes, shift
        self.rule_, self.actions_ = rule, rule.loss.actions
        rule.standing().warn()
        return self

    @property
    def passes_(self) -> PassLog:
        """How often rows that lie elsewhere were read; only if they do."""
        return cast(PassLog, self.estimator_.passes_)

    def decide(self, X: Any, *, loss: LossLike | None = None, reject_cost: Any = None) -> Decisions:
        """The decision of each row, with its expected loss.

        `loss` (n, K, A) and `reject_cost` (n,), or whatever `posteriori.decide` takes, stand for
        those of the constructor; the actions are the same.
        """
        check_is_fitted(self)
        proba = read_proba(self.predict_proba(X), self.classes_)
        if loss is None and reject_cost is None:
            return self.rule_.decide(proba)
        own = self.loss if loss is None else loss
        cost = self.reject_cost if reject_cost is None else reject_cost
        rule = read_rule(own, self.classes_, len(proba.values), self.actions_, cost)
        found = rule.decide(proba)
        found.standing.warn()
        return found

    @anywhere
    def predict(self, X: Any) -> Labels:
        """The action of least expected loss of each row, (n,).

        A row that is rejected has "reject" if actions are words, else None among Python objects.
        """
        return self.decide(X).action

    def expected_loss(self, X: Any) -> Array:
        """The expected loss of the decision of each row, (n,)."""
        return self.decide(X).expected_loss

    @anywhere
    def predict_proba(self, X: Any) -> Array:
        """Probability of each class, (n, K): the estimator's, under `priors` if there are any."""
        check_is_fitted(self)
        p = np.asarray(self.estimator_.predict_proba(X))
        if self._shift is None:
            return p
        return reweigh(read_proba(p, self.classes_).checked(), self._shift)

    @anywhere
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of `predict_proba`, (n, K)."""
        check_is_fitted(self)
        with np.errstate(divide="ignore"):
            if hasattr(self.estimator_, "predict_log_proba"):
                logs = np.asarray(self.estimator_.predict_log_proba(X))
            else:
                logs = np.log(self.estimator_.predict_proba(X))
        if self._shift is None:
            return logs
        return log_probabilities(weighed_logs(logs, self._shift))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Minus the mean loss of the decisions, in the true classes y.

        Without losses and without rejecting it is one more than that: the share of right answers.
        """
        found = self.decide(X)
        weight = read_weight(sample_weight, len(found))
        if self.loss is None and self.reject_cost is None:
            labels, codes = _labels_of(y, len(found))
            right = self.classes_[found.code] == labels[codes]
            return float(np.average(right, weights=weight))
        losses = self.rule_.losses_of(found.code, self._codes_of(y, len(found)))
        return -float(np.average(losses, weights=weight))

    def _codes_of(self, y: Any, n_rows: int) -> Codes:
        """Which of the classes the labels are."""
        labels, codes = _labels_of(y, n_rows)
        known = self.classes_.tolist()
        unknown = [label for label in labels.tolist() if label not in known]
        if unknown:
            raise LabelError(
                f"y has the label {unknown[0]!r}, in which class no action has a loss.",
                "Leave these rows out, or fit to rows of every class.",
            )
        return np.array([known.index(label) for label in labels.tolist()], dtype=np.intp)[codes]

    def _fit_estimator(self, X: Any, y: Any, sample_weight: Any) -> Any:
        if sample_weight is None or self._frozen:
            return clone(self.estimator).fit(X, y)
        self._check_takes_weights()
        return clone(self.estimator).fit(X, y, sample_weight=sample_weight)

    def _check_takes_weights(self) -> None:
        if not has_fit_parameter(self.estimator, "sample_weight"):
            raise ParameterError(
                f"sample_weight was given, but {type(self.estimator).__name__} takes none.",
                "Leave the weights out, or use an estimator whose fit takes them.",
            )

    @property
    def _possible_answers(self) -> Any:
        return choices(self.actions_, self.reject_cost is not None, self.rule_.label)

    def __sklearn_tags__(self) -> Tags:
        tags, base = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.input_tags.pairwise = base.input_tags.pairwise
        if base.classifier_tags is not None:
            tags.classifier_tags = base.classifier_tags
        return tags


def _labels_of(y: Any, n_rows: int) -> tuple[Labels, Codes]:
    labels, codes = read_target(y, n_rows)
    if codes.ndim == 2:
        raise LabelError("A score needs a label a row, and y is soft.", "Pass one label a row.")
    return labels, cast(Codes, codes)
