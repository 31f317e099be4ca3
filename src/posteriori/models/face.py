"""What is left of a likelihood once separated rows are certain: that of the rows on the face.

It has a maximum of its own, in the directions that move a pair which the separation leaves open.
Conventions: p free parameters w, of which θ (q, c) is a linear function.
"""

from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import cast

import numpy as np

from posteriori.likelihood.binary import BinaryLoss
from posteriori.likelihood.soft_ends import ends
from posteriori.linalg import unit_diagonal
from posteriori.models.doubt import support_of
from posteriori.models.scoring import is_positive
from posteriori.posterior.objective import BLOCK_ENTRIES, LogPosterior
from posteriori.rows.block import Block
from posteriori.solve.local import Curvature, Local
from posteriori.solve.separation import Separation
from posteriori.statistics.local_quadratic import Information
from posteriori.statistics.pair_loss import pair_curvature
from posteriori.statistics.separation_margins import PairsOf, Ray, pieces
from posteriori.typing import Array

_DETERMINED = 1e-10
"""A direction with less curvature than this, beside that of its columns, is not determined."""


@dataclass(frozen=True, eq=False)
class Within:
    """An objective as a function of w, its own parameters being origin + directions w.

    Its Hessian is the observed one where that is positive definite, so that steps square the error.
    """

    objective: LogPosterior
    origin: Array
    directions: Array

    def __call__(self, w: Array, hessian: Curvature) -> Local:
        found = self._at(w, hessian, "observed")
        if found.hessian is None or self.objective.loss.convex or is_positive(found.hessian):
            return found
        return self._at(w, hessian, "expected")

    def _at(self, w: Array, hessian: Curvature, information: Information) -> Local:
        objective = replace(self.objective, information=information)
        found = objective(self.origin + self.directions @ w, hessian)
        curved = found.hessian
        if curved is not None:
            curved = self.directions.T @ curved @ self.directions
        return Local(found.value, self.directions.T @ found.gradient, curved)

    @property
    def price(self) -> float:
        return self.objective.price

    @property
    def start_price(self) -> float:
        return self.objective.price

    @property
    def unit(self) -> float:
        return self.objective.unit

    @property
    def share(self) -> float:
        return 1.0

    @property
    def n_rows(self) -> int:
        return self.objective.n_rows

    @property
    def tolerance(self) -> float:
        return self.objective.tolerance


def determined(objective: LogPosterior, found: Separation, w: Array) -> Array:
    """Directions (p, k) of the free parameters that rows on the face, or a prior, determine.

    They are those that move an open pair, wherever the rows are now. Where labels are certain
    beyond an end of the noise, a row that moves need not say anything: there, the curvature at w
    tells.
    """
    if isinstance(objective.loss, BinaryLoss) and ends(objective.loss.link):
        at_face = cast(Array, objective(w, "full").hessian)
        of_all = cast(Array, objective(np.zeros(len(w)), "full").hessian)
    else:
        at_face, of_all = _forms(objective, cast(Ray, found.standard))
        if objective.penalty.precision.any():
            prior_alone = replace(objective, factor=0.0)
            prior = cast(Array, prior_alone(np.zeros(len(w)), "full").hessian)
            at_face, of_all = at_face + prior, of_all + prior
    _, scale = unit_diagonal(of_all)
    values, vectors = np.linalg.eigh(at_face / scale / scale[:, None])
    kept = vectors[:, values > _DETERMINED] / scale[:, None]
    return np.linalg.qr(kept)[0]


def _forms(objective: LogPosterior, ray: Ray) -> tuple[Array, Array]:
    """Σ margin² of the open pairs and of all pairs, as forms in the free parameters (p, p)."""
    c = ray.theta.shape[1]
    pairs_of = PairsOf(support_of(objective), 2 if c == 1 else c, ray)

    def forms(block: Block) -> Array:
        pairs, is_open = pairs_of(block)
        square = ray.coordinates.shortening(block) ** 2
        each = (is_open * square, pairs.all() * square)
        return np.stack([pair_curvature(ray.coordinates, block, pairs, r) for r in each])

    found = objective.rows.map_sum(
        lambda block: reduce(add, map(forms, pieces(ray.coordinates, block))),
        block_entries=BLOCK_ENTRIES,
    )
    units = np.eye(objective.coordinates.size)
    theta = [objective.standard.to_user(objective.coordinates.expand(unit)).T for unit in units]
    to_theta = np.column_stack([ray.coordinates.standard(each).ravel() for each in theta])
    at_face, of_all = to_theta.T @ found @ to_theta
    return at_face, of_all
