"""Class priors other than those of the training data."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from posteriori.errors import ParameterError
from posteriori.typing import Array, Labels

_SUM_TOLERANCE = 1e-8

PriorsLike = Mapping[Any, float] | Sequence[float] | Array


def read_priors(priors: PriorsLike, classes: Labels) -> Array:
    """Priors as the user gave them, by label or in the order of the classes, checked.

    >>> read_priors({"b": 0.9, "a": 0.1}, np.array(["a", "b"]))
    array([0.1, 0.9])
    """
    if isinstance(priors, Mapping):
        labels = classes.tolist()
        unknown = [label for label in priors if label not in labels]
        absent = [label for label in labels if label not in priors]
        if unknown or absent:
            what = f"an unknown class {unknown[0]!r}" if unknown else f"no class {absent[0]!r}"
            raise ParameterError(
                f"priors has {what}.", f"Give one number for each class of {labels[:8]}."
            )
        priors = [priors[label] for label in labels]
    try:
        values = np.asarray(priors, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"priors={priors!r} is not made of numbers.", "Give one probability a class."
        ) from error
    if values.shape != classes.shape:
        raise ParameterError(
            f"priors has shape {values.shape} for {len(classes)} classes.",
            "Give one number a class, in the order of classes_, or a dict from label to number.",
        )
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise ParameterError("priors must be finite and not negative.", "Give probabilities.")
    if abs(values.sum() - 1) > _SUM_TOLERANCE:
        raise ParameterError(
            f"priors sum to {values.sum():.10g}, not to one.", "Divide them by their sum."
        )
    return values


def log_priors(priors: Array) -> Array:
    """ln p(C_k); -inf for a class that cannot occur."""
    with np.errstate(divide="ignore"):
        return np.log(priors)
