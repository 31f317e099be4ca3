"""Which class a model chooses where, in a plane of two columns or components (extra `plots`)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt

from posteriori.arguments import check_count
from posteriori.decision.probabilities import class_place
from posteriori.errors import ParameterError, ShapeError
from posteriori.models.discriminants import FisherDiscriminant
from posteriori.report.palette import GREY, class_colours, new_axes, styles, tinted
from posteriori.report.tables import Table, classes_of, codes_of, probabilities, read_table
from posteriori.typing import Array, Codes, Labels

_MARGIN = 0.08


class Plane(Protocol):
    """A fitted linear map of rows onto two coordinates."""

    def transform(self, X: Any) -> Any: ...


PlaneLike = Plane | Literal["fisher"]
Columns = Sequence[Any]
"""Two columns, by name or by number."""


class Slice(Protocol):
    """The rows as points (n, 2) of the plane, and the way back from the plane to rows."""

    @property
    def coordinates(self) -> Array: ...

    @property
    def labels(self) -> tuple[str, str]: ...

    def lift(self, points: Array) -> Any:
        """Rows like those of X that stand for points (m, 2) of the plane."""


@dataclass(frozen=True, eq=False)
class ColumnSlice:
    """Two columns, all others being held at their mean or most frequent level."""

    table: Table
    places: tuple[int, int]

    @cached_property
    def coordinates(self) -> Array:
        return np.column_stack([self.table.finite(j) for j in self.places])

    @property
    def labels(self) -> tuple[str, str]:
        first, second = self.places
        return self.table.names[first], self.table.names[second]

    def lift(self, points: Array) -> Any:
        return self.table.with_columns(dict(zip(self.places, points.T, strict=True)))


@dataclass(frozen=True, eq=False)
class PlaneSlice:
    """Two components: z stands for the row x̄ + Bᵀ(z - z̄), with B the regression of rows on z."""

    table: Table
    coordinates: Array
    centre: Array  # (d,): x̄
    back: Array  # (2, d): B
    labels: tuple[str, str] = ("component 1", "component 2")

    def lift(self, points: Array) -> Any:
        lifted = self.centre + (points - self.coordinates.mean(axis=0)) @ self.back
        return self.table.like(lifted)


@dataclass(frozen=True, eq=False)
class Grid:
    """Points that cover a slice: `horizontal` and `vertical` (m,), and rows that stand for them."""

    horizontal: Array
    vertical: Array
    rows: Any

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.vertical), len(self.horizontal)

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """The edges of an image that has a pixel around every point."""
        (left, right), (bottom, top) = map(_edges, (self.horizontal, self.vertical))
        return left, right, bottom, top


def slice_of(X: Any, y: Any, columns: Columns | None, plane: PlaneLike | None) -> Slice:
    """The slice that the user asks for; X may have two columns only if nothing is said."""
    table = read_table(X)
    if columns is not None and plane is not None:
        raise ParameterError("columns and plane exclude each other.", "Pass one of them.")
    if columns is not None:
        return ColumnSlice(table, two_places(table, columns))
    if plane is not None:
        return _component_slice(table, y, plane)
    if table.n_columns != 2:
        raise ShapeError(
            f"X has {table.n_columns} columns, a picture has two.",
            "Pass columns= with two of them, plane='fisher', or two columns only.",
        )
    return ColumnSlice(table, (0, 1))


def two_places(table: Table, columns: Columns) -> tuple[int, int]:
    """The places of two columns that differ."""
    if isinstance(columns, str) or len(columns) != 2:
        raise ParameterError(f"columns={columns!r} are not two.", "Pass a pair of columns.")
    first, second = (table.place(column) for column in columns)
    if first == second:
        raise ParameterError(f"columns={columns!r} are the same.", "Pass two that differ.")
    return first, second


def grid_over(space: Slice, resolution: int) -> Grid:
    """`resolution` points along each side, with a margin around the rows."""
    check_count("resolution", resolution, "points")
    if resolution < 2:
        raise ParameterError(f"resolution={resolution} is too small.", "Use two points or more.")
    horizontal, vertical = (_axis(values, resolution) for values in space.coordinates.T)
    points = np.stack(np.meshgrid(horizontal, vertical), axis=-1).reshape(-1, 2)
    return Grid(horizontal, vertical, space.lift(points))


def _component_slice(table: Table, y: Any, plane: PlaneLike) -> PlaneSlice:
    values = table.matrix()
    if isinstance(plane, str):
        plane = _fisher(table.X, y, plane)
    coordinates = np.asarray(plane.transform(table.X), dtype=np.float64)
    if coordinates.shape != (len(values), 2):
        raise ParameterError(
            f"plane.transform gives an array of shape {coordinates.shape}.",
            "Give a plane with two components; Fisher's takes at least three classes.",
        )
    centre = values.mean(axis=0)
    back = np.linalg.lstsq(coordinates - coordinates.mean(axis=0), values - centre)[0]
    return PlaneSlice(table, coordinates, centre, back)


def _fisher(X: Any, y: Any, name: str) -> Plane:
    if name != "fisher":
        raise ParameterError(
            f"plane={name!r} is not understood.", "Use 'fisher', or a fitted map to two components."
        )
    try:
        return FisherDiscriminant(n_components=2).fit(X, y)
    except ParameterError as error:
        raise ParameterError(
            f"There are no two discriminant directions. {error.problem}",
            "Fisher's plane takes three classes or more: pass columns= instead.",
        ) from error


def _axis(values: Array, resolution: int) -> Array:
    """Points that cover the values, with a margin."""
    low, high = float(values.min()), float(values.max())
    margin = _MARGIN * (high - low) or 1.0
    return np.linspace(low - margin, high + margin, resolution)


def _edges(points: Array) -> tuple[float, float]:
    half = (points[1] - points[0]) / 2
    return float(points[0] - half), float(points[-1] + half)


_FAINTEST, _STRONGEST = 0.06, 0.45
_GREYS = 0.97, 0.74
"""The lightest and the darkest of the greys that tell actions apart."""

_LEVELS = np.arange(1, 10) / 10
_FILLED = np.linspace(0, 1, 11)


class FittedClassifier(Protocol):
    """A fitted classifier; with `predict_proba`, the regions are shaded by it."""

    classes_: Labels

    def predict(self, X: Any) -> Any: ...


def decision_regions(
    model: FittedClassifier,
    X: Any,
    y: Any,
    *,
    columns: Columns | None = None,
    plane: PlaneLike | None = None,
    ax: Axes | None = None,
    resolution: int = 200,
) -> Axes:
    """Draw which class `model` chooses where, and how sure it is: the paler, the less sure.

    Without `columns` and `plane`, X has two columns and the picture shows all there is to know.
    With `columns`, a pair of names or numbers, the model is one of all columns of X, and the
    picture shows two of them with the others at their mean (rounded where all of a column is whole)
    or most frequent level. With `plane`, "fisher" or a fitted `FisherDiscriminant(n_components=2)`
    or the like, the picture is another slice of that space: a point z stands for the row
    x̄ + Bᵀ(z - z̄), where B is the least-squares regression of the rows of X on their coordinates,
    that is, for the average row that falls there. `plane.transform` takes that row back to z.
    For a model with one shared covariance and at most three classes, the Fisher plane loses
    nothing; for others, a row off the slice may be classified otherwise than the point it is
    drawn at.

    Where a model decides for actions, as `DecidingClassifier` does, the regions are grey, and each
    has the name of its action in it.

    `resolution` is the number of points along each side. Gives the Axes drawn on.

    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> ax = decision_regions(GaussianNB().fit(X, y), X, y, columns=(2, 3))
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['0', '1', '2']
    """
    classes, space = classes_of(model), slice_of(X, y, columns, plane)
    codes = codes_of(y, classes, len(space.coordinates))
    grid = grid_over(space, resolution)
    chosen = np.asarray(model.predict(grid.rows))

    axes = new_axes(ax)
    if set(chosen.tolist()) <= set(classes.tolist()):
        share = _shares(model, grid.rows, chosen[:, None] == classes)
        _draw_regions(axes, grid, share.reshape(*grid.shape, -1))
    else:
        _draw_actions(axes, grid, chosen.reshape(grid.shape))
    draw_points(axes, space.coordinates, codes, classes)
    _name_axes(axes, space.labels)
    return axes


def posterior_surface(
    model: FittedClassifier,
    X: Any,
    y: Any,
    *,
    label: Any = None,
    columns: Columns | None = None,
    plane: PlaneLike | None = None,
    ax: Axes | None = None,
    resolution: int = 200,
) -> Axes:
    """Draw p(C|x) of one class: the darker, the more probable, with lines at 0.1, 0.2, ..., 0.9.

    `label` is the class, by default the second of two. `columns` and `plane` choose the slice, as
    in `decision_regions`; the heavy line is where the class is as probable as not. Gives the Axes.

    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> ax = posterior_surface(GaussianNB().fit(X, y), X, y, label=1, columns=(2, 3))
    >>> ax.get_title()
    'probability of class 1'
    """
    classes = classes_of(model)
    k, space = class_place(label, classes), slice_of(X, y, columns, plane)
    codes = codes_of(y, classes, len(space.coordinates))
    grid = grid_over(space, resolution)
    share = probabilities(model, grid.rows)[:, k].reshape(grid.shape)

    axes = new_axes(ax)
    colour = to_rgb(styles(classes.tolist())[k].colour)
    shades = tinted(colour, _STRONGEST * (_FILLED[:-1] + _FILLED[1:]) / 2 + _FAINTEST)
    axes.contourf(grid.horizontal, grid.vertical, share, levels=_FILLED, colors=shades)
    draw_points(axes, space.coordinates, codes, classes)
    _draw_levels(axes, grid, share)
    _name_axes(axes, space.labels)
    axes.set_title(f"probability of class {classes.tolist()[k]}")
    return axes


def draw_points(axes: Axes, coordinates: Array, codes: Codes, classes: Labels) -> None:
    """The rows (n, 2) as points, with a legend of the classes."""
    for k, style in enumerate(styles(classes.tolist())):
        horizontal, vertical = coordinates[codes == k].T
        axes.scatter(
            horizontal,
            vertical,
            s=26,
            color=style.colour,
            marker=style.marker,
            edgecolors="black",
            linewidths=0.6,
            label=style.label,
        )
    axes.legend(title="class", framealpha=0.9)


def _shares(model: FittedClassifier, rows: Any, chosen: NDArray[np.bool_]) -> Array:
    """Posterior probabilities (n, K), that of the class chosen (n, K) being the largest.

    It is one where the model has none; where the model does not choose the most probable class, all
    others are zero.
    """
    if not hasattr(model, "predict_proba"):
        return chosen.astype(np.float64)
    p = probabilities(model, rows)
    if np.array_equal(p.argmax(axis=1), chosen.argmax(axis=1)):
        return p
    return np.where(chosen, p, 0.0)


def _draw_actions(axes: Axes, grid: Grid, chosen: NDArray[Any]) -> None:
    """Regions in shades of grey, each with the name of what is done there."""
    names = sorted(set(chosen.ravel().tolist()), key=str)
    shades = np.linspace(*_GREYS, len(names))
    axes.imshow(
        sum(np.where(chosen == name, grey, 0.0) for name, grey in zip(names, shades, strict=True)),
        origin="lower",
        aspect="auto",
        interpolation="nearest",
        extent=grid.extent,
        cmap="gray",
        vmin=0.0,
        vmax=1.0,
    )
    for name in names:
        inside = chosen == name
        depth = distance_transform_edt(np.pad(inside, 1))[1:-1, 1:-1]
        row, column = np.unravel_index(depth.argmax(), depth.shape)
        axes.annotate(
            str(name),
            (grid.horizontal[column], grid.vertical[row]),
            ha="center",
            va="center",
            bbox={"boxstyle": "round,pad=0.25", "facecolor": "white", "edgecolor": GREY},
            zorder=4,
        )


def _draw_regions(axes: Axes, grid: Grid, share: Array) -> None:
    n_classes = share.shape[2]
    surest, winner = share.max(axis=2), share.argmax(axis=2)
    sureness = np.maximum(surest - 1 / n_classes, 0.0) / (1 - 1 / n_classes)
    strength = _FAINTEST + (_STRONGEST - _FAINTEST) * sureness
    axes.imshow(
        tinted(class_colours(n_classes)[winner], strength),
        origin="lower",
        aspect="auto",
        interpolation="nearest",
        extent=grid.extent,
    )
    for k in np.unique(winner):
        lead = share[..., k] - np.delete(share, k, axis=2).max(axis=2, initial=0.0)
        if lead.min() < 0 < lead.max():
            axes.contour(
                grid.horizontal, grid.vertical, lead, levels=[0.0], colors="0.25", linewidths=0.8
            )


def _draw_levels(axes: Axes, grid: Grid, share: Array) -> None:
    """Lines of equal probability, each with its number, no two numbers side by side."""
    levels = np.array([p for p in _LEVELS if share.min() < p < share.max()])
    if not len(levels):
        return
    widths = np.where(levels == 0.5, 2.0, 0.8)
    drawn = axes.contour(
        grid.horizontal, grid.vertical, share, levels=levels, colors=GREY, linewidths=widths
    )
    for level, lines in zip(levels, drawn.allsegs, strict=True):
        longest = max(lines, key=len)
        # Where the lines run close together, their numbers still lie apart along them.
        where = longest[round(level * (len(longest) - 1))]
        axes.annotate(
            f"{level:.1f}",
            where,
            ha="center",
            va="center",
            fontsize=8,
            bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"},
        )


def _name_axes(axes: Axes, labels: tuple[str, str]) -> None:
    axes.set_xlabel(labels[0])
    axes.set_ylabel(labels[1])
