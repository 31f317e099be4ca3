"""Whether events happen as often as predicted: reliability curve and binned residuals."""

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from matplotlib.axes import Axes

from posteriori.arguments import check_count
from posteriori.decision.calibration import ReliabilityCurve, binned_residuals, reliability_curve
from posteriori.decision.probabilities import class_place, read_labelled
from posteriori.errors import MissingValueError, ParameterError
from posteriori.report.plots.style import (
    BLUE,
    GREY,
    MARKER_EDGE,
    VERMILION,
    Style,
    Table,
    add_legend,
    classes_of,
    codes_of,
    new_axes,
    probabilities,
    read_table,
    set_ticks,
    styles,
    weights_of,
)
from posteriori.rows.categories import declared_values, is_missing
from posteriori.typing import Array, Codes

_MARGIN = 0.03
_REFERENCE = "calibrated"
_HISTOGRAM = "histogram"
_BARS = 40


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
    if not models:
        raise ParameterError("proba has no models.", "Pass {name: probabilities}.")
    given: dict[str, Any] = {"classes": classes, "sample_weight": sample_weight}
    curves = [
        reliability_curve(y, each, label=label, level=level, bins=bins, **given)
        for each in models.values()
    ]
    rows = [read_labelled(y, each, **given) for each in models.values()]
    axes = new_axes(ax)
    before = [str(name) for name in axes.get_legend_handles_labels()[1] if name != _REFERENCE]
    histogram = _histogram_below(axes)
    names = [name if name not in before else f"{name} {len(before) + 1}" for name in models]
    ends = list(axes.get_xlim()) if before else []
    for style, curve, each in zip(styles(names, len(before)), curves, rows, strict=True):
        _draw_curve(axes, curve, style)
        low, high = min(*curve.low, *curve.predicted), max(*curve.high, *curve.predicted)
        ends += [low - _MARGIN * (high - low), high + _MARGIN * (high - low)]
        counts, edges = np.histogram(
            each.probability[:, each.place(label)], _BARS, weights=each.weight
        )
        histogram.stairs(counts, edges, color=style.colour, linestyle=style.line)
    axes.set_xlim(min(ends), max(ends))
    axes.set_ylim(min(ends), max(ends))
    histogram.set_ylim(bottom=0)
    axes.set_xlabel(f"predicted probability of class {curves[0].label}")
    axes.set_ylabel(f"share of class {curves[0].label}, with {100 * level:g} % interval")
    add_legend(axes, loc="upper left")
    return axes


def _histogram_below(axes: Axes) -> Axes:
    """The Axes of the histogram: those of an earlier plot, or new ones."""
    for child in axes.child_axes:
        if child.get_label() == _HISTOGRAM:
            return cast(Axes, child)
    axes.axline((0, 0), slope=1, color=GREY, linewidth=1, linestyle=":", label=_REFERENCE)
    below = axes.inset_axes((0.0, -0.24, 1.0, 0.2), sharex=axes, label=_HISTOGRAM)
    below.set_ylabel("rows")
    axes.tick_params(labelbottom=False)
    axes.xaxis.set_label_coords(0.5, -0.32)
    return below


def _draw_curve(axes: Axes, curve: ReliabilityCurve, style: Style) -> None:
    """The observed frequencies in their band; an interval where there is one bin only."""
    ends = curve.predicted, curve.low, curve.high
    if len(curve.predicted) > 1:
        axes.fill_between(*ends, color=style.colour, alpha=0.15, linewidth=0)
    else:
        axes.vlines(*ends, color=style.colour)
    axes.plot(
        curve.predicted,
        curve.observed,
        color=style.colour,
        linestyle=style.line,
        marker=style.marker,
        label=style.label,
        **MARKER_EDGE,
    )


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
    classes, table = classes_of(model), read_table(X)
    k, n = class_place(label, classes), len(table.array)
    p, name = probabilities(model, X)[:, k], classes.tolist()[k]
    happened = (codes_of(y, classes, n) == k).astype(np.float64)
    weight = weights_of(sample_weight, n)
    along, words = f"predicted probability of class {name}", None
    values: Any = p
    if column is not None:
        j = table.place(column)
        along = table.names[j]
        if table.is_numeric(j):
            values = table.numbers(j)
        else:
            values, words = _levels(table, j, weight, bins)
            bins = int(np.ceil(weight.sum() / np.bincount(values, weight).min()))  # one each
    kept = weight > 0
    found = binned_residuals(
        *(each[kept] for each in (p, happened, p * (1 - p), weight)), along=values[kept], bins=bins
    )
    axes = new_axes(ax)
    axes.axhline(0.0, color=GREY, linewidth=1)
    band: dict[str, Any] = {"color": GREY, "label": "two standard errors"}
    if words is None:
        for sign in (1, -1):
            axes.plot(found.place, 2 * sign * found.std_error, linestyle="--", **band)
    else:
        zero = np.zeros_like(found.place)
        axes.errorbar(found.place, zero, 2 * found.std_error, linestyle="none", capsize=8, **band)
        set_ticks(axes, words)
        axes.set_xlim(-0.5, len(words) - 0.5)
    for which, colour, marker, where in (
        (~found.outside, BLUE, "o", "in the band"),
        (found.outside, VERMILION, "s", "outside"),
    ):
        gap = (found.observed - found.predicted)[which]
        look: dict[str, Any] = {"color": colour, "marker": marker, "linestyle": "none"}
        axes.plot(found.place[which], gap, label=where, **look, **MARKER_EDGE)
    axes.set_xlabel(along)
    axes.set_ylabel(f"mean of outcome - probability, class {name}")
    add_legend(axes, above=True)
    return axes


def _levels(table: Table, j: int, weight: Array, bins: int | None) -> tuple[Codes, list[str]]:
    """The codes (n,) of the levels of a column, and the name of each; in `bins` at most."""
    entries = table.array[:, j].tolist()
    missing = [i for i, entry in enumerate(entries) if is_missing(entry)]
    if missing:
        raise MissingValueError(
            f"Row {missing[0]} of column {table.names[j]!r} is missing.", "Drop such rows."
        )
    declared = None if table.frame is None else declared_values(table.frame[table.names[j]])
    total: dict[Any, float] = dict.fromkeys(declared or sorted(set(entries), key=str), 0.0)
    for entry, each in zip(entries, weight, strict=True):
        total[entry] += each
    levels = [level for level, each in total.items() if each > 0]
    words = [str(level) for level in levels]
    if bins is not None and bins < len(levels):
        frequent = sorted(levels, key=lambda level: -total[level])[: bins - 1]
        levels = [level for level in levels if level in frequent]
        words = [*map(str, levels), "other levels"]
    place = {level: i for i, level in enumerate(levels)}
    last = len(words) - 1
    return np.array([place.get(entry, last) for entry in entries], dtype=np.intp), words
