"""What decisions cost, as numbers and pictures: rejection and confusion (extra `plots`).

Conventions: n rows, K classes, A actions; losses (K, A), or (n, K, A) where rows have their own.
"""

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D

from posteriori.decision.decide import Decisions
from posteriori.decision.loss import Loss, read_loss, read_reject_cost
from posteriori.decision.probabilities import read_labelled
from posteriori.errors import LabelError, ParameterError, ShapeError
from posteriori.report.palette import BLUE, GREY, VERMILION, legend_above, new_axes, tinted
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


_FEW = 25
"""With fewer points than this, each has a marker."""

_NAVY = "#004B75"
_DARK = 0.18
"""The luminance below which white text has more contrast than black text."""


def reject_curve(
    y: Any,
    proba: Any,
    *,
    loss: Any = None,
    reject_cost: Any = None,
    classes: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw errors and costs against the share of rows that are rejected, the least sure first.

    Each row is decided by its least expected loss min_a Σ_k p_k L_ka, and the rows where that is
    largest are rejected first (for one cost of all errors, those whose largest probability is
    smallest); rows that are equally sure go together. Drawn are the rate of errors among the rows
    kept and, on the right, with `reject_cost` the mean over all rows of the loss or that cost; with
    `loss` alone the mean loss of the rows kept. The dotted line is where a row is rejected if its
    expected loss is above the cost (Chow, 1970).

    `loss` is a matrix with a row a class, in the order of `classes` (by default sorted), and a
    column an action, or what else `decide` takes; by default every error costs one. Gives the Axes
    of the errors, or of the losses where actions are no classes.

    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> ax = reject_curve([0, 0, 1, 1], [0.1, 0.6, 0.7, 0.9])
    >>> ax.get_lines()[0].get_xydata()
    array([[0.  , 0.25],
           [0.25, 0.  ],
           [0.5 , 0.  ]])
    """
    found = rejection(y, proba, loss, reject_cost, classes)
    axes = new_axes(ax)
    lines = _draw_rejection(axes, found, with_loss=loss is not None)
    if found.by_rule is not None:
        told = "rejected by the rule"
        lines.append(axes.axvline(found.by_rule, color=GREY, linestyle=":", label=told))
    axes.set_xlim(0, 1)
    axes.set_xlabel("share of rows rejected")
    legend_above(axes, lines)
    return axes


def confusion(
    y: Any,
    decided: Any,
    *,
    loss: Any = None,
    reject_cost: Any = None,
    classes: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw how many rows of each class were decided how; the darker, the larger their share.

    `decided` is an action a row: a class, an action of `loss`, or a rejection ("reject", None or
    NaN). With `loss` or `reject_cost`, each cell has the total cost of its rows beneath their
    number, and the title that of all. `loss` is as in `reject_curve`; without it, but with
    `reject_cost`, every error costs one. Gives the Axes.

    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> ax = confusion(["no", "no", "yes"], ["no", "yes", "yes"], loss=[[0, 5], [1, 0]])
    >>> [text.get_text() for text in ax.texts], ax.get_title()
    (['1\\ncost 0', '1\\ncost 5', '0\\ncost 0', '1\\ncost 0'], 'total cost 5, 1.67 a row')
    """
    found = confusion_of(y, decided, loss, reject_cost, classes)
    axes = new_axes(ax)
    shades = tinted(to_rgb(_NAVY), found.share)
    axes.imshow(shades, aspect="auto")
    _write_cells(axes, found, shades)
    _name_cells(axes, found)
    if found.cost is not None:
        total = found.cost.sum()
        axes.set_title(f"total cost {total:.6g}, {total / found.count.sum():.3g} a row")
    return axes


def _draw_rejection(axes: Axes, found: Rejection, with_loss: bool) -> list[Line2D]:
    """One line or two, the second on an axis of its own at the right."""
    kept = found.rejected[:-1]
    curves: list[tuple[Array, Array, str]] = []
    if found.error is not None:
        curves.append((kept, found.error, "errors among the rows kept"))
    if found.cost is not None:
        curves.append((found.rejected, found.cost, "mean cost of all rows"))
    elif with_loss:
        curves.append((kept, found.loss, "mean loss of the rows kept"))
    lines: list[Line2D] = []
    looks = ((BLUE, "-", "o"), (VERMILION, "--", "s"))
    for (x, values, label), (colour, dash, marker) in zip(curves, looks, strict=False):
        on = axes if not lines else axes.twinx()
        (line,) = on.plot(x, values, color=colour, linestyle=dash, linewidth=2, label=label)
        line.set_marker(marker if len(x) < _FEW else "none")
        on.set_ylabel(label)
        on.set_ylim(bottom=min(0.0, float(values.min())))
        lines.append(line)
    return lines


def _write_cells(axes: Axes, found: Confusion, shades: Array) -> None:
    size = max(6.0, 12.5 - 0.45 * max(found.count.shape))
    luminance = ((shades + 0.055) / 1.055) ** 2.4 @ np.array([0.2126, 0.7152, 0.0722])  # of sRGB
    for (k, a), count in np.ndenumerate(found.count):
        cost = "" if found.cost is None else f"\ncost {found.cost[k, a]:.4g}"
        ink = "white" if luminance[k, a] < _DARK else "black"
        axes.text(a, k, f"{count:.0f}{cost}", ha="center", va="center", color=ink, fontsize=size)


def _name_cells(axes: Axes, found: Confusion) -> None:
    words = [str(action) for action in found.actions]
    turned = sum(map(len, words)) > 60
    axes.set_xticks(
        range(len(words)),
        words,
        rotation=30 if turned else 0,
        ha="right" if turned else "center",
    )
    axes.set_yticks(range(len(found.classes)), [str(label) for label in found.classes])
    axes.set_xlabel("decided")
    axes.set_ylabel("true class (shade: share of its rows)")
