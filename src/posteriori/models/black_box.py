"""Effects of classifiers that are known by their probabilities alone: estimates without errors.

Conventions: n rows, K probabilities a row, that of the second class alone where there are two.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from posteriori.errors import NotLinearError
from posteriori.models.populations import Combination, Population
from posteriori.rows.changes import Changes, changed_table
from posteriori.rows.features import read_features
from posteriori.rows.pick import as_pickable, pick_rows
from posteriori.rows.tables import Table
from posteriori.typing import Array


@dataclass(eq=False)
class BlackBoxPopulation(Population):
    """The user's X, and a model with `predict_proba`.

    Slopes are exact where the probabilities are a softmax of linear activations with the weights
    (d, K) of the columns; otherwise they are taken by differences.
    """

    X: Any
    table: Table
    model: Any
    weights: Array | None = None
    has_errors = False

    def typical(self) -> Population:
        one = pick_rows(as_pickable(self.X), np.zeros(1, dtype=np.intp))
        X = changed_table(one, read_features(one, self.schema), self._typical_changes())
        table = read_features(X, self.schema)
        return BlackBoxPopulation(X, table, self.model, self.weights)

    def average(self, terms: Combination) -> Array:
        return _alone(self._combined(terms).mean(axis=0))

    def each(self, terms: Combination) -> Array:
        return _alone(self._combined(terms))

    def average_means(self, changes: Changes) -> Array:
        return self.average([(1.0, changes)])

    def each_mean(self) -> Array:
        return self.each([(1.0, ())])

    def average_slopes(self, columns: Sequence[int], changes: Changes) -> Array:
        return _alone(self._slopes(columns, changes).mean(axis=0))

    def each_slope(self, columns: Sequence[int]) -> Array:
        return _alone(self._slopes(columns, ()))

    def _slopes(self, columns: Sequence[int], changes: Changes) -> Array:
        """(n, J, K)."""
        if self.weights is None:
            found = [self._combined(self.small_steps(j, changes)) for j in columns]
            return np.stack(found, axis=1)
        p = self._probabilities(changes)
        weights = self.weights[[self.schema.numeric.index(j) for j in columns]]
        mean = p @ weights.T
        return _shown(p[:, None, :] * (weights - mean[:, :, None]))

    def _combined(self, terms: Combination) -> Array:
        found = (factor * _shown(self._probabilities(changes)) for factor, changes in terms)
        return cast(Array, sum(found))

    def _probabilities(self, changes: Changes) -> Array:
        X = changed_table(self.X, self.table, changes) if changes else self.X
        return np.asarray(self.model.predict_proba(X), dtype=np.float64)


def softmax_weights(model: Any) -> Array | None:
    """Weights (d, K) whose softmax the probabilities are; None where they are not known to be."""
    if not hasattr(type(model), "_linear_function"):
        return None
    try:
        weights = model._linear_function().weights
    except NotLinearError:
        return None
    return cast(Array, weights) if weights.shape[1] == len(model.classes_) else None


def _shown(values: Array) -> Array:
    """Of two classes the second alone (..., K)."""
    return values[..., 1:] if values.shape[-1] == 2 else values


def _alone(values: Array) -> Array:
    """Estimates without errors (..., 4)."""
    return np.stack([values, *[np.zeros_like(values)] * 3], axis=-1)
