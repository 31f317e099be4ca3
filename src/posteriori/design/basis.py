"""Fixed basis functions φ_j(x) (4.3.1): Gaussians about centres, and sigmoids of one column each.

Conventions: n rows, d columns, m functions; X (n, d) finite; centres in the units of the data.
A `rate` is one over a width, in the units of the data; a rate of zero leaves a column out.
Gaussians have m centres (m, d), sigmoids one array of centres a column.
Polynomials are scikit-learn's `PolynomialFeatures`.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist
from scipy.special import expit
from sklearn.cluster import KMeans

from posteriori.errors import ParameterError, ScaleError, ShapeError
from posteriori.rows.block import Block, check_finite
from posteriori.rows.features import as_frame, read_features
from posteriori.rows.schema import Schema
from posteriori.typing import Array, Codes


class BasisFunctions:
    """As many functions as centres."""

    centres: Array

    @abstractmethod
    def __call__(self, X: Array) -> Array:
        """φ(x) of each row (n, m)."""


@dataclass(frozen=True, eq=False)
class Gaussians(BasisFunctions):
    """φ_j(x) = exp(-½ Σ_k rate_k² (x_k - μ_jk)²), for centres μ (m, d) and rates (d,).

    >>> gaussians = Gaussians(np.array([[0.0], [2.0]]), np.array([0.5]))
    >>> gaussians(np.array([[0.0], [1.0]])).round(4)
    array([[1.    , 0.6065],
           [0.8825, 0.8825]])
    """

    centres: Array
    rate: Array

    def __call__(self, X: Array) -> Array:
        used = np.flatnonzero(self.rate)
        with np.errstate(over="ignore", under="ignore"):
            x, centres = (points[:, used] * self.rate[used] for points in (X, self.centres))
            return np.exp(-0.5 * cdist(x, centres, "sqeuclidean"))


@dataclass(frozen=True, eq=False)
class Sigmoids(BasisFunctions):
    """φ_j(x) = σ(rate_j (x_k - μ_j)) with k = `column` j; all of length m.

    >>> sigmoids = Sigmoids(np.array([0, 0, 1]), np.array([0.0, 1.0, 5.0]), np.array([1.0, 2, 0]))
    >>> sigmoids(np.array([[1.0, 7.0]])).round(4)
    array([[0.7311, 0.5   , 0.5   ]])
    """

    column: Codes
    centres: Array
    rate: Array

    def __call__(self, X: Array) -> Array:
        with np.errstate(over="ignore", under="ignore"):
            return cast(Array, expit((X[:, self.column] - self.centres) * self.rate))


_MOST_CENTRES = 10_000
"""Centres of a grid: a few points per column are millions in all when there are many columns."""


def midpoints(low: float, high: float, number: int) -> Array:
    """The midpoints of `number` equal parts of a range; one where the range is a point.

    >>> midpoints(0.0, 3.0, 3), midpoints(2.0, 2.0, 3)
    (array([0.5, 1.5, 2.5]), array([2.]))
    """
    share = (np.arange(number) + 0.5) / number
    return np.unique(low * (1 - share) + high * share) if low < high else np.array([low])


def grid_axes(X: Array, number: int) -> list[Array]:
    """The midpoints of `number` equal parts of the range of each column."""
    ranges = zip(X.min(axis=0), X.max(axis=0), strict=True)
    return [midpoints(low, high, number) for low, high in ranges]


def grid(axes: Sequence[Array]) -> Array:
    """Every combination of a value of each axis, the last axis varying fastest.

    >>> grid([np.array([0.0, 1.0]), np.array([5.0])])
    array([[0., 5.], [1., 5.]])
    """
    total = np.prod([float(len(axis)) for axis in axes])
    if total > _MOST_CENTRES:
        raise ParameterError(
            f"A grid over {len(axes)} columns would have {total:.3g} centres.",
            "Use placement='data', fewer centres per column, or fewer columns.",
        )
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


def kmeans_centres(points: Array, unit: Array, number: int | None, random: Any) -> Array:
    """Means of k-means clusters of the points, with columns measured in `unit` (d,).

    Started by greedy k-means++ (Arthur and Vassilvitskii 2007). The default is one centre for ten
    points, 10 to 100 in all, and no more than half the number of distinct points.
    """
    distinct, count = np.unique(points, axis=0, return_counts=True)
    if number is None:
        number = min(max(10, min(len(points) // 10, 100)), (len(distinct) + 1) // 2)
    if number > len(distinct):
        raise ParameterError(
            f"centres={number}, but X has {len(distinct)} distinct rows.",
            "Use fewer, or pass the centres themselves.",
        )
    scaled = (distinct - points.mean(axis=0)) / unit
    found = KMeans(number, n_init=1, tol=0.0, random_state=random).fit(scaled, sample_weight=count)
    scale = np.where(np.isfinite(unit), unit, 0.0)
    return cast(Array, found.cluster_centers_ * scale + points.mean(axis=0))


def neighbour_spacing(points: Array, spread: Array) -> float:
    """Median distance of a point from its nearest neighbour.

    For a single point, the root mean square distance of rows from their mean, whose columns vary
    with the standard deviations `spread`; for rows that are all alike, one.

    >>> neighbour_spacing(np.array([[0.0], [1.0], [3.0], [6.0]]), np.array([1.0]))
    1.5
    >>> neighbour_spacing(np.array([[0.0, 0.0]]), np.array([3.0, 4.0]))
    5.0
    """
    if len(points) == 1:
        return float(np.linalg.norm(spread)) or 1.0
    distance, _ = KDTree(points).query(points, k=2)
    found = float(np.median(distance[:, 1]))
    if found == 0:
        raise ParameterError(
            "Most centres coincide with another, so that their spacing gives no width.",
            "Pass the width, or centres that differ.",
        )
    return found


def grid_spacing(axes: Sequence[Array], unit: Array) -> float | None:
    """Root mean square of the spacings of the axes, in units (d,); None for a single point.

    >>> grid_spacing([np.array([0.0, 3.0]), np.array([0.0, 8.0]), np.zeros(1)], np.array([1, 2, 1]))
    3.5355339059327378
    """
    pairs = zip(axes, unit, strict=True)
    gaps = [(axis[1] - axis[0]) / one for axis, one in pairs if len(axis) > 1]
    return float(np.sqrt(np.mean(np.square(gaps)))) if gaps else None


def column_spacing(steps: Array, spread: float) -> float:
    """The median spacing of the centres in one column; where they are one, its `spread`.

    >>> column_spacing(np.array([0.0, 1.0, 3.0]), 9.0), column_spacing(np.array([2.0]), 9.0)
    (1.5, 9.0)
    """
    gaps = np.diff(np.unique(steps))
    return float(np.median(gaps)) if len(gaps) else spread


def rates(width: Array, schema: Schema) -> Array:
    """One over the width in each column; zero where that is infinite, as for constant columns."""
    with np.errstate(over="ignore", divide="ignore"):
        rate = 1 / width
    if np.isinf(rate).any():
        raise ScaleError(
            "The width of the functions is too small in "
            f"{schema.describe_all(np.flatnonzero(np.isinf(rate)))}.",
            "Multiply the column by a constant that brings it near one.",
        )
    return rate


def read_centres(centres: Any, schema: Schema) -> Array:
    """Centres (m, d) as the user gave them; those of a data frame by the names of its columns."""
    if as_frame(centres) is not None:
        table = read_features(centres, schema, "The basis")
        block = Block(table.cut(0, table.n_rows), None, None, 0)
        check_finite(block, schema)
        return cast(Array, block.X)
    points = _numbers(centres)
    if points.ndim == 1 and len(schema) == 1:
        points = points[:, None]
    if points.ndim != 2 or points.shape[1] != len(schema) or len(points) == 0:
        raise ShapeError(
            f"centres has shape {points.shape}, but X has {len(schema)} columns.",
            f"Pass an array of shape (m, {len(schema)}).",
        )
    return points


def read_column_centres(centres: Any, n_columns: int) -> list[Array]:
    """Centres (m,) for every column alike, or those of (m, d) column by column."""
    steps = _numbers(centres)
    if steps.ndim not in (1, 2) or steps.size == 0 or steps.shape[1:] not in ((), (n_columns,)):
        raise ShapeError(
            f"centres has shape {steps.shape}, but X has {n_columns} columns.",
            f"Pass (m,) for all columns alike, or (m, {n_columns}).",
        )
    return [steps] * n_columns if steps.ndim == 1 else list(steps.T)


def _numbers(centres: Any) -> Array:
    try:
        numbers = np.array(centres, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"centres={centres!r} is not understood.", "Pass a number of centres, or an array."
        ) from error
    if not np.isfinite(numbers).all():
        raise ParameterError("centres holds NaN or infinity.", "Pass finite numbers.")
    return numbers
