"""Means of rows and their slopes in the columns, with standard errors: the delta method, or draws.

Conventions: n rows, K means a row (one for two classes, that of the second; one for a number),
A activations a row, q parameters each, Θ (A, q) for standardised columns with covariance C. A row φ
has activations a = Θφ and means μ(a). With M = ∂μ/∂a (K, A) and B = ∂²μ/∂a² (K, A, A), the slope in
column j, of scale c_j, is s_j = Mθ_j/c_j, and the gradients in Θ are

    ∂μ/∂Θ = M ⊗ φ,    c_j ∂s_j/∂Θ = (Bθ_j) ⊗ φ + M ⊗ e_j.

The standard error of an estimate with gradient g is √(gᵀCg). Arrays (..., 1 + m) hold an estimate,
then its gradient (m = Aq), or its values in m draws of the parameters, or nothing (m = 0): averages
and differences of estimates are those of these arrays.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import null_space

from posteriori.design.matrix import Design
from posteriori.likelihood.links import PROBABILITY_LINKS, Link, ProbabilityLink
from posteriori.likelihood.log_arithmetic import quiet
from posteriori.likelihood.softmax import probabilities
from posteriori.posterior.activations import (
    ActivationGaussian,
    FromDraws,
    MeanInterval,
    check_inside,
    ends_of_one,
    expand_columns,
    root_of,
    standardised,
)
from posteriori.posterior.coefficient_table import CoefficientMap
from posteriori.posterior.inference import Inference
from posteriori.posterior.log_posterior import WIDE
from posteriori.posterior.predictive import interval_kernel, quantile_ends, some_draws
from posteriori.rows.block import Block
from posteriori.typing import Array, Codes

_UNDETERMINED = 1e-6
"""The share of a gradient that may be in directions that the rows of the fit do not determine."""

_FAINT = 1e-100
"""The slope of a mean that is certain, so that it depends on directions that are undetermined."""


@dataclass(frozen=True, eq=False)
class ProbabilityEstimates:
    """The probabilities of any classifier, without standard errors; `table` gives (..., K, 1)."""

    model: Any

    has_errors = False
    entries = 1

    def means(self, X: Any, weight: Array | None = None) -> Array:
        """The probabilities (n, K, 1), of two classes that of the second; or their weighted sum."""
        p = np.asarray(self.model.predict_proba(X), dtype=np.float64)
        return _summed((p[:, 1:] if p.shape[1] == 2 else p)[..., None], weight)

    def table(self, found: Array) -> Array:
        """The estimates alone."""
        return found

    mean_table = table
    derivative_table = table

    def row_table(self, X: Any) -> Array:
        """The same row by row (n, K, 1)."""
        return self.means(X)


@dataclass(frozen=True, eq=False)
class DeltaEstimates:
    """Means at the coefficients of a fit by likelihood, with errors by the delta method.

    `root` (Aq, k) has RRᵀ = C, and `undetermined` (Aq, l) the directions that the rows of the fit
    do not determine: an estimate that depends on them has an infinite error. More than 5,000
    coefficients have no covariance, and no errors.
    """

    inference: Inference
    theta: Array
    root: Array
    undetermined: Array
    link: Link
    level: float

    @classmethod
    def of(cls, inference: Inference, link: Link, level: float) -> "DeltaEstimates":
        """Those of a fit, with intervals that cover with probability `level`."""
        coef_map, determined = inference.coefficient_map, inference.determined
        theta, p = coef_map.coordinates.expand(inference.w), len(inference.w)
        root, rest = np.empty((p, 0)), np.empty((p, 0))
        if coef_map.coordinates.size <= WIDE:
            root = root_of(inference.free_covariance())
            rest = rest if determined is None else null_space(determined.T)
        if len(theta) > 1:
            link = PROBABILITY_LINKS["logit"]
        root, rest = (
            expand_columns(coef_map, each).reshape(theta.size, -1) for each in (root, rest)
        )
        return cls(inference, theta, root, rest, link, level)

    @property
    def coefficient_map(self) -> CoefficientMap:
        """The map to the coefficients of the user."""
        return self.inference.coefficient_map

    @property
    def has_errors(self) -> bool:
        """Whether there is a covariance."""
        return self.root.shape[1] + self.undetermined.shape[1] > 0

    @property
    def entries(self) -> int:
        """Numbers that a row needs."""
        return len(self.theta) * self.theta.size

    def means(self, block: Block, weight: Array | None = None) -> Array:
        """The means (n, K, 1 + m), or their weighted sum (K, 1 + m)."""
        design, a = self._activations(block)
        return self._with_gradient(design, *self._first(a), weight)

    def slopes(self, block: Block, columns: Codes, weight: Array | None = None) -> Array:
        """Slopes (n, J, K, 1 + m) in J design columns in the user's units, or their sum."""
        design, a = self._activations(block)
        (_, M), B = self._first(a), self._second(a)
        (n, K, A), J = M.shape, len(columns)
        places = columns + self.coefficient_map.standard.intercept
        theta = self.theta[:, places]
        value = np.einsum("nka,aj->njk", M, theta).reshape(n, J * K)
        bent = np.einsum("nkab,bj->njka", B, theta).reshape(n, J * K, A)
        found = self._with_gradient(design, value, bent, weight)
        found = found.reshape(*found.shape[:-2], J, K, -1)
        if self.has_errors:
            gradient = found[..., 1:].reshape(*found.shape[:-1], *self.theta.shape)
            for i, place in enumerate(places):
                gradient[..., i, :, :, place] += _summed(M, weight)
            found[..., 1:] = gradient.reshape(*found.shape[:-1], -1)
        return found / self.coefficient_map.one_unit[places][:, None, None]

    def _with_gradient(
        self, design: Design, value: Array, weights: Array, by_row: Array | None
    ) -> Array:
        """Values (n, R) with gradients `weights` (n, R, A) ⊗ φ, or their sums weighted `by_row`."""
        n, R, _ = weights.shape
        intercept = self.coefficient_map.standard.intercept
        out = _summed(value, by_row)[..., None]
        if not self.has_errors:
            return out
        if by_row is None:
            phi = design.array()
            phi = np.column_stack([np.ones(n), phi]) if intercept else phi
            gradient = np.einsum("nra,nq->nraq", weights, phi).reshape(n, R, -1)
        else:
            flat = (by_row[:, None, None] * weights).reshape(n, -1)
            pulled = design.transpose_times(flat)
            pulled = np.vstack([flat.sum(axis=0), pulled]) if intercept else pulled
            gradient = pulled.T.reshape(R, -1)
        return np.concatenate([out, gradient], axis=-1)

    def _activations(self, block: Block) -> tuple[Design, Array]:
        design = standardised(self.coefficient_map, block)
        a = ActivationGaussian(self.coefficient_map, self.theta, self.root).mean(design, block)
        if a.shape[1] == 1:
            check_inside(self.link, a[:, 0], block)
        return design, a

    @quiet
    def _first(self, a: Array) -> tuple[Array, Array]:
        """μ (n, K) and M (n, K, A)."""
        K, faint = a.shape[1], _FAINT if self.undetermined.shape[1] else 0.0
        if K == 1:
            p, M = self.link.mean(a[:, 0])[:, None], self.link.slope(a[:, 0])[:, None, None]
            return p, M + faint
        p = probabilities(a)
        M = p[:, :, None] * log_softmax_slopes(p)
        return p, M + faint * log_softmax_slopes(np.full((1, K), 1 / K))

    @quiet
    def _second(self, a: Array) -> Array:
        """B (n, K, A, A)."""
        if a.shape[1] == 1:
            return self.link.second_derivative(a[:, 0])[:, None, None, None]
        p = probabilities(a)
        slopes = log_softmax_slopes(p)
        shared = p[:, :, None] * slopes
        return p[:, :, None, None] * (slopes[..., None] * slopes[:, :, None] - shared[:, None])

    @quiet
    def table(self, found: Array) -> Array:
        """Estimate, standard error and the ends of an interval (..., 4)."""
        if not self.has_errors:
            return found
        value, error = found[..., 0], self._errors(found[..., 1:])
        away = self.inference.quantile(self.level) * error
        return np.stack([value, error, value - away, value + away], axis=-1)

    derivative_table = table

    @quiet
    def mean_table(self, found: Array) -> Array:
        """The same of averages of means (K, 4), with the interval on the scale of the link."""
        out = self.table(found)
        if self.has_errors:
            value, error = out[:, 0], out[:, 1]
            a = self.link.activation(value)
            away = self.inference.quantile(self.level) * error / abs(self.link.slope(a))
            away = np.where(error > 0, away, 0.0)
            known = np.isfinite(a) & ~np.isnan(away)
            ends = ends_of_one(self.link, np.where(known, a, 0.0), np.where(known, away, 0.0))
            # A mean at the end of its range has no finite activation.
            out[:, 2:] = np.where(known[:, None], ends, value[:, None])
        return out

    def row_table(self, block: Block) -> Array:
        """The same of the means of rows (n, K, 4), with the intervals of `predict_interval`."""
        out = self.table(self.means(block))
        if self.has_errors:
            ends = MeanInterval.of(self.inference, self.link, self.level)(block)
            out[..., 2:] = ends.reshape(*out.shape[:2], 2)
        return out

    def _errors(self, gradient: Array) -> Array:
        error = np.linalg.norm(gradient @ self.root, axis=-1)
        lost = np.linalg.norm(gradient @ self.undetermined, axis=-1)
        return np.where(lost > _UNDETERMINED * (lost + error), np.inf, error)


def log_softmax_slopes(p: Array) -> Array:
    """δ_kj - p_j (n, K, K): the derivatives of ln p_k in the activations (4.106).

    >>> log_softmax_slopes(np.array([[0.25, 0.75]]))[0]
    array([[ 0.75, -0.75], [-0.25,  0.25]])
    """
    return np.eye(p.shape[1]) - p[:, None, :]


@dataclass(frozen=True, eq=False)
class PosteriorEstimates:
    """Predictive means of a Bayesian model, with standard deviations and quantiles of draws.

    `theta` (A, S, q) has draws of the parameters for standardised columns.
    """

    model: Any
    coefficient_map: CoefficientMap
    theta: Array
    link: ProbabilityLink
    level: float

    has_errors = True

    @classmethod
    def of(cls, model: Any, level: float) -> "PosteriorEstimates":
        """Those of a fitted model with a posterior."""
        coef_map, draws = model.posterior_.coefficient_map, some_draws(model.posterior_)
        theta = FromDraws.of(coef_map, draws, np.asarray).theta
        return cls(model, coef_map, theta, model._link(), level)

    @property
    def entries(self) -> int:
        """Numbers that a row needs."""
        A, S, _ = self.theta.shape
        return A * A * S

    def means(self, block: Block, weight: Array | None = None) -> Array:
        """The means (n, K, 1 + S), or their weighted sum (K, 1 + S)."""
        p = self.model._predicted(block)
        p = p[:, 1:] if p.shape[1] == 2 else p
        drawn = FromDraws(self.coefficient_map, self.theta, self._means)(block)
        return _summed(np.concatenate([p[..., None], drawn], axis=-1), weight)

    def slopes(self, block: Block, columns: Codes, weight: Array | None = None) -> Array:
        """Slopes (n, J, K, 1 + S) in J design columns in the user's units, or their sum."""
        places = columns + self.coefficient_map.standard.intercept
        M = _summed(FromDraws(self.coefficient_map, self.theta, self._first)(block), weight)
        drawn = np.einsum("...kas,asj->...jks", M, self.theta[..., places])
        drawn /= self.coefficient_map.one_unit[places][:, None, None]
        return np.concatenate([drawn.mean(axis=-1, keepdims=True), drawn], axis=-1)

    @quiet
    def _means(self, a: Array) -> Array:
        """Draws of μ (n, K, S) from those of the activations (n, A, S)."""
        if a.shape[1] == 1:
            return self.link.mean(a.ravel()).reshape(a.shape)
        raised = np.exp(a - a.max(axis=1, keepdims=True))
        return raised / raised.sum(axis=1, keepdims=True)

    @quiet
    def _first(self, a: Array) -> Array:
        """Draws of M (n, K, A, S)."""
        if a.shape[1] == 1:
            return self.link.slope(a.ravel()).reshape(a.shape)[:, :, None]
        p = self._means(a)
        return p[:, :, None] * (np.eye(p.shape[1])[None, :, :, None] - p[:, None])

    def table(self, found: Array) -> Array:
        """Estimate, standard deviation and the ends of an interval (..., 4)."""
        drawn = found[..., 1:]
        both = np.stack([found[..., 0], drawn.std(axis=-1, ddof=1)], axis=-1)
        return np.concatenate([both, quantile_ends(drawn, self.level)], axis=-1)

    mean_table = table

    def derivative_table(self, found: Array) -> Array:
        """The same of derivatives by differences: predictive means may have small jumps."""
        drawn = found[..., 1:]
        return self.table(np.concatenate([drawn.mean(axis=-1, keepdims=True), drawn], axis=-1))

    def row_table(self, block: Block) -> Array:
        """The same of the means of rows (n, K, 4), with the intervals of `predict_interval`."""
        out = self.table(self.means(block))
        ends = interval_kernel(self.model.posterior_, self.level, self.link)(block)
        out[..., 2:] = ends.reshape(*out.shape[:2], 2)
        return out


Estimates = ProbabilityEstimates | DeltaEstimates | PosteriorEstimates


def _summed(values: Array, weight: Array | None) -> Array:
    """Values (n, ...) as they are, or their weighted sum (...)."""
    return values if weight is None else np.tensordot(weight, values, 1)
