"""Many classes from two-class classifiers, and the rows on which these contradict each other.

Conventions: n rows, K classes. `margins` (n, classifiers) is what the two-class classifiers say,
above zero where a classifier is for its positive class.
"""

from abc import abstractmethod
from collections.abc import Iterator
from itertools import combinations
from typing import Any, Literal, Self, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.metadata_routing import MetadataRouter
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from posteriori.arguments import check_choice
from posteriori.errors import LabelError, ParameterError
from posteriori.inspection.results import linear_columns, predicted_log_probabilities
from posteriori.models.base import (
    Estimator,
    all_or_nothing,
    anywhere,
)
from posteriori.models.gaussian import GaussianClassifier
from posteriori.models.wrapper import (
    Mask,
    check_arguments,
    check_not_pairwise,
    inherit_tags,
    overwrite,
    read_labels,
    read_training,
    routed,
    routing_of,
    with_label,
)
from posteriori.rows.target import read_weight
from posteriori.typing import Array, Codes, Labels

_COUPLED_ENTRIES = 2**18
"""Numbers in the systems of equations of pairwise coupling that are solved at once."""

_LARGEST_MARGIN = 1e300
"""Infinite margins are cut to this size before they are added up."""


def _gives_probabilities(model: "_Multiclass") -> bool:
    fitted = getattr(model, "estimators_", None)
    return hasattr(fitted[0] if fitted else model._base(), "predict_proba")


class _Multiclass(ClassifierMixin, Estimator):
    """What one-versus-rest and one-versus-one have in common.

    A subclass says which classes each classifier compares (`_comparisons`), how their margins
    become one score a class (`_scores`), where they contradict each other (`_conflicts`), and how
    their probabilities are combined (`_log_proba`).
    """

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

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> Self:
        """Fit every classifier. Rows of weight zero are ignored.

        X: a table in memory with labels y; or a formula, with the data frame as y, for estimators
        of posteriori. `params` are passed on to the `fit` of each classifier, with metadata
        routing if that is enabled.
        """
        base, name = self._base(), type(self).__name__
        check_choice("ambiguous", self.ambiguous, ["largest", "reject"])
        check_arguments(self, base, X, y, sample_weight, params)
        check_not_pairwise(self, base)
        fit_params, _ = routed(self, sample_weight, params)
        rows = read_training(name, X, y, sample_weight, fit_params=fit_params)
        labels = rows.classes.tolist()
        if len(labels) < 2:
            raise LabelError(
                f"{name} needs rows of two classes at least; y has one class, {labels[0]!r} "
                f"(n_samples = {len(rows.all_codes)}).",
                "Pass rows of every class.",
            )
        if self.ambiguous == "reject" and self.reject_label in labels:
            raise ParameterError(
                f"reject_label={self.reject_label!r} is a class of its own.",
                "Choose a label that y does not have.",
            )
        self.classes_ = rows.classes
        self.estimators_ = [rows.against(sides).fit(base) for sides in self._comparisons()]
        return self

    @anywhere
    def predict(self, X: Any) -> Labels:
        """The label of each row, (n,).

        With `ambiguous="reject"`, ambiguous rows have `reject_label`. The array then has the type
        of `classes_` if that can hold `reject_label` unchanged, and holds Python objects if not.
        """
        margins = self._margins(X)
        found = self.classes_[self._winners(margins)]
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
        """Probability of each class, (n, K); there if the two-class classifier has it."""
        check_is_fitted(self)
        if len(self.classes_) == 2:
            return cast(Array, self.estimators_[0].predict_proba(X))
        return self._proba(X)

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
        margins = self._margins(X)
        labels, codes = read_labels(y, len(margins), type(self).__name__)
        right = self.classes_[self._winners(margins)] == labels[codes]
        if self.ambiguous == "reject":
            right &= ~self._conflicts(margins)
        return float(np.average(right, weights=read_weight(sample_weight, len(margins))))

    @property
    def n_features_in_(self) -> int:
        return cast(int, self.estimators_[0].n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        return cast(NDArray[Any], self.estimators_[0].feature_names_in_)

    @property
    def n_parameters_(self) -> int:
        """Free parameters of all classifiers together, where each of them counts its own."""
        return sum(fitted.n_parameters_ for fitted in self.estimators_)

    def get_metadata_routing(self) -> MetadataRouter:
        """Which arguments of `fit` go to the estimator."""
        return routing_of(self, self._base())

    def __sklearn_tags__(self) -> Tags:
        return inherit_tags(super().__sklearn_tags__(), self._base())

    def _parameter_columns(self) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {"term": [], "classifier": [], "estimate": []}
        for sides, fitted in zip(self._comparisons(), self.estimators_, strict=True):
            if not hasattr(fitted, "coef_"):
                continue
            columns = linear_columns(fitted)
            found["term"] += columns["term"]
            found["estimate"] += columns["estimate"]
            found["classifier"] += [self._compared(sides)] * len(columns["term"])
        return found

    def _caveats(self) -> tuple[str, ...]:
        if all(hasattr(fitted, "coef_") for fitted in self.estimators_):
            return ()
        return ("not all of its classifiers are linear (see estimators_)",)

    def _compared(self, sides: Codes) -> str:
        """The classes that a classifier tells apart, in words."""
        labels = np.array([str(label) for label in self.classes_.tolist()], dtype=object)
        first, second = labels[sides == 0], labels[sides == 1]
        return f"{second[0]} against {first[0] if len(first) == 1 else 'the rest'}"

    @abstractmethod
    def _comparisons(self) -> Iterator[Codes]:
        """For each classifier the target of each class, (K,): 0, 1, or -1 for neither."""

    @abstractmethod
    def _scores(self, margins: Array) -> Array:
        """One score a class, for K > 2."""

    @abstractmethod
    def _conflicts(self, margins: Array) -> Mask:
        """Where the classifiers contradict each other."""

    @abstractmethod
    def _log_proba(self, X: Any) -> Array:
        """The logarithms of the probabilities for K > 2."""

    def _proba(self, X: Any) -> Array:
        return np.exp(self._log_proba(X))

    def _base(self) -> Any:
        return GaussianClassifier() if self.estimator is None else self.estimator

    def _margins(self, X: Any) -> Array:
        check_is_fitted(self)
        return np.column_stack([_margin(fitted, X) for fitted in self.estimators_])

    def _winners(self, margins: Array) -> Codes:
        if len(self.classes_) == 2:
            return (margins[:, 0] > 0).astype(np.intp)
        return self._scores(margins).argmax(axis=1)


class OneVersusRest(_Multiclass):
    """K classifiers, each of one class against all others (section 4.1.2).

    Classifier k claims a row where its margin m_k(x) > 0. The prediction is argmax_k m_k(x); a row
    is ambiguous if not exactly one classifier claims it. Two classes need one classifier only,
    and no row is ambiguous.

    The margin is the `decision_function` of the estimator, else its probability less one half.
    The probabilities are p_k / Σ_j p_j, with p_k what classifier k gives to its class; where
    every p_k is zero they are 1/K each.

    `estimator` is any two-class classifier (by default `GaussianClassifier()`). `ambiguous` says
    what `predict` does with ambiguous rows: "largest" takes the largest margin all the same,
    "reject" returns `reject_label`, and an array of Python objects where the type of the labels
    cannot hold it.

    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> model = OneVersusRest(ambiguous="reject", reject_label=-1).fit(X, y)
    >>> rows = np.flatnonzero(model.ambiguous_rows(X))
    >>> rows, model.predict(X[rows])
    (array([68]), array([-1]))
    """

    def _comparisons(self) -> Iterator[Codes]:
        n_classes = len(self.classes_)
        for one in [1] if n_classes == 2 else range(n_classes):
            yield (np.arange(n_classes) == one).astype(np.intp)

    def _scores(self, margins: Array) -> Array:
        return margins

    def _conflicts(self, margins: Array) -> Mask:
        if len(self.classes_) == 2:
            return np.zeros(len(margins), dtype=np.bool_)
        return cast(Mask, (margins > 0).sum(axis=1) != 1)

    def _proba(self, X: Any) -> Array:
        return cast(Array, softmax(self._log_claims(X), axis=1))

    def _log_proba(self, X: Any) -> Array:
        return cast(Array, log_softmax(self._log_claims(X), axis=1))

    def _log_claims(self, X: Any) -> Array:
        """log p_k for each class, (n, K); all alike where every p_k is zero."""
        claims = [predicted_log_probabilities(fitted, X)[:, 1] for fitted in self.estimators_]
        logs = np.column_stack(claims)
        logs[np.isneginf(logs).all(axis=1)] = 0.0
        return logs


class OneVersusOne(_Multiclass):
    """K(K-1)/2 classifiers, one for each pair of classes, which vote (section 4.1.2).

    The prediction is the class with most votes, ties going to the largest sum of margins; a row
    is ambiguous if no class wins all of its K - 1 comparisons.
    With r_ij the probability of class i against class j, the probabilities are those of Wu, Lin
    and Weng (2004), second method: the p that sums to one and makes
    Σ_i Σ_j≠i (r_ji p_i - r_ij p_j)² least. They weigh how clear each comparison is, which votes do
    not: where comparisons are close, the most probable class may be another than the one with most
    votes.

    A classifier sees the rows of its two classes only. One of this library knows the levels of
    categorical columns that other classes have; to any other, what these alone have is unknown.

    `estimator` is any two-class classifier (by default `GaussianClassifier()`). `ambiguous` says
    what `predict` does with ambiguous rows: "largest" takes the most votes all the same, "reject"
    returns `reject_label`, and an array of Python objects where the type of the labels cannot
    hold it. `estimators_` are in the order (0, 1), (0, 2), ..., each positive for the later class.

    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> model = OneVersusOne().fit(X, y)
    >>> len(model.estimators_), int(model.ambiguous_rows(X).sum())
    (3, 0)
    """

    def _comparisons(self) -> Iterator[Codes]:
        for i, j in self._pairs():
            sides = np.full(len(self.classes_), -1)
            sides[[i, j]] = 0, 1
            yield sides

    def _pairs(self) -> Iterator[tuple[int, int]]:
        return combinations(range(len(self.classes_)), 2)

    def _scores(self, margins: Array) -> Array:
        votes, confidence = self._votes(margins), np.zeros((len(margins), len(self.classes_)))
        bounded = np.clip(margins, -_LARGEST_MARGIN, _LARGEST_MARGIN)
        for (i, j), margin in zip(self._pairs(), bounded.T, strict=True):
            confidence[:, i] -= margin
            confidence[:, j] += margin
        # Below 1/2 in size, so that no sum of margins outweighs a vote; the inverse hyperbolic
        # sine keeps large sums apart. Sums that differ by less than 1e-15 count as equal.
        return votes + np.arctan(np.arcsinh(confidence)) / 4

    def _votes(self, margins: Array) -> Array:
        votes = np.zeros((len(margins), len(self.classes_)))
        for (i, j), margin in zip(self._pairs(), margins.T, strict=True):
            votes[:, i] += margin <= 0
            votes[:, j] += margin > 0
        return votes

    def _conflicts(self, margins: Array) -> Mask:
        return cast(Mask, self._votes(margins).max(axis=1) < len(self.classes_) - 1)

    def _proba(self, X: Any) -> Array:
        each = [fitted.predict_proba(X) for fitted in self.estimators_]
        n_classes = len(self.classes_)
        r = np.zeros((len(each[0]), n_classes, n_classes))
        for (i, j), proba in zip(self._pairs(), each, strict=True):
            r[:, i, j], r[:, j, i] = proba.T
        return couple(r)

    def _log_proba(self, X: Any) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(self._proba(X))


def _margin(fitted: Any, X: Any) -> Array:
    """Above zero where the classifier is for its positive class, (n,)."""
    if hasattr(fitted, "decision_function"):
        return cast(Array, fitted.decision_function(X))
    if hasattr(fitted, "predict_proba"):
        return cast(Array, fitted.predict_proba(X)[:, 1] - 0.5)
    return cast(Array, fitted.predict(X) - 0.5)


def couple(r: Array) -> Array:
    """Pairwise coupling: p (n, K) from r (n, K, K), r[:, i, j] = 1 - r[:, j, i] being i against j.

    The least Σ_i<j (r_ji p_i - r_ij p_j)² = pᵀQp with Σp = 1 has Qp = c1 with a number c (Wu, Lin
    and Weng 2004, second method). Small probabilities have their digits too; those below 1e-20
    depend on the last bits of r. The diagonal of r is zero.

    >>> couple(np.array([[[0.0, 0.8, 0.6], [0.2, 0.0, 0.3], [0.4, 0.7, 0.0]]])).round(3)
    array([[0.521, 0.137, 0.342]])
    """
    n_rows, n_classes, _ = r.shape
    p = np.empty((n_rows, n_classes))
    step = max(1, _COUPLED_ENTRIES // n_classes**2)
    for low in range(0, n_rows, step):
        p[low : low + step] = _couple_at_once(r[low : low + step])
    return p


def _couple_at_once(r: Array) -> Array:
    """With p = 1 for the class of least Q_ii, and so p = Q⁻¹(b + c1) for the others.

    Outside of its diagonal Q has no numbers above zero, so that in the factors of Q and in what is
    solved with them only numbers of one sign add up; b has what Q has for the last class. There is
    a Q⁻¹: classes that never lose to others, nor to the last, would have a lesser Q_ii than that.
    """
    lost = np.einsum("nji,nji->ni", r, r)  # Q_ii = Σ_j r_ji²
    order = np.argsort(-lost, axis=1, kind="stable")
    rows = np.arange(len(r))[:, None]
    r = r[rows[:, :, None], order[:, :, None], order[:, None, :]]
    Q = -r * r.swapaxes(1, 2)  # Q_ij = -r_ij r_ji
    every = np.arange(r.shape[1])
    Q[:, every, every] = lost[rows, order]
    b = -Q[:, :-1, -1]
    v, u = _solved(cast(Array, np.linalg.cholesky(Q[:, :-1, :-1])), b)
    c = np.maximum(Q[:, -1, -1] - (b * v).sum(axis=1), 0.0) / (1 + (b * u).sum(axis=1))
    p = np.ones(order.shape)
    p[:, :-1] = v + c[:, None] * u
    short = r * p[:, None, :]  # r_ji p_i
    least = ((short - short.swapaxes(1, 2)) ** 2).sum(axis=(1, 2)) / 2
    # Here c, a difference above, has its digits: it is what the sum of squares comes to.
    p[:, :-1] = v + (least / p.sum(axis=1))[:, None] * u
    found = np.empty_like(p)
    found[rows, order] = p / p.sum(axis=1, keepdims=True)
    return found


def _solved(L: Array, b: Array) -> Array:
    """(LLᵀ)⁻¹b and (LLᵀ)⁻¹1, (2, n, K - 1)."""
    x = np.stack([b, np.ones_like(b)])
    last = b.shape[1]
    for k in range(last):
        x[:, :, k] -= np.einsum("nj,mnj->mn", L[:, k, :k], x[:, :, :k])
        x[:, :, k] /= L[:, k, k]
    for k in reversed(range(last)):
        x[:, :, k] -= np.einsum("nj,mnj->mn", L[:, k + 1 :, k], x[:, :, k + 1 :])
        x[:, :, k] /= L[:, k, k]
    return x
