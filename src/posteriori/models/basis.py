"""Fixed basis functions φ_j(x) (4.3.1) as transformers: Gaussians about centres, and sigmoids.

Conventions: n rows, d columns, m functions; centres and `scale`, the width of the functions in
each column, in the units of the data. A column of infinite scale is left out. Polynomials are
scikit-learn's `PolynomialFeatures`.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Literal, Self, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.cluster import KMeans
from sklearn.utils import check_array, check_random_state, resample
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from posteriori.arguments import check_choice, check_count, check_number
from posteriori.errors import ColumnTypeError, ParameterError, ShapeError
from posteriori.rows.block import Block, check_finite
from posteriori.rows.features import Table, as_frame, read_features
from posteriori.rows.in_memory import MemoryRows
from posteriori.rows.schema import Schema
from posteriori.rows.threads import one_blas_thread
from posteriori.typing import Array

Placement = Literal["data", "grid"]
Units = Literal["standardised", "original"]

_SAMPLE = 10_000
"""Rows that k-means and quantiles are computed from."""

_MOST_CENTRES = 10_000
"""Centres of a grid: a few points per column are millions in all when there are many columns."""

_KMEANS_STEPS = 20

_PER_COLUMN = 5
"""Default number of grid points, or of sigmoids, per column."""

_LEAST = 1e-150
"""Widths below this have reciprocals whose squares are beyond the doubles."""


class BasisTransformer(TransformerMixin, BaseEstimator):
    """Columns of basis functions of the rows, by their centres and widths."""

    centres: Any
    placement: Placement
    width: float | None
    units: Units
    random_state: Any

    schema_: Schema

    def __init__(
        self,
        *,
        centres: int | ArrayLike | None = None,
        placement: Placement = "data",
        width: float | None = None,
        units: Units = "standardised",
        random_state: Any = 0,
    ) -> None:
        self.centres = centres
        self.placement = placement
        self.width = width
        self.units = units
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose centres and width by the rows X (n, d); y is not used."""
        self._check_parameters()
        table = self._read(X, None)
        rows = dense(Block(table.cut(0, table.n_rows), None, None, 0), table.schema)
        random = check_random_state(self.random_state)
        sample = rows
        if len(rows) > _SAMPLE:
            sample = resample(rows, replace=False, n_samples=_SAMPLE, random_state=random)
        with one_blas_thread():
            self._place(rows, sample, table.schema, random)
        self.schema_, self.n_features_in_ = table.schema, len(table.schema)
        if table.schema.named:
            self.feature_names_in_ = np.array(table.schema.names, dtype=object)
        else:
            self.__dict__.pop("feature_names_in_", None)
        return self

    @abstractmethod
    def _place(self, X: Array, sample: Array, schema: Schema, random: Any) -> None:
        """Set `centres_`, `width_` and the functions; an error leaves them unchanged."""

    def transform(self, X: Any) -> Array:
        """φ(x) of each row, (n, m)."""
        check_is_fitted(self)
        rows = MemoryRows(self._read(X, self.schema_))
        out = np.empty((rows.n_rows, self._n_features_out))
        return rows.fill(out, lambda block: self._values(dense(block, self.schema_)))

    @abstractmethod
    def _values(self, X: Array) -> Array:
        """φ(x) of each row."""

    @property
    @abstractmethod
    def _n_features_out(self) -> int: ...

    def _read(self, X: Any, schema: Schema | None) -> Table:
        table = read_features(X, schema, type(self).__name__)
        if table.schema.categorical:
            raise ColumnTypeError(
                f"{type(self).__name__} needs numbers, but these are categorical: "
                f"{table.schema.describe_all(table.schema.categorical)}.",
                "Pass numeric columns only, with make_column_transformer.",
            )
        return table

    def _check_parameters(self) -> None:
        check_choice("placement", self.placement, get_args(Placement))
        check_choice("units", self.units, get_args(Units))
        if np.ndim(self.centres) == 0:
            check_count("centres", self.centres, "centres", none=True)
        if self.width is not None:
            check_number("width", self.width, positive=True)

    def _unit(self, spread: Array) -> Array:
        """The length of one in each column (d,)."""
        return spread if self.units == "standardised" else np.ones(len(spread))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class GaussianBasis(ClassNamePrefixFeaturesOutMixin, BasisTransformer):
    """Gaussian bumps φ_j(x) = exp(-|x - μ_j|²/(2s²)) about centres μ_j, as columns for any model.

    A linear function of them is not linear in x: f(wᵀφ(x)), as in section 4.3.1.
    Distances are in standardised columns, so that they do not depend on the units; a column that
    is constant in the fit is left out. No function is constant: the models have an intercept.

    Parameters
    ----------
    centres : None, a number, or an array or data frame (m, d)
        The number of centres, or the centres themselves in the units of X. By default a tenth of
        the number of rows, from 10 to 100 (and at most half the distinct rows); on a grid, 5 per
        column.
    placement : "data" or "grid"
        "data": the means of k-means clusters of the rows (beyond 10,000 rows, of a random sample
        of as many). "grid": midpoints of equal parts of the range of each column, in every
        combination.
    width : None or a number
        The s of all functions, in standard deviations (or the units of X). By default the spacing
        of the centres: the median distance of a centre from its nearest neighbour; for a single
        centre, the root mean square distance of the rows from their mean.
    units : "standardised" or "original"
        Whether distances are in standard deviations of each column, or in units of X.
    random_state : int, RandomState or None
        Seed of k-means; the same rows get the same centres unless it is None.

    Attributes
    ----------
    centres_ (m, d) in the units of X; width_ in the units chosen; n_features_in_,
    feature_names_in_. Columns must be numbers or booleans; sparse rows give dense columns.

    A fitted model, and its pickle, contains the centres. They are means of rows; the mean of a
    cluster of one row, such as an outlier, is that row. With placement="grid" they contain no row,
    but the ranges of the columns.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.pipeline import make_pipeline
    >>> from posteriori import LeastSquaresClassifier
    >>> X, y = make_moons(400, noise=0.2, random_state=0)
    >>> GaussianBasis(centres=20).fit_transform(X).shape
    (400, 20)
    >>> model = make_pipeline(GaussianBasis(centres=20), LeastSquaresClassifier()).fit(X, y)
    >>> LeastSquaresClassifier().fit(X, y).score(X, y), model.score(X, y)
    (0.8775, 0.9675)
    """

    centres_: Array
    width_: float
    _scale: Array

    def _values(self, X: Array) -> Array:
        with np.errstate(over="ignore", under="ignore"):
            x, centres = X / self._scale, self.centres_ / self._scale
            return np.exp(-0.5 * cdist(x, centres, "sqeuclidean"))

    @property
    def _n_features_out(self) -> int:
        return len(self.centres_)

    def _place(self, X: Array, sample: Array, schema: Schema, random: Any) -> None:
        unit, mean = self._unit(spread_of(X)), X.mean(axis=0)
        if np.ndim(self.centres):
            centres = read_centres(self.centres, schema)
        elif self.placement == "grid":
            centres = grid(grid_axes(X, self.centres or _PER_COLUMN))
        else:
            centres = kmeans_centres(sample, unit, self.centres, random)
        self.width_ = self.width or neighbour_spacing((centres - mean) / unit, (X - mean) / unit)
        self._scale, self.centres_ = self.width_ * unit, centres


class SigmoidBasis(BasisTransformer):
    """Soft steps φ_j(x) = σ((x_k - μ_j)/s_k) of each column k, as columns for any model.

    A linear function wᵀφ(x) (section 4.3.1) is a sum of smooth functions of one column each,
    constant beyond the data.

    Parameters
    ----------
    centres : None, a number, or an array (m,) or (m, d)
        The number of steps per column, by default 5; or where they are in the units of X, for all
        columns alike or column by column.
    placement : "data" or "grid"
        "data": at the quantiles of the column in the middle of equal parts of the rows
        (beyond 10,000 rows, of a random sample). "grid": at the midpoints of equal parts of its
        range. Equal steps count once, so a constant column has one.
    width : None or a number
        The s of all columns, in standard deviations (or the units of X). By default half the
        median spacing of the column's centres; for a single centre, half a standard deviation.
    units : "standardised" or "original"
        Whether `width` is in standard deviations of each column, or in units of X.
    random_state : int, RandomState or None
        Seed of the sample; the same rows get the same centres unless it is None.

    Attributes
    ----------
    centres_, one array per column; width_ (d,), infinite for columns that are constant in the fit,
    whose φ is ½ everywhere; both in the units of X; n_features_in_, feature_names_in_. Columns
    must be numbers or booleans; sparse rows give dense columns.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> basis = SigmoidBasis(centres=2, placement="grid").fit(X)
    >>> basis.centres_, basis.width_
    ([array([0.75, 2.25])], array([0.75]))
    >>> basis.transform(X).round(2)
    array([[0.27, 0.05], [0.58, 0.16], [0.84, 0.42], [0.95, 0.73]])
    >>> basis.get_feature_names_out(["age"]).tolist()
    ['age_sigmoid0', 'age_sigmoid1']
    """

    centres_: list[Array]
    width_: Array

    def _values(self, X: Array) -> Array:
        parts = zip(X.T, self.centres_, self.width_, strict=True)
        with np.errstate(over="ignore", under="ignore"):
            steps = [(x[:, None] - centres) / width for x, centres, width in parts]
            return cast(Array, expit(np.hstack(steps)))

    @property
    def _n_features_out(self) -> int:
        return sum(map(len, self.centres_))

    def _place(self, X: Array, sample: Array, schema: Schema, random: Any) -> None:
        if np.ndim(self.centres):
            centres = list(read_centres(self.centres, schema, by_column=True).T)
        elif self.placement == "grid":
            centres = grid_axes(X, self.centres or _PER_COLUMN)
        else:
            middles = midpoints(0.0, 1.0, self.centres or _PER_COLUMN)
            centres = [np.unique(steps) for steps in np.quantile(sample, middles, axis=0).T]
        spread = spread_of(X)
        if self.width is None:
            width = 0.5 * np.array(list(map(column_spacing, centres, spread)))
        else:
            width = self.width * self._unit(spread)
        self.centres_, self.width_ = centres, width

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the functions: age_sigmoid0, age_sigmoid1, ..."""
        check_is_fitted(self)
        pairs = zip(_check_feature_names_in(self, input_features), self.centres_, strict=True)
        names = [f"{name}_sigmoid{j}" for name, steps in pairs for j in range(len(steps))]
        return np.array(names, dtype=object)


def dense(block: Block, schema: Schema) -> Array:
    """The numbers of a block as an array; an error names one that is missing or infinite."""
    X = block.X.toarray() if isinstance(block.X, csr_array) else cast(Array, block.X)
    if not np.isfinite(X).all():
        check_finite(block, schema)
    return X


def spread_of(X: Array) -> Array:
    """The standard deviation of each column, infinite for columns that are constant."""
    spread = X.std(axis=0)
    return np.where((X.min(axis=0) < X.max(axis=0)) & (spread > _LEAST), spread, np.inf)


def midpoints(low: float, high: float, number: int) -> Array:
    """The midpoints of `number` equal parts of a range; one where the range is a point.

    >>> midpoints(0.0, 3.0, 3), midpoints(2.0, 2.0, 3)
    (array([0.5, 1.5, 2.5]), array([2.]))
    """
    return np.unique(np.linspace(low, high, 2 * number + 1)[1::2])


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
    kmeans = KMeans(number, n_init=1, max_iter=_KMEANS_STEPS, tol=0.0, random_state=random)
    found = kmeans.fit(scaled, sample_weight=count)
    scale = np.where(np.isfinite(unit), unit, 0.0)
    return cast(Array, found.cluster_centers_ * scale + points.mean(axis=0))


def neighbour_spacing(centres: Array, rows: Array) -> float:
    """Median distance of a centre from its nearest neighbour.

    For a single centre, the root mean square distance of `rows` from their mean, which is zero;
    one for rows that are all alike.

    >>> neighbour_spacing(np.array([[0.0], [1.0], [3.0], [6.0]]), np.ones((1, 1)))
    1.5
    >>> neighbour_spacing(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0], [-3.0, -4.0]]))
    5.0
    """
    if len(centres) == 1:
        return float(np.sqrt(np.square(rows).sum(axis=1).mean())) or 1.0
    distance, _ = KDTree(centres).query(centres, k=2)
    found = float(np.median(distance[:, 1]))
    if found == 0:
        raise ParameterError(
            "Most centres coincide with another, so that their spacing gives no width.",
            "Pass the width, or centres that differ.",
        )
    return found


def column_spacing(steps: Array, spread: float) -> float:
    """The median spacing of the centres in one column; where they are one, its `spread`.

    >>> column_spacing(np.array([0.0, 1.0, 3.0]), 9.0), column_spacing(np.array([2.0]), 9.0)
    (1.5, 9.0)
    """
    gaps = np.diff(np.unique(steps))
    return float(np.median(gaps)) if len(gaps) else spread


def read_centres(centres: Any, schema: Schema, *, by_column: bool = False) -> Array:
    """Centres (m, d) as the user gave them; those of a data frame by the names of its columns.

    With `by_column`, centres (m,) are those of every column.
    """
    d = len(schema)
    if as_frame(centres) is not None:
        table = read_features(centres, schema, "The basis")
        return np.array(dense(Block(table.cut(0, table.n_rows), None, None, 0), schema))
    points = check_array(
        centres, dtype=np.float64, ensure_2d=False, copy=True, input_name="centres"
    )
    if points.ndim == 1 and (by_column or d == 1):
        points = np.repeat(points[:, None], d, axis=1)
    if points.ndim != 2 or points.shape[1] != d:
        shapes = f"(m,) for all columns alike, or (m, {d})" if by_column else f"(m, {d})"
        raise ShapeError(
            f"centres has shape {points.shape}, but X has {d} columns.",
            f"Pass an array of shape {shapes}.",
        )
    return cast(Array, points)
