"""From probabilities to actions: the least expected loss (1.5.2), and the reject option (1.5.3).

Conventions: n rows, K classes, A actions; probabilities p (n, K), losses L (K, A) or (n, K, A).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from posteriori.decision.loss import (
    Loss,
    LossLike,
    read_loss,
    read_reject_cost,
    reject_label,
)
from posteriori.decision.probabilities import Probabilities, Result, read_proba
from posteriori.errors import DecisionWarning, warn
from posteriori.rows.schema import listed
from posteriori.typing import Array, Codes, Labels

_TOLERANCE = 1e-9  # margins up to this size, in units of the largest, count as zero


# --- Actions that are never optimal -------------------------------------------------------------


@dataclass(frozen=True)
class ActionDominance:
    """Labels of actions that are `never` of least expected loss, whatever the probabilities.

    `never_rejects` if rejecting is possible, but never cheaper than the best action.
    """

    never: tuple[Any, ...] = ()
    never_rejects: bool = False

    def warn(self) -> None:
        """One warning that names all of this, if there is any."""
        parts = []
        if self.never:
            verb = "is" if len(self.never) == 1 else "are"
            parts.append(f"{listed(self.never)} {verb} never of least expected loss")
        if self.never_rejects:
            parts.append("rejecting is never cheaper than the best action")
        if parts:
            warn(
                DecisionWarning(
                    f"Whatever the probabilities, {'; '.join(parts)}.",
                    "Check the losses, or leave out the action.",
                )
            )


def find_dominance(
    loss: Array, labels: Sequence[Any], reject_cost: Array | None
) -> ActionDominance:
    """Of losses (K, A) that all rows share.

    Where rows have their own costs of rejecting, actions are judged without rejecting, and
    rejecting by the smallest cost.

    >>> find_dominance(np.array([[0, 1, 0.6], [1, 0, 0.6]]), ["a", "b", "c"], np.array(0.7))
    ActionDominance(never=('c',), never_rejects=True)
    """
    margins, never_rejects = optimal_margins(loss), False
    if reject_cost is not None and reject_cost.size:
        rejecting = np.full(len(loss), reject_cost.min())
        of_all = optimal_margins(np.column_stack([loss, rejecting]))
        never_rejects = bool(of_all[-1] <= _TOLERANCE)
        margins = margins if reject_cost.ndim else of_all[:-1]
    never = [label for label, t in zip(labels, margins, strict=True) if t < -_TOLERANCE]
    return ActionDominance(tuple(never), never_rejects)


def optimal_margins(loss: Array) -> Array:
    """For each action of the losses (K, A), how much better than all others it can be.

    With M_bk = L_kb - L_ka, action a is optimal at p if Mp ≥ 0. Its margin is the largest t with
    Mq ≥ t for some q ≥ 0, Σ q = 1: above zero if it is the only best action somewhere, zero if it
    is best only together with others, below zero if there is a better one everywhere. The losses in
    each class are scaled, which changes no sign.

    >>> np.sign(optimal_margins(np.array([[0.0, 1.0, 0.6], [1.0, 0.0, 0.6]])))
    array([ 1.,  1., -1.])
    """
    K, A = loss.shape
    if A == 1:
        return np.ones(1)
    size = abs(loss).max(axis=1, keepdims=True)
    loss = loss / np.where(size > 0, size, 1.0)
    first, second = np.partition(loss, 1, axis=1)[:, :2].T
    found = np.zeros(A)
    found[loss.argmin(axis=1)[second - first > _TOLERANCE]] = 1.0  # so that p there is one
    for a in np.flatnonzero(found == 0):
        M = np.delete(loss, a, axis=1).T - loss[:, [a]].T
        solution = linprog(
            np.append(np.zeros(K), -1.0),
            A_ub=np.column_stack([-M, np.ones(A - 1)]),
            b_ub=np.zeros(A - 1),
            A_eq=np.append(np.ones(K), 0.0)[None],
            b_eq=[1.0],
            bounds=[*[(0, None)] * K, (None, None)],
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        found[a] = -solution.fun
    return found


# --- Decisions ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Decisions(Result):
    """The action of least expected loss of each row.

    code : (n,) the place of the action among `actions`; -1 where the row is rejected.
    expected_loss : (n,) Σ_k p_k L_ka of the action chosen, or the cost of rejecting.
    actions : (A,) the labels of the actions.
    rejectable : whether rows may be rejected.
    reject_label : what stands for a rejected row: "reject" where actions are words, else None.
    threshold : of two classes and two actions, the probability of the second class at which the
        best action changes; None otherwise, and where rows have losses of their own.
    dominance : actions that are never the best choice, whatever the probabilities.
    """

    code: Codes
    expected_loss: Array
    actions: Labels
    rejectable: bool = False
    reject_label: str | None = None
    threshold: float | None = None
    dominance: ActionDominance = field(default_factory=ActionDominance)

    _columns = ("action", "expected_loss", "rejected")

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


def most_probable(activation: Array) -> Codes:
    """The class of largest posterior probability: the fewest errors (1.5.1).

    Activations serve as well as probabilities, being monotone in them; ties go to the first.
    """
    return activation.argmax(axis=1)


def decide(
    proba: Any,
    loss: LossLike = None,
    *,
    actions: Any = None,
    reject_cost: Any = None,
    classes: Any = None,
) -> Decisions:
    """The action of least expected loss for each row, from the probabilities of any classifier.

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

    If all rows have the same losses, a `DecisionWarning` names actions that are never optimal, and
    says so if rejecting never is.

    >>> loss = {"well": {"wait": 0, "treat": 3}, "ill": {"wait": 20, "treat": 1}}
    >>> found = decide([0.01, 0.2, 0.6], loss, classes=["well", "ill"], reject_cost=2.0)
    >>> found.action, found.expected_loss
    (array(['wait', 'reject', 'treat'], dtype='<U6'), array([0.2, 2. , 1.8]))
    >>> round(found.threshold, 4)  # 3/(3 + 19): treat where an illness is more probable
    0.1364

    A fraud costs the amount, a call costs five:

    >>> amount = np.array([10.0, 900.0])
    >>> loss = {0: {"pay": 0, "call": 5}, 1: {"pay": amount, "call": 5}}
    >>> decide([0.1, 0.1], loss).action
    array(['pay', 'call'], dtype='<U4')
    """
    given = read_proba(proba, classes)
    rule = read_rule(loss, given.classes, len(given.values), actions, reject_cost)
    found = rule.decide(given)
    found.dominance.warn()
    return found


def read_rule(
    loss: LossLike, classes: Labels, n_rows: int | None, actions: Any, reject_cost: Any
) -> "DecisionRule":
    """The rule as the user gave it; `n_rows` is None where rows may have no losses of their own."""
    losses = read_loss(loss, classes, n_rows, actions)
    cost = read_reject_cost(reject_cost, n_rows)
    label = None if cost is None else reject_label(losses.actions.tolist())
    return DecisionRule(losses, cost, label)


@dataclass(frozen=True, eq=False)
class DecisionRule:
    """Probabilities in, actions of least expected loss out.

    `reject_cost` is (), (n,), or None if no row may be rejected; `label` stands for rejecting.
    """

    loss: Loss
    reject_cost: Array | None = None
    label: str | None = None

    def decide(self, proba: Probabilities) -> Decisions:
        """The action of each row."""
        p, losses = proba.checked(), self.loss.values
        # Σ_k p_k L_ka of each action (1.81)
        costs = p @ losses if self.loss.shared else np.einsum("nk,nka->na", p, losses)
        # By the probabilities themselves where each error costs one: rounding parts no equal ones.
        code = most_probable(p) if self.loss.zero_one else costs.argmin(axis=1)
        least = np.take_along_axis(costs, code[:, None], axis=1)[:, 0]
        if self.reject_cost is not None:
            code = np.where(self.reject_cost < least, -1, code)
            least = np.minimum(least, self.reject_cost)
        return Decisions(
            code,
            least,
            self.loss.actions,
            self.reject_cost is not None,
            self.label,
            self.threshold,
            self.dominance,
        )

    @property
    def threshold(self) -> float | None:
        """The probability of the second of two classes at which the best of two actions changes.

        With the regrets c_0 = L_01 - L_00 and c_1 = L_10 - L_11 it is c_0/(c_0 + c_1), and there
        is none where these have different signs.
        """
        if self.loss.values.shape != (2, 2):
            return None
        (a, b), (c, d) = self.loss.values
        first, second = b - a, c - d
        if first * second < 0 or first == second == 0:
            return None
        return float(first / (first + second))

    @cached_property
    def dominance(self) -> ActionDominance:
        """What is never chosen, by losses that all rows share."""
        if not self.loss.shared:
            return ActionDominance()
        return find_dominance(self.loss.values, self.loss.actions.tolist(), self.reject_cost)

    def losses_of(self, code: Codes, true: Codes) -> Array:
        """What decisions cost in the true classes, (n,), by losses that all rows share."""
        losses = self.loss.values[true, code]
        return losses if self.reject_cost is None else np.where(code < 0, self.reject_cost, losses)
