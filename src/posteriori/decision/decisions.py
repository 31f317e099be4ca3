"""What was decided for each row, and what it is expected to cost."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posteriori.decision.standing import Standing
from posteriori.typing import Array, Codes, Labels


@dataclass(frozen=True, eq=False, repr=False)
class Decisions:
    """The action of least expected loss of each row.

    code : (n,) the place of the action among `actions`; -1 where the row is rejected.
    expected_loss : (n,) Σ_k p_k L_ka of the action chosen, or the cost of rejecting.
    actions : (A,) the labels of the actions.
    rejectable : whether rows may be rejected.
    reject_label : what stands for a rejected row: "reject" where actions are words, else None.
    standing : what is never the best choice, whatever the probabilities (also `never`).
    """

    code: Codes
    expected_loss: Array
    actions: Labels
    rejectable: bool = False
    reject_label: str | None = None
    standing: Standing = field(default_factory=Standing)

    @cached_property
    def action(self) -> Labels:
        """The label of the action chosen, (n,), or `reject_label`.

        Of the type of `actions`; of Python objects where None may be among numbers.
        """
        return choices(self.actions, self.rejectable, self.reject_label)[self.code]

    @cached_property
    def rejected(self) -> NDArray[np.bool_]:
        """Whether each row is rejected, (n,)."""
        return self.code < 0

    @property
    def never(self) -> tuple[Any, ...]:
        """Labels of the actions that are never of least expected loss, whatever the row."""
        return self.standing.never

    def __len__(self) -> int:
        return len(self.code)

    def __repr__(self) -> str:
        count = np.bincount(self.code + 1, minlength=len(self.actions) + 1).tolist()
        parts = [
            f"{label!r}: {n}" for label, n in zip(self.actions.tolist(), count[1:], strict=True)
        ]
        shown = ", ".join([*parts[:6], "..."] if len(parts) > 6 else parts)
        rejects = f", rejected: {count[0]}" if self.rejectable else ""
        mean = f"; mean expected loss {self.expected_loss.mean():.6g}" if len(self) else ""
        return f"Decisions({shown}{rejects}{mean})"


def choices(actions: Labels, rejectable: bool, label: str | None) -> Labels:
    """The labels of all choices; rejecting, if it is one, is the last.

    >>> choices(np.array([3, 7]), True, None)
    array([3, 7, None], dtype=object)
    """
    if not rejectable:
        return actions
    if label is None or actions.dtype.kind == "O":
        return np.append(actions.astype(object), np.array([label], dtype=object))
    return np.append(actions, label)
