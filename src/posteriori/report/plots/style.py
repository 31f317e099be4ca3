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


def class_colours(n_classes: int) -> Array:
    """The colour of each class as red, green and blue (K, 3); they repeat after seven."""
    return np.array([to_rgb(colour_of(k)) for k in range(n_classes)])


def tinted(colour: Any, strength: Any) -> Array:
    """White mixed with a colour (..., 3) by a strength (...) from 0, white, to 1, the colour.

    >>> tinted((1.0, 0.0, 0.0), 0.5)
    array([1. , 0.5, 0.5])
    """
    return 1 - np.asarray(strength)[..., None] * (1 - np.asarray(colour))


def new_axes(ax: Axes | None, height: float = 5.25, width: float = 7.0) -> Axes:
    """The Axes given, or those of a new figure."""
    return plt.subplots(figsize=(width, height), layout="constrained")[1] if ax is None else ax


def add_legend(axes: Axes, *others: Axes, above: bool = False, **settings: Any) -> None:
    """One legend of all plots on these Axes (and on `others`), each label once."""
    found: dict[str, Any] = {}
    for each in (axes, *others):
        for handle, label in zip(*each.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    if above:
        settings |= {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": 2}
        settings["frameon"] = False
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
    add_legend(axes, title="class", framealpha=0.9)
    axes.set(xlabel=labels[0], ylabel=labels[1])


def check_known(what: str, name: Any, known: Sequence[Any]) -> None:
    """An error if there is no term of this name."""
    if name not in known:
        raise ParameterError(f"There is no {what} {name!r}.", f"Use one of {list(known[:8])}.")


def two_positions(columns: Sequence[Any] | None, names: Sequence[str]) -> list[int]:
    """The positions of two columns that differ; None for the only two."""
    if columns is None and len(names) != 2:
        raise ParameterError(
            f"X has {len(names)} columns, a plot has two.", "Choose two of them by columns=."
        )
    pair = [position_of(column, names) for column in (names if columns is None else columns)]
    if isinstance(columns, str) or len(pair) != 2 or pair[0] == pair[1]:
        raise ParameterError(f"columns={columns!r} are not two columns.", "Pass two that differ.")
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


def classes_of(model: Any) -> Labels:
    """The classes of a fitted classifier."""
    classes = getattr(model, "classes_", None)
    if classes is None:
        raise ParameterError(
            f"This {type(model).__name__} has no classes_: it is not fitted, or not a classifier.",
            "Pass a fitted classifier.",
        )
    return np.asarray(classes)


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


def probabilities(model: Any, X: Any) -> Array:
    """p(C_k|x) (n, K)."""
    if not hasattr(model, "predict_proba"):
        raise ParameterError(
            f"{type(model).__name__} has no predict_proba.", "Pass a classifier with probabilities."
        )
    return cast(Array, np.asarray(model.predict_proba(X), dtype=np.float64))
