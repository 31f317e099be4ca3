"""What decisions cost: the error-reject curve and the confusion matrix.

Conventions: n rows, K classes, A actions; losses (K, A), or (n, K, A) where rows have their own.
"""

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

from posteriori.decision.decide import Decisions
from posteriori.decision.loss import read_loss, read_reject_cost
from posteriori.decision.probabilities import read_labelled
from posteriori.errors import LabelError, ParameterError, ShapeError
from posteriori.report.plots.style import (
    BLUE,
    GREY,
    VERMILION,
    add_legend,
    new_axes,
    set_ticks,
    tinted,
    weights_of,
)
from posteriori.rows.categories import is_missing
from posteriori.rows.target import as_vector, read_target
from posteriori.typing import Array, Codes

REJECT = "reject"
"""The action of a rejected row; None and NaN mean the same."""

_TIE = 8 * np.finfo(np.float64).eps
"""Expected losses that differ by less than this share of the largest are equal."""

_FEW = 25
"""With fewer points than this, each has a marker."""

_NAVY = "#004B75"
_DARK = 0.18
"""The luminance below which white text has more contrast than black text."""


@dataclass(frozen=True, eq=False)
class Rejection:
    """Errors and costs as more rows are rejected, those of largest expected loss first (m points).

    `rejected` is the share of rows from 0 to 1. `error` and `loss` (m - 1,) are the error rate and
    the mean loss of the other rows; `error` is None where actions are not classes. `cost` (m,) is
    the mean over all rows of the loss or the cost of rejecting, `by_rule` the share of rows whose
    expected loss is above that cost; both are None without a cost.
    """

    rejected: Array
    error: Array | None
    loss: Array
    cost: Array | None
    by_rule: float | None


def reject_curve(
    y: Any,
    proba: Any,
    *,
    loss: Any = None,
    reject_cost: Any = None,
    classes: Any = None,
    sample_weight: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw errors and costs against the share of rows that are rejected.

    Each row gets the action of least expected loss min_a Σ_k p_k L_ka, and rows where that is
    largest are rejected first (with equal losses for all errors, those of smallest maximal
    probability). Drawn are the error rate of the remaining rows and, on the right, with
    `reject_cost` the mean over all rows of the loss or that cost; with `loss` alone the mean loss
    of the remaining rows. The dotted line is Chow's rule (1970): reject a row if its expected loss
    is above the cost.

    `loss` is a matrix with a row per class, in the order of `classes` (by default sorted), and a
    column per action, or another form that `decide` takes; by default every error costs one.
    Returns the Axes of the errors, or of the losses where actions are not classes.

    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> ax = reject_curve([0, 0, 1, 1], [0.1, 0.6, 0.7, 0.9])
    >>> ax.get_lines()[0].get_xydata()
    array([[0.  , 0.25],
           [0.25, 0.  ],
           [0.5 , 0.  ]])
    """
    found = rejection(y, proba, loss, reject_cost, classes, sample_weight)
    axes, rejected = new_axes(ax), found.rejected
    curves: list[tuple[Array, Array, str]] = []
    if found.error is not None:
        curves.append((rejected[:-1], found.error, "error rate of the remaining rows"))
    if found.cost is not None:
        curves.append((rejected, found.cost, "mean cost of all rows"))
    elif loss is not None:
        curves.append((rejected[:-1], found.loss, "mean loss of the remaining rows"))
    sides = [axes, *(axes.twinx() for _ in curves[1:])]
    looks = ((BLUE, "-", "o"), (VERMILION, "--", "s"))
    for side, (x, values, label), (colour, dash, marker) in zip(sides, curves, looks, strict=False):
        (line,) = side.plot(x, values, color=colour, linestyle=dash, linewidth=2, label=label)
        line.set_marker(marker if len(x) < _FEW else "none")
        side.set_ylabel(label)
        side.set_ylim(bottom=min(0.0, float(values.min())))
    if found.by_rule is not None:
        axes.axvline(found.by_rule, color=GREY, linestyle=":", label="rejected by Chow's rule")
    axes.set_xlim(0, 1)
    axes.set_xlabel("share of rows rejected")
    add_legend(*sides, above=True)
    return axes


def rejection(
    y: Any,
    proba: Any,
    loss: Any = None,
    reject_cost: Any = None,
    classes: Any = None,
    sample_weight: Any = None,
) -> Rejection:
    """The numbers that `reject_curve` draws."""
    rows = read_labelled(y, proba, classes, sample_weight)
    n, weight, total = len(as_vector(y)), rows.weight, rows.weight.sum()
    found, price = read_loss(loss, rows.classes, n), read_reject_cost(reject_cost, n)
    losses = found.values if found.shared else found.values[rows.row]
    price = None if price is None else np.broadcast_to(price, n)[rows.row]
    expected = np.einsum("nk,ka->na" if found.shared else "nk,nka->na", rows.probability, losses)
    action = expected.argmin(axis=1)
    excess = expected.min(axis=1) - (0.0 if price is None else price)
    order = np.argsort(excess, kind="stable")
    distinct = np.diff(excess[order]) > _TIE * abs(excess).max()
    ends = np.concatenate([[len(order)], np.flatnonzero(distinct)[::-1] + 1, [0]])

    def remaining(values: Array) -> Array:
        """The sum over the rows that are not rejected, at each point."""
        return np.concatenate([[0.0], np.cumsum((weight * values)[order])])[ends]

    rest = remaining(np.ones(len(order)))
    incurred = _own_loss(losses, rows.codes, action)
    error = cost = by_rule = None
    if set(found.actions.tolist()) == set(rows.classes.tolist()):
        wrong = np.asarray(found.actions)[action] != np.asarray(rows.classes)[rows.codes]
        error = remaining(wrong.astype(np.float64))[:-1] / rest[:-1]
    if price is not None:
        cost = (remaining(incurred) + weight @ price - remaining(price)) / total
        by_rule = float(weight[excess > 0].sum() / total)
    mean_loss = remaining(incurred)[:-1] / rest[:-1]
    return Rejection(1 - rest / total, error, mean_loss, cost, by_rule)


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


def confusion(
    y: Any,
    decided: Any,
    *,
    loss: Any = None,
    reject_cost: Any = None,
    classes: Any = None,
    sample_weight: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the confusion matrix of classes and actions, shaded by the share of each class.

    `decided` is an action per row: a class, an action of `loss`, or a rejection ("reject", None or
    NaN); or the result of `decide`. With `loss` or `reject_cost`, each cell has the total cost of
    its rows below their number, and the title the cost of all rows. `loss` is as in
    `reject_curve`; with `reject_cost` alone every error costs one.

    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> ax = confusion(["no", "no", "yes"], ["no", "yes", "yes"], loss=[[0, 5], [1, 0]])
    >>> [text.get_text() for text in ax.texts], ax.get_title()
    (['1\\ncost 0', '1\\ncost 5', '0\\ncost 0', '1\\ncost 0'], 'total cost 5, 1.67 per row')
    """
    found = confusion_of(y, decided, loss, reject_cost, classes, sample_weight)
    axes, shades = new_axes(ax), tinted(to_rgb(_NAVY), found.share)
    axes.imshow(shades, aspect="auto")
    size = max(6.0, 12.5 - 0.45 * max(found.count.shape))
    luminance = ((shades + 0.055) / 1.055) ** 2.4 @ np.array([0.2126, 0.7152, 0.0722])  # of sRGB
    for (k, a), count in np.ndenumerate(found.count):
        cost = "" if found.cost is None else f"\ncost {found.cost[k, a]:.4g}"
        ink = "white" if luminance[k, a] < _DARK else "black"
        number = f"{count:.0f}" if count == round(count) else f"{count:.4g}"
        axes.text(a, k, number + cost, ha="center", va="center", color=ink, fontsize=size)
    set_ticks(axes, [str(action) for action in found.actions])
    axes.set_yticks(range(len(found.classes)), [str(label) for label in found.classes])
    axes.set_xlabel("action")
    axes.set_ylabel("true class (shade: share of its rows)")
    if found.cost is not None:
        total = found.cost.sum()
        axes.set_title(f"total cost {total:.6g}, {total / found.count.sum():.3g} per row")
    return axes


def confusion_of(
    y: Any,
    decided: Any,
    loss: Any = None,
    reject_cost: Any = None,
    classes: Any = None,
    sample_weight: Any = None,
) -> Confusion:
    """The numbers that `confusion` draws."""
    labels = as_vector(y)
    n = len(labels) if labels.ndim else 0
    if not n:
        raise ShapeError("y has no rows.", "Pass one label per row, and at least one.")
    given = None if classes is None else np.atleast_1d(as_vector(classes))
    known, target = read_target(y, n, known=given)
    if target.ndim != 1:
        raise LabelError("y has a column per class.", "Pass one label per row.")
    codes = cast(Codes, target)
    chosen, weight = _actions_of(decided, n), weights_of(sample_weight, n)
    order = known.tolist()
    if loss is None and reject_cost is None:
        actions = [*order, *dict.fromkeys(action for action in chosen if action not in order)]
        return Confusion(
            tuple(order), tuple(actions), _sums(codes, chosen, order, actions, weight), None
        )
    found, price = read_loss(loss, known, n), read_reject_cost(reject_cost, n)
    actions = [*found.actions.tolist(), *([] if price is None else [REJECT])]
    unknown = [action for action in chosen if action not in actions]
    if unknown:
        raise ParameterError(
            f"decided has {unknown[0]!r}, which is not an action of the loss.",
            f"Use the actions {actions[:8]}, and pass reject_cost= if rows were rejected.",
        )
    at = np.array([actions.index(action) for action in chosen], dtype=np.intp)
    is_action = at < len(found.actions)
    cost = np.zeros(n) if price is None else np.broadcast_to(price, n).copy()
    losses = found.values if found.shared else found.values[is_action]
    cost[is_action] = _own_loss(losses, codes[is_action], at[is_action])
    tables = (_sums(codes, chosen, order, actions, each) for each in (weight, weight * cost))
    return Confusion(tuple(order), tuple(actions), *tables)


def _actions_of(decided: Any, n: int) -> list[Any]:
    chosen = as_vector(decided.action if isinstance(decided, Decisions) else decided)
    if chosen.shape != (n,):
        raise ShapeError(
            f"decided has shape {chosen.shape} for {n} rows.", "Pass one action per row."
        )
    return [REJECT if is_missing(action) else action for action in chosen.tolist()]


def _sums(
    codes: Codes, chosen: list[Any], classes: list[Any], actions: list[Any], weight: Array
) -> Array:
    """Sums of weights by class and action (K, A)."""
    place = {action: a for a, action in enumerate(actions)}
    cells = codes * len(actions) + np.array([place[action] for action in chosen], dtype=np.intp)
    sums = cast(Array, np.bincount(cells, weight, len(classes) * len(actions)))
    return sums.reshape(len(classes), len(actions))


def _own_loss(losses: Array, codes: Codes, action: Codes) -> Array:
    """The loss of each row (n,), given its class and its action."""
    if losses.ndim == 2:
        return losses[codes, action]
    return losses[np.arange(len(codes)), codes, action]
