"""Expected moments of rows with missing entries: the E step of expectation-maximisation.

For a row of class k with entries o present and m missing, under N(μ, Σ),
E[x_m] = μ_m + Σ_mo Σ_oo⁻¹ (x_o - μ_o) and cov[x_m] = Σ_mm - Σ_mo Σ_oo⁻¹ Σ_om (2.81)-(2.82).
Shapes are those of `moments`.
"""

from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from posteriori.design.columns import Columns
from posteriori.errors import SingularCovarianceError
from posteriori.linalg import COLLINEAR, cholesky, dependent_columns, solve_lower, unit_diagonal
from posteriori.rows.block import Block
from posteriori.statistics.moments import Moments
from posteriori.statistics.statistic import Statistic, membership
from posteriori.typing import Array, Codes, Labels

Present = NDArray[np.bool_]

_LOG_2PI = float(np.log(2 * np.pi))


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
