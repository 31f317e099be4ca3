"""Many classes from two-class classifiers, and the rows on which these contradict each other.

Conventions: n rows, K classes. `margins` (n, classifiers) are the decision values of the
two-class classifiers, above zero where a classifier predicts its positive class.
"""

from abc import abstractmethod
from typing import Any, Literal, cast

import numpy as np
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from posteriori.arguments import check_choice
from posteriori.decision.decide import with_label
from posteriori.inspection.results import linear_columns, predicted_log_probabilities
from posteriori.models.base import anywhere
from posteriori.models.gaussian import GaussianClassifier
from posteriori.models.wrapper import (
    Mask,
    Training,
    Wrapper,
    accuracy,
    check_reject_label,
    overwrite,
)
from posteriori.typing import Array, Codes, Labels

_COUPLING_STEPS = 10

_LARGEST_MARGIN = 1e300
"""Infinite margins are clipped to this size before they are summed."""


def _gives_probabilities(model: "_Multiclass") -> bool:
    return hasattr(getattr(model, "estimators_", [model._base])[0], "predict_proba")


class _Multiclass(ClassifierMixin, Wrapper):
    """What one-versus-rest and one-versus-one have in common.

    A subclass defines which classes each classifier compares (`_comparisons`), how their margins
    become one score a class (`_scores`), where they contradict each other (`_conflicts`), and how
    their probabilities are combined (`_log_proba`).
    """

    classes_: Labels
    estimators_: list[Any]
    _least_classes = 2

    def __init__(
        self,
        estimator: Any = None,
        *,
        ambiguous: Literal["largest", "reject"] = "largest",
        reject_label: Any = None,
    ) -> None:
        self.estimator = estimator
        self.ambiguous = ambiguous
        self.reject_label = reject_label

    def _learn(self, rows: Training) -> None:
        check_choice("ambiguous", self.ambiguous, ["largest", "reject"])
        if self.ambiguous == "reject":
            check_reject_label(self.reject_label, rows.classes)
        self.classes_, self.estimators_ = rows.classes, []
        for target in self._comparisons():
            labels = target[rows.codes]
            pair = np.flatnonzero((labels >= 0) & (rows.weight > 0))
            self.estimators_.append(rows.fit(self._base, pair, labels))

    @anywhere
    def predict(self, X: Any) -> Labels:
        """The label of each row, (n,).

        With `ambiguous="reject"`, ambiguous rows have `reject_label`. The array then has the type
        of `classes_` if that can hold `reject_label` unchanged, and holds Python objects if not.
        """
        margins = self._margins(X)
        is_binary = len(self.classes_) == 2
        winners = margins[:, 0] > 0 if is_binary else self._scores(margins).argmax(axis=1)
        found = self.classes_[winners.astype(np.intp)]
        if self.ambiguous == "largest":
            return found
        return overwrite(found, self._conflicts(margins), self.reject_label)

    @property
    def _possible_answers(self) -> Labels:
        if self.ambiguous == "largest":
            return self.classes_
        return with_label(self.classes_, self.reject_label)

    def ambiguous_rows(self, X: Any) -> Mask:
        """Whether the classifiers contradict each other, for each row, (n,)."""
        return self._conflicts(self._margins(X))

    @anywhere
    def decision_function(self, X: Any) -> Array:
        """One score a class, (n, K), the largest being that of the class predicted.

        For two classes, (n,): above zero where the second is predicted.
        """
        margins = self._margins(X)
        return margins[:, 0] if len(self.classes_) == 2 else self._scores(margins)

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    @anywhere
    def predict_proba(self, X: Any) -> Array:
        """Probability of each class, (n, K); available if the two-class classifier has it."""
        check_is_fitted(self)
        if len(self.classes_) == 2:
            return cast(Array, self.estimators_[0].predict_proba(X))
        return np.exp(self._log_proba(X))

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    @anywhere
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of `predict_proba`, (n, K)."""
        check_is_fitted(self)
        if len(self.classes_) == 2:
            return predicted_log_probabilities(self.estimators_[0], X)
        return self._log_proba(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of the rows with the right label; a rejected row does not have it."""
        return accuracy(self, self.predict(X), y, sample_weight)

    @property
    def n_parameters_(self) -> int:
        """Free parameters of all classifiers together, where each of them counts its own."""
        return sum(fitted.n_parameters_ for fitted in self.estimators_)

    @property
    def _base(self) -> Any:
        return GaussianClassifier() if self.estimator is None else self.estimator

    @property
    def _fitted(self) -> Any:
        return self.estimators_[0]

    def _parameter_columns(self) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {"term": [], "classifier": [], "estimate": []}
        labels = [str(label) for label in self.classes_.tolist()]
        for target, fitted in zip(self._comparisons(), self.estimators_, strict=True):
            if hasattr(fitted, "coef_"):
                columns, others = linear_columns(fitted), np.flatnonzero(target == 0)
                rest = labels[others[0]] if len(others) == 1 else "the rest"
                name = f"{labels[target.argmax()]} against {rest}"
                found["term"] += columns["term"]
                found["classifier"] += [name] * len(columns["term"])
                found["estimate"] += columns["estimate"]
        return found

    def _caveats(self) -> tuple[str, ...]:
        if all(hasattr(fitted, "coef_") for fitted in self.estimators_):
            return ()
        return ("not all of its classifiers are linear (see estimators_)",)

    @abstractmethod
    def _comparisons(self) -> Codes:
        """For each classifier the target of each class, (m, K): 0, 1, or -1 for neither."""

    @abstractmethod
    def _scores(self, margins: Array) -> Array:
        """One score a class, for K > 2."""

    @abstractmethod
    def _conflicts(self, margins: Array) -> Mask:
        """Where the classifiers contradict each other."""

    @abstractmethod
    def _log_proba(self, X: Any) -> Array:
        """The logarithms of the probabilities for K > 2."""

    def _margins(self, X: Any) -> Array:
        check_is_fitted(self)
        return np.column_stack([_margin(fitted, X) for fitted in self.estimators_])


class OneVersusRest(_Multiclass):
    """K classifiers, each of one class against all others (section 4.1.2).

    Classifier k claims a row where its margin m_k(x) > 0. The prediction is argmax_k m_k(x); a row
    is ambiguous if not exactly one classifier claims it. Two classes need one classifier only,
    and no row is ambiguous.

    The margin is the `decision_function` of the estimator, else its probability less one half.
    The probabilities are p_k / Σ_j p_j, with p_k the probability of class k by classifier k; where
    every p_k is zero they are 1/K each.

    `estimator` is any two-class classifier (by default `GaussianClassifier()`). `ambiguous` is
    what `predict` does with ambiguous rows: "largest" predicts the class of largest margin,
    "reject" returns `reject_label`, and an array of Python objects where the type of the labels
    cannot hold it.

    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> model = OneVersusRest(ambiguous="reject", reject_label=-1).fit(X, y)
    >>> rows = np.flatnonzero(model.ambiguous_rows(X))
    >>> rows, model.predict(X[rows])
    (array([68]), array([-1]))
    """

    def _comparisons(self) -> Codes:
        targets = np.eye(len(self.classes_), dtype=np.intp)
        return targets[1:] if len(targets) == 2 else targets

    def _scores(self, margins: Array) -> Array:
        return margins

    def _conflicts(self, margins: Array) -> Mask:
        if len(self.classes_) == 2:
            return np.zeros(len(margins), dtype=np.bool_)
        return cast(Mask, (margins > 0).sum(axis=1) != 1)

    def _log_proba(self, X: Any) -> Array:
        claims = [predicted_log_probabilities(fitted, X)[:, 1] for fitted in self.estimators_]
        logs = np.column_stack(claims)
        logs[np.isneginf(logs).all(axis=1)] = 0.0  # 1/K each where every p_k is zero
        return cast(Array, log_softmax(logs, axis=1))


class OneVersusOne(_Multiclass):
    """K(K-1)/2 classifiers, one for each pair of classes, which vote (section 4.1.2).

    The prediction is the class with most votes, ties going to the largest sum of margins; a row
    is ambiguous if no class wins all of its K - 1 comparisons.
    With r_ij the probability of class i against class j, the probabilities are those of Wu, Lin
    and Weng (2004), second method: the p that minimises Σ_i Σ_j≠i (r_ji p_i - r_ij p_j)² among
    those that sum to one. They use how clear each comparison is, which votes do not: where
    comparisons are close, the most probable class may differ from the one with most votes.

    Each classifier is fitted to the rows of its two classes only. Classifiers of this library know
    the levels of categorical columns that only other classes have; others do not.

    `estimator` is any two-class classifier (by default `GaussianClassifier()`). `ambiguous` is
    what `predict` does with ambiguous rows: "largest" predicts the class with most votes, "reject"
    returns `reject_label`, and an array of Python objects where the type of the labels cannot
    hold it. `estimators_` are in the order (0, 1), (0, 2), ..., each positive for the later class.

    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> model = OneVersusOne().fit(X, y)
    >>> len(model.estimators_), int(model.ambiguous_rows(X).sum())
    (3, 0)
    """

    def _comparisons(self) -> Codes:
        first, second = np.triu_indices(len(self.classes_), 1)
        targets = np.full((len(first), len(self.classes_)), -1)
        pair = np.arange(len(first))
        targets[pair, first], targets[pair, second] = 0, 1
        return targets

    def _scores(self, margins: Array) -> Array:
        targets = self._comparisons()
        signs = (targets == 1) * 1.0 - (targets == 0)
        total = np.clip(margins, -_LARGEST_MARGIN, _LARGEST_MARGIN) @ signs
        # Less than 1/2, so that no sum of margins outweighs a vote.
        return self._votes(margins) + total / (3 * (abs(total) + 1))

    def _votes(self, margins: Array) -> Array:
        targets = self._comparisons()
        wins, losses = (targets == 1).astype(float), (targets == 0).astype(float)
        return (margins > 0) @ wins + (margins <= 0) @ losses

    def _conflicts(self, margins: Array) -> Mask:
        return cast(Mask, self._votes(margins).max(axis=1) < len(self.classes_) - 1)

    def _log_proba(self, X: Any) -> Array:
        p = np.stack([fitted.predict_proba(X) for fitted in self.estimators_], axis=1)
        first, second = np.triu_indices(len(self.classes_), 1)
        r = np.zeros((len(p), len(self.classes_), len(self.classes_)))
        r[:, first, second], r[:, second, first] = p[..., 0], p[..., 1]
        with np.errstate(divide="ignore"):
            return np.log(couple(r))


def _margin(fitted: Any, X: Any) -> Array:
    """Above zero where the classifier is for its positive class, (n,)."""
    if hasattr(fitted, "decision_function"):
        return cast(Array, fitted.decision_function(X))
    if hasattr(fitted, "predict_proba"):
        return cast(Array, fitted.predict_proba(X)[:, 1] - 0.5)
    return cast(Array, fitted.predict(X) - 0.5)


def couple(r: Array) -> Array:
    """Pairwise coupling: p (n, K) from r (n, K, K), r[:, i, j] = 1 - r[:, j, i] being i against j.

    The minimum of Σ_i<j (r_ji p_i - r_ij p_j)² = pᵀQp with Σp = 1 has Qp = c1 with c = pᵀQp (Wu,
    Lin and Weng 2004, second method), so that p is proportional to (Q + 11ᵀ)⁻¹1. Gauss-Seidel
    steps then make small probabilities accurate. The diagonal of r is zero.

    >>> couple(np.array([[[0.0, 0.8, 0.6], [0.2, 0.0, 0.3], [0.4, 0.7, 0.0]]])).round(3)
    array([[0.521, 0.137, 0.342]])
    """
    n_rows, n_classes, _ = r.shape
    lost = (r**2).sum(axis=1)  # Q_ii = Σ_j r_ji²
    products = r * r.swapaxes(1, 2)  # -Q_ij = r_ij r_ji
    Q = lost[:, :, None] * np.eye(n_classes) - products
    p = np.linalg.solve(Q + 1, np.ones((n_rows, n_classes, 1)))[:, :, 0].clip(min=0.0)
    for _ in range(_COUPLING_STEPS):
        p /= p.sum(axis=1, keepdims=True)
        short = r * p[:, None, :]  # r_ji p_i
        c = ((short - short.swapaxes(1, 2)) ** 2).sum(axis=(1, 2)) / 2
        for k in range(n_classes):
            total = np.einsum("nj,nj->n", products[:, k], p) + c
            np.divide(total, lost[:, k], out=p[:, k], where=lost[:, k] > 0)
    return cast(Array, p / p.sum(axis=1, keepdims=True))
