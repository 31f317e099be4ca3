"""Regions and densities of the classes over one or two columns.

Conventions: n rows, m points along each side of a plane, K classes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray
from scipy import stats
from scipy.ndimage import gaussian_filter
from sklearn.utils.validation import check_is_fitted

from posteriori.arguments import check_choice
from posteriori.decision.probabilities import class_place
from posteriori.design.columns import Columns
from posteriori.errors import ParameterError
from posteriori.inspection.effects import position_of, user_table
from posteriori.models.discriminants import FisherDiscriminant
from posteriori.models.gaussian import GaussianClassifier
from posteriori.models.naive_bayes import NaiveBayes
from posteriori.report.plots import style
from posteriori.rows.features import Table, read_features
from posteriori.rows.frames import Change, as_pickable, changed_table, entries_of, pick_rows
from posteriori.typing import Array, Codes

_MARGIN = 0.08
_FAINTEST, _STRONGEST = 0.06, 0.45
_GREYS = 0.85, 0.7, 0.95, 0.6
"""Of the regions of actions."""

_TAIL = 1e-4
"""The probability that a curve leaves out at either end."""

_BINS = 25
"""Of the histogram of a continuous column."""

Generative = GaussianClassifier | NaiveBayes
Entries = tuple[Array, Codes, Array]
"""Finite entries of a column, or known levels, the classes of their rows, and weights (n,)."""


@dataclass(frozen=True, eq=False)
class Plane:
    """The rows as points (n, 2), and a grid: its sides (m,) and the rows its points stand for."""

    labels: tuple[str, str]
    points: Array
    horizontal: Array
    vertical: Array
    grid_rows: Any
    shape: tuple[int, int]


def decision_regions(
    model: Any,
    X: Any,
    y: Any,
    *,
    columns: Sequence[Any] | None = None,
    plane: Any = None,
    ax: Axes | None = None,
    resolution: int = 200,
) -> Axes:
    """Draw which class `model` predicts where; the paler, the less probable the class.

    Without `columns` and `plane`, X has two columns. With `columns`, a pair of names or numbers,
    the model may have more columns, which are at their mean (rounded if all entries are whole
    numbers) or most frequent level. With `plane`, "fisher" or a fitted
    `FisherDiscriminant(n_components=2)` or another transformer, a point z stands for the row
    x̄ + Bᵀ(z - z̄), where B is the least-squares regression of the rows of X on their coordinates:
    the average row at that point. For a model with one shared covariance and at most three classes,
    Fisher's plane loses nothing; for others, a row may be classified differently from the point
    where it is drawn.

    A model that decides for actions, as `DecidingClassifier` does, has grey regions for the
    actions. `resolution` is the number of points along each side.

    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> ax = decision_regions(GaussianNB().fit(X, y), X, y, columns=(2, 3))
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['0', '1', '2']
    """
    classes, found = model.classes_, _read_plane(model, X, y, columns, plane, resolution)
    codes = style.codes_of(y, classes, len(found.points))
    chosen = np.asarray(model.predict(found.grid_rows)).reshape(found.shape)
    axes = style.new_axes(ax)
    _draw_regions(axes, found, model, classes.tolist(), chosen)
    style.draw_rows(axes, found.points, codes, classes, found.labels)
    return axes


def posterior_surface(
    model: Any,
    X: Any,
    y: Any,
    *,
    label: Any = None,
    columns: Sequence[Any] | None = None,
    plane: Any = None,
    ax: Axes | None = None,
    resolution: int = 200,
) -> Axes:
    """Draw p(C|x) of one class: the darker, the more probable, with lines at 0.1, 0.2, ..., 0.9.

    `label` is the class, by default the second of two. `columns` and `plane` choose the plane, as
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
    classes, found = model.classes_, _read_plane(model, X, y, columns, plane, resolution)
    k, codes = class_place(label, classes), style.codes_of(y, classes, len(found.points))
    share = np.asarray(model.predict_proba(found.grid_rows))[:, k].reshape(found.shape)
    axes, edges = style.new_axes(ax), np.linspace(0, 1, 11)
    strength = _FAINTEST + _STRONGEST * (edges[:-1] + edges[1:]) / 2
    shades = style.tinted(style.colour_of(k), strength)
    shaded = axes.contourf(found.horizontal, found.vertical, share, levels=edges, colors=shades)
    axes.figure.colorbar(shaded, ax=axes)
    style.draw_rows(axes, found.points, codes, classes, found.labels)
    levels = [p for p in edges if share.min() < p < share.max()]
    if levels:
        widths = [2.0 if p == 0.5 else 0.8 for p in levels]
        look: dict[str, Any] = {"levels": levels, "colors": style.GREY, "linewidths": widths}
        axes.contour(found.horizontal, found.vertical, share, **look)
    axes.set_title(f"probability of class {classes.tolist()[k]}")
    return axes


def _read_plane(
    model: Any, X: Any, y: Any, columns: Sequence[Any] | None, plane: Any, resolution: int
) -> Plane:
    """The plane of two columns or components, and `resolution` points along each of its sides."""
    if columns is not None and plane is not None:
        raise ParameterError("columns and plane exclude each other.", "Pass one of them.")
    rows = as_pickable(X)
    table = user_table(model, rows)
    names = table.schema.names
    if plane is None:
        pair = style.two_positions(columns, names)
        points, labels = style.numbers_of(table, pair), (names[pair[0]], names[pair[1]])
    else:
        values = style.numbers_of(table, range(len(names)))
        if isinstance(plane, str):
            check_choice("plane", plane, ["fisher"])
            plane = FisherDiscriminant(n_components=2).fit(X, y)
        points, labels = np.asarray(plane.transform(X)), ("component 1", "component 2")
    low, high = points.min(axis=0), points.max(axis=0)
    margin = np.where(high > low, _MARGIN * (high - low), 1.0)
    horizontal, vertical = np.linspace(low - margin, high + margin, resolution).T
    grid = np.stack(np.meshgrid(horizontal, vertical), axis=-1).reshape(-1, 2)
    if plane is None:
        new = dict(zip(pair, grid.T, strict=True))
    else:  # x̄ + Bᵀ(z - z̄)
        centre, middle = values.mean(axis=0), points.mean(axis=0)
        back = np.linalg.lstsq(points - middle, values - centre)[0]
        new = dict(enumerate((centre + (grid - middle) @ back).T))
    others = set(range(len(names))) - set(new)
    new |= {j: np.full(len(grid), _typical(table, j)) for j in others}
    changes = [_replace_by(own, j) for j, own in new.items()]
    start = pick_rows(rows, np.resize(np.arange(table.n_rows), len(grid)))
    grid_rows, shape = changed_table(start, table, changes), (resolution, resolution)
    return Plane(labels, points, horizontal, vertical, grid_rows, shape)


def _replace_by(new: Array, j: int) -> Change:
    return Change(j, lambda _: new)


def _typical(table: Table, j: int) -> float:
    """The mean of a column, rounded if all entries are whole; or its most frequent level."""
    entries = entries_of(table, j)
    if table.schema.columns[j].kind == "numeric":
        present = entries[np.isfinite(entries)]
        mean = float(present.mean())
        return round(mean) if (present % 1 == 0).all() else mean
    return int(np.bincount(entries[entries >= 0].astype(np.intp)).argmax())


def _draw_regions(
    axes: Axes, plane: Plane, model: Any, classes: list[Any], chosen: NDArray[Any]
) -> None:
    """A region for each class or action that is `chosen` (m, m), with its boundary."""
    strength = np.full((*plane.shape, len(classes)), _STRONGEST)
    if hasattr(model, "predict_proba"):
        K, proba = len(classes), np.asarray(model.predict_proba(plane.grid_rows))
        sureness = np.maximum(proba.reshape(strength.shape) * K - 1, 0.0) / (K - 1)
        strength = _FAINTEST + (_STRONGEST - _FAINTEST) * sureness
    image, greys = np.empty((*plane.shape, 3)), cycle(_GREYS)
    for name in sorted(set(chosen.ravel().tolist()), key=str):
        inside = chosen == name
        if name in classes:
            k = classes.index(name)
            image[inside] = style.tinted(style.colour_of(k), strength[inside, k])
        else:
            image[inside] = grey = next(greys)
            label = "reject" if name is None else str(name)
            axes.fill([], [], color=str(grey), edgecolor="0.25", label=label)
        if not inside.all():
            line: dict[str, Any] = {"levels": [0.5], "colors": "0.25", "linewidths": 0.8}
            smooth = gaussian_filter(inside.astype(np.float64), 1.0)
            axes.contour(plane.horizontal, plane.vertical, smooth, **line)
    axes.pcolormesh(plane.horizontal, plane.vertical, image, shading="nearest", rasterized=True)


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
    are drawn too: as a histogram, or as markers on the bars. Entries that are missing or infinite,
    and levels that were not in the fit, are left out.

    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = GaussianClassifier().fit(X, y)
    >>> ax = class_densities(model, X, y, column="petal width (cm)")
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('petal width (cm)', 'density in the class')
    """
    check_is_fitted(model)
    j = position_of(column, model.schema_.names)
    values, codes, weight = _entries(model, X, y, j, sample_weight)
    found, column_of = _distributions(model, j), model.schema_.columns[j]
    axes, is_discrete = style.new_axes(ax), hasattr(found[0], "pmf")
    if column_of.kind == "categorical":
        style.set_ticks(axes, list(map(str, column_of.levels)))
    elif is_discrete:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    states, edges = _states(found, values), np.histogram_bin_edges(values, _BINS)
    width = 0.8 / len(found)
    for k, (label, each) in enumerate(zip(map(str, model.classes_.tolist()), found, strict=True)):
        own, scale = codes == k, float(model.priors_[k]) if weighted else 1.0
        total, look = weight[own].sum(), dict[str, Any](color=style.colour_of(k))
        if is_discrete:
            x = states + (k + 0.5) * width - 0.4
            axes.bar(x, scale * each.pmf(states), width, label=label, **look)
        else:
            x = np.linspace(each.ppf(_TAIL), each.ppf(1 - _TAIL), 201)
            axes.plot(x, scale * each.pdf(x), label=label, linewidth=2, **style.line_style(k))
        if total and is_discrete:
            share = np.bincount(values[own].astype(int), weight[own], states[-1] + 1)[states]
            share[share == 0] = np.nan  # no marker
            rows = style.point_style(k) | {"label": None if k else "rows"}
            axes.plot(x, scale * share / total, **rows)
        elif total:
            height = np.histogram(values[own], edges, weights=weight[own], density=True)[0]
            axes.stairs(scale * height, edges, fill=True, alpha=0.25, **look)
    what = "probability" if is_discrete else "density"
    axes.set_ylabel(f"{what} in the class" + " × prior of the class" * bool(weighted))
    axes.set(xlabel=column_of.name, ylim=(0, None))
    style.add_legend(axes, title="class", handlelength=3.5)
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
    needed where the model has more than two.

    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianClassifier(covariance="full").fit(X, y)
    >>> ax = density_ellipses(model, X, y, columns=(2, 3))
    >>> ax.get_xlabel(), len(ax.get_lines())
    ('x2', 6)
    """
    check_is_fitted(model)
    names = model.schema_.names
    pair = style.two_positions(columns, names)
    means, covariances = _gaussians(model, pair)
    table = read_features(X, model.schema_, type(model).__name__)
    points = style.numbers_of(table, pair)
    codes = style.codes_of(y, model.classes_, len(points))
    axes = style.new_axes(ax)
    style.draw_rows(axes, points, codes, model.classes_, [names[j] for j in pair])
    for k, (mean, covariance) in enumerate(zip(means, covariances, strict=True)):
        for deviations in (1, 2):
            ring = ellipse(mean, covariance, deviations)
            axes.plot(*ring.T, **style.line_style(k), linewidth=3 - deviations)
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


def _gaussians(model: GaussianClassifier, columns: list[int]) -> tuple[Array, Array]:
    """Means (K, m) and covariances (K, m, m) of columns, the others being integrated out."""
    schema = model.schema_
    factors = [j for j in columns if j in schema.categorical]
    if factors:
        raise ParameterError(
            f"A Gaussian has no density of the levels of {schema.describe_all(factors)}.",
            "Choose numeric columns, or draw a NaiveBayes.",
        )
    at = [Columns(schema).positions[j][0] for j in columns]
    d = model.means_.shape[1]
    found = np.broadcast_to(model.covariances_, (len(model.means_), d, d))[:, at][:, :, at]
    return model.means_[:, at], found


def _distributions(model: Generative, j: int) -> list[Any]:
    """The distribution of column j in each class, by SciPy; of levels, that of their codes."""
    if isinstance(model, GaussianClassifier):
        means, covariances = _gaussians(model, [j])
        return _normals(model, j, means[:, 0], np.sqrt(covariances[:, 0, 0]))
    family, found = model.families_[j], model.parameters_[model.schema_.names[j]]
    if family == "gaussian":
        return _normals(model, j, found["mean"], np.broadcast_to(found["sd"], found["mean"].shape))
    if family == "exponential":
        return [stats.expon(scale=mean) for mean in found["mean"]]
    if family == "poisson":
        return list(map(stats.poisson, found["mean"]))
    if family == "bernoulli":
        return list(map(stats.bernoulli, found["probability"]))
    codes = np.arange(found["probability"].shape[1])
    return [stats.rv_discrete(values=(codes, each)) for each in found["probability"]]


def _normals(model: Generative, j: int, means: Array, deviations: Array) -> list[Any]:
    if not (deviations > 0).all():
        raise ParameterError(
            f"{model.schema_.describe(j).capitalize()} is constant, and was left out of the model.",
            "Choose another column.",
        )
    return list(map(stats.norm, means, deviations))


def _states(found: list[Any], values: Array) -> Codes:
    """The values of a discrete column: all, or of counts those that are probable or occurred."""
    if not hasattr(found[0], "pmf"):
        return np.empty(0, dtype=np.intp)
    first, last = found[0].support()
    if np.isinf(last):
        first = min([*(each.ppf(_TAIL) for each in found), *values])
        last = max([*(each.ppf(1 - _TAIL) for each in found), *values, 1.0])
    return np.arange(int(first), int(last) + 1)


def _entries(model: Generative, X: Any, y: Any, j: int, sample_weight: Any) -> Entries:
    if X is None and y is None:
        return np.empty(0), np.empty(0, dtype=np.intp), np.empty(0)
    table = read_features(X, model.schema_, type(model).__name__)
    values = entries_of(table, j)
    codes = style.codes_of(y, model.classes_, len(values))
    weight = style.weights_of(sample_weight, len(values))
    known = values >= 0 if j in table.schema.categorical else np.isfinite(values)
    kept = known & (weight > 0)
    return values[kept], codes[kept], weight[kept]
