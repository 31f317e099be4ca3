"""Means of rows and their slopes in the columns, with standard errors: the delta method, or draws.

Conventions: n rows, K means a row (one for two classes, that of the second; one for a number),
A activations a row, q parameters each, Θ (A, q) for standardised columns with covariance VVᵀ, V_m
(A, q) being a column of the root. A row φ has activations a = Θφ and means μ(a). With M = ∂μ/∂a
(K, A) and B = ∂²μ/∂a² (K, A, A), the slope in column j, of scale c_j, is s_j = Mθ_j/c_j. Along V_m,
which moves the activations by d_m = V_mφ, the derivatives are

    ∂μ = M d_m,    c_j ∂s_j = B θ_j d_m + M v_mj.

The standard error of an estimate is the length of its derivatives. Arrays (..., 1 + m) hold an
estimate, then these derivatives, or its values in m draws of the parameters, or nothing (m = 0):
averages and differences of estimates are those of these arrays.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from posteriori.design.matrix import Design
from posteriori.likelihood.links import Link, Logit, ProbabilityLink
from posteriori.likelihood.log_arithmetic import quiet
from posteriori.posterior.activations import (
    ActivationGaussian,
    FromDraws,
    MeanInterval,
    check_inside,
    ends_of_one,
)
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

Kind = Literal["mean", "difference", "derivative"]
"""What is estimated: means, or changes of means."""

_UNDETERMINED = 1e-6
"""The share of a derivative that may be in directions that the rows of the fit do not determine."""

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

    def table(self, found: Array, kind: Kind) -> Array:
        """The estimates alone."""
        return found


@dataclass(frozen=True, eq=False)
class DeltaEstimates:
    """Means at the coefficients of a fit by likelihood, with errors by the delta method.

    The last columns of the root in `at` are directions that no row of the fit determines.
    More than 5,000 coefficients have no covariance, an empty root, and no errors.
    """

    inference: Inference
    at: ActivationGaussian
    link: Link
    row_interval: MeanInterval | None

    @classmethod
    def of(cls, inference: Inference, link: Link, level: float) -> "DeltaEstimates":
        """Those of a fit, with intervals that cover with probability `level`."""
        coef_map, w = inference.coefficient_map, inference.w
        link = Logit() if coef_map.coordinates.n_activations > 1 else link
        if coef_map.coordinates.size > WIDE:
            return cls(
                inference, ActivationGaussian.of(coef_map, w, np.empty((len(w), 0))), link, None
            )
        interval = MeanInterval.of(inference, link, level)
        return cls(inference, interval.activations, link, interval)

    @property
    def coefficient_map(self) -> CoefficientMap:
        """The map to the coefficients of the user."""
        return self.inference.coefficient_map

    @property
    def entries(self) -> int:
        """Numbers that a row needs."""
        return max(self.at.entries, 1)

    def means(self, block: Block, weight: Array | None = None) -> Array:
        """The means (n, K, 1 + m), or their weighted sum (K, 1 + m)."""
        design, a = self._activations_of(block)
        value = _summed(means_of(self.link, a[..., None]), weight)
        return np.concatenate([value, self._moved(design, self._slopes(a), weight)], axis=-1)

    def slopes(self, block: Block, columns: Codes, weight: Array | None = None) -> Array:
        """Slopes (n, J, K, 1 + m) in J design columns in the user's units, or their sum."""
        design, a = self._activations_of(block)
        M, places = self._slopes(a), columns + self.coefficient_map.standard.intercept
        theta, root = (each[:, places] for each in (self.at.theta, self.at.root))
        # M moves by B d_m.
        B = self._second(a, M).reshape(len(a), -1, a.shape[1])
        dM, M = self._moved(design, B, weight), _summed(M, weight)
        dM = dM.reshape(*M.shape, -1)
        moved = np.einsum("...kam,aj->...jkm", dM, theta) + np.einsum("...ka,ajm->...jkm", M, root)
        value = np.einsum("...ka,aj->...jk", M, theta)[..., None]
        unit = self.coefficient_map.one_unit[places]
        return np.concatenate([value, moved], axis=-1) / unit[:, None, None]

    def _activations_of(self, block: Block) -> tuple[Design, Array]:
        design = self.coefficient_map.design(block)
        a = self.coefficient_map.activations(design, self.at.theta, block)
        if a.shape[1] == 1:
            check_inside(self.link, a[:, 0], block)
        return design, a

    def _moved(self, design: Design, slopes: Array, weight: Array | None) -> Array:
        """How far functions with `slopes` (n, K, A) move along the root (n, K, m), or the sum."""
        root = self.at.root
        if weight is None or not root.size:
            return _summed(slopes @ self.coefficient_map.along(design, root), weight)
        phi, weighted = design.array(), weight[:, None, None] * slopes
        if self.coefficient_map.standard.intercept:
            phi = np.insert(phi, 0, 1.0, axis=1)
        return np.tensordot(np.tensordot(weighted, phi, (0, 0)), root, 2)

    def _slopes(self, a: Array) -> Array:
        """M (n, K, A)."""
        found = slopes_of(self.link, a[..., None])[..., 0]
        if self.row_interval is not None and self.row_interval.n_undetermined:
            found += _FAINT * (np.eye(a.shape[1]) - 1 / a.shape[1] if a.shape[1] > 1 else 1.0)
        return found

    @quiet
    def _second(self, a: Array, M: Array) -> Array:
        """B (n, K, A, A)."""
        if a.shape[1] == 1:
            return self.link.second_derivative(a[:, 0])[:, None, None, None]
        p = means_of(self.link, a[..., None])
        rest = np.eye(a.shape[1]) - p.swapaxes(1, 2)
        return M[:, :, None] * rest[..., None] - p[..., None] * M[:, None]

    @quiet
    def table(self, found: Array, kind: Kind) -> Array:
        """Estimate, standard error and the ends of an interval (..., 4).

        The interval of a mean is computed on the scale of the link.
        """
        value, moved = found[..., 0], found[..., 1:]
        if self.row_interval is None:
            return found
        p = moved.shape[-1] - self.row_interval.n_undetermined
        error, lost = (np.linalg.norm(part, axis=-1) for part in (moved[..., :p], moved[..., p:]))
        error = np.where(lost > _UNDETERMINED * (lost + error), np.inf, error)
        away = self.row_interval.quantile * error
        if kind != "mean":
            return np.stack([value, error, value - away, value + away], axis=-1)
        a = self.link.activation(value)
        away = np.where(error > 0, away / abs(self.link.slope(a)), 0.0)
        known = np.isfinite(a) & ~np.isnan(away)
        a, away = np.where(known, a, 0.0).ravel(), np.where(known, away, 0.0).ravel()
        ends = ends_of_one(self.link, a, away).reshape(*value.shape, 2)
        # A mean at the end of its range has no finite activation.
        ends = np.where(known[..., None], ends, value[..., None])
        return np.concatenate([np.stack([value, error], axis=-1), ends], axis=-1)

    @quiet
    def tested(self, numbers: Array) -> Array:
        """The rows of a table (4, k) with a statistic and its p-value after the error (6, k)."""
        estimate, error = numbers[:2]
        statistic = np.where(np.isinf(error) | (estimate == 0), 0.0, estimate / error)
        tests = [statistic, self.inference.p_values(statistic)]
        return np.concatenate([numbers[:2], tests, numbers[2:]])


@quiet
def means_of(link: Link, a: Array) -> Array:
    """μ (n, K, S) of S activations (n, A, S) of each row: by the link, or for A > 1 the softmax."""
    if a.shape[1] == 1:
        return link.mean(a.ravel()).reshape(a.shape)
    raised = np.exp(a - a.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


@quiet
def slopes_of(link: Link, a: Array) -> Array:
    """M (n, K, A, S) of the same; ∂p_k/∂a_j = p_k(δ_kj - p_j) (4.106).

    >>> slopes_of(Logit(), np.log([[[1.0], [3.0]]]))[0, ..., 0]
    array([[ 0.1875, -0.1875], [-0.1875,  0.1875]])
    """
    if a.shape[1] == 1:
        return link.slope(a.ravel()).reshape(a.shape)[:, :, None]
    p = means_of(link, a)
    return p[:, :, None] * (np.eye(a.shape[1])[..., None] - p[:, None])


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
        drawn = FromDraws(self.coefficient_map, self.theta, partial(means_of, self.link))(block)
        return _summed(np.concatenate([p[..., None], drawn], axis=-1), weight)

    def slopes(self, block: Block, columns: Codes, weight: Array | None = None) -> Array:
        """Slopes (n, J, K, 1 + S) in J design columns in the user's units, or their sum."""
        places = columns + self.coefficient_map.standard.intercept
        first = FromDraws(self.coefficient_map, self.theta, partial(slopes_of, self.link))
        M = _summed(first(block), weight)
        drawn = np.einsum("...kas,ajs->...jks", M, self.theta[:, places])
        drawn /= self.coefficient_map.one_unit[places][:, None, None]
        return np.concatenate([drawn.mean(axis=-1, keepdims=True), drawn], axis=-1)

    def table(self, found: Array, kind: Kind) -> Array:
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
