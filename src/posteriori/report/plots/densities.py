"""Decisions and densities: regions in a plane of two columns, and the densities of the classes.

Conventions: n rows, m points of a plane, K classes, L states of a discrete column.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray
from scipy import stats
from scipy.ndimage import distance_transform_edt
from sklearn.utils.validation import check_is_fitted

from posteriori.arguments import check_count, check_flag
from posteriori.decision.probabilities import class_place
from posteriori.design.columns import Columns
from posteriori.errors import LevelError, ParameterError, ShapeError
from posteriori.models.discriminants import FisherDiscriminant
from posteriori.models.gaussian import GaussianClassifier
from posteriori.models.naive_bayes import NaiveBayes
from posteriori.report.plots.style import (
    GREY,
    LABEL_BOX,
    Style,
    Table,
    add_legend,
    class_colours,
    classes_of,
    codes_of,
    new_axes,
    place_of,
    probabilities,
    read_table,
    set_ticks,
    styles,
    tinted,
    weights_of,
)
from posteriori.rows.categories import is_missing
from posteriori.typing import Array, Codes, Labels

_MARGIN = 0.08
_FAINTEST, _STRONGEST = 0.06, 0.45
_GREYS = 0.97, 0.74
"""The lightest and the darkest grey of actions."""

_TAIL = 1e-4
"""The probability that a curve leaves out at either end."""

_MOST_BARS = 40
"""With more states than this, there are lines instead of bars."""

_HATCHES = ("", "//", "..", "xx", "\\\\", "--", "oo")


class Plane(Protocol):
    """A fitted linear map of rows to two coordinates."""

    def transform(self, X: Any) -> Any: ...


PlaneLike = Plane | Literal["fisher"]


@dataclass(frozen=True, eq=False)
class Slice:
    """The rows as points (n, 2) of a plane; `lift` makes rows of X from points (m, 2)."""

    coordinates: Array
    labels: tuple[str, str]
    lift: Callable[[Array], Any]


@dataclass(frozen=True, eq=False)
class Grid:
    """Points that cover a slice: `horizontal` and `vertical` (m,), and the rows they stand for."""

    horizontal: Array
    vertical: Array
    rows: Any

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.vertical), len(self.horizontal)

    def draw_image(self, axes: Axes, image: Array, **settings: Any) -> None:
        """An image (m, m, ...) with a pixel around every point."""
        extent: Any = ()
        for points in (self.horizontal, self.vertical):
            half = (points[1] - points[0]) / 2
            extent += (float(points[0] - half), float(points[-1] + half))
        settings |= {"origin": "lower", "aspect": "auto", "interpolation": "nearest"}
        axes.imshow(image, extent=extent, **settings)


def slice_of(X: Any, y: Any, columns: Sequence[Any] | None, plane: PlaneLike | None) -> Slice:
    """Two columns, the others at their typical values; or two components of a plane."""
    table = read_table(X)
    if columns is not None and plane is not None:
        raise ParameterError("columns and plane exclude each other.", "Pass one of them.")
    if plane is not None:
        return _component_slice(table, y, plane)
    if columns is None and len(table.names) != 2:
        raise ShapeError(
            f"X has {len(table.names)} columns, a plot has two.",
            "Pass columns= with two of them, plane='fisher', or two columns only.",
        )
    pair = _pair(table, range(2) if columns is None else columns)
    return Slice(
        np.column_stack([table.numbers(j) for j in pair]),
        (table.names[pair[0]], table.names[pair[1]]),
        lambda points: table.with_columns(dict(zip(pair, points.T, strict=True))),
    )


def _pair(table: Table, columns: Sequence[Any]) -> tuple[int, int]:
    """The places of two columns that differ."""
    if isinstance(columns, str) or len(columns) != 2:
        raise ParameterError(f"columns={columns!r} are not two.", "Pass a pair of columns.")
    first, second = (table.place(column) for column in columns)
    if first == second:
        raise ParameterError(f"columns={columns!r} are the same.", "Pass two that differ.")
    return first, second


def _component_slice(table: Table, y: Any, plane: PlaneLike) -> Slice:
    """z stands for the row x̄ + Bᵀ(z - z̄), with B the regression of rows on z."""
    values = np.column_stack([table.numbers(j) for j in range(len(table.names))])
    if isinstance(plane, str):
        plane = _fisher(table.X, y, plane)
    coordinates = np.asarray(plane.transform(table.X), dtype=np.float64)
    if coordinates.shape != (len(values), 2):
        raise ParameterError(
            f"plane.transform returns an array of shape {coordinates.shape}.",
            "Pass a plane with two components; Fisher's takes at least three classes.",
        )
    centre, middle = values.mean(axis=0), coordinates.mean(axis=0)
    back = np.linalg.lstsq(coordinates - middle, values - centre)[0]

    def lift(points: Array) -> Any:
        rows = centre + (points - middle) @ back
        return rows if table.frame is None else table.with_columns(dict(enumerate(rows.T)))

    return Slice(coordinates, ("component 1", "component 2"), lift)


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


def _grid_over(space: Slice, resolution: int) -> Grid:
    """`resolution` points along each side, with a margin around the rows."""
    check_count("resolution", resolution, "points")
    if resolution < 2:
        raise ParameterError(f"resolution={resolution} is too small.", "Use two points or more.")
    sides = []
    for values in space.coordinates.T:
        low, high = float(values.min()), float(values.max())
        margin = _MARGIN * (high - low) or 1.0
        sides.append(np.linspace(low - margin, high + margin, resolution))
    points = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
    return Grid(sides[0], sides[1], space.lift(points))


def decision_regions(
    model: Any,
    X: Any,
    y: Any,
    *,
    columns: Sequence[Any] | None = None,
    plane: PlaneLike | None = None,
    ax: Axes | None = None,
    resolution: int = 200,
) -> Axes:
    """Draw which class `model` predicts where; the paler, the less probable the class.

    Without `columns` and `plane`, X has two columns. With `columns`, a pair of names or numbers,
    the model may have more columns, which are at their mean (rounded if all of a column is whole)
    or most frequent level. With `plane`, "fisher" or a fitted `FisherDiscriminant(n_components=2)`
    or the like, a point z stands for the row x̄ + Bᵀ(z - z̄), where B is the least-squares regression
    of the rows of X on their coordinates: the average row at that point. For a model with one
    shared covariance and at most three classes, Fisher's plane loses nothing; for others, a row
    may be classified differently from the point where it is drawn.

    A model that decides for actions, as `DecidingClassifier` does, has grey regions with the names
    of the actions. `resolution` is the number of points along each side.

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
    grid = _grid_over(space, resolution)
    chosen = np.asarray(model.predict(grid.rows))
    axes = new_axes(ax)
    if set(chosen.tolist()) <= set(classes.tolist()):
        share = _shares(model, grid.rows, chosen[:, None] == classes)
        _draw_regions(axes, grid, share.reshape(*grid.shape, -1))
    else:
        _draw_actions(axes, grid, chosen.reshape(grid.shape))
    _draw_points(axes, space.coordinates, codes, classes, space.labels)
    return axes


def posterior_surface(
    model: Any,
    X: Any,
    y: Any,
    *,
    label: Any = None,
    columns: Sequence[Any] | None = None,
    plane: PlaneLike | None = None,
    ax: Axes | None = None,
    resolution: int = 200,
) -> Axes:
    """Draw p(C|x) of one class: the darker, the more probable, with lines at 0.1, 0.2, ..., 0.9.

    `label` is the class, by default the second of two. `columns` and `plane` choose the slice, as
    in `decision_regions`; the heavy line is at one half.

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
    grid = _grid_over(space, resolution)
    share = probabilities(model, grid.rows)[:, k].reshape(grid.shape)
    axes, edges = new_axes(ax), np.linspace(0, 1, 11)
    strength = _FAINTEST + _STRONGEST * (edges[:-1] + edges[1:]) / 2
    shades = tinted(class_colours(len(classes))[k], strength)
    axes.contourf(grid.horizontal, grid.vertical, share, levels=edges, colors=shades)
    _draw_points(axes, space.coordinates, codes, classes, space.labels)
    _draw_levels(axes, grid, share)
    axes.set_title(f"probability of class {classes.tolist()[k]}")
    return axes


def _draw_points(
    axes: Axes, points: Array, codes: Codes, classes: Labels, labels: tuple[str, str]
) -> None:
    """The rows (n, 2) as points, with a legend of the classes."""
    for k, style in enumerate(styles(classes.tolist())):
        look: dict[str, Any] = {"color": style.colour, "marker": style.marker, "s": 26}
        edge: dict[str, Any] = {"edgecolors": "black", "linewidths": 0.6}
        x, y = points[codes == k].T
        axes.scatter(x, y, label=style.label, **look, **edge)
    add_legend(axes, title="class", framealpha=0.9)
    axes.set_xlabel(labels[0])
    axes.set_ylabel(labels[1])


def _shares(model: Any, rows: Any, chosen: NDArray[np.bool_]) -> Array:
    """p(C_k|x) (n, K), that of the predicted class (n, K) being the largest.

    Without probabilities, or where the model does not predict the most probable class, those of
    the other classes are zero.
    """
    if not hasattr(model, "predict_proba"):
        return chosen.astype(np.float64)
    p = probabilities(model, rows)
    if np.array_equal(p.argmax(axis=1), chosen.argmax(axis=1)):
        return p
    return np.where(chosen, p, 0.0)


def _draw_regions(axes: Axes, grid: Grid, share: Array) -> None:
    n_classes = share.shape[2]
    largest, winner = share.max(axis=2), share.argmax(axis=2)
    sureness = np.maximum(largest - 1 / n_classes, 0.0) / (1 - 1 / n_classes)
    strength = _FAINTEST + (_STRONGEST - _FAINTEST) * sureness
    grid.draw_image(axes, tinted(class_colours(n_classes)[winner], strength))
    for k in np.unique(winner):
        lead = share[..., k] - np.delete(share, k, axis=2).max(axis=2, initial=0.0)
        if lead.min() < 0 < lead.max():
            line: dict[str, Any] = {"levels": [0.0], "colors": "0.25", "linewidths": 0.8}
            axes.contour(grid.horizontal, grid.vertical, lead, **line)


def _draw_actions(axes: Axes, grid: Grid, chosen: NDArray[Any]) -> None:
    """Regions in shades of grey, each with the name of its action."""
    names = sorted(set(chosen.ravel().tolist()), key=str)
    image = np.zeros(chosen.shape)
    for name, grey in zip(names, np.linspace(*_GREYS, len(names)), strict=True):
        inside = chosen == name
        image[inside] = grey
        depth = distance_transform_edt(np.pad(inside, 1))[1:-1, 1:-1]
        row, column = np.unravel_index(depth.argmax(), depth.shape)
        place = grid.horizontal[column], grid.vertical[row]
        box = {**LABEL_BOX, "edgecolor": GREY}
        axes.annotate(str(name), place, ha="center", va="center", bbox=box, zorder=4)
    grid.draw_image(axes, image, cmap="gray", vmin=0.0, vmax=1.0)


def _draw_levels(axes: Axes, grid: Grid, share: Array) -> None:
    """Lines of equal probability, each with its number; the numbers do not overlap."""
    levels = np.array([p for p in np.arange(1, 10) / 10 if share.min() < p < share.max()])
    if not len(levels):
        return
    line: dict[str, Any] = {"levels": levels, "colors": GREY}
    line["linewidths"] = np.where(levels == 0.5, 2.0, 0.8)
    drawn = axes.contour(grid.horizontal, grid.vertical, share, **line)
    for level, lines in zip(levels, drawn.allsegs, strict=True):
        longest = max(lines, key=len)
        place = longest[round(level * (len(longest) - 1))]  # each farther along its line
        number: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 8}
        axes.annotate(f"{level:.1f}", place, bbox=LABEL_BOX, **number)


# --- Densities of the classes ---------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Bars:
    """A discrete column: its states in order, and their probabilities (K, L)."""

    states: tuple[Any, ...]
    probability: Array

    def shares(self, values: Any, codes: Codes, weight: Array) -> Array:
        """The share of each state among the rows of each class (K, L)."""
        place = {state: i for i, state in enumerate(self.states)}
        total = np.zeros_like(self.probability)
        for k, value, each in zip(codes.tolist(), values, weight, strict=True):
            if value not in place:
                raise LevelError(f"The model has no level {value!r}.", "Drop such rows.")
            total[k, place[value]] += each
        sums = total.sum(axis=1, keepdims=True)
        return np.divide(total, sums, out=np.zeros_like(total), where=sums > 0)


Marginal = Bars | tuple[Any, ...]
"""The distribution of a column: states, or a continuous distribution of SciPy for each class."""

Generative = GaussianClassifier | NaiveBayes


def class_densities(
    model: Generative,
    X: Any = None,
    y: Any = None,
    *,
    column: Any,
    weighted: bool = False,
    sample_weight: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw p(x_j|C_k) of one column for each class: a curve, or bars where x_j is discrete.

    With `weighted`, each is multiplied by the prior p(C_k), so that the class of the highest curve
    is the most probable one given this column alone (4.57). With X and y, the rows of each class
    are drawn too: as a histogram, or as markers on the bars. With X alone there is a tick for every
    row, of a continuous column. Missing entries are left out.

    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = GaussianClassifier().fit(X, y)
    >>> ax = class_densities(model, X, y, column="petal width (cm)")
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('petal width (cm)', 'density in the class')
    """
    _check_generative(model)
    check_flag("weighted", weighted)
    j = place_of(column, model.schema_.names)
    values, codes, weight = _entries(model, X, y, j, sample_weight)
    is_number = model.schema_.columns[j].kind != "categorical"
    marginal = marginal_of(model, j, max(values) if is_number and len(values) else 0.0)
    scale = model.priors_ if weighted else np.ones(len(model.classes_))
    axes, known = new_axes(ax), styles(model.classes_.tolist())
    if isinstance(marginal, Bars):
        _draw_bars(axes, marginal, scale, known)
        if values:
            _draw_shares(axes, marginal, scale, known, values, codes, weight)
    else:
        _draw_curves(axes, marginal, scale, known)
        if values:
            _draw_rows(axes, scale, known, np.asarray(values), codes, weight)
    what = "probability" if isinstance(marginal, Bars) else "density"
    axes.set_ylabel(f"{what} in the class" + " × prior of the class" * bool(weighted))
    axes.set_xlabel(model.schema_.names[j])
    axes.set_ylim(bottom=0)
    add_legend(axes, last="rows", title="class", handlelength=3.5)
    return axes


def density_ellipses(
    model: GaussianClassifier,
    X: Any,
    y: Any,
    *,
    columns: Sequence[Any] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the Gaussians of the classes in two columns: ellipses at 1 and 2 standard deviations.

    (x - μ_k)ᵀ Σ_k⁻¹ (x - μ_k) = 1 and 4, with the parts of μ_k and Σ_k that belong to the two
    columns, the others being integrated out. They hold 39 % and 86 % of a class. `columns` is
    needed where X has more than two.

    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianClassifier(covariance="full").fit(X, y)
    >>> ax = density_ellipses(model, X, y, columns=(2, 3))
    >>> ax.get_xlabel(), len(ax.get_lines())
    ('x2', 6)
    """
    if not isinstance(model, GaussianClassifier):
        raise ParameterError(
            f"{type(model).__name__} has no covariances.", "Pass a fitted GaussianClassifier."
        )
    _check_generative(model)
    table = read_table(X)
    pair = _pair(table, range(len(table.names)) if columns is None else columns)
    by_name = table.frame is not None and model.schema_.named
    places = [place_of(table.names[j] if by_name else j, model.schema_.names) for j in pair]
    means, covariances = _gaussians(model, places)
    points = np.column_stack([table.numbers(j) for j in pair])
    codes = codes_of(y, model.classes_, len(points))
    axes, names = new_axes(ax), (table.names[pair[0]], table.names[pair[1]])
    _draw_points(axes, points, codes, model.classes_, names)
    for k, style in enumerate(styles(model.classes_.tolist())):
        for deviations in (1, 2):
            ring = ellipse(means[k], covariances[k], deviations)
            axes.plot(*ring.T, color=style.colour, linestyle=style.line, linewidth=3 - deviations)
    return axes


def ellipse(mean: Array, covariance: Array, deviations: float) -> Array:
    """Points (m, 2) at so many standard deviations from the mean: μ + s Σ^½ (cos φ, sin φ)ᵀ.

    >>> ellipse(np.zeros(2), np.diag([4.0, 1.0]), 1.0).max(axis=0)
    array([2., 1.])
    """
    angle = np.linspace(0, 2 * np.pi, 201)
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T
    return mean + deviations * np.column_stack([np.cos(angle), np.sin(angle)]) @ root


def _check_generative(model: Any) -> None:
    """An error where the model has no densities of its columns."""
    if not isinstance(model, GaussianClassifier | NaiveBayes):
        raise ParameterError(
            f"{type(model).__name__} has no densities of its columns.",
            "Pass a fitted GaussianClassifier or NaiveBayes.",
        )
    check_is_fitted(model)


def _gaussians(model: GaussianClassifier, places: list[int]) -> tuple[Array, Array]:
    """Means (K, m) and covariances (K, m, m) of columns, the others being integrated out."""
    schema = model.schema_
    factors = [j for j in places if j in schema.categorical]
    if factors:
        raise ParameterError(
            f"A Gaussian has no density of the levels of {schema.describe_all(factors)}.",
            "Choose numeric columns, or draw a NaiveBayes.",
        )
    positions = Columns(schema).positions
    at = [positions[j][0] for j in places]
    d = model.means_.shape[1]
    covariances = np.broadcast_to(model.covariances_, (len(model.means_), d, d))
    found = covariances[:, at][:, :, at]
    flat = ~(np.diagonal(found, axis1=1, axis2=2) > 0).all(axis=0)
    if flat.any():
        raise _constant_column(model, places[int(flat.argmax())])
    return model.means_[:, at], found


def marginal_of(model: Generative, j: int, largest: float = 0.0) -> Marginal:
    """The distribution of column j in each class; counts go to `largest` at least."""
    if isinstance(model, GaussianClassifier):
        means, covariances = _gaussians(model, [j])
        return _normal(means[:, 0], np.sqrt(covariances[:, 0, 0]))
    family, found = model.families_[j], model.parameters_[model.schema_.names[j]]
    if family == "gaussian":
        sd = np.broadcast_to(found["sd"], found["mean"].shape)
        if not (sd > 0).all():
            raise _constant_column(model, j)
        return _normal(found["mean"], sd)
    if family == "exponential":
        return tuple(stats.expon(scale=mean) for mean in found["mean"])
    if family == "poisson":
        means = found["mean"]
        states = np.arange(int(max(largest, stats.poisson.ppf(1 - _TAIL, means).max(), 1)) + 1)
        return Bars(tuple(states.tolist()), stats.poisson.pmf(states, means[:, None]))
    if family == "bernoulli":
        one = found["probability"]
        return Bars((0, 1), np.column_stack([1 - one, one]))
    return Bars(tuple(found["levels"]), found["probability"])


def _normal(means: Array, deviations: Array) -> tuple[Any, ...]:
    return tuple(stats.norm(*pair) for pair in zip(means, deviations, strict=True))


def _constant_column(model: Generative, j: int) -> ParameterError:
    return ParameterError(
        f"{model.schema_.describe(j).capitalize()} never changes, and was left out of the model.",
        "Choose another column.",
    )


def _entries(
    model: Generative, X: Any, y: Any, j: int, sample_weight: Any
) -> tuple[list[Any], Codes | None, Array]:
    """The entries of a column that are not missing, their classes if y is given, and weights."""
    if X is None:
        if y is not None:
            raise ParameterError("y is given without X.", "Pass the rows that y belongs to.")
        return [], None, np.empty(0)
    table = read_table(X)
    weight = weights_of(sample_weight, len(table.array))
    codes = None if y is None else codes_of(y, model.classes_, len(table.array))
    by_name = table.frame is not None and model.schema_.named
    place = table.place(model.schema_.names[j] if by_name else j)
    if model.schema_.columns[j].kind == "categorical":
        values = table.array[:, place]
    else:
        values = table.numbers(place, missing=True)
    kept = [i for i, value in enumerate(values.tolist()) if not is_missing(value)]
    return values[kept].tolist(), None if codes is None else codes[kept], weight[kept]


def _draw_curves(axes: Axes, marginal: tuple[Any, ...], scale: Array, known: list[Style]) -> None:
    for k, style in enumerate(known):
        x = np.linspace(marginal[k].ppf(_TAIL), marginal[k].ppf(1 - _TAIL), 201)
        look: dict[str, Any] = {"color": style.colour, "linestyle": style.line, "linewidth": 2}
        axes.plot(x, scale[k] * marginal[k].pdf(x), label=style.label, **look)


def _draw_rows(
    axes: Axes, scale: Array, known: list[Style], values: Array, codes: Codes | None, weight: Array
) -> None:
    """A histogram of each class with common bins, or ticks."""
    if codes is None:
        low = np.full(len(values), 0.02)
        tick: dict[str, Any] = {"marker": "|", "markersize": 10, "linestyle": "none", "alpha": 0.4}
        axes.plot(values, low, color="black", transform=axes.get_xaxis_transform(), **tick)
        return
    automatic = len(np.histogram_bin_edges(values, "auto")) - 1
    edges = np.histogram_bin_edges(values, int(np.clip(automatic, 15, 40)))
    for k, style in enumerate(known):
        own = codes == k
        if weight[own].any():
            height = np.histogram(values[own], edges, weights=weight[own], density=True)[0]
            axes.stairs(scale[k] * height, edges, fill=True, color=style.colour, alpha=0.25)


def _draw_bars(axes: Axes, marginal: Bars, scale: Array, known: list[Style]) -> None:
    """Bars side by side, or lines where there are very many states."""
    places = np.arange(len(marginal.states))
    for k, style in enumerate(known):
        height = scale[k] * marginal.probability[k]
        look: dict[str, Any] = {"color": style.colour, "label": style.label}
        if len(places) > _MOST_BARS:
            axes.plot(places, height, linestyle=style.line, **look)
        else:
            look |= {"edgecolor": "black", "linewidth": 0.6, "hatch": _HATCHES[k % len(_HATCHES)]}
            axes.bar(places + _offset(k, len(known)), height, width=0.8 / len(known), **look)
    if len(places) <= _MOST_BARS:
        set_ticks(axes, [str(state) for state in marginal.states])


def _draw_shares(
    axes: Axes,
    marginal: Bars,
    scale: Array,
    known: list[Style],
    values: list[Any],
    codes: Codes | None,
    weight: Array,
) -> None:
    """Markers at the shares of the rows of each class."""
    if codes is None:
        raise ParameterError(
            "X is given without y, and a discrete column has no ticks for rows.",
            "Pass y too, or leave X out.",
        )
    places = np.arange(len(marginal.states))
    apart = len(places) <= _MOST_BARS
    for k, share in enumerate(marginal.shares(values, codes, weight)):
        x = places + (_offset(k, len(known)) if apart else 0.0)
        look: dict[str, Any] = {"color": known[k].colour, "marker": known[k].marker, "s": 36}
        label = None if k else "rows"
        axes.scatter(x, scale[k] * share, edgecolors="black", label=label, zorder=3, **look)


def _offset(k: int, n_classes: int) -> float:
    """The place of the bar of class k beside its state."""
    return 0.8 * ((k + 0.5) / n_classes - 0.5)
