"""Where the likelihood of labels that may be wrong is level, as it is far out only.

Apart from the rows whose label is taken for wrong, the classes can then be separated, or almost.
"""

from dataclasses import replace
from typing import cast

import numpy as np
from scipy.linalg import eigh, null_space

from posteriori.errors import SeparationWarning, warn
from posteriori.likelihood.logistic import LogisticLoss
from posteriori.likelihood.loss import ClassLoss
from posteriori.likelihood.softmax import SoftmaxLoss
from posteriori.linalg import cholesky, unit_diagonal
from posteriori.posterior.noise import NoiseProfile
from posteriori.posterior.objective import LogPosterior
from posteriori.typing import Array

_FLAT = 1e-8
"""Least curvature, beside that at zero, of coefficients that the data determine."""

_INVOLVED = 0.1
"""Share of the largest coefficient in a direction from which a column is said to be in it."""


def is_flat(objective: LogPosterior, w: Array) -> bool:
    """Whether the likelihood is level along some direction, as it is far out only."""
    if objective.penalty.proper or objective.is_wide:
        return False
    here, there = _informations(objective, w)
    _, scale = unit_diagonal(there)
    return cholesky((here - _FLAT * there) / scale / scale[:, None]) is None


def determined_directions(objective: LogPosterior, w: Array) -> Array:
    """Orthonormal directions (p, k) that leave out those along which the likelihood is level.

    A warning names the columns whose coefficients are in the latter.
    """
    values, vectors = eigh(*_informations(objective, w))
    _warn_of_separation(_columns_in(objective, vectors[:, values <= max(_FLAT, values[0])]))
    return cast(Array, null_space(vectors[:, values < _FLAT].T))


def _columns_in(objective: LogPosterior, directions: Array) -> str:
    """The columns whose coefficients make up directions (p, k)."""
    expand, first = objective.coordinates.expand, int(objective.standard.intercept)
    thetas = np.stack([expand(one / abs(one).max()) for one in directions.T])
    sizes = abs(thetas[:, :, first:]).max(axis=(0, 1))
    involved = np.flatnonzero(sizes >= _INVOLVED * sizes.max())
    return objective.columns.as_schema().describe_all(involved)


def _informations(objective: LogPosterior, w: Array) -> tuple[Array, Array]:
    """Expected information at w, and without noise at zero, where it is largest."""
    clean = SoftmaxLoss() if isinstance(objective.loss, ClassLoss) else LogisticLoss()
    at = objective.at(objective.best_rate(w)) if isinstance(objective, NoiseProfile) else objective
    return _information(at, w), _information(replace(objective, loss=clean), 0 * w)


def _information(objective: LogPosterior, w: Array) -> Array:
    return cast(Array, objective.likelihood(w, "full", "expected").hessian)


def _warn_of_separation(columns: str) -> None:
    warn(
        SeparationWarning(
            "Apart from rows whose label is taken for wrong, the classes can be separated, or "
            f"almost: the coefficients of {columns} run to infinity, or are too large to be "
            "determined.",
            "Set a prior, such as prior=1.0.",
        )
    )
