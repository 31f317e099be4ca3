"""The densities of the columns in each class, of models that have them (extra `plots`).

Conventions: K classes, L states of a discrete column.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from scipy import stats
from sklearn.utils.validation import check_is_fitted

from posteriori.arguments import check_flag
from posteriori.design.columns import Columns
from posteriori.errors import InfiniteValueError, LevelError, ParameterError
from posteriori.models.gaussian import GaussianClassifier
from posteriori.models.naive_bayes import NaiveBayes
from posteriori.report.palette import Style, new_axes, styles
from posteriori.report.regions import draw_points, two_places
from posteriori.report.tables import Table, codes_of, place_of, read_table
from posteriori.rows.categories import is_missing
from posteriori.typing import Array, Codes

_TAIL = 1e-4
"""The probability that a curve leaves out at either end."""

_POINTS = 201


@dataclass(frozen=True, eq=False)
class Curves:
    """A continuous column: one distribution of SciPy's a class."""

    distributions: tuple[Any, ...]

    def curve(self, k: int) -> tuple[Array, Array]:
        """Places (m,) that cover class k, and its density there."""
        found = self.distributions[k]
        x = np.linspace(found.ppf(_TAIL), found.ppf(1 - _TAIL), _POINTS)
        return x, found.pdf(x)


@dataclass(frozen=True, eq=False)
class Bars:
    """A discrete column: its states in order, and their probabilities (K, L)."""

    states: tuple[Any, ...]
    probability: Array

    def shares(self, values: Any, codes: Codes) -> Array:
        """How often each state occurs among the rows of each class (K, L)."""
        place = {state: i for i, state in enumerate(self.states)}
        count = np.zeros_like(self.probability)
        for k, value in zip(codes.tolist(), values, strict=True):
            if value not in place:
                raise LevelError(f"The model has no state {value!r}.", "Draw the rows it knows.")
            count[k, place[value]] += 1
        total = count.sum(axis=1, keepdims=True)
        return np.divide(count, total, out=np.zeros_like(count), where=total > 0)


Marginal = Curves | Bars
Generative = GaussianClassifier | NaiveBayes


def check_generative(model: Any) -> None:
    """An error where the model has no densities of its columns."""
    if not isinstance(model, GaussianClassifier | NaiveBayes):
        raise ParameterError(
            f"A {type(model).__name__} has no densities of its columns.",
            "Pass a fitted GaussianClassifier or NaiveBayes.",
        )
    check_is_fitted(model)


def place_in(model: Generative, column: Any) -> int:
    """The place of a column of the fit, by its name or by its number."""
    return place_of(column, model.schema_.names, named=model.schema_.named)


def name_in(model: Generative, j: int) -> str:
    """What an axis calls a column of the fit."""
    return model.schema_.names[j] if model.schema_.named else f"column {j}"


def entries(model: Generative, table: Table, j: int) -> Any:
    """The entries (n,) in `table` of a column of the fit: numbers, or levels."""
    by_name = table.frame is not None and model.schema_.named
    place = table.place(model.schema_.names[j] if by_name else j)
    if model.schema_.columns[j].kind == "categorical":
        return table.array[:, place]
    values = table.numbers(place)
    if np.isinf(values).any():
        raise InfiniteValueError(
            f"Row {int(np.isinf(values).argmax())} of {table.names[place]!r} is infinite.",
            "Drop such rows.",
        )
    return values


def gaussians(model: GaussianClassifier, places: list[int]) -> tuple[Array, Array]:
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
        raise _without_density(model, places[int(flat.argmax())])
    return model.means_[:, at], found


def marginal_of(model: Generative, j: int, largest: float = 0.0) -> Marginal:
    """The distribution of column j; counts are taken as far as `largest` at least."""
    if isinstance(model, GaussianClassifier):
        means, covariances = gaussians(model, [j])
        return _normal(means[:, 0], np.sqrt(covariances[:, 0, 0]))
    family, found = model.families_[j], model.parameters_[model.schema_.names[j]]
    if family == "gaussian":
        sd = np.broadcast_to(found["sd"], found["mean"].shape)
        if not (sd > 0).all():
            raise _without_density(model, j)
        return _normal(found["mean"], sd)
    if family == "exponential":
        return Curves(tuple(stats.expon(scale=mean) for mean in found["mean"]))
    if family == "poisson":
        return _poisson(found["mean"], largest)
    if family == "bernoulli":
        one = found["probability"]
        return Bars((0, 1), np.column_stack([1 - one, one]))
    return Bars(tuple(found["levels"]), found["probability"])


def _normal(means: Array, deviations: Array) -> Curves:
    return Curves(tuple(stats.norm(*pair) for pair in zip(means, deviations, strict=True)))


def _poisson(means: Array, largest: float) -> Bars:
    high = int(max(largest, stats.poisson.ppf(1 - _TAIL, means).max(), 1))
    states = np.arange(high + 1)
    return Bars(tuple(states.tolist()), stats.poisson.pmf(states, means[:, None]))


def _without_density(model: Generative, j: int) -> ParameterError:
    return ParameterError(
        f"{model.schema_.describe(j).capitalize()} never changes, and was left out of the model.",
        "Choose another column.",
    )


_DEVIATIONS = (1, 2)
_BINS = (15, 40)
"""The fewest and the most bins of a histogram."""

_MOST_BARS = 40
"""With more states than this, bars are too thin, and a line takes their place."""


def class_densities(
    model: Generative,
    X: Any = None,
    y: Any = None,
    *,
    column: Any,
    weighted: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw p(x_j|C_k) of one column for each class: a curve, or bars where x_j is discrete.

    With `weighted`, each is multiplied by the prior p(C_k), so that the class of the highest curve
    is the most probable one, were this column all there is (4.57). With X and y, the rows of each
    class are drawn too: as a histogram, or as markers on the bars. With X alone there is a tick for
    every row, of a continuous column. Missing entries are left out. Gives the Axes.

    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = GaussianClassifier().fit(X, y)
    >>> ax = class_densities(model, X, y, column="petal width (cm)")
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('petal width (cm)', 'density in the class')
    """
    check_generative(model)
    check_flag("weighted", weighted)
    j = place_in(model, column)
    values, codes = _rows(model, X, y, j)
    is_number = model.schema_.columns[j].kind != "categorical"
    marginal = marginal_of(model, j, max(values) if is_number and len(values) else 0.0)
    weight = model.priors_ if weighted else np.ones(len(model.classes_))
    axes, known = new_axes(ax), styles(model.classes_.tolist())
    if isinstance(marginal, Bars):
        _draw_bars(axes, marginal, weight, known)
        _draw_shares(axes, marginal, weight, known, values, codes)
    else:
        _draw_curves(axes, marginal, weight, known)
        _draw_rows(axes, weight, known, values, codes)
    what = "probability" if isinstance(marginal, Bars) else "density"
    axes.set_ylabel(f"{what} in the class" + " × prior of the class" * bool(weighted))
    axes.set_xlabel(name_in(model, j))
    axes.set_ylim(bottom=0)
    handles, names = axes.get_legend_handles_labels()
    last = [isinstance(handle, PathCollection) for handle in handles]  # the rows beside the bars
    order = np.argsort(last, kind="stable")
    axes.legend(
        [handles[i] for i in order], [names[i] for i in order], title="class", handlelength=3.5
    )
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
    needed where X has more than two. Gives the Axes.

    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianClassifier(covariance="full").fit(X, y)
    >>> ax = density_ellipses(model, X, y, columns=(2, 3))
    >>> ax.get_xlabel(), len(ax.get_lines())
    ('column 2', 6)
    """
    if not isinstance(model, GaussianClassifier):
        raise ParameterError(
            f"A {type(model).__name__} has no covariances.", "Pass a fitted GaussianClassifier."
        )
    check_generative(model)
    table = read_table(X)
    pair = two_places(table, range(table.n_columns) if columns is None else columns)
    by_name = table.frame is not None and model.schema_.named
    places = [place_in(model, table.names[j] if by_name else j) for j in pair]
    means, covariances = gaussians(model, places)
    points = np.column_stack([table.finite(j) for j in pair])
    axes = new_axes(ax)
    draw_points(axes, points, codes_of(y, model.classes_, table.n_rows), model.classes_)
    for style, mean, covariance in zip(
        styles(model.classes_.tolist()), means, covariances, strict=True
    ):
        for deviations in _DEVIATIONS:
            ring = ellipse(mean, covariance, deviations)
            axes.plot(*ring.T, color=style.colour, linestyle=style.line, linewidth=3 - deviations)
    axes.set_xlabel(table.names[pair[0]])
    axes.set_ylabel(table.names[pair[1]])
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


def _rows(model: Generative, X: Any, y: Any, j: int) -> tuple[Any, Codes | None]:
    """The entries of a column that are not missing, and their classes where y is given."""
    if X is None:
        if y is not None:
            raise ParameterError("y is given without X.", "Pass the rows that y belongs to.")
        return [], None
    table = read_table(X)
    codes = None if y is None else codes_of(y, model.classes_, table.n_rows)
    values = entries(model, table, j)
    there = np.array([not is_missing(value) for value in values.tolist()], dtype=np.bool_)
    return values[there].tolist(), None if codes is None else codes[there]


def _draw_curves(axes: Axes, marginal: Curves, weight: Array, known: list[Style]) -> None:
    for k, style in enumerate(known):
        x, density = marginal.curve(k)
        axes.plot(
            x,
            weight[k] * density,
            color=style.colour,
            linestyle=style.line,
            linewidth=2,
            label=style.label,
        )


def _draw_rows(
    axes: Axes, weight: Array, known: list[Style], values: list[float], codes: Codes | None
) -> None:
    """A histogram of each class on bins that all share, or ticks."""
    if not values:
        return
    if codes is None:
        axes.plot(
            values,
            np.full(len(values), 0.02),
            transform=axes.get_xaxis_transform(),
            linestyle="none",
            marker="|",
            markersize=10,
            color="black",
            alpha=0.4,
        )
        return
    entries_ = np.asarray(values)
    automatic = len(np.histogram_bin_edges(entries_, "auto")) - 1
    edges = np.histogram_bin_edges(entries_, int(np.clip(automatic, *_BINS)))
    for k, style in enumerate(known):
        own = entries_[codes == k]
        if len(own):
            height = weight[k] * np.histogram(own, edges, density=True)[0]
            axes.stairs(height, edges, fill=True, color=style.colour, alpha=0.25)


def _draw_bars(axes: Axes, marginal: Bars, weight: Array, known: list[Style]) -> None:
    places = np.arange(len(marginal.states))
    if len(places) > _MOST_BARS:
        for k, style in enumerate(known):
            axes.plot(
                places,
                weight[k] * marginal.probability[k],
                color=style.colour,
                linestyle=style.line,
                label=style.label,
            )
        return
    for k, style in enumerate(known):
        axes.bar(
            places + _offset(k, len(known)),
            weight[k] * marginal.probability[k],
            width=0.8 / len(known),
            color=style.colour,
            edgecolor="black",
            linewidth=0.6,
            hatch=("", "//", "..", "xx", "\\\\", "--", "oo")[k % 7],
            label=style.label,
        )
    words = [str(state) for state in marginal.states]
    turned = sum(map(len, words)) > 50
    axes.set_xticks(places, words, rotation=30 if turned else 0, ha="right" if turned else "center")


def _draw_shares(
    axes: Axes,
    marginal: Bars,
    weight: Array,
    known: list[Style],
    values: list[Any],
    codes: Codes | None,
) -> None:
    if not values:
        return
    if codes is None:
        raise ParameterError(
            "X is given without y, and ticks show nothing of a column of few states.",
            "Pass y too, or leave X out.",
        )
    places = np.arange(len(marginal.states))
    apart = len(places) <= _MOST_BARS
    for k, share in enumerate(marginal.shares(values, codes)):
        axes.scatter(
            places + (_offset(k, len(known)) if apart else 0.0),
            weight[k] * share,
            s=36,
            marker=known[k].marker,
            color=known[k].colour,
            edgecolors="black",
            label="rows" if k == 0 else None,
            zorder=3,
        )


def _offset(k: int, n_classes: int) -> float:
    """Where the bar of class k stands beside its state."""
    return 0.8 * ((k + 0.5) / n_classes - 0.5)
