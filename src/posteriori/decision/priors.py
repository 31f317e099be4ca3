"""Class priors other than those of the training data."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from posteriori.decision.names import places_of
from posteriori.errors import ParameterError
from posteriori.typing import Array, Labels

_SUM_TOLERANCE = 1e-8

PriorsLike = Mapping[Any, float] | Sequence[float] | Array


def read_priors(priors: PriorsLike, classes: Labels, name: str = "priors") -> Array:
    """Priors as the user gave them, by label or in the order of the classes, checked.

    >>> read_priors({"b": 0.9, "a": 0.1}, np.array(["a", "b"]))
    array([0.1, 0.9])
    """
    values = by_class(priors, classes, name, "probability")
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise ParameterError(f"{name} must be finite and not negative.", "Give probabilities.")
    if abs(values.sum() - 1) > _SUM_TOLERANCE:
        raise ParameterError(
            f"{name} sum to {values.sum():.10g}, not to one.", "Divide them by their sum."
        )
    return values


def by_class(numbers: PriorsLike, classes: Labels, name: str, what: str) -> Array:
    """One number a class, given by label or in the order of the classes, (K,)."""
    if isinstance(numbers, Mapping):
        keys = list(numbers)
        places = places_of(classes.tolist(), keys, name, "class")
        numbers = [numbers[keys[place]] for place in places]
    try:
        values = np.asarray(numbers, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"{name}={numbers!r} is not made of numbers.", f"Give one {what} a class."
        ) from error
    if values.shape != classes.shape:
        raise ParameterError(
            f"{name} has shape {values.shape} for {len(classes)} classes.",
            "Give one number a class, in the order of classes_, or a dict from label to number.",
        )
    return values


def log_priors(priors: Array) -> Array:
    """ln p(C_k); -inf for a class that cannot occur."""
    with np.errstate(divide="ignore"):
        return np.log(priors)
