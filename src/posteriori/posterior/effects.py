"""Means of rows and their slopes in the columns, with what the coefficients' uncertainty makes of
them.

Conventions: n rows, K means a row (one for two classes, that of the second; one for a number),
A activations a row, q parameters each, Θ (A, q) for standardised columns, p free parameters with
covariance SSᵀ. A row φ has activations a = Θφ and means μ(a). With M = ∂μ/∂a (K, A) and the bends
B = ∂²μ/∂a² (K, A, A), the slope in design column j, of scale c_j, is s_j = M θ_j / c_j, and

    dμ = M dΘ φ,    c_j ds_j = (B θ_j) dΘ φ + M dθ_j.

Put the columns of S for dΘ, and the length of what comes out is the standard error: the delta
method. All of it is linear, so that averages and differences have the averages and differences.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import null_space

from posteriori.design.matrix import Design
from posteriori.likelihood.arithmetic import quiet
from posteriori.likelihood.link import Link
from posteriori.likelihood.links import PROBABILITY_LINKS
from posteriori.likelihood.softmax import probabilities
from posteriori.posterior.activation_gaussian import (
    ActivationGaussian,
    lengths,
    standardised,
)
from posteriori.posterior.inference import Inference
from posteriori.posterior.intervals import check_inside, ends_of_one, root_of
from posteriori.posterior.measure import Measure, Moved
from posteriori.posterior.objective import WIDE
from posteriori.posterior.shown import Shown
from posteriori.rows.block import Block
from posteriori.typing import Array, Codes

_OUTSIDE = 1e-6
"""How much of what moves a value may lie in directions that are not determined."""

_FAINT = 1e-300
"""Where the mean of a row is certain, its slope in the activation may be too small for a double;
but it still is that of what the rows do not determine."""


@dataclass(frozen=True, eq=False)
class DeltaMeasure(Measure):
    """Means at the coefficients found, with errors by the delta method.

    The last `n_open` directions are those that the rows of the fit do not determine: what depends
    on them has an infinite standard error. Rows whose class is certain hardly do so in an average
    with others, which has the error of the others. Of very many coefficients no covariance is
    kept, and there are no directions at all.
    """

    activations: ActivationGaussian
    link: Link
    quantile: float
    n_open: int = 0
    has_errors: bool = True

    @classmethod
    def of(cls, inference: Inference, link: Link, level: float) -> "DeltaMeasure":
        """That of a fit, with intervals for a share `level` of the probability."""
        shown, w, determined = inference.shown, inference.w, inference.determined
        known = shown.coordinates.size <= WIDE
        root = root_of(inference.free_covariance()) if known else np.empty((len(w), 0))
        n_open = 0
        if known and determined is not None:
            undetermined = null_space(determined.T)
            n_open, root = undetermined.shape[1], np.hstack([root, undetermined])
        activations = ActivationGaussian.of(shown, w, root)
        if shown.coordinates.n_activations > 1:
            link = PROBABILITY_LINKS["logit"]
        return cls(activations, link, inference.quantile(level), n_open, known)

    @property
    def shown(self) -> Shown:  # type: ignore[override]
        return self.activations.shown

    @property
    def entries(self) -> int:
        A, m = len(self.activations.theta), self.activations.root.shape[-1]
        return A * A * max(m, A)

    @property
    def sum_entries(self) -> int:
        return len(self.activations.theta) ** 3

    def means(self, block: Block) -> Moved:
        design, a = self._activations(block)
        value, M = self._first(a)
        return Moved(value, M @ self.activations.deviations(design))

    def slopes(self, block: Block, places: Codes) -> Moved:
        design, a = self._activations(block)
        D = self.activations.deviations(design)
        M, B = self._first(a)[1], self._second(a)
        bent = np.einsum("nkab,nbm->nkam", B, D)
        return self._sloped(M, bent, places)

    def total_means(self, block: Block) -> Moved:
        design, a = self._activations(block)
        value, M = _weighted(block, *self._first(a))
        moved = np.einsum("kaq,aqm->km", self._pulled(design, M), self.activations.root)
        return Moved(value.sum(axis=0), moved)

    def total_slopes(self, block: Block, places: Codes) -> Moved:
        design, a = self._activations(block)
        M, B = _weighted(block, self._first(a)[1], self._second(a))
        bent = np.einsum("kabq,bqm->kam", self._pulled(design, B), self.activations.root)
        return self._sloped(M.sum(axis=0), bent, places)

    @quiet
    def _sloped(self, M: Array, bent: Array, places: Codes) -> Moved:
        """Slopes from M (..., K, A) and from B dΘ φ (..., K, A, m)."""
        theta, root = self.activations.theta[:, places], self.activations.root[:, places]
        unit = self.shown.one_unit[places]
        value = np.einsum("...ka,aj->...jk", M, theta)
        moved = np.einsum("...kam,aj->...jkm", bent, theta)
        moved += np.einsum("...ka,ajm->...jkm", M, root)
        return Moved(value / unit[:, None], moved / unit[:, None, None])

    def _activations(self, block: Block) -> tuple[Design, Array]:
        design = standardised(self.shown, block)
        a = self.activations.mean(design, block)
        if a.shape[1] == 1:
            check_inside(self.link, a[:, 0], block)
        return design, a

    @quiet
    def _first(self, a: Array) -> tuple[Array, Array]:
        """μ (n, K) and M (n, K, A)."""
        K = a.shape[1]
        if K == 1:
            p, M = self.link.mean(a[:, 0])[:, None], self.link.slope(a[:, 0])[:, None, None]
        else:
            p = probabilities(a)
            M = p[:, :, None] * away_from(p)
        return p, M + _FAINT * away_from(np.full((1, K), 1 / (K + 1))) if self.n_open else M

    @quiet
    def _second(self, a: Array) -> Array:
        """B (n, K, A, A)."""
        if a.shape[1] == 1:
            return self.link.bend(a[:, 0])[:, None, None, None]
        p = probabilities(a)
        away = away_from(p)
        shared = p[:, :, None] * away
        return p[:, :, None, None] * (away[..., None] * away[:, :, None] - shared[:, None])

    def _pulled(self, design: Design, weights: Array) -> Array:
        """Σ weights φ (..., q) over rows, the weights being (n, ...)."""
        flat = weights.reshape(len(weights), -1)
        pulled = design.transpose_times(flat)
        if self.shown.standard.intercept:
            pulled = np.vstack([flat.sum(axis=0), pulled])
        return pulled.T.reshape(*weights.shape[1:], -1)

    @quiet
    def judged(self, found: Moved) -> Array:
        error = self._errors(found.moved)
        away = self.quantile * error
        return np.stack([found.value, error, found.value - away, found.value + away], axis=-1)

    @quiet
    def judged_means(self, found: Moved) -> Array:
        """The ends are those of the link at the average, as in `predict_interval`."""
        error, value = self._errors(found.moved).ravel(), found.value.ravel()
        a = self.link.activation(value)
        away = np.where(error > 0, self.quantile * error / abs(self.link.slope(a)), 0.0)
        known = np.isfinite(a) & ~np.isnan(away)
        ends = ends_of_one(self.link, np.where(known, a, 0.0), np.where(known, away, 0.0))
        # At an end of the means themselves there is no link to go by.
        ends = np.where(known[:, None], ends, value[:, None])
        columns = np.column_stack([value, error, ends])
        return columns.reshape(*found.value.shape, 4)

    def _errors(self, moved: Array) -> Array:
        """The lengths (..., K) of vectors (..., K, m), infinite where they are not determined."""
        m = moved.shape[-1] - self.n_open
        flat = moved.reshape(math.prod(moved.shape[:-1]), 1, moved.shape[-1])
        error, lost = lengths(flat[..., :m])[:, 0], lengths(flat[..., m:])[:, 0]
        error = np.where(lost > _OUTSIDE * (lost + error), np.inf, error)
        return error.reshape(moved.shape[:-1])


def away_from(p: Array) -> Array:
    """δ_kj - p_j (n, K, K): the derivatives of ln p_k in the activations (4.106).

    >>> away_from(np.array([[0.25, 0.75]]))[0]
    array([[ 0.75, -0.75], [-0.25,  0.25]])
    """
    return np.eye(p.shape[1]) - p[:, None, :]


def _weighted(block: Block, *values: Array) -> list[Array]:
    """Values (n, ...) times the weights of their rows."""
    if block.weight is None:
        return list(values)
    return [(value.T * block.weight).T for value in values]
