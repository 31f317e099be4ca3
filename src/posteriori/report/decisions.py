"""What decisions cost, as pictures: rejection and confusion (extra `plots`)."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D

from posteriori.report.costs import Confusion, Rejection, confusion_of, rejection
from posteriori.report.palette import BLUE, GREY, VERMILION, legend_above, new_axes, tinted
from posteriori.typing import Array

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
