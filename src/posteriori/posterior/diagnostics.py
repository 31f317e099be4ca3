"""Collinear columns, by Belsley's condition indices (1991), and the influence of single rows.

Conventions: m design columns of unit length, with Σ φφᵀ = Σ_j λ_j v_j v_jᵀ. The condition index of
the j-th direction is √(λ_max/λ_j). The variance of the coefficient of column k is proportional to
Σ_j v_kj²/λ_j; the proportion of the j-th term says how much of it is due to that direction.

With an intercept the columns are taken about their means, as the fits take them: an index is then
large only where columns are collinear, whatever their origins. Indices of uncentred columns are
large also where a column hardly varies beside its mean, which makes only the intercept uncertain.
"""

from dataclasses import dataclass, field

import numpy as np

from posteriori.design.columns import Columns
from posteriori.design.standardise import STILL, Standard
from posteriori.errors import InferenceError
from posteriori.likelihood.loss import Loss
from posteriori.likelihood.softmax import SoftmaxLoss
from posteriori.linalg import unit_diagonal
from posteriori.posterior.activations import root_of
from posteriori.posterior.inference import Inference
from posteriori.posterior.log_posterior import BLOCK_ENTRIES
from posteriori.rows.block import Rows
from posteriori.rows.threads import one_blas_thread
from posteriori.statistics.column_moments import column_spread
from posteriori.statistics.leverage import GatherInfluence, Influence
from posteriori.statistics.local_quadratic import GatherProducts
from posteriori.typing import Array

LARGE, VERY_LARGE = 10.0, 30.0
"""Condition indices from which columns are collinear, and from which that is harmful."""

_INVOLVED = 0.5
"""Proportion of the variance of a coefficient that involves its column."""


@dataclass(frozen=True)
class Dependency:
    """A direction in which columns nearly cancel, its condition index, and the columns in it.

    `proportions` are those of the variances of their coefficients. An index is infinite where
    columns cancel exactly.
    """

    index: float
    columns: tuple[str, ...]
    proportions: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Collinearity:
    """Condition indices (m,), the largest first, and proportions of variances (m, m).

    proportions[j, k] is that of index j in the variance of the coefficient of column k of `names`.
    `constant` names columns that never change, which are left out.
    """

    names: tuple[str, ...]
    indices: Array
    proportions: Array = field(repr=False)
    constant: tuple[str, ...] = ()

    @property
    def largest(self) -> float:
        """The largest index; one where there are no columns."""
        return float(self.indices.max(initial=1.0))

    def dependencies(self, above: float = LARGE) -> tuple[Dependency, ...]:
        """What makes the indices above a limit, the largest first."""
        return tuple(self._dependency(int(j)) for j in np.flatnonzero(self.indices > above))

    def _dependency(self, j: int) -> Dependency:
        """The columns with most of their variance in direction j; the two with most at least."""
        share = self.proportions[j]
        order = np.argsort(-share, kind="stable")
        involved = order[: max(2, int((share > _INVOLVED).sum()))]
        columns = tuple(self.names[k] for k in involved)
        return Dependency(float(self.indices[j]), columns, tuple(share[involved].tolist()))


def collinearity_of(rows: Rows, columns: Columns, intercept: bool = True) -> Collinearity:
    """The condition indices of the columns, by two passes over the rows."""
    mean, deviation = column_spread(rows, columns)
    size = deviation if intercept else np.hypot(deviation, mean)
    constant = size <= STILL * abs(mean)
    centre = mean if intercept else np.zeros(len(mean))
    standard = Standard(centre, np.where(constant, 1.0, size), intercept)
    products = standard.inward_matrix(rows.map_sum(GatherProducts(columns, standard)))
    first, kept = int(intercept), np.flatnonzero(~constant)
    if intercept:  # which rounding leaves of the means
        products = products - np.outer(products[0], products[0]) / products[0, 0]
    indices, proportions = decompose(products[first:, first:][np.ix_(kept, kept)])
    names = np.array(columns.names, dtype=object)
    return Collinearity(tuple(names[kept]), indices, proportions, tuple(names[constant]))


def decompose(products: Array) -> tuple[Array, Array]:
    """Condition indices (m,) and proportions (m, m) from Σ φφᵀ, columns being scaled.

    >>> indices, proportions = decompose(np.array([[1.0, 0.99], [0.99, 1.0]]))
    >>> indices.round(2), proportions[0].round(3)
    (array([14.11,  1.  ]), array([0.995, 0.995]))
    """
    correlation, _ = unit_diagonal(products)
    values, vectors = np.linalg.eigh(correlation)
    least = np.finfo(np.float64).eps * len(values) * values.max(initial=0.0)
    lam = np.maximum(values, least)
    ratio = np.divide(values.max(initial=0.0), lam, out=np.ones_like(lam), where=lam > 0)
    shares = np.divide(vectors**2, lam, out=np.ones_like(vectors), where=lam > 0).T
    indices = np.where(values > least, np.sqrt(ratio), np.inf)
    return indices, shares / shares.sum(axis=0)


def influence_of(inference: Inference, most: int = 5) -> Influence:
    """The rows with the largest Cook's distances and leverages, by one pass over those of the fit.

    Both go by the expected curvature at the optimum, with that of the prior, if there is one; with
    a posterior that was found otherwise, by its covariance. An error where the curvature is not
    available, or where the fit leaves nothing unexplained.
    """
    inference.goodness.check_rows()
    objective, dispersion = inference.objective, inference.goodness.dispersion
    if not dispersion > 0:
        raise InferenceError(
            "The fit meets every target, so that no row has influence.",
            "Fit fewer columns, or more rows.",
        )
    canonical = isinstance(objective.loss, SoftmaxLoss) or (
        isinstance(objective.loss, Loss) and objective.loss.canonical
    )
    inverse = inference.free_covariance("model" if canonical else "expected") / dispersion
    kernel = GatherInfluence(
        objective.kernel(inference.w, information="expected"),
        objective.directions(np.ascontiguousarray(root_of(inverse).T)),
        len(inference.w) * dispersion,
        most,
    )
    with one_blas_thread():
        return objective.rows.map_sum(kernel, block_entries=BLOCK_ENTRIES)
