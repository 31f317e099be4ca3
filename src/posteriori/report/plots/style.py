"""What all plots share: colours, axes, legends, and the rows that the user passed.

Conventions: n rows, d columns, K classes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle
from numbers import Integral
from typing import Any, NamedTuple, cast

import matplotlib.pyplot as plt
import narwhals.stable.v1 as nw
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from numpy.typing import NDArray

from posteriori.errors import LabelError, ParameterError, ShapeError
from posteriori.rows.categories import is_missing
from posteriori.rows.features import as_frame
from posteriori.rows.target import as_vector, read_weight
from posteriori.typing import Array, Codes, Labels

# The colours of Okabe and Ito, which the colour-blind can distinguish; each class also has a marker
# and a line of its own. Seven colours and eight of the others: no pair occurs twice within 56.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES: tuple[Any, ...] = (
    "-",
    "--",
    "-.",
    ":",
    (0, (7, 1, 1, 1, 1, 1)),
    (0, (9, 2)),
    (0, (2, 2)),
    (0, (9, 2, 2, 2)),
)
BLUE, VERMILION = "#0072B2", "#D55E00"
GREY = "0.35"
"""For boundaries and reference lines."""

MARKER_EDGE: dict[str, Any] = {"markeredgecolor": "black", "markeredgewidth": 0.5}
LABEL_BOX = {"boxstyle": "round,pad=0.2", "facecolor": "white", "edgecolor": "none"}


class Style(NamedTuple):
    """How a class, or one of several models, is drawn."""

    label: str
    colour: str
    marker: str
    line: Any


def styles(labels: Iterable[Any], first: int = 0) -> list[Style]:
    """A style for each label, in their order, from style number `first` on.

    >>> [style.marker for style in styles(["ham", "spam"])]
    ['o', 's']
    """
    found = list(map(str, labels))
    every = zip(["" for _ in range(first)] + found, cycle(COLOURS), cycle(MARKERS), cycle(LINES))
    return [Style(*each) for each in every][first:]


def class_colours(n_classes: int) -> Array:
    """The colour of each class as red, green and blue (K, 3); they repeat after seven."""
    return np.array([to_rgb(style.colour) for style in styles(range(n_classes))])


def tinted(colour: Any, strength: Any) -> Array:
    """White mixed with a colour (..., 3) by a strength (...) from 0, white, to 1, the colour.

    >>> tinted((1.0, 0.0, 0.0), 0.5)
    array([1. , 0.5, 0.5])
    """
    return 1 - np.asarray(strength)[..., None] * (1 - np.asarray(colour))


def new_axes(ax: Axes | None, height: float = 5.25, width: float = 7.0) -> Axes:
    """The Axes given, or those of a new figure."""
    if ax is not None:
        return ax
    _, axes = plt.subplots(figsize=(width, height), layout="constrained")
    return axes


def add_legend(
    axes: Axes, *others: Axes, above: bool = False, last: str = "", **settings: Any
) -> None:
    """One legend of all plots on these Axes (and on `others`), each label once."""
    found: dict[str, Any] = {}
    for each in (axes, *others):
        for handle, label in zip(*each.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    if last in found:
        found[last] = found.pop(last)
    if above:
        settings |= {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": 2}
        settings["frameon"] = False
    axes.legend(list(found.values()), list(found), **settings)


def set_ticks(axes: Axes, words: Sequence[str]) -> None:
    """Words along the horizontal axis, turned where they are long."""
    turned = sum(map(len, words)) > 55
    axes.set_xticks(
        range(len(words)), words, rotation=30 if turned else 0, ha="right" if turned else "center"
    )


@dataclass(frozen=True, eq=False)
class Table:
    """The rows of a plot by their columns; `frame` is None where X is an array."""

    X: Any
    frame: "nw.DataFrame[Any] | None"
    array: NDArray[Any]
    names: tuple[str, ...]

    def place(self, column: Any) -> int:
        """The place of a column by its name, or by its number."""
        return place_of(column, self.names)

    def is_numeric(self, j: int) -> bool:
        """Whether a column is numeric."""
        if self.frame is not None:
            return bool(self.frame[self.names[j]].dtype.is_numeric())
        if self.array.dtype.kind != "O":
            return self.array.dtype.kind in "fiu"
        return not any(isinstance(value, str | bool | np.bool_) for value in self.array[:, j])

    def numbers(self, j: int, missing: bool = False) -> Array:
        """A numeric column (n,); an error for infinite or, unless allowed, missing entries."""
        name = self.names[j]
        values = self.array[:, j] if self.frame is None else self.frame[name].to_numpy()
        try:
            values = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError):
            raise ShapeError(
                f"Column {name!r} is not numeric.",
                "Pass numeric columns, or choose two by columns=.",
            ) from None
        bad = np.isinf(values) if missing else ~np.isfinite(values)
        if bad.any():
            raise ShapeError(
                f"Row {int(bad.argmax())} of column {name!r} is "
                f"{'' if missing else 'missing or '}infinite.",
                "Drop such rows.",
            )
        return values

    def typical(self, j: int) -> Any:
        """The mean of a column, rounded if it is whole; of a categorical one the mode."""
        if not self.is_numeric(j):
            return self.array[self._mode(j), j]
        values = self.numbers(j, missing=True)
        values = values[~np.isnan(values)]
        if not len(values):
            raise _all_missing(self.names[j])
        mean = float(values.mean())
        return round(mean) if (values == np.floor(values)).all() else mean

    def _mode(self, j: int) -> int:
        """The first row that has the most frequent value of a column."""
        rows: dict[Any, list[int]] = {}
        for i, value in enumerate(self.array[:, j].tolist()):
            if not is_missing(value):
                rows.setdefault(value, []).append(i)
        if not rows:
            raise _all_missing(self.names[j])
        return max(rows.values(), key=len)[0]

    def with_columns(self, given: dict[int, Array]) -> Any:
        """Rows like those of X with these columns (m,), the others at their typical values."""
        m = len(next(iter(given.values())))
        if self.frame is None:
            kind = np.float64 if self.array.dtype.kind in "fiub" else object
            rows = np.empty((m, len(self.names)), dtype=kind)
            for j in range(len(self.names)):
                rows[:, j] = given[j] if j in given else self.typical(j)
            return rows
        backend = nw.get_native_namespace(self.frame)
        columns = []
        for j, name in enumerate(self.names):
            if j in given or self.is_numeric(j):
                values = given[j] if j in given else np.full(m, float(self.typical(j)))
                columns.append(nw.new_series(name, values, native_namespace=backend))
            else:  # picked from the frame, so that the column keeps its type
                columns.append(nw.maybe_reset_index(self.frame[name][[self._mode(j)] * m]))
        return nw.from_dict({series.name: series for series in columns}).to_native()


def _all_missing(name: str) -> ShapeError:
    return ShapeError(f"Column {name!r} has missing entries only.", "Drop the column.")


def read_table(X: Any) -> Table:
    """X as a table; its columns are x0, x1, ... where X is an array."""
    frame = as_frame(X)
    array = np.asarray(X) if frame is None else frame.to_numpy()
    if array.ndim != 2 or not array.size:
        raise ShapeError(
            f"X has shape {array.shape}.", "Pass a data frame or a two-dimensional array with rows."
        )
    names = [f"x{j}" for j in range(array.shape[1])] if frame is None else frame.columns
    return Table(X, frame, array, tuple(names))


def place_of(column: Any, names: Sequence[str]) -> int:
    """The place of a column by its name, or by its number.

    >>> place_of("age", ["name", "age"]), place_of(0, ["name", "age"])
    (1, 0)
    """
    if isinstance(column, str) and column in names:
        return list(names).index(column)
    is_number = isinstance(column, Integral) and not isinstance(column, bool)
    if is_number and 0 <= int(column) < len(names):
        return int(column)
    raise ParameterError(f"There is no column {column!r}.", f"Use one of {list(names[:8])}.")


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
    """The class of each row (n,) as its place among `classes`."""
    labels = as_vector(y)
    if labels.shape != (n_rows,):
        raise ShapeError(
            f"y has shape {labels.shape} for {n_rows} rows.", "Pass one label per row."
        )
    place = {label: k for k, label in enumerate(classes.tolist())}
    unknown = [label for label in labels.tolist() if label not in place]
    if unknown:
        raise LabelError(
            f"The model has no class {unknown[0]!r}.", f"Its classes are {list(place)[:8]}."
        )
    return np.array([place[label] for label in labels.tolist()], dtype=np.intp)


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
