"""Effects of classifiers that are known by their probabilities alone: estimates without errors.

Conventions: n rows, K probabilities a row, that of the second class alone where there are two.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from posteriori.design.columns import Columns
from posteriori.errors import NotLinearError, ParameterError
from posteriori.models.populations import Combination, Population
from posteriori.rows.changes import Changes, changed_table, set_to
from posteriori.rows.features import read_features
from posteriori.rows.frames import as_pickable, pick_rows
from posteriori.rows.tables import Table
from posteriori.typing import Array

_UNLIKE = 0.2
"""How unlike slopes over a small step and over twice that may be, as a share of the larger. Where
a probability is smooth they are alike to many digits; a jump makes them differ by half or more."""

_ROUNDING = 1e-6
"""What single precision may add to a probability, or take from it."""

_MOVED = 1e-3
"""A change of a probability that is one."""


@dataclass(eq=False)
class BlackBoxPopulation(Population):
    """The user's X, and a model with `predict_proba`.

    Slopes are exact where the probabilities are a softmax of linear activations with the weights
    (d, K) of the columns; otherwise they are taken by differences. `around` has the rows that this
    one is typical of.
    """

    X: Any
    table: Table
    model: Any
    weights: Array | None = None
    around: Population | None = None
    has_errors = False

    def typical(self) -> Population:
        one = pick_rows(as_pickable(self.X), np.zeros(1, dtype=np.intp))
        X = changed_table(one, read_features(one, self.schema), self._typical_changes())
        table = read_features(X, self.schema)
        return BlackBoxPopulation(X, table, self.model, self.weights, around=self)

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
            return np.stack([self._slope(j, changes) for j in columns], axis=1)
        p = self._probabilities(changes)
        positions = Columns(self.schema).positions
        weights = self.weights[[positions[j][0] for j in columns]]
        mean = p @ weights.T
        return _shown(p[:, None, :] * (weights - mean[:, :, None]))

    def _slope(self, column: int, changes: Changes) -> Array:
        """By differences (n, K)."""
        steps = (self.around or self).small_steps(column, changes)
        near = np.stack([self._probabilities(own) for _, own in steps])
        if _jumps(near) or self._stands_still(near, column, changes):
            raise ParameterError(
                f"The probabilities of {type(self.model).__name__} change in steps, so that they "
                "have no slopes.",
                "Use comparisons, with a change of your own.",
            )
        # Their factors add up to zero: so do terms that are equal, to the last bit.
        return _shown(np.tensordot([factor for factor, _ in steps], near - near[0], 1))

    def _stands_still(self, near: Array, column: int, changes: Changes) -> bool:
        """Whether most rows that another entry would move do not move at all over small steps."""
        still = (near == near[0]).all(axis=(0, 2))
        if not still.any():
            return False
        entry = (self.around or self).entry(column)
        low, high = (self._probabilities([*changes, set_to(column, x)]) for x in entry.apart)
        moved = (abs(high - low) > _MOVED).any(axis=1)
        return int((still & moved).sum()) > 0.5 * int(moved.sum())

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


def _jumps(near: Array) -> bool:
    """Whether slopes over a step are unlike those over twice that, row by row.

    `near` (4, n, K) has the probabilities a step up and down, and two steps up and down.
    """
    one, two = (near[0] - near[1]) / 2, (near[2] - near[3]) / 4
    unlike = float(abs(one - two).mean())
    return unlike > max(_ROUNDING, _UNLIKE * float(np.maximum(abs(one), abs(two)).mean()))


def _shown(values: Array) -> Array:
    """Of two classes the second alone (..., K)."""
    return values[..., 1:] if values.shape[-1] == 2 else values


def _alone(values: Array) -> Array:
    """Estimates without errors (..., 4)."""
    return np.stack([values, *[np.zeros_like(values)] * 3], axis=-1)
