"""What decisions cost, and what they would cost were the least sure rows rejected: plain values.

Conventions: n rows, K classes, A actions; losses (K, A), or (n, K, A) where rows have their own.
"""

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from posteriori.decision.decisions import Decisions
from posteriori.decision.labelled import read_labelled
from posteriori.decision.loss import Loss, read_loss, read_reject_cost
from posteriori.errors import LabelError, ParameterError, ShapeError
from posteriori.rows.categories import is_missing
from posteriori.rows.target import as_vector, read_target
from posteriori.typing import Array, Codes, Labels

REJECT = "reject"
"""What stands for a rejected row; None and NaN do so too."""


_ROUNDING = 8 * np.finfo(np.float64).eps
"""Expected losses that differ by less than this share of the largest are the same."""


@dataclass(frozen=True, eq=False)
class Rejection:
    """What is left as more and more rows are rejected, the least sure first (m points).

    `rejected` is their share, from 0 to 1; rows that are equally sure go together. `error` and
    `loss` are the rate of errors and the mean loss among the rows kept, (m - 1,), as at the last
    point there are none; `error` is None where actions are no classes. `cost` (m,) is the mean over
    all rows of the loss or the cost of rejecting, None without the latter; `by_rule` the share of
    rows whose expected loss is above that cost.
    """

    rejected: Array
    error: Array | None
    loss: Array
    cost: Array | None
    by_rule: float | None


@dataclass(frozen=True, eq=False)
class Confusion:
    """Numbers of rows and, if there is a loss, their total costs, by class and action (K, A)."""

    classes: tuple[Any, ...]
    actions: tuple[Any, ...]
    count: Array
    cost: Array | None

    @property
    def share(self) -> Array:
        """The share of each action among the rows of a class; zero for a class without rows."""
        total = self.count.sum(axis=1, keepdims=True)
        return np.divide(self.count, total, out=np.zeros_like(self.count), where=total > 0)


def rejection(
    y: Any, proba: Any, loss: Any = None, reject_cost: Any = None, classes: Any = None
) -> Rejection:
    """The curve of rows that are decided by least expected loss; the surest of them are kept."""
    rows = read_labelled(y, proba, classes)
    n = len(rows.codes)
    found = read_loss(loss, rows.classes, n)
    losses = found.values
    expected = np.einsum("nk,ka->na" if found.shared else "nk,nka->na", rows.probability, losses)
    action = expected.argmin(axis=1)
    incurred = _own(losses, rows.codes, action)
    price = read_reject_cost(reject_cost, n)
    excess = expected.min(axis=1) - (0.0 if price is None else price)
    kept, last = _kept_first(excess)
    return Rejection(
        1 - last / n,
        _errors(found, rows.classes, rows.codes, action, kept, last),
        _sums(incurred[kept])[last][:-1] / last[:-1],
        None if price is None else _cost(incurred[kept], np.broadcast_to(price, n)[kept], last),
        None if price is None else float((excess > 0).mean()),
    )


def confusion_of(
    y: Any, decided: Any, loss: Any = None, reject_cost: Any = None, classes: Any = None
) -> Confusion:
    """Classes that occurred against actions that were decided on."""
    labels = as_vector(y)
    n = len(labels) if labels.ndim else 0
    if not n:
        raise ShapeError("y has no rows.", "Pass one label a row, and at least one.")
    given = None if classes is None else np.atleast_1d(as_vector(classes))
    order, target = read_target(y, n, known=given)
    if target.ndim != 1:
        raise LabelError("y has a column a class.", "Pass one label a row.")
    codes = cast(Codes, target)
    chosen = _decided(decided, n)
    place = {label: k for k, label in enumerate(order.tolist())}
    if loss is None and reject_cost is None:
        actions = (*order.tolist(), *dict.fromkeys(a for a in chosen if a not in place))
        return Confusion(
            tuple(order.tolist()), actions, _table(codes, chosen, len(order), actions), None
        )
    found = read_loss(loss, order, n)
    return _with_costs(found, read_reject_cost(reject_cost, n), order, codes, chosen)


def _with_costs(
    found: Loss, price: Array | None, classes: Labels, codes: Codes, chosen: list[Any]
) -> Confusion:
    actions = tuple(found.actions.tolist()) + ((REJECT,) if price is not None else ())
    unknown = [action for action in chosen if action not in actions]
    if unknown:
        raise ParameterError(
            f"decided has {unknown[0]!r}, which the loss says nothing of.",
            f"Use the actions {list(actions[:8])}, and pass reject_cost= if rows were rejected.",
        )
    at = np.array([actions.index(action) for action in chosen], dtype=np.intp)
    decided = at < len(found.actions)
    cost = np.zeros(len(at)) if price is None else np.broadcast_to(price, at.shape).copy()
    losses = found.values if found.shared else found.values[decided]
    cost[decided] = _own(losses, codes[decided], at[decided])
    K = len(classes)
    return Confusion(
        tuple(classes.tolist()),
        actions,
        _table(codes, chosen, K, actions),
        _table(codes, chosen, K, actions, cost),
    )


def _decided(decided: Any, n: int) -> list[Any]:
    chosen = as_vector(decided.action if isinstance(decided, Decisions) else decided)
    if chosen.shape != (n,):
        raise ShapeError(
            f"decided has shape {chosen.shape} for {n} rows.", "Pass one action a row."
        )
    return [REJECT if is_missing(action) else action for action in chosen.tolist()]


def _table(
    codes: Codes, chosen: list[Any], K: int, actions: tuple[Any, ...], weight: Array | None = None
) -> Array:
    """Sums of weights, or numbers of rows, by class and action (K, A)."""
    place = {action: a for a, action in enumerate(actions)}
    cells = codes * len(actions) + np.array([place[action] for action in chosen], dtype=np.intp)
    sums = np.bincount(cells, weight, K * len(actions))
    return sums.astype(np.float64).reshape(K, len(actions))


def _own(losses: Array, codes: Codes, action: Codes) -> Array:
    """The loss of each row (n,), given its class and its action."""
    if losses.ndim == 2:
        return losses[codes, action]
    return losses[np.arange(len(codes)), codes, action]


def _kept_first(excess: Array) -> tuple[Codes, Codes]:
    """The rows, those to keep longest first; and how many are kept at each point, from n to 0."""
    order = np.argsort(excess, kind="stable")
    apart = np.diff(excess[order]) > _ROUNDING * abs(excess).max()
    ends = np.flatnonzero(apart) + 1
    return order, np.concatenate([[len(order)], ends[::-1], [0]])


def _sums(values: Array) -> Array:
    """The sums of the first 0, 1, ..., n values."""
    return np.concatenate([[0.0], np.cumsum(values)])


def _cost(incurred: Array, price: Array, last: Codes) -> Array:
    paid = _sums(price[::-1])[len(price) - last]
    return (_sums(incurred)[last] + paid) / len(price)


def _errors(
    found: Loss, classes: Labels, codes: Codes, action: Codes, kept: Codes, last: Codes
) -> Array | None:
    if set(found.actions.tolist()) != set(classes.tolist()):
        return None
    place = {label: k for k, label in enumerate(classes.tolist())}
    meant = np.array([place[label] for label in found.actions.tolist()], dtype=np.intp)
    wrong = (meant[action] != codes).astype(np.float64)
    return _sums(wrong[kept])[last][:-1] / last[:-1]
