"""The rows of a fit that its coefficients hang on."""

import numpy as np

from posteriori.errors import InferenceError
from posteriori.likelihood.loss import Loss
from posteriori.likelihood.softmax import SoftmaxLoss
from posteriori.linalg import cholesky
from posteriori.posterior.inference import Inference
from posteriori.posterior.objective import BLOCK_ENTRIES, LogPosterior
from posteriori.rows.threads import one_blas_thread
from posteriori.statistics.leverage import GatherInfluence, Influence
from posteriori.typing import Array


def influence_of(inference: Inference, most: int = 5) -> Influence:
    """The rows with the largest Cook's distances and leverages, by one pass over those of the fit.

    Both go by the expected curvature at the optimum, with that of the prior, if there is one; with
    a posterior that was found otherwise, by its covariance. An error where the curvature is not to
    be had, or where the fit leaves nothing unexplained.
    """
    objective, dispersion = unchanged(inference), inference.goodness.dispersion
    if not dispersion > 0:
        raise InferenceError(
            "The fit meets every target, so that no row pulls at it.",
            "Fit fewer columns, or more rows.",
        )
    canonical = isinstance(objective.loss, SoftmaxLoss) or (
        isinstance(objective.loss, Loss) and objective.loss.canonical
    )
    inverse = inference.free_covariance("model" if canonical else "expected") / dispersion
    kernel = GatherInfluence(
        objective.kernel(inference.w, information="expected"),
        objective.directions(roots_of(inverse)),
        len(inference.w) * dispersion,
        most,
    )
    with one_blas_thread():
        return objective.rows.map_sum(kernel, block_entries=BLOCK_ENTRIES)


def unchanged(inference: Inference) -> LogPosterior:
    """The objective of a fit; an error where its rows are gone, or are not what they were."""
    objective = inference.objective
    with one_blas_thread():
        found = objective.likelihood(inference.w, "none", objective.information)
    inference.goodness.learn(found.value)
    return objective


def roots_of(covariance: Array) -> Array:
    """R (k, p) with RᵀR = covariance, which may lack some directions.

    >>> roots_of(np.array([[4.0, 0.0], [0.0, 9.0]]))
    array([[2., 0.], [0., 3.]])
    """
    lower = cholesky(covariance)
    if lower is not None:
        return np.ascontiguousarray(lower.T)
    values, vectors = np.linalg.eigh(covariance)
    return np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
