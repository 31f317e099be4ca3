"""From probabilities to actions: the least expected loss (1.5.2), and the reject option (1.5.3).

Conventions: n rows, K classes, A actions; probabilities p (n, K), losses L (K, A) or (n, K, A).

Action a is optimal at p if Σ_k p_k (L_kb - L_ka) ≥ 0 for every other action b. The largest t with
Mq ≥ t for some q ≥ 0, Σ q = 1, where M_bk = L_kb - L_ka, is above zero if a is better than all
others somewhere, zero if it is never more than as good as another, and below zero if it is worse
everywhere. Rows and columns of M may be multiplied by positive numbers: the sign of t stays.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from posteriori.decision.loss import (
    LARGEST_LOSS,
    Loss,
    LossLike,
    read_loss,
    read_reject_cost,
    reject_label,
)
from posteriori.decision.probabilities import Probabilities, read_proba
from posteriori.errors import DecisionWarning, warn
from posteriori.rows.in_memory import SERIAL_ENTRIES
from posteriori.rows.threads import map_in_order
from posteriori.typing import Array, Codes, Labels

_TOLERANCE = 1e-9
"""Margins, in units of the largest, that count as none."""

_SWEEPS = 8


def best_signs(loss: Array) -> tuple[int, ...]:
    """For each action of the losses (K, A): 1 if best somewhere, 0 if only with another, else -1.

    >>> best_signs(np.array([[0.0, 1.0, 0.6], [1.0, 0.0, 0.6]]))
    (1, 1, -1)
    """
    return _best_signs(loss.tobytes(), loss.shape)


@lru_cache(maxsize=128)
def _best_signs(data: bytes, shape: tuple[int, int]) -> tuple[int, ...]:
    loss = np.frombuffer(data).reshape(shape)
    if shape[1] == 1:
        return (1,)
    plain = _plainly_best(loss)
    return tuple(1 if a in plain else _sign(loss, a) for a in range(shape[1]))


def _plainly_best(loss: Array) -> set[int]:
    """Actions that are the best by far in a class, or if all are equally probable.

    No program is needed for them.
    """
    costs = np.vstack([loss, loss.mean(axis=0)])
    first, second = np.partition(costs, 1, axis=1)[:, :2].T
    clear = second - first > _TOLERANCE * abs(costs).max(axis=1)
    return set(costs.argmin(axis=1)[clear].tolist())


def _sign(loss: Array, a: int) -> int:
    others = np.delete(loss, a, axis=1).T - loss[:, a]
    margin = _largest_margin(_balanced(others))
    return 0 if abs(margin) <= _TOLERANCE else int(np.sign(margin))


def _balanced(M: Array) -> Array:
    """M with rows and columns multiplied so that the largest of each is one in size."""
    for _ in range(_SWEEPS):
        for axis in (1, 0):
            size = abs(M).max(axis=axis, keepdims=True)
            M = M / np.where(size > 0, size, 1.0)
    return M


def _largest_margin(M: Array) -> float:
    """The largest t with Mq ≥ t for some q on the simplex."""
    n_others, K = M.shape
    found = linprog(
        np.append(np.zeros(K), -1.0),
        A_ub=np.column_stack([-M, np.ones(n_others)]),
        b_ub=np.zeros(n_others),
        A_eq=np.append(np.ones(K), 0.0)[None],
        b_eq=[1.0],
        bounds=[*[(0, None)] * K, (-1, 1)],
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    return float(-found.fun)


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
