"""Densities of the classes: of one column, and the Gaussians in two columns."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from scipy import stats
from sklearn.utils.validation import check_is_fitted

from posteriori.design.columns import Columns
from posteriori.errors import LevelError, ParameterError
from posteriori.models.gaussian import GaussianClassifier
from posteriori.models.naive_bayes import NaiveBayes
from posteriori.report.plots import style
from posteriori.rows.block import MISSING, UNSEEN
from posteriori.rows.changes import entries_of
from posteriori.rows.features import read_features
from posteriori.typing import Array, Codes

_TAIL = 1e-4
"""The probability that a curve leaves out at either end."""

_BINS = 25
"""Of the histogram of a continuous column."""

_MOST_BARS = 40
"""With more values than this, a discrete column has curves instead of bars."""

Generative = GaussianClassifier | NaiveBayes
Entries = tuple[Array, Codes, Array]
"""Entries of a column that are not missing, the classes of their rows, and weights (n,)."""


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
    are drawn too: as a histogram, or as markers on the bars. Missing entries are left out.

    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = GaussianClassifier().fit(X, y)
    >>> ax = class_densities(model, X, y, column="petal width (cm)")
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('petal width (cm)', 'density in the class')
    """
    if not isinstance(model, GaussianClassifier | NaiveBayes):
        raise ParameterError(
            f"{type(model).__name__} has no densities of its columns.",
            "Pass a fitted GaussianClassifier or NaiveBayes.",
        )
    check_is_fitted(model)
    j = style.place_of(column, model.schema_.names)
    values, codes, weight = _entries(model, X, y, j, sample_weight)
    found, name = _distributions(model, j), model.schema_.columns[j]
    axes, is_discrete = style.new_axes(ax), hasattr(found[0], "pmf")
    if name.kind == "categorical":
        style.set_ticks(axes, list(map(str, name.levels)))
    elif is_discrete:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    states, edges = _states(found, values), np.histogram_bin_edges(values, _BINS)
    few, width = len(states) <= _MOST_BARS, 0.8 / len(found)
    for k, (label, each) in enumerate(zip(map(str, model.classes_.tolist()), found, strict=True)):
        own, scale = codes == k, float(model.priors_[k]) if weighted else 1.0
        total = weight[own].sum()
        if is_discrete:
            x = states + ((k + 0.5) * width - 0.4 if few else 0.0)
            if few:
                axes.bar(x, scale * each.pmf(states), width, color=style.colour_of(k), label=label)
            else:
                axes.plot(x, scale * each.pmf(states), label=label, **style.line_style(k))
            if total:
                share = np.bincount(values[own].astype(int), weight[own], states[-1] + 1)[states]
                share[share == 0] = np.nan  # no marker
                look = style.point_style(k) | {"label": None if k else "rows"}
                axes.plot(x, scale * share / total, **look)
        else:
            x = np.linspace(each.ppf(_TAIL), each.ppf(1 - _TAIL), 201)
            axes.plot(x, scale * each.pdf(x), label=label, linewidth=2, **style.line_style(k))
            if total:
                height = np.histogram(values[own], edges, weights=weight[own], density=True)[0]
                axes.stairs(scale * height, edges, fill=True, color=style.colour_of(k), alpha=0.25)
    what = "probability" if is_discrete else "density"
    axes.set_ylabel(f"{what} in the class" + " × prior of the class" * bool(weighted))
    axes.set(xlabel=name.name, ylim=(0, None))
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
    if not isinstance(model, GaussianClassifier):
        raise ParameterError(
            f"{type(model).__name__} has no covariances.", "Pass a fitted GaussianClassifier."
        )
    check_is_fitted(model)
    names = model.schema_.names
    pair = style.two_places(columns, names)
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


def _gaussians(model: GaussianClassifier, places: list[int]) -> tuple[Array, Array]:
    """Means (K, m) and covariances (K, m, m) of columns, the others being integrated out."""
    schema = model.schema_
    factors = [j for j in places if j in schema.categorical]
    if factors:
        raise ParameterError(
            f"A Gaussian has no density of the levels of {schema.describe_all(factors)}.",
            "Choose numeric columns, or draw a NaiveBayes.",
        )
    at = [Columns(schema).positions[j][0] for j in places]
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
    if (X is None) != (y is None):
        raise ParameterError("X and y belong together.", "Pass both, or leave both out.")
    if X is None:
        return np.empty(0), np.empty(0, dtype=np.intp), np.empty(0)
    table = read_features(X, model.schema_, type(model).__name__)
    if j in table.schema.categorical:
        values = entries_of(table, j)
        missing = values == MISSING
    else:
        values = style.numbers_of(table, [j], missing=True)[:, 0]
        missing = np.isnan(values)
    if (values == UNSEEN).any() and j in table.schema.categorical:
        row = int((values == UNSEEN).argmax())
        raise LevelError(
            f"Row {row} of {table.schema.describe(j)} has a level that was not in the fit.",
            "Drop such rows.",
        )
    codes = style.codes_of(y, model.classes_, len(values))
    weight = style.weights_of(sample_weight, len(values))
    kept = ~missing & (weight > 0)
    return values[kept], codes[kept], weight[kept]
