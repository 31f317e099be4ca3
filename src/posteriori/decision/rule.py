"""From probabilities to actions: the least expected loss (1.5.2), and the reject option (1.5.3).

Conventions: n rows, K classes, A actions; probabilities p (n, K), losses L (K, A) or (n, K, A).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from posteriori.decision.decisions import Decisions
from posteriori.decision.loss import (
    LARGEST_LOSS,
    Loss,
    LossLike,
    read_loss,
    read_reject_cost,
    reject_label,
)
from posteriori.decision.probabilities import Probabilities, read_proba
from posteriori.decision.standing import Standing, standing_of, standing_of_rows
from posteriori.rows.in_memory import SERIAL_ENTRIES
from posteriori.rows.threads import map_in_order
from posteriori.typing import Array, Codes, Labels

_BLOCK_ENTRIES = 2**17
"""Probabilities, losses or expected losses a block: a MiB of doubles each."""


def most_probable(activation: Array) -> Codes:
    """The class of largest posterior probability: the fewest errors (1.5.1).

    Activations serve as well as probabilities, being monotone in them; ties go to the first.
    """
    return activation.argmax(axis=1)


def decide(
    proba: Any,
    loss: LossLike,
    *,
    actions: Any = None,
    reject_cost: Any = None,
    classes: Any = None,
) -> Decisions:
    """The action of least expected loss for each row, whoever computed the probabilities.

    The expected loss of action a is Σ_k p_k L_ka (1.81); a row is rejected where the least of them
    is above `reject_cost`. Ties go to the first action, and to an action rather than to rejecting.

    proba : (n, K), a data frame with a column a class, or (n,) for the second of two classes.
    loss : (K, A); a data frame with a row a class and a column an action; {class: {action: loss}},
        where a loss may be a vector with one number a row; (n, K, A), of which n or K may be 1; or
        None: an error costs one.
    actions : labels of the actions; by default those that `loss` names, else the classes if there
        are as many actions, else 0, 1, ...
    reject_cost : a number, or one a row; None if no row may be rejected.
    classes : labels of the columns of proba; by default their names, else 0, 1, ...

    A `DecisionWarning` names actions that are best for no probabilities, and says so if rejecting
    is. Where rows have losses of their own, these are the ones that in every row are worse than
    another action in every class.

    >>> loss = {"well": {"wait": 0, "treat": 3}, "ill": {"wait": 20, "treat": 1}}
    >>> found = decide([0.01, 0.2, 0.6], loss, classes=["well", "ill"], reject_cost=2.0)
    >>> found.action, found.expected_loss
    (array(['wait', 'reject', 'treat'], dtype='<U6'), array([0.2, 2. , 1.8]))

    A fraud costs the amount, a call costs five:

    >>> amount = np.array([10.0, 900.0])
    >>> loss = {0: {"pay": 0, "call": 5}, 1: {"pay": amount, "call": 5}}
    >>> decide([0.1, 0.1], loss).action
    array(['pay', 'call'], dtype='<U4')
    """
    given = read_proba(proba, classes)
    rule = read_rule(loss, given.classes, len(given.values), actions, reject_cost)
    found = rule.decide(given)
    found.standing.warn()
    return found


def read_rule(
    loss: LossLike, classes: Labels, n_rows: int | None, actions: Any, reject_cost: Any
) -> "DecisionRule":
    """The rule as the user gave it; `n_rows` is None where rows may have no losses of their own."""
    losses = read_loss(loss, classes, n_rows, actions)
    cost = read_reject_cost(reject_cost, n_rows)
    label = None if cost is None else reject_label(losses.actions.tolist())
    return DecisionRule(losses, classes, cost, label)


@dataclass(frozen=True, eq=False)
class DecisionRule:
    """Probabilities in, actions of least expected loss out.

    `reject_cost` is (), (n,), or None if no row may be rejected; `label` stands for rejecting.
    """

    loss: Loss
    classes: Labels
    reject_cost: Array | None = None
    label: str | None = None

    def decide(self, proba: Probabilities) -> Decisions:
        """The action of each row, found block by block."""
        n, K = proba.values.shape
        code, least = np.empty(n, dtype=np.intp), np.empty(n)

        def write(rows: slice) -> None:
            p = np.ascontiguousarray(proba.values[rows], dtype=np.float64)
            proba.check(p, p @ np.ones(K), rows.start)
            code[rows], least[rows] = self._decide(p, rows)

        entries = max(K, math.prod(self.loss.values.shape[-1 if self.loss.shared else -2 :]))
        _for_blocks(write, n, entries)
        rejectable = self.reject_cost is not None
        return Decisions(
            code, least, self.loss.actions, rejectable, self.label, self.standing(code)
        )

    def losses_of(self, code: Codes, true: Codes) -> Array:
        """What decisions cost in the true classes, (n,), by losses that all rows share."""
        losses = self.loss.values[true, code]
        return losses if self.reject_cost is None else np.where(code < 0, self.reject_cost, losses)

    def standing(self, code: Codes | None = None) -> Standing:
        """What is never chosen; `code` are the choices made, if rows have losses of their own."""
        labels = self.loss.actions.tolist()
        if self.loss.shared or code is None:
            return standing_of(self.loss.values, labels, self.reject_cost)
        return standing_of_rows(self.loss.values, labels, self.reject_cost, code)

    def _decide(self, p: Array, rows: slice) -> tuple[Codes, Array]:
        costs = self._expected(p, rows)
        if self.loss.zero_one:
            # By the probabilities themselves: no rounding decides between those that are equal.
            code = most_probable(p)
            least = costs[code, np.arange(len(code))]
        else:
            code, least = _least(costs)
        if self.reject_cost is not None:
            cost = self.reject_cost[rows] if self.reject_cost.ndim else self.reject_cost
            np.copyto(code, -1, where=cost < least)
            np.minimum(least, cost, out=least)
        return code, least

    def _expected(self, p: Array, rows: slice) -> Array:
        """Σ_k p_k L_ka of each action, (A, rows) (1.81)."""
        if self.loss.shared:
            return self.loss.values.T @ p.T
        own = self.loss.values[rows]
        with np.errstate(invalid="ignore", over="ignore"):
            costs: Array = np.einsum("nk,nka->an", p, own)
            total = costs.sum()
        if not abs(total) <= LARGEST_LOSS:
            self.loss.check(own, self.classes, rows.start)
        return costs


def _for_blocks(task: Callable[[slice], None], n_rows: int, entries: int) -> None:
    """Do blocks of rows with so many numbers each; by threads, if there are many."""
    size = max(1, _BLOCK_ENTRIES // entries)
    blocks = [slice(low, min(low + size, n_rows)) for low in range(0, n_rows, size)]
    if n_rows * entries >= SERIAL_ENTRIES:
        map_in_order(task, blocks)
        return
    for block in blocks:
        task(block)


def _least(costs: Array) -> tuple[Codes, Array]:
    """Which of the costs (A, rows) is least, and how much that is; the first of equals."""
    code, least = np.zeros(costs.shape[1], dtype=np.intp), costs[0].copy()
    for a, cost in enumerate(costs[1:], start=1):
        np.copyto(code, a, where=cost < least)
        np.minimum(least, cost, out=least)
    return code, least
