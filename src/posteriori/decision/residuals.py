"""Residuals averaged over rows of like predictions (Gelman and Hill 2007, section 5.6).

A single residual t - μ of a class says little. Averaged over a bin of n rows it has, if the model
is right, the mean zero and the standard error √(Σ w Var t) / Σ w; 95 % of the bins lie within two.
"""

from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc

from posteriori.decision.bins import bins_of
from posteriori.typing import Array

_FEW, _MANY, _USUAL = 10, 100, 10
"""Rows below which bins hold two rows, and above which there are as many as the root of the rows;
and how many there are between."""

OUTSIDE = 0.0455
"""Chance that an average lies more than two standard errors from zero."""


@dataclass(frozen=True, eq=False)
class BinnedResiduals:
    """For bins (m,) of `n` rows: means of predictions and targets, and a standard error.

    `place` is the mean of what the rows were put into order by.
    """

    n: Array
    place: Array
    predicted: Array
    observed: Array
    error: Array

    @property
    def z(self) -> Array:
        """Mean residuals in standard errors; infinite where there should be none at all."""
        gap = self.observed - self.predicted
        gap[abs(gap) <= 1e-12 * np.maximum(abs(self.predicted), 1e-300)] = 0.0
        certain = np.where(gap == 0, 0.0, np.copysign(np.inf, gap))
        return np.divide(gap, self.error, out=certain, where=self.error > 0)

    @property
    def outside(self) -> NDArray[np.bool_]:
        """Which bins lie more than two standard errors from zero."""
        return abs(self.z) > 2

    @property
    def share(self) -> float:
        """The share of such bins."""
        return float(self.outside.mean())

    @property
    def p_value(self) -> float:
        """The chance of so many such bins, or more, if the model is right."""
        m, k = len(self.n), int(self.outside.sum())
        return 1.0 if k == 0 else float(bdtrc(k - 1, m, OUTSIDE))

    @property
    def worst(self) -> int:
        """The bin that is farthest from zero."""
        return int(abs(self.z).argmax())


def binned_residuals(
    predicted: Array,
    observed: Array,
    variance: Array,
    weight: Array,
    *,
    along: Array | None = None,
    bins: int | None = None,
) -> BinnedResiduals:
    """Bins of rows (n,) with these means, targets, variances of the target, and weights.

    Rows are put into order by their predictions, or `along` something else. There are as many
    `bins` of like size as Gelman and Hill take, or as many as are asked for; rows of one value stay
    together.

    >>> p, t = np.repeat([0.2, 0.6], 50), np.tile([0.0, 1.0], 50)
    >>> found = binned_residuals(p, t, p * (1 - p), np.ones(100))
    >>> found.observed, found.z.round(2)
    (array([0.5, 0.5]), array([ 5.3 , -1.44]))
    """
    order = predicted if along is None else along
    wanted = _number(float(weight.sum())) if bins is None else bins
    bin_of_row = bins_of(order, weight, wanted)

    def total(values: Array) -> Array:
        return cast(Array, np.bincount(bin_of_row, weight * values))

    n = total(np.ones_like(predicted))
    place, mean, rate = (total(values) / n for values in (order, predicted, observed))
    return BinnedResiduals(n, place, mean, rate, np.sqrt(total(variance)) / n)


def _number(rows: float) -> int:
    """How many bins so many rows have.

    >>> _number(6.0), _number(40.0), _number(400.0)
    (3, 10, 20)
    """
    if rows >= _MANY:
        return int(np.sqrt(rows))
    return _USUAL if rows > _FEW else max(int(rows) // 2, 1)
