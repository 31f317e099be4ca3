"""The prior that makes the variational bound on the evidence largest.

Conventions: c contrasts of q parameters each, p = cq free parameters w (p,). Parameters are in G
groups, M of them in a group, each with one precision α.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from posteriori.errors import ParameterError
from posteriori.posterior.normal_posterior import Gaussian
from posteriori.posterior.objective import LogPosterior
from posteriori.posterior.priors import Penalty
from posteriori.posterior.variational import (
    Fit,
    FixedPrior,
    Quadratic,
    VariationalPosterior,
    ascend,
)
from posteriori.typing import Array, Codes

_ROUNDS = 20
"""Precisions that are tried on one quadratic; they cost no pass over the rows."""

_LEVEL = 1e-14
"""A rise that is rounding."""

_GONE = 1e12
"""A prior that is this much sharper than the likelihood leaves nothing of a coefficient."""


def variational_evidence(
    objective: LogPosterior,
    groups: Codes,
    mean: Array,
    precision: Array,
    *,
    tol: float = 1e-10,
    max_iter: int = 500,
) -> VariationalPosterior:
    """The Gaussian q(w) and the precisions α of its prior that make the bound L(q, α) largest.

    `groups` (q,) numbers the precisions from 0 on: parameters of one number share one, over all
    contrasts. Those of -1 keep the prior of the objective. `mean` (p,) and `precision` (p, p) are
    where to start; the precisions that the groups have in the objective do not matter.

    Each step makes L(q) = max_α L(q, α) larger. A coefficient that the data do without gets a
    precision so large that nothing is left of it.

    >>> from posteriori.design.columns import Columns
    >>> from posteriori.design.standardise import Standard
    >>> from posteriori.likelihood.logistic import LogisticLoss
    >>> from posteriori.posterior.objective import Coordinates
    >>> from posteriori.rows.in_memory import read_rows
    >>> X, y = np.array([[2.0, 1.0], [1.0, -1.0], [-2.0, -1.0], [-1.0, 1.0]]), [1, 1, 0, 0]
    >>> rows = read_rows(X, y)
    >>> objective = LogPosterior(
    ...     rows, Columns(rows.schema), Standard(np.zeros(2), np.ones(2), False), LogisticLoss(),
    ...     lambda block: block.y.astype(float), Penalty(np.zeros(2), np.ones(2), True),
    ...     Coordinates(1, 2), 1e-8,
    ... )
    >>> found = variational_evidence(objective, np.array([0, 1]), np.zeros(2), 3 * np.eye(2))
    >>> round(float(found.penalty.precision[0]), 4), bool(found.penalty.precision[1] > 1e8)
    (0.1758, True)
    """
    q = objective.coordinates.q
    if objective.penalty.precision.ndim != 1 or len(groups) != q or groups.max(initial=-1) < 0:
        raise ParameterError(
            "The evidence cannot choose the precisions of this prior.",
            f"Use a prior without correlations, and a group for each of {q} parameters.",
        )
    prior = ChosenPrior(objective, groups)
    return ascend(prior, Gaussian.of(mean, precision), tol, max_iter)


def precision_update(mean: Array, covariance: Array, groups: Codes) -> Array:
    """The precision of each group (G,) that makes L largest for one q: α = M / Σ (m_j² + S_jj).

    `mean` (p,) is that of w less that of its prior, `covariance` (p, p); `groups` (q,) is the same
    for each contrast. The sum is over the parameters of a group; those of -1 are in none.

    >>> precision_update(np.array([9.0, 1.0, 2.0]), np.diag([9.0, 1.0, 2.0]), np.array([-1, 0, 0]))
    array([0.25])
    """
    count = _grouped(np.ones(len(mean)), groups)
    return count / _grouped(mean**2 + np.diagonal(covariance), groups)


def _grouped(values: Array, groups: Codes) -> Array:
    """Sums over groups (G,) of values (p,)."""
    each = np.tile(groups, len(values) // len(groups))
    return np.bincount(each[each >= 0], values[each >= 0]).astype(np.float64)


@dataclass(frozen=True, eq=False)
class ChosenPrior(FixedPrior):
    """A precision for each group, the best there is."""

    groups: Codes

    def suited(self, q: Gaussian) -> Penalty:
        return self._with(precision_update(self._away(q), q.covariance, self.groups))

    def better(self, rows: Quadratic, fit: Fit) -> Fit:
        """The best precisions for one quadratic, or better ones at least."""
        most = _GONE * (1.0 + np.diagonal(rows.H).max(initial=0.0))
        for _ in range(_ROUNDS):
            tried = (self.fit(rows, self._with(alpha)) for alpha in self._proposals(fit, most))
            found = next((each for each in tried if each.value > fit.value), fit)
            if found.value - fit.value <= _LEVEL * (1.0 + abs(fit.value)):
                break
            fit = found
        return fit

    def _proposals(self, fit: Fit, most: float) -> Iterator[Array]:
        """Precisions to try next.

        MacKay's α = (M - α Σ S_jj) / Σ m_j² goes far at once but may overshoot; the other cannot.
        """
        away, covariance = self._away(fit.q), fit.q.covariance
        held = np.tile(fit.penalty.precision, self.objective.coordinates.c)
        known = _grouped(1.0 - held * np.diagonal(covariance), self.groups)
        if (known > 0).all():
            with np.errstate(divide="ignore"):
                yield np.minimum(known / _grouped(away**2, self.groups), most)
        yield np.minimum(precision_update(away, covariance, self.groups), most)

    def _away(self, q: Gaussian) -> Array:
        return q.mean - np.tile(self.objective.penalty.mean, self.objective.coordinates.c)

    def _with(self, alpha: Array) -> Penalty:
        given = self.objective.penalty
        precision = np.where(self.groups >= 0, alpha[self.groups], given.precision)
        return replace(given, precision=precision, proper=True)
