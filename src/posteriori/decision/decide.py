"""From probabilities to actions: the least expected loss (1.5.2), and the reject option (1.5.3).

Conventions: n rows, K classes, A actions; probabilities p (n, K), losses L (K, A) or (n, K, A).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from posteriori.decision.loss import Loss, LossLike, read_loss, read_reject_cost
from posteriori.decision.probabilities import Result, read_proba
from posteriori.errors import DecisionWarning, ParameterError, warn
from posteriori.rows.schema import listed
from posteriori.typing import Array, Codes, Labels

_TOLERANCE = 1e-9  # margins up to this size, in units of the largest, count as zero


@dataclass(frozen=True, eq=False, repr=False)
class Decisions(Result):
    """The action of least expected loss of each row.

    code : (n,) the position of the action in `actions`; -1 where the row is rejected.
    expected_loss : (n,) Σ_k p_k L_ka of the action chosen, or the cost of rejecting.
    actions : (A,) the labels of the actions.
    choices : (A,) or (A + 1,), the labels of the actions and of rejecting, if rows may be rejected:
        "reject" where actions are words, else None.
    threshold : of two classes and two actions, the probability of the second class at which the
        best action changes; None otherwise, and where rows have losses of their own.
    """

    code: Codes
    expected_loss: Array
    actions: Labels
    choices: Labels
    threshold: float | None = None

    _columns = ("action", "expected_loss", "rejected")

    @property
    def action(self) -> Labels:
        """The label of the action chosen, (n,), or that of rejecting."""
        return self.choices[self.code]

    @property
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
        rejects = f", rejected: {count[0]}" if len(self.choices) > len(self.actions) else ""
        mean = f"; mean expected loss {self.expected_loss.mean():.6g}" if len(self) else ""
        return f"Decisions({shown}{rejects}{mean})"


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
        where a loss may be a vector with one number a row; (n, K, A); or None: an error costs one.
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
    rule.warn_of_dominated()
    return rule.decide(given.values)


def most_probable(activation: Array) -> Codes:
    """The class of largest posterior probability: the fewest errors (1.5.1).

    Activations serve as well as probabilities, being monotone in them; ties go to the first.
    """
    return activation.argmax(axis=1)


# --- The rule -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class DecisionRule:
    """Probabilities in, actions of least expected loss out.

    `reject_cost` is (), (n,), or None if no row may be rejected; `choices` are the labels of the
    actions and of rejecting.
    """

    loss: Loss
    reject_cost: Array | None
    choices: Labels

    def decide(self, p: Array) -> Decisions:
        """The action of each row, from its probabilities."""
        losses = self.loss.values
        # Σ_k p_k L_ka of each action (1.81)
        costs = p @ losses if self.loss.shared else np.einsum("nk,nka->na", p, losses)
        # By the probabilities where each error costs one, so that rounding does not break ties.
        code = most_probable(p) if self.loss.zero_one else costs.argmin(axis=1)
        least = np.take_along_axis(costs, code[:, None], axis=1)[:, 0]
        if self.reject_cost is not None:
            code = np.where(self.reject_cost < least, -1, code)
            least = np.minimum(least, self.reject_cost)
        return Decisions(code, least, self.loss.actions, self.choices, self.threshold)

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

    def warn_of_dominated(self) -> None:
        """Warn of actions that no probabilities make the best, where rows share their losses.

        Where rows have costs of rejecting of their own, actions are compared with the largest, and
        rejecting is judged by the smallest.
        """
        if not self.loss.shared:
            return
        loss, labels, cost, parts = self.loss.values, self.loss.actions.tolist(), None, []
        if self.reject_cost is not None and self.reject_cost.size:
            cost = np.broadcast_to(self.reject_cost, (len(loss), 1, self.reject_cost.size))
        table = loss if cost is None else np.column_stack([loss, cost.max(axis=2)])
        never = [label for a, label in enumerate(labels) if optimal_margin(table, a) < -_TOLERANCE]
        if never:
            verb = "is" if len(never) == 1 else "are"
            parts.append(f"{listed(never)} {verb} never of least expected loss")
        if cost is not None:
            table = np.column_stack([cost.min(axis=2), loss])
            if optimal_margin(table, 0) <= _TOLERANCE:
                parts.append("rejecting is never cheaper than the best action")
        if parts:
            warn(
                DecisionWarning(
                    f"Whatever the probabilities, {'; '.join(parts)}.",
                    "Check the losses, or leave out the action.",
                )
            )


def read_rule(
    loss: LossLike, classes: Labels, n_rows: int | None, actions: Any, reject_cost: Any
) -> DecisionRule:
    """The rule as the user gave it; `n_rows` is None where rows may have no losses of their own."""
    losses = read_loss(loss, classes, n_rows, actions)
    cost = read_reject_cost(reject_cost, n_rows)
    if cost is None:
        return DecisionRule(losses, cost, losses.actions)
    labels = losses.actions.tolist()
    if "reject" in labels:
        raise ParameterError(
            "An action is called 'reject', as rejecting itself is.",
            "Give the action another name, or leave reject_cost out.",
        )
    words = all(isinstance(label, str) for label in labels)
    return DecisionRule(losses, cost, with_label(losses.actions, "reject" if words else None))


def with_label(labels: Labels, label: Any) -> Labels:
    """The labels and one more; an array of objects if its type is another than the labels'.

    >>> with_label(np.array(["a", "b"]), "new"), with_label(np.array([1, 2]), None)
    (array(['a', 'b', 'new'], dtype='<U3'), array([1, 2, None], dtype=object))
    """
    one = np.empty(1, dtype=object)
    one[0] = label
    if np.isscalar(label):
        plain = np.array([label])
        if plain.dtype.kind in {"f": "fiu"}.get(labels.dtype.kind, labels.dtype.kind):
            return np.concatenate([labels, plain])
    return np.concatenate([labels.astype(object), one])


def optimal_margin(loss: Array, a: int) -> float:
    """How much better than all other actions of the losses (K, A) action a can be.

    With M_kb = L_kb - L_ka, action a is optimal at p if Mᵀp ≥ 0. Its margin is the largest t with
    Mᵀq ≥ t for some q ≥ 0, Σ q = 1: positive if it is the only best action somewhere, zero if it
    is best only together with others, negative if there is a better one everywhere. M is scaled in
    each class, which changes no sign.

    >>> [round(optimal_margin(np.array([[0.0, 1.0, 0.6], [1.0, 0.0, 0.6]]), a), 2) for a in (0, 2)]
    [1.0, -0.17]
    """
    M = np.delete(loss, a, axis=1) - loss[:, [a]]
    if M.shape[1] == 0:
        return 1.0
    size = abs(M).max(axis=1, keepdims=True)
    M = M / np.where(size > 0, size, 1.0)
    if (M.min(axis=1) > _TOLERANCE).any():
        return 1.0  # the best where this class is certain
    solution = linprog(
        np.append(np.zeros(len(M)), -1.0),
        A_ub=np.column_stack([-M.T, np.ones(M.shape[1])]),
        b_ub=np.zeros(M.shape[1]),
        A_eq=np.append(np.ones(len(M)), 0.0)[None],
        b_eq=[1.0],
        bounds=[*[(0, None)] * len(M), (None, None)],
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    return -float(solution.fun)
