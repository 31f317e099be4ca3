"""Predictions of classifiers p(C|x) = f(wᵀφ(x)), from the linear function that a fit found.

Conventions: n rows, K classes. Two classes have one activation, positive for the second class;
more have one each.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from posteriori.decision.rule import most_probable
from posteriori.errors import ScaleError
from posteriori.likelihood.link import ProbabilityLink
from posteriori.models.anywhere import anywhere
from posteriori.models.base import ProbabilisticClassifier, beyond_doubles
from posteriori.models.geometry import LinearCoefficients
from posteriori.posterior.classes import log_probabilities, probabilities
from posteriori.posterior.linear import Linear
from posteriori.posterior.objective import LogPosterior
from posteriori.rows.block import Block, Features
from posteriori.rows.schema import Unseen
from posteriori.rows.target import read_offset
from posteriori.typing import Array, Labels


class LinearProbabilities(LinearCoefficients, ProbabilisticClassifier):
    """A classifier whose probabilities are a function of linear activations and an offset."""

    unseen: Unseen
    _linear: Linear

    @abstractmethod
    def _link(self) -> ProbabilityLink:
        """For two classes, the probability of the second as a function of the activation."""

    def _linear_function(self) -> Linear:
        self._known_classes()
        return self._linear

    def _activations(self, X: Features) -> Array:
        return self._linear.of_rows(X, self.schema_, self.unseen)

    def _predicted(self, block: Block) -> Array:
        return self._probabilities(self._block_activations(block))

    def _block_activations(self, block: Block) -> Array:
        """The activations of a block's rows, with their offsets (n, K)."""
        a = self._checked(block, self._activations)
        return a if block.offset is None else a + block.offset.reshape(len(a), -1)

    def _no_answer(self, row: int) -> ScaleError:
        return beyond_doubles(row)

    @anywhere
    def decision_function(self, X: Any, offset: Any = None) -> Array:
        """Activations (n, K); for two classes (n,), positive where the second is chosen."""
        if len(self._known_classes()) > 2:
            return self._evaluate_with(X, offset, lambda a: a, len(self.classes_))
        return self._evaluate_with(X, offset, lambda a: a[:, 0])

    @anywhere
    def predict_proba(self, X: Any, offset: Any = None) -> Array:
        """p(C_k|x) of each row and class (n, K); rows sum to one."""
        return self._evaluate_with(X, offset, self._probabilities, len(self._known_classes()))

    @anywhere
    def predict_log_proba(self, X: Any, offset: Any = None) -> Array:
        """ln p(C_k|x), finite where the probability itself underflows.

        With a link whose tail falls as exp(-exp(a)), such as cloglog or Gumbel noise, the
        logarithm -exp(a) leaves the doubles itself beyond an activation of 709, and is -inf there.
        """
        return self._evaluate_with(X, offset, self._log_probabilities, len(self._known_classes()))

    @anywhere
    def predict(self, X: Any, offset: Any = None) -> Labels:
        """The most probable class of each row."""
        self._known_classes()
        codes = self._evaluate_with(X, offset, self._codes)
        return self.classes_[codes.astype(np.intp)]

    def _evaluate_with(
        self, X: Any, offset: Any, link: Callable[[Array], Array], width: int | None = None
    ) -> Array:
        """`link` of the activations, to which the offset is added first."""
        if offset is None:
            return self._evaluate(X, link, width)
        K = self._linear.weights.shape[1]
        activation = self._evaluate(X, lambda a: a, K)
        added = read_offset(offset, len(activation), K)
        return link(activation + added.reshape(len(activation), -1))

    def _probabilities(self, activation: Array) -> Array:
        if activation.shape[1] > 1:
            return probabilities(activation)
        link, a = self._link(), activation[:, 0]
        out = np.empty((len(a), 2))
        out[:, 0], out[:, 1] = link.complement(a), link.mean(a)
        return out

    def _log_probabilities(self, activation: Array) -> Array:
        if activation.shape[1] > 1:
            return log_probabilities(activation)
        link, a = self._link(), activation[:, 0]
        return np.stack([link.log_complement(a), link.log_mean(a)], axis=1)

    def _codes(self, activation: Array) -> Array:
        if activation.shape[1] > 1:
            return most_probable(activation).astype(np.float64)
        link, a = self._link(), activation[:, 0]
        return (link.log_mean(a) > link.log_complement(a)).astype(np.float64)


def linear_function(objective: LogPosterior, w: Array) -> Linear:
    """The activations that free parameters w give, in the user's units."""
    standard = objective.standard
    theta = objective.coordinates.expand(w)
    with np.errstate(over="ignore"):
        weights = (theta[:, int(standard.intercept) :] / standard.scale).T
    if not np.isfinite(weights).all():
        j = int(np.argmax(~np.isfinite(weights).all(axis=1)))
        raise ScaleError(
            f"The coefficients of {objective.columns.as_schema().describe(j)} do not fit in a "
            "double.",
            "Multiply the column by a large number.",
        )
    bias = theta[:, 0] if standard.intercept else np.zeros(len(theta))
    return Linear.about(standard.centre, weights, bias)
