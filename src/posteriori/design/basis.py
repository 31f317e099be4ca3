"""Fixed basis functions φ_j(x) (4.3.1): Gaussians about centres, and sigmoids of one column each.

Conventions: n rows, d columns, m functions; X (n, d) finite; centres in the units of the data.
A `rate` is one over a width, in the units of the data; a rate of zero leaves a column out.
Gaussians have m centres (m, d), sigmoids one array of centres a column.
Polynomials are scikit-learn's `PolynomialFeatures`.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from scipy.spatial import KDTree
from scipy.special import expit
from sklearn.cluster import kmeans_plusplus

from posteriori.errors import ParameterError, ScaleError, ShapeError
from posteriori.rows.block import Block
from posteriori.rows.features import as_frame, read_features
from posteriori.rows.finite import check_finite
from posteriori.rows.schema import Schema
from posteriori.typing import Array, Codes

_FAR = 500.0

"""Half the squared distance from the origin, in widths, beyond which |x|² - 2xᵀμ + |μ|² would lose
more than four digits."""


class Functions:
    """What both kinds share: as many functions as centres, written into an array."""

    centres: Array

    @property
    def n_functions(self) -> int:
        return len(self.centres)

    def values(self, X: Array) -> Array:
        """φ(x) of each row (n, m)."""
        return self.fill(X, np.empty((len(X), self.n_functions)))

    @abstractmethod
    def fill(self, X: Array, out: Array) -> Array:
        """φ(x) of each row, written into `out` (n, m)."""


@dataclass(frozen=True, eq=False)
class Gaussians(Functions):
    """φ_j(x) = exp(-½ Σ_k rate_k² (x_k - μ_jk)²), for centres μ (m, d) and rates (d,).

    `origin` (d,) is a point amid the rows: the squares are expanded about it, so that one product
    gives the distances of all rows from all centres.

    >>> gaussians = Gaussians(np.array([[0.0], [2.0]]), np.array([0.5]), np.array([1.0]))
    >>> gaussians.values(np.array([[0.0], [1.0]])).round(4)
    array([[1.    , 0.6065], [0.8825, 0.8825]])
    """

    centres: Array
    rate: Array
    origin: Array

    @cached_property
    def _points(self) -> Array:
        """The centres about the origin, in widths (m, d)."""
        return (self.centres - self.origin) * self.rate

    @cached_property
    def _halves(self) -> Array:
        return 0.5 * np.square(self._points).sum(axis=1)

    def fill(self, X: Array, out: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            steps = (X - self.origin) * self.rate
            half = 0.5 * np.einsum("ij,ij->i", steps, steps)
            np.matmul(steps, self._points.T, out=out)
            out -= self._halves
            out -= half[:, None]
            np.exp(np.minimum(out, 0.0, out=out), out=out)
            far = np.flatnonzero(~(half <= _FAR))
            if len(far):
                out[far] = self._by_differences(X[far])
        return out

    def _by_differences(self, X: Array) -> Array:
        """The same from x - μ itself: d passes in place of one product, and no digit lost."""
        square = np.zeros((len(X), len(self.centres)))
        for k in np.flatnonzero(self.rate):
            square += np.square((X[:, k, None] - self.centres[:, k]) * self.rate[k])
        return np.exp(-0.5 * square)


@dataclass(frozen=True, eq=False)
class Sigmoids(Functions):
    """φ_j(x) = σ(rate_j (x_k - μ_j)) with k = `column` j; all of length m.

    >>> sigmoids = Sigmoids(np.array([0, 0, 1]), np.array([0.0, 1.0, 5.0]), np.array([1.0, 2, 0]))
    >>> sigmoids.values(np.array([[1.0, 7.0]])).round(4)
    array([[0.7311, 0.5   , 0.5   ]])
    """

    column: Codes
    centres: Array
    rate: Array

    def fill(self, X: Array, out: Array) -> Array:
        np.take(X, self.column, axis=1, out=out, mode="clip")
        with np.errstate(over="ignore", under="ignore"):
            out -= self.centres
            out *= self.rate
            return cast(Array, expit(out, out=out))


_MOST_CENTRES = 10_000

"""A grid of more is a mistake: a few points a column are millions in all when columns are many."""


def middles(low: float, high: float, number: int) -> Array:
    """The middles of `number` equal parts of a range; one where the range is a point.

    >>> middles(0.0, 3.0, 3), middles(2.0, 2.0, 3)
    (array([0.5, 1.5, 2.5]), array([2.]))
    """
    share = (np.arange(number) + 0.5) / number
    return np.unique(low * (1 - share) + high * share) if low < high else np.array([low])


def even_axes(low: Array, high: Array, number: int) -> list[Array]:
    """The middles of `number` equal parts of the range of each column."""
    return [middles(a, b, number) for a, b in zip(low, high, strict=True)]


def grid(axes: Sequence[Array]) -> Array:
    """Every combination of a value of each axis, the last axis running fastest.

    >>> grid([np.array([0.0, 1.0]), np.array([5.0])])
    array([[0., 5.], [1., 5.]])
    """
    total = np.prod([float(len(axis)) for axis in axes])
    if total > _MOST_CENTRES:
        raise ParameterError(
            f"A grid over {len(axes)} columns would have {total:.3g} centres.",
            "Use placement='data', fewer centres a column, or fewer columns.",
        )
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


def scattered(points: Array, count: Codes, number: int, random: Any) -> Codes:
    """Which of the distinct `points` to take: spread out, yet most where most rows are.

    Greedy k-means++: one after another they are drawn with probability in proportion to the rows
    there (`count`) times their squared distance from the nearest one so far; the best of a few
    draws is kept.
    """
    if number > len(points):
        raise ParameterError(
            f"centres={number}, but X has {len(points)} distinct rows to put them on.",
            "Ask for fewer, or pass the centres themselves.",
        )
    if number == len(points):
        return np.arange(number)
    weight = count.astype(np.float64)
    _, chosen = kmeans_plusplus(points, number, sample_weight=weight, random_state=random)
    return cast(Codes, np.sort(chosen))


def spacing(points: Array, spread: Array) -> float:
    """Median distance of a point from its nearest neighbour.

    For a single point, the root mean square distance of rows from their mean, whose columns vary
    with the standard deviations `spread`; for rows that are all alike, one.

    >>> spacing(np.array([[0.0], [1.0], [3.0], [6.0]]), np.array([1.0]))
    1.5
    >>> spacing(np.array([[0.0, 0.0]]), np.array([3.0, 4.0]))
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


def step_spacing(steps: Array, spread: float) -> float:
    """The median spacing of the centres in one column; where they are one, its `spread`.

    >>> step_spacing(np.array([0.0, 1.0, 3.0]), 9.0), step_spacing(np.array([2.0]), 9.0)
    (1.5, 9.0)
    """
    gaps = np.diff(np.unique(steps))
    return float(np.median(gaps)) if len(gaps) else spread


def rates(width: Array, schema: Schema) -> Array:
    """One over the width in each column; zero where that is infinite, as for constant columns."""
    with np.errstate(over="ignore", divide="ignore"):
        rate = 1 / width
    lost = np.isinf(rate) | ((rate < np.finfo(np.float64).tiny) & np.isfinite(width))
    if lost.any():
        raise ScaleError(
            "The width of the functions is too small or too large for doubles in "
            f"{schema.describe_all(np.flatnonzero(lost))}.",
            "Multiply the column by a constant that brings it near one.",
        )
    return rate


def given_points(centres: Any, schema: Schema) -> Array:
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
            f"Pass one centre a row: shape (m, {len(schema)}).",
        )
    return points


def given_steps(centres: Any, n_columns: int) -> list[Array]:
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
