"""What a rule never chooses, and saying so."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from posteriori.decision.optimal import best_signs
from posteriori.errors import DecisionWarning, warn
from posteriori.typing import Array, Codes

_ROWS = 4096
"""Rows with losses of their own that are looked at together."""


@dataclass(frozen=True)
class Standing:
    """Labels of actions that are never best, or best only together with another.

    `never_rejects` if rejecting is possible, but never cheaper than the best action.
    """

    never: tuple[Any, ...] = ()
    tied: tuple[Any, ...] = ()
    never_rejects: bool = False

    def warn(self) -> None:
        """One warning that names all of this, if there is any."""
        said = [
            f"{_listed(self.never)} never of least expected loss" if self.never else "",
            f"{_listed(self.tied)} at best as good as another choice" if self.tied else "",
            "rejecting is never cheaper than the best action" if self.never_rejects else "",
        ]
        if any(said):
            warn(
                DecisionWarning(
                    f"Whatever the probabilities, {'; '.join(filter(None, said))}.",
                    "Look at the losses; leave out what cannot be chosen.",
                )
            )


def standing_of(loss: Array, labels: Sequence[Any], reject_cost: Array | None) -> Standing:
    """Of losses (K, A) that all rows share.

    Where rejecting costs more in some rows than in others, actions are judged by the most that it
    costs, rejecting by the least.

    >>> standing_of(np.array([[0, 1, 0.6], [1, 0, 0.6]]), ["a", "b", "c"], np.array(0.7))
    Standing(never=('c',), tied=(), never_rejects=True)
    """
    if reject_cost is None:
        return _of_signs(best_signs(loss), labels)
    if not reject_cost.size:
        return Standing()
    signs = best_signs(_beside(loss, reject_cost.max()))[:-1]
    rejecting = best_signs(_beside(loss, reject_cost.min()))[-1]
    return _of_signs(signs, labels, rejecting <= 0)


def standing_of_rows(
    loss: Array, labels: Sequence[Any], reject_cost: Array | None, code: Codes
) -> Standing:
    """Of losses (n, K, A) of each row's own, by what is plain: an action that was not chosen, and
    in every row is worse than another one in every class; or rejecting, if in every row some action
    costs no more in any class.
    """
    if not len(code):
        return Standing()
    unused = np.flatnonzero(np.bincount(code + 1, minlength=len(labels) + 1)[1:] == 0)
    never = [labels[a] for a in unused.tolist() if _worse_in_every_row(loss, a)]
    if reject_cost is None or (code < 0).any():
        return Standing(tuple(never))
    costs = np.broadcast_to(reject_cost, len(code))
    needless = all(
        (loss[rows].max(axis=1).min(axis=1) <= costs[rows]).all() for rows in _blocks(len(loss))
    )
    return Standing(tuple(never), never_rejects=needless)


def _of_signs(signs: Sequence[int], labels: Sequence[Any], never_rejects: bool = False) -> Standing:
    never, tied = (
        tuple(label for label, own in zip(labels, signs, strict=True) if own == sign)
        for sign in (-1, 0)
    )
    return Standing(never, tied, never_rejects)


def _beside(loss: Array, cost: float) -> Array:
    """The losses with rejecting as one more action."""
    return np.column_stack([loss, np.full(len(loss), cost)])


def _worse_in_every_row(loss: Array, a: int) -> bool:
    return all(_worse(loss[rows], a) for rows in _blocks(len(loss)))


def _worse(loss: Array, a: int) -> bool:
    better = np.all(loss < loss[:, :, a : a + 1], axis=1)
    return bool(np.any(better, axis=1).all())


def _blocks(n_rows: int) -> list[slice]:
    return [slice(low, low + _ROWS) for low in range(0, n_rows, _ROWS)]


def _listed(labels: Sequence[Any]) -> str:
    """Labels with their verb: 'a' is; 'a', 'b' are."""
    names = ", ".join(map(repr, labels[:8])) + ", ..." * (len(labels) > 8)
    return f"{names} {'is' if len(labels) == 1 else 'are'}"
