"""The ends of the activations: beyond them a target has no likelihood."""

from dataclasses import dataclass

import numpy as np

from posteriori.typing import Array


@dataclass(frozen=True)
class Domain:
    """Activations from `low` to `high`.

    With `by_label` the ends are those of a bounded threshold (4.113), and bind only the labels that
    they make impossible: below `low` no row can be of the second class, above `high` none of the
    first.

    >>> Domain(0.0, 1.0, by_label=True).ends(np.array([1.0, 0.0]))
    (array([  0., -inf]), array([inf,  1.]))
    """

    low: float = -np.inf
    high: float = np.inf
    by_label: bool = False

    @property
    def is_bounded(self) -> bool:
        """Whether there are ends at all."""
        return self.low > -np.inf or self.high < np.inf

    @property
    def words(self) -> str:
        """Where it lies.

        >>> Domain(0.0).words, Domain(high=0.0).words, Domain(0.0, 1.0).words
        ('above zero', 'below zero', 'from zero to 1')
        """
        low, high = (f"{end:g}" if end else "zero" for end in (self.low, self.high))
        if np.isinf(self.high):
            return f"above {low}"
        return f"below {high}" if np.isinf(self.low) else f"from {low} to {high}"

    def ends(self, t: Array) -> tuple[Array, Array]:
        """The activations between which each target is possible (n,), (n,)."""
        if not self.by_label:
            return np.full(len(t), self.low), np.full(len(t), self.high)
        return np.where(t > 0, self.low, -np.inf), np.where(t < 1, self.high, np.inf)
