"""What all plots share: colours, axes, legends, classes, and columns of the user's X.

Conventions: n rows, d columns, K classes.
"""

from collections.abc import Sequence
from typing import Any, cast

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

from posteriori.errors import LabelError, MissingValueError, ParameterError, ShapeError
from posteriori.inspection.effects import position_of
from posteriori.rows.features import Table
from posteriori.rows.frames import entries_of
from posteriori.rows.target import read_target, read_weight
from posteriori.typing import Array, Codes, Labels

# The colours of Okabe and Ito, which the colour-blind can distinguish; each class also has a marker
# and a line. No colour has the same marker twice within 56 classes, or the same line within 28.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", "--", "-.", ":")
BLUE, VERMILION = "#0072B2", "#D55E00"
GREY = "0.35"
"""For boundaries and reference lines."""

CORNERS = {"upper right": (1, 1), "upper left": (0, 1), "lower left": (0, 0), "lower right": (1, 0)}


def colour_of(k: int) -> str:
    """The colour of class or model number k; they repeat after seven."""
    return COLOURS[k % len(COLOURS)]


def line_style(k: int) -> dict[str, Any]:
    """The colour and line of class or model number k, as `Axes.plot` takes them."""
    return {"color": colour_of(k), "linestyle": LINES[k % len(LINES)]}


def point_style(k: int) -> dict[str, Any]:
    """The markers of class or model number k without a line, as `Axes.plot` takes them."""
    edge = {"markeredgecolor": "black", "markeredgewidth": 0.5}
    return {"color": colour_of(k), "marker": MARKERS[k % len(MARKERS)], "linestyle": "none", **edge}


def tinted(colour: str, strength: Any) -> Array:
    """White mixed with a colour (..., 3) by a strength (...) from 0, white, to 1, the colour.

    >>> tinted("red", 0.5)
    array([1. , 0.5, 0.5])
    """
    return 1 - np.asarray(strength)[..., None] * (1 - np.array(to_rgb(colour)))


def new_axes(ax: Axes | None, height: float = 5.25, width: float = 7.0) -> Axes:
    """The Axes given, or those of a new figure."""
    return plt.subplots(figsize=(width, height), layout="constrained")[1] if ax is None else ax


def add_legend(axes: Axes, *others: Axes, **settings: Any) -> None:
    """One legend of all plots on these Axes (and on `others`), each label once: above, or at `loc`.

    Never at "best": matplotlib's search for that place is slow where many rows are drawn.
    """
    found: dict[str, Any] = {}
    for each in (axes, *others):
        for handle, label in zip(*each.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    if "loc" not in settings:
        settings |= {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "frameon": False}
        settings["ncols"] = 2 if max(map(len, found)) > 20 else 4
    axes.legend(list(found.values()), list(found), **settings)


def set_ticks(axes: Axes, words: Sequence[str]) -> None:
    """Words along the horizontal axis, turned where they are long."""
    turned: dict[str, Any] = {"rotation": 30, "ha": "right"}
    axes.set_xticks(range(len(words)), words, **turned if sum(map(len, words)) > 55 else {})


def draw_rows(
    axes: Axes, points: Array, codes: Codes, classes: Labels, labels: Sequence[str]
) -> None:
    """The rows (n, 2) as points, with a legend of the classes."""
    for k, label in enumerate(classes.tolist()):
        x, y = points[codes == k].T
        look: dict[str, Any] = {"color": colour_of(k), "marker": MARKERS[k % len(MARKERS)]}
        axes.scatter(x, y, s=26, edgecolors="black", linewidths=0.6, label=str(label), **look)
    # In the corner that is farthest from its nearest point.
    low, high = points.min(axis=0), points.max(axis=0)
    places = (points - low) / np.where(high > low, high - low, 1.0)
    far = {name: abs(places - corner).max(axis=1).min() for name, corner in CORNERS.items()}
    add_legend(axes, title="class", loc=max(far, key=far.__getitem__), framealpha=0.9)
    axes.set(xlabel=labels[0], ylabel=labels[1])


def two_positions(columns: Sequence[Any] | None, names: Sequence[str]) -> list[int]:
    """The positions of two columns that differ; None for the only two."""
    pair = [position_of(column, names) for column in (names if columns is None else columns)]
    if len(pair) != 2 or len(set(pair)) != 2:
        raise ParameterError(
            f"A plot has two columns, not {len(set(pair))}.", "Choose two that differ by columns=."
        )
    return pair


def numbers_of(table: Table, columns: Sequence[int]) -> Array:
    """Columns (n, m) of finite numbers."""
    for j in columns:
        name, values = table.schema.describe(j), entries_of(table, j)
        if j in table.schema.categorical:
            raise ShapeError(f"{name.capitalize()} is not numeric.", "Choose numeric columns.")
        bad = ~np.isfinite(values)
        if bad.any():
            raise MissingValueError(
                f"Row {bad.argmax()} of {name} is missing or infinite.", "Drop such rows."
            )
    return np.column_stack([entries_of(table, j) for j in columns])


def codes_of(y: Any, classes: Labels, n_rows: int) -> Codes:
    """The class of each row (n,) as its position among `classes`."""
    codes = read_target(y, n_rows, known=classes)[1]
    if codes.ndim != 1:
        raise LabelError("y has a column per class.", "Pass one label per row.")
    return cast(Codes, codes)


def weights_of(sample_weight: Any, n_rows: int) -> Array:
    """A weight for each row (n,), one by default."""
    weight = read_weight(sample_weight, n_rows)
    return np.ones(n_rows) if weight is None else weight
