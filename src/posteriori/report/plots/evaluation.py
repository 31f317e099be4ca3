"""Predictions against outcomes: calibration, residuals, rejection and the confusion matrix.

Conventions: n rows, K classes, A actions; losses (K, A), or (n, K, A) where rows have their own.
"""

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from matplotlib.axes import Axes

from posteriori.arguments import check_count
from posteriori.decision.calibration import binned_residuals, reliability_curve
from posteriori.decision.decide import Decisions
from posteriori.decision.loss import read_loss, read_reject_cost
from posteriori.decision.probabilities import Labelled, read_labelled
from posteriori.errors import ParameterError, ShapeError
from posteriori.inspection.effects import position_of
from posteriori.report.plots import style
from posteriori.rows.categories import is_missing
from posteriori.rows.features import Table, as_frame, read_features
from posteriori.rows.frames import entries_of
from posteriori.rows.target import as_vector, read_target
from posteriori.typing import Array, Codes

_HISTOGRAM = "histogram"

REJECT = "reject"
"""The action of a rejected row; None and NaN mean the same."""

_DIGITS = 13
"""Expected losses that are equal to so many decimals of the largest are equal."""


def calibration(
    y: Any,
    proba: Any,
    *,
    label: Any = None,
    level: float = 0.95,
    bins: int | None = None,
    classes: Any = None,
    sample_weight: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the observed against the predicted frequency of a class, in bins of rows.

    The points of a calibrated model lie on the diagonal; the band is the exact confidence interval
    of each bin at the given `level` (see `reliability_curve`, which takes the other arguments).
    Below is a histogram of the predicted probabilities. The axes cover the bins with their
    intervals, not always all of 0 to 1. `proba` may be a dict from the names of several models to
    their probabilities; a second plot on the same Axes is added to the first.

    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> y, proba = [0, 0, 0, 1, 0, 1, 1, 1], [0.1, 0.1, 0.2, 0.2, 0.7, 0.7, 0.8, 0.8]
    >>> ax = calibration(y, proba, bins=2)
    >>> ax.get_xlabel(), ax.get_lines()[1].get_ydata()
    ('predicted probability of class 1', array([0.25, 0.75]))
    """
    models = dict(proba) if isinstance(proba, Mapping) else {"model": proba}
    given: dict[str, Any] = {"classes": classes, "sample_weight": sample_weight}
    rows = [read_labelled(y, each, **given) for each in models.values()]
    given |= {"label": label, "level": level, "bins": bins}
    curves = [reliability_curve(y, each, **given) for each in models.values()]
    axes = style.new_axes(ax)
    histogram = _histogram_below(axes, curves[0].predicted[0])
    before = axes.get_legend_handles_labels()[1]
    for k, (name, curve, each) in enumerate(
        zip(models, curves, rows, strict=True), start=len(before) - 1
    ):
        look = style.line_style(k)
        band = curve.predicted, curve.low, curve.high
        axes.fill_between(*band, color=look["color"], alpha=0.15, linewidth=0)
        axes.vlines(*band, color=look["color"], alpha=0.3, linewidth=1)
        text = name if name not in before else f"{name} {len(before)}"
        axes.plot(curve.predicted, curve.observed, label=text, **(style.point_style(k) | look))
        probability = each.probability[:, each.place(label)]
        histogram.hist(probability, 40, weights=each.weight, histtype="step", **look)
    ends = axes.dataLim.get_points()  # of all curves and bands
    margin = 0.03 * (ends.max() - ends.min())
    limits = ends.min() - margin, ends.max() + margin
    axes.set(xlim=limits, ylim=limits, xlabel=f"predicted probability of class {curves[0].label}")
    axes.set_ylabel(f"share of class {curves[0].label}, with {100 * level:g} % interval")
    histogram.set_ylim(bottom=0)
    style.add_legend(axes, loc="upper left")
    return axes


def _histogram_below(axes: Axes, start: float) -> Axes:
    """The Axes of the histogram: those of an earlier plot, or new ones with the diagonal above."""
    for child in axes.child_axes:
        if child.get_label() == _HISTOGRAM:
            return cast(Axes, child)
    look: dict[str, Any] = {"color": style.GREY, "linewidth": 1, "linestyle": ":"}
    axes.axline((start, start), slope=1, label="calibrated", **look)
    below = axes.inset_axes((0.0, -0.24, 1.0, 0.2), sharex=axes, label=_HISTOGRAM)
    below.set_ylabel("rows")
    axes.tick_params(labelbottom=False)
    axes.xaxis.set_label_coords(0.5, -0.32)
    return below


def residuals(
    model: Any,
    X: Any,
    y: Any,
    *,
    column: Any = None,
    label: Any = None,
    bins: int | None = None,
    sample_weight: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the mean of t - p(C|x) in bins of rows, with a band of two standard errors (Gelman).

    t is one in rows of the class `label`, by default the second of two. The bins hold equal numbers
    of rows in the order of p(C|x), or of a `column` of X; rows of one value stay together. By
    default there are √n of them, or ten where rows are few. A categorical column has a bin for each
    level; with fewer `bins`, the rarest levels share the last. The band is ±2 √(Σ p(1 - p)) / n of
    each bin: 95 % of points lie in it if the model is right. A trend along a column suggests its
    square, or another term.

    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from sklearn.datasets import load_breast_cancer
    >>> from posteriori import LogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> X = X[["mean radius", "mean texture"]]
    >>> ax = residuals(LogisticRegression().fit(X, y), X, y, column="mean texture")
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('mean texture', 'mean of outcome - probability, class 1')
    """
    check_count("bins", bins, "bins", none=True)
    rows = read_labelled(y, model.predict_proba(X), model.classes_, sample_weight)
    k = rows.place(label)
    p, name = rows.probability[:, k], rows.classes.tolist()[k]
    along, words = f"predicted probability of class {name}", None
    values: Any = p
    if column is not None:
        frame = as_frame(X)
        if frame is not None:  # of which no other column is read
            X = frame[:, [position_of(column, frame.columns)]].to_native()
            column = 0
        table = read_features(X)
        j = position_of(column, table.schema.names)
        along = table.schema.names[j]
        if table.schema.columns[j].kind == "numeric":
            values = style.numbers_of(table, [j])[rows.row, 0]
        else:
            values, words = _levels(table, j, rows, bins)
            smallest = np.bincount(values, rows.weight).min()
            bins = int(np.ceil(rows.weight.sum() / smallest))  # one for each level
    happened = (rows.codes == k).astype(np.float64)
    found = binned_residuals(p, happened, p * (1 - p), rows.weight, along=values, bins=bins)
    axes = style.new_axes(ax)
    axes.axhline(0.0, color=style.GREY, linewidth=1)
    band: dict[str, Any] = {"linestyle": "--"}
    if words is not None:
        band = {"linestyle": "none", "marker": "_", "markersize": 24}
        style.set_ticks(axes, words)
        axes.set_xlim(-0.5, len(words) - 0.5)
    for end in (-2 * found.std_error, 2 * found.std_error):
        axes.plot(found.place, end, color=style.GREY, label="two standard errors", **band)
    gap = found.observed - found.predicted
    for which, number, text in ((~found.outside, 0, "in the band"), (found.outside, 5, "outside")):
        axes.plot(found.place[which], gap[which], label=text, **style.point_style(number))
    axes.set(xlabel=along, ylabel=f"mean of outcome - probability, class {name}")
    style.add_legend(axes)
    return axes


def _levels(table: Table, j: int, rows: Labelled, bins: int | None) -> tuple[Codes, list[str]]:
    """The codes (n,) of the levels of a column, and the name of each; in `bins` at most."""
    entries, column = entries_of(table, j)[rows.row], table.schema.columns[j]
    levels = column.levels if column.kind == "categorical" else (False, True)
    names = [*map(str, levels), "missing", "other levels"]
    codes = np.where(entries >= 0, entries, len(levels)).astype(np.intp)  # missing: -1, or NaN
    total = np.bincount(codes, rows.weight, len(names))
    frequent = np.argsort(-total, kind="stable")[: np.count_nonzero(total)]
    if bins is not None and bins < len(frequent):
        codes[np.isin(codes, frequent[bins - 1 :])] = len(names) - 1
    kept, codes = np.unique(codes, return_inverse=True)
    return codes, [names[i] for i in kept]


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
    rows = read_labelled(y, proba, classes, sample_weight)
    n, weight, total = len(as_vector(y)), rows.weight, rows.weight.sum()
    found, cost = read_loss(loss, rows.classes, n), read_reject_cost(reject_cost, n)
    losses = np.broadcast_to(found.values, (n, *found.values.shape[-2:]))[rows.row]
    price = np.zeros(len(weight)) if cost is None else np.broadcast_to(cost, n)[rows.row]
    expected = (rows.probability[:, None, :] @ losses)[:, 0]
    action = expected.argmin(axis=1)
    excess = expected.min(axis=1) - price
    scale = abs(excess).max() or 1.0
    place = np.unique(np.round(excess / scale, _DIGITS), return_inverse=True)[1]

    def remaining(values: Array) -> Array:
        """The sum over the rows that are not rejected, at each point."""
        return np.append(np.cumsum(np.bincount(place, weight * values))[::-1], 0.0)

    rest = remaining(np.ones(len(weight)))
    rejected = 1 - rest / total
    incurred = losses[np.arange(len(weight)), rows.codes, action]
    curves: list[tuple[Array, str]] = []
    if set(found.actions.tolist()) == set(rows.classes.tolist()):
        wrong = np.asarray(found.actions)[action] != np.asarray(rows.classes)[rows.codes]
        errors = remaining(wrong.astype(np.float64))[:-1] / rest[:-1]
        curves.append((errors, "error rate of the remaining rows"))
    if cost is not None:
        mean_cost = (remaining(incurred - price) + weight @ price) / total
        curves.append((mean_cost, "mean cost of all rows"))
    elif loss is not None:
        curves.append((remaining(incurred)[:-1] / rest[:-1], "mean loss of the remaining rows"))
    axes = style.new_axes(ax)
    sides = [axes, *(axes.twinx() for _ in curves[1:])]
    looks = ((style.BLUE, "-"), (style.VERMILION, "--"))
    for side, (values, label), (colour, line) in zip(sides, curves, looks, strict=False):
        look: dict[str, Any] = {"color": colour, "linestyle": line, "linewidth": 2}
        side.plot(rejected[: len(values)], values, label=label, **look)
        side.set(ylabel=label, ylim=(min(0.0, float(values.min())), None))
    if cost is not None:
        share = weight[excess > 0].sum() / total
        axes.axvline(share, color=style.GREY, linestyle=":", label="rejected by Chow's rule")
    axes.set(xlim=(0, 1), xlabel="share of rows rejected")
    style.add_legend(*sides)
    return axes


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
    n = len(as_vector(y))
    known = read_target(y, n)[0] if classes is None else as_vector(classes)
    codes, weight = style.codes_of(y, known, n), style.weights_of(sample_weight, n)
    found, price = read_loss(loss, known, n), read_reject_cost(reject_cost, n)
    given = as_vector(decided.action if isinstance(decided, Decisions) else decided)
    if given.shape != (n,):
        raise ShapeError(
            f"decided has shape {given.shape} for {n} rows.", "Pass one action per row."
        )
    names, chosen = known.tolist(), [REJECT if is_missing(a) else a for a in given.tolist()]
    has_costs = loss is not None or price is not None
    actions = [*found.actions.tolist(), *([] if price is None else [REJECT])]
    others = [action for action in dict.fromkeys(chosen) if action not in actions]
    if others and has_costs:
        raise ParameterError(
            f"decided has {others[0]!r}, which is not an action of the loss.",
            f"Use the actions {actions[:8]}, and pass reject_cost= if rows were rejected.",
        )
    actions += others
    at = np.array([actions.index(action) for action in chosen], dtype=np.intp)
    rejected = at >= len(found.actions)
    of_rows = np.broadcast_to(found.values, (n, *found.values.shape[-2:]))
    incurred = of_rows[np.arange(n), codes, np.where(rejected, 0, at)]
    cost = np.where(rejected, 0.0 if price is None else price, incurred)
    counts, costs = np.zeros((2, len(names), len(actions)))
    np.add.at(counts, (codes, at), weight)
    np.add.at(costs, (codes, at), weight * cost)
    axes = style.new_axes(ax)
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    axes.imshow(share, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    look: dict[str, Any] = {"ha": "center", "va": "center"}
    look["fontsize"] = max(6.0, 12.5 - 0.45 * max(counts.shape))
    for (k, a), count in np.ndenumerate(counts):
        number = f"{count:.0f}" if count == round(count) else f"{count:.4g}"
        number += "" if not has_costs else f"\ncost {costs[k, a]:.4g}"
        axes.text(a, k, number, color="white" if share[k, a] > 0.7 else "black", **look)
    style.set_ticks(axes, list(map(str, actions)))
    axes.set_yticks(range(len(names)), list(map(str, names)))
    axes.set(xlabel="action", ylabel="true class (shade: share of its rows)")
    if has_costs:
        axes.set_title(f"total cost {costs.sum():.6g}, {costs.sum() / counts.sum():.3g} per row")
    return axes
