"""A classifier with a loss: decisions, the reject option, and changed class priors."""

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from posteriori.decision.class_priors import (
    PriorsLike,
    log_ratio,
    read_priors,
    weighed_logs,
)
from posteriori.decision.decide import Decisions, read_rule
from posteriori.decision.loss import LossLike
from posteriori.decision.probabilities import read_proba
from posteriori.errors import ParameterError
from posteriori.inspection.results import Summary, predicted_log_probabilities
from posteriori.likelihood.softmax import log_probabilities
from posteriori.models.base import all_or_nothing, anywhere
from posteriori.models.wrapper import Wrapper, accuracy, check_arguments, read_labels, routed
from posteriori.rows.formula import read_formula
from posteriori.rows.target import read_target, read_weight
from posteriori.typing import Array, Labels

_CHANGING_PRIORS = ("class_weight", "priors", "class_prior")
"""Parameters by which probabilities of classifiers are not based on the class frequencies in y."""


class DecidingClassifier(ClassifierMixin, Wrapper):
    """A classifier that predicts the action of least expected loss.

    With probabilities p_k of the estimator and losses L_ka, the action is argmin_a Σ_k p_k L_ka
    (1.81), or to reject the row, if that costs less than any of them.

    estimator : a classifier with `predict_proba`; a copy is fitted, unless in a `FrozenEstimator`.
    loss : (K, A), the classes in the order of `classes_`; a data frame with a row a class and a
        column an action; {class: {action: loss}}; or None: an error costs one. Rows with losses
        of their own: `decide(X, loss=...)`.
    actions : labels of the actions; by default those that `loss` names, else the classes if there
        are as many actions, else 0, 1, ...
    reject_cost : the cost of rejecting a row; None if no row may be rejected.
    priors : class priors of the rows to predict, if they differ from those of the training rows.
    training_priors : class priors that the probabilities of the estimator are based on; needed with
        `priors` for frozen models that do not keep them and for models with class weights. By
        default those that the model keeps (`priors_`, or scikit-learn's names for it), else the
        frequencies of the classes in y, by `sample_weight`.

    Fitted: estimator_, classes_, actions_ (A,), rule_ (with its `threshold`) and, with `priors`,
    priors_ and training_priors_ (K,).

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
        training_priors: PriorsLike | None = None,
    ) -> None:
        self.estimator = estimator
        self.loss = loss
        self.actions = actions
        self.reject_cost = reject_cost
        self.priors = priors
        self.training_priors = training_priors

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> Self:
        """Fit the estimator and read the losses; warns of actions that are never optimal.

        X: a table in memory with labels y; or a formula, with the data frame as y, for estimators
        of posteriori. `params` are passed on to the `fit` of the estimator.
        """
        check_arguments(self, X, y, params)
        fit_params, _ = routed(self, sample_weight, params)
        self.estimator_ = clone(self.estimator).fit(X, y, **fit_params)
        self.classes_ = np.asarray(self.estimator_.classes_)
        if not hasattr(self.estimator_, "predict_proba"):
            raise ParameterError(
                f"{type(self.estimator_).__name__} has no predict_proba.",
                "Use a classifier with predict_proba, or wrap it in CalibratedClassifier.",
            )
        self.rule_ = read_rule(self.loss, self.classes_, None, self.actions, self.reject_cost)
        self.actions_ = self.rule_.loss.actions
        self.rule_.warn_of_dominated()
        for name in ("priors_", "training_priors_"):
            self.__dict__.pop(name, None)
        self._shift = None
        if self.priors is not None:
            self.priors_ = read_priors(self.priors, self.classes_)
            self.training_priors_ = self._training_priors(X, y, sample_weight)
            self._shift = log_ratio(self.training_priors_, self.priors_, self.classes_)
        return self

    def _training_priors(self, X: Any, y: Any, sample_weight: Any) -> Array:
        """Those given, those that the model keeps, or the class frequencies in y, (K,)."""
        if self.training_priors is not None:
            return read_priors(self.training_priors, self.classes_, "training_priors")
        if (own := _own_priors(self.estimator_)) is not None:
            return own
        given = self.estimator_.get_params()
        for each in (self.estimator_, *given.values()):
            if hasattr(each, "best_estimator_"):
                given = given | each.best_estimator_.get_params()
        names = [name for name, value in given.items() if value is not None]
        frozen = [isinstance(each, FrozenEstimator) for each in (self.estimator_, *given.values())]
        if any(name.endswith(_CHANGING_PRIORS) for name in names) or any(frozen):
            reason = "is frozen" if any(frozen) else "has class weights or priors"
            raise ParameterError(
                f"priors was given, but the training priors are not known: the estimator {reason}.",
                "Pass training_priors=, the class priors that its probabilities are based on.",
            )
        y = read_formula(X, y).y if isinstance(X, str) else y
        labels, codes = read_target(y, len(y))
        weight = read_weight(sample_weight, len(codes))
        member = codes if codes.ndim == 2 else np.eye(len(labels))[codes]
        shares = np.average(member, axis=0, weights=weight)
        known = dict(zip(labels.tolist(), shares.tolist(), strict=True))
        return np.array([known.get(label, 0.0) for label in self.classes_.tolist()])

    def summary(self) -> Summary:
        """The estimator on one page, with the losses, actions, reject cost and threshold."""
        page, rule, actions = super().summary(), self.rule_, self.actions_.tolist()
        facts = [*page.facts, ("Actions", str(len(actions)))]
        if self.reject_cost is not None:
            facts.append(("Reject cost", f"{self.reject_cost:g}"))
        if rule.threshold is not None:
            facts.append(("Threshold", f"{rule.threshold:.4g}"))
        notes = []
        for label, row in zip(self.classes_.tolist(), rule.loss.values.tolist(), strict=True):
            losses = [f"{action!r} {loss:g}" for action, loss in zip(actions, row, strict=True)]
            notes.append(f"Losses in class {label!r}: {', '.join(losses)}.")
        return replace(page, facts=facts, notes=(*notes, *page.notes))

    def decide(self, X: Any, *, loss: LossLike | None = None, reject_cost: Any = None) -> Decisions:
        """The decision of each row, with its expected loss.

        `loss` (n, K, A) and `reject_cost` (n,), or whatever `posteriori.decide` takes, stand for
        those of the constructor; the actions are the same.
        """
        check_is_fitted(self)
        proba = read_proba(self.predict_proba(X), self.classes_)
        if loss is None and reject_cost is None:
            return self.rule_.decide(proba.values)
        own = self.loss if loss is None else loss
        cost = self.reject_cost if reject_cost is None else reject_cost
        rule = read_rule(own, self.classes_, len(proba.values), self.actions_, cost)
        rule.warn_of_dominated()
        return rule.decide(proba.values)

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
        if self._shift is None:
            return np.asarray(self.estimator_.predict_proba(X))
        return np.exp(self.predict_log_proba(X))

    @anywhere
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of `predict_proba`, (n, K)."""
        check_is_fitted(self)
        logs = predicted_log_probabilities(self.estimator_, X)
        return logs if self._shift is None else log_probabilities(weighed_logs(logs, self._shift))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Minus the mean loss of the decisions, in the true classes y.

        Without losses and without rejecting it is one more than that: the accuracy.
        """
        found = self.decide(X)
        if self.loss is None and self.reject_cost is None:
            return accuracy(self, self.classes_[found.code], y, sample_weight)
        codes = read_labels(y, len(found), type(self).__name__, self.classes_)[1]
        losses = self.rule_.loss.values[codes, found.code]
        if self.rule_.reject_cost is not None:
            losses = np.where(found.rejected, self.rule_.reject_cost, losses)
        return -float(np.average(losses, weights=read_weight(sample_weight, len(found))))

    @property
    def _possible_answers(self) -> Any:
        return self.rule_.choices


def _own_priors(model: Any) -> Array | None:
    """The priors that a fitted model keeps, or the last step of a pipeline, or a frozen model."""
    if isinstance(model, FrozenEstimator):
        return _own_priors(model.estimator)
    if isinstance(model, Pipeline):
        return _own_priors(model[-1])
    model = getattr(model, "best_estimator_", model)
    for name in ("priors_", "class_prior_"):
        if (own := getattr(model, name, None)) is not None:
            return np.asarray(own, dtype=np.float64)
    logs = getattr(model, "class_log_prior_", None)
    return None if logs is None else np.exp(logs)
