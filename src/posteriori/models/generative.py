"""What all generative models share: densities, samples, other priors (4.2)."""

from abc import abstractmethod
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from posteriori.arguments import as_generator
from posteriori.decision.priors import PriorsLike, log_priors, read_priors
from posteriori.errors import ParameterError
from posteriori.models.anywhere import anywhere
from posteriori.models.base import ProbabilisticClassifier
from posteriori.models.from_sums import ClassifierFromSums
from posteriori.posterior.classes import log_normaliser
from posteriori.rows.block import Features
from posteriori.typing import Array, Codes, Labels


class GenerativeClassifier(ClassifierFromSums, ProbabilisticClassifier):
    """A model of p(x|C_k) and p(C_k), hence of p(C_k|x) by Bayes' theorem (4.57).

    A subclass gives, beside what `ClassifierFromSums` asks of it, `_log_density` and `_draw`; its
    `_estimate` calls `_set_priors`.
    """

    priors: PriorsLike | None
    priors_: Array
    _log_priors: Array
    _seen: NDArray[np.bool_]

    _allows_missing = True

    @abstractmethod
    def _log_density(self, X: Features) -> Array:
        """ln p(x|C_k) (n, K); NaN, or the marginal density, where entries are missing."""

    @abstractmethod
    def _draw(self, k: int, n: int, random: np.random.Generator) -> Array:
        """`n` rows from the density of class k."""

    def _set_priors(self, class_count: Array) -> None:
        """Priors as given, or the share of each class (4.73)."""
        if self.priors is None:
            self.priors_ = class_count / class_count.sum()
        else:
            self.priors_ = read_priors(self.priors, self.classes_)
            if not class_count.all():
                self.priors_ = _of_classes_seen(self.priors_, class_count > 0)
        self._seen = class_count > 0
        self._log_priors = log_priors(self.priors_)

    def with_priors(self, priors: PriorsLike) -> Self:
        """The same model under other class priors: {label: p}, or in the order of `classes_`.

        Only ln p(C_k) changes (4.57); nothing is fitted again, and the copy has no
        `log_likelihood_`.
        """
        self._known_classes()
        other = copy(self)
        other.priors = priors
        other.priors_ = read_priors(priors, self.classes_)
        unknown = (other.priors_ > 0) & ~self._seen
        if unknown.any():
            raise ParameterError(
                f"Class {self.classes_.tolist()[int(unknown.argmax())]!r} is given a prior, but "
                "no row of it was seen, so its density is not known.",
                "Give it the prior zero.",
            )
        other._log_priors = log_priors(other.priors_)
        for name in ("log_likelihood_", "log_likelihood_trace_"):
            other.__dict__.pop(name, None)  # that of the labels has changed
        other._prepare()
        return other

    def _log_joint(self, X: Features) -> Array:
        """ln p(x|C_k) p(C_k)."""
        return self._log_density(X) + self._log_priors

    def _activations(self, X: Features) -> Array:
        return self._log_joint(X)

    @anywhere
    def score_samples(self, X: Any) -> Array:
        """ln p(x) = ln Σ_k p(x|C_k) p(C_k) of each row; missing entries are integrated out."""
        self._known_classes()
        return self._evaluate(X, log_normaliser, activations=self._log_joint)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Array, Labels]:
        """Rows and labels drawn from the model: C_k from the priors, then x from p(x|C_k)."""
        classes = self._known_classes()
        if not isinstance(n_samples, int | np.integer) or n_samples < 1:
            raise ParameterError(f"n_samples is {n_samples}.", "Ask for at least one row.")
        random = as_generator(random_state)
        codes: Codes = random.choice(len(classes), size=n_samples, p=self.priors_)
        X = np.empty((n_samples, self.n_features_in_))
        for k in range(len(classes)):
            here = codes == k
            X[here] = self._draw(k, int(here.sum()), random)
        return X, classes[codes]


def _of_classes_seen(priors: Array, seen: NDArray[np.bool_]) -> Array:
    """Nothing for the classes whose rows have not come yet, the others in proportion."""
    left = np.where(seen, priors, 0.0)
    if not left.any():
        raise ParameterError(
            "The classes that have rows all have the prior zero.", "Give one of them a prior."
        )
    return left / left.sum()
