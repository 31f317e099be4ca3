"""A classifier that acts: the action of least expected loss, by the probabilities of another."""

from typing import Any, Self, cast

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from posteriori.decision.changed_priors import log_ratio, reweigh, weighed_logs
from posteriori.decision.decisions import Decisions, choices
from posteriori.decision.loss import LossLike
from posteriori.decision.priors import PriorsLike, read_priors
from posteriori.decision.probabilities import read_proba
from posteriori.decision.rule import read_rule
from posteriori.errors import LabelError, ParameterError
from posteriori.models.anywhere import anywhere, check_source
from posteriori.models.meta import Wrapping, read_pickable
from posteriori.models.training_priors import training_priors
from posteriori.posterior.classes import log_probabilities
from posteriori.rows.in_memory import Among
from posteriori.rows.scan import is_source
from posteriori.rows.schema import Schema
from posteriori.rows.source import PassLog
from posteriori.rows.target import read_target, read_weight
from posteriori.typing import Array, Codes, Labels


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
