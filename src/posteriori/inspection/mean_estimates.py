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
from typing import Any, Literal

import numpy as np

from posteriori.design.matrix import Design
from posteriori.likelihood.links import PROBABILITY_LINKS, Link, ProbabilityLink
from posteriori.likelihood.log_arithmetic import quiet
from posteriori.likelihood.softmax import probabilities
from posteriori.posterior.activations import FromDraws, MeanInterval, check_inside, ends_of_one
from posteriori.posterior.coefficient_table import CoefficientMap
from posteriori.posterior.inference import Inference
from posteriori.posterior.log_posterior import WIDE
from posteriori.posterior.predictive import (
    PredictionKernel,
    interval_kernel,
    quantile_ends,
    some_draws,
)
from posteriori.rows.block import Block
from posteriori.typing import Array, Codes

Kind = Literal["row", "mean", "difference", "derivative"]
"""What is estimated: the mean of a row, an average of means, or a change of either."""

_UNDETERMINED = 1e-6
"""The share of a gradient that may be in directions that the rows of the fit do not determine."""

_FAINT = 1e-100
"""The slope of a mean that is certain, so that it depends on directions that are undetermined."""


@dataclass(frozen=True, eq=False)
class ProbabilityEstimates:
    """The probabilities of any classifier, without standard errors."""

    model: Any

    entries = 1
    row_interval = None

    def means(self, X: Any, weight: Array | None = None) -> Array:
        """The probabilities (n, K, 1), of two classes that of the second; or their weighted sum."""
        p = np.asarray(self.model.predict_proba(X), dtype=np.float64)
        return _summed((p[:, 1:] if p.shape[1] == 2 else p)[..., None], weight)

    def table(self, found: Array, kind: Kind = "difference") -> Array:
        """The estimates alone."""
        return found


@dataclass(frozen=True, eq=False)
class DeltaEstimates:
    """Means at the coefficients of a fit by likelihood, with errors by the delta method.

    `row_interval` has the covariance of the parameters. More than 5,000 coefficients have none,
    and no errors.
    """

    inference: Inference
    theta: Array
    link: Link
    level: float
    row_interval: MeanInterval | None

    @classmethod
    def of(cls, inference: Inference, link: Link, level: float) -> "DeltaEstimates":
        """Those of a fit, with intervals that cover with probability `level`."""
        coordinates = inference.coefficient_map.coordinates
        interval = MeanInterval.of(inference, link, level) if coordinates.size <= WIDE else None
        theta = coordinates.expand(inference.w)
        link = PROBABILITY_LINKS["logit"] if len(theta) > 1 else link
        return cls(inference, theta, link, level, interval)

    @property
    def coefficient_map(self) -> CoefficientMap:
        """The map to the coefficients of the user."""
        return self.inference.coefficient_map

    @property
    def entries(self) -> int:
        """Numbers that a row needs."""
        return len(self.theta) * (1 if self.row_interval is None else self.theta.size)

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
        for i, place in enumerate(places if self.row_interval else ()):
            found[..., i, :, 1 + place :: len(self.theta[0])] += _summed(M, weight)
        return found / self.coefficient_map.one_unit[places][:, None, None]

    def _with_gradient(
        self, design: Design, value: Array, weights: Array, by_row: Array | None
    ) -> Array:
        """Values (n, R) with gradients `weights` (n, R, A) ⊗ φ, or their sums weighted `by_row`."""
        found = _summed(value, by_row)
        if self.row_interval is None:
            return found[..., None]
        phi = design.array()
        if self.coefficient_map.standard.intercept:
            phi = np.column_stack([np.ones(len(phi)), phi])
        if by_row is None:
            gradient = np.einsum("nra,nq->nraq", weights, phi)
        else:
            gradient = np.tensordot(by_row[:, None, None] * weights, phi, (0, 0))
        gradient = gradient.reshape(*found.shape, self.theta.size)
        return np.concatenate([found[..., None], gradient], axis=-1)

    def _activations(self, block: Block) -> tuple[Design, Array]:
        design = self.coefficient_map.design(block)
        a = self.coefficient_map.activations(design, self.theta, block)
        if a.shape[1] == 1:
            check_inside(self.link, a[:, 0], block)
        return design, a

    @quiet
    def _first(self, a: Array) -> tuple[Array, Array]:
        """μ (n, K) and M (n, K, A)."""
        K, interval = a.shape[1], self.row_interval
        faint = _FAINT if interval is not None and interval.n_undetermined else 0.0
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
    def table(self, found: Array, kind: Kind = "difference") -> Array:
        """Estimate, standard error and the ends of an interval (..., 4).

        The interval of a mean is computed on the scale of the link.
        """
        if self.row_interval is None:
            return found
        value, gradient = found[..., 0], found[..., 1:]
        error = self._errors(gradient)
        away = self.inference.quantile(self.level) * error
        if kind != "mean":
            return np.stack([value, error, value - away, value + away], axis=-1)
        a = self.link.activation(value)
        away = np.where(error > 0, away / abs(self.link.slope(a)), 0.0)
        known = np.isfinite(a) & ~np.isnan(away)
        ends = ends_of_one(self.link, np.where(known, a, 0.0), np.where(known, away, 0.0))
        # A mean at the end of its range has no finite activation.
        ends = np.where(known[:, None], ends, value[:, None])
        return np.column_stack([value, error, ends])

    def _errors(self, gradient: Array) -> Array:
        assert self.row_interval is not None
        root = self.row_interval.activations.root
        moved = gradient @ root.reshape(self.theta.size, -1)
        p = moved.shape[-1] - self.row_interval.n_undetermined
        error, lost = (np.linalg.norm(part, axis=-1) for part in (moved[..., :p], moved[..., p:]))
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

    `theta` (A, q, S) has draws of the parameters for standardised columns.
    """

    model: Any
    coefficient_map: CoefficientMap
    theta: Array
    link: ProbabilityLink
    level: float
    row_interval: PredictionKernel

    @classmethod
    def of(cls, model: Any, level: float) -> "PosteriorEstimates":
        """Those of a fitted model with a posterior."""
        posterior, link = model.posterior_, model._link()
        theta = posterior.coefficient_map.expand(some_draws(posterior).T)
        interval = interval_kernel(posterior, level, link)
        return cls(model, posterior.coefficient_map, theta, link, level, interval)

    @property
    def entries(self) -> int:
        """Numbers that a row needs."""
        A, _, S = self.theta.shape
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
        drawn = np.einsum("...kas,ajs->...jks", M, self.theta[:, places])
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

    def table(self, found: Array, kind: Kind = "difference") -> Array:
        """Estimate, standard deviation and the ends of an interval (..., 4)."""
        value, drawn = found[..., 0], found[..., 1:]
        if kind == "derivative":  # predictive means may have small jumps
            value = drawn.mean(axis=-1)
        both = np.stack([value, drawn.std(axis=-1, ddof=1)], axis=-1)
        return np.concatenate([both, quantile_ends(drawn, self.level)], axis=-1)


Estimates = ProbabilityEstimates | DeltaEstimates | PosteriorEstimates


def _summed(values: Array, weight: Array | None) -> Array:
    """Values (n, ...) as they are, or their weighted sum (...)."""
    return values if weight is None else np.tensordot(weight, values, 1)
