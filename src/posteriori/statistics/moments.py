"""Weighted count, mean and scatter matrix of each class, merged stably.

Conventions: K classes, d design columns. With the weights w of the rows of class k, N_k = Σw and
m_k = Σwx / N_k. The scatter is S_k = Σ w (x - m_k)(x - m_k)ᵀ (4.75)-(4.80) of each class
(K, d, d) or, where it is `pooled`, the sum of all of them (1, d, d).

`ExpectedMoments` are the E step of expectation-maximisation: for a row of class k with entries o
present and m missing, under N(μ, Σ), E[x_m] = μ_m + Σ_mo Σ_oo⁻¹ (x_o - μ_o) and
cov[x_m] = Σ_mm - Σ_mo Σ_oo⁻¹ Σ_om (2.81)-(2.82).
"""

from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from posteriori.design.columns import Columns
from posteriori.design.matrix import Dense, Design
from posteriori.errors import SingularCovarianceError, StatisticsError
from posteriori.linalg import (
    COLLINEAR,
    cholesky,
    dependent_columns,
    solve_lower,
    transpose_matmul,
    unit_diagonal,
)
from posteriori.rows.block import Block, Mixed, check_finite
from posteriori.rows.schema import Schema
from posteriori.statistics.column_moments import ColumnMoments, merge_weights, over
from posteriori.statistics.statistic import (
    ColumnStatistic,
    Statistic,
    align,
    centred,
    class_counts,
    class_sums,
    is_soft,
    membership,
    recoding,
    rows_by_class,
    spread,
    weights_of,
)
from posteriori.typing import Array, Codes, Labels

Present = NDArray[np.bool_]

_LOG_2PI = float(np.log(2 * np.pi))

_DIGITS_KEPT = 1e-4
"""Least ratio of the sum of squares about the class means to that about the common centre, at which
the difference of the sums of products has enough digits."""


@dataclass(frozen=True, eq=False)
class Moments(ColumnStatistic):
    """Count (K,), mean (K, d) and scatter, of each class or pooled."""

    pooled: bool
    count: Array
    scatter: Array
    by_class: ClassVar = ("count", "mean")

    @property
    def squares(self) -> Array:
        return np.diagonal(self.scatter, axis1=1, axis2=2).sum(0)

    def __add__(self, other: "Moments") -> "Moments":
        self, other = align(self, other)
        if self.pooled != other.pooled:
            raise StatisticsError(
                "The scatter of the statistics is pooled over different groups of classes.",
                "Gather both with the same covariance setting.",
            )
        total, share, pair = merge_weights(self.count, other.count)
        step = other.mean - self.mean
        with np.errstate(over="ignore", invalid="ignore"):
            scatter = self.scatter + other.scatter
            if self.pooled:
                scatter[0] += (step * pair[:, None]).T @ step
            else:
                for k, one in enumerate(step):
                    scatter[k] += np.outer(pair[k] * one, one)
        mean = self.mean + step * share[:, None]
        return replace(self, count=total, mean=mean, scatter=scatter)

    def with_classes(self, classes: Labels, places: Codes) -> "Moments":
        scatter = self.scatter if self.pooled else spread(self.scatter, places, len(classes))
        return replace(super().with_classes(classes, places), scatter=scatter)

    def with_levels(self, schema: Schema) -> "Moments":
        if schema == self.schema:
            return self
        M, offset = recoding(self.schema, schema)
        mean = np.where(self.count[:, None] > 0, self.mean @ M.T + offset, 0.0)
        return replace(self, schema=schema, mean=mean, scatter=M @ self.scatter @ M.T)

    def pool(self) -> "Moments":
        """All classes together (4.78)."""
        return replace(self, pooled=True, scatter=self.scatter.sum(0, keepdims=True))

    def by_column(self) -> ColumnMoments:
        """Those of each column alone, of a scatter that is not pooled."""
        count = np.repeat(self.count[:, None], self.mean.shape[1], axis=1)
        squares = np.einsum("kii->ki", self.scatter)
        return ColumnMoments(self.classes, self.schema, self.mean, self.count, count, squares)

    def with_vacant_classes_centred(self) -> "Moments":
        """With the means of classes without rows at the mean of all rows."""
        if self.count.all():
            return self
        return replace(self, mean=np.where(self.count[:, None] > 0, self.mean, self.total()[1]))

    def total(self) -> tuple[float, Array, Array]:
        """Count, mean (d,) and scatter (d, d) of all rows, whatever their class (4.43)-(4.45)."""
        n = self.count.sum()
        near = self.mean[self.count.argmax()]  # far from zero, the mean about it has more digits
        mean = near + self.count @ (self.mean - near) / n
        step = self.mean - mean
        return n, mean, self.scatter.sum(0) + (step * self.count[:, None]).T @ step


@dataclass(frozen=True, eq=False)
class GatherMoments:
    """The kernel: a block of rows to its `Moments`."""

    columns: Columns
    classes: Labels
    pooled: bool

    def __call__(self, block: Block) -> Moments:
        with np.errstate(over="ignore", invalid="ignore"):
            found = self._by_products(block) if self.pooled else None
            if found is None:
                found = reduce(add, map(self._about_means, self.columns.dense_parts(block)))
        if not np.isfinite(found.mean).all():
            check_finite(block, self.columns.schema)
        return found

    def _by_products(self, block: Block) -> Moments | None:
        """Σxxᵀ - Σ N_k m_k m_kᵀ about one centre; None where that loses digits."""
        design, centre = self._about_centre(block)
        sums = class_sums(design, block, len(self.classes))
        if isinstance(design, Dense) and block.weight is None:
            products = transpose_matmul(design.values, design.values)
        else:
            products = design.sandwich(weights_of(block))
        mean = over(sums, class_counts(block, len(self.classes))[:, None])
        squares = np.diagonal(products).copy()
        products -= sums.T @ mean
        exact = np.diagonal(products) >= _DIGITS_KEPT * squares
        if block.weight is None and not is_soft(block):
            exact = exact[self.columns.numeric]  # sums of indicators are exact
        return self._statistic(block, mean + centre, products[None]) if exact.all() else None

    def _about_centre(self, block: Block) -> tuple[Design, Array]:
        """The design, with dense columns that are far from zero centred near their means."""
        design, X = self.columns.design(block), block.X
        centre = np.zeros(design.shape[1])
        if not isinstance(X, csr_array):
            centre[self.columns.numeric] = far_centre(X.numeric if isinstance(X, Mixed) else X)
        return (design.shifted(centre) if centre.any() else design), centre

    def _about_means(self, block: Block) -> Moments:
        """Each class centred by itself; one product a class."""
        X, K = self.columns.design(block).array(), len(self.classes)
        d = X.shape[1]
        mean, scatter = np.zeros((K, d)), np.zeros((1 if self.pooled else K, d, d))
        for k, own, weight in rows_by_class(X, block, K):
            _, mean[k], residual = centred(own, weight)
            scatter[0 if self.pooled else k] += transpose_matmul(residual, residual)
        return self._statistic(block, mean, scatter)

    def _statistic(self, block: Block, mean: Array, scatter: Array) -> Moments:
        count = class_counts(block, len(self.classes))
        mean = np.where(count[:, None] > 0, mean, 0.0)
        return Moments(self.classes, self.columns.schema, mean, self.pooled, count, scatter)


def far_centre(X: Array) -> Array | float:
    """About the mean of the rows (d,), by a few of them; zero where they are near that."""
    if not len(X):
        return 0.0
    sample = X[:: max(1, len(X) // 64)]
    centre = sample[0] + (sample - sample[0]).mean(axis=0)  # exact for constant columns
    return 0.0 if (centre**2 <= sample.var(axis=0)).all() else centre


@dataclass(frozen=True, eq=False)
class ExpectedMoments(Statistic):
    """Moments of the completed rows, and the log-likelihood ln p(x_o|C_k) of what is present."""

    moments: Moments
    log_likelihood: float


@dataclass(frozen=True, eq=False)
class GatherExpectedMoments:
    """The kernel: rows in coordinates (x - centre) / scale, completed under N(mean_k, Σ_g).

    `groups` (K,) has the number g of the covariance (G, d, d) of each class.
    """

    columns: Columns
    classes: Labels
    groups: Codes
    centre: Array
    scale: Array
    mean: Array
    covariance: Array

    def __call__(self, block: Block) -> ExpectedMoments:
        return reduce(add, map(self._expected, self.columns.dense_parts(block)))

    def _expected(self, block: Block) -> ExpectedMoments:
        X = (self.columns.design(block).array() - self.centre) / self.scale
        member = membership(block, len(self.classes))
        total = ExpectedMoments(self._nothing(), 0.0)
        patterns, which = np.unique(~np.isnan(X), axis=0, return_inverse=True)
        for p, present in enumerate(patterns):
            rows = np.flatnonzero(which.ravel() == p)
            for k in np.flatnonzero(member[rows].any(axis=0)):
                inside = rows[member[rows, k] > 0]
                total = total + self._of_class(int(k), X[inside], member[inside, k], present)
        return total

    def _nothing(self) -> Moments:
        """The moments of no rows."""
        K, d = self.mean.shape
        pooled = len(self.covariance) == 1
        scatter = np.zeros((1 if pooled else K, d, d))
        return Moments(
            self.classes, self.columns.schema, np.zeros((K, d)), pooled, np.zeros(K), scatter
        )

    def _of_class(self, k: int, X: Array, weight: Array, present: Present) -> ExpectedMoments:
        """Rows of one class that lack the same entries."""
        covariance = self.covariance[self.groups[k]]
        # Constant columns carry no information; missing entries in them get the mean.
        o = np.flatnonzero(present & (np.diagonal(covariance) > 0))
        m = np.flatnonzero(~present)
        lower = self._cholesky(int(self.groups[k]), o)
        white = solve_lower(lower, (X[:, o] - self.mean[k, o]).T)
        gain = solve_lower(lower, covariance[np.ix_(o, m)])
        filled = X.copy()
        filled[:, m] = self.mean[k, m] + white.T @ gain
        logs = -0.5 * (
            (white**2).sum(axis=0) + len(o) * _LOG_2PI + 2 * np.log(np.diagonal(lower)).sum()
        )
        uncertain = np.zeros_like(covariance)
        uncertain[np.ix_(m, m)] = covariance[np.ix_(m, m)] - gain.T @ gain
        total = float(weight.sum())
        moments = self._nothing()
        moments.count[k], moments.mean[k] = total, weight @ filled / total
        residual = (filled - moments.mean[k]) * np.sqrt(weight)[:, None]
        moments.scatter[0 if moments.pooled else k] += residual.T @ residual + total * uncertain
        return ExpectedMoments(moments, float(weight @ logs))

    def _cholesky(self, g: int, columns: Codes) -> Array:
        """The factor of the covariance of some columns; an error names those that are collinear."""
        part = self.covariance[g][np.ix_(columns, columns)]
        lower = cholesky(part)
        if lower is not None and (np.diagonal(lower) ** 2 > COLLINEAR * np.diagonal(part)).all():
            return lower
        culprits = columns[dependent_columns(unit_diagonal(part)[0])]
        members = self.classes[self.groups == g].tolist()
        raise SingularCovarianceError(
            f"The covariance of {'class' if len(members) == 1 else 'classes'} "
            f"{', '.join(map(repr, members[:6]))} became singular while missing entries were "
            f"filled in: {self.columns.as_schema().describe_all(culprits)} can be computed from "
            "the other columns, or the rows are too few.",
            "Drop such columns, set shrinkage='auto', or use covariance='diagonal'.",
        )
