"""Where a model's probabilities are off: residuals in bins (extra `plots`)."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from posteriori.arguments import check_count
from posteriori.decision.calibration import BinnedResiduals, binned_residuals
from posteriori.decision.probabilities import class_place
from posteriori.errors import MissingValueError
from posteriori.report.palette import BLUE, GREY, VERMILION, legend_above, new_axes
from posteriori.report.regions import FittedClassifier
from posteriori.report.tables import (
    Table,
    classes_of,
    codes_of,
    probabilities,
    read_table,
)
from posteriori.rows.categories import is_missing
from posteriori.typing import Array


def residuals(
    model: FittedClassifier,
    X: Any,
    y: Any,
    *,
    column: Any = None,
    label: Any = None,
    bins: int | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the mean of t - p(C|x) in bins of rows, in a band of two standard errors (Gelman).

    t is one in rows of the class `label`, by default the second of two. The bins hold equal numbers
    of rows in the order of p(C|x), or of a `column` of X; rows of one value stay together, and a
    categorical column has a bin for each level. By default there are √n of them, or ten where rows
    are few. The band is ±2 √(Σ p(1 - p)) / n of each bin: 95 % of points lie in it if the model is
    right. A trend along a column speaks for a square of it, or another term. Gives the Axes.

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
    k = class_place(label, classes)
    p, name = probabilities(model, X)[:, k], classes.tolist()[k]
    happened = codes_of(y, classes, table.n_rows) == k
    axes = new_axes(ax)
    if column is None:
        along, words = f"predicted probability of class {name}", None
        values = p
    else:
        j = table.place(column)
        along, (values, words) = table.names[j], _entries(table, j)
    found = binned_residuals(
        p,
        happened.astype(np.float64),
        p * (1 - p),
        np.ones(len(p)),
        along=values,
        bins=bins if words is None else len(values),
    )
    _draw_band(axes, found, joined=words is None)
    _draw_points(axes, found)
    if words is not None:
        axes.set_xticks(range(len(words)), words)
        axes.set_xlim(-0.5, len(words) - 0.5)
    axes.set_xlabel(along)
    axes.set_ylabel(f"mean of outcome - probability, class {name}")
    legend_above(axes)
    return axes


def _entries(table: Table, j: int) -> tuple[Array, list[str] | None]:
    """The numbers of a column; or the codes of its levels, and their names."""
    if table.is_numeric(j):
        return table.finite(j), None
    entries = table.array[:, j].tolist()
    missing = [i for i, entry in enumerate(entries) if is_missing(entry)]
    if missing:
        raise MissingValueError(
            f"Row {missing[0]} of {table.names[j]!r} is missing.", "Drop such rows."
        )
    levels = sorted(set(entries), key=str)
    place = {level: i for i, level in enumerate(levels)}
    return np.array([float(place[entry]) for entry in entries]), [str(level) for level in levels]


def _draw_band(axes: Axes, found: BinnedResiduals, joined: bool) -> None:
    """Lines along the bins or, for levels that have no order, a bar at each."""
    label, band = "two standard errors", 2 * found.std_error
    axes.axhline(0.0, color=GREY, linewidth=1)
    if joined:
        axes.plot(found.place, band, color=GREY, linestyle="--", label=label)
        axes.plot(found.place, -band, color=GREY, linestyle="--")
    else:
        axes.errorbar(
            found.place,
            np.zeros_like(found.place),
            band,
            linestyle="none",
            capsize=8,
            color=GREY,
            label=label,
        )


def _draw_points(axes: Axes, found: BinnedResiduals) -> None:
    looks = ((~found.outside, BLUE, "o", "in the band"), (found.outside, VERMILION, "s", "outside"))
    for which, colour, marker, label in looks:
        axes.plot(
            found.place[which],
            (found.observed - found.predicted)[which],
            linestyle="none",
            color=colour,
            marker=marker,
            markeredgecolor="black",
            markeredgewidth=0.5,
            label=label,
        )
