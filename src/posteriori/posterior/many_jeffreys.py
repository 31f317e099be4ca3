"""The posterior density with Jeffreys' prior |I(w)|^½ at many parameter vectors at once.

Conventions: m points W (m, p) of p = ck free parameters; pairs and edges are those of
`statistics.many_informations`.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import numpy as np

from posteriori.linalg import cholesky, solve_lower, unit_diagonal
from posteriori.posterior.jeffreys import JeffreysPosterior
from posteriori.posterior.many import Densities, ManyDensities
from posteriori.posterior.objective import LogPosterior
from posteriori.statistics.many_parameters import (
    GatherInformations,
    GatherSlopes,
    ManyPoints,
    edges_of,
    pairs_of,
)
from posteriori.typing import Array, Codes

_PAIRS = 2**19
"""Products of two columns in a block."""

_STEP = 0.03
"""Standard errors between points whose gradients are compared."""

_PLACES = np.array([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0])
_TIMES = np.array([-1.0, 9.0, -45.0, 45.0, -9.0, 1.0]) / 60
"""Steps from the middle, and what gradients there are multiplied by: the slope, to sixth order."""

_SINGULAR = 1e-7
"""Root of a pivot of I, scaled to a diagonal of one, below which its digits are rounding."""

_SUMS = 2**22
"""Numbers in the informations that are summed at once."""


def densities_of(objective: LogPosterior) -> Densities:
    """The log posterior density of many parameters, with the prior that the objective has."""
    if isinstance(objective, JeffreysPosterior):
        return JeffreysDensities(objective)
    return ManyDensities(objective)


@dataclass(frozen=True, eq=False)
class JeffreysDensities:
    """ln p(t|w) + ½ ln|I(w)| at many w, -∞ where I is singular to working precision, as far out.

    Values need a pass for the losses and one for I; gradients one more.

    >>> from posteriori import LogisticRegression
    >>> model = LogisticRegression(prior="jeffreys").fit([[0.0], [1.0], [2.0]], [0, 0, 1])
    >>> many = JeffreysDensities(model._inference.objective)
    >>> many.log_density(model.solution_.parameters[None]).round(4)
    array([-1.6404])
    """

    objective: JeffreysPosterior

    def log_density(self, W: Array) -> Array:
        """ln p (m,) up to a constant."""
        found = [
            self._losses.log_density(part) + self._half_logs(part)[0] for part in self._parts(W)
        ]
        return np.concatenate(found)

    def with_gradient(self, W: Array) -> tuple[Array, Array]:
        """ln p (m,) and its gradients (m, p)."""
        values, gradients = [], []
        for part in self._parts(W):
            value, gradient = self._losses.with_gradient(part)
            half_log, inverses = self._half_logs(part)
            values.append(value + half_log)
            gradients.append(gradient + self._slopes(part, inverses))
        return np.concatenate(values), np.concatenate(gradients)

    @cached_property
    def _losses(self) -> ManyDensities:
        return ManyDensities(self.objective.without_jeffreys())

    def _parts(self, W: Array) -> list[Array]:
        """Points, as many at once as leave room for their informations."""
        size = max(1, _SUMS // W.shape[1] ** 2)
        return [W[low : low + size] for low in range(0, len(W), size)]

    def _points(self, W: Array) -> ManyPoints:
        found = self.objective
        to, standard = found.coordinates, found.standard
        thetas = standard.outward(to.contrasts @ self._losses.vectors(W))
        basis = np.eye(to.q) if to.basis is None else to.basis.T
        return ManyPoints(found.columns, standard, found.loss, thetas, standard.outward(basis))

    @property
    def _block_entries(self) -> int:
        """Rows of a block, such that the products of their columns stay in the cache."""
        rows = max(1, _PAIRS // len(self._pairs[0]))
        return rows * len(self.objective.columns.schema)

    @cached_property
    def _pairs(self) -> tuple[Codes, Codes]:
        return pairs_of(self.objective.coordinates.k)

    @cached_property
    def _edges(self) -> Array:
        """d_e d_eᵀ of the edges, in contrasts of activations (E, c²)."""
        B = self.objective.coordinates.contrasts
        if len(B) == 1:
            return B
        first, second = edges_of(len(B))
        edges = B[first] - B[second]
        return (edges[:, :, None] * edges[:, None]).reshape(len(edges), -1)

    def _half_logs(self, W: Array) -> tuple[Array, Array]:
        """½ ln|I| (m,), and I⁻¹ times the mean weight (m, p, p)."""
        half_logs, inverses = _half_logs(self._informations(W))
        return half_logs + 0.5 * W.shape[1] * np.log(self.objective.mean_weight), inverses

    def _informations(self, W: Array) -> Array:
        """I of each point (m, p, p) over the mean weight of the rows, which may be far from one."""
        to, (i, j) = self.objective.coordinates, self._pairs
        kernel = GatherInformations(self._points(W))
        sums = self.objective.rows.map_sum(kernel, block_entries=self._block_entries)
        inner = np.empty((len(W), to.c**2, to.k, to.k))
        inner[:, :, i, j] = inner[:, :, j, i] = self._edges.T @ (sums / self.objective.mean_weight)
        blocks = inner.reshape(len(W), to.c, to.c, to.k, to.k).swapaxes(2, 3)
        return blocks.reshape(len(W), to.size, to.size)

    def _slopes(self, W: Array, inverses: Array) -> Array:
        """The gradients of ½ ln|I| (m, p)."""
        to, (i, j) = self.objective.coordinates, self._pairs
        blocks = inverses.reshape(len(W), to.c, to.k, to.c, to.k).swapaxes(2, 3)
        inner = self._edges @ blocks[..., i, j].reshape(len(W), to.c**2, -1)
        kernel = GatherSlopes(self._points(W), inner * np.where(i == j, 1.0, 2.0))
        found = self.objective.rows.map_sum(kernel, block_entries=self._block_entries)
        inward = self.objective.standard.inward(found / self.objective.mean_weight)
        return self._losses.contracted(to.contrasts.T @ inward)


def curvature_at(objective: JeffreysPosterior, w: Array) -> Array:
    """The Hessian (p, p) of -ln p(t|w) - ½ ln|I| by differences of gradients, to some 11 digits.

    Along each direction whose standard error is one there are three points to either side, so that
    only the seventh derivative is left out.
    """
    information = cast(Array, replace(objective, information="expected")(w, "full").hessian)
    matrix, scale = unit_diagonal(information)
    lower = cast(Array, cholesky(matrix))
    directions = solve_lower(lower, np.diag(1 / scale))
    step = _STEP * objective.unit
    places = (step * _PLACES)[:, None, None] * directions
    _, gradients = JeffreysDensities(objective).with_gradient(w + places.reshape(-1, len(w)))
    changes = np.tensordot(_TIMES / step, gradients.reshape(places.shape), 1)
    root = lower * scale[:, None]
    found = -root @ changes
    return (found + found.T) / 2


def _half_logs(informations: Array) -> tuple[Array, Array]:
    """½ ln|I| (m,) and I⁻¹ (m, p, p); -∞ and zero where I is singular to working precision."""
    half_logs, inverses = np.full(len(informations), -np.inf), np.zeros_like(informations)
    scale = np.sqrt(np.einsum("mii->mi", informations))
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = informations / scale[:, :, None] / scale[:, None]
    lower = np.stack([_factor(one) for one in scaled])
    diagonals = np.einsum("mii->mi", lower)
    known = diagonals.min(axis=1) > _SINGULAR
    half_logs[known] = np.log(diagonals[known] * scale[known]).sum(axis=1)
    found = np.linalg.inv(scaled[known])
    inverses[known] = found / scale[known][:, :, None] / scale[known][:, None]
    return half_logs, inverses


def _factor(scaled: Array) -> Array:
    """The lower Cholesky factor, or zero where there is none."""
    found = cholesky(scaled) if np.isfinite(scaled).all() else None
    return np.zeros_like(scaled) if found is None else found
