"""Rivals that make the mean over the rows small want the prior divided by their number."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks.contender import imported
from benchmarks.problem import PRIOR


@dataclass(frozen=True)
class PerRow:
    """An unfitted estimator whose `alpha` waits for the data."""

    new: Callable[..., Any]

    def fit(self, X: Any, y: Any) -> Any:
        """The fitted estimator itself."""
        return self.new(alpha=PRIOR / len(y)).fit(X, y)


def per_row(path: str, /, **settings: Any) -> PerRow:
    """The estimator at a dotted path with the prior of all the problems."""
    return PerRow(partial(imported(path), **settings))
