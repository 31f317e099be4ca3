"""Whether events happen as often as predicted: reliability curve and binned residuals."""

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from matplotlib.axes import Axes

from posteriori.arguments import check_count
from posteriori.decision.calibration import binned_residuals, reliability_curve
from posteriori.decision.probabilities import Labelled, read_labelled
from posteriori.errors import MissingValueError
from posteriori.report.plots import style
from posteriori.rows.changes import entries_of
from posteriori.rows.features import Table, as_frame, read_features
from posteriori.typing import Codes

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
        histogram.hist(probability, _BARS, weights=each.weight, histtype="step", **look)
    ends = axes.dataLim.get_points()  # of all curves and bands
    margin = _MARGIN * (ends.max() - ends.min())
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
    axes.axline((start, start), slope=1, label=_REFERENCE, **look)
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
    classes = style.classes_of(model)
    rows = read_labelled(y, style.probabilities(model, X), classes, sample_weight)
    k = rows.place(label)
    p, name = rows.probability[:, k], classes.tolist()[k]
    along, words = f"predicted probability of class {name}", None
    values: Any = p
    if column is not None:
        table, j = _read_column(X, column)
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
    style.add_legend(axes, above=True)
    return axes


def _read_column(X: Any, column: Any) -> tuple[Table, int]:
    """A table that has the column, and its place there; of a frame no other column is read."""
    frame = as_frame(X)
    if frame is None:
        table = read_features(X)
        return table, style.place_of(column, table.schema.names)
    j = style.place_of(column, frame.columns)
    return read_features(frame[:, [j]].to_native()), 0


def _levels(table: Table, j: int, rows: Labelled, bins: int | None) -> tuple[Codes, list[str]]:
    """The codes (n,) of the levels of a column, and the name of each; in `bins` at most."""
    codes, column = entries_of(table, j)[rows.row], table.schema.columns[j]
    present = codes >= 0  # missing: negative, or NaN
    if not present.all():
        row = rows.row[present.argmin()]
        raise MissingValueError(
            f"Row {row} of {table.schema.describe(j)} is missing.", "Drop such rows."
        )
    codes = codes.astype(np.intp)
    levels = column.levels if column.kind == "categorical" else (False, True)
    total = np.bincount(codes, rows.weight, len(levels))
    kept = np.flatnonzero(total)
    others = bins is not None and bins < len(kept)
    if others:
        frequent = kept[np.argsort(-total[kept], kind="stable")]
        kept = np.sort(frequent[: cast(int, bins) - 1])
    place = np.full(len(levels), len(kept) if others else 0)
    place[kept] = np.arange(len(kept))
    return place[codes], [str(levels[i]) for i in kept] + ["other levels"] * others
