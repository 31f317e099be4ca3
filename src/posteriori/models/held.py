"""What a prior holds, and whether the rows of a fit can then be a judge of it."""

from typing import Any

from posteriori.arguments import is_number
from posteriori.errors import InferenceError
from posteriori.posterior.inference import Inference

_ROWS_EACH = 10
"""Rows for each coefficient from which on those of a fit say something of it."""

_LITTLE = "the rows of the fit say little of it {}; pass others, X and y"


def is_held(model: Any) -> bool:
    """Whether a prior holds every coefficient."""
    prior = getattr(model, "prior", None)
    if prior is None or isinstance(prior, str) or hasattr(model, "posterior_"):
        return prior is not None
    try:
        return bool(model._inference.objective.penalty.proper)
    except InferenceError:
        return is_number(prior) and prior > 0


def why_no_judge(model: Any, inference: Inference) -> str | None:
    """Why predictions beside the rows of the fit would mislead; None where they do not.

    A prior draws predictions of these rows to the middle, whatever it does to those of others; and
    p coefficients take up as many of n rows, which are then met better than others are.
    """
    if is_held(model) or inference.objective.penalty.precision.any():
        return _LITTLE.format("where a prior holds the coefficients")
    if inference.n_parameters * _ROWS_EACH > inference.goodness.n_obs:
        return _LITTLE.format("with so many coefficients for so few rows")
    return None
